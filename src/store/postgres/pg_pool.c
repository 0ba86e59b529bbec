/*
 * All connections of a store, and the one place that retries.
 *
 * At most `pool` connections exist. A thread that finds none idle opens one or waits for a free
 * one, for the URL's timeout at most. A lost connection is closed, never repaired.
 *
 * Retrying a batch whose COMMIT was in progress when the connection was lost is correct although
 * its outcome is unknown: the layer above makes batches that may be applied twice. If the first
 * attempt did commit, an HD_OP_ADD or HD_OP_EXPECT in it is now a conflict, and the layer above
 * plans again from the current rows.
 */
#include "store/postgres/backend_postgres.h"

#include <errno.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"

enum { BACKOFF_MIN_US = 5000, BACKOFF_MAX_US = 250000 };

int hd_pg_pool_init(struct hd_pg *pg)
{
    pthread_condattr_t attr;
    int failed;

    if (pthread_condattr_init(&attr) != 0)
        return HD_ENOMEM;
    failed =
        pthread_condattr_setclock(&attr, CLOCK_MONOTONIC) || pthread_cond_init(&pg->freed, &attr);
    (void)pthread_condattr_destroy(&attr);
    if (failed)
        return HD_ENOMEM;
    if (pthread_mutex_init(&pg->lock, NULL) != 0) {
        (void)pthread_cond_destroy(&pg->freed);
        return HD_ENOMEM;
    }
    return 0;
}

static void close_list(struct hd_pg_conn *list)
{
    while (list) {
        struct hd_pg_conn *next = list->next;

        hd_pg_conn_close(list);
        list = next;
    }
}

/* Closes the idle connections: after a restart of the server they are all dead. */
static void drop_idle(struct hd_pg *pg)
{
    struct hd_pg_conn *list;

    pthread_mutex_lock(&pg->lock);
    list = pg->idle;
    pg->idle = NULL;
    for (struct hd_pg_conn *conn = list; conn; conn = conn->next)
        pg->open--;
    pthread_cond_broadcast(&pg->freed);
    pthread_mutex_unlock(&pg->lock);
    close_list(list);
}

void hd_pg_pool_fini(struct hd_pg *pg)
{
    drop_idle(pg);
    (void)pthread_cond_destroy(&pg->freed);
    (void)pthread_mutex_destroy(&pg->lock);
}

/* A place in the pool: an idle connection, or NULL and the right to open one. */
static int take_place(struct hd_pg *pg, int64_t deadline_us, struct hd_pg_conn **out)
{
    struct timespec until = {.tv_sec = (time_t)(deadline_us / 1000000),
                             .tv_nsec = (long)(deadline_us % 1000000) * 1000};
    int err = 0;

    pthread_mutex_lock(&pg->lock);
    while (!pg->idle && pg->open >= pg->pool && !err) {
        if (pthread_cond_timedwait(&pg->freed, &pg->lock, &until) == ETIMEDOUT)
            err = !pg->idle && pg->open >= pg->pool ? HD_EBUSY : 0;
    }
    *out = NULL;
    if (!err && pg->idle) {
        *out = pg->idle;
        pg->idle = pg->idle->next;
    } else if (!err) {
        pg->open++;
    }
    pthread_mutex_unlock(&pg->lock);
    return err;
}

static void leave_place(struct hd_pg *pg)
{
    pthread_mutex_lock(&pg->lock);
    pg->open--;
    pthread_cond_signal(&pg->freed);
    pthread_mutex_unlock(&pg->lock);
}

static int pool_take(struct hd_pg *pg, int64_t deadline_us, struct hd_pg_conn **out,
                     struct hd_pg_failure *failure)
{
    struct hd_pg_conn *conn;
    int err = take_place(pg, deadline_us, &conn);

    if (err) {
        (void)hd_pg_fail(failure, err, "all %u connections have been busy for %d s (raise pool=)",
                         pg->pool, pg->timeout_ms / 1000);
        return err;
    }
    if (conn && hd_pg_conn_is_dead(conn)) {
        hd_pg_conn_close(conn);
        conn = NULL;
    }
    if (conn) {
        conn->was_idle = true;
    } else {
        err = hd_pg_conn_open(&conn, pg->conninfo, pg->timeout_ms, deadline_us, failure);
        if (err) {
            leave_place(pg);
            return err;
        }
    }
    *out = conn;
    return 0;
}

static void pool_give(struct hd_pg *pg, struct hd_pg_conn *conn, bool is_lost)
{
    if (is_lost || PQstatus(conn->pg) != CONNECTION_OK ||
        PQtransactionStatus(conn->pg) != PQTRANS_IDLE) {
        hd_pg_conn_close(conn);
        leave_place(pg);
        return;
    }
    pthread_mutex_lock(&pg->lock);
    conn->next = pg->idle;
    pg->idle = conn;
    pthread_cond_signal(&pg->freed);
    pthread_mutex_unlock(&pg->lock);
}

/* One attempt. *was_idle: it failed on a connection that may have been lost before its use. */
static int attempt(struct hd_pg *pg, hd_pg_work work, void *arg, int64_t deadline_us,
                   bool *was_idle, struct hd_pg_failure *failure)
{
    struct hd_pg_conn *conn = NULL;
    int err = pool_take(pg, deadline_us, &conn, failure);

    *was_idle = false;
    if (err)
        return err;
    err = work(pg, conn, deadline_us, arg, failure);
    *was_idle = err && conn->was_idle;
    pool_give(pg, conn, err && failure->is_lost);
    return err;
}

/* Poolers between us and the server may break prepared statements; then none are used any more. */
static void use_plain(struct hd_pg *pg)
{
    if (!atomic_exchange(&pg->is_plain, true))
        hd_log(
            HD_LOG_INFO, "postgres",
            "%s: prepared statements are lost here (a connection pooler?), continuing without them",
            pg->where);
}

/* Sleeps before the next attempt; false when it would begin too late. */
static bool back_off(unsigned tries, int64_t deadline_us)
{
    int64_t now = hd_clock_monotonic_us();
    int64_t pause = (int64_t)BACKOFF_MIN_US << (tries < 6 ? tries : 6);

    if (pause > BACKOFF_MAX_US)
        pause = BACKOFF_MAX_US;
    /* Spreads the attempts: the clock's last digits are random enough. */
    pause = pause / 2 + now % (pause / 2);
    if (now + pause >= deadline_us)
        return false;
    hd_clock_sleep_us(pause);
    return true;
}

/* Prepares the next attempt; false when there is none. */
static bool recover(struct hd_pg *pg, const struct hd_pg_failure *failure, bool was_idle,
                    unsigned tries, int64_t deadline_us)
{
    if (!failure->may_retry)
        return false;
    if (failure->needs_plain) {
        bool is_news = !atomic_load(&pg->is_plain);

        use_plain(pg);
        if (is_news)
            return hd_clock_monotonic_us() < deadline_us;
    }
    if (failure->is_lost && was_idle) {
        drop_idle(pg);
        return hd_clock_monotonic_us() < deadline_us;
    }
    return back_off(tries, deadline_us);
}

/* Messages of libpq and of the server name hosts, databases and roles. */
static int report_pg_failure(const struct hd_pg *pg, int err, const struct hd_pg_failure *answer,
                             struct heddle_error *fault)
{
    if (!hd_errors_are_hidden())
        return hd_error_set(fault, err, "PostgreSQL at %s: %s", pg->where, answer->text);
    if (err != HD_ECONFLICT) /* two writers at the same time: their callers retry */
        hd_log(HD_LOG_WARN, "postgres", "%s: %s", pg->where, answer->text);
    return hd_error_set(fault, err, "%s", hd_error_text(err));
}

int hd_pg_run(struct hd_pg *pg, hd_pg_work work, void *arg, struct heddle_error *fault)
{
    int64_t deadline_us = hd_clock_monotonic_us() + 1000 * (int64_t)pg->timeout_ms;
    struct hd_pg_failure failure = {0}, answer = {0};

    for (unsigned tries = 0;; tries++) {
        bool was_idle;
        int err = attempt(pg, work, arg, deadline_us, &was_idle, &failure);

        if (!err)
            return 0;
        /* The server's error is more useful than the timeout of the last attempt. */
        if (failure.state[0] || !answer.state[0])
            answer = failure;
        if (!recover(pg, &failure, was_idle, tries, deadline_us))
            return report_pg_failure(pg, err, &answer, fault);
        if (tries == 0 && failure.is_lost)
            hd_log(HD_LOG_INFO, "postgres", "%s: %s; retrying", pg->where, failure.text);
    }
}
