/* The kinds of nodes. To add one: write its file, and add a line here and in decl_nodes.c. */
#ifndef HD_GRAPH_DECL_NODES_H
#define HD_GRAPH_DECL_NODES_H

#include "graph/decl/graph.h"

extern const struct hd_node_kind hd_node_branch;
extern const struct hd_node_kind hd_node_fail;
extern const struct hd_node_kind hd_node_fanout;
extern const struct hd_node_kind hd_node_http;
extern const struct hd_node_kind hd_node_interrupt;
extern const struct hd_node_kind hd_node_script;
extern const struct hd_node_kind hd_node_set;
extern const struct hd_node_kind hd_node_sleep;
extern const struct hd_node_kind hd_node_subgraph;

#endif
