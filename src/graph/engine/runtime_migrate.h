/*
 * Threads that one runtime started and another continues. Stored checkpoints differ only in the
 * ids of tasks and interrupts: LangGraph for JavaScript computes them differently from LangGraph
 * for Python and the engine. If a step is partly done, the writes of its tasks get the ids that
 * the reading runtime computes, so that finished tasks do not run again and resume values reach
 * their tasks.
 *
 * Both ids are computed for each task that follows from the checkpoint. Writes that cannot be
 * matched this way (calls within a functional graph, tasks within subgraphs) are refused when the
 * reader continues from the checkpoint.
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

/* The id scheme of the runtime that wrote the checkpoint with this metadata. */
enum hd_graph_ids hd_runtime_migrate_writer(const struct hd_val *metadata);

/* Zero-initialise for reads that never continue: they accept writes that cannot be matched. */
struct hd_runtime_migrate_rules {
    bool is_strict; /* HD_EUNSUPPORTED if a write cannot be matched */
    /* Sets *out if a subgraph's namespace has checkpoints; NULL: not checked. */
    int (*has_states)(const void *ctx, struct hd_slice ns, bool *out);
    const void *ctx;
};

/*
 * Changes the ids of the writes of `live`, which is at `step`, to those of its graph's runtime.
 * `writer` is the id scheme of the stored writes. `fault` has the reason of a refusal.
 */
HD_MUST_CHECK int
hd_runtime_migrate_writes(const struct hd_checkpoint_state *live, struct hd_slice ns, int64_t step,
                          enum hd_graph_ids writer, const struct hd_runtime_migrate_rules *rules,
                          struct hd_pending_writes *pending_writes, struct heddle_error *fault);

#endif
