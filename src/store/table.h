/*
 * The tables of the store, declared once. Backends create and address them
 * from these declarations; nothing else in the tree names a column.
 *
 * A row is an array of cells in column order. The first `key_count` columns
 * are the primary key, ordered column by column: TEXT by bytes, INT by value.
 */
#ifndef HD_STORE_TABLE_H
#define HD_STORE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

#define HD_SCHEMA_VERSION 1
#define HD_MAX_COLUMNS 9
#define HD_MAX_INDEX_COLUMNS 5

enum hd_table_id { HD_THREADS, HD_CHECKPOINTS, HD_WRITES, HD_CHUNKS, HD_TABLE_COUNT };

enum hd_column_type {
    HD_COL_TEXT, /* arbitrary bytes that are usually text */
    HD_COL_INT,
    HD_COL_BLOB
};

struct hd_column {
    const char *name;
    enum hd_column_type type;
    bool nullable;
};

/*
 * An ordered secondary index over some columns; rows whose first indexed column is null are not in
 * it.
 */
struct hd_index {
    const char *name;
    unsigned column_count;
    unsigned columns[HD_MAX_INDEX_COLUMNS];
};

struct hd_table {
    const char *name;
    unsigned key_count;
    unsigned column_count;
    struct hd_column columns[HD_MAX_COLUMNS];
    unsigned index_count;
    struct hd_index indexes[1];
    bool is_wide; /* rows carry long blobs: a backend may keep key and row apart */
};

extern const struct hd_table hd_tables[HD_TABLE_COUNT];

/* Columns, by the name of their table. */
enum { HD_THREADS_ID, HD_THREADS_EPOCH, HD_THREADS_CREATED, HD_THREADS_UPDATED };
enum {
    HD_CHECKPOINTS_THREAD,
    HD_CHECKPOINTS_NS,
    HD_CHECKPOINTS_ID,
    HD_CHECKPOINTS_PARENT,
    HD_CHECKPOINTS_RUN,
    HD_CHECKPOINTS_METADATA,
    HD_CHECKPOINTS_BODY
};
enum { HD_CHECKPOINTS_BY_RUN }; /* index: run, thread, ns, id */
enum {
    HD_WRITES_THREAD,
    HD_WRITES_NS,
    HD_WRITES_CHECKPOINT,
    HD_WRITES_TASK,
    HD_WRITES_IDX,
    HD_WRITES_PATH,
    HD_WRITES_CHANNEL,
    HD_WRITES_TYPE,
    HD_WRITES_VALUE
};
enum { HD_CHUNKS_THREAD, HD_CHUNKS_STREAM, HD_CHUNKS_SEQ, HD_CHUNKS_HASH, HD_CHUNKS_DATA };

struct hd_cell {
    enum hd_cell_kind { HD_CELL_NULL, HD_CELL_INT, HD_CELL_BYTES } kind;
    int64_t number;
    struct hd_slice bytes;
};

static inline struct hd_cell hd_cell_null(void)
{
    return (struct hd_cell){.kind = HD_CELL_NULL};
}

static inline struct hd_cell hd_cell_int(int64_t number)
{
    return (struct hd_cell){.kind = HD_CELL_INT, .number = number};
}

static inline struct hd_cell hd_cell_bytes(struct hd_slice bytes)
{
    return (struct hd_cell){.kind = HD_CELL_BYTES, .bytes = bytes};
}

/* Order of two cells of one column: null first, then by value or by bytes. */
int hd_cell_cmp(const struct hd_cell *a, const struct hd_cell *b);

/* Order of the first `count` cells. */
int hd_cells_cmp(const struct hd_cell *a, const struct hd_cell *b, size_t count);

#endif
