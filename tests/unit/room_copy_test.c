/* Copies and branches of rooms, in memory and on SQLite. */
#include "room/room_copy.h"

#include <stdio.h>
#include <stdlib.h>

#include "tests/unit/room_rows.h"

#define LINE HD_S("assistant:a1")

struct world {
    struct heddle *store;
    struct hd_arena arena;
    struct heddle_error fault;
    struct hd_room_copy copy;
};

static int open_world(void **state, const char *url)
{
    struct world *w = calloc(1, sizeof(*w));

    assert_non_null(w);
    hd_arena_init(&w->arena, (size_t)1 << 26);
    hd_map_init(&w->copy.ids, 1);
    assert_int_equal(heddle_open(&w->store, url, NULL), 0);
    room_fill(w->store, &w->arena);
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

    hd_room_copy_fini(&w->copy);
    heddle_close(w->store);
    hd_arena_fini(&w->arena);
    free(w);
    return 0;
}

/* Reads a copy up to `up_to` and writes it as the thread eve:new. */
static void copy_room(struct world *w, int64_t up_to)
{
    struct hd_batch_builder last;
    struct hd_batch view;

    hd_room_copy_fini(&w->copy);
    assert_err(
        hd_room_copy_read(w->store, ROOM_OWNER, ROOM_THREAD, up_to, &w->arena, &w->copy, &w->fault),
        0);
    hd_batch_init(&last);
    assert_err(hd_room_copy_write(w->store, &w->copy, HD_S("eve"), HD_S("new"), &last, &w->fault),
               0);
    view = hd_batch_view(&last);
    assert_err(hd_rows_apply(w->store, HD_S("eve:new"), &view, NULL, &w->fault), 0);
    hd_batch_fini(&last);
}

struct shown {
    struct world *w;
    char text[1024];
    size_t len;
};

/* " seq:id=content" of each message; "-" without a content. */
static int on_shown(void *arg, const struct hd_room_message_rec *message)
{
    struct shown *shown = arg;
    struct hd_room_content_rec content;

    assert_err(hd_room_contents_read(shown->w->store, message, 1, &shown->w->arena, &content,
                                     &shown->w->fault),
               0);
    shown->len +=
        (size_t)snprintf(shown->text + shown->len, sizeof(shown->text) - shown->len,
                         " %lld:%.*s=%.*s", (long long)message->seq, (int)message->id.len,
                         message->id.ptr, content.content.len ? (int)content.content.len : 1,
                         content.content.len ? content.content.ptr : "-");
    return 0;
}

static void assert_copied(struct world *w, const char *expected)
{
    const struct hd_room_message_query all = {.state = -1, .changed_after = -1};
    struct shown shown = {.w = w};

    assert_err(hd_room_messages_scan(w->store, HD_S("eve"), HD_S("new"), &all, on_shown, &shown,
                                     &w->fault),
               0);
    assert_string_equal(shown.text, expected);
}

static struct hd_room_rec read_copied(struct world *w, struct hd_room_mark *mark, size_t *runs)
{
    struct hd_room_run_rec *list = NULL;
    struct hd_room_rec room;

    assert_err(hd_room_read(w->store, HD_S("eve"), HD_S("new"), &w->arena, &room, &w->fault), 0);
    assert_err(hd_room_mark_get(&room, LINE, mark, &w->fault), 0);
    assert_err(hd_room_runs_read(w->store, HD_S("eve"), HD_S("new"), HD_S(""), &w->arena, &list,
                                 runs, &w->fault),
               0);
    return room;
}

#define TWO "[{\"type\":\"text\",\"text\":\"two\"},{\"type\":\"text\",\"text\":\"too\"}]"

static void a_copy_has_the_chat_in_its_current_versions(void **state)
{
    struct world *w = *state;
    struct hd_room_content_rec *versions = NULL;
    struct hd_room_message_rec message;
    struct hd_room_mark mark;
    struct hd_room_rec room;
    size_t count;

    copy_room(w, 0);
    assert_copied(w, " 1:m1=\"@clerk one\" 2:m2=" TWO
                     " 3:m3=\"three @ada\" 4:m4=- 5:m5=\"five\" 6:m6=\"six\"");
    room = read_copied(w, &mark, &count);
    assert_int_equal(count, 2);
    assert_int_equal(room.last_seq, 6);
    assert_int_equal(room.changes, 2);
    assert_int_equal(room.waits.len, 0);
    assert_int_equal(mark.seq, 6);
    assert_int_equal(mark.changes, 2);
    assert_err(hd_room_versions_read(w->store, HD_S("eve"), HD_S("new"), HD_S("m5"), &w->arena,
                                     &versions, &count, &w->fault),
               0);
    assert_int_equal(count, 1);
    assert_int_equal(versions[0].version, 2);
    assert_slice(versions[0].metadata, HD_S("{\"a\":1}"));
    assert_err(hd_room_message_read(w->store, HD_S("eve"), HD_S("new"), HD_S("m3"), &w->arena,
                                    &message, &w->fault),
               0);
    assert_slice(message.sender, ROOM_GUEST);
    assert_slice(message.reply_to, HD_S("m2"));
    /* Nothing of the people of the source. */
    assert_int_equal(room_count(w->store, HD_ROOM_READS), 2);
    assert_int_equal(room_count(w->store, HD_ROOM_MENTIONS), 2);
    assert_int_equal(room_count(w->store, HD_ROOM_CASCADES), 1);
}

static void a_branch_ends_at_its_message(void **state)
{
    struct world *w = *state;
    struct hd_room_mark mark;
    struct hd_room_rec room;
    size_t runs;

    copy_room(w, 5);
    assert_copied(w, " 1:m1=\"@clerk one\" 2:m2=" TWO " 3:m3=\"three @ada\" 5:m5=\"five\"");
    room = read_copied(w, &mark, &runs);
    assert_int_equal(runs, 1);
    assert_int_equal(room.last_seq, 5);
    assert_int_equal(mark.seq, 1);
    assert_int_equal(mark.changes, 0);
    assert_int_equal(w->copy.head_count, 1);
    assert_slice(w->copy.heads[0]->ns, LINE);
    assert_slice(w->copy.heads[0]->checkpoint_id, HD_S("c1"));
}

static void a_branch_before_the_first_answer_has_no_lines(void **state)
{
    struct world *w = *state;
    struct hd_room_mark mark;
    struct hd_room_rec room;
    size_t runs;

    copy_room(w, 1);
    assert_copied(w, " 1:m1=\"@clerk one\"");
    room = read_copied(w, &mark, &runs);
    assert_int_equal(runs + w->copy.head_count, 0);
    assert_int_equal(mark.seq, 0);
    assert_int_equal(room.last_seq, 1);
}

/* m7 regenerates m2, which is stale now. */
static void a_regenerated_answer_takes_the_place_of_the_first(void **state)
{
    struct world *w = *state;
    const struct room_line line = {"m7",      HD_ROOM_AGENT, ROOM_AGENT, HD_ROOM_OK,
                                   "\"new\"", "m1",          "r3",       ""};
    struct hd_room_message_rec message;
    struct hd_batch_builder batch;
    struct hd_room_rec room;

    hd_batch_init(&batch);
    room_add_line(&batch, 7, &line);
    assert_err(hd_room_read(w->store, ROOM_OWNER, ROOM_THREAD, &w->arena, &room, &w->fault), 0);
    room.last_seq = 7;
    assert_err(hd_room_put(&batch, &room), 0);
    room_apply(w->store, &batch);

    hd_batch_init(&batch);
    assert_err(hd_room_message_read(w->store, ROOM_OWNER, ROOM_THREAD, HD_S("m2"), &w->arena,
                                    &message, &w->fault),
               0);
    message.state = HD_ROOM_STALE;
    message.replaced_by = HD_S("m7");
    assert_err(hd_room_message_put(&batch, &message), 0);
    assert_err(hd_room_message_read(w->store, ROOM_OWNER, ROOM_THREAD, HD_S("m7"), &w->arena,
                                    &message, &w->fault),
               0);
    message.replaces = HD_S("m2");
    message.checkpoint_id = HD_S("c7");
    assert_err(hd_room_message_put(&batch, &message), 0);
    room_apply(w->store, &batch);

    copy_room(w, 3);
    assert_copied(w, " 1:m1=\"@clerk one\" 3:m3=\"three @ada\" 7:m7=\"new\"");
    assert_int_equal(w->copy.head_count, 1);
    assert_slice(w->copy.heads[0]->checkpoint_id, HD_S("c7"));
    assert_err(hd_room_message_read(w->store, HD_S("eve"), HD_S("new"), HD_S("m3"), &w->arena,
                                    &message, &w->fault),
               0);
    assert_int_equal(message.reply_to.len, 0); /* m2 is not there */
}

static void add_question(struct hd_batch_builder *batch, int64_t seq, struct hd_room_run_rec run)
{
    const struct room_line line = {run.answer.ptr, HD_ROOM_AGENT, ROOM_AGENT,     HD_ROOM_PENDING,
                                   "\"which?\"",   "m1",          run.run_id.ptr, ""};

    run.principal = ROOM_OWNER;
    run.thread_id = ROOM_THREAD;
    run.assistant_id = ROOM_AGENT;
    run.trigger = HD_S("m1");
    room_add_line(batch, seq, &line);
    assert_err(hd_room_run_put(batch, &run), 0);
}

static enum hd_room_state copied_state(struct world *w, struct hd_slice id)
{
    struct hd_room_message_rec message;

    assert_err(hd_room_message_read(w->store, HD_S("eve"), HD_S("new"), id, &w->arena, &message,
                                    &w->fault),
               0);
    return message.state;
}

/* m7 is the question of a line, m8 that of a cascade, m9 that of a plain run; both have no line. */
static void the_question_of_a_cascade_is_stale_in_a_copy(void **state)
{
    struct world *w = *state;
    struct hd_room_message_rec message;
    struct hd_batch_builder batch;
    struct hd_room_rec room;

    hd_batch_init(&batch);
    add_question(&batch, 7, (struct hd_room_run_rec){.run_id = HD_S("r7"), .answer = HD_S("m7")});
    add_question(&batch, 8,
                 (struct hd_room_run_rec){
                     .run_id = HD_S("r8"), .answer = HD_S("m8"), .cascade = HD_S("k1")});
    add_question(&batch, 9, (struct hd_room_run_rec){.run_id = HD_S("r9"), .answer = HD_S("m9")});
    assert_err(hd_room_read(w->store, ROOM_OWNER, ROOM_THREAD, &w->arena, &room, &w->fault), 0);
    room.last_seq = 9;
    assert_err(hd_room_put(&batch, &room), 0);
    room_apply(w->store, &batch);
    hd_batch_init(&batch);
    for (size_t i = 8; i <= 9; i++) {
        assert_err(hd_room_message_read(w->store, ROOM_OWNER, ROOM_THREAD,
                                        i == 8 ? HD_S("m8") : HD_S("m9"), &w->arena, &message,
                                        &w->fault),
                   0);
        message.ns = HD_S("");
        assert_err(hd_room_message_put(&batch, &message), 0);
    }
    room_apply(w->store, &batch);

    copy_room(w, 0);
    assert_int_equal(copied_state(w, HD_S("m7")), HD_ROOM_PENDING);
    assert_int_equal(copied_state(w, HD_S("m8")), HD_ROOM_STALE);
    assert_int_equal(copied_state(w, HD_S("m9")), HD_ROOM_PENDING);
}

static void a_thread_without_a_room_has_no_copy(void **state)
{
    struct world *w = *state;

    hd_room_copy_fini(&w->copy);
    assert_err(
        hd_room_copy_read(w->store, ROOM_OWNER, HD_S("other"), 0, &w->arena, &w->copy, &w->fault),
        HD_ENOTFOUND);
}

int main(void)
{
#define BOTH(function)                                                   \
    cmocka_unit_test_setup_teardown(function, open_memory, close_world), \
    {                                                                    \
        "sqlite " #function, function, open_sqlite, close_world, NULL    \
    }
    const struct CMUnitTest tests[] = {
        BOTH(a_copy_has_the_chat_in_its_current_versions),
        BOTH(a_branch_ends_at_its_message),
        BOTH(a_branch_before_the_first_answer_has_no_lines),
        BOTH(a_regenerated_answer_takes_the_place_of_the_first),
        BOTH(the_question_of_a_cascade_is_stale_in_a_copy),
        BOTH(a_thread_without_a_room_has_no_copy),
    };
#undef BOTH

    return cmocka_run_group_tests(tests, NULL, NULL);
}
