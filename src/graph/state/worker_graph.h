/*
 * Graphs whose code is elsewhere: in a worker that runs LangGraph for Python or
 * JavaScript (docs/runtime.md). What the worker tells of one, its structure, makes
 * a struct hd_graph with which states are read as those of any other: values, next,
 * tasks, questions, subgraphs. It can neither be run nor updated here.
 *
 * Without a structure the graph is *open*: each checkpoint shows what it has. The
 * channels are those that have a version, the nodes those that the names of its channels
 * tell of; subgraphs are not known.
 */
#ifndef HD_GRAPH_STATE_WORKER_GRAPH_H
#define HD_GRAPH_STATE_WORKER_GRAPH_H

#include "base/compiler.h"
#include "base/error.h"
#include "base/slice.h"
#include "graph/decl/graph.h"

#define HD_FOREIGN_MAX_TEXT ((size_t)16 << 20) /* bytes of a structure */

/*
 * `structure` is a worker's JSON; empty or null: open. HD_EINVAL or HD_ELIMIT with the
 * cause in `fault`, which may be NULL, or HD_ENOMEM. hd_graph_destroy() frees it.
 */
HD_MUST_CHECK int hd_graph_foreign(struct hd_slice structure, enum hd_graph_ids ids,
                                   struct hd_graph **out, struct hd_fault *fault);

#endif
