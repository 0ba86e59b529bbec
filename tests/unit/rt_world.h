/* Workers for tests: tests/runtime/lib/fake_worker.py, a loop, and the results of calls. */
#ifndef HD_TESTS_UNIT_RT_WORLD_H
#define HD_TESTS_UNIT_RT_WORLD_H

#include <heddle.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uv.h>

#include "base/alloc.h"
#include "base/log.h"
#include "runtime/runtime_internal.h"
#include "tests/unit/check.h"

#define RT_PATIENCE_US INT64_C(60000000)

struct rt_world {
    uv_loop_t loop;
    uv_timer_t timer; /* keeps the loop from sleeping long */
    struct heddle *store;
    struct hd_runtime *runtime;
    struct hd_rt_settings settings;
    char script[512], table[4096];
    const char *argv[3], *env[3];
    char folder[64];
    int ready_count;
    char ready[512];
    bool is_drained;
};

/* The result of a call. */
struct rt_outcome {
    struct hd_rt_call *call;
    int ends;
    enum hd_rt_end end;
    char head[16384];
    char blob[64]; /* the beginning of the first */
    size_t blob_bytes, blob_count;
    int pieces;
    bool is_unordered;
    int hold_at, drop_at; /* pieces; 0: never */
    int order;            /* of ends */
};

static int rt_ends;
static char rt_log[65536];

static inline void rt_on_log(void *arg, enum hd_log_level level, const char *line)
{
    size_t len = strlen(rt_log);

    (void)arg;
    (void)level;
    if (len + strlen(line) + 2 < sizeof(rt_log))
        (void)snprintf(rt_log + len, sizeof(rt_log) - len, "%s\n", line);
}

static inline void rt_on_timer(uv_timer_t *timer)
{
    (void)timer;
}

static inline void rt_on_ready(void *ctx, enum hd_rt_language language, struct hd_slice head)
{
    struct rt_world *world = ctx;

    (void)language;
    world->ready_count++;
    (void)snprintf(world->ready, sizeof(world->ready), "%.*s", (int)head.len, head.ptr);
}

/* Runs the loop until the condition is true; fails after two minutes. */
#define rt_until(world, condition)                                            \
    do {                                                                      \
        uint64_t rt_end_ = uv_hrtime() + UINT64_C(120000000000);              \
        while (!(condition) && uv_hrtime() < rt_end_)                         \
            (void)uv_run(&(world)->loop, UV_RUN_ONCE);                        \
        if (!(condition))                                                     \
            fail_msg("line %d: never: %s\n%s", __LINE__, #condition, rt_log); \
    } while (0)

static inline void rt_init(struct rt_world *world, const char *table)
{
    const char *data = getenv("HD_TEST_DATA");

    memset(world, 0, sizeof(*world));
    rt_log[0] = '\0';
    rt_ends = 0;
    hd_log_set_level(HD_LOG_INFO);
    hd_log_set_sink(rt_on_log, NULL);
    assert_int_equal(uv_loop_init(&world->loop), 0);
    assert_int_equal(uv_timer_init(&world->loop, &world->timer), 0);
    assert_int_equal(uv_timer_start(&world->timer, rt_on_timer, 20, 20), 0);
    (void)snprintf(world->script, sizeof(world->script), "%s/../runtime/lib/fake_worker.py",
                   data ? data : "tests/data");
    (void)snprintf(world->table, sizeof(world->table), "FAKE_WORKER=%s", table ? table : "{}");
    (void)snprintf(world->folder, sizeof(world->folder), "/tmp/rt-test-XXXXXX");
    assert_non_null(mkdtemp(world->folder));
    world->argv[0] = "python3";
    world->argv[1] = world->script;
    world->env[0] = world->table;
    world->env[1] = "PYTHONDONTWRITEBYTECODE=1";
    world->settings = (struct hd_rt_settings){
        .programs = {{.argv = world->argv,
                      .env = world->env,
                      .workers = 1,
                      .project = HD_S_INIT("{\"folder\":\"here\"}")}},
        .jobs = 10,
        .start_timeout_us = RT_PATIENCE_US,
        .hang_timeout_us = RT_PATIENCE_US,
        .drain_us = RT_PATIENCE_US,
    };
}

static inline void rt_start(struct rt_world *world)
{
    struct heddle_error fault = {0};

    assert_err(
        hd_runtime_create(&world->loop, world->store, &world->settings, &world->runtime, &fault),
        0);
    hd_runtime_on_ready(world->runtime, rt_on_ready, world);
    if (hd_runtime_start(world->runtime, &fault))
        fail_msg("%s", fault.text);
}

static inline void rt_ready(struct rt_world *world)
{
    rt_start(world);
    rt_until(world, hd_runtime_counts(world->runtime, HD_RT_PYTHON).workers ==
                        world->settings.programs[HD_RT_PYTHON].workers);
}

static inline void rt_fini(struct rt_world *world)
{
    char command[128];

    hd_runtime_destroy(world->runtime);
    uv_close((uv_handle_t *)&world->timer, NULL);
    assert_int_equal(uv_run(&world->loop, UV_RUN_DEFAULT), 0);
    assert_int_equal(uv_loop_close(&world->loop), 0);
    heddle_close(world->store);
    hd_log_set_sink(NULL, NULL);
    (void)snprintf(command, sizeof(command), "rm -rf %s", world->folder);
    assert_int_equal(system(command), 0);
}

static inline void rt_on_piece(void *ctx, const struct hd_rt_message *message)
{
    struct rt_outcome *outcome = ctx;
    char expected[32];

    (void)snprintf(expected, sizeof(expected), "\"number\":%d}", outcome->pieces);
    outcome->is_unordered |=
        !memmem(message->head.ptr, message->head.len, expected, strlen(expected));
    outcome->pieces++;
    if (outcome->pieces == outcome->hold_at)
        hd_rt_call_hold(outcome->call, true);
    if (outcome->pieces == outcome->drop_at)
        hd_rt_call_drop(outcome->call);
}

static inline void rt_on_end(void *ctx, enum hd_rt_end end, const struct hd_rt_message *message)
{
    struct rt_outcome *outcome = ctx;

    outcome->ends++;
    outcome->end = end;
    outcome->order = ++rt_ends;
    (void)snprintf(outcome->head, sizeof(outcome->head), "%.*s", (int)message->head.len,
                   message->head.ptr);
    outcome->blob_count = message->blob_count;
    for (size_t i = 0; i < message->blob_count; i++)
        outcome->blob_bytes += message->blobs[i].len;
    if (message->blob_count > 0)
        (void)snprintf(outcome->blob, sizeof(outcome->blob), "%.*s", (int)message->blobs[0].len,
                       message->blobs[0].ptr);
}

static inline struct hd_rt_call_options rt_options(const char *head, struct rt_outcome *outcome)
{
    return (struct hd_rt_call_options){.head = hd_slice_cstr(head),
                                       .patience_us = RT_PATIENCE_US,
                                       .on_piece = rt_on_piece,
                                       .on_end = rt_on_end,
                                       .ctx = outcome};
}

/* Starts a call that executes these steps; see the fake worker. */
static inline void rt_call(struct rt_world *world, bool is_run, const char *steps,
                           struct rt_outcome *outcome)
{
    char head[4096];
    struct hd_rt_call_options options;

    memset(outcome, 0, sizeof(*outcome));
    (void)snprintf(head, sizeof(head), "{\"op\":\"%s\",\"steps\":%s}", is_run ? "run" : "draw",
                   steps);
    options = rt_options(head, outcome);
    options.is_run = is_run;
    assert_err(hd_runtime_call(world->runtime, &options, &outcome->call), 0);
    assert_int_equal(outcome->ends, 0);
}

static inline void rt_do(struct rt_world *world, const char *steps, struct rt_outcome *outcome)
{
    rt_call(world, true, steps, outcome);
    rt_until(world, outcome->ends);
}

/* A worker responds correctly. */
static inline void rt_is_well(struct rt_world *world)
{
    struct rt_outcome outcome;

    rt_do(world, "[{\"answer\":{\"well\":true}}]", &outcome);
    assert_int_equal(outcome.end, HD_RT_ANSWERED);
    assert_string_equal(outcome.head, "{\"well\":true}");
}

#define rt_lost(outcome, reason)                                        \
    do {                                                                \
        assert_int_equal((outcome)->ends, 1);                           \
        assert_int_equal((outcome)->end, HD_RT_LOST);                   \
        if (!strstr((outcome)->head, reason))                           \
            fail_msg("%s: not because of %s", (outcome)->head, reason); \
        assert_non_null(strstr((outcome)->head, "\"unavailable\""));    \
    } while (0)

#endif
