/*
 * The workers of a language. Each slot has one; a slot whose worker was lost gets a new one after a
 * growing delay. A worker to be replaced, because files have changed or it uses too much memory,
 * gives its slot to a new one, and ends when that is ready and it is idle.
 */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "runtime/runtime_internal.h"

#define FIRST_DELAY_US INT64_C(500000)
#define LONGEST_DELAY_US INT64_C(30000000)
#define SAME_CHANGE_US INT64_C(1000000)
#define STEADY_US INT64_C(30000000) /* a worker ready for this long has not failed at start */

int hd_pool_open(struct hd_runtime *runtime, enum hd_rt_language language)
{
    const struct hd_rt_program *program = &runtime->settings->programs[language];
    struct hd_rt_pool *pool = &runtime->pools[language];
    int count = program->argv && program->argv[0] ? program->workers : 0;

    pool->waiting_tail = &pool->waiting;
    pool->deserted_us = hd_runtime_now(runtime);
    if (count > HD_RT_MAX_WORKERS)
        return HD_ELIMIT;
    if (count <= 0)
        return 0;
    pool->slots = hd_calloc((size_t)count, sizeof(*pool->slots));
    if (!pool->slots)
        return HD_ENOMEM;
    pool->slot_count = count;
    return 0;
}

void hd_pool_close(struct hd_runtime *runtime, enum hd_rt_language language)
{
    hd_free(runtime->pools[language].slots);
}

/* ---- slots ------------------------------------------------------------ */

static int64_t delay_of(unsigned failures)
{
    int64_t delay = FIRST_DELAY_US;

    for (unsigned i = 0; i < failures && delay < LONGEST_DELAY_US; i++)
        delay *= 2;
    return delay < LONGEST_DELAY_US ? delay : LONGEST_DELAY_US;
}

static void wait_longer(struct hd_runtime *runtime, struct hd_rt_slot *slot, int64_t now)
{
    slot->worker = NULL;
    slot->start_us = now + delay_of(slot->failures);
    slot->failures++;
    hd_runtime_wake(runtime);
}

/* A new worker would be refused for the same reason; a reload retries. */
static void stop_slot(struct hd_rt_slot *slot)
{
    slot->worker = NULL;
    slot->start_us = INT64_MAX;
}

/* There is no worker, and none will start. */
static bool is_hopeless(const struct hd_runtime *runtime, const struct hd_rt_pool *pool)
{
    if (runtime->settings->listen || pool->slot_count == 0)
        return false;
    for (int i = 0; i < pool->slot_count; i++)
        if (pool->slots[i].worker || pool->slots[i].start_us != INT64_MAX)
            return false;
    return true;
}

static void start_one(struct hd_runtime *runtime, enum hd_rt_language language, int i, int64_t now)
{
    struct hd_rt_pool *pool = &runtime->pools[language];
    struct hd_rt_slot *slot = &pool->slots[i];
    struct heddle_error fault = {0};

    if (hd_rt_worker_start(runtime, language, i, &slot->worker, &fault) == 0) {
        hd_log(HD_LOG_DEBUG, slot->worker->name, "started in slot %d, after %u failures", i,
               slot->failures);
        return;
    }
    (void)snprintf(pool->why, sizeof(pool->why), "%s", fault.text);
    wait_longer(runtime, slot, now);
    hd_log(HD_LOG_ERROR, hd_rt_language_names[language], "%s; retrying in %lld ms", fault.text,
           (long long)(slot->start_us - now) / 1000);
}

void hd_pool_staff(struct hd_runtime *runtime, enum hd_rt_language language, int64_t now)
{
    struct hd_rt_pool *pool = &runtime->pools[language];

    if (!runtime->is_started || runtime->is_draining || runtime->is_destroyed ||
        runtime->is_suspended)
        return;
    for (int i = 0; i < pool->slot_count; i++) {
        if (pool->slots[i].worker || now < pool->slots[i].start_us)
            continue;
        pool->restarts += pool->slots[i].failures > 0;
        start_one(runtime, language, i, now);
    }
}

static bool is_usable(const struct hd_rt_worker *worker)
{
    return worker->state == HD_WORKER_READY && worker->link && !worker->is_replaced;
}

static bool has_ready(const struct hd_runtime *runtime, enum hd_rt_language language)
{
    for (const struct hd_rt_worker *worker = runtime->workers; worker; worker = worker->next)
        if (worker->language == language && is_usable(worker))
            return true;
    return false;
}

void hd_pool_lost(struct hd_rt_worker *worker, int64_t now)
{
    struct hd_runtime *runtime = worker->runtime;
    struct hd_rt_pool *pool = &runtime->pools[worker->language];
    struct hd_rt_slot *slot = worker->slot >= 0 ? &pool->slots[worker->slot] : NULL;
    bool is_meant = worker->is_replaced || worker->age != HD_WORKER_FINE || runtime->is_draining ||
                    runtime->is_destroyed;

    if (!pool->deserted_us && !has_ready(runtime, worker->language))
        pool->deserted_us = now;
    if (!is_meant)
        (void)snprintf(pool->why, sizeof(pool->why), "%s %s", worker->name, worker->why);
    if (!slot || slot->worker != worker) {
        hd_log(is_meant ? HD_LOG_INFO : HD_LOG_WARN, worker->name, "%s", worker->why);
        return;
    }
    if (runtime->is_draining || runtime->is_destroyed) {
        slot->worker = NULL;
        return;
    }
    if (worker->is_refused) {
        stop_slot(slot);
        hd_runtime_wake(runtime);
        hd_log(HD_LOG_ERROR, worker->name, "%s; it is not restarted before the server is",
               worker->why);
        return;
    }
    if (worker->ready_us && now - worker->ready_us > STEADY_US)
        slot->failures = 0;
    wait_longer(runtime, slot, now);
    hd_log(HD_LOG_WARN, worker->name, "%s; starting another one in %lld ms", worker->why,
           (long long)(slot->start_us - now) / 1000);
}

void hd_pool_replace(struct hd_rt_worker *worker, enum hd_rt_worker_age age)
{
    struct hd_rt_slot *slot = &worker->runtime->pools[worker->language].slots[worker->slot];

    worker->age = age;
    slot->worker = NULL;
    slot->start_us = 0;
    slot->failures = 0;
    hd_runtime_wake(worker->runtime);
}

void hd_runtime_reload(struct hd_runtime *runtime, enum hd_rt_language language)
{
    struct hd_rt_pool *pool = &runtime->pools[language];

    if (!runtime->is_started || runtime->is_draining || runtime->is_destroyed)
        return;
    for (int i = 0; i < pool->slot_count; i++) {
        struct hd_rt_worker *worker = pool->slots[i].worker;

        pool->slots[i].failures = 0;
        pool->slots[i].start_us = 0;
        if (!worker || worker->state == HD_WORKER_ENDING)
            continue;
        hd_pool_replace(worker, HD_WORKER_OLD);
        if (worker->state != HD_WORKER_READY) /* it would become ready with the old files */
            hd_rt_worker_end(worker, "is no longer needed");
    }
    hd_runtime_wake(runtime);
}

void hd_pool_changed(struct hd_rt_worker *worker, int64_t now)
{
    const struct hd_rt_worker *newest = NULL;

    if (worker->slot >= 0)
        newest = worker->runtime->pools[worker->language].slots[worker->slot].worker;
    if (worker->state != HD_WORKER_READY || worker->is_replaced)
        return;
    /* Every worker reports the same change: a newer worker has the new files already. */
    if (newest && newest != worker && now - newest->since_us < SAME_CHANGE_US)
        return;
    hd_runtime_reload(worker->runtime, worker->language);
}

void hd_pool_retire(struct hd_rt_worker *worker)
{
    if (worker->state == HD_WORKER_READY && worker->is_replaced && worker->call_count == 0)
        hd_rt_worker_drain(worker);
}

void hd_pool_ready(struct hd_rt_worker *worker)
{
    struct hd_runtime *runtime = worker->runtime;

    runtime->pools[worker->language].deserted_us = 0;
    for (struct hd_rt_worker *old = runtime->workers; old; old = old->next)
        if (old != worker && old->language == worker->language && old->slot == worker->slot &&
            old->slot >= 0 && old->age != HD_WORKER_FINE)
            old->is_replaced = true;
    hd_runtime_wake(runtime);
}

/* ---- calls ---------------------------------------------------------------- */

/* Which of two workers would run a call sooner. */
static bool is_better(const struct hd_rt_worker *a, const struct hd_rt_worker *b)
{
    if (a->age != b->age)
        return a->age < b->age;
    return a->run_count != b->run_count ? a->run_count < b->run_count
                                        : a->call_count < b->call_count;
}

static bool has_room(const struct hd_rt_worker *worker, bool is_run)
{
    int jobs = worker->runtime->settings->jobs;

    if (!is_usable(worker) || hd_link_unsent(worker->link) > HD_RT_MAX_UNSENT)
        return false;
    if (!is_run)
        return true;
    return worker->age != HD_WORKER_HEAVY && (jobs <= 0 || worker->run_count < (size_t)jobs);
}

static struct hd_rt_worker *find_room(struct hd_runtime *runtime, enum hd_rt_language language,
                                      bool is_run)
{
    struct hd_rt_worker *best = NULL;

    for (struct hd_rt_worker *worker = runtime->workers; worker; worker = worker->next)
        if (worker->language == language && has_room(worker, is_run) &&
            (!best || is_better(worker, best)))
            best = worker;
    return best;
}

struct hd_rt_worker *hd_pool_pick(struct hd_runtime *runtime, enum hd_rt_language language,
                                  bool is_run)
{
    /* Calls run in order: none overtakes those that wait. */
    if (is_run)
        for (struct hd_rt_call *call = runtime->pools[language].waiting; call; call = call->next)
            if (call->is_run)
                return NULL;
    return find_room(runtime, language, is_run);
}

void hd_pool_feed(struct hd_runtime *runtime, enum hd_rt_language language)
{
    struct hd_rt_call *call = runtime->pools[language].waiting;
    bool are_full = false;

    while (call && !(are_full && runtime->pools[language].waiting_others == 0)) {
        struct hd_rt_call *next = call->next;
        struct hd_rt_worker *worker = NULL;

        if (!call->is_run || !are_full)
            worker = find_room(runtime, language, call->is_run);
        if (worker)
            hd_rt_call_assign(call, worker);
        else if (!call->is_run)
            break; /* no worker exists */
        else
            are_full = true;
        call = next;
    }
}

static void lose_patience(struct hd_runtime *runtime, enum hd_rt_language language, int64_t now)
{
    struct hd_rt_pool *pool = &runtime->pools[language];
    struct hd_rt_call *call = pool->waiting;
    char text[500];

    (void)snprintf(text, sizeof(text), "no %s worker is ready%s%s", hd_rt_language_names[language],
                   pool->why[0] ? ": " : "", pool->why);
    while (call) {
        struct hd_rt_call *next = call->next;
        int64_t since = call->made_us > pool->deserted_us ? call->made_us : pool->deserted_us;

        if (now - since >= call->patience_us || is_hopeless(runtime, pool))
            hd_rt_call_lose(call, text);
        call = next;
    }
}

void hd_pool_tick(struct hd_runtime *runtime, enum hd_rt_language language, int64_t now)
{
    struct hd_rt_pool *pool = &runtime->pools[language];

    if (!pool->deserted_us && !has_ready(runtime, language))
        pool->deserted_us = now;
    hd_pool_feed(runtime, language);
    hd_pool_staff(runtime, language, now);
    if (pool->deserted_us && pool->waiting)
        lose_patience(runtime, language, now);
}

bool hd_pool_is_busy(const struct hd_runtime *runtime, enum hd_rt_language language)
{
    const struct hd_rt_pool *pool = &runtime->pools[language];

    for (int i = 0; i < pool->slot_count; i++)
        if (!pool->slots[i].worker && pool->slots[i].start_us != INT64_MAX)
            return true;
    return pool->waiting != NULL;
}

struct hd_rt_counts hd_runtime_counts(const struct hd_runtime *runtime,
                                      enum hd_rt_language language)
{
    const struct hd_rt_pool *pool = &runtime->pools[language];
    struct hd_rt_counts counts = {.calls = runtime->call_count[language],
                                  .restarts = pool->restarts};

    for (const struct hd_rt_worker *worker = runtime->workers; worker; worker = worker->next)
        counts.workers += worker->language == language && is_usable(worker);
    for (int i = 0; i < pool->slot_count; i++)
        counts.starting += pool->slots[i].start_us != INT64_MAX &&
                           (!pool->slots[i].worker || !is_usable(pool->slots[i].worker));
    return counts;
}
