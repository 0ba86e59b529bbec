/* Runs: their results, their checkpoints, and allocation failures. */
#include "tests/unit/engine_world.h"

#include "base/error.h"
#include "graph/decl/decl.h"
#include "graph/engine/engine.h"
#include "graph/engine/loop.h"
#include "graph/engine/task.h"

static void line(bool is_direct)
{
    struct hd_graph *graph = read_graph(LINE);
    struct hd_val *state;
    struct world w;

    open_world(&w, is_direct);
    run(&w, graph, "{\"log\":[\"in\"]}", NULL);
    assert_int_equal(w.status, HD_ENGINE_RUN_DONE);
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
    struct hd_val *state;
    struct world w;

    (void)unused;
    open_world(&w, true);
    run(&w, graph, "{\"log\":[]}", NULL);
    assert_string_equal(w.ended, "zyx"); /* the shortest first: no task waits for another */
    state = state_of(&w, graph);
    /* Ordered by name, regardless of the order of completion. */
    assert_member(state, "values", "{\"log\":[\"x\",\"y\",\"z\"]}");
    hd_val_unref(state);
    close_world(&w);
    hd_graph_destroy(graph);
}

/* Finished tasks stay finished: only the sleeping ones run again. */
static void a_cancelled_run_can_be_resumed(void **unused)
{
    struct hd_graph *graph = read_graph(SLEEPERS);
    struct hd_val *state;
    struct world w;

    (void)unused;
    open_world(&w, false);
    cancel_on(&w, graph, HD_EVENT_TASK_RESULT, "z");
    state = state_of(&w, graph);
    assert_member(state, "next", "[\"x\",\"y\"]");
    assert_member(state, "values", "{\"log\":[\"in\",\"z\"]}");
    hd_val_unref(state);
    run(&w, graph, NULL, NULL);
    assert_int_equal(w.status, HD_ENGINE_RUN_DONE);
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
    cancel_on(&w, graph, HD_EVENT_TASK, NULL);
    state = state_of(&w, graph);
    assert_member(state, "values", "{}");
    hd_val_unref(state);
    close_world(&w);
    hd_graph_destroy(graph);
}

/* A graph that never waits must not block the loop. */
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
    cancel_on(&w, graph, HD_EVENT_TASK, "b");
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
        cancel_on(&w, graph, HD_EVENT_TASK, "nap");
        run(&w, graph, NULL, NULL);
        assert_int_equal(w.status, HD_ENGINE_RUN_INTERRUPTED);
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
    assert_int_equal(w.status, HD_ENGINE_RUN_INTERRUPTED);
    state = state_of(&w, graph);
    assert_int_equal(hd_val_count(hd_val_get(state, HD_S("interrupts"))), 1);
    hd_val_unref(state);
    run(&w, graph, NULL, "{\"$\":\"command\",\"resume\":\"yes\"}");
    assert_int_equal(w.status, HD_ENGINE_RUN_DONE);
    state = state_of(&w, graph);
    assert_member(state, "values", "{\"log\":[\"in\",\"yes\"]}");
    hd_val_unref(state);
    close_world(&w);
    hd_graph_destroy(graph);
}

/* A visit without checkpoints yet is not mistaken for the previous visit, which has ended. */
static void a_subgraph_with_a_memory_is_visited_each_time(void **unused)
{
    struct hd_graph *graph = read_graph(
        "{\"name\":\"visits\",\"state\":{\"n\":{\"type\":\"number\"},"
        "\"log\":{\"reducer\":\"add\",\"type\":\"list\"}},"
        "\"graphs\":{\"inner\":{\"name\":\"inner\",\"state\":{\"n\":{\"type\":\"number\"},"
        "\"done\":{\"reducer\":\"add\",\"type\":\"list\"}},"
        "\"nodes\":{\"visit\":{\"kind\":\"set\",\"update\":{\"done\":[\"{{n}}\"]}}},"
        "\"edges\":[[\"__start__\",\"visit\"]]}},"
        "\"nodes\":{\"sub\":{\"kind\":\"subgraph\",\"graph\":\"inner\",\"memory\":\"own\","
        "\"input\":{\"n\":\"{{n}}\"},\"update\":{\"log\":[\"{{result.done}}\"]}},"
        "\"next\":{\"kind\":\"set\",\"update\":{\"n\":{\"@add\":[\"{{n}}\",1]}}}},"
        "\"edges\":[[\"__start__\",\"sub\"],[\"sub\",\"next\"],{\"from\":\"next\",\"routes\":"
        "[{\"when\":{\"@lt\":[\"{{n}}\",3]},\"to\":\"sub\"},{\"to\":\"__end__\"}]}]}");
    const struct hd_slice sub = HD_S("sub");
    struct hd_val *state;
    struct world w;

    (void)unused;
    open_world(&w, true);
    w.before = (struct hd_stops){.names = &sub, .count = 1};
    run(&w, graph, "{\"n\":0}", NULL);
    for (int visits = 0; visits < 3; visits++) {
        assert_int_equal(w.status, HD_ENGINE_RUN_INTERRUPTED);
        run(&w, graph, NULL, NULL);
    }
    assert_int_equal(w.status, HD_ENGINE_RUN_DONE);
    state = state_of(&w, graph);
    assert_member(state, "values", "{\"n\":3,\"log\":[[0],[0,1],[0,1,2]]}");
    hd_val_unref(state);
    close_world(&w);
    hd_graph_destroy(graph);
}

static void an_empty_thread_cannot_continue(void **unused)
{
    struct hd_graph *graph = read_graph(LINE);
    struct world w;

    (void)unused;
    open_world(&w, true);
    run(&w, graph, NULL, NULL);
    assert_int_equal(w.status, HD_ENGINE_RUN_FAILED);
    assert_string_equal(w.error, "EmptyInputError");
    close_world(&w);
    hd_graph_destroy(graph);
}

/* Whichever allocation fails, the run ends once, and the thread can be run again. */
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
                assert_int_not_equal(w.status, HD_ENGINE_RUN_FAILED);
            run(&w, graph, "{\"log\":[\"again\"]}", NULL);
            assert_int_not_equal(w.status, HD_ENGINE_RUN_FAILED);
            hd_val_unref(in);
            close_world(&w);
        }
        hd_graph_destroy(graph);
    }
}

/* ---- completions ------------------------------------------------------ */

static bool has_loop_started;
static void (*end_root)(struct hd_loop *loop);

static void on_loop_end(struct hd_loop *loop)
{
    assert_true(has_loop_started);
    end_root(loop);
}

/* In memory the loop ends in hd_loop_start(); on disk it waits for the store. */
static void a_loop_never_calls_back_before_its_start_returns(void **unused)
{
    struct hd_graph *graph = read_graph(LINE);
    struct hd_val *in = json("{\"log\":[\"in\"]}");

    (void)unused;
    for (int i = 0; i < 2; i++) {
        const bool is_direct = i == 0;
        struct hd_loop *root;
        struct world w;
        int result;

        open_world(&w, is_direct);
        assert_int_equal(start(&w, graph, in, NULL), 0);
        uv_timer_stop(&w.run->starter);
        root = w.run->root;
        end_root = root->on_end;
        root->on_end = on_loop_end;
        has_loop_started = false;
        result = hd_loop_start(root, hd_val_ref(in), NULL);
        has_loop_started = true;
        assert_int_equal(result, is_direct ? HD_READY : 0);
        assert_int_equal(w.ends, 0);
        if (result == HD_READY)
            end_root(root);
        uv_run(&w.uv, UV_RUN_DEFAULT);
        assert_int_equal(w.ends, 1);
        assert_int_equal(w.status, HD_ENGINE_RUN_DONE);
        close_world(&w);
    }
    hd_val_unref(in);
    hd_graph_destroy(graph);
}

static int read_probe(struct hd_decl *decl, const struct hd_decl_at *at, struct hd_node *node)
{
    (void)node;
    return hd_decl_node_fields(decl, at, NULL, 0, NULL);
}

/* Fails at first; the second attempt ends the task and then still uses it. */
static int start_probe(struct hd_task *task)
{
    if (task->attempts == 1)
        return HD_EIO;
    hd_task_finish(task, NULL, NULL, false);
    assert_int_equal(task->status, HD_TASK_DONE);
    assert_int_equal(task->loop->status, HD_LOOP_RUNNING);
    return 0;
}

static const struct hd_node_kind probe = {
    .name = "probe", .read = read_probe, .start = start_probe};
static const struct hd_node_kind *const probes[] = {&probe};

static void a_loop_advances_after_the_start_of_a_retried_node(void **unused)
{
    struct hd_graph *graph;
    struct world w;

    (void)unused;
    hd_graph_add_node_kinds(probes, 1);
    graph = read_graph("{\"name\":\"probe\",\"state\":{\"log\":{}},"
                       "\"nodes\":{\"a\":{\"kind\":\"probe\","
                       "\"retry\":{\"attempts\":2,\"delay_ms\":1}}},"
                       "\"edges\":[[\"__start__\",\"a\"]]}");
    open_world(&w, true);
    run(&w, graph, "{\"log\":[]}", NULL);
    assert_int_equal(w.status, HD_ENGINE_RUN_DONE);
    close_world(&w);
    hd_graph_destroy(graph);
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
        cmocka_unit_test(a_subgraph_with_a_memory_is_visited_each_time),
        cmocka_unit_test(an_empty_thread_cannot_continue),
        cmocka_unit_test(ends_once_when_memory_is_short),
        cmocka_unit_test(a_loop_never_calls_back_before_its_start_returns),
        cmocka_unit_test(a_loop_advances_after_the_start_of_a_retried_node),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
