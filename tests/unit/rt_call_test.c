/* The server's calls to workers: answers, pieces, concurrency, back-pressure, timeouts. */
#include "tests/unit/rt_world.h"

static void answers_are_given(void **state)
{
    struct rt_world world;
    struct rt_outcome outcome = {0};
    static char large[5 << 20];
    const struct hd_slice blobs[] = {HD_S_INIT("first"), {large, sizeof(large)}, {NULL, 0}};
    struct hd_rt_call_options options;

    (void)state;
    memset(large, 'x', sizeof(large));
    rt_init(&world, NULL);
    rt_ready(&world);
    assert_int_equal(world.ready_count, 1);
    assert_non_null(strstr(world.ready, "\"graphs\""));
    options = rt_options("{\"op\":\"run\",\"n\":1,\"steps\":[{\"do\":\"echo\"}]}", &outcome);
    options.blobs = blobs;
    options.blob_count = HD_COUNT(blobs);
    assert_err(hd_runtime_call(world.runtime, &options, &outcome.call), 0);
    rt_until(&world, outcome.ends);
    assert_int_equal(outcome.end, HD_RT_ANSWERED);
    assert_string_equal(outcome.head, "{\"op\":\"run\",\"n\":1}");
    assert_int_equal(outcome.blob_count, 3);
    assert_int_equal(outcome.blob_bytes, 5 + sizeof(large));
    assert_string_equal(outcome.blob, "first");
    assert_int_equal(hd_runtime_counts(world.runtime, HD_RT_PYTHON).calls, 0);
    rt_fini(&world);
}

static void pieces_come_first_and_in_order(void **state)
{
    struct rt_world world;
    struct rt_outcome outcome;

    (void)state;
    rt_init(&world, NULL);
    rt_ready(&world);
    rt_do(&world, "[{\"do\":\"stream\",\"count\":3000},{\"answer\":{\"status\":\"done\"}}]",
          &outcome);
    assert_int_equal(outcome.end, HD_RT_ANSWERED);
    assert_int_equal(outcome.pieces, 3000);
    assert_false(outcome.is_unordered);
    rt_fini(&world);
}

static void errors_are_given(void **state)
{
    struct rt_world world;
    struct rt_outcome outcome;

    (void)state;
    rt_init(&world, NULL);
    rt_ready(&world);
    rt_do(&world, "[{\"error\":{\"type\":\"ValueError\",\"message\":\"no\",\"line\":3}}]",
          &outcome);
    assert_int_equal(outcome.end, HD_RT_REFUSED);
    assert_string_equal(outcome.head, "{\"type\":\"ValueError\",\"message\":\"no\",\"line\":3}");
    rt_is_well(&world);
    rt_fini(&world);
}

/* Without patience a call ends at once when no worker is ready; with it, the call waits for one. */
static void patience(void **state)
{
    struct rt_world world;
    struct rt_outcome hasty = {0}, patient;
    struct hd_rt_call_options options = rt_options("{\"op\":\"draw\"}", &hasty);

    (void)state;
    options.patience_us = 0;
    rt_init(&world, NULL);
    rt_start(&world);
    assert_err(hd_runtime_call(world.runtime, &options, &hasty.call), 0);
    assert_int_equal(hasty.ends, 0);
    rt_call(&world, false, "[{\"answer\":{}}]", &patient);
    rt_until(&world, hasty.ends);
    rt_lost(&hasty, "no python worker is ready");
    rt_until(&world, patient.ends);
    assert_int_equal(patient.end, HD_RT_ANSWERED);
    rt_fini(&world);
}

static void runs_wait_their_turn(void **state)
{
    struct rt_world world;
    struct rt_outcome first, others[3], draw;
    char steps[256];

    (void)state;
    rt_init(&world, NULL);
    world.settings.jobs = 1;
    rt_ready(&world);
    (void)snprintf(steps, sizeof(steps), "[{\"do\":\"wait_file\",\"path\":\"%s/go\"}]",
                   world.folder);
    rt_call(&world, true, steps, &first);
    for (size_t i = 0; i < HD_COUNT(others); i++)
        rt_call(&world, true, "[{\"do\":\"sleep\",\"seconds\":0.02}]", &others[i]);
    rt_call(&world, false, "[{\"answer\":{}}]", &draw);
    rt_until(&world, draw.ends);
    assert_int_equal(first.ends + others[0].ends + others[1].ends + others[2].ends, 0);
    (void)snprintf(steps, sizeof(steps), "[{\"do\":\"touch_file\",\"path\":\"%s/go\"}]",
                   world.folder);
    rt_call(&world, false, steps, &draw);
    rt_until(&world, others[2].ends);
    assert_true(first.order < others[0].order && others[0].order < others[1].order &&
                others[1].order < others[2].order);
    rt_fini(&world);
}

/* Runs are distributed over two workers. */
static void runs_are_spread(void **state)
{
    struct rt_world world;
    struct rt_outcome runs[2];
    int pids[2] = {0};

    (void)state;
    rt_init(&world, NULL);
    world.settings.programs[HD_RT_PYTHON].workers = 2;
    rt_ready(&world);
    for (int i = 0; i < 2; i++)
        rt_call(&world, true, "[{\"do\":\"sleep\",\"seconds\":0.05},{\"do\":\"identity\"}]",
                &runs[i]);
    for (int i = 0; i < 2; i++) {
        rt_until(&world, runs[i].ends);
        assert_int_equal(sscanf(runs[i].head, "{\"pid\":%d", &pids[i]), 1);
    }
    assert_int_not_equal(pids[0], pids[1]);
    rt_fini(&world);
}

static void cancelled_calls_end(void **state)
{
    struct rt_world world;
    struct rt_outcome running, waiting;

    (void)state;
    rt_init(&world, NULL);
    world.settings.jobs = 1;
    rt_ready(&world);
    rt_call(&world, true,
            "[{\"piece\":{\"number\":0}},{\"do\":\"cancelled\"},"
            "{\"answer\":{\"status\":\"cancelled\"}}]",
            &running);
    rt_call(&world, true, "[]", &waiting);
    rt_until(&world, running.pieces);
    hd_rt_call_cancel(waiting.call);
    assert_int_equal(waiting.ends, 0);
    rt_until(&world, waiting.ends);
    rt_lost(&waiting, "cancelled");
    hd_rt_call_cancel(running.call);
    hd_rt_call_cancel(running.call);
    rt_until(&world, running.ends);
    assert_int_equal(running.end, HD_RT_ANSWERED);
    assert_string_equal(running.head, "{\"status\":\"cancelled\"}");
    rt_fini(&world);
}

/* The worker is cancelled, and its later messages are ignored. */
static void late_calls_end(void **state)
{
    struct rt_world world;
    struct rt_outcome outcome = {0};
    struct hd_rt_call_options options = rt_options(
        "{\"op\":\"draw\",\"steps\":[{\"do\":\"cancelled\"},{\"piece\":{\"number\":0}}]}",
        &outcome);

    (void)state;
    options.timeout_us = 100000;
    rt_init(&world, NULL);
    rt_ready(&world);
    assert_err(hd_runtime_call(world.runtime, &options, &outcome.call), 0);
    rt_until(&world, outcome.ends);
    assert_int_equal(outcome.end, HD_RT_LATE);
    assert_non_null(strstr(outcome.head, "TimeoutError"));
    rt_until(&world, hd_runtime_counts(world.runtime, HD_RT_PYTHON).calls == 0);
    assert_int_equal(outcome.ends, 1);
    assert_int_equal(outcome.pieces, 0);
    rt_is_well(&world);
    rt_fini(&world);
}

/* A held call delivers no pieces; all are delivered after it is released. */
static void held_calls_wait(void **state)
{
    struct rt_world world;
    struct rt_outcome held;

    (void)state;
    rt_init(&world, NULL);
    rt_ready(&world);
    rt_call(&world, true, "[{\"do\":\"stream\",\"count\":2000},{\"answer\":{}}]", &held);
    held.hold_at = 10;
    rt_until(&world, held.pieces == 10);
    rt_is_well(&world);
    assert_int_equal(held.pieces, 10);
    hd_rt_call_hold(held.call, false);
    assert_int_equal(held.pieces, 10);
    rt_until(&world, held.ends);
    assert_int_equal(held.pieces, 2000);
    assert_false(held.is_unordered);
    rt_fini(&world);
}

/* The answer arrives while the call is held. */
static void ends_wait_for_pieces(void **state)
{
    struct rt_world world;
    struct rt_outcome held;

    (void)state;
    rt_init(&world, NULL);
    rt_ready(&world);
    rt_call(&world, true, "[{\"piece\":{\"number\":0}},{\"piece\":{\"number\":1}},{\"answer\":{}}]",
            &held);
    held.hold_at = 1;
    rt_until(&world, held.pieces == 1);
    rt_is_well(&world);
    rt_is_well(&world);
    assert_int_equal(held.ends, 0);
    hd_rt_call_hold(held.call, false);
    rt_until(&world, held.ends);
    assert_int_equal(held.pieces, 2);
    rt_fini(&world);
}

/* When a worker ignores back-pressure, the server stops reading from it. */
static void floods_are_bounded(void **state)
{
    struct rt_world world;
    struct rt_outcome flood;
    struct hd_rt_worker *worker;

    (void)state;
    rt_init(&world, NULL);
    rt_ready(&world);
    worker = world.runtime->workers;
    rt_call(&world, true, "[{\"do\":\"flood\",\"count\":600,\"size\":65536},{\"answer\":{}}]",
            &flood);
    flood.hold_at = 1;
    rt_until(&world, worker->is_crowding);
    for (int i = 0; i < 50; i++)
        (void)uv_run(&world.loop, UV_RUN_NOWAIT);
    assert_true(worker->queued < HD_RT_MAX_QUEUED + ((size_t)4 << 20));
    assert_int_equal(flood.pieces, 1);
    hd_rt_call_hold(flood.call, false);
    rt_until(&world, flood.ends);
    assert_int_equal(flood.pieces, 600);
    assert_false(flood.is_unordered);
    assert_int_equal(worker->queued, 0);
    rt_is_well(&world);
    rt_fini(&world);
}

static void dropped_calls_are_silent(void **state)
{
    struct rt_world world;
    struct rt_outcome running, waiting, streaming;

    (void)state;
    rt_init(&world, NULL);
    world.settings.jobs = 2;
    rt_ready(&world);
    rt_call(&world, true, "[{\"do\":\"stream\",\"count\":500},{\"do\":\"cancelled\"}]", &streaming);
    streaming.drop_at = 5;
    rt_call(&world, true, "[{\"piece\":{\"number\":0}},{\"do\":\"cancelled\"}]", &running);
    rt_call(&world, true, "[]", &waiting);
    hd_rt_call_drop(waiting.call);
    rt_until(&world, running.pieces == 1 && streaming.pieces == 5);
    hd_rt_call_drop(running.call);
    rt_until(&world, hd_runtime_counts(world.runtime, HD_RT_PYTHON).calls == 0);
    assert_int_equal(waiting.ends + running.ends + streaming.ends, 0);
    assert_int_equal(streaming.pieces, 5);
    rt_is_well(&world);
    rt_fini(&world);
}

/* Destroying a runtime frees all calls without calling back. */
static void destroyed_with_calls(void **state)
{
    struct rt_world world;
    struct rt_outcome running, waiting, held;

    (void)state;
    rt_init(&world, NULL);
    world.settings.jobs = 2;
    rt_ready(&world);
    rt_call(&world, true, "[{\"piece\":{\"number\":0}},{\"do\":\"never\"}]", &running);
    rt_call(&world, true, "[{\"do\":\"stream\",\"count\":9},{\"do\":\"never\"}]", &held);
    held.hold_at = 1;
    rt_call(&world, true, "[]", &waiting);
    rt_until(&world, running.pieces == 1 && held.pieces == 1);
    rt_fini(&world);
    assert_int_equal(running.ends + waiting.ends + held.ends, 0);
}

static int try_without_memory(void *arg)
{
    struct rt_world *world = arg;
    struct rt_outcome outcome = {0};
    struct hd_rt_call_options options = rt_options("{\"op\":\"draw\"}", &outcome);
    const struct hd_rt_scope scope = {.principal = HD_S_INIT("ada"), .thread = HD_S_INIT("t")};
    struct hd_runtime *runtime;
    int err = hd_runtime_create(&world->loop, NULL, &world->settings, &runtime, NULL);

    if (err)
        return err;
    options.scope = &scope;
    err = hd_runtime_call(runtime, &options, &outcome.call);
    hd_runtime_destroy(runtime);
    for (int i = 0; i < 10; i++)
        (void)uv_run(&world->loop, UV_RUN_NOWAIT);
    return err;
}

static void memory_may_end(void **state)
{
    struct rt_world world;

    (void)state;
    rt_init(&world, NULL);
    assert_true(check_every_allocation(try_without_memory, &world) > 2);
    rt_fini(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_are_given),    cmocka_unit_test(pieces_come_first_and_in_order),
        cmocka_unit_test(errors_are_given),     cmocka_unit_test(patience),
        cmocka_unit_test(runs_wait_their_turn), cmocka_unit_test(runs_are_spread),
        cmocka_unit_test(cancelled_calls_end),  cmocka_unit_test(late_calls_end),
        cmocka_unit_test(held_calls_wait),      cmocka_unit_test(ends_wait_for_pieces),
        cmocka_unit_test(floods_are_bounded),   cmocka_unit_test(dropped_calls_are_silent),
        cmocka_unit_test(destroyed_with_calls), cmocka_unit_test(memory_may_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
