/*
 * Work that waits for the database, away from the loop.
 *
 * `work` runs on a thread of the store, `done` afterwards on the loop's. Between
 * the two calls the argument belongs to one thread at a time, so neither needs
 * a lock.
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
 * `is_direct`: nothing in the store ever waits (memory:), so work is done at once,
 * on the loop; `done` still comes later.
 */
HD_MUST_CHECK int hd_defer_create(uv_loop_t *loop, struct heddle *store, bool is_direct,
                                  struct hd_patience *patience, struct hd_defer **out);
/* Nothing may be under way. The memory goes when the loop has closed its handle. */
void hd_defer_destroy(struct hd_defer *defer);

/* Never calls anything before it returned, but `work` when the store is direct. */
HD_MUST_CHECK int hd_defer_run(struct hd_defer *defer, void (*work)(void *arg),
                               void (*done)(void *arg), void *arg);

/*
 * The same for the work of runs, which outlasts an outage of the store: while `work` returns an
 * error that passes (graph/engine/patience.h), it is called again later, and `done` after the
 * last call.
 */
HD_MUST_CHECK int hd_defer_patiently(struct hd_defer *defer, int (*work)(void *arg),
                                     void (*done)(void *arg), void *arg);

/* How many are under way: for shutting down, and for /metrics. */
size_t hd_defer_count(const struct hd_defer *defer);

#endif
