/*
 * The server's tables: rows in, rows out, beside the checkpoints.
 *
 * A write enters the lane of its key like a put and is committed in the same group, so it costs no
 * disk flush of its own. The caller plans it from earlier reads and states its preconditions with
 * HD_OP_EXPECT and HD_OP_ADD. If one does not hold, nothing of this write is applied, the other
 * writes of its group are, and the caller reads again and retries. Only the lane is shared: writes
 * that do not concern a thread may use any key.
 *
 * All functions may be called from any thread. They must not be used for the library's own tables.
 */
#ifndef HD_STORE_ROWS_H
#define HD_STORE_ROWS_H

#include <heddle.h>

#include "base/error.h"
#include "base/slice.h"
#include "store/backend.h"
#include "store/batch.h"

/*
 * As heddle_open(), but leaves a database of version `enough_version` or a newer one as it is,
 * until hd_rows_upgrade(): a server asks other servers before it upgrades the tables that they use.
 * Before the upgrade only tables of `enough_version` may be used.
 */
HD_MUST_CHECK int hd_rows_open(struct heddle **out, const char *url, int enough_version,
                               struct heddle_error *fault);
/* Creates the missing tables of this program's version. Blocks. */
HD_MUST_CHECK int hd_rows_upgrade(struct heddle *store, struct heddle_error *fault);

/*
 * Applies the batch, atomic and durable, and waits for it. `lane_key` is the stored key of a thread
 * (hd_store_thread_key()): writes under one key take effect in the order of the calls. On
 * HD_ECONFLICT *failed (may be NULL) is the index of the operation that conflicted.
 */
HD_MUST_CHECK int hd_rows_apply(struct heddle *store, struct hd_slice lane_key,
                                const struct hd_batch *batch, size_t *failed,
                                struct heddle_error *fault);

/*
 * The same without waiting; `done` is called once, as by heddle_put_async(). Moves the operations
 * out of the builder and leaves it empty, also when the batch is empty; copies the key. Memory that
 * the operations point to must be in the builder's arena, or stay valid until `done`. On error
 * `done` is not called and the builder is unchanged.
 */
HD_MUST_CHECK int hd_rows_apply_async(struct heddle *store, struct hd_slice lane_key,
                                      struct hd_batch_builder *taken, heddle_done done, void *arg);

/*
 * One optimistic change: calls attempt(arg, fault) until its result is not HD_ECONFLICT, and
 * returns that result. An attempt reads the rows, plans a batch that expects them unchanged, and
 * applies it. Retries with back-off and clears `fault` before each retry; HD_EBUSY when conflicts
 * continue for the store's timeout (retry.h). Blocks.
 */
typedef int (*hd_rows_change_fn)(void *arg, struct heddle_error *fault);

HD_MUST_CHECK int hd_rows_change(struct heddle *store, hd_rows_change_fn attempt, void *arg,
                                 struct heddle_error *fault);

/*
 * Passes the rows of all queries to `fn`, see hd_row_fn: the cells are valid during the call only,
 * and `fn` must not use the store. Several queries see one state, unless the first one says that
 * they need not (hd_query.is_independent). Blocks.
 */
HD_MUST_CHECK int hd_rows_read(struct heddle *store, const struct hd_query *queries, size_t count,
                               hd_row_fn fn, void *arg, struct heddle_error *fault);

/*
 * Runs one query of any length in pages of query.limit rows (0: a default). Each page sees the rows
 * committed when it is read; `fn` may use the store, and a positive result ends the scan. Blocks.
 */
HD_MUST_CHECK int hd_rows_scan(struct heddle *store, struct hd_query query, hd_row_fn fn, void *arg,
                               struct heddle_error *fault);

/* Counts the rows of a query without a limit; see hd_backend_count(). Blocks. */
HD_MUST_CHECK int hd_rows_count(struct heddle *store, struct hd_query query, int64_t *out,
                                struct heddle_error *fault);

/* As hd_rows_read(), nearest vectors first; 1: the database does not support it (backend.h). */
HD_MUST_CHECK int hd_rows_nearest(struct heddle *store, const struct hd_query *queries,
                                  size_t count, struct hd_slice vector, hd_row_fn fn, void *arg,
                                  struct heddle_error *fault);

/* The database's file; NULL: it is not a file. */
const char *hd_rows_file(struct heddle *store);
/* True when processes on other machines may use the database at the same time. */
bool hd_rows_is_remote(struct heddle *store);
/*
 * Sets a function that is called before each batch of this store, by the thread that applies it; an
 * error rejects the batch. Call it on the thread that opened the store, before anything is written.
 */
void hd_rows_set_fence(struct heddle *store, int (*fence)(void *arg, struct heddle_error *fault),
                       void *arg);

/*
 * From now on asynchronous writes (hd_rows_apply_async(), hd_store_queue_put(),
 * hd_store_queue_writes()) that fail because the database is unreachable, locked or full are kept
 * in their order and retried, for up to `outage_us` each and 64 MiB in each lane. Call it before
 * anything is written.
 */
void hd_rows_set_outage(struct heddle *store, int64_t outage_us);
/*
 * The process is ending: waiting writes are attempted once more and then fail, with those of
 * hd_rows_apply_async() that follow under the same key.
 */
void hd_rows_end_outage(struct heddle *store);
/* Number of writes that failed and wait for a retry. May be called from any thread. */
size_t hd_rows_waiting(struct heddle *store);

/* Counts since the store was opened: queries read and operations submitted, by all callers. */
struct hd_rows_counts {
    uint64_t reads, writes;
};
struct hd_rows_counts hd_rows_counts(struct heddle *store);

#endif
