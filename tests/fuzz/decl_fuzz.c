/* libFuzzer: any bytes as a declaration. It is refused with a reason, or gives a consistent graph
 * that can be drawn. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "graph/decl/graph.h"
#include "graph/draw/draw.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool is_so, const char *what)
{
    if (is_so)
        return;
    fprintf(stderr, "%s\n", what);
    abort();
}

static void check_node(const struct hd_graph *graph, const struct hd_node *node)
{
    require(node->trigger_count > 0, "a node that nothing starts");
    for (size_t i = 0; i < node->trigger_count; i++)
        require(node->triggers[i] < graph->channel_count, "a trigger that is no channel");
    for (size_t i = 0; i < node->write_count; i++) {
        require(node->writes[i] >= graph->state_count, "an edge that writes to the state");
        require(graph->channels[node->writes[i]].node < graph->node_count, "an edge to nowhere");
    }
    for (size_t i = 0; i < node->exit_count; i++)
        require(node->exits[i].node < graph->node_count || node->exits[i].node == HD_GRAPH_END,
                "an exit to nowhere");
    require((node->kind != NULL) == (node->index != HD_GRAPH_START), "a node without a kind");
}

static void check_graph(const struct hd_graph *graph)
{
    require(graph->node_count >= 2, "a graph without nodes");
    require(graph->state_count >= 1, "a graph without channels");
    require(graph->recursion_limit >= 1, "a graph without a limit");
    for (size_t i = 0; i < graph->node_count; i++) {
        require(graph->nodes[i].index == i, "a node with the wrong number");
        check_node(graph, &graph->nodes[i]);
    }
}

/* The written drawing can be read and has the same size. */
static void draw_again(const struct hd_drawing *drawing, hd_json_val json, struct hd_buf *out)
{
    struct hd_drawing again;

    require(hd_drawing_read(&again, HD_S("again"), json) == 0, "JSON that cannot be read");
    require(again.node_count == drawing->node_count && again.edge_count == drawing->edge_count &&
                again.cluster_count == drawing->cluster_count,
            "another drawing");
    require(hd_draw_svg_part(&again, out) == 0, "no SVG of what was read");
    hd_drawing_fini(&again);
}

static void draw(const struct hd_graph *graph, int levels)
{
    struct hd_drawing drawing;
    struct hd_json json;
    struct hd_buf out;
    int err = hd_drawing_init(&drawing, graph, levels);

    require(err == 0 || err == HD_ELIMIT, "it cannot be drawn");
    if (err != 0)
        return;
    hd_buf_init(&out, (size_t)256 << 20);
    require(hd_draw_json(&drawing, &out) == 0, "no JSON");
    require(hd_json_parse(&json, hd_buf_slice(&out), NULL) == 0, "JSON that is none");
    draw_again(&drawing, hd_json_root(&json), &out);
    hd_json_fini(&json);
    require(hd_draw_mermaid(&drawing, &out) == 0, "no Mermaid");
    require(hd_draw_svg(&drawing, &out) == 0, "no SVG");
    hd_buf_fini(&out);
    hd_drawing_fini(&drawing);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hd_graph_error error;
    struct hd_graph *graph;
    int err = hd_graph_read(hd_slice(data, size), &graph, &error);

    require(err == 0 || err == HD_EINVAL || err == HD_ELIMIT, "an odd error");
    require(err == 0 || (error.code == err && error.text[0]), "refused without a reason");
    if (err != 0)
        return 0;
    check_graph(graph);
    draw(graph, 0);
    draw(graph, HD_DRAW_ALL_LEVELS);
    hd_graph_destroy(graph);
    return 0;
}
