/*
 * Admissions with an unknown outcome: the reply to their commit was lost. The client got an error,
 * but the run may be stored. Its record is looked up until the store answers; a run that is stored
 * enters the queue, so that its thread does not stay busy until the next start.
 *
 * Belongs to the loop, except hd_unsettled_add().
 */
#ifndef HD_RUN_UNSETTLED_H
#define HD_RUN_UNSETTLED_H

#include <stdint.h>

#include "base/compiler.h"
#include "records/record.h"

struct hd_app;
struct hd_unsettled;

HD_MUST_CHECK int hd_unsettled_create(struct hd_app *app, struct hd_unsettled **out);
/* Starts no more look-ups. Accepts NULL. */
void hd_unsettled_stop(struct hd_unsettled *unsettled);
/* No work may be pending (hd_defer_count()). Accepts NULL. */
void hd_unsettled_destroy(struct hd_unsettled *unsettled);

/* Copies the run. From any thread. Without memory the next start finds the run. Accepts NULL. */
void hd_unsettled_add(struct hd_unsettled *unsettled, const struct hd_run_rec *run,
                      int64_t event_seq);

#endif
