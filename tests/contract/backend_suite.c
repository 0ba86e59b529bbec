/*
 * The contract of store/backend.h, case by case, the same on every driver: in memory, SQLite in a
 * file and in memory, and each URL that the environment variable HEDDLE_TEST_URLS names, separated
 * by spaces. Deletes all rows of those databases.
 */
#include "tests/contract/rows.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <unistd.h>

/* ---- single operations ------------------------------------------------ */

static void put_inserts_and_replaces(struct hd_backend *backend)
{
    struct kept kept;

    assert_err(APPLY(backend, PUT(HD_CHUNKS, CHUNK("t", 1, "one"))), 0);
    assert_slice(find_row(backend, &kept, HD_CHUNKS, CHUNK("t", 1, ""))[HD_CHUNKS_DATA].bytes,
                 HD_S("one"));
    kept_fini(&kept);
    assert_err(APPLY(backend, PUT(HD_CHUNKS, CHUNK("t", 1, "another, longer"))), 0);
    assert_slice(find_row(backend, &kept, HD_CHUNKS, CHUNK("t", 1, ""))[HD_CHUNKS_DATA].bytes,
                 HD_S("another, longer"));
    kept_fini(&kept);
    assert_int_equal(count_rows(backend, HD_CHUNKS, NULL, 0), 1);
}

static void put_new_keeps_the_first(struct hd_backend *backend)
{
    struct kept kept;

    assert_err(APPLY(backend, PUT_NEW(HD_WRITES, WRITE("t", "c", 0, "first"))), 0);
    assert_err(APPLY(backend, PUT_NEW(HD_WRITES, WRITE("t", "c", 0, "second")),
                     PUT_NEW(HD_WRITES, WRITE("t", "c", 1, "beside"))),
               0);
    assert_slice(find_row(backend, &kept, HD_WRITES, WRITE("t", "c", 0, ""))[HD_WRITES_VALUE].bytes,
                 HD_S("first"));
    kept_fini(&kept);
    assert_int_equal(count_rows(backend, HD_WRITES, NULL, 0), 2);
}

static void add_refuses_an_existing_row(struct hd_backend *backend)
{
    struct kept kept;

    for (size_t i = 0; i < HD_COUNT(each_table); i++) {
        struct hd_cell row[HD_MAX_COLUMNS];
        char room[HD_MAX_COLUMNS][8];

        make_row(each_table[i], 1, row, room);
        assert_err(APPLY(backend, ADD(each_table[i], row)), 0);
        assert_err(APPLY(backend, ADD(each_table[i], row)), HD_ECONFLICT);
        assert_int_equal(last_failed, 0);
    }
    wipe(backend);
    assert_err(APPLY(backend, ADD(HD_CHUNKS, CHUNK("t", 1, "d"))), 0);
    assert_err(APPLY(backend, PUT(HD_CHUNKS, CHUNK("t", 2, "new")),
                     ADD(HD_CHUNKS, CHUNK("t", 1, "other"))),
               HD_ECONFLICT);
    assert_int_equal(last_failed, 1);
    assert_slice(find_row(backend, &kept, HD_CHUNKS, CHUNK("t", 1, ""))[HD_CHUNKS_DATA].bytes,
                 HD_S("d"));
    kept_fini(&kept);
    assert_int_equal(count_rows(backend, HD_CHUNKS, NULL, 0), 1);
}

/* Three values in each key column of writes: all 3^5 rows. */
static void fill_writes(struct hd_backend *backend)
{
    static const struct hd_slice names[] = {{"a", 1}, {"b", 1}, {"bb", 2}};
    struct hd_cell rows[243][9];
    struct hd_op ops[243];

    for (size_t i = 0; i < 243; i++) {
        size_t rest = i;

        for (size_t column = 0; column < 4; column++, rest /= 3)
            rows[i][column] = hd_cell_bytes(names[rest % 3]);
        rows[i][4] = N((int64_t)rest - 1);
        for (size_t column = 5; column < 9; column++)
            rows[i][column] = T("v");
        ops[i] = (struct hd_op)PUT(HD_WRITES, rows[i]);
    }
    assert_err(apply_ops(backend, ops, 243), 0);
}

static void delete_takes_all_rows_with_the_prefix(struct hd_backend *backend)
{
    const struct hd_cell key[] = {T("b"), T("bb"), T("a"), T("b"), N(1)};
    size_t expected = 1;

    for (unsigned count = 5; count >= 1; count--) {
        fill_writes(backend);
        assert_int_equal(count_rows(backend, HD_WRITES, NULL, 0), 243);
        assert_int_equal(count_rows(backend, HD_WRITES, key, count), expected);
        assert_err(APPLY(backend, DELETE(HD_WRITES, count, key)), 0);
        assert_int_equal(count_rows(backend, HD_WRITES, key, count), 0);
        assert_int_equal(count_rows(backend, HD_WRITES, NULL, 0), 243 - expected);
        expected *= 3;
    }
    assert_err(APPLY(backend, DELETE(HD_WRITES, 1, CELLS(T("none")))), 0);
    assert_err(APPLY(backend, DELETE(HD_THREADS, 1, CELLS(T("none")))), 0);
}

static void expect_wants_the_number(struct hd_backend *backend)
{
    assert_err(APPLY(backend, EXPECT("t", 0)), HD_ECONFLICT);
    assert_err(APPLY(backend, PUT(HD_THREADS, THREAD("t", 7)), PUT(HD_THREADS, THREAD("u", 8))), 0);
    assert_err(APPLY(backend, EXPECT("t", 7)), 0);
    assert_err(APPLY(backend, EXPECT("t", 8)), HD_ECONFLICT);
    assert_int_equal(last_failed, 0);
    assert_err(APPLY(backend, EXPECT("u", 8), EXPECT("t", 7), EXPECT("none", 7)), HD_ECONFLICT);
    assert_int_equal(last_failed, 2);
}

static void assert_thread(struct hd_backend *backend, int64_t epoch, int64_t created,
                          int64_t updated)
{
    struct kept kept;
    const struct hd_cell *row = find_row(backend, &kept, HD_THREADS, CELLS(T("t")));

    assert_int_equal(row[HD_THREADS_EPOCH].number, epoch);
    assert_int_equal(row[HD_THREADS_CREATED].number, created);
    assert_int_equal(row[HD_THREADS_UPDATED].number, updated);
    kept_fini(&kept);
}

static void expect_sets_numbers(struct hd_backend *backend)
{
    assert_err(APPLY(backend, PUT(HD_THREADS, THREAD("t", 7)), PUT(HD_THREADS, THREAD("u", 7))), 0);
    assert_err(APPLY(backend, EXPECT_SET("t", 7, HD_THREADS_UPDATED, 1, INT64_MAX)), 0);
    assert_thread(backend, 7, 100, INT64_MAX);
    assert_err(APPLY(backend, EXPECT_SET("t", 7, HD_THREADS_EPOCH, 2, 8, INT64_MIN)), 0);
    assert_thread(backend, 8, INT64_MIN, INT64_MAX);
    assert_err(APPLY(backend, EXPECT_SET("t", 7, HD_THREADS_EPOCH, 1, 9)), HD_ECONFLICT);
    assert_thread(backend, 8, INT64_MIN, INT64_MAX);
    assert_err(APPLY(backend, EXPECT("u", 7)), 0);
    /* The same number again is still a match. */
    assert_err(APPLY(backend, EXPECT_SET("t", 8, HD_THREADS_EPOCH, 1, 8)), 0);
}

/* ---- batches ---------------------------------------------------------- */

static void later_operations_see_earlier_ones(struct hd_backend *backend)
{
    assert_err(APPLY(backend, PUT_NEW(HD_THREADS, THREAD("t", 1)),
                     EXPECT_SET("t", 1, HD_THREADS_EPOCH, 1, 2),
                     EXPECT_SET("t", 2, HD_THREADS_EPOCH, 1, 3), EXPECT("t", 3)),
               0);
    assert_err(APPLY(backend, EXPECT_SET("t", 3, HD_THREADS_EPOCH, 1, 4), EXPECT("t", 3)),
               HD_ECONFLICT);
    assert_int_equal(last_failed, 1);
    assert_err(APPLY(backend, DELETE(HD_THREADS, 1, CELLS(T("t"))), EXPECT("t", 3)), HD_ECONFLICT);
    assert_int_equal(last_failed, 1);
    assert_thread(backend, 3, 100, 200);
    assert_err(APPLY(backend, DELETE(HD_THREADS, 1, CELLS(T("t"))),
                     ADD(HD_THREADS, THREAD("t", 10)), PUT_NEW(HD_THREADS, THREAD("t", 11)),
                     EXPECT("t", 10), PUT(HD_THREADS, THREAD("t", 12)), EXPECT("t", 12)),
               0);
    assert_err(APPLY(backend, ADD(HD_THREADS, THREAD("u", 1)), ADD(HD_THREADS, THREAD("u", 1))),
               HD_ECONFLICT);
    assert_int_equal(last_failed, 1);
    assert_int_equal(count_rows(backend, HD_THREADS, NULL, 0), 1);
    assert_err(APPLY(backend, ADD(HD_CHUNKS, CHUNK("t", 1, "a")),
                     ADD(HD_CHUNKS, CHUNK("t", 2, "b")), DELETE(HD_CHUNKS, 2, CHUNK("t", 0, "")),
                     ADD(HD_CHUNKS, CHUNK("t", 2, "c"))),
               0);
    assert_int_equal(count_rows(backend, HD_CHUNKS, NULL, 0), 1);
}

static void a_conflict_changes_nothing(struct hd_backend *backend)
{
    struct kept before, after;

    fill_writes(backend);
    assert_err(APPLY(backend, PUT(HD_THREADS, THREAD("t", 1)),
                     PUT(HD_CHECKPOINTS, CHECKPOINT("t", "c1", T("run"))),
                     PUT(HD_CHECKPOINTS, CHECKPOINT("t", "c2", NIL)),
                     PUT(HD_CHUNKS, CHUNK("t", 1, "data"))),
               0);
    keep_all(backend, &before);
    assert_int_equal(before.count, 243 + 4 + 1);
    assert_err(
        APPLY(backend, PUT(HD_CHECKPOINTS, CHECKPOINT("t", "c1", T("other"))),
              PUT(HD_CHECKPOINTS, CHECKPOINT("t", "c2", T("run"))),
              PUT(HD_CHECKPOINTS, CHECKPOINT("t", "c3", T("run"))),
              PUT(HD_CHECKPOINTS, CHECKPOINT("t", "c1", NIL)), DELETE(HD_WRITES, 1, CELLS(T("a"))),
              ADD(HD_CHUNKS, CHUNK("t", 2, "more")), PUT(HD_CHUNKS, CHUNK("t", 1, "changed")),
              DELETE(HD_CHUNKS, 1, CELLS(T("t"))), ADD(HD_CHUNKS, CHUNK("t", 1, "again")),
              EXPECT_SET("t", 1, HD_THREADS_EPOCH, 2, 2, 3), PUT_NEW(HD_THREADS, THREAD("u", 1)),
              DELETE(HD_THREADS, 1, CELLS(T("t"))), ADD(HD_THREADS, THREAD("u", 1))),
        HD_ECONFLICT);
    assert_int_equal(last_failed, 12);
    keep_all(backend, &after);
    assert_same_rows(&after, &before);
    kept_fini(&before);
    kept_fini(&after);
}

static void an_empty_batch_is_fine(struct hd_backend *backend)
{
    struct hd_batch batch = {NULL, 0};

    assert_err(hd_backend_apply(backend, &batch, NULL, NULL), 0);
    assert_err(hd_backend_read(backend, NULL, 0, count_row, NULL, NULL), 0);
}

static void oversized_input_is_rejected(struct hd_backend *backend)
{
    const struct hd_cell low = N(1);
    struct hd_query queries[] = {
        {.table = HD_THREADS, .index = 0},
        {.table = HD_THREADS, .index = HD_PRIMARY, .prefix = CELLS(N(1)), .prefix_count = 1},
        {.table = HD_THREADS, .index = HD_PRIMARY, .prefix = CELLS(NIL), .prefix_count = 1},
        {.table = HD_THREADS, .index = HD_PRIMARY, .low = &low},
        {.table = HD_THREADS, .index = HD_PRIMARY, .after = CELLS(T("a"), N(1)), .after_count = 2},
    };

    assert_err(APPLY(backend, PUT(HD_THREADS, THREAD("t", 1)),
                     PUT(HD_THREADS, CELLS(T("u"), NIL, N(1), N(1)))),
               HD_EINVAL);
    assert_err(APPLY(backend, PUT(HD_THREADS, CELLS(T("u"), T("1"), N(1), N(1)))), HD_EINVAL);
    assert_err(APPLY(backend, PUT(HD_THREADS, CELLS(N(1), N(1), N(1), N(1)))), HD_EINVAL);
    assert_err(APPLY(backend, DELETE(HD_THREADS, 0, CELLS(T("t")))), HD_EINVAL);
    assert_err(APPLY(backend, DELETE(HD_THREADS, 2, CELLS(T("t"), N(1)))), HD_EINVAL);
    assert_err(APPLY(backend, EXPECT_SET("t", 1, HD_THREADS_UPDATED, 2, 1, 2)), HD_EINVAL);
    assert_err(APPLY(backend, EXPECT_SET("t", 1, HD_THREADS_ID, 1, 1)), HD_EINVAL);
    for (size_t i = 0; i < HD_COUNT(queries); i++)
        assert_err(hd_backend_read(backend, &queries[i], 1, count_row, NULL, NULL), HD_EINVAL);
    assert_int_equal(count_rows(backend, HD_THREADS, NULL, 0), 0);
}

/* ---- scans, against the plainest way to answer them ------------------- */

/* True when the row matches the query, column by column, as backend.h defines it. */
static bool is_in_range(const struct hd_query *q, const struct hd_cell *row)
{
    int order = 0;

    for (unsigned i = 0; i < q->prefix_count; i++) {
        if (hd_cell_cmp(&row[hd_query_order_column(q, i)], &q->prefix[i]) != 0)
            return false;
    }
    if (q->low && hd_cell_cmp(&row[hd_query_order_column(q, q->prefix_count)], q->low) < 0)
        return false;
    if (q->high && hd_cell_cmp(&row[hd_query_order_column(q, q->prefix_count)], q->high) >= 0)
        return false;
    for (unsigned i = 0; order == 0 && i < q->after_count; i++)
        order = hd_cell_cmp(&row[hd_query_order_column(q, q->prefix_count + i)], &q->after[i]);
    return q->after_count == 0 || (q->is_reverse ? order < 0 : order > 0);
}

static const struct hd_query *sort_order;

static int compare_rows(const void *a, const void *b)
{
    const struct kept_row *left = a, *right = b;

    for (unsigned i = 0; i < hd_query_order_count(sort_order); i++) {
        unsigned column = hd_query_order_column(sort_order, i);
        int order = hd_cell_cmp(&left->cells[column], &right->cells[column]);

        if (order != 0)
            return sort_order->is_reverse ? -order : order;
    }
    return 0;
}

struct expectation {
    const struct hd_query *query;
    const struct kept_row *rows; /* in scan order */
    size_t count;
    size_t next;
    size_t answered;
};

static int expect_next(void *arg, size_t which, const struct hd_cell *cells)
{
    struct expectation *e = arg;
    const struct hd_table *table = &hd_tables[e->query->table];

    assert_int_equal(which, 0);
    while (e->next < e->count && !is_in_range(e->query, e->rows[e->next].cells))
        e->next++;
    assert_true(e->next < e->count);
    for (unsigned i = 0; i < table->column_count; i++) {
        if (i < table->key_count || (e->query->columns >> i & 1))
            assert_int_equal(hd_cell_cmp(&cells[i], &e->rows[e->next].cells[i]), 0);
    }
    e->next++;
    e->answered++;
    return 0;
}

/* `rows` are all rows there are, in scan order. */
static void check_scan(struct hd_backend *backend, const struct hd_query *query,
                       const struct kept *rows)
{
    struct expectation e = {.query = query, .rows = rows->rows, .count = rows->count};
    struct heddle_error fault = {0};
    size_t expected = 0;

    if (hd_backend_read(backend, query, 1, expect_next, &e, &fault) != 0)
        fail_msg("%s", fault.text);
    for (size_t i = 0; i < rows->count; i++)
        expected += is_in_range(query, rows->rows[i].cells);
    check_count(backend, query, expected);
    assert_int_equal(e.answered, query->limit && expected > query->limit ? query->limit : expected);
}

/* The cells in which `row` is a place to stand: those of the ordering columns from `first` on. */
static void cells_of(const struct hd_query *query, const struct kept_row *row, unsigned first,
                     struct hd_cell out[HD_MAX_COLUMNS])
{
    for (unsigned i = first; i < hd_query_order_count(query); i++)
        out[i - first] = row->cells[hd_query_order_column(query, i)];
}

/* Every combination of bounds around a few rows as landmarks, for one prefix length. */
static void check_bounds(struct hd_backend *backend, struct hd_query query, const struct kept *rows,
                         const struct kept_row *here, const struct kept_row *there)
{
    unsigned rest = hd_query_order_count(&query) - query.prefix_count;
    struct hd_cell from[HD_MAX_COLUMNS], to[HD_MAX_COLUMNS];

    cells_of(&query, here, query.prefix_count, from);
    cells_of(&query, there, query.prefix_count, to);
    for (unsigned bounds = 0; bounds < (rest ? 4 : 1); bounds++) {
        query.low = bounds & 1 ? &from[0] : NULL;
        query.high = bounds & 2 ? &to[0] : NULL;
        for (unsigned after = 0; after <= rest; after++) {
            query.after_count = after;
            query.after = after & 1 ? to : from;
            for (query.limit = 0; query.limit < 4; query.limit += 3)
                check_scan(backend, &query, rows);
        }
    }
}

/* Rows whose first ordering column is null are not in an index, and no place to stand either. */
static void drop_unordered(const struct hd_query *query, struct kept *rows)
{
    size_t kept = 0;

    for (size_t i = 0; i < rows->count; i++) {
        if (rows->rows[i].cells[hd_query_order_column(query, 0)].kind != HD_CELL_NULL)
            rows->rows[kept++] = rows->rows[i];
    }
    rows->count = kept;
}

static void check_scans(struct hd_backend *backend, enum hd_table_id table, int index)
{
    for (int reverse = 0; reverse < 2; reverse++) {
        struct hd_query query = {
            .table = table, .index = index, .is_reverse = reverse, .columns = HD_ALL_COLUMNS};
        struct hd_query all = {.table = table, .index = HD_PRIMARY, .columns = HD_ALL_COLUMNS};
        struct kept rows;

        kept_init(&rows, &each_table[table]);
        assert_err(hd_backend_read(backend, &all, 1, keep_row, &rows, NULL), 0);
        drop_unordered(&query, &rows);
        assert_true(rows.count > 0);
        sort_order = &query;
        qsort(rows.rows, rows.count, sizeof(rows.rows[0]), compare_rows);
        for (size_t i = 0; i < rows.count; i += 1 + rows.count / 9) {
            const struct kept_row *here = &rows.rows[i];
            struct hd_cell prefix[HD_MAX_COLUMNS];

            cells_of(&query, here, 0, prefix);
            query.prefix = prefix;
            for (unsigned n = 0; n <= hd_query_order_count(&query); n++) {
                query.prefix_count = n;
                query.columns = n & 1 ? HD_ALL_COLUMNS : 1u << (n + 1);
                check_bounds(backend, query, &rows, here, &rows.rows[rows.count * 2 / 3]);
                check_bounds(backend, query, &rows, here, here);
            }
        }
        kept_fini(&rows);
    }
}

static void scans_of_writes_answer_every_shape(struct hd_backend *backend)
{
    fill_writes(backend);
    check_scans(backend, HD_WRITES, HD_PRIMARY);
}

/* 4 threads, 3 namespaces, 5 checkpoints, one in three without a run. */
static void fill_checkpoints(struct hd_backend *backend)
{
    static const struct hd_slice threads[] = {{"t", 1}, {"t:1", 3}, {"", 0}, {"u", 1}};
    static const struct hd_slice names[] = {{"", 0}, {"a|b", 3}, {"z", 1}, {"0", 1}, {"9\0", 2}};

    for (int i = 0; i < 60; i++) {
        struct hd_cell run = hd_cell_bytes(names[i % 7 % 3]);
        struct hd_cell row[] = {hd_cell_bytes(threads[i % 4]),
                                hd_cell_bytes(names[i / 4 % 3]),
                                hd_cell_bytes(names[i / 12]),
                                i % 2 ? NIL : T("parent"),
                                i % 3 ? run : NIL,
                                T("{}"),
                                T("body")};

        assert_err(APPLY(backend, ADD(HD_CHECKPOINTS, row)), 0);
    }
}

static void scans_of_checkpoints_answer_every_shape(struct hd_backend *backend)
{
    fill_checkpoints(backend);
    check_scans(backend, HD_CHECKPOINTS, HD_PRIMARY);
}

static void scans_by_run_answer_every_shape(struct hd_backend *backend)
{
    fill_checkpoints(backend);
    check_scans(backend, HD_CHECKPOINTS, HD_CHECKPOINTS_BY_RUN);
}

static void scans_of_chunks_and_threads_answer_every_shape(struct hd_backend *backend)
{
    static const int64_t numbers[] = {INT64_MIN, -257, -1, 0, 1, 255, 256, 1ll << 40, INT64_MAX};

    for (size_t i = 0; i < HD_COUNT(numbers); i++) {
        char id[] = {(char)('a' + i % 5), (char)(i * 31)};
        struct hd_cell thread = hd_cell_bytes(hd_slice(id, sizeof(id)));

        assert_err(APPLY(backend, PUT(HD_CHUNKS, CHUNK("t", numbers[i], "data")),
                         PUT(HD_CHUNKS, CHUNK("u", numbers[i], "data")),
                         PUT(HD_THREADS, CELLS(thread, N(numbers[i]), N(1), N(2)))),
                   0);
    }
    check_scans(backend, HD_CHUNKS, HD_PRIMARY);
    check_scans(backend, HD_THREADS, HD_PRIMARY);
}

/* The server's tables, along their keys and every index. */
static void scans_of_server_tables_answer_every_shape(struct hd_backend *backend)
{
    enum { ROWS = 40 };

    for (unsigned table = HD_ASSISTANTS; table < HD_TABLE_COUNT; table++) {
        struct hd_cell rows[ROWS][HD_MAX_COLUMNS];
        char room[ROWS][HD_MAX_COLUMNS][8];
        struct hd_op ops[ROWS];

        for (int i = 0; i < ROWS; i++) {
            make_row(each_table[table], i, rows[i], room[i]);
            ops[i] = (struct hd_op)ADD(each_table[table], rows[i]);
        }
        assert_err(apply_ops(backend, ops, ROWS), 0);
        assert_int_equal(count_rows(backend, each_table[table], NULL, 0), ROWS);
        for (int index = HD_PRIMARY; index < (int)hd_tables[table].index_count; index++)
            check_scans(backend, each_table[table], index);
    }
}

/* Each number null and not, one after the other and both at once. */
static void indexes_follow_numbers_that_come_and_go(struct hd_backend *backend)
{
    struct hd_query by_created = {.table = HD_THREAD_INFO, .index = HD_THREAD_INFO_BY_CREATED};
    struct hd_query by_expiry = {.table = HD_THREAD_INFO, .index = HD_THREAD_INFO_BY_EXPIRY};

    for (int64_t i = 0; i < 8; i++) {
        struct hd_cell expires = i & 1 ? N(i - 4) : NIL, high = N(i - 3);
        size_t all = 0, created = 0, expiring = 0;

        assert_err(
            APPLY(backend, PUT(HD_THREAD_INFO, CELLS(T(""), T("t"), N(i), T("idle"), N(100 - i),
                                                     N(0), N(0), expires, N(0), T("{}")))),
            0);
        assert_err(hd_backend_read(backend, &by_created, 1, count_row, &created, NULL), 0);
        assert_err(hd_backend_read(backend, &by_expiry, 1, count_row, &all, NULL), 0);
        by_expiry.high = &high;
        assert_err(hd_backend_read(backend, &by_expiry, 1, count_row, &expiring, NULL), 0);
        by_expiry.high = NULL;
        assert_int_equal(created, 1);
        assert_int_equal(all, i & 1);
        assert_int_equal(expiring, i & 1);
    }
}

static void a_thousand_rows_are_paged_both_ways(struct hd_backend *backend)
{
    enum { ROWS = 1000, PAGE = 7 };
    struct hd_cell after[1];

    for (int i = 0; i < ROWS; i++) {
        struct hd_cell row[] = {T("t"), T("s"), N((i * 379) % ROWS), T("hash"), T("data")};

        assert_err(APPLY(backend, ADD(HD_CHUNKS, row)), 0);
    }
    for (int reverse = 0; reverse < 2; reverse++) {
        struct hd_query query = {.table = HD_CHUNKS,
                                 .index = HD_PRIMARY,
                                 .prefix = CELLS(T("t"), T("s")),
                                 .prefix_count = 2,
                                 .is_reverse = reverse,
                                 .limit = PAGE,
                                 .columns = HD_ALL_COLUMNS};
        int64_t seen = 0;
        struct kept page;

        do {
            kept_init(&page, &each_table[HD_CHUNKS]);
            assert_err(hd_backend_read(backend, &query, 1, keep_row, &page, NULL), 0);
            for (size_t i = 0; i < page.count; i++, seen++)
                assert_int_equal(page.rows[i].cells[HD_CHUNKS_SEQ].number,
                                 reverse ? ROWS - 1 - seen : seen);
            after[0] = N(reverse ? ROWS - seen : seen - 1);
            query.after = after;
            query.after_count = 1;
            kept_fini(&page);
        } while (page.count == PAGE);
        assert_int_equal(seen, ROWS);
        assert_int_equal(count_rows(backend, HD_CHUNKS, CELLS(T("t")), 1), ROWS);
    }
}

/* ---- answers of the receiver ------------------------------------------ */

struct receiver {
    size_t counts[3];
    size_t stop_at[3]; /* answer `answer` to the n-th row of this query */
    int answer;
    size_t last;
};

static int receive(void *arg, size_t which, const struct hd_cell *cells)
{
    struct receiver *r = arg;

    (void)cells;
    assert_true(which >= r->last);
    r->last = which;
    return ++r->counts[which] == r->stop_at[which] ? r->answer : 0;
}

static void the_receiver_decides_how_far_to_read(struct hd_backend *backend)
{
    struct hd_query chunks = {.table = HD_CHUNKS, .index = HD_PRIMARY};
    struct hd_query threads = {.table = HD_THREADS, .index = HD_PRIMARY};
    struct hd_query queries[] = {chunks, threads, chunks};
    struct receiver skip = {.stop_at = {2, 0, 4}, .answer = 1};
    struct receiver stop = {.stop_at = {0, 1, 0}, .answer = -777};

    for (int i = 0; i < 5; i++)
        assert_err(APPLY(backend, ADD(HD_CHUNKS, CHUNK("t", i, "x"))), 0);
    assert_err(APPLY(backend, ADD(HD_THREADS, THREAD("t", 1)), ADD(HD_THREADS, THREAD("u", 1))), 0);
    assert_err(hd_backend_read(backend, queries, 3, receive, &skip, NULL), 0);
    assert_int_equal(skip.counts[0], 2);
    assert_int_equal(skip.counts[1], 2);
    assert_int_equal(skip.counts[2], 4);
    assert_int_equal(hd_backend_read(backend, queries, 3, receive, &stop, NULL), -777);
    assert_int_equal(stop.counts[0], 5);
    assert_int_equal(stop.counts[1], 1);
    assert_int_equal(stop.counts[2], 0);
    /* Stopping leaves nothing behind that stands in the way. */
    assert_err(APPLY(backend, PUT(HD_THREADS, THREAD("v", 1))), 0);
    assert_int_equal(count_rows(backend, HD_THREADS, NULL, 0), 3);
}

/* ---- values ----------------------------------------------------------- */

static void the_run_index_follows_its_rows(struct hd_backend *backend)
{
    const struct hd_cell runs[] = {NIL, T("r1"), T("r2"), T(""), NIL, T("r1")};

    for (size_t i = 0; i < HD_COUNT(runs); i++) {
        struct hd_query query = {.table = HD_CHECKPOINTS, .index = HD_CHECKPOINTS_BY_RUN};
        size_t all = 0, mine = 0;

        assert_err(APPLY(backend, PUT(HD_CHECKPOINTS, CHECKPOINT("t", "c", runs[i]))), 0);
        assert_err(hd_backend_read(backend, &query, 1, count_row, &all, NULL), 0);
        assert_int_equal(all, runs[i].kind != HD_CELL_NULL);
        if (all == 0)
            continue;
        query.prefix = &runs[i];
        query.prefix_count = 1;
        assert_err(hd_backend_read(backend, &query, 1, count_row, &mine, NULL), 0);
        assert_int_equal(mine, 1);
    }
    assert_err(APPLY(backend, DELETE(HD_CHECKPOINTS, 1, CELLS(T("t")))), 0);
    scans_by_run_answer_every_shape(backend);
}

static void null_is_not_empty(struct hd_backend *backend)
{
    struct kept kept;
    const struct hd_cell *row;
    const struct hd_cell empty = hd_cell_bytes(hd_slice(NULL, 0));

    assert_err(
        APPLY(backend, PUT(HD_CHECKPOINTS, CELLS(empty, empty, empty, empty, NIL, empty, empty))),
        0);
    row = find_row(backend, &kept, HD_CHECKPOINTS, CELLS(T(""), T(""), T("")));
    for (unsigned i = 0; i < 7; i++) {
        assert_int_equal(row[i].kind, i == HD_CHECKPOINTS_RUN ? HD_CELL_NULL : HD_CELL_BYTES);
        assert_int_equal(row[i].bytes.len, 0);
    }
    kept_fini(&kept);
    assert_err(
        APPLY(backend, PUT(HD_CHECKPOINTS, CELLS(empty, empty, empty, NIL, empty, T("m"), empty))),
        0);
    row = find_row(backend, &kept, HD_CHECKPOINTS, CELLS(T(""), T(""), T("")));
    assert_int_equal(row[HD_CHECKPOINTS_PARENT].kind, HD_CELL_NULL);
    assert_int_equal(row[HD_CHECKPOINTS_RUN].kind, HD_CELL_BYTES);
    kept_fini(&kept);
}

/*
 * Each byte alone, doubled, between letters, and before each other byte: 1,024
 * strings in all text and blob columns.
 */
static void arbitrary_bytes_survive_in_byte_order(struct hd_backend *backend)
{
    char bytes[1024][3];
    struct hd_op ops[1024];
    struct hd_cell rows[1024][9];

    for (int i = 0; i < 1024; i++) {
        char b = (char)i;
        struct hd_cell cell = hd_cell_bytes(hd_slice(bytes[i], i < 256 ? 1 : i < 512 ? 2 : 3));

        bytes[i][0] = i < 512 ? b : 'a';
        bytes[i][1] = b;
        bytes[i][2] = i < 768 ? 'a' : (char)(255 - i);
        for (unsigned column = 0; column < 9; column++)
            rows[i][column] = column == HD_WRITES_IDX ? N(i - 512) : cell;
        ops[i] = (struct hd_op)ADD(HD_WRITES, rows[i]);
    }
    assert_err(apply_ops(backend, ops, 1024), 0);
    for (int i = 0; i < 1024; i++) {
        struct kept kept;
        const struct hd_cell *row = find_row(backend, &kept, HD_WRITES, rows[i]);

        assert_int_equal(hd_cells_cmp(row, rows[i], 9), 0);
        kept_fini(&kept);
    }
    check_scans(backend, HD_WRITES, HD_PRIMARY);
    for (int i = 0; i < 1024; i++)
        ops[i] = (struct hd_op)DELETE(HD_WRITES, 1 + (unsigned)i % 5, rows[i]);
    assert_err(apply_ops(backend, ops, 1024), 0);
    assert_int_equal(count_rows(backend, HD_WRITES, NULL, 0), 0);
}

static void arbitrary_bytes_work_in_every_table(struct hd_backend *backend)
{
    char all[512] = {0};
    struct hd_cell text = hd_cell_bytes(hd_slice(all, sizeof(all)));
    struct hd_cell mixed[] = {text, text, text, text, text, text, text};
    struct kept kept;

    for (size_t i = 0; i < sizeof(all); i++)
        all[i] = (char)(i < 256 ? i : 511 - i);
    assert_err(APPLY(backend, ADD(HD_THREADS, CELLS(text, N(1), N(2), N(3))),
                     ADD(HD_CHECKPOINTS, mixed),
                     ADD(HD_CHUNKS, CELLS(text, text, N(1), text, text))),
               0);
    assert_int_equal(hd_cells_cmp(find_row(backend, &kept, HD_CHECKPOINTS, mixed), mixed, 7), 0);
    kept_fini(&kept);
    assert_int_equal(
        hd_cell_cmp(find_row(backend, &kept, HD_CHUNKS, CELLS(text, text, N(1))) + 4, &text), 0);
    kept_fini(&kept);
    {
        struct hd_query query = {.table = HD_CHECKPOINTS,
                                 .index = HD_CHECKPOINTS_BY_RUN,
                                 .prefix = mixed,
                                 .prefix_count = 4};
        size_t count = 0;

        assert_err(hd_backend_read(backend, &query, 1, count_row, &count, NULL), 0);
        assert_int_equal(count, 1);
    }
    assert_err(APPLY(backend, {.kind = HD_OP_EXPECT,
                               .table = HD_THREADS,
                               .cells = &text,
                               .column = HD_THREADS_EPOCH,
                               .expected = 1}),
               0);
}

static void long_values_come_back_whole(struct hd_backend *backend)
{
    size_t len = 5 << 20;
    char *bytes = calloc(1, len);
    struct hd_cell data = hd_cell_bytes(hd_slice(bytes, len));
    struct kept kept;
    uint32_t x = 1;

    assert_non_null(bytes);
    for (size_t i = 0; i < len; i++)
        bytes[i] = (char)((x = x * 1664525 + 1013904223) >> 24);
    assert_err(APPLY(backend, PUT(HD_CHUNKS, CELLS(T("t"), T("s"), N(1), T("h"), data)),
                     PUT(HD_WRITES, CELLS(T("t"), T(""), T("c"), T("t"), N(1), T(""), T("ch"),
                                          T("type"), data))),
               0);
    assert_int_equal(
        hd_cell_cmp(find_row(backend, &kept, HD_CHUNKS, CELLS(T("t"), T("s"), N(1))) + 4, &data),
        0);
    kept_fini(&kept);
    free(bytes);
}

/* ---- many at once ----------------------------------------------------- */

enum { WRITERS = 4, READERS = 4, ROUNDS = 150 };

struct crowd {
    struct hd_backend *backend;
    sem_t lanes; /* no more concurrent writers than the driver's lanes */
    atomic_int writing;
    atomic_int conflicts;
    atomic_int wrong;
};

static int read_epoch(void *arg, size_t which, const struct hd_cell *cells)
{
    (void)which;
    *(int64_t *)arg = cells[HD_THREADS_EPOCH].number;
    return 0;
}

/*
 * Counts up by compare-and-set, and writes the number into two rows of another
 * table at the same time.
 */
static bool count_up(struct crowd *crowd)
{
    struct hd_query query = {.table = HD_THREADS, .index = HD_PRIMARY, .columns = HD_ALL_COLUMNS};
    int64_t epoch = -1;
    size_t failed;
    int err = hd_backend_read(crowd->backend, &query, 1, read_epoch, &epoch, NULL);
    struct hd_op ops[] = {EXPECT_SET("t", epoch, HD_THREADS_EPOCH, 1, epoch + 1),
                          PUT(HD_CHUNKS, CELLS(T("a"), T(""), N(0), T(""), N(0))),
                          PUT(HD_CHUNKS, CELLS(T("b"), T(""), N(0), T(""), N(0)))};
    char text[24];
    struct hd_cell number = hd_cell_bytes(
        hd_slice(text, (size_t)snprintf(text, sizeof(text), "%lld", (long long)epoch + 1)));
    struct hd_cell a[] = {T("a"), T(""), N(0), T(""), number};
    struct hd_cell b[] = {T("b"), T(""), N(0), T(""), number};
    struct hd_batch batch = {ops, 3};

    ops[1].cells = a;
    ops[2].cells = b;
    sem_wait(&crowd->lanes);
    if (!err)
        err = hd_backend_apply(crowd->backend, &batch, &failed, NULL);
    sem_post(&crowd->lanes);
    if (err == HD_ECONFLICT)
        atomic_fetch_add(&crowd->conflicts, 1);
    if (err != 0 && (err != HD_ECONFLICT || failed != 0))
        atomic_fetch_add(&crowd->wrong, 1);
    return err != HD_ECONFLICT;
}

static void *writer_main(void *arg)
{
    struct crowd *crowd = arg;

    for (int i = 0; i < ROUNDS; i++) {
        while (!count_up(crowd))
            ;
    }
    atomic_fetch_sub(&crowd->writing, 1);
    return NULL;
}

struct pair {
    char text[2][24];
    size_t count;
};

static int read_pair(void *arg, size_t which, const struct hd_cell *cells)
{
    struct pair *pair = arg;

    (void)which;
    snprintf(pair->text[pair->count++ & 1], 24, "%.*s", (int)cells[HD_CHUNKS_DATA].bytes.len,
             cells[HD_CHUNKS_DATA].bytes.ptr);
    return 0;
}

/* The two rows are written together: a reader that sees one alone saw half a batch. */
static void *reader_main(void *arg)
{
    struct crowd *crowd = arg;
    struct hd_query query = {.table = HD_CHUNKS, .index = HD_PRIMARY, .columns = HD_ALL_COLUMNS};

    do {
        struct pair pair = {.count = 0};

        if (hd_backend_read(crowd->backend, &query, 1, read_pair, &pair, NULL) != 0 ||
            pair.count > 2 || strcmp(pair.text[0], pair.text[1]) != 0)
            atomic_fetch_add(&crowd->wrong, 1);
    } while (atomic_load(&crowd->writing) > 0);
    return NULL;
}

static void writers_and_readers_do_not_disturb_each_other(struct hd_backend *backend)
{
    struct crowd crowd = {.backend = backend, .writing = WRITERS};
    pthread_t threads[WRITERS + READERS];

    assert_int_equal(sem_init(&crowd.lanes, 0, backend->lanes), 0);
    assert_err(APPLY(backend, PUT(HD_THREADS, THREAD("t", 0))), 0);
    for (int i = 0; i < WRITERS + READERS; i++)
        assert_int_equal(
            pthread_create(&threads[i], NULL, i < WRITERS ? writer_main : reader_main, &crowd), 0);
    for (int i = 0; i < WRITERS + READERS; i++)
        pthread_join(threads[i], NULL);
    sem_destroy(&crowd.lanes);
    assert_int_equal(atomic_load(&crowd.wrong), 0);
    assert_thread(backend, WRITERS * ROUNDS, 100, 200);
    assert_err(hd_backend_check(backend, NULL), 0);
}

/* ---- care ------------------------------------------------------------- */

static void check_and_compact_find_nothing_wrong(struct hd_backend *backend)
{
    struct kept before, after;

    fill_writes(backend);
    fill_checkpoints(backend);
    assert_err(APPLY(backend, DELETE(HD_WRITES, 1, CELLS(T("a")))), 0);
    keep_all(backend, &before);
    assert_err(hd_backend_compact(backend, NULL), 0);
    assert_err(hd_backend_check(backend, NULL), 0);
    keep_all(backend, &after);
    assert_same_rows(&after, &before);
    kept_fini(&before);
    kept_fini(&after);
}

/* ---- the allocator ---------------------------------------------------- */

static int apply_much(void *arg)
{
    struct hd_op ops[] = {PUT(HD_THREADS, THREAD("t", 2)),
                          PUT_NEW(HD_THREADS, THREAD("n", 2)),
                          DELETE(HD_WRITES, 1, CELLS(T("a"))),
                          PUT(HD_CHECKPOINTS, CHECKPOINT("t", "c", T("run2"))),
                          EXPECT_SET("t", 2, HD_THREADS_EPOCH, 1, 3),
                          ADD(HD_CHUNKS, CHUNK("t", 9, "x"))};
    struct hd_batch batch = {ops, HD_COUNT(ops)};

    return hd_backend_apply(arg, &batch, NULL, NULL);
}

static int read_much(void *arg)
{
    struct hd_query queries[] = {{.table = HD_WRITES, .index = HD_PRIMARY, .columns = 1u << 8},
                                 {.table = HD_CHECKPOINTS, .index = HD_CHECKPOINTS_BY_RUN}};
    size_t count = 0;
    int err = hd_backend_read(arg, queries, 2, count_row, &count, NULL);

    if (!err)
        assert_int_equal(count, 243 + 1);
    return err;
}

static void a_failed_allocation_changes_nothing(struct hd_backend *backend)
{
    struct kept before, after;
    int err = HD_ENOMEM;

    fill_writes(backend);
    assert_err(APPLY(backend, PUT(HD_THREADS, THREAD("t", 1)),
                     PUT(HD_CHECKPOINTS, CHECKPOINT("t", "c", T("run")))),
               0);
    check_every_allocation(read_much, backend);
    keep_all(backend, &before);
    for (long n = 1; err; n++) {
        (void)hd_alloc_fail_at(n, n & 1);
        err = apply_much(backend);
        (void)hd_alloc_fail_at(0, 0);
        if (err) {
            assert_err(err, HD_ENOMEM);
            keep_all(backend, &after);
            assert_same_rows(&after, &before);
            kept_fini(&after);
        }
    }
    kept_fini(&before);
    assert_thread(backend, 3, 100, 200);
    assert_int_equal(count_rows(backend, HD_WRITES, NULL, 0), 162);
}

/* ---- the table of cases ----------------------------------------------- */

struct named_case {
    const char *name;
    void (*run)(struct hd_backend *backend);
};

#define CASE(function)      \
    {                       \
#function, function \
    }

static const struct named_case cases[] = {
    CASE(put_inserts_and_replaces),
    CASE(put_new_keeps_the_first),
    CASE(add_refuses_an_existing_row),
    CASE(delete_takes_all_rows_with_the_prefix),
    CASE(expect_wants_the_number),
    CASE(expect_sets_numbers),
    CASE(later_operations_see_earlier_ones),
    CASE(a_conflict_changes_nothing),
    CASE(an_empty_batch_is_fine),
    CASE(oversized_input_is_rejected),
    CASE(scans_of_writes_answer_every_shape),
    CASE(scans_of_checkpoints_answer_every_shape),
    CASE(scans_by_run_answer_every_shape),
    CASE(scans_of_chunks_and_threads_answer_every_shape),
    CASE(scans_of_server_tables_answer_every_shape),
    CASE(indexes_follow_numbers_that_come_and_go),
    CASE(a_thousand_rows_are_paged_both_ways),
    CASE(the_receiver_decides_how_far_to_read),
    CASE(the_run_index_follows_its_rows),
    CASE(null_is_not_empty),
    CASE(arbitrary_bytes_survive_in_byte_order),
    CASE(arbitrary_bytes_work_in_every_table),
    CASE(long_values_come_back_whole),
    CASE(writers_and_readers_do_not_disturb_each_other),
    CASE(check_and_compact_find_nothing_wrong),
    CASE(a_failed_allocation_changes_nothing),
};

enum { MAX_URLS = 16 };

static const char *urls[MAX_URLS] = {"memory:", "sqlite::memory:", "sqlite:"};
static size_t url_count = 3;

struct named_run {
    const struct named_case *test;
    const char *url;
};

static void run_case(void **state)
{
    const struct named_run *run = *state;
    char path[64] = "";
    char url[100];
    struct hd_backend *backend;

    snprintf(url, sizeof(url), "%s", run->url);
    if (strcmp(run->url, "sqlite:") == 0) {
        snprintf(path, sizeof(path), "/tmp/heddle-backend-%d.db", (int)getpid());
        snprintf(url, sizeof(url), "sqlite:%s?durability=relaxed", path);
        backend = must_open(url);
    } else {
        backend = must_open(run->url);
    }
    wipe(backend);
    run->test->run(backend);
    hd_backend_close(backend);
    if (path[0])
        assert_int_equal(unlink(path), 0);
}

static void add_urls_from_environment(void)
{
    const char *list = getenv("HEDDLE_TEST_URLS");
    char *copy = list ? strdup(list) : NULL;
    char *rest = copy;
    const char *url;

    /* The copy stays: the URLs are parts of it. */
    while (rest && (url = strsep(&rest, " ")) != NULL && url_count < MAX_URLS) {
        if (*url)
            urls[url_count++] = url;
    }
}

int main(void)
{
    static struct CMUnitTest tests[MAX_URLS * HD_COUNT(cases)];
    static struct named_run runs[MAX_URLS * HD_COUNT(cases)];
    static char names[MAX_URLS * HD_COUNT(cases)][120];
    size_t count = 0;

    add_urls_from_environment();
    for (size_t u = 0; u < url_count; u++) {
        for (size_t i = 0; i < HD_COUNT(cases); i++, count++) {
            runs[count] = (struct named_run){&cases[i], urls[u]};
            snprintf(names[count], sizeof(names[count]), "%.20s %s", urls[u], cases[i].name);
            tests[count] = (struct CMUnitTest){names[count], run_case, NULL, NULL, &runs[count]};
        }
    }
    /* The macro takes the size of an array, and only the first `count` of this one are tests. */
    return _cmocka_run_group_tests("backend", tests, count, NULL, NULL);
}
