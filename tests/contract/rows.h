/*
 * Shared by the tests of the row layer: opening a URL, building rows and operations in a line, and
 * a whole database as a list that can be compared.
 */
#ifndef HD_TESTS_CONTRACT_ROWS_H
#define HD_TESTS_CONTRACT_ROWS_H

#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "store/backend.h"
#include "tests/unit/check.h"

#define T(literal) hd_cell_bytes(HD_S(literal))
#define N(number) hd_cell_int(number)
#define NIL hd_cell_null()

/* Rows as arrays of cells, usable where an operation wants them. */
#define CELLS(...) ((const struct hd_cell[]){__VA_ARGS__})
#define THREAD(id, epoch) CELLS(T(id), N(epoch), N(100), N(200))
#define CHECKPOINT(thread, id, run) CELLS(T(thread), T(""), T(id), NIL, run, T("{}"), T("body"))
#define WRITE(thread, id, idx, value) \
    CELLS(T(thread), T(""), T(id), T("task"), N(idx), T("path"), T("channel"), T("json"), T(value))
#define CHUNK(thread, seq, data) CELLS(T(thread), T("messages"), N(seq), T("hash"), T(data))

#define PUT(id, row)                                 \
    {                                                \
        .kind = HD_OP_PUT, .table = id, .cells = row \
    }
#define PUT_NEW(id, row)                                 \
    {                                                    \
        .kind = HD_OP_PUT_NEW, .table = id, .cells = row \
    }
#define ADD(id, row)                                 \
    {                                                \
        .kind = HD_OP_ADD, .table = id, .cells = row \
    }
#define DELETE(id, count, key)                                              \
    {                                                                       \
        .kind = HD_OP_DELETE, .table = id, .cells = key, .key_count = count \
    }
#define EXPECT(thread, number)                                                \
    {                                                                         \
        .kind = HD_OP_EXPECT, .table = HD_THREADS, .cells = CELLS(T(thread)), \
        .column = HD_THREADS_EPOCH, .expected = number                        \
    }
#define EXPECT_SET(thread, number, first, count, ...)                                            \
    {                                                                                            \
        .kind = HD_OP_EXPECT, .table = HD_THREADS, .cells = CELLS(T(thread)),                    \
        .column = HD_THREADS_EPOCH, .expected = number, .set_column = first, .set_count = count, \
        .set = {                                                                                 \
            __VA_ARGS__                                                                          \
        }                                                                                        \
    }

/* Applies a list of operations and returns the code. */
#define APPLY(backend, ...)                                 \
    apply_ops(backend, (const struct hd_op[]){__VA_ARGS__}, \
              sizeof((const struct hd_op[]){__VA_ARGS__}) / sizeof(struct hd_op))

static size_t last_failed; /* index of the operation in the way, after a conflict */

static inline int apply_ops(struct hd_backend *backend, const struct hd_op *ops, size_t count)
{
    struct hd_batch batch = {ops, count};
    struct heddle_error fault = {0};
    int err;

    last_failed = SIZE_MAX;
    err = hd_backend_apply(backend, &batch, &last_failed, &fault);
    assert_int_equal(fault.code, err);
    assert_true(err == 0 || fault.text[0] != '\0');
    return err;
}

static inline int open_url(struct hd_backend **out, const char *text, struct heddle_error *fault)
{
    struct hd_arena arena;
    struct hd_url url;
    int err;

    hd_arena_init(&arena, 1 << 16);
    err = hd_url_parse(&url, text, &arena, fault);
    if (!err)
        err = hd_backend_open(out, &url, fault);
    hd_arena_fini(&arena);
    return err;
}

static inline struct hd_backend *must_open(const char *url)
{
    struct hd_backend *backend = NULL;
    struct heddle_error fault = {0};
    int err = open_url(&backend, url, &fault);

    if (err)
        fail_msg("%s: %s", url, fault.text);
    return backend;
}

/* ---- rows that stay --------------------------------------------------- */

struct kept_row {
    size_t which;
    struct hd_cell cells[HD_MAX_COLUMNS];
};

struct kept {
    struct hd_arena arena;
    struct kept_row *rows;
    size_t count;
    size_t cap;
    const enum hd_table_id *tables; /* of each query */
};

static inline int keep_row(void *arg, size_t which, const struct hd_cell *cells)
{
    struct kept *kept = arg;
    struct kept_row *row;

    if (kept->count == kept->cap) {
        kept->cap = kept->cap ? kept->cap * 2 : 64;
        kept->rows = realloc(kept->rows, kept->cap * sizeof(*kept->rows));
        assert_non_null(kept->rows);
    }
    row = &kept->rows[kept->count++];
    memset(row, 0, sizeof(*row));
    row->which = which;
    for (unsigned i = 0; i < hd_tables[kept->tables[which]].column_count; i++) {
        row->cells[i] = cells[i];
        if (cells[i].kind == HD_CELL_BYTES)
            assert_int_equal(hd_arena_copy(&kept->arena, cells[i].bytes, &row->cells[i].bytes), 0);
    }
    return 0;
}

static inline void kept_init(struct kept *kept, const enum hd_table_id *tables)
{
    *kept = (struct kept){.tables = tables};
    hd_arena_init(&kept->arena, (size_t)1 << 30);
}

static inline void kept_fini(struct kept *kept)
{
    hd_arena_fini(&kept->arena);
    free(kept->rows);
}

/* Every table, at its own number. */
static const enum hd_table_id each_table[] = {
    HD_THREADS,      HD_CHECKPOINTS,   HD_WRITES,
    HD_CHUNKS,       HD_ASSISTANTS,    HD_ASSISTANT_VERSIONS,
    HD_THREAD_INFO,  HD_RUNS,          HD_EVENT_PAGES,
    HD_ITEMS,        HD_CRONS,         HD_EXCHANGES,
    HD_PRINCIPALS,   HD_PARTICIPANTS,  HD_INVITATIONS,
    HD_API_KEYS,     HD_VECTORS,       HD_THREAD_TEXTS,
    HD_THREAD_WORDS, HD_SERVERS,       HD_OUTBOX,
    HD_LINES,        HD_HOLDS,         HD_RUN_SLOTS,
    HD_ROOM,         HD_ROOM_MESSAGES, HD_ROOM_CONTENTS,
    HD_ROOM_IDS,     HD_ROOM_RUNS,     HD_ROOM_CASCADES,
    HD_ROOM_READS,   HD_ROOM_MENTIONS};

_Static_assert(HD_COUNT(each_table) == HD_TABLE_COUNT, "a table is missing");

/* Everything there is; each index behind its table, as one more list. */
static inline void keep_all(struct hd_backend *backend, struct kept *kept)
{
    static enum hd_table_id tables[HD_TABLE_COUNT * (1 + HD_MAX_INDEXES)];
    struct hd_query queries[HD_COUNT(tables)];
    struct heddle_error fault = {0};
    size_t count = 0;

    for (size_t i = 0; i < HD_COUNT(each_table); i++) {
        for (int index = HD_PRIMARY; index < (int)hd_tables[i].index_count; index++, count++) {
            tables[count] = each_table[i];
            queries[count] = (struct hd_query){
                .table = each_table[i], .index = index, .columns = HD_ALL_COLUMNS};
        }
    }
    kept_init(kept, tables);
    if (hd_backend_read(backend, queries, count, keep_row, kept, &fault) != 0)
        fail_msg("%s", fault.text);
}

/*
 * Row number `n` of any table. Columns repeat after different counts, so that every
 * prefix of a key or an index has several rows; the last one of the key never does.
 * Where a column may be null every third row is. `room` holds the texts.
 */
static inline void make_row(enum hd_table_id id, int n, struct hd_cell cells[HD_MAX_COLUMNS],
                            char room[HD_MAX_COLUMNS][8])
{
    const struct hd_table *table = &hd_tables[id];

    for (unsigned i = 0; i < table->column_count; i++) {
        bool is_last = i + 1 == table->key_count;
        int value = is_last ? n : n * 7 % (int)(2 + i);

        if (table->columns[i].nullable && n % 3 == 0) {
            cells[i] = hd_cell_null();
        } else if (table->columns[i].type == HD_COL_INT) {
            cells[i] = hd_cell_int(is_last ? n : (value - 2) * 1000000007ll);
        } else {
            int len = snprintf(room[i], sizeof(room[i]), "%c%d", "xyz"[value % 3], value / 3);

            cells[i] = hd_cell_bytes(hd_slice(room[i], (size_t)len));
        }
    }
}

static inline void assert_same_rows(const struct kept *got, const struct kept *expected)
{
    assert_int_equal(got->count, expected->count);
    for (size_t i = 0; i < got->count; i++) {
        assert_int_equal(got->rows[i].which, expected->rows[i].which);
        assert_int_equal(hd_cells_cmp(got->rows[i].cells, expected->rows[i].cells, HD_MAX_COLUMNS),
                         0);
    }
}

/* How many rows of a table begin with these key cells. */
static inline int count_row(void *arg, size_t which, const struct hd_cell *cells)
{
    (void)which;
    (void)cells;
    ++*(size_t *)arg;
    return 0;
}

static inline size_t count_rows(struct hd_backend *backend, enum hd_table_id table,
                                const struct hd_cell *prefix, unsigned prefix_count)
{
    struct hd_query query = {
        .table = table, .index = HD_PRIMARY, .prefix = prefix, .prefix_count = prefix_count};
    size_t count = 0;

    assert_int_equal(hd_backend_read(backend, &query, 1, count_row, &count, NULL), 0);
    return count;
}

/* The database counts as many rows; of queries that can be counted, and not of each resumed one. */
static inline void check_count(struct hd_backend *backend, const struct hd_query *query,
                               size_t expected)
{
    int64_t count;

    if (query->limit || query->after_count)
        return;
    assert_int_equal(hd_backend_count(backend, *query, &count, NULL), 0);
    assert_int_equal(count, expected);
}

/* The one row with this key; fails when it does not exist. The caller releases `kept`. */
static inline const struct hd_cell *find_row(struct hd_backend *backend, struct kept *kept,
                                             enum hd_table_id table, const struct hd_cell *key)
{
    struct hd_query query = {.table = table,
                             .index = HD_PRIMARY,
                             .prefix = key,
                             .prefix_count = hd_tables[table].key_count,
                             .columns = HD_ALL_COLUMNS};

    kept_init(kept, &each_table[table]);
    assert_int_equal(hd_backend_read(backend, &query, 1, keep_row, kept, NULL), 0);
    assert_int_equal(kept->count, 1);
    return kept->rows[0].cells;
}

/* Deletes everything, through the public interface. */
static inline void wipe(struct hd_backend *backend)
{
    struct kept kept;

    keep_all(backend, &kept);
    for (size_t i = 0; i < kept.count; i++) {
        struct hd_op op = {.kind = HD_OP_DELETE,
                           .table = kept.tables[kept.rows[i].which],
                           .cells = kept.rows[i].cells,
                           .key_count = 1};

        assert_int_equal(apply_ops(backend, &op, 1), 0);
    }
    kept_fini(&kept);
}

#endif
