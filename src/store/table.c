#include "store/table.h"

#define TEXT(column) {.name = column, .type = HD_COL_TEXT}
#define TEXT_OR_NULL(column) {.name = column, .type = HD_COL_TEXT, .nullable = true}
#define INT(column) {.name = column, .type = HD_COL_INT}
#define BLOB(column) {.name = column, .type = HD_COL_BLOB}

/* `thread_id` is everywhere the thread key, `principal:thread_id`. */
const struct hd_table hd_tables[HD_TABLE_COUNT] = {
    [HD_THREADS] = {.name = "threads",
                    .key_count = 1,
                    .column_count = 4,
                    .columns = {[HD_THREADS_ID] = TEXT("thread_id"),
                                [HD_THREADS_EPOCH] = INT("epoch"),
                                [HD_THREADS_CREATED] = INT("created_at"),
                                [HD_THREADS_UPDATED] = INT("updated_at")}},
    [HD_CHECKPOINTS] = {.name = "checkpoints",
                        .key_count = 3,
                        .column_count = 7,
                        .columns = {[HD_CHECKPOINTS_THREAD] = TEXT("thread_id"),
                                    [HD_CHECKPOINTS_NS] = TEXT("checkpoint_ns"),
                                    [HD_CHECKPOINTS_ID] = TEXT("checkpoint_id"),
                                    [HD_CHECKPOINTS_PARENT] = TEXT_OR_NULL("parent_checkpoint_id"),
                                    [HD_CHECKPOINTS_RUN] = TEXT_OR_NULL("run_id"),
                                    [HD_CHECKPOINTS_METADATA] = TEXT("metadata"),
                                    [HD_CHECKPOINTS_BODY] = BLOB("checkpoint")},
                        .index_count = 1,
                        .indexes = {[HD_CHECKPOINTS_BY_RUN] =
                                        {.name = "checkpoints_by_run",
                                         .column_count = 4,
                                         .columns = {HD_CHECKPOINTS_RUN, HD_CHECKPOINTS_THREAD,
                                                     HD_CHECKPOINTS_NS, HD_CHECKPOINTS_ID}}},
                        .is_wide = true},
    [HD_WRITES] = {.name = "writes",
                   .key_count = 5,
                   .column_count = 9,
                   .columns = {[HD_WRITES_THREAD] = TEXT("thread_id"),
                               [HD_WRITES_NS] = TEXT("checkpoint_ns"),
                               [HD_WRITES_CHECKPOINT] = TEXT("checkpoint_id"),
                               [HD_WRITES_TASK] = TEXT("task_id"),
                               [HD_WRITES_IDX] = INT("idx"),
                               [HD_WRITES_PATH] = TEXT("task_path"),
                               [HD_WRITES_CHANNEL] = TEXT("channel"),
                               [HD_WRITES_TYPE] = TEXT("type"),
                               [HD_WRITES_VALUE] = BLOB("value")}},
    [HD_CHUNKS] = {.name = "chunks",
                   .key_count = 3,
                   .column_count = 5,
                   .columns = {[HD_CHUNKS_THREAD] = TEXT("thread_id"),
                               [HD_CHUNKS_STREAM] = TEXT("stream"),
                               [HD_CHUNKS_SEQ] = INT("seq"),
                               [HD_CHUNKS_HASH] = BLOB("hash"),
                               [HD_CHUNKS_DATA] = BLOB("data")},
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
