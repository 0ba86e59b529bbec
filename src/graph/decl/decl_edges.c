/* `edges`: plain edges, joins that wait for several nodes, and conditional edges. */
#include <string.h>

#include "graph/decl/decl.h"

#define MAX_ROUTES 1000

struct edge {
    struct hd_decl_at from, to, routes, fanout;
};

/* ---- routes ----------------------------------------------------------- */

struct route_members {
    struct hd_decl_at when, to;
    struct hd_slice label;
};

static const struct hd_field route_fields[] = {
    {"when", hd_decl_read_raw, offsetof(struct route_members, when), false, 0, 0, 0},
    {"to", hd_decl_read_raw, offsetof(struct route_members, to), true, 0, 0, 0},
    {"label", hd_decl_read_text, offsetof(struct route_members, label), false, 0, 100, 0},
};

static int read_target(struct hd_decl *decl, const struct hd_decl_at *at, struct hd_route *route,
                       struct hd_target *target)
{
    int err;

    if (!hd_json_is_string(at->val))
        return hd_decl_fail_type(decl, at, "the name of a node");
    err = hd_decl_find_node(decl, at, hd_json_string(at->val), true, &target->node);
    for (size_t i = 0; err == 0 && &route->to[i] < target; i++) {
        if (route->to[i].node == target->node)
            return hd_decl_fail(decl, at, "node \"%.*s\" is a duplicate",
                                HD_SHOW(hd_json_string(at->val)));
    }
    return err;
}

static int read_targets(struct hd_decl *decl, const struct hd_decl_at *at, struct hd_slice label,
                        struct hd_route *route)
{
    struct hd_json_iter it = hd_json_iter(at->val);
    size_t size = hd_json_is_array(at->val) ? hd_json_size(at->val) : 1;
    struct hd_target *targets;
    int err = 0;

    if (size == 0 || (!hd_json_is_array(at->val) && !hd_json_is_string(at->val)))
        return hd_decl_fail(decl, at, "must be a node or a list of nodes");
    targets = hd_arena_calloc(&decl->hold->arena, size, sizeof(*targets));
    if (!targets)
        return HD_ENOMEM;
    route->to = targets;
    route->to_count = size;
    if (hd_json_is_string(at->val))
        err = read_target(decl, at, route, targets);
    for (size_t i = 0; err == 0 && hd_json_next(&it); i++) {
        struct hd_decl_at element = hd_decl_at_index(at, i, it.val);

        err = read_target(decl, &element, route, &targets[i]);
    }
    for (size_t i = 0; i < size; i++)
        targets[i].label = label;
    return err;
}

static int read_route(struct hd_decl *decl, const struct hd_decl_at *at, struct hd_route *route)
{
    static const struct hd_fields fields = HD_FIELDS(route_fields, NULL);
    struct route_members members = {0};
    int err = hd_decl_fields(decl, at, &fields, &members);

    if (err == 0 && hd_raw(&members.when))
        err = hd_decl_expr_in(decl, &members.when, 0, &route->when);
    return err == 0 ? read_targets(decl, &members.to, members.label, route) : err;
}

int hd_decl_read_routes(struct hd_decl *decl, const struct hd_decl_at *at, struct hd_branch *out,
                        bool *has_default)
{
    struct hd_json_iter it = hd_json_iter(at->val);
    size_t size = hd_json_size(at->val);
    struct hd_route *routes;
    int err = 0;

    if (!hd_json_is_array(at->val))
        return hd_decl_fail_type(decl, at, "a list of routes");
    if (size == 0 || size > MAX_ROUTES)
        return hd_decl_fail(decl, at, "must have from 1 to %d routes", MAX_ROUTES);
    routes = hd_arena_calloc(&decl->hold->arena, size, sizeof(*routes));
    if (!routes)
        return HD_ENOMEM;
    out->routes = routes;
    *has_default = false;
    while (err == 0 && hd_json_next(&it)) {
        struct hd_decl_at element = hd_decl_at_index(at, out->route_count, it.val);
        struct hd_route *route = &routes[out->route_count++];

        if (*has_default)
            return hd_decl_fail(decl, &element, "is never taken: the route before has no \"when\"");
        err = read_route(decl, &element, route);
        *has_default = !route->when;
    }
    return err;
}

/* ---- fanout ----------------------------------------------------------- */

struct fanout_members {
    struct hd_decl_at over, as, arg;
    size_t to;
};

static const struct hd_field fanout_fields[] = {
    {"over", hd_decl_read_raw, offsetof(struct fanout_members, over), true, 0, 0, 0},
    {"as", hd_decl_read_raw, offsetof(struct fanout_members, as), false, 0, 0, 0},
    {"to", hd_decl_read_node, offsetof(struct fanout_members, to), true, 0, 0, 0},
    {"arg", hd_decl_read_raw, offsetof(struct fanout_members, arg), false, 0, 0, 0},
};

int hd_decl_read_fanout(struct hd_decl *decl, const struct hd_decl_at *at,
                        const struct hd_fields *also, struct hd_fanout *out)
{
    const struct hd_fields fields = HD_FIELDS(fanout_fields, also);
    struct hd_names item = {.name = HD_S("item"), .is_place = true, .slot = HD_PLACE_ITEM};
    struct fanout_members members = {0};
    int err = hd_decl_fields(decl, at, &fields, &members);

    if (err == 0 && hd_raw(&members.as)) {
        item.name = hd_json_string(members.as.val);
        err = hd_decl_check_variable(decl, &members.as, item.name);
    }
    if (err == 0)
        err = hd_decl_copy(decl, item.name, &out->as);
    if (err == 0)
        err = hd_decl_expr_in(decl, &members.over, 0, &out->over);
    if (err == 0 && hd_raw(&members.arg))
        err = hd_decl_expr(decl, &members.arg, &item, &out->arg);
    if (err != 0)
        return err;
    out->to = members.to;
    decl->draft->nodes[out->to].is_sent_to = true;
    return 0;
}

/* ---- edges ------------------------------------------------------------ */

static int find_source(struct hd_decl *decl, const struct hd_decl_at *at, bool start_too,
                       size_t *out)
{
    struct hd_slice name = hd_json_string(at->val);

    if (!hd_json_is_string(at->val))
        return hd_decl_fail_type(decl, at, "the name of a node");
    if (start_too && hd_slice_eq(name, HD_S("__start__"))) {
        *out = HD_GRAPH_START;
        return 0;
    }
    if (hd_slice_eq(name, HD_S("__end__")))
        return hd_decl_fail(decl, at, "\"__end__\" has no outgoing edges");
    return hd_decl_find_node(decl, at, name, false, out);
}

static int find_goal(struct hd_decl *decl, const struct hd_decl_at *at, size_t *out)
{
    if (!hd_json_is_string(at->val))
        return hd_decl_fail_type(decl, at, "the name of a node");
    return hd_decl_find_node(decl, at, hd_json_string(at->val), true, out);
}

static int add_index(struct hd_decl *decl, size_t **list, size_t *count, size_t index)
{
    size_t *place = hd_decl_memory_push(decl->hold, list, count, sizeof(*place));

    if (!place)
        return HD_ENOMEM;
    *place = index;
    return 0;
}

static int add_plain(struct hd_decl *decl, const struct hd_decl_at *at, size_t from, size_t to)
{
    struct hd_node *node = &decl->draft->nodes[from];
    bool is_repeated = to == HD_GRAPH_END && node->has_end_edge;
    size_t channel;

    if (to != HD_GRAPH_END) {
        channel = decl->draft->nodes[to].triggers[0];
        for (size_t i = 0; i < node->write_count; i++)
            is_repeated = is_repeated || node->writes[i] == channel;
    }
    if (is_repeated)
        return hd_decl_fail(decl, at, "the edge is a duplicate");
    if (to == HD_GRAPH_END) {
        node->has_end_edge = true;
        return 0;
    }
    return add_index(decl, &node->writes, &node->write_count, channel);
}

/* ---- joins ------------------------------------------------------------ */

static int read_edge_sources(struct hd_decl *decl, const struct hd_decl_at *at,
                             struct hd_indexes *out)
{
    struct hd_json_iter it = hd_json_iter(at->val);
    size_t size = hd_json_size(at->val);
    int err = 0;

    if (size == 0)
        return hd_decl_fail(decl, at, "must not be empty");
    out->list = hd_arena_calloc(&decl->hold->arena, size, sizeof(*out->list));
    if (!out->list)
        return HD_ENOMEM;
    while (err == 0 && hd_json_next(&it)) {
        struct hd_decl_at element = hd_decl_at_index(at, out->count, it.val);

        err = find_source(decl, &element, false, &out->list[out->count]);
        for (size_t i = 0; i < out->count && err == 0; i++) {
            if (out->list[i] == out->list[out->count])
                err = hd_decl_fail(decl, &element, "node \"%.*s\" is a duplicate",
                                   HD_SHOW(hd_json_string(it.val)));
        }
        out->count++;
    }
    return err;
}

/* Makes join:<a>+<b>:<node>, with the names in the order of the declaration, as in LangGraph. */
static int name_join(struct hd_decl *decl, const struct hd_indexes *from, size_t to,
                     struct hd_slice *out)
{
    const struct hd_node *nodes = decl->draft->nodes;
    struct hd_buf buf;
    int err;

    hd_buf_init(&buf, 2 * HD_GRAPH_MAX_TEXT);
    err = hd_buf_printf(&buf, "join:");
    for (size_t i = 0; i < from->count && err == 0; i++) {
        if (i > 0)
            err = hd_buf_append_byte(&buf, '+');
        if (err == 0)
            err = hd_buf_append_slice(&buf, nodes[from->list[i]].name);
    }
    if (err == 0)
        err = hd_buf_append_byte(&buf, ':');
    if (err == 0)
        err = hd_buf_append_slice(&buf, nodes[to].name);
    if (err == 0)
        err = hd_decl_copy(decl, hd_buf_slice(&buf), out);
    hd_buf_fini(&buf);
    return err;
}

static int connect_join(struct hd_decl *decl, const struct hd_indexes *from, size_t to,
                        size_t channel)
{
    struct hd_node *goal = &decl->draft->nodes[to];
    int err = add_index(decl, &goal->triggers, &goal->trigger_count, channel);

    decl->draft->channels[channel].node = to;
    decl->draft->channels[channel].sources = from->list;
    decl->draft->channels[channel].source_count = from->count;
    for (size_t i = 0; i < from->count && err == 0; i++) {
        struct hd_node *source = &decl->draft->nodes[from->list[i]];

        err = add_index(decl, &source->writes, &source->write_count, channel);
    }
    return err;
}

static int add_join(struct hd_decl *decl, const struct hd_decl_at *at,
                    const struct hd_indexes *from, size_t to)
{
    const struct hd_graph *graph = decl->draft->graph;
    enum hd_graph_reducer reducer;
    struct hd_slice name = {0};
    size_t channel = 0;
    int err = name_join(decl, from, to, &name);

    if (err != 0)
        return err;
    for (size_t i = graph->state_count; i < graph->channel_count; i++) {
        if (hd_slice_eq(graph->channels[i].name, name))
            return hd_decl_fail(decl, at, "the edge is a duplicate");
    }
    reducer = decl->draft->nodes[to].is_deferred ? HD_REDUCE_BARRIER_AFTER : HD_REDUCE_BARRIER;
    err = hd_decl_add_channel(decl, name.ptr, reducer, &channel);
    return err == 0 ? connect_join(decl, from, to, channel) : err;
}

static int read_join(struct hd_decl *decl, const struct hd_decl_at *at, const struct edge *edge)
{
    struct hd_indexes from = {0};
    size_t to = 0;
    int err = read_edge_sources(decl, &edge->from, &from);

    if (err == 0)
        err = find_goal(decl, &edge->to, &to);
    if (err != 0 || to != HD_GRAPH_END)
        return err != 0 ? err : add_join(decl, at, &from, to);
    for (size_t i = 0; i < from.count && err == 0; i++)
        err = add_plain(decl, at, from.list[i], HD_GRAPH_END);
    return err;
}

/* ---- all edges -------------------------------------------------------- */

static int read_branch(struct hd_decl *decl, const struct edge *edge, size_t from)
{
    struct hd_node *node = &decl->draft->nodes[from];
    struct hd_branch *branch =
        hd_decl_memory_push(decl->hold, &node->branches, &node->branch_count, sizeof(*branch));
    struct hd_fanout *fanout;
    bool has_default;
    int err;

    if (!branch)
        return HD_ENOMEM;
    decl->node = node;
    if (hd_raw(&edge->routes)) {
        err = hd_decl_read_routes(decl, &edge->routes, branch, &has_default);
    } else {
        fanout = hd_arena_calloc(&decl->hold->arena, 1, sizeof(*fanout));
        branch->fanout = fanout;
        err = fanout ? hd_decl_read_fanout(decl, &edge->fanout, NULL, fanout) : HD_ENOMEM;
    }
    decl->node = NULL;
    return err;
}

static int read_edge(struct hd_decl *decl, const struct hd_decl_at *at, const struct edge *edge)
{
    size_t from = 0, to = 0;
    int err;

    if (hd_json_is_array(edge->from.val))
        return read_join(decl, at, edge);
    err = find_source(decl, &edge->from, true, &from);
    if (err != 0)
        return err;
    if (!hd_raw(&edge->to))
        return read_branch(decl, edge, from);
    err = find_goal(decl, &edge->to, &to);
    return err == 0 ? add_plain(decl, at, from, to) : err;
}

static const struct hd_field edge_fields[] = {
    {"from", hd_decl_read_raw, offsetof(struct edge, from), true, 0, 0, 0},
    {"to", hd_decl_read_raw, offsetof(struct edge, to), false, 0, 0, 0},
    {"routes", hd_decl_read_raw, offsetof(struct edge, routes), false, 0, 0, 0},
    {"fanout", hd_decl_read_raw, offsetof(struct edge, fanout), false, 0, 0, 0},
};

static int read_edge_object(struct hd_decl *decl, const struct hd_decl_at *at, struct edge *edge)
{
    static const struct hd_fields fields = HD_FIELDS(edge_fields, NULL);
    int err = hd_decl_fields(decl, at, &fields, edge);
    int forms = hd_raw(&edge->to) + hd_raw(&edge->routes) + hd_raw(&edge->fanout);

    if (err == 0 && forms != 1)
        return hd_decl_fail(decl, at, "needs one of \"to\", \"routes\" and \"fanout\"");
    if (err == 0 && hd_json_is_array(edge->from.val) && !hd_raw(&edge->to))
        return hd_decl_fail(decl, &edge->from, "a conditional edge has one source node");
    return err;
}

static int read_pair(struct hd_decl *decl, const struct hd_decl_at *at, struct edge *edge)
{
    struct hd_json_iter it = hd_json_iter(at->val);

    if (hd_json_size(at->val) != 2)
        return hd_decl_fail(decl, at, "must have two elements: from and to");
    (void)hd_json_next(&it);
    edge->from = hd_decl_at_index(at, 0, it.val);
    (void)hd_json_next(&it);
    edge->to = hd_decl_at_index(at, 1, it.val);
    return 0;
}

static int read_form(struct hd_decl *decl, const struct hd_decl_at *at, struct edge *edge)
{
    if (hd_json_is_array(at->val))
        return read_pair(decl, at, edge);
    if (hd_json_is_object(at->val))
        return read_edge_object(decl, at, edge);
    return hd_decl_fail_type(decl, at, "a list of two nodes or an object");
}

/* Reads the joins in a second pass: LangGraph attaches them after the plain edges. */
static int read_pass(struct hd_decl *decl, const struct hd_decl_at *at, bool joins)
{
    struct hd_json_iter it = hd_json_iter(at->val);
    size_t index = 0;
    int err = 0;

    while (err == 0 && hd_json_next(&it)) {
        struct hd_decl_at element = hd_decl_at_index(at, index++, it.val);
        struct edge edge = {0};

        err = read_form(decl, &element, &edge);
        if (err == 0 && hd_json_is_array(edge.from.val) == joins)
            err = read_edge(decl, &element, &edge);
    }
    return err;
}

int hd_decl_read_edges(struct hd_decl *decl, const struct hd_decl_at *at)
{
    const struct hd_node *start = &decl->draft->nodes[HD_GRAPH_START];
    int err;

    if (!hd_json_is_array(at->val))
        return hd_decl_fail_type(decl, at, "a list of edges");
    err = read_pass(decl, at, false);
    if (err == 0)
        err = read_pass(decl, at, true);
    if (err == 0 && start->write_count == 0 && start->branch_count == 0)
        err = hd_decl_fail(decl, at, "needs an edge from \"__start__\" to a node");
    return err;
}

size_t hd_decl_count_joins(hd_json_val edges)
{
    struct hd_json_iter it = hd_json_iter(edges);
    size_t count = 0;

    while (hd_json_next(&it)) {
        struct hd_json_iter pair = hd_json_iter(it.val);
        bool has_list =
            hd_json_is_array(it.val) && hd_json_next(&pair) && hd_json_is_array(pair.val);

        count += has_list || hd_json_is_array(hd_json_get(it.val, HD_S("from")));
    }
    return count;
}
