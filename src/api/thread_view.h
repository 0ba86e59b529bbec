/* Threads as clients see them. */
#ifndef HD_API_THREAD_VIEW_H
#define HD_API_THREAD_VIEW_H

#include "api/api.h"

/*
 * Appends the JSON of the thread's values. HD_ENOTFOUND: no such thread; null
 * when it has no state. For store threads.
 */
HD_MUST_CHECK int hd_thread_values(struct hd_call *call, struct hd_slice thread_id,
                                   struct hd_buf *out);

#endif
