/* Conditional requests for files of the page (304 Not Modified). */
#include "api/page.h"

#include "tests/unit/check.h"

static void tags_are_compared(void **state)
{
    static const struct {
        const char *list, *tag;
        bool is_so;
    } cases[] = {
        {"\"a\"", "\"a\"", true},
        {"W/\"a\"", "\"a\"", true},
        {"\"a\"", "W/\"a\"", true},
        {"W/\"a\"", "W/\"a\"", true},
        {"\"b\", W/\"a\"", "\"a\"", true},
        {"\"b\",\"a\"", "\"a\"", true},
        {" \t,, \"a\" , ", "\"a\"", true},
        {"\"b,c\", \"a\"", "\"a\"", true},
        {"*", "\"a\"", true},
        {"", "\"a\"", false},
        {"a", "\"a\"", false},
        {"\"b\"", "\"a\"", false},
        {"\"a", "\"a\"", false},
        {"\"b,\"a\"", "\"a\"", false},
        {"\"", "\"a\"", false},
        {"W/", "\"a\"", false},
        {",", "\"a\"", false},
        {"\"*\"", "\"a\"", false},
        {"\"\"", "\"a\"", false},
    };

    (void)state;
    for (size_t i = 0; i < HD_COUNT(cases); i++) {
        if (hd_etag_matches(hd_slice_cstr(cases[i].list), hd_slice_cstr(cases[i].tag)) !=
            cases[i].is_so)
            fail_msg("%s and %s", cases[i].list, cases[i].tag);
    }
    assert_false(hd_etag_matches(hd_slice(NULL, 0), HD_S("\"a\"")));
}

static void its_paths_are_known(void **state)
{
    (void)state;
    assert_true(hd_page_is(HD_S("/")));
    assert_true(hd_page_is(HD_S("/icon.svg")));
    assert_true(hd_page_is(HD_S("/assets/x.js")));
    assert_false(hd_page_is(HD_S("/assistants")));
    assert_false(hd_page_is(HD_S("/index.html")));
    assert_false(hd_page_is(HD_S("")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tags_are_compared),
        cmocka_unit_test(its_paths_are_known),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
