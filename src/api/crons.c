/*
 * Crons: create, change, delete. A cron stores the body of its runs, the payload, and checks it
 * like the body of a run, so that the request reports mistakes and not the log when the cron fires.
 */
#include <string.h>

#include "api/request/access.h"
#include "api/api.h"
#include "api/request/authorize.h"
#include "api/cron_view.h"
#include "api/owner.h"
#include "api/state/checkpoint_target.h"
#include "base/clock.h"
#include "base/iso_time.h"
#include "base/uuid.h"
#include "records/participants.h"
#include "records/run_request.h"
#include "run/assistant_lookup.h"
#include "schedule/cron.h"
#include "store/rows.h"
#include "webhook/webhook.h"

#define MAX_PAYLOAD ((size_t)256 << 20)

/* ---- payloads --------------------------------------------------------- */

/* Members of a run's body that a cron may have; assistant_id, config and metadata are separate. */
static const char *const members[] = {"input",
                                      "command",
                                      "context",
                                      "webhook",
                                      "interrupt_before",
                                      "interrupt_after",
                                      "multitask_strategy",
                                      "stream_mode",
                                      "stream_subgraphs",
                                      "stream_resumable",
                                      "durability",
                                      "checkpoint_during",
                                      "feedback_keys",
                                      NULL};

static hd_json_val cron_member(hd_json_val object, const char *name)
{
    hd_json_val val = hd_json_get(object, hd_slice_cstr(name));

    return hd_json_is_null(val) ? NULL : val;
}

/* The member of the request, else the stored one. null is a value only for an input. */
static hd_json_val cron_choose(struct hd_call *call, hd_json_val old, const char *name)
{
    hd_json_val given = hd_json_get(call->body, hd_slice_cstr(name));

    if (given && (!hd_json_is_null(given) || strcmp(name, "input") == 0))
        return given;
    return cron_member(old, name);
}

static void put_cron_members(struct hd_jw *jw, hd_json_val object, const char *but)
{
    struct hd_json_iter it = hd_json_iter(object);

    while (hd_json_next(&it)) {
        if (hd_slice_eq(it.key, hd_slice_cstr(but)))
            continue;
        hd_jw_key(jw, it.key);
        hd_jw_val(jw, it.val);
    }
}

/* Adds the cron's id to the configuration. hd_run_request_read() refuses a non-object. */
static void put_cron_config(struct hd_jw *jw, hd_json_val config, struct hd_slice cron_id)
{
    hd_json_val configurable = cron_member(config, "configurable");

    hd_jw_key(jw, HD_S("config"));
    if ((config && !hd_json_is_object(config)) ||
        (configurable && !hd_json_is_object(configurable))) {
        hd_jw_val(jw, config);
        return;
    }
    hd_jw_object(jw);
    put_cron_members(jw, config, "configurable");
    hd_jw_put_object(jw, "configurable");
    put_cron_members(jw, configurable, "cron_id");
    hd_jw_put_string(jw, "cron_id", cron_id);
    hd_jw_object_end(jw);
    hd_jw_object_end(jw);
}

static int check_payload(struct hd_call *call, struct hd_slice payload)
{
    struct hd_run_request request;
    struct hd_json json = {NULL};
    int err = hd_json_parse(&json, payload, &call->fault);

    if (!err)
        err = hd_run_request_read(&request, hd_json_root(&json), &call->fault);
    if (!err && request.webhook.len > 0)
        err = hd_webhook_allowed(call->app->config, request.webhook, &call->fault);
    if (!err)
        err = hd_call_refuse_secrets(call, "config", request.config, true);
    if (!err)
        err = hd_call_refuse_secrets(call, "context", request.context, true);
    if (!err)
        err = hd_call_refuse_secrets(call, "metadata", request.metadata, false);
    hd_json_fini(&json);
    return err;
}

/* `old`: the previous payload; NULL for a new cron. cron->metadata must be set. */
static int make_payload(struct hd_call *call, struct hd_cron_rec *cron, hd_json_val old)
{
    struct hd_buf buf;
    struct hd_jw jw;
    int err;

    hd_buf_init(&buf, MAX_PAYLOAD);
    hd_jw_init(&jw, &buf);
    hd_jw_object(&jw);
    hd_jw_put_string(&jw, "assistant_id", cron->assistant_id);
    for (size_t i = 0; members[i]; i++) {
        hd_json_val val = cron_choose(call, old, members[i]);

        if (!val)
            continue;
        hd_jw_put_val(&jw, members[i], val);
    }
    put_cron_config(&jw, cron_choose(call, old, "config"), cron->id);
    hd_jw_put_raw_or(&jw, "metadata", cron->metadata, "{}");
    hd_jw_object_end(&jw);
    err = hd_jw_finish_in(&jw, call->arena, &cron->payload);
    return err ? err : check_payload(call, cron->payload);
}

/* ---- times ------------------------------------------------------------ */

/* An explicit null clears it. */
static int read_end(struct hd_call *call, int64_t *end_at)
{
    hd_json_val val = hd_json_get(call->body, HD_S("end_time"));

    if (!val)
        return 0;
    *end_at = 0;
    if (hd_json_is_null(val) || hd_iso_parse(hd_json_string(val), end_at))
        return 0;
    return hd_error_set(&call->fault, HD_EINVAL,
                        "end_time: expected a time such as \"2030-01-31T12:00:00Z\"");
}

/* True when the request has one of these members, so that the next firing is computed again. */
static bool is_moved(const struct hd_call *call)
{
    return hd_body_get(call, "schedule") || hd_body_get(call, "timezone") ||
           hd_body_get(call, "enabled") || hd_json_get(call->body, HD_S("end_time"));
}

static int read_times(struct hd_call *call, struct hd_cron_rec *cron)
{
    static const char *const words[] = {"delete", "keep", NULL};
    int word = cron->keeps_threads;
    int err = hd_body_string(call, "schedule", &cron->schedule);

    if (!err && cron->schedule.len == 0)
        err = hd_error_set(&call->fault, HD_EINVAL, "schedule: required");
    if (!err)
        err = hd_body_string(call, "timezone", &cron->timezone);
    if (!err)
        err = read_end(call, &cron->end_at);
    if (!err)
        err = hd_body_bool(call, "enabled", &cron->is_enabled);
    if (!err)
        err = hd_body_word(call, "on_run_completed", words, &word);
    cron->keeps_threads = word == 1;
    cron->updated_at = hd_clock_now_us();
    if (!err && is_moved(call)) {
        err = hd_scheduler_plan(cron, cron->updated_at, &call->fault);
        if (err == HD_ENOTFOUND) /* an unknown time zone is an invalid value, not an unknown cron */
            call->fault.code = err = HD_EINVAL;
    }
    return err;
}

/* ---- creating --------------------------------------------------------- */

static int find_assistant(struct hd_call *call, struct hd_cron_rec *cron)
{
    struct hd_assistant_rec assistant;
    struct hd_slice id = {NULL, 0};
    int err = hd_body_string(call, "assistant_id", &id);

    if (!err && id.len == 0)
        err = hd_error_set(&call->fault, HD_EINVAL, "assistant_id: required");
    if (err)
        return err;
    err = hd_assistant_lookup(call->app, call->actor, id, call->arena, &assistant, &call->fault);
    if (err == HD_ENOTFOUND) {
        call->fault = (struct heddle_error){0};
        return hd_error_set(&call->fault, err,
                            "No assistant found for \"%.*s\". Make sure the assistant ID is for a "
                            "valid assistant or a valid graph ID.",
                            (int)(id.len < 60 ? id.len : 60), id.ptr);
    }
    cron->assistant_id = assistant.id;
    return err;
}

static int read_metadata(struct hd_call *call, struct hd_slice *out)
{
    hd_json_val given;
    int err = hd_body_members(call, "metadata", &given);

    if (!err)
        err = hd_call_text(call, given, out);
    return err ? err : hd_owner_set(call, out);
}

static int read_cron(struct hd_call *call, struct hd_cron_rec *cron)
{
    char *id = hd_arena_alloc(call->arena, HD_UUID_SIZE);
    int err;

    if (!id)
        return HD_ENOMEM;
    hd_uuid_v7(id);
    cron->id = hd_slice(id, HD_UUID_LEN);
    cron->principal = call->actor;
    cron->is_enabled = true;
    err = read_times(call, cron);
    cron->created_at = cron->updated_at;
    if (!err)
        err = read_metadata(call, &cron->metadata);
    if (!err)
        err = find_assistant(call, cron);
    if (!err)
        err = make_payload(call, cron, NULL);
    return err;
}

static int cron_apply(struct hd_call *call, const struct hd_cron_rec *cron,
                      struct hd_batch_builder *batch, struct heddle_error *fault)
{
    struct hd_batch view = hd_batch_view(batch);

    return hd_rows_apply(call->app->store, cron->id, &view, NULL, fault);
}

static struct hd_step add_cron(struct hd_call *call, struct hd_cron_rec *cron)
{
    struct hd_batch_builder batch;
    int err;

    hd_batch_init(&batch);
    err = hd_cron_add(&batch, cron);
    if (!err)
        err = cron_apply(call, cron, &batch, &call->fault);
    hd_batch_fini(&batch);
    if (err)
        return hd_step_fail(err);
    hd_cron_view(&call->jw, cron, NULL, 0);
    return HD_NEXT;
}

static struct hd_step create_cron(struct hd_call *call)
{
    struct hd_cron_rec cron = {.thread_id = {NULL, 0}};
    int err = read_cron(call, &cron);

    return err ? hd_step_fail(err) : add_cron(call, &cron);
}

/*
 * A cron runs as its creator, long after the request. It cannot use a thread that is shared with an
 * organisation, since only the creator's token proves the membership.
 */
static int check_share(struct hd_call *call, struct hd_slice thread_id, bool *is_good)
{
    enum hd_role role = HD_ROLE_OWNER;
    struct hd_slice owner = call->principal;
    int err = 0;

    if (!hd_slice_eq(call->principal, call->actor))
        err = hd_participation_find(call->app->store, call->actor, NULL, 0, thread_id, call->arena,
                                    &owner, &role, &call->fault);
    *is_good = !err && role >= HD_ROLE_EDITOR && hd_slice_eq(owner, call->principal);
    if (err != HD_ENOTFOUND)
        return err;
    call->fault = (struct heddle_error){0};
    return 0;
}

static struct hd_step create_thread_cron(struct hd_call *call)
{
    struct hd_cron_rec cron = {.thread_id = {NULL, 0}};
    struct hd_thread_rec thread = {.id = {NULL, 0}};
    bool is_good = false;
    int err = read_cron(call, &cron);

    if (!err)
        err = hd_call_thread(call, &thread);
    if (!err)
        err = check_share(call, thread.id, &is_good);
    if (!err && !is_good)
        return hd_call_refuse(call, 403,
                              "a cron needs a thread that is shared with its creator, not only "
                              "with an organisation");
    if (err)
        return hd_step_fail(err);
    cron.thread_id = thread.id;
    return add_cron(call, &cron);
}

/* ---- changing --------------------------------------------------------- */

static int read_stored(struct hd_call *call, struct hd_cron_rec *cron)
{
    struct hd_slice id;
    bool is_seen = true;
    int err = hd_path_uuid(call, 0, "cron_id", &id);

    if (!err)
        err = hd_cron_read(call->app->store, call->actor, id, call->arena, cron, &call->fault);
    if (!err)
        err = hd_call_sees(call, HD_OF_CRONS, cron->metadata, &is_seen);
    if (err == HD_ENOTFOUND || !is_seen)
        return hd_error_set(&call->fault, HD_ENOTFOUND, "Cron not found");
    return err;
}

static int change(struct hd_call *call, struct hd_cron_rec *cron)
{
    struct hd_json old = {NULL};
    hd_json_val metadata = NULL;
    int err = read_times(call, cron);

    if (!err)
        err = hd_body_members(call, "metadata", &metadata);
    if (!err && metadata)
        err = hd_owner_merge(call, metadata, &cron->metadata);
    if (!err)
        err = hd_json_parse(&old, cron->payload, &call->fault);
    if (!err)
        err = make_payload(call, cron, hd_json_root(&old));
    hd_json_fini(&old);
    return err;
}

struct cron_patch {
    struct hd_call *call;
    struct hd_cron_rec cron;
};

static int cron_patch_once(void *arg, struct heddle_error *fault)
{
    struct cron_patch *patch = arg;
    struct hd_batch_builder batch;
    int err = read_stored(patch->call, &patch->cron);

    if (!err)
        err = change(patch->call, &patch->cron);
    if (err)
        return err;
    hd_batch_init(&batch);
    err = hd_cron_put(&batch, &patch->cron);
    if (!err)
        err = cron_apply(patch->call, &patch->cron, &batch, fault);
    hd_batch_fini(&batch);
    return err;
}

static struct hd_step patch_cron(struct hd_call *call)
{
    struct cron_patch patch = {.call = call, .cron = {.schedule = HD_S("* * * * *")}};
    struct heddle_error fault = {0};
    int err = read_times(call, &patch.cron); /* 422 for a bad value, even of an unknown cron */

    if (!err)
        err = hd_rows_change(call->app->store, cron_patch_once, &patch, &fault);
    if (err)
        return hd_step_fail(fault.code ? hd_error_set(&call->fault, err, "%s", fault.text) : err);
    hd_cron_view(&call->jw, &patch.cron, NULL, 0);
    return HD_NEXT;
}

static struct hd_step delete_cron(struct hd_call *call)
{
    struct hd_batch_builder batch;
    struct hd_cron_rec cron;
    int err = read_stored(call, &cron);

    if (err)
        return hd_step_fail(err);
    hd_batch_init(&batch);
    err = hd_cron_delete(&batch, cron.principal, cron.id);
    if (!err)
        err = cron_apply(call, &cron, &batch, &call->fault);
    hd_batch_fini(&batch);
    call->status = 204;
    return hd_step_done(err);
}

/* The next firing may be earlier than the scheduler's timer. */
static struct hd_step changed_then(struct hd_call *call)
{
    hd_scheduler_wake(call->app->scheduler);
    return hd_step_done(call->jw.err);
}

static const struct hd_endpoint routes[] = {
    {.method = HD_METHOD_POST,
     .pattern = "/runs/crons",
     .access = HD_ACCESS_USER,
     .on = HD_ON_CRONS_CREATE,
     .grows = true,
     .work = create_cron,
     .then = changed_then,
     .tag = "Crons",
     .summary = "Create a cron whose runs each get a new thread",
     .body = "CronCreate",
     .answer = "Cron"},
    {.method = HD_METHOD_POST,
     .pattern = "/threads/{thread_id}/runs/crons",
     .access = HD_ACCESS_EDITOR,
     .on = HD_ON_CRONS_CREATE,
     .also_on = HD_ON_THREADS_CREATE_RUN,
     .grows = true,
     .work = create_thread_cron,
     .then = changed_then,
     .tag = "Crons",
     .summary = "Create a cron for a thread",
     .body = "CronCreate",
     .answer = "Cron"},
    {.method = HD_METHOD_PATCH,
     .pattern = "/runs/crons/{cron_id}",
     .access = HD_ACCESS_USER,
     .on = HD_ON_CRONS_UPDATE,
     .grows = true,
     .work = patch_cron,
     .then = changed_then,
     .tag = "Crons",
     .summary = "Update a cron",
     .body = "CronPatch",
     .answer = "Cron"},
    {.method = HD_METHOD_DELETE,
     .pattern = "/runs/crons/{cron_id}",
     .access = HD_ACCESS_USER,
     .on = HD_ON_CRONS_DELETE,
     .frees = true,
     .work = delete_cron,
     .tag = "Crons",
     .summary = "Delete a cron",
     .status = 204},
};

const struct hd_routes hd_routes_crons = {routes, HD_COUNT(routes)};
