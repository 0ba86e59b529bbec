/* Reads a worker's structure of a graph into a struct hd_graph, which is used to read states. */
#include "graph/state/worker_graph.h"

#include <string.h>

#include "base/alloc.h"
#include "base/json.h"
#include "graph/decl/decl.h"
#include "graph/decl/subgraph.h"

#define MAX_CHANNELS 4096 /* of all levels, including internal channels */
#define TASKS "__pregel_tasks"
#define START "__start__"
#define JOIN "join:"

struct graph_reading {
    struct hd_decl_memory *hold;
    struct heddle_error *fault;
    enum hd_graph_ids ids;
    size_t node_total, channel_total;
    int level;
};

/* A graph during parsing. */
struct draft {
    struct hd_graph *graph;
    hd_json_val json;
    struct hd_graph_channel *channels;
    size_t channel_count;
    struct hd_node *nodes;
    size_t node_count;
};

static int read_graph(struct graph_reading *r, hd_json_val json, const struct hd_graph *outer,
                      struct hd_graph *graph);

static int refuse_structure(struct graph_reading *r, const char *what, struct hd_slice name)
{
    return hd_error_set(r->fault, HD_EINVAL, "the structure of the graph: %s '%.*s'", what,
                        HD_SHOW(name));
}

/* ---- channels --------------------------------------------------------- */

/* LangGraph's channel classes. User-defined classes are opaque. */
static const struct {
    const char *name;
    enum hd_graph_reducer reducer;
} classes[] = {
    {"LastValue", HD_REDUCE_LAST},
    {"AnyValue", HD_REDUCE_ANY},
    {"EphemeralValue", HD_REDUCE_TRIGGER},
    {"UntrackedValue", HD_REDUCE_UNTRACKED},
    {"UntrackedValueChannel", HD_REDUCE_UNTRACKED},
    {"Topic", HD_REDUCE_TOPIC},
    {"NamedBarrierValue", HD_REDUCE_BARRIER},
    {"NamedBarrierValueAfterFinish", HD_REDUCE_BARRIER_AFTER},
    {"LastValueAfterFinish", HD_REDUCE_TRIGGER_AFTER},
};

static enum hd_graph_reducer find_class(struct hd_slice name)
{
    for (size_t i = 0; i < HD_COUNT(classes); i++) {
        if (hd_slice_eq(name, hd_slice_cstr(classes[i].name)))
            return classes[i].reducer;
    }
    return HD_REDUCE_OPAQUE;
}

/* The reducer of a channel whose class does not determine it, if the server has that reducer. */
static enum hd_graph_reducer find_reducer(struct hd_slice name)
{
    for (int i = HD_REDUCE_MESSAGES; i <= HD_REDUCE_OR; i++) {
        if (hd_slice_eq(name, hd_slice_cstr(hd_graph_reducer_name((enum hd_graph_reducer)i))))
            return (enum hd_graph_reducer)i;
    }
    return HD_REDUCE_OPAQUE;
}

static int read_initial(struct graph_reading *r, const struct draft *draft,
                        struct hd_graph_channel *channel)
{
    hd_json_val initial = hd_json_get(hd_json_get(draft->json, HD_S("initial")), channel->name);
    int err;

    if (!initial)
        return 0;
    err = hd_val_from_json(initial, &channel->initial, r->fault);
    return err ? err : hd_decl_memory_keep(r->hold, channel->initial);
}

static int add_channel(struct graph_reading *r, struct draft *draft, struct hd_slice name,
                       struct hd_slice class)
{
    struct hd_graph_channel *channel;
    hd_json_val reducers = hd_json_get(draft->json, HD_S("reducers"));
    int err;

    if (++r->channel_total > MAX_CHANNELS)
        return hd_error_set(r->fault, HD_ELIMIT, "a graph has at most %d channels", MAX_CHANNELS);
    channel =
        hd_decl_memory_push(r->hold, &draft->channels, &draft->channel_count, sizeof(*channel));
    if (!channel)
        return HD_ENOMEM;
    *channel = (struct hd_graph_channel){.node = HD_GRAPH_END, .reducer = find_class(class)};
    err = hd_arena_copy(&r->hold->arena, name, &channel->name);
    if (channel->reducer == HD_REDUCE_OPAQUE)
        channel->reducer = find_reducer(hd_json_string(hd_json_get(reducers, name)));
    return err ? err : read_initial(r, draft, channel);
}

static bool is_listed_name(hd_json_val list, struct hd_slice name)
{
    struct hd_json_iter it = hd_json_iter(list);

    if (hd_json_is_string(list))
        return hd_slice_eq(hd_json_string(list), name);
    while (hd_json_next(&it)) {
        if (hd_slice_eq(hd_json_string(it.val), name))
            return true;
    }
    return false;
}

/* Adds the channels that states show first, in their order. Managed values are not channels. */
static int add_shown(struct graph_reading *r, struct draft *draft, hd_json_val named,
                     hd_json_val shown)
{
    struct hd_json_iter it = hd_json_iter(shown);
    hd_json_val class;
    int err = 0;

    if (hd_json_is_string(shown)) {
        class = hd_json_get(named, hd_json_string(shown));
        if (!class)
            return refuse_structure(r, "unknown channel", hd_json_string(shown));
        draft->graph->is_single = true;
        return add_channel(r, draft, hd_json_string(shown), hd_json_string(class));
    }
    while (!err && hd_json_next(&it)) {
        class = hd_json_get(named, hd_json_string(it.val));
        if (class)
            err = add_channel(r, draft, hd_json_string(it.val), hd_json_string(class));
    }
    return err;
}

static int find_or_add(struct graph_reading *r, struct draft *draft, const char *name,
                       const char *class, size_t *out)
{
    for (*out = 0; *out < draft->channel_count; (*out)++) {
        if (hd_slice_eq(draft->channels[*out].name, hd_slice_cstr(name)))
            return 0;
    }
    return add_channel(r, draft, hd_slice_cstr(name), hd_slice_cstr(class));
}

static int read_channels(struct graph_reading *r, struct draft *draft)
{
    hd_json_val all = hd_json_get(draft->json, HD_S("channels"));
    hd_json_val shown = hd_json_get(draft->json, HD_S("stream_channels"));
    struct hd_json_iter it = hd_json_iter(all);
    int err;

    if (all && !hd_json_is_object(all))
        return refuse_structure(r, "not an object:", HD_S("channels"));
    err = add_shown(r, draft, all, shown);
    draft->graph->state_count = draft->channel_count;
    while (!err && hd_json_next(&it)) {
        if (!is_listed_name(shown, it.key))
            err = add_channel(r, draft, it.key, hd_json_string(it.val));
    }
    if (!err)
        err = find_or_add(r, draft, START, "EphemeralValue", &draft->graph->start_channel);
    if (!err)
        err = find_or_add(r, draft, TASKS, "Topic", &draft->graph->tasks_channel);
    draft->graph->channels = draft->channels;
    draft->graph->channel_count = draft->channel_count;
    return err;
}

/* ---- nodes ------------------------------------------------------------ */

static int add_node(struct graph_reading *r, struct draft *draft, struct hd_slice name)
{
    struct hd_node *node;

    if (++r->node_total > HD_GRAPH_MAX_NODES)
        return hd_error_set(r->fault, HD_ELIMIT, "a graph has at most %d nodes",
                            HD_GRAPH_MAX_NODES);
    node = hd_decl_memory_push(r->hold, &draft->nodes, &draft->node_count, sizeof(*node));
    if (!node)
        return HD_ENOMEM;
    node->index = draft->node_count - 1;
    return hd_arena_copy(&r->hold->arena, name, &node->name);
}

static int name_nodes(struct graph_reading *r, struct draft *draft)
{
    struct hd_json_iter it = hd_json_iter(hd_json_get(draft->json, HD_S("nodes")));
    int err = add_node(r, draft, HD_S(START));

    while (!err && hd_json_next(&it)) {
        if (!hd_slice_eq(it.key, HD_S(START)))
            err = add_node(r, draft, it.key);
    }
    draft->graph->nodes = draft->nodes;
    draft->graph->node_count = draft->node_count;
    return err;
}

static int read_triggers(struct graph_reading *r, struct draft *draft, struct hd_node *node,
                         hd_json_val triggers)
{
    struct hd_json_iter it = hd_json_iter(triggers);

    while (hd_json_next(&it)) {
        size_t channel = hd_graph_find_channel(draft->graph, hd_json_string(it.val));
        size_t *place;

        if (channel == HD_GRAPH_END)
            return refuse_structure(r, "unknown channel", hd_json_string(it.val));
        place = hd_decl_memory_push(r->hold, &node->triggers, &node->trigger_count, sizeof(*place));
        if (!place)
            return HD_ENOMEM;
        *place = channel;
        draft->channels[channel].node = node->index;
    }
    return 0;
}

/* The subgraph's `checkpointer`: true, false, or null to inherit the parent's. */
static int read_subgraph(struct graph_reading *r, struct draft *draft, struct hd_node *node,
                         hd_json_val json)
{
    hd_json_val subgraph = hd_json_get(json, HD_S("subgraph"));
    hd_json_val own = hd_json_get(json, HD_S("checkpointer"));
    struct hd_subgraph_spec *spec;
    struct hd_graph *graph;

    if (!hd_json_is_object(subgraph))
        return 0;
    spec = hd_arena_calloc(&r->hold->arena, 1, sizeof(*spec));
    graph = hd_arena_calloc(&r->hold->arena, 1, sizeof(*graph));
    if (!spec || !graph)
        return HD_ENOMEM;
    if (hd_json_is_bool(own))
        spec->memory = hd_json_is_true(own) ? HD_MEMORY_OWN : HD_MEMORY_NONE;
    node->spec = spec;
    node->graph = graph;
    return read_graph(r, subgraph, draft->graph, graph);
}

static bool is_stop(hd_json_val list, struct hd_slice name)
{
    return hd_slice_eq(hd_json_string(list), HD_S("*")) || is_listed_name(list, name);
}

static int read_nodes(struct graph_reading *r, struct draft *draft)
{
    hd_json_val nodes = hd_json_get(draft->json, HD_S("nodes"));
    hd_json_val before = hd_json_get(draft->json, HD_S("interrupt_before"));
    hd_json_val after = hd_json_get(draft->json, HD_S("interrupt_after"));
    int err = 0;

    for (size_t i = 0; i < draft->node_count && !err; i++) {
        struct hd_node *node = &draft->nodes[i];
        hd_json_val json = hd_json_get(nodes, node->name);

        node->is_deferred = hd_json_is_true(hd_json_get(json, HD_S("deferred")));
        node->stops_before = is_stop(before, node->name);
        node->stops_after = is_stop(after, node->name);
        err = read_triggers(r, draft, node, hd_json_get(json, HD_S("triggers")));
        if (!err)
            err = read_subgraph(r, draft, node, json);
    }
    return err;
}

/* ---- joins ------------------------------------------------------------ */

/* Finds the node whose name starts `text`, up to a '+' or its end; names may contain a '+'. */
static size_t first_source(const struct hd_graph *graph, struct hd_slice text, size_t *len)
{
    size_t node = HD_GRAPH_END;

    for (*len = 1; *len <= text.len && node == HD_GRAPH_END; (*len)++) {
        if (*len == text.len || text.ptr[*len] == '+')
            node = hd_graph_find_node(graph, hd_slice(text.ptr, *len));
    }
    (*len)--;
    return node;
}

/* `join:a+b:c` waits for a and b. */
static int read_join_sources(struct graph_reading *r, const struct hd_graph *graph,
                             struct hd_graph_channel *channel, bool *is_known)
{
    struct hd_slice name = channel->name;
    struct hd_slice rest = hd_slice(name.ptr, name.len);
    size_t *list = NULL, count = 0, len;

    *is_known = false;
    if (!hd_slice_starts(name, HD_S(JOIN)))
        return 0;
    while (rest.len > 0 && rest.ptr[rest.len - 1] != ':')
        rest.len--;
    rest = hd_slice(rest.ptr + strlen(JOIN), rest.len > strlen(JOIN) ? rest.len - strlen(JOIN) : 0);
    rest.len -= rest.len > 0; /* the colon */
    while (rest.len > 0) {
        size_t node = first_source(graph, rest, &len);
        size_t *place;

        if (node == HD_GRAPH_END)
            return 0;
        place = hd_decl_memory_push(r->hold, &list, &count, sizeof(*place));
        if (!place)
            return HD_ENOMEM;
        *place = node;
        len += len < rest.len; /* the plus */
        rest = hd_slice(rest.ptr + len, rest.len - len);
    }
    *is_known = count > 0;
    channel->sources = list;
    channel->source_count = count;
    return 0;
}

/* A join without known sources is never full, so it becomes untracked. */
static int read_joins(struct graph_reading *r, struct draft *draft)
{
    int err = 0;

    for (size_t i = 0; i < draft->channel_count && !err; i++) {
        struct hd_graph_channel *channel = &draft->channels[i];
        bool is_known = true;

        if (channel->reducer == HD_REDUCE_BARRIER || channel->reducer == HD_REDUCE_BARRIER_AFTER)
            err = read_join_sources(r, draft->graph, channel, &is_known);
        if (!is_known)
            channel->reducer = HD_REDUCE_UNTRACKED;
    }
    return err;
}

/* ---- graphs ----------------------------------------------------------- */

static int read_graph(struct graph_reading *r, hd_json_val json, const struct hd_graph *outer,
                      struct hd_graph *graph)
{
    struct draft draft = {.graph = graph, .json = json};
    int err;

    graph->recursion_limit = HD_GRAPH_DEFAULT_RECURSION;
    graph->outer = outer;
    graph->ids = r->ids;
    graph->is_foreign = true;
    graph->is_open = !hd_json_is_object(json);
    if (++r->level > HD_GRAPH_MAX_LEVELS)
        return hd_error_set(r->fault, HD_ELIMIT, "graphs are at most %d levels deep",
                            HD_GRAPH_MAX_LEVELS);
    err = read_channels(r, &draft);
    if (!err)
        err = name_nodes(r, &draft);
    if (!err)
        err = read_joins(r, &draft);
    if (!err)
        err = read_nodes(r, &draft);
    r->level--;
    return err;
}

static int read_structure_json(struct graph_reading *r, struct hd_slice text,
                               struct hd_graph *graph)
{
    struct hd_json json = {NULL};
    int err = 0;

    if (text.len > HD_WORKER_GRAPH_MAX_TEXT)
        return hd_error_set(r->fault, HD_ELIMIT, "a structure has at most %zu bytes",
                            HD_WORKER_GRAPH_MAX_TEXT);
    if (text.len > 0)
        err = hd_json_parse(&json, text, r->fault);
    if (err)
        return err;
    if (text.len > 0 && !hd_json_is_object(hd_json_root(&json)) &&
        !hd_json_is_null(hd_json_root(&json)))
        err = hd_error_set(r->fault, HD_EINVAL, "the structure of the graph is %s, not an object",
                           hd_json_type_name(hd_json_root(&json)));
    if (!err)
        err = read_graph(r, hd_json_root(&json), NULL, graph);
    hd_json_fini(&json);
    return err;
}

int hd_worker_graph_create(struct hd_slice structure, enum hd_graph_ids ids, struct hd_graph **out,
                           struct heddle_error *fault)
{
    struct hd_graph_root *root = hd_calloc(1, sizeof(*root));
    struct graph_reading r = {.fault = fault, .ids = ids};
    int err;

    if (!root)
        return HD_ENOMEM;
    hd_decl_memory_init(&root->hold);
    r.hold = &root->hold;
    err = read_structure_json(&r, structure, &root->graph);
    if (!err)
        err = hd_decl_memory_freeze(&root->hold);
    if (err) {
        hd_graph_destroy(&root->graph);
        return err;
    }
    *out = &root->graph;
    return 0;
}
