/* A run ends within a subgraph after an answer: the next run asks the question that follows. */
#include "tests/unit/engine_world.h"

#define INNER(nodes, edges)                                                            \
    "{\"name\":\"outer\",\"state\":{\"log\":{\"reducer\":\"add\",\"type\":\"list\"}}," \
    "\"graphs\":{\"inner\":{\"name\":\"inner\","                                       \
    "\"state\":{\"log\":{\"reducer\":\"add\",\"type\":\"list\"}},"                     \
    "\"nodes\":{" nodes "},\"edges\":[" edges "]}},"                                   \
    "\"nodes\":{\"sub\":{\"kind\":\"subgraph\",\"graph\":\"inner\","                   \
    "\"input\":{\"log\":[]},\"update\":{\"log\":\"{{result.log}}\"}}},"                \
    "\"edges\":[[\"__start__\",\"sub\"]]}"

#define ASK(name, questions, answers)                               \
    "\"" name "\":{\"kind\":\"interrupt\",\"ask\":[" questions "]," \
    "\"update\":{\"log\":[" answers "]}}"

/* Two questions of one node, and of two nodes with time in between. */
#define ONE_NODE                                                                    \
    INNER(ASK("ask", "\"one?\",\"two?\"", "\"{{answers[0]}}\",\"{{answers[1]}}\""), \
          "[\"__start__\",\"ask\"]")
#define TWO_NODES                                                                               \
    INNER(ASK("ask", "\"one?\"", "\"{{answers[0]}}\"") ",\"nap\":{\"kind\":\"sleep\","          \
                                                       "\"ms\":20}," ASK("more", "\"two?\"",    \
                                                                         "\"{{answers[0]}}\""), \
          "[\"__start__\",\"ask\"],[\"ask\",\"nap\"],[\"nap\",\"more\"]")

#define YES "{\"$\":\"command\",\"resume\":\"yes\"}"
#define NO "{\"$\":\"command\",\"resume\":\"no\"}"

static struct heddle_tuple *read_root(struct world *w)
{
    const struct heddle_key key = {.thread = {.id = {"t", 1}}};
    struct heddle_tuple *tuple;

    assert_int_equal(heddle_get(w->store, &key, &tuple, NULL), 0);
    return tuple;
}

/* Stores the interrupts of the tuple again, as if later ones had never been stored. */
static void restore_interrupts(struct world *w, const struct heddle_tuple *tuple)
{
    for (size_t i = 0; i < tuple->write_count; i++) {
        const struct heddle_write *write = &tuple->writes[i];
        const struct heddle_writes writes = {.thread = {.id = {"t", 1}},
                                             .checkpoint_id = tuple->id,
                                             .task_id = write->task_id,
                                             .task_path = write->task_path,
                                             .values = &write->value,
                                             .value_count = 1};

        if (write->value.channel.len == strlen("__interrupt__") &&
            memcmp(write->value.channel.data, "__interrupt__", write->value.channel.len) == 0)
            assert_int_equal(heddle_put_writes(w->store, &writes, NULL), 0);
    }
}

/* The parent graph has not stored the second question, which its subgraph has stored. */
static void stop_before_the_parent(struct world *w, const struct hd_graph *graph)
{
    struct heddle_tuple *tuple;

    run(w, graph, "{\"log\":[]}", NULL);
    tuple = read_root(w);
    run(w, graph, NULL, YES);
    assert_int_equal(w->status, HD_ENGINE_RUN_INTERRUPTED);
    restore_interrupts(w, tuple);
    heddle_tuple_free(tuple);
}

/* Cancels a run that answers when this node starts. */
static void cancel_answer(struct world *w, const struct hd_graph *graph, struct hd_slice node)
{
    struct hd_val *yes = json(YES);

    uv_timer_init(&w->uv, &w->timer);
    w->timer.data = w;
    w->watched_type = HD_EVENT_TASK;
    w->watched = node;
    assert_int_equal(start(w, graph, NULL, yes), 0);
    uv_run(&w->uv, UV_RUN_DEFAULT);
    uv_close((uv_handle_t *)&w->timer, NULL);
    assert_int_equal(w->status, HD_ENGINE_RUN_CANCELLED);
    hd_val_unref(yes);
}

/* As a crash between the two questions; a cancelled run has changed the interrupts. */
static void stop_between(struct world *w, const struct hd_graph *graph)
{
    struct heddle_tuple *tuple;

    run(w, graph, "{\"log\":[]}", NULL);
    tuple = read_root(w);
    cancel_answer(w, graph, HD_S("nap"));
    restore_interrupts(w, tuple);
    heddle_tuple_free(tuple);
}

/* As a crash before the subgraph has stored anything. */
static void stop_early(struct world *w, const struct hd_graph *graph)
{
    struct heddle_tuple *tuple;

    run(w, graph, "{\"log\":[]}", NULL);
    tuple = read_root(w);
    cancel_answer(w, graph, HD_S("sub"));
    restore_interrupts(w, tuple);
    heddle_tuple_free(tuple);
}

static void assert_asks(struct world *w, const struct hd_graph *graph, const char *question)
{
    struct hd_val *state = state_of(w, graph);
    const struct hd_val *asked = hd_val_get(state, HD_S("interrupts"));
    const struct hd_val *value = hd_val_get(hd_val_at(asked, 0), HD_S("value"));

    assert_int_equal(w->status, HD_ENGINE_RUN_INTERRUPTED);
    assert_int_equal(hd_val_count(asked), 1);
    assert_true(hd_slice_eq(hd_val_get_string(value), hd_slice_cstr(question)));
    hd_val_unref(state);
}

static void an_answer_is_for_one_question(void **unused)
{
    struct {
        const char *graph;
        void (*stop)(struct world *w, const struct hd_graph *graph);
    } cases[] = {{ONE_NODE, stop_before_the_parent},
                 {ONE_NODE, stop_early},
                 {TWO_NODES, stop_between},
                 {TWO_NODES, stop_early}};

    (void)unused;
    for (size_t i = 0; i < HD_COUNT(cases); i++) {
        struct hd_graph *graph = read_graph(cases[i].graph);

        /* A run continues without an input, or applies its command once more. */
        for (int repeats = 0; repeats < 2; repeats++) {
            struct hd_val *state;
            struct world w;

            open_world(&w, false);
            w.durability = HD_DURABLE_SYNC;
            cases[i].stop(&w, graph);
            run(&w, graph, NULL, repeats ? YES : NULL);
            assert_asks(&w, graph, "two?");
            run(&w, graph, NULL, NO);
            assert_int_equal(w.status, HD_ENGINE_RUN_DONE);
            state = state_of(&w, graph);
            assert_member(state, "values", "{\"log\":[\"yes\",\"no\"]}");
            hd_val_unref(state);
            close_world(&w);
        }
        hd_graph_destroy(graph);
    }
}

/* Changes the state of the subgraph as its node `nap`. */
static void edit_subgraph(struct world *w, const struct hd_graph *graph)
{
    struct hd_val *state = state_of(w, graph), *values = json("{\"log\":[\"edited\"]}");
    const struct hd_val *task = hd_val_at(hd_val_get(state, HD_S("tasks")), 0);
    const struct hd_val *config = hd_val_get(hd_val_get(task, HD_S("state")), HD_S("config"));
    const struct hd_update update = {.values = values, .as_node = HD_S("nap")};
    const struct hd_superstep step = {.updates = &update, .count = 1};
    const struct hd_address at = {.store = w->store,
                                  .graph = graph,
                                  .thread = HD_S("t"),
                                  .ns =
                                      hd_val_get_string(hd_val_get(config, HD_S("checkpoint_ns")))};
    struct hd_failure failure = {NULL, NULL};
    struct hd_val *out;

    assert_int_equal(hd_state_update(&at, &step, 1, NULL, &out, &failure), 0);
    hd_val_unref(out);
    hd_val_unref(state);
    hd_val_unref(values);
}

/* An edit of the subgraph's state replaces its question; the answer is for what it asks then. */
static void an_edited_subgraph_takes_the_answer(void **unused)
{
    struct hd_graph *graph = read_graph(TWO_NODES);
    struct hd_val *state;
    struct world w;

    (void)unused;
    open_world(&w, false);
    run(&w, graph, "{\"log\":[]}", NULL);
    edit_subgraph(&w, graph);
    run(&w, graph, NULL, YES);
    assert_int_equal(w.status, HD_ENGINE_RUN_DONE);
    state = state_of(&w, graph);
    assert_member(state, "values", "{\"log\":[\"edited\",\"yes\"]}");
    hd_val_unref(state);
    close_world(&w);
    hd_graph_destroy(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_answer_is_for_one_question),
        cmocka_unit_test(an_edited_subgraph_takes_the_answer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
