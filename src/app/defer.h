/*
 * Runs work that blocks on the database outside the loop.
 *
 * `work` runs on a store thread, then `done` runs on the loop. The argument belongs to one thread
 * at a time, so neither function needs a lock.
 */
#ifndef HD_APP_DEFER_H
#define HD_APP_DEFER_H

#include <stdbool.h>
#include <uv.h>

#include "base/compiler.h"

struct heddle;
struct hd_defer;
struct hd_patience;

/*
 * `is_direct`: the store never blocks (memory:), so `work` runs at once, on the loop; `done` is
 * still called later.
 */
HD_MUST_CHECK int hd_defer_create(uv_loop_t *loop, struct heddle *store, bool is_direct,
                                  struct hd_patience *patience, struct hd_defer **out);
/* No task may be pending. The memory is freed when the loop has closed the handle. */
void hd_defer_destroy(struct hd_defer *defer);

/* Calls neither function before it returns, except `work` if the store is direct. */
HD_MUST_CHECK int hd_defer_run(struct hd_defer *defer, void (*work)(void *arg),
                               void (*done)(void *arg), void *arg);

/*
 * The same with retries, for runs, which survive a store outage: while `work` returns a transient
 * error (graph/engine/patience.h), it is called again later. `done` is called once, after the last
 * attempt.
 */
HD_MUST_CHECK int hd_defer_patiently(struct hd_defer *defer, int (*work)(void *arg),
                                     void (*done)(void *arg), void *arg);

/* The number of pending tasks: for shutdown and /metrics. */
size_t hd_defer_count(const struct hd_defer *defer);

#endif
