/*
 * The interface of a database driver: rows in, rows out.
 *
 * A driver embeds struct hd_backend as its first member and exports one const table. To add a
 * driver: write the file, add its table to drivers[] in backend.c and its URL to the list in
 * tests/contract, which runs the same cases against every driver.
 *
 * There are no interactive transactions: a batch is planned from earlier reads and states its
 * preconditions with HD_OP_EXPECT and HD_OP_ADD. If one does not hold, nothing of the batch is
 * applied and apply returns HD_ECONFLICT. So a batch is one SQL transaction, one Lua function or
 * one script, and one round trip.
 */
#ifndef HD_STORE_BACKEND_H
#define HD_STORE_BACKEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "store/table.h"
#include "store/url.h"

enum hd_op_kind {
    HD_OP_PUT,     /* insert, or replace the row with this key */
    HD_OP_PUT_NEW, /* insert unless a row with this key exists */
    HD_OP_ADD,     /* insert; a row with this key is a conflict */
    HD_OP_DELETE,  /* delete all rows that begin with these key_count key cells, at least 1 */
    /*
     * The row with this key must exist and its INT column `column` must equal `expected`, else it
     * is a conflict. Locks the row for the rest of the batch. When set_count > 0 then assigns `set`
     * to consecutive INT columns from set_column on, and makes clear_column null.
     */
    HD_OP_EXPECT
};

struct hd_op {
    enum hd_op_kind kind;
    enum hd_table_id table;
    const struct hd_cell *cells; /* a whole row for put and add; key cells otherwise */
    unsigned key_count;          /* HD_OP_DELETE only */
    unsigned column;             /* HD_OP_EXPECT only, like all members below */
    int64_t expected;
    unsigned set_column;
    unsigned set_count;
    int64_t set[2];
    unsigned clear_column; /* a nullable column, with set_count > 0; 0: none */
};

/* Operations are applied in order, all or none. The batch is borrowed for the call. */
struct hd_batch {
    const struct hd_op *ops;
    size_t count;
};

#define HD_ALL_COLUMNS (~0u)

/*
 * An ordered scan. `prefix` fixes the first key columns (or the first columns of `index`). `low`
 * (inclusive) and `high` (exclusive) bound the column after the prefix. `after` resumes strictly
 * after the given cells of the key columns that follow the prefix, in scan direction.
 */
struct hd_query {
    enum hd_table_id table;
    int index; /* HD_PRIMARY or a number of hd_table.indexes */
    const struct hd_cell *prefix;
    unsigned prefix_count;
    const struct hd_cell *low;  /* NULL: unbounded */
    const struct hd_cell *high; /* NULL: unbounded */
    const struct hd_cell *after;
    unsigned after_count;
    bool is_reverse;
    size_t limit;     /* 0: no limit */
    unsigned columns; /* bit n: column n is needed. Key columns always come, others may be null. */
    bool is_count;    /* set by hd_backend_count(): one row comes, its first cell is the count */
    /* In the first of several: each may see a later state than the one before, which is cheaper. */
    bool is_independent;
};

enum { HD_PRIMARY = -1 };

/* The columns that `query` is ordered by: those of the key, or of its index. */
static inline unsigned hd_query_order_count(const struct hd_query *query)
{
    const struct hd_table *table = &hd_tables[query->table];

    return query->index == HD_PRIMARY ? table->key_count
                                      : table->indexes[query->index].column_count;
}

static inline unsigned hd_query_order_column(const struct hd_query *query, unsigned n)
{
    return query->index == HD_PRIMARY ? n
                                      : hd_tables[query->table].indexes[query->index].columns[n];
}

/*
 * Receives the rows of queries[which], query by query in order. The cells are valid during the call
 * only. A negative result stops the read and is returned by it; a positive one skips the rest of
 * this query. It must not call the backend.
 */
typedef int (*hd_row_fn)(void *arg, size_t which, const struct hd_cell *cells);

struct hd_backend;

struct hd_backend_ops {
    const char *schemes[3]; /* the part of the URL before ':' */
    bool can_count;         /* read() supports hd_query.is_count */

    /*
     * Creates missing tables (url->enough_version). On failure *out is untouched, and nothing was
     * created if the failure could be foreseen.
     */
    int (*open)(struct hd_backend **out, const struct hd_url *url, struct heddle_error *fault);
    /* Creates the tables that open() has left out. NULL: it never does. */
    int (*upgrade)(struct hd_backend *backend, struct heddle_error *fault);
    void (*close)(struct hd_backend *backend);

    /*
     * Atomic and durable. On HD_ECONFLICT *failed is the index of the operation that conflicted.
     * Called by at most `lanes` threads at a time. Retries broken connections and locked files
     * itself, within url->timeout_ms.
     */
    int (*apply)(struct hd_backend *backend, const struct hd_batch *batch, size_t *failed,
                 struct heddle_error *fault);

    /*
     * Called from any thread at any time. Each query sees committed rows; all queries see one state
     * if that is cheap.
     */
    int (*read)(struct hd_backend *backend, const struct hd_query *queries, size_t count,
                hd_row_fn fn, void *arg, struct heddle_error *fault);

    /*
     * Optional, for HD_VECTORS only: reads the vectors that have as many numbers as `vector`
     * (packed in the same way), nearest first, to float32 precision. The queries' limits apply;
     * `after` is not supported. Returns 1, without having called `fn`, when this database cannot do
     * it: then the caller reads all vectors and compares them.
     */
    int (*nearest)(struct hd_backend *backend, const struct hd_query *queries, size_t count,
                   struct hd_slice vector, hd_row_fn fn, void *arg, struct heddle_error *fault);

    /* Optional: NULL when the database checks or compacts itself. */
    int (*check)(struct hd_backend *backend, struct heddle_error *fault);
    int (*compact)(struct hd_backend *backend, struct heddle_error *fault);
};

struct hd_backend {
    const struct hd_backend_ops *ops;
    unsigned lanes;   /* how many batches may be applied at the same time; at least 1 */
    bool keeps_raw;   /* rows cost no disk and no network: packing would only take time */
    const char *file; /* absolute path of the database; NULL: it is not a file */
    bool is_remote;   /* processes on other machines may use the database at the same time */
    /*
     * Called before each batch; an error rejects the batch. NULL: no fence. Set it before any
     * batch.
     */
    int (*fence)(void *arg, struct heddle_error *fault);
    void *fence_arg;
    /* Counts since opening: queries read, operations submitted. */
    _Atomic uint64_t reads, writes;
};

/* Chooses the driver by the URL's scheme; HD_EINVAL with the known schemes otherwise. */
HD_MUST_CHECK int hd_backend_open(struct hd_backend **out, const struct hd_url *url,
                                  struct heddle_error *fault);
HD_MUST_CHECK int hd_backend_upgrade(struct hd_backend *backend, struct heddle_error *fault);
void hd_backend_close(struct hd_backend *backend);
HD_MUST_CHECK int hd_backend_apply(struct hd_backend *backend, const struct hd_batch *batch,
                                   size_t *failed, struct heddle_error *fault);
HD_MUST_CHECK int hd_backend_read(struct hd_backend *backend, const struct hd_query *queries,
                                  size_t count, hd_row_fn fn, void *arg,
                                  struct heddle_error *fault);
/*
 * Counts the rows of a query that has no limit. A database that supports it counts in its index, so
 * that no row leaves it: the time still grows with the count, but is small for each row.
 */
HD_MUST_CHECK int hd_backend_count(struct hd_backend *backend, struct hd_query query, int64_t *out,
                                   struct heddle_error *fault);
HD_MUST_CHECK int hd_backend_nearest(struct hd_backend *backend, const struct hd_query *queries,
                                     size_t count, struct hd_slice vector, hd_row_fn fn, void *arg,
                                     struct heddle_error *fault);
HD_MUST_CHECK int hd_backend_check(struct hd_backend *backend, struct heddle_error *fault);
HD_MUST_CHECK int hd_backend_compact(struct hd_backend *backend, struct heddle_error *fault);

extern const struct hd_backend_ops hd_backend_memory;
extern const struct hd_backend_ops hd_backend_sqlite;
extern const struct hd_backend_ops hd_backend_postgres;

#endif
