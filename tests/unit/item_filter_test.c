#include "records/item_filter.h"

#include <string.h>

#include "tests/unit/check.h"

static const char value[] = "{\"name\":\"Ada\",\"age\":36,\"score\":1.5,\"ok\":true,\"none\":null,"
                            "\"tags\":[\"a\",\"b\"],\"at\":{\"city\":\"London\",\"zip\":[1,2]},"
                            "\"big\":9007199254740993,\"day\":\"2026-01-31\"}";

static bool matches(const char *text)
{
    struct heddle_error fault = {0};
    struct hd_json filter, whole;
    bool is_match;

    assert_err(hd_json_parse(&filter, hd_slice_cstr(text), NULL), 0);
    assert_err(hd_json_parse(&whole, hd_slice_cstr(value), NULL), 0);
    if (hd_filter_check(hd_json_root(&filter), &fault) != 0)
        fail_msg("%s: %s", text, fault.text);
    is_match = hd_filter_matches(hd_json_root(&filter), hd_json_root(&whole));
    hd_json_fini(&filter);
    hd_json_fini(&whole);
    return is_match;
}

static void check_all(const char *const *filters, size_t count, bool expected)
{
    for (size_t i = 0; i < count; i++) {
        if (matches(filters[i]) != expected)
            fail_msg("%s should%s match", filters[i], expected ? "" : " not");
    }
}

static void equal_fields_match(void **state)
{
    static const char *const yes[] = {
        "null",
        "{}",
        "{\"name\":\"Ada\"}",
        "{\"age\":36}",
        "{\"age\":36.0}",
        "{\"age\":3.6e1}",
        "{\"ok\":true}",
        "{\"none\":null}",
        "{\"absent\":null}",
        "{\"tags\":[\"a\",\"b\"]}",
        "{\"at\":{\"city\":\"London\"}}",
        "{\"at\":{}}",
        "{\"at\":{\"zip\":[1,2.0]}}",
        "{\"name\":\"Ada\",\"age\":36,\"at\":{\"city\":\"London\",\"x\":null}}",
        "{\"big\":9007199254740993}",
    };
    static const char *const no[] = {
        "{\"name\":\"ada\"}",
        "{\"age\":\"36\"}",
        "{\"age\":37}",
        "{\"ok\":1}",
        "{\"ok\":false}",
        "{\"none\":0}",
        "{\"absent\":1}",
        "{\"tags\":[\"a\"]}",
        "{\"tags\":[\"b\",\"a\"]}",
        "{\"tags\":\"a\"}",
        "{\"at\":{\"city\":\"Paris\"}}",
        "{\"at\":{\"city\":{\"x\":1}}}",
        "{\"name\":\"Ada\",\"age\":1}",
        "{\"at\":\"London\"}",
        "{\"absent\":{}}",
        "{\"big\":9007199254740992}",
        "{\"at\":{\"zip\":[1]}}",
        "{\"name\":{}}",
    };

    (void)state;
    check_all(yes, HD_COUNT(yes), true);
    check_all(no, HD_COUNT(no), false);
}

static void operators_compare(void **state)
{
    static const char *const yes[] = {
        "{\"age\":{\"$gt\":35}}",
        "{\"age\":{\"$gte\":36}}",
        "{\"age\":{\"$lt\":36.5}}",
        "{\"age\":{\"$lte\":36}}",
        "{\"age\":{\"$gt\":30,\"$lt\":40}}",
        "{\"age\":{\"$eq\":36.0}}",
        "{\"age\":{\"$ne\":37}}",
        "{\"absent\":{\"$ne\":1}}",
        "{\"absent\":{\"$eq\":null}}",
        "{\"name\":{\"$ne\":null}}",
        "{\"score\":{\"$gt\":1}}",
        "{\"day\":{\"$gte\":\"2026-01\"}}",
        "{\"day\":{\"$lt\":\"2026-02\"}}",
        "{\"at\":{\"city\":{\"$gt\":\"L\"}}}",
        "{\"at\":{\"zip\":[{\"$gte\":1},{\"$lt\":3}]}}",
        "{\"big\":{\"$gt\":9007199254740992}}",
        "{\"tags\":{\"$eq\":[\"a\",\"b\"]}}",
        "{\"at\":{\"$ne\":{}}}",
        "{\"age\":{\"$gt\":-1e3}}",
    };
    static const char *const no[] = {
        "{\"age\":{\"$gt\":36}}",
        "{\"age\":{\"$lt\":36}}",
        "{\"age\":{\"$gt\":\"1\"}}",
        "{\"age\":{\"$gt\":30,\"$lt\":35}}",
        "{\"absent\":{\"$gt\":0}}",
        "{\"absent\":{\"$lt\":0}}",
        "{\"none\":{\"$lte\":0}}",
        "{\"name\":{\"$gt\":1}}",
        "{\"ok\":{\"$gt\":0}}",
        "{\"age\":{\"$ne\":36}}",
        "{\"absent\":{\"$ne\":null}}",
        "{\"tags\":{\"$gt\":0}}",
        "{\"big\":{\"$gt\":9007199254740993}}",
        "{\"name\":{\"$lt\":\"Ad\"}}",
        "{\"at\":{\"$eq\":{\"city\":\"London\"}}}",
    };

    (void)state;
    check_all(yes, HD_COUNT(yes), true);
    check_all(no, HD_COUNT(no), false);
    /* The number exceeds every double: not comparable. */
    assert_false(matches("{\"big\":{\"$lt\":1e400}}"));
}

static void bad_filters_are_refused(void **state)
{
    static const struct {
        const char *text;
        const char *says;
    } cases[] = {
        {"[]", "filter must be an object, not an array"},
        {"\"x\"", "filter must be an object, not a string"},
        {"{\"$gt\":1}", "filter: operators belong to a field"},
        {"{\"a\":{\"$gte\":1,\"b\":2}}", "\"b\" cannot be combined with operators"},
        {"{\"a\":{\"$get\":1}}", "unknown operator \"$get\"; did you mean \"$gt\"?"},
        {"{\"a\":{\"$regex\":1}}", "unknown operator \"$regex\""},
        {"{\"a\":{\"b\":[{\"$in\":[1]}]}}", "unknown operator \"$in\""},
        {"{\"a\":{\"$gt\":null}}", "$gt needs a number or a string, not null"},
        {"{\"a\":{\"$lte\":[1]}}", "$lte needs a number or a string, not an array"},
        {"{\"a\":{\"$lt\":{\"$gt\":1}}}", "$lt needs a number or a string, not an object"},
    };

    (void)state;
    for (size_t i = 0; i < HD_COUNT(cases); i++) {
        struct heddle_error fault = {0};
        struct hd_json json;

        assert_err(hd_json_parse(&json, hd_slice_cstr(cases[i].text), NULL), 0);
        if (hd_filter_check(hd_json_root(&json), &fault) != HD_EINVAL ||
            !strstr(fault.text, cases[i].says))
            fail_msg("%s: %s", cases[i].text, fault.text);
        hd_json_fini(&json);
    }
}

static void no_filter_matches_all(void **state)
{
    (void)state;
    assert_err(hd_filter_check(NULL, NULL), 0);
    assert_true(hd_filter_matches(NULL, NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_fields_match),
        cmocka_unit_test(operators_compare),
        cmocka_unit_test(bad_filters_are_refused),
        cmocka_unit_test(no_filter_matches_all),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
