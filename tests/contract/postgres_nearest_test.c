/*
 * Nearest vectors by PostgreSQL's extension "vector": the same results as by comparing all of them
 * here, for rows of any writer. Without the extension, or the privilege to create it, the driver
 * reports that it is unsupported. Each case has a separate database, because extensions belong to
 * one.
 */
#include "tests/contract/pg_help.h"

#include <float.h>
#include <math.h>

enum { MAX_DIMS = 40, MAX_TEXTS = 3, ROWS = 300 };

struct place {
    char name[40];
    char url[400];
    struct hd_backend *store;
    PGconn *admin;
};

/* ---- a database ---- */

static void url_in(char *out, size_t size, const struct place *p, const char *user)
{
    const char *base = getenv("HEDDLE_TEST_PG_URL");
    const char *host = strchr(base, '@'), *end = strrchr(base, '/');
    char plain[300];

    assert_true(host && end > host);
    if (user)
        (void)snprintf(plain, sizeof(plain), "postgresql://%s:pw%.*s/%s", user, (int)(end - host),
                       host, p->name);
    else
        (void)snprintf(plain, sizeof(plain), "%.*s/%s", (int)(end - base), base, p->name);
    make_url(out, size, plain, "s", "timeout=60");
}

static int make_place(void **state)
{
    struct place *p = calloc(1, sizeof(*p));
    PGconn *first = connect_admin();
    char plain[400];

    assert_non_null(p);
    name_schema(p->name, sizeof(p->name));
    (void)sql(first, "CREATE DATABASE %s", p->name);
    PQfinish(first);
    url_in(p->url, sizeof(p->url), p, NULL);
    (void)snprintf(plain, sizeof(plain), "%.*s", (int)strcspn(p->url, "?"), p->url);
    p->admin = PQconnectdb(plain);
    assert_int_equal(PQstatus(p->admin), CONNECTION_OK);
    must_open(&p->store, p->url);
    *state = p;
    return 0;
}

static int drop_place(void **state)
{
    struct place *p = *state;
    PGconn *first = connect_admin();

    hd_backend_close(p->store);
    PQfinish(p->admin);
    (void)sql(first, "DROP DATABASE %s WITH (FORCE)", p->name);
    PQfinish(first);
    free(p);
    return 0;
}

static bool has_column(struct place *p)
{
    return strcmp(sql(p->admin, "SELECT count(*) FROM pg_attribute WHERE attname = 'meaning' AND"
                                " attrelid = to_regclass('s.vectors')"),
                  "0") != 0;
}

static bool has_extension(void)
{
    PGconn *conn = connect_admin();
    bool has = sql(conn, "SELECT 1 FROM pg_available_extensions WHERE name = 'vector'")[0] != '\0';

    PQfinish(conn);
    return has;
}

/* ---- vectors ---- */

static uint64_t seed;

static uint32_t draw(void)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(seed >> 33);
}

static void draw_unit(float *out, size_t dims)
{
    double sum = 0;

    for (size_t i = 0; i < dims; i++) {
        out[i] = (float)draw() / (float)(1u << 30) - 1.0f;
        sum += (double)out[i] * (double)out[i];
    }
    for (size_t i = 0; i < dims; i++)
        out[i] = (float)(out[i] / sqrt(sum));
}

struct row {
    char key[24];
    const char *ns;
    size_t texts;
    float data[MAX_TEXTS * MAX_DIMS];
};

static void put_bytes(struct hd_backend *store, const char *ns, const char *key, size_t dims,
                      struct hd_slice data)
{
    const struct hd_cell cells[] = {
        [HD_VECTORS_PRINCIPAL] = TEXT(HD_S("p")),
        [HD_VECTORS_NAMESPACE] = TEXT(hd_slice_cstr(ns)),
        [HD_VECTORS_KEY] = TEXT(hd_slice_cstr(key)),
        [HD_VECTORS_UPDATED] = hd_cell_int(1),
        [HD_VECTORS_DIMS] = hd_cell_int((int64_t)dims),
        [HD_VECTORS_DATA] = TEXT(data),
    };
    const struct hd_op op = {.kind = HD_OP_PUT, .table = HD_VECTORS, .cells = cells};

    must_apply(store, &op, 1);
}

static void put_row(struct hd_backend *store, const struct row *row, size_t dims)
{
    put_bytes(store, row->ns, row->key, dims,
              hd_slice((const char *)row->data, row->texts * dims * sizeof(float)));
}

static void draw_rows(struct row *rows, size_t count, size_t dims)
{
    static const char *const spaces[] = {"a", "a.b", "a.b.c", "a-b", "ab"};

    for (size_t i = 0; i < count; i++) {
        rows[i].ns = spaces[draw() % HD_COUNT(spaces)];
        (void)snprintf(rows[i].key, sizeof(rows[i].key), "k%zu", i);
        rows[i].texts = 1 + draw() % MAX_TEXTS;
        for (size_t t = 0; t < rows[i].texts; t++)
            draw_unit(rows[i].data + t * dims, dims);
    }
}

static double score_of(const struct row *row, const float *asked, size_t dims)
{
    double best = -INFINITY;

    for (size_t t = 0; t < row->texts; t++) {
        double sum = 0;

        for (size_t i = 0; i < dims; i++)
            sum += (double)row->data[t * dims + i] * (double)asked[i];
        best = sum > best ? sum : best;
    }
    return best;
}

/* ---- queries ---- */

struct answer {
    size_t counts[2];
    char keys[2][ROWS][16];
};

static int take_key(void *arg, size_t which, const struct hd_cell *cells)
{
    struct answer *answer = arg;
    struct hd_slice key = cells[HD_VECTORS_KEY].bytes;

    assert_true(answer->counts[which] < ROWS);
    (void)snprintf(answer->keys[which][answer->counts[which]++], 16, "%.*s", (int)key.len, key.ptr);
    return 0;
}

/* In the namespace "a", and below it. */
static int ask(struct hd_backend *store, const float *asked, size_t dims, size_t limit,
               struct answer *out)
{
    const struct hd_cell prefix[] = {TEXT(HD_S("p")), TEXT(HD_S("a"))};
    const struct hd_cell low = TEXT(HD_S("a.")), high = TEXT(HD_S("a/"));
    struct hd_query queries[2] = {{.table = HD_VECTORS,
                                   .index = HD_PRIMARY,
                                   .prefix = prefix,
                                   .prefix_count = 2,
                                   .limit = limit,
                                   .columns = HD_ALL_COLUMNS}};
    struct heddle_error fault = {0};
    int err;

    queries[1] = queries[0];
    queries[1].prefix_count = 1;
    queries[1].low = &low;
    queries[1].high = &high;
    memset(out, 0, sizeof(*out));
    err = hd_backend_nearest(store, queries, 2, hd_slice((const char *)asked, dims * sizeof(float)),
                             take_key, out, &fault);
    if (err < 0)
        fail_msg("%s", fault.text);
    return err;
}

static bool is_asked_for(const struct row *row, size_t which)
{
    return which ? strncmp(row->ns, "a.", 2) == 0 : strcmp(row->ns, "a") == 0;
}

/* Each named one is as near as the one that belongs there, and no row is named twice. */
static void check_answer(const struct answer *answer, const struct row *rows, size_t count,
                         const float *asked, size_t dims, size_t limit)
{
    for (size_t which = 0; which < 2; which++) {
        bool is_named[ROWS] = {false};
        size_t there = 0;
        double last = INFINITY;

        for (size_t i = 0; i < answer->counts[which]; i++) {
            size_t n = strtoul(answer->keys[which][i] + 1, NULL, 10);
            double score = score_of(&rows[n], asked, dims);

            assert_true(n < count && is_asked_for(&rows[n], which) && !is_named[n]);
            assert_true(score <= last + 1e-5);
            is_named[n] = true;
            last = score;
        }
        for (size_t n = 0; n < count; n++) {
            there += is_asked_for(&rows[n], which);
            if (is_asked_for(&rows[n], which) && !is_named[n])
                assert_true(score_of(&rows[n], asked, dims) <= last + 1e-5);
        }
        assert_int_equal(answer->counts[which], there < limit ? there : limit);
    }
}

/* ---- cases ---- */

static void the_nearest_are_those_that_comparing_finds(void **state)
{
    static const size_t sizes[] = {1, 2, 7, 8, 40};
    static struct row rows[ROWS];
    struct place *p = *state;
    float asked[MAX_DIMS];
    struct answer answer;

    seed = 11;
    for (size_t s = 0; s < HD_COUNT(sizes); s++) {
        size_t dims = sizes[s];

        draw_rows(rows, ROWS, dims);
        for (size_t i = 0; i < ROWS; i++)
            put_row(p->store, &rows[i], dims);
        put_bytes(p->store, "a", "other", dims + 1,
                  HD_S("four bytes and some")); /* does not count */
        for (size_t n = 0; n < 6; n++) {
            size_t limit = n < 5 ? 1 + draw() % 30 : ROWS;

            draw_unit(asked, dims);
            assert_int_equal(ask(p->store, asked, dims, limit, &answer), 0);
            check_answer(&answer, rows, ROWS, asked, dims, limit);
        }
        (void)sql(p->admin, "DELETE FROM s.vectors");
    }
    assert_true(has_column(p));
}

/* Before there was a column, by another handle, over an old one; and deleted ones are gone. */
static void rows_of_every_writer_and_time_count(void **state)
{
    static struct row rows[40];
    struct place *p = *state;
    const struct hd_cell key[] = {TEXT(HD_S("p")), TEXT(HD_S("a")), TEXT(HD_S("k0"))};
    const struct hd_op deletion = {
        .kind = HD_OP_DELETE, .table = HD_VECTORS, .cells = key, .key_count = 3};
    struct hd_backend *other = NULL;
    struct answer answer;

    seed = 12;
    draw_rows(rows, 40, 8);
    rows[0].ns = rows[1].ns = rows[2].ns = "a";
    must_open(&other, p->url);
    for (size_t i = 0; i < 20; i++)
        put_row(p->store, &rows[i], 8);
    assert_int_equal(ask(p->store, rows[0].data, 8, 1, &answer), 0);
    assert_string_equal(answer.keys[0][0], "k0");
    for (size_t i = 20; i < 40; i++)
        put_row(other, &rows[i], 8);
    assert_int_equal(ask(other, rows[1].data, 8, 40, &answer), 0);
    check_answer(&answer, rows, 40, rows[1].data, 8, 40);
    memcpy(rows[2].data, rows[0].data, 8 * sizeof(float));
    put_row(other, &rows[2], 8);
    must_apply(other, &deletion, 1);
    assert_int_equal(ask(p->store, rows[0].data, 8, 1, &answer), 0);
    assert_string_equal(answer.keys[0][0], "k2");
    hd_backend_close(other);
}

/* The server decodes them exactly, to the last bit. */
static void every_number_comes_over_exactly(void **state)
{
    static const float numbers[] = {0.0f,    -0.0f,    1.0f,           -1.0f,  0.1f,     FLT_MAX,
                                    FLT_MIN, 1e-40f,   0x1p-149f,      -0.3f,  -FLT_MAX, 3e38f,
                                    1e-45f,  123456.f, 0x1.fffffep-2f, -1e-38f};
    struct place *p = *state;
    struct answer answer;
    float asked[HD_COUNT(numbers)] = {1.0f};

    put_bytes(p->store, "a", "k0", HD_COUNT(numbers),
              hd_slice((const char *)numbers, sizeof(numbers)));
    assert_int_equal(ask(p->store, asked, HD_COUNT(numbers), 1, &answer), 0);
    for (size_t i = 0; i < HD_COUNT(numbers); i++) {
        float number =
            strtof(sql(p->admin, "SELECT (meaning[1]::real[])[%zu] FROM s.vectors", i + 1), NULL);

        assert_memory_equal(&number, &numbers[i], sizeof(number));
    }
}

/* Bytes that are no vectors can be stored all the same, and never hide those that are. */
static void any_bytes_can_be_stored(void **state)
{
    static const float whole[] = {0.6f, 0.8f, 1.0f};
    const float odd[] = {INFINITY, NAN};
    struct place *p = *state;
    struct answer answer;
    char bytes[64];

    assert_int_equal(ask(p->store, whole, 2, 1, &answer), 0); /* from here on there is the column */
    put_bytes(p->store, "a", "k1", 2, hd_slice((const char *)whole, sizeof(whole)));
    put_bytes(p->store, "a", "k2", 2, hd_slice((const char *)odd, sizeof(odd)));
    put_bytes(p->store, "a", "k3", 2, HD_S(""));
    put_bytes(p->store, "a", "k4", 0, HD_S("abcd"));
    put_bytes(p->store, "a", "k5", (size_t)INT64_MAX, HD_S("abcd"));
    put_bytes(p->store, "a", "k6", (size_t)INT64_MIN, HD_S("abcd"));
    put_bytes(p->store, "a", "k7", 16001, HD_S("abcd"));
    seed = 13;
    for (size_t i = 10; i < 200; i++) {
        char key[24];

        for (size_t k = 0; k < sizeof(bytes); k++)
            bytes[k] = (char)draw();
        (void)snprintf(key, sizeof(key), "k%zu", i);
        put_bytes(p->store, "b", key, 1 + draw() % 8, hd_slice(bytes, draw() % sizeof(bytes)));
    }
    assert_int_equal(ask(p->store, whole, 2, 9, &answer), 0);
    assert_int_equal(answer.counts[0], 3); /* k2 and k3, in any order, and then */
    assert_string_equal(answer.keys[0][2], "k1");
}

static void without_the_right_to_have_it_nothing_changes(void **state)
{
    static struct row rows[20];
    struct place *p = *state;
    struct hd_backend *store = NULL;
    struct answer answer;
    char url[400], user[60];

    hd_backend_close(p->store);
    (void)sql(p->admin, "SET client_min_messages = error");
    (void)sql(p->admin, "DROP SCHEMA s CASCADE");
    (void)sql(p->admin, "CREATE ROLE %s_user LOGIN PASSWORD 'pw'", p->name);
    (void)sql(p->admin, "CREATE SCHEMA s AUTHORIZATION %s_user", p->name);
    (void)snprintf(user, sizeof(user), "%s_user", p->name);
    url_in(url, sizeof(url), p, user);
    must_open(&store, url);
    seed = 14;
    draw_rows(rows, 20, 4);
    for (size_t i = 0; i < 20; i++)
        put_row(store, &rows[i], 4);
    assert_int_equal(ask(store, rows[0].data, 4, 5, &answer), 1);
    assert_int_equal(ask(store, rows[0].data, 4, 5, &answer), 1);
    assert_int_equal(answer.counts[0] + answer.counts[1], 0);
    assert_false(has_column(p));
    assert_string_equal(sql(p->admin, "SELECT count(*) FROM s.vectors"), "20");
    hd_backend_close(store);
    must_open(&p->store, p->url);
    (void)sql(p->admin, "DROP OWNED BY %s_user CASCADE; DROP ROLE %s_user", p->name, p->name);
}

static void an_extension_that_is_dropped_is_done_without(void **state)
{
    static struct row rows[20];
    struct place *p = *state;
    struct answer answer;

    seed = 15;
    draw_rows(rows, 20, 4);
    for (size_t i = 0; i < 20; i++)
        put_row(p->store, &rows[i], 4);
    assert_int_equal(ask(p->store, rows[0].data, 4, 5, &answer), 0);
    (void)sql(p->admin, "SET client_min_messages = error");
    (void)sql(p->admin, "DROP EXTENSION vector CASCADE");
    assert_int_equal(ask(p->store, rows[0].data, 4, 5, &answer), 1);
    assert_int_equal(ask(p->store, rows[0].data, 4, 5, &answer), 1);
    put_row(p->store, &rows[0], 4);
    assert_string_equal(sql(p->admin, "SELECT count(*) FROM s.vectors"), "20");
}

/* A long table is not rewritten while a search waits. */
static void a_long_table_waits_until_the_store_is_compacted(void **state)
{
    struct place *p = *state;
    struct hd_backend *other = NULL;
    struct heddle_error fault = {0};
    float asked[2] = {1.0f, 0.0f};
    struct answer answer;

    /* Long because of an invalid vector, and therefore converted quickly. */
    (void)sql(p->admin, "INSERT INTO s.vectors SELECT 'p', 'z', convert_to(n::text, 'UTF8'), 1,"
                        " 100000, decode(repeat('00', 100000), 'hex')"
                        " FROM generate_series(1, 200) AS n");
    put_bytes(p->store, "a", "k1", 2, hd_slice((const char *)asked, sizeof(asked)));
    assert_int_equal(ask(p->store, asked, 2, 1, &answer), 1);
    assert_false(has_column(p));
    assert_err(hd_backend_compact(p->store, &fault), 0);
    assert_true(has_column(p));
    must_open(&other, p->url);
    assert_int_equal(ask(other, asked, 2, 1, &answer), 0);
    assert_string_equal(answer.keys[0][0], "k1");
    hd_backend_close(other);
}

static void *ask_in_thread(void *arg)
{
    static const float asked[2] = {1.0f, 0.0f};
    const char *url = arg;
    struct hd_backend *store = NULL;
    struct answer answer;
    int err;

    must_open(&store, url);
    err = ask(store, asked, 2, 1, &answer);
    hd_backend_close(store);
    return err == 0 && answer.counts[0] == 1 ? arg : NULL;
}

static void concurrent_first_searches_prepare_it_once(void **state)
{
    static const float asked[2] = {1.0f, 0.0f};
    struct place *p = *state;
    pthread_t threads[4];

    put_bytes(p->store, "a", "k1", 2, hd_slice((const char *)asked, sizeof(asked)));
    for (size_t i = 0; i < HD_COUNT(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, ask_in_thread, p->url), 0);
    for (size_t i = 0; i < HD_COUNT(threads); i++) {
        void *answer = NULL;

        assert_int_equal(pthread_join(threads[i], &answer), 0);
        assert_non_null(answer);
    }
}

static void invalid_queries_are_rejected(void **state)
{
    struct place *p = *state;
    const struct hd_cell prefix = TEXT(HD_S("p"));
    struct hd_query query = {.table = HD_VECTORS,
                             .index = HD_PRIMARY,
                             .prefix = &prefix,
                             .prefix_count = 1,
                             .columns = HD_ALL_COLUMNS};
    struct hd_backend *memory = NULL;
    struct answer answer = {.counts = {0}};

    assert_err(hd_backend_nearest(p->store, &query, 1, HD_S("abcd"), take_key, &answer, NULL),
               HD_EINVAL); /* no limit */
    query.limit = 1;
    assert_err(hd_backend_nearest(p->store, &query, 1, HD_S("abc"), take_key, &answer, NULL),
               HD_EINVAL);
    assert_err(hd_backend_nearest(p->store, &query, 1, HD_S(""), take_key, &answer, NULL),
               HD_EINVAL);
    query.table = HD_ITEMS;
    assert_err(hd_backend_nearest(p->store, &query, 1, HD_S("abcd"), take_key, &answer, NULL),
               HD_EINVAL);
    query.table = HD_VECTORS;
    must_open(&memory, "memory:");
    assert_int_equal(hd_backend_nearest(memory, &query, 1, HD_S("abcd"), take_key, &answer, NULL),
                     1);
    hd_backend_close(memory);
}

static int ask_any(void *arg)
{
    static const float asked[2] = {1.0f, 0.0f};
    const struct hd_cell prefix = TEXT(HD_S("p"));
    struct hd_query query = {.table = HD_VECTORS,
                             .index = HD_PRIMARY,
                             .prefix = &prefix,
                             .prefix_count = 1,
                             .limit = 1,
                             .columns = HD_ALL_COLUMNS};
    struct place *p = arg;
    struct answer answer = {.counts = {0}};
    struct heddle_error fault = {0};

    return hd_backend_nearest(p->store, &query, 1, hd_slice((const char *)asked, sizeof(asked)),
                              take_key, &answer, &fault);
}

static void every_allocation_may_fail(void **state)
{
    struct place *p = *state;

    assert_int_equal(ask_any(p), 0);
    assert_true(check_every_allocation(ask_any, p) > 0);
    assert_int_equal(ask_any(p), 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, make_place, drop_place)

int main(void)
{
    const struct CMUnitTest without[] = {
        CASE(without_the_right_to_have_it_nothing_changes),
        CASE(invalid_queries_are_rejected),
    };
    const struct CMUnitTest with[] = {
        CASE(without_the_right_to_have_it_nothing_changes),
        CASE(invalid_queries_are_rejected),
        CASE(the_nearest_are_those_that_comparing_finds),
        CASE(rows_of_every_writer_and_time_count),
        CASE(every_number_comes_over_exactly),
        CASE(any_bytes_can_be_stored),
        CASE(an_extension_that_is_dropped_is_done_without),
        CASE(a_long_table_waits_until_the_store_is_compacted),
        CASE(concurrent_first_searches_prepare_it_once),
        CASE(every_allocation_may_fail),
    };

    if (is_without_server())
        return 77;
    if (has_extension())
        return cmocka_run_group_tests(with, NULL, NULL);
    printf("# PostgreSQL has no extension vector here: the cases that need it are left out\n");
    return cmocka_run_group_tests(without, NULL, NULL);
}
