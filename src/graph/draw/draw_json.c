/* Writes a drawing as JSON: the response of GET /assistants/{id}/graph. */
#include "graph/draw/draw.h"

#include "base/json.h"
#include "graph/draw/draw_internal.h"

static void put_data(struct hd_jw *jw, const struct hd_drawing_node *node)
{
    hd_jw_object(jw);
    hd_jw_put_array(jw, "id");
    hd_jw_string(jw, HD_S("heddle"));
    hd_jw_string(jw, HD_S("nodes"));
    hd_jw_string(jw, hd_slice_cstr(node->node->kind->name));
    hd_jw_array_end(jw);
    hd_jw_put_string(jw, "name", node->id);
    hd_jw_object_end(jw);
}

static void put_metadata(struct hd_jw *jw, const struct hd_node *node)
{
    const char *stop = hd_draw_breakpoint(node);

    if (hd_val_count(node->metadata) == 0 && !node->is_deferred && !stop)
        return;
    hd_jw_put_object(jw, "metadata");
    for (size_t i = 0; i < hd_val_count(node->metadata); i++) {
        struct hd_val *key = NULL;
        struct hd_val *val = hd_val_member(node->metadata, i, &key);

        hd_jw_key(jw, hd_val_get_string(key));
        hd_val_put_rendered(jw, val);
    }
    if (node->is_deferred)
        hd_jw_put_bool(jw, "defer", true);
    if (stop)
        hd_jw_put_string(jw, "__interrupt", hd_slice_cstr(stop));
    hd_jw_object_end(jw);
}

static void put_node(struct hd_jw *jw, const struct hd_drawing_node *node)
{
    bool is_schema = !node->node || !node->node->kind;

    hd_jw_object(jw);
    hd_jw_put_string(jw, "id", node->id);
    hd_jw_put_string(jw, "type", is_schema ? HD_S("schema") : HD_S("runnable"));
    hd_jw_key(jw, HD_S("data"));
    if (is_schema)
        hd_jw_string(jw, node->id);
    else
        put_data(jw, node);
    if (!is_schema)
        put_metadata(jw, node->node);
    hd_jw_object_end(jw);
}

static void put_edge(struct hd_jw *jw, const struct hd_drawing *drawing,
                     const struct hd_drawing_edge *edge)
{
    hd_jw_object(jw);
    hd_jw_put_string(jw, "source", drawing->nodes[edge->from].id);
    hd_jw_put_string(jw, "target", drawing->nodes[edge->to].id);
    if (edge->label.len > 0)
        hd_jw_put_string(jw, "data", edge->label);
    if (edge->is_conditional)
        hd_jw_put_bool(jw, "conditional", true);
    hd_jw_object_end(jw);
}

int hd_draw_json(const struct hd_drawing *drawing, struct hd_buf *out)
{
    struct hd_jw jw;

    hd_jw_init(&jw, out);
    hd_jw_object(&jw);
    hd_jw_put_array(&jw, "nodes");
    for (size_t i = 0; i < drawing->node_count; i++)
        put_node(&jw, &drawing->nodes[i]);
    hd_jw_array_end(&jw);
    hd_jw_put_array(&jw, "edges");
    for (size_t i = 0; i < drawing->edge_count; i++)
        put_edge(&jw, drawing, &drawing->edges[i]);
    hd_jw_array_end(&jw);
    hd_jw_object_end(&jw);
    return hd_jw_finish(&jw);
}
