/* Recovers runs that were in flight when their process ended. Blocks on the store. */
#ifndef HD_RUN_RUN_RECOVER_H
#define HD_RUN_RUN_RECOVER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"
#include "base/slice.h"
#include "records/hold.h"
#include "records/record.h"

struct hd_app;

/*
 * `event_seq` is that of its thread; `is_continued`: it has stored checkpoints. An error ends the
 * recovery.
 */
typedef int (*hd_run_recovered_fn)(void *arg, const struct hd_run_rec *run, int64_t event_seq,
                                   bool is_continued);

/*
 * For a server that uses its store alone, after its start: hands over all runs that have not ended.
 * A run that was running has one attempt more than before and, unless it is suspended, one loss
 * more; both are stored first. One with HD_MAX_LOSSES ends with an error instead, and a thread that
 * was created for it with it; its webhook is in the outbox (hd_webhooks_recover()).
 */
HD_MUST_CHECK int hd_run_recover(struct hd_app *app, hd_run_recovered_fn fn, void *arg,
                                 struct heddle_error *fault);

/*
 * Where several servers share the store: claims the thread from a holder that is gone, or an unheld
 * one with runs in flight, and hands over its runs as above. They are announced to the queue before
 * (hd_queue_expect()). Does nothing when the hold is not `hold` any more. A thread without runs in
 * flight is released. Adds the number of webhooks of runs that have ended to *webhooks.
 *
 * After an error this server may hold the thread: then the runs that were not handed over stay
 * announced, and *rest recovers them later. Otherwise *rest is NULL.
 */
struct hd_run_rest;

HD_MUST_CHECK int hd_run_recover_thread(struct hd_app *app, struct hd_slice principal,
                                        struct hd_slice thread, const struct hd_hold *hold,
                                        hd_run_recovered_fn fn, void *arg, size_t *webhooks,
                                        struct hd_run_rest **rest, struct heddle_error *fault);
/* Continues after an error; may be called again after another one. */
HD_MUST_CHECK int hd_run_recover_rest(struct hd_run_rest *rest, hd_run_recovered_fn fn, void *arg,
                                      size_t *webhooks, struct heddle_error *fault);
/* Withdraws what is still announced: another server, or the next start, recovers it. NULL: none. */
void hd_run_recover_free(struct hd_run_rest *rest);

#endif
