/*
 * What workers ask the server for: checkpoints, writes, and items of the store.
 *
 *   worker_ops.c    the table of operations, and what their handlers share
 *   worker_saver.c  get, list, put, writes, history
 *   worker_items.c  items
 *   worker_wire.c   checkpoints as messages
 *   worker_hide.c   what must not be stored
 *
 * They run on store threads; items that need vectors go to the loop in between (embed.h). The
 * call that the worker works for decides whose thread it is and below which root its namespaces
 * are; the worker sees relative ones. docs/runtime.md has the messages.
 */
#ifndef HD_WORKER_WORKER_OPS_H
#define HD_WORKER_WORKER_OPS_H

#include "base/compiler.h"

struct hd_app;

/* Adds them to app->runtime, before it starts. */
HD_MUST_CHECK int hd_worker_ops_add(struct hd_app *app);

#endif
