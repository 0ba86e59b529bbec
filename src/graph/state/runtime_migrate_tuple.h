/* Checkpoints as another runtime reads them (graph/engine/runtime_migrate.h). */
#ifndef HD_GRAPH_STATE_RUNTIME_MIGRATE_TUPLE_H
#define HD_GRAPH_STATE_RUNTIME_MIGRATE_TUPLE_H

#include "base/arena.h"
#include "base/compiler.h"
#include "base/error.h"
#include "graph/engine/runtime_migrate.h"
#include "graph/state/state.h"

/*
 * Converts a checkpoint so that the runtime of at->graph can continue from it. *out is `tuple`, or
 * a copy in the arena with other writes and values, which borrows from `tuple`. Waits for the
 * store.
 * HD_EUNSUPPORTED, with the reason in `fault`, if the runtime cannot continue; other errors.
 */
HD_MUST_CHECK int hd_runtime_migrate_tuple(const struct hd_address *at,
                                           const struct heddle_tuple *tuple, struct hd_arena *arena,
                                           const struct heddle_tuple **out,
                                           struct heddle_error *fault);

#endif
