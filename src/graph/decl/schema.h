/*
 * JSON Schemas of what a graph is given, what it gives and what it keeps: what
 * GET /assistants/{id}/schemas and …/subgraphs answer. A channel has the type that
 * it was declared with; without one it may be anything.
 */
#ifndef HD_GRAPH_DECL_SCHEMA_H
#define HD_GRAPH_DECL_SCHEMA_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/compiler.h"
#include "base/json.h"
#include "base/slice.h"
#include "graph/decl/graph.h"

/*
 * An object: `graph_id` when one is given, and `input_schema`, `output_schema`,
 * `state_schema`, `config_schema`, `context_schema`; the last two are null where the
 * declaration says nothing. Errors are in the writer.
 */
void hd_graph_put_schemas(struct hd_jw *jw, const struct hd_graph *graph, struct hd_slice graph_id);

/*
 * Appends an object: the schemas of subgraphs by namespace, which is the name of the
 * node that runs it and, in a subgraph, `outer|inner`. Those of the graph's own nodes,
 * or the one that `ns` names (ids of tasks in it are ignored); with `recurse` also
 * those inside. HD_ENOTFOUND: there is no such namespace; HD_ELIMIT: it does not fit
 * the buffer; HD_ENOMEM. Appends nothing then.
 */
HD_MUST_CHECK int hd_graph_subgraphs(struct hd_buf *out, const struct hd_graph *graph,
                                     struct hd_slice ns, bool recurse);

#endif
