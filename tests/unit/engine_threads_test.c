/* One graph, several threads: the loop runs it while store threads read, list and change its
 * states. Most useful in a build with -Db_sanitize=thread. */
#include "tests/unit/engine_world.h"

#include <stdatomic.h>

#define RUNS 40
#define JOBS 3

/* Literals of all types, as initial values, in updates, sends, records and metadata. */
#define RICH                                                                                   \
    "{\"name\":\"rich\",\"state\":{"                                                           \
    "\"log\":{\"reducer\":\"add\",\"type\":\"list\",\"default\":[{\"first\":[1,2.5,\"x\"]}]}," \
    "\"seen\":{\"reducer\":\"merge\",\"type\":\"object\",\"default\":{\"a\":{\"b\":[0]}}},"    \
    "\"plan\":{\"default\":[\"p\",[\"q\"]]},"                                                  \
    "\"messages\":{\"reducer\":\"messages\"}},"                                                \
    "\"nodes\":{"                                                                              \
    "\"set\":{\"kind\":\"set\",\"metadata\":{\"tags\":[\"t\"],\"level\":{\"n\":1}},"           \
    "\"update\":{\"log\":[\"set\",{\"deep\":[true,null]}],\"plan\":[\"p\",[\"r\"]],"           \
    "\"seen\":{\"set\":[1,2,3]}}},"                                                            \
    "\"talk\":{\"kind\":\"script\",\"replies\":[{\"content\":\"said {{plan[0]}} once\","       \
    "\"tool_calls\":[{\"name\":\"f\",\"args\":{\"k\":[1]},\"id\":\"c\"}]}],"                   \
    "\"stream\":{\"by\":\"word\"}},"                                                           \
    "\"each\":{\"kind\":\"fanout\",\"over\":[\"u\",\"v\"],\"to\":\"one\","                     \
    "\"arg\":{\"log\":[\"{{item}}\",\"sent\"]}},"                                              \
    "\"one\":{\"kind\":\"set\",\"update\":{\"log\":\"{{log}}\",\"seen\":{\"one\":{}}}}},"      \
    "\"edges\":[[\"__start__\",\"set\"],[\"set\",\"talk\"],[\"talk\",\"each\"]]}"

struct crowd {
    struct world world;
    const struct hd_graph *graph;
    atomic_int reads;
    atomic_bool is_over;
    atomic_int failures;
    int runs;
};

static int count_state(void *ctx, const struct hd_val *state)
{
    atomic_int *failures = ctx;

    if (!hd_val_is_string(hd_val_get(state, HD_S("values_text"))))
        atomic_fetch_add(failures, 1);
    return 0;
}

static void note(struct crowd *c, int err, struct hd_failure *failure, struct hd_val *val)
{
    if (err)
        atomic_fetch_add(&c->failures, 1);
    hd_failure_fini(failure);
    hd_val_unref(val);
}

/* Runs on a store thread. */
static void look_and_change(void *arg)
{
    struct crowd *c = arg;
    struct hd_address at = {
        .store = c->world.store, .graph = c->graph, .thread = HD_S("t"), .root = HD_S("")};
    struct hd_failure failure = {NULL, NULL};
    struct hd_val *val = NULL, *values = NULL;
    struct hd_update update = {.as_node = HD_S("talk")};
    struct hd_superstep step = {&update, 1};
    int err = hd_state_get(&at, true, &val, &failure);

    note(c, err, &failure, err ? NULL : val);
    at.as_text = true;
    err = hd_state_history(&at, 3, HD_S(""), HD_S(""), count_state, &c->failures, &failure);
    note(c, err, &failure, NULL);
    /* Updates another thread, to avoid conflicts with the runs. */
    at.thread = HD_S("edited");
    err = hd_val_parse(HD_S("{\"log\":[\"edit\"],\"seen\":{\"by\":\"hand\"}}"), &values, NULL);
    update.values = values;
    if (!err)
        err = hd_state_update(&at, &step, 1, NULL, &val, &failure);
    note(c, err, &failure, err ? NULL : val);
    hd_val_unref(values);
    atomic_fetch_add(&c->reads, 1);
    if (!atomic_load(&c->is_over) && heddle_defer(c->world.store, look_and_change, c) != 0)
        atomic_fetch_add(&c->failures, 1);
}

static void next_run(struct crowd *c);

static void on_rich_done(void *ctx, const struct hd_engine_run_result *result)
{
    struct crowd *c = ctx;

    assert_int_equal(result->status, HD_ENGINE_RUN_DONE);
    /* Continues until there were enough runs and enough reads. */
    if (++c->runs < RUNS || atomic_load(&c->reads) < RUNS)
        next_run(c);
}

static void on_rich_event(void *ctx, const struct hd_event *event)
{
    struct crowd *c = ctx;

    if (event->type == HD_EVENT_MESSAGE && !event->value)
        atomic_fetch_add(&c->failures, 1);
}

static void next_run(struct crowd *c)
{
    struct hd_val *in = json("{\"log\":[\"in\"]}");
    struct hd_engine_run_options options = {.graph = c->graph,
                                            .thread = HD_S("t"),
                                            .input = in,
                                            .on_event = on_rich_event,
                                            .on_done = on_rich_done,
                                            .ctx = c};

    assert_int_equal(hd_engine_run_start(c->world.engine, &options, &c->world.run), 0);
    hd_val_unref(in);
}

static void threads_share_a_graph(void **unused)
{
    struct hd_graph *graph = read_graph(RICH);
    struct crowd c = {.graph = graph};

    (void)unused;
    open_world(&c.world, false);
    for (int i = 0; i < JOBS; i++)
        assert_int_equal(heddle_defer(c.world.store, look_and_change, &c), 0);
    next_run(&c);
    uv_run(&c.world.uv, UV_RUN_DEFAULT);
    assert_true(c.runs >= RUNS);
    atomic_store(&c.is_over, true);
    close_world(&c.world); /* waits for the store threads */
    assert_int_equal(atomic_load(&c.failures), 0);
    assert_true(atomic_load(&c.reads) >= RUNS);
    hd_graph_destroy(graph);
}

/* Values derived from a graph's constants do not change the graph: each run starts the same way. */
static void runs_leave_the_graph_as_it_was(void **unused)
{
    struct hd_graph *graph = read_graph(RICH);
    char *first = NULL;
    struct world w;

    (void)unused;
    for (int i = 0; i < 3; i++) {
        struct hd_val *state, *values;
        struct hd_buf text;

        open_world(&w, true);
        run(&w, graph, "{\"plan\":[\"p\"]}", NULL);
        state = state_of(&w, graph);
        hd_buf_init(&text, 100000);
        /* The message has a random id. */
        values = hd_val_ref(hd_val_get(state, HD_S("values")));
        values = hd_val_without(values, HD_S("messages"));
        assert_int_equal(hd_val_write(&text, values), 0);
        assert_int_equal(hd_buf_append_byte(&text, 0), 0);
        if (first)
            assert_string_equal(text.ptr, first);
        else
            first = hd_buf_take(&text, NULL);
        hd_buf_fini(&text);
        hd_val_unref(values);
        hd_val_unref(state);
        close_world(&w);
    }
    hd_free(first);
    hd_graph_destroy(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_share_a_graph),
        cmocka_unit_test(runs_leave_the_graph_as_it_was),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
