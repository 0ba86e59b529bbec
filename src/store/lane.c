/*
 * Group commit without a dedicated thread: the first caller to find the lane free leads, takes all
 * queued requests, commits them as one batch and wakes the others. While it waits for the disk the
 * next group gathers. A single caller pays no thread switch. A worker leads only when no caller
 * waits (asynchronous requests).
 *
 * A batch that conflicts is planned again from the current rows. Rows that were planned by the
 * caller cannot be planned again: those that conflict are rejected, and only those. A batch that
 * fails otherwise is retried request by request, so that one bad request cannot fail its
 * neighbours; unless the database is unreachable, since no single request caused it.
 *
 * The server's asynchronous requests survive an outage (hd_rows_set_outage()): they return to the
 * front of the queue, in their order, and the worker retries them after a pause. When the process
 * ends, those that fail are lost; then the later ones of their thread fail too, so that the stored
 * ones have no hole.
 */
#include "store/lane.h"

#include <stdatomic.h>
#include <stdint.h>
#include <time.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "store/list_append.h"
#include "store/retry.h"
#include "store/thread_fence.h"

enum {
    GROUP_MAX = 256,        /* requests in a batch */
    TRIM_INTERVAL = 64,     /* batches */
    SCRATCH_KEEP = 1 << 20, /* a larger scratch buffer is freed */
};
#define GROUP_BYTES_MAX ((size_t)16 << 20)
#define CACHE_BYTES ((size_t)32 << 20)
#define KEPT_BYTES_MAX ((size_t)64 << 20) /* of requests of a lane that wait for the database */
#define PAUSE_MIN_US 50000
#define PAUSE_MAX_US 2000000
#define LOST_MAX 1024 /* threads */

static struct hd_lane *lane_of(struct hd_store *store, struct hd_slice thread)
{
    return &store->lanes[XXH3_64bits(thread.ptr, thread.len) % store->lane_count];
}

/* ---- the leader's part ---- */

static void request_forget(struct hd_lane *lane, struct hd_lane_request *first,
                           struct hd_lane_request *end)
{
    for (struct hd_lane_request *r = first; r != end; r = r->next)
        hd_cache_drop(&lane->cache, r->thread);
}

/* ---- requests that wait for the database ---- */

static size_t size_of(const struct hd_lane_request *request)
{
    const struct heddle_value *values =
        request->kind == HD_REQUEST_PUT ? request->as.put.values : request->as.writes.values;
    size_t size = sizeof(*request), count;

    if (request->kind == HD_REQUEST_ROWS)
        return size + request->as.rows.owned.bytes;
    count = request->kind == HD_REQUEST_PUT ? request->as.put.value_count
                                            : request->as.writes.value_count;
    for (size_t i = 0; i < count; i++)
        size += values[i].data.len;
    return size;
}

/* True when an earlier request of the same thread is kept: this one must not overtake it. */
static bool is_behind_kept(const struct hd_lane *lane, const struct hd_lane_request *request)
{
    const struct hd_lane_request *r = lane->kept_bytes > 0 ? lane->round : request;

    while (r != request && !(r->is_kept && hd_slice_eq(r->thread, request->thread)))
        r = r->next;
    return r != request;
}

static bool request_keep(struct hd_lane *lane, struct hd_lane_request *request,
                         const struct heddle_error *fault)
{
    struct hd_store *store = lane->store;
    int64_t now = hd_clock_monotonic_us();

    if (!request->done || store->outage_us == 0 || request->kind == HD_REQUEST_JOB ||
        atomic_load(&store->is_ending) || (request->until_us && now >= request->until_us))
        return false;
    if (request->until_us == 0) {
        size_t size = size_of(request);

        if (lane->kept_bytes + size > KEPT_BYTES_MAX)
            return false;
        request->until_us = now + store->outage_us;
        request->kept_size = size;
        lane->kept_bytes += size;
        atomic_fetch_add(&store->waiting_count, 1);
    }
    if (request->fault.code || fault)
        lane->why = request->fault.code ? request->fault : *fault;
    request->is_kept = true;
    request->is_settled = true;
    return true;
}

static void round_release(struct hd_lane *lane, struct hd_lane_request *request)
{
    if (request->until_us == 0)
        return;
    request->until_us = 0;
    lane->kept_bytes -= request->kept_size;
    atomic_fetch_sub(&lane->store->waiting_count, 1);
}

/* Takes the kept requests out of the list and resets them; returns them in their order. */
static struct hd_lane_request *take_kept(struct hd_lane_request **group,
                                         struct hd_lane_request **last)
{
    struct hd_lane_request *kept = NULL, **link = group;

    *last = NULL;
    while (*link) {
        struct hd_lane_request *r = *link;

        if (!r->is_kept) {
            link = &r->next;
            continue;
        }
        *link = r->next;
        r->is_kept = r->is_settled = false;
        r->err = 0;
        r->fault = (struct heddle_error){0};
        r->next = NULL;
        if (*last)
            (*last)->next = r;
        else
            kept = r;
        *last = r;
    }
    return kept;
}

/* Called with the lock held, after a round. */
static void put_back(struct hd_lane *lane, struct hd_lane_request **group)
{
    struct hd_lane_request *last, *kept = take_kept(group, &last);

    lane->retry_at_us = 0;
    if (!kept) {
        if (lane->pause_us && lane->kept_bytes == 0)
            hd_log(HD_LOG_INFO, "store", "all waiting writes are stored");
        lane->pause_us = 0;
        return;
    }
    if (lane->pause_us == 0)
        hd_log(HD_LOG_WARN, "store", "writes wait for up to %lld s: %s",
               (long long)(lane->store->outage_us / 1000000), lane->why.text);
    last->next = lane->queue.first;
    if (!lane->queue.first)
        lane->queue.last = last;
    lane->queue.first = kept;
    lane->pause_us = lane->pause_us ? lane->pause_us * 2 : PAUSE_MIN_US;
    if (lane->pause_us > PAUSE_MAX_US)
        lane->pause_us = PAUSE_MAX_US;
    lane->retry_at_us = hd_clock_monotonic_us() + lane->pause_us;
}

static bool is_ordered(const struct hd_lane_request *request)
{
    return request->done && request->kind == HD_REQUEST_ROWS;
}

/* An earlier request of its thread is lost. */
static bool is_behind_lost(const struct hd_lane *lane, const struct hd_lane_request *request)
{
    uint64_t hash;

    if (!is_ordered(request) || (lane->lost.count == 0 && !lane->has_lost_all))
        return false;
    hash = XXH3_64bits(request->thread.ptr, request->thread.len);
    for (size_t i = 0; i < lane->lost.count; i++) {
        if (lane->lost.items[i] == hash)
            return true;
    }
    return lane->has_lost_all;
}

/* The process ends. */
static void note_lost(struct hd_lane *lane, const struct hd_lane_request *request)
{
    if (!is_ordered(request) || !atomic_load(&lane->store->is_ending) ||
        is_behind_lost(lane, request))
        return;
    if (hd_vec_push(&lane->lost, XXH3_64bits(request->thread.ptr, request->thread.len)))
        lane->has_lost_all = true;
}

static void request_finish(struct hd_lane *lane, struct hd_lane_request *request, int err,
                           const struct heddle_error *fault)
{
    if (hd_error_is_transient(err) && request_keep(lane, request, fault))
        return;
    if (hd_error_is_transient(err))
        note_lost(lane, request);
    round_release(lane, request);
    request->err = err;
    if (err && fault && request->fault.code == 0)
        request->fault = *fault;
    if (err && request->fault.code == 0)
        hd_error_set(&request->fault, err, "%s", hd_error_text(err));
    if (err && request->chain)
        request->chain->err = err;
    request->is_settled = true;
}

static void finish_all(struct hd_lane *lane, struct hd_lane_request *first,
                       struct hd_lane_request *end, int err, const struct heddle_error *fault)
{
    for (struct hd_lane_request *r = first; r != end; r = r->next) {
        if (!r->is_settled)
            request_finish(lane, r, err, fault);
    }
}

/* Reverts the operations and the state of a failed plan. */
static void undo_plan(struct hd_lane *lane, struct hd_lane_request *request)
{
    lane->batch.count = request->first_op;
    hd_cache_drop(&lane->cache, request->thread);
}

/* The database does not respond within its timeout: no other request would succeed now. */
static bool is_out_of_reach(int err)
{
    return err == HD_EUNAVAILABLE || err == HD_EBUSY;
}

/* Fails the next `count` requests, so that they do not wait one after the other. */
static struct hd_lane_request *fail_group(struct hd_lane *lane, struct hd_lane_request *first,
                                          size_t count, int err)
{
    const struct heddle_error fault = first->fault;
    struct hd_lane_request *r = first;

    for (; r && count > 0 && r->kind != HD_REQUEST_JOB; r = r->next, count--) {
        if (!r->is_settled)
            request_finish(lane, r, err, &fault);
    }
    return r;
}

/*
 * Plans requests from `first` on and returns the first one that is not in the
 * batch. A request whose plan fails is finished here.
 */
static struct hd_lane_request *plan_group(struct hd_lane *lane, struct hd_lane_request *first,
                                          size_t max)
{
    struct hd_lane_request *r = first;

    hd_batch_reset(&lane->batch);
    lane->batch_number++;
    for (size_t n = 0; r && n < max && lane->batch.bytes < GROUP_BYTES_MAX; r = r->next, n++) {
        int err;

        if (r->kind == HD_REQUEST_JOB)
            break;
        if (r->is_settled)
            continue; /* rejected when it was made */
        if (r->chain && r->chain->err) {
            request_finish(lane, r, r->chain->err, NULL);
            continue;
        }
        if (is_behind_lost(lane, r)) {
            request_finish(lane, r, HD_EUNAVAILABLE, NULL);
            continue;
        }
        if (is_behind_kept(lane, r) && request_keep(lane, r, NULL))
            continue;
        r->first_op = lane->batch.count;
        err = hd_plan(lane, r, &r->fault);
        if (err)
            undo_plan(lane, r);
        if (err == HD_EBUSY && r->first_op > 0)
            break;
        if (is_out_of_reach(err))
            return fail_group(lane, r, max - n, err);
        if (err) {
            request_finish(lane, r, err, NULL);
            if (r->first_op > 0)
                return r->next; /* its thread may have earlier operations in this batch */
        }
    }
    return r;
}

static int lane_apply(struct hd_lane *lane, size_t *failed, struct heddle_error *fault)
{
    struct hd_batch batch = hd_batch_view(&lane->batch);

    *failed = 0;
    return batch.count ? hd_backend_apply(lane->store->backend, &batch, failed, fault) : 0;
}

/* The error of a put whose guard does not hold; 0: the operation is not its guard. */
static int guard_error(const struct hd_lane *lane, const struct hd_lane_request *request,
                       size_t failed)
{
    if (!hd_guard_is_set(request->guard) || failed >= lane->batch.count)
        return 0;
    return hd_thread_fence_error(lane->store->backend, request->thread, &request->guard,
                                 lane->batch.ops[failed].table);
}

/*
 * Handles a conflict over operation `failed` if rows, or a guard, caused it: they are rejected when
 * they are first in the batch. Otherwise the conflict may be with those before them, which are not
 * committed yet: `max` becomes their number, and the rows lead the next group. False when a put
 * caused it.
 */
static bool blame_rows(struct hd_lane *lane, struct hd_lane_request *first,
                       struct hd_lane_request *end, size_t failed, size_t *max,
                       const struct heddle_error *fault)
{
    struct hd_lane_request *blamed = NULL;
    size_t before = 0, n = 0;
    int err;

    for (struct hd_lane_request *r = first; r != end; r = r->next, n++) {
        if (!r->is_settled && r->first_op <= failed) {
            blamed = r;
            before = n;
        }
    }
    if (!blamed)
        return false;
    err = blamed->kind == HD_REQUEST_ROWS ? HD_ECONFLICT : guard_error(lane, blamed, failed);
    if (!err)
        return false;
    if (blamed->first_op > 0) {
        *max = before;
        return true;
    }
    if (blamed->kind == HD_REQUEST_ROWS) {
        blamed->as.rows.failed = failed;
        request_finish(lane, blamed, err, fault);
    } else {
        hd_error_set(&blamed->fault, err, "%s",
                     err == HD_ETAKEN ? hd_error_text(err) : "the thread was deleted");
        request_finish(lane, blamed, err, NULL);
    }
    return true;
}

/* After too many conflicts the requests are committed one by one; those have the time. */
static bool may_retry(struct hd_lane *lane, struct hd_conflict_retry *retry, size_t max, int *err,
                      struct heddle_error *fault)
{
    if (max > 1 && retry->tries == HD_TRIES_MIN - 1)
        return false;
    return hd_conflict_retry(lane->store, retry, err, fault);
}

/* Commits up to `max` requests from `first` on; returns the first that remains. */
static struct hd_lane_request *commit_group(struct hd_lane *lane, struct hd_lane_request *first,
                                            size_t max)
{
    struct hd_conflict_retry retry = {0};
    struct heddle_error fault;
    struct hd_lane_request *end;
    size_t failed;
    int err;

    do {
        fault = (struct heddle_error){0};
        lane->cache.is_careful = retry.tries > 0;
        end = plan_group(lane, first, max);
        err = lane_apply(lane, &failed, &fault);
        if (err)
            request_forget(lane, first, end);
    } while (err == HD_ECONFLICT && (blame_rows(lane, first, end, failed, &max, &fault) ||
                                     may_retry(lane, &retry, max, &err, &fault)));
    if (err && max > 1 && !is_out_of_reach(err)) {
        for (struct hd_lane_request *r = first; r != end;)
            r = r->is_settled ? r->next : commit_group(lane, r, 1);
        return end;
    }
    finish_all(lane, first, end, err, &fault);
    return end;
}

static void lead(struct hd_lane *lane, struct hd_lane_request *first)
{
    struct hd_lane_request *r = first;

    lane->round = first;
    while (r) {
        if (r->kind == HD_REQUEST_JOB) {
            struct heddle_error fault = {0};
            int err = r->as.job.fn(lane->store, lane, r->as.job.arg, &fault);

            hd_cache_drop(&lane->cache, r->thread);
            request_finish(lane, r, err, &fault);
            r = r->next;
        } else {
            r = commit_group(lane, r, GROUP_MAX);
        }
    }
    if (lane->batch_number - lane->trimmed_at >= TRIM_INTERVAL) {
        hd_cache_trim(&lane->cache);
        lane->trimmed_at = lane->batch_number;
    }
    if (lane->scratch.cap > SCRATCH_KEEP) {
        hd_buf_fini(&lane->scratch);
        hd_buf_init(&lane->scratch, SIZE_MAX / 2);
    }
    hd_batch_reset(&lane->batch);
}

/* Completes asynchronous requests. Those of waiting callers belong to their callers. */
static void lane_complete(struct hd_lane_request *first)
{
    struct hd_lane_request *next;

    for (struct hd_lane_request *r = first; r; r = next) {
        next = r->next;
        if (r->done) {
            r->fault.code = r->err;
            r->done(r->done_arg, r->err, &r->fault);
            hd_lane_request_fini(r);
            hd_free(r);
        }
    }
}

/*
 * Wakes the waiting callers, which may free their requests from then on, and returns the
 * asynchronous ones. Called with the lock held.
 */
static struct hd_lane_request *release_waiting(struct hd_lane_request *first)
{
    HD_FIFO(struct hd_lane_request) kept = {0};

    for (struct hd_lane_request *r = first, *next; r; r = next) {
        next = r->next;
        if (r->done)
            hd_fifo_push(&kept, r, next);
        else
            r->is_finished = true;
    }
    return kept.first;
}

/* Called with the lock held and no leader; releases it in between. */
static void lead_once(struct hd_lane *lane)
{
    struct hd_lane_request *group = lane->queue.first;

    lane->queue.first = lane->queue.last = NULL;
    lane->is_woken = false;
    lane->has_leader = true;
    pthread_mutex_unlock(&lane->lock);
    lead(lane, group);
    pthread_mutex_lock(&lane->lock);
    put_back(lane, &group);
    group = release_waiting(group);
    lane->has_leader = false;
    pthread_cond_broadcast(&lane->changed);
    if (group) {
        pthread_mutex_unlock(&lane->lock);
        lane_complete(group);
        pthread_mutex_lock(&lane->lock);
    }
}

/* ---- callers ---- */

int hd_lane_run(struct hd_store *store, struct hd_lane_request *request, struct heddle_error *fault)
{
    struct hd_lane *lane = lane_of(store, request->thread);

    request->done = NULL;
    pthread_mutex_lock(&lane->lock);
    hd_fifo_push(&lane->queue, request, next);
    while (!request->is_finished) {
        if (lane->has_leader)
            pthread_cond_wait(&lane->changed, &lane->lock);
        else
            lead_once(lane);
    }
    pthread_mutex_unlock(&lane->lock);
    if (request->err && fault)
        *fault = request->fault;
    return request->err;
}

static bool is_retry_due(const struct hd_lane *lane)
{
    return lane->retry_at_us && hd_clock_monotonic_us() >= lane->retry_at_us;
}

static void wait_for_change(struct hd_lane *lane)
{
    struct timespec until = {.tv_sec = (time_t)(lane->retry_at_us / 1000000),
                             .tv_nsec = (long)(lane->retry_at_us % 1000000) * 1000};

    if (lane->retry_at_us && !lane->has_leader)
        (void)pthread_cond_timedwait(&lane->changed, &lane->lock, &until);
    else
        pthread_cond_wait(&lane->changed, &lane->lock);
}

static void *lane_work(void *arg)
{
    struct hd_lane *lane = arg;

    pthread_mutex_lock(&lane->lock);
    while (!lane->is_closing || lane->queue.first) {
        if (lane->queue.first && !lane->has_leader &&
            (lane->is_woken || lane->is_closing || is_retry_due(lane)))
            lead_once(lane);
        else
            wait_for_change(lane);
    }
    pthread_mutex_unlock(&lane->lock);
    return NULL;
}

int hd_lane_queue(struct hd_store *store, struct hd_lane_request *request)
{
    struct hd_lane *lane = lane_of(store, request->thread);
    int err = 0;

    pthread_mutex_lock(&lane->lock);
    if (!lane->has_worker) {
        lane->has_worker = pthread_create(&lane->worker, NULL, lane_work, lane) == 0;
        err = lane->has_worker ? 0 : HD_ENOMEM;
    }
    if (!err)
        hd_fifo_push(&lane->queue, request, next);
    pthread_mutex_unlock(&lane->lock);
    return err;
}

void hd_lanes_wake(struct hd_store *store)
{
    for (unsigned i = 0; i < store->lane_count; i++) {
        struct hd_lane *lane = &store->lanes[i];

        pthread_mutex_lock(&lane->lock);
        if (lane->queue.first) {
            lane->is_woken = true;
            pthread_cond_broadcast(&lane->changed);
        }
        pthread_mutex_unlock(&lane->lock);
    }
}

int hd_lane_job(struct hd_store *store, struct hd_slice thread, hd_job_fn fn, void *arg,
                struct heddle_error *fault)
{
    struct hd_lane_request request = {.kind = HD_REQUEST_JOB, .thread = thread};

    request.as.job.fn = fn;
    request.as.job.arg = arg;
    return hd_lane_run(store, &request, fault);
}

/* ---- opening and closing ---- */

static void init_condition(pthread_cond_t *condition)
{
    pthread_condattr_t attr;

    pthread_condattr_init(&attr); /* neither can fail on Linux */
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &attr);
    pthread_condattr_destroy(&attr);
}

int hd_lanes_open(struct hd_store *store)
{
    unsigned count = store->backend->lanes;

    store->lanes = hd_calloc(count, sizeof(*store->lanes));
    if (!store->lanes)
        return HD_ENOMEM;
    store->lane_count = count;
    for (unsigned i = 0; i < count; i++) {
        struct hd_lane *lane = &store->lanes[i];

        lane->store = store;
        lane->lost.limit = LOST_MAX;
        pthread_mutex_init(&lane->lock, NULL);
        init_condition(&lane->changed);
        hd_cache_init(&lane->cache, CACHE_BYTES);
        hd_batch_init(&lane->batch);
        hd_buf_init(&lane->scratch, SIZE_MAX / 2);
    }
    return 0;
}

static void lane_close(struct hd_lane *lane)
{
    pthread_mutex_lock(&lane->lock);
    lane->is_closing = true;
    pthread_cond_broadcast(&lane->changed);
    pthread_mutex_unlock(&lane->lock);
    if (lane->has_worker)
        pthread_join(lane->worker, NULL);
    hd_vec_fini(&lane->lost);
    hd_cache_fini(&lane->cache);
    hd_batch_fini(&lane->batch);
    hd_buf_fini(&lane->scratch);
    pthread_cond_destroy(&lane->changed);
    pthread_mutex_destroy(&lane->lock);
}

void hd_lanes_close(struct hd_store *store)
{
    atomic_store(&store->is_ending, true);
    for (unsigned i = 0; i < store->lane_count; i++)
        lane_close(&store->lanes[i]);
    hd_free(store->lanes);
    store->lanes = NULL;
    store->lane_count = 0;
}
