#include "store/table.h"

/* `thread_id` is everywhere the thread key, `principal:thread_id`. */
const struct hd_table hd_tables[HD_TABLE_COUNT] = {
    [HD_THREADS] = {.name = "threads",
                    .key_count = 1,
                    .column_count = 4,
                    .columns = {[HD_THREADS_ID] = {.name = "thread_id", .type = HD_COL_TEXT},
                                [HD_THREADS_EPOCH] = {.name = "epoch", .type = HD_COL_INT},
                                [HD_THREADS_CREATED] = {.name = "created_at", .type = HD_COL_INT},
                                [HD_THREADS_UPDATED] = {.name = "updated_at", .type = HD_COL_INT}}},
    [HD_CHECKPOINTS] =
        {.name = "checkpoints",
         .key_count = 3,
         .column_count = 7,
         .columns = {[HD_CHECKPOINTS_THREAD] = {.name = "thread_id", .type = HD_COL_TEXT},
                     [HD_CHECKPOINTS_NS] = {.name = "checkpoint_ns", .type = HD_COL_TEXT},
                     [HD_CHECKPOINTS_ID] = {.name = "checkpoint_id", .type = HD_COL_TEXT},
                     [HD_CHECKPOINTS_PARENT] = {.name = "parent_checkpoint_id",
                                                .type = HD_COL_TEXT,
                                                .nullable = true},
                     [HD_CHECKPOINTS_RUN] = {.name = "run_id",
                                             .type = HD_COL_TEXT,
                                             .nullable = true},
                     [HD_CHECKPOINTS_METADATA] = {.name = "metadata", .type = HD_COL_TEXT},
                     [HD_CHECKPOINTS_BODY] = {.name = "checkpoint", .type = HD_COL_BLOB}},
         .index_count = 1,
         .indexes = {[HD_CHECKPOINTS_BY_RUN] = {.name = "checkpoints_by_run",
                                                .column_count = 4,
                                                .columns = {HD_CHECKPOINTS_RUN,
                                                            HD_CHECKPOINTS_THREAD,
                                                            HD_CHECKPOINTS_NS, HD_CHECKPOINTS_ID}}},
         .is_wide = true},
    [HD_WRITES] = {.name = "writes",
                   .key_count = 5,
                   .column_count = 9,
                   .columns = {[HD_WRITES_THREAD] = {.name = "thread_id", .type = HD_COL_TEXT},
                               [HD_WRITES_NS] = {.name = "checkpoint_ns", .type = HD_COL_TEXT},
                               [HD_WRITES_CHECKPOINT] = {.name = "checkpoint_id",
                                                         .type = HD_COL_TEXT},
                               [HD_WRITES_TASK] = {.name = "task_id", .type = HD_COL_TEXT},
                               [HD_WRITES_IDX] = {.name = "idx", .type = HD_COL_INT},
                               [HD_WRITES_PATH] = {.name = "task_path", .type = HD_COL_TEXT},
                               [HD_WRITES_CHANNEL] = {.name = "channel", .type = HD_COL_TEXT},
                               [HD_WRITES_TYPE] = {.name = "type", .type = HD_COL_TEXT},
                               [HD_WRITES_VALUE] = {.name = "value", .type = HD_COL_BLOB}}},
    [HD_CHUNKS] = {.name = "chunks",
                   .key_count = 3,
                   .column_count = 5,
                   .columns = {[HD_CHUNKS_THREAD] = {.name = "thread_id", .type = HD_COL_TEXT},
                               [HD_CHUNKS_STREAM] = {.name = "stream", .type = HD_COL_TEXT},
                               [HD_CHUNKS_SEQ] = {.name = "seq", .type = HD_COL_INT},
                               [HD_CHUNKS_HASH] = {.name = "hash", .type = HD_COL_BLOB},
                               [HD_CHUNKS_DATA] = {.name = "data", .type = HD_COL_BLOB}},
                   .is_wide = true},
};

int hd_cell_cmp(const struct hd_cell *a, const struct hd_cell *b)
{
    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    switch (a->kind) {
    case HD_CELL_NULL:
        return 0;
    case HD_CELL_INT:
        return a->number < b->number ? -1 : a->number > b->number;
    case HD_CELL_BYTES:
        return hd_slice_cmp(a->bytes, b->bytes);
    }
    return 0;
}

int hd_cells_cmp(const struct hd_cell *a, const struct hd_cell *b, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        int order = hd_cell_cmp(&a[i], &b[i]);

        if (order != 0)
            return order;
    }
    return 0;
}
