/*
 * Drawings of graphs for people and clients: nodes and edges in the order and with the ids of
 * LangGraph's get_graph(), as JSON, as Mermaid and as SVG.
 *
 * A drawing borrows its graph. Subgraphs are single nodes, or are expanded up to a depth; the nodes
 * of an expanded one have ids `<node>:<inner node>` and form a cluster.
 */
#ifndef HD_GRAPH_DRAW_DRAW_H
#define HD_GRAPH_DRAW_DRAW_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/compiler.h"
#include "base/json.h"
#include "graph/decl/graph.h"

#define HD_DRAW_MAX_NODES 5000 /* more, after expanding subgraphs, are HD_ELIMIT */
#define HD_DRAW_MAX_EDGES 50000
#define HD_DRAW_ALL_LEVELS HD_GRAPH_MAX_LEVELS

struct hd_drawing_node {
    struct hd_slice id;
    struct hd_slice name;       /* the last part of `id` */
    const struct hd_node *node; /* NULL: __end__; __start__ has a node without a kind */
    size_t cluster;             /* 0: none */
};

struct hd_drawing_edge {
    size_t from, to;
    struct hd_slice label; /* empty: none */
    bool is_conditional;
};

struct hd_drawing_cluster {
    struct hd_slice path;
    struct hd_slice name;
    size_t parent;
};

struct hd_drawing {
    struct hd_arena arena;
    const struct hd_graph *graph;
    struct hd_drawing_node *nodes;
    size_t node_count;
    struct hd_drawing_edge *edges;
    size_t edge_count;
    struct hd_drawing_cluster *clusters; /* clusters[0] is the drawing itself */
    size_t cluster_count;
};

/* Expands `levels` of subgraphs: 0 none, HD_DRAW_ALL_LEVELS all. */
HD_MUST_CHECK int hd_drawing_init(struct hd_drawing *drawing, const struct hd_graph *graph,
                                  int levels);
/*
 * Reads the JSON of hd_draw_json() or of a worker. Nodes have the kind "code", and the graph has
 * only a name. HD_ECORRUPT: not a drawing; HD_ELIMIT: too large.
 */
HD_MUST_CHECK int hd_drawing_read(struct hd_drawing *drawing, struct hd_slice name,
                                  hd_json_val json);
void hd_drawing_fini(struct hd_drawing *drawing);

/* The only node without an edge to it, or from it; HD_GRAPH_END: there is not exactly one. */
size_t hd_drawing_first(const struct hd_drawing *drawing);
size_t hd_drawing_last(const struct hd_drawing *drawing);

/* {"nodes":[{"id","type","data","metadata"}],"edges":[{"source","target","data","conditional"}]} */
HD_MUST_CHECK int hd_draw_json(const struct hd_drawing *drawing, struct hd_buf *out);
/* Writes the same text as LangGraph's draw_mermaid(). */
HD_MUST_CHECK int hd_draw_mermaid(const struct hd_drawing *drawing, struct hd_buf *out);
/* Writes a complete SVG file, light or dark by the viewer's preference. */
HD_MUST_CHECK int hd_draw_svg(const struct hd_drawing *drawing, struct hd_buf *out);
/*
 * Writes SVG for embedding in a page. It has no <style>, which a content security policy may
 * forbid: colours are attributes, which CSS rules of the page override.
 */
HD_MUST_CHECK int hd_draw_svg_part(const struct hd_drawing *drawing, struct hd_buf *out);

#endif
