/* Deleting threads, also as a part of deleting something else. */
#ifndef HD_API_THREAD_DELETE_H
#define HD_API_THREAD_DELETE_H

#include "api/api.h"

/* Writes the answer when `count` threads were deleted; on the loop. */
typedef void (*hd_threads_deleted_fn)(struct hd_call *call, size_t count);

/*
 * For `work`: finds what runs on these threads of the caller's, whose ids must stay as
 * long as the call; those that do not exist are left out. HD_CALL_CONTINUES, then
 * hd_threads_delete_then() must be the route's `then`, or an error. Uses call->state.
 */
HD_MUST_CHECK int hd_threads_delete(struct hd_call *call, struct hd_slice *ids, size_t count,
                                    hd_threads_deleted_fn deleted);
void hd_threads_delete_then(struct hd_call *call);

#endif
