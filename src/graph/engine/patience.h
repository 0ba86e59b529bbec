/*
 * Waiting for a store that is away: calls on the store that failed for a reason that passes
 * (hd_error_is_transient()) are attempted again, from the loop, until they succeed or the time is
 * up. No thread waits meanwhile, so requests are still answered.
 *
 * While the store is away one call at a time tries it, after pauses that grow; when that one gets
 * through, all others follow. Belongs to the loop.
 */
#ifndef HD_GRAPH_ENGINE_PATIENCE_H
#define HD_GRAPH_ENGINE_PATIENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "base/compiler.h"

struct hd_patience;

/* A call that may be attempted again. Zero but for the first two before its first attempt. */
struct hd_store_retry {
    void (*again)(void *arg); /* makes another attempt */
    void *arg;
    struct hd_store_retry *next;
    int64_t until_us; /* monotonic; 0: no attempt has failed yet */
};

/* `outage_us`: how long a call waits in all; 0: none does. */
HD_MUST_CHECK int hd_patience_create(uv_loop_t *loop, int64_t outage_us, struct hd_patience **out);
/* Nothing may wait. The memory goes when the loop has closed its handle. Accepts NULL. */
void hd_patience_destroy(struct hd_patience *patience);

/*
 * After each attempt, with its result. True: `again` is called later, never before this returns.
 * False: the result stands. `patience` may be NULL: then nothing waits.
 */
bool hd_patience_wait(struct hd_patience *patience, struct hd_store_retry *retry, int err);

/* The process ends: everything that waits makes its last attempt now. */
void hd_patience_end(struct hd_patience *patience);

/* How many calls wait; for /metrics. */
size_t hd_patience_count(const struct hd_patience *patience);

#endif
