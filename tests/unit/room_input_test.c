#include "room/room_input.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "tests/unit/check.h"

#define AGENT HD_S("a1")
#define MAX_ITEMS 8
#define IMAGE "{\"type\":\"image\",\"data\":\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\"}"
#define PDF                                                                                     \
    "{\"type\":\"file\",\"data\":\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\"," \
    "\"metadata\":{\"filename\":\"plan.pdf\"}}"

/* A message of the table; `by` "a1", "a2" are agents, others people. */
struct row {
    const char *id;
    const char *by;
    const char *content; /* JSON; NULL: none */
    enum hd_room_state state;
    int changed;
    int version;
    const char *replaced_by;
    const char *source_id;
};

struct input_case {
    const char *name;
    struct row rows[MAX_ITEMS]; /* seq 1, 2, … */
    int mark, mark_changes;
    int messages, bytes; /* 0: the defaults */
    bool names_trigger;
    const char *held[MAX_ITEMS];
    const char *expected; /* "-removed id=content …", the trigger last */
    const char *given;
};

static const struct row trigger = {
    .id = "t", .by = "anna", .content = "\"hello\"", .state = HD_ROOM_OK, .version = 1};

#define OK(i, who, text)                                                             \
    {                                                                                \
        .id = (i), .by = (who), .content = (text), .state = HD_ROOM_OK, .version = 1 \
    }

static const struct input_case cases[] = {
    {"the first message is given alone", .expected = "t=\"hello\"", .given = "[[\"t\",1]]"},
    {"messages behind the mark are given with names",
     .rows = {OK("m1", "bob", "\"old\""), OK("m2", "bob", "\"hi\""), OK("m3", "a2", "\"yes\"")},
     .mark = 1, .expected = "m2=\"bob: hi\" m3=\"a2: yes\" t=\"hello\"",
     .given = "[[\"m2\",1],[\"m3\",1],[\"t\",1]]"},
    {"the agent does not get its own messages",
     .rows = {OK("m1", "bob", "\"hi\""), OK("m2", "a1", "\"yes\"")},
     .expected = "m1=\"bob: hi\" t=\"hello\"", .given = "[[\"m1\",1],[\"t\",1]]"},
    {"the newest messages are chosen",
     .rows = {OK("m1", "bob", "\"1\""), OK("m2", "bob", "\"2\""), OK("m3", "bob", "\"3\"")},
     .messages = 2, .expected = "m2=\"bob: 2\" m3=\"bob: 3\" t=\"hello\"",
     .given = "[[\"m2\",1],[\"m3\",1],[\"t\",1]]"},
    {"a message that does not fit ends the choice",
     .rows = {OK("m1", "bob", "\"1\""), OK("m2", "bob", "\"0123456789012345678901234567\""),
              OK("m3", "bob", "\"3\"")},
     .bytes = 30, .expected = "m3=\"bob: 3\" t=\"hello\"", .given = "[[\"m3\",1],[\"t\",1]]"},
    {"an attachment that is too large is named",
     .rows = {OK("m1", "bob", "[{\"type\":\"text\",\"text\":\"see\"}," PDF "," IMAGE "]")},
     .bytes = 180,
     .expected = "m1=[{\"type\":\"text\",\"text\":\"bob: see\"},"
                 "{\"type\":\"text\",\"text\":\"[attachment, not included: plan.pdf]\"},"
                 "{\"type\":\"text\",\"text\":\"[attachment, not included: image]\"}] "
                 "t=\"hello\"",
     .given = "[[\"m1\",1],[\"t\",1]]"},
    {"an attachment that fits is given", .rows = {OK("m1", "bob", "[" IMAGE "]")}, .bytes = 200,
     .expected = "m1=[{\"type\":\"text\",\"text\":\"bob: \"}," IMAGE "] t=\"hello\"",
     .given = "[[\"m1\",1],[\"t\",1]]"},
    {"a new version replaces the one that the line has",
     .rows = {{"m1", "bob", "\"new\"", HD_ROOM_OK, 3, 2, NULL, NULL}, OK("m2", "bob", "\"hi\"")},
     .mark = 2, .mark_changes = 2, .held = {"m1", "m2"}, .expected = "m1=\"bob: new\" t=\"hello\"",
     .given = "[[\"m1\",2],[\"t\",1]]"},
    {"a new version of a message that was passed over stays out",
     .rows = {{"m1", "bob", "\"new\"", HD_ROOM_OK, 3, 2, NULL, NULL}}, .mark = 1, .mark_changes = 2,
     .expected = "t=\"hello\"", .given = "[[\"t\",1]]"},
    {"a version that the line was given already stays out",
     .rows = {{"m1", "bob", "\"new\"", HD_ROOM_OK, 2, 2, NULL, NULL}}, .mark = 1, .mark_changes = 2,
     .held = {"m1"}, .expected = "t=\"hello\"", .given = "[[\"t\",1]]"},
    {"deleted, stale and replaced messages are removed from the line",
     .rows = {{"m1", "bob", NULL, HD_ROOM_DELETED, 1, 1, NULL, NULL},
              {"m2", "a2", "\"2\"", HD_ROOM_STALE, 2, 1, NULL, NULL},
              {"m3", "a2", "\"3\"", HD_ROOM_OK, 3, 1, "m4", NULL},
              {"m5", "a1", "\"5\"", HD_ROOM_DELETED, 4, 1, NULL, "lc-5"},
              {"m6", "bob", NULL, HD_ROOM_DELETED, 5, 1, NULL, NULL}},
     .mark = 4, .held = {"m1", "m2", "m3", "lc-5"}, .expected = "-m1 -m2 -m3 -lc-5 t=\"hello\"",
     .given = "[[\"t\",1]]"},
    {"an open question of the agent stays in its line",
     .rows = {{"m1", "a1", "\"?\"", HD_ROOM_PENDING, 1, 1, NULL, "lc-1"}}, .held = {"lc-1"},
     .expected = "t=\"hello\"", .given = "[[\"t\",1]]"},
    {"stopped answers are given, failed ones are not",
     .rows = {{"m1", "a2", "\"half\"", HD_ROOM_STOPPED, 0, 1, NULL, NULL},
              {"m2", "a2", NULL, HD_ROOM_STOPPED, 0, 1, NULL, NULL},
              {"m3", "a2", "\"x\"", HD_ROOM_ERROR, 0, 1, NULL, NULL}},
     .expected = "m1=\"a2: half\" t=\"hello\"", .given = "[[\"m1\",1],[\"t\",1]]"},
    {"the trigger names its sender where several speak", .rows = {OK("t", "anna", "\"hello\"")},
     .names_trigger = true, .expected = "t=\"anna: hello\"", .given = "[[\"t\",1]]"},
};

struct world {
    struct hd_arena arena;
    struct hd_room_rec room;
    struct hd_room_message_rec messages[MAX_ITEMS + 1];
    struct hd_room_content_rec contents[MAX_ITEMS + 1];
    struct hd_room_item items[MAX_ITEMS + 1];
    struct hd_slice held[MAX_ITEMS];
    struct hd_room_input_question question;
    struct hd_room_input out;
};

static struct hd_room_item make_item(struct world *w, const struct row *row, size_t i)
{
    w->messages[i] = (struct hd_room_message_rec){
        .seq = (int64_t)i + 1,
        .id = hd_slice_cstr(row->id),
        .state = row->state,
        .version = row->version,
        .changed = row->changed,
        .sender = hd_slice_cstr(row->by),
        .kind = row->by[0] == 'a' && row->by[2] == '\0' ? HD_ROOM_AGENT : HD_ROOM_PERSON,
        .sender_id = hd_slice_cstr(row->by),
        .sender_name = hd_slice_cstr(row->by),
        .replaced_by = hd_slice_cstr(row->replaced_by),
        .source_id = hd_slice_cstr(row->source_id)};
    w->contents[i] = (struct hd_room_content_rec){.content = hd_slice_cstr(row->content)};
    return (struct hd_room_item){&w->messages[i], &w->contents[i]};
}

static void world_init(struct world *w, const struct input_case *c)
{
    *w = (struct world){.question = {.agent = AGENT}};
    hd_arena_init(&w->arena, (size_t)1 << 24);
    hd_room_init(&w->room, HD_S("p"), HD_S("thread"));
    w->room.context_messages = c->messages ? c->messages : w->room.context_messages;
    w->room.context_bytes = c->bytes ? c->bytes : w->room.context_bytes;
    w->question.room = &w->room;
    w->question.mark = (struct hd_room_mark){c->mark, c->mark_changes};
    w->question.items = w->items;
    w->question.held = w->held;
    w->question.names_trigger = c->names_trigger;
    for (; c->rows[w->question.count].id; w->question.count++)
        w->items[w->question.count] = make_item(w, &c->rows[w->question.count], w->question.count);
    for (; c->held[w->question.held_count]; w->question.held_count++)
        w->held[w->question.held_count] = hd_slice_cstr(c->held[w->question.held_count]);
    w->question.trigger = make_item(w, &trigger, MAX_ITEMS);
}

/* "-removed id=content …" */
static void describe_input(const struct hd_json *json, struct hd_buf *out)
{
    struct hd_json_iter it = hd_json_iter(hd_json_root(json));

    while (hd_json_next(&it)) {
        struct hd_slice id = hd_json_string(hd_json_get(it.val, HD_S("id")));
        bool is_removal =
            hd_slice_eq(hd_json_string(hd_json_get(it.val, HD_S("type"))), HD_S("remove"));

        assert_err(hd_buf_printf(out, "%s%s%.*s", out->len > 0 ? " " : "", is_removal ? "-" : "",
                                 (int)id.len, id.ptr),
                   0);
        if (is_removal)
            continue;
        assert_err(hd_buf_append_byte(out, '='), 0);
        assert_err(hd_json_write_val(out, hd_json_get(it.val, HD_S("content"))), 0);
    }
}

static void the_input_of_a_run_follows_the_table(void **state)
{
    (void)state;
    for (size_t i = 0; i < HD_COUNT(cases); i++) {
        struct hd_json json = {NULL};
        struct world w;
        struct hd_buf got;

        world_init(&w, &cases[i]);
        hd_buf_init(&got, (size_t)1 << 20);
        print_message("%s\n", cases[i].name);
        assert_err(hd_room_input_make(&w.question, &w.arena, &w.out, NULL), 0);
        assert_err(hd_json_parse(&json, w.out.messages, NULL), 0);
        describe_input(&json, &got);
        assert_slice(hd_buf_slice(&got), hd_slice_cstr(cases[i].expected));
        assert_slice(w.out.given, hd_slice_cstr(cases[i].given));
        hd_buf_fini(&got);
        hd_json_fini(&json);
        hd_arena_fini(&w.arena);
    }
}

static void messages_carry_their_senders(void **state)
{
    static const struct input_case one = {.rows = {OK("m1", "bob", "\"hi\"")}};
    struct world w;

    (void)state;
    world_init(&w, &one);
    assert_err(hd_room_input_make(&w.question, &w.arena, &w.out, NULL), 0);
    assert_slice(
        w.out.messages,
        HD_S("[{\"type\":\"human\",\"id\":\"m1\",\"name\":\"bob\",\"content\":\"bob: hi\","
             "\"additional_kwargs\":{\"heddle\":{\"sender\":{\"type\":\"person\",\"id\":\"bob\","
             "\"name\":\"bob\"},\"message_id\":\"m1\",\"version\":1,\"context\":true}}},"
             "{\"type\":\"human\",\"id\":\"t\",\"content\":\"hello\","
             "\"additional_kwargs\":{\"heddle\":{\"sender\":{\"type\":\"person\",\"id\":\"anna\","
             "\"name\":\"anna\"},\"message_id\":\"t\",\"version\":1}}}]"));
    hd_arena_fini(&w.arena);
}

static void a_content_that_is_no_text_and_no_list_is_refused(void **state)
{
    static const struct input_case one = {.rows = {OK("m1", "bob", "{\"text\":\"hi\"}")}};
    struct heddle_error fault = {0};
    struct world w;

    (void)state;
    world_init(&w, &one);
    assert_err(hd_room_input_make(&w.question, &w.arena, &w.out, &fault), HD_EINVAL);
    assert_string_equal(fault.text, "a chat message has no text and no list of blocks");
    hd_arena_fini(&w.arena);
}

static int make_once(void *arg)
{
    struct world w;
    int err;

    world_init(&w, arg);
    err = hd_room_input_make(&w.question, &w.arena, &w.out, NULL);
    hd_arena_fini(&w.arena);
    return err;
}

static void missing_memory_is_reported(void **state)
{
    struct input_case c = cases[5];

    (void)state;
    assert_true(check_every_allocation(make_once, &c) > 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_input_of_a_run_follows_the_table),
        cmocka_unit_test(messages_carry_their_senders),
        cmocka_unit_test(a_content_that_is_no_text_and_no_list_is_refused),
        cmocka_unit_test(missing_memory_is_reported),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
