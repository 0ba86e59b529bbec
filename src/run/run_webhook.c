/* The webhook of a run: the body reports the outcome, the URL comes from the run's kwargs. */
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

/* Writes the run, as GET returns it, and its outcome. */
static int write_body(const struct hd_active_run *active, struct hd_buf *out)
{
    const struct hd_run_rec *run = &active->rec;
    const struct hd_outcome *outcome = &active->outcome;
    int64_t now = hd_clock_now_us();
    struct hd_jw jw;

    hd_jw_init(&jw, out);
    hd_jw_object(&jw);
    hd_jw_put_string(&jw, "run_id", run->run_id);
    hd_jw_put_string(&jw, "thread_id", run->thread_id);
    hd_jw_put_string(&jw, "assistant_id", run->assistant_id);
    put_time(&jw, "created_at", run->created_at);
    put_time(&jw, "updated_at", now);
    hd_jw_put_string(&jw, "status", hd_slice_cstr(hd_run_state_name(outcome->status)));
    put_json(&jw, "metadata", run->metadata, "{}");
    hd_jw_key(&jw, HD_S("kwargs"));
    hd_run_put_kwargs(&jw, run->kwargs, active->app->config->namespaces_show);
    hd_jw_put_string(&jw, "multitask_strategy", hd_slice_cstr(hd_multitask_name(run->multitask)));
    put_time(&jw, "run_started_at", active->started_at);
    put_time(&jw, "run_ended_at", now);
    put_json(&jw, "values", outcome->values, "null");
    if (outcome->error_type.len > 0)
        hd_jw_put_string(&jw, "error", outcome->error_text);
    hd_jw_object_end(&jw);
    return hd_jw_finish(&jw);
}

/* The URL in the run's kwargs (may be in the arena); empty: none. */
static struct hd_slice url_of(const struct hd_active_run *active, struct hd_arena *arena)
{
    struct hd_slice url = hd_slice("", 0);
    struct hd_json json = {NULL};

    if (active->kwargs)
        return hd_val_get_string(hd_val_get(active->kwargs, HD_S("webhook")));
    /* The run never started: its kwargs were not parsed yet. */
    if (hd_json_parse(&json, active->rec.kwargs, NULL) ||
        hd_arena_copy(arena, hd_json_string(hd_json_get(hd_json_root(&json), HD_S("webhook"))),
                      &url))
        url = hd_slice("", 0);
    hd_json_fini(&json);
    return url;
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

static int create_webhook(const struct hd_active_run *active, struct hd_slice url,
                          struct hd_webhook **out)
{
    char id[HD_UUID_SIZE];
    int err = make_id(&active->rec, id);
    struct hd_outbox_row row = {.principal = active->rec.principal,
                                .thread_id = active->rec.thread_id,
                                .run_id = active->rec.run_id,
                                .created_at = hd_clock_now_us(),
                                .id = hd_slice_cstr(id),
                                .server = hd_cluster_self(active->app->cluster),
                                .url = url};
    struct hd_buf body;

    hd_buf_init(&body, HD_WEBHOOK_MAX_BYTES);
    if (!err)
        err = write_body(active, &body);
    row.body = hd_buf_slice(&body);
    if (!err)
        err = hd_webhook_create(active->app->webhooks, &row, out);
    hd_buf_fini(&body);
    return err;
}

struct hd_webhook *hd_run_webhook(const struct hd_active_run *active)
{
    struct hd_webhook *webhook = NULL;
    struct hd_arena arena;
    struct hd_slice url;

    hd_arena_init(&arena, (size_t)2 * HD_WEBHOOK_MAX_URL);
    url = url_of(active, &arena);
    if (url.len > 0 && create_webhook(active, url, &webhook))
        hd_log(HD_LOG_WARN, "webhook", "run %.*s: not sent, the body is too large",
               (int)active->rec.run_id.len, active->rec.run_id.ptr);
    hd_arena_fini(&arena);
    return webhook;
}
