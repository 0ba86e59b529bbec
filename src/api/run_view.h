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

#endif
