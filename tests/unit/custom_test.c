/* The paths that a project's application declares. */
#include "api/custom.h"

#include "tests/unit/check.h"

static void patterns_of_any_framework_are_read(void **state)
{
    static const struct {
        const char *pattern, *path;
        bool is_so;
    } cases[] = {
        {"/a", "/a", true},
        {"/a", "/a/", true},
        {"/a/", "/a", true},
        {"/a", "/b", false},
        {"/a", "/a/b", false},
        {"/a/b", "/a", false},
        {"/", "/", true},
        {"/", "/a", false},
        {"/a/{id}", "/a/1", true},
        {"/a/{id}", "/a", false},
        {"/a/{id}", "/a/1/2", false},
        {"/a/{id:int}/b", "/a/1/b", true},
        {"/a/:id", "/a/1", true},
        {"/a/:id/b", "/a/1/c", false},
        {"/a/{rest:path}", "/a/1/2", true},
        {"/a/*", "/a/1/2", true},
        {"/a/*", "/b/1", false},
        {"*", "/anything", true},
        {"", "/", true},
        {"", "/a", false},
    };

    (void)state;
    for (size_t i = 0; i < HD_COUNT(cases); i++) {
        if (hd_custom_matches(hd_slice_cstr(cases[i].pattern), hd_slice_cstr(cases[i].path)) !=
            cases[i].is_so)
            fail_msg("%s and %s", cases[i].pattern, cases[i].path);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(patterns_of_any_framework_are_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
