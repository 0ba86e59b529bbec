/* Runs as clients see them. */
#ifndef HD_API_RUN_VIEW_H
#define HD_API_RUN_VIEW_H

#include "api/api.h"
#include "records/record.h"

/* Writes to the response of the call. */
void hd_run_view(struct hd_call *call, const struct hd_run_rec *run);
/* Shows the named members only; all for no name. */
void hd_run_view_some(struct hd_call *call, const struct hd_run_rec *run,
                      const struct hd_slice *names, size_t count);

/*
 * The receipt of a run that was cancelled and has ended: its id, its status, the step and the tasks
 * at which it stopped, and its last checkpoint.
 */
void hd_run_view_receipt(struct hd_jw *jw, const struct hd_run_rec *run);

#endif
