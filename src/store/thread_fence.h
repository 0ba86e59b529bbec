/*
 * Deletion wins against late writers.
 *
 * A run, in this process or another one, may still write when its thread is deleted. A plain put
 * makes a thread that is not there, as the library promises. So the server's writes carry a guard:
 * the time at which the record of the thread (HD_THREAD_INFO) was made. It is expected to be there,
 * made at that time, in the batch that writes; a thread of the same name that was made later is
 * another one.
 *
 * It costs one operation for each thread, not for each write: deleting takes the record and the
 * thread's row with its epoch away in one batch. Whoever found the record in a batch that expected
 * this epoch, and expects the same epoch again, would find it again.
 */
#ifndef HD_STORE_THREAD_FENCE_H
#define HD_STORE_THREAD_FENCE_H

#include <heddle.h>

#include "store/batch.h"

/* Expects the record of the thread (stored key) to have been made at `created_at`. */
HD_MUST_CHECK int hd_guard_expect(struct hd_batch_builder *batch, struct hd_slice thread,
                                  int64_t created_at);

/*
 * Deletes the thread (stored key) and carries out `rows`, the server's part of it, all or nothing.
 * HD_ECONFLICT: not as the rows expect it.
 */
HD_MUST_CHECK int hd_guard_erase(struct heddle *store, struct hd_slice thread,
                                 const struct hd_batch *rows, struct hd_fault *fault);

#endif
