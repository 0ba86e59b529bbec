/*
 * Namespaces, inside and in the store.
 *
 * Everything in the engine speaks of namespaces that are *relative*: "" is the
 * graph that runs, `node:task|…` a subgraph in it, as in LangGraph. A run or an
 * address may have a *root*, such as `assistant:<id>`: then the graph's own
 * checkpoints are stored in the namespace `root`, and those of its subgraphs in
 * `root|node:task|…`. Graphs with different roots share a thread and never see
 * each other. A root has no `|` in it: it would look like a subgraph of another.
 *
 * This is the one place where one becomes the other.
 */
#ifndef HD_GRAPH_ENGINE_NS_H
#define HD_GRAPH_ENGINE_NS_H

#include <stdbool.h>

#include "base/compiler.h"
#include "base/slice.h"

bool hd_ns_is_root(struct hd_slice root);

/*
 * Where `ns` is stored, NUL-terminated; the caller's (hd_free). *relative, if
 * given, is the part of it that is `ns`. NULL: HD_ENOMEM.
 */
HD_MUST_CHECK char *hd_ns_join(struct hd_slice root, struct hd_slice ns, char **relative);

/* The way back, borrowed from `stored`; false: it is not below this root. */
HD_MUST_CHECK bool hd_ns_split(struct hd_slice root, struct hd_slice stored, struct hd_slice *ns);

#endif
