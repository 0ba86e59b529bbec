/*
 * Cases of databases in files alone: files of other programs, growth, waiting. Several processes
 * and crashes: sqlite_process_test.c.
 */
#include "tests/contract/sqlite_help.h"

#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <sys/wait.h>

#include "store/sqlite/backend_sqlite.h"
#include "tests/contract/room_view_rows.h"

/* Names and contents, as one number that does not depend on their order. */
static void add_entry(const char *entry, void *arg)
{
    uint64_t hash = 14695981039346656037u;
    struct stat st;
    FILE *file;
    int c;

    for (const char *p = entry; *p; p++)
        hash = (hash ^ (unsigned char)*p) * 1099511628211u;
    assert_int_equal(lstat(entry, &st), 0);
    file = S_ISREG(st.st_mode) ? fopen(entry, "rb") : NULL;
    while (file && (c = fgetc(file)) != EOF)
        hash = (hash ^ (unsigned)c) * 1099511628211u;
    if (file)
        fclose(file);
    *(uint64_t *)arg += hash;
}

static uint64_t hash_dir(void)
{
    uint64_t hash = 0;

    each_entry(add_entry, &hash);
    return hash;
}

static off_t file_size(const char *suffix)
{
    char full[120];
    struct stat st;

    snprintf(full, sizeof(full), "%s%s", path, suffix);
    return stat(full, &st) == 0 ? st.st_size : -1;
}

static void run_sql(const char *sql)
{
    sqlite3 *db;

    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
        fail_msg("%s: %s", sql, sqlite3_errmsg(db));
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

/* ---- files that are not ours ------------------------------------------ */

static void make_nothing(void) {}

static void make_garbage(void)
{
    char bytes[5000];

    memset(bytes, 'x', sizeof(bytes));
    write_file(bytes, sizeof(bytes));
}

static void make_short_garbage(void)
{
    write_file("hello\n", 6);
}

static void make_foreign(void)
{
    run_sql("CREATE TABLE users (name TEXT); INSERT INTO users VALUES ('ada')");
}

static void make_foreign_with_log(void)
{
    run_sql("PRAGMA journal_mode=WAL; CREATE TABLE users (name TEXT)");
}

static void make_foreign_without_tables(void)
{
    run_sql("PRAGMA application_id=77");
}

static void make_ours(void)
{
    struct hd_backend *backend = must_open(url);

    for (int i = 0; i < 20; i++)
        assert_err(APPLY(backend, PUT(HD_CHUNKS, CHUNK("t", i, "data"))), 0);
    hd_backend_close(backend);
}

static void make_newer(void)
{
    make_ours();
    run_sql("PRAGMA user_version=99");
}

static void make_unversioned(void)
{
    make_ours();
    run_sql("PRAGMA user_version=0");
}

static void make_truncated(void)
{
    make_ours();
    assert_int_equal(truncate(path, file_size("") / 2), 0);
}

static void make_damaged(void)
{
    FILE *file;

    make_ours();
    file = fopen(path, "r+b");
    assert_non_null(file);
    /* The page that holds the declarations of the tables, behind its header. */
    assert_int_equal(fseek(file, 100, SEEK_SET), 0);
    for (int i = 0; i < 2000; i++)
        fputc(0xee, file);
    assert_int_equal(fclose(file), 0);
}

static void make_directory(void)
{
    assert_int_equal(mkdir(path, 0755), 0);
}

static void make_pipe(void)
{
    assert_int_equal(mkfifo(path, 0644), 0);
}

static void make_read_only(void)
{
    make_ours();
    assert_int_equal(chmod(path, 0444), 0);
}

static void lock_directory(void)
{
    assert_int_equal(chmod(dir, 0555), 0);
}

static void make_ours_in_locked_directory(void)
{
    make_ours();
    assert_int_equal(chmod(path, 0666), 0);
    lock_directory();
}

struct bad_file {
    const char *name;
    void (*make)(void);
    const char *below; /* appended to the path */
    int err;
    const char *says;
};

static const struct bad_file bad_files[] = {
    {"garbage", make_garbage, "", HD_ECORRUPT, "not a database"},
    {"short garbage", make_short_garbage, "", HD_ECORRUPT, "not a database"},
    {"another application's", make_foreign, "", HD_EINVAL, "another application"},
    {"another's in log mode", make_foreign_with_log, "", HD_EINVAL, "another application"},
    {"another's, no tables", make_foreign_without_tables, "", HD_EINVAL, "another application"},
    {"newer", make_newer, "", HD_EVERSION, "schema version 99"},
    {"unversioned", make_unversioned, "", HD_ECORRUPT, "version is missing"},
    {"truncated", make_truncated, "", HD_ECORRUPT, "malformed"},
    {"damaged", make_damaged, "", HD_ECORRUPT, "malformed"},
    {"directory", make_directory, "", HD_EINVAL, "is a directory"},
    {"pipe", make_pipe, "", HD_EINVAL, "not a regular file"},
    {"missing directory", make_nothing, "/below/file.db", HD_ENOTFOUND, "does not exist"},
    {"directory is a file", make_garbage, "/file.db", HD_ENOTFOUND, "is a file"},
    {"read-only file", make_read_only, "", HD_EACCESS, "read-only"},
    {"unwritable directory", lock_directory, "", HD_EACCESS, "not writable"},
    {"ours, unwritable directory", make_ours_in_locked_directory, "", HD_EACCESS, "not writable"},
};

/* Returns the error, or NULL. */
static const char *try_bad_file(const struct bad_file *bad)
{
    static char wrong[700];
    struct hd_backend *backend = NULL;
    struct heddle_error fault = {0};
    char text[200];
    int err;

    snprintf(text, sizeof(text), "sqlite:%s%s?timeout=1", path, bad->below);
    err = open_url(&backend, text, &fault);
    if (err == bad->err && !backend && strstr(fault.text, bad->says) && strstr(fault.text, path))
        return NULL;
    snprintf(wrong, sizeof(wrong), "%s: got %s, \"%s\"", bad->name, hd_error_name(err), fault.text);
    return wrong;
}

/* Permissions do not restrict root: a child with another user id runs those cases. */
static void try_as_nobody(const struct bad_file *bad)
{
    pid_t child = fork();
    int status;

    assert_true(child >= 0);
    if (child == 0) {
        const char *wrong = "cannot become nobody";

        if (getuid() != 0 || (setgid(65534) == 0 && setuid(65534) == 0))
            wrong = try_bad_file(bad);
        if (wrong)
            fprintf(stderr, "%s\n", wrong);
        _exit(wrong ? 1 : 0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void bad_files_are_refused_and_left_alone(void **state)
{
    for (size_t i = 0; i < HD_COUNT(bad_files); i++) {
        const char *wrong = NULL;
        uint64_t before;

        assert_int_equal(remove_dir(state), 0);
        assert_int_equal(make_dir(state), 0);
        assert_int_equal(chmod(dir, 0755), 0);
        bad_files[i].make();
        before = hash_dir();
        if (bad_files[i].err == HD_EACCESS)
            try_as_nobody(&bad_files[i]);
        else
            wrong = try_bad_file(&bad_files[i]);
        if (wrong)
            fail_msg("%s", wrong);
        if (hash_dir() != before)
            fail_msg("%s: something was changed", bad_files[i].name);
    }
}

static void long_paths_keep_the_cause_in_sight(void **state)
{
    struct hd_backend *backend = NULL;
    struct heddle_error fault = {0};
    char text[600];

    (void)state;
    snprintf(text, sizeof(text), "sqlite:%s/%0250d/%0200d.db", dir, 1, 2);
    assert_err(open_url(&backend, text, &fault), HD_ENOTFOUND);
    assert_non_null(strstr(fault.text, "2.db: its directory does not exist"));
}

static void an_empty_file_becomes_ours(void **state)
{
    struct hd_backend *backend;

    (void)state;
    write_file("", 0);
    backend = must_open(url);
    assert_err(APPLY(backend, PUT(HD_THREADS, THREAD("t", 1))), 0);
    hd_backend_close(backend);
    backend = must_open(url);
    assert_int_equal(count_rows(backend, HD_THREADS, NULL, 0), 1);
    hd_backend_close(backend);
}

/* ---- the file --------------------------------------------------------- */

static void close_leaves_one_file(void **state)
{
    struct hd_backend *backend = must_open(url);

    (void)state;
    assert_err(APPLY(backend, PUT(HD_THREADS, THREAD("t", 1))), 0);
    assert_int_equal(count_rows(backend, HD_THREADS, NULL, 0), 1);
    assert_true(file_size("-wal") > 0);
    hd_backend_close(backend);
    assert_int_equal(file_size("-wal"), -1);
    assert_int_equal(file_size("-shm"), -1);
    assert_true(file_size("") > 0);
}

static void a_relative_path_stays_where_it_was(void **state)
{
    char before[400];
    struct hd_backend *backend;

    (void)state;
    assert_non_null(getcwd(before, sizeof(before)));
    assert_int_equal(chdir(dir), 0);
    backend = must_open("sqlite:store.db");
    assert_int_equal(chdir("/"), 0);
    assert_err(APPLY(backend, PUT(HD_THREADS, THREAD("t", 1))), 0);
    assert_int_equal(count_rows(backend, HD_THREADS, NULL, 0), 1);
    hd_backend_close(backend);
    assert_int_equal(chdir(before), 0);
    assert_true(file_size("") > 0);
}

static void strange_names_are_names(void **state)
{
    struct hd_backend *backend;
    char text[200];

    (void)state;
    snprintf(text, sizeof(text), "sqlite://%s/%%3a%%20a%%3Fmode=ro%%25%%c3%%a4.db?timeout=2", dir);
    backend = must_open(text);
    hd_backend_close(backend);
    snprintf(text, sizeof(text), "%s/: a?mode=ro%%ä.db", dir);
    assert_int_equal(access(text, F_OK), 0);
}

static void a_removed_file_is_noticed(void **state)
{
    struct hd_backend *backend = must_open(url);
    struct hd_op op = PUT(HD_THREADS, THREAD("t", 1));
    struct hd_batch batch = {&op, 1};
    struct heddle_error fault = {0};

    (void)state;
    assert_err(APPLY(backend, PUT(HD_THREADS, THREAD("t", 1))), 0);
    assert_int_equal(unlink(path), 0);
    assert_err(hd_backend_apply(backend, &batch, NULL, &fault), HD_EIO);
    assert_non_null(strstr(fault.text, "removed or replaced"));
    hd_backend_close(backend);
}

static void people_can_read_it(void **state)
{
    struct hd_backend *backend = must_open(url);
    sqlite3_stmt *stmt;
    sqlite3 *db;

    (void)state;
    assert_err(APPLY(backend, PUT(HD_THREADS, CELLS(T("ada:t:1"), N(1), N(1700000000123456), N(0))),
                     PUT(HD_CHECKPOINTS, CHECKPOINT("ada:t:1", "c1", T("run"))),
                     PUT(HD_CHECKPOINTS, CHECKPOINT("ada:t:1", "c2", NIL)),
                     PUT(HD_CHECKPOINTS, CHECKPOINT("ada:t:2", "c2", NIL))),
               0);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db,
                                        "SELECT principal || ' ' || thread_id || ' ' || created_at "
                                        "|| ' ' || updated_at || ' ' || checkpoints "
                                        "FROM heddle_threads",
                                        -1, &stmt, NULL),
                     SQLITE_OK);
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    assert_string_equal((const char *)sqlite3_column_text(stmt, 0),
                        "ada t:1 2023-11-14T22:13:20.123Z 1970-01-01T00:00:00.000Z 2");
    sqlite3_finalize(stmt);
    assert_int_equal(sqlite3_prepare_v2(db,
                                        "SELECT group_concat(principal || thread_id || "
                                        "checkpoint_ns || checkpoint_id || "
                                        "coalesce(parent_checkpoint_id, '-') || "
                                        "coalesce(run_id, '-') || metadata, ' ') "
                                        "FROM heddle_checkpoints",
                                        -1, &stmt, NULL),
                     SQLITE_OK);
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    assert_string_equal((const char *)sqlite3_column_text(stmt, 0),
                        "adat:1c1-run{} adat:1c2--{} adat:2c2--{}");
    sqlite3_finalize(stmt);
    sqlite3_close(db);
    hd_backend_close(backend);
}

static void people_can_read_runs(void **state)
{
    struct hd_backend *backend = must_open(url);
    sqlite3_stmt *stmt;
    sqlite3 *db;

    (void)state;
    assert_err(
        APPLY(backend, PUT(HD_RUNS, CELLS(T("ada"), T("t"), T("r"), N(1), T("pending"), N(1000000),
                                          N(1700000000123456), NIL, T("{\"kwargs\":{}}")))),
        0);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db,
                                        "SELECT principal || ' ' || thread_id || ' ' || run_id || "
                                        "' ' || status || ' ' || created_at || ' ' || updated_at "
                                        "|| ' ' || coalesce(due_at, '-') || body FROM heddle_runs",
                                        -1, &stmt, NULL),
                     SQLITE_OK);
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    assert_string_equal((const char *)sqlite3_column_text(stmt, 0),
                        "ada t r pending 1970-01-01T00:00:01.000Z 2023-11-14T22:13:20.123Z "
                        "-{\"kwargs\":{}}");
    sqlite3_finalize(stmt);
    sqlite3_close(db);
    hd_backend_close(backend);
}

/* The first column of the first row, as text; "" for NULL. */
static void assert_shown(const char *sql, const char *expected)
{
    sqlite3_stmt *stmt;
    sqlite3 *db;
    const char *text;

    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &stmt, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    text = (const char *)sqlite3_column_text(stmt, 0);
    assert_string_equal(text ? text : "", expected);
    sqlite3_finalize(stmt);
    sqlite3_close(db);
}

static void people_can_read_rooms(void **state)
{
    const struct hd_op ops[] = ROOM_VIEW_ROWS;
    struct hd_backend *backend = must_open(url);
    const struct hd_batch batch = {ops, HD_COUNT(ops)};
    struct heddle_error fault = {0};

    (void)state;
    assert_err(hd_backend_apply(backend, &batch, NULL, &fault), 0);
    for (size_t i = 0; i < HD_COUNT(room_view_cases); i++) {
        char sql[600];

        (void)snprintf(sql, sizeof(sql), "SELECT %s FROM %s WHERE id = '%s'",
                       room_view_cases[i].columns, room_view_cases[i].view, room_view_cases[i].id);
        assert_shown(sql, room_view_cases[i].expected);
    }
    assert_shown("SELECT created_at || ' ' || updated_at FROM chat_messages WHERE id = 'm1'",
                 "1970-01-01T00:00:01.000Z 1970-01-01T00:00:09.500Z");
    hd_backend_close(backend);
}

static int64_t ask(const char *sql)
{
    sqlite3_stmt *stmt;
    sqlite3 *db;
    int64_t answer;

    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &stmt, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    answer = sqlite3_column_int64(stmt, 0);
    sqlite3_finalize(stmt);
    sqlite3_close(db);
    return answer;
}

static void the_file_identifies_itself(void **state)
{
    (void)state;
    make_ours();
    assert_int_equal(ask("PRAGMA application_id"), HD_SQLITE_APPLICATION_ID);
    assert_int_equal(ask("PRAGMA user_version"), HD_SCHEMA_VERSION);
    assert_int_equal(ask("PRAGMA auto_vacuum"), 2);
}

/* As the first version had it: without the server's tables and views. */
static void make_older(void)
{
    char sql[100];

    make_ours();
    run_sql("PRAGMA user_version=1");
    for (int i = 0; i < HD_TABLE_COUNT; i++) {
        const char *name = hd_tables[i].name;

        (void)snprintf(sql, sizeof(sql), "DROP VIEW heddle_%.30s; DROP TABLE %.30s", name, name);
        if (hd_tables[i].since > 1)
            run_sql(sql);
    }
    run_sql("DROP INDEX checkpoints_backward");
    run_sql("DROP VIEW chat_messages; DROP VIEW message_runs");
}

static void an_older_file_gets_its_missing_tables(void **state)
{
    static const char schema[] = "SELECT count(*) FROM sqlite_schema";
    struct hd_backend *backend;
    int64_t objects;

    (void)state;
    make_ours();
    objects = ask(schema);
    assert_int_equal(unlink(path), 0);
    make_older();
    assert_true(ask(schema) < objects);
    for (int i = 0; i < 2; i++) {
        backend = must_open(url);
        assert_int_equal(count_rows(backend, HD_CHUNKS, NULL, 0), 20);
        assert_err(APPLY(backend, PUT(HD_CRONS, CELLS(T(""), T("c"), N(1), N(5), N(1), T("{}")))),
                   0);
        hd_backend_close(backend);
        assert_int_equal(ask(schema), objects);
        assert_int_equal(ask("PRAGMA user_version"), HD_SCHEMA_VERSION);
    }
    assert_int_equal(ask("SELECT count(*) FROM heddle_crons"), 1);
}

/* ---- growth ----------------------------------------------------------- */

/* Different bytes each time: SQLite does not write unchanged pages. */
static void fill_chunks(struct hd_backend *backend, int count)
{
    static char bytes[4000];
    struct hd_cell data = hd_cell_bytes(hd_slice(bytes, sizeof(bytes)));

    memset(bytes, bytes[0] + 1, sizeof(bytes));
    for (int i = 0; i < count; i += 10) {
        struct hd_cell rows[10][5];
        struct hd_op ops[10];

        for (int k = 0; k < 10; k++) {
            memcpy(rows[k], CELLS(T("t"), T("s"), N(i + k), T("h"), data), sizeof(rows[k]));
            ops[k] = (struct hd_op)PUT(HD_CHUNKS, rows[k]);
        }
        assert_err(apply_ops(backend, ops, 10), 0);
    }
}

static void deleted_space_is_used_again_and_given_back(void **state)
{
    struct hd_backend *backend = must_open(url);
    off_t empty, full;

    (void)state;
    assert_err(hd_backend_compact(backend, NULL), 0);
    empty = file_size("");
    fill_chunks(backend, 3000);
    assert_err(hd_backend_compact(backend, NULL), 0);
    full = file_size("");
    assert_true(full > 12000000);
    for (int i = 0; i < 3; i++) {
        assert_err(APPLY(backend, DELETE(HD_CHUNKS, 1, CELLS(T("t")))), 0);
        fill_chunks(backend, 3000);
    }
    assert_err(hd_backend_compact(backend, NULL), 0);
    assert_true(file_size("") <= full + full / 50);
    assert_err(APPLY(backend, DELETE(HD_CHUNKS, 1, CELLS(T("t")))), 0);
    assert_err(hd_backend_compact(backend, NULL), 0);
    assert_true(file_size("") <= empty + full / 50);
    assert_int_equal(file_size("-wal"), 0);
    assert_err(hd_backend_check(backend, NULL), 0);
    hd_backend_close(backend);
}

static atomic_bool is_growing;

/*
 * Transactions of 20 ms, one after the other: with a few threads there is a
 * reader at every moment.
 */
static void *read_again_and_again(void *arg)
{
    sqlite3 *db;
    int code = sqlite3_open(path, &db);

    (void)arg;
    sqlite3_busy_timeout(db, 5000);
    while (code == SQLITE_OK && atomic_load(&is_growing)) {
        code = sqlite3_exec(db, "BEGIN; SELECT count(*) FROM threads", NULL, NULL, NULL);
        usleep(20000);
        if (code == SQLITE_OK)
            code = sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
    }
    sqlite3_close(db);
    return code == SQLITE_OK ? NULL : db;
}

static void the_log_does_not_grow_without_limit(void **state)
{
    struct hd_backend *backend;
    pthread_t readers[6];
    off_t largest = 0;

    (void)state;
    snprintf(url, sizeof(url), "sqlite:%s?durability=relaxed", path);
    backend = must_open(url);
    atomic_store(&is_growing, true);
    for (size_t i = 0; i < HD_COUNT(readers); i++) {
        assert_int_equal(pthread_create(&readers[i], NULL, read_again_and_again, NULL), 0);
        usleep(3300);
    }
    /* 320 MB in all. */
    for (int i = 0; i < 80; i++) {
        fill_chunks(backend, 1000);
        if (file_size("-wal") > largest)
            largest = file_size("-wal");
    }
    atomic_store(&is_growing, false);
    for (size_t i = 0; i < HD_COUNT(readers); i++) {
        void *failed;

        pthread_join(readers[i], &failed);
        assert_null(failed);
    }
    hd_backend_close(backend);
    print_message("# the log had up to %lld MB\n", (long long)largest >> 20);
    /* Some 100 as a rule; a machine that stops for a while at the wrong moment makes it more. */
    assert_true(largest < 256 << 20);
}

/* ---- waiting ---------------------------------------------------------- */

static void a_lock_is_waited_for_and_then_named(void **state)
{
    struct hd_backend *backend;
    struct hd_op op = PUT(HD_THREADS, THREAD("t", 1));
    struct hd_batch batch = {&op, 1};
    struct heddle_error fault = {0};
    sqlite3 *db;

    (void)state;
    snprintf(url, sizeof(url), "sqlite:%s?timeout=1", path);
    backend = must_open(url);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    assert_err(hd_backend_apply(backend, &batch, NULL, &fault), HD_EBUSY);
    assert_non_null(strstr(fault.text, "locked"));
    assert_int_equal(sqlite3_exec(db, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
    assert_err(hd_backend_apply(backend, &batch, NULL, NULL), 0);
    sqlite3_close(db);
    hd_backend_close(backend);
}

struct gate {
    struct hd_backend *backend;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int inside;
    bool is_open;
};

static int wait_inside(void *arg, size_t which, const struct hd_cell *cells)
{
    struct gate *gate = arg;

    (void)which;
    (void)cells;
    pthread_mutex_lock(&gate->lock);
    gate->inside++;
    pthread_cond_broadcast(&gate->changed);
    while (!gate->is_open)
        pthread_cond_wait(&gate->changed, &gate->lock);
    pthread_mutex_unlock(&gate->lock);
    return 0;
}

static void *read_slowly(void *arg)
{
    struct gate *gate = arg;
    struct hd_query query = {.table = HD_THREADS, .index = HD_PRIMARY};

    return hd_backend_read(gate->backend, &query, 1, wait_inside, gate, NULL) == 0 ? NULL : gate;
}

/*
 * Eight readers are inside and stay there: writing continues, a ninth reader waits for its timeout.
 */
static void slow_readers_do_not_stop_the_writer(void **state)
{
    struct gate gate = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    struct hd_query query = {.table = HD_THREADS, .index = HD_PRIMARY};
    struct heddle_error fault = {0};
    pthread_t threads[8];
    size_t count = 0;

    (void)state;
    snprintf(url, sizeof(url), "sqlite:%s?timeout=1", path);
    gate.backend = must_open(url);
    assert_err(APPLY(gate.backend, PUT(HD_THREADS, THREAD("t", 1))), 0);
    for (int i = 0; i < 8; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, read_slowly, &gate), 0);
    pthread_mutex_lock(&gate.lock);
    while (gate.inside < 8)
        pthread_cond_wait(&gate.changed, &gate.lock);
    pthread_mutex_unlock(&gate.lock);
    assert_err(APPLY(gate.backend, PUT(HD_THREADS, THREAD("u", 1))), 0);
    assert_err(hd_backend_read(gate.backend, &query, 1, count_row, &count, &fault), HD_EBUSY);
    pthread_mutex_lock(&gate.lock);
    gate.is_open = true;
    pthread_cond_broadcast(&gate.changed);
    pthread_mutex_unlock(&gate.lock);
    for (int i = 0; i < 8; i++) {
        void *failed;

        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    assert_int_equal(gate.inside, 8); /* none of them saw the second row */
    assert_int_equal(count_rows(gate.backend, HD_THREADS, NULL, 0), 2);
    hd_backend_close(gate.backend);
}

/* Another thread writes after the first row was seen. */
struct interrupted {
    struct hd_backend *backend;
    size_t counts[2];
};

static void *write_a_thread(void *arg)
{
    struct hd_op op = ADD(HD_THREADS, THREAD("later", 1));
    struct hd_batch batch = {&op, 1};

    return hd_backend_apply(arg, &batch, NULL, NULL) == 0 ? NULL : arg;
}

static int interrupt_once(void *arg, size_t which, const struct hd_cell *cells)
{
    struct interrupted *interrupted = arg;
    void *failed = NULL;
    pthread_t writer;

    (void)cells;
    if (which == 0 && interrupted->counts[0] == 0) {
        assert_int_equal(pthread_create(&writer, NULL, write_a_thread, interrupted->backend), 0);
        pthread_join(writer, &failed);
        assert_null(failed);
    }
    interrupted->counts[which]++;
    return 0;
}

static void all_queries_of_a_read_see_one_state(void **state)
{
    const struct hd_query all = {.table = HD_THREADS, .index = HD_PRIMARY};
    const struct hd_query queries[] = {all, all};
    struct interrupted interrupted = {.backend = must_open(url)};

    (void)state;
    assert_err(APPLY(interrupted.backend, ADD(HD_THREADS, THREAD("t", 1))), 0);
    assert_err(hd_backend_read(interrupted.backend, queries, 2, interrupt_once, &interrupted, NULL),
               0);
    assert_int_equal(interrupted.counts[0], 1);
    assert_int_equal(interrupted.counts[1], 1);
    assert_int_equal(count_rows(interrupted.backend, HD_THREADS, NULL, 0), 2);
    hd_backend_close(interrupted.backend);
}

/* ---- plans ------------------------------------------------------------ */

/* True when SQLite executes this query by walking one index, without sorting. */
static void check_plan(sqlite3 *db, const struct hd_query *query)
{
    struct hd_buf sql;
    sqlite3_stmt *stmt;

    hd_buf_init(&sql, 8192);
    assert_err(hd_buf_append(&sql, "EXPLAIN QUERY PLAN ", 19), 0);
    assert_err(hd_sqlite_query_sql(&sql, query), 0);
    assert_int_equal(sqlite3_prepare_v2(db, sql.ptr, (int)sql.len, &stmt, NULL), SQLITE_OK);
    while (sqlite3_step(stmt) == SQLITE_ROW) {
        const char *plan = (const char *)sqlite3_column_text(stmt, 3);
        bool is_bounded = query->prefix_count || query->low || query->high || query->after_count;

        if (strstr(plan, "TEMP B-TREE") || (is_bounded && !strstr(plan, "SEARCH")))
            fail_msg("%.*s: %s", (int)sql.len, sql.ptr, plan);
    }
    sqlite3_finalize(stmt);
    hd_buf_fini(&sql);
}

static void queries_walk_an_index_and_never_sort(void **state)
{
    const struct hd_cell cell = NIL;
    sqlite3 *db;

    (void)state;
    make_ours();
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    for (int table = 0; table < HD_TABLE_COUNT; table++) {
        for (int index = HD_PRIMARY; index < (int)hd_tables[table].index_count; index++) {
            struct hd_query query = {.table = (enum hd_table_id)table, .index = index, .limit = 1};
            unsigned count = hd_query_order_count(&query);

            for (unsigned shape = 0; shape < 16 * (count + 1); shape++) {
                query.prefix_count = shape / 16;
                query.is_reverse = shape & 1;
                query.low = shape & 2 && query.prefix_count < count ? &cell : NULL;
                query.high = shape & 4 && query.prefix_count < count ? &cell : NULL;
                query.after_count = shape & 8 ? count - query.prefix_count : 0;
                query.columns = shape & 1 ? HD_ALL_COLUMNS : 0;
                check_plan(db, &query);
            }
        }
    }
    sqlite3_close(db);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(bad_files_are_refused_and_left_alone),
        TEST(long_paths_keep_the_cause_in_sight),
        TEST(an_empty_file_becomes_ours),
        TEST(close_leaves_one_file),
        TEST(a_relative_path_stays_where_it_was),
        TEST(strange_names_are_names),
        TEST(a_removed_file_is_noticed),
        TEST(people_can_read_it),
        TEST(people_can_read_runs),
        TEST(people_can_read_rooms),
        TEST(the_file_identifies_itself),
        TEST(an_older_file_gets_its_missing_tables),
        TEST(deleted_space_is_used_again_and_given_back),
        TEST(the_log_does_not_grow_without_limit),
        TEST(a_lock_is_waited_for_and_then_named),
        TEST(slow_readers_do_not_stop_the_writer),
        TEST(all_queries_of_a_read_see_one_state),
        TEST(queries_walk_an_index_and_never_sort),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
