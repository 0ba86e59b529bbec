/*
 * Counts how often a run lost the process that executed it. A server or worker that dies may have
 * been killed by the run itself, so the number of restarts is limited. Only losses at the same
 * place count: a run that has stored something since the last one makes progress and may continue.
 */
#ifndef HD_RECORDS_RUN_LOSSES_H
#define HD_RECORDS_RUN_LOSSES_H

#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"
#include "base/slice.h"

struct heddle;

#define HD_MAX_LOSSES 3 /* then the run has failed */

/* Zeroed: none yet. */
struct hd_run_losses {
    int count;           /* in a row, all at this place: */
    int64_t checkpoints; /* stored by the run */
    int64_t writes;      /* stored in its thread */
};

/* Adds a loss at the run's present place. Waits for the store. */
HD_MUST_CHECK int hd_run_losses_add(struct hd_run_losses *losses, struct heddle *store,
                                    struct hd_slice principal, struct hd_slice thread_id,
                                    struct hd_slice run_id, struct heddle_error *fault);

#endif
