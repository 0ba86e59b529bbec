#include "gate/limits.h"

#include <heddle.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <uv.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/map.h"
#include "cluster/cluster.h"
#include "records/record.h"

#define SECOND INT64_C(1000000)
#define MINUTE (60 * SECOND)
#define MAX_PRINCIPALS ((size_t)1 << 20)

enum {
    TIDY_FROM = 1024,   /* how many are remembered before the idle ones are looked for */
    FRESH_SECONDS = 30, /* how long a measurement with room holds */
    FULL_SECONDS = 5,   /* and one without */
    BUSY_SECONDS = 1,   /* until a run or a stream may have ended */
    PAGE = 500
};

struct principal_usage {
    int64_t count[HD_LIMITS]; /* runs and streams */
    int64_t requests_until;   /* the time at which all requests so far would have been even */
    int64_t bytes;
    int64_t measured_at; /* 0: not yet, or something was deleted since */
    bool is_measured;    /* by one caller, now */
    bool is_stale;       /* something was deleted meanwhile */
};

struct hd_limits {
    struct hd_limits_config config;
    struct hd_cluster *cluster;
    uv_mutex_t lock;
    struct hd_map map; /* of struct principal_usage, by principal */
    size_t tidy_at;
    _Atomic uint64_t refused[HD_LIMITS];
};

static const char *const names[HD_LIMITS] = {"requests", "runs", "streams", "bytes"};

int hd_limits_create(const struct hd_limits_config *config, struct hd_limits **out)
{
    struct hd_limits *limits = hd_calloc(1, sizeof(*limits));

    if (!limits)
        return HD_ENOMEM;
    if (uv_mutex_init(&limits->lock)) {
        hd_free(limits);
        return HD_ENOMEM;
    }
    limits->config = *config;
    limits->tidy_at = TIDY_FROM;
    hd_map_init(&limits->map, MAX_PRINCIPALS);
    *out = limits;
    return 0;
}

void hd_limits_destroy(struct hd_limits *limits)
{
    struct hd_slice key;
    void *usage;
    size_t pos = 0;

    if (!limits)
        return;
    while (hd_map_next(&limits->map, &pos, &key, &usage))
        hd_free(usage);
    hd_map_fini(&limits->map);
    uv_mutex_destroy(&limits->lock);
    hd_free(limits);
}

void hd_limits_set_cluster(struct hd_limits *limits, struct hd_cluster *cluster)
{
    limits->cluster = cluster;
}

const char *hd_limit_name(enum hd_limit limit)
{
    return names[limit];
}

uint64_t hd_limits_refused(const struct hd_limits *limits, enum hd_limit limit)
{
    return limits ? atomic_load_explicit(&limits->refused[limit], memory_order_relaxed) : 0;
}

static bool applies(const struct hd_limits *limits, struct hd_slice principal, enum hd_limit limit)
{
    return limits && principal.len > 0 && limits->config.most[limit] > 0;
}

/* What this server allows: in a cluster, at least one. */
static int64_t share_of(const struct hd_limits *limits, enum hd_limit limit)
{
    int64_t most = limits->config.most[limit], servers = (int64_t)hd_cluster_size(limits->cluster);

    return most > servers ? most / servers : 1;
}

static int count_refusal(struct hd_limits *limits, enum hd_limit limit, int64_t seconds)
{
    atomic_fetch_add_explicit(&limits->refused[limit], 1, memory_order_relaxed);
    return seconds < 1 ? 1 : (int)seconds;
}

/* ---- principals in memory ---------------------------------------------- */

static bool is_idle(const struct principal_usage *usage, int64_t now)
{
    return usage->count[HD_LIMIT_RUNS] == 0 && usage->count[HD_LIMIT_STREAMS] == 0 &&
           usage->requests_until <= now && !usage->is_measured &&
           usage->measured_at + FRESH_SECONDS * SECOND <= now;
}

/* Drops idle principals; only from time to time, to keep the cost low. */
static void tidy(struct hd_limits *limits, int64_t now)
{
    struct hd_map kept;
    struct hd_slice key;
    void *usage;
    size_t pos = 0;

    hd_map_init(&kept, MAX_PRINCIPALS);
    while (hd_map_next(&limits->map, &pos, &key, &usage)) {
        if (!is_idle(usage, now) && hd_map_put(&kept, key, usage)) {
            hd_map_fini(&kept); /* no memory: all stay */
            return;
        }
    }
    for (pos = 0; hd_map_next(&limits->map, &pos, &key, &usage);) {
        if (!hd_map_get(&kept, key))
            hd_free(usage);
    }
    hd_map_fini(&limits->map);
    limits->map = kept;
    limits->tidy_at = 2 * kept.count > TIDY_FROM ? 2 * kept.count : TIDY_FROM;
}

/* NULL: no memory. */
static struct principal_usage *usage_of(struct hd_limits *limits, struct hd_slice principal)
{
    struct principal_usage *usage = hd_map_get(&limits->map, principal);

    if (usage)
        return usage;
    if (limits->map.count >= limits->tidy_at)
        tidy(limits, hd_clock_monotonic_us());
    usage = hd_calloc(1, sizeof(*usage));
    if (usage && hd_map_put(&limits->map, principal, usage)) {
        hd_free(usage);
        return NULL;
    }
    return usage;
}

/* ---- requests ---------------------------------------------------------- */

/*
 * Each request moves the time at which they would have been even by its share of a minute;
 * more than a minute ahead is too much.
 */
int hd_limits_request(struct hd_limits *limits, struct hd_slice principal)
{
    int64_t now = hd_clock_monotonic_us(), share, until;
    struct principal_usage *usage;
    int retry = 0;

    if (!applies(limits, principal, HD_LIMIT_REQUESTS))
        return 0;
    share = MINUTE / share_of(limits, HD_LIMIT_REQUESTS);
    uv_mutex_lock(&limits->lock);
    usage = usage_of(limits, principal);
    if (usage) {
        until = (usage->requests_until > now ? usage->requests_until : now) + share;
        if (until > now + MINUTE)
            retry = count_refusal(limits, HD_LIMIT_REQUESTS,
                                  (until - now - MINUTE + SECOND - 1) / SECOND);
        else
            usage->requests_until = until;
    }
    uv_mutex_unlock(&limits->lock);
    return retry;
}

/* ---- runs and streams -------------------------------------------------- */

static int take_slot(struct hd_limits *limits, struct hd_slice principal, enum hd_limit limit,
                     bool is_forced)
{
    struct principal_usage *usage;
    int64_t most;
    int retry = 0;

    if (!applies(limits, principal, limit))
        return 0;
    most = limit == HD_LIMIT_STREAMS ? share_of(limits, limit) : limits->config.most[limit];
    uv_mutex_lock(&limits->lock);
    usage = usage_of(limits, principal);
    if (usage && !is_forced && usage->count[limit] >= most)
        retry = count_refusal(limits, limit, BUSY_SECONDS);
    else if (usage)
        usage->count[limit]++;
    uv_mutex_unlock(&limits->lock);
    return retry;
}

int hd_limits_take(struct hd_limits *limits, struct hd_slice principal, enum hd_limit limit)
{
    bool is_elsewhere = limit == HD_LIMIT_RUNS && hd_limits_cluster_runs(limits, principal) > 0;

    return take_slot(limits, principal, limit, is_elsewhere);
}

int64_t hd_limits_cluster_runs(const struct hd_limits *limits, struct hd_slice principal)
{
    bool is_counted =
        applies(limits, principal, HD_LIMIT_RUNS) && hd_cluster_is_on(limits->cluster);

    return is_counted ? limits->config.most[HD_LIMIT_RUNS] : 0;
}

int hd_limits_refuse_run(struct hd_limits *limits)
{
    return count_refusal(limits, HD_LIMIT_RUNS, BUSY_SECONDS);
}

void hd_limits_hold(struct hd_limits *limits, struct hd_slice principal, enum hd_limit limit)
{
    (void)take_slot(limits, principal, limit, true);
}

void hd_limits_give(struct hd_limits *limits, struct hd_slice principal, enum hd_limit limit)
{
    struct principal_usage *usage;

    if (!applies(limits, principal, limit))
        return;
    uv_mutex_lock(&limits->lock);
    usage = hd_map_get(&limits->map, principal);
    /* Not there: no memory when it was taken. */
    if (usage && usage->count[limit] > 0)
        usage->count[limit]--;
    uv_mutex_unlock(&limits->lock);
}

/* ---- bytes ------------------------------------------------------------- */

static int add_threads(struct heddle *store, struct hd_slice principal, int64_t *sum,
                       struct heddle_error *fault)
{
    const struct heddle_bytes owner = {principal.ptr, principal.len};
    struct heddle_bytes after = {NULL, 0};
    struct heddle_threads *page = NULL, *next;
    size_t count = PAGE;
    int err = 0;

    while (!err && count == PAGE) {
        err = heddle_list_threads(store, owner, after, PAGE, &next, fault);
        if (err)
            break;
        heddle_threads_free(page); /* only now: `after` was in it */
        page = next;
        count = page->count;
        for (size_t i = 0; !err && i < count; i++) {
            struct heddle_usage usage = {0};

            err = heddle_thread_usage(store, &page->threads[i].thread, &usage, fault);
            *sum += usage.bytes;
        }
        if (count > 0)
            after = page->threads[count - 1].thread.id;
    }
    heddle_threads_free(page);
    return err;
}

static int on_item(void *arg, const struct hd_item_rec *item)
{
    *(int64_t *)arg += (int64_t)(item->ns.len + item->key.len + item->value.len);
    return 0;
}

/* Bytes of the records themselves. */
static int on_thread_size(void *arg, const struct hd_thread_rec *thread)
{
    *(int64_t *)arg += (int64_t)(thread->metadata.len + thread->config.len +
                                 thread->interrupts.len + thread->error.len);
    return 0;
}

static int on_cron(void *arg, const struct hd_cron_rec *cron)
{
    *(int64_t *)arg += (int64_t)(cron->metadata.len + cron->payload.len);
    return 0;
}

/* Every version of an assistant is kept. */
struct versions {
    struct heddle *store;
    struct heddle_error *fault;
    int64_t sum;
};

static int on_version(void *arg, const struct hd_assistant_rec *version)
{
    struct versions *versions = arg;

    versions->sum += (int64_t)(version->name.len + version->description.len + version->config.len +
                               version->context.len + version->metadata.len);
    return 0;
}

static int on_assistant(void *arg, const struct hd_assistant_rec *assistant)
{
    struct versions *versions = arg;

    return hd_assistant_versions_scan(versions->store, assistant->principal, assistant->id,
                                      on_version, versions, versions->fault);
}

int hd_limits_principal_bytes(struct heddle *store, struct hd_slice principal, int64_t *out,
                              struct heddle_error *fault)
{
    struct versions versions = {.store = store, .fault = fault};
    int64_t sum = 0;
    int err = add_threads(store, principal, &sum, fault);

    if (!err)
        err = hd_threads_scan(store, principal, false, on_thread_size, &sum, fault);
    if (!err)
        err = hd_assistants_scan(store, principal, on_assistant, &versions, fault);
    if (!err)
        err = hd_crons_scan(store, principal, on_cron, &sum, fault);
    if (!err)
        err = hd_items_scan(store, principal, hd_slice(NULL, 0), true, on_item, &sum, fault);
    sum += versions.sum;
    if (!err)
        *out = sum;
    return err;
}

/* True if the caller must measure; otherwise *bytes is the last measurement. */
static bool begin_measuring(struct hd_limits *limits, struct hd_slice principal, int64_t *bytes)
{
    int64_t most = limits->config.most[HD_LIMIT_BYTES], now = hd_clock_monotonic_us();
    struct principal_usage *usage;
    bool is_ours = false;

    uv_mutex_lock(&limits->lock);
    usage = usage_of(limits, principal);
    if (usage) {
        int64_t fresh = (usage->bytes < most ? FRESH_SECONDS : FULL_SECONDS) * SECOND;

        is_ours =
            !usage->is_measured && (usage->measured_at == 0 || usage->measured_at + fresh <= now);
        if (is_ours) {
            usage->is_measured = true;
            usage->is_stale = false;
        }
        *bytes = usage->bytes;
    }
    uv_mutex_unlock(&limits->lock);
    return is_ours;
}

static void end_measuring(struct hd_limits *limits, struct hd_slice principal, int err,
                          int64_t bytes)
{
    struct principal_usage *usage;

    uv_mutex_lock(&limits->lock);
    usage = hd_map_get(&limits->map, principal);
    if (usage) {
        usage->is_measured = false;
        if (!err) {
            usage->bytes = bytes;
            usage->measured_at = usage->is_stale ? 0 : hd_clock_monotonic_us();
        }
    }
    uv_mutex_unlock(&limits->lock);
}

int hd_limits_room(struct hd_limits *limits, struct heddle *store, struct hd_slice principal,
                   int *retry, struct heddle_error *fault)
{
    int64_t bytes = 0;
    int err = 0;

    if (!applies(limits, principal, HD_LIMIT_BYTES)) {
        *retry = 0;
        return 0;
    }
    if (begin_measuring(limits, principal, &bytes)) {
        err = hd_limits_principal_bytes(store, principal, &bytes, fault);
        end_measuring(limits, principal, err, bytes);
    }
    if (!err)
        *retry = bytes < limits->config.most[HD_LIMIT_BYTES]
                     ? 0
                     : count_refusal(limits, HD_LIMIT_BYTES, FULL_SECONDS);
    return err;
}

void hd_limits_freed(struct hd_limits *limits, struct hd_slice principal)
{
    struct principal_usage *usage;

    if (!applies(limits, principal, HD_LIMIT_BYTES))
        return;
    uv_mutex_lock(&limits->lock);
    usage = hd_map_get(&limits->map, principal);
    if (usage) {
        usage->measured_at = 0;
        usage->is_stale = true;
    }
    uv_mutex_unlock(&limits->lock);
}
