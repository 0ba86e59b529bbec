#include "store/batch.h"

#include <stdint.h>

#include "base/alloc.h"

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

static int add(struct hd_batch_builder *builder, struct hd_op op, const struct hd_cell *cells,
               unsigned cell_count)
{
    struct hd_cell *copy = hd_arena_alloc(&builder->arena, cell_count * sizeof(*copy));

    if (!copy)
        return HD_ENOMEM;
    memcpy(copy, cells, cell_count * sizeof(*copy));
    if (builder->count == builder->cap) {
        size_t cap = builder->cap ? builder->cap * 2 : 32;
        struct hd_op *grown = hd_realloc(builder->ops, cap * sizeof(*grown));

        if (!grown)
            return HD_ENOMEM;
        builder->ops = grown;
        builder->cap = cap;
    }
    op.cells = copy;
    builder->ops[builder->count++] = op;
    return 0;
}

int hd_batch_row(struct hd_batch_builder *builder, enum hd_op_kind kind, enum hd_table_id table,
                 const struct hd_cell *cells)
{
    unsigned count = hd_tables[table].column_count;

    for (unsigned i = 0; i < count; i++)
        builder->bytes += cells[i].bytes.len;
    return add(builder, (struct hd_op){.kind = kind, .table = table}, cells, count);
}

int hd_batch_delete(struct hd_batch_builder *builder, enum hd_table_id table,
                    const struct hd_cell *cells, unsigned key_count)
{
    return add(builder,
               (struct hd_op){.kind = HD_OP_DELETE, .table = table, .key_count = key_count}, cells,
               key_count);
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

    return add(builder, op, &key, 1);
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

    return add(builder, op, &key, 1);
}
