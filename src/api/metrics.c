/* GET /metrics: statistics, read on the loop, in the format of Prometheus or as JSON. */
#include <uv.h>

#include "api/api.h"
#include "api/request/forward.h"
#include "app/defer.h"
#include "cluster/cluster.h"
#include "config/config.h"
#include "config/project.h"
#include "events/event_log.h"
#include "gate/audit.h"
#include "gate/limits.h"
#include "http/server.h"
#include "run/queue.h"
#include "run/takeover.h"
#include "schedule/sweep.h"
#include "store/rows.h"
#include "webhook/webhook.h"

#define TYPE_PROMETHEUS HD_S("text/plain; version=0.0.4; charset=utf-8")

/* The source of all values. */
struct metrics_source {
    const struct hd_app *app;
    struct hd_queue_counts runs;
    struct hd_http_server_stats http;
    uint64_t answer_bytes;
    uint64_t forwarded;
    struct hd_rows_counts store;
    struct hd_sweep_counts swept;
    uv_rusage_t usage;
    size_t resident;
};

static double runs_running(const struct metrics_source *source)
{
    return (double)source->runs.running;
}
static double runs_pending(const struct metrics_source *source)
{
    return (double)source->runs.pending;
}
static double runs_limit(const struct metrics_source *source)
{
    return source->app->config->max_runs;
}
static double runs_ended(const struct metrics_source *source)
{
    return (double)source->runs.ended;
}
static double runs_failed(const struct metrics_source *source)
{
    return (double)source->runs.failed;
}
static double servers(const struct metrics_source *source)
{
    return (double)hd_cluster_size(source->app->cluster);
}
static double is_leader(const struct metrics_source *source)
{
    return hd_cluster_is_leader(source->app->cluster);
}
static double in_doubt(const struct metrics_source *source)
{
    return hd_cluster_in_doubt(source->app->cluster);
}
static double threads_held(const struct metrics_source *source)
{
    return hd_cluster_is_on(source->app->cluster) ? (double)source->runs.threads : 0;
}
static double requests_forwarded(const struct metrics_source *source)
{
    return (double)source->forwarded;
}
static double threads_taken_over(const struct metrics_source *source)
{
    return source->app->takeover ? (double)hd_takeover_count(source->app->takeover) : 0;
}
static double webhooks_pending(const struct metrics_source *source)
{
    return (double)hd_webhooks_counts(source->app->webhooks).pending;
}
static double webhooks_sent(const struct metrics_source *source)
{
    return (double)hd_webhooks_counts(source->app->webhooks).sent;
}
static double webhooks_dropped(const struct metrics_source *source)
{
    return (double)hd_webhooks_counts(source->app->webhooks).dropped;
}
static double store_calls(const struct metrics_source *source)
{
    return (double)hd_defer_count(source->app->defer);
}
static double store_reads(const struct metrics_source *source)
{
    return (double)source->store.reads;
}
static double store_writes(const struct metrics_source *source)
{
    return (double)source->store.writes;
}
static double stream_memory(const struct metrics_source *source)
{
    return (double)hd_event_logs_bytes(source->app->event_logs);
}
static double connections_open(const struct metrics_source *source)
{
    return (double)source->http.connections_open;
}
static double connections_total(const struct metrics_source *source)
{
    return (double)source->http.connections_total;
}
static double requests_open(const struct metrics_source *source)
{
    return (double)source->http.requests_open;
}
static double requests_total(const struct metrics_source *source)
{
    return (double)source->http.requests_total;
}
static double streams_open(const struct metrics_source *source)
{
    return (double)source->http.streams_open;
}
static double bytes_in(const struct metrics_source *source)
{
    return (double)source->http.bytes_in;
}
static double bytes_out(const struct metrics_source *source)
{
    return (double)source->http.bytes_out;
}
static double body_bytes(const struct metrics_source *source)
{
    return (double)source->http.body_bytes;
}
static double answer_bytes(const struct metrics_source *source)
{
    return (double)source->answer_bytes;
}
static double refused(const struct metrics_source *source)
{
    return (double)source->http.refused;
}
static double timeouts(const struct metrics_source *source)
{
    return (double)source->http.timeouts;
}
static double gone(const struct metrics_source *source)
{
    return (double)source->http.gone;
}
static double limited_requests(const struct metrics_source *source)
{
    return (double)hd_limits_refused(source->app->limits, HD_LIMIT_REQUESTS);
}
static double limited_runs(const struct metrics_source *source)
{
    return (double)hd_limits_refused(source->app->limits, HD_LIMIT_RUNS);
}
static double limited_streams(const struct metrics_source *source)
{
    return (double)hd_limits_refused(source->app->limits, HD_LIMIT_STREAMS);
}
static double limited_bytes(const struct metrics_source *source)
{
    return (double)hd_limits_refused(source->app->limits, HD_LIMIT_BYTES);
}
static double audit_lost(const struct metrics_source *source)
{
    return (double)hd_audit_lost(source->app->audit);
}
static double sweeps(const struct metrics_source *source)
{
    return (double)source->swept.sweeps;
}
static double sweeps_failed(const struct metrics_source *source)
{
    return (double)source->swept.failed;
}
static double swept_threads(const struct metrics_source *source)
{
    return (double)source->swept.removed.threads;
}
static double swept_pruned(const struct metrics_source *source)
{
    return (double)source->swept.pruned;
}
static double swept_checkpoints(const struct metrics_source *source)
{
    return (double)source->swept.removed.checkpoints;
}
static double swept_events(const struct metrics_source *source)
{
    return (double)source->swept.removed.events;
}
static double swept_items(const struct metrics_source *source)
{
    return (double)source->swept.items;
}
static double swept_bytes(const struct metrics_source *source)
{
    return (double)source->swept.removed.bytes;
}
static double sweep_time(const struct metrics_source *source)
{
    return (double)source->swept.last_at / 1e6;
}
static double sweep_seconds(const struct metrics_source *source)
{
    return (double)source->swept.last_took / 1e6;
}
static double resident(const struct metrics_source *source)
{
    return (double)source->resident;
}
static double seconds_of(uv_timeval_t time)
{
    return (double)time.tv_sec + (double)time.tv_usec / 1e6;
}
static double cpu_seconds(const struct metrics_source *source)
{
    return seconds_of(source->usage.ru_utime) + seconds_of(source->usage.ru_stime);
}
static double start_time(const struct metrics_source *source)
{
    return (double)source->app->started_at / 1e6;
}

static const struct metric {
    const char *name;
    const char *type;
    const char *help;
    double (*read)(const struct metrics_source *source);
} metrics[] = {
    {"heddle_runs_running", "gauge", "Runs in progress.", runs_running},
    {"heddle_runs_pending", "gauge", "Queued runs.", runs_pending},
    {"heddle_runs_limit", "gauge", "Maximum number of concurrent runs.", runs_limit},
    {"heddle_runs_ended_total", "counter", "Runs that ended.", runs_ended},
    {"heddle_runs_failed_total", "counter", "Runs that ended with an error.", runs_failed},
    {"heddle_cluster_servers", "gauge", "Live servers of the store, with this one.", servers},
    {"heddle_cluster_leader", "gauge", "1: this server does the work that is done once.",
     is_leader},
    {"heddle_cluster_lease_in_doubt", "gauge",
     "1: this server could not renew its lease and stores nothing.", in_doubt},
    {"heddle_cluster_holds", "gauge", "Threads whose runs this server executes.", threads_held},
    {"heddle_cluster_forwards_total", "counter", "Requests forwarded to other servers.",
     requests_forwarded},
    {"heddle_cluster_takeovers_total", "counter", "Threads taken over from other servers.",
     threads_taken_over},
    {"heddle_webhooks_pending", "gauge", "Webhooks being delivered.", webhooks_pending},
    {"heddle_webhooks_sent_total", "counter", "Webhooks that were delivered.", webhooks_sent},
    {"heddle_webhooks_dropped_total", "counter", "Webhooks dropped without delivery.",
     webhooks_dropped},
    {"heddle_store_calls", "gauge", "Database calls in progress.", store_calls},
    {"heddle_store_reads_total", "counter", "Queries to the database.", store_reads},
    {"heddle_store_writes_total", "counter", "Row changes sent to the database.", store_writes},
    {"heddle_stream_memory_bytes", "gauge", "Memory of event logs.", stream_memory},
    {"heddle_http_connections", "gauge", "Open connections.", connections_open},
    {"heddle_http_connections_total", "counter", "Connections accepted.", connections_total},
    {"heddle_http_requests", "gauge", "Requests in progress.", requests_open},
    {"heddle_http_requests_total", "counter", "Requests received.", requests_total},
    {"heddle_http_streams", "gauge", "Open streams.", streams_open},
    {"heddle_http_received_bytes_total", "counter", "Bytes received.", bytes_in},
    {"heddle_http_sent_bytes_total", "counter", "Bytes sent.", bytes_out},
    {"heddle_http_body_bytes", "gauge", "Memory of request bodies.", body_bytes},
    {"heddle_http_answer_bytes", "gauge", "Memory of large responses.", answer_bytes},
    {"heddle_http_refused_total", "counter", "Requests refused as malformed or over a limit.",
     refused},
    {"heddle_http_timeouts_total", "counter", "Connections closed because the client was slow.",
     timeouts},
    {"heddle_http_gone_total", "counter", "Clients that disconnected before the response.", gone},
    {"heddle_limited_requests_total", "counter", "Requests refused by limits.requests.",
     limited_requests},
    {"heddle_limited_runs_total", "counter", "Runs refused by limits.runs.", limited_runs},
    {"heddle_limited_streams_total", "counter", "Streams refused by limits.streams.",
     limited_streams},
    {"heddle_limited_bytes_total", "counter", "Writes refused by limits.bytes.", limited_bytes},
    {"heddle_audit_lost_total", "counter", "Audit log entries that were lost.", audit_lost},
    {"heddle_sweeps_total", "counter", "Sweeps of expired data.", sweeps},
    {"heddle_sweeps_failed_total", "counter", "Sweeps that failed.", sweeps_failed},
    {"heddle_sweep_threads_total", "counter", "Expired threads that were deleted.", swept_threads},
    {"heddle_sweep_pruned_total", "counter", "Expired threads that were pruned.", swept_pruned},
    {"heddle_sweep_checkpoints_total", "counter", "Checkpoints removed by sweeps.",
     swept_checkpoints},
    {"heddle_sweep_event_pages_total", "counter", "Pages of events removed.", swept_events},
    {"heddle_sweep_items_total", "counter", "Items of the store removed.", swept_items},
    {"heddle_sweep_bytes_total", "counter", "Bytes of threads removed.", swept_bytes},
    {"heddle_sweep_last_time_seconds", "gauge", "End of the last sweep, in Unix time.", sweep_time},
    {"heddle_sweep_last_duration_seconds", "gauge", "Duration of the last sweep.", sweep_seconds},
    {"process_resident_memory_bytes", "gauge", "Resident memory.", resident},
    {"process_cpu_seconds_total", "counter", "CPU time, user and system.", cpu_seconds},
    {"process_start_time_seconds", "gauge", "Start of the process, in Unix time.", start_time},
};

/* Index: status / 100. */
static const char *const classes[] = {NULL, "1xx", "2xx", "3xx", "4xx", "5xx"};
#define RESPONSES "heddle_http_responses_total"

/* Of the workers of each language. */
static double workers_ready(const struct hd_rt_counts *counts)
{
    return counts->workers;
}
static double workers_starting(const struct hd_rt_counts *counts)
{
    return counts->starting;
}
static double worker_calls(const struct hd_rt_counts *counts)
{
    return (double)counts->calls;
}
static double worker_restarts(const struct hd_rt_counts *counts)
{
    return (double)counts->restarts;
}

static const struct worker_metric {
    const char *name;
    const char *type;
    const char *help;
    double (*read)(const struct hd_rt_counts *counts);
} worker_metrics[] = {
    {"heddle_workers", "gauge", "Workers that are ready.", workers_ready},
    {"heddle_workers_starting", "gauge", "Workers that are not ready yet.", workers_starting},
    {"heddle_worker_calls", "gauge", "Calls to workers in progress.", worker_calls},
    {"heddle_worker_restarts_total", "counter", "Worker restarts.", worker_restarts},
};

static void read_source(const struct hd_call *call, struct metrics_source *source)
{
    const struct hd_http_server *server = hd_api_server(call->api);

    *source = (struct metrics_source){.app = call->app,
                                      .runs = hd_queue_counts(call->app->queue),
                                      .forwarded = hd_forwards_count(hd_api_forwards(call->api)),
                                      .store = hd_rows_counts(call->app->store),
                                      .swept = hd_sweeper_counts(call->app->sweeper)};
    source->answer_bytes = atomic_load(&hd_api_answers(call->api)->held);
    if (server)
        source->http = *hd_http_server_stats(server);
    if (uv_getrusage(&source->usage))
        source->usage = (uv_rusage_t){.ru_maxrss = 0};
    if (uv_resident_set_memory(&source->resident))
        source->resident = 0;
}

/* ---- output formats */

static int write_workers(struct hd_buf *out, const struct hd_runtime *runtime)
{
    int err = 0;

    for (size_t i = 0; !err && runtime && i < HD_COUNT(worker_metrics); i++) {
        const struct worker_metric *metric = &worker_metrics[i];

        err = hd_buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", metric->name, metric->help,
                            metric->name, metric->type);
        for (int j = 0; !err && j < HD_RT_LANGUAGES; j++) {
            struct hd_rt_counts counts = hd_runtime_counts(runtime, (enum hd_rt_language)j);

            err = hd_buf_printf(out, "%s{runtime=\"%s\"} %.16g\n", metric->name,
                                hd_project_language_name((enum hd_rt_language)j),
                                metric->read(&counts));
        }
    }
    return err;
}

static void put_workers(struct hd_jw *jw, const struct hd_runtime *runtime)
{
    for (size_t i = 0; runtime && i < HD_COUNT(worker_metrics); i++) {
        hd_jw_put_object(jw, worker_metrics[i].name);
        for (int j = 0; j < HD_RT_LANGUAGES; j++) {
            struct hd_rt_counts counts = hd_runtime_counts(runtime, (enum hd_rt_language)j);

            hd_jw_put_int(jw, hd_project_language_name((enum hd_rt_language)j),
                          (int64_t)worker_metrics[i].read(&counts));
        }
        hd_jw_object_end(jw);
    }
}

static int write_prometheus(struct hd_buf *out, const struct metrics_source *source)
{
    int err = 0;

    for (size_t i = 0; !err && i < HD_COUNT(metrics); i++)
        err = hd_buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n%s %.16g\n", metrics[i].name,
                            metrics[i].help, metrics[i].name, metrics[i].type, metrics[i].name,
                            metrics[i].read(source));
    if (!err)
        err = hd_buf_printf(out, "# HELP %s Responses by status class.\n# TYPE %s counter\n",
                            RESPONSES, RESPONSES);
    for (size_t i = 1; !err && i < HD_COUNT(classes); i++)
        err = hd_buf_printf(out, "%s{class=\"%s\"} %llu\n", RESPONSES, classes[i],
                            (unsigned long long)source->http.answers[i]);
    return err ? err : write_workers(out, source->app->runtime);
}

static void write_json(struct hd_jw *jw, const struct metrics_source *source)
{
    hd_jw_object(jw);
    for (size_t i = 0; i < HD_COUNT(metrics); i++) {
        char text[32];

        snprintf(text, sizeof(text), "%.16g", metrics[i].read(source));
        hd_jw_put_raw(jw, metrics[i].name, hd_slice_cstr(text));
    }
    hd_jw_put_object(jw, RESPONSES);
    for (size_t i = 1; i < HD_COUNT(classes); i++)
        hd_jw_put_int(jw, classes[i], (int64_t)source->http.answers[i]);
    hd_jw_object_end(jw);
    put_workers(jw, source->app->runtime);
    hd_jw_object_end(jw);
}

static struct hd_step get_metrics(struct hd_call *call)
{
    struct hd_slice format = HD_S("prometheus");
    struct metrics_source source;
    int err = 0;

    hd_params_get(&call->query, HD_S("format"), &format);
    if (!call->app->config->metrics)
        return hd_call_refuse(call, 404, "Not Found");
    if (hd_slice_eq(format, HD_S("json"))) {
        read_source(call, &source);
        write_json(&call->jw, &source);
        err = hd_jw_finish(&call->jw);
    } else if (hd_slice_eq(format, HD_S("prometheus"))) {
        read_source(call, &source);
        call->content_type = TYPE_PROMETHEUS;
        err = write_prometheus(&call->out, &source);
    } else {
        err = hd_error_set(&call->fault, HD_EINVAL, "format: expected prometheus or json");
    }
    return hd_step_done(err);
}

static const struct hd_endpoint routes[] = {
    {.method = HD_METHOD_GET,
     .pattern = "/metrics",
     .access = HD_ACCESS_ADMIN,
     .on = HD_ON_NOTHING,
     .then = get_metrics,
     .tag = "System",
     .summary = "Measurements of this process",
     .query = "format",
     .answer = "text/plain application/json"},
};

const struct hd_routes hd_routes_metrics = {routes, HD_COUNT(routes)};
