/*
 * Shared by the PostgreSQL tests: a separate schema for every case, a second connection to inspect
 * and change it, and short ways to write rows.
 */
#ifndef HD_TESTS_CONTRACT_PG_HELP_H
#define HD_TESTS_CONTRACT_PG_HELP_H

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/unit/check.h"

#include "base/clock.h"
#include "store/postgres/backend_postgres.h"

struct fixture {
    char schema[40];
    char url[300];
    struct hd_backend *store;
    PGconn *admin;
};

/* `base` with parameters of ours appended. */
static inline void make_url(char *out, size_t size, const char *base, const char *schema,
                            const char *more)
{
    assert_non_null(base);
    (void)snprintf(out, size, "%s%sschema=%s%s%s", base, strchr(base, '?') ? "&" : "?", schema,
                   more[0] ? "&" : "", more);
}

static inline int open_store(struct hd_backend **out, const char *text, struct heddle_error *fault)
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

/* A URL may have a short timeout for later calls; opening may take longer than that. */
static inline void must_open(struct hd_backend **out, const char *text)
{
    int64_t until = hd_clock_monotonic_us() + 60 * (int64_t)1000000;
    struct heddle_error fault;
    int err;

    do {
        fault = (struct heddle_error){0};
        err = open_store(out, text, &fault);
    } while ((err == HD_EUNAVAILABLE || err == HD_EBUSY) && hd_clock_monotonic_us() < until);
    if (err)
        fail_msg("%s", fault.text);
}

/* ---- the second connection ---- */

static inline PGconn *connect_admin(void)
{
    PGconn *conn = PQconnectdb(getenv("HEDDLE_TEST_PG_URL"));

    if (PQstatus(conn) != CONNECTION_OK)
        fail_msg("%s", PQerrorMessage(conn));
    return conn;
}

/* Runs formatted SQL; the first cell of the answer, or "", until the next call. */
static inline const char *sql(PGconn *conn, const char *fmt, ...) HD_PRINTF(2, 3);

static inline const char *sql(PGconn *conn, const char *fmt, ...)
{
    static char cell[512];
    char text[1024];
    PGresult *res;
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    res = PQexec(conn, text);
    if (PQresultStatus(res) != PGRES_COMMAND_OK && PQresultStatus(res) != PGRES_TUPLES_OK)
        fail_msg("%s: %s", text, PQerrorMessage(conn));
    (void)snprintf(cell, sizeof(cell), "%s", PQntuples(res) ? PQgetvalue(res, 0, 0) : "");
    PQclear(res);
    return cell;
}

/* ---- rows ---- */

#define TEXT(s) hd_cell_bytes(s)

static inline struct hd_op put_thread(enum hd_op_kind kind, struct hd_cell cells[4],
                                      struct hd_slice id, int64_t epoch)
{
    cells[0] = TEXT(id);
    cells[1] = hd_cell_int(epoch);
    cells[2] = hd_cell_int(1000000);
    cells[3] = hd_cell_int(2000000);
    return (struct hd_op){.kind = kind, .table = HD_THREADS, .cells = cells};
}

static inline struct hd_op put_chunk(enum hd_op_kind kind, struct hd_cell cells[HD_MAX_COLUMNS],
                                     struct hd_slice thread, int64_t seq, struct hd_slice data)
{
    cells[HD_CHUNKS_THREAD] = TEXT(thread);
    cells[HD_CHUNKS_STREAM] = TEXT(HD_S("s"));
    cells[HD_CHUNKS_SEQ] = hd_cell_int(seq);
    cells[HD_CHUNKS_HASH] = TEXT(HD_S("hash"));
    cells[HD_CHUNKS_DATA] = TEXT(data);
    return (struct hd_op){.kind = kind, .table = HD_CHUNKS, .cells = cells};
}

static inline struct hd_op expect_epoch(const struct hd_cell *key, int64_t epoch)
{
    return (struct hd_op){.kind = HD_OP_EXPECT,
                          .table = HD_THREADS,
                          .cells = key,
                          .column = HD_THREADS_EPOCH,
                          .expected = epoch};
}

static inline int apply(struct hd_backend *store, const struct hd_op *ops, size_t count,
                        size_t *failed, struct heddle_error *fault)
{
    struct hd_batch batch = {ops, count};

    return hd_backend_apply(store, &batch, failed, fault);
}

static inline void must_apply(struct hd_backend *store, const struct hd_op *ops, size_t count)
{
    struct heddle_error fault = {0};

    if (apply(store, ops, count, NULL, &fault))
        fail_msg("%s", fault.text);
}

/* Reads one row of the threads; its epoch, or -1 when it is not there. */
static inline int take_epoch(void *arg, size_t which, const struct hd_cell *cells)
{
    (void)which;
    *(int64_t *)arg = cells[HD_THREADS_EPOCH].number;
    return 0;
}

static inline int read_epoch(struct hd_backend *store, struct hd_slice id, int64_t *epoch,
                             struct heddle_error *fault)
{
    struct hd_cell key = TEXT(id);
    struct hd_query query = {.table = HD_THREADS,
                             .index = HD_PRIMARY,
                             .prefix = &key,
                             .prefix_count = 1,
                             .columns = HD_ALL_COLUMNS};

    *epoch = -1;
    return hd_backend_read(store, &query, 1, take_epoch, epoch, fault);
}

static inline int64_t epoch_of(struct hd_backend *store, struct hd_slice id)
{
    struct heddle_error fault = {0};
    int64_t epoch;

    if (read_epoch(store, id, &epoch, &fault))
        fail_msg("%s", fault.text);
    return epoch;
}

/* ---- fixtures ---- */

static inline void name_schema(char *out, size_t size)
{
    static int number;

    (void)snprintf(out, size, "t%d_%d", (int)getpid(), ++number);
}

static inline int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    assert_non_null(f);
    name_schema(f->schema, sizeof(f->schema));
    /* Tests check results, not speed: a busy machine restarts a server slowly. */
    make_url(f->url, sizeof(f->url), getenv("HEDDLE_TEST_PG_URL"), f->schema, "timeout=60");
    f->admin = connect_admin();
    must_open(&f->store, f->url);
    *state = f;
    return 0;
}

static inline int tear_down(void **state)
{
    struct fixture *f = *state;

    hd_backend_close(f->store);
    PQfinish(f->admin);
    f->admin = connect_admin(); /* the test may have restarted the server */
    (void)sql(f->admin, "SET client_min_messages = error");
    (void)sql(f->admin, "DROP SCHEMA IF EXISTS %s CASCADE", f->schema);
    PQfinish(f->admin);
    free(f);
    return 0;
}

/* The cases need a server; without one they are skipped, in plain sight. */
static inline bool is_without_server(void)
{
    if (getenv("HEDDLE_TEST_PG_URL"))
        return false;
    printf("1..0 # SKIP HEDDLE_TEST_PG_URL is not set: run under tests/lib/with-postgres\n");
    return true;
}

/*
 * Closes the store, and waits until the server has ended its sessions. Those that a pooler keeps
 * for later are older than this test.
 */
static inline void close_and_wait(struct fixture *f)
{
    hd_backend_close(f->store);
    f->store = NULL;
    for (int i = 0; i < 12000; i++) {
        if (strcmp(sql(f->admin,
                       "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'heddle' AND"
                       " backend_start > (SELECT backend_start FROM pg_stat_activity WHERE pid ="
                       " pg_backend_pid())"),
                   "0") == 0)
            return;
        (void)sql(f->admin, "SELECT pg_stat_clear_snapshot()");
        hd_clock_sleep_us(5000);
    }
    fail_msg("sessions of a closed store stay open");
}

#endif
