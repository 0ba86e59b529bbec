/*
 * The schema: detects the version of the database and migrates it to ours.
 *
 * A current store is opened by one SELECT, without any privilege to create. Otherwise all missing
 * objects are created in one transaction. Processes that start at the same time wait for an
 * advisory lock, taken before anything is read, and all but the first find the work done.
 */
#include "store/postgres/backend_postgres.h"

#include <stdarg.h>
#include <stdio.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

/* The state of a schema, as found. */
struct schema_found {
    bool has_schema;
    bool has_version; /* the version table exists */
    int64_t version;
};

static int64_t schema_read_int(const PGresult *res, int column)
{
    uint64_t value = 0;

    for (int i = 0; i < PQgetlength(res, 0, column); i++)
        value = value << 8 | (unsigned char)PQgetvalue(res, 0, column)[i];
    return (int64_t)value;
}

static struct hd_pg_params text_param(const char *text)
{
    return (struct hd_pg_params){.count = 1, .values = {text}, .lengths = {(int)strlen(text)}};
}

/* ---- reading ---- */

static int take_version(PGresult *res, struct schema_found *found, struct hd_pg_failure *failure)
{
    if (!res || PQntuples(res) != 1 || PQgetisnull(res, 0, 0) || PQgetlength(res, 0, 0) != 8)
        return hd_pg_fail(failure, HD_ECORRUPT, "the table schema_version is empty");
    found->version = schema_read_int(res, 0);
    return 0;
}

static int read_version(struct hd_pg *pg, struct hd_pg_conn *conn, struct schema_found *found,
                        struct hd_pg_failure *failure)
{
    static const struct hd_pg_params none;
    PGresult *res = NULL;
    char sql[128];
    int err;

    (void)snprintf(sql, sizeof(sql), "SELECT version FROM \"%s\".schema_version", pg->schema);
    err = hd_pg_send(conn, sql, false, &none, 0, failure);
    if (!err)
        err = hd_pg_finish(conn, &res, failure);
    if (!err)
        err = take_version(res, found, failure);
    PQclear(res);
    return err;
}

/* The first read: no transaction, no lock. A missing table is version 0. */
static int schema_look(struct hd_pg *pg, struct hd_pg_conn *conn, int64_t deadline_us, void *arg,
                       struct hd_pg_failure *failure)
{
    struct schema_found *found = arg;
    int err = read_version(pg, conn, found, failure);

    (void)deadline_us;
    if (err && (strcmp(failure->state, "42P01") == 0 || strcmp(failure->state, "3F000") == 0)) {
        found->version = 0;
        return 0;
    }
    return err;
}

/* ---- migrating ---- */

static int send_lock(struct hd_pg *pg, struct hd_pg_conn *conn, struct hd_pg_failure *failure)
{
    static const struct hd_pg_params none;
    char text[64], sql[96];
    int len = snprintf(text, sizeof(text), "heddle schema %s", pg->schema);

    (void)snprintf(sql, sizeof(sql), "SELECT pg_catalog.pg_advisory_xact_lock(%lld)",
                   (long long)(int64_t)XXH3_64bits(text, (size_t)len));
    return hd_pg_send(conn, sql, false, &none, HD_PG_NO_TAG, failure);
}

static int send_probe(struct hd_pg *pg, struct hd_pg_conn *conn, struct hd_pg_failure *failure)
{
    struct hd_pg_params params = text_param(pg->schema);

    return hd_pg_send(
        conn,
        "SELECT EXISTS (SELECT FROM pg_catalog.pg_namespace WHERE nspname = $1::text),"
        " EXISTS (SELECT FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n"
        " ON n.oid = c.relnamespace WHERE n.nspname = $1::text"
        " AND c.relname = 'schema_version')",
        false, &params, 0, failure);
}

/* Begins the transaction, takes the lock and reads again. */
static int begin_migration(struct hd_pg *pg, struct hd_pg_conn *conn, int64_t deadline_us,
                           struct schema_found *found, struct hd_pg_failure *failure)
{
    PGresult *res = NULL;
    int err = hd_pg_send_begin(pg, conn, deadline_us, failure);

    memset(found, 0, sizeof(*found));
    if (!err)
        err = send_lock(pg, conn, failure);
    if (!err)
        err = send_probe(pg, conn, failure);
    if (!err)
        err = hd_pg_finish(conn, &res, failure);
    if (!err && PQntuples(res) == 1) {
        found->has_schema = PQgetvalue(res, 0, 0)[0];
        found->has_version = PQgetvalue(res, 0, 1)[0];
    }
    PQclear(res);
    if (!err && found->has_version)
        err = read_version(pg, conn, found, failure);
    return err;
}

struct schema_emitter {
    struct hd_pg_conn *conn;
    struct hd_pg_failure *failure;
};

static int emit(void *arg, const char *sql)
{
    struct schema_emitter *emitter = arg;

    return hd_pg_send_plain(emitter->conn, sql, false, emitter->failure);
}

static int emit_formatted(struct schema_emitter *emitter, const char *fmt, ...) HD_PRINTF(2, 3);

static int emit_formatted(struct schema_emitter *emitter, const char *fmt, ...)
{
    char sql[512];
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(sql, sizeof(sql), fmt, args);
    va_end(args);
    return emit(emitter, sql);
}

/* Exactly one row. */
static int emit_version_table(struct schema_emitter *emitter, const char *schema)
{
    int err = emit_formatted(emitter,
                             "CREATE TABLE \"%s\".schema_version (version bigint NOT NULL,"
                             " is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only))",
                             schema);

    if (!err)
        err = emit_formatted(emitter, "INSERT INTO \"%s\".schema_version VALUES (0)", schema);
    return err;
}

static int send_migrations(struct hd_pg *pg, struct schema_emitter *emitter,
                           const struct schema_found *found)
{
    int err = 0;

    /* CREATE … IF NOT EXISTS would need the privilege even when it exists. */
    if (!found->has_schema)
        err = emit_formatted(emitter, "CREATE SCHEMA \"%s\"", pg->schema);
    if (!err && !found->has_version)
        err = emit_version_table(emitter, pg->schema);
    for (int version = (int)found->version + 1; !err && version <= HD_SCHEMA_VERSION; version++)
        err = hd_pg_sql_create(pg->schema, version, emit, emitter);
    if (!err)
        err = emit_formatted(emitter, "UPDATE \"%s\".schema_version SET version = %d", pg->schema,
                             HD_SCHEMA_VERSION);
    return err;
}

static int migrate(struct hd_pg *pg, struct hd_pg_conn *conn, int64_t deadline_us, void *arg,
                   struct hd_pg_failure *failure)
{
    struct schema_found *found = arg;
    struct schema_emitter emitter = {conn, failure};
    int err = begin_migration(pg, conn, deadline_us, found, failure);

    if (err)
        return err;
    if (found->version < HD_SCHEMA_VERSION)
        err = send_migrations(pg, &emitter, found);
    if (!err)
        err = hd_pg_send_plain(conn, "COMMIT", true, failure);
    if (!err)
        err = hd_pg_finish(conn, NULL, failure);
    if (!err)
        found->version = found->version > HD_SCHEMA_VERSION ? found->version : HD_SCHEMA_VERSION;
    return err;
}

int hd_pg_schema_open(struct hd_pg *pg, int enough, struct heddle_error *fault)
{
    struct schema_found found = {0};
    int err = hd_pg_run(pg, schema_look, &found, fault);

    if (!err && found.version < enough)
        err = hd_pg_run(pg, migrate, &found, fault);
    if (!err && found.version > HD_SCHEMA_VERSION)
        err =
            hd_error_set(fault, HD_EVERSION,
                         "PostgreSQL at %s: schema \"%s\" has version %lld, this program supports "
                         "versions up to %d",
                         pg->where, pg->schema, (long long)found.version, HD_SCHEMA_VERSION);
    return err;
}
