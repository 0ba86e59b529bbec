#include "run/takeover.h"

#include <string.h>
#include <uv.h>
#include <xxhash.h>

#include "app/app.h"
#include "app/defer.h"
#include "base/alloc.h"
#include "base/log.h"
#include "base/vec.h"
#include "cluster/cluster.h"
#include "config/config.h"
#include "records/hold.h"
#include "records/record_internal.h"
#include "run/queue.h"
#include "run/run_recover.h"
#include "store/rows.h"
#include "webhook/webhook.h"

#define MAX_THREADS 64 /* of one visit to a store thread */
#define RETRY_MS 200   /* before a thread whose recovery met an error is visited again */
#define MAX_ARENA ((size_t)512 << 20)

/* A search for threads to take over. */
enum search_kind {
    OF_SERVER, /* the share of this server in the threads of one that is gone */
    ORPHANS,   /* all threads of servers that are gone */
    UNHELD,    /* runs in flight on threads that no server holds */
    REST       /* the oldest of the threads whose recovery met an error */
};

struct search {
    enum search_kind kind;
    char server[HD_UUID_SIZE]; /* of OF_SERVER */
};

struct recovered {
    struct hd_run_rec run;
    int64_t event_seq;
    bool is_continued;
};

struct hd_takeover {
    struct hd_app *app;
    uv_timer_t timer;
    HD_VEC(struct search) waiting;
    bool is_visiting;
    bool is_retiring; /* begins no search; the runs that one has found continue */
    bool is_stopped;
    bool has_rest; /* the timer searches for what other servers have left */
    uv_timer_t retry_timer;
    int timers;                         /* open */
    HD_VEC(struct hd_run_rest *) rests; /* oldest first; a visit has the first of them */
    uint64_t count;
};

/* One visit to a store thread, with its results. */
struct visit {
    struct hd_takeover *takeover;
    struct search search;
    struct hd_arena arena;
    HD_VEC(struct recovered) runs;
    struct hd_run_rest *rest; /* of a thread whose recovery met an error; or NULL */
    size_t threads;
    size_t webhooks; /* stored with the ends of runs that were given up */
    bool has_more;
    int err;
    struct heddle_error fault;
};

/* ---- store threads ---------------------------------------------------- */

static int keep_recovered(void *arg, const struct hd_run_rec *run, int64_t event_seq,
                          bool is_continued)
{
    struct visit *visit = arg;
    struct recovered kept = {.event_seq = event_seq, .is_continued = is_continued};
    int err = hd_run_rec_copy(&visit->arena, run, &kept.run);

    return err ? err : hd_vec_push(&visit->runs, kept);
}

static int take_thread(struct visit *visit, struct hd_slice principal, struct hd_slice thread,
                       const struct hd_hold *hold)
{
    int err;

    if (visit->threads == MAX_THREADS) {
        visit->has_more = true;
        return 1;
    }
    err = hd_run_recover_thread(visit->takeover->app, principal, thread, hold, keep_recovered,
                                visit, &visit->webhooks, &visit->rest, &visit->fault);
    visit->threads += !err;
    return err;
}

/* Returns whether the thread is in this server's share: its rank is that of the thread's hash. */
static bool is_in_share(struct hd_cluster *cluster, struct hd_slice thread)
{
    struct hd_cluster_server servers[HD_CLUSTER_MAX_SERVERS];
    size_t count = hd_cluster_list(cluster, servers), rank = 0;

    while (rank < count && !servers[rank].is_self)
        rank++;
    return count == 0 || XXH3_64bits(thread.ptr, thread.len) % count == rank;
}

static int on_orphan(void *arg, struct hd_slice principal, struct hd_slice thread,
                     const struct hd_hold *hold)
{
    struct visit *visit = arg;
    struct hd_cluster *cluster = visit->takeover->app->cluster;
    struct hd_cluster_server server;
    bool is_gone;
    int err;

    if (hd_slice_eq(hold->server, hd_cluster_self(cluster)) ||
        hd_cluster_find(cluster, hold->server, &server))
        return 0;
    if (visit->search.kind == OF_SERVER && !is_in_share(cluster, thread))
        return 0;
    /* The list may be older than a server that has just joined. */
    err = hd_cluster_check_gone(cluster, hold->server, &is_gone, &visit->fault);
    return err || !is_gone ? err : take_thread(visit, principal, thread, hold);
}

static int on_run_in_flight(void *arg, size_t which, const struct hd_cell *cells)
{
    struct visit *visit = arg;
    struct hd_slice principal = cells[HD_RUNS_PRINCIPAL].bytes;
    struct hd_slice thread = cells[HD_RUNS_THREAD].bytes;
    struct hd_arena arena;
    struct hd_hold hold;
    int err;

    (void)which;
    hd_arena_init(&arena, MAX_ARENA);
    err =
        hd_hold_read(visit->takeover->app->store, principal, thread, &arena, &hold, &visit->fault);
    if (!err && !hold.token)
        err = take_thread(visit, principal, thread, &hold);
    hd_arena_fini(&arena);
    return err;
}

static int search_unheld(struct visit *visit)
{
    static const enum hd_run_state states[] = {HD_RUN_STATE_RUNNING, HD_RUN_STATE_PENDING};
    int err = 0;

    for (size_t i = 0; !err && i < HD_COUNT(states); i++) {
        const struct hd_cell prefix = hd_cell_bytes(hd_slice_cstr(hd_run_state_name(states[i])));
        const struct hd_query query = {
            .table = HD_RUNS, .index = HD_RUNS_BY_STATUS, .prefix = &prefix, .prefix_count = 1};

        err = hd_rows_scan(visit->takeover->app->store, query, on_run_in_flight, visit,
                           &visit->fault);
    }
    return err;
}

static void run_search(void *arg)
{
    struct visit *visit = arg;
    struct heddle *store = visit->takeover->app->store;
    int err = 0;

    switch (visit->search.kind) {
    case OF_SERVER:
        err = hd_holds_of(store, hd_slice_cstr(visit->search.server), on_orphan, visit,
                          &visit->fault);
        break;
    case ORPHANS:
        err = hd_holds_all(store, on_orphan, visit, &visit->fault);
        break;
    case UNHELD:
        err = search_unheld(visit);
        break;
    case REST:
        if (visit->rest)
            err = hd_run_recover_rest(visit->rest, keep_recovered, visit, &visit->webhooks,
                                      &visit->fault);
        break;
    }
    visit->err = err > 0 ? 0 : err;
}

/* ---- loop ------------------------------------------------------------- */

static void next_visit(struct hd_takeover *takeover);

static struct visit *make_visit(struct hd_takeover *takeover, const struct search *search)
{
    struct visit *visit = hd_calloc(1, sizeof(*visit));

    if (!visit)
        return NULL;
    visit->takeover = takeover;
    visit->search = *search;
    hd_arena_init(&visit->arena, MAX_ARENA);
    return visit;
}

static void free_visit(struct visit *visit)
{
    hd_run_recover_free(visit->rest);
    hd_vec_fini(&visit->runs);
    hd_arena_fini(&visit->arena);
    hd_free(visit);
}

/* What could be stored continues, also after an error. */
static void continue_runs(struct visit *visit)
{
    struct hd_takeover *takeover = visit->takeover;
    struct hd_queue *queue = takeover->app->queue;

    hd_queue_pause_starts(queue);
    for (size_t i = 0; i < visit->runs.count; i++) {
        const struct recovered *kept = &visit->runs.items[i];
        int err = hd_queue_continue(queue, &kept->run, kept->event_seq, kept->is_continued);

        if (err)
            hd_log(HD_LOG_ERROR, "cluster", "run %.*s cannot continue here: %s",
                   (int)kept->run.run_id.len, kept->run.run_id.ptr, hd_error_text(err));
    }
    hd_queue_resume_starts(queue);
    if (visit->webhooks > 0)
        hd_webhooks_recover(takeover->app->webhooks);
    takeover->count += visit->threads;
    if (visit->threads > 0)
        hd_log(HD_LOG_INFO, "cluster", "took over %zu threads with %zu unfinished runs",
               visit->threads, visit->runs.count);
    if (visit->err)
        hd_log(HD_LOG_WARN, "cluster", "a search for runs to take over failed: %s",
               visit->fault.code ? visit->fault.text : hd_error_text(visit->err));
}

static void add_search(struct hd_takeover *takeover, enum search_kind kind, struct hd_slice server)
{
    struct search search = {.kind = kind};

    if (takeover->is_stopped || (takeover->is_retiring && kind != REST))
        return;
    if (server.len < sizeof(search.server))
        memcpy(search.server, server.ptr ? server.ptr : "", server.len);
    /* The search in every lease finds what is not remembered here. */
    if (hd_vec_push(&takeover->waiting, search))
        hd_log(HD_LOG_WARN, "cluster", "out of memory: a search for lost runs is delayed");
    next_visit(takeover);
}

/* After an error the thread is visited again. */
static void keep_rest(struct visit *visit)
{
    struct hd_takeover *takeover = visit->takeover;

    if (!visit->err) /* else it is freed with the visit */
        return;
    if (visit->rest && !takeover->is_stopped && hd_vec_push(&takeover->rests, visit->rest) == 0)
        visit->rest = NULL;
}

static void on_retry(uv_timer_t *timer)
{
    struct hd_takeover *takeover = timer->data;

    if (takeover->rests.count > 0)
        add_search(takeover, REST, hd_slice(NULL, 0));
}

static void retry_rests(struct hd_takeover *takeover)
{
    if (takeover->rests.count > 0 && !takeover->is_stopped)
        (void)uv_timer_start(&takeover->retry_timer, on_retry, RETRY_MS, 0); /* cannot fail */
}

static void on_visited(void *arg)
{
    struct visit *visit = arg;
    struct hd_takeover *takeover = visit->takeover;

    takeover->is_visiting = false;
    if (!takeover->is_stopped)
        continue_runs(visit);
    keep_rest(visit);
    retry_rests(takeover);
    if (visit->has_more && !visit->err)
        add_search(takeover, visit->search.kind, hd_slice_cstr(visit->search.server));
    free_visit(visit);
    next_visit(takeover);
}

/* The search may be the second one for the only rest. */
static void take_rest(struct hd_takeover *takeover, struct visit *visit)
{
    if (takeover->rests.count == 0)
        return;
    visit->rest = takeover->rests.items[0];
    takeover->rests.count--;
    memmove(takeover->rests.items, takeover->rests.items + 1,
            takeover->rests.count * sizeof(takeover->rests.items[0]));
}

static void next_visit(struct hd_takeover *takeover)
{
    struct visit *visit;

    if (takeover->is_visiting || takeover->is_stopped || takeover->waiting.count == 0)
        return;
    visit = make_visit(takeover, &takeover->waiting.items[0]);
    if (visit && visit->search.kind == REST)
        take_rest(takeover, visit);
    if (!visit || hd_defer_run(takeover->app->defer, run_search, on_visited, visit)) {
        if (visit) {
            visit->err = HD_ENOMEM;
            keep_rest(visit);
            free_visit(visit);
        }
        hd_log(HD_LOG_WARN, "cluster", "out of memory: a search for lost runs is delayed");
        return; /* the timer tries again */
    }
    takeover->waiting.count--;
    memmove(takeover->waiting.items, takeover->waiting.items + 1,
            takeover->waiting.count * sizeof(*takeover->waiting.items));
    takeover->is_visiting = true;
}

static void set_rest_timer(struct hd_takeover *takeover);

static void on_rest_timer(uv_timer_t *timer)
{
    struct hd_takeover *takeover = timer->data;

    if (takeover->has_rest || hd_cluster_is_leader(takeover->app->cluster))
        add_search(takeover, ORPHANS, hd_slice(NULL, 0));
    takeover->has_rest = false;
    set_rest_timer(takeover);
}

static void set_rest_timer(struct hd_takeover *takeover)
{
    int64_t lease = takeover->app->config->cluster_lease_us;
    uint64_t wait = (uint64_t)(takeover->has_rest ? lease / 2 : lease) / 1000;

    if (!takeover->is_retiring)
        (void)uv_timer_start(&takeover->timer, on_rest_timer, wait, 0); /* cannot fail */
}

/* After the others have had the time to take over their shares. */
static void search_rest_soon(struct hd_takeover *takeover)
{
    takeover->has_rest = true;
    set_rest_timer(takeover);
}

static void on_server_gone(void *ctx, struct hd_slice server)
{
    struct hd_takeover *takeover = ctx;

    add_search(takeover, OF_SERVER, server);
    search_rest_soon(takeover);
}

static void on_lead(void *ctx)
{
    struct hd_takeover *takeover = ctx;

    add_search(takeover, UNHELD, hd_slice(NULL, 0));
    search_rest_soon(takeover);
}

/* While another server may have taken over the threads of this one, its runs do nothing. */
static void on_doubt(void *ctx, bool in_doubt)
{
    struct hd_takeover *takeover = ctx;

    hd_queue_suspend(takeover->app->queue, in_doubt);
}

int hd_takeover_begin(struct hd_takeover *takeover, struct heddle_error *fault)
{
    static const enum search_kind kinds[] = {UNHELD, ORPHANS};
    int err = 0;

    if (!hd_cluster_is_leader(takeover->app->cluster))
        return 0;
    for (size_t i = 0; !err && i < HD_COUNT(kinds); i++) {
        const struct search search = {.kind = kinds[i]};
        bool has_more;

        do {
            struct visit *visit = make_visit(takeover, &search);

            if (!visit)
                return HD_ENOMEM;
            run_search(visit);
            err = visit->err ? hd_error_set(fault, visit->err, "%s", visit->fault.text) : 0;
            has_more = visit->has_more && !err;
            continue_runs(visit);
            free_visit(visit);
        } while (has_more);
    }
    return err;
}

uint64_t hd_takeover_count(const struct hd_takeover *takeover)
{
    return takeover->count;
}

/* ---- open and close --------------------------------------------------- */

int hd_takeover_create(struct hd_app *app, struct hd_takeover **out)
{
    struct hd_takeover *takeover = hd_calloc(1, sizeof(*takeover));
    int err;

    if (!takeover)
        return HD_ENOMEM;
    (void)uv_timer_init(app->loop, &takeover->timer); /* neither can fail */
    (void)uv_timer_init(app->loop, &takeover->retry_timer);
    uv_unref((uv_handle_t *)&takeover->timer);
    uv_unref((uv_handle_t *)&takeover->retry_timer);
    takeover->timer.data = takeover->retry_timer.data = takeover;
    takeover->timers = 2;
    takeover->app = app;
    takeover->waiting.limit = 2 * HD_CLUSTER_MAX_SERVERS;
    *out = takeover;
    err = hd_cluster_on_gone(app->cluster, on_server_gone, takeover);
    if (!err)
        err = hd_cluster_on_leader(app->cluster, on_lead, takeover);
    if (!err)
        err = hd_cluster_on_doubt(app->cluster, on_doubt, takeover);
    set_rest_timer(takeover);
    return err;
}

void hd_takeover_retire(struct hd_takeover *takeover)
{
    if (!takeover)
        return;
    takeover->is_retiring = true;
    takeover->waiting.count = 0;
    (void)uv_timer_stop(&takeover->timer); /* cannot fail */
    retry_rests(takeover);
}

void hd_takeover_stop(struct hd_takeover *takeover)
{
    hd_takeover_retire(takeover);
    if (!takeover)
        return;
    takeover->is_stopped = true;
    (void)uv_timer_stop(&takeover->retry_timer); /* cannot fail */
}

static void on_takeover_closed(uv_handle_t *handle)
{
    struct hd_takeover *takeover = handle->data;

    if (--takeover->timers == 0)
        hd_free(takeover);
}

void hd_takeover_destroy(struct hd_takeover *takeover)
{
    if (!takeover)
        return;
    for (size_t i = 0; i < takeover->rests.count; i++)
        hd_run_recover_free(takeover->rests.items[i]);
    hd_vec_fini(&takeover->rests);
    hd_vec_fini(&takeover->waiting);
    uv_close((uv_handle_t *)&takeover->timer, on_takeover_closed);
    uv_close((uv_handle_t *)&takeover->retry_timer, on_takeover_closed);
}
