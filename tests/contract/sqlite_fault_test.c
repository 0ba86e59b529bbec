/*
 * SQLite with a failing allocator and a failing disk: whichever of its calls fails, an operation
 * either happened or did not, reports the cause, and the next one works. SQLite must be configured
 * before it starts, hence a separate program.
 */
#include "tests/contract/rows.h"

#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

static char path[64];
static char url[120];

/* ---- faults ----------------------------------------------------------- */

/* The n-th of these calls from now on fails, and with `is_sticky` all after it; 0: no call. */
static struct {
    long countdown;
    bool is_sticky;
    long hits;
    int code;
} trap;

static bool falls_into(void)
{
    if (trap.countdown == 0 || --trap.countdown > 0)
        return false;
    trap.countdown = trap.is_sticky ? 1 : 0;
    trap.hits++;
    return true;
}

static void set_trap(long n, bool is_sticky, int code)
{
    trap.countdown = n;
    trap.is_sticky = is_sticky;
    trap.hits = 0;
    trap.code = code;
}

static sqlite3_mem_methods real_memory;

static void *failing_malloc(int size)
{
    return trap.code == SQLITE_NOMEM && falls_into() ? NULL : real_memory.xMalloc(size);
}

static void *failing_realloc(void *old, int size)
{
    return trap.code == SQLITE_NOMEM && falls_into() ? NULL : real_memory.xRealloc(old, size);
}

static sqlite3_vfs faulty_vfs;
static sqlite3_vfs *real_vfs;

/* SQLite has one table of functions for the database and one for files without locks. */
static struct {
    const sqlite3_io_methods *real;
    sqlite3_io_methods faulty;
} tables[2];

static const sqlite3_io_methods *real_methods(const sqlite3_file *file)
{
    return file->pMethods == &tables[0].faulty ? tables[0].real : tables[1].real;
}

static int failing_write(sqlite3_file *file, const void *bytes, int len, sqlite3_int64 at)
{
    if (trap.code != SQLITE_NOMEM && trap.code != SQLITE_IOERR_FSYNC && falls_into())
        return trap.code;
    return real_methods(file)->xWrite(file, bytes, len, at);
}

/* No power loss here, so a real sync would only take time. */
static int failing_sync(sqlite3_file *file, int flags)
{
    (void)file;
    (void)flags;
    return trap.code == SQLITE_IOERR_FSYNC && falls_into() ? trap.code : SQLITE_OK;
}

/* The file stays that of the real system; only the table of its functions is another. */
static int open_faulty(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *out)
{
    int code = real_vfs->xOpen(real_vfs, name, file, flags, out);

    (void)vfs;
    if (code != SQLITE_OK || !file->pMethods)
        return code;
    for (size_t i = 0; i < HD_COUNT(tables); i++) {
        if (!tables[i].real) {
            tables[i].real = file->pMethods;
            tables[i].faulty = *file->pMethods;
            tables[i].faulty.xWrite = failing_write;
            tables[i].faulty.xSync = failing_sync;
        }
        if (tables[i].real == file->pMethods) {
            file->pMethods = &tables[i].faulty;
            return SQLITE_OK;
        }
    }
    return SQLITE_INTERNAL;
}

static int prepare_sqlite(void **state)
{
    sqlite3_mem_methods memory;

    (void)state;
    if (sqlite3_config(SQLITE_CONFIG_GETMALLOC, &real_memory) != SQLITE_OK)
        return -1;
    memory = real_memory;
    memory.xMalloc = failing_malloc;
    memory.xRealloc = failing_realloc;
    if (sqlite3_config(SQLITE_CONFIG_MALLOC, &memory) != SQLITE_OK ||
        /* Its own pools would hide most allocations from the trap. */
        sqlite3_config(SQLITE_CONFIG_LOOKASIDE, 0, 0) != SQLITE_OK ||
        sqlite3_initialize() != SQLITE_OK)
        return -1;
    real_vfs = sqlite3_vfs_find(NULL);
    faulty_vfs = *real_vfs;
    faulty_vfs.zName = "faulty";
    faulty_vfs.pNext = NULL;
    faulty_vfs.xOpen = open_faulty;
    snprintf(path, sizeof(path), "/tmp/heddle-fault-%d.db", (int)getpid());
    snprintf(url, sizeof(url), "sqlite:%s?timeout=1&durability=relaxed", path);
    return sqlite3_vfs_register(&faulty_vfs, 1) == SQLITE_OK ? 0 : -1;
}

static void remove_files(void)
{
    static const char *const suffixes[] = {"", "-wal", "-shm", "-journal"};

    for (size_t i = 0; i < HD_COUNT(suffixes); i++) {
        char full[80];

        snprintf(full, sizeof(full), "%s%s", path, suffixes[i]);
        unlink(full);
    }
}

/* ---- operations under it ---------------------------------------------- */

/* A new connection each time, so that preparing statements may fail too; the file stays. */
static struct hd_backend *open_filled(void)
{
    struct hd_backend *backend = must_open(url);
    struct hd_cell rows[50][5];
    struct hd_op ops[50];

    for (int i = 0; i < 50; i++) {
        memcpy(rows[i], CHUNK("old", i, "some data that was there"), sizeof(rows[i]));
        ops[i] = (struct hd_op)PUT(HD_CHUNKS, rows[i]);
    }
    assert_err(apply_ops(backend, ops, 50), 0);
    assert_err(APPLY(backend, PUT_NEW(HD_THREADS, THREAD("t", 1)),
                     PUT(HD_CHECKPOINTS, CHECKPOINT("t", "c", T("run")))),
               0);
    return backend;
}

static int change_much(struct hd_backend *backend, int64_t epoch)
{
    const struct hd_op ops[] = {EXPECT_SET("t", epoch, HD_THREADS_EPOCH, 1, epoch + 1),
                                DELETE(HD_CHUNKS, 1, CELLS(T("old"))),
                                PUT(HD_CHUNKS, CHUNK("new", epoch, "x")),
                                PUT(HD_CHECKPOINTS, CHECKPOINT("t", "c", T("run2"))),
                                PUT_NEW(HD_WRITES, WRITE("t", "c", epoch, "value"))};
    struct hd_batch batch = {ops, HD_COUNT(ops)};
    struct heddle_error fault = {0};
    int err = hd_backend_apply(backend, &batch, NULL, &fault);

    assert_int_equal(fault.code, err);
    return err;
}

static int64_t epoch_of(struct hd_backend *backend)
{
    struct kept kept;
    int64_t epoch = find_row(backend, &kept, HD_THREADS, CELLS(T("t")))[HD_THREADS_EPOCH].number;

    kept_fini(&kept);
    return epoch;
}

/* Lets the n-th call fail for n = 1, 2, … until an apply needs fewer. */
static void fail_each_call_of_apply(int code, bool is_sticky, int expected)
{
    long failures = 0;
    long hits = 1;

    for (long n = 1; hits > 0; n++) {
        struct hd_backend *backend = open_filled();
        int64_t before = epoch_of(backend);
        struct kept rows, after;
        int err;

        keep_all(backend, &rows);
        set_trap(n, is_sticky, code);
        err = change_much(backend, before);
        hits = trap.hits;
        set_trap(0, false, 0);
        keep_all(backend, &after);
        if (err) {
            assert_err(err, expected);
            assert_same_rows(&after, &rows);
            failures++;
            assert_err(change_much(backend, before), 0);
        }
        assert_int_equal(epoch_of(backend), before + 1);
        assert_err(hd_backend_check(backend, NULL), 0);
        kept_fini(&rows);
        kept_fini(&after);
        hd_backend_close(backend);
    }
    assert_true(failures > 0);
}

static void apply_survives_every_failed_allocation(void **state)
{
    (void)state;
    fail_each_call_of_apply(SQLITE_NOMEM, false, HD_ENOMEM);
    fail_each_call_of_apply(SQLITE_NOMEM, true, HD_ENOMEM);
}

static void apply_survives_every_failed_write(void **state)
{
    (void)state;
    fail_each_call_of_apply(SQLITE_IOERR_WRITE, false, HD_EIO);
    fail_each_call_of_apply(SQLITE_IOERR_WRITE, true, HD_EIO);
}

static void apply_survives_a_full_disk(void **state)
{
    (void)state;
    fail_each_call_of_apply(SQLITE_FULL, false, HD_EFULL);
    fail_each_call_of_apply(SQLITE_FULL, true, HD_EFULL);
}

static void apply_survives_a_failed_sync(void **state)
{
    (void)state;
    snprintf(url, sizeof(url), "sqlite:%s?timeout=1", path);
    fail_each_call_of_apply(SQLITE_IOERR_FSYNC, false, HD_EIO);
    snprintf(url, sizeof(url), "sqlite:%s?timeout=1&durability=relaxed", path);
}

static void read_survives_every_failed_allocation(void **state)
{
    struct hd_query queries[] = {{.table = HD_CHUNKS, .index = HD_PRIMARY, .columns = 16},
                                 {.table = HD_CHECKPOINTS, .index = HD_CHECKPOINTS_BY_RUN}};
    long failures = 0;
    long hits = 1;

    (void)state;
    remove_files();
    for (long n = 1; hits > 0; n++) {
        struct hd_backend *backend = open_filled();
        size_t count = 0;
        int err;

        set_trap(n, n & 1, SQLITE_NOMEM);
        err = hd_backend_read(backend, queries, 2, count_row, &count, NULL);
        hits = trap.hits;
        set_trap(0, false, 0);
        if (err) {
            assert_err(err, HD_ENOMEM);
            failures++;
            count = 0;
            assert_err(hd_backend_read(backend, queries, 2, count_row, &count, NULL), 0);
        }
        assert_int_equal(count, 51);
        hd_backend_close(backend);
    }
    assert_true(failures > 10);
}

/* A file that stays after a failure is there because everything was committed to it. */
static void must_be_absent_or_complete(void)
{
    sqlite3 *db;

    if (access(path, F_OK) != 0)
        return;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "SELECT count(*) FROM chunks", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

/* Opening either works, or leaves nothing behind. */
static void fail_calls_of_open(int code, long every, bool is_sticky, int expected)
{
    long hits = 1;
    long failures = 0;

    for (long n = 1; hits > 0; n += every) {
        struct hd_backend *backend = NULL;
        struct heddle_error fault = {0};
        int err;

        remove_files();
        set_trap(n, is_sticky, code);
        err = open_url(&backend, url, &fault);
        hits = trap.hits;
        set_trap(0, false, 0);
        if (err) {
            if (err != expected)
                fail_msg("call %ld: %s", n, fault.text);
            assert_null(backend);
            assert_int_equal(fault.code, err);
            failures++;
            /* Tidying up needs memory, and after a commit that broke off it has to write. */
            if (code != SQLITE_NOMEM && !is_sticky)
                must_be_absent_or_complete();
            backend = must_open(url);
        }
        assert_err(hd_backend_check(backend, NULL), 0);
        hd_backend_close(backend);
    }
    assert_true(failures > 1);
}

static void open_survives_failures(void **state)
{
    (void)state;
    /* Creating the tables allocates thousands of times. */
    fail_calls_of_open(SQLITE_NOMEM, 13, false, HD_ENOMEM);
    fail_calls_of_open(SQLITE_NOMEM, 17, true, HD_ENOMEM);
    fail_calls_of_open(SQLITE_IOERR_WRITE, 1, false, HD_EIO);
    fail_calls_of_open(SQLITE_FULL, 1, true, HD_EFULL);
}

static void a_full_disk_leaves_no_file(void **state)
{
    struct hd_backend *backend = NULL;
    struct heddle_error fault = {0};

    (void)state;
    remove_files();
    set_trap(1, true, SQLITE_FULL);
    assert_err(open_url(&backend, url, &fault), HD_EFULL);
    set_trap(0, false, 0);
    assert_non_null(strstr(fault.text, path));
    assert_int_not_equal(access(path, F_OK), 0);
}

static int remove_last(void **state)
{
    (void)state;
    remove_files();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(apply_survives_every_failed_allocation),
        cmocka_unit_test(apply_survives_every_failed_write),
        cmocka_unit_test(apply_survives_a_full_disk),
        cmocka_unit_test(apply_survives_a_failed_sync),
        cmocka_unit_test(read_survives_every_failed_allocation),
        cmocka_unit_test(open_survives_failures),
        cmocka_unit_test(a_full_disk_leaves_no_file),
    };

    return cmocka_run_group_tests(tests, prepare_sqlite, remove_last);
}
