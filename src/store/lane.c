/*
 * Group commit without a thread of its own: the first caller to find the lane
 * free leads, takes everything queued, commits it as one batch and wakes the
 * others. While it waits for the disk the next group gathers. A single caller
 * pays no thread switch. Only when nobody waits (asynchronous requests) a
 * worker leads.
 *
 * A batch that conflicts is planned again from what the database says now.
 * Rows that were planned by the caller cannot be: those in the way are refused,
 * and only those. A batch that fails otherwise is tried once more request by
 * request, so that one bad request cannot fail its neighbours; unless the
 * database cannot be reached, which nobody's request is to blame for.
 */
#include "store/lane.h"

#include <stdint.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/alloc.h"
#include "store/again.h"
#include "store/growth.h"

enum {
    GROUP_MAX = 256,        /* requests in a batch */
    TRIM_INTERVAL = 64,     /* batches */
    SCRATCH_KEEP = 1 << 20, /* a larger scratch buffer is given back */
};
#define GROUP_BYTES_MAX ((size_t)16 << 20)
#define CACHE_BYTES ((size_t)32 << 20)

static struct hd_lane *lane_of(struct hd_store *store, struct hd_slice thread)
{
    return &store->lanes[XXH3_64bits(thread.ptr, thread.len) % store->lane_count];
}

/* ---- the leader's part ---- */

static void forget(struct hd_lane *lane, struct hd_request *first, struct hd_request *end)
{
    for (struct hd_request *r = first; r != end; r = r->next)
        hd_cache_drop(&lane->cache, r->thread);
}

static void finish(struct hd_request *request, int err, const struct hd_fault *fault)
{
    request->err = err;
    if (err && fault && request->fault.code == 0)
        request->fault = *fault;
    if (err && request->fault.code == 0)
        hd_fault_set(&request->fault, err, "%s", hd_error_text(err));
    if (err && request->train)
        request->train->err = err;
    request->is_settled = true;
}

static void finish_all(struct hd_request *first, struct hd_request *end, int err,
                       const struct hd_fault *fault)
{
    for (struct hd_request *r = first; r != end; r = r->next) {
        if (!r->is_settled)
            finish(r, err, fault);
    }
}

/* Takes back what a failed plan has appended and remembered. */
static void undo_plan(struct hd_lane *lane, struct hd_request *request)
{
    lane->batch.count = request->first_op;
    hd_cache_drop(&lane->cache, request->thread);
}

/* The database does not answer, after it was waited for: no other request would fare better now. */
static bool is_out_of_reach(int err)
{
    return err == HD_EUNAVAILABLE || err == HD_EBUSY;
}

/* Fails the next `count` requests, so that they do not wait one after the other. */
static struct hd_request *fail_group(struct hd_request *first, size_t count, int err)
{
    struct hd_request *r = first;

    for (; r && count > 0 && r->kind != HD_REQUEST_JOB; r = r->next, count--) {
        if (!r->is_settled)
            finish(r, err, &first->fault);
    }
    return r;
}

/*
 * Plans requests from `first` on and returns the first one that is not in the
 * batch. A request whose plan fails is finished here.
 */
static struct hd_request *plan_group(struct hd_lane *lane, struct hd_request *first, size_t max)
{
    struct hd_request *r = first;

    hd_batch_reset(&lane->batch);
    lane->batch_number++;
    for (size_t n = 0; r && n < max && lane->batch.bytes < GROUP_BYTES_MAX; r = r->next, n++) {
        int err;

        if (r->kind == HD_REQUEST_JOB)
            break;
        if (r->is_settled)
            continue; /* refused when it was made */
        if (r->train && r->train->err) {
            finish(r, r->train->err, NULL);
            continue;
        }
        r->first_op = lane->batch.count;
        err = hd_plan(lane, r, &r->fault);
        if (err)
            undo_plan(lane, r);
        if (err == HD_EBUSY && r->first_op > 0)
            break;
        if (is_out_of_reach(err))
            return fail_group(r, max - n, err);
        if (err) {
            finish(r, err, NULL);
            if (r->first_op > 0)
                return r->next; /* its thread may have earlier operations in this batch */
        }
    }
    return r;
}

static int apply(struct hd_lane *lane, size_t *failed, struct hd_fault *fault)
{
    struct hd_batch batch = hd_batch_view(&lane->batch);

    *failed = 0;
    return batch.count ? hd_backend_apply(lane->store->backend, &batch, failed, fault) : 0;
}

/* The operation looks whether the thread of a put is still there (guard.h). */
static bool is_guard(const struct hd_lane *lane, const struct hd_request *request, size_t failed)
{
    return request->guard && failed < lane->batch.count &&
           lane->batch.ops[failed].table == HD_THREAD_INFO;
}

/*
 * Deals with a conflict over operation `failed` if rows, or a guard, are to blame: they are
 * refused when they stand first in the batch. Otherwise the conflict may be
 * with those before them, which are not committed yet: `max` becomes their
 * number, and the rows lead the next group. False when a put is to blame.
 */
static bool blame_rows(const struct hd_lane *lane, struct hd_request *first, struct hd_request *end,
                       size_t failed, size_t *max, const struct hd_fault *fault)
{
    struct hd_request *blamed = NULL;
    size_t before = 0, n = 0;

    for (struct hd_request *r = first; r != end; r = r->next, n++) {
        if (!r->is_settled && r->first_op <= failed) {
            blamed = r;
            before = n;
        }
    }
    if (!blamed || (blamed->kind != HD_REQUEST_ROWS && !is_guard(lane, blamed, failed)))
        return false;
    if (blamed->first_op > 0) {
        *max = before;
        return true;
    }
    if (blamed->kind == HD_REQUEST_ROWS) {
        blamed->as.rows.failed = failed;
        finish(blamed, HD_ECONFLICT, fault);
    } else {
        hd_fault_set(&blamed->fault, HD_ENOTFOUND, "the thread was deleted");
        finish(blamed, HD_ENOTFOUND, NULL);
    }
    return true;
}

/* A batch that conflicts too often is left to its requests one by one; those have the time. */
static bool may_try_again(struct hd_lane *lane, struct hd_again *again, size_t max, int *err,
                          struct hd_fault *fault)
{
    if (max > 1 && again->tries == HD_TRIES_MIN - 1)
        return false;
    return hd_again(lane->store, again, err, fault);
}

/* Commits up to `max` requests from `first` on; returns the first that remains. */
static struct hd_request *commit_group(struct hd_lane *lane, struct hd_request *first, size_t max)
{
    struct hd_again again = {0};
    struct hd_fault fault;
    struct hd_request *end;
    size_t failed;
    int err;

    do {
        fault = (struct hd_fault){0};
        lane->cache.is_careful = again.tries > 0;
        end = plan_group(lane, first, max);
        err = apply(lane, &failed, &fault);
        if (err)
            forget(lane, first, end);
    } while (err == HD_ECONFLICT && (blame_rows(lane, first, end, failed, &max, &fault) ||
                                     may_try_again(lane, &again, max, &err, &fault)));
    if (err && max > 1 && !is_out_of_reach(err)) {
        for (struct hd_request *r = first; r != end;)
            r = r->is_settled ? r->next : commit_group(lane, r, 1);
        return end;
    }
    finish_all(first, end, err, &fault);
    return end;
}

static void lead(struct hd_lane *lane, struct hd_request *first)
{
    struct hd_request *r = first;

    while (r) {
        if (r->kind == HD_REQUEST_JOB) {
            struct hd_fault fault = {0};
            int err = r->as.job.fn(lane->store, lane, r->as.job.arg, &fault);

            hd_cache_drop(&lane->cache, r->thread);
            finish(r, err, &fault);
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

/* Answers asynchronous requests. Those of waiting callers belong to their callers. */
static void answer(struct hd_request *first)
{
    struct hd_request *next;

    for (struct hd_request *r = first; r; r = next) {
        next = r->next;
        if (r->done) {
            struct heddle_error error = {0};

            error.code = r->err;
            memcpy(error.text, r->fault.text, sizeof(error.text));
            r->done(r->done_arg, r->err, &error);
            hd_request_fini(r);
            hd_free(r);
        }
    }
}

/*
 * Tells the waiting callers, whose requests may be gone from then on, and
 * returns the asynchronous ones. Called with the lock held.
 */
static struct hd_request *release_waiting(struct hd_request *first)
{
    struct hd_request *kept = NULL, **tail = &kept;

    for (struct hd_request *r = first, *next; r; r = next) {
        next = r->next;
        if (r->done) {
            *tail = r;
            tail = &r->next;
        } else {
            r->is_finished = true;
        }
    }
    *tail = NULL;
    return kept;
}

/* Called with the lock held and no leader; releases it meanwhile. */
static void lead_once(struct hd_lane *lane)
{
    struct hd_request *group = lane->queue;

    lane->queue = NULL;
    lane->tail = &lane->queue;
    lane->is_woken = false;
    lane->has_leader = true;
    pthread_mutex_unlock(&lane->lock);
    lead(lane, group);
    pthread_mutex_lock(&lane->lock);
    group = release_waiting(group);
    lane->has_leader = false;
    pthread_cond_broadcast(&lane->changed);
    if (group) {
        pthread_mutex_unlock(&lane->lock);
        answer(group);
        pthread_mutex_lock(&lane->lock);
    }
}

/* ---- callers ---- */

static void enqueue(struct hd_lane *lane, struct hd_request *request)
{
    request->next = NULL;
    *lane->tail = request;
    lane->tail = &request->next;
}

int hd_lane_run(struct hd_store *store, struct hd_request *request, struct hd_fault *fault)
{
    struct hd_lane *lane = lane_of(store, request->thread);

    request->done = NULL;
    pthread_mutex_lock(&lane->lock);
    enqueue(lane, request);
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

static void *work(void *arg)
{
    struct hd_lane *lane = arg;

    pthread_mutex_lock(&lane->lock);
    while (!lane->is_closing || lane->queue) {
        if (lane->queue && !lane->has_leader && (lane->is_woken || lane->is_closing))
            lead_once(lane);
        else
            pthread_cond_wait(&lane->changed, &lane->lock);
    }
    pthread_mutex_unlock(&lane->lock);
    return NULL;
}

int hd_lane_queue(struct hd_store *store, struct hd_request *request)
{
    struct hd_lane *lane = lane_of(store, request->thread);
    int err = 0;

    pthread_mutex_lock(&lane->lock);
    if (!lane->has_worker) {
        lane->has_worker = pthread_create(&lane->worker, NULL, work, lane) == 0;
        err = lane->has_worker ? 0 : HD_ENOMEM;
    }
    if (!err)
        enqueue(lane, request);
    pthread_mutex_unlock(&lane->lock);
    return err;
}

void hd_lanes_wake(struct hd_store *store)
{
    for (unsigned i = 0; i < store->lane_count; i++) {
        struct hd_lane *lane = &store->lanes[i];

        pthread_mutex_lock(&lane->lock);
        if (lane->queue) {
            lane->is_woken = true;
            pthread_cond_broadcast(&lane->changed);
        }
        pthread_mutex_unlock(&lane->lock);
    }
}

int hd_lane_job(struct hd_store *store, struct hd_slice thread, hd_job_fn fn, void *arg,
                struct hd_fault *fault)
{
    struct hd_request request = {.kind = HD_REQUEST_JOB, .thread = thread};

    request.as.job.fn = fn;
    request.as.job.arg = arg;
    return hd_lane_run(store, &request, fault);
}

/* ---- opening and closing ---- */

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
        lane->tail = &lane->queue;
        pthread_mutex_init(&lane->lock, NULL);
        pthread_cond_init(&lane->changed, NULL);
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
    hd_cache_fini(&lane->cache);
    hd_batch_fini(&lane->batch);
    hd_buf_fini(&lane->scratch);
    pthread_cond_destroy(&lane->changed);
    pthread_mutex_destroy(&lane->lock);
}

void hd_lanes_close(struct hd_store *store)
{
    for (unsigned i = 0; i < store->lane_count; i++)
        lane_close(&store->lanes[i]);
    hd_free(store->lanes);
    store->lanes = NULL;
    store->lane_count = 0;
}
