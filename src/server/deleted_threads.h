/*
 * Drops the event logs of threads that another server of the cluster has deleted: their readers
 * end, and a new thread of the same name does not show the events of the old one. A server that
 * deletes a thread drops its own log at once. Only logs with readers are looked up; the others are
 * checked when they are opened (hd_event_log_open()). Belongs to the loop.
 */
#ifndef HD_SERVER_DELETED_THREADS_H
#define HD_SERVER_DELETED_THREADS_H

#include "base/compiler.h"

struct hd_app;
struct hd_deleted_threads;

/* *out is NULL for a server that uses its store alone. */
HD_MUST_CHECK int hd_deleted_threads_create(struct hd_app *app, struct hd_deleted_threads **out);
/* Before the event logs are destroyed; no look may be in progress (hd_defer_count()). Accepts
 * NULL. */
void hd_deleted_threads_destroy(struct hd_deleted_threads *threads);

#endif
