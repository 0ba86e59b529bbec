/*
 * Continues cascades: after they began or were approved, at the end of each run of their thread,
 * and at the start of a server. The record of a cascade is its state, so a job is only a reminder:
 * servers that share a store look for running cascades from time to time, and the batches of two
 * that continue the same one exclude each other. Belongs to the loop, except where noted.
 */
#ifndef HD_RUN_ROOM_CASCADE_JOBS_H
#define HD_RUN_ROOM_CASCADE_JOBS_H

#include "base/compiler.h"
#include "base/error.h"
#include "base/slice.h"
#include "records/record.h"

struct hd_app;
struct hd_room_cascade;
struct hd_room_cascade_jobs;

HD_MUST_CHECK int hd_room_cascade_jobs_create(struct hd_app *app,
                                              struct hd_room_cascade_jobs **out);
/* At the start, after runs were recovered: continues all running cascades. Blocks on the store. */
HD_MUST_CHECK int hd_room_cascade_jobs_begin(struct hd_room_cascade_jobs *jobs,
                                             struct heddle_error *fault);
/* Starts no more work. Accepts NULL. */
void hd_room_cascade_jobs_stop(struct hd_room_cascade_jobs *jobs);
/* No work may be pending (hd_defer_count()). Accepts NULL. */
void hd_room_cascade_jobs_destroy(struct hd_room_cascade_jobs *jobs);

/* Continues the cascade soon. Without memory it waits for the next start of a server. */
void hd_room_cascade_jobs_add(struct hd_room_cascade_jobs *jobs, struct hd_slice principal,
                              struct hd_slice thread_id, struct hd_slice cascade_id);
/* The end of a run is stored. */
void hd_room_cascade_jobs_run_ended(struct hd_room_cascade_jobs *jobs,
                                    const struct hd_run_rec *run);

/*
 * After hd_room_cascade_apply(): ends its events, cancels and queues runs, and continues the
 * cascade. `op` is not changed.
 */
void hd_room_cascade_jobs_follow(struct hd_room_cascade_jobs *jobs,
                                 const struct hd_room_cascade *op);

#endif
