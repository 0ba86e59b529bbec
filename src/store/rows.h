/*
 * The server's tables: rows in, rows out, beside the checkpoints.
 *
 * A write enters the lane of its key like a put does and is committed in the same group, so it
 * costs no disk flush of its own. It is planned by the caller from what it has read before, and
 * names with HD_OP_EXPECT and HD_OP_ADD what must still be true. If that is not so, nothing of this
 * write happens, the others of its group do, and the caller reads again and tries again. It is the
 * lane that is shared, nothing else: writes that do not concern a thread may take any key.
 *
 * All functions are safe to call from any thread, the library's own tables are not meant for them.
 */
#ifndef HD_STORE_ROWS_H
#define HD_STORE_ROWS_H

#include <heddle.h>

#include "base/error.h"
#include "base/slice.h"
#include "store/backend.h"
#include "store/batch.h"

/*
 * Applies the batch, atomic and durable, and waits for it. `lane_key` is the stored key of a thread
 * (hd_thread_key()): what is written under one key takes effect in the order of the calls. On
 * HD_ECONFLICT *failed (may be NULL) is the index of the operation that was in the way.
 */
HD_MUST_CHECK int hd_rows_apply(struct heddle *store, struct hd_slice lane_key,
                                const struct hd_batch *batch, size_t *failed,
                                struct hd_fault *fault);

/*
 * The same without waiting; `done` is called once, as heddle_put_async() says. Takes what is in the
 * builder and leaves it empty, also when there is nothing to do; copies the key. What the
 * operations point to must be in the builder's arena, or stay until `done`. On error `done` is not
 * called and the builder is as it was.
 */
HD_MUST_CHECK int hd_rows_apply_async(struct heddle *store, struct hd_slice lane_key,
                                      struct hd_batch_builder *taken, heddle_done done, void *arg);

/*
 * Hands the rows of all queries to `fn`, see hd_row_fn: the cells are valid during the call only,
 * and `fn` must not use the store. Several queries see one state. Blocks.
 */
HD_MUST_CHECK int hd_rows_read(struct heddle *store, const struct hd_query *queries, size_t count,
                               hd_row_fn fn, void *arg, struct hd_fault *fault);

/*
 * Runs one query of any length in pages of query.limit rows (0: a default). Each page sees what is
 * committed when it is read; `fn` may use the store, and a positive answer ends the scan. Blocks.
 */
HD_MUST_CHECK int hd_rows_scan(struct heddle *store, struct hd_query query, hd_row_fn fn, void *arg,
                               struct hd_fault *fault);

/* Counts the rows of a query without a limit; see hd_backend_count(). Blocks. */
HD_MUST_CHECK int hd_rows_count(struct heddle *store, struct hd_query query, int64_t *out,
                                struct hd_fault *fault);

/* As hd_rows_read(), the vectors nearest to one first; 1: the database cannot (backend.h). */
HD_MUST_CHECK int hd_rows_nearest(struct heddle *store, const struct hd_query *queries,
                                  size_t count, struct hd_slice vector, hd_row_fn fn, void *arg,
                                  struct hd_fault *fault);

/* The database's file; NULL: it is not a file. */
const char *hd_rows_file(struct heddle *store);
/* Whether processes on other machines may use the database at the same time. */
bool hd_rows_is_remote(struct heddle *store);
/*
 * From now on `fence` is called before each batch of this store, by the thread that applies it; an
 * error refuses the batch. For the thread that opened the store, before anything is written.
 */
void hd_rows_set_fence(struct heddle *store, int (*fence)(void *arg, struct hd_fault *fault),
                       void *arg);

/*
 * From now on asynchronous writes (hd_rows_apply_async(), hd_queue_put(), hd_queue_writes()) that
 * fail because the database is away, locked or full are kept in their order and attempted again,
 * for up to `outage_us` each and 64 MiB in each lane. Before anything is written.
 */
void hd_rows_set_outage(struct heddle *store, int64_t outage_us);
/* The process ends: what waits is attempted once more and then fails. */
void hd_rows_end_outage(struct heddle *store);
/* How many writes have failed and wait. For any thread. */
size_t hd_rows_waiting(struct heddle *store);

/* Since the store was opened: queries asked, operations that were to be applied, by anybody. */
struct hd_rows_counts {
    uint64_t reads, writes;
};
struct hd_rows_counts hd_rows_counts(struct heddle *store);

#endif
