/*
 * Servers that go away: restarts under load, connections cut from the other side, and PgBouncer,
 * which hands every transaction to another server. Acknowledged rows must exist, no caller may
 * hang, and callers see no error during an outage shorter than the URL's timeout.
 */
#include "tests/contract/pg_help.h"

#include <signal.h>

enum { WRITERS = 4 };

/* ---- load ---- */

struct load {
    struct hd_backend *store;
    atomic_bool is_over;
};

/* Adds rows 0, 1, 2, … of its own thread id, one batch each, until it is stopped. */
struct writer {
    struct load *load;
    char id[2];
    _Atomic int64_t acknowledged; /* rows below this number are durable */
    int64_t batches_max;          /* 0: no limit */
    _Atomic int err;
    struct heddle_error fault;
};

static int take_data(void *arg, size_t which, const struct hd_cell *cells)
{
    (void)which;
    *(bool *)arg = hd_slice_eq(cells[HD_CHUNKS_DATA].bytes, HD_S("data"));
    return 0;
}

static int read_chunk(struct hd_backend *store, struct hd_slice thread, int64_t seq, bool *is_there,
                      struct heddle_error *fault)
{
    struct hd_cell key[3] = {TEXT(thread), TEXT(HD_S("s")), hd_cell_int(seq)};
    struct hd_query queries[2];

    queries[0] = (struct hd_query){.table = HD_CHUNKS,
                                   .index = HD_PRIMARY,
                                   .prefix = key,
                                   .prefix_count = 3,
                                   .columns = HD_ALL_COLUMNS};
    queries[1] = queries[0];
    *is_there = false;
    return hd_backend_read(store, queries, 2, take_data, is_there, fault);
}

/*
 * One row of data beside one that must exist. A conflict is right when the
 * outcome of a first attempt was unknown: then the row must be there.
 */
static int write_one(struct writer *w)
{
    struct hd_cell cells[HD_MAX_COLUMNS], row[4];
    struct hd_slice id = hd_slice(w->id, 1);
    struct hd_op ops[3];
    size_t failed = 99;
    bool is_there;
    int err;

    ops[0] = put_thread(HD_OP_PUT, row, id, 1);
    ops[1] = expect_epoch(row, 1);
    ops[2] = put_chunk(HD_OP_ADD, cells, id, w->acknowledged, HD_S("data"));
    err = apply(w->load->store, ops, 3, &failed, &w->fault);
    if (err == HD_ECONFLICT && failed == 2)
        err = 0;
    if (!err)
        err = read_chunk(w->load->store, id, w->acknowledged, &is_there, &w->fault);
    if (!err && !is_there)
        err = hd_error_set(&w->fault, HD_ENOTFOUND, "an acknowledged row is not there");
    return err;
}

static void *write_rows(void *arg)
{
    struct writer *w = arg;

    while (!w->err && !atomic_load(&w->load->is_over) &&
           (!w->batches_max || w->acknowledged < w->batches_max)) {
        w->fault = (struct heddle_error){0};
        w->err = write_one(w);
        if (!w->err)
            w->acknowledged++;
    }
    return NULL;
}

static void start_writers(struct load *load, struct writer *writers, pthread_t *threads, int count,
                          char first_id, int64_t batches_max)
{
    for (int i = 0; i < count; i++) {
        writers[i] = (struct writer){.load = load, .batches_max = batches_max};
        writers[i].id[0] = (char)(first_id + i);
        assert_int_equal(pthread_create(&threads[i], NULL, write_rows, &writers[i]), 0);
    }
}

static void join_writers(struct writer *writers, const pthread_t *threads, int count)
{
    for (int i = 0; i < count; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        if (writers[i].err)
            fail_msg("writer %d after %lld rows: %s (%s)", i, (long long)writers[i].acknowledged,
                     hd_error_name(writers[i].err), writers[i].fault.text);
    }
}

/* Waits until each writer has added some more rows, so it has reconnected. */
static void await_rows(struct writer *writers, int count)
{
    int64_t wanted[WRITERS];

    for (int i = 0; i < count; i++)
        wanted[i] = writers[i].acknowledged + 5;
    hd_clock_sleep_us(300000);
    for (int i = 0; i < count; i++) {
        while (writers[i].acknowledged < wanted[i] && !writers[i].err)
            hd_clock_sleep_us(1000); /* main() sees to it that this ends */
    }
}

static void check_rows(struct hd_backend *store, const struct writer *writers, int count)
{
    struct heddle_error fault = {0};

    for (int i = 0; i < count; i++) {
        for (int64_t seq = 0; seq < writers[i].acknowledged; seq++) {
            bool is_there;

            assert_err(read_chunk(store, hd_slice(writers[i].id, 1), seq, &is_there, &fault), 0);
            if (!is_there)
                fail_msg("row %lld of writer %d is lost", (long long)seq, i);
        }
    }
}

/* ---- the server goes away ---- */

static void a_restarted_server_loses_nothing_acknowledged(void **state)
{
    struct fixture *f = *state;
    struct load load = {.store = f->store};
    struct writer writers[WRITERS];
    pthread_t threads[WRITERS];

    start_writers(&load, writers, threads, WRITERS, 'a', 0);
    for (int i = 0; i < 3; i++) {
        await_rows(writers, WRITERS);
        assert_int_equal(system(getenv("HEDDLE_TEST_PG_RESTART")), 0);
    }
    await_rows(writers, WRITERS);
    atomic_store(&load.is_over, true);
    join_writers(writers, threads, WRITERS);
    check_rows(f->store, writers, WRITERS);
}

static void idle_connections_that_died_are_not_noticed(void **state)
{
    struct fixture *f = *state;
    struct hd_cell cells[4];
    struct hd_op op = put_thread(HD_OP_PUT, cells, HD_S("t"), 1);

    for (int i = 0; i < 5; i++) {
        must_apply(f->store, &op, 1);
        (void)sql(f->admin, "SELECT pg_terminate_backend(pid, 1000) FROM pg_stat_activity"
                            " WHERE application_name = 'heddle'");
        assert_int_equal(epoch_of(f->store, HD_S("t")), 1);
        (void)sql(f->admin, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                            " WHERE application_name = 'heddle'");
    }
}

static void connections_cut_under_load_are_replaced(void **state)
{
    struct fixture *f = *state;
    struct load load = {.store = f->store};
    struct writer writers[WRITERS];
    pthread_t threads[WRITERS];

    start_writers(&load, writers, threads, WRITERS, 'a', 0);
    for (int i = 0; i < 40; i++) {
        hd_clock_sleep_us(50000);
        (void)sql(f->admin,
                  "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                  " WHERE application_name = 'heddle' AND (pid + %d) %% 2 = 0",
                  i);
    }
    atomic_store(&load.is_over, true);
    join_writers(writers, threads, WRITERS);
    check_rows(f->store, writers, WRITERS);
}

/* The connection is open but the peer is silent: we give up after six timeouts and a grace. */
static void a_server_that_stops_answering_is_given_up(void **state)
{
    struct fixture *f = *state;
    struct heddle_error fault = {0};
    char url[400];
    int64_t epoch, took;
    int err = HD_EUNAVAILABLE;
    pid_t pid;

    hd_backend_close(f->store);
    make_url(url, sizeof(url), getenv("HEDDLE_TEST_PG_URL"), f->schema, "timeout=1&pool=1");
    must_open(&f->store, url);
    /* The sessions of the store that was closed may still be there. */
    pid = (pid_t)strtol(sql(f->admin, "SELECT pid FROM pg_stat_activity"
                                      " WHERE application_name = 'heddle' AND datname = 'heddle'"
                                      " ORDER BY backend_start DESC LIMIT 1"),
                        NULL, 10);
    assert_int_equal(kill(pid, SIGSTOP), 0);
    took = -hd_clock_monotonic_us();
    assert_err(read_epoch(f->store, HD_S("t"), &epoch, &fault), HD_EUNAVAILABLE);
    took += hd_clock_monotonic_us();
    assert_int_equal(kill(pid, SIGCONT), 0);
    assert_non_null(strstr(fault.text, "not responded for 8 s"));
    assert_true(took >= 7000000);
    /* The next connection may take longer than that timeout. */
    for (int i = 0; i < 60 && err; i++)
        err = read_epoch(f->store, HD_S("t"), &epoch, NULL);
    assert_err(err, 0);
    assert_int_equal(epoch, -1);
}

static void too_many_connections_is_waited_for(void **state)
{
    struct fixture *f = *state;
    struct hd_cell cells[4];
    struct hd_op op = put_thread(HD_OP_PUT, cells, HD_S("t"), 1);
    struct hd_backend *store = NULL;
    struct heddle_error fault = {0};
    char url[400];

    must_apply(f->store, &op, 1);
    (void)sql(f->admin, "CREATE ROLE %s_one LOGIN PASSWORD 'pw' SUPERUSER", f->schema);
    (void)sql(f->admin, "ALTER DATABASE heddle CONNECTION LIMIT 1");
    /* Superusers are exempt from the database's limit, so this takes an ordinary role. */
    (void)sql(f->admin, "ALTER ROLE %s_one NOSUPERUSER", f->schema);
    (void)sql(f->admin, "GRANT USAGE ON SCHEMA %s TO %s_one", f->schema, f->schema);
    (void)sql(f->admin, "GRANT SELECT ON ALL TABLES IN SCHEMA %s TO %s_one", f->schema, f->schema);
    (void)snprintf(url, sizeof(url), "postgresql://%s_one:pw%s?schema=%s&timeout=4", f->schema,
                   strchr(getenv("HEDDLE_TEST_PG_URL"), '@'), f->schema);
    assert_err(open_store(&store, url, &fault), HD_EUNAVAILABLE);
    assert_non_null(strstr(fault.text, "too many connections"));
    (void)sql(f->admin, "ALTER DATABASE heddle CONNECTION LIMIT -1");
    must_open(&store, url);
    hd_backend_close(store);
    (void)sql(f->admin, "DROP OWNED BY %s_one; DROP ROLE %s_one", f->schema, f->schema);
}

/* ---- behind PgBouncer ---- */

enum { STORES = 4, STORE_WRITERS = 3 };

static void open_behind_bouncer(struct hd_backend **out, const char *schema)
{
    char url[400];

    make_url(url, sizeof(url), getenv("HEDDLE_TEST_PGBOUNCER_URL"), schema, "pool=3&timeout=60");
    must_open(out, url);
}

/* Twelve clients share two servers, which cannot keep their prepared statements apart. */
static void a_pooler_in_transaction_mode_is_fine(void **state)
{
    struct fixture *f = *state;
    struct load loads[STORES] = {{0}};
    struct writer writers[STORES][STORE_WRITERS];
    pthread_t threads[STORES][STORE_WRITERS];
    bool is_plain = false;

    if (!getenv("HEDDLE_TEST_PGBOUNCER_URL"))
        skip(); /* with-postgres found no PgBouncer installed */
    for (int i = 0; i < STORES; i++)
        open_behind_bouncer(&loads[i].store, f->schema);
    for (int i = 0; i < STORES; i++)
        start_writers(&loads[i], writers[i], threads[i], STORE_WRITERS,
                      (char)('A' + i * STORE_WRITERS), 60);
    for (int i = 0; i < STORES; i++)
        join_writers(writers[i], threads[i], STORE_WRITERS);
    for (int i = 0; i < STORES; i++) {
        check_rows(f->store, writers[i], STORE_WRITERS);
        is_plain |= atomic_load(&hd_pg_from(loads[i].store)->is_plain);
        hd_backend_close(loads[i].store);
    }
    /* Otherwise the case has not reached its subject. */
    assert_true(is_plain);
}

static void a_restart_behind_a_pooler_loses_nothing_acknowledged(void **state)
{
    struct fixture *f = *state;
    struct load load = {0};
    struct writer writers[WRITERS];
    pthread_t threads[WRITERS];

    if (!getenv("HEDDLE_TEST_PGBOUNCER_URL"))
        skip(); /* with-postgres found no PgBouncer installed */
    open_behind_bouncer(&load.store, f->schema);
    start_writers(&load, writers, threads, WRITERS, 'a', 0);
    for (int i = 0; i < 2; i++) {
        await_rows(writers, WRITERS);
        assert_int_equal(system(getenv("HEDDLE_TEST_PG_RESTART")), 0);
    }
    await_rows(writers, WRITERS);
    atomic_store(&load.is_over, true);
    join_writers(writers, threads, WRITERS);
    check_rows(load.store, writers, WRITERS);
    hd_backend_close(load.store);
}

static void a_schema_is_created_through_a_pooler(void **state)
{
    struct fixture *f = *state;
    struct hd_backend *store;
    char schema[60];

    if (!getenv("HEDDLE_TEST_PGBOUNCER_URL"))
        skip(); /* with-postgres found no PgBouncer installed */
    (void)snprintf(schema, sizeof(schema), "%s_b", f->schema);
    open_behind_bouncer(&store, schema);
    assert_int_equal(epoch_of(store, HD_S("t")), -1);
    assert_err(hd_backend_compact(store, NULL), 0);
    hd_backend_close(store);
    (void)sql(f->admin, "SET client_min_messages = error; DROP SCHEMA %s CASCADE", schema);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(idle_connections_that_died_are_not_noticed),
        CASE(connections_cut_under_load_are_replaced),
        CASE(a_server_that_stops_answering_is_given_up),
        CASE(too_many_connections_is_waited_for),
        CASE(a_pooler_in_transaction_mode_is_fine),
        CASE(a_schema_is_created_through_a_pooler),
        CASE(a_restarted_server_loses_nothing_acknowledged),
        CASE(a_restart_behind_a_pooler_loses_nothing_acknowledged),
    };

    if (is_without_server())
        return 77;
    /* Nothing here may hang: better dead than waiting. */
    alarm(1200);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
