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

static void capital_letters_find_small_ones(void **state)
{
    static const struct {
        const char *text, *part;
        bool expected;
    } cases[] = {
        {"", "", true},
        {"abc", "", true},
        {"", "a", false},
        {"Weather in Oslo", "weather", true},
        {"Weather in Oslo", "OSLO", true},
        {"Weather in Oslo", "oslo ", false},
        {"aaab", "AAB", true},
        {"[x]", "{X}", false}, /* 0x20 apart, and no letters */
        {"@", "`", false},
        {"\xc3\x84rger", "\xc3\xa4R", true}, /* Ärger */
        {"stra\xc3\x9f"
         "e",
         "STRA\xc3\x9f", true}, /* ß is small */
        {"3\xc3\x97"
         "4",
         "3\xc3\xb7", false},                                             /* × and ÷ */
        {"\xc5\xbb\xc3\xb3\xc5\x82w", "\xc5\xbc\xc3\x93\xc5\x81W", true}, /* Żółw */
        {"\xc5\x81", "\xc5\x80", false},                                  /* Ł and its neighbour */
        {"\xc5\xb8", "\xc3\xbf", true},                                   /* Ÿ */
        {"\xc4\xb0", "\xc4\xb1", false},                                  /* İ and ı */
        {"\xce\x91\xce\xb8\xce\xae\xce\xbd\xce\xb1", "\xce\xb1\xce\x98", true}, /* Αθήνα */
        {"\xce\x88\xce\xbd\xce\xb1", "\xce\xad\xce\xbd", true},                 /* Ένα */
        {"\xce\x86\xce\x8c\xce\x8f", "\xce\xac\xcf\x8c\xcf\x8e", true},         /* Ά, Ό, Ώ */
        {"\xce\x94\xce\xae\xce\xbc\xce\xbf\xcf\x82", "\xce\x9c\xce\x9f\xce\xa3", true}, /* Δήμος */
        {"\xce\x8b", "\xce\xb0", false}, /* no letter, and ΰ */
        {"\xd3\x81", "\xd3\x82", true},  /* Ӂ */
        {"\xd0\x9c\xd0\xbe\xd1\x81\xd0\xba\xd0\xb2\xd0\xb0", "\xd0\xbc\xd0\x9e", true}, /* Москва */
        {"\xd0\x81\xd0\xb6", "\xd1\x91\xd0\x96", true},                                 /* Ёж */
        {"\xe6\x97\xa5\xe6\x9c\xac", "\xe6\x9c\xac", true},                             /* 日本 */
        {"\xff\xfe"
         "A",
         "a", true},
        {"A\xe6\x97", "\xe6\x97\xa5", false},
    };

    (void)state;
    for (size_t i = 0; i < HD_COUNT(cases); i++) {
        bool is_found = hd_utf8_finds(hd_slice_cstr(cases[i].text), hd_slice_cstr(cases[i].part));

        if (is_found != cases[i].expected)
            fail_msg("%s in %s", cases[i].part, cases[i].text);
    }
    assert_false(hd_utf8_finds(hd_slice(NULL, 0), HD_S("a")));
}

static void counting_counts_characters_and_not_bytes(void **state)
{
    (void)state;
    assert_int_equal(hd_utf8_count(hd_slice(NULL, 0)), 0);
    assert_int_equal(hd_utf8_count(HD_S("HOST")), 4);
    assert_int_equal(hd_utf8_count(HD_S("HOST,\xe2\x80\xa6")), 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(characters_are_those_of_the_standard),
        cmocka_unit_test(a_cut_never_halves_a_character),
        cmocka_unit_test(capital_letters_find_small_ones),
        cmocka_unit_test(counting_counts_characters_and_not_bytes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
