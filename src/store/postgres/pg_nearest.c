/*
 * Nearest vectors by the extension "vector", if the database has it or permits creating it. It
 * needs a generated column that holds the vectors of each row in the extension's type: programs
 * that do not use it write rows as before.
 *
 * Detection happens at the first search, so that only searches pay for it. A failure, such as a
 * missing privilege, is not an error: the caller then compares.
 */
#include "store/postgres/backend_postgres.h"

#include <stdio.h>

#include "base/log.h"

/* Larger tables are not rewritten during a search, but when the store is compacted. */
static const int64_t MAX_REWRITTEN = 16 << 20;

struct nearest_found {
    char extension[HD_PG_NAME]; /* its schema, or "" */
    bool is_available;          /* it could be created */
    bool has_column;
    int64_t bytes; /* of the table */
};

/* ---- detection ---- */

static int take_found(const PGresult *res, struct nearest_found *found,
                      struct hd_pg_failure *failure)
{
    const char *extension;

    if (!res || PQntuples(res) != 1 || PQgetlength(res, 0, 3) != 8)
        return hd_pg_fail(failure, HD_ECORRUPT, "the table of vectors does not exist");
    extension = PQgetvalue(res, 0, 0);
    memset(found, 0, sizeof(*found));
    /* Names are quoted, not escaped. */
    if (!strchr(extension, '"'))
        (void)snprintf(found->extension, sizeof(found->extension), "%s", extension);
    found->is_available = PQgetvalue(res, 0, 1)[0];
    found->has_column = PQgetvalue(res, 0, 2)[0];
    for (int i = 0; i < 8; i++)
        found->bytes = found->bytes << 8 | (unsigned char)PQgetvalue(res, 0, 3)[i];
    return 0;
}

static int nearest_look(struct hd_pg *pg, struct hd_pg_conn *conn, int64_t deadline_us, void *arg,
                        struct hd_pg_failure *failure)
{
    struct hd_pg_params params = {
        .count = 1, .values = {pg->schema}, .lengths = {(int)strlen(pg->schema)}};
    PGresult *res = NULL;
    int err = hd_pg_send(
        conn,
        "SELECT (SELECT n.nspname::text FROM pg_catalog.pg_extension e"
        " JOIN pg_catalog.pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'vector'),"
        " EXISTS (SELECT FROM pg_catalog.pg_available_extensions WHERE name = 'vector'),"
        " EXISTS (SELECT FROM pg_catalog.pg_attribute a WHERE a.attrelid = c.oid"
        " AND a.attname = 'meaning' AND NOT a.attisdropped),"
        " pg_catalog.pg_total_relation_size(c.oid)"
        " FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace"
        " WHERE n.nspname = $1::text AND c.relname = 'vectors'",
        false, &params, 0, failure);

    (void)deadline_us;
    if (!err)
        err = hd_pg_finish(conn, &res, failure);
    if (!err)
        err = take_found(res, arg, failure);
    PQclear(res);
    return err;
}

static bool is_ready(const struct nearest_found *found)
{
    return found->extension[0] && found->has_column;
}

static bool is_possible(const struct nearest_found *found)
{
    return !found->has_column && (found->extension[0] || found->is_available);
}

/* ---- preparation ---- */

struct preparing {
    struct nearest_found *found;
    bool is_patient;
};

struct nearest_emitter {
    struct hd_pg_conn *conn;
    struct hd_pg_failure *failure;
};

static int emit(void *arg, const char *sql)
{
    struct nearest_emitter *emitter = arg;

    return hd_pg_send_plain(emitter->conn, sql, false, emitter->failure);
}

/* A second process finds the work done: the lock is per database, as the extension is. */
static int nearest_begin(struct hd_pg *pg, struct hd_pg_conn *conn, int64_t deadline_us,
                         struct preparing *preparing, struct hd_pg_failure *failure)
{
    static const struct hd_pg_params none;
    int err = hd_pg_send_begin(pg, conn, deadline_us, failure);

    if (!err && preparing->is_patient)
        err = hd_pg_send_plain(conn, "SET LOCAL statement_timeout = 0", false, failure);
    if (!err)
        err = hd_pg_send(conn, "SELECT pg_catalog.pg_advisory_xact_lock(7521962890172982635)",
                         false, &none, HD_PG_NO_TAG, failure);
    if (!err)
        err = hd_pg_send_plain(conn, "CREATE EXTENSION IF NOT EXISTS vector", false, failure);
    return err ? err : nearest_look(pg, conn, deadline_us, preparing->found, failure);
}

static int nearest_prepare(struct hd_pg *pg, struct hd_pg_conn *conn, int64_t deadline_us,
                           void *arg, struct hd_pg_failure *failure)
{
    static const int64_t one_hour_us = 3600000000;
    struct preparing *preparing = arg;
    struct nearest_emitter emitter = {conn, failure};
    int64_t patience_us = conn->patience_us;
    int err = nearest_begin(pg, conn, deadline_us, preparing, failure);

    if (!err && is_possible(preparing->found))
        err = hd_pg_sql_create_nearest(pg->schema, preparing->found->extension, emit, &emitter);
    if (!err)
        err = hd_pg_send_plain(conn, "COMMIT", true, failure);
    if (err)
        return err;
    if (preparing->is_patient)
        conn->patience_us = one_hour_us;
    err = hd_pg_finish(conn, NULL, failure);
    conn->patience_us = patience_us;
    if (!err)
        preparing->found->has_column = true;
    return err;
}

/* ---- state ---- */

static void nearest_settle(struct hd_pg *pg, const struct nearest_found *found)
{
    (void)pthread_mutex_lock(&pg->lock);
    if (atomic_load(&pg->nearest) == HD_PG_NEAREST_UNKNOWN) {
        memcpy(pg->extension, found->extension, sizeof(pg->extension));
        atomic_store(&pg->nearest, is_ready(found) ? HD_PG_NEAREST_READY : HD_PG_NEAREST_NONE);
    }
    (void)pthread_mutex_unlock(&pg->lock);
}

bool hd_pg_nearest_is_ready(struct hd_pg *pg)
{
    struct nearest_found found = {.bytes = 0};
    struct preparing preparing = {.found = &found};
    struct heddle_error fault = {0};
    int err;

    if (atomic_load(&pg->nearest) != HD_PG_NEAREST_UNKNOWN)
        return atomic_load(&pg->nearest) == HD_PG_NEAREST_READY;
    err = hd_pg_run(pg, nearest_look, &found, &fault);
    if (!err && is_possible(&found) && found.bytes <= MAX_REWRITTEN)
        err = hd_pg_run(pg, nearest_prepare, &preparing, &fault);
    if (err == HD_ENOMEM || err == HD_EUNAVAILABLE || err == HD_EBUSY)
        return false; /* the next search tries again */
    if (err) {
        hd_log(HD_LOG_INFO, "postgres", "vectors are compared without the extension: %s",
               fault.text);
        memset(&found, 0, sizeof(found));
    }
    nearest_settle(pg, &found);
    return atomic_load(&pg->nearest) == HD_PG_NEAREST_READY;
}

int hd_pg_nearest_forget(struct hd_pg *pg, const char *why)
{
    hd_log(HD_LOG_INFO, "postgres", "vectors are compared without the extension: %s", why);
    atomic_store(&pg->nearest, HD_PG_NEAREST_NONE);
    return 1;
}

void hd_pg_nearest_compact(struct hd_pg *pg)
{
    struct nearest_found found = {.bytes = 0};
    struct preparing preparing = {.found = &found, .is_patient = true};
    struct heddle_error fault = {0};
    int err = hd_pg_run(pg, nearest_look, &found, &fault);

    if (!err && is_possible(&found) && found.bytes > MAX_REWRITTEN)
        err = hd_pg_run(pg, nearest_prepare, &preparing, &fault);
    if (err)
        hd_log(HD_LOG_INFO, "postgres", "vectors are compared without the extension: %s",
               fault.text);
}
