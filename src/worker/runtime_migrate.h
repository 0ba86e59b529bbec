/*
 * Threads that a graph of one runtime began and one of another goes on with
 * (graph/engine/runtime_migrate.h), for workers that read them.
 */
#ifndef HD_WORKER_RUNTIME_MIGRATE_H
#define HD_WORKER_RUNTIME_MIGRATE_H

#include <heddle.h>

#include "app/app.h"
#include "base/arena.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/slice.h"
#include "runtime/runtime.h"

/*
 * A checkpoint as the graph of the call reads it: `tuple`, or in *out a copy in the arena that
 * borrows from it. `ns` is relative. On a store thread. HD_EUNSUPPORTED, with the reason in
 * `fault`: it cannot go on there.
 */
HD_MUST_CHECK int hd_runtime_migrate_read(struct hd_app *app, const struct hd_rt_scope *scope,
                                          struct hd_slice ns, const struct heddle_tuple *tuple,
                                          struct hd_arena *arena, const struct heddle_tuple **out,
                                          struct hd_fault *fault);

#endif
