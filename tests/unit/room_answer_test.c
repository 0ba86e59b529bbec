/* What the end of a run adds to a room. Runs are executed, with records of a room around them. */
#include "run/room/room_answer.h"

#include <string.h>

#define APP_GRAPH                                                                          \
    "{\"name\":\"line\","                                                                  \
    "\"state\":{\"messages\":{\"reducer\":\"messages\"},\"mode\":{}},"                     \
    "\"nodes\":{"                                                                          \
    "\"choose\":{\"kind\":\"branch\",\"routes\":["                                         \
    "{\"when\":{\"@eq\":[\"{{mode}}\",\"ask\"]},\"to\":\"introduce\"},"                    \
    "{\"when\":{\"@eq\":[\"{{mode}}\",\"fail\"]},\"to\":\"fail\"},"                        \
    "{\"when\":{\"@eq\":[\"{{mode}}\",\"sleep\"]},\"to\":\"sleep\"},"                      \
    "{\"when\":{\"@eq\":[\"{{mode}}\",\"silent\"]},\"to\":\"silent\"},"                    \
    "{\"to\":\"say\"}]},"                                                                  \
    "\"say\":{\"kind\":\"set\",\"update\":{\"messages\":["                                 \
    "{\"@ai\":{\"content\":\"first\",\"id\":\"{{mode}}-1\"}},"                             \
    "{\"@ai\":{\"content\":\"second\",\"id\":\"{{mode}}-2\"}},"                            \
    "{\"@ai\":{\"content\":\"\",\"id\":\"{{mode}}-3\"}}]}},"                               \
    "\"introduce\":{\"kind\":\"set\",\"update\":{\"messages\":[{\"@ai\":\"may I?\"}]}},"   \
    "\"ask\":{\"kind\":\"interrupt\",\"ask\":[\"yes or no\"],"                             \
    "\"update\":{\"messages\":[{\"@ai\":\"you said {{answers[0]}}\"}]}},"                  \
    "\"silent\":{\"kind\":\"set\",\"update\":{\"mode\":\"done\"}},"                        \
    "\"sleep\":{\"kind\":\"sleep\",\"ms\":60000},"                                         \
    "\"fail\":{\"kind\":\"fail\",\"error\":\"it broke\"}},"                                \
    "\"edges\":[[\"__start__\",\"choose\"],[\"say\",\"__end__\"],[\"introduce\",\"ask\"]," \
    "[\"ask\",\"__end__\"],[\"silent\",\"__end__\"],[\"sleep\",\"__end__\"],"              \
    "[\"fail\",\"__end__\"]]}"

#include "base/json.h"
#include "events/event_log.h"
#include "records/stream_modes.h"
#include "run/admit.h"
#include "tests/unit/app_world.h"

#define THREAD HD_S("00000000-0000-4000-8000-00000000000a")
#define TRIGGER HD_S("trigger")
#define ANSWER HD_S("answer")
#define MODE(mode) "{\"assistant_id\":\"line\",\"input\":{\"mode\":\"" mode "\"}}"
#define RESUME "{\"assistant_id\":\"line\",\"command\":{\"resume\":\"no\"}}"

struct fixture {
    struct app_world *w;
    struct hd_cursor cursor; /* of the room's events */
    struct hd_slice cron_id; /* that makes the runs; or empty */
};

static struct hd_room_rec read_room(struct fixture *f)
{
    struct hd_room_rec room;

    assert_err(hd_room_read(f->w->app.store, NOBODY, THREAD, &f->w->arena, &room, &f->w->fault), 0);
    return room;
}

static int find_message(struct fixture *f, struct hd_slice id, struct hd_room_message_rec *out)
{
    return hd_room_message_read(f->w->app.store, NOBODY, THREAD, id, &f->w->arena, out,
                                &f->w->fault);
}

static struct hd_room_message_rec read_message(struct fixture *f, struct hd_slice id)
{
    struct hd_room_message_rec message;

    assert_err(find_message(f, id, &message), 0);
    return message;
}

/* Without bytes: it has none. */
static struct hd_slice read_content(struct fixture *f, struct hd_slice id)
{
    struct hd_room_content_rec content;
    int err = hd_room_content_read(f->w->app.store, NOBODY, THREAD, id, 1, &f->w->arena, &content,
                                   &f->w->fault);

    if (err == HD_ENOTFOUND)
        return hd_slice("", 0);
    assert_err(err, 0);
    return content.content;
}

static struct hd_room_run_rec read_room_run(struct fixture *f, struct hd_slice run_id)
{
    struct hd_room_run_rec run;

    assert_err(
        hd_room_run_read(f->w->app.store, NOBODY, THREAD, run_id, &f->w->arena, &run, &f->w->fault),
        0);
    return run;
}

/* A thread that is a room without messages. */
static void make_room(struct fixture *f)
{
    struct hd_thread_rec thread;
    struct hd_room_rec room;
    struct hd_batch_builder batch;

    hd_thread_init(&thread, NOBODY, THREAD);
    thread.created_at = 5;
    thread.is_room = true;
    hd_room_init(&room, NOBODY, THREAD);
    hd_batch_init(&batch);
    assert_err(hd_thread_add(&batch, &thread), 0);
    assert_err(hd_room_put(&batch, &room), 0);
    assert_err(world_apply(f->w, &batch), 0);
}

/* The names of the room's events and of the ends of runs since the last call, in order. */
static void read_events(struct fixture *f, const char *names)
{
    char seen[256] = "";
    const struct hd_entry *entry;

    while ((entry = hd_cursor_peek(&f->cursor))) {
        struct hd_slice name = hd_entry_name(entry);

        if (hd_slice_starts(name, HD_S("room/")) || hd_slice_eq(name, HD_S("end")))
            snprintf(seen + strlen(seen), sizeof(seen) - strlen(seen), "%s%.*s", seen[0] ? " " : "",
                     (int)name.len, name.ptr);
        hd_cursor_advance(&f->cursor);
    }
    assert_string_equal(seen, names);
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    assert_non_null(f);
    f->w = world_open("memory:", NULL);
    make_room(f);
    f->cursor.modes = HD_MODE_ROOM;
    hd_cursor_open(&f->cursor, hd_event_log_get(f->w->app.event_logs, NOBODY, THREAD, 0),
                   HD_FROM_NOW);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    hd_cursor_close(&f->cursor);
    world_close(f->w);
    free(f);
    return 0;
}

/* ---- runs -------------------------------------------------------------- */

/* The run is made by a message, and makes the message `answer`. */
static void connect_run(struct fixture *f, const struct hd_run_rec *run, struct hd_slice answer)
{
    const struct hd_room_run_rec rec = {.principal = NOBODY,
                                        .thread_id = THREAD,
                                        .run_id = run->run_id,
                                        .trigger = TRIGGER,
                                        .answer = answer,
                                        .assistant_id = run->assistant_id,
                                        .graph_id = HD_S("line"),
                                        .ns = run->ns};
    const struct hd_room_id_rec id = {
        .principal = NOBODY, .thread_id = THREAD, .message_id = answer};
    struct hd_batch_builder batch;

    hd_batch_init(&batch);
    assert_err(hd_room_run_put(&batch, &rec), 0);
    assert_err(hd_room_id_add(&batch, &id), 0);
    assert_err(world_apply(f->w, &batch), 0);
}

/* `answer` empty: a plain run. */
static struct hd_admission admit_run(struct fixture *f, const char *body, struct hd_slice fork,
                                     struct hd_slice answer)
{
    struct app_world *w = f->w;
    struct hd_run_request request;
    struct hd_json json = {NULL};
    struct hd_admission a = {.app = &w->app,
                             .arena = &w->arena,
                             .request = &request,
                             .thread_id = THREAD,
                             .cron_id = f->cron_id,
                             .is_off_head = fork.len > 0 && answer.len > 0};

    assert_err(hd_json_parse(&json, hd_slice_cstr(body), &w->fault), 0);
    assert_err(hd_run_request_read(&request, hd_json_root(&json), &w->fault), 0);
    request.checkpoint_id = fork;
    assert_err(hd_admit(&a, &w->fault), 0);
    assert_int_equal(a.refusal, 0);
    hd_json_fini(&json);
    if (answer.len > 0)
        connect_run(f, &a.run, answer);
    return a;
}

static struct hd_admission start_run(struct fixture *f, const char *body, struct hd_slice fork,
                                     struct hd_slice answer)
{
    struct hd_admission a = admit_run(f, body, fork, answer);

    assert_err(hd_queue_add(f->w->app.queue, &a.run, a.event_seq, false), 0);
    return a;
}

static void wait_until_ended(struct fixture *f, uint64_t wanted)
{
    int64_t deadline = hd_clock_monotonic_us() + 60 * INT64_C(1000000);

    while (hd_queue_counts(f->w->app.queue).ended < wanted && hd_clock_monotonic_us() < deadline)
        uv_run(&f->w->loop, UV_RUN_ONCE);
    assert_int_equal(hd_queue_counts(f->w->app.queue).ended, wanted);
}

/* Executes a run; returns its id. */
static struct hd_slice run_as(struct fixture *f, const char *body, struct hd_slice fork,
                              struct hd_slice answer)
{
    uint64_t ended = hd_queue_counts(f->w->app.queue).ended;
    struct hd_admission a = start_run(f, body, fork, answer);

    wait_until_ended(f, ended + 1);
    return a.run.run_id;
}

/* ---- tests ------------------------------------------------------------- */

static void the_last_message_of_a_run_is_its_answer(void **state)
{
    struct fixture *f = *state;
    struct hd_slice run_id = run_as(f, MODE("one"), hd_slice(NULL, 0), ANSWER);
    struct hd_room_message_rec answer = read_message(f, ANSWER);
    struct hd_room_run_rec run = read_room_run(f, run_id);

    assert_int_equal(answer.seq, 1);
    assert_int_equal(read_room(f).last_seq, 1);
    assert_int_equal(answer.state, HD_ROOM_OK);
    assert_int_equal(answer.kind, HD_ROOM_AGENT);
    assert_slice(answer.sender, hd_slice_cstr(f->w->graph.assistant_id));
    assert_slice(answer.sender_name, HD_S("line"));
    assert_slice(answer.reply_to, TRIGGER);
    assert_slice(answer.run_id, run_id);
    assert_slice(answer.source_id, HD_S("one-2"));
    assert_int_equal(answer.error.len, 0);
    assert_slice(read_content(f, ANSWER), HD_S("\"second\""));
    assert_true(run.head_after.len > 0);
    assert_slice(run.head_after, answer.checkpoint_id);
    assert_int_equal(run.head_before.len, 0);
    read_events(f, "room/message room/run end");
}

static void the_next_run_begins_where_the_last_one_ended(void **state)
{
    struct fixture *f = *state;
    struct hd_slice one = run_as(f, MODE("one"), hd_slice(NULL, 0), ANSWER);
    struct hd_slice two = run_as(f, MODE("two"), hd_slice(NULL, 0), HD_S("answer 2"));

    assert_slice(read_room_run(f, two).head_before, read_room_run(f, one).head_after);
    assert_int_equal(read_message(f, HD_S("answer 2")).seq, 2);
    assert_slice(read_message(f, HD_S("answer 2")).source_id, HD_S("two-2"));
}

static void a_run_that_says_nothing_leaves_the_reason(void **state)
{
    struct fixture *f = *state;
    struct hd_room_message_rec answer;

    (void)run_as(f, MODE("one"), hd_slice(NULL, 0), ANSWER);
    (void)run_as(f, MODE("silent"), hd_slice(NULL, 0), HD_S("none"));
    answer = read_message(f, HD_S("none"));
    assert_int_equal(answer.state, HD_ROOM_OK);
    assert_slice(answer.error, HD_S(HD_ROOM_SILENT));
    assert_int_equal(read_content(f, HD_S("none")).len, 0);
}

static void a_failed_run_leaves_its_error(void **state)
{
    struct fixture *f = *state;
    struct hd_room_message_rec answer;

    (void)run_as(f, MODE("fail"), hd_slice(NULL, 0), ANSWER);
    answer = read_message(f, ANSWER);
    assert_int_equal(answer.state, HD_ROOM_ERROR);
    assert_non_null(memmem(answer.error.ptr, answer.error.len, "it broke", 8));
    assert_int_equal(read_content(f, ANSWER).len, 0);
    read_events(f, "room/message room/run end");
}

static void a_cancelled_run_leaves_a_stopped_message(void **state)
{
    struct fixture *f = *state;
    struct hd_admission a = start_run(f, MODE("sleep"), hd_slice(NULL, 0), ANSWER);

    assert_true(
        hd_queue_cancel(f->w->app.queue, NOBODY, THREAD, a.run.run_id, HD_CANCEL_INTERRUPT));
    wait_until_ended(f, 1);
    assert_int_equal(read_message(f, ANSWER).state, HD_ROOM_STOPPED);
}

static void a_run_that_is_rolled_back_leaves_nothing(void **state)
{
    struct fixture *f = *state;
    struct hd_admission a = start_run(f, MODE("sleep"), hd_slice(NULL, 0), ANSWER);
    struct hd_room_message_rec message;
    struct hd_room_run_rec run;
    struct hd_room_id_rec id;

    assert_true(hd_queue_cancel(f->w->app.queue, NOBODY, THREAD, a.run.run_id, HD_CANCEL_ROLLBACK));
    wait_until_ended(f, 1);
    assert_err(find_message(f, ANSWER, &message), HD_ENOTFOUND);
    assert_err(hd_room_run_read(f->w->app.store, NOBODY, THREAD, a.run.run_id, &f->w->arena, &run,
                                &f->w->fault),
               HD_ENOTFOUND);
    assert_err(
        hd_room_id_read(f->w->app.store, NOBODY, THREAD, ANSWER, &f->w->arena, &id, &f->w->fault),
        HD_ENOTFOUND);
    assert_int_equal(read_room(f).last_seq, 0);
    read_events(f, "room/run end");
}

/* The run was given the message 3 of the room: its line has everything up to message 5. */
static void give_message(struct fixture *f, const struct hd_run_rec *run)
{
    const struct hd_room_message_rec message = {.principal = NOBODY,
                                                .thread_id = THREAD,
                                                .seq = 3,
                                                .id = HD_S("m3"),
                                                .version = 1,
                                                .created_at = 1,
                                                .kind = HD_ROOM_PERSON};
    const struct hd_room_id_rec id = {
        .principal = NOBODY, .thread_id = THREAD, .message_id = message.id, .seq = 3};
    struct hd_room_run_rec rec = read_room_run(f, run->run_id);
    struct hd_room_rec room = read_room(f);
    struct hd_batch_builder batch;

    rec.given = HD_S("[[\"m3\",1],[\"gone\",1]]");
    room.last_seq = 5;
    assert_err(hd_room_mark_set(&room, rec.ns, (struct hd_room_mark){.seq = 5, .changes = 4},
                                &f->w->arena),
               0);
    hd_batch_init(&batch);
    assert_err(hd_room_put(&batch, &room), 0);
    assert_err(hd_room_run_put(&batch, &rec), 0);
    assert_err(hd_room_id_add(&batch, &id), 0);
    assert_err(hd_room_message_add(&batch, &message), 0);
    assert_err(world_apply(f->w, &batch), 0);
}

static void check_mark(struct fixture *f, struct hd_slice ns, int64_t seq, int64_t changes)
{
    struct hd_room_rec room = read_room(f);
    struct hd_room_mark mark;

    assert_err(hd_room_mark_get(&room, ns, &mark, NULL), 0);
    assert_int_equal(mark.seq, seq);
    assert_int_equal(mark.changes, changes);
}

static void a_run_that_is_rolled_back_gives_its_messages_back(void **state)
{
    struct fixture *f = *state;
    struct hd_admission a = start_run(f, MODE("sleep"), hd_slice(NULL, 0), ANSWER);

    give_message(f, &a.run);
    assert_true(hd_queue_cancel(f->w->app.queue, NOBODY, THREAD, a.run.run_id, HD_CANCEL_ROLLBACK));
    wait_until_ended(f, 1);
    check_mark(f, a.run.ns, 2, 0);
}

static void a_run_that_never_began_gives_its_messages_back(void **state)
{
    struct fixture *f = *state;
    struct hd_admission first = start_run(f, MODE("sleep"), hd_slice(NULL, 0), hd_slice(NULL, 0));
    struct hd_admission next = start_run(f, MODE("one"), hd_slice(NULL, 0), ANSWER);

    give_message(f, &next.run);
    assert_true(
        hd_queue_cancel(f->w->app.queue, NOBODY, THREAD, next.run.run_id, HD_CANCEL_INTERRUPT));
    wait_until_ended(f, 1);
    check_mark(f, next.run.ns, 2, 0);
    assert_true(
        hd_queue_cancel(f->w->app.queue, NOBODY, THREAD, first.run.run_id, HD_CANCEL_INTERRUPT));
    wait_until_ended(f, 2);
}

static void a_run_that_has_begun_keeps_its_messages(void **state)
{
    struct fixture *f = *state;
    struct hd_admission a = admit_run(f, MODE("fail"), hd_slice(NULL, 0), ANSWER);

    give_message(f, &a.run);
    assert_err(hd_queue_add(f->w->app.queue, &a.run, a.event_seq, false), 0);
    wait_until_ended(f, 1);
    check_mark(f, a.run.ns, 5, 4);
}

static void a_question_waits_until_the_line_goes_on(void **state)
{
    struct fixture *f = *state;
    struct hd_room_message_rec question;

    (void)run_as(f, MODE("ask"), hd_slice(NULL, 0), HD_S("question"));
    question = read_message(f, HD_S("question"));
    assert_int_equal(question.state, HD_ROOM_PENDING);
    assert_non_null(memmem(question.interrupts.ptr, question.interrupts.len, "yes or no", 9));
    assert_slice(read_content(f, HD_S("question")), HD_S("\"may I?\""));
    read_events(f, "room/message room/run end");
    (void)run_as(f, RESUME, hd_slice(NULL, 0), ANSWER);
    question = read_message(f, HD_S("question"));
    assert_int_equal(question.state, HD_ROOM_OK);
    assert_int_equal(question.changed, 1);
    assert_int_equal(read_room(f).changes, 1);
    assert_slice(read_content(f, ANSWER), HD_S("\"you said no\""));
    assert_int_equal(read_message(f, ANSWER).seq, 2);
    read_events(f, "room/message room/message room/run end");
}

static void a_run_off_the_head_posts_nothing(void **state)
{
    struct fixture *f = *state;
    struct hd_slice one = run_as(f, MODE("one"), hd_slice(NULL, 0), ANSWER);
    struct hd_slice fork = read_room_run(f, one).head_after, branch;
    struct hd_room_message_rec message;
    struct hd_room_said said;

    (void)run_as(f, MODE("two"), hd_slice(NULL, 0), HD_S("answer 2"));
    read_events(f, "room/message room/run end room/message room/run end");
    branch = run_as(f, MODE("three"), fork, HD_S("answer 3"));
    assert_err(find_message(f, HD_S("answer 3"), &message), HD_ENOTFOUND);
    assert_int_equal(read_room(f).last_seq, 2);
    read_events(f, "room/run end");
    {
        struct hd_room_run_rec run = read_room_run(f, branch);
        const struct hd_room_said_place place = {.thread_id = THREAD,
                                                 .ns = run.ns,
                                                 .graph_id = HD_S("line"),
                                                 .before = run.head_before,
                                                 .after = run.head_after};

        assert_slice(run.head_before, fork);
        assert_err(hd_room_answer_find(&f->w->app, &place, &f->w->arena, &said, &f->w->fault), 0);
        assert_slice(said.content, HD_S("\"second\""));
        assert_slice(said.source_id, HD_S("three-2"));
    }
}

static void a_run_that_is_given_up_leaves_its_error(void **state)
{
    struct fixture *f = *state;
    struct hd_admission a = admit_run(f, MODE("one"), hd_slice(NULL, 0), ANSWER);
    struct hd_room_message_rec answer;

    a.run.status = HD_RUN_STATE_RUNNING;
    for (int i = 1; i < HD_MAX_LOSSES; i++)
        assert_err(hd_run_losses_add(&a.run.losses, f->w->app.store, NOBODY, THREAD, a.run.run_id,
                                     &f->w->fault),
                   0);
    APPLY(f->w, hd_run_put(&batch, &a.run));
    assert_err(hd_queue_recover(f->w->app.queue, &f->w->fault), 0);
    answer = read_message(f, ANSWER);
    assert_int_equal(answer.state, HD_ROOM_ERROR);
    assert_non_null(memmem(answer.error.ptr, answer.error.len, "died three times", 16));
    hd_queue_unexpect(f->w->app.queue, NOBODY, a.run.run_id);
}

/* The id of the answer, empty without one, when `trigger` is the message that the run added. */
static struct hd_slice find_behind(struct fixture *f, struct hd_slice run_id,
                                   struct hd_slice trigger)
{
    const struct hd_room_run_rec run = read_room_run(f, run_id);
    const struct hd_room_said_place place = {.thread_id = THREAD,
                                             .ns = run.ns,
                                             .graph_id = HD_S("line"),
                                             .before = run.head_before,
                                             .after = run.head_after,
                                             .trigger = trigger};
    struct hd_room_said said;

    assert_err(hd_room_answer_find(&f->w->app, &place, &f->w->arena, &said, &f->w->fault), 0);
    return said.source_id;
}

static void the_answer_is_behind_the_trigger(void **state)
{
    struct fixture *f = *state;
    struct hd_slice two;

    (void)run_as(f, MODE("one"), hd_slice(NULL, 0), ANSWER);
    two = run_as(f, MODE("two"), hd_slice(NULL, 0), HD_S("answer 2"));
    assert_slice(find_behind(f, two, HD_S("two-1")), HD_S("two-2"));
    assert_int_equal(find_behind(f, two, HD_S("two-2")).len, 0);
    /* A message that was there before, and one that is not there: the states are compared. */
    assert_slice(find_behind(f, two, HD_S("one-2")), HD_S("two-2"));
    assert_slice(find_behind(f, two, HD_S("nothing")), HD_S("two-2"));
}

/* ---- plain runs -------------------------------------------------------- */

#define PLAIN(mode, messages) \
    "{\"assistant_id\":\"line\",\"input\":{\"mode\":\"" mode "\",\"messages\":" messages "}}"
#define HELLO(id) "[{\"role\":\"user\",\"content\":\"hello\",\"id\":\"" id "\"}]"

/* Returns the id of the answer of a plain run. */
static struct hd_slice run_plain(struct fixture *f, const char *body, struct hd_slice fork)
{
    return read_room_run(f, run_as(f, body, fork, hd_slice(NULL, 0))).answer;
}

static void a_plain_run_is_a_turn_of_the_chat(void **state)
{
    struct fixture *f = *state;
    struct hd_slice id = run_plain(f, PLAIN("one", HELLO("h1")), hd_slice(NULL, 0));
    struct hd_room_message_rec human = read_message(f, HD_S("h1")), answer = read_message(f, id);
    struct hd_room_run_rec run = read_room_run(f, answer.run_id);
    struct hd_room_rec room = read_room(f);
    struct hd_room_mark mark;

    assert_int_equal(human.seq, 1);
    assert_int_equal(human.kind, HD_ROOM_PERSON);
    assert_slice(human.sender_id, HD_S("user"));
    assert_slice(read_content(f, HD_S("h1")), HD_S("\"hello\""));
    assert_int_equal(answer.seq, 2);
    assert_slice(answer.reply_to, HD_S("h1"));
    assert_slice(read_content(f, id), HD_S("\"second\""));
    assert_int_equal(run.trigger.len, 0);
    assert_slice(run.given, HD_S("[[\"h1\",1]]"));
    assert_err(hd_room_mark_get(&room, run.ns, &mark, NULL), 0);
    assert_int_equal(mark.seq, 2);
    read_events(f, "room/message room/message room/run end");
}

static void a_cron_speaks_as_a_service(void **state)
{
    struct fixture *f = *state;
    struct hd_room_message_rec human;

    f->cron_id = HD_S("nightly");
    (void)run_plain(f, PLAIN("one", HELLO("h1")), hd_slice(NULL, 0));
    human = read_message(f, HD_S("h1"));
    assert_int_equal(human.kind, HD_ROOM_SERVICE);
    assert_slice(human.sender_id, HD_S("nightly"));
    assert_slice(human.sender_name, HD_S("cron"));
}

static void what_the_line_had_is_not_posted_again(void **state)
{
    struct fixture *f = *state;

    (void)run_plain(f, PLAIN("one", HELLO("h1")), hd_slice(NULL, 0));
    (void)run_plain(f,
                    PLAIN("two", "[{\"role\":\"user\",\"content\":\"hello\",\"id\":\"h1\"},"
                                 "\"more\"]"),
                    hd_slice(NULL, 0));
    assert_int_equal(read_room(f).last_seq, 4);
    assert_int_equal(read_message(f, HD_S("h1")).version, 1);
}

/* Writes a plain run with `count` messages h0, h1, … into `body`. */
static void write_long_input(char *body, size_t size, int count)
{
    size_t at = (size_t)snprintf(body, size, "%s",
                                 "{\"assistant_id\":\"line\",\"input\":{\"mode\":\"one\","
                                 "\"messages\":[");

    for (int i = 0; i < count; i++)
        at += (size_t)snprintf(body + at, size - at,
                               "%s{\"role\":\"user\",\"content\":\"hello\",\"id\":\"h%d\"}",
                               i > 0 ? "," : "", i);
    snprintf(body + at, size - at, "]}}");
}

static void of_a_long_input_the_newest_messages_are_posted(void **state)
{
    struct fixture *f = *state;
    struct hd_room_message_rec message;
    char body[8192];

    write_long_input(body, sizeof(body), 66);
    assert_int_equal(read_message(f, run_plain(f, body, hd_slice(NULL, 0))).seq, 65);
    assert_err(find_message(f, HD_S("h1"), &message), HD_ENOTFOUND);
    assert_int_equal(read_message(f, HD_S("h2")).seq, 1);
    assert_int_equal(read_message(f, HD_S("h65")).seq, 64);
}

/* Its lists of messages are joined, without a look at their ids. */
static const char adding_graph[] =
    "{\"name\":\"line\",\"state\":{\"messages\":{\"type\":\"list\",\"reducer\":\"add\"}},"
    "\"nodes\":{\"say\":{\"kind\":\"set\",\"update\":{\"messages\":[{\"@ai\":\"yes\"}]}}},"
    "\"edges\":[[\"__start__\",\"say\"],[\"say\",\"__end__\"]]}";

static void a_message_that_is_twice_in_a_list_is_posted_once(void **state)
{
    struct fixture *f = *state;
    struct hd_graph_error error;
    struct hd_slice id;

    hd_graph_destroy(f->w->graph.graph);
    assert_err(hd_graph_read(hd_slice_cstr(adding_graph), &f->w->graph.graph, &error), 0);
    id = run_plain(f,
                   "{\"assistant_id\":\"line\",\"input\":{\"messages\":["
                   "{\"type\":\"human\",\"content\":\"hello\",\"id\":\"h1\"},"
                   "{\"type\":\"human\",\"content\":\"hello\",\"id\":\"h1\"}]}}",
                   hd_slice(NULL, 0));
    assert_int_equal(read_message(f, HD_S("h1")).seq, 1);
    assert_int_equal(read_message(f, id).seq, 2);
}

static void a_message_that_is_sent_again_changed_is_a_new_version(void **state)
{
    struct fixture *f = *state;
    struct hd_room_message_rec human;
    struct hd_room_content_rec content;

    (void)run_plain(f, PLAIN("one", HELLO("h1")), hd_slice(NULL, 0));
    (void)run_plain(f, PLAIN("two", "[{\"role\":\"user\",\"content\":\"hi\",\"id\":\"h1\"}]"),
                    hd_slice(NULL, 0));
    human = read_message(f, HD_S("h1"));
    assert_int_equal(human.version, 2);
    assert_int_equal(human.changed, 1);
    assert_err(hd_room_content_read(f->w->app.store, NOBODY, THREAD, HD_S("h1"), 2, &f->w->arena,
                                    &content, &f->w->fault),
               0);
    assert_slice(content.content, HD_S("\"hi\""));
}

static void a_message_that_is_too_large_for_the_room_is_left_out(void **state)
{
    static const char head[] = "{\"assistant_id\":\"line\",\"input\":{\"mode\":\"one\","
                               "\"messages\":[{\"role\":\"user\",\"content\":\"";
    static const char tail[] = "\"}]}}";
    struct fixture *f = *state;
    size_t size = HD_ROOM_MAX_CONTENT + 1;
    char *body = malloc(sizeof(head) + size + sizeof(tail));

    assert_non_null(body);
    memcpy(body, head, sizeof(head) - 1);
    memset(body + sizeof(head) - 1, 'x', size);
    memcpy(body + sizeof(head) - 1 + size, tail, sizeof(tail));
    assert_int_equal(read_message(f, run_plain(f, body, hd_slice(NULL, 0))).seq, 1);
    free(body);
}

static void an_answer_in_the_input_is_not_the_answer(void **state)
{
    struct fixture *f = *state;
    struct hd_slice id =
        run_plain(f, PLAIN("silent", "[\"hello\",{\"role\":\"ai\",\"content\":\"hello you\"}]"),
                  hd_slice(NULL, 0));

    assert_slice(read_message(f, id).error, HD_S(HD_ROOM_SILENT));
    assert_int_equal(read_content(f, id).len, 0);
    assert_int_equal(read_room(f).last_seq, 2);
}

static void a_fork_makes_the_later_turns_stale(void **state)
{
    struct fixture *f = *state;
    struct hd_slice one = run_plain(f, PLAIN("one", HELLO("h1")), hd_slice(NULL, 0));
    struct hd_slice two = run_plain(f, PLAIN("two", HELLO("h2")), hd_slice(NULL, 0));
    struct hd_slice fork = read_message(f, one).checkpoint_id;
    struct hd_slice other = run_plain(f, PLAIN("three", HELLO("h3")), fork);

    assert_int_equal(read_message(f, HD_S("h1")).state, HD_ROOM_OK);
    assert_int_equal(read_message(f, one).state, HD_ROOM_OK);
    assert_int_equal(read_message(f, HD_S("h2")).state, HD_ROOM_STALE);
    assert_slice(read_message(f, HD_S("h2")).replaced_by, HD_S("h3"));
    assert_int_equal(read_message(f, two).state, HD_ROOM_STALE);
    assert_slice(read_message(f, two).replaced_by, other);
    assert_int_equal(read_message(f, other).state, HD_ROOM_OK);
    assert_slice(read_message(f, other).replaces, two);
    /* A turn at the new head leaves all of them as they are. */
    (void)run_plain(f, PLAIN("four", HELLO("h4")), hd_slice(NULL, 0));
    assert_int_equal(read_message(f, other).state, HD_ROOM_OK);
    assert_int_equal(read_room(f).last_seq, 8);
}

static void a_plain_answer_settles_a_question(void **state)
{
    struct fixture *f = *state;
    struct hd_slice question = run_plain(f, MODE("ask"), hd_slice(NULL, 0)), answer;

    assert_int_equal(read_message(f, question).state, HD_ROOM_PENDING);
    answer = run_plain(f, RESUME, hd_slice(NULL, 0));
    assert_int_equal(read_message(f, question).state, HD_ROOM_OK);
    assert_slice(read_content(f, answer), HD_S("\"you said no\""));
}

static void a_plain_run_that_is_rolled_back_leaves_nothing(void **state)
{
    struct fixture *f = *state;
    struct hd_admission a =
        start_run(f, PLAIN("sleep", HELLO("h1")), hd_slice(NULL, 0), hd_slice(NULL, 0));

    assert_true(hd_queue_cancel(f->w->app.queue, NOBODY, THREAD, a.run.run_id, HD_CANCEL_ROLLBACK));
    wait_until_ended(f, 1);
    assert_int_equal(read_room(f).last_seq, 0);
    read_events(f, "end");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_last_message_of_a_run_is_its_answer, setup, teardown),
        cmocka_unit_test_setup_teardown(the_next_run_begins_where_the_last_one_ended, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_run_that_says_nothing_leaves_the_reason, setup, teardown),
        cmocka_unit_test_setup_teardown(a_failed_run_leaves_its_error, setup, teardown),
        cmocka_unit_test_setup_teardown(a_cancelled_run_leaves_a_stopped_message, setup, teardown),
        cmocka_unit_test_setup_teardown(a_run_that_is_rolled_back_leaves_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(a_run_that_is_rolled_back_gives_its_messages_back, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_run_that_never_began_gives_its_messages_back, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_run_that_has_begun_keeps_its_messages, setup, teardown),
        cmocka_unit_test_setup_teardown(a_question_waits_until_the_line_goes_on, setup, teardown),
        cmocka_unit_test_setup_teardown(a_run_off_the_head_posts_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(a_run_that_is_given_up_leaves_its_error, setup, teardown),
        cmocka_unit_test_setup_teardown(the_answer_is_behind_the_trigger, setup, teardown),
        cmocka_unit_test_setup_teardown(a_plain_run_is_a_turn_of_the_chat, setup, teardown),
        cmocka_unit_test_setup_teardown(a_cron_speaks_as_a_service, setup, teardown),
        cmocka_unit_test_setup_teardown(what_the_line_had_is_not_posted_again, setup, teardown),
        cmocka_unit_test_setup_teardown(of_a_long_input_the_newest_messages_are_posted, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_message_that_is_twice_in_a_list_is_posted_once, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_message_that_is_sent_again_changed_is_a_new_version,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(a_message_that_is_too_large_for_the_room_is_left_out, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(an_answer_in_the_input_is_not_the_answer, setup, teardown),
        cmocka_unit_test_setup_teardown(a_fork_makes_the_later_turns_stale, setup, teardown),
        cmocka_unit_test_setup_teardown(a_plain_answer_settles_a_question, setup, teardown),
        cmocka_unit_test_setup_teardown(a_plain_run_that_is_rolled_back_leaves_nothing, setup,
                                        teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
