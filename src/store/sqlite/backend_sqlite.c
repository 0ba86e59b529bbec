/*
 * The SQLite driver, in write-ahead-log mode: readers see the last commit and never wait for the
 * writer.
 *
 * One connection writes, because SQLite has one writer at a time anyway, and up to MAX_READERS
 * connections read, opened when first needed. A batch is one transaction begun with the write lock
 * (BEGIN IMMEDIATE): the rows it reads cannot be stale, so it never has to start over. Other
 * processes may share the file through SQLite's locks.
 *
 * sqlite::memory: uses one connection for everything: such a database belongs to its connection.
 */
#include "store/sqlite/backend_sqlite.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/log.h"

enum { MAX_READERS = 8 };

/* The number of free pages returned in one transaction, so that writers can run in between. */
#define COMPACT_STEP_SQL "PRAGMA incremental_vacuum(1000)"

struct sqlite_backend {
    struct hd_backend base; /* must be first */
    char *path;             /* absolute: a later chdir() must not lead readers elsewhere */
    bool is_memory;
    bool is_relaxed;
    int timeout_ms;

    pthread_mutex_t write_lock;    /* guards the next two */
    int enough_version;            /* of the file; an older one is upgraded */
    struct hd_sqlite_conn *writer; /* NULL: must be opened again */

    pthread_mutex_t pool_lock; /* guards the rest */
    pthread_cond_t has_reader;
    struct hd_sqlite_conn *idle[MAX_READERS];
    unsigned idle_count;
    unsigned reader_count; /* idle or in use */
};

static struct sqlite_backend *sqlite_from(struct hd_backend *backend)
{
    return (struct sqlite_backend *)backend;
}

/* ---- readers ---------------------------------------------------------- */

static int open_reader(struct sqlite_backend *sqlite, struct hd_sqlite_conn **out,
                       struct heddle_error *fault)
{
    struct hd_sqlite_conn *conn = NULL;
    int err =
        hd_sqlite_conn_open(&conn, sqlite->path, SQLITE_OPEN_READWRITE, sqlite->timeout_ms, fault);

    if (err)
        return err;
    err = hd_sqlite_conn_configure(conn, HD_SQLITE_READER, sqlite->is_relaxed, fault);
    if (err)
        hd_sqlite_conn_close(conn);
    else
        *out = conn;
    return err;
}

static void deadline_in(int ms, struct timespec *out)
{
    clock_gettime(CLOCK_MONOTONIC, out);
    out->tv_sec += ms / 1000;
    out->tv_nsec += (long)(ms % 1000) * 1000000;
    if (out->tv_nsec >= 1000000000) {
        out->tv_nsec -= 1000000000;
        out->tv_sec++;
    }
}

/* Waits for an idle reader or the right to open one (*out is NULL then). */
static int await_reader(struct sqlite_backend *sqlite, struct hd_sqlite_conn **out,
                        struct heddle_error *fault)
{
    struct timespec deadline;
    int waited = 0;

    deadline_in(sqlite->timeout_ms, &deadline);
    *out = NULL;
    pthread_mutex_lock(&sqlite->pool_lock);
    while (sqlite->idle_count == 0 && sqlite->reader_count == MAX_READERS && waited != ETIMEDOUT)
        waited = pthread_cond_timedwait(&sqlite->has_reader, &sqlite->pool_lock, &deadline);
    if (sqlite->idle_count > 0) {
        *out = sqlite->idle[--sqlite->idle_count];
        waited = 0;
    } else if (sqlite->reader_count < MAX_READERS) {
        sqlite->reader_count++;
        waited = 0;
    }
    pthread_mutex_unlock(&sqlite->pool_lock);
    if (waited)
        return hd_error_set(fault, HD_EBUSY, "sqlite: all %d readers stayed busy", MAX_READERS);
    return 0;
}

static void return_reader(struct sqlite_backend *sqlite, struct hd_sqlite_conn *conn)
{
    pthread_mutex_lock(&sqlite->pool_lock);
    if (conn)
        sqlite->idle[sqlite->idle_count++] = conn;
    else
        sqlite->reader_count--;
    pthread_cond_signal(&sqlite->has_reader);
    pthread_mutex_unlock(&sqlite->pool_lock);
}

static int take_reader(struct sqlite_backend *sqlite, struct hd_sqlite_conn **out,
                       struct heddle_error *fault)
{
    int err;

    if (sqlite->is_memory) {
        pthread_mutex_lock(&sqlite->write_lock);
        *out = sqlite->writer;
        return 0;
    }
    err = await_reader(sqlite, out, fault);
    if (err || *out)
        return err;
    err = open_reader(sqlite, out, fault);
    if (err)
        return_reader(sqlite, NULL);
    return err;
}

static void give_reader(struct sqlite_backend *sqlite, struct hd_sqlite_conn *conn)
{
    if (sqlite->is_memory) {
        pthread_mutex_unlock(&sqlite->write_lock);
        return;
    }
    if (conn->is_broken) {
        hd_sqlite_conn_close(conn);
        conn = NULL;
    }
    return_reader(sqlite, conn);
}

/* ---- reading ---------------------------------------------------------- */

/*
 * `after` and the bound on the same side are redundant; SQLite would seek to one and test the other
 * row by row. Keeps the narrower of the two.
 */
static struct hd_query tighten(const struct hd_query *query)
{
    struct hd_query tight = *query;
    const struct hd_cell **bound = query->is_reverse ? &tight.high : &tight.low;
    int order;

    if (!query->after_count)
        return tight;
    if (!*bound)
        return tight;
    order = hd_cell_cmp(&query->after[0], *bound);
    if (query->is_reverse ? order < 0 : order >= 0)
        *bound = NULL;
    else
        tight.after_count = 0;
    return tight;
}

static int bind_query(sqlite3_stmt *stmt, const struct hd_query *query)
{
    const struct hd_table *table = &hd_tables[query->table];
    unsigned next = query->prefix_count;
    int code = SQLITE_OK;
    int at = 0;

    for (unsigned i = 0; code == SQLITE_OK && i < query->prefix_count; i++)
        code = hd_sqlite_bind(stmt, ++at, table->columns[hd_query_order_column(query, i)].type,
                              &query->prefix[i]);
    if (code == SQLITE_OK && query->low)
        code = hd_sqlite_bind(stmt, ++at, table->columns[hd_query_order_column(query, next)].type,
                              query->low);
    if (code == SQLITE_OK && query->high)
        code = hd_sqlite_bind(stmt, ++at, table->columns[hd_query_order_column(query, next)].type,
                              query->high);
    for (unsigned i = 0; code == SQLITE_OK && i < query->after_count; i++)
        code =
            hd_sqlite_bind(stmt, ++at, table->columns[hd_query_order_column(query, next + i)].type,
                           &query->after[i]);
    if (code == SQLITE_OK && query->limit)
        code = sqlite3_bind_int64(stmt, ++at,
                                  query->limit > INT64_MAX ? INT64_MAX : (int64_t)query->limit);
    return code;
}

/* False when SQLite ran out of memory. */
static bool fetch_row(sqlite3_stmt *stmt, const struct hd_table *table, struct hd_cell *cells)
{
    for (int i = 0; i < (int)table->column_count; i++) {
        switch (sqlite3_column_type(stmt, i)) {
        case SQLITE_NULL:
            cells[i] = hd_cell_null();
            break;
        case SQLITE_INTEGER:
            cells[i] = hd_cell_int(sqlite3_column_int64(stmt, i));
            break;
        default: {
            const void *bytes = sqlite3_column_blob(stmt, i);
            int len = sqlite3_column_bytes(stmt, i);

            if (!bytes && len > 0)
                return false;
            cells[i] = hd_cell_bytes(hd_slice(bytes ? bytes : "", (size_t)len));
        }
        }
    }
    return true;
}

static int read_query(struct hd_sqlite_conn *conn, const struct hd_query *wide, size_t which,
                      hd_row_fn fn, void *arg, struct heddle_error *fault)
{
    struct hd_query query = tighten(wide);
    struct hd_cell cells[HD_MAX_COLUMNS];
    sqlite3_stmt *stmt;
    int answer = 0;
    int step = SQLITE_ROW;
    int err = hd_sqlite_query_statement(conn, &query, &stmt, fault);

    if (err)
        return err;
    if (bind_query(stmt, &query) != SQLITE_OK)
        err = hd_sqlite_fail(conn, "reading", fault);
    while (!err && answer == 0 && (step = sqlite3_step(stmt)) == SQLITE_ROW) {
        if (fetch_row(stmt, &hd_tables[query.table], cells))
            answer = fn(arg, which, cells);
        else
            err = hd_sqlite_fail(conn, "reading", fault);
    }
    if (!err && step != SQLITE_ROW && step != SQLITE_DONE)
        err = hd_sqlite_fail(conn, "reading", fault);
    sqlite3_reset(stmt);
    return !err && answer < 0 ? answer : err;
}

static int sqlite_read(struct hd_backend *backend, const struct hd_query *queries, size_t count,
                       hd_row_fn fn, void *arg, struct heddle_error *fault)
{
    struct sqlite_backend *sqlite = sqlite_from(backend);
    struct hd_sqlite_conn *conn = NULL;
    int err = take_reader(sqlite, &conn, fault);

    if (err)
        return err;
    /* A single statement is a transaction; several need an explicit one to see one state. */
    if (count > 1)
        err = hd_sqlite_run(conn, HD_SQLITE_BEGIN, fault);
    for (size_t i = 0; !err && i < count; i++)
        err = read_query(conn, &queries[i], i, fn, arg, fault);
    if (!hd_sqlite_abandon(conn))
        conn->is_broken = true;
    give_reader(sqlite, conn);
    return err;
}

/* ---- writing ---------------------------------------------------------- */

static int bind_op(sqlite3_stmt *stmt, const struct hd_op *op)
{
    const struct hd_table *table = &hd_tables[op->table];
    unsigned count = table->column_count;
    int code = SQLITE_OK;
    int at = 0;

    if (op->kind == HD_OP_DELETE)
        count = op->key_count;
    if (op->kind == HD_OP_EXPECT) {
        count = table->key_count;
        for (unsigned i = 0; code == SQLITE_OK && i < op->set_count; i++)
            code = sqlite3_bind_int64(stmt, ++at, op->set[i]);
    }
    for (unsigned i = 0; code == SQLITE_OK && i < count; i++)
        code = hd_sqlite_bind(stmt, ++at, table->columns[i].type, &op->cells[i]);
    if (code == SQLITE_OK && op->kind == HD_OP_EXPECT)
        code = sqlite3_bind_int64(stmt, ++at, op->expected);
    return code;
}

static int apply_op(struct hd_sqlite_conn *conn, const struct hd_op *op, struct heddle_error *fault)
{
    bool found_row = true;
    sqlite3_stmt *stmt;
    int step;
    int err = hd_sqlite_op_statement(conn, op, &stmt, fault);

    if (err)
        return err;
    step = bind_op(stmt, op);
    if (step == SQLITE_OK)
        step = sqlite3_step(stmt);
    if (step != SQLITE_ROW && step != SQLITE_DONE)
        err = hd_sqlite_fail(conn, "writing", fault);
    else if (op->kind == HD_OP_EXPECT && op->set_count == 0)
        found_row = step == SQLITE_ROW;
    else if (op->kind == HD_OP_EXPECT || op->kind == HD_OP_ADD)
        found_row = sqlite3_changes(conn->db) > 0;
    sqlite3_reset(stmt);
    if (!err && !found_row)
        err = hd_error_set(fault, HD_ECONFLICT, "%s: %s", hd_sqlite_name(conn),
                           hd_error_text(HD_ECONFLICT));
    return err;
}

static int apply_all(struct hd_sqlite_conn *conn, const struct hd_batch *batch, size_t *failed,
                     struct heddle_error *fault)
{
    int err = hd_sqlite_run(conn, HD_SQLITE_BEGIN_IMMEDIATE, fault);

    for (size_t i = 0; !err && i < batch->count; i++) {
        err = apply_op(conn, &batch->ops[i], fault);
        if (err == HD_ECONFLICT)
            *failed = i;
    }
    if (!err)
        err = hd_sqlite_run(conn, HD_SQLITE_COMMIT, fault);
    return err;
}

/* A usable writer: not left in a transaction, and open on the file that the path names. */
static int ready_writer(struct sqlite_backend *sqlite, struct heddle_error *fault)
{
    int err;

    if (!sqlite->writer) {
        err = hd_sqlite_open_file(&sqlite->writer, sqlite->path, sqlite->enough_version,
                                  sqlite->timeout_ms, fault);
        if (err)
            return err;
        err = hd_sqlite_conn_configure(sqlite->writer, HD_SQLITE_WRITER, sqlite->is_relaxed, fault);
        if (!err)
            return 0;
        hd_sqlite_conn_close(sqlite->writer);
        sqlite->writer = NULL;
        return err;
    }
    if (hd_sqlite_has_moved(sqlite->writer))
        return hd_error_set(fault, HD_EIO, "%s: the file was removed or replaced while it was open",
                            hd_sqlite_name(sqlite->writer));
    return 0;
}

/* After any failure: leaves the transaction, or closes the connection. */
static void recover_writer(struct sqlite_backend *sqlite)
{
    if (hd_sqlite_abandon(sqlite->writer) || sqlite->is_memory)
        return;
    hd_log(HD_LOG_WARN, "sqlite", "a transaction could not be rolled back: reconnecting");
    hd_sqlite_conn_close(sqlite->writer);
    sqlite->writer = NULL;
}

static int sqlite_apply(struct hd_backend *backend, const struct hd_batch *batch, size_t *failed,
                        struct heddle_error *fault)
{
    struct sqlite_backend *sqlite = sqlite_from(backend);
    int err;

    pthread_mutex_lock(&sqlite->write_lock);
    err = ready_writer(sqlite, fault);
    if (!err) {
        err = apply_all(sqlite->writer, batch, failed, fault);
        if (err)
            recover_writer(sqlite);
    }
    pthread_mutex_unlock(&sqlite->write_lock);
    return err;
}

/* ---- maintenance ------------------------------------------------------ */

static int check_integrity(struct hd_sqlite_conn *conn, struct heddle_error *fault)
{
    sqlite3_stmt *stmt = NULL;
    int err = 0;

    if (sqlite3_prepare_v2(conn->db, "PRAGMA integrity_check(1)", -1, &stmt, NULL) != SQLITE_OK ||
        sqlite3_step(stmt) != SQLITE_ROW) {
        err = hd_sqlite_fail(conn, "checking", fault);
    } else {
        const char *found = (const char *)sqlite3_column_text(stmt, 0);

        if (!found || strcmp(found, "ok") != 0)
            err = hd_error_set(fault, HD_ECORRUPT, "%s: %.100s", hd_sqlite_name(conn),
                               found ? found : "the check returned no result");
    }
    sqlite3_finalize(stmt);
    return err;
}

static int check_once(struct sqlite_backend *sqlite, struct heddle_error *fault)
{
    struct hd_sqlite_conn *conn = NULL;
    int err = take_reader(sqlite, &conn, fault);

    if (err)
        return err;
    err = check_integrity(conn, fault);
    conn->is_broken = conn->is_broken || err == HD_ECORRUPT;
    give_reader(sqlite, conn);
    return err;
}

/* SQLite reports an unreadable page as damage: it counts only if a new connection finds it too. */
static int sqlite_check(struct hd_backend *backend, struct heddle_error *fault)
{
    struct sqlite_backend *sqlite = sqlite_from(backend);
    struct heddle_error first = {0};
    int err = check_once(sqlite, &first);

    if (err == HD_ECORRUPT)
        return check_once(sqlite, fault);
    return err ? hd_error_set(fault, err, "%s", first.text) : 0;
}

/* Returns some free pages to the file system; *left is the remaining number. */
static int compact_step(struct sqlite_backend *sqlite, int64_t *left, struct heddle_error *fault)
{
    int err;

    pthread_mutex_lock(&sqlite->write_lock);
    err = ready_writer(sqlite, fault);
    if (!err)
        err = hd_sqlite_exec(sqlite->writer, COMPACT_STEP_SQL, "compacting", fault);
    if (!err)
        err = hd_sqlite_query_int(sqlite->writer, "PRAGMA freelist_count", left, fault);
    pthread_mutex_unlock(&sqlite->write_lock);
    return err;
}

/* Copies the whole log into the database, which truncates the file, and empties the log. */
static int empty_log(struct sqlite_backend *sqlite, struct heddle_error *fault)
{
    int err;

    pthread_mutex_lock(&sqlite->write_lock);
    err = ready_writer(sqlite, fault);
    if (!err && sqlite3_wal_checkpoint_v2(sqlite->writer->db, "main", SQLITE_CHECKPOINT_TRUNCATE,
                                          NULL, NULL) != SQLITE_OK)
        err = hd_sqlite_fail(sqlite->writer, "truncating the log", fault);
    pthread_mutex_unlock(&sqlite->write_lock);
    return err;
}

static int sqlite_compact(struct hd_backend *backend, struct heddle_error *fault)
{
    struct sqlite_backend *sqlite = sqlite_from(backend);
    int64_t before = INT64_MAX;
    int64_t left = 0;
    int err = compact_step(sqlite, &left, fault);

    /*
     * Also ends in a file that was created without this option, where the number never decreases.
     */
    while (!err && left > 0 && left < before) {
        before = left;
        err = compact_step(sqlite, &left, fault);
    }
    if (!err && !sqlite->is_memory)
        err = empty_log(sqlite, fault);
    return err;
}

/* ---- opening and closing ---------------------------------------------- */

static int init_locks(struct sqlite_backend *sqlite)
{
    pthread_condattr_t attr;

    if (pthread_condattr_init(&attr) != 0)
        return HD_ENOMEM;
    /* Setting the system's clock must not change the timeout. */
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    if (pthread_cond_init(&sqlite->has_reader, &attr) != 0)
        goto destroy_attr;
    if (pthread_mutex_init(&sqlite->write_lock, NULL) != 0)
        goto destroy_cond;
    if (pthread_mutex_init(&sqlite->pool_lock, NULL) != 0)
        goto destroy_write_lock;
    pthread_condattr_destroy(&attr);
    return 0;

destroy_write_lock:
    pthread_mutex_destroy(&sqlite->write_lock);
destroy_cond:
    pthread_cond_destroy(&sqlite->has_reader);
destroy_attr:
    pthread_condattr_destroy(&attr);
    return HD_ENOMEM;
}

static int copy_path(struct sqlite_backend *sqlite)
{
    const char *path = sqlite3_db_filename(sqlite->writer->db, "main");
    size_t size = path ? strlen(path) + 1 : 1;

    sqlite->path = hd_malloc(size);
    if (!sqlite->path)
        return HD_ENOMEM;
    memcpy(sqlite->path, path ? path : "", size);
    return 0;
}

static int open_database(struct sqlite_backend *sqlite, const char *path,
                         struct heddle_error *fault)
{
    int err = sqlite->is_memory ? hd_sqlite_open_memory(&sqlite->writer, sqlite->timeout_ms, fault)
                                : hd_sqlite_open_file(&sqlite->writer, path, sqlite->enough_version,
                                                      sqlite->timeout_ms, fault);

    if (err)
        return err;
    err = hd_sqlite_conn_configure(sqlite->writer, HD_SQLITE_WRITER, sqlite->is_relaxed, fault);
    if (!err && copy_path(sqlite) != 0)
        err = hd_error_set(fault, HD_ENOMEM, "sqlite: out of memory");
    if (err)
        hd_sqlite_conn_close(sqlite->writer);
    return err;
}

static int sqlite_open(struct hd_backend **out, const struct hd_url *url,
                       struct heddle_error *fault)
{
    struct sqlite_backend *sqlite = hd_calloc(1, sizeof(*sqlite));
    int err;

    if (!sqlite || init_locks(sqlite) != 0) {
        hd_free(sqlite);
        return hd_error_set(fault, HD_ENOMEM, "sqlite: out of memory");
    }
    sqlite->base = (struct hd_backend){.ops = &hd_backend_sqlite, .lanes = 1};
    sqlite->is_memory = strcmp(url->rest, ":memory:") == 0;
    sqlite->is_relaxed = url->is_relaxed;
    sqlite->timeout_ms = url->timeout_ms;
    sqlite->enough_version = url->enough_version ? url->enough_version : HD_SCHEMA_VERSION;
    err = open_database(sqlite, url->rest, fault);
    if (err) {
        pthread_mutex_destroy(&sqlite->pool_lock);
        pthread_mutex_destroy(&sqlite->write_lock);
        pthread_cond_destroy(&sqlite->has_reader);
        hd_free(sqlite);
        return err;
    }
    sqlite->base.file = sqlite->is_memory ? NULL : sqlite->path;
    *out = &sqlite->base;
    return 0;
}

static int sqlite_upgrade(struct hd_backend *backend, struct heddle_error *fault)
{
    struct sqlite_backend *sqlite = sqlite_from(backend);
    int err;

    pthread_mutex_lock(&sqlite->write_lock);
    sqlite->enough_version = HD_SCHEMA_VERSION;
    err = ready_writer(sqlite, fault);
    if (!err)
        err = hd_sqlite_upgrade(sqlite->writer, fault);
    pthread_mutex_unlock(&sqlite->write_lock);
    return err;
}

static void sqlite_close(struct hd_backend *backend)
{
    struct sqlite_backend *sqlite = sqlite_from(backend);

    /* The writer is closed last: it may copy the log into the database. */
    while (sqlite->idle_count > 0)
        hd_sqlite_conn_close(sqlite->idle[--sqlite->idle_count]);
    hd_sqlite_conn_close(sqlite->writer);
    pthread_mutex_destroy(&sqlite->pool_lock);
    pthread_mutex_destroy(&sqlite->write_lock);
    pthread_cond_destroy(&sqlite->has_reader);
    hd_free(sqlite->path);
    hd_free(sqlite);
}

const struct hd_backend_ops hd_backend_sqlite = {
    .can_count = true,
    .schemes = {"sqlite"},
    .open = sqlite_open,
    .upgrade = sqlite_upgrade,
    .close = sqlite_close,
    .apply = sqlite_apply,
    .read = sqlite_read,
    .check = sqlite_check,
    .compact = sqlite_compact,
};
