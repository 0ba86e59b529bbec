#include "server/store_lease.h"

#include <errno.h>
#include <heddle.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/uuid.h"
#include "store/batch.h"
#include "store/rows.h"

#define SECOND INT64_C(1000000)
#define BEAT_US (2 * SECOND)
#define RETRY_US (SECOND / 2)  /* after a failed beat */
#define LEASE_US (10 * SECOND) /* a server whose counter is unchanged for this time is dead */
#define FRESH_US (8 * SECOND)  /* refuse writes if the lease was not renewed for this time */
#define LOOK_US (SECOND / 5)   /* between two reads of another server's row */
#define OUTAGE_US (3 * SECOND) /* a slower read does not count as an observation */
#define TURN_MS 1000           /* maximum time between two turns of the loop */
#define PAUSE_US (3 * SECOND)  /* a loop without a turn for this time was paused or blocked */
#define MAX_TIMEOUT_MS 4000    /* of one beat */
#define MAX_BODY ((size_t)8192)
#define MAX_URL ((size_t)1 << 20)

struct hd_store_lease {
    struct hd_backend *backend; /* belongs to hd_store_lease_take(), then to the thread */
    int64_t token;
    int64_t heartbeat;
    int64_t started_at;
    hd_store_lease_lost_fn lost;
    void *ctx;
    pthread_t thread;
    bool has_thread;
    bool is_failing; /* the last beat failed; for the thread */

    uv_timer_t timer; /* makes the loop turn */
    uv_check_t check; /* runs on each turn */
    bool has_handles;

    _Atomic int64_t confirmed_us; /* boot time before the last successful beat was sent */
    _Atomic int64_t turned_us;    /* boot time of the loop's last turn; 0: no loop runs */
    _Atomic bool is_lost;

    pthread_mutex_t lock; /* protects the members below */
    pthread_cond_t changed;
    struct hd_server_identity self;
    bool has_update; /* `self` is not stored yet */
    bool is_hurried;
    bool is_ending;
    int64_t attempted_us; /* boot time before the last attempt, successful or not */
};

/* ---- row -------------------------------------------------------------- */

struct holder {
    bool is_there;
    int64_t token, heartbeat;
    struct hd_server_identity identity;
};

static struct hd_cell slot(void)
{
    return hd_cell_bytes(HD_S(""));
}

static int on_holder_row(void *arg, size_t which, const struct hd_cell *cells)
{
    struct holder *holder = arg;

    (void)which;
    holder->is_there = true;
    holder->token = cells[HD_SERVERS_TOKEN].number;
    holder->heartbeat = cells[HD_SERVERS_BEAT].number;
    hd_server_identity_read(cells[HD_SERVERS_BODY].bytes, &holder->identity);
    return 1;
}

static int read_holder(struct hd_store_lease *lease, struct holder *out, struct heddle_error *fault)
{
    /* Reads all slots: a later version may use one slot per server. */
    const struct hd_query query = {
        .table = HD_SERVERS, .index = HD_PRIMARY, .limit = 1, .columns = HD_ALL_COLUMNS};

    memset(out, 0, sizeof(*out));
    return hd_backend_read(lease->backend, &query, 1, on_holder_row, out, fault);
}

/* Appends this server's row; `body` must stay until the batch is applied. */
static int add_lease_row(struct hd_store_lease *lease, struct hd_batch_builder *batch,
                         enum hd_op_kind kind, struct hd_buf *body)
{
    struct hd_server_identity self;
    int err;

    pthread_mutex_lock(&lease->lock);
    self = lease->self;
    lease->has_update = false;
    pthread_mutex_unlock(&lease->lock);
    err = hd_server_identity_write(&self, body);
    if (err)
        return err;

    const struct hd_cell row[] = {
        [HD_SERVERS_SLOT] = slot(),
        [HD_SERVERS_TOKEN] = hd_cell_int(lease->token),
        [HD_SERVERS_BEAT] = hd_cell_int(lease->heartbeat),
        [HD_SERVERS_STARTED] = hd_cell_int(lease->started_at),
        [HD_SERVERS_BODY] = hd_cell_bytes(hd_buf_slice(body)),
    };

    return hd_batch_row(batch, kind, HD_SERVERS, row);
}

enum lease_change {
    CLAIM,   /* no row may exist */
    REPLACE, /* the row must be the observed one */
    UPDATE,  /* the row must be ours */
    BEAT,    /* the row must be ours; changes only the counter */
    REMOVE   /* the row must be ours */
};

static int plan(struct hd_store_lease *lease, enum lease_change change, const struct holder *old,
                struct hd_batch_builder *batch, struct hd_buf *body)
{
    const struct hd_cell key[] = {slot()};
    int err = 0;

    if (change == BEAT)
        return hd_batch_expect_and_set(batch, HD_SERVERS, key, HD_SERVERS_TOKEN, lease->token,
                                       HD_SERVERS_BEAT, lease->heartbeat);
    if (change == REPLACE)
        err = hd_batch_expect(batch, HD_SERVERS, key, HD_SERVERS_BEAT, old->heartbeat);
    if (!err && change != CLAIM)
        err = hd_batch_expect(batch, HD_SERVERS, key, HD_SERVERS_TOKEN,
                              old ? old->token : lease->token);
    if (err)
        return err;
    if (change == REMOVE)
        return hd_batch_delete(batch, HD_SERVERS, key, HD_COUNT(key));
    return add_lease_row(lease, batch, change == CLAIM ? HD_OP_ADD : HD_OP_PUT, body);
}

/* HD_ECONFLICT: the condition of `change` does not hold. */
static int change_row(struct hd_store_lease *lease, enum lease_change change,
                      const struct holder *old, struct heddle_error *fault)
{
    struct hd_batch_builder batch;
    struct hd_batch view;
    struct hd_buf body;
    int err;

    hd_batch_init(&batch);
    hd_buf_init(&body, MAX_BODY);
    err = plan(lease, change, old, &batch, &body);
    view = hd_batch_view(&batch);
    if (!err)
        err = hd_backend_apply(lease->backend, &view, NULL, fault);
    hd_buf_fini(&body);
    hd_batch_fini(&batch);
    return err;
}

/* ---- beats ------------------------------------------------------------ */

static void lose(struct hd_store_lease *lease, const struct holder *holder)
{
    char name[160], text[252];

    atomic_store(&lease->is_lost, true);
    hd_server_identity_describe(&holder->identity, name, sizeof(name));
    (void)snprintf(text, sizeof(text), "%s has taken over the store", name);
    lease->lost(lease->ctx, text);
}

/*
 * The row belongs to another server, or an earlier commit of ours changed it and its reply was
 * lost.
 */
static int examine(struct hd_store_lease *lease, struct heddle_error *fault)
{
    struct holder holder;
    int err = read_holder(lease, &holder, fault);

    if (!err && !holder.is_there) {
        err = change_row(lease, CLAIM, NULL, fault);
        if (err == HD_ECONFLICT)
            err = read_holder(lease, &holder, fault);
    }
    if (!err && holder.is_there && holder.token != lease->token) {
        lose(lease, &holder);
        err = HD_ECLOSED;
    }
    return err;
}

static void note_failure(struct hd_store_lease *lease, int err, const struct heddle_error *fault)
{
    if (!lease->is_failing)
        hd_log(HD_LOG_WARN, "serve", "the lease on the store was not renewed: %s",
               fault->code ? fault->text : hd_error_text(err));
    lease->is_failing = true;
}

/* True if the loop is stuck: a hung server must not renew its lease. */
static bool is_stuck(const struct hd_store_lease *lease, int64_t now)
{
    int64_t turned = atomic_load(&lease->turned_us);

    return turned && now - turned > LEASE_US;
}

/* True: the lease was renewed. */
static bool heartbeat(struct hd_store_lease *lease, int64_t began, bool has_update)
{
    struct heddle_error fault = {0};
    int err;

    if (is_stuck(lease, began))
        return false;
    lease->heartbeat++;
    err = change_row(lease, has_update ? UPDATE : BEAT, NULL, &fault);
    if (err == HD_ECONFLICT) {
        fault = (struct heddle_error){0};
        err = examine(lease, &fault);
    }
    if (err) {
        note_failure(lease, err, &fault);
        return false;
    }
    if (lease->is_failing)
        hd_log(HD_LOG_INFO, "serve", "the lease on the store is renewed again");
    lease->is_failing = false;
    atomic_store(&lease->confirmed_us, began);
    return true;
}

static void add_us(struct timespec *time, int64_t us)
{
    int64_t ns = time->tv_nsec + us % SECOND * 1000;

    time->tv_sec += (time_t)(us / SECOND + ns / 1000000000);
    time->tv_nsec = (long)(ns % 1000000000);
}

/* Call it with the lock held. False: timeout. */
static bool wait_until(struct hd_store_lease *lease, const struct timespec *until)
{
    return pthread_cond_timedwait(&lease->changed, &lease->lock, until) != ETIMEDOUT;
}

static void wait_from_now(struct timespec *until, int64_t us)
{
    (void)clock_gettime(CLOCK_MONOTONIC, until);
    add_us(until, us);
}

static void *run_beats(void *arg)
{
    struct hd_store_lease *lease = arg;

    pthread_mutex_lock(&lease->lock);
    while (!lease->is_ending && !atomic_load(&lease->is_lost)) {
        int64_t began = hd_clock_boot_us();
        bool has_update = lease->has_update, is_renewed;
        struct timespec until;

        lease->is_hurried = false;
        pthread_mutex_unlock(&lease->lock);
        is_renewed = heartbeat(lease, began, has_update);
        pthread_mutex_lock(&lease->lock);
        lease->attempted_us = began;
        lease->has_update |= has_update && !is_renewed;
        pthread_cond_broadcast(&lease->changed);
        wait_from_now(&until, is_renewed ? BEAT_US : RETRY_US);
        while (!lease->is_ending && !lease->is_hurried && wait_until(lease, &until))
            ;
    }
    pthread_mutex_unlock(&lease->lock);
    return NULL;
}

/* ---- fence ------------------------------------------------------------ */

static bool is_fresh(const struct hd_store_lease *lease)
{
    return hd_clock_boot_us() - atomic_load(&lease->confirmed_us) < FRESH_US;
}

static void hurry(struct hd_store_lease *lease)
{
    lease->is_hurried = true;
    pthread_cond_broadcast(&lease->changed);
}

/* Called before each batch, on the thread that applies it. */
static int fence(void *arg, struct heddle_error *fault)
{
    struct hd_store_lease *lease = arg;
    struct timespec until;

    if (!atomic_load(&lease->is_lost) && is_fresh(lease))
        return 0;
    pthread_mutex_lock(&lease->lock);
    wait_from_now(&until, MAX_TIMEOUT_MS * SECOND / 1000);
    hurry(lease);
    while (!atomic_load(&lease->is_lost) && !is_fresh(lease) && wait_until(lease, &until))
        ;
    pthread_mutex_unlock(&lease->lock);
    if (atomic_load(&lease->is_lost))
        return hd_error_set(fault, HD_ECLOSED, "another server has taken over the store");
    return is_fresh(lease) ? 0
                           : hd_error_set(fault, HD_EUNAVAILABLE,
                                          "the server could not renew its lease on the store");
}

/* ---- loop ------------------------------------------------------------- */

static void on_lease_timer(uv_timer_t *timer)
{
    (void)timer; /* on_check() does the work */
}

/*
 * After a pause another server may hold the store: the loop waits until the lease is renewed or an
 * attempt has shown that the database is unreachable.
 */
static void on_check(uv_check_t *check)
{
    struct hd_store_lease *lease = check->data;
    int64_t now = hd_clock_boot_us();
    int64_t before = atomic_exchange(&lease->turned_us, now);
    struct timespec until;

    if (now - before < PAUSE_US || is_fresh(lease))
        return;
    pthread_mutex_lock(&lease->lock);
    wait_from_now(&until, LEASE_US);
    hurry(lease);
    while (lease->attempted_us < now && !atomic_load(&lease->is_lost) && wait_until(lease, &until))
        ;
    pthread_mutex_unlock(&lease->lock);
}

static int join_loop(struct hd_store_lease *lease, uv_loop_t *loop)
{
    (void)uv_timer_init(loop, &lease->timer); /* neither can fail */
    (void)uv_check_init(loop, &lease->check);
    lease->timer.data = lease->check.data = lease;
    lease->has_handles = true;
    if (uv_timer_start(&lease->timer, on_lease_timer, TURN_MS, TURN_MS) ||
        uv_check_start(&lease->check, on_check))
        return HD_EIO;
    uv_unref((uv_handle_t *)&lease->timer);
    uv_unref((uv_handle_t *)&lease->check);
    return 0;
}

void hd_store_lease_leave_loop(struct hd_store_lease *lease)
{
    if (!lease || !lease->has_handles)
        return;
    lease->has_handles = false;
    atomic_store(&lease->turned_us, 0);
    uv_close((uv_handle_t *)&lease->timer, NULL);
    uv_close((uv_handle_t *)&lease->check, NULL);
}

/* ---- take ------------------------------------------------------------- */

static int refuse_held_store(const struct holder *holder, struct heddle_error *fault)
{
    char name[160];

    hd_server_identity_describe(&holder->identity, name, sizeof(name));
    return hd_error_set(fault, HD_EBUSY, "it is in use by %s", name);
}

static int take_over(struct hd_store_lease *lease, const struct holder *holder, const char *why,
                     struct heddle_error *fault)
{
    char name[160];
    int err = change_row(lease, REPLACE, holder, fault);

    hd_server_identity_describe(&holder->identity, name, sizeof(name));
    if (!err)
        hd_log(HD_LOG_INFO, "serve", "took over the store from %s, %s", name, why);
    return err;
}

struct holder_watch {
    struct holder seen;
    int64_t since_us; /* boot time of the first read that found this counter */
};

/* Reads the row once. 1: read it again later. */
static int look_at_holder(struct hd_store_lease *lease, struct holder_watch *watch,
                          struct heddle_error *fault)
{
    int64_t began = hd_clock_boot_us(), now;
    struct holder holder;
    char name[160];
    int err = read_holder(lease, &holder, fault);

    now = hd_clock_boot_us();
    if (err)
        return err;
    if (!holder.is_there)
        return change_row(lease, CLAIM, NULL, fault);
    if (holder.token == lease->token)
        return 0; /* our commit whose reply was lost */
    if (hd_server_identity_is_gone(&holder.identity, &lease->self))
        return take_over(lease, &holder, "whose process has ended", fault);
    if (watch->seen.is_there && watch->seen.token == holder.token) {
        if (watch->seen.heartbeat != holder.heartbeat)
            return refuse_held_store(&holder, fault);
        if (now - began > OUTAGE_US)
            watch->since_us = now;
        if (now - watch->since_us >= LEASE_US)
            return take_over(lease, &holder, "which has not renewed its lease", fault);
        return 1;
    }
    hd_server_identity_describe(&holder.identity, name, sizeof(name));
    hd_log(HD_LOG_INFO, "serve",
           "%s has a lease on the store: waiting up to %d s to see whether it is alive", name,
           (int)(LEASE_US / SECOND));
    *watch = (struct holder_watch){.seen = holder, .since_us = now};
    return 1;
}

static int acquire(struct hd_store_lease *lease, struct heddle_error *fault)
{
    struct holder_watch watch = {.since_us = 0};
    int64_t began;
    int err;

    do {
        began = hd_clock_boot_us();
        err = look_at_holder(lease, &watch, fault);
        if (err == HD_ECONFLICT && fault)
            *fault = (struct heddle_error){0};
        if (err > 0)
            hd_clock_sleep_us(LOOK_US);
    } while (err > 0 || err == HD_ECONFLICT);
    if (!err)
        atomic_store(&lease->confirmed_us, began);
    return err;
}

/* Opens a separate connection: beats must not wait for runs and requests. */
static int open_backend(struct hd_store_lease *lease, const char *text, struct heddle_error *fault)
{
    struct hd_arena arena;
    struct hd_url url;
    int err;

    hd_arena_init(&arena, MAX_URL);
    err = hd_url_parse(&url, text, &arena, fault);
    url.pool = 1;
    if (!err && url.timeout_ms > MAX_TIMEOUT_MS)
        url.timeout_ms = MAX_TIMEOUT_MS;
    if (!err)
        err = hd_backend_open(&lease->backend, &url, fault);
    hd_arena_fini(&arena);
    return err;
}

static int init_locks(struct hd_store_lease *lease)
{
    pthread_condattr_t attr;
    int failed;

    if (pthread_condattr_init(&attr) != 0)
        return HD_ENOMEM;
    failed = pthread_condattr_setclock(&attr, CLOCK_MONOTONIC) ||
             pthread_cond_init(&lease->changed, &attr);
    (void)pthread_condattr_destroy(&attr);
    if (failed)
        return HD_ENOMEM;
    if (pthread_mutex_init(&lease->lock, NULL) != 0) {
        (void)pthread_cond_destroy(&lease->changed);
        return HD_ENOMEM;
    }
    return 0;
}

static void destroy(struct hd_store_lease *lease)
{
    hd_backend_close(lease->backend);
    pthread_mutex_destroy(&lease->lock);
    pthread_cond_destroy(&lease->changed);
    hd_free(lease);
}

int hd_store_lease_take(struct heddle *store, const struct hd_store_lease_options *options,
                        struct hd_store_lease **out, struct heddle_error *fault)
{
    struct hd_store_lease *lease = hd_calloc(1, sizeof(*lease));
    int err;

    if (!lease || init_locks(lease)) {
        hd_free(lease);
        return HD_ENOMEM;
    }
    hd_random(&lease->token, sizeof(lease->token));
    lease->self = *options->self;
    lease->lost = options->lost;
    lease->ctx = options->ctx;
    lease->started_at = hd_clock_now_us();
    err = open_backend(lease, options->url, fault);
    if (!err)
        err = acquire(lease, fault);
    if (err) {
        destroy(lease);
        return err;
    }
    *out = lease;
    hd_rows_set_fence(store, fence, lease);
    err = join_loop(lease, options->loop);
    if (!err && pthread_create(&lease->thread, NULL, run_beats, lease) != 0)
        err = HD_ENOMEM;
    lease->has_thread = !err;
    return err;
}

void hd_store_lease_update(struct hd_store_lease *lease, const struct hd_server_identity *self)
{
    pthread_mutex_lock(&lease->lock);
    lease->self = *self;
    lease->has_update = true;
    hurry(lease);
    pthread_mutex_unlock(&lease->lock);
}

void hd_store_lease_release(struct hd_store_lease *lease)
{
    struct heddle_error fault = {0};
    int err;

    if (!lease)
        return;
    pthread_mutex_lock(&lease->lock);
    lease->is_ending = true;
    pthread_cond_broadcast(&lease->changed);
    pthread_mutex_unlock(&lease->lock);
    if (lease->has_thread)
        pthread_join(lease->thread, NULL);
    err = change_row(lease, REMOVE, NULL, &fault);
    if (err && err != HD_ECONFLICT)
        hd_log(HD_LOG_WARN, "serve",
               "cannot release the lease on the store, it stays until it expires: %s",
               fault.code ? fault.text : hd_error_text(err));
    destroy(lease);
}
