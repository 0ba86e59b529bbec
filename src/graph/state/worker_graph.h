/*
 * Graphs whose code is in a worker, which runs LangGraph for Python or JavaScript
 * (docs/runtime.md). The structure that the worker reports makes a struct hd_graph, with which the
 * server reads states as for any other graph: values, next, tasks, interrupts, subgraphs. The
 * engine can neither run nor update it.
 *
 * Without a structure the graph is *open*: its shape is derived from each checkpoint. The channels
 * are those that have a version, the nodes those that channel names mention; subgraphs are unknown.
 */
#ifndef HD_GRAPH_STATE_WORKER_GRAPH_H
#define HD_GRAPH_STATE_WORKER_GRAPH_H

#include "base/compiler.h"
#include "base/error.h"
#include "base/slice.h"
#include "graph/decl/graph.h"

#define HD_WORKER_GRAPH_MAX_TEXT ((size_t)16 << 20) /* bytes of a structure */

/*
 * `structure` is a worker's JSON; empty or null: open. HD_EINVAL or HD_ELIMIT with the
 * reason in `fault`, which may be NULL, or HD_ENOMEM. Free with hd_graph_destroy().
 */
HD_MUST_CHECK int hd_worker_graph_create(struct hd_slice structure, enum hd_graph_ids ids,
                                         struct hd_graph **out, struct heddle_error *fault);

#endif
