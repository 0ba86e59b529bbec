/* Suspended runs: they begin nothing, send nothing and read nothing, and continue afterwards. */
#define APP_GRAPH                                                                                  \
    "{\"name\":\"line\",\"state\":{\"log\":{\"reducer\":\"add\",\"type\":\"list\"},"               \
    "\"count\":{\"reducer\":\"add\",\"type\":\"number\"}},\"recursion_limit\":1000,"               \
    "\"nodes\":{\"a\":{\"kind\":\"http\",\"url\":\"{{config.url}}\",\"update\":{\"log\":[\"a\"]}}" \
    ","                                                                                            \
    "\"b\":{\"kind\":\"sleep\",\"ms\":30},"                                                        \
    "\"n\":{\"kind\":\"set\",\"update\":{\"count\":1}},"                                           \
    "\"c\":{\"kind\":\"http\",\"url\":\"{{config.url}}\",\"update\":{\"log\":[\"c\"]}}},"          \
    "\"edges\":[[\"__start__\",\"a\"],[\"a\",\"n\"],{\"from\":\"n\",\"routes\":["                  \
    "{\"when\":{\"@lt\":[\"{{count}}\",300]},\"to\":\"n\"},{\"to\":\"b\"}]},"                      \
    "[\"b\",\"c\"],[\"c\",\"__end__\"]]}"

#include "net/http_client.h"
#include "run/admit.h"
#include "run/queue.h"
#include "tests/unit/app_world.h"
#include "tests/unit/peer.h"

#define ANSWER "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
#define QUIET_US 300000

struct world {
    struct app_world *app;
    struct peer peer;
    struct hd_admission admission;
    struct hd_waiter waiter;
    int ends;
    enum hd_run_state status;
    char values[64];
};

static int setup(void **state)
{
    struct world *w = calloc(1, sizeof(*w));

    assert_non_null(w);
    w->app = world_open("memory:", NULL);
    peer_open(&w->peer, &w->app->loop);
    peer_will(&w->peer, ANSWER);
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;

    peer_close(&w->peer);
    world_close(w->app);
    free(w);
    return 0;
}

static void on_outcome(void *ctx, const struct hd_outcome *outcome)
{
    struct world *w = ctx;

    w->waiter.link = NULL;
    w->ends++;
    w->status = outcome->status;
    snprintf(w->values, sizeof(w->values), "%.*s", (int)outcome->values.len,
             outcome->values.ptr ? outcome->values.ptr : "");
}

static void start(struct world *w)
{
    struct hd_run_request request;
    struct hd_json json = {NULL};
    char text[200];

    snprintf(text, sizeof(text),
             "{\"assistant_id\":\"line\",\"input\":{},"
             "\"config\":{\"configurable\":{\"url\":\"http://127.0.0.1:%d\"}}}",
             w->peer.port);
    w->admission =
        (struct hd_admission){.app = &w->app->app, .arena = &w->app->arena, .request = &request};
    assert_err(hd_json_parse(&json, hd_slice_cstr(text), &w->app->fault), 0);
    assert_err(hd_run_request_read(&request, hd_json_root(&json), &w->app->fault), 0);
    request.keeps_thread = true;
    assert_err(hd_admit(&w->admission, &w->app->fault), 0);
    hd_json_fini(&json);
    assert_err(hd_queue_add(w->app->app.queue, &w->admission.run, w->admission.event_seq, false),
               0);
    w->waiter = (struct hd_waiter){.fn = on_outcome, .ctx = w};
    assert_true(hd_queue_wait(w->app->app.queue, w->admission.run.principal,
                              w->admission.run.thread_id, w->admission.run.run_id, &w->waiter));
}

static void suspend(struct world *w, bool is_suspended)
{
    hd_queue_suspend(w->app->app.queue, is_suspended);
}

/* Lets everything happen that can. */
static void let_time_pass(struct world *w)
{
    int64_t end = hd_clock_monotonic_us() + QUIET_US;

    UNTIL(&w->peer, hd_clock_monotonic_us() > end);
}

static void expect_success(struct world *w)
{
    UNTIL(&w->peer, w->ends > 0);
    assert_int_equal(w->ends, 1);
    assert_int_equal(w->status, HD_RUN_STATE_SUCCESS);
    assert_string_equal(w->values, "{\"log\":[\"a\",\"c\"],\"count\":300}");
    assert_int_equal(w->peer.requests, 2);
}

static int64_t count_rows(struct world *w, enum hd_table_id table)
{
    const struct hd_query query = {.table = table, .index = HD_PRIMARY};
    int64_t count = 0;

    assert_err(hd_rows_count(w->app->app.store, query, &count, &w->app->fault), 0);
    return count;
}

static int64_t count_stored(struct world *w)
{
    return count_rows(w, HD_CHECKPOINTS) + count_rows(w, HD_WRITES);
}

static void no_run_starts_while_suspended(void **state)
{
    struct world *w = *state;

    suspend(w, true);
    start(w);
    let_time_pass(w);
    assert_int_equal(hd_queue_counts(w->app->app.queue).running, 0);
    assert_int_equal(w->peer.requests, 0);
    suspend(w, false);
    expect_success(w);
}

static void a_run_that_has_started_begins_no_step(void **state)
{
    struct world *w = *state;

    start(w);
    suspend(w, true);
    let_time_pass(w);
    assert_int_equal(hd_queue_counts(w->app->app.queue).running, 1);
    assert_int_equal(w->peer.requests + w->peer.connections, 0);
    suspend(w, false);
    expect_success(w);
}

static void the_answer_of_a_request_is_read_afterwards(void **state)
{
    struct world *w = *state;
    int64_t rows;

    start(w);
    UNTIL(&w->peer, w->peer.requests == 1);
    suspend(w, true);
    rows = count_stored(w);
    let_time_pass(w);
    assert_int_equal(w->peer.requests, 1);
    assert_int_equal(count_stored(w), rows);
    assert_int_equal(w->ends, 0);
    suspend(w, false);
    expect_success(w);
}

/* At any moment of the run: each iteration suspends it a little later. */
static void a_run_may_be_suspended_at_any_time(void **state)
{
    struct world *w = *state;
    int turns = 0, seen;
    int64_t rows;

    for (bool is_over = false; !is_over; turns++) {
        w->ends = w->peer.requests = 0;
        start(w);
        for (int i = 0; i < turns && w->ends == 0; i++)
            uv_run(&w->app->loop, UV_RUN_ONCE);
        is_over = w->ends > 0;
        suspend(w, true);
        rows = count_stored(w);
        for (int i = 0; i < 10; i++) /* the peer may read what was sent before */
            uv_run(&w->app->loop, UV_RUN_ONCE);
        seen = w->peer.requests;
        for (int i = 0; i < 40; i++)
            uv_run(&w->app->loop, UV_RUN_ONCE);
        assert_int_equal(w->peer.requests, seen);
        assert_int_equal(count_stored(w), rows);
        suspend(w, false);
        expect_success(w);
    }
    assert_true(turns > 10);
}

static void a_suspended_run_can_be_cancelled(void **state)
{
    struct world *w = *state;
    const struct hd_run_rec *run = &w->admission.run;

    for (int turns = 0; turns < 20; turns += 5) {
        w->ends = 0;
        start(w);
        for (int i = 0; i < turns; i++)
            uv_run(&w->app->loop, UV_RUN_ONCE);
        suspend(w, true);
        assert_true(hd_queue_cancel(w->app->app.queue, run->principal, run->thread_id, run->run_id,
                                    HD_CANCEL_INTERRUPT));
        UNTIL(&w->peer, w->ends > 0);
        assert_int_equal(w->status, HD_RUN_STATE_INTERRUPTED);
        suspend(w, false);
    }
}

/* The drain of the teardown ends while the run is suspended. */
static void a_server_can_end_while_it_is_suspended(void **state)
{
    struct world *w = *state;

    start(w);
    UNTIL(&w->peer, w->peer.requests == 1);
    suspend(w, true);
    let_time_pass(w);
    hd_waiter_leave(&w->waiter);
}

/* ---- the client -------------------------------------------------------- */

static void on_response(void *ctx, const struct hd_client_response *response)
{
    int *answered = ctx;

    assert_int_equal(response->status, 200);
    ++*answered;
}

static void send_request(struct world *w, struct hd_client *http, int *answered,
                         struct hd_client_request **out)
{
    char url[64];

    snprintf(url, sizeof(url), "http://127.0.0.1:%d", w->peer.port);
    assert_err(
        hd_client_start(http, "GET", url, NULL, 0, hd_slice(NULL, 0), on_response, answered, out),
        0);
}

static void a_frozen_client_sends_and_reads_nothing(void **state)
{
    struct world *w = *state;
    struct hd_client *http;
    struct hd_client_request *request;
    int answered = 0;

    assert_err(hd_client_create(&w->app->loop, &http), 0);
    send_request(w, http, &answered, &request);
    UNTIL(&w->peer, w->peer.requests == 1);
    hd_client_freeze(http, true);
    send_request(w, http, &answered, &request);
    send_request(w, http, &answered, &request);
    hd_client_cancel(request);
    let_time_pass(w);
    assert_int_equal(w->peer.requests, 1);
    assert_int_equal(answered, 0);
    hd_client_freeze(http, false);
    UNTIL(&w->peer, answered == 2);
    assert_int_equal(w->peer.requests, 2);
    hd_client_freeze(http, true);
    send_request(w, http, &answered, &request);
    hd_client_cancel(request);
    hd_client_destroy(http);
}

int main(void)
{
#define CASE(function) cmocka_unit_test_setup_teardown(function, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(no_run_starts_while_suspended),
        CASE(a_run_that_has_started_begins_no_step),
        CASE(the_answer_of_a_request_is_read_afterwards),
        CASE(a_run_may_be_suspended_at_any_time),
        CASE(a_suspended_run_can_be_cancelled),
        CASE(a_server_can_end_while_it_is_suspended),
        CASE(a_frozen_client_sends_and_reads_nothing),
    };
#undef CASE

    return cmocka_run_group_tests(tests, NULL, NULL);
}
