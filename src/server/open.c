#include "server/open.h"

#include <heddle.h>
#include <string.h>

#include "agent/agent.h"
#include "app/defer.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/uuid.h"
#include "cluster/cluster.h"
#include "config/config.h"
#include "config/project.h"
#include "events/event_log.h"
#include "gate/audit.h"
#include "gate/auth_service.h"
#include "gate/limits.h"
#include "graph/engine/patience.h"
#include "graph/engine/run.h"
#include "net/http_client.h"
#include "records/recording.h"
#include "run/assistant_lookup.h"
#include "run/delegate.h"
#include "run/queue.h"
#include "run/cascade/room_cascade_jobs.h"
#include "run/room/room_reminders.h"
#include "run/takeover.h"
#include "run/unsettled.h"
#include "schedule/cron.h"
#include "schedule/sweep.h"
#include "search/embed.h"
#include "search/thread_texts.h"
#include "server/deleted_threads.h"
#include "server/leader_work.h"
#include "server/store_lock.h"
#include "store/rows.h"
#include "store/url.h"
#include "webhook/webhook.h"
#include "worker/graph_schemas.h"
#include "worker/worker_ops.h"

#define FEED_IDLE_US (2 * 60 * 1000000LL) /* an idle event log is dropped after this time */
#define QUIET_MS 1
#define MAX_SETTINGS ((size_t)64 << 20)

static int open_store(struct hd_app *app, struct heddle_error *fault)
{
    struct heddle_error error = {0};
    /* A server that is refused must not change the tables: the others could not start again. */
    int err = hd_rows_open(&app->store, app->config->store, hd_tables[HD_SERVERS].since, &error);
    char shown[512];

    if (!err)
        err = hd_store_lock_take(app->store, app->config, app->loop, app->lost, app->lost_ctx,
                                 &app->hold, &error);
    if (!err)
        err = hd_rows_upgrade(app->store, &error);
    if (!err)
        app->cluster = hd_store_lock_cluster(app->hold);
    hd_url_show(app->config->store, shown, sizeof(shown));
    return err ? hd_error_set(fault, err, "%s: %s", shown,
                              error.code ? error.text : hd_error_text(err))
               : 0;
}

static int open_agents(struct hd_app *app)
{
    struct hd_agents_options options = {.recorder = app->recorder};
    int err = hd_delegation_create(app, &app->delegation);

    if (err)
        return err;
    options.delegates = hd_delegation_table(app->delegation);
    if (app->config->record && !app->recorder)
        err = hd_recording_create(app->store, &app->recording);
    if (!err && app->recording)
        options.recorder = hd_recording_recorder(app->recording);
    return err ? err : hd_agents_create(app->engine, &options, &app->agents);
}

/* Limits of principals, and the audit log. */
static int open_watch(struct hd_app *app, struct heddle_error *fault)
{
    const struct hd_config *config = app->config;
    const struct hd_limits_config limits = {
        .most = {[HD_LIMIT_REQUESTS] = config->limits_requests,
                 [HD_LIMIT_RUNS] = config->limits_runs,
                 [HD_LIMIT_STREAMS] = config->limits_streams,
                 [HD_LIMIT_BYTES] = (int64_t)config->limits_bytes}};
    int err = hd_limits_create(&limits, &app->limits);

    if (!err)
        hd_limits_set_cluster(app->limits, app->cluster);
    if (!err && *config->audit_file)
        err = hd_audit_create(app->loop, config->audit_file, &app->audit, fault);
    return err;
}

/* ---- workers ---------------------------------------------------------- */

static void on_worker_ready(void *ctx, enum hd_rt_language language, struct hd_slice head)
{
    struct hd_app *app = ctx;

    hd_graph_schemas_take(app, language, head);
    for (size_t i = 0; i < app->hook_count; i++)
        app->hooks[i].fn(app->hooks[i].ctx, language, head);
}

static bool needs_workers(const struct hd_app *app)
{
    bool is_needed = hd_project_needs_workers(app->config);

    for (size_t i = 0; i < app->graph_count; i++)
        is_needed = is_needed || app->graphs[i].is_remote;
    return is_needed;
}

/* Starts no worker yet. */
static int open_runtime(struct hd_app *app, bool is_direct, struct heddle_error *fault)
{
    int err = hd_graph_schemas_open(app, fault);

    if (err || !needs_workers(app))
        return err;
    hd_arena_init(&app->runtime_arena, MAX_SETTINGS);
    err = hd_project_settings(app->config, &app->runtime_arena, &app->runtime_settings, fault);
    app->runtime_settings.is_direct = is_direct;
    app->runtime_settings.patience = app->patience;
    /* Workers end before other servers execute their runs. */
    app->runtime_settings.lease_us = app->cluster ? app->config->cluster_lease_us / 5 * 4 : 0;
    if (!err)
        err =
            hd_runtime_create(app->loop, app->store, &app->runtime_settings, &app->runtime, fault);
    if (err)
        return err;
    hd_runtime_on_ready(app->runtime, on_worker_ready, app);
    err = hd_worker_ops_add(app);
    return err ? err : hd_delegation_add_ops(app->delegation);
}

/* ---- open ------------------------------------------------------------- */

static int open_parts(struct hd_app *app, struct heddle_error *fault)
{
    const struct hd_config *config = app->config;
    const struct hd_event_log_limits limits = {.log_bytes = config->stream_retention_bytes,
                                               .total_bytes = config->stream_memory,
                                               .idle_us = FEED_IDLE_US};
    bool is_direct = strncmp(config->store, "memory:", 7) == 0;
    int err = hd_patience_create(app->loop, config->outage_timeout_us, &app->patience);

    hd_rows_set_outage(app->store, config->outage_timeout_us);
    if (!err)
        err = hd_defer_create(app->loop, app->store, is_direct, app->patience, &app->defer);
    if (!err)
        err = hd_engine_create(app->store, app->loop, is_direct, &app->engine);
    if (!err) {
        hd_engine_set_outgoing(app->engine, &config->outgoing);
        hd_engine_set_patience(app->engine, app->patience);
        err = open_agents(app);
    }
    if (!err)
        err = hd_embedder_create(app, &app->embedder, fault);
    if (!err)
        err = open_runtime(app, is_direct, fault);
    if (!err)
        err = hd_event_logs_create(app->loop, app->store, &limits, &app->event_logs);
    if (!err && hd_cluster_is_on(app->cluster))
        hd_event_logs_share(app->event_logs);
    if (!err)
        err = hd_queue_create(app, &app->queue);
    if (!err)
        err = hd_unsettled_create(app, &app->unsettled);
    if (!err && hd_cluster_is_on(app->cluster))
        err = hd_takeover_create(app, &app->takeover);
    if (!err)
        err = hd_room_cascade_jobs_create(app, &app->cascades);
    if (!err)
        err = hd_room_reminders_create(app, &app->reminders);
    if (!err)
        err = hd_client_create(app->loop, &app->http);
    if (!err)
        hd_client_set_outgoing(app->http, &config->outgoing);
    if (!err)
        err = hd_webhooks_create(app, &app->webhooks);
    if (!err && config->auth.val)
        err = hd_auth_service_create(app, &app->auth_service, fault);
    if (!err)
        err = hd_scheduler_create(app, &app->scheduler);
    if (!err)
        err = hd_sweeper_create(app, &app->sweeper);
    if (!err)
        err = hd_thread_indexer_create(app, &app->texts);
    if (!err)
        err = hd_deleted_threads_create(app, &app->deleted_threads);
    if (!err)
        err = hd_leader_work_start(app);
    return err;
}

int hd_server_open(struct hd_app *app, struct heddle_error *fault)
{
    int err = open_store(app, fault);

    app->started_at = hd_clock_now_us();
    if (!err)
        err = open_watch(app, fault);
    if (!err)
        err = open_parts(app, fault);
    if (!err)
        err = hd_system_assistants_install(app, fault);
    if (!err && app->runtime)
        err = hd_runtime_start(app->runtime, fault);
    if (!err)
        err = app->takeover ? hd_takeover_begin(app->takeover, fault)
                            : hd_queue_recover(app->queue, fault);
    if (!err)
        err = hd_room_cascade_jobs_begin(app->cascades, fault);
    if (err) {
        hd_server_close(app);
        return err;
    }
    hd_room_reminders_begin(app->reminders);
    hd_scheduler_wake(app->scheduler);
    hd_sweeper_start(app->sweeper);
    return 0;
}

/* ---- close ------------------------------------------------------------ */

/* Waits for pending lookups without a request, such as the check of a revoked key. */
static void on_all_quiet(uv_timer_t *timer)
{
    struct hd_app *app = timer->data;

    if (hd_defer_count(app->defer) > 0 || hd_embedder_count(app->embedder) > 0) {
        uv_timer_start(timer, on_all_quiet, QUIET_MS, 0);
        return;
    }
    uv_close((uv_handle_t *)timer, NULL);
    app->drained(app->drained_ctx);
}

/* The part may still be in its callback, so `done` is called in a later loop iteration. */
static void on_part_quiet(void *ctx)
{
    struct hd_app *app = ctx;

    if (--app->draining == 0)
        uv_timer_start(&app->drain_timer, on_all_quiet, 0, 0);
}

/* `result` of stopping a part; HD_READY: it had nothing to wait for. */
static void part_stopped(struct hd_app *app, int result)
{
    if (result == HD_READY)
        on_part_quiet(app);
}

static void on_queue_quiet(void *ctx)
{
    struct hd_app *app = ctx;

    if (app->runtime)
        hd_runtime_drain(app->runtime, on_part_quiet, app);
    /* After the queue: runs that end send webhooks. */
    part_stopped(app, hd_webhooks_stop(app->webhooks, app->config->drain_us, on_part_quiet, app));
}

void hd_server_retire(struct hd_app *app)
{
    hd_cluster_retire(app->cluster);
    hd_takeover_retire(app->takeover);
}

void hd_server_drain(struct hd_app *app, void (*done)(void *ctx), void *ctx)
{
    app->drained = done;
    app->drained_ctx = ctx;
    app->draining = 4 + (app->runtime != NULL);
    (void)uv_timer_init(app->loop, &app->drain_timer); /* never fails */
    app->drain_timer.data = app;
    hd_rows_end_outage(app->store);
    hd_patience_end(app->patience);
    hd_unsettled_stop(app->unsettled);
    hd_takeover_stop(app->takeover);
    hd_room_cascade_jobs_stop(app->cascades);
    hd_room_reminders_stop(app->reminders);
    part_stopped(app, hd_scheduler_stop(app->scheduler, on_part_quiet, app));
    part_stopped(app, hd_sweeper_stop(app->sweeper, on_part_quiet, app));
    part_stopped(app, hd_thread_indexer_stop(app->texts, on_part_quiet, app));
    if (hd_queue_drain(app->queue, on_queue_quiet, app) == HD_READY)
        on_queue_quiet(app);
}

void hd_server_close(struct hd_app *app)
{
    hd_deleted_threads_destroy(app->deleted_threads);
    hd_thread_indexer_destroy(app->texts);
    hd_sweeper_destroy(app->sweeper);
    hd_scheduler_destroy(app->scheduler);
    hd_webhooks_destroy(app->webhooks);
    hd_auth_service_destroy(app->auth_service);
    hd_client_destroy(app->http);
    hd_runtime_destroy(app->runtime);
    hd_embedder_destroy(app->embedder);
    hd_room_reminders_destroy(app->reminders);
    hd_room_cascade_jobs_destroy(app->cascades);
    hd_takeover_destroy(app->takeover);
    hd_unsettled_destroy(app->unsettled);
    hd_queue_destroy(app->queue);
    hd_event_logs_destroy(app->event_logs);
    hd_agents_destroy(app->agents);
    hd_delegation_destroy(app->delegation);
    hd_engine_destroy(app->engine);
    hd_recording_destroy(app->recording);
    hd_defer_destroy(app->defer);
    hd_limits_destroy(app->limits);
    hd_audit_destroy(app->audit);
    hd_patience_destroy(app->patience);
    hd_store_lock_leave_loop(app->hold);
    app->embedder = NULL;
    app->runtime = NULL;
    app->limits = NULL;
    app->audit = NULL;
    app->deleted_threads = NULL;
    app->texts = NULL;
    app->sweeper = NULL;
    app->scheduler = NULL;
    app->webhooks = NULL;
    app->auth_service = NULL;
    app->http = NULL;
    app->cascades = NULL;
    app->takeover = NULL;
    app->unsettled = NULL;
    app->queue = NULL;
    app->event_logs = NULL;
    app->engine = NULL;
    app->agents = NULL;
    app->delegation = NULL;
    app->recording = NULL;
    app->defer = NULL;
    app->patience = NULL;
}

void hd_server_close_store(struct hd_app *app)
{
    heddle_close(app->store);
    app->store = NULL;
    hd_store_lock_release(app->hold); /* after the last write */
    app->hold = NULL;
    app->cluster = NULL;
    hd_graph_schemas_close(app); /* no thread can read them now */
    hd_arena_fini(&app->runtime_arena);
}
