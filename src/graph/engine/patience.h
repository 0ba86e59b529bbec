/*
 * Retries store calls while the store is unavailable. A call that failed with a transient error
 * (hd_error_is_transient()) is retried from the loop until it succeeds or its time is up. No thread
 * blocks meanwhile, so the server still answers requests.
 *
 * During an outage only one call at a time is retried, with growing pauses; when it succeeds, all
 * others follow. Runs on the loop.
 */
#ifndef HD_GRAPH_ENGINE_PATIENCE_H
#define HD_GRAPH_ENGINE_PATIENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "base/compiler.h"

struct hd_patience;

/* A call that may be retried. Before the first attempt set `again` and `arg` and zero the rest. */
struct hd_store_retry {
    void (*again)(void *arg); /* retries the call */
    void *arg;
    struct hd_store_retry *next;
    int64_t until_us; /* deadline, monotonic; 0: no attempt has failed yet */
};

/* `outage_us`: the longest total wait of a call; 0: no retries. */
HD_MUST_CHECK int hd_patience_create(uv_loop_t *loop, int64_t outage_us, struct hd_patience **out);
/* No call may be waiting. Memory is freed when the loop has closed the handle. Accepts NULL. */
void hd_patience_destroy(struct hd_patience *patience);

/*
 * Call after each attempt, with its result. True: `again` is called later, never before this
 * returns. False: the result is final. `patience` NULL: never retries.
 */
bool hd_patience_wait(struct hd_patience *patience, struct hd_store_retry *retry, int err);

/* The process ends: retries every waiting call a last time, now. */
void hd_patience_end(struct hd_patience *patience);

/* The number of waiting calls, for /metrics. */
size_t hd_patience_count(const struct hd_patience *patience);

#endif
