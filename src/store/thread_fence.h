/*
 * Deletion wins against late writers.
 *
 * A run, in this process or another one, may still write when its thread is deleted. A plain put
 * creates a missing thread, as the library's API requires. So the server's writes carry a guard:
 * the creation time of the thread's record (HD_THREAD_INFO). The batch that writes expects a record
 * with that creation time; a thread of the same name that was created later is another one.
 *
 * It costs one operation for each thread, not for each write: deletion removes the record and the
 * thread's row with its epoch in one batch. So a batch that expects the epoch under which the
 * record was found need not look for the record again.
 */
#ifndef HD_STORE_THREAD_FENCE_H
#define HD_STORE_THREAD_FENCE_H

#include <heddle.h>

#include "store/batch.h"

/* Expects the record of the thread (stored key) to have the creation time `created_at`. */
HD_MUST_CHECK int hd_thread_fence_expect(struct hd_batch_builder *batch, struct hd_slice thread,
                                         int64_t created_at);

/*
 * Deletes the thread (stored key) and applies `rows`, the server's part of it, all or nothing.
 * HD_ECONFLICT: an expectation of `rows` does not hold.
 */
HD_MUST_CHECK int hd_thread_fence_erase(struct heddle *store, struct hd_slice thread,
                                        const struct hd_batch *rows, struct heddle_error *fault);

#endif
