/* A batch under construction: operations, and an arena for the data they point to. */
#ifndef HD_STORE_BATCH_H
#define HD_STORE_BATCH_H

#include "base/arena.h"
#include "base/compiler.h"
#include "store/backend.h"

struct hd_batch_builder {
    struct hd_arena arena;
    struct hd_op *ops;
    size_t count;
    size_t cap;
    size_t bytes; /* approximate size of the rows put so far */
};

void hd_batch_init(struct hd_batch_builder *builder);
void hd_batch_fini(struct hd_batch_builder *builder);
/* Empties the batch and its arena. */
void hd_batch_reset(struct hd_batch_builder *builder);

/*
 * A whole row for HD_OP_PUT, HD_OP_PUT_NEW or HD_OP_ADD. Copies the cells, borrows the bytes they
 * point to until applied.
 */
HD_MUST_CHECK int hd_batch_row(struct hd_batch_builder *builder, enum hd_op_kind kind,
                               enum hd_table_id table, const struct hd_cell *cells);
HD_MUST_CHECK int hd_batch_delete(struct hd_batch_builder *builder, enum hd_table_id table,
                                  const struct hd_cell *cells, unsigned key_count);
/* The row with this key must have `expected` in its INT column; copies the key's cells. */
HD_MUST_CHECK int hd_batch_expect(struct hd_batch_builder *builder, enum hd_table_id table,
                                  const struct hd_cell *key, unsigned column, int64_t expected);
/* The same; then the INT column `set_column` becomes `value`. */
HD_MUST_CHECK int hd_batch_expect_and_set(struct hd_batch_builder *builder, enum hd_table_id table,
                                          const struct hd_cell *key, unsigned column,
                                          int64_t expected, unsigned set_column, int64_t value);
/* The INT column must be `expected` and becomes `value`; `clear_column` becomes null. */
HD_MUST_CHECK int hd_batch_expect_and_clear(struct hd_batch_builder *builder,
                                            enum hd_table_id table, const struct hd_cell *key,
                                            unsigned column, int64_t expected, int64_t value,
                                            unsigned clear_column);
/* Appends all operations of `batch`. Borrows their cells and the bytes those point to. */
HD_MUST_CHECK int hd_batch_append(struct hd_batch_builder *builder, const struct hd_batch *batch);
/*
 * The thread's epoch must be `expected`; then `set_column` (HD_THREADS_EPOCH, _UPDATED; 0: none)
 * becomes `value`.
 */
HD_MUST_CHECK int hd_batch_expect_epoch(struct hd_batch_builder *builder, struct hd_slice thread,
                                        int64_t expected, unsigned set_column, int64_t value);
/* The thread's epoch must be `expected`; then it and the time of creation are set. */
HD_MUST_CHECK int hd_batch_renew(struct hd_batch_builder *builder, struct hd_slice thread,
                                 int64_t expected, int64_t epoch, int64_t created);

/* Deletes all rows of the thread (stored key), whether or not it exists. */
HD_MUST_CHECK int hd_batch_erase(struct hd_batch_builder *builder, struct hd_slice thread);

static inline struct hd_batch hd_batch_view(const struct hd_batch_builder *builder)
{
    return (struct hd_batch){builder->ops, builder->count};
}

#endif
