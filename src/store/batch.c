#include "store/batch.h"

#include <stdint.h>

#include "base/alloc.h"
#include "base/vec.h"

/* A batch that needs more is a bug of the planner, which splits long work itself. */
#define ARENA_MAX ((size_t)4 << 30)

void hd_batch_init(struct hd_batch_builder *builder)
{
    memset(builder, 0, sizeof(*builder));
    hd_arena_init(&builder->arena, ARENA_MAX);
}

void hd_batch_fini(struct hd_batch_builder *builder)
{
    hd_arena_fini(&builder->arena);
    hd_free(builder->ops);
    memset(builder, 0, sizeof(*builder));
}

void hd_batch_reset(struct hd_batch_builder *builder)
{
    hd_arena_reset(&builder->arena);
    builder->count = 0;
    builder->bytes = 0;
}

static int batch_add(struct hd_batch_builder *builder, struct hd_op op, const struct hd_cell *cells,
                     unsigned cell_count)
{
    struct hd_cell *copy = hd_arena_alloc(&builder->arena, cell_count * sizeof(*copy));
    int err = copy ? hd_array_grow(builder->ops, builder->count, builder->cap) : HD_ENOMEM;

    if (err)
        return err;
    memcpy(copy, cells, cell_count * sizeof(*copy));
    op.cells = copy;
    builder->ops[builder->count++] = op;
    return 0;
}

static size_t row_bytes(enum hd_table_id table, const struct hd_cell *cells)
{
    size_t bytes = 0;

    for (unsigned i = 0; i < hd_tables[table].column_count; i++)
        bytes += cells[i].bytes.len;
    return bytes;
}

int hd_batch_row(struct hd_batch_builder *builder, enum hd_op_kind kind, enum hd_table_id table,
                 const struct hd_cell *cells)
{
    builder->bytes += row_bytes(table, cells);
    return batch_add(builder, (struct hd_op){.kind = kind, .table = table}, cells,
                     hd_tables[table].column_count);
}

int hd_batch_delete(struct hd_batch_builder *builder, enum hd_table_id table,
                    const struct hd_cell *cells, unsigned key_count)
{
    return batch_add(builder,
                     (struct hd_op){.kind = HD_OP_DELETE, .table = table, .key_count = key_count},
                     cells, key_count);
}

int hd_batch_expect(struct hd_batch_builder *builder, enum hd_table_id table,
                    const struct hd_cell *key, unsigned column, int64_t expected)
{
    struct hd_op op = {
        .kind = HD_OP_EXPECT, .table = table, .column = column, .expected = expected};

    return batch_add(builder, op, key, hd_tables[table].key_count);
}

int hd_batch_expect_and_set(struct hd_batch_builder *builder, enum hd_table_id table,
                            const struct hd_cell *key, unsigned column, int64_t expected,
                            unsigned set_column, int64_t value)
{
    struct hd_op op = {.kind = HD_OP_EXPECT,
                       .table = table,
                       .column = column,
                       .expected = expected,
                       .set_column = set_column,
                       .set_count = 1,
                       .set = {value, 0}};

    return batch_add(builder, op, key, hd_tables[table].key_count);
}

int hd_batch_expect_and_clear(struct hd_batch_builder *builder, enum hd_table_id table,
                              const struct hd_cell *key, unsigned column, int64_t expected,
                              int64_t value, unsigned clear_column)
{
    struct hd_op op = {.kind = HD_OP_EXPECT,
                       .table = table,
                       .column = column,
                       .expected = expected,
                       .set_column = column,
                       .set_count = 1,
                       .set = {value, 0},
                       .clear_column = clear_column};

    return batch_add(builder, op, key, hd_tables[table].key_count);
}

int hd_batch_append(struct hd_batch_builder *builder, const struct hd_batch *batch)
{
    int err = hd_array_reserve(builder->ops, builder->count, builder->cap, batch->count);

    for (size_t i = 0; !err && i < batch->count; i++) {
        const struct hd_op *op = &batch->ops[i];

        if (op->kind != HD_OP_DELETE && op->kind != HD_OP_EXPECT)
            builder->bytes += row_bytes(op->table, op->cells);
        builder->ops[builder->count++] = *op;
    }
    return err;
}

int hd_batch_expect_epoch(struct hd_batch_builder *builder, struct hd_slice thread,
                          int64_t expected, unsigned set_column, int64_t value)
{
    struct hd_cell key = hd_cell_bytes(thread);
    struct hd_op op = {.kind = HD_OP_EXPECT,
                       .table = HD_THREADS,
                       .column = HD_THREADS_EPOCH,
                       .expected = expected,
                       .set_column = set_column,
                       .set_count = set_column ? 1 : 0,
                       .set = {value, 0}};

    return batch_add(builder, op, &key, 1);
}

int hd_batch_renew(struct hd_batch_builder *builder, struct hd_slice thread, int64_t expected,
                   int64_t epoch, int64_t created)
{
    struct hd_cell key = hd_cell_bytes(thread);
    struct hd_op op = {.kind = HD_OP_EXPECT,
                       .table = HD_THREADS,
                       .column = HD_THREADS_EPOCH,
                       .expected = expected,
                       .set_column = HD_THREADS_EPOCH, /* HD_THREADS_CREATED follows it */
                       .set_count = 2,
                       .set = {epoch, created}};

    return batch_add(builder, op, &key, 1);
}

/*
 * A database that applies batches concurrently locks rows, and a thread without a row could be
 * created between one table and the next: then its row would remain without its chunks. So the row
 * is created first. A concurrent creator then waits, or is waited for.
 */
int hd_batch_erase(struct hd_batch_builder *builder, struct hd_slice thread)
{
    static const enum hd_table_id tables[] = {HD_THREADS, HD_CHECKPOINTS, HD_WRITES, HD_CHUNKS};
    const struct hd_cell row[] = {
        [HD_THREADS_ID] = hd_cell_bytes(thread),
        [HD_THREADS_EPOCH] = hd_cell_int(0),
        [HD_THREADS_CREATED] = hd_cell_int(0),
        [HD_THREADS_UPDATED] = hd_cell_int(0),
    };
    int err = hd_batch_row(builder, HD_OP_PUT_NEW, HD_THREADS, row);

    for (size_t i = 0; !err && i < HD_COUNT(tables); i++)
        err = hd_batch_delete(builder, tables[i], row, 1);
    return err;
}
