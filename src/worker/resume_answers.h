/*
 * Answers that a run brings to questions, when it begins again after a crash. They may have been
 * taken before, and what waits now is another question: one that nobody has seen.
 */
#ifndef HD_WORKER_RESUME_ANSWERS_H
#define HD_WORKER_RESUME_ANSWERS_H

#include <stdbool.h>

#include "app/app.h"
#include "base/compiler.h"
#include "base/error.h"
#include "records/record.h"
#include "value/val.h"

/* Task ids to what they ask, of a state (graph/state/state.h); NULL: no memory. */
HD_MUST_CHECK struct hd_val *hd_asked_of(const struct hd_val *state);

struct hd_answers_left {
    bool are_taken;         /* some or all; they must not be given again */
    struct hd_val *command; /* what is left of the run's command, the caller's; NULL: nothing */
};

/*
 * `asked` (JSON, as the thread's record has it) waited when the run began, at `checkpoint_id`;
 * empty: the latest, unless the run names one. For store threads.
 */
HD_MUST_CHECK int hd_answers_check(struct hd_app *app, const struct hd_run_rec *run,
                                   struct hd_slice checkpoint_id, struct hd_slice asked,
                                   struct hd_answers_left *out, struct hd_fault *fault);

#endif
