/*
 * Checks a run's resume answers when the run restarts after a crash. If it consumed them before the
 * crash, the pending interrupts are new, and the answers must not be applied to them.
 */
#ifndef HD_WORKER_RESUME_ANSWERS_H
#define HD_WORKER_RESUME_ANSWERS_H

#include <stdbool.h>

#include "app/app.h"
#include "base/compiler.h"
#include "base/error.h"
#include "records/record.h"
#include "value/val.h"

/* Maps task ids to their interrupts, from a state (graph/state/state.h). NULL: no memory. */
HD_MUST_CHECK struct hd_val *hd_resume_answers_pending(const struct hd_val *state);

struct hd_answers_left {
    bool are_taken;         /* at least one was consumed; do not apply them again */
    struct hd_val *command; /* rest of the run's command; the caller owns it; or NULL */
};

/*
 * `asked` (JSON, as in the thread's record): the interrupts that were pending when the run started,
 * at `checkpoint_id`. Empty `checkpoint_id`: the run's, or the latest. For store threads.
 */
HD_MUST_CHECK int hd_answers_check(struct hd_app *app, const struct hd_run_rec *run,
                                   struct hd_slice checkpoint_id, struct hd_slice asked,
                                   struct hd_answers_left *out, struct heddle_error *fault);

#endif
