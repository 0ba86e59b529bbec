/*
 * What the tests of the engine share: a store, a loop, an engine, and graphs to
 * run. The functions are inline because not every test uses all of them.
 */
#ifndef TESTS_UNIT_ENGINE_WORLD_H
#define TESTS_UNIT_ENGINE_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <uv.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "graph/engine.h"
#include "graph/graph.h"
#include "graph/run.h"
#include "graph/state.h"
#include "heddle.h"

#define LINE                                                                          \
    "{\"name\":\"line\",\"state\":{\"log\":{\"reducer\":\"add\",\"type\":\"list\"}}," \
    "\"nodes\":{\"a\":{\"kind\":\"set\",\"update\":{\"log\":[\"a\"]}},"               \
    "\"b\":{\"kind\":\"set\",\"update\":{\"log\":[\"b\"]}}},"                         \
    "\"edges\":[[\"__start__\",\"a\"],[\"a\",\"b\"],[\"b\",\"__end__\"]]}"

#define SLEEPERS                                                                          \
    "{\"name\":\"sleepers\",\"state\":{\"log\":{\"reducer\":\"add\",\"type\":\"list\"}}," \
    "\"nodes\":{\"x\":{\"kind\":\"sleep\",\"ms\":150,\"update\":{\"log\":[\"x\"]}},"      \
    "\"y\":{\"kind\":\"sleep\",\"ms\":150,\"update\":{\"log\":[\"y\"]}},"                 \
    "\"z\":{\"kind\":\"set\",\"update\":{\"log\":[\"z\"]}}},"                             \
    "\"edges\":[[\"__start__\",\"x\"],[\"__start__\",\"y\"],[\"__start__\",\"z\"],"       \
    "[\"x\",\"__end__\"]]}"

#define NESTED                                                                          \
    "{\"name\":\"nested\",\"state\":{\"log\":{\"reducer\":\"add\",\"type\":\"list\"}}," \
    "\"graphs\":{\"inner\":{\"name\":\"inner\","                                        \
    "\"state\":{\"log\":{\"reducer\":\"add\",\"type\":\"list\"}},"                      \
    "\"nodes\":{\"ask\":{\"kind\":\"interrupt\",\"ask\":[\"sure?\"],"                   \
    "\"update\":{\"log\":[\"{{answers[0]}}\"]}},"                                       \
    "\"nap\":{\"kind\":\"sleep\",\"ms\":20}},"                                          \
    "\"edges\":[[\"__start__\",\"nap\"],[\"nap\",\"ask\"]]}},"                          \
    "\"nodes\":{\"sub\":{\"kind\":\"subgraph\",\"graph\":\"inner\","                    \
    "\"input\":{\"log\":[]},\"update\":{\"log\":\"{{result.log}}\"}}},"                 \
    "\"edges\":[[\"__start__\",\"sub\"]]}"

struct world {
    struct heddle *store;
    char path[64];
    uv_loop_t uv;
    struct hd_engine *engine;
    const char *thread, *root; /* of the runs and states; NULL: "t" and none */
    int ends;
    enum hd_run_status status;
    char error[128];
    struct hd_run *run;
    uv_timer_t timer;
};

static inline struct hd_slice slice_or(const char *text, const char *instead)
{
    return hd_slice_cstr(text ? text : instead);
}

static inline void open_world(struct world *w, bool is_direct)
{
    memset(w, 0, sizeof(*w));
    snprintf(w->path, sizeof(w->path), "/tmp/engine-test-%d.db", (int)getpid());
    (void)unlink(w->path);
    if (is_direct) {
        assert_int_equal(heddle_open(&w->store, "memory:", NULL), 0);
    } else {
        char url[128];

        snprintf(url, sizeof(url), "sqlite:%s?durability=relaxed", w->path);
        assert_int_equal(heddle_open(&w->store, url, NULL), 0);
    }
    assert_int_equal(uv_loop_init(&w->uv), 0);
    assert_int_equal(hd_engine_create(w->store, &w->uv, is_direct, &w->engine), 0);
}

static inline void close_world(struct world *w)
{
    hd_engine_destroy(w->engine);
    uv_run(&w->uv, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&w->uv), 0);
    heddle_close(w->store);
    (void)unlink(w->path);
}

static inline struct hd_graph *read_graph(const char *text)
{
    struct hd_graph_error error;
    struct hd_graph *graph;

    if (hd_graph_read(hd_slice_cstr(text), &graph, &error) != 0)
        fail_msg("%s: %s", error.path, error.text);
    return graph;
}

static inline struct hd_val *json(const char *text)
{
    struct hd_val *val;

    assert_int_equal(hd_val_parse(hd_slice_cstr(text), &val, NULL), 0);
    return val;
}

static inline void on_done(void *ctx, const struct hd_run_result *result)
{
    struct world *w = ctx;

    w->ends++;
    w->status = result->status;
    w->run = NULL;
    snprintf(w->error, sizeof(w->error), "%s", result->error_type ? result->error_type : "");
}

static inline int start(struct world *w, const struct hd_graph *graph, const struct hd_val *input,
                        const struct hd_val *command)
{
    struct hd_run_options options = {.graph = graph,
                                     .thread = slice_or(w->thread, "t"),
                                     .root = slice_or(w->root, ""),
                                     .input = input,
                                     .command = command,
                                     .on_done = on_done,
                                     .ctx = w};

    w->ends = 0;
    w->error[0] = '\0';
    return hd_run_start(w->engine, &options, &w->run);
}

static inline void run(struct world *w, const struct hd_graph *graph, const char *input,
                       const char *command)
{
    struct hd_val *in = input ? json(input) : NULL, *cmd = command ? json(command) : NULL;

    assert_int_equal(start(w, graph, in, cmd), 0);
    assert_int_equal(w->ends, 0); /* never before hd_run_start() returned */
    uv_run(&w->uv, UV_RUN_DEFAULT);
    assert_int_equal(w->ends, 1);
    hd_val_unref(in);
    hd_val_unref(cmd);
}

static inline struct hd_val *state_of(struct world *w, const struct hd_graph *graph)
{
    struct hd_address at = {.store = w->store,
                            .graph = graph,
                            .thread = slice_or(w->thread, "t"),
                            .root = slice_or(w->root, "")};
    struct hd_failure failure = {NULL, NULL};
    struct hd_val *state;

    assert_int_equal(hd_state_get(&at, true, &state, &failure), 0);
    return state;
}

static inline void assert_member(const struct hd_val *state, const char *key, const char *wanted)
{
    struct hd_val *val = json(wanted);
    const struct hd_val *got = hd_val_get(state, hd_slice_cstr(key));
    struct hd_buf text;

    hd_buf_init(&text, 100000);
    assert_int_equal(hd_val_write(&text, got), 0);
    if (!hd_val_equal(got, val))
        fail_msg("%s is %.*s, not %s", key, (int)text.len, text.ptr, wanted);
    hd_buf_fini(&text);
    hd_val_unref(val);
}

#endif
