#include "records/extract.h"

#include <string.h>

#include "base/buf.h"
#include "tests/unit/check.h"

static const char thread[] = "{\"values\":{\"messages\":[{\"content\":\"one\"},{\"content\":"
                             "\"two\"},{\"content\":\"three\"}],"
                             "\"a.b\":{\"c[0]\":5},\"grid\":[[1,2],[3,4]],\"n\":null,\"\":7},"
                             "\"metadata\":{\"x\":{\"y\":\"z\"},\"0\":true},\"status\":\"idle\"}";

static int parse(struct hd_extract *extract, struct hd_json *json, const char *text,
                 struct hd_arena *arena, struct heddle_error *fault)
{
    assert_err(hd_json_parse(json, hd_slice_cstr(text), NULL), 0);
    hd_arena_init(arena, 1 << 20);
    return hd_extract_parse(extract, hd_json_root(json), arena, fault);
}

static void check_path(const char *path, const char *expected)
{
    struct hd_json whole, json;
    struct hd_extract extract;
    struct heddle_error fault = {0};
    struct hd_arena arena;
    struct hd_buf text, out;
    hd_json_val found;

    hd_buf_init(&text, 4096);
    hd_buf_init(&out, 4096);
    assert_err(hd_buf_printf(&text, "{\"it\":"), 0);
    assert_err(hd_json_write_string(&text, hd_slice_cstr(path)), 0);
    assert_err(hd_buf_append(&text, "}", 2), 0);
    assert_err(hd_json_parse(&whole, hd_slice_cstr(thread), NULL), 0);
    if (parse(&extract, &json, text.ptr, &arena, &fault) != 0)
        fail_msg("%s: %s", path, fault.text);
    assert_int_equal(extract.count, 1);
    assert_slice(extract.paths[0].name, HD_S("it"));
    found = hd_extract_find(
        &extract.paths[0], hd_json_get(hd_json_root(&whole), hd_extract_member(&extract.paths[0])));
    if (found)
        assert_err(hd_json_write_val(&out, found), 0);
    assert_slice(hd_buf_slice(&out), hd_slice_cstr(expected ? expected : ""));
    hd_arena_fini(&arena);
    hd_json_fini(&json);
    hd_json_fini(&whole);
    hd_buf_fini(&text);
    hd_buf_fini(&out);
}

static void paths_lead_to_values(void **state)
{
    (void)state;
    check_path("values.messages[-1].content", "\"three\"");
    check_path("values.messages[0].content", "\"one\"");
    check_path("values.messages[-3].content", "\"one\"");
    check_path("values.messages[1]", "{\"content\":\"two\"}");
    check_path("values.grid[1][-2]", "3");
    check_path("values.grid[-0][0]", "1");
    check_path("values[\"a.b\"]['c[0]']", "5");
    check_path("values[\"\"]", "7");
    check_path("values.n", "null");
    check_path("metadata.x.y", "\"z\"");
    check_path("metadata.0", "true");
    check_path("status", "\"idle\"");
}

static void missing_members_are_omitted(void **state)
{
    (void)state;
    check_path("values.messages[3]", NULL);
    check_path("values.messages[-4]", NULL);
    check_path("values.messages.content", NULL);
    check_path("values.nothing.at.all[5]", NULL);
    check_path("metadata[0]", NULL);
    check_path("status.x", NULL);
    check_path("config", NULL);
    check_path("values.messages[2147483647]", NULL);
}

static void bad_paths_are_refused(void **state)
{
    static const struct {
        const char *text;
        const char *says;
    } cases[] = {
        {"[]", "extract must be an object of names and paths, not an array"},
        {"{\"a\":1}", "extract: \"a\" must be a path, not a number"},
        {"{\"a\":\"\"}", "extract: \"a\": a key is missing at character 1"},
        {"{\"a\":\"values.\"}", "a key is missing at character 8 of \"values.\""},
        {"{\"a\":\"values..x\"}", "a key is missing at character 8"},
        {"{\"a\":\".values\"}", "a key is missing at character 1"},
        {"{\"a\":\"[0]\"}", "a key is missing at character 1"},
        {"{\"a\":\"values[\"}", "an index or a quoted key is missing at character 8"},
        {"{\"a\":\"values[]\"}", "an index or a quoted key is missing"},
        {"{\"a\":\"values[-]\"}", "an index or a quoted key is missing"},
        {"{\"a\":\"values[x]\"}", "an index or a quoted key is missing"},
        {"{\"a\":\"values[*]\"}", "an index or a quoted key is missing"},
        {"{\"a\":\"values[1\"}", "\"]\" is missing at character 9"},
        {"{\"a\":\"values[1x]\"}", "\"]\" is missing"},
        {"{\"a\":\"values[\\\"x]\"}", "the quote is not closed"},
        {"{\"a\":\"values[0]x\"}", "\".\" or \"[\" is missing at character 10"},
        {"{\"a\":\"values]\"}", "\".\" or \"[\" is missing"},
        {"{\"a\":\"values[99999999999999999999]\"}", "the index is too large"},
        {"{\"a\":\"valeus.x\"}", "a thread has no \"valeus\""},
        {"{\"a\":\"valeus.x\"}", "did you mean \"values\"?"},
        {"{\"1\":\"status\",\"2\":\"status\",\"3\":\"status\",\"4\":\"status\",\"5\":\"status\","
         "\"6\":\"status\",\"7\":\"status\",\"8\":\"status\",\"9\":\"status\",\"10\":\"status\","
         "\"11\":\"status\"}",
         "extract: 11 paths, at most 10 are allowed"},
    };

    (void)state;
    for (size_t i = 0; i < HD_COUNT(cases); i++) {
        struct hd_extract extract;
        struct heddle_error fault = {0};
        struct hd_arena arena;
        struct hd_json json;

        if (parse(&extract, &json, cases[i].text, &arena, &fault) != HD_EINVAL ||
            !strstr(fault.text, cases[i].says))
            fail_msg("%s: %s", cases[i].text, fault.text);
        hd_arena_fini(&arena);
        hd_json_fini(&json);
    }
}

static void long_paths_are_refused(void **state)
{
    char text[HD_EXTRACT_MAX_TEXT + 64] = "{\"a\":\"values";
    struct hd_extract extract;
    struct heddle_error fault = {0};
    struct hd_arena arena;
    struct hd_json json;
    size_t len = strlen(text);

    (void)state;
    for (int i = 0; i < HD_EXTRACT_MAX_STEPS; i++, len += 2)
        memcpy(text + len, ".a", 2);
    memcpy(text + len, "\"}", 3);
    assert_err(parse(&extract, &json, text, &arena, &fault), HD_EINVAL);
    assert_non_null(strstr(fault.text, "too many steps"));
    hd_arena_fini(&arena);
    hd_json_fini(&json);

    memset(text + 12, 'a', sizeof(text) - 15);
    memcpy(text + sizeof(text) - 3, "\"}", 3);
    fault = (struct heddle_error){0};
    assert_err(parse(&extract, &json, text, &arena, &fault), HD_EINVAL);
    assert_non_null(strstr(fault.text, "longer than 1024 bytes"));
    hd_arena_fini(&arena);
    hd_json_fini(&json);
}

static void no_paths_extract_nothing(void **state)
{
    struct hd_extract extract = {.count = 5};
    struct hd_arena arena;
    struct hd_json json;

    (void)state;
    assert_err(hd_extract_parse(&extract, NULL, NULL, NULL), 0);
    assert_int_equal(extract.count, 0);
    assert_err(parse(&extract, &json, "null", &arena, NULL), 0);
    assert_int_equal(extract.count, 0);
    hd_arena_fini(&arena);
    hd_json_fini(&json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_lead_to_values),     cmocka_unit_test(missing_members_are_omitted),
        cmocka_unit_test(bad_paths_are_refused),    cmocka_unit_test(long_paths_are_refused),
        cmocka_unit_test(no_paths_extract_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
