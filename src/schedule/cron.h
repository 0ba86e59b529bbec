/*
 * Crons: runs that are started by the clock.
 *
 * The record of a cron has the time of its next firing (next_at). The scheduler sleeps until the
 * first cron is due, but at most a minute, because other processes on the same database may change
 * crons; in a cluster a second. The batch that stores the run of a due cron also stores the cron's
 * next time and expects the cron as it was read. So each firing happens once, also if several
 * servers fire or one is killed, and all firings missed while no server ran happen once. A firing
 * whose run is refused is skipped; one that meets an unavailable store happens later.
 */
#ifndef HD_SCHEDULE_CRON_H
#define HD_SCHEDULE_CRON_H

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"
#include "base/slice.h"
#include "records/record.h"

struct hd_app;
struct hd_scheduler;

/*
 * Sets next_at to the first firing after `after` and not after end_at; 0: no such firing, or the
 * cron is disabled. HD_EINVAL: invalid schedule or time zone. Reads a file; for store threads.
 */
HD_MUST_CHECK int hd_scheduler_plan(struct hd_cron_rec *cron, int64_t after,
                                    struct heddle_error *fault);

/*
 * Fires at most `limit` crons that are due at `now`: advances each, admits its run and passes it to
 * `fn`. *next: when the next cron is due; 0: none. For store threads.
 */
struct hd_admission;
typedef void (*hd_scheduler_fired_fn)(void *arg, const struct hd_admission *admission);
HD_MUST_CHECK int hd_scheduler_fire(struct hd_app *app, int64_t now, size_t limit,
                                    hd_scheduler_fired_fn fn, void *arg, int64_t *next,
                                    struct heddle_error *fault);

/* ---- the scheduler (loop) ---------------------------------------------- */

HD_MUST_CHECK int hd_scheduler_create(struct hd_app *app, struct hd_scheduler **out);
/* It must be stopped. */
void hd_scheduler_destroy(struct hd_scheduler *scheduler);
/* Checks for due crons: call it at the start and after a cron was created or changed. */
void hd_scheduler_wake(struct hd_scheduler *scheduler);
/* Fires no more crons. HD_READY: no check is in progress. 0: calls `done` when it has ended. */
HD_MUST_CHECK int hd_scheduler_stop(struct hd_scheduler *scheduler, void (*done)(void *ctx),
                                    void *ctx);

#endif
