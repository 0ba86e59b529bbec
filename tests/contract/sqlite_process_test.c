/* A database in a file that several processes use, and that die while they do. */
#include "tests/contract/sqlite_help.h"

#include <signal.h>
#include <sys/wait.h>

/* ---- several processes ------------------------------------------------ */

/* Runs work(number) in each of `count` processes, which begin at the same moment. */
static void in_processes(int count, int (*work)(int number))
{
    int start[2];
    int failed = 0;

    assert_int_equal(pipe(start), 0);
    for (int i = 0; i < count; i++) {
        pid_t child = fork();

        assert_true(child >= 0);
        if (child == 0) {
            char c;

            close(start[1]);
            if (read(start[0], &c, 1) < 0)
                _exit(2);
            _exit(work(i) ? 1 : 0);
        }
    }
    close(start[0]);
    close(start[1]);
    for (int i = 0; i < count; i++) {
        int status;

        assert_true(wait(&status) > 0);
        failed += !WIFEXITED(status) || WEXITSTATUS(status) != 0;
    }
    assert_int_equal(failed, 0);
}

static int create_and_add(int number)
{
    struct hd_backend *backend;
    struct heddle_error fault = {0};
    int err = open_url(&backend, url, &fault);

    for (int i = 0; !err && i < 20; i++) {
        struct hd_cell row[] = {T("t"), T("s"), N(number * 100 + i), T("h"), T("data")};
        struct hd_op op = ADD(HD_CHUNKS, row);
        struct hd_batch batch = {&op, 1};

        err = hd_backend_apply(backend, &batch, NULL, &fault);
    }
    if (err)
        fprintf(stderr, "process %d: %s\n", number, fault.text);
    else
        hd_backend_close(backend);
    return err;
}

static void processes_may_create_it_at_once(void **state)
{
    for (int round = 0; round < 10; round++) {
        struct hd_backend *backend;

        assert_int_equal(remove_dir(state), 0);
        assert_int_equal(make_dir(state), 0);
        if (round % 2)
            write_file("", 0);
        in_processes(6, create_and_add);
        assert_int_equal(each_entry(remove_entry, NULL) > 0, 1);
        in_processes(6, create_and_add);
        backend = must_open(url);
        assert_int_equal(count_rows(backend, HD_CHUNKS, NULL, 0), 120);
        assert_err(hd_backend_check(backend, NULL), 0);
        hd_backend_close(backend);
    }
}

static int read_number(void *arg, size_t which, const struct hd_cell *cells)
{
    (void)which;
    *(int64_t *)arg = cells[HD_THREADS_EPOCH].number;
    return 0;
}

/*
 * Opens and closes all the time, so that the log is made, recovered and removed
 * under the others.
 */
static int count_up_by_25(int number)
{
    struct hd_query query = {.table = HD_THREADS, .index = HD_PRIMARY, .columns = HD_ALL_COLUMNS};
    int done = 0;
    int err = 0;

    (void)number;
    while (!err && done < 25) {
        struct heddle_error fault = {0};
        struct hd_backend *backend = NULL;
        int64_t epoch = 0;

        err = open_url(&backend, url, &fault);
        if (!err)
            err = hd_backend_read(backend, &query, 1, read_number, &epoch, &fault);
        if (!err) {
            struct hd_op op = EXPECT_SET("t", epoch, HD_THREADS_EPOCH, 1, epoch + 1);
            struct hd_batch batch = {&op, 1};

            err = hd_backend_apply(backend, &batch, NULL, &fault);
        }
        if (err == 0)
            done++;
        else if (err != HD_ECONFLICT)
            fprintf(stderr, "process %d: %s\n", number, fault.text);
        err = err == HD_ECONFLICT ? 0 : err;
        hd_backend_close(backend);
    }
    return err;
}

static void processes_never_overwrite_each_other(void **state)
{
    struct hd_backend *backend = must_open(url);
    struct kept kept;

    (void)state;
    assert_err(APPLY(backend, PUT(HD_THREADS, THREAD("t", 0))), 0);
    hd_backend_close(backend);
    in_processes(4, count_up_by_25);
    backend = must_open(url);
    assert_int_equal(find_row(backend, &kept, HD_THREADS, CELLS(T("t")))[HD_THREADS_EPOCH].number,
                     100);
    kept_fini(&kept);
    hd_backend_close(backend);
}

/* ---- sudden death ----------------------------------------------------- */

/* Adds rows two by two, and prints each number once it is acknowledged. Never returns. */
static void write_until_killed(int out, int64_t first)
{
    struct hd_backend *backend = must_open(url);

    for (int64_t i = first;; i++) {
        struct hd_cell chunk[] = {T("t"), T("s"), N(i), T("h"), T("some data of a chunk")};
        struct hd_cell row[] = {T("t"), T(""),  T("c"), T("task"), N(i),
                                T(""),  T("c"), T("t"), T("value")};
        struct hd_op ops[] = {ADD(HD_CHUNKS, chunk), ADD(HD_WRITES, row)};

        if (apply_ops(backend, ops, 2) != 0 || write(out, &i, sizeof(i)) != sizeof(i))
            _exit(1);
    }
}

static void acknowledged_rows_survive_a_kill(void **state)
{
    int64_t stored = 0;

    (void)state;
    for (int round = 0; round < 25; round++) {
        struct hd_backend *backend;
        int64_t acknowledged = stored - 1;
        int pipes[2];
        pid_t child;
        size_t chunks;

        assert_int_equal(pipe(pipes), 0);
        child = fork();
        assert_true(child >= 0);
        if (child == 0)
            write_until_killed(pipes[1], stored);
        close(pipes[1]);
        /* One time in four it may die while it opens the file. */
        if (round % 4)
            assert_int_equal(read(pipes[0], &acknowledged, sizeof(acknowledged)), 8);
        usleep((useconds_t)(round * 1700 % 23000));
        kill(child, SIGKILL);
        while (read(pipes[0], &acknowledged, sizeof(acknowledged)) == sizeof(acknowledged))
            ;
        close(pipes[0]);
        assert_int_equal(waitpid(child, NULL, 0), child);
        backend = must_open(url);
        chunks = count_rows(backend, HD_CHUNKS, NULL, 0);
        assert_int_equal(chunks, count_rows(backend, HD_WRITES, NULL, 0));
        assert_true((int64_t)chunks > acknowledged && (int64_t)chunks <= acknowledged + 2);
        assert_err(hd_backend_check(backend, NULL), 0);
        hd_backend_close(backend);
        stored = (int64_t)chunks;
    }
    assert_true(stored > 15);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(processes_may_create_it_at_once),
        TEST(processes_never_overwrite_each_other),
        TEST(acknowledged_rows_survive_a_kill),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
