/*
 * Conflicting batches on PostgreSQL: the order of waiting, the rows afterwards, and that no wait is
 * endless.
 */
#include "tests/contract/pg_help.h"

#include <stdatomic.h>

#include "store/list_append.h"
#include "store/thread_fence.h"

/* ---- locks ---- */

struct waiter {
    struct fixture *f;
    const struct hd_op *ops;
    size_t count;
    int err;
    struct heddle_error fault;
};

static void *apply_in_thread(void *arg)
{
    struct waiter *w = arg;

    w->err = apply(w->f->store, w->ops, w->count, NULL, &w->fault);
    return NULL;
}

/* Until so many wait for a lock, or it is done all the same. */
static void wait_until_blocked(struct fixture *f, long count, atomic_bool *is_done)
{
    for (int i = 0; i < 12000; i++) {
        if (strtol(sql(f->admin, "SELECT count(*) FROM pg_stat_activity WHERE"
                                 " application_name = 'heddle' AND wait_event_type = 'Lock'"),
                   NULL, 10) >= count ||
            (is_done && atomic_load(is_done)))
            return;
        (void)sql(f->admin, "SELECT pg_stat_clear_snapshot()");
        hd_clock_sleep_us(5000);
    }
    fail_msg("nobody waits for a lock");
}

static void an_expectation_waits_and_sees_the_committed_row(void **state)
{
    struct fixture *f = *state;
    struct hd_cell cells[4], key = TEXT(HD_S("t"));
    struct hd_op put = put_thread(HD_OP_PUT, cells, HD_S("t"), 1);
    struct hd_op old = expect_epoch(&key, 1), new = expect_epoch(&key, 2);
    struct waiter waiters[2] = {{.f = f, .ops = &old, .count = 1},
                                {.f = f, .ops = &new, .count = 1}};
    pthread_t threads[2];

    new.set_column = HD_THREADS_UPDATED;
    new.set_count = 1;
    new.set[0] = 77;
    must_apply(f->store, &put, 1);
    for (int i = 0; i < 2; i++) {
        (void)sql(f->admin, "BEGIN; UPDATE %s.threads SET epoch = 2", f->schema);
        assert_int_equal(pthread_create(&threads[i], NULL, apply_in_thread, &waiters[i]), 0);
        wait_until_blocked(f, 1, NULL);
        (void)sql(f->admin, "COMMIT");
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    assert_err(waiters[0].err, HD_ECONFLICT);
    assert_err(waiters[1].err, 0);
    assert_string_equal(sql(f->admin, "SELECT updated_at FROM %s.threads", f->schema), "77");
}

static void a_lock_that_is_never_released_is_busy(void **state)
{
    struct fixture *f = *state;
    struct hd_cell cells[4], key = TEXT(HD_S("t"));
    struct hd_op put = put_thread(HD_OP_PUT, cells, HD_S("t"), 1), op = expect_epoch(&key, 1);
    struct hd_backend *hasty;
    struct heddle_error fault = {0};
    char url[400];
    int64_t began;
    int err = 0;

    must_apply(f->store, &put, 1);
    make_url(url, sizeof(url), getenv("HEDDLE_TEST_PG_URL"), f->schema, "timeout=1");
    must_open(&hasty, url);
    (void)sql(f->admin, "BEGIN; UPDATE %s.threads SET epoch = 2", f->schema);
    began = hd_clock_monotonic_us();
    assert_err(apply(hasty, &op, 1, NULL, &fault), HD_EBUSY);
    assert_true(hd_clock_monotonic_us() - began >= 500000); /* it has waited */
    (void)sql(f->admin, "ROLLBACK");
    /* A busy machine may need longer for it than that timeout. */
    for (int i = 0; i < 60 && (err = apply(hasty, &op, 1, NULL, NULL)) != 0; i++)
        assert_true(err == HD_EBUSY || err == HD_EUNAVAILABLE);
    assert_err(err, 0);
    hd_backend_close(hasty);
}

static void *read_in_thread(void *arg)
{
    struct waiter *w = arg;
    int64_t epoch;

    w->err = read_epoch(w->f->store, HD_S("t"), &epoch, &w->fault);
    return NULL;
}

static void an_exhausted_pool_is_busy(void **state)
{
    struct fixture *f = *state;
    struct waiter waiter = {.f = f};
    struct heddle_error fault = {0};
    char url[400];
    pthread_t thread;
    int64_t epoch;

    hd_backend_close(f->store);
    make_url(url, sizeof(url), getenv("HEDDLE_TEST_PG_URL"), f->schema, "pool=1&timeout=1");
    must_open(&f->store, url);
    (void)sql(f->admin, "BEGIN; LOCK TABLE %s.threads", f->schema);
    assert_int_equal(pthread_create(&thread, NULL, read_in_thread, &waiter), 0);
    wait_until_blocked(f, 1, NULL);
    assert_err(read_epoch(f->store, HD_S("t"), &epoch, &fault), HD_EBUSY);
    assert_non_null(strstr(fault.text, "pool="));
    (void)sql(f->admin, "COMMIT");
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_err(waiter.err, 0);
}

/* ---- deletions ---- */

struct deleter {
    int64_t created_at; /* of the server's record of the thread; 0: no record */
    struct heddle *store;
    atomic_bool is_done;
    int err;
};

static const struct hd_cell record_key[] = {{.kind = HD_CELL_BYTES},
                                            {.kind = HD_CELL_BYTES, .bytes = {"t", 1}}};

static void *delete_in_thread(void *arg)
{
    struct deleter *d = arg;
    const struct heddle_thread thread = {.id = {"t", 1}};
    struct hd_batch_builder batch;
    struct hd_batch view;

    hd_batch_init(&batch);
    assert_err(hd_batch_delete(&batch, HD_THREAD_INFO, record_key, 2), 0);
    view = hd_batch_view(&batch);
    d->err = d->created_at ? hd_thread_fence_erase(d->store, HD_S(":t"), &view, NULL)
                           : heddle_delete_thread(d->store, &thread, NULL);
    hd_batch_fini(&batch);
    atomic_store(&d->is_done, true);
    return NULL;
}

/* A value that is long enough to be kept in chunks. */
static void *put_in_thread(void *arg)
{
    static const char checkpoint[] = "{\"v\":4,\"channel_versions\":{\"a\":1}}";
    static char value[4096];
    struct deleter *d = arg;
    const struct heddle_value values[] = {{{"a", 1}, {"json", 4}, {value, sizeof(value)}}};
    const struct heddle_checkpoint put = {.thread = {.id = {"t", 1}},
                                          .id = {"1", 1},
                                          .checkpoint = {checkpoint, sizeof(checkpoint) - 1},
                                          .metadata = {"{}", 2},
                                          .new_versions = {"{\"a\":1}", 7},
                                          .values = values,
                                          .value_count = 1};
    const struct hd_put_extras extras = {.guard = {.created_at = d->created_at}};

    memset(value, 'x', sizeof(value));
    value[0] = value[sizeof(value) - 1] = '"';
    d->err = hd_store_put(d->store, &put, &extras, NULL);
    atomic_store(&d->is_done, true);
    return NULL;
}

static void add_record(struct fixture *f, int64_t created_at)
{
    const struct hd_cell row[] = {
        [HD_THREAD_INFO_PRINCIPAL] = record_key[0],
        [HD_THREAD_INFO_ID] = record_key[1],
        [HD_THREAD_INFO_REV] = hd_cell_int(1),
        [HD_THREAD_INFO_STATUS] = TEXT(HD_S("idle")),
        [HD_THREAD_INFO_CREATED] = hd_cell_int(created_at),
        [HD_THREAD_INFO_UPDATED] = hd_cell_int(1),
        [HD_THREAD_INFO_STATE_UPDATED] = hd_cell_int(1),
        [HD_THREAD_INFO_EXPIRES] = hd_cell_null(),
        [HD_THREAD_INFO_EVENT_SEQ] = hd_cell_int(0),
        [HD_THREAD_INFO_BODY] = TEXT(HD_S("{}")),
    };
    const struct hd_op op = {.kind = HD_OP_ADD, .table = HD_THREAD_INFO, .cells = row};

    must_apply(f->store, &op, 1);
}

/*
 * Another writer creates a thread while the deletion of the missing thread is held up at `table`.
 */
static void meet(struct fixture *f, const char *table, int64_t created_at, int *put_err)
{
    struct deleter d[2] = {{.created_at = created_at}, {.created_at = created_at}};
    pthread_t threads[2];

    for (int i = 0; i < 2; i++)
        assert_err(heddle_open(&d[i].store, f->url, NULL), 0);
    (void)sql(f->admin, "BEGIN; LOCK TABLE %s.%s IN SHARE MODE", f->schema, table);
    assert_int_equal(pthread_create(&threads[0], NULL, delete_in_thread, &d[0]), 0);
    wait_until_blocked(f, 1, NULL);
    assert_int_equal(pthread_create(&threads[1], NULL, put_in_thread, &d[1]), 0);
    wait_until_blocked(f, 2, &d[1].is_done);
    (void)sql(f->admin, "COMMIT");
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_err(d[0].err, 0);
    *put_err = d[1].err;
    assert_err(heddle_check(d[0].store, NULL), 0);
    for (int i = 0; i < 2; i++)
        heddle_close(d[i].store);
}

static void a_thread_that_begins_while_it_is_deleted_is_whole(void **state)
{
    struct fixture *f = *state;
    int err;

    meet(f, "writes", 0, &err);
    assert_err(err, 0);
    assert_string_equal(sql(f->admin, "SELECT count(*) FROM %s.checkpoints", f->schema), "1");
}

static void a_write_after_the_deletion_leaves_no_rows(void **state)
{
    struct fixture *f = *state;
    int err;

    add_record(f, 5);
    meet(f, "writes", 5, &err);
    assert_err(err, HD_ENOTFOUND);
    assert_string_equal(sql(f->admin, "SELECT count(*) FROM %s.threads", f->schema), "0");
    assert_string_equal(sql(f->admin, "SELECT count(*) FROM %s.checkpoints", f->schema), "0");
}

enum { ROUNDS = 150 };

struct crosser {
    struct fixture *f;
    bool is_reverse;
    bool is_put;
    int err;
};

/* A row whose key has two columns. */
static struct hd_op put_cron(struct hd_cell cells[6], struct hd_slice principal)
{
    cells[HD_CRONS_PRINCIPAL] = TEXT(principal);
    cells[HD_CRONS_ID] = TEXT(HD_S("c"));
    cells[HD_CRONS_REV] = hd_cell_int(1);
    cells[HD_CRONS_NEXT] = hd_cell_null();
    cells[HD_CRONS_CREATED] = hd_cell_int(1);
    cells[HD_CRONS_BODY] = TEXT(HD_S("{}"));
    return (struct hd_op){.kind = HD_OP_PUT, .table = HD_CRONS, .cells = cells};
}

/* Ten rows of two tables in one direction, while another thread goes the other way. */
static void *cross(void *arg)
{
    struct crosser *c = arg;
    char ids[10][2];
    struct hd_cell threads[10][4], crons[10][6];
    struct hd_op ops[20];

    for (int i = 0; i < 10; i++) {
        ids[i][0] = (char)('0' + (c->is_reverse ? 9 - i : i));
        ops[i] = put_thread(HD_OP_PUT, threads[i], hd_slice(ids[i], 1), 1);
        ops[10 + i] = put_cron(crons[i], hd_slice(ids[i], 1));
        if (c->is_put)
            continue;
        ops[i] = expect_epoch(threads[i], 1);
        ops[10 + i] = (struct hd_op){.kind = HD_OP_EXPECT,
                                     .table = HD_CRONS,
                                     .cells = crons[i],
                                     .column = HD_CRONS_REV,
                                     .expected = 1};
    }
    for (int i = 0; !c->err && i < (c->is_put ? 10 : ROUNDS); i++)
        c->err = apply(c->f->store, ops, HD_COUNT(ops), NULL, NULL);
    return NULL;
}

static void run_crossing(struct fixture *f, bool is_put)
{
    struct crosser crossers[2] = {{f, false, is_put, 0}, {f, true, is_put, 0}};
    pthread_t threads[2];

    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, cross, &crossers[i]), 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_err(crossers[0].err, 0);
    assert_err(crossers[1].err, 0);
}

/* The number of deadlocks. A session reports it when it ends, otherwise at some later time. */
static int64_t count_deadlocks(struct fixture *f)
{
    close_and_wait(f);
    must_open(&f->store, f->url);
    return strtoll(sql(f->admin, "SELECT deadlocks FROM pg_stat_database WHERE datname ="
                                 " current_database()"),
                   NULL, 10);
}

static void crosswise_batches_never_wait_for_each_other(void **state)
{
    struct fixture *f = *state;
    int64_t deadlocks;

    run_crossing(f, true); /* makes the rows; a deadlock is retried */
    deadlocks = count_deadlocks(f);
    run_crossing(f, false);
    assert_int_equal(count_deadlocks(f), deadlocks);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(an_expectation_waits_and_sees_the_committed_row),
        CASE(a_lock_that_is_never_released_is_busy),
        CASE(an_exhausted_pool_is_busy),
        CASE(a_thread_that_begins_while_it_is_deleted_is_whole),
        CASE(a_write_after_the_deletion_leaves_no_rows),
        CASE(crosswise_batches_never_wait_for_each_other),
    };

    if (is_without_server())
        return 77;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
