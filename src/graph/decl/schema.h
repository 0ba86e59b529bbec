/*
 * JSON Schemas of a graph's input, output and state, as GET /assistants/{id}/schemas and
 * …/subgraphs return them. A channel has its declared type; without one it may have any value.
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
 * Writes an object: `graph_id` if given, `input_schema`, `output_schema`, `state_schema`,
 * `config_schema` and `context_schema`. The last two are null if not declared. Errors are in the
 * writer.
 */
void hd_graph_put_schemas(struct hd_jw *jw, const struct hd_graph *graph, struct hd_slice graph_id);

/*
 * Appends an object: the schemas of subgraphs by namespace. The namespace is the name of the node
 * that runs the subgraph, or `outer|inner` for a subgraph of a subgraph. Lists the subgraphs of the
 * graph's own nodes, or the one that `ns` names (task ids in it are ignored); with `recurse` also
 * those nested inside. HD_ENOTFOUND if the namespace does not exist, HD_ELIMIT if the object does
 * not fit the buffer, or HD_ENOMEM; appends nothing on error.
 */
HD_MUST_CHECK int hd_graph_subgraphs(struct hd_buf *out, const struct hd_graph *graph,
                                     struct hd_slice ns, bool recurse);

#endif
