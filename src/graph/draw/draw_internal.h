/* Declarations shared by the files that draw. */
#ifndef HD_GRAPH_DRAW_DRAW_INTERNAL_H
#define HD_GRAPH_DRAW_DRAW_INTERNAL_H

#include "graph/draw/draw.h"

#define HD_DRAW_MAX_MEMORY ((size_t)256 << 20) /* of a drawing */

/* "before", "after", "before,after", or NULL if the node has no breakpoint. */
static inline const char *hd_draw_breakpoint(const struct hd_node *node)
{
    if (node->stops_before && node->stops_after)
        return "before,after";
    if (node->stops_before)
        return "before";
    return node->stops_after ? "after" : NULL;
}

/*
 * Makes clusters from the ids of the nodes, `<outer>:<inner>`, with at most HD_GRAPH_MAX_LEVELS
 * colons.
 */
HD_MUST_CHECK int hd_draw_find_clusters(struct hd_drawing *drawing);

/* ---- layout: draw_layout.c -------------------------------------------- */

/* Centre and size, in pixels. */
struct hd_box {
    double x, y, w, h;
};

struct hd_point {
    double x, y;
};

struct hd_route_line {
    struct hd_point *points; /* from the source's border to the target's */
    size_t count;
    bool has_label;
    struct hd_point label; /* its centre */
};

/*
 * The caller sets the sizes (0 by 0 for edges without a label); hd_layout_make() sets the
 * positions.
 */
struct hd_layout {
    struct hd_box *nodes;
    struct hd_box *labels;   /* of edges */
    struct hd_box *clusters; /* clusters[0] is the whole picture, from 0, 0 */
    struct hd_route_line *edges;
};

HD_MUST_CHECK int hd_layout_make(struct hd_drawing *drawing, struct hd_arena *arena,
                                 struct hd_layout *layout);

#endif
