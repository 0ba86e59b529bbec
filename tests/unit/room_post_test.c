/* Posting chat messages: what one batch stores, for whom, and what it refuses. */
#include "run/room/room_post.h"

#include <string.h>

#define APP_GRAPH                                                                           \
    "{\"name\":\"line\",\"state\":{\"messages\":{\"reducer\":\"messages\"}},"               \
    "\"nodes\":{\"say\":{\"kind\":\"set\",\"update\":{\"messages\":[{\"@ai\":\"yes\"}]}}}," \
    "\"edges\":[[\"__start__\",\"say\"],[\"say\",\"__end__\"]]}"

#include "base/json.h"
#include "events/event_batch.h"
#include "events/event_log.h"
#include "gate/limits.h"
#include "records/participants.h"
#include "records/stream_modes.h"
#include "tests/unit/app_world.h"

#define ANN HD_S("ann")
#define BOB HD_S("bob")
#define THREAD HD_S("11111111-1111-4111-8111-111111111111")
#define CLERK HD_S("22222222-2222-4222-8222-222222222222")
#define JUDGE HD_S("33333333-3333-4333-8333-333333333333")

static const struct hd_room_person people[] = {
    {HD_ROOM_PERSON, HD_S_INIT("ann"), HD_S_INIT("ann@x"), HD_S_INIT("Ann")},
    {HD_ROOM_PERSON, HD_S_INIT("bob"), HD_S_INIT("bob@x"), HD_S_INIT("Bob")},
};

struct fixture {
    struct app_world *w;
    struct hd_cursor cursor; /* of the room's events */
};

static void add_named_assistant(struct app_world *w, struct hd_slice id, struct hd_slice name)
{
    const struct hd_assistant_rec assistant = {
        .principal = ANN, .id = id, .version = 1, .graph_id = HD_S("line"), .name = name};

    APPLY(w, hd_assistant_add(&batch, &assistant));
}

/* A thread and two assistants of Ann. */
static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    struct hd_thread_rec thread;

    assert_non_null(f);
    f->w = world_open("memory:", "--limits-runs=2");
    add_named_assistant(f->w, CLERK, HD_S("Clerk"));
    add_named_assistant(f->w, JUDGE, HD_S("Judge"));
    hd_thread_init(&thread, ANN, THREAD);
    thread.created_at = thread.updated_at = 1;
    APPLY(f->w, hd_thread_add(&batch, &thread));
    f->cursor.modes = HD_MODE_ROOM;
    hd_cursor_open(&f->cursor, hd_event_log_get(f->w->app.event_logs, ANN, THREAD, 0), HD_FROM_NOW);
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

static struct hd_thread_rec read_thread(struct fixture *f)
{
    struct hd_thread_rec thread;

    assert_err(hd_thread_read(f->w->app.store, ANN, THREAD, &f->w->arena, &thread, &f->w->fault),
               0);
    return thread;
}

/* Bob becomes an editor of the thread. */
static void share_thread(struct fixture *f)
{
    const struct hd_participant_rec bob = {.member = BOB,
                                           .thread_id = THREAD,
                                           .owner = ANN,
                                           .role = HD_ROLE_EDITOR,
                                           .created_at = 1,
                                           .issuer = HD_S("main"),
                                           .subject = HD_S("bob@x")};
    struct hd_thread_rec thread = read_thread(f);

    APPLY(f->w, hd_participant_add(&batch, &thread, &bob));
}

static struct hd_room_post post_of(struct fixture *f, const struct hd_room_person *sender,
                                   const char *content)
{
    bool is_owner = hd_slice_eq(sender->key, ANN);

    return (struct hd_room_post){.app = &f->w->app,
                                 .arena = &f->w->arena,
                                 .principal = ANN,
                                 .thread_id = THREAD,
                                 .sender = *sender,
                                 .role = is_owner ? HD_ROLE_OWNER : HD_ROLE_EDITOR,
                                 .subject = sender->id,
                                 .headers = HD_S("{\"x-team\":\"red\"}"),
                                 .people = people,
                                 .people_count = HD_COUNT(people),
                                 .content = hd_slice_cstr(content)};
}

/* Posts with events of their own. The runs do not begin. */
static void send_post(struct fixture *f, struct hd_room_post *post)
{
    bool is_stored;

    f->w->fault = (struct heddle_error){0};
    post->events = hd_event_batch_begin(f->w->app.event_logs, ANN, THREAD, read_thread(f).event_seq,
                                        HD_ROOM_POST_EVENTS);
    assert_non_null(post->events);
    assert_err(hd_room_post(post, &f->w->fault), 0);
    is_stored = !post->refusal && !post->is_repeated && !post->needs_numbers;
    hd_event_batch_end(post->events, is_stored);
}

static void check_refused(struct fixture *f, struct hd_room_post *post, int status)
{
    int64_t rev = read_thread(f).rev;

    send_post(f, post);
    assert_int_equal(post->refusal, status);
    assert_int_equal(read_thread(f).rev, rev);
    hd_room_post_fini(post);
}

/* Gives the slots and pending admissions of the runs back. */
static void forget_runs(struct fixture *f, struct hd_room_post *post)
{
    for (size_t i = 0; i < post->run_count; i++) {
        hd_queue_unexpect(f->w->app.queue, ANN, post->runs[i]->admission.run.run_id);
        hd_limits_give(f->w->app.limits, post->sender.key, HD_LIMIT_RUNS);
    }
    hd_room_post_fini(post);
}

static struct hd_room_rec read_room_of(struct fixture *f)
{
    struct hd_room_rec room;

    assert_err(hd_room_read(f->w->app.store, ANN, THREAD, &f->w->arena, &room, &f->w->fault), 0);
    return room;
}

/* The names of the room's events since the last call. */
static void check_events(struct fixture *f, const char *names)
{
    char seen[256] = "";
    const struct hd_entry *entry;

    while ((entry = hd_cursor_peek(&f->cursor))) {
        struct hd_slice name = hd_entry_name(entry);

        snprintf(seen + strlen(seen), sizeof(seen) - strlen(seen), "%s%.*s", seen[0] ? " " : "",
                 (int)name.len, name.ptr);
        hd_cursor_advance(&f->cursor);
    }
    assert_string_equal(seen, names);
}

/* ---- one batch -------------------------------------------------------- */

static void a_message_and_its_runs_are_stored_together(void **state)
{
    struct fixture *f = *state;
    struct hd_room_post post = post_of(f, &people[0], "\"@Clerk and @judge\"");
    struct hd_room_run_rec *runs;
    struct hd_room_message_rec message;
    struct hd_thread_rec thread;
    size_t count;

    send_post(f, &post);
    assert_int_equal(post.refusal, 0);
    assert_int_equal(post.run_count, 2);
    thread = read_thread(f);
    assert_true(thread.is_room);
    assert_int_equal(thread.status, HD_THREAD_BUSY);
    assert_int_equal(thread.event_seq, post.event_seq);
    assert_err(hd_room_message_read(f->w->app.store, ANN, THREAD, post.message.id, &f->w->arena,
                                    &message, &f->w->fault),
               0);
    assert_int_equal(message.seq, 1);
    assert_slice(message.sender, ANN);
    assert_slice(message.sender_id, HD_S("ann@x"));
    assert_err(hd_room_runs_read(f->w->app.store, ANN, THREAD, message.id, &f->w->arena, &runs,
                                 &count, &f->w->fault),
               0);
    assert_int_equal(count, 2);
    assert_slice(runs[0].run_id, post.runs[0]->admission.run.run_id);
    assert_slice(runs[0].assistant_id, CLERK);
    assert_slice(runs[1].assistant_id, JUDGE);
    assert_true(runs[0].answer.len > 0);
    check_events(f, "room/message room/run room/run");
    forget_runs(f, &post);
}

static void the_limit_of_runs_counts_for_the_whole_message(void **state)
{
    struct fixture *f = *state;
    struct hd_room_post one = post_of(f, &people[0], "\"@Clerk\"");
    struct hd_room_post two = post_of(f, &people[0], "\"@Clerk @Judge\"");

    send_post(f, &one);
    assert_int_equal(one.refusal, 0);
    check_events(f, "room/message room/run");
    check_refused(f, &two, 429);
    assert_true(two.retry_s > 0);
    assert_int_equal(read_room_of(f).last_seq, 1);
    check_events(f, "");
    forget_runs(f, &one);
    send_post(f, &two);
    assert_int_equal(two.refusal, 0);
    forget_runs(f, &two);
}

static void events_begin_again_when_their_numbers_are_used(void **state)
{
    struct fixture *f = *state;
    struct hd_thread_rec thread = read_thread(f);
    struct hd_room_post post = post_of(f, &people[0], "\"hello\"");

    post.events = hd_event_batch_begin(f->w->app.event_logs, ANN, THREAD, 0, HD_ROOM_POST_EVENTS);
    thread.event_seq = 1000000;
    APPLY(f->w, hd_thread_put(&batch, &thread));
    assert_err(hd_room_post(&post, &f->w->fault), 0);
    assert_true(post.needs_numbers);
    assert_int_equal(post.event_seq, 1000000);
    hd_event_batch_end(post.events, false);
    assert_false(read_thread(f).is_room);
    send_post(f, &post);
    assert_false(post.needs_numbers);
    assert_true(read_thread(f).event_seq > 1000000);
    hd_room_post_fini(&post);
}

/* It ends before it gets to the events. */
static void another_call_begins_without_earlier_results(void **state)
{
    struct fixture *f = *state;
    struct hd_room_post post = post_of(f, &people[0], "\"hello\"");

    post.thread_id = HD_S("99999999-9999-4999-8999-999999999999");
    post.needs_numbers = post.is_repeated = true;
    assert_err(hd_room_post(&post, &f->w->fault), 0);
    assert_int_equal(post.refusal, 404);
    assert_false(post.needs_numbers);
    assert_false(post.is_repeated);
}

/* ---- repeated requests ------------------------------------------------ */

static void a_repeated_request_has_the_first_result(void **state)
{
    struct fixture *f = *state;
    struct hd_room_post first = post_of(f, &people[0], "\"@Clerk\""), again, other, stranger;

    first.id = HD_S("m1");
    again = first;
    send_post(f, &first);
    assert_false(first.is_repeated);
    send_post(f, &again);
    assert_true(again.is_repeated);
    assert_int_equal(again.run_count, 0);
    assert_int_equal(again.view_count, 1);
    assert_slice(again.views[0].run_id, first.views[0].run_id);
    assert_slice(again.body.content, HD_S("\"@Clerk\""));
    assert_int_equal(read_room_of(f).last_seq, 1);
    check_events(f, "room/message room/run");
    other = post_of(f, &people[0], "\"@Clerk!\"");
    other.id = HD_S("m1");
    check_refused(f, &other, 409);
    stranger = post_of(f, &people[1], "\"@Clerk\"");
    stranger.id = HD_S("m1");
    check_refused(f, &stranger, 409);
    forget_runs(f, &first);
}

/* ---- several people --------------------------------------------------- */

static bool has_text(struct hd_slice text, const char *part)
{
    return text.len > 0 && memmem(text.ptr, text.len, part, strlen(part));
}

static void headers_of_one_person_are_not_left_to_the_thread(void **state)
{
    struct fixture *f = *state;
    struct hd_room_post post = post_of(f, &people[0], "\"@Clerk\"");

    send_post(f, &post);
    assert_true(has_text(post.runs[0]->admission.run.kwargs, "x-team"));
    assert_false(has_text(read_thread(f).config, "x-team"));
    forget_runs(f, &post);
}

static void with_several_people_the_configuration_stays_private(void **state)
{
    struct fixture *f = *state;
    struct hd_room_post post = post_of(f, &people[0], "\"@Clerk\"");

    share_thread(f);
    send_post(f, &post);
    assert_int_equal(post.refusal, 0);
    assert_false(has_text(post.runs[0]->admission.run.kwargs, "x-team"));
    assert_false(has_text(read_thread(f).config, "x-team"));
    assert_true(has_text(post.runs[0]->admission.run.kwargs, "Ann: @Clerk"));
    forget_runs(f, &post);
}

static void everybody_asks_the_agents_of_the_room(void **state)
{
    struct fixture *f = *state;
    struct hd_room_post invites = post_of(f, &people[0], "\"@Clerk, welcome\"");
    struct hd_room_post asks = post_of(f, &people[1], "\"@Clerk and @Judge\"");

    share_thread(f);
    send_post(f, &invites);
    send_post(f, &asks);
    assert_int_equal(asks.refusal, 0);
    assert_int_equal(asks.run_count, 1); /* Bob does not see the other assistant */
    assert_slice(asks.runs[0]->rec.assistant_id, CLERK);
    assert_slice(asks.runs[0]->admission.run.actor, BOB);
    assert_slice(asks.runs[0]->rec.given,
                 hd_slice_cstr(hd_arena_printf(&f->w->arena, "[[\"%s\",1]]", asks.message.id.ptr)));
    forget_runs(f, &invites);
    forget_runs(f, &asks);
}

static void mentioned_people_find_the_message_in_their_inbox(void **state)
{
    struct fixture *f = *state;
    struct hd_room_post post = post_of(f, &people[0], "\"@Bob and @ann, hello\"");
    struct hd_mention_rec *found;
    size_t count;

    share_thread(f);
    send_post(f, &post);
    assert_int_equal(post.run_count, 0);
    assert_slice(post.message.mentions,
                 HD_S("[{\"type\":\"person\",\"id\":\"bob@x\",\"name\":\"Bob\"},"
                      "{\"type\":\"person\",\"id\":\"ann@x\",\"name\":\"Ann\"}]"));
    assert_err(
        hd_mentions_read(f->w->app.store, BOB, 0, 10, &f->w->arena, &found, &count, &f->w->fault),
        0);
    assert_int_equal(count, 1);
    assert_slice(found[0].message_id, post.message.id);
    assert_err(
        hd_mentions_read(f->w->app.store, ANN, 0, 10, &f->w->arena, &found, &count, &f->w->fault),
        0);
    assert_int_equal(count, 0);
}

/* ---- questions -------------------------------------------------------- */

/* The agent asks in a run of Ann. */
static void add_question(struct fixture *f)
{
    struct hd_room_rec room = read_room_of(f);
    const struct hd_room_message_rec question = {.principal = ANN,
                                                 .thread_id = THREAD,
                                                 .seq = ++room.last_seq,
                                                 .id = HD_S("q1"),
                                                 .state = HD_ROOM_PENDING,
                                                 .version = 1,
                                                 .created_at = 1,
                                                 .sender = CLERK,
                                                 .kind = HD_ROOM_AGENT,
                                                 .sender_id = CLERK,
                                                 .sender_name = HD_S("Clerk"),
                                                 .run_id = HD_S("r1"),
                                                 .ns = HD_S("assistant:2"),
                                                 .interrupts = HD_S("{\"t\":[{\"id\":\"i1\"}]}")};
    const struct hd_room_id_rec id = {
        .principal = ANN, .thread_id = THREAD, .message_id = HD_S("q1"), .seq = question.seq};
    struct hd_batch_builder batch;

    hd_batch_init(&batch);
    assert_err(hd_room_put(&batch, &room), 0);
    assert_err(hd_room_id_add(&batch, &id), 0);
    assert_err(hd_room_message_add(&batch, &question), 0);
    assert_err(world_apply(f->w, &batch), 0);
}

static void begin_question(struct fixture *f)
{
    struct hd_room_post hello = post_of(f, &people[0], "\"hello\"");

    send_post(f, &hello);
    add_question(f);
    check_events(f, "room/message");
}

static void a_reply_resumes_the_run_that_asks(void **state)
{
    struct fixture *f = *state;
    struct hd_room_post reply = post_of(f, &people[0], "\"yes\"");
    struct hd_room_post again = post_of(f, &people[0], "\"no\"");

    begin_question(f);
    reply.reply_to = again.reply_to = HD_S("q1");
    send_post(f, &reply);
    assert_int_equal(reply.refusal, 0);
    assert_int_equal(reply.run_count, 1);
    assert_true(reply.runs[0]->rec.is_answer);
    assert_slice(reply.runs[0]->admission.run.ns, HD_S("assistant:2"));
    assert_true(
        has_text(reply.runs[0]->admission.run.kwargs, "\"command\":{\"resume\":{\"i1\":\"yes\"}}"));
    check_refused(f, &again, 409);
    forget_runs(f, &reply);
}

static void a_reply_may_answer_each_interrupt_by_its_id(void **state)
{
    struct fixture *f = *state;
    struct hd_room_post reply = post_of(f, &people[0], "\"the form\"");

    begin_question(f);
    reply.reply_to = HD_S("q1");
    reply.metadata = HD_S("{\"resume\":{\"i1\":{\"ok\":true},\"i2\":2}}");
    send_post(f, &reply);
    assert_int_equal(reply.refusal, 0);
    assert_true(has_text(reply.runs[0]->admission.run.kwargs,
                         "\"command\":{\"resume\":{\"i1\":{\"ok\":true}}}"));
    forget_runs(f, &reply);
}

static void only_asker_and_owner_answer_a_question(void **state)
{
    struct fixture *f = *state;
    struct hd_room_post reply = post_of(f, &people[1], "\"yes\"");
    struct hd_room_rec room;

    share_thread(f);
    begin_question(f);
    reply.reply_to = HD_S("q1");
    check_refused(f, &reply, 403);
    room = read_room_of(f);
    room.answers = HD_ROOM_ANSWERS_EDITORS;
    APPLY(f->w, hd_room_put(&batch, &room));
    reply.content = HD_S("\"no\"");
    /* The assistant is Ann's, and in no list of the room. */
    check_refused(f, &reply, 422);
}

static void a_message_to_an_agent_that_asks_waits(void **state)
{
    struct fixture *f = *state;
    struct hd_room_post post = post_of(f, &people[0], "\"@Clerk @Judge\"");
    struct hd_room_wait *waits;
    struct hd_room_rec room;
    size_t count;

    begin_question(f);
    send_post(f, &post);
    assert_int_equal(post.run_count, 1);
    assert_slice(post.runs[0]->rec.assistant_id, JUDGE);
    assert_true(post.has_waits);
    room = read_room_of(f);
    assert_err(hd_room_waits_read(&room, &f->w->arena, &waits, &count, &f->w->fault), 0);
    assert_int_equal(count, 1);
    assert_slice(waits[0].message_id, post.message.id);
    assert_slice(waits[0].assistant_id, CLERK);
    forget_runs(f, &post);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_message_and_its_runs_are_stored_together),
        CASE(the_limit_of_runs_counts_for_the_whole_message),
        CASE(events_begin_again_when_their_numbers_are_used),
        CASE(another_call_begins_without_earlier_results),
        CASE(a_repeated_request_has_the_first_result),
        CASE(headers_of_one_person_are_not_left_to_the_thread),
        CASE(with_several_people_the_configuration_stays_private),
        CASE(everybody_asks_the_agents_of_the_room),
        CASE(mentioned_people_find_the_message_in_their_inbox),
        CASE(a_reply_resumes_the_run_that_asks),
        CASE(a_reply_may_answer_each_interrupt_by_its_id),
        CASE(only_asker_and_owner_answer_a_question),
        CASE(a_message_to_an_agent_that_asks_waits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
