/* Shared by the tests of the engine: a store, a loop, an engine, and graphs. The functions are
 * inline because not every test uses all of them. */
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
#include "base/uuid.h"
#include "graph/decl/graph.h"
#include "graph/engine/events.h"
#include "graph/engine/failure.h"
#include "graph/engine/run.h"
#include "graph/state/state.h"
#include "heddle.h"

#define LINE                                                                          \
    "{\"name\":\"line\",\"state\":{\"log\":{\"reducer\":\"add\",\"type\":\"list\"}}," \
    "\"nodes\":{\"a\":{\"kind\":\"set\",\"update\":{\"log\":[\"a\"]}},"               \
    "\"b\":{\"kind\":\"set\",\"update\":{\"log\":[\"b\"]}}},"                         \
    "\"edges\":[[\"__start__\",\"a\"],[\"a\",\"b\"],[\"b\",\"__end__\"]]}"

#define SLEEPERS                                                                          \
    "{\"name\":\"sleepers\",\"state\":{\"log\":{\"reducer\":\"add\",\"type\":\"list\"}}," \
    "\"nodes\":{\"x\":{\"kind\":\"sleep\",\"ms\":1000,\"update\":{\"log\":[\"x\"]}},"     \
    "\"y\":{\"kind\":\"sleep\",\"ms\":500,\"update\":{\"log\":[\"y\"]}},"                 \
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
    const char *thread, *root; /* of the runs and states; NULL: "t", and no root */
    enum hd_durability durability;
    struct hd_stops before, after;
    int ends;
    enum hd_engine_run_status status;
    char error[128];
    char checkpoint_id[HD_UUID_SIZE];
    int64_t step, stopped_at;
    struct hd_val *next, *asked;
    struct hd_engine_run *run;
    struct hd_slice watched; /* the run is cancelled at this node's event */
    enum hd_event_type watched_type;
    uv_timer_t timer;
    char ended[16]; /* the first letters of nodes, in the order of their results */
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
    hd_val_unref(w->next);
    hd_val_unref(w->asked);
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

static inline void on_done(void *ctx, const struct hd_engine_run_result *result)
{
    struct world *w = ctx;

    w->ends++;
    w->status = result->status;
    w->run = NULL;
    snprintf(w->error, sizeof(w->error), "%s", result->error_type ? result->error_type : "");
    snprintf(w->checkpoint_id, sizeof(w->checkpoint_id), "%s", result->checkpoint_id);
    w->step = result->step;
    w->stopped_at = result->stopped_at;
    hd_val_unref(w->next);
    hd_val_unref(w->asked);
    w->next = hd_val_ref(result->next);
    w->asked = hd_val_ref(result->asked);
}

static inline void cancel_now(uv_timer_t *timer)
{
    struct world *w = timer->data;

    if (w->run)
        hd_engine_run_cancel(w->run);
}

/* Cancels by a timer of 0 ms, which fires before every timer that is started later. */
static inline void note_event(void *ctx, const struct hd_event *event)
{
    struct world *w = ctx;
    size_t len = strlen(w->ended);

    if (event->type == HD_EVENT_TASK_RESULT && len + 1 < sizeof(w->ended))
        w->ended[len] = hd_event_node(event).ptr[0];
    if (w->watched.len > 0 && event->type == w->watched_type &&
        hd_slice_eq(hd_event_node(event), w->watched)) {
        w->watched.len = 0;
        uv_timer_start(&w->timer, cancel_now, 0, 0);
    }
}

static inline int start(struct world *w, const struct hd_graph *graph, const struct hd_val *input,
                        const struct hd_val *command)
{
    struct hd_engine_run_options options = {.graph = graph,
                                            .thread = slice_or(w->thread, "t"),
                                            .root = slice_or(w->root, ""),
                                            .durability = w->durability,
                                            .before = w->before,
                                            .after = w->after,
                                            .input = input,
                                            .command = command,
                                            .on_event = note_event,
                                            .on_done = on_done,
                                            .ctx = w};

    w->ends = 0;
    w->error[0] = '\0';
    memset(w->ended, 0, sizeof(w->ended));
    return hd_engine_run_start(w->engine, &options, &w->run);
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

static inline void assert_equal(const char *what, const struct hd_val *got,
                                const struct hd_val *wanted)
{
    struct hd_buf text;

    if (hd_val_equal(got, wanted))
        return;
    hd_buf_init(&text, 1000000);
    assert_int_equal(hd_val_write(&text, got), 0);
    assert_int_equal(hd_buf_append_slice(&text, HD_S(" is not ")), 0);
    assert_int_equal(hd_val_write(&text, wanted), 0);
    fail_msg("%s: %.*s", what, (int)text.len, text.ptr);
}

/* A state with its values as text renders like one with parsed values. */
static inline void assert_shown_alike(const struct hd_val *text, const struct hd_val *state)
{
    struct hd_buf a, b;

    hd_buf_init(&a, 10000000);
    hd_buf_init(&b, 10000000);
    assert_non_null(hd_val_get(text, HD_S("values_text")));
    assert_int_equal(hd_state_render(&a, text, HD_S("x"), HD_S("r")), 0);
    assert_int_equal(hd_state_render(&b, state, HD_S("x"), HD_S("r")), 0);
    assert_int_equal(hd_buf_append_byte(&a, 0), 0);
    assert_int_equal(hd_buf_append_byte(&b, 0), 0);
    assert_string_equal(a.ptr, b.ptr);
    hd_buf_fini(&a);
    hd_buf_fini(&b);
}

static inline void assert_text_is_state(const struct hd_address *at, const struct hd_val *state)
{
    struct hd_address text_at = *at;
    struct hd_failure failure = {NULL, NULL};
    struct hd_val *text;

    text_at.as_text = true;
    assert_int_equal(hd_state_get(&text_at, true, &text, &failure), 0);
    assert_shown_alike(text, state);
    hd_val_unref(text);
}

/* The result of the run equals the thread's state, in every way to read it. */
static inline void assert_end_is_state(struct world *w, const struct hd_graph *graph)
{
    struct hd_address at = {.store = w->store,
                            .graph = graph,
                            .thread = slice_or(w->thread, "t"),
                            .root = slice_or(w->root, "")};
    struct hd_val *state = state_of(w, graph), *asked = hd_val_object();
    const struct hd_val *tasks = hd_val_get(state, HD_S("tasks"));
    struct hd_slice id =
        hd_val_get_string(hd_val_get(hd_val_get(state, HD_S("config")), HD_S("checkpoint_id")));
    struct hd_failure failure = {NULL, NULL};
    struct hd_buf values, again;
    int64_t step = -2;

    (void)hd_val_get_int(hd_val_get(hd_val_get(state, HD_S("metadata")), HD_S("step")), &step);
    assert_true(hd_slice_eq(hd_slice_cstr(w->checkpoint_id), id));
    assert_int_equal(w->step, step);
    assert_int_equal(w->stopped_at, step + 1);
    assert_equal("next", w->next, hd_val_get(state, HD_S("next")));
    for (size_t i = 0; i < hd_val_count(tasks); i++) {
        const struct hd_val *task = hd_val_at(tasks, i);
        const struct hd_val *questions = hd_val_get(task, HD_S("interrupts"));

        if (hd_val_count(questions) > 0)
            asked = hd_val_with(asked, hd_val_get_string(hd_val_get(task, HD_S("id"))),
                                hd_val_ref(questions));
    }
    assert_equal("asked", w->asked, asked);
    hd_buf_init(&values, 10000000);
    hd_buf_init(&again, 10000000);
    assert_int_equal(hd_state_values(&at, &values, &failure), 0);
    assert_int_equal(hd_val_render(&again, hd_val_get(state, HD_S("values"))), 0);
    assert_int_equal(values.len, again.len);
    assert_memory_equal(values.ptr, again.ptr, again.len);
    hd_buf_fini(&values);
    hd_buf_fini(&again);
    assert_text_is_state(&at, state);
    hd_val_unref(asked);
    hd_val_unref(state);
}

static inline void run(struct world *w, const struct hd_graph *graph, const char *input,
                       const char *command)
{
    struct hd_val *in = input ? json(input) : NULL, *cmd = command ? json(command) : NULL;

    assert_int_equal(start(w, graph, in, cmd), 0);
    assert_int_equal(w->ends,
                     0); /* the end is never reported before hd_engine_run_start() returned */
    uv_run(&w->uv, UV_RUN_DEFAULT);
    assert_int_equal(w->ends, 1);
    assert_end_is_state(w, graph);
    hd_val_unref(in);
    hd_val_unref(cmd);
}

/* Cancels a run at this event of `node`. NULL: at once. "": the test cancels it. */
static inline void cancel_on(struct world *w, const struct hd_graph *graph, enum hd_event_type type,
                             const char *node)
{
    struct hd_val *in = json("{\"log\":[\"in\"]}");

    uv_timer_init(&w->uv, &w->timer);
    w->timer.data = w;
    w->watched_type = type;
    w->watched = slice_or(node, "");
    assert_int_equal(start(w, graph, in, NULL), 0);
    if (!node)
        hd_engine_run_cancel(w->run);
    uv_run(&w->uv, UV_RUN_DEFAULT);
    uv_close((uv_handle_t *)&w->timer, NULL);
    uv_run(&w->uv, UV_RUN_DEFAULT);
    assert_int_equal(w->ends, 1);
    assert_int_equal(w->status, HD_ENGINE_RUN_CANCELLED);
    assert_end_is_state(w, graph);
    hd_val_unref(in);
}

#endif
