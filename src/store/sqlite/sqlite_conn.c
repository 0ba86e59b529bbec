/*
 * One connection to a SQLite database, used by one thread at a time.
 *
 * Statements are prepared once for each shape and kept. This file waits for locks itself, because
 * SQLite's own timeout sleeps up to a tenth of a second at a time, which is too long when several
 * processes share a file.
 */
#include "store/sqlite/backend_sqlite.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"

/* The log is copied into the database whenever it has this many pages. */
#define CHECKPOINT_PAGES 1000

/*
 * The log starts over only when no reader needs it. Continuously overlapping readers could let it
 * grow without limit: from this size on (64 MiB) a writer waits for them briefly, and again each
 * time it has grown by a quarter.
 */
#define RESTART_PAGES 16384
#define RESTART_WAIT_MS 100

#define MAX_SQL_LEN 8192

/* ---- errors ----------------------------------------------------------- */

static int our_code(int code)
{
    switch (code & 0xff) {
    case SQLITE_NOMEM:
        return HD_ENOMEM;
    case SQLITE_FULL:
        return HD_EFULL;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_PROTOCOL:
        return HD_EBUSY;
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
        return HD_EACCESS;
    case SQLITE_TOOBIG:
        return HD_ELIMIT;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    case SQLITE_ERROR: /* our SQL is correct: the tables are not as expected */
    case SQLITE_MISMATCH:
    case SQLITE_CONSTRAINT:
        return HD_ECORRUPT;
    default:
        return code == SQLITE_IOERR_NOMEM ? HD_ENOMEM : HD_EIO;
    }
}

const char *hd_sqlite_name(const struct hd_sqlite_conn *conn)
{
    return hd_errors_are_hidden() ? "the database" : conn->name;
}

int hd_sqlite_fail(struct hd_sqlite_conn *conn, const char *doing, struct heddle_error *fault)
{
    int code = sqlite3_extended_errcode(conn->db);
    int err = our_code(code);

    conn->is_broken = conn->is_broken || (err != HD_EBUSY && err != HD_ELIMIT);
    return hd_error_set(fault, err, "%s: while %s: %s", hd_sqlite_name(conn), doing,
                        sqlite3_errmsg(conn->db));
}

/* Faults have room for a sentence, paths may be longer: their end is more useful. */
static void set_name(struct hd_sqlite_conn *conn, const char *path)
{
    size_t len = strlen(path);
    const char *from = path;
    const char *mark = "";

    if (len >= sizeof(conn->name)) {
        mark = "…";
        from = path + len - (sizeof(conn->name) - 1 - strlen(mark));
        while (((unsigned char)*from & 0xc0) == 0x80)
            from++;
    }
    snprintf(conn->name, sizeof(conn->name), "%s%s", mark, from);
}

/* ---- waiting ---------------------------------------------------------- */

static int on_busy(void *arg, int attempt)
{
    struct hd_sqlite_conn *conn = arg;
    int64_t now = hd_clock_monotonic_us();
    int64_t left, pause;

    if (attempt == 0)
        conn->waiting_since_us = now;
    left = conn->waiting_since_us + (int64_t)conn->timeout_ms * 1000 - now;
    if (left <= 0)
        return 0;
    /* From half a millisecond to five, at random. */
    pause = 500 * (attempt < 9 ? attempt + 1 : 10);
    pause = pause / 2 + now % pause;
    hd_clock_sleep_us(pause < left ? pause : left);
    return 1;
}

/* Called after each commit. A failure to shorten the log does not undo the commit. */
static int on_commit(void *arg, sqlite3 *db, const char *schema, int pages)
{
    struct hd_sqlite_conn *conn = arg;
    int timeout_ms = conn->timeout_ms;

    if (pages < CHECKPOINT_PAGES) {
        conn->restart_at = RESTART_PAGES;
    } else if (pages < conn->restart_at) {
        sqlite3_wal_checkpoint_v2(db, schema, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
    } else {
        conn->restart_at = pages + pages / 4;
        conn->timeout_ms = RESTART_WAIT_MS;
        sqlite3_wal_checkpoint_v2(db, schema, SQLITE_CHECKPOINT_RESTART, NULL, NULL);
        conn->timeout_ms = timeout_ms;
    }
    return SQLITE_OK;
}

/* ---- statements ------------------------------------------------------- */

int hd_sqlite_exec(struct hd_sqlite_conn *conn, const char *sql, const char *doing,
                   struct heddle_error *fault)
{
    if (sqlite3_exec(conn->db, sql, NULL, NULL, NULL) != SQLITE_OK)
        return hd_sqlite_fail(conn, doing, fault);
    return 0;
}

int hd_sqlite_query_int(struct hd_sqlite_conn *conn, const char *sql, int64_t *out,
                        struct heddle_error *fault)
{
    sqlite3_stmt *stmt;
    int err = 0;
    int step;

    if (sqlite3_prepare_v2(conn->db, sql, -1, &stmt, NULL) != SQLITE_OK)
        return hd_sqlite_fail(conn, "reading the schema", fault);
    step = sqlite3_step(stmt);
    if (step == SQLITE_ROW)
        *out = sqlite3_column_int64(stmt, 0);
    else if (step == SQLITE_DONE)
        err = hd_error_set(fault, HD_ECORRUPT, "%s: no result for %s", hd_sqlite_name(conn), sql);
    else
        err = hd_sqlite_fail(conn, "reading the schema", fault);
    sqlite3_finalize(stmt);
    return err;
}

static sqlite3_stmt *find_statement(const struct hd_sqlite_conn *conn, uint64_t shape)
{
    for (unsigned i = 0; i < conn->statement_count; i++) {
        if (conn->statements[i].shape == shape)
            return conn->statements[i].stmt;
    }
    return NULL;
}

static const struct {
    const char *sql;
    const char *doing;
} fixed_statements[] = {
    [HD_SQLITE_BEGIN] = {"BEGIN", "beginning to read"},
    [HD_SQLITE_BEGIN_IMMEDIATE] = {"BEGIN IMMEDIATE", "waiting to write"},
    [HD_SQLITE_COMMIT] = {"COMMIT", "committing"},
    [HD_SQLITE_ROLLBACK] = {"ROLLBACK", "rolling back"},
};

/*
 * Prepares and keeps a statement. Beyond the limit the oldest one is dropped, but none of the fixed
 * ones, which are the first; no statement is in use during this call.
 */
static int keep_statement(struct hd_sqlite_conn *conn, uint64_t shape, const char *sql, size_t len,
                          sqlite3_stmt **out, struct heddle_error *fault)
{
    sqlite3_stmt *stmt;
    unsigned at;

    if (sqlite3_prepare_v3(conn->db, sql, (int)len, SQLITE_PREPARE_PERSISTENT, &stmt, NULL) !=
        SQLITE_OK)
        return hd_sqlite_fail(conn, "preparing a statement", fault);
    if (conn->statement_count < HD_SQLITE_STATEMENTS) {
        at = conn->statement_count++;
    } else {
        at = HD_COUNT(fixed_statements) +
             conn->next_victim++ % (HD_SQLITE_STATEMENTS - HD_COUNT(fixed_statements));
        sqlite3_finalize(conn->statements[at].stmt);
    }
    conn->statements[at].shape = shape;
    conn->statements[at].stmt = stmt;
    *out = stmt;
    return 0;
}

int hd_sqlite_op_statement(struct hd_sqlite_conn *conn, const struct hd_op *op, sqlite3_stmt **out,
                           struct heddle_error *fault)
{
    uint64_t shape = hd_sqlite_op_shape(op);
    struct hd_buf sql;
    int err;

    *out = find_statement(conn, shape);
    if (*out)
        return 0;
    hd_buf_init(&sql, MAX_SQL_LEN);
    err = hd_sqlite_op_sql(&sql, op);
    if (err)
        hd_error_set(fault, err, "%s: %s", hd_sqlite_name(conn), hd_error_text(err));
    else
        err = keep_statement(conn, shape, sql.ptr, sql.len, out, fault);
    hd_buf_fini(&sql);
    return err;
}

int hd_sqlite_query_statement(struct hd_sqlite_conn *conn, const struct hd_query *query,
                              sqlite3_stmt **out, struct heddle_error *fault)
{
    uint64_t shape = hd_sqlite_query_shape(query);
    struct hd_buf sql;
    int err;

    *out = find_statement(conn, shape);
    if (*out)
        return 0;
    hd_buf_init(&sql, MAX_SQL_LEN);
    err = hd_sqlite_query_sql(&sql, query);
    if (err)
        hd_error_set(fault, err, "%s: %s", hd_sqlite_name(conn), hd_error_text(err));
    else
        err = keep_statement(conn, shape, sql.ptr, sql.len, out, fault);
    hd_buf_fini(&sql);
    return err;
}

static int fixed_statement(struct hd_sqlite_conn *conn, enum hd_sqlite_fixed which,
                           sqlite3_stmt **out, struct heddle_error *fault)
{
    const char *sql = fixed_statements[which].sql;

    *out = find_statement(conn, which);
    return *out ? 0 : keep_statement(conn, which, sql, strlen(sql), out, fault);
}

int hd_sqlite_run(struct hd_sqlite_conn *conn, enum hd_sqlite_fixed which,
                  struct heddle_error *fault)
{
    sqlite3_stmt *stmt;
    int err = fixed_statement(conn, which, &stmt, fault);

    if (err)
        return err;
    if (sqlite3_step(stmt) != SQLITE_DONE)
        err = hd_sqlite_fail(conn, fixed_statements[which].doing, fault);
    sqlite3_reset(stmt);
    return err;
}

static void drop_statements(struct hd_sqlite_conn *conn)
{
    while (conn->statement_count > 0)
        sqlite3_finalize(conn->statements[--conn->statement_count].stmt);
}

/*
 * A rollback must not need memory, least of all when memory is exhausted. So the fixed statements
 * are prepared before they are needed, and after the last change of schema or settings: that would
 * make SQLite prepare them again.
 */
static int keep_fixed_statements(struct hd_sqlite_conn *conn, struct heddle_error *fault)
{
    sqlite3_stmt *stmt;
    int err = 0;

    drop_statements(conn);
    for (size_t i = 0; !err && i < HD_COUNT(fixed_statements); i++)
        err = fixed_statement(conn, (enum hd_sqlite_fixed)i, &stmt, fault);
    return err;
}

bool hd_sqlite_abandon(struct hd_sqlite_conn *conn)
{
    /* Some errors have rolled back already; after those ROLLBACK itself would be an error. */
    return sqlite3_get_autocommit(conn->db) || hd_sqlite_run(conn, HD_SQLITE_ROLLBACK, NULL) == 0 ||
           sqlite3_get_autocommit(conn->db);
}

int hd_sqlite_bind(sqlite3_stmt *stmt, int at, enum hd_column_type type, const struct hd_cell *cell)
{
    /* A null pointer would bind NULL instead of an empty value. */
    const char *bytes = cell->bytes.ptr ? cell->bytes.ptr : "";

    switch (cell->kind) {
    case HD_CELL_NULL:
        return sqlite3_bind_null(stmt, at);
    case HD_CELL_INT:
        return sqlite3_bind_int64(stmt, at, cell->number);
    case HD_CELL_BYTES:
        if (type == HD_COL_TEXT)
            return sqlite3_bind_text64(stmt, at, bytes, cell->bytes.len, SQLITE_STATIC,
                                       SQLITE_UTF8);
        return sqlite3_bind_blob64(stmt, at, bytes, cell->bytes.len, SQLITE_STATIC);
    }
    return SQLITE_MISUSE;
}

/* ---- opening and closing ---------------------------------------------- */

/*
 * A new file is empty until here, and SQLite creates its companions (-wal, -shm, -journal) with its
 * mode. Not every file system has modes.
 */
static void keep_private(const char *path)
{
    if (chmod(path, S_IRUSR | S_IWUSR) != 0)
        hd_log(HD_LOG_WARN, "sqlite", "the database file cannot be made private: %s",
               strerror(errno));
}

int hd_sqlite_conn_open(struct hd_sqlite_conn **out, const char *path, int flags, int timeout_ms,
                        struct heddle_error *fault)
{
    struct hd_sqlite_conn *conn = hd_calloc(1, sizeof(*conn));
    struct stat st;
    bool is_new;
    int err;

    if (!conn)
        return hd_error_set(fault, HD_ENOMEM, "sqlite: out of memory");
    set_name(conn, path);
    conn->timeout_ms = timeout_ms;
    conn->restart_at = RESTART_PAGES;
    is_new = (flags & SQLITE_OPEN_CREATE) && stat(path, &st) != 0 && errno == ENOENT;
    /* Each connection is used by one thread at a time: SQLite need not lock it. */
    if (sqlite3_open_v2(path, &conn->db, flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE,
                        NULL) != SQLITE_OK ||
        sqlite3_busy_handler(conn->db, on_busy, conn) != SQLITE_OK) {
        err = hd_sqlite_fail(conn, "opening", fault);
        hd_sqlite_conn_close(conn);
        return err;
    }
    if (is_new)
        keep_private(path);
    *out = conn;
    return 0;
}

void hd_sqlite_conn_close(struct hd_sqlite_conn *conn)
{
    if (!conn)
        return;
    drop_statements(conn);
    /* The last connection to a file copies the log into the database and removes it. */
    sqlite3_close(conn->db);
    hd_free(conn);
}

int hd_sqlite_conn_configure(struct hd_sqlite_conn *conn, enum hd_sqlite_role role, bool is_relaxed,
                             struct heddle_error *fault)
{
    bool is_writer = role == HD_SQLITE_WRITER;
    int err;

    /*
     * FULL: the log is flushed at every commit, so that acknowledged writes survive a loss of
     * power. NORMAL flushes at checkpoints only; the file stays consistent, the last commits may be
     * missing.
     */
    err = hd_sqlite_exec(conn, is_relaxed ? "PRAGMA synchronous=NORMAL" : "PRAGMA synchronous=FULL",
                         "configuring", fault);
    if (err)
        return err;
    /*
     * secure_delete: Debian builds SQLite so that it overwrites all deleted data, which writes each
     * freed page once more. FAST overwrites within pages that are written anyway: most deleted data
     * is really gone, at no cost. A memory map is off because an I/O error in it kills the process.
     * journal_size_limit shrinks the log after a burst.
     */
    err = hd_sqlite_exec(conn,
                         "PRAGMA secure_delete=FAST; PRAGMA temp_store=MEMORY;"
                         "PRAGMA mmap_size=0; PRAGMA cache_size=-4096;"
                         "PRAGMA journal_size_limit=16777216",
                         "configuring", fault);
    if (!err && !is_writer)
        err = hd_sqlite_exec(conn, "PRAGMA query_only=ON", "configuring", fault);
    if (!err)
        err = keep_fixed_statements(conn, fault);
    if (!err && is_writer)
        sqlite3_wal_hook(conn->db, on_commit, conn);
    return err;
}

bool hd_sqlite_has_moved(struct hd_sqlite_conn *conn)
{
    int moved = 0;

    return sqlite3_file_control(conn->db, "main", SQLITE_FCNTL_HAS_MOVED, &moved) == SQLITE_OK &&
           moved;
}
