/*
 * Opens a path as a Heddle database.
 *
 * Problems that can be foreseen are checked before SQLite touches anything, so that the error is
 * "the directory does not exist" and not "unable to open database file", and so that a rejected
 * path stays unchanged.
 *
 * A new database is created in one transaction in SQLite's rollback mode; only a complete one is
 * switched to write-ahead logging. Two processes may do that at once: the second to get the lock
 * finds the work done. A process that fails before anything was written removes the empty file
 * again, under the same lock, and a process that waited for that lock notices that its file is gone
 * and starts over.
 */
#include "store/sqlite/backend_sqlite.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"

/*
 * Rows of 900 to 1,300 bytes fill pages of 8 KiB better, but only by a
 * twentieth (4.04 MB instead of 4.25 MB for 2,000 checkpoints with a message
 * each), while each commit would write twice as many bytes to the log.
 */
#define PAGE_SIZE_SQL "PRAGMA page_size=4096"

/* The free list can only be cut off (hd_backend_compact) in a database that was created for it. */
#define AUTO_VACUUM_SQL "PRAGMA auto_vacuum=INCREMENTAL"

#define MAX_SCHEMA_SQL 65536

/*
 * For use in a SQLite shell; the library itself never reads them. A thread key is
 * `principal:thread_id`, times are microseconds since 1970. The views of the server's tables are
 * made from their declarations.
 */
static const char views[] =
    "CREATE VIEW heddle_threads AS\n"
    "SELECT substr(t.thread_id, 1, instr(t.thread_id, ':') - 1) AS principal,\n"
    "       substr(t.thread_id, instr(t.thread_id, ':') + 1) AS thread_id,\n"
    "       strftime('%Y-%m-%dT%H:%M:%fZ', t.created_at / 1e6, 'unixepoch') AS created_at,\n"
    "       strftime('%Y-%m-%dT%H:%M:%fZ', t.updated_at / 1e6, 'unixepoch') AS updated_at,\n"
    "       (SELECT count(*) FROM checkpoints AS c WHERE c.thread_id = t.thread_id)\n"
    "           AS checkpoints\n"
    "FROM threads AS t;\n"
    "CREATE VIEW heddle_checkpoints AS\n"
    "SELECT substr(thread_id, 1, instr(thread_id, ':') - 1) AS principal,\n"
    "       substr(thread_id, instr(thread_id, ':') + 1) AS thread_id,\n"
    "       checkpoint_ns, checkpoint_id, parent_checkpoint_id, run_id, metadata\n"
    "FROM checkpoints;\n";

/*
 * Rooms in the columns that applications expect. A content is a JSON string or a list of blocks;
 * only its text is shown. A run that was pruned had ended.
 */
#define ROOM_VIEWS_SINCE 9
static const char room_views[] =
    "CREATE VIEW chat_messages AS\n"
    "SELECT m.message_id AS id, m.thread_id,\n"
    "       CASE WHEN m.body ->> 'kind' <> 'agent' THEN m.body ->> 'sender_id' END AS sender_id,\n"
    "       CASE WHEN m.body ->> 'kind' = 'agent' THEN m.sender END AS agent_id,\n"
    "       CASE WHEN m.state = 'deleted' THEN NULL\n"
    "            WHEN json_type(c.content) = 'array' THEN\n"
    "                (SELECT group_concat(CASE b.type WHEN 'text' THEN b.value\n"
    "                     WHEN 'object' THEN b.value ->> 'text' END, '')\n"
    "                 FROM json_each(c.content) AS b)\n"
    "            ELSE c.content ->> '$' END AS content,\n"
    "       CASE WHEN m.state = 'deleted' THEN '{}'\n"
    "            ELSE coalesce(c.body -> 'metadata', '{}') END AS metadata,\n"
    "       m.body ->> 'reply_to' AS parent_message_id,\n"
    "       strftime('%Y-%m-%dT%H:%M:%fZ', m.created_at / 1e6, 'unixepoch') AS created_at,\n"
    "       strftime('%Y-%m-%dT%H:%M:%fZ',\n"
    "           coalesce(m.body ->> 'updated_at', m.created_at) / 1e6, 'unixepoch')\n"
    "           AS updated_at,\n"
    "       m.state = 'deleted' AS is_deleted, m.principal\n"
    "FROM room_messages AS m LEFT JOIN room_contents AS c\n"
    "     USING (principal, thread_id, message_id, version);\n"
    "CREATE VIEW message_runs AS\n"
    "SELECT m.run_id AS id, m.body ->> 'answer' AS message_id, m.run_id,\n"
    "       m.body ->> 'assistant_id' AS assistant_id, m.body ->> 'runtime' AS runtime,\n"
    "       m.thread_id, nullif(m.trigger_id, '') AS trigger_message_id,\n"
    "       m.body ->> 'head_after' AS checkpoint_id,\n"
    "       CASE coalesce(r.status, 'success') WHEN 'success' THEN 'completed'\n"
    "            WHEN 'timeout' THEN 'error' ELSE r.status END AS status,\n"
    "       strftime('%Y-%m-%dT%H:%M:%fZ', m.created_at / 1e6, 'unixepoch') AS created_at,\n"
    "       m.principal\n"
    "FROM room_runs AS m LEFT JOIN runs AS r USING (principal, thread_id, run_id);\n";

/* ---- the path --------------------------------------------------------- */

static int refuse_path(struct heddle_error *fault, int code, const char *path, const char *cause)
{
    size_t len = strlen(path);

    if (hd_errors_are_hidden())
        return hd_error_set(fault, code, "the database: %s", cause);
    return hd_error_set(fault, code, "%s%s: %s", len > 150 ? "…" : "",
                        len > 150 ? path + len - 150 : path, cause);
}

/* The directory of `path`, without a trailing slash unless it is the root. */
static bool directory_of(const char *path, char out[PATH_MAX])
{
    const char *slash = strrchr(path, '/');
    size_t len = slash ? (size_t)(slash - path) : 0;

    if (len >= PATH_MAX)
        return false;
    if (len > 0)
        memcpy(out, path, len);
    else
        out[len++] = slash ? '/' : '.';
    out[len] = '\0';
    return true;
}

static int check_directory(const char *path, struct heddle_error *fault)
{
    char directory[PATH_MAX];
    struct stat st;

    if (!directory_of(path, directory))
        return refuse_path(fault, HD_EINVAL, path, "the path is too long");
    if (stat(directory, &st) != 0)
        return refuse_path(fault, errno == EACCES ? HD_EACCESS : HD_ENOTFOUND, path,
                           errno == EACCES ? "its directory is not accessible"
                                           : "its directory does not exist");
    if (!S_ISDIR(st.st_mode))
        return refuse_path(fault, HD_ENOTFOUND, path, "its parent is a file, not a directory");
    /* Also checked for an existing file: SQLite keeps its log beside it. */
    if (faccessat(AT_FDCWD, directory, W_OK | X_OK, AT_EACCESS) != 0)
        return refuse_path(fault, HD_EACCESS, path, "its directory is not writable");
    return 0;
}

/* Does not open the file: closing it would drop SQLite's locks on it. */
static int check_path(const char *path, bool *exists, struct heddle_error *fault)
{
    char resolved[PATH_MAX];
    struct stat st;

    *exists = stat(path, &st) == 0;
    if (!*exists)
        return check_directory(path, fault);
    if (S_ISDIR(st.st_mode))
        return refuse_path(fault, HD_EINVAL, path, "is a directory, not a file");
    if (!S_ISREG(st.st_mode))
        return refuse_path(fault, HD_EINVAL, path, "is not a regular file");
    if (faccessat(AT_FDCWD, path, R_OK | W_OK, AT_EACCESS) != 0)
        return refuse_path(fault, HD_EACCESS, path,
                           "the file is read-only or belongs to another user");
    return check_directory(realpath(path, resolved) ? resolved : path, fault);
}

/* ---- identity --------------------------------------------------------- */

/*
 * The schema's version, 0 for an empty file. Inside a transaction, so that the three values are
 * consistent.
 */
static int identify(struct hd_sqlite_conn *conn, int *out, struct heddle_error *fault)
{
    int64_t objects, application, version;
    int err;

    err = hd_sqlite_query_int(conn, "SELECT count(*) FROM sqlite_schema", &objects, fault);
    if (!err)
        err = hd_sqlite_query_int(conn, "PRAGMA application_id", &application, fault);
    if (!err)
        err = hd_sqlite_query_int(conn, "PRAGMA user_version", &version, fault);
    if (err)
        return err;
    *out = 0;
    if (objects == 0 && application == 0)
        return 0;
    if (application != HD_SQLITE_APPLICATION_ID)
        return hd_error_set(fault, HD_EINVAL, "%s: is a SQLite database of another application",
                            hd_sqlite_name(conn));
    if (version > HD_SCHEMA_VERSION)
        return hd_error_set(fault, HD_EVERSION,
                            "%s: has schema version %lld, this library supports versions up to %d: "
                            "upgrade the library",
                            hd_sqlite_name(conn), (long long)version, HD_SCHEMA_VERSION);
    if (version < 1)
        return hd_error_set(fault, HD_ECORRUPT, "%s: its schema version is missing",
                            hd_sqlite_name(conn));
    *out = (int)version;
    return 0;
}

static int path_inspect(struct hd_sqlite_conn *conn, int *version, struct heddle_error *fault)
{
    int err = hd_sqlite_run(conn, HD_SQLITE_BEGIN, fault);

    if (err)
        return err;
    err = identify(conn, version, fault);
    if (!err)
        err = hd_sqlite_run(conn, HD_SQLITE_COMMIT, fault);
    return err;
}

/* ---- creation --------------------------------------------------------- */

/* The statements from `version` to ours. */
static int write_schema(struct hd_buf *sql, int version)
{
    int err = 0;

    for (int i = 0; !err && i < HD_TABLE_COUNT; i++) {
        if (hd_tables[i].since <= version) {
            err = hd_sqlite_new_indexes_sql(sql, &hd_tables[i], version);
            continue;
        }
        err = hd_sqlite_table_sql(sql, &hd_tables[i]);
        if (!err && i >= HD_ASSISTANTS)
            err = hd_sqlite_view_sql(sql, &hd_tables[i]);
    }
    if (!err && version < 1)
        err = hd_buf_append(sql, views, sizeof(views) - 1);
    if (!err && version < ROOM_VIEWS_SINCE)
        err = hd_buf_append(sql, room_views, sizeof(room_views) - 1);
    if (!err)
        err = hd_buf_printf(sql, "PRAGMA application_id=%d; PRAGMA user_version=%d;",
                            HD_SQLITE_APPLICATION_ID, HD_SCHEMA_VERSION);
    if (!err)
        err = hd_buf_append_byte(sql, 0);
    return err;
}

static int create_tables(struct hd_sqlite_conn *conn, int version, struct heddle_error *fault)
{
    struct hd_buf sql;
    int err;

    hd_buf_init(&sql, MAX_SCHEMA_SQL);
    err = write_schema(&sql, version);
    if (err)
        hd_error_set(fault, err, "%s: %s", hd_sqlite_name(conn), hd_error_text(err));
    else
        err = hd_sqlite_exec(conn, sql.ptr, "creating the tables", fault);
    hd_buf_fini(&sql);
    return err;
}

/* Creates all missing objects in an empty file or in one of an older version. */
static int schema_create(struct hd_sqlite_conn *conn, struct heddle_error *fault)
{
    int version, err;

    /*
     * Both only take effect before the first page is written, so they cannot be in the transaction.
     */
    err = hd_sqlite_exec(conn, PAGE_SIZE_SQL ";" AUTO_VACUUM_SQL, "creating the file", fault);
    if (!err)
        err = hd_sqlite_run(conn, HD_SQLITE_BEGIN_IMMEDIATE, fault);
    if (err)
        return err;
    err = identify(conn, &version, fault);
    if (!err && version < HD_SCHEMA_VERSION)
        err = create_tables(conn, version, fault);
    if (!err)
        err = hd_sqlite_run(conn, HD_SQLITE_COMMIT, fault);
    if (err)
        hd_sqlite_abandon(conn);
    return err;
}

static int switch_to_log(struct hd_sqlite_conn *conn, struct heddle_error *fault)
{
    sqlite3_stmt *stmt = NULL;
    const char *mode;
    int err = 0;

    if (sqlite3_prepare_v2(conn->db, "PRAGMA journal_mode=WAL", -1, &stmt, NULL) != SQLITE_OK ||
        sqlite3_step(stmt) != SQLITE_ROW) {
        err = hd_sqlite_fail(conn, "switching to write-ahead logging", fault);
    } else {
        mode = (const char *)sqlite3_column_text(stmt, 0);
        if (!mode || strcmp(mode, "wal") != 0)
            err = hd_error_set(fault, HD_EUNSUPPORTED,
                               "%s: this file system does not support write-ahead logging",
                               hd_sqlite_name(conn));
    }
    sqlite3_finalize(stmt);
    return err;
}

/*
 * The switch needs exclusive use of the file for a moment, and SQLite does not wait for that if two
 * connections could deadlock. So this function waits.
 */
static int use_log(struct hd_sqlite_conn *conn, struct heddle_error *fault)
{
    int64_t deadline = hd_clock_monotonic_us() + (int64_t)conn->timeout_ms * 1000;

    for (;;) {
        struct heddle_error local = {0};
        int err = switch_to_log(conn, &local);

        if (err != HD_EBUSY || hd_clock_monotonic_us() >= deadline)
            return err ? hd_error_set(fault, err, "%s", local.text) : 0;
        hd_clock_sleep_us(2000);
    }
}

static int make_enough(struct hd_sqlite_conn *conn, int enough, struct heddle_error *fault)
{
    int version;
    int err = path_inspect(conn, &version, fault);

    if (!err && version < enough)
        err = schema_create(conn, fault);
    return err;
}

int hd_sqlite_upgrade(struct hd_sqlite_conn *conn, struct heddle_error *fault)
{
    return make_enough(conn, HD_SCHEMA_VERSION, fault);
}

/* ---- opening ---------------------------------------------------------- */

/*
 * Removes a file in which nothing was ever committed. The lock must not need
 * disk space: the journal stays in memory.
 */
static void remove_if_empty(struct hd_sqlite_conn *conn, const char *path)
{
    int version = 0;

    if (!hd_sqlite_abandon(conn) ||
        hd_sqlite_exec(conn, "PRAGMA journal_mode=MEMORY; BEGIN EXCLUSIVE", "", NULL) != 0)
        return;
    if (identify(conn, &version, NULL) == 0 && version == 0 && !hd_sqlite_has_moved(conn))
        unlink(path);
    hd_sqlite_abandon(conn);
}

static int open_once(struct hd_sqlite_conn **out, const char *path, int enough, int timeout_ms,
                     struct heddle_error *fault)
{
    struct hd_sqlite_conn *conn = NULL;
    bool exists;
    int err = check_path(path, &exists, fault);

    if (!err)
        err = hd_sqlite_conn_open(&conn, path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE,
                                  timeout_ms, fault);
    if (err)
        return err;
    if (sqlite3_db_readonly(conn->db, "main") == 1)
        err = hd_error_set(fault, HD_EACCESS, "%s: the file is read-only", hd_sqlite_name(conn));
    if (!err) {
        err = make_enough(conn, enough, fault);
        if (err && !exists)
            remove_if_empty(conn, path);
    }
    if (!err)
        err = use_log(conn, fault);
    if (err)
        hd_sqlite_conn_close(conn);
    else
        *out = conn;
    return err;
}

int hd_sqlite_open_file(struct hd_sqlite_conn **out, const char *path, int enough, int timeout_ms,
                        struct heddle_error *fault)
{
    struct hd_sqlite_conn *conn = NULL;
    int err;

    for (int attempt = 0; attempt < 10; attempt++) {
        err = open_once(&conn, path, enough, timeout_ms, fault);
        if (err)
            return err;
        if (!hd_sqlite_has_moved(conn)) {
            *out = conn;
            return 0;
        }
        hd_sqlite_conn_close(conn);
    }
    return refuse_path(fault, HD_EIO, path, "another process keeps removing the file");
}

int hd_sqlite_open_memory(struct hd_sqlite_conn **out, int timeout_ms, struct heddle_error *fault)
{
    struct hd_sqlite_conn *conn = NULL;
    int err;

    err = hd_sqlite_conn_open(&conn, ":memory:", SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE,
                              timeout_ms, fault);
    if (err)
        return err;
    err = hd_sqlite_upgrade(conn, fault);
    if (err)
        hd_sqlite_conn_close(conn);
    else
        *out = conn;
    return err;
}
