#include "schedule/sweep.h"

#include <heddle.h>
#include <uv.h>

#include "app/app.h"
#include "app/defer.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "cluster/cluster.h"
#include "config/config.h"
#include "events/event_log.h"
#include "records/participants.h"
#include "records/record.h"
#include "run/run_commit.h"
#include "store/rows.h"

#define MAX_THREADS 100 /* of one sweep */
#define MAX_LOOKED 1000
#define MAX_BYTES ((int64_t)32 << 20)
#define MAX_ITEMS 500
#define MAX_PAGES 500
#define MAX_INVITATIONS 500
#define MORE_MS 10
#define MAX_ARENA ((size_t)64 << 20)

/* ---- threads ---------------------------------------------------------- */

struct thread_sweep {
    struct hd_app *app;
    struct hd_sweep *sweep;
    struct heddle_error *fault;
    size_t looked, changed;
};

static int note_swept(struct hd_sweep *sweep, const struct hd_thread_rec *thread)
{
    struct hd_swept *swept = hd_arena_calloc(sweep->arena, 1, sizeof(*swept));

    if (!swept || hd_arena_copy(sweep->arena, thread->principal, &swept->principal) ||
        hd_arena_copy(sweep->arena, thread->id, &swept->thread_id))
        return HD_ENOMEM;
    swept->next = sweep->threads;
    sweep->threads = swept;
    return 0;
}

static int on_expired_thread(void *arg, const struct hd_thread_rec *thread)
{
    struct thread_sweep *s = arg;
    struct heddle_error told = {0};
    struct hd_prune prune;
    struct hd_ttl ttl;
    int err;

    if (s->changed == MAX_THREADS || s->sweep->removed.bytes > MAX_BYTES) {
        s->sweep->has_more = true;
        return 1;
    }
    if (s->looked++ == MAX_LOOKED)
        return 1;
    if (thread->status == HD_THREAD_BUSY)
        return 0; /* the end of its run renews the TTL */
    ttl = hd_ttl_read(thread->ttl);
    prune =
        (struct hd_prune){.strategy = ttl.strategy, .keep_last = ttl.keep_last, .is_over = true};
    err = hd_thread_prune(s->app->store, thread, &prune, &s->sweep->removed, &told);
    if (err == HD_ECONFLICT)
        return 0; /* changed since: in use */
    if (!err && ttl.strategy == HD_TTL_DELETE)
        err = note_swept(s->sweep, thread);
    else if (!err)
        s->sweep->pruned++;
    s->changed++;
    return told.code ? hd_error_set(s->fault, err, "%s", told.text) : err;
}

static int sweep_threads(struct hd_app *app, int64_t now, struct hd_sweep *sweep,
                         struct heddle_error *fault)
{
    struct thread_sweep s = {.app = app, .sweep = sweep, .fault = fault};

    return hd_threads_expired(app->store, now, on_expired_thread, &s, fault);
}

/* ---- items ------------------------------------------------------------ */

struct item_sweep {
    struct hd_batch_builder batch;
    size_t count;
};

static int on_item(void *arg, const struct hd_item_rec *item)
{
    struct item_sweep *s = arg;
    struct hd_item_rec copy = *item;
    int err;

    if (s->count == MAX_ITEMS)
        return 1;
    s->count++;
    err = hd_arena_copy(&s->batch.arena, item->principal, &copy.principal);
    if (!err)
        err = hd_arena_copy(&s->batch.arena, item->ns, &copy.ns);
    if (!err)
        err = hd_arena_copy(&s->batch.arena, item->key, &copy.key);
    return err ? err : hd_item_expire(&s->batch, &copy);
}

static int sweep_items(struct hd_app *app, int64_t now, struct hd_sweep *sweep,
                       struct heddle_error *fault)
{
    struct item_sweep s = {.count = 0};
    int err;

    hd_batch_init(&s.batch);
    err = hd_items_expired(app->store, now, on_item, &s, fault);
    if (!err)
        err = hd_items_apply(app->store, HD_S("items"), &s.batch, fault);
    hd_batch_fini(&s.batch);
    sweep->items += err ? 0 : (int64_t)s.count;
    sweep->has_more = sweep->has_more || s.count == MAX_ITEMS;
    return err;
}

/* ---- events ----------------------------------------------------------- */

static int on_expired_page(void *arg, size_t which, const struct hd_cell *cells)
{
    struct hd_batch_builder *batch = arg;
    struct hd_cell key[3] = {cells[HD_EVENT_PAGES_PRINCIPAL], cells[HD_EVENT_PAGES_THREAD],
                             cells[HD_EVENT_PAGES_FIRST]};
    int err = hd_arena_copy(&batch->arena, key[0].bytes, &key[0].bytes);

    (void)which;
    if (!err)
        err = hd_arena_copy(&batch->arena, key[1].bytes, &key[1].bytes);
    return err ? err : hd_batch_delete(batch, HD_EVENT_PAGES, key, HD_COUNT(key));
}

static int sweep_pages(struct hd_app *app, int64_t now, struct hd_sweep *sweep,
                       struct heddle_error *fault)
{
    const struct hd_cell high = hd_cell_int(now - app->config->stream_retention_us);
    const struct hd_query query = {.table = HD_EVENT_PAGES,
                                   .index = HD_EVENT_PAGES_BY_AGE,
                                   .high = &high,
                                   .limit = MAX_PAGES,
                                   .columns = 0};
    struct hd_batch_builder batch;
    struct hd_batch view;
    int err;

    hd_batch_init(&batch);
    err = hd_rows_read(app->store, &query, 1, on_expired_page, &batch, fault);
    view = hd_batch_view(&batch);
    if (!err && batch.count > 0)
        err = hd_rows_apply(app->store, HD_S("events"), &view, NULL, fault);
    sweep->removed.events += err ? 0 : (int64_t)batch.count;
    sweep->has_more = sweep->has_more || batch.count == MAX_PAGES;
    hd_batch_fini(&batch);
    return err;
}

/* ---- invitations ------------------------------------------------------ */

static int sweep_invitations(struct hd_app *app, int64_t now, struct hd_sweep *sweep,
                             struct heddle_error *fault)
{
    size_t count;
    int err = hd_invitations_expire(app->store, now, MAX_INVITATIONS, &count, fault);

    sweep->has_more = sweep->has_more || count == MAX_INVITATIONS;
    return err;
}

int hd_sweep(struct hd_app *app, int64_t now, struct hd_sweep *sweep, struct heddle_error *fault)
{
    int err = sweep_threads(app, now, sweep, fault);

    if (!err)
        err = sweep_items(app, now, sweep, fault);
    if (!err)
        err = sweep_pages(app, now, sweep, fault);
    if (!err)
        err = sweep_invitations(app, now, sweep, fault);
    return err;
}

/* ---- the sweeper (loop) ----------------------------------------------- */

struct hd_sweeper {
    struct hd_app *app;
    uv_timer_t timer;
    bool is_sweeping;
    bool is_stopped;
    void (*stopped)(void *ctx);
    void *stopped_ctx;

    struct hd_sweep_counts counts;

    /* State of the sweep; belongs to the store thread while is_sweeping. */
    struct hd_arena arena;
    struct hd_sweep sweep;
    int64_t began_at; /* monotonic */
    int err;
    struct heddle_error fault;
};

static void sweep_work(void *arg)
{
    struct hd_sweeper *s = arg;

    s->err = hd_sweep(s->app, hd_clock_now_us(), &s->sweep, &s->fault);
}

static void on_sweep_timer(uv_timer_t *timer);

static void set_timer(struct hd_sweeper *s, bool is_soon)
{
    int64_t interval = s->app->config->ttl_sweep_interval_us / 1000;

    if (is_soon && interval > MORE_MS)
        interval = MORE_MS;
    uv_timer_start(&s->timer, on_sweep_timer, interval > 0 ? (uint64_t)interval : 1, 0);
}

static void count(struct hd_sweeper *s)
{
    struct hd_sweep_counts *counts = &s->counts;

    counts->sweeps++;
    counts->failed += s->err != 0;
    counts->removed.threads += s->sweep.removed.threads;
    counts->removed.runs += s->sweep.removed.runs;
    counts->removed.events += s->sweep.removed.events;
    counts->removed.checkpoints += s->sweep.removed.checkpoints;
    counts->removed.writes += s->sweep.removed.writes;
    counts->removed.bytes += s->sweep.removed.bytes;
    counts->pruned += s->sweep.pruned;
    counts->items += s->sweep.items;
    counts->last_at = hd_clock_now_us();
    counts->last_took = hd_clock_monotonic_us() - s->began_at;
}

static void on_swept(void *arg)
{
    struct hd_sweeper *s = arg;

    s->is_sweeping = false;
    count(s);
    if (s->err)
        hd_log(HD_LOG_ERROR, "sweep", "%s", s->fault.code ? s->fault.text : hd_error_text(s->err));
    for (const struct hd_swept *t = s->sweep.threads; t; t = t->next) {
        struct hd_event_log *log =
            hd_event_log_find(s->app->event_logs, t->principal, t->thread_id);

        if (log)
            hd_event_log_drop(log);
    }
    hd_arena_fini(&s->arena);
    if (s->is_stopped)
        s->stopped(s->stopped_ctx);
    else
        set_timer(s, s->sweep.has_more && !s->err);
}

static void on_sweep_timer(uv_timer_t *timer)
{
    struct hd_sweeper *s = timer->data;

    if (!hd_cluster_is_leader(s->app->cluster)) {
        set_timer(s, false);
        return;
    }
    hd_arena_init(&s->arena, MAX_ARENA);
    s->sweep = (struct hd_sweep){.arena = &s->arena};
    s->fault = (struct heddle_error){0};
    s->began_at = hd_clock_monotonic_us();
    s->is_sweeping = true;
    if (hd_defer_run(s->app->defer, sweep_work, on_swept, s)) {
        s->is_sweeping = false;
        set_timer(s, false);
    }
}

int hd_sweeper_create(struct hd_app *app, struct hd_sweeper **out)
{
    struct hd_sweeper *s = hd_calloc(1, sizeof(*s));

    if (!s)
        return HD_ENOMEM;
    if (uv_timer_init(app->loop, &s->timer)) {
        hd_free(s);
        return HD_EIO;
    }
    s->timer.data = s;
    s->app = app;
    *out = s;
    return 0;
}

static void on_sweeper_closed(uv_handle_t *handle)
{
    hd_free(handle->data);
}

void hd_sweeper_destroy(struct hd_sweeper *s)
{
    if (s)
        uv_close((uv_handle_t *)&s->timer, on_sweeper_closed);
}

void hd_sweeper_start(struct hd_sweeper *s)
{
    if (s->app->config->ttl_sweep_interval_us > 0)
        set_timer(s, false);
}

struct hd_sweep_counts hd_sweeper_counts(const struct hd_sweeper *s)
{
    return s->counts;
}

int hd_sweeper_stop(struct hd_sweeper *s, void (*done)(void *ctx), void *ctx)
{
    s->is_stopped = true;
    s->stopped = done;
    s->stopped_ctx = ctx;
    uv_timer_stop(&s->timer);
    return s->is_sweeping ? 0 : HD_READY;
}
