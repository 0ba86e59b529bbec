/*
 * Operations that workers call: checkpoints, writes, and items of the store.
 *
 *   worker_ops.c    the table of operations, and shared code
 *   worker_saver.c  get, list, put, writes, history
 *   worker_items.c  items
 *   worker_wire.c   encodes and decodes checkpoints
 *   worker_hide.c   removes secrets
 *
 * They run on store threads; items that need vectors use the loop in between (search/embed.h). The
 * server's call to the worker determines the thread and the root of its namespaces; the worker sees
 * relative namespaces. docs/runtime.md has the messages.
 */
#ifndef HD_WORKER_WORKER_OPS_H
#define HD_WORKER_WORKER_OPS_H

#include "base/compiler.h"

struct hd_app;

/* Adds the operations to app->runtime. Call before it starts. */
HD_MUST_CHECK int hd_worker_ops_add(struct hd_app *app);

#endif
