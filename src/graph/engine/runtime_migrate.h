/*
 * Threads that one runtime began and another goes on with. What is stored is the same but for
 * the ids of tasks and of their questions: LangGraph for JavaScript makes them in another way
 * than that for Python and the engine do. Where a step has been worked on in part, the writes of
 * its tasks are given the ids that the reader looks for: what is finished is not done
 * again, and answers go to those who asked.
 *
 * Both ids are computed for each task that follows from the checkpoint; what cannot be matched in
 * that way (calls within a functional graph, work within subgraphs) is refused when the reader
 * wants to go on from it.
 */
#ifndef HD_GRAPH_ENGINE_RUNTIME_MIGRATE_H
#define HD_GRAPH_ENGINE_RUNTIME_MIGRATE_H

#include <stdbool.h>

#include "base/compiler.h"
#include "base/error.h"
#include "base/slice.h"
#include "graph/decl/graph.h"
#include "graph/engine/checkpoint_state.h"
#include "graph/engine/writes.h"
#include "value/val.h"

/* How who wrote the checkpoint makes ids; `metadata` is the checkpoint's. */
enum hd_graph_ids hd_cross_writer(const struct hd_val *metadata);

/* How strict to be. Zero-initialise: not at all, whoever only looks takes what there is. */
struct hd_cross_rules {
    bool is_strict; /* HD_EUNSUPPORTED when not all of it can be carried over */
    /* Whether something is stored below the namespace (a subgraph's); NULL: not asked. */
    int (*has_states)(const void *ctx, struct hd_slice ns, bool *out);
    const void *ctx;
};

/*
 * Gives the writes of the tasks of `live`, which is at `step`, ids of its graph's runtime.
 * `writer` is who wrote the checkpoint. The reason of a refusal is in `fault`.
 */
HD_MUST_CHECK int hd_cross_pends(const struct hd_live *live, struct hd_slice ns, int64_t step,
                                 enum hd_graph_ids writer, const struct hd_cross_rules *rules,
                                 struct hd_pends *pends, struct hd_fault *fault);

#endif
