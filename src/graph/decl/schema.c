#include "graph/decl/schema.h"

#include <string.h>

#define MAX_NS ((size_t)1 << 16)

/* The schema of the members that all kinds of messages have in common. */
#define MESSAGE                                                                                  \
    "{\"title\":\"Message\",\"type\":\"object\",\"properties\":{"                                \
    "\"type\":{\"type\":\"string\",\"enum\":[\"human\",\"ai\",\"system\",\"tool\",\"function\"," \
    "\"developer\",\"remove\",\"chat\"]},"                                                       \
    "\"role\":{\"type\":\"string\"},"                                                            \
    "\"content\":{\"anyOf\":[{\"type\":\"string\"},{\"type\":\"array\",\"items\":{\"anyOf\":["   \
    "{\"type\":\"string\"},{\"type\":\"object\"}]}}]},"                                          \
    "\"id\":{\"anyOf\":[{\"type\":\"string\"},{\"type\":\"null\"}]},"                            \
    "\"name\":{\"anyOf\":[{\"type\":\"string\"},{\"type\":\"null\"}]},"                          \
    "\"tool_calls\":{\"type\":\"array\",\"items\":{\"type\":\"object\"}},"                       \
    "\"tool_call_id\":{\"type\":\"string\"}},\"required\":[\"content\"]}"

static void put_type(struct hd_jw *jw, const struct hd_graph_channel *channel, bool is_input)
{
    static const char *const names[] = {
        [HD_TYPE_ANY] = NULL,          [HD_TYPE_STRING] = "string", [HD_TYPE_NUMBER] = "number",
        [HD_TYPE_BOOLEAN] = "boolean", [HD_TYPE_LIST] = "array",    [HD_TYPE_OBJECT] = "object",
    };

    /* A topic accepts any value, so its input has no type. */
    if (!names[channel->type] || (is_input && channel->reducer == HD_REDUCE_TOPIC))
        return;
    hd_jw_put_string(jw, "type", hd_slice_cstr(names[channel->type]));
    if (channel->reducer == HD_REDUCE_MESSAGES)
        hd_jw_put_raw(jw, "items", HD_S("{\"$ref\":\"#/$defs/Message\"}"));
}

static void put_channel(struct hd_jw *jw, const struct hd_graph_channel *channel, bool is_input)
{
    hd_jw_key(jw, channel->name);
    hd_jw_object(jw);
    if (channel->title.len > 0)
        hd_jw_put_string(jw, "title", channel->title);
    if (channel->description.len > 0)
        hd_jw_put_string(jw, "description", channel->description);
    put_type(jw, channel, is_input);
    if (channel->initial) {
        hd_jw_key(jw, HD_S("default"));
        hd_val_put_rendered(jw, channel->initial);
    }
    hd_jw_object_end(jw);
}

/* `channels` NULL: all channels of the state. */
static void put_schema(struct hd_jw *jw, const struct hd_graph *graph, const char *key,
                       const size_t *channels, size_t count, bool is_input)
{
    bool has_messages = false;

    hd_jw_put_object(jw, key);
    hd_jw_put_string(jw, "title", graph->title.len > 0 ? graph->title : graph->name);
    if (graph->description.len > 0)
        hd_jw_put_string(jw, "description", graph->description);
    hd_jw_put_string(jw, "type", HD_S("object"));
    hd_jw_put_object(jw, "properties");
    for (size_t i = 0; i < (channels ? count : graph->state_count); i++) {
        const struct hd_graph_channel *channel = &graph->channels[channels ? channels[i] : i];

        put_channel(jw, channel, is_input);
        has_messages = has_messages || channel->reducer == HD_REDUCE_MESSAGES;
    }
    hd_jw_object_end(jw);
    if (has_messages)
        hd_jw_put_raw(jw, "$defs", HD_S("{\"Message\":" MESSAGE "}"));
    hd_jw_object_end(jw);
}

static void put_declared(struct hd_jw *jw, const char *key, const struct hd_val *schema)
{
    hd_jw_key(jw, hd_slice_cstr(key));
    if (schema)
        hd_val_put_rendered(jw, schema);
    else
        hd_jw_null(jw);
}

void hd_graph_put_schemas(struct hd_jw *jw, const struct hd_graph *graph, struct hd_slice graph_id)
{
    hd_jw_object(jw);
    if (graph_id.len > 0)
        hd_jw_put_string(jw, "graph_id", graph_id);
    put_schema(jw, graph, "input_schema", graph->input, graph->input_count, true);
    put_schema(jw, graph, "output_schema", graph->output, graph->output_count, false);
    put_schema(jw, graph, "state_schema", NULL, 0, false);
    put_declared(jw, "config_schema", graph->config_schema);
    put_declared(jw, "context_schema", graph->context_schema);
    hd_jw_object_end(jw);
}

/* ---- subgraphs -------------------------------------------------------- */

struct subgraph_listing {
    struct hd_jw jw;
    struct hd_buf ns; /* of the current graph */
    bool recurse;
};

static void put_subgraph(struct subgraph_listing *l, const struct hd_node *node);

/* Several nodes may run one graph, so a small file may make a long list; the buffer limits it. */
static void put_subgraphs(struct subgraph_listing *l, const struct hd_graph *graph)
{
    for (size_t i = 0; i < graph->node_count && !l->jw.err; i++) {
        if (graph->nodes[i].graph)
            put_subgraph(l, &graph->nodes[i]);
    }
}

static void put_subgraph(struct subgraph_listing *l, const struct hd_node *node)
{
    size_t before = l->ns.len;
    int err = before > 0 ? hd_buf_append_byte(&l->ns, '|') : 0;

    if (!err)
        err = hd_buf_append_slice(&l->ns, node->name);
    if (err) {
        l->jw.err = err;
        return;
    }
    hd_jw_key(&l->jw, hd_buf_slice(&l->ns));
    hd_graph_put_schemas(&l->jw, node->graph, hd_slice("", 0));
    if (l->recurse)
        put_subgraphs(l, node->graph);
    l->ns.len = before;
}

/* Finds the node of a namespace; appends the names of the enclosing nodes to `outer`. */
static const struct hd_node *find_ns_node(const struct hd_graph *graph, struct hd_slice ns,
                                          struct hd_buf *outer, int *err)
{
    const struct hd_node *found = NULL;

    while (ns.len > 0 && !*err) {
        const char *bar = memchr(ns.ptr, '|', ns.len);
        struct hd_slice part = hd_slice(ns.ptr, bar ? (size_t)(bar - ns.ptr) : ns.len);
        const char *colon = memchr(part.ptr, ':', part.len);
        size_t node;

        if (found && outer->len > 0)
            *err = hd_buf_append_byte(outer, '|');
        if (found && !*err)
            *err = hd_buf_append_slice(outer, found->name);
        ns = hd_slice(ns.ptr + part.len + (bar != NULL), ns.len - part.len - (bar != NULL));
        node = hd_graph_find_node(
            graph, hd_slice(part.ptr, colon ? (size_t)(colon - part.ptr) : part.len));
        if (node == HD_GRAPH_END || !graph->nodes[node].graph)
            return NULL;
        found = &graph->nodes[node];
        graph = found->graph;
    }
    return found;
}

int hd_graph_subgraphs(struct hd_buf *out, const struct hd_graph *graph, struct hd_slice ns,
                       bool recurse)
{
    struct subgraph_listing l = {.recurse = recurse};
    const struct hd_node *node = NULL;
    size_t start = out->len;
    int err = 0;

    hd_buf_init(&l.ns, MAX_NS);
    if (ns.len > 0) {
        node = find_ns_node(graph, ns, &l.ns, &err);
        if (!err && !node)
            err = HD_ENOTFOUND;
    }
    hd_jw_init(&l.jw, out);
    if (!err) {
        hd_jw_object(&l.jw);
        if (node)
            put_subgraph(&l, node);
        else
            put_subgraphs(&l, graph);
        hd_jw_object_end(&l.jw);
        err = hd_jw_finish(&l.jw);
    }
    hd_buf_fini(&l.ns);
    if (err)
        out->len = start;
    return err;
}
