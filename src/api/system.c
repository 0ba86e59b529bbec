/* The server itself: health and information. */
#include <heddle.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/statvfs.h>

#include "api/api.h"
#include "base/clock.h"
#include "cluster/cluster.h"
#include "config/config.h"
#include "config/project.h"
#include "records/record.h"
#include "store/rows.h"
#include "store/url.h"

#define MAX_PATH 4096
#define LEAST_SPACE ((uint64_t)1 << 20)
#define WRITE_EVERY_US (5 * INT64_C(1000000))

/* ---- health ----------------------------------------------------------- */

/* A write that changes nothing: it fails when the disk of the database is full. */
static int write_nothing(struct hd_call *call, struct heddle_error *fault)
{
    const struct hd_cell cells[] = {
        [HD_ITEMS_PRINCIPAL] = hd_cell_bytes(HD_S("")),
        [HD_ITEMS_NAMESPACE] = hd_cell_bytes(HD_S("")),
        [HD_ITEMS_KEY] = hd_cell_bytes(HD_S("check_db")),
        [HD_ITEMS_CREATED] = hd_cell_int(0),
        [HD_ITEMS_UPDATED] = hd_cell_int(0),
        [HD_ITEMS_EXPIRES] = hd_cell_null(),
        [HD_ITEMS_TTL] = hd_cell_null(),
        [HD_ITEMS_VALUE] = hd_cell_bytes(HD_S("null")),
    };
    struct hd_batch_builder batch;
    struct hd_batch view;
    int err;

    hd_batch_init(&batch);
    err = hd_batch_row(&batch, HD_OP_PUT, HD_ITEMS, cells);
    if (!err)
        err = hd_batch_delete(&batch, HD_ITEMS, cells, hd_tables[HD_ITEMS].key_count);
    view = hd_batch_view(&batch);
    if (!err)
        err = hd_rows_apply(call->app->store, HD_S(":check_db"), &view, NULL, fault);
    hd_batch_fini(&batch);
    return err;
}

/* The log of SQLite reuses its space, so small writes may succeed on a full disk for a while. */
static int check_space(const struct hd_call *call)
{
    char file[MAX_PATH];
    struct statvfs fs;
    char *slash;

    if (!hd_url_file(call->app->config->store, file, sizeof(file)))
        return 0;
    slash = strrchr(file, '/');
    if (slash)
        slash[1] = '\0';
    if (statvfs(slash ? file : ".", &fs) != 0)
        return 0;
    return (uint64_t)fs.f_bavail * fs.f_frsize < LEAST_SPACE ? HD_EFULL : 0;
}

/* This route needs no credentials, so it does not write to the database each time. */
static int check_writes(struct hd_call *call, struct heddle_error *fault)
{
    static _Atomic int64_t written_at;
    int64_t now = hd_clock_monotonic_us(), last = atomic_load(&written_at);
    int err = check_space(call);

    if (err || (last > 0 && now - last < WRITE_EVERY_US))
        return err;
    err = write_nothing(call, fault);
    if (!err)
        atomic_store(&written_at, now);
    return err;
}

/*
 * Any read tests the common path to the database. While its lease is in doubt a server of a cluster
 * refuses writes, so that it must get no requests; the check of writes is not made each time.
 */
static int read_and_write_store(struct hd_call *call)
{
    struct hd_assistant_rec assistant;
    struct heddle_error fault = {0};
    int err;

    if (hd_cluster_in_doubt(call->app->cluster))
        return hd_error_set(&call->fault, HD_EUNAVAILABLE,
                            "the server could not renew its lease on the store");
    err = hd_assistant_read(call->app->store, call->principal,
                            hd_slice_cstr(call->app->graphs[0].assistant_id), call->arena,
                            &assistant, &fault);

    if (!err || err == HD_ENOTFOUND)
        err = check_writes(call, &fault);
    if (!err)
        return 0;
    return hd_error_set(&call->fault, err, "%s", fault.code ? fault.text : hd_error_text(err));
}

static void put_ok(struct hd_call *call)
{
    hd_jw_object(&call->jw);
    hd_jw_put_bool(&call->jw, "ok", true);
    hd_jw_object_end(&call->jw);
}

/* Health checks only read the status, so failure has one status. */
static struct hd_step check_store(struct hd_call *call)
{
    if (read_and_write_store(call))
        return hd_call_refuse(call, 500, "the database does not respond: %s", call->fault.text);
    put_ok(call);
    return HD_DONE;
}

static struct hd_step get_ok(struct hd_call *call)
{
    bool checks = false;
    int err = hd_params_bool(&call->query, HD_S("check_db"), false, &checks, &call->fault);

    if (err)
        return hd_step_fail(err);
    if (checks)
        return hd_call_visit(call, check_store, NULL);
    put_ok(call);
    return HD_DONE;
}

static struct hd_step get_health(struct hd_call *call)
{
    int err = read_and_write_store(call);

    if (err)
        return hd_call_refuse(call, 503, "the database does not respond: %s", call->fault.text);
    hd_jw_object(&call->jw);
    hd_jw_put_string(&call->jw, "status", HD_S("ok"));
    hd_jw_object_end(&call->jw);
    return HD_DONE;
}

/* ---- info ------------------------------------------------------------- */

static void put_flags(struct hd_jw *jw)
{
    static const struct {
        const char *name;
        bool is_on;
    } flags[] = {
        {"assistants", true},
        {"crons", true},
        {"langsmith", false},
        {"langsmith_tracing_replicas", false},
    };

    hd_jw_object(jw);
    for (size_t i = 0; i < HD_COUNT(flags); i++)
        hd_jw_put_bool(jw, flags[i].name, flags[i].is_on);
    hd_jw_object_end(jw);
}

static void put_graphs(struct hd_jw *jw, const struct hd_app *app)
{
    hd_jw_array(jw);
    for (size_t i = 0; i < app->graph_count; i++)
        hd_jw_string(jw, app->graphs[i].id);
    hd_jw_array_end(jw);
}

/* Of the languages in which graphs are written. */
static void put_workers(struct hd_jw *jw, const struct hd_app *app)
{
    hd_jw_object(jw);
    for (int i = 0; app->runtime && i < HD_RT_LANGUAGES; i++) {
        enum hd_rt_language language = (enum hd_rt_language)i;
        struct hd_rt_counts counts = hd_runtime_counts(app->runtime, language);

        if (!hd_project_uses(app->config, language))
            continue;
        hd_jw_put_object(jw, hd_project_language_name(language));
        hd_jw_put_int(jw, "ready", counts.workers);
        hd_jw_put_int(jw, "starting", counts.starting);
        hd_jw_object_end(jw);
    }
    hd_jw_object_end(jw);
}

/* Shows only the kind of database, since its URL may have a password. */
static struct hd_slice store_kind(const char *url)
{
    return hd_slice(url, strcspn(url, ":"));
}

static struct hd_step get_info(struct hd_call *call)
{
    const struct hd_app *app = call->app;
    struct hd_jw *jw = &call->jw;

    hd_jw_object(jw);
    hd_jw_put_string(jw, "name", HD_S("heddle"));
    hd_jw_put_string(jw, "version", HD_S(HEDDLE_VERSION));
    hd_jw_key(jw, HD_S("flags"));
    put_flags(jw);
    hd_jw_key(jw, HD_S("graphs"));
    put_graphs(jw, app);
    hd_jw_key(jw, HD_S("workers"));
    put_workers(jw, app);
    hd_jw_put_string(jw, "store", store_kind(app->config->store));
    hd_jw_put_timestamp(jw, "started_at", app->started_at);
    hd_jw_put_int(jw, "uptime_seconds", (hd_clock_now_us() - app->started_at) / 1000000);
    hd_jw_put_object(jw, "metadata");
    hd_jw_object_end(jw);
    hd_jw_object_end(jw);
    return HD_DONE;
}

static const struct hd_endpoint routes[] = {
    {.method = HD_METHOD_GET,
     .pattern = "/ok",
     .access = HD_ACCESS_PUBLIC,
     .on = HD_ON_NOTHING,
     .then = get_ok,
     .tag = "System",
     .summary = "Check that the server responds and, with check_db, its database",
     .query = "check_db",
     .answer = "Ok"},
    {.method = HD_METHOD_GET,
     .pattern = "/health",
     .access = HD_ACCESS_PUBLIC,
     .on = HD_ON_NOTHING,
     .work = get_health,
     .tag = "System",
     .summary = "Check that the server and its database respond",
     .answer = "Health"},
    {.method = HD_METHOD_GET,
     .pattern = "/info",
     .access = HD_ACCESS_PUBLIC,
     .on = HD_ON_NOTHING,
     .then = get_info,
     .tag = "System",
     .summary = "Get the server's version and capabilities",
     .answer = "Info"},
};

const struct hd_routes hd_routes_system = {routes, HD_COUNT(routes)};
