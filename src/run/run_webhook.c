#include "run/run_webhook.h"

#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/uuid.h"
#include "cluster/cluster.h"
#include "config/config.h"
#include "records/run_kwargs.h"
#include "run/active_run.h"
#include "webhook/outbox.h"
#include "webhook/webhook.h"
#include "webhook/webhook_rules.h"

static void put_json(struct hd_jw *jw, const char *name, struct hd_slice json,
                     const char *otherwise)
{
    hd_jw_put_raw(jw, name, json.len > 0 ? json : hd_slice_cstr(otherwise));
}

static void put_time(struct hd_jw *jw, const char *name, int64_t us)
{
    char text[33];

    hd_jw_key(jw, hd_slice_cstr(name));
    hd_clock_format_iso(us, text);
    if (us)
        hd_jw_string(jw, hd_slice_cstr(text));
    else
        hd_jw_null(jw);
}

/* Writes the run, as GET returns it, and its end. */
static int write_body(const struct hd_run_rec *run, const struct hd_run_webhook_end *end,
                      bool shows_namespaces, struct hd_buf *out)
{
    int64_t now = hd_clock_now_us();
    struct hd_jw jw;

    hd_jw_init(&jw, out);
    hd_jw_object(&jw);
    hd_jw_put_string(&jw, "run_id", run->run_id);
    hd_jw_put_string(&jw, "thread_id", run->thread_id);
    hd_jw_put_string(&jw, "assistant_id", run->assistant_id);
    put_time(&jw, "created_at", run->created_at);
    put_time(&jw, "updated_at", now);
    hd_jw_put_string(&jw, "status", hd_slice_cstr(hd_run_state_name(end->status)));
    put_json(&jw, "metadata", run->metadata, "{}");
    hd_jw_key(&jw, HD_S("kwargs"));
    hd_run_put_kwargs(&jw, run->kwargs, shows_namespaces);
    hd_jw_put_string(&jw, "multitask_strategy", hd_slice_cstr(hd_multitask_name(run->multitask)));
    put_time(&jw, "run_started_at", end->started_at);
    put_time(&jw, "run_ended_at", now);
    put_json(&jw, "values", end->values, "null");
    if (end->error.len > 0)
        hd_jw_put_string(&jw, "error", end->error);
    hd_jw_object_end(&jw);
    return hd_jw_finish(&jw);
}

/* The URL in the stored kwargs, in the arena; empty: none. */
static struct hd_slice stored_url(const struct hd_run_rec *run, struct hd_arena *arena)
{
    struct hd_slice url = hd_slice("", 0);
    struct hd_json json = {NULL};

    if (hd_json_parse(&json, run->kwargs, NULL) ||
        hd_arena_copy(arena, hd_json_string(hd_json_get(hd_json_root(&json), HD_S("webhook"))),
                      &url))
        url = hd_slice("", 0);
    hd_json_fini(&json);
    return url;
}

/* The kwargs of a run that never started were not parsed yet. */
static struct hd_slice url_of(const struct hd_active_run *active, struct hd_arena *arena)
{
    return active->kwargs ? hd_val_get_string(hd_val_get(active->kwargs, HD_S("webhook")))
                          : stored_url(&active->rec, arena);
}

static const uint8_t ids_ns[16] = {0x3f, 0xa4, 0x0d, 0x6b, 0x91, 0xc7, 0x4e, 0x28,
                                   0xb5, 0x1c, 0x7a, 0x90, 0x2d, 0xe8, 0x46, 0x53};

/* A run has one webhook; its id stays the same when storing the end is retried. */
static int make_id(const struct hd_run_rec *run, char out[HD_UUID_SIZE])
{
    const struct hd_slice parts[] = {run->principal, run->thread_id, run->run_id};
    struct hd_buf name;
    int err = 0;

    hd_buf_init(&name, (size_t)64 << 10);
    for (size_t i = 0; i < HD_COUNT(parts) && !err; i++)
        err = hd_buf_append_lenslice(&name, parts[i]);
    if (!err)
        err = hd_uuid_v5(ids_ns, hd_buf_slice(&name), out);
    hd_buf_fini(&name);
    return err;
}

/* All but the body; `id` must live as long as the row. */
static struct hd_outbox_row describe_row(const struct hd_app *app, const struct hd_run_rec *run,
                                         struct hd_slice url, const char *id)
{
    return (struct hd_outbox_row){.principal = run->principal,
                                  .thread_id = run->thread_id,
                                  .run_id = run->run_id,
                                  .created_at = hd_clock_now_us(),
                                  .id = hd_slice_cstr(id),
                                  .server = hd_cluster_self(app->cluster),
                                  .url = url};
}

static int create_webhook(const struct hd_active_run *active, struct hd_slice url,
                          struct hd_webhook **out)
{
    const struct hd_outcome *outcome = &active->outcome;
    const struct hd_run_webhook_end end = {
        .status = outcome->status,
        .started_at = active->started_at,
        .values = outcome->values,
        .error = outcome->error_type.len > 0 ? outcome->error_text : hd_slice("", 0)};
    char id[HD_UUID_SIZE];
    int err = make_id(&active->rec, id);
    struct hd_outbox_row row = describe_row(active->app, &active->rec, url, id);
    struct hd_buf body;

    hd_buf_init(&body, HD_WEBHOOK_MAX_BYTES);
    if (!err)
        err = write_body(&active->rec, &end, active->app->config->namespaces_show, &body);
    row.body = hd_buf_slice(&body);
    if (!err)
        err = hd_webhook_create(active->app->webhooks, &row, out);
    hd_buf_fini(&body);
    return err;
}

static void log_too_large(const struct hd_run_rec *run)
{
    hd_log(HD_LOG_WARN, "webhook", "run %.*s: not sent, the body is too large",
           (int)run->run_id.len, run->run_id.ptr);
}

struct hd_webhook *hd_run_webhook(const struct hd_active_run *active)
{
    struct hd_webhook *webhook = NULL;
    struct hd_arena arena;
    struct hd_slice url;

    hd_arena_init(&arena, (size_t)2 * HD_WEBHOOK_MAX_URL);
    url = url_of(active, &arena);
    if (url.len > 0 && create_webhook(active, url, &webhook))
        log_too_large(&active->rec);
    hd_arena_fini(&arena);
    return webhook;
}

static int write_row(const struct hd_app *app, const struct hd_run_rec *run, struct hd_slice url,
                     const struct hd_run_webhook_end *end, struct hd_arena *arena,
                     struct hd_outbox_row *out)
{
    bool shows_namespaces = app->config && app->config->namespaces_show;
    char *id = hd_arena_alloc(arena, HD_UUID_SIZE);
    int err = id ? make_id(run, id) : HD_ENOMEM;
    struct hd_buf body;

    if (err)
        return err;
    *out = describe_row(app, run, url, id);
    hd_buf_init(&body, HD_WEBHOOK_MAX_BYTES);
    err = write_body(run, end, shows_namespaces, &body);
    if (!err)
        err = hd_arena_copy(arena, hd_buf_slice(&body), &out->body);
    hd_buf_fini(&body);
    return err;
}

const struct hd_outbox_row *hd_run_webhook_row(const struct hd_app *app,
                                               const struct hd_run_rec *run,
                                               const struct hd_run_webhook_end *end,
                                               struct hd_arena *arena)
{
    struct hd_slice url = stored_url(run, arena);
    struct hd_outbox_row *row = url.len > 0 ? hd_arena_alloc(arena, sizeof(*row)) : NULL;

    if (!row)
        return NULL;
    if (write_row(app, run, url, end, arena, row)) {
        log_too_large(run);
        return NULL;
    }
    return row;
}
