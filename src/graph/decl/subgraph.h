/* The declaration of a node of kind `subgraph`; for node_subgraph.c and decl_check.c. */
#ifndef HD_GRAPH_DECL_SUBGRAPH_H
#define HD_GRAPH_DECL_SUBGRAPH_H

#include "graph/expr/expr.h"

enum hd_memory {
    HD_MEMORY_INHERIT, /* checkpoints within the run */
    HD_MEMORY_OWN,     /* keeps its state between runs */
    HD_MEMORY_NONE
};

/* Without `input` and `update` the graphs share the channels of the same name. */
struct hd_subgraph_spec {
    const struct hd_expr *input;  /* NULL: the channels of the same name */
    const struct hd_expr *update; /* sees the result; NULL: no update, unless `input` is NULL too */
    enum hd_memory memory;
    const struct hd_expr *recursion_limit; /* NULL: the run's */
};

#endif
