#include "cluster/lease.h"

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
#include "store/backend.h"
#include "store/rows.h"

#define SECOND INT64_C(1000000)
#define MAX_BEAT_US (2 * SECOND) /* servers of older versions do not wait longer than ten seconds */
#define MIN_TIMEOUT_MS 1000
#define MAX_URL ((size_t)1 << 20)

/* Parts of the lease. */
struct lease_times {
    int64_t beat_us;  /* between two renewals */
    int64_t retry_us; /* after a failed one */
    int64_t fresh_us; /* refuse writes if the lease was not renewed for this time */
    int64_t pause_us; /* a loop without a turn for this time was paused or blocked */
    int64_t turn_ms;  /* maximum time between two turns of the loop */
    int timeout_ms;   /* of one renewal */
};

struct hd_lease {
    struct hd_backend *backend; /* belongs to the thread while there is one */
    const struct hd_lease_mode *mode;
    void *mode_ctx;
    hd_lease_lost_fn lost;
    void *lost_ctx;
    int64_t lease_us;
    struct lease_times times;
    pthread_t thread;
    bool has_thread;
    bool is_failing; /* the last renewal failed; for the thread */

    uv_timer_t timer; /* makes the loop turn */
    uv_check_t check; /* runs on each turn */
    bool has_handles;
    bool in_doubt; /* as the mode was last told */

    _Atomic int64_t confirmed_us; /* boot time before the last successful renewal was sent */
    _Atomic int64_t turned_us;    /* boot time of the loop's last turn; 0: no loop runs */
    _Atomic bool is_lost;

    pthread_mutex_t lock; /* protects the members below */
    pthread_cond_t changed;
    bool has_update;
    bool is_hurried;
    bool is_ending;
    int64_t attempted_us; /* boot time before the last attempt, successful or not */
};

static struct lease_times times_of(int64_t lease_us)
{
    int64_t beat = lease_us / 5, timeout = lease_us * 4 / 10 / 1000;

    beat = beat > MAX_BEAT_US ? MAX_BEAT_US : beat;
    return (struct lease_times){
        .beat_us = beat,
        .retry_us = beat / 4,
        .fresh_us = lease_us * 8 / 10,
        .pause_us = lease_us * 3 / 10,
        .turn_ms = lease_us / 10 / 1000,
        .timeout_ms = timeout < MIN_TIMEOUT_MS ? MIN_TIMEOUT_MS : (int)timeout,
    };
}

/* ---- renewals --------------------------------------------------------- */

static void note_failure(struct hd_lease *lease, int err, const struct heddle_error *fault)
{
    if (!lease->is_failing)
        hd_log(HD_LOG_WARN, "serve", "the lease on the store was not renewed: %s",
               fault->code ? fault->text : hd_error_text(err));
    lease->is_failing = true;
}

/* True if the loop is stuck: a hung server must not renew its lease. */
static bool is_stuck(const struct hd_lease *lease, int64_t now)
{
    int64_t turned = atomic_load(&lease->turned_us);

    return turned && now - turned > lease->lease_us;
}

static void lose(struct hd_lease *lease, const struct heddle_error *fault)
{
    atomic_store(&lease->is_lost, true);
    lease->lost(lease->lost_ctx, fault->code ? fault->text : lease->mode->fenced);
}

/* True: the lease was renewed. */
static bool renew(struct hd_lease *lease, int64_t began, bool is_update)
{
    struct heddle_error fault = {0};
    bool is_tried = !is_stuck(lease, began);
    int err = is_tried ? lease->mode->renew(lease->mode_ctx, is_update, &fault) : HD_EBUSY;

    if (err == HD_ECLOSED)
        lose(lease, &fault);
    else if (err && lease->mode->missed)
        lease->mode->missed(lease->mode_ctx);
    if (err && is_tried)
        note_failure(lease, err, &fault);
    if (err)
        return false;
    if (lease->is_failing)
        hd_log(HD_LOG_INFO, "serve", "the lease on the store is renewed again");
    lease->is_failing = false;
    atomic_store(&lease->confirmed_us, began);
    return true;
}

static void observe(struct hd_lease *lease)
{
    struct heddle_error fault = {0};

    if (lease->mode->observe && lease->mode->observe(lease->mode_ctx, &fault) == HD_ECLOSED)
        lose(lease, &fault);
}

static void add_us(struct timespec *time, int64_t us)
{
    int64_t ns = time->tv_nsec + us % SECOND * 1000;

    time->tv_sec += (time_t)(us / SECOND + ns / 1000000000);
    time->tv_nsec = (long)(ns % 1000000000);
}

/* Call it with the lock held. False: timeout. */
static bool wait_until(struct hd_lease *lease, const struct timespec *until)
{
    return pthread_cond_timedwait(&lease->changed, &lease->lock, until) != ETIMEDOUT;
}

static void wait_from_now(struct timespec *until, int64_t us)
{
    (void)clock_gettime(CLOCK_MONOTONIC, until);
    add_us(until, us);
}

/* Renews once. Call it with the lock held, which it releases while it waits for the database. */
static bool beat_once(struct hd_lease *lease)
{
    int64_t began = hd_clock_boot_us();
    bool has_update = lease->has_update, is_renewed;

    lease->is_hurried = false;
    lease->has_update = false;
    pthread_mutex_unlock(&lease->lock);
    is_renewed = renew(lease, began, has_update);
    pthread_mutex_lock(&lease->lock);
    lease->attempted_us = began;
    lease->has_update |= has_update && !is_renewed;
    pthread_cond_broadcast(&lease->changed);
    return is_renewed;
}

static void *run_beats(void *arg)
{
    struct hd_lease *lease = arg;

    pthread_mutex_lock(&lease->lock);
    while (!lease->is_ending && !atomic_load(&lease->is_lost)) {
        bool is_renewed = beat_once(lease);
        struct timespec until;

        wait_from_now(&until, is_renewed ? lease->times.beat_us : lease->times.retry_us);
        if (is_renewed) {
            pthread_mutex_unlock(&lease->lock);
            observe(lease);
            pthread_mutex_lock(&lease->lock);
        }
        while (!lease->is_ending && !lease->is_hurried && wait_until(lease, &until))
            ;
    }
    pthread_mutex_unlock(&lease->lock);
    return NULL;
}

/* ---- fence ------------------------------------------------------------ */

static bool is_fresh_at(const struct hd_lease *lease, int64_t now)
{
    return now - atomic_load(&lease->confirmed_us) < lease->times.fresh_us;
}

static bool is_fresh(const struct hd_lease *lease)
{
    return is_fresh_at(lease, hd_clock_boot_us());
}

static void hurry(struct hd_lease *lease)
{
    lease->is_hurried = true;
    pthread_cond_broadcast(&lease->changed);
}

/* Called before each batch, on the thread that applies it. */
static int fence(void *arg, struct heddle_error *fault)
{
    struct hd_lease *lease = arg;
    struct timespec until;

    if (!atomic_load(&lease->is_lost) && is_fresh(lease))
        return 0;
    pthread_mutex_lock(&lease->lock);
    wait_from_now(&until, lease->times.timeout_ms * SECOND / 1000);
    hurry(lease);
    while (!atomic_load(&lease->is_lost) && !is_fresh(lease) && wait_until(lease, &until))
        ;
    pthread_mutex_unlock(&lease->lock);
    if (atomic_load(&lease->is_lost))
        return hd_error_set(fault, HD_ECLOSED, "%s", lease->mode->fenced);
    return is_fresh(lease) ? 0
                           : hd_error_set(fault, HD_EUNAVAILABLE,
                                          "the server could not renew its lease on the store");
}

/* ---- loop ------------------------------------------------------------- */

static void on_lease_timer(uv_timer_t *timer)
{
    (void)timer; /* on_check() does the work */
}

/* Waits until the lease is renewed or an attempt has shown that the database is unreachable. */
static void wait_for_attempt(struct hd_lease *lease, int64_t now)
{
    struct timespec until;

    pthread_mutex_lock(&lease->lock);
    wait_from_now(&until, lease->lease_us);
    hurry(lease);
    while (lease->attempted_us < now && !atomic_load(&lease->is_lost) && wait_until(lease, &until))
        ;
    pthread_mutex_unlock(&lease->lock);
}

/* After a pause another server may hold the store. */
static void on_check(uv_check_t *check)
{
    struct hd_lease *lease = check->data;
    int64_t now = hd_clock_boot_us();
    int64_t before = atomic_exchange(&lease->turned_us, now);
    bool in_doubt = !is_fresh_at(lease, now);

    if (in_doubt && now - before >= lease->times.pause_us) {
        wait_for_attempt(lease, now);
        in_doubt = !is_fresh(lease);
    }
    if (in_doubt == lease->in_doubt)
        return;
    lease->in_doubt = in_doubt;
    if (lease->mode->doubt)
        lease->mode->doubt(lease->mode_ctx, in_doubt);
}

static int join_loop(struct hd_lease *lease, uv_loop_t *loop)
{
    uint64_t turn_ms = (uint64_t)lease->times.turn_ms;

    (void)uv_timer_init(loop, &lease->timer); /* neither can fail */
    (void)uv_check_init(loop, &lease->check);
    lease->timer.data = lease->check.data = lease;
    lease->has_handles = true;
    if (uv_timer_start(&lease->timer, on_lease_timer, turn_ms, turn_ms) ||
        uv_check_start(&lease->check, on_check))
        return HD_EIO;
    uv_unref((uv_handle_t *)&lease->timer);
    uv_unref((uv_handle_t *)&lease->check);
    return 0;
}

void hd_lease_leave_loop(struct hd_lease *lease)
{
    if (!lease->has_handles)
        return;
    lease->has_handles = false;
    atomic_store(&lease->turned_us, 0);
    uv_close((uv_handle_t *)&lease->timer, NULL);
    uv_close((uv_handle_t *)&lease->check, NULL);
}

/* ---- life ------------------------------------------------------------- */

/* Opens a separate connection: renewals must not wait for runs and requests. */
static int open_backend(struct hd_lease *lease, const char *text, struct heddle_error *fault)
{
    struct hd_arena arena;
    struct hd_url url;
    int err;

    hd_arena_init(&arena, MAX_URL);
    err = hd_url_parse(&url, text, &arena, fault);
    url.pool = 1;
    url.enough_version = hd_tables[HD_SERVERS].since; /* this server may be refused */
    if (!err && url.timeout_ms > lease->times.timeout_ms)
        url.timeout_ms = lease->times.timeout_ms;
    if (!err)
        err = hd_backend_open(&lease->backend, &url, fault);
    hd_arena_fini(&arena);
    return err;
}

static int init_locks(struct hd_lease *lease)
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

int hd_lease_create(const struct hd_lease_options *options, struct hd_lease **out,
                    struct heddle_error *fault)
{
    struct hd_lease *lease = hd_calloc(1, sizeof(*lease));
    int err;

    if (!lease || init_locks(lease)) {
        hd_free(lease);
        return HD_ENOMEM;
    }
    lease->mode = options->mode;
    lease->mode_ctx = options->ctx;
    lease->lost = options->lost;
    lease->lost_ctx = options->lost_ctx;
    lease->lease_us = options->lease_us;
    lease->times = times_of(options->lease_us);
    err = open_backend(lease, options->url, fault);
    if (err) {
        hd_lease_destroy(lease);
        return err;
    }
    *out = lease;
    return 0;
}

struct hd_backend *hd_lease_backend(struct hd_lease *lease)
{
    return lease->backend;
}

int64_t hd_lease_us(const struct hd_lease *lease)
{
    return lease->lease_us;
}

bool hd_lease_in_doubt(const struct hd_lease *lease)
{
    return atomic_load(&lease->is_lost) || !is_fresh(lease);
}

int hd_lease_start(struct hd_lease *lease, struct heddle *store, uv_loop_t *loop,
                   int64_t confirmed_us)
{
    int err;

    atomic_store(&lease->confirmed_us, confirmed_us);
    hd_rows_set_fence(store, fence, lease);
    err = join_loop(lease, loop);
    if (!err && pthread_create(&lease->thread, NULL, run_beats, lease) != 0)
        err = HD_ENOMEM;
    lease->has_thread = !err;
    return err;
}

void hd_lease_update(struct hd_lease *lease)
{
    pthread_mutex_lock(&lease->lock);
    lease->has_update = true;
    hurry(lease);
    pthread_mutex_unlock(&lease->lock);
}

void hd_lease_stop(struct hd_lease *lease)
{
    pthread_mutex_lock(&lease->lock);
    lease->is_ending = true;
    pthread_cond_broadcast(&lease->changed);
    pthread_mutex_unlock(&lease->lock);
    if (lease->has_thread)
        pthread_join(lease->thread, NULL);
    lease->has_thread = false;
}

void hd_lease_destroy(struct hd_lease *lease)
{
    if (!lease)
        return;
    hd_backend_close(lease->backend);
    pthread_mutex_destroy(&lease->lock);
    pthread_cond_destroy(&lease->changed);
    hd_free(lease);
}
