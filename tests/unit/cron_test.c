/* Crons that are due. */
#include "schedule/cron.h"

#include <pthread.h>

#include "base/json.h"
#include "run/admit.h"
#include "tests/unit/app_world.h"

#define MINUTE INT64_C(60000000)
#define HOUR (60 * MINUTE)
#define NOON INT64_C(1767268800000000) /* 2026-01-01 12:00 UTC */

static int setup_memory(void **state)
{
    *state = world_open("memory:", NULL);
    return 0;
}

static int setup_sqlite(void **state)
{
    *state = world_open(NULL, NULL);
    return 0;
}

static int teardown(void **state)
{
    world_close(*state);
    return 0;
}

/* A cron that is due at noon and every hour after it. */
static struct hd_cron_rec hourly(struct app_world *w, const char *id)
{
    return (struct hd_cron_rec){.id = hd_slice_cstr(id),
                                .next_at = NOON,
                                .created_at = NOON - HOUR,
                                .updated_at = NOON - HOUR,
                                .is_enabled = true,
                                .schedule = HD_S("0 * * * *"),
                                .assistant_id = hd_slice_cstr(w->graph.assistant_id),
                                .payload = HD_S("{\"assistant_id\":\"line\",\"input\":{},"
                                                "\"metadata\":{\"by\":\"cron\"}}")};
}

static void add(struct app_world *w, struct hd_cron_rec cron)
{
    APPLY(w, hd_cron_add(&batch, &cron));
}

static struct hd_cron_rec read_cron(struct app_world *w, const char *id)
{
    struct hd_cron_rec cron;

    assert_err(hd_cron_read(w->app.store, NOBODY, hd_slice_cstr(id), &w->arena, &cron, &w->fault),
               0);
    return cron;
}

/* The fired crons. */
struct fired {
    struct app_world *world;
    size_t count;
    struct hd_run_rec last;
};

static void on_fired(void *arg, const struct hd_admission *admission)
{
    struct fired *fired = arg;

    fired->count++;
    assert_err(hd_run_rec_copy(&fired->world->arena, &admission->run, &fired->last), 0);
}

static struct fired fire(struct app_world *w, int64_t now, size_t limit, int64_t *next)
{
    struct fired fired = {.world = w};

    hd_clock_set_for_test(now);
    if (hd_scheduler_fire(&w->app, now, limit, on_fired, &fired, next, &w->fault))
        fail_msg("%s", w->fault.text);
    return fired;
}

static void a_due_cron_fires_once(void **state)
{
    struct app_world *w = *state;
    struct hd_run_rec run;
    struct hd_json json;
    struct fired fired;
    hd_json_val kwargs;
    int64_t next;

    add(w, hourly(w, "c1"));
    fired = fire(w, NOON - 1, 100, &next);
    assert_int_equal(fired.count, 0);
    assert_int_equal(next, NOON);
    fired = fire(w, NOON, 100, &next);
    assert_int_equal(fired.count, 1);
    assert_int_equal(read_cron(w, "c1").next_at, NOON + HOUR);
    assert_int_equal(fire(w, NOON, 100, &next).count, 0);
    assert_int_equal(next, NOON + HOUR);

    assert_err(hd_run_read(w->app.store, NOBODY, fired.last.thread_id, fired.last.run_id, &w->arena,
                           &run, &w->fault),
               0);
    assert_err(hd_json_parse(&json, run.kwargs, &w->fault), 0);
    kwargs = hd_json_root(&json);
    assert_slice(hd_json_string(hd_json_get(
                     hd_json_get(hd_json_get(kwargs, HD_S("config")), HD_S("configurable")),
                     HD_S("cron_id"))),
                 HD_S("c1"));
    assert_true(hd_json_is_true(hd_json_get(kwargs, HD_S("temporary"))));
    hd_json_fini(&json);
    assert_non_null(strstr(run.metadata.ptr, "\"by\":\"cron\""));
}

static void missed_firings_happen_once(void **state)
{
    struct app_world *w = *state;
    int64_t next;

    add(w, hourly(w, "c1"));
    assert_int_equal(fire(w, NOON + 240 * HOUR + MINUTE, 100, &next).count, 1);
    assert_int_equal(read_cron(w, "c1").next_at, NOON + 241 * HOUR);
    assert_int_equal(fire(w, NOON + 240 * HOUR + MINUTE, 100, &next).count, 0);
    assert_int_equal(next, NOON + 241 * HOUR);
}

static void disabled_and_ended_crons_do_not_fire(void **state)
{
    struct app_world *w = *state;
    struct hd_cron_rec off = hourly(w, "off"), over = hourly(w, "over"), last = hourly(w, "last");
    int64_t next;

    off.is_enabled = false;
    over.end_at = NOON - 1;
    last.end_at = NOON + HOUR - 1;
    add(w, off);
    add(w, over);
    add(w, last);
    assert_int_equal(fire(w, NOON, 100, &next).count, 1);
    assert_int_equal(read_cron(w, "off").next_at, 0);
    assert_int_equal(read_cron(w, "over").next_at, 0);
    assert_int_equal(read_cron(w, "last").next_at, 0);
    assert_int_equal(next, 0);
    assert_int_equal(fire(w, NOON + 5 * HOUR, 100, &next).count, 0);
}

static void no_more_than_allowed_fire_at_once(void **state)
{
    struct app_world *w = *state;
    int64_t next;

    add(w, hourly(w, "c1"));
    add(w, hourly(w, "c2"));
    add(w, hourly(w, "c3"));
    assert_int_equal(fire(w, NOON + 1, 2, &next).count, 2);
    assert_int_equal(next, NOON);
    assert_int_equal(fire(w, NOON + 1, 2, &next).count, 1);
    assert_int_equal(next, NOON + HOUR);
}

static void threads_of_its_own_are_kept_when_wanted(void **state)
{
    struct app_world *w = *state;
    struct hd_cron_rec cron = hourly(w, "c1");
    struct fired fired;
    int64_t next;

    cron.keeps_threads = true;
    add(w, cron);
    fired = fire(w, NOON, 100, &next);
    assert_int_equal(fired.count, 1);
    assert_non_null(strstr(fired.last.kwargs.ptr, "\"temporary\":false"));
}

static void a_cron_of_a_thread_that_is_gone_goes(void **state)
{
    struct app_world *w = *state;
    struct hd_cron_rec cron = hourly(w, "c1"), wrong = hourly(w, "c2"), seen;
    int64_t next;

    cron.thread_id = HD_S("11111111-1111-4111-8111-111111111111");
    wrong.payload = HD_S("{\"assistant_id\":\"no-such-graph\"}");
    add(w, cron);
    add(w, wrong);
    assert_int_equal(fire(w, NOON, 100, &next).count, 0);
    assert_err(hd_cron_read(w->app.store, NOBODY, HD_S("c1"), &w->arena, &seen, &w->fault),
               HD_ENOTFOUND);
    assert_int_equal(read_cron(w, "c2").next_at, NOON + HOUR);
}

static void an_unknown_zone_ends_a_cron(void **state)
{
    struct app_world *w = *state;
    struct hd_cron_rec cron = hourly(w, "c1");
    int64_t next;

    cron.timezone = HD_S("Moon/Tranquility");
    add(w, cron);
    assert_int_equal(fire(w, NOON, 100, &next).count, 1);
    assert_int_equal(read_cron(w, "c1").next_at, 0);
}

/* ---- lost servers ----------------------------------------------------- */

/* Lets this number of batches pass. */
static int fence(void *arg, struct heddle_error *fault)
{
    int *left = arg;

    if (*left == 0)
        return hd_error_set(fault, HD_EUNAVAILABLE, "the server is gone");
    --*left;
    return 0;
}

static int64_t count_runs(struct app_world *w)
{
    const struct hd_query query = {.table = HD_RUNS, .index = HD_PRIMARY};
    int64_t count = 0;

    assert_err(hd_rows_count(w->app.store, query, &count, &w->fault), 0);
    return count;
}

/* Wherever the server is lost, the cron has advanced only if its run is stored. */
static void a_firing_is_stored_with_its_run(void **state)
{
    struct app_world *w = *state;
    struct fired fired = {.world = w};
    int64_t next, runs = 0;
    int left = -1;

    hd_rows_set_fence(w->app.store, fence, &left);
    add(w, hourly(w, "c1"));
    hd_clock_set_for_test(NOON);
    for (int allowed = 0; runs == 0; allowed++) {
        struct heddle_error fault = {0};

        assert_true(allowed < 10);
        left = allowed;
        if (hd_scheduler_fire(&w->app, NOON, 100, on_fired, &fired, &next, &fault))
            assert_string_equal(fault.text, "the server is gone");
        left = -1;
        runs = count_runs(w);
        assert_int_equal(read_cron(w, "c1").next_at, runs == 0 ? NOON : NOON + HOUR);
        assert_int_equal(fired.count, runs);
    }
    assert_int_equal(runs, 1);
    assert_int_equal(fire(w, NOON, 100, &next).count, 0);
}

/* ---- several processes ------------------------------------------------ */

enum { RIVALS = 4, RIVAL_CRONS = 40 };

struct rival {
    pthread_t thread;
    struct app_world *world;
    size_t fired;
    int err;
};

static void on_rival(void *arg, const struct hd_admission *admission)
{
    struct rival *rival = arg;

    (void)admission;
    rival->fired++;
}

static void *compete(void *arg)
{
    struct rival *rival = arg;
    struct heddle_error fault = {0};
    int64_t next = NOON;

    while (!rival->err && next != 0 && next <= NOON)
        rival->err = hd_scheduler_fire(&rival->world->app, NOON, 7, on_rival, rival, &next, &fault);
    return NULL;
}

static void rivals_fire_each_cron_once(void **state)
{
    struct app_world *w = *state;
    struct rival rivals[RIVALS];
    char ids[RIVAL_CRONS][8];
    size_t fired = 0;

    hd_clock_set_for_test(NOON);
    for (int i = 0; i < RIVAL_CRONS; i++) {
        snprintf(ids[i], sizeof(ids[i]), "c%d", i);
        add(w, hourly(w, ids[i]));
    }
    for (int i = 0; i < RIVALS; i++) {
        rivals[i] = (struct rival){.world = w};
        assert_int_equal(pthread_create(&rivals[i].thread, NULL, compete, &rivals[i]), 0);
    }
    for (int i = 0; i < RIVALS; i++) {
        assert_int_equal(pthread_join(rivals[i].thread, NULL), 0);
        assert_err(rivals[i].err, 0);
        fired += rivals[i].fired;
    }
    assert_int_equal(fired, RIVAL_CRONS);
    for (int i = 0; i < RIVAL_CRONS; i++)
        assert_int_equal(read_cron(w, ids[i]).next_at, NOON + HOUR);
}

/* ---- the scheduler ---------------------------------------------------- */

/* Runs the loop until this number of runs has ended, or 120 seconds have passed. */
static size_t run_until_ended(struct app_world *w, size_t wanted)
{
    int64_t deadline = hd_clock_monotonic_us() + 120 * INT64_C(1000000);

    while (hd_queue_counts(w->app.queue).ended < wanted && hd_clock_monotonic_us() < deadline)
        uv_run(&w->loop, UV_RUN_ONCE);
    return hd_queue_counts(w->app.queue).ended;
}

static void the_scheduler_wakes_in_time(void **state)
{
    struct app_world *w = *state;
    struct hd_cron_rec soon = hourly(w, "soon"), past = hourly(w, "past");
    int64_t now = hd_clock_now_us();

    soon.schedule = past.schedule = HD_S("0 0 29 2 *"); /* fires only once during this test */
    soon.next_at = now + 100000;
    past.next_at = now - 100000;
    add(w, past);
    add(w, soon);
    hd_scheduler_wake(w->app.scheduler);
    hd_scheduler_wake(w->app.scheduler); /* during its scan */
    assert_int_equal(run_until_ended(w, 2), 2);
    assert_int_equal(hd_queue_counts(w->app.queue).failed, 0);
    assert_true(read_cron(w, "soon").next_at > now + 100000);
}

static void it_may_be_stopped_while_it_looks(void **state)
{
    struct app_world *w = *state;
    struct hd_cron_rec past = hourly(w, "past");

    past.next_at = hd_clock_now_us() - 100000;
    add(w, past);
    hd_scheduler_wake(w->app.scheduler);
    /* teardown() checks that nothing leaks and no handle stays open. */
}

int main(void)
{
#define BOTH(function)                                                 \
    cmocka_unit_test_setup_teardown(function, setup_memory, teardown), \
    {                                                                  \
        "sqlite " #function, function, setup_sqlite, teardown, NULL    \
    }
    const struct CMUnitTest tests[] = {
        BOTH(a_due_cron_fires_once),
        BOTH(missed_firings_happen_once),
        BOTH(disabled_and_ended_crons_do_not_fire),
        BOTH(no_more_than_allowed_fire_at_once),
        BOTH(threads_of_its_own_are_kept_when_wanted),
        BOTH(a_cron_of_a_thread_that_is_gone_goes),
        BOTH(an_unknown_zone_ends_a_cron),
        BOTH(a_firing_is_stored_with_its_run),
        BOTH(rivals_fire_each_cron_once),
        BOTH(the_scheduler_wakes_in_time),
        BOTH(it_may_be_stopped_while_it_looks),
    };
#undef BOTH

    return cmocka_run_group_tests(tests, NULL, NULL);
}
