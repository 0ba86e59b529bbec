/* Crons as clients see them. */
#ifndef HD_API_CRON_VIEW_H
#define HD_API_CRON_VIEW_H

#include "api/api.h"
#include "records/record.h"

/* Shows the named members only; all for no name. */
void hd_cron_view(struct hd_jw *jw, const struct hd_cron_rec *cron, const struct hd_slice *names,
                  size_t count);
/* HD_EINVAL when a name is not a member. */
HD_MUST_CHECK int hd_cron_view_check_names(struct hd_call *call, const struct hd_slice *names,
                                           size_t count);

#endif
