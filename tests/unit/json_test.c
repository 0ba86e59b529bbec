#include "base/json.h"

#include <string.h>

#include "tests/unit/check.h"

static struct hd_json parse(struct hd_slice text)
{
    struct heddle_error fault = {0};
    struct hd_json json;

    if (hd_json_parse(&json, text, &fault) != 0)
        fail_msg("%s: %.*s", fault.text, (int)text.len, text.ptr);
    return json;
}

static void strict_json_is_read(void **state)
{
    static const struct {
        const char *text;
        enum hd_json_type type;
    } cases[] = {
        {"null", HD_JSON_NULL},        {"true", HD_JSON_BOOL},      {"false", HD_JSON_BOOL},
        {"0", HD_JSON_NUMBER},         {"-0", HD_JSON_NUMBER},      {"1.5e-300", HD_JSON_NUMBER},
        {"1e99999", HD_JSON_NUMBER},   {"\"\"", HD_JSON_STRING},    {"\"\\u00e9\"", HD_JSON_STRING},
        {"[]", HD_JSON_ARRAY},         {" [1, 2] ", HD_JSON_ARRAY}, {"{}", HD_JSON_OBJECT},
        {"{\"\":{}}", HD_JSON_OBJECT},
    };

    (void)state;
    for (size_t i = 0; i < HD_COUNT(cases); i++) {
        struct hd_json json = parse(hd_slice_cstr(cases[i].text));

        assert_int_equal(hd_json_type(hd_json_root(&json)), cases[i].type);
        hd_json_fini(&json);
        assert_null(hd_json_root(&json));
    }
}

static void text_that_is_not_strict_json_is_rejected_with_a_reason(void **state)
{
    static const struct hd_slice cases[] = {
        HD_S_INIT(""),
        HD_S_INIT(" "),
        HD_S_INIT("{"),
        HD_S_INIT("[1,]"),
        HD_S_INIT("{\"a\":1,}"),
        HD_S_INIT("{a:1}"),
        HD_S_INIT("'a'"),
        HD_S_INIT("01"),
        HD_S_INIT("+1"),
        HD_S_INIT("1."),
        HD_S_INIT(".5"),
        HD_S_INIT("1e"),
        HD_S_INIT("-"),
        HD_S_INIT("NaN"),
        HD_S_INIT("Infinity"),
        HD_S_INIT("-Infinity"),
        HD_S_INIT("0x10"),
        HD_S_INIT("nul"),
        HD_S_INIT("true false"),
        HD_S_INIT("[1] x"),
        HD_S_INIT("// c\n1"),
        HD_S_INIT("/* c */ 1"),
        HD_S_INIT("\"\n\""),
        HD_S_INIT("\"\\x\""),
        HD_S_INIT("\"\\ud800\""),
        HD_S_INIT("\"\xff\""),
        HD_S_INIT("\"\xed\xa0\x80\""),
        HD_S_INIT("\"\xc0\x80\""),
        HD_S_INIT("\xef\xbb\xbf[]"),
        HD_S_INIT("[]\0"),
        HD_S_INIT("\0"),
        HD_S_INIT("[1 2]"),
    };
    struct heddle_error fault;
    struct hd_json json;

    (void)state;
    for (size_t i = 0; i < HD_COUNT(cases); i++) {
        fault = (struct heddle_error){0};
        if (hd_json_parse(&json, cases[i], &fault) != HD_EINVAL)
            fail_msg("case %zu was accepted: %.*s", i, (int)cases[i].len, cases[i].ptr);
        assert_null(json.doc);
        assert_err(fault.code, HD_EINVAL);
        assert_memory_equal(fault.text, "not valid JSON", 14);
    }
    assert_err(hd_json_parse(&json, hd_slice(NULL, 0), NULL), HD_EINVAL);
}

static void the_fault_names_the_position(void **state)
{
    struct heddle_error fault = {0};
    struct hd_json json;

    (void)state;
    assert_err(hd_json_parse(&json, HD_S("[1,2,x]"), &fault), HD_EINVAL);
    assert_memory_equal(fault.text, "not valid JSON at byte 5: ", 26);
}

/* `depth` times one bracket, a core, and the closing brackets. */
static struct hd_slice nested(char *text, size_t depth, const char *open, const char *core,
                              char close)
{
    char *pos = text;

    for (size_t i = 0; i < depth; i++, pos += strlen(open))
        memcpy(pos, open, strlen(open));
    memcpy(pos, core, strlen(core));
    pos += strlen(core);
    memset(pos, close, depth);
    return hd_slice(text, (size_t)(pos - text) + depth);
}

static void depth_is_bounded(void **state)
{
    static const struct {
        const char *open;
        char close;
        size_t extra; /* how much deeper than the bracket itself `open` goes */
    } kinds[] = {{"[", ']', 0}, {"{\"a\":", '}', 0}, {"[1,[[2],3],[[]],", ']', 2}};
    static char text[HD_JSON_MAX_DEPTH * 40];

    (void)state;
    for (size_t i = 0; i < HD_COUNT(kinds); i++) {
        size_t most = HD_JSON_MAX_DEPTH - kinds[i].extra;
        struct heddle_error fault = {0};
        struct hd_json json;

        json = parse(nested(text, most, kinds[i].open, "4", kinds[i].close));
        assert_true(hd_json_equal(hd_json_root(&json), hd_json_root(&json)));
        hd_json_fini(&json);
        assert_err(hd_json_parse(&json, nested(text, most + 1, kinds[i].open, "4", kinds[i].close),
                                 &fault),
                   HD_EINVAL);
        assert_string_equal(fault.text, "JSON nested deeper than 512 levels");
        assert_null(json.doc);
    }
}

static void wide_documents_are_not_deep(void **state)
{
    static char text[3 * 100000];
    struct hd_json json;

    (void)state;
    for (size_t i = 0; i < sizeof(text); i += 3)
        memcpy(text + i, "[],", 3);
    text[0] = '[';
    text[1] = '0';
    text[sizeof(text) - 1] = ']';
    json = parse(hd_slice(text, sizeof(text)));
    assert_int_equal(hd_json_size(hd_json_root(&json)), 100000);
    hd_json_fini(&json);
}

static void a_document_borrows_nothing(void **state)
{
    char text[] = "{\"key\":[\"value\",12345678901234567890]}";
    struct hd_json json = parse(hd_slice_cstr(text));
    struct hd_json_iter it;

    (void)state;
    memset(text, 'x', sizeof(text));
    it = hd_json_iter(hd_json_get(hd_json_root(&json), HD_S("key")));
    assert_true(hd_json_next(&it));
    assert_slice(hd_json_string(it.val), HD_S("value"));
    assert_true(hd_json_next(&it));
    assert_slice(hd_json_number_text(it.val), HD_S("12345678901234567890"));
    assert_false(hd_json_next(&it));
    hd_json_fini(&json);
}

static void members_are_found_by_exact_bytes(void **state)
{
    struct hd_json json = parse(HD_S("{\"\":1,\"a\":2,\"a\\u0000b\":3,\"\xc3\xa9\":4}"));
    hd_json_val root = hd_json_root(&json);
    static const struct {
        struct hd_slice key;
        const char *expected;
    } cases[] = {
        {{"", 0}, "1"}, {{NULL, 0}, "1"},       {{"a", 1}, "2"},   {{"a\0b", 3}, "3"},
        {{"b", 1}, ""}, {{"\xc3\xa9", 2}, "4"}, {{"a\0c", 3}, ""},
    };

    (void)state;
    for (size_t i = 0; i < HD_COUNT(cases); i++)
        assert_slice(hd_json_number_text(hd_json_get(root, cases[i].key)),
                     hd_slice_cstr(cases[i].expected));
    assert_null(hd_json_get(hd_json_get(root, HD_S("a")), HD_S("x")));
    assert_null(hd_json_get(NULL, HD_S("x")));
    hd_json_fini(&json);
}

static void strings_may_contain_nul(void **state)
{
    struct hd_json json = parse(HD_S("\"a\\u0000b\""));

    (void)state;
    assert_slice(hd_json_string(hd_json_root(&json)), HD_S("a\0b"));
    hd_json_fini(&json);
}

static void types_have_names(void **state)
{
    static const char *const cases[][2] = {
        {"null", "null"},      {"true", "a boolean"}, {"1", "a number"},
        {"\"s\"", "a string"}, {"[]", "an array"},    {"{}", "an object"},
    };

    (void)state;
    for (size_t i = 0; i < HD_COUNT(cases); i++) {
        struct hd_json json = parse(hd_slice_cstr(cases[i][0]));

        assert_string_equal(hd_json_type_name(hd_json_root(&json)), cases[i][1]);
        hd_json_fini(&json);
    }
    assert_string_equal(hd_json_type_name(NULL), "nothing");
}

static void accessors_of_the_wrong_type_give_nothing(void **state)
{
    static const char *const others[] = {"null", "true", "\"1\"", "[1]", "{\"a\":1}"};
    struct hd_json_iter it = hd_json_iter(NULL);
    double real = 7;
    int64_t number = 7;

    (void)state;
    for (size_t i = 0; i < HD_COUNT(others); i++) {
        struct hd_json json = parse(hd_slice_cstr(others[i]));
        hd_json_val root = hd_json_root(&json);

        assert_false(hd_json_is_number(root));
        assert_int_equal(hd_json_number_text(root).len, 0);
        assert_false(hd_json_int(root, &number));
        assert_false(hd_json_double(root, &real));
        assert_int_equal(hd_json_size(root), i >= 3);
        assert_int_equal(hd_json_string(root).len, i == 2);
        hd_json_fini(&json);
    }
    assert_int_equal(number, 7);
    assert_true(real == 7);
    assert_false(hd_json_next(&it));
    assert_false(hd_json_int(NULL, &number));
    assert_int_equal(hd_json_size(NULL), 0);
}

static void integers_fit_or_are_refused(void **state)
{
    static const struct {
        const char *text;
        bool fits;
        int64_t value;
    } cases[] = {
        {"0", true, 0},
        {"-0", true, 0},
        {"42", true, 42},
        {"-1", true, -1},
        {"9223372036854775807", true, INT64_MAX},
        {"-9223372036854775808", true, INT64_MIN},
        {"9223372036854775808", false, 0},
        {"-9223372036854775809", false, 0},
        {"18446744073709551617", false, 0},
        {"100000000000000000000000000000000", false, 0},
        {"1.0", false, 0},
        {"1e3", false, 0},
    };

    (void)state;
    for (size_t i = 0; i < HD_COUNT(cases); i++) {
        struct hd_json json = parse(hd_slice_cstr(cases[i].text));
        int64_t out = 7;

        assert_int_equal(hd_json_int(hd_json_root(&json), &out), cases[i].fits);
        assert_true(out == (cases[i].fits ? cases[i].value : 7));
        hd_json_fini(&json);
    }
}

static void whole_numbers_may_have_a_fraction_or_an_exponent(void **state)
{
    static const struct {
        const char *text;
        bool is_whole;
        int64_t value;
    } cases[] = {
        {"42", true, 42},
        {"9223372036854775807", true, INT64_MAX},
        {"1.0", true, 1},
        {"-0.0", true, 0},
        {"1e3", true, 1000},
        {"9007199254740992.0", true, INT64_C(9007199254740992)},
        {"-9007199254740992.0", true, -INT64_C(9007199254740992)},
        {"9007199254740994.0", false, 0},
        {"9223372036854775808", false, 0},
        {"1e300", false, 0},
        {"0.5", false, 0},
        {"1e-300", false, 0},
        {"\"1\"", false, 0},
        {"null", false, 0},
    };

    (void)state;
    for (size_t i = 0; i < HD_COUNT(cases); i++) {
        struct hd_json json = parse(hd_slice_cstr(cases[i].text));
        int64_t out = 7;

        assert_int_equal(hd_json_whole(hd_json_root(&json), &out), cases[i].is_whole);
        assert_true(out == (cases[i].is_whole ? cases[i].value : 7));
        hd_json_fini(&json);
    }
}

static void doubles_are_exact(void **state)
{
    static const struct {
        const char *text;
        double value;
    } cases[] = {
        {"0.1", 0.1},     {"-2.5e-3", -2.5e-3}, {"9007199254740993", 9007199254740992.0},
        {"1e308", 1e308}, {"5e-324", 5e-324},   {"18446744073709551616", 18446744073709551616.0},
    };
    struct hd_json json;
    double out = 7;

    (void)state;
    for (size_t i = 0; i < HD_COUNT(cases); i++) {
        json = parse(hd_slice_cstr(cases[i].text));
        assert_true(hd_json_double(hd_json_root(&json), &out));
        assert_true(out == cases[i].value);
        hd_json_fini(&json);
    }
    out = 7;
    json = parse(HD_S("1e309"));
    assert_false(hd_json_double(hd_json_root(&json), &out));
    assert_true(out == 7);
    hd_json_fini(&json);
}

static void objects_are_walked_in_order(void **state)
{
    struct hd_json json = parse(HD_S("{\"b\":1,\"a\":[],\"\":null}"));
    struct hd_json_iter it = hd_json_iter(hd_json_root(&json));

    (void)state;
    assert_true(hd_json_next(&it));
    assert_slice(it.key, HD_S("b"));
    assert_slice(hd_json_number_text(it.val), HD_S("1"));
    assert_true(hd_json_next(&it));
    assert_slice(it.key, HD_S("a"));
    assert_true(hd_json_is_array(it.val));
    assert_true(hd_json_next(&it));
    assert_slice(it.key, HD_S(""));
    assert_true(hd_json_is_null(it.val));
    assert_false(hd_json_next(&it));
    assert_false(hd_json_next(&it));
    hd_json_fini(&json);
}

#define BIG "100000000000000000000000000000000000000000"

static const struct {
    const char *a, *b;
    bool are_equal;
} comparisons[] = {
    {"null", "null", true},
    {"null", "false", false},
    {"true", "true", true},
    {"true", "false", false},
    {"1", "true", false},
    {"\"1\"", "1", false},
    {"\"a\"", "\"\\u0061\"", true},
    {"\"a\"", "\"b\"", false},
    {"\"a\"", "\"a\\u0000\"", false},
    {"1", "1.0", true},
    {"1", "1.000e0", true},
    {"100", "1e2", true},
    {"100", "1E+2", true},
    {"0.01", "1e-2", true},
    {"0.01", "10e-3", true},
    {"1.50", "15e-1", true},
    {"15", "1.5", false},
    {"105", "15", false},
    {"1.05", "1.5", false},
    {"0", "-0.0", true},
    {"0", "0e99999999999999999999", true},
    {"0", "1e-400", false},
    {"1", "-1", false},
    {"12", "123", false},
    {"9007199254740993", "9007199254740992", false},
    {"9007199254740993", "9007199254740993.0", true},
    {"9007199254740993", "9007199254740992.0", false},
    {BIG "1", BIG "1", true},
    {BIG "1", BIG "2", false},
    {BIG "1", BIG "1.0", true},
    {BIG "0", "1e42", true},
    {"1e400", "1e401", false},
    {"1e400", "10e399", true},
    {"1e99999999999999999999", "1e99999999999999999999", true},
    {"1e99999999999999999999", "1e99999999999999999998", false},
    {"[]", "[]", true},
    {"[]", "{}", false},
    {"[1,2]", "[1,2.0]", true},
    {"[1,2]", "[2,1]", false},
    {"[1,2]", "[1]", false},
    {"{}", "{}", true},
    {"{\"a\":1,\"b\":2}", "{\"b\":2,\"a\":1}", true},
    {"{\"a\":1,\"b\":2}", "{\"a\":1}", false},
    {"{\"a\":1,\"b\":2}", "{\"a\":1,\"c\":2}", false},
    {"{\"a\":1}", "{\"a\":2}", false},
    {"{\"a\":1,\"b\":2,\"c\":3}", "{\"c\":3,\"b\":2,\"a\":1}", true},
    {"{\"a\":1,\"a\":1}", "{\"a\":1,\"b\":2}", false},
    {"{\"a\":1,\"a\":2}", "{\"a\":1,\"a\":2}", true},
    {"{\"a\":[{\"b\":[1]}]}", "{\"a\":[{\"b\":[1.0]}]}", true},
    {"{\"a\":[{\"b\":[1]}]}", "{\"a\":[{\"b\":[1.1]}]}", false},
};

static void equality_is_by_value_and_symmetric(void **state)
{
    (void)state;
    for (size_t i = 0; i < HD_COUNT(comparisons); i++) {
        struct hd_json a = parse(hd_slice_cstr(comparisons[i].a));
        struct hd_json b = parse(hd_slice_cstr(comparisons[i].b));

        if (hd_json_equal(hd_json_root(&a), hd_json_root(&b)) != comparisons[i].are_equal ||
            hd_json_equal(hd_json_root(&b), hd_json_root(&a)) != comparisons[i].are_equal)
            fail_msg("%s and %s", comparisons[i].a, comparisons[i].b);
        hd_json_fini(&a);
        hd_json_fini(&b);
    }
}

static void containment_is_that_of_jsonb(void **state)
{
    static const struct {
        const char *whole, *part;
        bool contains;
    } cases[] = {
        {"{\"a\":1,\"b\":2}", "{}", true},
        {"{\"a\":1,\"b\":2}", "{\"b\":2}", true},
        {"{\"a\":1,\"b\":2}", "{\"b\":2.0,\"a\":1}", true},
        {"{\"a\":1}", "{\"a\":1,\"b\":2}", false},
        {"{\"a\":1}", "{\"a\":\"1\"}", false},
        {"{\"a\":null}", "{\"a\":null}", true},
        {"{}", "{\"a\":null}", false},
        {"{\"a\":{\"b\":1,\"c\":2}}", "{\"a\":{\"c\":2}}", true},
        {"{\"a\":{\"b\":1}}", "{\"a\":{\"b\":2}}", false},
        {"{\"a\":[1,2,3]}", "{\"a\":[3,1]}", true},
        {"{\"a\":[1,2,3]}", "{\"a\":[1,1,1]}", true},
        {"{\"a\":[1,2,3]}", "{\"a\":[4]}", false},
        {"{\"a\":[1,2,3]}", "{\"a\":[]}", true},
        {"{\"a\":[1,2,3]}", "{\"a\":1}", false},
        {"[[1,2],3]", "[[2]]", true},
        {"[[1,2],3]", "[2]", false},
        {"[{\"a\":1,\"b\":2}]", "[{\"b\":2}]", true},
        {"1", "1.0", true},
        {"1", "2", false},
        {"[]", "{}", false},
        {"null", "null", true},
    };

    (void)state;
    for (size_t i = 0; i < HD_COUNT(cases); i++) {
        struct hd_json whole = parse(hd_slice_cstr(cases[i].whole));
        struct hd_json part = parse(hd_slice_cstr(cases[i].part));

        if (hd_json_contains(hd_json_root(&whole), hd_json_root(&part)) != cases[i].contains)
            fail_msg("%s and %s", cases[i].whole, cases[i].part);
        hd_json_fini(&whole);
        hd_json_fini(&part);
    }
}

static int parse_something(void *arg)
{
    struct hd_slice text = *(const struct hd_slice *)arg;
    struct heddle_error fault = {0};
    struct hd_json json;
    int err;

    err = hd_json_parse(&json, text, &fault);
    if (err) {
        assert_err(fault.code, err);
        assert_null(json.doc);
    }
    hd_json_fini(&json);
    return err;
}

static void every_failing_allocation_is_reported(void **state)
{
    static char text[200001];
    struct hd_slice small = HD_S("{\"a\":[1,2,{\"b\":null}]}"), large = {text, sizeof(text)};

    (void)state;
    memset(text, '1', sizeof(text));
    for (size_t i = 0; i < sizeof(text); i += 2)
        text[i] = ',';
    text[0] = '[';
    text[sizeof(text) - 1] = ']';
    assert_in_range(check_every_allocation(parse_something, &small), 1, 10);
    assert_in_range(check_every_allocation(parse_something, &large), 2, 100);
}

static void names_that_occur_twice_are_found(void **state)
{
    static const struct {
        const char *text, *name;
    } cases[] = {
        {"{\"a\":1,\"b\":{\"a\":1},\"c\":[{\"a\":1},{\"a\":2}]}", NULL},
        {"{\"a\":1,\"a\":1}", "\"a\""},
        {"[1,[{\"x\":{\"b\":1,\"c\":2,\"\\u0062\":3}}]]", "\"b\""},
        {"{\"\":1,\"\":2}", "\"\""},
        {"3", NULL},
    };
    struct hd_json json;
    struct heddle_error fault;

    (void)state;
    for (size_t i = 0; i < HD_COUNT(cases); i++) {
        fault = (struct heddle_error){0};
        assert_err(hd_json_parse(&json, hd_slice_cstr(cases[i].text), NULL), 0);
        assert_err(hd_json_check_names(hd_json_root(&json), &fault), cases[i].name ? HD_EINVAL : 0);
        assert_true(!cases[i].name || strstr(fault.text, cases[i].name));
        hd_json_fini(&json);
    }
}

/* More members than are compared one by one. */
static void names_of_large_objects_are_compared(void **state)
{
    struct hd_json json;
    struct hd_buf text;

    (void)state;
    for (int twice = 0; twice < 2; twice++) {
        hd_buf_init(&text, 65536);
        assert_err(hd_buf_printf(&text, "{\"first\":0"), 0);
        for (int i = 0; i < 1000; i++)
            assert_err(hd_buf_printf(&text, ",\"%d\":%d", i, i), 0);
        assert_err(hd_buf_printf(&text, ",\"%s\":0}", twice ? "first" : "last"), 0);
        assert_err(hd_json_parse(&json, hd_buf_slice(&text), NULL), 0);
        assert_err(hd_json_check_names(hd_json_root(&json), NULL), twice ? HD_EINVAL : 0);
        hd_json_fini(&json);
        hd_buf_fini(&text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strict_json_is_read),
        cmocka_unit_test(text_that_is_not_strict_json_is_rejected_with_a_reason),
        cmocka_unit_test(the_fault_names_the_position),
        cmocka_unit_test(depth_is_bounded),
        cmocka_unit_test(wide_documents_are_not_deep),
        cmocka_unit_test(a_document_borrows_nothing),
        cmocka_unit_test(members_are_found_by_exact_bytes),
        cmocka_unit_test(strings_may_contain_nul),
        cmocka_unit_test(types_have_names),
        cmocka_unit_test(accessors_of_the_wrong_type_give_nothing),
        cmocka_unit_test(integers_fit_or_are_refused),
        cmocka_unit_test(whole_numbers_may_have_a_fraction_or_an_exponent),
        cmocka_unit_test(doubles_are_exact),
        cmocka_unit_test(objects_are_walked_in_order),
        cmocka_unit_test(equality_is_by_value_and_symmetric),
        cmocka_unit_test(containment_is_that_of_jsonb),
        cmocka_unit_test(every_failing_allocation_is_reported),
        cmocka_unit_test(names_that_occur_twice_are_found),
        cmocka_unit_test(names_of_large_objects_are_compared),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
