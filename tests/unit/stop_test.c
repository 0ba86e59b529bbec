/* Stopping the parts of a server: HD_READY when nothing is in progress, otherwise a callback after
 * the call has returned. */
#include "run/admit.h"
#include "schedule/cron.h"
#include "schedule/sweep.h"
#include "search/thread_texts.h"
#include "tests/unit/app_world.h"
#include "webhook/webhook.h"

typedef void (*stopped_fn)(void *ctx);

struct part {
    const char *name;
    void (*begin)(struct app_world *w); /* starts work that a stop waits for */
    int (*stop)(struct app_world *w, stopped_fn done, void *ctx);
};

/* ---- the parts -------------------------------------------------------- */

static void begin_crons(struct app_world *w)
{
    hd_scheduler_wake(w->app.scheduler);
}

static int stop_crons(struct app_world *w, stopped_fn done, void *ctx)
{
    return hd_scheduler_stop(w->app.scheduler, done, ctx);
}

static void begin_sweep(struct app_world *w)
{
    w->config.ttl_sweep_interval_us = 1000;
    hd_sweeper_start(w->app.sweeper);
}

static int stop_sweeper(struct app_world *w, stopped_fn done, void *ctx)
{
    return hd_sweeper_stop(w->app.sweeper, done, ctx);
}

/* The store has no threads. */
static int read_messages(struct hd_app *app, const struct hd_thread_rec *thread,
                         struct hd_arena *arena, struct hd_buf *out, struct heddle_error *fault)
{
    (void)app;
    (void)thread;
    (void)arena;
    (void)out;
    (void)fault;
    fail();
    return HD_EINVAL;
}

static void begin_indexing(struct app_world *w)
{
    hd_thread_indexer_start(w->app.texts, read_messages);
}

static int stop_indexer(struct app_world *w, stopped_fn done, void *ctx)
{
    return hd_thread_indexer_stop(w->app.texts, done, ctx);
}

static void begin_webhooks(struct app_world *w)
{
    hd_webhooks_recover(w->app.webhooks);
}

static int stop_webhooks(struct app_world *w, stopped_fn done, void *ctx)
{
    return hd_webhooks_stop(w->app.webhooks, 1000000, done, ctx);
}

static void begin_run(struct app_world *w)
{
    struct hd_run_request request;
    struct hd_json json = {NULL};
    struct hd_admission admission = {.app = &w->app, .arena = &w->arena, .request = &request};

    assert_err(hd_json_parse(&json, HD_S("{\"assistant_id\":\"line\",\"input\":{}}"), &w->fault),
               0);
    assert_err(hd_run_request_read(&request, hd_json_root(&json), &w->fault), 0);
    assert_err(hd_admit(&admission, &w->fault), 0);
    assert_err(hd_queue_add(w->app.queue, &admission.run, admission.event_seq, false), 0);
    hd_json_fini(&json);
}

static int drain_queue(struct app_world *w, stopped_fn done, void *ctx)
{
    return hd_queue_drain(w->app.queue, done, ctx);
}

static const struct part parts[] = {
    {"crons", begin_crons, stop_crons},        {"sweeper", begin_sweep, stop_sweeper},
    {"indexer", begin_indexing, stop_indexer}, {"webhooks", begin_webhooks, stop_webhooks},
    {"queue", begin_run, drain_queue},
};

/* ---- the tests -------------------------------------------------------- */

struct stop {
    struct app_world *w;
    const struct part *part;
    uv_prepare_t prepare;
    int result;
    bool has_returned;
    int calls;
};

static void on_stopped(void *ctx)
{
    struct stop *stop = ctx;

    assert_true(stop->has_returned);
    stop->calls++;
}

static void stop_part(struct stop *stop)
{
    stop->result = stop->part->stop(stop->w, on_stopped, stop);
    stop->has_returned = true;
}

/* Stops the part as soon as its work is in progress, before the loop can complete the work. */
static void on_prepare(uv_prepare_t *prepare)
{
    struct stop *stop = prepare->data;

    if (hd_defer_count(stop->w->app.defer) == 0 && hd_queue_counts(stop->w->app.queue).running == 0)
        return;
    stop_part(stop);
    uv_close((uv_handle_t *)prepare, NULL);
}

static void an_idle_part_stops_without_a_callback(void **state)
{
    (void)state;
    for (size_t i = 0; i < HD_COUNT(parts); i++) {
        struct app_world *w = world_open("memory:", NULL);
        struct stop stop = {.w = w, .part = &parts[i]};

        stop_part(&stop);
        if (stop.result != HD_READY)
            fail_msg("%s: %d", parts[i].name, stop.result);
        uv_run(&w->loop, UV_RUN_NOWAIT);
        world_close(w);
        assert_int_equal(stop.calls, 0);
    }
}

static void a_busy_part_calls_back_after_the_call_has_returned(void **state)
{
    (void)state;
    for (size_t i = 0; i < HD_COUNT(parts); i++) {
        struct app_world *w = world_open("memory:", NULL);
        struct stop stop = {.w = w, .part = &parts[i]};

        assert_int_equal(uv_prepare_init(&w->loop, &stop.prepare), 0);
        stop.prepare.data = &stop;
        assert_int_equal(uv_prepare_start(&stop.prepare, on_prepare), 0);
        parts[i].begin(w);
        while (!stop.has_returned || (stop.result == 0 && stop.calls == 0))
            uv_run(&w->loop, UV_RUN_ONCE);
        if (stop.result != 0)
            fail_msg("%s: %d", parts[i].name, stop.result);
        world_close(w);
        assert_int_equal(stop.calls, 1);
    }
}

/* The timer must not keep the loop from the end of the visit to the store. */
static void webhooks_out_of_time_wait_for_the_store(void **state)
{
    struct app_world *w = world_open("memory:", NULL);
    struct stop stop = {.w = w};

    (void)state;
    begin_webhooks(w);
    stop.result = hd_webhooks_stop(w->app.webhooks, 0, on_stopped, &stop);
    stop.has_returned = true;
    assert_int_equal(stop.result, 0);
    while (stop.calls == 0)
        uv_run(&w->loop, UV_RUN_ONCE);
    world_close(w);
    assert_int_equal(stop.calls, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_idle_part_stops_without_a_callback),
        cmocka_unit_test(a_busy_part_calls_back_after_the_call_has_returned),
        cmocka_unit_test(webhooks_out_of_time_wait_for_the_store),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
