/* Runs between the moment their record is stored and the moment the queue has them. */
#include "run/queue.h"

#include <string.h>

#include "base/json.h"
#include "run/admit.h"
#include "run/unsettled.h"
#include "tests/unit/app_world.h"

#define REQUEST "{\"assistant_id\":\"line\",\"input\":{}}"

struct told {
    struct hd_waiter waiter;
    int count;
    int place; /* the position in the order of notifications, from 1 on */
    enum hd_run_state status;
    char values[64];
};

static int told_count;

static int setup(void **state)
{
    *state = world_open("memory:", NULL);
    return 0;
}

static int teardown(void **state)
{
    world_close(*state);
    return 0;
}

static void on_outcome(void *ctx, const struct hd_outcome *outcome)
{
    struct told *told = ctx;

    told->waiter.link = NULL;
    told->count++;
    told->place = ++told_count;
    told->status = outcome->status;
    snprintf(told->values, sizeof(told->values), "%.*s", (int)outcome->values.len,
             outcome->values.ptr ? outcome->values.ptr : "");
}

/* Stores the record of a run, as a store thread does. An empty thread: a new one. */
static struct hd_admission admit_on(struct app_world *w, struct hd_slice thread, const char *text)
{
    struct hd_run_request request;
    struct hd_json json = {NULL};
    struct hd_admission admission = {
        .app = &w->app, .arena = &w->arena, .request = &request, .thread_id = thread};

    assert_err(hd_json_parse(&json, hd_slice_cstr(text), &w->fault), 0);
    assert_err(hd_run_request_read(&request, hd_json_root(&json), &w->fault), 0);
    request.keeps_thread = true;
    assert_err(hd_admit(&admission, &w->fault), 0);
    hd_json_fini(&json);
    return admission;
}

static struct hd_admission admit(struct app_world *w, const char *text)
{
    return admit_on(w, hd_slice(NULL, 0), text);
}

static bool is_there(struct app_world *w, const struct hd_run_rec *run)
{
    return hd_queue_has(w->app.queue, run->principal, run->thread_id, run->run_id);
}

static bool wait_for(struct app_world *w, const struct hd_run_rec *run, struct told *told)
{
    told->waiter = (struct hd_waiter){.fn = on_outcome, .ctx = told};
    return hd_queue_wait(w->app.queue, run->principal, run->thread_id, run->run_id, &told->waiter);
}

static void run_until_told(struct app_world *w, const struct told *told)
{
    int64_t deadline = hd_clock_monotonic_us() + 120 * INT64_C(1000000);

    while (told->count == 0 && hd_clock_monotonic_us() < deadline)
        uv_run(&w->loop, UV_RUN_ONCE);
    assert_int_equal(told->count, 1);
}

static void a_stored_run_is_in_flight(void **state)
{
    struct app_world *w = *state;
    struct hd_admission admission = admit(w, REQUEST);
    struct told first = {.count = 0}, second = {.count = 0}, gone = {.count = 0};

    assert_true(is_there(w, &admission.run));
    assert_true(wait_for(w, &admission.run, &first));
    assert_true(wait_for(w, &admission.run, &gone));
    assert_true(wait_for(w, &admission.run, &second));
    hd_waiter_leave(&gone.waiter);
    assert_err(hd_queue_add(w->app.queue, &admission.run, admission.event_seq, false), 0);
    assert_true(is_there(w, &admission.run));
    assert_int_equal(first.count, 0);
    run_until_told(w, &first);
    run_until_told(w, &second);
    assert_int_equal(gone.count, 0);
    assert_int_equal(first.status, HD_RUN_STATE_SUCCESS);
    assert_string_equal(first.values, "{\"log\":[\"a\"]}");
    /* Then the run has ended. */
    while (hd_queue_counts(w->app.queue).running > 0)
        uv_run(&w->loop, UV_RUN_ONCE);
    assert_false(is_there(w, &admission.run));
    assert_false(wait_for(w, &admission.run, &first));
}

static void many_come_in_any_order(void **state)
{
    struct app_world *w = *state;
    struct hd_admission all[5];
    struct told told[5] = {{.count = 0}};
    static const int order[] = {3, 4, 0, 2, 1};

    for (size_t i = 0; i < HD_COUNT(all); i++) {
        all[i] = admit(w, REQUEST);
        assert_true(wait_for(w, &all[i].run, &told[i]));
    }
    for (size_t i = 0; i < HD_COUNT(all); i++) {
        const struct hd_admission *next = &all[order[i]];

        assert_true(is_there(w, &next->run));
        assert_err(hd_queue_add(w->app.queue, &next->run, next->event_seq, false), 0);
    }
    for (size_t i = 0; i < HD_COUNT(all); i++)
        run_until_told(w, &told[i]);
}

/* The clock steps back between the requests, and the runs reach the queue in another order. */
static void runs_of_a_thread_keep_the_order_of_their_requests(void **state)
{
    struct app_world *w = *state;
    struct hd_admission all[4];
    struct told told[4] = {{.count = 0}};
    static const int order[] = {0, 3, 1, 2};
    int64_t now = hd_clock_now_us();
    struct hd_run_rec *listed;
    size_t count;

    for (int i = 0; i < 4; i++) {
        hd_clock_set_for_test(now - i * INT64_C(30000000));
        all[i] = admit_on(w, i > 0 ? all[0].run.thread_id : hd_slice(NULL, 0), REQUEST);
        assert_int_equal(all[i].refusal, 0);
        assert_int_equal(all[i].run.order, i + 1);
        if (i > 0)
            assert_true(hd_slice_cmp(all[i - 1].run.run_id, all[i].run.run_id) < 0);
        assert_true(wait_for(w, &all[i].run, &told[i]));
    }
    assert_err(hd_runs_list(w->app.store, all[0].run.principal, all[0].run.thread_id, NULL, 0, 4,
                            &w->arena, &listed, &count, &w->fault),
               0);
    assert_int_equal(count, 4);
    for (int i = 0; i < 4; i++)
        assert_true(hd_slice_eq(listed[i].run_id, all[3 - i].run.run_id));
    told_count = 0;
    for (int i = 0; i < 4; i++)
        assert_err(hd_queue_add(w->app.queue, &all[order[i]].run, all[order[i]].event_seq, false),
                   0);
    for (int i = 0; i < 4; i++) {
        run_until_told(w, &told[i]);
        assert_int_equal(told[i].place, i + 1);
    }
    hd_clock_set_for_test(0);
}

/* The store thread of the second request reports to the loop before that of the first. */
static void a_run_waits_for_an_earlier_one_still_being_admitted(void **state)
{
    struct app_world *w = *state;
    struct hd_admission first = admit(w, REQUEST);
    struct hd_admission second = admit_on(w, first.run.thread_id, REQUEST);
    struct told told[2] = {{.count = 0}};

    assert_int_equal(first.run.status, HD_RUN_STATE_RUNNING);
    assert_true(wait_for(w, &first.run, &told[0]));
    assert_true(wait_for(w, &second.run, &told[1]));
    told_count = 0;
    assert_err(hd_queue_add(w->app.queue, &second.run, second.event_seq, false), 0);
    assert_true(hd_queue_is_waiting(w->app.queue, second.run.principal, second.run.thread_id,
                                    second.run.run_id));
    assert_int_equal(hd_queue_counts(w->app.queue).running, 0);
    assert_err(hd_queue_add(w->app.queue, &first.run, first.event_seq, false), 0);
    run_until_told(w, &told[0]);
    run_until_told(w, &told[1]);
    assert_int_equal(told[0].place, 1);
    assert_string_equal(told[0].values, "{\"log\":[\"a\"]}");
    assert_string_equal(told[1].values, "{\"log\":[\"a\",\"a\"]}");
}

/* The earlier admission fails after the later run is in the queue. */
static void a_failed_admission_releases_the_runs_behind_it(void **state)
{
    struct app_world *w = *state;
    struct hd_admission first = admit(w, REQUEST);
    struct hd_admission second = admit_on(w, first.run.thread_id, REQUEST);
    struct told told = {.count = 0};

    assert_true(wait_for(w, &second.run, &told));
    assert_err(hd_queue_add(w->app.queue, &second.run, second.event_seq, false), 0);
    assert_int_equal(hd_queue_counts(w->app.queue).running, 0);
    hd_queue_unexpect(w->app.queue, first.run.principal, first.run.run_id);
    run_until_told(w, &told);
    assert_int_equal(told.status, HD_RUN_STATE_SUCCESS);
}

/* The reply to the commit of its admission was lost. */
static void a_stored_run_without_a_reply_is_found(void **state)
{
    struct app_world *w = *state;
    struct hd_admission lost = admit(w, REQUEST), next;
    struct told told = {.count = 0};
    struct hd_run_rec run;

    hd_queue_unexpect(w->app.queue, lost.run.principal, lost.run.run_id);
    assert_false(is_there(w, &lost.run));
    hd_unsettled_add(w->app.unsettled, &lost.run, lost.event_seq);
    next = admit_on(w, lost.run.thread_id, REQUEST);
    assert_int_equal(next.run.status, HD_RUN_STATE_PENDING);
    while (!is_there(w, &lost.run))
        uv_run(&w->loop, UV_RUN_ONCE);
    assert_true(wait_for(w, &next.run, &told));
    assert_err(hd_queue_add(w->app.queue, &next.run, next.event_seq, false), 0);
    run_until_told(w, &told);
    assert_string_equal(told.values, "{\"log\":[\"a\",\"a\"]}");
    assert_err(hd_run_read(w->app.store, lost.run.principal, lost.run.thread_id, lost.run.run_id,
                           &w->arena, &run, &w->fault),
               0);
    assert_int_equal(run.status, HD_RUN_STATE_SUCCESS);
}

static void put_checkpoint_of(struct app_world *w, const struct hd_run_rec *run)
{
    char metadata[128], ns[80];
    struct heddle_checkpoint checkpoint = {
        .thread = {.id = {run->thread_id.ptr, run->thread_id.len}},
        .id = {"1", 1},
        .checkpoint = {"{\"v\":4}", 7},
        .new_versions = {"{}", 2}};

    snprintf(metadata, sizeof(metadata), "{\"run_id\":\"%.*s\"}", (int)run->run_id.len,
             run->run_id.ptr);
    snprintf(ns, sizeof(ns), "assistant:%s", w->graph.assistant_id);
    checkpoint.metadata = (struct heddle_bytes){metadata, strlen(metadata)};
    checkpoint.ns = (struct heddle_bytes){ns, strlen(ns)};
    assert_err(heddle_put(w->app.store, &checkpoint, NULL), 0);
}

/* A process ended while two runs of a thread were running: one of them has checkpoints. */
static void a_run_with_checkpoints_is_recovered_before_one_without(void **state)
{
    struct app_world *w = *state;
    struct hd_admission first = admit(w, REQUEST);
    struct hd_admission second = admit_on(w, first.run.thread_id, REQUEST);
    struct told told[2] = {{.count = 0}};

    assert_err(hd_run_mark_running(w->app.store, &second.run, &w->fault), 0);
    put_checkpoint_of(w, &second.run);
    assert_true(wait_for(w, &first.run, &told[0]));
    assert_true(wait_for(w, &second.run, &told[1]));
    told_count = 0;
    assert_err(hd_queue_recover(w->app.queue, &w->fault), 0);
    run_until_told(w, &told[0]);
    run_until_told(w, &told[1]);
    assert_int_equal(told[1].place, 1);
    assert_int_equal(told[0].place, 2);
}

/* A run that is not due does not delay other runs of its thread. */
static void a_delayed_run_holds_up_no_other(void **state)
{
    struct app_world *w = *state;
    struct hd_admission delayed =
        admit(w, "{\"assistant_id\":\"line\",\"input\":{},\"after_seconds\":3600}");
    struct hd_admission other = admit_on(w, delayed.run.thread_id, REQUEST);
    struct told first = {.count = 0}, second = {.count = 0};
    int64_t now = hd_clock_now_us();

    assert_true(wait_for(w, &delayed.run, &second));
    assert_true(wait_for(w, &other.run, &first));
    assert_err(hd_queue_add(w->app.queue, &delayed.run, delayed.event_seq, false), 0);
    assert_err(hd_queue_add(w->app.queue, &other.run, other.event_seq, false), 0);
    run_until_told(w, &first);
    assert_int_equal(second.count, 0);
    hd_clock_set_for_test(now + 3601 * INT64_C(1000000));
    run_until_told(w, &second);
    assert_int_equal(second.status, HD_RUN_STATE_SUCCESS);
    hd_clock_set_for_test(0);
}

static void it_can_be_cancelled_before_it_comes(void **state)
{
    struct app_world *w = *state;
    struct hd_admission admission = admit(w, REQUEST), other = admit(w, REQUEST);
    const struct hd_run_rec *run = &admission.run;
    struct told told = {.count = 0}, untouched = {.count = 0};

    assert_true(hd_queue_cancel(w->app.queue, run->principal, run->thread_id, run->run_id,
                                HD_CANCEL_INTERRUPT));
    assert_true(wait_for(w, run, &told));
    assert_true(wait_for(w, &other.run, &untouched));
    assert_err(hd_queue_add(w->app.queue, run, admission.event_seq, false), 0);
    assert_err(hd_queue_add(w->app.queue, &other.run, other.event_seq, false), 0);
    run_until_told(w, &told);
    run_until_told(w, &untouched);
    assert_int_equal(told.status, HD_RUN_STATE_INTERRUPTED);
    assert_int_equal(untouched.status, HD_RUN_STATE_SUCCESS);
}

static void a_refused_run_never_starts(void **state)
{
    struct app_world *w = *state;
    struct hd_admission admission = admit(w, "{\"assistant_id\":\"nobody\",\"input\":{}}");
    struct told told = {.count = 0};

    assert_int_equal(admission.refusal, 404);
    assert_false(is_there(w, &admission.run));
    assert_false(wait_for(w, &admission.run, &told));
    assert_false(hd_queue_cancel(w->app.queue, NOBODY, admission.run.thread_id,
                                 admission.run.run_id, HD_CANCEL_INTERRUPT));
}

static void runs_of_other_principals_are_not_found(void **state)
{
    struct app_world *w = *state;
    struct hd_admission admission = admit(w, REQUEST);
    struct hd_run_rec run = admission.run;

    run.principal = HD_S("somebody");
    assert_false(is_there(w, &run));
    /* The run is not queued here: the next process recovers it. */
}

int main(void)
{
#define CASE(function) cmocka_unit_test_setup_teardown(function, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(a_stored_run_is_in_flight),
        CASE(many_come_in_any_order),
        CASE(runs_of_a_thread_keep_the_order_of_their_requests),
        CASE(a_run_waits_for_an_earlier_one_still_being_admitted),
        CASE(a_failed_admission_releases_the_runs_behind_it),
        CASE(a_stored_run_without_a_reply_is_found),
        CASE(a_run_with_checkpoints_is_recovered_before_one_without),
        CASE(a_delayed_run_holds_up_no_other),
        CASE(it_can_be_cancelled_before_it_comes),
        CASE(a_refused_run_never_starts),
        CASE(runs_of_other_principals_are_not_found),
    };
#undef CASE

    return cmocka_run_group_tests(tests, NULL, NULL);
}
