#include "base/utf8.h"

#include "tests/unit/check.h"

static void characters_are_those_of_the_standard(void **state)
{
    static const struct {
        struct hd_slice text;
        size_t len;
    } cases[] = {
        {{"", 0}, 0},
        {{"a", 1}, 1},
        {{"\0", 1}, 1},
        {{"\x7f", 1}, 1},
        {{"\x80", 1}, 0},
        {{"\xbf", 1}, 0},
        {{"\xc1\xbf", 2}, 0},
        {{"\xc2\x80", 2}, 2},
        {{"\xc2", 1}, 0},
        {{"\xc2x", 2}, 0},
        {{"\xdf\xbf", 2}, 2},
        {{"\xe0\x9f\xbf", 3}, 0},
        {{"\xe0\xa0\x80", 3}, 3},
        {{"\xed\x9f\xbf", 3}, 3},
        {{"\xed\xa0\x80", 3}, 0},
        {{"\xef\xbf\xbf", 3}, 3},
        {{"\xef\xbf", 2}, 0},
        {{"\xef\xbfx", 3}, 0},
        {{"\xf0\x8f\xbf\xbf", 4}, 0},
        {{"\xf0\x90\x80\x80", 4}, 4},
        {{"\xf4\x8f\xbf\xbf", 4}, 4},
        {{"\xf4\x90\x80\x80", 4}, 0},
        {{"\xf5\x80\x80\x80", 4}, 0},
        {{"\xff", 1}, 0},
        {{"\xf0\x9f\x98\x80z", 5}, 4},
    };

    (void)state;
    for (size_t i = 0; i < HD_COUNT(cases); i++)
        assert_int_equal(hd_utf8_char(cases[i].text.ptr, cases[i].text.ptr + cases[i].text.len),
                         cases[i].len);
}

static void a_cut_never_halves_a_character(void **state)
{
    static const struct {
        const char *text;
        size_t len, expected;
    } cases[] = {
        {"", 0, 0},
        {"abc", 2, 2},
        {"\xc3\xa9", 1, 0},
        {"\xc3\xa9", 2, 2},
        {"a\xe2\x82\xac", 2, 1},
        {"a\xe2\x82\xac", 3, 1},
        {"a\xe2\x82\xac", 4, 4},
        {"\xf0\x9f\x98\x80z", 3, 0},
        {"\xf0\x9f\x98\x80z", 4, 4},
        {"\xf0\x9f\x98\x80z", 5, 5},
        {"\x80\x80\x80\x80\x80", 4, 4},
        {"\x80\x80", 1, 1},
    };

    (void)state;
    for (size_t i = 0; i < HD_COUNT(cases); i++)
        assert_int_equal(hd_utf8_cut(cases[i].text, cases[i].len), cases[i].expected);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(characters_are_those_of_the_standard),
        cmocka_unit_test(a_cut_never_halves_a_character),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
