/*
 * A graph as people and clients see it: nodes and edges in the order and with
 * the ids of LangGraph's get_graph(), as JSON, as Mermaid and as a picture.
 *
 * A drawing is made of a graph, which it borrows, with its subgraphs as single
 * nodes or opened up to a depth; the nodes of an opened one are called
 * `<node>:<inner node>` and make a cluster.
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

#define HD_DRAW_MAX_NODES 5000 /* more, of subgraphs opened up, are HD_ELIMIT */
#define HD_DRAW_MAX_EDGES 50000
#define HD_DRAW_ALL_LEVELS HD_GRAPH_MAX_LEVELS

struct hd_drawing_node {
    struct hd_slice id;
    struct hd_slice name;       /* the last part of it */
    const struct hd_node *node; /* NULL: __end__; that of __start__ has no kind */
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

/* `levels` of subgraphs are opened: 0 none, HD_DRAW_ALL_LEVELS all. */
HD_MUST_CHECK int hd_drawing_init(struct hd_drawing *drawing, const struct hd_graph *graph,
                                  int levels);
/*
 * From what hd_draw_json() writes, or a worker in its place; nodes are of a kind "code" then, and
 * the graph has nothing but a name. HD_ECORRUPT: it is no drawing; HD_ELIMIT.
 */
HD_MUST_CHECK int hd_drawing_read(struct hd_drawing *drawing, struct hd_slice name,
                                  hd_json_val json);
void hd_drawing_fini(struct hd_drawing *drawing);

/* HD_GRAPH_END when there is not exactly one node without an edge to it, from it. */
size_t hd_drawing_first(const struct hd_drawing *drawing);
size_t hd_drawing_last(const struct hd_drawing *drawing);

/* {"nodes":[{"id","type","data","metadata"}],"edges":[{"source","target","data","conditional"}]} */
HD_MUST_CHECK int hd_draw_json(const struct hd_drawing *drawing, struct hd_buf *out);
/* The text that LangGraph's draw_mermaid() makes. */
HD_MUST_CHECK int hd_draw_mermaid(const struct hd_drawing *drawing, struct hd_buf *out);
/* A picture that needs nothing else; light or dark as the viewer likes it. */
HD_MUST_CHECK int hd_draw_svg(const struct hd_drawing *drawing, struct hd_buf *out);
/*
 * The same to be put into a page: without styles of its own, which a content security policy may
 * forbid. Colours are attributes, which any rule of the page's goes before.
 */
HD_MUST_CHECK int hd_draw_svg_part(const struct hd_drawing *drawing, struct hd_buf *out);

#endif
