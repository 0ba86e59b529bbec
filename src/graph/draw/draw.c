/*
 * Makes a drawing of a compiled graph.
 *
 * LangGraph finds the edges by running the graph without its nodes; here the declaration has them.
 * They have LangGraph's order: sorted by names; edges to `__end__` from nodes without other edges
 * are last. Expanding a subgraph follows its rules as well: the inner `__start__` or `__end__` is
 * removed if it has one edge and its removal leaves a single first or last node. Edges to the
 * replaced node then lead to the first node, edges from it start at the last.
 */
#include "graph/draw/draw.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "graph/draw/draw_internal.h"

/* Limits the nodes that are visited, including those of subgraphs that cannot be expanded. */
#define MAX_WORK (4 * HD_DRAW_MAX_NODES)

/* The graph of one level, under construction. */
struct sketch {
    struct hd_arena *arena;
    size_t *work; /* remaining, for all levels together */
    struct hd_drawing_node *nodes;
    size_t node_count, node_cap;
    struct hd_drawing_edge *edges;
    size_t edge_count, edge_cap;
};

/* ---- growing ---------------------------------------------------------- */

static int grow_list(struct hd_arena *arena, void **list, size_t count, size_t *cap, size_t size)
{
    size_t more = *cap ? 2 * *cap : 16;
    void *copy;

    if (count < *cap)
        return 0;
    copy = hd_arena_calloc(arena, more, size);
    if (!copy)
        return HD_ENOMEM;
    if (count)
        memcpy(copy, *list, count * size);
    *list = copy;
    *cap = more;
    return 0;
}

static int add_node(struct sketch *s, struct hd_slice id, const struct hd_node *node)
{
    void *list = s->nodes;
    int err;

    if (s->node_count >= HD_DRAW_MAX_NODES || *s->work == 0)
        return HD_ELIMIT;
    --*s->work;
    err = grow_list(s->arena, &list, s->node_count, &s->node_cap, sizeof(*s->nodes));
    s->nodes = list;
    if (err == 0)
        s->nodes[s->node_count++] = (struct hd_drawing_node){.id = id, .node = node};
    return err;
}

static int add_edge(struct sketch *s, struct hd_drawing_edge edge)
{
    void *list = s->edges;
    int err;

    if (s->edge_count >= HD_DRAW_MAX_EDGES)
        return HD_ELIMIT;
    err = grow_list(s->arena, &list, s->edge_count, &s->edge_cap, sizeof(*s->edges));
    s->edges = list;
    if (err == 0)
        s->edges[s->edge_count++] = edge;
    return err;
}

/* ---- one level -------------------------------------------------------- */

/* A sketch numbers its nodes as the graph does; __end__ follows them. */
static size_t sketch_index(const struct hd_graph *graph, size_t node)
{
    return node == HD_GRAPH_END ? graph->node_count : node;
}

static int add_conditional(struct sketch *s, const struct hd_graph *graph, size_t from,
                           const struct hd_target *target)
{
    return add_edge(s, (struct hd_drawing_edge){.from = from,
                                                .to = sketch_index(graph, target->node),
                                                .label = target->label,
                                                .is_conditional = true});
}

static int add_branch(struct sketch *s, const struct hd_graph *graph, size_t from,
                      const struct hd_branch *branch)
{
    int err = 0;

    for (size_t i = 0; i < branch->route_count; i++) {
        const struct hd_route *route = &branch->routes[i];

        for (size_t j = 0; j < route->to_count && err == 0; j++)
            err = add_conditional(s, graph, from, &route->to[j]);
    }
    if (branch->fanout && err == 0)
        err = add_conditional(s, graph, from, &(struct hd_target){.node = branch->fanout->to});
    return err;
}

static int add_edges_of(struct sketch *s, const struct hd_graph *graph, const struct hd_node *node)
{
    int err = 0;

    for (size_t i = 0; i < node->write_count && err == 0; i++) {
        size_t to = graph->channels[node->writes[i]].node;

        err = add_edge(s, (struct hd_drawing_edge){.from = node->index, .to = to});
    }
    for (size_t i = 0; i < node->branch_count && err == 0; i++)
        err = add_branch(s, graph, node->index, &node->branches[i]);
    for (size_t i = 0; i < node->exit_count && err == 0; i++)
        err = add_conditional(s, graph, node->index, &node->exits[i]);
    return err;
}

/* The sort key of an edge: the names of its ends, plain edges before conditional ones. */
struct sortable {
    struct hd_slice from, to;
    struct hd_drawing_edge edge;
};

static int compare_edges(const void *a, const void *b)
{
    const struct sortable *x = a, *y = b;
    int order = hd_slice_cmp(x->from, y->from);

    if (order == 0)
        order = hd_slice_cmp(x->to, y->to);
    if (order == 0)
        order = (int)x->edge.is_conditional - (int)y->edge.is_conditional;
    return order != 0 ? order : hd_slice_cmp(x->edge.label, y->edge.label);
}

/* Sorts the edges, and keeps one of several between the same nodes. */
static int sort_edges(struct sketch *s)
{
    struct sortable *list = hd_arena_calloc(s->arena, s->edge_count + 1, sizeof(*list));
    size_t kept = 0;

    if (!list)
        return HD_ENOMEM;
    for (size_t i = 0; i < s->edge_count; i++) {
        const struct hd_drawing_edge *edge = &s->edges[i];

        list[i] = (struct sortable){s->nodes[edge->from].id, s->nodes[edge->to].id, *edge};
    }
    if (s->edge_count > 1)
        qsort(list, s->edge_count, sizeof(*list), compare_edges);
    for (size_t i = 0; i < s->edge_count; i++) {
        if (kept == 0 || s->edges[kept - 1].from != list[i].edge.from ||
            s->edges[kept - 1].to != list[i].edge.to)
            s->edges[kept++] = list[i].edge;
    }
    s->edge_count = kept;
    return 0;
}

/* Adds edges to `__end__` from nodes without other edges, in the order of their names. */
static int add_endings(struct sketch *s, const struct hd_graph *graph)
{
    bool *leads_on = hd_arena_calloc(s->arena, graph->node_count + 1, sizeof(*leads_on));
    size_t sorted = s->edge_count;
    struct sketch endings = {.arena = s->arena, .nodes = s->nodes};
    int err = leads_on ? 0 : HD_ENOMEM;

    for (size_t i = 0; i < sorted && err == 0; i++)
        leads_on[s->edges[i].from] = true;
    for (size_t i = 0; i < graph->node_count && err == 0; i++) {
        if (!leads_on[i])
            err = add_edge(&endings, (struct hd_drawing_edge){.from = i, .to = graph->node_count});
    }
    if (err == 0)
        err = sort_edges(&endings);
    for (size_t i = 0; i < endings.edge_count && err == 0; i++)
        err = add_edge(s, endings.edges[i]);
    return err;
}

/* Adds edges to `__end__` from nodes that also have other edges. */
static int add_end_edges(struct sketch *s, const struct hd_graph *graph)
{
    bool *leads_on = hd_arena_calloc(s->arena, graph->node_count + 1, sizeof(*leads_on));
    size_t count = s->edge_count;
    int err = leads_on ? 0 : HD_ENOMEM;

    for (size_t i = 0; i < count && err == 0; i++)
        leads_on[s->edges[i].from] = true;
    for (size_t i = 0; i < graph->node_count && err == 0; i++) {
        if (graph->nodes[i].has_end_edge && leads_on[i])
            err = add_edge(s, (struct hd_drawing_edge){.from = i, .to = graph->node_count});
    }
    return err;
}

static bool has_edge_to(const struct sketch *s, size_t node)
{
    for (size_t i = 0; i < s->edge_count; i++) {
        if (s->edges[i].to == node)
            return true;
    }
    return false;
}

static int sketch_level(struct sketch *s, const struct hd_graph *graph)
{
    int err = 0;

    for (size_t i = 0; i < graph->node_count && err == 0; i++)
        err = add_node(s, graph->nodes[i].name, &graph->nodes[i]);
    if (err == 0)
        err = add_node(s, HD_S("__end__"), NULL);
    for (size_t i = 0; i < graph->node_count && err == 0; i++)
        err = add_edges_of(s, graph, &graph->nodes[i]);
    if (err == 0)
        err = add_end_edges(s, graph);
    if (err == 0)
        err = sort_edges(s);
    if (err == 0)
        err = add_endings(s, graph);
    if (err == 0 && !has_edge_to(s, graph->node_count))
        s->node_count--;
    return err;
}

/* ---- first and last --------------------------------------------------- */

/*
 * The only node without an edge to it (from it, if `is_last`), ignoring node `without` and its
 * edges; HD_GRAPH_END: there is not exactly one.
 */
static int find_only(const struct sketch *s, bool is_last, size_t without, size_t *out)
{
    size_t found = HD_GRAPH_END, count = 0;
    bool *is_taken = hd_arena_calloc(s->arena, s->node_count + 1, sizeof(*is_taken));

    if (!is_taken)
        return HD_ENOMEM;
    for (size_t i = 0; i < s->edge_count; i++) {
        const struct hd_drawing_edge *edge = &s->edges[i];

        if ((is_last ? edge->to : edge->from) != without)
            is_taken[is_last ? edge->from : edge->to] = true;
    }
    for (size_t i = 0; i < s->node_count; i++) {
        if (i != without && !is_taken[i]) {
            found = i;
            count++;
        }
    }
    *out = count == 1 ? found : HD_GRAPH_END;
    return 0;
}

static int find_ends(const struct sketch *s, size_t *first, size_t *last)
{
    int err = find_only(s, false, HD_GRAPH_END, first);

    return err == 0 ? find_only(s, true, HD_GRAPH_END, last) : err;
}

static size_t count_edges(const struct sketch *s, size_t node)
{
    size_t count = 0;

    for (size_t i = 0; i < s->edge_count; i++)
        count += s->edges[i].from == node || s->edges[i].to == node;
    return count;
}

static void remove_node(struct sketch *s, size_t node)
{
    size_t kept = 0;

    for (size_t i = 0; i < s->edge_count; i++) {
        struct hd_drawing_edge edge = s->edges[i];

        if (edge.from == node || edge.to == node)
            continue;
        edge.from -= edge.from > node;
        edge.to -= edge.to > node;
        s->edges[kept++] = edge;
    }
    s->edge_count = kept;
    memmove(&s->nodes[node], &s->nodes[node + 1], (s->node_count - node - 1) * sizeof(*s->nodes));
    s->node_count--;
}

static int trim_outer_node(struct sketch *s, bool is_last)
{
    size_t node = 0, next = HD_GRAPH_END;
    int err = find_only(s, is_last, HD_GRAPH_END, &node);

    if (err == 0 && node != HD_GRAPH_END)
        err = find_only(s, is_last, node, &next);
    if (err == 0 && next != HD_GRAPH_END && count_edges(s, node) == 1)
        remove_node(s, node);
    return err;
}

/* ---- expanding subgraphs ---------------------------------------------- */

static int prefixed(struct hd_arena *arena, struct hd_slice prefix, struct hd_slice id,
                    struct hd_slice *out)
{
    char *text = hd_arena_alloc(arena, prefix.len + 1 + id.len);

    if (!text)
        return HD_ENOMEM;
    memcpy(text, prefix.ptr, prefix.len);
    text[prefix.len] = ':';
    memcpy(text + prefix.len + 1, id.ptr, id.len);
    *out = hd_slice(text, prefix.len + 1 + id.len);
    return 0;
}

/* Replaces the node by `inner`, which has one first and one last node. */
static int replace(struct sketch *s, size_t node, const struct sketch *inner)
{
    size_t first = 0, last = 0;
    size_t base = s->node_count, outer_edges = s->edge_count;
    struct hd_slice prefix = s->nodes[node].id, id = {0};
    int err = find_ends(inner, &first, &last);

    for (size_t i = 0; i < inner->node_count && err == 0; i++) {
        err = prefixed(s->arena, prefix, inner->nodes[i].id, &id);
        if (err == 0)
            err = add_node(s, id, inner->nodes[i].node);
    }
    for (size_t i = 0; i < inner->edge_count && err == 0; i++) {
        struct hd_drawing_edge edge = inner->edges[i];

        edge.from += base;
        edge.to += base;
        err = add_edge(s, edge);
    }
    for (size_t i = 0; i < outer_edges && err == 0; i++) {
        struct hd_drawing_edge *edge = &s->edges[i];

        edge->from = edge->from == node ? base + last : edge->from;
        edge->to = edge->to == node ? base + first : edge->to;
    }
    if (err == 0)
        remove_node(s, node);
    return err;
}

static int sketch_graph(struct sketch *s, const struct hd_graph *graph, int levels);

static size_t find_node(const struct sketch *s, struct hd_slice id)
{
    size_t i = 0;

    while (!hd_slice_eq(s->nodes[i].id, id))
        i++;
    return i;
}

static int open_node(struct sketch *s, const struct hd_node *node, int levels)
{
    struct sketch inner = {.arena = s->arena, .work = s->work};
    size_t first = HD_GRAPH_END, last = HD_GRAPH_END;
    int err = sketch_graph(&inner, node->graph, levels - 1);

    if (err == 0)
        err = find_ends(&inner, &first, &last);
    if (err != 0 || inner.node_count < 2 || first == HD_GRAPH_END || last == HD_GRAPH_END)
        return err;
    err = trim_outer_node(&inner, false);
    if (err == 0)
        err = trim_outer_node(&inner, true);
    return err == 0 ? replace(s, find_node(s, node->name), &inner) : err;
}

static int sketch_graph(struct sketch *s, const struct hd_graph *graph, int levels)
{
    int err = sketch_level(s, graph);

    for (size_t i = 1; i < graph->node_count && levels > 0 && err == 0; i++) {
        if (graph->nodes[i].graph)
            err = open_node(s, &graph->nodes[i], levels);
    }
    return err;
}

/* ---- clusters --------------------------------------------------------- */

/* Finds the cluster with this path, or adds it and the clusters around it. */
static int find_cluster(struct hd_drawing *drawing, struct hd_map *map, struct hd_slice path,
                        size_t *out)
{
    const char *colon = memrchr(path.ptr, ':', path.len);
    size_t parent_len = colon ? (size_t)(colon - path.ptr) : 0;
    struct hd_drawing_cluster *cluster = hd_map_get(map, path);
    size_t parent = 0;
    int err = 0;

    if (cluster) {
        *out = (size_t)(cluster - drawing->clusters);
        return 0;
    }
    if (colon)
        err = find_cluster(drawing, map, hd_slice(path.ptr, parent_len), &parent);
    if (err != 0)
        return err;
    *out = drawing->cluster_count++;
    cluster = &drawing->clusters[*out];
    cluster->path = path;
    cluster->parent = parent;
    cluster->name = colon ? hd_slice(colon + 1, path.len - parent_len - 1) : path;
    return hd_map_put(map, path, cluster);
}

int hd_draw_find_clusters(struct hd_drawing *drawing)
{
    struct hd_map map;
    int err = 0;

    /* Each node has at most one enclosing cluster per level. */
    drawing->clusters = hd_arena_calloc(
        &drawing->arena, drawing->node_count * HD_GRAPH_MAX_LEVELS + 1, sizeof(*drawing->clusters));
    drawing->cluster_count = 1;
    if (!drawing->clusters)
        return HD_ENOMEM;
    hd_map_init(&map, drawing->node_count * HD_GRAPH_MAX_LEVELS + 1);
    for (size_t i = 0; i < drawing->node_count && err == 0; i++) {
        struct hd_drawing_node *node = &drawing->nodes[i];
        const char *colon = memrchr(node->id.ptr, ':', node->id.len);

        node->name = node->id;
        if (!colon)
            continue;
        node->name = hd_slice(colon + 1, (size_t)(node->id.ptr + node->id.len - colon - 1));
        err = find_cluster(drawing, &map, hd_slice(node->id.ptr, (size_t)(colon - node->id.ptr)),
                           &node->cluster);
    }
    hd_map_fini(&map);
    return err;
}

/* ---- public ----------------------------------------------------------- */

int hd_drawing_init(struct hd_drawing *drawing, const struct hd_graph *graph, int levels)
{
    size_t work = MAX_WORK;
    struct sketch s = {.arena = &drawing->arena, .work = &work};
    int err;

    *drawing = (struct hd_drawing){.graph = graph};
    hd_arena_init(&drawing->arena, HD_DRAW_MAX_MEMORY);
    err = sketch_graph(&s, graph, levels);
    drawing->nodes = s.nodes;
    drawing->node_count = s.node_count;
    drawing->edges = s.edges;
    drawing->edge_count = s.edge_count;
    if (err == 0)
        err = hd_draw_find_clusters(drawing);
    if (err != 0)
        hd_drawing_fini(drawing);
    return err;
}

void hd_drawing_fini(struct hd_drawing *drawing)
{
    hd_arena_fini(&drawing->arena);
    *drawing = (struct hd_drawing){0};
}

static size_t find_end(const struct hd_drawing *drawing, bool is_last)
{
    size_t found = HD_GRAPH_END, count = 0;

    for (size_t i = 0; i < drawing->node_count; i++) {
        bool is_taken = false;

        for (size_t j = 0; j < drawing->edge_count && !is_taken; j++)
            is_taken = (is_last ? drawing->edges[j].from : drawing->edges[j].to) == i;
        if (!is_taken) {
            found = i;
            count++;
        }
    }
    return count == 1 ? found : HD_GRAPH_END;
}

size_t hd_drawing_first(const struct hd_drawing *drawing)
{
    return find_end(drawing, false);
}

size_t hd_drawing_last(const struct hd_drawing *drawing)
{
    return find_end(drawing, true);
}
