#include "search/words.h"

#include <stdio.h>
#include <string.h>

#include "tests/unit/check.h"

enum { ROOM = 200 };

/* Words joined by bars. */
static int join(void *arg, struct hd_slice word)
{
    char *out = arg;
    size_t len = strlen(out);

    (void)snprintf(out + len, ROOM - len, "%s%.*s", len ? "|" : "", (int)word.len, word.ptr);
    return 0;
}

static void text_is_split_into_folded_words(void **state)
{
    static const struct {
        const char *text, *stored, *searched;
    } cases[] = {
        {"", "", ""},
        {" \t…!?", "", ""},
        {"Hello, World-wide 2nd", "hello|world|wide|2nd", "hello|world|wide|2nd"},
        {"ÄRGER ŻÓŁW Ÿ", "ärger|żółw|ÿ", "ärger|żółw|ÿ"},
        {"ΑΘΉΝΑ Москва", "αθήνα|москва", "αθήνα|москва"},
        {"«quoted»\xc2\xa0“text”", "quoted|text", "quoted|text"},
        {"織機", "織機|機", "織機"},
        {"織", "織", "織"},
        {"A織機x、布", "a|織機|機|x|布", "a|織機|x|布"},
        {"\xff"
         "a",
         "\xc3\xbf"
         "a",
         "\xc3\xbf"
         "a"},
    };

    (void)state;
    for (size_t i = 0; i < HD_COUNT(cases); i++) {
        char stored[ROOM] = "", searched[ROOM] = "";

        assert_int_equal(hd_words_of_text(hd_slice_cstr(cases[i].text), join, stored), 0);
        assert_int_equal(hd_words_of_search(hd_slice_cstr(cases[i].text), join, searched), 0);
        assert_string_equal(stored, cases[i].stored);
        assert_string_equal(searched, cases[i].searched);
    }
}

static void long_words_are_cut_between_characters(void **state)
{
    char text[101], stored[ROOM] = "";

    (void)state;
    for (size_t i = 0; i < 100; i += 2)
        memcpy(text + i, "é", 2);
    text[0] = 'a';
    text[1] = 'b';
    text[2] = 'c';
    text[3] = 'd';
    text[100] = '\0';
    assert_int_equal(hd_words_of_text(hd_slice_cstr(text), join, stored), 0);
    assert_int_equal(strlen(stored), HD_WORD_MAX);
    memmove(text, text + 1, 100);
    stored[0] = '\0';
    assert_int_equal(hd_words_of_text(hd_slice_cstr(text), join, stored), 0);
    assert_int_equal(strlen(stored), HD_WORD_MAX - 1);
}

static int stop(void *arg, struct hd_slice word)
{
    (void)word;
    return ++*(int *)arg == 2 ? 7 : 0;
}

static void a_result_of_the_callback_ends_the_split(void **state)
{
    int count = 0;

    (void)state;
    assert_int_equal(hd_words_of_text(HD_S("a b c d"), stop, &count), 7);
    assert_int_equal(count, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_is_split_into_folded_words),
        cmocka_unit_test(long_words_are_cut_between_characters),
        cmocka_unit_test(a_result_of_the_callback_ends_the_split),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
