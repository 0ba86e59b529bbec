/*
 * PostgreSQL: opening and reading. The header lists the other files.
 *
 * All queries of one read take one round trip. Their results are kept until the last has arrived
 * and only then delivered, so that a read whose connection was lost can be retried without
 * delivering a row twice, and the connection is free again before the caller sees the first row.
 */
#include "store/postgres/backend_postgres.h"

#include <stdio.h>

#include "base/alloc.h"

/* ---- opening ---- */

static char *pg_copy_text(const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = hd_malloc(size);

    if (copy)
        memcpy(copy, text, size);
    return copy;
}

static const char *option(const PQconninfoOption *options, const char *name)
{
    for (; options && options->keyword; options++) {
        if (strcmp(options->keyword, name) == 0)
            return options->val && options->val[0] ? options->val : NULL;
    }
    return NULL;
}

/* The URL's value, or else that of the environment. */
static const char *setting(const PQconninfoOption *url, const PQconninfoOption *defaults,
                           const char *name)
{
    const char *value = option(url, name);

    return value ? value : option(defaults, name);
}

static int pg_describe(struct hd_pg *pg, const PQconninfoOption *url)
{
    PQconninfoOption *defaults = PQconndefaults();
    const char *host = option(url, "host");
    const char *port = setting(url, defaults, "port");
    const char *db = setting(url, defaults, "dbname");
    char text[160];

    if (!host)
        host = setting(url, defaults, "hostaddr");
    if (!host)
        host = option(defaults, "host");
    if (!db)
        db = setting(url, defaults, "user");
    (void)snprintf(text, sizeof(text), "%s:%s, database %s", host ? host : "the local socket",
                   port ? port : "5432", db ? db : "of the user");
    PQconninfoFree(defaults);
    pg->where = pg_copy_text(text);
    return pg->where ? 0 : HD_ENOMEM;
}

/*
 * libpq takes everything up to some '@' as user and host, and its messages quote it. An unencoded
 * '@' would put a part of the password there, so it is rejected before libpq sees it.
 */
static bool is_ambiguous(const char *rest)
{
    const char *first = strchr(rest, '@');
    const char *end = rest + strcspn(rest, "?");
    const char *path = rest + 2 + strcspn(rest + 2, "/?");

    if (!first || first >= end)
        return false;
    return first > path || memchr(first + 1, '@', (size_t)(end - first - 1)) != NULL;
}

static int check_url(const struct hd_url *url, PQconninfoOption **out, struct heddle_error *fault)
{
    char *message = NULL;

    if (strncmp(url->rest, "//", 2) != 0)
        return hd_error_set(fault, HD_EINVAL, "a PostgreSQL URL looks like %s://user@host/database",
                            url->scheme);
    *out = is_ambiguous(url->rest) ? NULL : PQconninfoParse(url->full, &message);
    if (*out)
        return 0;
    /* This message names a parameter; others may quote the password. */
    if (message && strstr(message, "query parameter"))
        (void)hd_error_set(fault, HD_EINVAL, "PostgreSQL URL: %.*s", (int)strcspn(message, "\r\n"),
                           message);
    else
        (void)hd_error_set(fault, HD_EINVAL,
                           "PostgreSQL URL: cannot be parsed; special characters in user and "
                           "password must be percent-encoded");
    PQfreemem(message);
    return HD_EINVAL;
}

static void pg_close(struct hd_backend *backend)
{
    struct hd_pg *pg = hd_pg_from(backend);

    hd_pg_pool_fini(pg);
    hd_free(pg->conninfo);
    hd_free(pg->schema);
    hd_free(pg->where);
    hd_free(pg);
}

static int pg_create(struct hd_pg **out, const struct hd_url *url, const PQconninfoOption *options)
{
    struct hd_pg *pg = hd_calloc(1, sizeof(*pg));
    int err = pg ? hd_pg_pool_init(pg) : HD_ENOMEM;

    if (err) {
        hd_free(pg);
        return err;
    }
    pg->base.ops = &hd_backend_postgres;
    pg->base.lanes = url->pool;
    pg->pool = url->pool;
    pg->timeout_ms = url->timeout_ms;
    pg->is_relaxed = url->is_relaxed;
    pg->conninfo = pg_copy_text(url->full);
    pg->schema = pg_copy_text(url->schema);
    err = pg_describe(pg, options);
    if (err || !pg->conninfo || !pg->schema) {
        pg_close(&pg->base);
        return HD_ENOMEM;
    }
    *out = pg;
    return 0;
}

static int pg_open(struct hd_backend **out, const struct hd_url *url, struct heddle_error *fault)
{
    PQconninfoOption *options = NULL;
    struct hd_pg *pg = NULL;
    int err = check_url(url, &options, fault);

    if (err)
        return err;
    err = pg_create(&pg, url, options);
    PQconninfoFree(options);
    if (err)
        return hd_error_set(fault, err, "%s", hd_error_text(err));
    err =
        hd_pg_schema_open(pg, url->enough_version ? url->enough_version : HD_SCHEMA_VERSION, fault);
    if (err) {
        pg_close(&pg->base);
        return err;
    }
    pg->base.is_remote = true;
    *out = &pg->base;
    return 0;
}

static int pg_upgrade(struct hd_backend *backend, struct heddle_error *fault)
{
    return hd_pg_schema_open((struct hd_pg *)backend, HD_SCHEMA_VERSION, fault);
}

/* ---- reading ---- */

struct pg_reading {
    const struct hd_query *queries;
    size_t count;
    struct hd_slice vector; /* empty: in the order of the queries; otherwise nearest first */
    PGresult **results;
};

static void add_cell(struct hd_pg_params *params, const struct hd_cell *cell, char number[8])
{
    int n = params->count++;

    if (cell->kind == HD_CELL_INT) {
        for (int i = 0; i < 8; i++)
            number[i] = (char)((uint64_t)cell->number >> (56 - 8 * i));
        params->values[n] = number;
        params->lengths[n] = 8;
    } else {
        params->values[n] = cell->bytes.len ? cell->bytes.ptr : "";
        params->lengths[n] = (int)cell->bytes.len;
    }
}

/* In the order in which hd_pg_sql_select() numbers them. */
static void fill_params(struct hd_pg_params *params, const struct hd_query *query,
                        char numbers[HD_PG_MAX_PARAMS][8])
{
    struct hd_cell limit = hd_cell_int((int64_t)query->limit);

    params->count = 0;
    for (unsigned i = 0; i < query->prefix_count; i++)
        add_cell(params, &query->prefix[i], numbers[params->count]);
    if (query->low)
        add_cell(params, query->low, numbers[params->count]);
    if (query->high)
        add_cell(params, query->high, numbers[params->count]);
    for (unsigned i = 0; i < query->after_count; i++)
        add_cell(params, &query->after[i], numbers[params->count]);
    if (query->limit > 1)
        add_cell(params, &limit, numbers[params->count]);
}

/* In the order in which hd_pg_sql_nearest() numbers them. */
static void fill_nearest(struct hd_pg_params *params, const struct hd_query *query,
                         struct hd_slice vector, char numbers[HD_PG_MAX_PARAMS][8])
{
    struct hd_cell limit = hd_cell_int((int64_t)query->limit);
    struct hd_cell cells[] = {hd_cell_bytes(vector),
                              hd_cell_int((int64_t)(vector.len / sizeof(float))), limit};
    struct hd_query bounds = *query;

    bounds.limit = 0;
    fill_params(params, &bounds, numbers);
    for (size_t i = 0; i < HD_COUNT(cells); i++)
        add_cell(params, &cells[i], numbers[params->count]);
}

/* True when two queries are the same statement with other parameters. */
static bool is_same_shape(const struct hd_query *a, const struct hd_query *b)
{
    return a->table == b->table && a->index == b->index && a->prefix_count == b->prefix_count &&
           !a->low == !b->low && !a->high == !b->high && a->after_count == b->after_count &&
           a->is_reverse == b->is_reverse && a->columns == b->columns &&
           a->is_count == b->is_count && (a->limit > 1) == (b->limit > 1) &&
           (a->limit == 1) == (b->limit == 1);
}

static int send_queries(struct hd_pg *pg, struct hd_pg_conn *conn, const struct pg_reading *reading,
                        struct hd_pg_failure *failure)
{
    struct hd_pg_sql sql;
    int err = 0;

    for (size_t i = 0; !err && i < reading->count; i++) {
        const struct hd_query *query = &reading->queries[i];
        char numbers[HD_PG_MAX_PARAMS][8];
        struct hd_pg_params params;

        if (reading->vector.len) {
            hd_pg_sql_nearest(&sql, pg->schema, pg->extension, query);
            fill_nearest(&params, query, reading->vector, numbers);
        } else {
            if (i == 0 || !is_same_shape(query, query - 1))
                hd_pg_sql_select(&sql, pg->schema, query);
            fill_params(&params, query, numbers);
        }
        err = hd_pg_send(conn, sql.text, !atomic_load(&pg->is_plain), &params, i, failure);
    }
    return err;
}

static void clear_results(struct pg_reading *reading)
{
    for (size_t i = 0; i < reading->count; i++) {
        PQclear(reading->results[i]);
        reading->results[i] = NULL;
    }
}

static int run_queries(struct hd_pg *pg, struct hd_pg_conn *conn, int64_t deadline_us, void *arg,
                       struct hd_pg_failure *failure)
{
    struct pg_reading *reading = arg;
    bool is_several = reading->count > 1 && !reading->queries[0].is_independent;
    int err = 0;

    (void)deadline_us;
    clear_results(reading);
    if (is_several)
        err = hd_pg_send_plain(conn, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", false,
                               failure);
    if (!err)
        err = send_queries(pg, conn, reading, failure);
    if (!err && is_several)
        err = hd_pg_send_plain(conn, "COMMIT", true, failure);
    if (!err)
        err = hd_pg_finish(conn, reading->results, failure);
    return err;
}

static int read_cell(const PGresult *res, int row, int field, enum hd_column_type type,
                     struct hd_cell *cell)
{
    const char *value = PQgetvalue(res, row, field);
    int len = PQgetlength(res, row, field);
    uint64_t number = 0;

    if (PQgetisnull(res, row, field)) {
        *cell = hd_cell_null();
        return 0;
    }
    if (type != HD_COL_INT) {
        *cell = hd_cell_bytes(hd_slice(value, (size_t)len));
        return 0;
    }
    if (len != 8)
        return HD_ECORRUPT;
    for (int i = 0; i < 8; i++)
        number = number << 8 | (unsigned char)value[i];
    *cell = hd_cell_int((int64_t)number);
    return 0;
}

static int read_row(const PGresult *res, int row, const struct hd_query *query,
                    struct hd_cell *cells)
{
    const struct hd_table *table = &hd_tables[query->table];
    int field = 0, err = 0;

    if (query->is_count)
        return read_cell(res, row, 0, HD_COL_INT, &cells[0]);
    for (unsigned i = 0; !err && i < table->column_count; i++) {
        if (hd_pg_is_selected(query, i))
            err = read_cell(res, row, field++, table->columns[i].type, &cells[i]);
        else
            cells[i] = hd_cell_null();
    }
    return err;
}

static int deliver(struct hd_pg *pg, const struct pg_reading *reading, size_t which, hd_row_fn fn,
                   void *arg, struct heddle_error *fault)
{
    const PGresult *res = reading->results[which];
    const struct hd_query *query = &reading->queries[which];
    int answer = 0;

    for (int row = 0; answer == 0 && row < PQntuples(res); row++) {
        struct hd_cell cells[HD_MAX_COLUMNS];
        int err = read_row(res, row, query, cells);

        if (err)
            return hd_error_set(fault, err,
                                "PostgreSQL at %s: table %s has a column of an unexpected type",
                                pg->where, hd_tables[query->table].name);
        answer = fn(arg, which, cells);
    }
    return answer < 0 ? answer : 0;
}

static int deliver_all(struct hd_pg *pg, struct pg_reading *reading, hd_row_fn fn, void *arg,
                       struct heddle_error *fault)
{
    int err = 0;

    for (size_t i = 0; !err && i < reading->count; i++) {
        err = deliver(pg, reading, i, fn, arg, fault);
        PQclear(reading->results[i]);
        reading->results[i] = NULL;
    }
    return err;
}

static int pg_read(struct hd_backend *backend, const struct hd_query *queries, size_t count,
                   hd_row_fn fn, void *arg, struct heddle_error *fault)
{
    struct hd_pg *pg = hd_pg_from(backend);
    struct pg_reading reading = {.queries = queries, .count = count};
    int err;

    if (count == 0)
        return 0;
    reading.results = hd_calloc(count, sizeof(PGresult *));
    if (!reading.results)
        return hd_error_set(fault, HD_ENOMEM, "%s", hd_error_text(HD_ENOMEM));
    err = hd_pg_run(pg, run_queries, &reading, fault);
    if (!err)
        err = deliver_all(pg, &reading, fn, arg, fault);
    clear_results(&reading);
    hd_free(reading.results);
    return err;
}

/* The extension may have been dropped: then, and if in doubt, the caller compares. */
static int pg_nearest(struct hd_backend *backend, const struct hd_query *queries, size_t count,
                      struct hd_slice vector, hd_row_fn fn, void *arg, struct heddle_error *fault)
{
    struct hd_pg *pg = hd_pg_from(backend);
    struct pg_reading reading = {.queries = queries, .count = count, .vector = vector};
    struct heddle_error ignored = {0};
    int err;

    if (vector.len / sizeof(float) > HD_PG_MAX_DIMS || !hd_pg_nearest_is_ready(pg))
        return 1;
    reading.results = hd_calloc(count, sizeof(PGresult *));
    if (!reading.results)
        return hd_error_set(fault, HD_ENOMEM, "%s", hd_error_text(HD_ENOMEM));
    err = hd_pg_run(pg, run_queries, &reading, &ignored);
    if (!err)
        err = deliver_all(pg, &reading, fn, arg, fault);
    else if (err == HD_ENOMEM || err == HD_EUNAVAILABLE || err == HD_EBUSY)
        err = hd_error_set(fault, err, "%s", ignored.text);
    else
        err = hd_pg_nearest_forget(pg, ignored.text);
    clear_results(&reading);
    hd_free(reading.results);
    return err;
}

/* ---- compacting ---- */

/* Frees the space of deleted rows for reuse, and returns empty pages at the end to the system. */
static int vacuum(struct hd_pg *pg, struct hd_pg_conn *conn, int64_t deadline_us, void *arg,
                  struct hd_pg_failure *failure)
{
    static const int64_t one_hour_us = 3600000000;
    const struct hd_table *table = arg;
    int64_t patience_us = conn->patience_us;
    char sql[128];
    int err;

    (void)deadline_us;
    (void)snprintf(sql, sizeof(sql), "VACUUM (ANALYZE) \"%s\".\"%s\"", pg->schema, table->name);
    err = hd_pg_send_plain(conn, sql, false, failure);
    if (err)
        return err;
    conn->patience_us = one_hour_us;
    err = hd_pg_finish(conn, NULL, failure);
    conn->patience_us = patience_us;
    return err;
}

static int pg_compact(struct hd_backend *backend, struct heddle_error *fault)
{
    int err = 0;

    for (unsigned i = 0; !err && i < HD_TABLE_COUNT; i++) {
        struct hd_table table = hd_tables[i];

        err = hd_pg_run(hd_pg_from(backend), vacuum, &table, fault);
    }
    if (!err)
        hd_pg_nearest_compact(hd_pg_from(backend));
    return err;
}

const struct hd_backend_ops hd_backend_postgres = {
    .can_count = true,
    .schemes = {"postgresql", "postgres"},
    .open = pg_open,
    .upgrade = pg_upgrade,
    .close = pg_close,
    .apply = hd_pg_apply,
    .read = pg_read,
    .nearest = pg_nearest,
    .compact = pg_compact,
};
