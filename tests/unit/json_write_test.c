#include <string.h>

#include "base/json.h"
#include "tests/unit/check.h"

#define LIMIT ((size_t)1 << 20)

static void values_are_written_compactly_and_verbatim(void **state)
{
    static const char *const cases[][2] = {
        {"null", "null"},
        {" true ", "true"},
        {"false", "false"},
        {"9007199254740993", "9007199254740993"},
        {"1.0", "1.0"},
        {"1E+03", "1E+03"},
        {"-0.0", "-0.0"},
        {"\"\\u00e9\\ud83d\\ude00/\\/\"", "\"\xc3\xa9\xf0\x9f\x98\x80//\""},
        {"\"\\u0000\\u001f\\b\\t\\n\\f\\r\\\"\\\\\\u007f\"",
         "\"\\u0000\\u001f\\b\\t\\n\\f\\r\\\"\\\\\x7f\""},
        {"[ ]", "[]"},
        {"[1 , [2], {} ]", "[1,[2],{}]"},
        {"{ \"b\" : 1, \"a\" : { \"\" : [ ] } }", "{\"b\":1,\"a\":{\"\":[]}}"},
    };

    (void)state;
    for (size_t i = 0; i < HD_COUNT(cases); i++) {
        struct hd_json json;
        struct hd_buf out;

        hd_buf_init(&out, LIMIT);
        assert_err(hd_json_parse(&json, hd_slice_cstr(cases[i][0]), NULL), 0);
        assert_err(hd_json_write_val(&out, hd_json_root(&json)), 0);
        assert_slice(hd_buf_slice(&out), hd_slice_cstr(cases[i][1]));
        hd_json_fini(&json);
        hd_buf_fini(&out);
    }
}

static void strings_are_always_valid(void **state)
{
#define FFFD "\xef\xbf\xbd"
    static const struct {
        struct hd_slice text;
        const char *expected;
    } cases[] = {
        {{NULL, 0}, "\"\""},
        {{"plain", 5}, "\"plain\""},
        {{"\0", 1}, "\"\\u0000\""},
        {{"\xff", 1}, "\"" FFFD "\""},
        {{"a\xc3", 2}, "\"a" FFFD "\""},
        {{"\xc0\x80", 2}, "\"" FFFD FFFD "\""},
        {{"\xed\xa0\x80", 3}, "\"" FFFD FFFD FFFD "\""},
        {{"\xf4\x90\x80\x80", 4}, "\"" FFFD FFFD FFFD FFFD "\""},
        {{"\xf4\x8f\xbf\xbf", 4}, "\"\xf4\x8f\xbf\xbf\""},
        {{"\xe2\x82\xac\xe2\x82", 5}, "\"\xe2\x82\xac" FFFD FFFD "\""},
    };

    (void)state;
    for (size_t i = 0; i < HD_COUNT(cases); i++) {
        struct hd_buf out;

        hd_buf_init(&out, LIMIT);
        assert_err(hd_json_write_string(&out, cases[i].text), 0);
        assert_slice(hd_buf_slice(&out), hd_slice_cstr(cases[i].expected));
        hd_buf_fini(&out);
    }
}

/* The writer checks eight bytes at once; every byte must be detected at every offset. */
static void every_byte_is_right_at_every_offset(void **state)
{
    (void)state;
    for (int byte = 0; byte < 256; byte++) {
        for (size_t at = 0; at < 20; at++) {
            bool is_plain = byte >= 0x20 && byte < 0x80 && byte != '"' && byte != '\\';
            char text[20];
            struct hd_json json;
            struct hd_buf out;

            memset(text, 'x', sizeof(text));
            text[at] = (char)byte;
            hd_buf_init(&out, LIMIT);
            assert_err(hd_json_write_string(&out, hd_slice(text, sizeof(text))), 0);
            assert_int_equal(out.len == sizeof(text) + 2, is_plain);
            assert_err(hd_json_parse(&json, hd_buf_slice(&out), NULL), 0);
            if (byte < 0x80)
                assert_slice(hd_json_string(hd_json_root(&json)), hd_slice(text, sizeof(text)));
            else
                assert_memory_equal(hd_json_string(hd_json_root(&json)).ptr + at, FFFD, 3);
            hd_json_fini(&json);
            hd_buf_fini(&out);
        }
    }
}

static void the_writer_puts_the_commas(void **state)
{
    struct hd_json json;
    struct hd_buf out;
    struct hd_jw jw;

    (void)state;
    assert_err(hd_json_parse(&json, HD_S("[1.50]"), NULL), 0);
    hd_buf_init(&out, LIMIT);
    hd_jw_init(&jw, &out);
    hd_jw_object(&jw);
    hd_jw_put_int(&jw, "a\"b", INT64_MIN);
    hd_jw_put_array(&jw, "list");
    hd_jw_array(&jw);
    hd_jw_array_end(&jw);
    hd_jw_bool(&jw, true);
    hd_jw_bool(&jw, false);
    hd_jw_null(&jw);
    hd_jw_object(&jw);
    hd_jw_object_end(&jw);
    hd_jw_string(&jw, HD_S("s"));
    hd_jw_array_end(&jw);
    hd_jw_put_val(&jw, "val", hd_json_root(&json));
    hd_jw_put_raw(&jw, "raw", HD_S("{\"x\": 1}"));
    hd_jw_object_end(&jw);
    assert_err(hd_jw_finish(&jw), 0);
    assert_slice(hd_buf_slice(&out),
                 HD_S("{\"a\\\"b\":-9223372036854775808,\"list\":[[],true,false,null,{},\"s\"],"
                      "\"val\":[1.50],\"raw\":{\"x\": 1}}"));
    hd_json_fini(&json);
    hd_buf_fini(&out);
}

static void members_have_a_key_and_a_value(void **state)
{
    struct hd_json json;
    struct hd_buf buf;
    struct hd_jw jw;

    (void)state;
    assert_err(hd_json_parse(&json, HD_S("[1.0]"), NULL), 0);
    hd_buf_init(&buf, SIZE_MAX);
    hd_jw_init(&jw, &buf);
    hd_jw_object(&jw);
    hd_jw_put_string(&jw, "s\"", HD_S("a\n"));
    hd_jw_put_string_or_null(&jw, "s0", HD_S(""));
    hd_jw_put_string_or_null(&jw, "s1", HD_S("x"));
    hd_jw_put_object(&jw, "o");
    hd_jw_put_int(&jw, "i", -1);
    hd_jw_put_bool(&jw, "b", false);
    hd_jw_object_end(&jw);
    hd_jw_put_array(&jw, "a");
    hd_jw_null(&jw);
    hd_jw_array_end(&jw);
    hd_jw_put_null(&jw, "n");
    hd_jw_put_val(&jw, "v", hd_json_root(&json));
    hd_jw_put_raw(&jw, "r", HD_S("{}"));
    hd_jw_put_raw_or(&jw, "r0", HD_S(""), "[]");
    hd_jw_put_raw_or(&jw, "r1", HD_S("2"), "[]");
    hd_jw_put_timestamp(&jw, "t", 1);
    hd_jw_object_end(&jw);
    assert_err(hd_jw_finish(&jw), 0);
    assert_slice(hd_buf_slice(&buf),
                 HD_S("{\"s\\\"\":\"a\\n\",\"s0\":null,\"s1\":\"x\",\"o\":{\"i\":-1,\"b\":false},"
                      "\"a\":[null],\"n\":null,\"v\":[1.0],\"r\":{},\"r0\":[],\"r1\":2,"
                      "\"t\":\"1970-01-01T00:00:00.000001+00:00\"}"));
    hd_buf_fini(&buf);
    hd_json_fini(&json);
}

static void the_writer_reports_its_first_error(void **state)
{
    struct hd_buf out;
    struct hd_jw jw;

    (void)state;
    hd_buf_init(&out, 5);
    hd_jw_init(&jw, &out);
    hd_jw_array(&jw);
    hd_jw_string(&jw, HD_S("too long"));
    hd_jw_val(&jw, NULL);
    hd_jw_int(&jw, 1);
    hd_jw_array_end(&jw);
    assert_err(hd_jw_finish(&jw), HD_ELIMIT);
    hd_buf_fini(&out);
}

static void a_missing_value_is_an_error(void **state)
{
    struct hd_buf out;
    struct hd_jw jw;

    (void)state;
    hd_buf_init(&out, LIMIT);
    assert_err(hd_json_write_val(&out, NULL), HD_EINVAL);
    hd_jw_init(&jw, &out);
    hd_jw_val(&jw, NULL);
    assert_err(hd_jw_finish(&jw), HD_EINVAL);
    hd_buf_fini(&out);
}

/* Written text is readable: the depth of a value is added to that of its position. */
static void depth_is_bounded_when_writing_too(void **state)
{
    static const struct {
        int outer;
        const char *inner;
        int expected;
    } cases[] = {
        {HD_JSON_MAX_DEPTH, "1", 0},
        {HD_JSON_MAX_DEPTH, "[]", HD_ELIMIT},
        {HD_JSON_MAX_DEPTH - 1, "[]", 0},
        {HD_JSON_MAX_DEPTH - 1, "{\"a\":{}}", HD_ELIMIT},
        {HD_JSON_MAX_DEPTH + 1, "1", HD_ELIMIT},
    };

    (void)state;
    for (size_t i = 0; i < HD_COUNT(cases); i++) {
        struct hd_json inner, again;
        struct hd_buf out;
        struct hd_jw jw;

        assert_err(hd_json_parse(&inner, hd_slice_cstr(cases[i].inner), NULL), 0);
        hd_buf_init(&out, LIMIT);
        hd_jw_init(&jw, &out);
        for (int n = 0; n < cases[i].outer; n++)
            hd_jw_array(&jw);
        hd_jw_val(&jw, hd_json_root(&inner));
        for (int n = 0; n < cases[i].outer; n++)
            hd_jw_array_end(&jw);
        assert_err(hd_jw_finish(&jw), cases[i].expected);
        if (!cases[i].expected) {
            assert_err(hd_json_parse(&again, hd_buf_slice(&out), NULL), 0);
            hd_json_fini(&again);
        }
        hd_json_fini(&inner);
        hd_buf_fini(&out);
    }
}

static int write_something(void *arg)
{
    struct hd_buf out;
    struct hd_jw jw;
    int err;

    hd_buf_init(&out, LIMIT);
    hd_jw_init(&jw, &out);
    hd_jw_object(&jw);
    hd_jw_put_val(&jw, "value", arg);
    for (int i = 0; i < 100; i++)
        hd_jw_put_int(&jw, "number", i);
    hd_jw_object_end(&jw);
    err = hd_jw_finish(&jw);
    hd_buf_fini(&out);
    return err;
}

static void every_failing_allocation_is_reported(void **state)
{
    struct hd_json json;

    (void)state;
    assert_err(hd_json_parse(&json, HD_S("{\"a\":[1,\"some\\ntext\",null,true]}"), NULL), 0);
    assert_in_range(check_every_allocation(write_something, hd_json_root(&json)), 3, 30);
    hd_json_fini(&json);
}

static void a_failed_write_leaves_the_buffer_as_it_was(void **state)
{
    static const char text[] = "{\"a\":[1,\"some\\ntext\",null,true],\"b\":\"\\u0001\"}";
    struct hd_json json;

    (void)state;
    assert_err(hd_json_parse(&json, hd_slice_cstr(text), NULL), 0);
    for (size_t limit = 3; limit < 3 + sizeof(text) - 1; limit++) {
        struct hd_buf out;

        hd_buf_init(&out, limit);
        assert_err(hd_buf_append(&out, "abc", 3), 0);
        assert_err(hd_json_write_val(&out, hd_json_root(&json)), HD_ELIMIT);
        assert_err(hd_json_write_string(&out, hd_slice_cstr(text)), HD_ELIMIT);
        assert_slice(hd_buf_slice(&out), HD_S("abc"));
        hd_buf_fini(&out);
    }
    hd_json_fini(&json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_written_compactly_and_verbatim),
        cmocka_unit_test(strings_are_always_valid),
        cmocka_unit_test(every_byte_is_right_at_every_offset),
        cmocka_unit_test(the_writer_puts_the_commas),
        cmocka_unit_test(members_have_a_key_and_a_value),
        cmocka_unit_test(the_writer_reports_its_first_error),
        cmocka_unit_test(a_missing_value_is_an_error),
        cmocka_unit_test(depth_is_bounded_when_writing_too),
        cmocka_unit_test(every_failing_allocation_is_reported),
        cmocka_unit_test(a_failed_write_leaves_the_buffer_as_it_was),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
