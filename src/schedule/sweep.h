/*
 * Deletes expired threads, items, invitations and stored events.
 *
 * A sweep runs on a store thread, with limits of rows and bytes, and occupies a lane of the store
 * for one batch at a time (store/prune.h). If it reaches a limit, the next sweep follows soon;
 * otherwise after the configured interval. In a cluster the leader sweeps. Two leaders may sweep
 * for a moment: a row is deleted only if it has not changed since the sweep read it.
 */
#ifndef HD_SCHEDULE_SWEEP_H
#define HD_SCHEDULE_SWEEP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/slice.h"
#include "run/thread_prune.h"

struct hd_app;
struct hd_sweeper;

/* A thread that was deleted. */
struct hd_swept {
    struct hd_swept *next;
    struct hd_slice principal;
    struct hd_slice thread_id;
};

struct hd_sweep {
    struct hd_arena *arena; /* for `threads` */
    struct hd_swept *threads;
    struct hd_removed removed;
    int64_t pruned; /* threads that were pruned, not deleted */
    int64_t items;
    bool has_more;
};

/* Sweeps once, with `now` as the current time. For store threads. */
HD_MUST_CHECK int hd_sweep(struct hd_app *app, int64_t now, struct hd_sweep *sweep,
                           struct heddle_error *fault);

/* ---- the sweeper (loop) ------------------------------------------------ */

/* Since the start. */
struct hd_sweep_counts {
    uint64_t sweeps;
    uint64_t failed;
    struct hd_removed removed;
    int64_t pruned;
    int64_t items;
    int64_t last_at;   /* end of the last sweep; 0: none yet */
    int64_t last_took; /* microseconds */
};

HD_MUST_CHECK int hd_sweeper_create(struct hd_app *app, struct hd_sweeper **out);
/* It must be stopped. */
void hd_sweeper_destroy(struct hd_sweeper *sweeper);
void hd_sweeper_start(struct hd_sweeper *sweeper);
struct hd_sweep_counts hd_sweeper_counts(const struct hd_sweeper *sweeper);
/* Starts no more sweeps. HD_READY: none is in progress. 0: calls `done` when the last has ended. */
HD_MUST_CHECK int hd_sweeper_stop(struct hd_sweeper *sweeper, void (*done)(void *ctx), void *ctx);

#endif
