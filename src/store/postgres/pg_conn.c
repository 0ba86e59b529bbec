/*
 * One connection: connecting, sending a pipeline of statements, waiting for the results. Every wait
 * has a limit, and the thread that uses a lost connection always notices.
 *
 * The socket is non-blocking: in a pipeline both sides may be writing, so we read while we write.
 * Statements are prepared inside the pipeline that first needs them, under a name made from their
 * text; a statement counts as prepared only when the server has confirmed it, because after an
 * error it skips the rest.
 */
#include "store/postgres/backend_postgres.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/vec.h"

/* libpq's buffer is flushed at this size; otherwise it would double again and again. */
#define UNSENT_MAX ((size_t)1 << 20)

/* Additional time for the server to report that its own statement limit has passed. */
enum { GRACE_MS = 2000 };

/* ---- waiting ---- */

/* Waits until the socket is ready; 0 when the deadline passes, -1 when polling fails. */
static int wait_socket(const PGconn *pg, short events, int64_t deadline_us)
{
    struct pollfd fd = {.fd = PQsocket(pg), .events = events};
    int ready;

    if (fd.fd < 0)
        return -1;
    do {
        int64_t left_us = deadline_us - hd_clock_monotonic_us();

        if (left_us < 0)
            left_us = 0;
        if (left_us > 3600000000)
            left_us = 3600000000;
        ready = poll(&fd, 1, (int)((left_us + 999) / 1000));
    } while (ready < 0 && errno == EINTR);
    return ready < 0 ? -1 : ready > 0 ? fd.revents : 0;
}

/* One round of reading, and of writing when `want_write`. */
static int exchange(struct hd_pg_conn *conn, bool want_write, struct hd_pg_failure *failure)
{
    int64_t deadline_us = hd_clock_monotonic_us() + conn->patience_us;
    int ready = wait_socket(conn->pg, (short)(want_write ? POLLIN | POLLOUT : POLLIN), deadline_us);

    if (ready == 0) {
        (void)hd_pg_fail(failure, HD_EUNAVAILABLE, "the server has not responded for %lld s",
                         (long long)(conn->patience_us / 1000000));
        failure->is_lost = true;
        failure->may_retry = true;
        return failure->err;
    }
    if (ready < 0 || (ready & ~POLLOUT && !PQconsumeInput(conn->pg)))
        return hd_pg_fail_conn(failure, conn->pg);
    return 0;
}

/* Writes all data that libpq has buffered. */
static int drain(struct hd_pg_conn *conn, struct hd_pg_failure *failure)
{
    for (;;) {
        int left = PQflush(conn->pg);
        int err;

        if (left < 0)
            return hd_pg_fail_conn(failure, conn->pg);
        if (left == 0) {
            conn->unsent = 0;
            return 0;
        }
        err = exchange(conn, true, failure);
        if (err)
            return err;
    }
}

/* ---- connecting ---- */

static int wait_connected(PGconn *pg, int64_t deadline_us, struct hd_pg_failure *failure)
{
    PostgresPollingStatusType state = PGRES_POLLING_WRITING;

    if (PQstatus(pg) == CONNECTION_BAD)
        return hd_pg_fail_conn(failure, pg);
    while (state != PGRES_POLLING_OK) {
        int ready = wait_socket(pg, state == PGRES_POLLING_READING ? POLLIN : POLLOUT, deadline_us);

        if (ready == 0) {
            (void)hd_pg_fail(failure, HD_EUNAVAILABLE, "the server has not responded in time");
            failure->may_retry = true;
            failure->is_lost = true;
            return failure->err;
        }
        state = PQconnectPoll(pg);
        if (ready < 0 || state == PGRES_POLLING_FAILED)
            return hd_pg_fail_conn(failure, pg);
    }
    return 0;
}

static void ignore_notice(void *arg, const PGresult *res)
{
    (void)arg;
    (void)res;
}

/*
 * Settings before the URL are defaults that the URL may override. Dead peers are detected by
 * keepalives and by unacknowledged data. The lookup of the host's name is the one step that libpq
 * cannot limit.
 */
static PGconn *start_connecting(const char *conninfo, int timeout_ms)
{
    char user_timeout[16];
    const char *names[] = {
        "fallback_application_name", "keepalives_idle", "keepalives_interval", "keepalives_count",
        "tcp_user_timeout",          "dbname",          "client_encoding",     NULL};
    const char *values[] = {"heddle", "5", "2", "3", user_timeout, conninfo, "UTF8", NULL};

    (void)snprintf(user_timeout, sizeof(user_timeout), "%d", timeout_ms);
    return PQconnectStartParams(names, values, 1);
}

void hd_pg_conn_close(struct hd_pg_conn *conn)
{
    if (!conn)
        return;
    PQfinish(conn->pg);
    hd_free(conn->sent);
    hd_free(conn);
}

/*
 * An idle server sends nothing, so readable data is a changed parameter or a notice of closing;
 * after that notice the end of the stream is readable too.
 */
bool hd_pg_conn_is_dead(struct hd_pg_conn *conn)
{
    for (int i = 0; i < 3; i++) {
        int ready = wait_socket(conn->pg, POLLIN, 0);

        if (ready == 0)
            break;
        if (ready < 0 || !PQconsumeInput(conn->pg))
            return true;
        (void)PQisBusy(conn->pg); /* processes the message */
    }
    return PQstatus(conn->pg) != CONNECTION_OK;
}

/* ---- prepared statements ---- */

static bool is_prepared(const struct hd_pg_conn *conn, uint64_t hash)
{
    size_t slot = hash % HD_PG_PREPARED_SLOTS;

    for (; conn->prepared[slot]; slot = (slot + 1) % HD_PG_PREPARED_SLOTS) {
        if (conn->prepared[slot] == hash)
            return true;
    }
    return false;
}

static bool is_pending(const struct hd_pg_conn *conn, uint64_t hash)
{
    for (unsigned i = 0; i < conn->pending_count; i++) {
        if (conn->pending[i] == hash)
            return true;
    }
    return false;
}

static void remember_prepared(struct hd_pg_conn *conn, uint64_t hash)
{
    size_t slot = hash % HD_PG_PREPARED_SLOTS;

    while (conn->prepared[slot])
        slot = (slot + 1) % HD_PG_PREPARED_SLOTS;
    conn->prepared[slot] = hash;
    conn->prepared_count++;
}

static bool has_room_to_prepare(const struct hd_pg_conn *conn)
{
    return conn->pending_count < HD_PG_PENDING_MAX &&
           conn->prepared_count + conn->pending_count < HD_PG_PREPARED_MAX;
}

/* ---- sending ---- */

static int expect_answer(struct hd_pg_conn *conn, struct hd_pg_sent sent,
                         struct hd_pg_failure *failure)
{
    if (hd_array_grow(conn->sent, conn->sent_count, conn->sent_cap) != 0) {
        (void)hd_pg_fail(failure, HD_ENOMEM, "out of memory");
        failure->is_lost = true; /* the pipeline is incomplete */
        return failure->err;
    }
    conn->sent[conn->sent_count++] = sent;
    return 0;
}

/* For a send function of libpq: it fails for lack of memory, or because the connection is lost. */
static int check_sent(struct hd_pg_conn *conn, int is_sent, struct hd_pg_failure *failure)
{
    if (is_sent)
        return 0;
    if (PQstatus(conn->pg) == CONNECTION_OK)
        (void)hd_pg_fail(failure, HD_ENOMEM, "out of memory while sending a statement");
    else
        (void)hd_pg_fail_conn(failure, conn->pg);
    failure->is_lost = true;
    return failure->err;
}

static int conn_prepare(struct hd_pg_conn *conn, const char *name, const char *sql, uint64_t hash,
                        struct hd_pg_failure *failure)
{
    struct hd_pg_sent sent = {.prepares = hash, .tag = HD_PG_NO_TAG};
    int err = expect_answer(conn, sent, failure);

    if (err)
        return err;
    conn->pending[conn->pending_count++] = hash;
    return check_sent(conn, PQsendPrepare(conn->pg, name, sql, 0, NULL), failure);
}

/* Sends by name, and prepares first if needed. */
static int send_named(struct hd_pg_conn *conn, const char *sql, uint64_t hash,
                      const struct hd_pg_params *params, const int *formats, size_t tag,
                      struct hd_pg_failure *failure)
{
    char name[24];
    int err = 0;

    (void)snprintf(name, sizeof(name), "hd_%016llx", (unsigned long long)hash);
    if (!is_prepared(conn, hash) && !is_pending(conn, hash))
        err = conn_prepare(conn, name, sql, hash, failure);
    if (!err)
        err = expect_answer(conn, (struct hd_pg_sent){.tag = tag}, failure);
    if (err)
        return err;
    return check_sent(conn,
                      PQsendQueryPrepared(conn->pg, name, params->count, params->values,
                                          params->lengths, formats, 1),
                      failure);
}

static int send_unnamed(struct hd_pg_conn *conn, const char *sql, const struct hd_pg_params *params,
                        const int *formats, struct hd_pg_sent sent, struct hd_pg_failure *failure)
{
    int err = expect_answer(conn, sent, failure);

    if (err)
        return err;
    return check_sent(conn,
                      PQsendQueryParams(conn->pg, sql, params->count, NULL, params->values,
                                        params->lengths, formats, 1),
                      failure);
}

static uint64_t hash_of(const char *sql)
{
    uint64_t hash = XXH3_64bits(sql, strlen(sql));

    return hash ? hash : 1;
}

int hd_pg_send(struct hd_pg_conn *conn, const char *sql, bool is_named,
               const struct hd_pg_params *params, size_t tag, struct hd_pg_failure *failure)
{
    int formats[HD_PG_MAX_PARAMS];
    uint64_t hash = is_named ? hash_of(sql) : 0;
    int err;

    for (int i = 0; i < params->count; i++) {
        formats[i] = 1;
        conn->unsent += (size_t)params->lengths[i];
    }
    if (is_named &&
        (is_prepared(conn, hash) || is_pending(conn, hash) || has_room_to_prepare(conn)))
        err = send_named(conn, sql, hash, params, formats, tag, failure);
    else
        err = send_unnamed(conn, sql, params, formats, (struct hd_pg_sent){.tag = tag}, failure);
    if (!err && conn->unsent > UNSENT_MAX)
        err = drain(conn, failure);
    return err;
}

int hd_pg_send_plain(struct hd_pg_conn *conn, const char *sql, bool is_commit,
                     struct hd_pg_failure *failure)
{
    static const struct hd_pg_params none;
    struct hd_pg_sent sent = {.tag = HD_PG_NO_TAG, .is_commit = is_commit};

    return send_unnamed(conn, sql, &none, NULL, sent, failure);
}

/* ---- receiving ---- */

/* The next result, NULL between two statements. */
static int next_result(struct hd_pg_conn *conn, PGresult **out, struct hd_pg_failure *failure)
{
    while (PQisBusy(conn->pg)) {
        int left = PQflush(conn->pg);
        int err = left < 0 ? hd_pg_fail_conn(failure, conn->pg) : exchange(conn, left > 0, failure);

        if (err)
            return err;
    }
    *out = PQgetResult(conn->pg);
    if (!*out && PQstatus(conn->pg) != CONNECTION_OK)
        return hd_pg_fail_conn(failure, conn->pg);
    return 0;
}

static int fail_result(struct hd_pg_conn *conn, const PGresult *res, size_t tag,
                       struct hd_pg_failure *failure)
{
    const char *state = PQresultErrorField(res, PG_DIAG_SQLSTATE);
    const char *severity = PQresultErrorField(res, PG_DIAG_SEVERITY_NONLOCALIZED);

    if (!state)
        return hd_pg_fail_conn(failure, conn->pg);
    (void)hd_pg_fail_state(failure, state, PQresultErrorField(res, PG_DIAG_MESSAGE_PRIMARY));
    failure->tag = tag;
    if (severity && strcmp(severity, "ERROR") != 0)
        failure->is_lost = true; /* FATAL or PANIC: the server closes */
    return failure->err;
}

/* Processes one result. After the first failure the others only report that they were skipped. */
static int take_result(struct hd_pg_conn *conn, const struct hd_pg_sent *sent, PGresult *res,
                       PGresult **results, struct hd_pg_failure *failure)
{
    int err = 0;

    switch (PQresultStatus(res)) {
    case PGRES_TUPLES_OK:
        if (results && sent->tag != HD_PG_NO_TAG) {
            results[sent->tag] = res;
            return 0;
        }
        break;
    case PGRES_COMMAND_OK:
        if (sent->prepares)
            remember_prepared(conn, sent->prepares);
        if (sent->is_commit)
            conn->is_committed = strcmp(PQcmdStatus(res), "COMMIT") == 0;
        break;
    case PGRES_PIPELINE_ABORTED:
        break;
    default:
        err = fail_result(conn, res, sent->tag, failure);
    }
    PQclear(res);
    return err;
}

/* Reads up to the end of the pipeline. The first failure is kept; a lost connection ends early. */
static int receive(struct hd_pg_conn *conn, PGresult **results, struct hd_pg_failure *failure)
{
    static const struct hd_pg_sent nothing = {.tag = HD_PG_NO_TAG};
    struct hd_pg_failure later;
    int err = 0;

    for (size_t at = 0; at <= conn->sent_count;) {
        const struct hd_pg_sent *sent = at < conn->sent_count ? &conn->sent[at] : &nothing;
        PGresult *res = NULL;
        int problem = next_result(conn, &res, err ? &later : failure);

        if (problem)
            return err ? err : problem;
        if (!res) {
            at++;
        } else if (PQresultStatus(res) == PGRES_PIPELINE_SYNC) {
            PQclear(res);
            return err;
        } else {
            problem = take_result(conn, sent, res, results, err ? &later : failure);
            err = err ? err : problem;
        }
    }
    /*
     * All results arrived, but not the end of the pipeline: a server that shuts down stops there.
     * Its last error is the cause; without one it is a lost connection.
     */
    if (!err) {
        err = hd_pg_fail(failure, HD_EUNAVAILABLE, "the server's response is incomplete");
        failure->may_retry = true;
    }
    failure->is_lost = true;
    return err;
}

static int sync_and_receive(struct hd_pg_conn *conn, PGresult **results,
                            struct hd_pg_failure *failure)
{
    int err;

    conn->is_committed = false;
    err = check_sent(conn, PQpipelineSync(conn->pg), failure);
    if (!err)
        err = receive(conn, results, failure);
    if (err && PQstatus(conn->pg) != CONNECTION_OK)
        failure->is_lost = true;
    conn->sent_count = 0;
    conn->pending_count = 0;
    conn->unsent = 0;
    return err;
}

int hd_pg_finish(struct hd_pg_conn *conn, PGresult **results, struct hd_pg_failure *failure)
{
    int err = sync_and_receive(conn, results, failure);

    if (err && !failure->is_lost && PQtransactionStatus(conn->pg) != PQTRANS_IDLE) {
        struct hd_pg_failure ignored;

        if (hd_pg_send_plain(conn, "ROLLBACK", false, &ignored) ||
            sync_and_receive(conn, NULL, &ignored))
            failure->is_lost = true;
    }
    return err;
}

/* ---- opening ---- */

/*
 * A plan made while a table is small scans it whole, and would be kept while the table grows, until
 * the server next analyses it: so never scan a whole table. That is a setting of the session, which
 * may only be changed when the session is ours. Behind a pooler it is not: there the process id
 * from connecting differs from that of the server process.
 */
static int conn_settle(struct hd_pg_conn *conn, struct hd_pg_failure *failure)
{
    struct hd_pg_params params = {.count = 1};
    char pid[16];
    int err;

    if (PQsetnonblocking(conn->pg, 1) != 0 || !PQenterPipelineMode(conn->pg))
        return hd_pg_fail_conn(failure, conn->pg);
    params.lengths[0] = snprintf(pid, sizeof(pid), "%d", PQbackendPID(conn->pg));
    params.values[0] = pid;
    err = hd_pg_send(conn,
                     "SELECT CASE pg_catalog.pg_backend_pid()::text WHEN $1::text"
                     " THEN pg_catalog.set_config('enable_seqscan', 'off', false) ||"
                     " pg_catalog.set_config('jit', 'off', false) END",
                     false, &params, HD_PG_NO_TAG, failure);
    return err ? err : hd_pg_finish(conn, NULL, failure);
}

int hd_pg_conn_open(struct hd_pg_conn **out, const char *conninfo, int timeout_ms,
                    int64_t deadline_us, struct hd_pg_failure *failure)
{
    struct hd_pg_conn *conn = hd_calloc(1, sizeof(*conn));
    int err;

    if (!conn)
        return hd_pg_fail(failure, HD_ENOMEM, "out of memory");
    conn->patience_us = 1000 * (HD_PG_STATEMENT_TIMEOUTS * (int64_t)timeout_ms + GRACE_MS);
    conn->pg = start_connecting(conninfo, timeout_ms);
    if (!conn->pg) {
        err = hd_pg_fail(failure, HD_ENOMEM, "out of memory");
        goto close_conn;
    }
    (void)PQsetErrorVerbosity(conn->pg, PQERRORS_VERBOSE);
    (void)PQsetNoticeReceiver(conn->pg, ignore_notice, NULL);
    err = wait_connected(conn->pg, deadline_us, failure);
    if (err)
        goto close_conn;
    err = conn_settle(conn, failure);
    if (err)
        goto close_conn;
    *out = conn;
    return 0;

close_conn:
    hd_pg_conn_close(conn);
    return err;
}
