/* Checkpoints as another runtime reads them (graph/engine/runtime_migrate.h). */
#ifndef HD_GRAPH_STATE_RUNTIME_MIGRATE_TUPLE_H
#define HD_GRAPH_STATE_RUNTIME_MIGRATE_TUPLE_H

#include "base/arena.h"
#include "base/compiler.h"
#include "base/error.h"
#include "graph/engine/runtime_migrate.h"
#include "graph/state/state.h"

/*
 * A checkpoint as the runtime of at->graph reads it, to go on from: `tuple` itself, or in *out a
 * copy with other writes and values, which borrows from it and is the arena's. Waits for the
 * store. HD_EUNSUPPORTED and the reason in `fault` when it cannot go on there; other errors.
 */
HD_MUST_CHECK int hd_cross_tuple(const struct hd_address *at, const struct heddle_tuple *tuple,
                                 struct hd_arena *arena, const struct heddle_tuple **out,
                                 struct hd_fault *fault);

#endif
