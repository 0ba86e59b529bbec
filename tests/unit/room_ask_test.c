#include "room/room_ask.h"

#include <stdio.h>
#include <string.h>

#include "tests/unit/check.h"

#define PERSON HD_ROOM_PERSON
#define AGENT HD_ROOM_AGENT

/* A room with a person and agents, one of which is also an assistant of the sender, with another
 * name. Two more of the sender's have one name; one of the server has that of the person. */
static const struct hd_ask_member members[] = {
    {PERSON, HD_ASK_ROOM, HD_S_INIT("p-anna"), HD_S_INIT("anna"), HD_S_INIT("anna"), {NULL, 0}},
    {AGENT, HD_ASK_ROOM, HD_S_INIT("a1"), HD_S_INIT("a1"), HD_S_INIT("Clerk"), {NULL, 0}},
    {AGENT, HD_ASK_ROOM, HD_S_INIT("a2"), HD_S_INIT("a2"), HD_S_INIT("Legal Clerk"), {NULL, 0}},
    {AGENT, HD_ASK_ROOM, HD_S_INIT("a3"), HD_S_INIT("a3"), HD_S_INIT("Judge"), {NULL, 0}},
    {AGENT, HD_ASK_OWN, HD_S_INIT("a1"), HD_S_INIT("a1"), HD_S_INIT("Writer"), {NULL, 0}},
    {AGENT, HD_ASK_OWN, HD_S_INIT("a4"), HD_S_INIT("a4"), HD_S_INIT("clerk"), {NULL, 0}},
    {AGENT, HD_ASK_OWN, HD_S_INIT("a5"), HD_S_INIT("a5"), HD_S_INIT("Twin"), {NULL, 0}},
    {AGENT, HD_ASK_OWN, HD_S_INIT("a6"), HD_S_INIT("a6"), HD_S_INIT("twin"), {NULL, 0}},
    {AGENT, HD_ASK_SYSTEM, HD_S_INIT("a7"), HD_S_INIT("a7"), HD_S_INIT("Anna"), {NULL, 0}},
    {AGENT, HD_ASK_SYSTEM, HD_S_INIT("a8"), HD_S_INIT("a8"), HD_S_INIT("twin"), {NULL, 0}},
    {AGENT, HD_ASK_ROOM, HD_S_INIT("a9"), HD_S_INIT("a9"), {NULL, 0}, {NULL, 0}},
};

static int setup(void **state)
{
    static struct hd_arena arena;

    hd_arena_init(&arena, 1 << 20);
    *state = &arena;
    return 0;
}

static int teardown(void **state)
{
    hd_arena_fini(*state);
    return 0;
}

static struct hd_ask_question question_of(const struct hd_slice *text)
{
    return (struct hd_ask_question){
        .members = members, .member_count = HD_COUNT(members), .texts = text, .text_count = 1};
}

/* "mentioned > asked" as keys. */
static void check_ask(struct hd_arena *arena, const struct hd_ask_question *question,
                      const char *expected)
{
    struct heddle_error fault = {0};
    struct hd_ask_answer answer;
    char got[300] = "";
    size_t len = 0;
    int err = hd_room_ask(question, arena, &answer, &fault);

    if (err) {
        assert_int_equal(err, HD_EINVAL);
        assert_string_equal(fault.text, expected);
        return;
    }
    for (size_t i = 0; i < answer.mentioned_count; i++)
        len += (size_t)snprintf(got + len, sizeof(got) - len, "%s ",
                                question->members[answer.mentioned[i]].key.ptr);
    len += (size_t)snprintf(got + len, sizeof(got) - len, ">");
    for (size_t i = 0; i < answer.asked_count; i++)
        len += (size_t)snprintf(got + len, sizeof(got) - len, " %s",
                                question->members[answer.asked[i]].key.ptr);
    assert_string_equal(got, expected);
}

static void mentions_in_the_text_decide(void **state)
{
    static const struct {
        struct hd_slice text;
        const char *expected;
    } cases[] = {
        {HD_S_INIT("hello"), ">"},
        {HD_S_INIT("@nobody"), ">"},
        {HD_S_INIT("@Clerk"), "a1 > a1"},
        {HD_S_INIT("@judge and @clerk and @JUDGE"), "a3 a1 > a3 a1"},
        {HD_S_INIT("@Writer, @Clerk"), "a1 > a1"},
        {HD_S_INIT("@anna, ask @\"Legal Clerk\""), "p-anna a2 > a2"},
        {HD_S_INIT("@anna"), "p-anna >"},
        {HD_S_INIT("@Twin"), "mentions: \"Twin\" is ambiguous: a5, a6"},
        {HD_S_INIT("`@Clerk`"), ">"},
    };

    for (size_t i = 0; i < HD_COUNT(cases); i++) {
        struct hd_ask_question question = question_of(&cases[i].text);

        check_ask(*state, &question, cases[i].expected);
    }
}

static void a_list_replaces_the_mentions_in_the_text(void **state)
{
    static const struct hd_slice text = HD_S_INIT("@Judge");
    static const struct {
        struct hd_slice list[3];
        size_t count;
        const char *expected;
    } cases[] = {
        {{HD_S_INIT("clerk"), HD_S_INIT("a1"), HD_S_INIT("anna")}, 3, "a1 p-anna > a1"},
        {{HD_S_INIT("a6"), HD_S_INIT("a9")}, 2, "a6 a9 > a6 a9"},
        {{HD_S_INIT("")}, 0, ">"},
        {{HD_S_INIT("nobody")}, 1, "mentions: \"nobody\" is unknown"},
        {{HD_S_INIT("")}, 1, "mentions: \"\" is unknown"},
        {{HD_S_INIT("TWIN")}, 1, "mentions: \"TWIN\" is ambiguous: a5, a6"},
    };

    for (size_t i = 0; i < HD_COUNT(cases); i++) {
        struct hd_ask_question question = question_of(&text);

        question.has_list = true;
        question.list = cases[i].list;
        question.list_count = cases[i].count;
        check_ask(*state, &question, cases[i].expected);
    }
}

static void without_a_mention_a_reply_asks_its_agent_and_then_the_default_does(void **state)
{
    static const struct {
        struct hd_slice text, replied, standard;
        const char *expected;
    } cases[] = {
        {HD_S_INIT("hi"), HD_S_INIT(""), HD_S_INIT("a2"), "> a2"},
        {HD_S_INIT("hi"), HD_S_INIT("a3"), HD_S_INIT("a2"), "> a3"},
        {HD_S_INIT("@Clerk"), HD_S_INIT("a3"), HD_S_INIT("a2"), "a1 > a1"},
        {HD_S_INIT("@anna"), HD_S_INIT("a3"), HD_S_INIT("a2"), "p-anna >"},
        {HD_S_INIT("hi"), HD_S_INIT("gone"), HD_S_INIT("a2"),
         "reply_to: its agent is not in the room"},
        {HD_S_INIT("hi"), HD_S_INIT(""), HD_S_INIT("gone"),
         "the room's default assistant is not there"},
    };

    for (size_t i = 0; i < HD_COUNT(cases); i++) {
        struct hd_ask_question question = question_of(&cases[i].text);

        question.replied_agent = cases[i].replied;
        question.default_agent = cases[i].standard;
        check_ask(*state, &question, cases[i].expected);
    }
}

static void every_text_of_the_content_counts(void **state)
{
    static const struct hd_slice texts[] = {HD_S_INIT("@Clerk"), HD_S_INIT("and @judge @clerk")};
    struct hd_ask_question question = question_of(texts);

    question.text_count = 2;
    check_ask(*state, &question, "a1 a3 > a1 a3");
}

/* Agents n0, n1, … and the text that mentions the first `count` of them. */
static void check_many(struct hd_arena *arena, enum hd_room_sender kind, size_t count,
                       const char *refused)
{
    static char names[40][24], text[900];
    struct hd_ask_member many[40];
    const struct hd_slice all = hd_slice_cstr(text);
    struct hd_ask_question question = {.members = many, .text_count = 1};
    struct heddle_error fault = {0};
    struct hd_ask_answer answer;
    size_t len = 0;

    for (size_t i = 0; i < count; i++) {
        snprintf(names[i], sizeof(names[i]), "n%zu", i);
        many[i] = (struct hd_ask_member){
            .kind = kind, .key = hd_slice_cstr(names[i]), .name = hd_slice_cstr(names[i])};
        len += (size_t)snprintf(text + len, sizeof(text) - len, "@n%zu ", i);
    }
    question.member_count = count;
    question.texts = &(struct hd_slice){all.ptr, len};
    assert_int_equal(hd_room_ask(&question, arena, &answer, &fault), refused ? HD_EINVAL : 0);
    if (refused)
        assert_string_equal(fault.text, refused);
    else
        assert_int_equal(answer.mentioned_count, count);
}

static void too_many_agents_or_mentions_are_refused(void **state)
{
    check_many(*state, AGENT, 8, NULL);
    check_many(*state, AGENT, 9, "mentions: a message asks at most 8 agents");
    check_many(*state, PERSON, 32, NULL);
    check_many(*state, PERSON, 33, "mentions: more than 32");
}

static int ask_once(void *ctx)
{
    static const struct hd_slice text = HD_S_INIT("@Clerk and @anna");
    struct hd_ask_question question = question_of(&text);
    struct heddle_error fault = {0};
    struct hd_ask_answer answer;
    struct hd_arena arena;
    int err;

    (void)ctx;
    hd_arena_init(&arena, 1 << 20);
    err = hd_room_ask(&question, &arena, &answer, &fault);
    hd_arena_fini(&arena);
    return err;
}

static void it_survives_failing_allocations(void **state)
{
    (void)state;
    check_every_allocation(ask_once, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mentions_in_the_text_decide),
        cmocka_unit_test(a_list_replaces_the_mentions_in_the_text),
        cmocka_unit_test(without_a_mention_a_reply_asks_its_agent_and_then_the_default_does),
        cmocka_unit_test(every_text_of_the_content_counts),
        cmocka_unit_test(too_many_agents_or_mentions_are_refused),
        cmocka_unit_test(it_survives_failing_allocations),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
