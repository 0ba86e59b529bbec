/*
 * Crons: runs that are started by the clock.
 *
 * When a cron fires is in its record (next_at). The scheduler sleeps until the
 * first is due, but never longer than a minute, because other processes on the same
 * database may have changed something. A cron that is due is given its next time
 * first and its run then. So each firing happens at most once, also when the server is killed in
 * between, and what was missed while no server ran happens once.
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
 * Sets next_at to the first firing after `after` that is not behind its end; 0 without a firing, or
 * when it is not enabled. HD_EINVAL: invalid schedule or time zone. Reads a file; for store
 * threads.
 */
HD_MUST_CHECK int hd_cron_plan(struct hd_cron_rec *cron, int64_t after, struct hd_fault *fault);

/*
 * Fires what is due at `now`, at most so many: advances each, admits its run, and hands that over.
 * *next is when the next one is due, 0: none. For store threads.
 */
struct hd_admission;
typedef void (*hd_fired_fn)(void *arg, const struct hd_admission *admission);
HD_MUST_CHECK int hd_crons_fire(struct hd_app *app, int64_t now, size_t limit, hd_fired_fn fn,
                                void *arg, int64_t *next, struct hd_fault *fault);

/* ---- the scheduler (loop) ---------------------------------------------- */

HD_MUST_CHECK int hd_scheduler_create(struct hd_app *app, struct hd_scheduler **out);
/* It must be stopped. */
void hd_scheduler_destroy(struct hd_scheduler *scheduler);
/* Looks what is due: at the start, and whenever a cron was made or changed. */
void hd_scheduler_wake(struct hd_scheduler *scheduler);
/* Fires nothing more; `done`, perhaps before this returns, when nothing is under way. */
void hd_scheduler_stop(struct hd_scheduler *scheduler, void (*done)(void *ctx), void *ctx);

#endif
