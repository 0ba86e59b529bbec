/* Graph schemas as workers report them: worker/graph_schemas.h. */
#include "worker/graph_schemas.h"

#include "base/log.h"
#include "tests/unit/check.h"

struct world {
    struct hd_app app;
    struct hd_app_graph graphs[3];
};

static void no_log(void *arg, enum hd_log_level level, const char *line)
{
    (void)arg;
    (void)level;
    (void)line;
}

static int open_world(void **state)
{
    struct world *w = calloc(1, sizeof(*w));

    *state = w;
    hd_log_set_sink(no_log, NULL);
    w->graphs[0] =
        (struct hd_app_graph){.id = HD_S("chat"), .is_remote = true, .language = HD_RT_PYTHON};
    w->graphs[1] =
        (struct hd_app_graph){.id = HD_S("script"), .is_remote = true, .language = HD_RT_JS};
    w->graphs[2] = (struct hd_app_graph){.id = HD_S("native")};
    w->app.graphs = w->graphs;
    w->app.graph_count = 3;
    return hd_graph_schemas_open(&w->app, NULL);
}

static int close_world(void **state)
{
    struct world *w = *state;

    hd_graph_schemas_close(&w->app);
    hd_log_set_sink(NULL, NULL);
    free(w);
    return 0;
}

#define STRUCTURE                                                                        \
    "{\"kind\":\"graph\",\"channels\":{\"messages\":\"BinaryOperatorAggregate\","        \
    "\"__start__\":\"EphemeralValue\",\"branch:to:a\":\"EphemeralValue\"},"              \
    "\"stream_channels\":[\"messages\"],\"output_channels\":[\"messages\"],"             \
    "\"input_channels\":\"__start__\",\"nodes\":{\"a\":{\"triggers\":[\"branch:to:a\"]," \
    "\"subgraph\":null,\"deferred\":false,\"metadata\":{},\"checkpointer\":null}},"      \
    "\"interrupt_before\":[],\"interrupt_after\":[]}"

#define READY(told) "{\"op\":\"ready\",\"graphs\":{\"chat\":" told "}}"

static void before_a_worker_is_ready_all_is_open(void **state)
{
    struct world *w = *state;

    assert_false(hd_app_form(&w->graphs[0])->is_described);
    assert_true(hd_app_shape(&w->graphs[0])->is_open);
    assert_int_equal(hd_app_shape(&w->graphs[0])->ids, HD_IDS_PYTHON);
    assert_int_equal(hd_app_shape(&w->graphs[1])->ids, HD_IDS_JS);
    assert_null(hd_app_form(&w->graphs[2]));
}

static void a_worker_describes_its_own_graphs(void **state)
{
    struct world *w = *state;
    const struct hd_app_form *form;

    hd_graph_schemas_take(&w->app, HD_RT_PYTHON,
                          HD_S("{\"graphs\":{\"chat\":{\"structure\":" STRUCTURE
                               ",\"schemas\":{\"input\":null}},\"script\":{\"structure\":null},"
                               "\"native\":{\"structure\":null},\"stranger\":{}}}"));
    form = hd_app_form(&w->graphs[0]);
    assert_true(form->is_described && form->has_structure);
    assert_int_equal(form->error.len, 0);
    assert_true(hd_slice_eq(form->schemas, HD_S("{\"input\":null}")));
    assert_false(form->graph->is_open);
    assert_int_not_equal(hd_graph_find_node(form->graph, HD_S("a")), HD_GRAPH_END);
    assert_false(hd_app_form(&w->graphs[1])->is_described);
    assert_null(hd_app_form(&w->graphs[2]));
}

/* A reader of the old form may continue to use it. */
static void schemas_replace_earlier_ones(void **state)
{
    struct world *w = *state;
    const struct hd_app_form *first, *second;

    hd_graph_schemas_take(&w->app, HD_RT_PYTHON, HD_S(READY("{\"structure\":" STRUCTURE "}")));
    first = hd_app_form(&w->graphs[0]);
    hd_graph_schemas_take(&w->app, HD_RT_PYTHON, HD_S(READY("{\"structure\":" STRUCTURE "}")));
    assert_ptr_equal(hd_app_form(&w->graphs[0]), first);
    hd_graph_schemas_take(&w->app, HD_RT_PYTHON, HD_S(READY("{\"structure\":null}")));
    second = hd_app_form(&w->graphs[0]);
    assert_ptr_not_equal(second, first);
    assert_true(second->is_described && !second->has_structure && second->graph->is_open);
    assert_int_not_equal(hd_graph_find_node(first->graph, HD_S("a")), HD_GRAPH_END);
}

static void a_graph_that_cannot_be_loaded_has_an_error(void **state)
{
    struct world *w = *state;
    const struct hd_app_form *form;

    hd_graph_schemas_take(&w->app, HD_RT_PYTHON,
                          HD_S(READY("{\"error\":{\"type\":\"ImportError\",\"message\":\"m\"}}")));
    form = hd_app_form(&w->graphs[0]);
    assert_true(form->is_described && form->graph->is_open);
    assert_true(hd_slice_eq(form->error, HD_S("{\"type\":\"ImportError\",\"message\":\"m\"}")));
    hd_graph_schemas_take(&w->app, HD_RT_PYTHON, HD_S(READY("{\"structure\":" STRUCTURE "}")));
    assert_int_equal(hd_app_form(&w->graphs[0])->error.len, 0);
}

static void nonsense_changes_nothing_or_opens(void **state)
{
    struct world *w = *state;
    const struct hd_app_form *form = hd_app_form(&w->graphs[0]);

    hd_graph_schemas_take(&w->app, HD_RT_PYTHON, HD_S("nonsense"));
    hd_graph_schemas_take(&w->app, HD_RT_PYTHON, HD_S("[1]"));
    hd_graph_schemas_take(&w->app, HD_RT_PYTHON, HD_S(READY("7")));
    assert_ptr_equal(hd_app_form(&w->graphs[0]), form);
    hd_graph_schemas_take(&w->app, HD_RT_PYTHON, HD_S(READY("{\"structure\":[7]}")));
    form = hd_app_form(&w->graphs[0]);
    assert_true(form->is_described && !form->has_structure && form->graph->is_open);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(before_a_worker_is_ready_all_is_open, open_world,
                                        close_world),
        cmocka_unit_test_setup_teardown(a_worker_describes_its_own_graphs, open_world, close_world),
        cmocka_unit_test_setup_teardown(schemas_replace_earlier_ones, open_world, close_world),
        cmocka_unit_test_setup_teardown(a_graph_that_cannot_be_loaded_has_an_error, open_world,
                                        close_world),
        cmocka_unit_test_setup_teardown(nonsense_changes_nothing_or_opens, open_world, close_world),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
