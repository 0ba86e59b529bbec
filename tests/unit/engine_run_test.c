/* Runs: how they end, what they leave, what they cost when memory is short. */
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
    int ends;
    enum hd_run_status status;
    char error[128];
    struct hd_run *run;
    uv_timer_t timer;
};

static void open_world(struct world *w, bool is_direct)
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

static void close_world(struct world *w)
{
    hd_engine_destroy(w->engine);
    uv_run(&w->uv, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&w->uv), 0);
    heddle_close(w->store);
    (void)unlink(w->path);
}

static struct hd_graph *read_graph(const char *text)
{
    struct hd_graph_error error;
    struct hd_graph *graph;

    if (hd_graph_read(hd_slice_cstr(text), &graph, &error) != 0)
        fail_msg("%s: %s", error.path, error.text);
    return graph;
}

static struct hd_val *json(const char *text)
{
    struct hd_val *val;

    assert_int_equal(hd_val_parse(hd_slice_cstr(text), &val, NULL), 0);
    return val;
}

static void on_done(void *ctx, const struct hd_run_result *result)
{
    struct world *w = ctx;

    w->ends++;
    w->status = result->status;
    w->run = NULL;
    snprintf(w->error, sizeof(w->error), "%s", result->error_type ? result->error_type : "");
}

static int start(struct world *w, const struct hd_graph *graph, const struct hd_val *input,
                 const struct hd_val *command)
{
    struct hd_run_options options = {.graph = graph,
                                     .thread = HD_S("t"),
                                     .input = input,
                                     .command = command,
                                     .on_done = on_done,
                                     .ctx = w};

    w->ends = 0;
    w->error[0] = '\0';
    return hd_run_start(w->engine, &options, &w->run);
}

static void run(struct world *w, const struct hd_graph *graph, const char *input,
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

static struct hd_val *state_of(struct world *w, const struct hd_graph *graph)
{
    struct hd_address at = {.store = w->store, .graph = graph, .thread = HD_S("t")};
    struct hd_failure failure = {NULL, NULL};
    struct hd_val *state;

    assert_int_equal(hd_state_get(&at, true, &state, &failure), 0);
    return state;
}

static void assert_member(const struct hd_val *state, const char *key, const char *wanted)
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

static void line(bool is_direct)
{
    struct hd_graph *graph = read_graph(LINE);
    struct hd_val *state;
    struct world w;

    open_world(&w, is_direct);
    run(&w, graph, "{\"log\":[\"in\"]}", NULL);
    assert_int_equal(w.status, HD_RUN_DONE);
    state = state_of(&w, graph);
    assert_member(state, "values", "{\"log\":[\"in\",\"a\",\"b\"]}");
    assert_member(state, "next", "[]");
    assert_member(hd_val_get(state, HD_S("metadata")), "step", "2");
    hd_val_unref(state);
    run(&w, graph, "{\"log\":[\"more\"]}", NULL);
    state = state_of(&w, graph);
    assert_member(state, "values", "{\"log\":[\"in\",\"a\",\"b\",\"more\",\"a\",\"b\"]}");
    hd_val_unref(state);
    close_world(&w);
    hd_graph_destroy(graph);
}

static void runs_a_line_in_memory(void **unused)
{
    (void)unused;
    line(true);
}

static void runs_a_line_on_disk(void **unused)
{
    (void)unused;
    line(false);
}

static void tasks_of_a_step_overlap(void **unused)
{
    struct hd_graph *graph = read_graph(SLEEPERS);
    int64_t began = hd_clock_monotonic_us();
    struct hd_val *state;
    struct world w;

    (void)unused;
    open_world(&w, true);
    run(&w, graph, "{\"log\":[]}", NULL);
    assert_true(hd_clock_monotonic_us() - began < 290000);
    state = state_of(&w, graph);
    /* By name, whoever came first. */
    assert_member(state, "values", "{\"log\":[\"x\",\"y\",\"z\"]}");
    hd_val_unref(state);
    close_world(&w);
    hd_graph_destroy(graph);
}

static void cancel_now(uv_timer_t *timer)
{
    struct world *w = timer->data;

    if (w->run)
        hd_run_cancel(w->run);
    uv_close((uv_handle_t *)timer, NULL);
}

static void cancel_after(struct world *w, const struct hd_graph *graph, int ms)
{
    struct hd_val *in = json("{\"log\":[\"in\"]}");

    assert_int_equal(start(w, graph, in, NULL), 0);
    uv_timer_init(&w->uv, &w->timer);
    w->timer.data = w;
    if (ms < 0) {
        hd_run_cancel(w->run);
        uv_close((uv_handle_t *)&w->timer, NULL);
    } else {
        uv_timer_start(&w->timer, cancel_now, (uint64_t)ms, 0);
    }
    uv_run(&w->uv, UV_RUN_DEFAULT);
    assert_int_equal(w->ends, 1);
    assert_int_equal(w->status, HD_RUN_CANCELLED);
    hd_val_unref(in);
}

/* What is finished stays finished: only the sleepers run again. */
static void a_cancelled_run_can_be_resumed(void **unused)
{
    struct hd_graph *graph = read_graph(SLEEPERS);
    struct hd_val *state;
    struct world w;

    (void)unused;
    open_world(&w, false);
    cancel_after(&w, graph, 40);
    state = state_of(&w, graph);
    assert_member(state, "next", "[\"x\",\"y\"]");
    assert_member(state, "values", "{\"log\":[\"in\",\"z\"]}");
    hd_val_unref(state);
    run(&w, graph, NULL, NULL);
    assert_int_equal(w.status, HD_RUN_DONE);
    state = state_of(&w, graph);
    assert_member(state, "values", "{\"log\":[\"in\",\"x\",\"y\",\"z\"]}");
    hd_val_unref(state);
    close_world(&w);
    hd_graph_destroy(graph);
}

static void a_run_can_be_cancelled_before_it_starts(void **unused)
{
    struct hd_graph *graph = read_graph(SLEEPERS);
    struct hd_val *state;
    struct world w;

    (void)unused;
    open_world(&w, true);
    cancel_after(&w, graph, -1);
    state = state_of(&w, graph);
    assert_member(state, "values", "{}");
    hd_val_unref(state);
    close_world(&w);
    hd_graph_destroy(graph);
}

/* A graph that never waits must not keep the loop for itself. */
static void an_endless_run_can_be_cancelled(void **unused)
{
    struct hd_graph *graph = read_graph(
        "{\"name\":\"endless\",\"state\":{\"log\":{\"type\":\"list\"}},\"recursion_limit\":10000,"
        "\"nodes\":{\"a\":{\"kind\":\"set\",\"update\":{\"log\":[1]}},"
        "\"b\":{\"kind\":\"set\",\"update\":{\"log\":[2]}}},"
        "\"edges\":[[\"__start__\",\"a\"],[\"a\",\"b\"],[\"b\",\"a\"]]}");
    struct hd_val *state;
    struct world w;

    (void)unused;
    open_world(&w, true);
    cancel_after(&w, graph, 1);
    state = state_of(&w, graph);
    assert_int_equal(hd_val_count(hd_val_get(state, HD_S("next"))), 1);
    hd_val_unref(state);
    close_world(&w);
    hd_graph_destroy(graph);
}

static void a_subgraph_can_be_cancelled(void **unused)
{
    struct hd_graph *graph = read_graph(NESTED);
    struct world w;

    (void)unused;
    for (int direct = 0; direct < 2; direct++) {
        open_world(&w, direct);
        cancel_after(&w, graph, 8);
        run(&w, graph, NULL, NULL);
        assert_int_equal(w.status, HD_RUN_INTERRUPTED);
        close_world(&w);
    }
    hd_graph_destroy(graph);
}

static void a_question_in_a_subgraph_is_answered(void **unused)
{
    struct hd_graph *graph = read_graph(NESTED);
    struct hd_val *state;
    struct world w;

    (void)unused;
    open_world(&w, false);
    run(&w, graph, "{\"log\":[\"in\"]}", NULL);
    assert_int_equal(w.status, HD_RUN_INTERRUPTED);
    state = state_of(&w, graph);
    assert_int_equal(hd_val_count(hd_val_get(state, HD_S("interrupts"))), 1);
    hd_val_unref(state);
    run(&w, graph, NULL, "{\"$\":\"command\",\"resume\":\"yes\"}");
    assert_int_equal(w.status, HD_RUN_DONE);
    state = state_of(&w, graph);
    assert_member(state, "values", "{\"log\":[\"in\",\"yes\"]}");
    hd_val_unref(state);
    close_world(&w);
    hd_graph_destroy(graph);
}

static void an_empty_thread_cannot_go_on(void **unused)
{
    struct hd_graph *graph = read_graph(LINE);
    struct world w;

    (void)unused;
    open_world(&w, true);
    run(&w, graph, NULL, NULL);
    assert_int_equal(w.status, HD_RUN_FAILED);
    assert_string_equal(w.error, "EmptyInputError");
    close_world(&w);
    hd_graph_destroy(graph);
}

/* Whichever allocation fails, the run ends once, and the thread can go on afterwards. */
static void ends_once_when_memory_is_short(void **unused)
{
    static const char *const texts[] = {LINE, NESTED};
    struct world w;

    (void)unused;
    for (size_t i = 0; i < HD_COUNT(texts); i++) {
        struct hd_graph *graph = read_graph(texts[i]);
        bool is_short = true;

        for (long n = 1; is_short && n < 100000; n++) {
            struct hd_val *in = json("{\"log\":[\"in\"]}");
            int err;

            open_world(&w, true);
            (void)hd_alloc_fail_at(n, 0);
            err = start(&w, graph, in, NULL);
            if (!err)
                uv_run(&w.uv, UV_RUN_DEFAULT);
            is_short = hd_alloc_fail_at(0, 0) >= n;
            assert_int_equal(w.ends, err ? 0 : 1);
            if (!is_short)
                assert_int_not_equal(w.status, HD_RUN_FAILED);
            run(&w, graph, "{\"log\":[\"again\"]}", NULL);
            assert_int_not_equal(w.status, HD_RUN_FAILED);
            hd_val_unref(in);
            close_world(&w);
        }
        hd_graph_destroy(graph);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs_a_line_in_memory),
        cmocka_unit_test(runs_a_line_on_disk),
        cmocka_unit_test(tasks_of_a_step_overlap),
        cmocka_unit_test(a_cancelled_run_can_be_resumed),
        cmocka_unit_test(a_run_can_be_cancelled_before_it_starts),
        cmocka_unit_test(an_endless_run_can_be_cancelled),
        cmocka_unit_test(a_subgraph_can_be_cancelled),
        cmocka_unit_test(a_question_in_a_subgraph_is_answered),
        cmocka_unit_test(an_empty_thread_cannot_go_on),
        cmocka_unit_test(ends_once_when_memory_is_short),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
