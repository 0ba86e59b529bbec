/* Deleting threads, also as a part of another deletion. */
#ifndef HD_API_THREAD_DELETE_H
#define HD_API_THREAD_DELETE_H

#include "api/api.h"

/* Writes the response when `count` threads were deleted; on the loop. */
typedef void (*hd_thread_deleted_fn)(struct hd_call *call, size_t count);

/*
 * For `work` to return: finds the runs in flight on these threads of the caller. The ids must live
 * as long as the call; missing threads are left out. The route's `then` must be
 * hd_thread_delete_then(). Uses call->state.
 */
HD_MUST_CHECK struct hd_step hd_thread_delete_start(struct hd_call *call, struct hd_slice *ids,
                                                    size_t count, hd_thread_deleted_fn deleted);
struct hd_step hd_thread_delete_then(struct hd_call *call);

#endif
