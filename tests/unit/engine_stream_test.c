/* Events of a run as clients see them: ids, metadata, tags. */
#include "graph/stream/partials.h"
#include "tests/unit/engine_world.h"

#define TALK                                                                               \
    "{\"name\":\"talk\",\"state\":{\"messages\":{\"reducer\":\"messages\"}},"              \
    "\"graphs\":{\"deep\":{\"name\":\"deep\",\"state\":{\"messages\":{\"reducer\":"        \
    "\"messages\"}},\"nodes\":{\"say\":{\"kind\":\"script\",\"stream\":{\"by\":\"word\"}," \
    "\"replies\":[{\"content\":\"one two\"}]}},\"edges\":[[\"__start__\",\"say\"]]}},"     \
    "\"nodes\":{\"first\":{\"kind\":\"script\",\"tags\":[\"own\"],"                        \
    "\"metadata\":{\"role\":\"r\"},\"stream\":{\"by\":\"word\"},"                          \
    "\"replies\":[{\"content\":\"a b\"}]},"                                                \
    "\"sub\":{\"kind\":\"subgraph\",\"graph\":\"deep\"},"                                  \
    "\"add\":{\"kind\":\"set\",\"emit\":[{\"at\":\"add\"}],"                               \
    "\"update\":{\"messages\":[{\"@ai\":\"set\"}]}}},"                                     \
    "\"edges\":[[\"__start__\",\"first\"],[\"first\",\"sub\"],[\"sub\",\"add\"]]}"

struct listener {
    struct world world;
    struct hd_val *messages, *events, *partials; /* lists */
    struct hd_partials gathering;
};

static void add_partial(void *ctx, const char *event, const struct hd_val *data)
{
    struct listener *l = ctx;
    struct hd_val *pair = hd_val_append(hd_val_list(), hd_val_cstr(event));

    l->partials = hd_val_append(l->partials, hd_val_append(pair, hd_val_ref(data)));
}

static void add_data(void *ctx, struct hd_slice ns, enum hd_stream_mode mode,
                     const struct hd_val *data)
{
    struct listener *l = ctx;

    (void)ns;
    if (mode == HD_STREAM_EVENTS) {
        l->events = hd_val_append(l->events, hd_val_ref(data));
        return;
    }
    l->messages = hd_val_append(l->messages, hd_val_ref(data));
    assert_int_equal(hd_partials_message(&l->gathering, data, add_partial, l), 0);
}

static void on_event(void *ctx, const struct hd_event *event)
{
    assert_int_equal(hd_stream_map(event, HD_STREAM_MESSAGES | HD_STREAM_EVENTS, add_data, ctx), 0);
}

static void on_listener_done(void *ctx, const struct hd_engine_run_result *result)
{
    assert_int_equal(result->status, HD_ENGINE_RUN_DONE);
    (void)ctx;
}

static void hear_run(struct listener *l, const struct hd_graph *graph)
{
    struct hd_val *in = json("{\"messages\":[{\"$\":\"message\",\"type\":\"human\","
                             "\"content\":\"hi\",\"id\":\"q\"}]}");
    struct hd_val *config =
        json("{\"run_id\":\"the-run\",\"assistant_id\":\"A\",\"graph_id\":\"G\","
             "\"secret\":\"s\",\"thread_id\":\"other\"}");
    struct hd_val *metadata = json("{\"mine\":1,\"graph_id\":\"M\"}");
    struct hd_val *tags = json("[\"t1\",\"t2\"]");
    struct hd_engine_run_options options = {.graph = graph,
                                            .thread = HD_S("t"),
                                            .root = HD_S("assistant:A"),
                                            .input = in,
                                            .config = config,
                                            .metadata = metadata,
                                            .tags = tags,
                                            .on_event = on_event,
                                            .on_done = on_listener_done,
                                            .ctx = l};

    memset(l, 0, sizeof(*l));
    l->messages = hd_val_list();
    l->events = hd_val_list();
    l->partials = hd_val_list();
    open_world(&l->world, true);
    l->world.root = "assistant:A";
    assert_int_equal(hd_engine_run_start(l->world.engine, &options, &l->world.run), 0);
    hd_val_unref(in);
    hd_val_unref(config);
    hd_val_unref(metadata);
    hd_val_unref(tags);
    uv_run(&l->world.uv, UV_RUN_DEFAULT);
}

static void close_listener(struct listener *l)
{
    hd_partials_fini(&l->gathering);
    hd_val_unref(l->messages);
    hd_val_unref(l->events);
    hd_val_unref(l->partials);
    close_world(&l->world);
}

static struct hd_slice text_at(const struct hd_val *val, const char *key)
{
    return hd_val_get_string(hd_val_get(val, hd_slice_cstr(key)));
}

/* Each message of the state was streamed: in chunks with its id, or whole, never both. */
static void messages_keep_their_ids(void **unused)
{
    struct hd_graph *graph = read_graph(TALK);
    const struct hd_val *list;
    struct hd_val *state;
    struct listener l;

    (void)unused;
    hear_run(&l, graph);
    state = state_of(&l.world, graph);
    list = hd_val_get(hd_val_get(state, HD_S("values")), HD_S("messages"));
    assert_int_equal(hd_val_count(list), 4);
    for (size_t i = 1; i < hd_val_count(list); i++) {
        struct hd_slice id = text_at(hd_val_at(list, i), "id");
        size_t pieces = 0, wholes = 0;

        assert_true(id.len > 0);
        for (size_t j = 0; j < hd_val_count(l.messages); j++) {
            const struct hd_val *told = hd_val_at(hd_val_at(l.messages, j), 0);
            bool is_piece = hd_slice_eq(text_at(told, "type"), HD_S("AIMessageChunk"));

            if (hd_slice_eq(text_at(told, "id"), id)) {
                pieces += is_piece;
                wholes += !is_piece;
            }
        }
        assert_int_equal(pieces, i < 3 ? 3 : 0);
        assert_int_equal(wholes, i < 3 ? 0 : 1);
    }
    hd_val_unref(state);
    close_listener(&l);
    hd_graph_destroy(graph);
}

static void messages_have_their_node_and_namespace(void **unused)
{
    struct hd_graph *graph = read_graph(TALK);
    const struct hd_val *first, *deep, *set;
    struct listener l;

    (void)unused;
    hear_run(&l, graph);
    first = hd_val_at(hd_val_at(l.messages, 0), 1);
    deep = hd_val_at(hd_val_at(l.messages, 3), 1);
    set = hd_val_at(hd_val_at(l.messages, 6), 1);
    assert_member(first, "langgraph_node", "\"first\"");
    assert_member(first, "langgraph_step", "1");
    assert_member(first, "langgraph_triggers", "[\"branch:to:first\"]");
    assert_member(first, "langgraph_path", "[\"__pregel_pull\",\"first\"]");
    assert_member(first, "thread_id", "\"t\"");
    assert_member(first, "run_id", "\"the-run\"");
    assert_member(first, "assistant_id", "\"A\"");
    assert_member(first, "graph_id", "\"M\""); /* metadata has precedence */
    assert_member(first, "mine", "1");
    assert_member(first, "role", "\"r\"");
    assert_member(first, "tags", "[\"own\",\"t1\",\"t2\"]");
    assert_null(hd_val_get(first, HD_S("secret")));
    /* Relative to the root. */
    assert_true(hd_slice_starts(text_at(first, "langgraph_checkpoint_ns"), HD_S("first:")));
    assert_equal("ns", hd_val_get(first, HD_S("checkpoint_ns")),
                 hd_val_get(first, HD_S("langgraph_checkpoint_ns")));
    assert_member(deep, "langgraph_node", "\"say\"");
    assert_member(deep, "tags", "[\"t1\",\"t2\"]");
    assert_true(hd_slice_starts(text_at(deep, "langgraph_checkpoint_ns"), HD_S("sub:")));
    assert_non_null(strstr(text_at(deep, "langgraph_checkpoint_ns").ptr, "|say:"));
    assert_null(strchr(text_at(deep, "checkpoint_ns").ptr, '|'));
    assert_member(set, "langgraph_node", "\"add\"");
    assert_null(hd_val_get(set, HD_S("tags")));
    close_listener(&l);
    hd_graph_destroy(graph);
}

static void partials_end_with_the_stored_message(void **unused)
{
    struct hd_graph *graph = read_graph(TALK);
    const struct hd_val *list;
    struct hd_val *state;
    struct listener l;
    size_t complete = 0;

    (void)unused;
    hear_run(&l, graph);
    state = state_of(&l.world, graph);
    list = hd_val_get(hd_val_get(state, HD_S("values")), HD_S("messages"));
    for (size_t i = 0; i < hd_val_count(l.partials); i++) {
        const struct hd_val *pair = hd_val_at(l.partials, i);

        if (hd_slice_eq(hd_val_get_string(hd_val_at(pair, 0)), HD_S("messages/complete")))
            assert_equal("message", hd_val_at(hd_val_at(pair, 1), 0), hd_val_at(list, ++complete));
    }
    assert_int_equal(complete, 3);
    hd_val_unref(state);
    close_listener(&l);
    hd_graph_destroy(graph);
}

/* Each run id of the events starts once and after its parents; the outermost is the run itself. */
static void events_form_a_tree(void **unused)
{
    struct hd_graph *graph = read_graph(TALK);
    struct hd_val *begun = hd_val_object();
    struct listener l;
    size_t ends = 0, customs = 0;

    (void)unused;
    hear_run(&l, graph);
    for (size_t i = 0; i < hd_val_count(l.events); i++) {
        const struct hd_val *event = hd_val_at(l.events, i);
        const struct hd_val *around = hd_val_get(event, HD_S("parent_ids"));
        struct hd_slice kind = text_at(event, "event"), id = text_at(event, "run_id");
        bool is_start = kind.len > 6 && memcmp(kind.ptr + kind.len - 6, "_start", 6) == 0;

        for (size_t j = 0; j < hd_val_count(around); j++)
            assert_non_null(hd_val_get(begun, hd_val_get_string(hd_val_at(around, j))));
        assert_int_equal(hd_val_get(begun, id) == NULL, is_start);
        begun = hd_val_with(begun, id, hd_val_null());
        ends += kind.len > 4 && memcmp(kind.ptr + kind.len - 4, "_end", 4) == 0;
        customs += hd_slice_eq(kind, HD_S("on_custom_event"));
        assert_int_equal(hd_val_count(event), 7);
        if (i == 0)
            assert_true(hd_slice_eq(id, HD_S("the-run")));
    }
    /* Two graphs, four nodes, two models. */
    assert_int_equal(hd_val_count(begun), 8);
    assert_int_equal(ends, 8);
    assert_int_equal(customs, 1);
    hd_val_unref(begun);
    close_listener(&l);
    hd_graph_destroy(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_keep_their_ids),
        cmocka_unit_test(messages_have_their_node_and_namespace),
        cmocka_unit_test(partials_end_with_the_stored_message),
        cmocka_unit_test(events_form_a_tree),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
