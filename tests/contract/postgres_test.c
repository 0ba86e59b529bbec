/*
 * Cases of the PostgreSQL driver alone: the schema and its versions, messages, privileges,
 * statements of many rows. The contract of all drivers is in backend_suite.c; locks are in
 * postgres_lock_test.c, server outages in postgres_fault_test.c.
 */
#include "tests/contract/pg_help.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "tests/contract/room_view_rows.h"

#define AS_TEXT(number) #number
#define TEXT_OF(macro) AS_TEXT(macro)
#define VERSION TEXT_OF(HD_SCHEMA_VERSION)

/* ---- bytes ---- */

static int take_row(void *arg, size_t which, const struct hd_cell *cells)
{
    struct hd_slice *got = arg;

    (void)which;
    assert_true(hd_arena_copy((struct hd_arena *)(void *)got[2].ptr, cells[HD_CHUNKS_THREAD].bytes,
                              &got[0]) == 0);
    assert_true(hd_arena_copy((struct hd_arena *)(void *)got[2].ptr, cells[HD_CHUNKS_DATA].bytes,
                              &got[1]) == 0);
    return 0;
}

static void check_round_trip(struct hd_backend *store, struct hd_slice thread, struct hd_slice data)
{
    struct hd_cell cells[HD_MAX_COLUMNS], key = TEXT(thread);
    struct hd_op op = put_chunk(HD_OP_PUT, cells, thread, INT64_MIN, data);
    struct hd_query query = {.table = HD_CHUNKS,
                             .index = HD_PRIMARY,
                             .prefix = &key,
                             .prefix_count = 1,
                             .columns = HD_ALL_COLUMNS};
    struct hd_arena arena;
    struct hd_slice got[3] = {{0}};
    struct heddle_error fault = {0};

    hd_arena_init(&arena, SIZE_MAX);
    got[2].ptr = (const char *)&arena;
    must_apply(store, &op, 1);
    assert_err(hd_backend_read(store, &query, 1, take_row, got, &fault), 0);
    assert_true(hd_slice_eq(got[0], thread));
    assert_true(hd_slice_eq(got[1], data));
    hd_arena_fini(&arena);
}

static void arbitrary_bytes_come_back(void **state)
{
    struct fixture *f = *state;
    char all[256];

    for (int i = 0; i < 256; i++)
        all[i] = (char)i;
    check_round_trip(f->store, hd_slice(all, 256), hd_slice(all, 256));
    check_round_trip(f->store, HD_S(""), hd_slice(NULL, 0));
    check_round_trip(f->store, HD_S("\\x00"), HD_S("\\"));
    check_round_trip(f->store, HD_S("\xff\xfe"), HD_S("\0"));
}

static void a_value_of_64_mib_comes_back(void **state)
{
    struct fixture *f = *state;
    size_t size = (size_t)64 << 20;
    char *large = malloc(size);

    assert_non_null(large);
    for (size_t i = 0; i < size; i++)
        large[i] = (char)(i * 2654435761u >> 24);
    check_round_trip(f->store, HD_S("t"), hd_slice(large, size));
    free(large);
}

static void a_row_over_one_gigabyte_is_refused(void **state)
{
    struct fixture *f = *state;
    struct hd_cell cells[HD_MAX_COLUMNS];
    struct heddle_error fault = {0};
    /* Only its length is looked at. */
    struct hd_op op = put_chunk(HD_OP_PUT, cells, HD_S("t"), 0, hd_slice("x", (size_t)1 << 30));

    assert_err(apply(f->store, &op, 1, NULL, &fault), HD_ELIMIT);
    assert_non_null(strstr(fault.text, "chunks"));
}

static void a_key_too_long_for_an_index_is_a_limit(void **state)
{
    struct fixture *f = *state;
    struct hd_cell cells[4];
    struct heddle_error fault = {0};
    char key[9000];
    struct hd_op op;

    /* Bytes that the server cannot compress below its limit. */
    for (size_t i = 0; i < sizeof(key); i++)
        key[i] = (char)(i * i * 2654435761u >> 13);
    op = put_thread(HD_OP_PUT, cells, hd_slice(key, sizeof(key)), 1);
    assert_err(apply(f->store, &op, 1, NULL, &fault), HD_ELIMIT);
    assert_true(epoch_of(f->store, hd_slice(key, sizeof(key))) == -1);
}

/* ---- many rows in one statement ---- */

enum { MANY = 3000 };

struct many {
    struct hd_cell cells[MANY][HD_MAX_COLUMNS];
    struct hd_op ops[MANY];
};

static struct many *make_many(enum hd_op_kind kind)
{
    struct many *many = calloc(1, sizeof(*many));

    assert_non_null(many);
    for (int i = 0; i < MANY; i++)
        many->ops[i] = put_chunk(kind, many->cells[i], HD_S("t"), i, HD_S("data"));
    return many;
}

static const char *count_chunks(struct fixture *f)
{
    return sql(f->admin, "SELECT count(*) FROM %s.chunks", f->schema);
}

static void a_conflict_reports_its_exact_operation(void **state)
{
    struct fixture *f = *state;
    struct many *many = make_many(HD_OP_ADD);
    size_t failed = 0;

    must_apply(f->store, &many->ops[1234], 1);
    assert_err(apply(f->store, many->ops, MANY, &failed, NULL), HD_ECONFLICT);
    assert_int_equal(failed, 1234);
    assert_string_equal(count_chunks(f), "1");

    /* Also when it is another operation of the same batch. */
    many->ops[10].cells = many->cells[9];
    assert_err(apply(f->store, many->ops, 20, &failed, NULL), HD_ECONFLICT);
    assert_int_equal(failed, 10);
    assert_string_equal(count_chunks(f), "1");
    free(many);
}

static void the_expectation_that_fails_is_named_exactly(void **state)
{
    struct fixture *f = *state;
    struct hd_cell cells[40][4];
    struct hd_op ops[40];
    char ids[40][8];
    size_t failed = 0;

    for (int i = 0; i < 40; i++) {
        int len = snprintf(ids[i], sizeof(ids[i]), "t%d", i);

        ops[i] = put_thread(HD_OP_PUT, cells[i], hd_slice(ids[i], (size_t)len), 100 + i);
    }
    must_apply(f->store, ops, 40);
    for (int i = 0; i < 40; i++) {
        ops[i] = expect_epoch(cells[i], 100 + i);
        ops[i].set_column = HD_THREADS_EPOCH;
        ops[i].set_count = 2;
        ops[i].set[0] = 200 + i;
        ops[i].set[1] = 300 + i;
    }
    must_apply(f->store, ops, 40);
    assert_string_equal(
        sql(f->admin, "SELECT sum(epoch) || ' ' || sum(created_at) FROM %s.threads", f->schema),
        "8780 12780");
    /*
     * Now one row is behind; then a key is expected twice, once with the value that the first sets.
     */
    for (int i = 0; i < 40; i++)
        ops[i].expected = i == 23 ? 100 : 200 + i;
    assert_err(apply(f->store, ops, 40, &failed, NULL), HD_ECONFLICT);
    assert_int_equal(failed, 23);
    ops[23].expected = 223;
    ops[39] = ops[0];
    must_apply(f->store, ops, 40);
    for (int i = 0; i < 40; i++)
        ops[i].set_count = 0;
    must_apply(f->store, ops, 40);
    ops[30].expected++;
    assert_err(apply(f->store, ops, 40, &failed, NULL), HD_ECONFLICT);
    assert_int_equal(failed, 30);
}

static void a_key_put_twice_in_a_batch_keeps_the_last(void **state)
{
    struct fixture *f = *state;
    struct hd_cell cells[5][4];
    struct hd_op ops[5];

    for (int i = 0; i < 5; i++)
        ops[i] = put_thread(HD_OP_PUT, cells[i], i % 2 ? HD_S("odd") : HD_S("even"), i);
    must_apply(f->store, ops, 5);
    assert_int_equal(epoch_of(f->store, HD_S("odd")), 3);
    assert_int_equal(epoch_of(f->store, HD_S("even")), 4);

    for (int i = 0; i < 5; i++)
        ops[i] = put_thread(HD_OP_PUT_NEW, cells[i], HD_S("new"), 10 + i);
    must_apply(f->store, ops, 5);
    assert_int_equal(epoch_of(f->store, HD_S("new")), 10);
}

static void many_rows_are_deleted_one_by_one_and_by_prefix(void **state)
{
    struct fixture *f = *state;
    struct many *many = make_many(HD_OP_PUT_NEW);

    must_apply(f->store, many->ops, MANY);
    must_apply(f->store, many->ops, MANY);
    assert_string_equal(count_chunks(f), "3000");
    for (int i = 0; i < MANY; i++) {
        many->ops[i].kind = HD_OP_DELETE;
        many->ops[i].key_count = 3;
    }
    must_apply(f->store, many->ops, MANY - 7);
    assert_string_equal(count_chunks(f), "7");
    many->ops[0].key_count = 1;
    must_apply(f->store, many->ops, 1);
    assert_string_equal(count_chunks(f), "0");
    free(many);
}

static void a_batch_is_all_or_nothing(void **state)
{
    struct fixture *f = *state;
    struct many *many = make_many(HD_OP_PUT);
    struct hd_cell key = TEXT(HD_S("absent"));
    size_t failed = 0;

    many->ops[100] = expect_epoch(&key, 1);
    assert_err(apply(f->store, many->ops, MANY, &failed, NULL), HD_ECONFLICT);
    assert_int_equal(failed, 100);
    assert_string_equal(count_chunks(f), "0");
    free(many);
}

/* ---- plans ---- */

/* Without a store: a session publishes its counters for certain only when it ends. */
static long scans_of_threads(struct fixture *f)
{
    close_and_wait(f);
    (void)sql(f->admin, "SELECT pg_stat_clear_snapshot()");
    return strtol(sql(f->admin,
                      "SELECT seq_scan FROM pg_stat_user_tables"
                      " WHERE schemaname = '%s' AND relname = 'threads'",
                      f->schema),
                  NULL, 10);
}

static void a_table_is_never_scanned_whole(void **state)
{
    struct fixture *f = *state;
    struct hd_cell cells[4];
    struct hd_op ops[2] = {put_thread(HD_OP_PUT, cells, HD_S("t"), 1), expect_epoch(cells, 1)};
    long before;

    must_apply(f->store, ops, 1);
    /* From now on the server has statistics of a small table, and prefers to scan it. */
    (void)sql(f->admin, "ANALYZE %s.threads", f->schema);
    before = scans_of_threads(f);
    must_open(&f->store, f->url);
    for (int i = 0; i < 10; i++) {
        must_apply(f->store, &ops[1], 1);
        assert_int_equal(epoch_of(f->store, HD_S("t")), 1);
    }
    assert_int_equal(scans_of_threads(f), before);
}

/* ---- durability ---- */

/* The value of synchronous_commit inside our transaction, recorded by a trigger. */
static const char *noted_setting(struct fixture *f, const char *more)
{
    struct hd_backend *store;
    struct hd_cell cells[4];
    struct hd_op op = put_thread(HD_OP_PUT, cells, hd_slice_cstr(more), 1);
    char url[400];

    make_url(url, sizeof(url), getenv("HEDDLE_TEST_PG_URL"), f->schema, more);
    must_open(&store, url);
    (void)sql(f->admin, "DELETE FROM %s.note", f->schema);
    must_apply(store, &op, 1);
    hd_backend_close(store);
    return sql(f->admin, "SELECT setting FROM %s.note", f->schema);
}

static void the_url_sets_the_durability(void **state)
{
    struct fixture *f = *state;

    (void)sql(f->admin, "CREATE TABLE %s.note (setting text)", f->schema);
    (void)sql(f->admin,
              "CREATE FUNCTION %s.note() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN"
              " INSERT INTO %s.note VALUES (current_setting('synchronous_commit'));"
              " RETURN NULL; END$$",
              f->schema, f->schema);
    (void)sql(f->admin,
              "CREATE TRIGGER note AFTER INSERT OR UPDATE ON %s.threads FOR EACH STATEMENT"
              " EXECUTE FUNCTION %s.note()",
              f->schema, f->schema);
    assert_string_equal(noted_setting(f, "durability=full"), "on");
    assert_string_equal(noted_setting(f, "durability=relaxed"), "off");
    /* A server that is careless by default is made careful; one that is more careful is left so. */
    assert_string_equal(noted_setting(f, "options=-csynchronous_commit%3Doff"), "on");
    assert_string_equal(noted_setting(f, "options=-csynchronous_commit%3Dremote_apply"),
                        "remote_apply");
}

/* ---- the schema ---- */

static void processes_that_start_at_once_create_the_schema_once(void **state)
{
    struct fixture *f = *state;
    char schema[40], url[400];

    name_schema(schema, sizeof(schema));
    make_url(url, sizeof(url), getenv("HEDDLE_TEST_PG_URL"), schema, "timeout=60");
    for (int i = 0; i < 8; i++) {
        pid_t pid = fork();

        assert_true(pid >= 0);
        if (pid == 0) {
            struct hd_backend *store;
            struct heddle_error fault = {0};
            int err = open_store(&store, url, &fault);

            if (err)
                print_error("%s\n", fault.text);
            _exit(err ? 1 : 0);
        }
    }
    for (int i = 0; i < 8; i++) {
        int status = -1;

        assert_true(wait(&status) > 0);
        assert_int_equal(status, 0);
    }
    assert_string_equal(sql(f->admin, "SELECT array_agg(version) FROM %s.schema_version", schema),
                        "{" VERSION "}");
    (void)sql(f->admin, "SET client_min_messages = error; DROP SCHEMA %s CASCADE", schema);
}

static void a_newer_schema_is_refused_and_left_alone(void **state)
{
    struct fixture *f = *state;
    struct hd_backend *store = NULL;
    struct heddle_error fault = {0};

    (void)sql(f->admin, "UPDATE %s.schema_version SET version = 41", f->schema);
    assert_err(open_store(&store, f->url, &fault), HD_EVERSION);
    assert_null(store);
    assert_non_null(strstr(fault.text, "version 41"));
    assert_non_null(strstr(fault.text, "up to " VERSION));
    assert_string_equal(sql(f->admin, "SELECT version FROM %s.schema_version", f->schema), "41");
}

/* As the first version had it: without the server's tables, and the views that read them. */
static void drop_what_is_new(struct fixture *f)
{
    for (int i = 0; i < HD_TABLE_COUNT; i++) {
        if (hd_tables[i].since > 1)
            (void)sql(f->admin, "SET client_min_messages = error; DROP TABLE %s.%s CASCADE",
                      f->schema, hd_tables[i].name);
    }
    (void)sql(f->admin, "DROP INDEX %s.checkpoints_backward", f->schema);
    (void)sql(f->admin, "UPDATE %s.schema_version SET version = 1", f->schema);
}

static void an_older_schema_gets_its_missing_tables(void **state)
{
    struct fixture *f = *state;
    struct hd_backend *store = NULL;
    struct hd_cell thread[4],
        row[] = {TEXT(HD_S("")), TEXT(HD_S("t")),       TEXT(HD_S("r")),
                 hd_cell_int(1), TEXT(HD_S("pending")), hd_cell_int(2000000),
                 hd_cell_int(3), hd_cell_null(),        TEXT(HD_S("{\"a\":1}"))};
    struct hd_op ops[] = {put_thread(HD_OP_PUT, thread, HD_S("t"), 5),
                          {.kind = HD_OP_ADD, .table = HD_RUNS, .cells = row}};

    must_apply(f->store, ops, 1);
    drop_what_is_new(f);
    must_open(&store, f->url);
    assert_int_equal(epoch_of(store, HD_S("t")), 5);
    must_apply(store, &ops[1], 1);
    hd_backend_close(store);
    assert_string_equal(sql(f->admin, "SELECT version FROM %s.schema_version", f->schema), VERSION);
    assert_string_equal(sql(f->admin,
                            "SELECT thread_id || run_id || rev || status || body || ' ' ||"
                            " extract(epoch FROM created_at)::int || coalesce(due_at::text, '-')"
                            " FROM %s.run_list",
                            f->schema),
                        "tr1pending{\"a\":1} 2-");
    assert_string_equal(sql(f->admin,
                            "SELECT (SELECT count(*) FROM %s.thread_info_list) +"
                            " (SELECT count(*) FROM %s.assistant_list) +"
                            " (SELECT count(*) FROM %s.item_list) +"
                            " (SELECT count(*) FROM %s.cron_list)",
                            f->schema, f->schema, f->schema, f->schema),
                        "0");
}

static void a_migration_that_fails_leaves_nothing(void **state)
{
    struct fixture *f = *state;
    struct hd_backend *store = NULL;
    struct heddle_error fault = {0};
    char schema[40], url[400];

    name_schema(schema, sizeof(schema));
    make_url(url, sizeof(url), getenv("HEDDLE_TEST_PG_URL"), schema, "");
    (void)sql(f->admin, "CREATE SCHEMA %s; CREATE TABLE %s.chunks (foreigner int)", schema, schema);
    assert_true(open_store(&store, url, &fault) < 0);
    assert_non_null(strstr(fault.text, "chunks"));
    assert_string_equal(sql(f->admin,
                            "SELECT count(*) FROM information_schema.tables"
                            " WHERE table_schema = '%s'",
                            schema),
                        "1");
    (void)sql(f->admin, "SET client_min_messages = error; DROP SCHEMA %s CASCADE", schema);
}

/* The test's URL for another user. */
static void url_of_user(char *out, size_t size, const char *schema, const char *user,
                        const char *password)
{
    const char *host = strchr(getenv("HEDDLE_TEST_PG_URL"), '@');
    char base[200];

    assert_non_null(host);
    (void)snprintf(base, sizeof(base), "postgresql://%s:%s%s", user, password, host);
    make_url(out, size, base, schema, "timeout=60");
}

static void a_current_schema_needs_no_right_to_create_or_write(void **state)
{
    struct fixture *f = *state;
    struct hd_backend *reader = NULL, *other = NULL;
    struct hd_cell cells[4];
    struct hd_op op = put_thread(HD_OP_PUT, cells, HD_S("t"), 5);
    struct heddle_error fault = {0};
    char url[400], user[60];

    must_apply(f->store, &op, 1);
    (void)sql(f->admin, "CREATE ROLE %s_reader LOGIN PASSWORD 'pw'", f->schema);
    (void)sql(f->admin, "GRANT USAGE ON SCHEMA %s TO %s_reader", f->schema, f->schema);
    (void)sql(f->admin, "GRANT SELECT ON ALL TABLES IN SCHEMA %s TO %s_reader", f->schema,
              f->schema);
    (void)snprintf(user, sizeof(user), "%s_reader", f->schema);
    url_of_user(url, sizeof(url), f->schema, user, "pw");
    must_open(&reader, url);
    assert_int_equal(epoch_of(reader, HD_S("t")), 5);
    assert_err(apply(reader, &op, 1, NULL, &fault), HD_EACCESS);
    assert_non_null(strstr(fault.text, "permission denied"));
    hd_backend_close(reader);

    /* But it cannot create a schema. */
    url_of_user(url, sizeof(url), "another_schema", user, "pw");
    fault = (struct heddle_error){0};
    assert_err(open_store(&other, url, &fault), HD_EACCESS);
    assert_non_null(strstr(fault.text, "permission denied"));
    (void)sql(f->admin, "DROP OWNED BY %s_reader; DROP ROLE %s_reader", f->schema, f->schema);
}

static void the_views_show_text(void **state)
{
    struct fixture *f = *state;
    struct hd_cell threads[3][4], row[7];
    struct hd_op ops[4];

    ops[0] = put_thread(HD_OP_PUT, threads[0], HD_S("alice:t1"), 1);
    ops[1] = put_thread(HD_OP_PUT, threads[1], HD_S(":\xff\0:"), INT64_MAX);
    ops[2] = put_thread(HD_OP_PUT, threads[2], HD_S("bare"), 1);
    threads[2][HD_THREADS_CREATED] = hd_cell_int(INT64_MIN);
    row[HD_CHECKPOINTS_THREAD] = TEXT(HD_S("alice:t1"));
    row[HD_CHECKPOINTS_NS] = TEXT(HD_S(""));
    row[HD_CHECKPOINTS_ID] = TEXT(HD_S("c1"));
    row[HD_CHECKPOINTS_PARENT] = hd_cell_null();
    row[HD_CHECKPOINTS_RUN] = TEXT(HD_S("\xc3\xa9"));
    row[HD_CHECKPOINTS_METADATA] = TEXT(HD_S("{\"step\": 1}"));
    row[HD_CHECKPOINTS_BODY] = TEXT(HD_S("\0"));
    ops[3] = (struct hd_op){.kind = HD_OP_PUT, .table = HD_CHECKPOINTS, .cells = row};
    must_apply(f->store, ops, 4);
    assert_string_equal(
        sql(f->admin,
            "SELECT string_agg(principal || '/' || thread_id, ' ' ORDER BY principal, thread_id)"
            " FROM %s.thread_list",
            f->schema),
        "/\\377\\000: /bare alice/t1");
    assert_string_equal(sql(f->admin,
                            "SELECT extract(epoch FROM created_at)::int FROM %s.thread_list"
                            " WHERE thread_id = 't1'",
                            f->schema),
                        "1");
    assert_string_equal(sql(f->admin,
                            "SELECT principal || thread_id || checkpoint_ns || checkpoint_id ||"
                            " coalesce(parent_checkpoint_id, '-') || run_id || metadata"
                            " FROM %s.checkpoint_list",
                            f->schema),
                        "alicet1c1-\xc3\xa9{\"step\": 1}");
}

static void the_views_show_rooms(void **state)
{
    struct fixture *f = *state;
    const struct hd_op ops[] = ROOM_VIEW_ROWS;
    /* PostgreSQL has no text with this character. */
    const struct hd_op strange[] = {
        VIEW_MESSAGE(5, "m5", "ok", 1, "ada", "{\"kind\":\"person\",\"sender_id\":\"a\\u0000b\"}"),
        VIEW_CONTENT("m5", 1, "\"a\\u0000b\"", "{}")};

    must_apply(f->store, ops, HD_COUNT(ops));
    must_apply(f->store, strange, HD_COUNT(strange));
    for (size_t i = 0; i < HD_COUNT(room_view_cases); i++)
        assert_string_equal(sql(f->admin, "SELECT %s FROM %s.%s WHERE id = '%s'",
                                room_view_cases[i].columns, f->schema, room_view_cases[i].view,
                                room_view_cases[i].id),
                            room_view_cases[i].expected);
    assert_string_equal(
        sql(f->admin, "SELECT content FROM %s.chat_messages WHERE id = 'm5'", f->schema),
        "\"a\\\\u0000b\"");
    assert_string_equal(sql(f->admin,
                            "SELECT extract(epoch FROM created_at)::float8 || ' ' ||"
                            " extract(epoch FROM updated_at)::float8"
                            " FROM %s.chat_messages WHERE id = 'm1'",
                            f->schema),
                        "1 9.5");
}

static void compacting_gives_space_back(void **state)
{
    struct fixture *f = *state;
    struct many *many = make_many(HD_OP_PUT);
    struct heddle_error fault = {0};
    long before, after;

    must_apply(f->store, many->ops, MANY);
    before = strtol(sql(f->admin, "SELECT pg_table_size('%s.chunks')", f->schema), NULL, 10);
    many->ops[0].kind = HD_OP_DELETE;
    many->ops[0].key_count = 1;
    must_apply(f->store, many->ops, 1);
    assert_err(hd_backend_compact(f->store, &fault), 0);
    after = strtol(sql(f->admin, "SELECT pg_table_size('%s.chunks')", f->schema), NULL, 10);
    assert_true(after < before / 4);
    free(many);
}

/* ---- messages ---- */

static void check_refused(const char *url, int expected, const char *words)
{
    struct hd_backend *store = NULL;
    struct heddle_error fault = {0};

    assert_err(open_store(&store, url, &fault), expected);
    assert_null(store);
    if (!strstr(fault.text, words))
        fail_msg("\"%s\" does not say \"%s\"", fault.text, words);
    assert_null(strstr(fault.text, "s3cret"));
}

static void errors_have_a_reason_and_never_the_password(void **state)
{
    struct fixture *f = *state;
    char url[400], base[300], *slash;

    url_of_user(url, sizeof(url), f->schema, "heddle", "s3cret");
    check_refused(url, HD_EACCESS, "password authentication failed");
    url_of_user(url, sizeof(url), f->schema, "nobody", "s3cret");
    check_refused(url, HD_EACCESS, "password authentication failed");

    (void)snprintf(base, sizeof(base), "%s", getenv("HEDDLE_TEST_PG_URL"));
    slash = strrchr(base, '/');
    (void)snprintf(slash, 10, "/nosuch");
    make_url(url, sizeof(url), base, f->schema, "timeout=60");
    check_refused(url, HD_EUNAVAILABLE, "\"nosuch\" does not exist");

    check_refused("postgresql://u:s3cret@127.0.0.1:1/db?timeout=1", HD_EUNAVAILABLE,
                  "127.0.0.1:1, database db: Connection refused");
    check_refused("postgresql://u:s3cret@no.such.host.invalid/db?timeout=1", HD_EUNAVAILABLE,
                  "no.such.host.invalid");
}

static void urls_that_would_leak_are_refused(void **state)
{
    (void)state;
    check_refused("postgresql://u:p@s3cret@h/db", HD_EINVAL, "percent-encoded");
    check_refused("postgresql://u:p/s3cret@h/db", HD_EINVAL, "percent-encoded");
    check_refused("postgresql://u:s3cret%zz@h/db", HD_EINVAL, "percent-encoded");
    check_refused("postgresql:db", HD_EINVAL, "postgresql://user@host/database");
    check_refused("postgresql://u:s3cret@h/db?nonsense=1", HD_EINVAL, "nonsense");
}

static void a_server_that_never_answers_is_given_up(void **state)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t size = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    int64_t began = hd_clock_monotonic_us();
    char url[100];

    (void)state;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(fd, 5), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &size), 0);
    (void)snprintf(url, sizeof(url), "postgresql://u@127.0.0.1:%d/db?timeout=1",
                   ntohs(address.sin_port));
    check_refused(url, HD_EUNAVAILABLE, "not responded in time");
    assert_true(hd_clock_monotonic_us() - began >= 900000);
    close(fd);
}

/* ---- memory ---- */

static int write_and_read(void *arg)
{
    struct fixture *f = arg;
    struct hd_cell cells[4][4];
    struct hd_op ops[4];
    int64_t epoch;
    int err;

    for (int i = 0; i < 4; i++)
        ops[i] = put_thread(HD_OP_PUT, cells[i], hd_slice(&"abcd"[i], 1), 7);
    ops[3] = expect_epoch(cells[2], 7);
    err = apply(f->store, ops, 4, NULL, NULL);
    if (!err)
        err = read_epoch(f->store, HD_S("a"), &epoch, NULL);
    if (!err && epoch != 7)
        err = HD_ENOTFOUND;
    return err;
}

static int open_and_close(void *arg)
{
    struct fixture *f = arg;
    struct hd_backend *store;
    int err = open_store(&store, f->url, NULL);

    if (!err)
        hd_backend_close(store);
    return err;
}

static void every_allocation_may_fail(void **state)
{
    assert_true(check_every_allocation(write_and_read, *state) > 3);
    assert_true(check_every_allocation(open_and_close, *state) > 3);
    assert_err(write_and_read(*state), 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(arbitrary_bytes_come_back),
        CASE(a_value_of_64_mib_comes_back),
        CASE(a_row_over_one_gigabyte_is_refused),
        CASE(a_key_too_long_for_an_index_is_a_limit),
        CASE(a_conflict_reports_its_exact_operation),
        CASE(the_expectation_that_fails_is_named_exactly),
        CASE(a_key_put_twice_in_a_batch_keeps_the_last),
        CASE(many_rows_are_deleted_one_by_one_and_by_prefix),
        CASE(a_batch_is_all_or_nothing),
        CASE(a_table_is_never_scanned_whole),
        CASE(the_url_sets_the_durability),
        CASE(processes_that_start_at_once_create_the_schema_once),
        CASE(a_newer_schema_is_refused_and_left_alone),
        CASE(an_older_schema_gets_its_missing_tables),
        CASE(a_migration_that_fails_leaves_nothing),
        CASE(a_current_schema_needs_no_right_to_create_or_write),
        CASE(the_views_show_text),
        CASE(the_views_show_rooms),
        CASE(compacting_gives_space_back),
        CASE(errors_have_a_reason_and_never_the_password),
        CASE(urls_that_would_leak_are_refused),
        CASE(a_server_that_never_answers_is_given_up),
        CASE(every_allocation_may_fail),
    };

    if (is_without_server())
        return 77;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
