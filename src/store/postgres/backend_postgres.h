/*
 * The internals of the PostgreSQL driver; only its files include this.
 *
 *   backend_postgres.c   opening, reading, the driver's table
 *   pg_batch.c           a batch as one transaction in one round trip
 *   pg_schema.c          versions and migrations
 *   pg_nearest.c         detects the extension "vector" and prepares its tables
 *   pg_sql.c             the text of every statement
 *   pg_conn.c            one connection: connecting, pipelines, waiting
 *   pg_pool.c            all connections: sharing, replacing, retrying
 *   pg_error.c           maps the server's errors to our codes
 *
 * A connection belongs to the thread that took it from the pool. It stays in libpq's pipeline mode
 * for life and keeps no session state except prepared statements, so that PgBouncer may hand every
 * transaction to another server.
 */
#ifndef HD_STORE_POSTGRES_BACKEND_POSTGRES_H
#define HD_STORE_POSTGRES_BACKEND_POSTGRES_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <libpq-fe.h>

#include "base/arena.h"
#include "base/error.h"
#include "store/backend.h"

/* ---- pg_sql.c ---- */

/* Key 5, low, high, after 5, limit; or a row of 10; or key 5, expected, set 2. */
#define HD_PG_MAX_PARAMS 16

/* A statement. The table declarations bound its length, so it never overflows. */
struct hd_pg_sql {
    size_t len;
    char text[4096];
};

void hd_pg_sql_insert(struct hd_pg_sql *sql, const char *schema, const struct hd_table *table,
                      enum hd_op_kind kind, bool is_many);
/* Deletes by `key_count` cells; when `is_many` the last parameter is an array. */
void hd_pg_sql_delete(struct hd_pg_sql *sql, const char *schema, const struct hd_table *table,
                      unsigned key_count, bool is_many);
/* Fails with HD_PG_MISMATCH when a row does not match. `is_many`: each parameter is an array. */
void hd_pg_sql_expect(struct hd_pg_sql *sql, const char *schema, const struct hd_op *op,
                      bool is_many);
/* Locks the rows whose key is in the arrays, one for each key column, in key order. */
void hd_pg_sql_lock(struct hd_pg_sql *sql, const char *schema, const struct hd_table *table);
void hd_pg_sql_select(struct hd_pg_sql *sql, const char *schema, const struct hd_query *query);

/* As select, nearest first; after the query's own parameters come the vector and its dimensions. */
void hd_pg_sql_nearest(struct hd_pg_sql *sql, const char *schema, const char *extension,
                       const struct hd_query *query);
/* Passes each statement that leads from version - 1 to `version` to `emit`, until that fails. */
typedef int (*hd_pg_emit)(void *arg, const char *sql);
HD_MUST_CHECK int hd_pg_sql_create(const char *schema, int version, hd_pg_emit emit, void *arg);
/* The objects hd_pg_sql_nearest() needs beside the tables; `extension` is its schema. */
HD_MUST_CHECK int hd_pg_sql_create_nearest(const char *schema, const char *extension,
                                           hd_pg_emit emit, void *arg);

/* The columns that a query selects: those requested and the key. */
bool hd_pg_is_selected(const struct hd_query *query, unsigned column);

/* ---- pg_room_views.c ---- */

/* The views of rooms and their functions, which came with HD_PG_ROOM_VIEWS_SINCE. */
#define HD_PG_ROOM_VIEWS_SINCE 9
HD_MUST_CHECK int hd_pg_sql_create_room_views(const char *schema, hd_pg_emit emit, void *arg);

/* ---- pg_error.c ---- */

/* SQLSTATEs that our statements raise on purpose, or that we check for. */
#define HD_PG_MISMATCH "22012"  /* division by zero: see hd_pg_sql_expect() */
#define HD_PG_DUPLICATE "23505" /* unique violation */

#define HD_PG_NO_TAG SIZE_MAX

/* The cause of a failed attempt. */
struct hd_pg_failure {
    int err;
    bool may_retry;   /* a retry may succeed, if need be on another connection */
    bool is_lost;     /* the connection is gone */
    bool needs_plain; /* prepared statements do not work here */
    size_t tag;       /* of the statement that failed, or HD_PG_NO_TAG */
    char state[6];    /* SQLSTATE, or "" when the error is not from the server */
    char text[200];
};

/* Both return failure->err. */
int hd_pg_fail(struct hd_pg_failure *failure, int err, const char *fmt, ...) HD_PRINTF(3, 4);
int hd_pg_fail_state(struct hd_pg_failure *failure, const char *state, const char *message);
/* A connection that could not be made or was lost; finds the SQLSTATE in libpq's message. */
int hd_pg_fail_conn(struct hd_pg_failure *failure, const PGconn *conn);

/* ---- pg_conn.c ---- */

/*
 * The URL's timeout limits waiting for locks, connections and an unreachable server. A running
 * statement, such as the deletion of a long thread, may take this many times as long.
 */
enum { HD_PG_STATEMENT_TIMEOUTS = 6 };

enum { HD_PG_PREPARED_SLOTS = 512, HD_PG_PREPARED_MAX = 256, HD_PG_PENDING_MAX = 32 };

struct hd_pg_sent {
    uint64_t prepares; /* hash of the statement this message prepares, or 0 */
    size_t tag;
    bool is_commit;
};

struct hd_pg_conn {
    PGconn *pg;
    struct hd_pg_conn *next; /* in the pool's list */
    bool was_idle;           /* taken from the pool, so the server may have closed it */
    bool is_committed;       /* the COMMIT of this pipeline was confirmed */
    int64_t patience_us;     /* longest silence of the server that is tolerated */
    size_t unsent;           /* approximate bytes given to libpq since it was last empty */

    struct hd_pg_sent *sent; /* pending results of this pipeline, in order */
    size_t sent_count;
    size_t sent_cap;

    /*
     * Hashes of the statements prepared on the server (an open-addressed set), and of those that
     * this pipeline prepares.
     */
    uint64_t prepared[HD_PG_PREPARED_SLOTS];
    unsigned prepared_count;
    uint64_t pending[HD_PG_PENDING_MAX];
    unsigned pending_count;
};

/* Binary, borrowed until the statement is sent. */
struct hd_pg_params {
    int count;
    const char *values[HD_PG_MAX_PARAMS];
    int lengths[HD_PG_MAX_PARAMS];
};

HD_MUST_CHECK int hd_pg_conn_open(struct hd_pg_conn **out, const char *conninfo, int timeout_ms,
                                  int64_t deadline_us, struct hd_pg_failure *failure);
void hd_pg_conn_close(struct hd_pg_conn *conn);
/* True when the server has closed the idle connection. */
bool hd_pg_conn_is_dead(struct hd_pg_conn *conn);

/* Appends a statement to the pipeline. `is_named`: prepare it once, then use it by name. */
HD_MUST_CHECK int hd_pg_send(struct hd_pg_conn *conn, const char *sql, bool is_named,
                             const struct hd_pg_params *params, size_t tag,
                             struct hd_pg_failure *failure);
/* As hd_pg_send() without parameters; is_commit sets conn->is_committed. */
HD_MUST_CHECK int hd_pg_send_plain(struct hd_pg_conn *conn, const char *sql, bool is_commit,
                                   struct hd_pg_failure *failure);

/*
 * Ends the pipeline and waits for all results. Results of statements with a tag are kept in
 * results[tag] when `results` is not NULL; the caller clears them, also on failure. On failure the
 * transaction, if any, is rolled back.
 */
HD_MUST_CHECK int hd_pg_finish(struct hd_pg_conn *conn, PGresult **results,
                               struct hd_pg_failure *failure);

/* ---- pg_pool.c ---- */

enum hd_pg_nearest { HD_PG_NEAREST_UNKNOWN, HD_PG_NEAREST_READY, HD_PG_NEAREST_NONE };

enum { HD_PG_MAX_DIMS = 16000 }; /* limit of the extension's type */
enum { HD_PG_NAME = 64 };        /* bytes of a name in PostgreSQL, with its NUL */

struct hd_pg {
    struct hd_backend base; /* must be first */
    char *conninfo;
    char *schema;
    char *where; /* host, port and database, for messages; never the password */
    int timeout_ms;
    bool is_relaxed;
    unsigned pool;

    /* Set permanently when a pooler between us and the server breaks prepared statements. */
    atomic_bool is_plain;

    /* enum hd_pg_nearest; once determined, also the schema of the extension. */
    atomic_int nearest;
    char extension[HD_PG_NAME];

    /* Protected by `lock`: idle, open. */
    pthread_mutex_t lock;
    pthread_cond_t freed;
    struct hd_pg_conn *idle;
    unsigned open;
};

HD_MUST_CHECK int hd_pg_pool_init(struct hd_pg *pg);
/* Closes the connections; none may be in use. */
void hd_pg_pool_fini(struct hd_pg *pg);

/* One attempt, on a healthy connection. Called again after a failure that may be retried. */
typedef int (*hd_pg_work)(struct hd_pg *pg, struct hd_pg_conn *conn, int64_t deadline_us, void *arg,
                          struct hd_pg_failure *failure);

/* Attempts `work` until it succeeds, fails permanently, or the URL's timeout has passed. */
HD_MUST_CHECK int hd_pg_run(struct hd_pg *pg, hd_pg_work work, void *arg,
                            struct heddle_error *fault);

/* ---- pg_batch.c, pg_schema.c ---- */

int hd_pg_apply(struct hd_backend *backend, const struct hd_batch *batch, size_t *failed,
                struct heddle_error *fault);

/*
 * Creates or migrates the schema when it is older than version `enough`; otherwise writes nothing.
 */
HD_MUST_CHECK int hd_pg_schema_open(struct hd_pg *pg, int enough, struct heddle_error *fault);

/* True when nearest vectors are supported; detects and prepares it the first time. */
HD_MUST_CHECK bool hd_pg_nearest_is_ready(struct hd_pg *pg);
/* Marks it as not working. Always 1. */
int hd_pg_nearest_forget(struct hd_pg *pg, const char *why);
/* Prepares the part that takes too long while a search waits. */
void hd_pg_nearest_compact(struct hd_pg *pg);

/* BEGIN, and for this transaction the limits on waiting and the durability. */
HD_MUST_CHECK int hd_pg_send_begin(struct hd_pg *pg, struct hd_pg_conn *conn, int64_t deadline_us,
                                   struct hd_pg_failure *failure);

static inline struct hd_pg *hd_pg_from(struct hd_backend *backend)
{
    return (struct hd_pg *)backend;
}

#endif
