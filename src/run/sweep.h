/*
 * Removes what has expired: threads, items, and stored events that are older than
 * they need to be kept.
 *
 * A sweep is done on a store thread and bounded; when there is more, the next one
 * follows soon, otherwise after the configured interval. Several processes may
 * sweep one database: what is removed was looked at before, and stays when
 * somebody has changed it meanwhile.
 */
#ifndef HD_RUN_SWEEP_H
#define HD_RUN_SWEEP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/slice.h"

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
    bool has_more;
};

/* One sweep, as if it were `now`. For store threads. */
HD_MUST_CHECK int hd_sweep(struct hd_app *app, int64_t now, struct hd_sweep *sweep,
                           struct hd_fault *fault);

/* ---- the sweeper (loop) ------------------------------------------------ */

HD_MUST_CHECK int hd_sweeper_create(struct hd_app *app, struct hd_sweeper **out);
/* It must be stopped. */
void hd_sweeper_destroy(struct hd_sweeper *sweeper);
void hd_sweeper_start(struct hd_sweeper *sweeper);
/* `done`, perhaps before this returns, when nothing is under way. */
void hd_sweeper_stop(struct hd_sweeper *sweeper, void (*done)(void *ctx), void *ctx);

#endif
