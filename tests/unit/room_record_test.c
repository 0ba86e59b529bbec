/* The records of rooms, in memory and on SQLite. */
#include "room/room.h"

#include <heddle.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "store/rows.h"
#include "tests/unit/check.h"

#define ADA HD_S("ada")
#define JOB HD_S("job")

struct world {
    struct heddle *store;
    struct hd_arena arena;
    struct heddle_error fault;
};

static int open_world(void **state, const char *url)
{
    struct world *w = calloc(1, sizeof(*w));
    struct heddle_error error = {0};

    assert_non_null(w);
    hd_arena_init(&w->arena, (size_t)1 << 26);
    if (heddle_open(&w->store, url, &error))
        fail_msg("%s", error.text);
    *state = w;
    return 0;
}

static int open_memory(void **state)
{
    return open_world(state, "memory:");
}

static int open_sqlite(void **state)
{
    return open_world(state, "sqlite::memory:");
}

static int close_world(void **state)
{
    struct world *w = *state;

    heddle_close(w->store);
    hd_arena_fini(&w->arena);
    free(w);
    return 0;
}

static int apply(struct world *w, struct hd_batch_builder *builder)
{
    struct hd_batch batch = hd_batch_view(builder);
    int err = hd_rows_apply(w->store, HD_S("ada:job"), &batch, NULL, NULL);

    hd_batch_fini(builder);
    return err;
}

/* Applies a batch with this one operation; `expected` is the result. */
#define APPLY_FOR(w, call, expected)              \
    do {                                          \
        struct hd_batch_builder batch;            \
        hd_batch_init(&batch);                    \
        assert_err((call), 0);                    \
        assert_err(apply((w), &batch), expected); \
    } while (0)
#define APPLY(w, call) APPLY_FOR(w, call, 0)

/* ---- the room --------------------------------------------------------- */

static void a_room_comes_back_as_it_was(void **state)
{
    struct world *w = *state;
    struct hd_room_rec room, back;

    assert_err(hd_room_read(w->store, ADA, JOB, &w->arena, &back, &w->fault), HD_ENOTFOUND);
    assert_int_equal(w->fault.code, 0);
    hd_room_init(&room, ADA, JOB);
    assert_int_equal(room.context_messages, 20);
    assert_int_equal(room.context_bytes, 65536);
    assert_int_equal(room.cascade_limit, 5);
    assert_int_equal(room.ask_runs, 8);
    assert_true(room.has_presence);
    room.last_seq = 7;
    room.changes = 3;
    room.updated_at = 9;
    room.default_assistant_id = HD_S("a1");
    room.agents = HD_S("[]");
    room.marks = HD_S("{\"n\":[1,2]}");
    room.waits = HD_S("[[\"m1\",\"a1\"]]");
    room.context_messages = 0;
    room.ask_depth = 2;
    room.answers = HD_ROOM_ANSWERS_EDITORS;
    room.has_presence = false;
    room.unknown = HD_S("\"later\":[1,2]");
    APPLY(w, hd_room_put(&batch, &room));
    assert_int_equal(room.rev, 1);
    assert_err(hd_room_read(w->store, ADA, JOB, &w->arena, &back, &w->fault), 0);
    assert_slice(back.principal, ADA);
    assert_slice(back.thread_id, JOB);
    assert_int_equal(back.rev, 1);
    assert_int_equal(back.last_seq, 7);
    assert_int_equal(back.changes, 3);
    assert_int_equal(back.updated_at, 9);
    assert_slice(back.default_assistant_id, HD_S("a1"));
    assert_slice(back.agents, room.agents);
    assert_slice(back.marks, room.marks);
    assert_slice(back.waits, room.waits);
    assert_int_equal(back.context_messages, 0);
    assert_int_equal(back.context_bytes, 65536);
    assert_int_equal(back.cascade_limit, 5);
    assert_int_equal(back.ask_depth, 2);
    assert_int_equal(back.ask_runs, 8);
    assert_int_equal(back.answers, HD_ROOM_ANSWERS_EDITORS);
    assert_false(back.has_presence);
    assert_slice(back.unknown, room.unknown);
}

static void a_room_changes_by_its_revision(void **state)
{
    struct world *w = *state;
    struct hd_room_rec room, other;

    hd_room_init(&room, ADA, JOB);
    hd_room_init(&other, ADA, JOB);
    APPLY(w, hd_room_put(&batch, &room));
    APPLY_FOR(w, hd_room_put(&batch, &other), HD_ECONFLICT);
    assert_err(hd_room_read(w->store, ADA, JOB, &w->arena, &other, &w->fault), 0);
    room.last_seq = 1;
    APPLY(w, hd_room_put(&batch, &room));
    assert_int_equal(room.rev, 2);
    APPLY_FOR(w, hd_room_put(&batch, &other), HD_ECONFLICT);
}

static int count_rooms(void *arg, const struct hd_room_rec *room)
{
    size_t *count = arg;

    assert_slice(room->principal, *count == 0 ? ADA : HD_S("bob"));
    ++*count;
    return 0;
}

static void rooms_of_all_owners_are_found(void **state)
{
    struct world *w = *state;
    struct hd_room_rec mine, other;
    size_t count = 0;

    hd_room_init(&mine, ADA, JOB);
    hd_room_init(&other, HD_S("bob"), JOB);
    APPLY(w, hd_room_put(&batch, &mine));
    APPLY(w, hd_room_put(&batch, &other));
    assert_err(hd_rooms_scan(w->store, count_rooms, &count, &w->fault), 0);
    assert_int_equal(count, 2);
}

static void agents_keep_their_order(void **state)
{
    struct world *w = *state;
    const struct hd_room_agent agents[] = {{HD_S("a2"), HD_S("Zoe \"Z\""), ADA},
                                           {HD_S("a1"), HD_S("Ärzte"), HD_S("")}};
    struct hd_room_agent *back = NULL;
    struct hd_room_rec room;
    size_t count = 9;

    hd_room_init(&room, ADA, JOB);
    assert_err(hd_room_agents_read(&room, &w->arena, &back, &count, &w->fault), 0);
    assert_int_equal(count, 0);
    assert_err(hd_room_agents_write(&room, agents, 2, &w->arena), 0);
    assert_err(hd_room_agents_read(&room, &w->arena, &back, &count, &w->fault), 0);
    assert_int_equal(count, 2);
    for (size_t i = 0; i < count; i++) {
        assert_slice(back[i].assistant_id, agents[i].assistant_id);
        assert_slice(back[i].name, agents[i].name);
        assert_slice(back[i].actor, agents[i].actor);
    }
    assert_err(hd_room_agents_write(&room, NULL, 0, &w->arena), 0);
    assert_slice(room.agents, HD_S("[]"));
    room.agents = HD_S("{}");
    assert_err(hd_room_agents_read(&room, &w->arena, &back, &count, &w->fault), HD_ECORRUPT);
    room.agents = HD_S("[{\"name\":\"x\"}]");
    assert_err(hd_room_agents_read(&room, &w->arena, &back, &count, NULL), HD_ECORRUPT);
}

static void each_line_has_its_mark(void **state)
{
    struct world *w = *state;
    struct hd_room_mark mark = {9, 9};
    struct hd_room_rec room;

    hd_room_init(&room, ADA, JOB);
    assert_err(hd_room_mark_get(&room, HD_S("n"), &mark, &w->fault), 0);
    assert_int_equal(mark.seq, 0);
    assert_int_equal(mark.changes, 0);
    assert_err(hd_room_mark_set(&room, HD_S("n"), (struct hd_room_mark){1, 2}, &w->arena), 0);
    assert_err(hd_room_mark_set(&room, HD_S("\"m\""), (struct hd_room_mark){3, 4}, &w->arena), 0);
    assert_err(hd_room_mark_set(&room, HD_S("n"), (struct hd_room_mark){5, 6}, &w->arena), 0);
    assert_slice(room.marks, HD_S("{\"\\\"m\\\"\":[3,4],\"n\":[5,6]}"));
    assert_err(hd_room_mark_get(&room, HD_S("\"m\""), &mark, &w->fault), 0);
    assert_int_equal(mark.seq, 3);
    assert_int_equal(mark.changes, 4);
    assert_err(hd_room_mark_get(&room, HD_S("n"), &mark, &w->fault), 0);
    assert_int_equal(mark.seq, 5);
    assert_err(hd_room_mark_get(&room, HD_S(""), &mark, &w->fault), 0);
    assert_int_equal(mark.seq, 0);
    room.marks = HD_S("{\"n\":[5]}");
    assert_err(hd_room_mark_get(&room, HD_S("n"), &mark, &w->fault), HD_ECORRUPT);
    room.marks = HD_S("{");
    assert_err(hd_room_mark_set(&room, HD_S("n"), mark, &w->arena), HD_ECORRUPT);
}

static void messages_wait_in_their_order(void **state)
{
    const struct hd_room_wait first = {HD_S("m1"), HD_S("a1")}, second = {HD_S("m2"), HD_S("a1")};
    struct world *w = *state;
    struct hd_room_wait *waits;
    struct hd_room_rec room;
    size_t count;

    hd_room_init(&room, ADA, JOB);
    assert_err(hd_room_waits_read(&room, &w->arena, &waits, &count, &w->fault), 0);
    assert_int_equal(count, 0);
    assert_err(hd_room_wait_add(&room, &first, &w->arena), 0);
    assert_err(hd_room_wait_add(&room, &second, &w->arena), 0);
    assert_slice(room.waits, HD_S("[[\"m1\",\"a1\"],[\"m2\",\"a1\"]]"));
    assert_err(hd_room_wait_remove(&room, &first, &w->arena), 0);
    assert_err(hd_room_waits_read(&room, &w->arena, &waits, &count, &w->fault), 0);
    assert_int_equal(count, 1);
    assert_slice(waits[0].message_id, HD_S("m2"));
    assert_slice(waits[0].assistant_id, HD_S("a1"));
    assert_err(hd_room_wait_remove(&room, &second, &w->arena), 0);
    assert_int_equal(room.waits.len, 0);
    for (int i = 0; i < HD_ROOM_MAX_WAITS; i++)
        assert_err(hd_room_wait_add(&room, &first, &w->arena), 0);
    assert_err(hd_room_wait_add(&room, &second, &w->arena), HD_ELIMIT);
    room.waits = HD_S("[[\"m1\"]]");
    assert_err(hd_room_waits_read(&room, &w->arena, &waits, &count, &w->fault), HD_ECORRUPT);
}

/* ---- messages --------------------------------------------------------- */

static struct hd_room_message_rec make_message(int64_t seq, const char *id, const char *sender)
{
    return (struct hd_room_message_rec){.principal = ADA,
                                        .thread_id = JOB,
                                        .seq = seq,
                                        .id = hd_slice_cstr(id),
                                        .state = HD_ROOM_OK,
                                        .version = 1,
                                        .created_at = 100 + seq,
                                        .sender = hd_slice_cstr(sender),
                                        .kind = HD_ROOM_PERSON,
                                        .sender_id = hd_slice_cstr(sender)};
}

static struct hd_room_id_rec id_of(const struct hd_room_message_rec *message)
{
    return (struct hd_room_id_rec){.principal = message->principal,
                                   .thread_id = message->thread_id,
                                   .message_id = message->id,
                                   .seq = message->seq,
                                   .hash = HD_S("h")};
}

static void add_message(struct world *w, const struct hd_room_message_rec *message)
{
    const struct hd_room_id_rec id = id_of(message);

    APPLY(w, hd_room_message_add(&batch, message));
    APPLY(w, hd_room_id_add(&batch, &id));
}

static void assert_same_message(const struct hd_room_message_rec *got,
                                const struct hd_room_message_rec *expected)
{
    assert_slice(got->principal, expected->principal);
    assert_slice(got->thread_id, expected->thread_id);
    assert_int_equal(got->seq, expected->seq);
    assert_slice(got->id, expected->id);
    assert_int_equal(got->state, expected->state);
    assert_int_equal(got->version, expected->version);
    assert_int_equal(got->changed, expected->changed);
    assert_int_equal(got->created_at, expected->created_at);
    assert_slice(got->sender, expected->sender);
    assert_int_equal(got->kind, expected->kind);
    assert_slice(got->sender_id, expected->sender_id);
    assert_slice(got->sender_name, expected->sender_name);
    assert_slice(got->reply_to, expected->reply_to);
    assert_slice(got->mentions, expected->mentions);
    assert_slice(got->replaced_by, expected->replaced_by);
    assert_slice(got->replaces, expected->replaces);
    assert_slice(got->run_id, expected->run_id);
    assert_slice(got->checkpoint_id, expected->checkpoint_id);
    assert_slice(got->ns, expected->ns);
    assert_slice(got->source_id, expected->source_id);
    assert_slice(got->interrupts, expected->interrupts);
    assert_slice(got->error, expected->error);
    assert_slice(got->feedback, expected->feedback);
    assert_int_equal(got->updated_at, expected->updated_at);
    assert_slice(got->unknown, expected->unknown);
}

static void a_message_comes_back_as_it_was(void **state)
{
    struct world *w = *state;
    struct hd_room_message_rec back, copy;
    const struct hd_room_message_rec message = {
        .principal = ADA,
        .thread_id = JOB,
        .seq = 4,
        .id = HD_S("m\"4\""),
        .state = HD_ROOM_STALE,
        .version = 2,
        .changed = 6,
        .created_at = 5,
        .sender = HD_S("a1"),
        .kind = HD_ROOM_AGENT,
        .sender_id = HD_S("a1"),
        .sender_name = HD_S("Cl\"erk"),
        .reply_to = HD_S("m1"),
        .mentions = HD_S("[{\"type\":\"agent\"}]"),
        .replaced_by = HD_S("m5"),
        .replaces = HD_S("m2"),
        .run_id = HD_S("r1"),
        .checkpoint_id = HD_S("c1"),
        .ns = HD_S("assistant:a1"),
        .source_id = HD_S("lc-1"),
        .interrupts = HD_S("{\"t\":[]}"),
        .error = HD_S("\"boom\""),
        .feedback = HD_S("[]"),
        .updated_at = 8,
        .unknown = HD_S("\"later\":1"),
    };

    assert_err(hd_room_message_read(w->store, ADA, JOB, message.id, &w->arena, &back, &w->fault),
               HD_ENOTFOUND);
    add_message(w, &message);
    assert_err(hd_room_message_read(w->store, ADA, JOB, message.id, &w->arena, &back, &w->fault),
               0);
    assert_same_message(&back, &message);
    assert_err(hd_room_message_copy(&w->arena, &message, &copy), 0);
    assert_same_message(&copy, &message);
    assert_ptr_not_equal(copy.error.ptr, message.error.ptr);
    APPLY_FOR(w, hd_room_message_add(&batch, &message), HD_ECONFLICT);
    back.state = HD_ROOM_DELETED;
    APPLY(w, hd_room_message_put(&batch, &back));
    assert_err(hd_room_message_read(w->store, ADA, JOB, message.id, &w->arena, &copy, &w->fault),
               0);
    assert_same_message(&copy, &back);
}

static void an_id_can_be_reserved(void **state)
{
    struct world *w = *state;
    struct hd_room_message_rec message = make_message(1, "m1", "ada"), back;
    struct hd_room_id_rec id = id_of(&message), found;

    id.seq = 0;
    id.hash = HD_S("");
    APPLY(w, hd_room_id_add(&batch, &id));
    APPLY_FOR(w, hd_room_id_add(&batch, &id), HD_ECONFLICT);
    assert_err(hd_room_id_read(w->store, ADA, JOB, id.message_id, &w->arena, &found, &w->fault), 0);
    assert_int_equal(found.seq, 0);
    assert_int_equal(found.hash.len, 0);
    assert_err(hd_room_message_read(w->store, ADA, JOB, message.id, &w->arena, &back, &w->fault),
               HD_ENOTFOUND);
    id.seq = 1;
    APPLY(w, hd_room_id_put(&batch, &id));
    APPLY(w, hd_room_message_add(&batch, &message));
    assert_err(hd_room_message_read(w->store, ADA, JOB, message.id, &w->arena, &back, &w->fault),
               0);
}

/* ---- lists ------------------------------------------------------------ */

struct seqs {
    char text[256];
    size_t len;
};

static int on_seq(void *arg, const struct hd_room_message_rec *message)
{
    struct seqs *seqs = arg;

    seqs->len += (size_t)snprintf(seqs->text + seqs->len, sizeof(seqs->text) - seqs->len, " %lld",
                                  (long long)message->seq);
    return 0;
}

static void assert_listed(struct world *w, struct hd_room_message_query query, const char *expected)
{
    struct seqs seqs = {.len = 0};

    assert_err(hd_room_messages_scan(w->store, ADA, JOB, &query, on_seq, &seqs, &w->fault), 0);
    assert_string_equal(seqs.text, expected);
}

/* Eight messages: bob has the even ones; 3 and 6 are stale; 2, 5 and 6 were changed. */
static void add_eight(struct world *w)
{
    static const int64_t changed[] = {0, 7, 0, 0, 3, 5, 0, 0};

    for (int i = 0; i < 8; i++) {
        char id[] = {'m', (char)('1' + i), '\0'};
        struct hd_room_message_rec message = make_message(i + 1, id, i % 2 ? "bob" : "ada");

        message.changed = changed[i];
        if ((i + 1) % 3 == 0)
            message.state = HD_ROOM_STALE;
        add_message(w, &message);
        message.thread_id = HD_S("job2");
        add_message(w, &message);
    }
}

static void messages_are_listed_by_each_condition(void **state)
{
    struct world *w = *state;
    const struct hd_room_message_query all = {.state = -1, .changed_after = -1};
    struct hd_room_message_query query = all;

    add_eight(w);
    assert_listed(w, all, " 1 2 3 4 5 6 7 8");
    query.is_newest_first = true;
    query.limit = 3;
    assert_listed(w, query, " 8 7 6");
    query.before = 6;
    assert_listed(w, query, " 5 4 3");
    query.after = 3;
    assert_listed(w, query, " 5 4");
    query = all;
    query.after = 4;
    query.limit = 2;
    assert_listed(w, query, " 5 6");
    query = all;
    query.sender = HD_S("bob");
    assert_listed(w, query, " 2 4 6 8");
    query.after = 2;
    query.before = 8;
    assert_listed(w, query, " 4 6");
    query.state = HD_ROOM_STALE;
    assert_listed(w, query, " 6");
    query = all;
    query.state = HD_ROOM_STALE;
    assert_listed(w, query, " 3 6");
    query.is_newest_first = true;
    query.limit = 1;
    assert_listed(w, query, " 6");
    query = all;
    query.changed_after = 0;
    assert_listed(w, query, " 5 6 2");
    query.changed_after = 3;
    assert_listed(w, query, " 6 2");
    query.before = 6;
    assert_listed(w, query, " 2");
    query.changed_after = 7;
    assert_listed(w, query, "");
}

static int stop_at_two(void *arg, const struct hd_room_message_rec *message)
{
    int64_t *last = arg;

    *last = message->seq;
    return message->seq == 2;
}

static int fail_at_two(void *arg, const struct hd_room_message_rec *message)
{
    (void)arg;
    return message->seq == 2 ? HD_EIO : 0;
}

static void a_scan_ends_when_its_function_ends_it(void **state)
{
    struct world *w = *state;
    const struct hd_room_message_query all = {.state = -1, .changed_after = -1};
    int64_t last = 0;

    add_eight(w);
    assert_err(hd_room_messages_scan(w->store, ADA, JOB, &all, stop_at_two, &last, &w->fault), 0);
    assert_int_equal(last, 2);
    assert_err(hd_room_messages_scan(w->store, ADA, JOB, &all, fail_at_two, &last, &w->fault),
               HD_EIO);
}

static void assert_unread(struct world *w, const char *reader, int64_t after, int64_t expected)
{
    int64_t count = -1;

    assert_err(
        hd_room_messages_count(w->store, ADA, JOB, hd_slice_cstr(reader), after, &count, &w->fault),
        0);
    assert_int_equal(count, expected);
}

static void messages_of_others_are_counted(void **state)
{
    struct world *w = *state;

    assert_unread(w, "bob", 0, 0);
    add_eight(w);
    assert_unread(w, "cleo", 0, 8);
    assert_unread(w, "bob", 0, 4);
    assert_unread(w, "bob", 5, 1);
    assert_unread(w, "bob", 7, 0);
    assert_unread(w, "bob", 8, 0);
}

/* ---- contents --------------------------------------------------------- */

static void add_version(struct world *w, const char *id, int64_t version, const char *text)
{
    const struct hd_room_content_rec content = {.principal = ADA,
                                                .thread_id = JOB,
                                                .message_id = hd_slice_cstr(id),
                                                .version = version,
                                                .created_at = 10 + version,
                                                .content = hd_slice_cstr(text),
                                                .metadata = HD_S("{\"a\":1.0}"),
                                                .unknown = HD_S("\"later\":null")};

    APPLY(w, hd_room_content_add(&batch, &content));
}

static void every_version_has_its_content(void **state)
{
    struct world *w = *state;
    struct hd_room_content_rec content, *versions = NULL;
    size_t count = 0;

    add_version(w, "m1", 1, "\"one\"");
    add_version(w, "m1", 2, "[{\"type\":\"text\",\"text\":\"two\"}]");
    add_version(w, "m10", 1, "\"other\"");
    assert_err(
        hd_room_content_read(w->store, ADA, JOB, HD_S("m1"), 2, &w->arena, &content, &w->fault), 0);
    assert_slice(content.content, HD_S("[{\"type\":\"text\",\"text\":\"two\"}]"));
    assert_slice(content.metadata, HD_S("{\"a\":1.0}"));
    assert_slice(content.unknown, HD_S("\"later\":null"));
    assert_int_equal(content.created_at, 12);
    assert_err(
        hd_room_content_read(w->store, ADA, JOB, HD_S("m1"), 3, &w->arena, &content, &w->fault),
        HD_ENOTFOUND);
    assert_err(hd_room_versions_read(w->store, ADA, JOB, HD_S("m1"), &w->arena, &versions, &count,
                                     &w->fault),
               0);
    assert_int_equal(count, 2);
    assert_slice(versions[0].content, HD_S("\"one\""));
    assert_int_equal(versions[1].version, 2);
    APPLY(w, hd_room_contents_delete(&batch, ADA, JOB, HD_S("m1")));
    assert_err(hd_room_versions_read(w->store, ADA, JOB, HD_S("m1"), &w->arena, &versions, &count,
                                     &w->fault),
               0);
    assert_int_equal(count, 0);
    assert_err(
        hd_room_content_read(w->store, ADA, JOB, HD_S("m10"), 1, &w->arena, &content, &w->fault),
        0);
}

static void many_contents_are_read_at_once(void **state)
{
    struct world *w = *state;
    struct hd_room_message_rec messages[3] = {
        make_message(1, "m1", "ada"), make_message(2, "m2", "ada"), make_message(3, "m3", "ada")};
    struct hd_room_content_rec contents[3];

    messages[2].version = 2;
    add_version(w, "m1", 1, "\"one\"");
    add_version(w, "m3", 1, "\"three\"");
    add_version(w, "m3", 2, "\"drei\"");
    assert_err(hd_room_contents_read(w->store, messages, 3, &w->arena, contents, &w->fault), 0);
    assert_slice(contents[0].content, HD_S("\"one\""));
    assert_null(contents[1].content.ptr);
    assert_int_equal(contents[1].version, 0);
    assert_slice(contents[2].content, HD_S("\"drei\""));
    assert_err(hd_room_contents_read(w->store, NULL, 0, &w->arena, NULL, &w->fault), 0);
}

/* ---- runs and cascades ------------------------------------------------ */

static void add_run(struct world *w, const char *id, const char *trigger)
{
    const struct hd_room_run_rec run = {.principal = ADA,
                                        .thread_id = JOB,
                                        .run_id = hd_slice_cstr(id),
                                        .trigger = hd_slice_cstr(trigger),
                                        .created_at = 3,
                                        .answer = HD_S("m9"),
                                        .assistant_id = HD_S("a1"),
                                        .graph_id = HD_S("g"),
                                        .runtime = HD_S("native"),
                                        .ns = HD_S("assistant:a1"),
                                        .given = HD_S("[[\"m1\",2]]"),
                                        .head_before = HD_S("c1"),
                                        .head_after = HD_S("c2"),
                                        .chain = HD_S("m1"),
                                        .depth = 1,
                                        .cascade = HD_S("k"),
                                        .replaces = HD_S("r0"),
                                        .is_answer = true,
                                        .unknown = HD_S("\"later\":{}")};

    APPLY(w, hd_room_run_put(&batch, &run));
}

static void a_run_is_found_by_its_trigger(void **state)
{
    struct world *w = *state;
    struct hd_room_run_rec run, *runs = NULL;
    size_t count = 9;

    assert_err(
        hd_room_runs_read(w->store, ADA, JOB, HD_S("m1"), &w->arena, &runs, &count, &w->fault), 0);
    assert_int_equal(count, 0);
    add_run(w, "r2", "m1");
    add_run(w, "r1", "m1");
    add_run(w, "r3", "m2");
    add_run(w, "r4", "");
    assert_err(hd_room_run_read(w->store, ADA, JOB, HD_S("r1"), &w->arena, &run, &w->fault), 0);
    assert_slice(run.trigger, HD_S("m1"));
    assert_int_equal(run.created_at, 3);
    assert_slice(run.answer, HD_S("m9"));
    assert_slice(run.assistant_id, HD_S("a1"));
    assert_slice(run.graph_id, HD_S("g"));
    assert_slice(run.runtime, HD_S("native"));
    assert_slice(run.ns, HD_S("assistant:a1"));
    assert_slice(run.given, HD_S("[[\"m1\",2]]"));
    assert_slice(run.head_before, HD_S("c1"));
    assert_slice(run.head_after, HD_S("c2"));
    assert_slice(run.chain, HD_S("m1"));
    assert_int_equal(run.depth, 1);
    assert_slice(run.cascade, HD_S("k"));
    assert_slice(run.replaces, HD_S("r0"));
    assert_true(run.is_answer);
    assert_slice(run.unknown, HD_S("\"later\":{}"));
    assert_err(
        hd_room_runs_read(w->store, ADA, JOB, HD_S("m1"), &w->arena, &runs, &count, &w->fault), 0);
    assert_int_equal(count, 2);
    assert_slice(runs[0].run_id, HD_S("r1"));
    assert_slice(runs[1].run_id, HD_S("r2"));
    assert_err(hd_room_runs_read(w->store, ADA, JOB, HD_S(""), &w->arena, &runs, &count, &w->fault),
               0);
    assert_int_equal(count, 4);
    assert_int_equal(runs[3].trigger.len, 0);
}

static struct hd_cascade_rec make_cascade(const char *id, enum hd_cascade_status status,
                                          int64_t created_at)
{
    return (struct hd_cascade_rec){.principal = ADA,
                                   .thread_id = JOB,
                                   .id = hd_slice_cstr(id),
                                   .status = status,
                                   .created_at = created_at,
                                   .updated_at = 5,
                                   .message_id = HD_S("m1"),
                                   .version = 2,
                                   .actor = ADA,
                                   .editor = HD_S("{\"id\":\"ada\"}"),
                                   .user = HD_S("{\"identity\":\"ada\"}"),
                                   .limit = 5,
                                   .approved = -1,
                                   .plan = HD_S("[]"),
                                   .before = HD_S("{}"),
                                   .reason = HD_S("why"),
                                   .unknown = HD_S("\"later\":0")};
}

static void a_cascade_comes_back_as_it_was(void **state)
{
    struct world *w = *state;
    struct hd_cascade_rec cascade = make_cascade("k1", HD_CASCADE_FAILED, 4), back;

    APPLY(w, hd_cascade_put(&batch, &cascade));
    assert_err(hd_cascade_read(w->store, ADA, JOB, HD_S("k1"), &w->arena, &back, &w->fault), 0);
    assert_int_equal(back.rev, 1);
    assert_int_equal(back.status, HD_CASCADE_FAILED);
    assert_int_equal(back.created_at, 4);
    assert_int_equal(back.updated_at, 5);
    assert_slice(back.message_id, HD_S("m1"));
    assert_int_equal(back.version, 2);
    assert_slice(back.actor, ADA);
    assert_slice(back.editor, cascade.editor);
    assert_slice(back.user, cascade.user);
    assert_int_equal(back.limit, 5);
    assert_int_equal(back.approved, -1);
    assert_slice(back.plan, cascade.plan);
    assert_slice(back.before, cascade.before);
    assert_slice(back.reason, cascade.reason);
    assert_slice(back.unknown, cascade.unknown);
    APPLY(w, hd_cascade_put(&batch, &cascade));
    assert_int_equal(cascade.rev, 2);
    APPLY_FOR(w, hd_cascade_put(&batch, &back), HD_ECONFLICT);
    back.rev = 0;
    APPLY_FOR(w, hd_cascade_put(&batch, &back), HD_ECONFLICT);
    assert_err(hd_cascade_read(w->store, ADA, JOB, HD_S("k2"), &w->arena, &back, &w->fault),
               HD_ENOTFOUND);
}

static int on_open_cascade(void *arg, const struct hd_cascade_rec *cascade)
{
    struct seqs *seqs = arg;

    seqs->len += (size_t)snprintf(seqs->text + seqs->len, sizeof(seqs->text) - seqs->len, " %.*s",
                                  (int)cascade->id.len, cascade->id.ptr);
    return 0;
}

static void open_cascades_are_found(void **state)
{
    struct world *w = *state;
    struct hd_cascade_rec *list = NULL;
    struct seqs open = {.len = 0};
    size_t count = 0;

    for (int i = HD_CASCADE_RUNNING; i <= HD_CASCADE_UNDONE; i++) {
        char id[] = {'k', (char)('0' + i), '\0'};
        struct hd_cascade_rec cascade = make_cascade(id, (enum hd_cascade_status)i, 20 - i);

        APPLY(w, hd_cascade_put(&batch, &cascade));
    }
    assert_err(hd_cascades_open(w->store, on_open_cascade, &open, &w->fault), 0);
    assert_string_equal(open.text, " k0 k1");
    assert_err(hd_cascades_read(w->store, ADA, JOB, 3, &w->arena, &list, &count, &w->fault), 0);
    assert_int_equal(count, 3);
    assert_slice(list[0].id, HD_S("k0"));
    assert_slice(list[2].id, HD_S("k2"));
}

/* ---- people ----------------------------------------------------------- */

static void read_marks_are_one_per_person(void **state)
{
    struct world *w = *state;
    struct hd_room_read_rec mark = {.principal = ADA,
                                    .thread_id = JOB,
                                    .reader = HD_S("bob"),
                                    .seq = 4,
                                    .updated_at = 6,
                                    .reader_id = HD_S("Bob"),
                                    .unknown = HD_S("\"later\":0")};
    struct hd_room_read_rec back, *marks = NULL;
    size_t count = 0;

    assert_err(hd_room_read_mark(w->store, ADA, JOB, mark.reader, &w->arena, &back, &w->fault), 0);
    assert_int_equal(back.seq, 0);
    assert_slice(back.reader, mark.reader);
    APPLY(w, hd_room_read_put(&batch, &mark));
    mark.seq = 5;
    APPLY(w, hd_room_read_put(&batch, &mark));
    assert_err(hd_room_read_mark(w->store, ADA, JOB, mark.reader, &w->arena, &back, &w->fault), 0);
    assert_int_equal(back.seq, 5);
    assert_int_equal(back.updated_at, 6);
    assert_slice(back.reader_id, HD_S("Bob"));
    assert_slice(back.unknown, mark.unknown);
    mark.reader = ADA;
    APPLY(w, hd_room_read_put(&batch, &mark));
    assert_err(hd_room_read_marks(w->store, ADA, JOB, &w->arena, &marks, &count, &w->fault), 0);
    assert_int_equal(count, 2);
    assert_slice(marks[0].reader, ADA);
    assert_slice(marks[1].reader, HD_S("bob"));
}

static void add_mention(struct world *w, const char *member, const char *thread, int64_t created_at)
{
    const struct hd_mention_rec mention = {.member = hd_slice_cstr(member),
                                           .created_at = created_at,
                                           .principal = ADA,
                                           .thread_id = hd_slice_cstr(thread),
                                           .message_id = HD_S("m1"),
                                           .seq = created_at - 10};

    APPLY(w, hd_mention_add(&batch, &mention));
}

static void an_inbox_has_the_newest_first(void **state)
{
    struct world *w = *state;
    struct hd_mention_rec *list = NULL;
    struct hd_batch_builder batch;
    size_t count = 0;

    for (int i = 11; i < 15; i++)
        add_mention(w, "bob", i % 2 ? "job" : "job2", i);
    add_mention(w, "cleo", "job", 12);
    assert_err(hd_mentions_read(w->store, HD_S("bob"), 0, 2, &w->arena, &list, &count, &w->fault),
               0);
    assert_int_equal(count, 2);
    assert_int_equal(list[0].created_at, 14);
    assert_slice(list[0].thread_id, HD_S("job2"));
    assert_slice(list[0].message_id, HD_S("m1"));
    assert_int_equal(list[0].seq, 4);
    assert_err(hd_mentions_read(w->store, HD_S("bob"), list[1].created_at, 10, &w->arena, &list,
                                &count, &w->fault),
               0);
    assert_int_equal(count, 2);
    assert_int_equal(list[0].created_at, 12);
    hd_batch_init(&batch);
    assert_err(hd_mentions_delete(w->store, &batch, ADA, JOB, &w->fault), 0);
    assert_int_equal(batch.count, 3);
    assert_err(apply(w, &batch), 0);
    assert_err(hd_mentions_read(w->store, HD_S("cleo"), 0, 10, &w->arena, &list, &count, &w->fault),
               0);
    assert_int_equal(count, 0);
    assert_err(hd_mentions_read(w->store, HD_S("bob"), 0, 10, &w->arena, &list, &count, &w->fault),
               0);
    assert_int_equal(count, 2);
}

static void one_mention_is_removed(void **state)
{
    const struct hd_mention_rec of_bob = {
        .member = HD_S("bob"), .principal = ADA, .thread_id = JOB, .message_id = HD_S("m1")};
    const struct hd_mention_rec other = {
        .member = HD_S("bob"), .principal = ADA, .thread_id = JOB, .message_id = HD_S("m2")};
    struct world *w = *state;
    struct hd_mention_rec *list = NULL;
    size_t count = 0;

    add_mention(w, "bob", "job", 11);
    add_mention(w, "bob", "job", 12); /* by a later edit */
    add_mention(w, "bob", "job2", 13);
    add_mention(w, "cleo", "job", 14);
    APPLY(w, hd_mention_remove(w->store, &batch, &other, &w->fault));
    assert_err(hd_mentions_read(w->store, HD_S("bob"), 0, 9, &w->arena, &list, &count, &w->fault),
               0);
    assert_int_equal(count, 3);
    APPLY(w, hd_mention_remove(w->store, &batch, &of_bob, &w->fault));
    assert_err(hd_mentions_read(w->store, HD_S("bob"), 0, 9, &w->arena, &list, &count, &w->fault),
               0);
    assert_int_equal(count, 1);
    assert_slice(list[0].thread_id, HD_S("job2"));
    assert_err(hd_mentions_read(w->store, HD_S("cleo"), 0, 9, &w->arena, &list, &count, &w->fault),
               0);
    assert_int_equal(count, 1);
}

/* ---- deletion --------------------------------------------------------- */

static int on_any_row(void *arg, size_t which, const struct hd_cell *cells)
{
    int *counts = arg;

    (void)cells;
    counts[which]++;
    return 0;
}

/* Rows of tables that begin with the owner and the thread: of each in this thread. */
static void count_room_rows(struct world *w, struct hd_slice thread_id, int counts[7])
{
    const struct hd_cell prefix[] = {hd_cell_bytes(ADA), hd_cell_bytes(thread_id)};
    struct hd_query queries[7];

    for (size_t i = 0; i < HD_COUNT(queries); i++) {
        queries[i] = (struct hd_query){.table = (enum hd_table_id)(HD_ROOM + i),
                                       .index = HD_PRIMARY,
                                       .prefix = prefix,
                                       .prefix_count = HD_COUNT(prefix)};
        counts[i] = 0;
    }
    assert_err(hd_rows_read(w->store, queries, HD_COUNT(queries), on_any_row, counts, &w->fault),
               0);
}

static void a_room_is_deleted_as_a_whole(void **state)
{
    struct world *w = *state;
    const struct hd_room_read_rec mark = {.principal = ADA, .thread_id = JOB, .reader = ADA};
    struct hd_cascade_rec cascade = make_cascade("k", HD_CASCADE_DONE, 1);
    struct hd_room_rec room;
    int counts[7];

    hd_room_init(&room, ADA, JOB);
    APPLY(w, hd_room_put(&batch, &room));
    add_eight(w);
    add_version(w, "m1", 1, "\"one\"");
    add_run(w, "r1", "m1");
    APPLY(w, hd_cascade_put(&batch, &cascade));
    APPLY(w, hd_room_read_put(&batch, &mark));
    count_room_rows(w, JOB, counts);
    for (size_t i = 0; i < HD_COUNT(counts); i++)
        assert_true(counts[i] > 0);
    APPLY(w, hd_room_delete(&batch, ADA, JOB));
    count_room_rows(w, JOB, counts);
    for (size_t i = 0; i < HD_COUNT(counts); i++)
        assert_int_equal(counts[i], 0);
    count_room_rows(w, HD_S("job2"), counts);
    assert_int_equal(counts[HD_ROOM_MESSAGES - HD_ROOM], 8);
}

int main(void)
{
#define BOTH(function)                                                   \
    cmocka_unit_test_setup_teardown(function, open_memory, close_world), \
    {                                                                    \
        "sqlite " #function, function, open_sqlite, close_world, NULL    \
    }
    const struct CMUnitTest tests[] = {
        BOTH(a_room_comes_back_as_it_was),
        BOTH(a_room_changes_by_its_revision),
        BOTH(rooms_of_all_owners_are_found),
        BOTH(agents_keep_their_order),
        BOTH(each_line_has_its_mark),
        BOTH(messages_wait_in_their_order),
        BOTH(a_message_comes_back_as_it_was),
        BOTH(an_id_can_be_reserved),
        BOTH(messages_are_listed_by_each_condition),
        BOTH(a_scan_ends_when_its_function_ends_it),
        BOTH(messages_of_others_are_counted),
        BOTH(every_version_has_its_content),
        BOTH(many_contents_are_read_at_once),
        BOTH(a_run_is_found_by_its_trigger),
        BOTH(a_cascade_comes_back_as_it_was),
        BOTH(open_cascades_are_found),
        BOTH(read_marks_are_one_per_person),
        BOTH(an_inbox_has_the_newest_first),
        BOTH(one_mention_is_removed),
        BOTH(a_room_is_deleted_as_a_whole),
    };
#undef BOTH

    return cmocka_run_group_tests(tests, NULL, NULL);
}
