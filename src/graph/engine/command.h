/* Writes that result from commands, fan-outs and the end of a node. */
#ifndef HD_GRAPH_ENGINE_COMMAND_H
#define HD_GRAPH_ENGINE_COMMAND_H

#include "base/compiler.h"
#include "graph/decl/graph.h"
#include "graph/expr/expr.h"

struct hd_failure;
struct hd_checkpoint_state;
struct hd_val;
struct hd_writes;

HD_MUST_CHECK int hd_command_writes(const struct hd_graph *graph, const struct hd_val *command,
                                    struct hd_writes *out, struct hd_failure *failure);
/* The sends of a fan-out. */
HD_MUST_CHECK int hd_fanout_writes(const struct hd_graph *graph, const struct hd_fanout *fanout,
                                   const struct hd_scope *scope, struct hd_writes *out);
/*
 * The writes of a node that ends: its update (an object, or NULL), its goto (a list, or NULL), its
 * edges, its branches.
 */
HD_MUST_CHECK int hd_command_node_writes(const struct hd_graph *graph, const struct hd_node *node,
                                         const struct hd_checkpoint_state *live,
                                         const struct hd_scope *scope, const struct hd_val *update,
                                         const struct hd_val *go, struct hd_writes *out,
                                         struct hd_failure *failure);

#endif
