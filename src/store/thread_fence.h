/*
 * Deletion wins against late writers, and so does the server that takes a thread over.
 *
 * A run, in this process or another one, may still write when its thread is deleted. A plain put
 * creates a missing thread, as the library's API requires. So the server's writes carry a guard:
 * the creation time of the thread's record (HD_THREAD_INFO). The batch that writes expects a record
 * with that creation time; a thread of the same name that was created later is another one.
 *
 * Where several servers share the store, the guard also has the token under which this server
 * claimed the thread (HD_HOLDS), and the batch expects the token instead. A take-over replaces it,
 * and a deletion deletes its row with the record, so the token stands for both.
 *
 * It costs one operation for each thread, not for each write: deletion and take-over change the
 * thread's epoch in their batch. So a batch that expects the epoch under which the guard was
 * verified need not verify it again.
 */
#ifndef HD_STORE_THREAD_FENCE_H
#define HD_STORE_THREAD_FENCE_H

#include <heddle.h>

#include "store/batch.h"
#include "store/guard.h"

/*
 * Expects the thread (stored key) to be as the guard says. hd_thread_fence_error() explains a
 * conflict over this operation.
 */
HD_MUST_CHECK int hd_thread_fence_expect(struct hd_batch_builder *batch, struct hd_slice thread,
                                         const struct hd_guard *guard);

/*
 * The error of a batch whose operation on `table` failed: HD_ENOTFOUND, the thread was deleted;
 * HD_ETAKEN, another server has taken it over; 0: the operation is not of a guard. Blocks.
 */
int hd_thread_fence_error(struct hd_backend *backend, struct hd_slice thread,
                          const struct hd_guard *guard, enum hd_table_id table);

/* Changes the thread's epoch, so that writers of all processes verify their guards again. */
HD_MUST_CHECK int hd_thread_fence_renew(struct heddle *store, struct hd_batch_builder *batch,
                                        struct hd_slice thread, struct heddle_error *fault);

/*
 * Deletes the thread (stored key) and applies `rows`, the server's part of it, all or nothing.
 * HD_ECONFLICT: an expectation of `rows` does not hold.
 */
HD_MUST_CHECK int hd_thread_fence_erase(struct heddle *store, struct hd_slice thread,
                                        const struct hd_batch *rows, struct heddle_error *fault);

#endif
