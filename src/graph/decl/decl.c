/* Reads a whole declaration: checks its size, parses its JSON, and reads its parts in order. */
#include "graph/decl/decl.h"

#include <string.h>

#include "base/alloc.h"

#define MAX_GRAPH_NAME 64

struct graph_members {
    struct hd_slice name, title, description;
    struct hd_val *config_schema, *context_schema;
    struct hd_decl_at state, input, output, nodes, edges, graphs, before, after;
    int64_t recursion_limit;
};

/* A JSON Schema of an object, kept unchanged. */
static int read_schema(struct hd_decl *decl, const struct hd_decl_at *at,
                       const struct hd_field *field, void *out)
{
    hd_json_val type = hd_json_get(at->val, HD_S("type"));
    struct hd_val **schema = out;
    int err;

    (void)field;
    if (!hd_json_is_object(at->val))
        return hd_decl_fail_type(decl, at, "a JSON Schema");
    if (type && !hd_slice_eq(hd_json_string(type), HD_S("object"))) {
        struct hd_decl_at type_at = hd_decl_at_key(at, HD_S("type"), type);

        return hd_decl_fail(decl, &type_at, "must be \"object\"");
    }
    err = hd_val_from_json(at->val, schema, NULL);
    return err == 0 ? hd_decl_memory_keep(decl->hold, *schema) : err;
}

static const struct hd_field graph_fields[] = {
    {"name", hd_decl_read_string, offsetof(struct graph_members, name), false, 0, MAX_GRAPH_NAME,
     0},
    {"title", hd_decl_read_text, offsetof(struct graph_members, title), false, 0, 0, 0},
    {"description", hd_decl_read_text, offsetof(struct graph_members, description), false, 0, 0, 0},
    {"config_schema", read_schema, offsetof(struct graph_members, config_schema), false, 0, 0, 0},
    {"context_schema", read_schema, offsetof(struct graph_members, context_schema), false, 0, 0, 0},
    {"state", hd_decl_read_raw, offsetof(struct graph_members, state), true, 0, 0, 0},
    {"input", hd_decl_read_raw, offsetof(struct graph_members, input), false, 0, 0, 0},
    {"output", hd_decl_read_raw, offsetof(struct graph_members, output), false, 0, 0, 0},
    {"nodes", hd_decl_read_raw, offsetof(struct graph_members, nodes), true, 0, 0, 0},
    {"edges", hd_decl_read_raw, offsetof(struct graph_members, edges), true, 0, 0, 0},
    {"graphs", hd_decl_read_raw, offsetof(struct graph_members, graphs), false, 0, 0, 0},
    {"interrupt_before", hd_decl_read_raw, offsetof(struct graph_members, before), false, 0, 0, 0},
    {"interrupt_after", hd_decl_read_raw, offsetof(struct graph_members, after), false, 0, 0, 0},
    {"recursion_limit", hd_decl_read_int, offsetof(struct graph_members, recursion_limit), false, 1,
     HD_GRAPH_MAX_RECURSION, 0},
};

/* ---- small parts ------------------------------------------------------ */

static int check_graph_name(struct hd_decl *decl, const struct hd_decl_at *at, struct hd_slice name)
{
    bool is_good = name.len > 0 && name.len <= MAX_GRAPH_NAME;

    for (size_t i = 0; i < name.len && is_good; i++) {
        char c = name.ptr[i];

        is_good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '_' || c == '-' || c == '.';
    }
    if (!is_good)
        return hd_decl_fail(decl, at,
                            "the name of a graph has 1 to %d letters, digits, '_', '-' "
                            "and '.'",
                            MAX_GRAPH_NAME);
    return 0;
}

/* The outermost graph needs a name; a subgraph is named by its key. */
static int set_name(struct hd_decl *decl, const struct hd_decl_at *at,
                    const struct graph_members *members)
{
    struct hd_graph *graph = decl->draft->graph;
    struct hd_decl_at name_at = hd_decl_at_key(at, HD_S("name"), at->val);

    graph->title = members->title;
    graph->description = members->description;
    graph->config_schema = members->config_schema;
    graph->context_schema = members->context_schema;
    if (!members->name.ptr && graph->name.ptr)
        return 0;
    if (!members->name.ptr)
        return hd_decl_fail(decl, at, "needs a member \"name\"");
    graph->name = members->name;
    return check_graph_name(decl, &name_at, members->name);
}

static int read_channel_list(struct hd_decl *decl, const struct hd_decl_at *at, const size_t **list,
                             size_t *count)
{
    static const struct hd_field field = {.name = "channels"};
    struct hd_indexes indexes = {0};
    int err;

    if (!hd_raw(at))
        return 0;
    err = hd_decl_read_channels(decl, at, &field, &indexes);
    if (err == 0 && indexes.count == 0)
        err = hd_decl_fail(decl, at, "must not be empty");
    *list = indexes.list;
    *count = indexes.count;
    return err;
}

static void set_breakpoint(struct hd_node *node, bool is_before)
{
    if (is_before)
        node->stops_before = true;
    else
        node->stops_after = true;
}

static int read_breakpoints(struct hd_decl *decl, const struct hd_decl_at *at, bool is_before)
{
    struct hd_json_iter it = hd_json_iter(at->val);
    struct hd_draft *draft = decl->draft;
    size_t index = 0, node = 0;
    int err = 0;

    if (!hd_raw(at))
        return 0;
    if (hd_slice_eq(hd_json_string(at->val), HD_S("*"))) {
        for (size_t i = 1; i < draft->graph->node_count; i++)
            set_breakpoint(&draft->nodes[i], is_before);
        return 0;
    }
    if (!hd_json_is_array(at->val))
        return hd_decl_fail(decl, at, "must be a list of nodes, or \"*\"");
    while (err == 0 && hd_json_next(&it)) {
        struct hd_decl_at element = hd_decl_at_index(at, index++, it.val);

        err = hd_decl_read_node(decl, &element, NULL, &node);
        if (err == 0)
            set_breakpoint(&draft->nodes[node], is_before);
    }
    return err;
}

/* ---- subgraphs -------------------------------------------------------- */

static int read_graph(struct hd_decl *decl, const struct hd_decl_at *at, struct hd_draft *draft);

static struct hd_draft *add_draft(struct hd_decl *decl, const struct hd_decl_at *at,
                                  struct hd_graph *graph)
{
    struct hd_draft *draft = hd_arena_calloc(&decl->hold->arena, 1, sizeof(*draft));

    if (!draft || !graph)
        return NULL;
    draft->graph = graph;
    draft->outer = decl->draft;
    draft->pending_end = &draft->pending;
    draft->outward_end = &draft->outward;
    draft->path = hd_decl_path(decl, at);
    hd_map_init(&draft->channel_map, HD_GRAPH_MAX_CHANNELS);
    hd_map_init(&draft->node_map, HD_GRAPH_MAX_NODES);
    hd_map_init(&draft->graph_map, HD_GRAPH_MAX_NODES);
    draft->next = decl->drafts;
    decl->drafts = draft;
    return draft->path ? draft : NULL;
}

static int name_graph(struct hd_decl *decl, const struct hd_decl_at *at)
{
    struct hd_graph *graph = hd_arena_calloc(&decl->hold->arena, 1, sizeof(*graph));
    struct hd_draft *draft;
    int err = check_graph_name(decl, at, at->key);

    if (err != 0)
        return err;
    draft = add_draft(decl, at, graph);
    if (!draft)
        return HD_ENOMEM;
    graph->outer = decl->draft->graph;
    err = hd_decl_copy(decl, at->key, &graph->name);
    return err == 0 ? hd_map_put(&decl->draft->graph_map, graph->name, draft) : err;
}

/* Collects all names first: a graph may refer to graphs declared beside it. */
static int name_graphs(struct hd_decl *decl, const struct hd_decl_at *at)
{
    struct hd_json_iter it = hd_json_iter(at->val);
    int err = 0;

    if (!hd_raw(at))
        return 0;
    if (!hd_json_is_object(at->val))
        return hd_decl_fail_type(decl, at, "an object of graphs");
    if (hd_json_size(at->val) > HD_GRAPH_MAX_NODES)
        return hd_decl_fail(decl, at, "a declaration has at most %d nodes", HD_GRAPH_MAX_NODES);
    if (decl->level + 1 >= HD_GRAPH_MAX_LEVELS)
        return hd_decl_fail(decl, at, "graphs are nested at most %d levels deep",
                            HD_GRAPH_MAX_LEVELS);
    while (err == 0 && hd_json_next(&it)) {
        struct hd_decl_at member = hd_decl_at_key(at, it.key, it.val);

        err = name_graph(decl, &member);
    }
    return err;
}

static int read_graphs(struct hd_decl *decl, const struct hd_decl_at *at)
{
    struct hd_json_iter it = hd_json_iter(at->val);
    struct hd_draft *outer = decl->draft;
    int err = 0;

    decl->level++;
    while (err == 0 && hd_json_next(&it)) {
        struct hd_decl_at member = hd_decl_at_key(at, it.key, it.val);

        err = read_graph(decl, &member, hd_map_get(&outer->graph_map, it.key));
    }
    decl->level--;
    decl->draft = outer;
    return err;
}

/* ---- a graph ---------------------------------------------------------- */

static int read_channels(struct hd_decl *decl, const struct graph_members *members)
{
    struct hd_graph *graph = decl->draft->graph;
    size_t more = 2 + hd_json_size(members->nodes.val) + hd_decl_count_joins(members->edges.val);
    int err = hd_decl_read_state(decl, &members->state, more);

    if (err == 0)
        err = hd_decl_add_channel(decl, "__start__", HD_REDUCE_EPHEMERAL, &graph->start_channel);
    if (err == 0)
        err = hd_decl_add_channel(decl, "__pregel_tasks", HD_REDUCE_TOPIC, &graph->tasks_channel);
    if (err == 0)
        err = read_channel_list(decl, &members->input, &graph->input, &graph->input_count);
    if (err == 0)
        err = read_channel_list(decl, &members->output, &graph->output, &graph->output_count);
    return err;
}

static int read_graph_parts(struct hd_decl *decl, const struct graph_members *members)
{
    int err = read_channels(decl, members);

    if (err == 0)
        err = hd_decl_name_nodes(decl, &members->nodes);
    if (err == 0)
        err = name_graphs(decl, &members->graphs);
    if (err == 0)
        err = hd_decl_read_nodes(decl, &members->nodes);
    if (err == 0)
        err = hd_decl_read_edges(decl, &members->edges);
    if (err == 0)
        err = read_breakpoints(decl, &members->before, true);
    if (err == 0)
        err = read_breakpoints(decl, &members->after, false);
    return err == 0 ? read_graphs(decl, &members->graphs) : err;
}

static int read_graph(struct hd_decl *decl, const struct hd_decl_at *at, struct hd_draft *draft)
{
    static const struct hd_fields fields = HD_FIELDS(graph_fields, NULL);
    struct graph_members members = {.recursion_limit = 0};
    int err;

    decl->draft = draft;
    err = hd_decl_fields(decl, at, &fields, &members);
    if (err == 0)
        err = set_name(decl, at, &members);
    draft->has_limit = members.recursion_limit != 0;
    draft->graph->recursion_limit =
        draft->has_limit ? (int)members.recursion_limit : HD_GRAPH_DEFAULT_RECURSION;
    return err == 0 ? read_graph_parts(decl, &members) : err;
}

/* ---- a declaration ---------------------------------------------------- */

static void free_drafts(struct hd_decl *decl)
{
    for (struct hd_draft *draft = decl->drafts; draft; draft = draft->next) {
        hd_map_fini(&draft->channel_map);
        hd_map_fini(&draft->node_map);
        hd_map_fini(&draft->graph_map);
    }
}

static int read_root_graph(struct hd_decl *decl, const struct hd_decl_at *at,
                           struct hd_graph *graph)
{
    struct hd_draft *draft;
    int err;

    if (!hd_json_is_object(at->val))
        return hd_decl_fail_type(decl, at, "an object");
    err = hd_decl_check_unique(decl, at);
    if (err != 0)
        return err;
    draft = add_draft(decl, at, graph);
    err = draft ? read_graph(decl, at, draft) : HD_ENOMEM;
    return err == 0 ? hd_decl_check(decl) : err;
}

static int read_graph_text(struct hd_decl *decl, struct hd_slice text, struct hd_graph *graph)
{
    struct hd_decl_at at = {.key = HD_S("")};
    struct heddle_error fault = {0};
    struct hd_json json;
    int err;

    if (text.len > HD_GRAPH_MAX_TEXT)
        return hd_decl_fail_path(decl, HD_ELIMIT, "", "a declaration has at most %zu bytes",
                                 HD_GRAPH_MAX_TEXT);
    err = hd_json_parse(&json, text, &fault);
    if (err != 0)
        return hd_decl_fail_path(decl, err, "", "%s", fault.text);
    at.val = hd_json_root(&json);
    err = read_root_graph(decl, &at, graph);
    free_drafts(decl);
    hd_json_fini(&json);
    return err;
}

int hd_graph_read(struct hd_slice text, struct hd_graph **out, struct hd_graph_error *error)
{
    struct hd_graph_root *root = hd_calloc(1, sizeof(*root));
    struct hd_decl decl = {.error = error};
    int err;

    if (error)
        *error = (struct hd_graph_error){0};
    if (!root)
        return HD_ENOMEM;
    hd_decl_memory_init(&root->hold);
    decl.hold = &root->hold;
    err = read_graph_text(&decl, text, &root->graph);
    if (err == 0)
        err = hd_decl_memory_freeze(&root->hold);
    if (err == 0) {
        *out = &root->graph;
        return 0;
    }
    if (error && error->code == 0)
        error->code = hd_decl_fail_path(&decl, err, "", "%s", hd_error_text(err));
    hd_graph_destroy(&root->graph);
    return err;
}

void hd_graph_destroy(struct hd_graph *graph)
{
    struct hd_graph_root *root = (struct hd_graph_root *)graph;

    if (!root)
        return;
    hd_decl_memory_fini(&root->hold);
    hd_free(root);
}

/* ---- lookup ----------------------------------------------------------- */

size_t hd_graph_find_node(const struct hd_graph *graph, struct hd_slice name)
{
    for (size_t i = 0; i < graph->node_count; i++) {
        if (hd_slice_eq(graph->nodes[i].name, name))
            return i;
    }
    return HD_GRAPH_END;
}

size_t hd_graph_find_channel(const struct hd_graph *graph, struct hd_slice name)
{
    for (size_t i = 0; i < graph->channel_count; i++) {
        if (hd_slice_eq(graph->channels[i].name, name))
            return i;
    }
    return HD_GRAPH_END;
}
