#include "room/mention.h"

#include <stdio.h>
#include <string.h>

#include "tests/unit/check.h"

/* Two room agents, one of two words; a person; two assistants of the asker named Twin; a third
 * assistant with the name of a room agent. */
static const struct hd_mention_name names[] = {
    {HD_S_INIT("Clerk"), 1, 0}, {HD_S_INIT("Legal Clerk"), 2, 0}, {HD_S_INIT("Légal"), 3, 0},
    {HD_S_INIT("anna"), 4, 0},  {HD_S_INIT("Twin"), 5, 1},        {HD_S_INIT("twin"), 6, 1},
    {HD_S_INIT("clerk"), 7, 1}, {HD_S_INIT("Legal"), 8, 0},       {HD_S_INIT("legal-eagle"), 8, 0},
    {HD_S_INIT("анна"), 9, 0},
};

static void check_targets(const char *text, const char *expected)
{
    struct hd_mention found[8];
    size_t count = 0, len = 0;
    char got[200] = "";

    assert_true(hd_mentions_find(hd_slice_cstr(text), names, HD_COUNT(names), found,
                                 HD_COUNT(found), &count));
    for (size_t i = 0; i < count; i++)
        len += (size_t)snprintf(got + len, sizeof(got) - len, "%s%zu%s", i ? " " : "",
                                found[i].target, found[i].is_ambiguous ? "?" : "");
    if (strcmp(got, expected) != 0)
        fail_msg("%s: got \"%s\", expected \"%s\"", text, got, expected);
}

static void mentions_are_found_where_people_write_them(void **state)
{
    static const struct {
        const char *text, *targets;
    } cases[] = {
        {"", ""},
        {"no mention", ""},
        {"@Clerk", "1"},
        {"@clerk, please", "1"},
        {"hi @CLERK!", "1"},
        {"(@Clerk)", "1"},
        {"@Clerk's turn", "1"},
        {"@Clerk.", "1"},
        {"@Clerk. And", "1"},
        {"@Clerk-", "1"},
        {"@nobody", ""},
        {"@", ""},
        {"@@Clerk", ""},
        {"\\@Clerk", ""},
        /* The longest name. */
        {"@Legal Clerk", "2"},
        {"@legal clerk now", "2"},
        {"@Legal Clerks", "8"},
        {"@Legal Eagle", "8"},
        {"@legal-eagle", "8"},
        {"@Legal-minded", ""},
        {"@\"Legal Clerk\"", "2"},
        {"@\xE2\x80\x9CLegal Clerk\xE2\x80\x9D", "2"},
        {"@\"Legal Clerk", ""},
        {"@\"Legal\nClerk\"", ""},
        {"@\"Clerk\"s", "1"},
        {"@\"Nobody\" @Clerk", "1"},
        /* Word boundaries. */
        {"@Clerks", ""},
        {"@Clerk_2", ""},
        {"@Clerk.com", ""},
        {"x@Clerk", ""},
        {"joe@clerk.example", ""},
        {"joe@clerk", ""},
        {"joe+@clerk", ""},
        {"\xC3\xA9@clerk", ""},
        {"@clerk@host", ""},
        {"\xE8\xAF\xB7@Clerk\xE7\x9C\x8B", "1"},
        {"\xF0\x9F\x98\x80@Clerk\xF0\x9F\x98\x80", "1"},
        {"@Clerk\xC3\xA9", ""},
        {"https://example.org/@Clerk", ""},
        {"https://example.org/ @Clerk", "1"},
        {"@Clerk/@anna", "1 4"},
        /* Case beyond ASCII. */
        {"@l\xC3\xA9gal", "3"},
        {"@L\xC3\x89GAL", "3"},
        {"@\xD0\x90\xD0\x9D\xD0\x9D\xD0\x90", "9"},
        /* Each once, in their order; one target with two names. */
        {"@anna @Clerk @anna", "4 1"},
        {"@legal and @legal-eagle", "8"},
        /* Ranks and ambiguity: the room's Clerk is meant, not the asker's. */
        {"@Clerk and @twin", "1 5?"},
        /* Code spans. */
        {"`@Clerk`", ""},
        {"`@Clerk` @anna", "4"},
        {"``a ` @Clerk`` @anna", "4"},
        {"` @Clerk", "1"},
        {"` @Clerk `` @anna", "1 4"},
        {"`a\n@Clerk` b", ""},
        {"`a\n\n@Clerk` b", "1"},
        {"`a\n \t\n@Clerk` b `@anna`", "1 4"},
        /* Fenced blocks. */
        {"```\n@Clerk\n```\n@anna", "4"},
        {"```c\n@Clerk\n```", ""},
        {"```\n@Clerk", ""},
        {"~~~\n@Clerk\n```\n@anna\n~~~\n@legal", "8"},
        {"````\n```\n@Clerk\n````\n@anna", "4"},
        {"   ```\n@Clerk\n   ```\n@anna", "4"},
        {"text\n```\n@Clerk\n\n```\n@anna", "4"},
        {"``` @Clerk ``` @anna", "4"},
        {"    ```\n@Clerk", "1"},
        {"\r\n```\r\n@Clerk\r\n```\r\n@anna", "4"},
        /* Bytes that are no text. */
        {"\xFF@Clerk\xFF", ""},
        {"@\xFF\xFE", ""},
    };

    (void)state;
    for (size_t i = 0; i < HD_COUNT(cases); i++)
        check_targets(cases[i].text, cases[i].targets);
}

static void more_mentions_than_places_are_reported(void **state)
{
    struct hd_mention found[2];
    size_t count = 0;

    (void)state;
    assert_true(hd_mentions_find(HD_S("@anna @clerk"), names, HD_COUNT(names), found, 2, &count));
    assert_int_equal(count, 2);
    assert_true(hd_mentions_find(HD_S("@clerk"), names, HD_COUNT(names), found, 2, &count));
    assert_false(hd_mentions_find(HD_S("@legal"), names, HD_COUNT(names), found, 2, &count));
    assert_int_equal(count, 2);
}

static void an_ambiguous_mention_means_all_its_names(void **state)
{
    struct hd_mention found;
    size_t means = 0;

    (void)state;
    assert_true(hd_mention_resolve(HD_S("TWIN"), names, HD_COUNT(names), &found));
    assert_true(found.is_ambiguous);
    for (size_t i = 0; i < HD_COUNT(names); i++)
        means += hd_mention_means(&found, &names[i]);
    assert_int_equal(means, 2);
    assert_true(hd_mention_resolve(HD_S("clerk"), names, HD_COUNT(names), &found));
    assert_false(found.is_ambiguous);
    assert_int_equal(found.target, 1);
    assert_false(hd_mention_resolve(HD_S("cler"), names, HD_COUNT(names), &found));
    assert_false(hd_mention_resolve(HD_S(""), names, HD_COUNT(names), &found));
}

static void a_text_of_signs_ends_soon(void **state)
{
    static char text[1 << 20];
    struct hd_mention found[8];

    (void)state;
    for (size_t pattern = 0; pattern < 3; pattern++) {
        static const char *const patterns[] = {"@ ", "`", "` `` ``` ```` "};
        size_t len = strlen(patterns[pattern]), count = 0;

        for (size_t i = 0; i < sizeof(text); i++)
            text[i] = patterns[pattern][i % len];
        assert_true(hd_mentions_find(hd_slice(text, sizeof(text)), names, HD_COUNT(names), found, 8,
                                     &count));
        assert_int_equal(count, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mentions_are_found_where_people_write_them),
        cmocka_unit_test(more_mentions_than_places_are_reported),
        cmocka_unit_test(an_ambiguous_mention_means_all_its_names),
        cmocka_unit_test(a_text_of_signs_ends_soon),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
