/* The results of runs, compared with the thread's state, and states as clients see them. */
#include "tests/unit/engine_world.h"

#define TWO_QUESTIONS                                                                \
    "{\"name\":\"two\",\"state\":{\"log\":{\"reducer\":\"add\",\"type\":\"list\"}}," \
    "\"nodes\":{\"b\":{\"kind\":\"interrupt\",\"ask\":[\"b?\"]},"                    \
    "\"a\":{\"kind\":\"interrupt\",\"ask\":[\"a?\"]},"                               \
    "\"c\":{\"kind\":\"set\",\"update\":{\"log\":[\"c\"]}}},"                        \
    "\"edges\":[[\"__start__\",\"a\"],[\"__start__\",\"b\"],[\"__start__\",\"c\"]]}"

#define FAILING                                                                          \
    "{\"name\":\"failing\",\"state\":{\"log\":{\"reducer\":\"add\",\"type\":\"list\"}}," \
    "\"nodes\":{\"a\":{\"kind\":\"set\",\"update\":{\"log\":[\"a\"]}},"                  \
    "\"bad\":{\"kind\":\"fail\",\"error\":\"no\"},"                                      \
    "\"c\":{\"kind\":\"set\",\"update\":{\"log\":[\"c\"]}}},"                            \
    "\"edges\":[[\"__start__\",\"a\"],[\"a\",\"bad\"],[\"a\",\"c\"]]}"

#define SENDS                                                                                  \
    "{\"name\":\"sends\",\"state\":{\"log\":{\"reducer\":\"add\",\"type\":\"list\"},"          \
    "\"notes\":{\"reducer\":\"topic\",\"accumulate\":true},\"kept\":{\"default\":{\"n\":1}}}," \
    "\"nodes\":{\"each\":{\"kind\":\"fanout\",\"over\":[1,2],\"to\":\"one\"},"                 \
    "\"one\":{\"kind\":\"interrupt\",\"ask\":[\"sure?\"],\"update\":{\"log\":[\"one\"],"       \
    "\"notes\":\"n\"}}},"                                                                      \
    "\"edges\":[[\"__start__\",\"each\"]]}"

/* ---- ends: run() compares the result of the run with the state --------- */

static void every_result_has_its_checkpoint(void **unused)
{
    static const struct {
        const char *graph;
        const char *next;
        enum hd_engine_run_status status;
        const char *before, *after;
    } cases[] = {
        {LINE, "[]", HD_ENGINE_RUN_DONE, NULL, NULL},
        {LINE, "[\"a\"]", HD_ENGINE_RUN_INTERRUPTED, "a", NULL},
        {LINE, "[\"b\"]", HD_ENGINE_RUN_INTERRUPTED, "b", NULL},
        {LINE, "[\"b\"]", HD_ENGINE_RUN_INTERRUPTED, NULL, "a"},
        {LINE, "[]", HD_ENGINE_RUN_INTERRUPTED, NULL, "b"},
        {NESTED, "[\"sub\"]", HD_ENGINE_RUN_INTERRUPTED, NULL, NULL},
        {TWO_QUESTIONS, "[\"b\",\"a\"]", HD_ENGINE_RUN_INTERRUPTED, NULL, NULL},
        {FAILING, "[\"bad\"]", HD_ENGINE_RUN_FAILED, NULL, NULL},
        {SENDS, "[\"one\",\"one\"]", HD_ENGINE_RUN_INTERRUPTED, NULL, NULL},
    };
    struct world w;

    (void)unused;
    for (size_t i = 0; i < HD_COUNT(cases); i++) {
        struct hd_graph *graph = read_graph(cases[i].graph);
        struct hd_slice before = slice_or(cases[i].before, ""),
                        after = slice_or(cases[i].after, "");
        struct hd_val *next = json(cases[i].next);

        for (int durability = 0; durability < 6; durability++) {
            open_world(&w, durability % 2);
            w.durability = (enum hd_durability)(durability / 2);
            w.before = (struct hd_stops){false, &before, before.len > 0};
            w.after = (struct hd_stops){false, &after, after.len > 0};
            run(&w, graph, "{\"log\":[\"in\"]}", NULL);
            assert_int_equal(w.status, cases[i].status);
            assert_equal("next", w.next, next);
            close_world(&w);
        }
        hd_val_unref(next);
        hd_graph_destroy(graph);
    }
}

/* One of two interrupts is answered: the other remains. */
static void a_resume_value_changes_the_pending_interrupts(void **unused)
{
    struct hd_graph *graph = read_graph(TWO_QUESTIONS);
    struct hd_val *key, *question, *id;
    struct world w;
    char command[128];

    (void)unused;
    open_world(&w, false);
    run(&w, graph, "{\"log\":[]}", NULL);
    assert_int_equal(hd_val_count(w.asked), 2);
    question = hd_val_at(hd_val_member(w.asked, 0, &key), 0);
    id = hd_val_get(question, HD_S("id"));
    snprintf(command, sizeof(command), "{\"$\":\"command\",\"resume\":{\"%s\":1}}",
             hd_val_get_string(id).ptr);
    run(&w, graph, NULL, command);
    assert_int_equal(w.status, HD_ENGINE_RUN_INTERRUPTED);
    assert_int_equal(hd_val_count(w.asked), 1);
    close_world(&w);
    hd_graph_destroy(graph);
}

/* A run that cannot start leaves the thread unchanged and reports its state. */
static void a_run_that_fails_at_once_names_the_stored_checkpoint(void **unused)
{
    struct hd_graph *graph = read_graph(TWO_QUESTIONS);
    struct world w;

    (void)unused;
    open_world(&w, true);
    run(&w, graph, NULL, NULL);
    assert_string_equal(w.error, "EmptyInputError");
    assert_string_equal(w.checkpoint_id, "");
    run(&w, graph, "{\"log\":[]}", NULL);
    /* Two interrupts, and a resume value without an id. */
    run(&w, graph, NULL, "{\"$\":\"command\",\"resume\":1}");
    assert_string_equal(w.error, "RuntimeError");
    assert_int_equal(hd_val_count(w.asked), 2);
    close_world(&w);
    hd_graph_destroy(graph);
}

/* A run with durability "exit" also keeps finished tasks when it is cancelled. */
static void a_cancelled_run_names_the_step_it_stopped_at(void **unused)
{
    struct hd_graph *graph = read_graph(SLEEPERS);
    struct world w;

    (void)unused;
    for (int durability = 0; durability < 6; durability++) {
        struct hd_val *state;

        open_world(&w, durability % 2);
        w.durability = (enum hd_durability)(durability / 2);
        cancel_on(&w, graph, HD_EVENT_TASK_RESULT, "z");
        assert_int_equal(w.step, 0);
        assert_int_equal(w.stopped_at, 1);
        state = state_of(&w, graph);
        assert_member(state, "values", "{\"log\":[\"in\",\"z\"]}");
        assert_member(state, "next", "[\"x\",\"y\"]");
        hd_val_unref(state);
        close_world(&w);
    }
    hd_graph_destroy(graph);
}

/* ---- as clients see them ----------------------------------------------- */

static struct hd_val *get(struct world *w, const struct hd_graph *graph, const char *ns,
                          bool subgraphs)
{
    struct hd_address at = {.store = w->store,
                            .graph = graph,
                            .thread = slice_or(w->thread, "t"),
                            .root = slice_or(w->root, ""),
                            .ns = hd_slice_cstr(ns)};
    struct hd_failure failure = {NULL, NULL};
    struct hd_val *state;

    assert_int_equal(hd_state_get(&at, subgraphs, &state, &failure), 0);
    return state;
}

/* Renders the state and parses the text. */
static struct hd_val *render(const struct hd_val *state, const char *root)
{
    struct hd_val *shown;
    struct hd_buf out;

    hd_buf_init(&out, 1000000);
    assert_int_equal(hd_state_render(&out, state, HD_S("shown"), hd_slice_cstr(root)), 0);
    assert_int_equal(hd_val_parse_json(hd_buf_slice(&out), &shown, NULL), 0);
    hd_buf_fini(&out);
    return shown;
}

/* `wanted` has $C, $P, $T, $I for the ids of the checkpoint, parent, task and interrupt. */
static void assert_shown(const struct hd_val *shown, const struct hd_val *state, const char *wanted)
{
    const struct hd_val *task = hd_val_at(hd_val_get(state, HD_S("tasks")), 0);
    const struct hd_val *question = hd_val_at(hd_val_get(state, HD_S("interrupts")), 0);
    const struct hd_val *ids[] = {
        hd_val_get(hd_val_get(state, HD_S("config")), HD_S("checkpoint_id")),
        hd_val_get(hd_val_get(state, HD_S("parent_config")), HD_S("checkpoint_id")),
        hd_val_get(task, HD_S("id")), hd_val_get(question, HD_S("id"))};
    struct hd_val *expected;
    struct hd_buf text;

    hd_buf_init(&text, 100000);
    for (const char *at = wanted; *at; at++) {
        const char *mark = *at == '$' && at[1] ? strchr("CPTI", at[1]) : NULL;

        if (mark) {
            assert_int_equal(hd_buf_append_slice(&text, hd_val_get_string(ids[mark - "CPTI"])), 0);
            at++;
        } else {
            assert_int_equal(hd_buf_append_byte(&text, (uint8_t)(*at == '\'' ? '"' : *at)), 0);
        }
    }
    assert_int_equal(hd_val_parse_json(hd_buf_slice(&text), &expected, NULL), 0);
    hd_buf_fini(&text);
    for (size_t i = 0; i < hd_val_count(expected); i++) {
        struct hd_val *key, *val = hd_val_member(expected, i, &key);

        assert_equal(hd_val_get_string(key).ptr, hd_val_get(shown, hd_val_get_string(key)), val);
    }
    hd_val_unref(expected);
}

static void a_thread_without_checkpoints_is_shown(void **unused)
{
    struct hd_graph *graph = read_graph(LINE);
    struct hd_val *state, *shown;
    struct world w;

    (void)unused;
    open_world(&w, true);
    state = get(&w, graph, "", false);
    shown = render(state, "assistant:x");
    assert_shown(shown, state,
                 "{'values':{},'next':[],'tasks':[],'metadata':{},'created_at':null,"
                 "'checkpoint':null,'parent_checkpoint':null,'interrupts':[],"
                 "'checkpoint_id':null,'parent_checkpoint_id':null}");
    assert_int_equal(hd_val_count(shown), 10);
    hd_val_unref(state);
    hd_val_unref(shown);
    close_world(&w);
    hd_graph_destroy(graph);
}

static void a_state_is_shown_below_its_root(void **unused)
{
    struct hd_graph *graph = read_graph(NESTED);
    struct hd_val *state, *shown;
    struct world w;

    (void)unused;
    open_world(&w, true);
    w.root = "assistant:x";
    run(&w, graph, "{\"log\":[\"in\"]}", NULL);
    state = get(&w, graph, "", false);
    shown = render(state, "assistant:x");
    assert_shown(
        shown, state,
        "{'values':{'log':['in']},'next':['sub'],"
        "'metadata':{'source':'loop','step':0,'parents':{}},"
        "'tasks':[{'id':'$T','name':'sub','path':['__pregel_pull','sub'],'error':null,"
        "'interrupts':[{'id':'$I','value':'sure?'}],"
        "'checkpoint':{'thread_id':'shown','checkpoint_ns':'assistant:x|sub:$T',"
        "'checkpoint_id':null,'checkpoint_map':null},'state':null,'result':null}],"
        "'checkpoint':{'thread_id':'shown','checkpoint_ns':'assistant:x','checkpoint_id':'$C',"
        "'checkpoint_map':null},"
        "'parent_checkpoint':{'thread_id':'shown','checkpoint_ns':'assistant:x',"
        "'checkpoint_id':'$P','checkpoint_map':null},"
        "'interrupts':[{'id':'$I','value':'sure?'}],"
        "'checkpoint_id':'$C','parent_checkpoint_id':'$P'}");
    hd_val_unref(shown);
    shown = render(state, "");
    assert_shown(shown, state,
                 "{'checkpoint':{'thread_id':'shown','checkpoint_ns':'','checkpoint_id':'$C',"
                 "'checkpoint_map':null},"
                 "'parent_checkpoint':{'thread_id':'shown','checkpoint_ns':'',"
                 "'checkpoint_id':'$P','checkpoint_map':null}}");
    hd_val_unref(state);
    hd_val_unref(shown);
    close_world(&w);
    hd_graph_destroy(graph);
}

static void a_subgraph_is_shown_in_its_task(void **unused)
{
    struct hd_graph *graph = read_graph(NESTED);
    struct hd_val *state, *shown;
    const struct hd_val *task, *inner, *map;
    struct world w;
    char ns[128];

    (void)unused;
    open_world(&w, true);
    run(&w, graph, "{\"log\":[\"in\"]}", NULL);
    state = get(&w, graph, "", true);
    shown = render(state, "assistant:x");
    task = hd_val_at(hd_val_get(shown, HD_S("tasks")), 0);
    snprintf(ns, sizeof(ns), "assistant:x|sub:%s",
             hd_val_get_string(hd_val_get(task, HD_S("id"))).ptr);
    assert_true(hd_val_is_null(hd_val_get(task, HD_S("checkpoint"))));
    inner = hd_val_get(task, HD_S("state"));
    assert_member(inner, "next", "[\"ask\"]");
    map = hd_val_get(hd_val_get(inner, HD_S("checkpoint")), HD_S("checkpoint_map"));
    assert_int_equal(hd_val_count(map), 2);
    assert_equal("map", hd_val_get(map, HD_S("assistant:x")),
                 hd_val_get(shown, HD_S("checkpoint_id")));
    assert_equal("map", hd_val_get(map, hd_slice_cstr(ns)),
                 hd_val_get(inner, HD_S("checkpoint_id")));
    assert_true(hd_slice_eq(
        hd_val_get_string(hd_val_get(hd_val_get(inner, HD_S("checkpoint")), HD_S("checkpoint_ns"))),
        hd_slice_cstr(ns)));
    hd_val_unref(state);
    hd_val_unref(shown);
    close_world(&w);
    hd_graph_destroy(graph);
}

/* A breakpoint before the node: its subgraph has a namespace, but no checkpoint yet. */
static void a_subgraph_that_has_not_begun_has_a_place(void **unused)
{
    struct hd_graph *graph = read_graph(NESTED);
    struct hd_slice sub = HD_S("sub");
    struct hd_val *state, *shown;
    const struct hd_val *inner;
    struct world w;

    (void)unused;
    open_world(&w, true);
    w.before = (struct hd_stops){false, &sub, 1};
    run(&w, graph, "{\"log\":[\"in\"]}", NULL);
    state = get(&w, graph, "", true);
    shown = render(state, "");
    inner = hd_val_get(hd_val_at(hd_val_get(shown, HD_S("tasks")), 0), HD_S("state"));
    assert_member(inner, "values", "{}");
    assert_true(hd_val_is_object(hd_val_get(inner, HD_S("checkpoint"))));
    assert_member(hd_val_get(inner, HD_S("checkpoint")), "checkpoint_id", "null");
    hd_val_unref(state);
    hd_val_unref(shown);
    close_world(&w);
    hd_graph_destroy(graph);
}

static void output_beyond_the_limit_is_not_rendered(void **unused)
{
    struct hd_graph *graph = read_graph(NESTED);
    struct hd_failure failure = {NULL, NULL};
    struct hd_address at = {.graph = graph, .thread = HD_S("t")};
    struct hd_val *state;
    struct hd_buf out;
    struct world w;

    (void)unused;
    open_world(&w, true);
    at.store = w.store;
    run(&w, graph, "{\"log\":[\"in\"]}", NULL);
    state = get(&w, graph, "", true);
    hd_buf_init(&out, 12);
    assert_int_equal(hd_buf_append_byte(&out, '['), 0);
    assert_int_equal(hd_state_render(&out, state, HD_S("t"), HD_S("")), HD_ELIMIT);
    assert_int_equal(hd_state_values(&at, &out, &failure), HD_ELIMIT);
    assert_int_equal(out.len, 1);
    hd_failure_fini(&failure);
    hd_buf_fini(&out);
    hd_val_unref(state);
    close_world(&w);
    hd_graph_destroy(graph);
}

/* Collects the states of a history. */
static int add_state(void *ctx, const struct hd_val *state)
{
    struct hd_val **all = ctx;

    *all = hd_val_append(*all, hd_val_ref(state));
    return *all ? 0 : HD_ENOMEM;
}

static void assert_same_histories(struct hd_address at)
{
    struct hd_failure failure = {NULL, NULL};
    struct hd_val *plain = hd_val_list(), *text = hd_val_list();

    at.checkpoint_id = HD_S("");
    assert_int_equal(hd_state_history(&at, -1, HD_S(""), HD_S(""), add_state, &plain, &failure), 0);
    at.as_text = true;
    assert_int_equal(hd_state_history(&at, -1, HD_S(""), HD_S(""), add_state, &text, &failure), 0);
    assert_int_equal(hd_val_count(plain), hd_val_count(text));
    for (size_t i = 0; i < hd_val_count(plain); i++)
        assert_shown_alike(hd_val_at(text, i), hd_val_at(plain, i));
    hd_val_unref(plain);
    hd_val_unref(text);
}

static void values_of_older_checkpoints_are_theirs(void **unused)
{
    static const char *const graphs[] = {SENDS, TWO_QUESTIONS, NESTED, FAILING};
    struct world w;

    (void)unused;
    for (size_t i = 0; i < HD_COUNT(graphs); i++) {
        struct hd_graph *graph = read_graph(graphs[i]);
        struct hd_address at = {.graph = graph, .thread = HD_S("t")};
        struct hd_failure failure = {NULL, NULL};

        open_world(&w, true);
        at.store = w.store;
        run(&w, graph, "{\"log\":[\"in\"]}", NULL);
        run(&w, graph, NULL, "{\"$\":\"command\",\"resume\":{}, \"update\":{\"log\":[\"u\"]}}");
        for (size_t steps = 0; steps < 3; steps++) {
            struct hd_val *state;
            struct hd_slice id;
            struct hd_buf a, b;
            char kept[HD_UUID_SIZE];

            assert_int_equal(hd_state_get(&at, false, &state, &failure), 0);
            hd_buf_init(&a, 100000);
            hd_buf_init(&b, 100000);
            assert_int_equal(hd_state_values(&at, &a, &failure), 0);
            assert_int_equal(hd_val_render(&b, hd_val_get(state, HD_S("values"))), 0);
            assert_int_equal(a.len, b.len);
            assert_memory_equal(a.ptr, b.ptr, a.len);
            id = hd_val_get_string(
                hd_val_get(hd_val_get(state, steps ? HD_S("parent_config") : HD_S("config")),
                           HD_S("checkpoint_id")));
            snprintf(kept, sizeof(kept), "%.*s", (int)id.len, id.ptr);
            at.checkpoint_id = hd_slice_cstr(kept);
            hd_val_unref(state);
            hd_buf_fini(&a);
            hd_buf_fini(&b);
            if (id.len == 0)
                break;
        }
        assert_same_histories(at);
        close_world(&w);
        hd_graph_destroy(graph);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_result_has_its_checkpoint),
        cmocka_unit_test(a_resume_value_changes_the_pending_interrupts),
        cmocka_unit_test(a_run_that_fails_at_once_names_the_stored_checkpoint),
        cmocka_unit_test(a_cancelled_run_names_the_step_it_stopped_at),
        cmocka_unit_test(a_thread_without_checkpoints_is_shown),
        cmocka_unit_test(a_state_is_shown_below_its_root),
        cmocka_unit_test(a_subgraph_is_shown_in_its_task),
        cmocka_unit_test(a_subgraph_that_has_not_begun_has_a_place),
        cmocka_unit_test(output_beyond_the_limit_is_not_rendered),
        cmocka_unit_test(values_of_older_checkpoints_are_theirs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
