/*
 * Relative and stored namespaces.
 *
 * The engine uses relative namespaces, as LangGraph does: "" is the graph that runs, `node:task|…`
 * a subgraph in it. A run or an address may have a root, such as `assistant:<id>`: then the
 * checkpoints of the graph are stored in the namespace `root`, and those of its subgraphs in
 * `root|node:task|…`. Graphs with different roots share a thread and never see each other's
 * checkpoints. A root contains no `|`, because it would look like a subgraph of another root.
 *
 * Only this module converts between the two.
 */
#ifndef HD_GRAPH_ENGINE_NS_H
#define HD_GRAPH_ENGINE_NS_H

#include <stdbool.h>

#include "base/compiler.h"
#include "base/json.h"
#include "base/slice.h"

bool hd_ns_is_root(struct hd_slice root);

/*
 * The stored namespace of `ns`, NUL-terminated; the caller frees it (hd_free). *relative, unless
 * `relative` is NULL, points to the part that is `ns`. NULL: HD_ENOMEM.
 */
HD_MUST_CHECK char *hd_ns_join(struct hd_slice root, struct hd_slice ns, char **relative);

/* The inverse: *ns is borrowed from `stored`. False: `stored` is not below this root. */
HD_MUST_CHECK bool hd_ns_split(struct hd_slice root, struct hd_slice stored, struct hd_slice *ns);

/*
 * True if `stored` is the namespace of a subgraph of the empty root. The text alone does not show
 * it: `a:1` may also be a root. `parents` is the member of a checkpoint's metadata that maps the
 * relative namespaces of the enclosing graphs to their checkpoints.
 */
bool hd_ns_is_below_empty(struct hd_slice stored, hd_json_val parents);

#endif
