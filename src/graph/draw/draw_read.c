/* Reads a drawing from JSON, for graphs whose code is in a worker. Pure. */
#include <string.h>

#include "base/map.h"
#include "graph/draw/draw.h"
#include "graph/draw/draw_internal.h"

/* Placeholders: the declaration of a node is unknown, because its code is elsewhere. */
static const struct hd_node_kind code = {.name = "code"};
static const struct hd_node begin = {.kind = NULL};
static const struct hd_node step = {.kind = &code};

static struct hd_slice text_member(hd_json_val object, const char *name)
{
    return hd_json_string(hd_json_get(object, hd_slice_cstr(name)));
}

/* An id may be a number: LangChain numbers the steps of a chain. */
static struct hd_slice id_of(hd_json_val object, const char *name)
{
    hd_json_val val = hd_json_get(object, hd_slice_cstr(name));

    return hd_json_is_number(val) ? hd_json_number_text(val) : hd_json_string(val);
}

static bool is_called(struct hd_slice id, struct hd_slice name)
{
    return id.len >= name.len &&
           hd_slice_eq(hd_slice(id.ptr + id.len - name.len, name.len), name) &&
           (id.len == name.len || id.ptr[id.len - name.len - 1] == ':');
}

static size_t count_levels(struct hd_slice id)
{
    size_t count = 0;

    for (size_t i = 0; i < id.len; i++)
        count += id.ptr[i] == ':';
    return count;
}

static int read_drawing_node(struct hd_drawing *drawing, struct hd_map *by_id, hd_json_val val)
{
    struct hd_drawing_node *node = &drawing->nodes[drawing->node_count++];
    struct hd_slice id = id_of(val, "id");
    int err;

    if (id.len == 0 || count_levels(id) > HD_GRAPH_MAX_LEVELS)
        return HD_ECORRUPT;
    err = hd_arena_copy(&drawing->arena, id, &node->id);
    if (!err)
        err = hd_map_put(by_id, id, node);
    if (!is_called(id, HD_S("__end__")))
        node->node = is_called(id, HD_S("__start__")) ? &begin : &step;
    return err;
}

static int read_edge(struct hd_drawing *drawing, const struct hd_map *by_id, hd_json_val val)
{
    const struct hd_drawing_node *from = hd_map_get(by_id, id_of(val, "source"));
    const struct hd_drawing_node *to = hd_map_get(by_id, id_of(val, "target"));
    struct hd_drawing_edge *edge = &drawing->edges[drawing->edge_count++];

    if (!from || !to)
        return HD_ECORRUPT;
    edge->from = (size_t)(from - drawing->nodes);
    edge->to = (size_t)(to - drawing->nodes);
    edge->is_conditional = hd_json_is_true(hd_json_get(val, HD_S("conditional")));
    return hd_arena_copy(&drawing->arena, text_member(val, "data"), &edge->label);
}

static int read_drawing(struct hd_drawing *drawing, hd_json_val json)
{
    hd_json_val nodes = hd_json_get(json, HD_S("nodes")), edges = hd_json_get(json, HD_S("edges"));
    struct hd_json_iter it = hd_json_iter(nodes);
    struct hd_map by_id;
    int err = 0;

    drawing->nodes =
        hd_arena_calloc(&drawing->arena, hd_json_size(nodes) + 1, sizeof(*drawing->nodes));
    drawing->edges =
        hd_arena_calloc(&drawing->arena, hd_json_size(edges) + 1, sizeof(*drawing->edges));
    if (!drawing->nodes || !drawing->edges)
        return HD_ENOMEM;
    hd_map_init(&by_id, HD_DRAW_MAX_NODES);
    while (!err && hd_json_next(&it))
        err = read_drawing_node(drawing, &by_id, it.val);
    it = hd_json_iter(edges);
    while (!err && hd_json_next(&it))
        err = read_edge(drawing, &by_id, it.val);
    hd_map_fini(&by_id);
    return err;
}

static int check_size(hd_json_val json)
{
    hd_json_val nodes = hd_json_get(json, HD_S("nodes")), edges = hd_json_get(json, HD_S("edges"));

    if (!hd_json_is_array(nodes) || !hd_json_is_array(edges) || hd_json_size(nodes) == 0)
        return HD_ECORRUPT;
    if (hd_json_size(nodes) > HD_DRAW_MAX_NODES || hd_json_size(edges) > HD_DRAW_MAX_EDGES)
        return HD_ELIMIT;
    return 0;
}

int hd_drawing_read(struct hd_drawing *drawing, struct hd_slice name, hd_json_val json)
{
    struct hd_graph *graph;
    int err = check_size(json);

    *drawing = (struct hd_drawing){.graph = NULL};
    if (err)
        return err;
    hd_arena_init(&drawing->arena, HD_DRAW_MAX_MEMORY);
    graph = hd_arena_calloc(&drawing->arena, 1, sizeof(*graph));
    err = graph ? hd_arena_copy(&drawing->arena, name, &graph->name) : HD_ENOMEM;
    drawing->graph = graph;
    if (!err)
        err = read_drawing(drawing, json);
    if (!err)
        err = hd_draw_find_clusters(drawing);
    if (err)
        hd_drawing_fini(drawing);
    return err;
}
