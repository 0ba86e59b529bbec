/*
 * Converts checkpoints that another runtime wrote (graph/engine/runtime_migrate.h) for the worker
 * that reads them.
 */
#ifndef HD_WORKER_WORKER_MIGRATE_H
#define HD_WORKER_WORKER_MIGRATE_H

#include <heddle.h>

#include "app/app.h"
#include "base/arena.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/slice.h"
#include "runtime/runtime.h"

/*
 * Converts a checkpoint for the graph of the call: *out is `tuple`, or a copy in the arena that
 * borrows from it. `ns` is relative. Runs on a store thread. HD_EUNSUPPORTED: the thread cannot
 * continue in this runtime; `fault` has the reason.
 */
HD_MUST_CHECK int hd_worker_migrate_read(struct hd_app *app, const struct hd_rt_scope *scope,
                                         struct hd_slice ns, const struct heddle_tuple *tuple,
                                         struct hd_arena *arena, const struct heddle_tuple **out,
                                         struct heddle_error *fault);

#endif
