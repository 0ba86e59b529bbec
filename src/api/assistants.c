/* Assistants: create, read, change, roll back, delete. */
#include <string.h>

#include "api/api.h"
#include "api/assistant_view.h"
#include "api/request/authorize.h"
#include "api/owner.h"
#include "api/peer_cancel.h"
#include "api/thread_delete.h"
#include "base/clock.h"
#include "base/uuid.h"
#include "run/assistant_lookup.h"
#include "run/queue.h"
#include "store/rows.h"

#define MAX_RECURSION 1000000

static const struct hd_slice empty_object = HD_S_INIT("{}");

/* ---- parsing the request */

/* The body of a request that creates or changes an assistant; absent members are NULL or empty. */
struct assistant_draft {
    struct hd_slice graph_id;
    hd_json_val name;
    hd_json_val description;
    hd_json_val config;
    hd_json_val configurable; /* of the config */
    hd_json_val context;
    hd_json_val metadata;
};

static int read_assistant_text(struct hd_call *call, const char *name, hd_json_val *out)
{
    struct hd_slice ignored;

    *out = hd_body_get(call, name);
    return hd_body_string(call, name, &ignored);
}

static hd_json_val assistant_member(hd_json_val object, const char *name)
{
    hd_json_val val = hd_json_get(object, hd_slice_cstr(name));

    return hd_json_is_null(val) ? NULL : val;
}

static int check_tags(struct hd_call *call, hd_json_val tags)
{
    struct hd_json_iter it = hd_json_iter(tags);
    bool is_good = !tags || hd_json_is_array(tags);

    while (is_good && hd_json_next(&it))
        is_good = hd_json_is_string(it.val);
    return is_good
               ? 0
               : hd_error_set(&call->fault, HD_EINVAL, "config.tags: expected a list of strings");
}

/* Runs use these members of their assistant without another check. */
static int check_config(struct hd_call *call, struct assistant_draft *draft)
{
    hd_json_val limit = assistant_member(draft->config, "recursion_limit");
    int64_t number = 1;

    draft->configurable = assistant_member(draft->config, "configurable");
    if (draft->configurable && !hd_json_is_object(draft->configurable))
        return hd_error_set(&call->fault, HD_EINVAL, "config.configurable: expected an object");
    if (limit && (!hd_json_whole(limit, &number) || number < 1 || number > MAX_RECURSION))
        return hd_error_set(&call->fault, HD_EINVAL,
                            "config.recursion_limit: expected an integer from 1 to %d",
                            MAX_RECURSION);
    return check_tags(call, assistant_member(draft->config, "tags"));
}

static int read_draft(struct hd_call *call, struct assistant_draft *draft)
{
    int err = hd_body_string(call, "graph_id", &draft->graph_id);

    if (!err)
        err = read_assistant_text(call, "name", &draft->name);
    if (!err)
        err = read_assistant_text(call, "description", &draft->description);
    if (!err)
        err = hd_body_members(call, "config", &draft->config);
    if (!err)
        err = hd_body_members(call, "context", &draft->context);
    if (!err)
        err = hd_body_members(call, "metadata", &draft->metadata);
    if (!err)
        err = check_config(call, draft);
    if (!err)
        err = hd_call_refuse_secrets(call, "config", draft->config, true);
    if (!err)
        err = hd_call_refuse_secrets(call, "context", draft->context, true);
    return err ? err : hd_call_refuse_secrets(call, "metadata", draft->metadata, false);
}

/* Both names mean the same member, so a request may not set both. */
static bool has_both(const struct assistant_draft *draft)
{
    return hd_json_size(draft->configurable) > 0 && hd_json_size(draft->context) > 0;
}

static struct hd_step refuse_both(struct hd_call *call)
{
    return hd_call_refuse(
        call, 400, "Cannot specify both configurable and context. Prefer setting context alone.");
}

/* ---- applying the request --------------------------------------------- */

/* `config` with another configurable, which is left out when it is empty. */
static int with_configurable(struct hd_call *call, hd_json_val config, hd_json_val configurable,
                             struct hd_slice *out)
{
    struct hd_json_iter it = hd_json_iter(config);
    struct hd_buf buf;
    struct hd_jw jw;

    hd_buf_init(&buf, SIZE_MAX);
    hd_jw_init(&jw, &buf);
    hd_jw_object(&jw);
    while (hd_json_next(&it)) {
        if (hd_slice_eq(it.key, HD_S("configurable")))
            continue;
        hd_jw_key(&jw, it.key);
        hd_jw_val(&jw, it.val);
    }
    if (hd_json_size(configurable) > 0)
        hd_jw_put_val(&jw, "configurable", configurable);
    hd_jw_object_end(&jw);
    return hd_jw_finish_in(&jw, call->arena, out);
}

/* A new context for the existing configuration. */
static int change_context(struct hd_call *call, const struct assistant_draft *draft,
                          struct hd_assistant_rec *assistant)
{
    struct hd_json old = {NULL};
    int err = hd_json_parse(&old, assistant->config.len > 0 ? assistant->config : empty_object,
                            &call->fault);

    if (!err)
        err = with_configurable(call, hd_json_root(&old), draft->context, &assistant->config);
    if (!err)
        err = hd_call_text(call, draft->context, &assistant->context);
    hd_json_fini(&old);
    return err;
}

/* A new configuration, and the context that belongs to it. */
static int change_config(struct hd_call *call, const struct assistant_draft *draft,
                         struct hd_assistant_rec *assistant)
{
    int err;

    if (hd_json_size(draft->context) > 0) {
        err = with_configurable(call, draft->config, draft->context, &assistant->config);
        return err ? err : hd_call_text(call, draft->context, &assistant->context);
    }
    err = hd_call_text(call, draft->config, &assistant->config);
    if (!err)
        err = hd_call_text(call, draft->configurable, &assistant->context);
    if (assistant->context.len == 0)
        assistant->context = empty_object;
    return err;
}

/* Applies the draft to the assistant; members that the draft omits stay. */
static int change(struct hd_call *call, const struct assistant_draft *draft,
                  struct hd_assistant_rec *assistant)
{
    const struct hd_app_graph *graph;
    int err = 0;

    if (draft->graph_id.len > 0) {
        err = hd_call_graph(call, draft->graph_id, &graph);
        assistant->graph_id = draft->graph_id;
    }
    if (draft->name)
        assistant->name = hd_json_string(draft->name);
    if (!err && draft->description)
        err = hd_call_text(call, draft->description, &assistant->description);
    if (!err && draft->metadata)
        err = hd_owner_merge(call, draft->metadata, &assistant->metadata);
    if (!err && draft->config)
        err = change_config(call, draft, assistant);
    else if (!err && draft->context)
        err = change_context(call, draft, assistant);
    return err;
}

/* ---- create ----------------------------------------------------------- */

static int choose_id(struct hd_call *call, struct hd_slice *id)
{
    struct hd_slice given = {NULL, 0};
    char *made;
    int err = hd_body_string(call, "assistant_id", &given);

    if (err || given.ptr)
        return err ? err : hd_call_uuid(call, "assistant_id", given, id);
    made = hd_arena_alloc(call->arena, HD_UUID_SIZE);
    if (!made)
        return HD_ENOMEM;
    hd_uuid_v7(made);
    *id = hd_slice(made, HD_UUID_LEN);
    return 0;
}

static int assistant_add(struct hd_call *call, const struct hd_assistant_rec *assistant)
{
    struct hd_batch_builder batch;
    struct hd_batch view;
    int err;

    hd_batch_init(&batch);
    err = hd_assistant_add(&batch, assistant);
    view = hd_batch_view(&batch);
    if (!err)
        err = hd_rows_apply(call->app->store, assistant->id, &view, NULL, &call->fault);
    hd_batch_fini(&batch);
    return err;
}

struct assistant_addition {
    struct hd_call *call;
    struct hd_assistant_rec *assistant;
    bool *exists;
};

/* HD_ECONFLICT: the existing one was deleted before it was read. */
static int add_or_read_once(void *arg, struct heddle_error *fault)
{
    const struct assistant_addition *addition = arg;
    struct hd_assistant_rec *assistant = addition->assistant, found;
    struct hd_call *call = addition->call;
    int err = assistant_add(call, assistant);

    if (err != HD_ECONFLICT)
        return err;
    *fault = (struct heddle_error){0};
    err = hd_assistant_read(call->app->store, assistant->principal, assistant->id, call->arena,
                            &found, fault);
    if (err)
        return err == HD_ENOTFOUND ? HD_ECONFLICT : err;
    *assistant = found;
    *addition->exists = true;
    return 0;
}

/* Adds it, or reads the existing one and sets *exists. */
static int add_or_read(struct hd_call *call, struct hd_assistant_rec *assistant, bool *exists)
{
    *exists = false;
    return hd_rows_change(call->app->store, add_or_read_once,
                          &(struct assistant_addition){call, assistant, exists}, &call->fault);
}

static bool is_admin(const struct hd_call *call)
{
    return !call->identity || call->identity->is_admin;
}

/* The owner of the new assistant: the caller, or all users. */
static int choose_principal(struct hd_call *call, struct hd_slice *out, bool *is_refused)
{
    bool is_shared = false;
    int err = hd_body_bool(call, "shared", &is_shared);

    *is_refused = !err && is_shared && !is_admin(call);
    *out = is_shared ? hd_slice(NULL, 0) : call->actor;
    return err;
}

static struct hd_step create_assistant(struct hd_call *call)
{
    static const char *const words[] = {"raise", "do_nothing", NULL};
    int64_t now = hd_clock_now_us();
    struct hd_assistant_rec assistant = {.principal = call->actor,
                                         .version = 1,
                                         .created_at = now,
                                         .updated_at = now,
                                         .name = HD_S("Untitled"),
                                         .config = empty_object,
                                         .context = empty_object,
                                         .metadata = empty_object};
    struct assistant_draft draft = {.name = NULL};
    bool exists = false, is_refused = false, is_seen = true;
    int word = 0;
    int err = choose_principal(call, &assistant.principal, &is_refused);

    if (is_refused)
        return hd_call_refuse(call, 403, "only administrators may create shared assistants");
    if (!err)
        err = read_draft(call, &draft);
    if (!err && draft.graph_id.len == 0)
        return hd_step_fail(hd_error_set(&call->fault, HD_EINVAL, "graph_id: required"));
    if (!err)
        err = hd_body_word(call, "if_exists", words, &word);
    if (!err)
        err = choose_id(call, &assistant.id);
    if (!err && has_both(&draft))
        return refuse_both(call);
    if (!err)
        err = change(call, &draft, &assistant);
    if (!err)
        err = hd_owner_set(call, &assistant.metadata);
    if (!err)
        err = add_or_read(call, &assistant, &exists);
    if (!err && exists)
        err = hd_call_sees(call, HD_OF_ASSISTANTS, assistant.metadata, &is_seen);
    if (!err && exists && (word == 0 || !is_seen))
        return hd_call_refuse(call, 409, "Assistant already exists");
    if (!err)
        hd_assistant_view(&call->jw, &assistant, HD_ASSISTANT_VIEW_ALL);
    return hd_step_done(err);
}

/* ---- get, change, roll back ------------------------------------------- */

static struct hd_step get_assistant(struct hd_call *call)
{
    struct hd_assistant_rec assistant;
    int err = hd_call_assistant(call, &assistant);

    if (!err)
        hd_assistant_view(&call->jw, &assistant, HD_ASSISTANT_VIEW_ALL);
    return hd_step_done(err);
}

static bool is_system(const struct hd_call *call, const struct hd_assistant_rec *assistant)
{
    for (size_t i = 0; i < call->app->graph_count; i++) {
        if (hd_slice_eq(assistant->id, hd_slice_cstr(call->app->graphs[i].assistant_id)))
            return true;
    }
    return false;
}

/*
 * An assistant that the caller may change: its own. Shared ones are visible to all users, so the
 * refusal may name the reason.
 */
static int read_own(struct hd_call *call, struct hd_assistant_rec *assistant)
{
    int err = hd_call_assistant(call, assistant);

    if (err || hd_slice_eq(assistant->principal, call->actor))
        return err;
    if (is_system(call, assistant))
        return hd_error_set(&call->fault, HD_EACCESS,
                            "the default assistant of a graph cannot be changed");
    if (!is_admin(call))
        return hd_error_set(&call->fault, HD_EACCESS,
                            "only administrators may change shared assistants");
    return 0;
}

static int assistant_put(struct hd_call *call, const struct hd_assistant_rec *assistant,
                         int64_t from, bool is_new_version)
{
    struct hd_batch_builder batch;
    struct hd_batch view;
    int err;

    hd_batch_init(&batch);
    err = hd_assistant_put(&batch, assistant, from, is_new_version);
    view = hd_batch_view(&batch);
    if (!err)
        err = hd_rows_apply(call->app->store, assistant->id, &view, NULL, &call->fault);
    hd_batch_fini(&batch);
    return err;
}

struct assistant_patch {
    struct hd_call *call;
    struct assistant_draft draft;
};

static int assistant_patch_once(void *arg, struct heddle_error *fault)
{
    const struct assistant_patch *patch = arg;
    const struct assistant_draft *draft = &patch->draft;
    struct hd_call *call = patch->call;
    struct hd_assistant_rec assistant;
    int64_t last = 0, from = 0;
    int err = read_own(call, &assistant);

    if (!err)
        err = hd_assistant_last_version(call->app->store, assistant.principal, assistant.id, &last,
                                        fault);
    if (!err)
        err = change(call, draft, &assistant);
    if (err)
        return err;
    from = assistant.version;
    assistant.version = last + 1;
    assistant.updated_at = hd_clock_now_us();
    err = assistant_put(call, &assistant, from, true);
    if (!err)
        hd_assistant_view(&call->jw, &assistant, HD_ASSISTANT_VIEW_ALL);
    return err;
}

static struct hd_step patch_assistant(struct hd_call *call)
{
    struct assistant_patch patch = {.call = call};
    int err = read_draft(call, &patch.draft);

    if (err)
        return hd_step_fail(err);
    if (has_both(&patch.draft))
        return refuse_both(call);
    return hd_step_done(
        hd_rows_change(call->app->store, assistant_patch_once, &patch, &call->fault));
}

struct version_choice {
    struct hd_call *call;
    int64_t version;
};

static int set_latest_once(void *arg, struct heddle_error *fault)
{
    const struct version_choice *choice = arg;
    struct hd_call *call = choice->call;
    int64_t version = choice->version;
    struct hd_assistant_rec now, then;
    int err = read_own(call, &now);

    if (err)
        return err;
    err = hd_assistant_read_version(call->app->store, now.principal, now.id, version, call->arena,
                                    &then, fault);
    if (err == HD_ENOTFOUND)
        return hd_error_set(fault, HD_ENOTFOUND, "Assistant version %lld not found",
                            (long long)version);
    if (err)
        return err;
    then.created_at = now.created_at;
    then.updated_at = hd_clock_now_us();
    err = assistant_put(call, &then, now.version, false);
    if (!err)
        hd_assistant_view(&call->jw, &then, HD_ASSISTANT_VIEW_ALL);
    return err;
}

static struct hd_step set_latest(struct hd_call *call)
{
    struct version_choice choice = {.call = call};
    int64_t version = 0;
    int err = hd_body_int(call, "version", 1, INT64_MAX, &version);

    if (!err && version == 0)
        return hd_step_fail(hd_error_set(&call->fault, HD_EINVAL, "version: required"));
    if (err)
        return hd_step_fail(err);
    choice.version = version;
    return hd_step_done(hd_rows_change(call->app->store, set_latest_once, &choice, &call->fault));
}

/* ---- versions --------------------------------------------------------- */

struct assistant_listing {
    struct hd_call *call;
    hd_json_val metadata;
    int64_t offset, limit;
};

static int on_version(void *arg, const struct hd_assistant_rec *version)
{
    struct assistant_listing *listing = arg;
    struct hd_json metadata = {NULL};
    bool is_match = true;
    int err;

    if (listing->metadata) {
        err = hd_json_parse(&metadata, version->metadata.len > 0 ? version->metadata : empty_object,
                            &listing->call->fault);
        is_match = !err && hd_json_contains(hd_json_root(&metadata), listing->metadata);
        hd_json_fini(&metadata);
        if (err)
            return err;
    }
    if (!is_match || listing->offset-- > 0)
        return 0;
    hd_assistant_view(&listing->call->jw, version, HD_ASSISTANT_VIEW_ALL);
    return --listing->limit == 0;
}

static struct hd_step list_versions(struct hd_call *call)
{
    struct assistant_listing listing = {.call = call, .limit = 10};
    struct hd_assistant_rec assistant;
    int err = hd_body_object(call, "metadata", &listing.metadata);

    if (!err)
        err = hd_body_int(call, "limit", 1, 1000, &listing.limit);
    if (!err)
        err = hd_body_int(call, "offset", 0, INT32_MAX, &listing.offset);
    if (!err)
        err = hd_call_assistant(call, &assistant);
    if (err)
        return hd_step_fail(err);
    hd_jw_array(&call->jw);
    err = hd_assistant_versions_scan(call->app->store, assistant.principal, assistant.id,
                                     on_version, &listing, &call->fault);
    hd_jw_array_end(&call->jw);
    return hd_step_done(err);
}

/* ---- delete ----------------------------------------------------------- */

/* A list of ids; in the arena of the call. */
struct ids {
    struct hd_call *call;
    struct hd_slice assistant_id;
    struct hd_slice *list;
    size_t count, cap;
};

static int keep_id(struct ids *ids, struct hd_slice id)
{
    int err;

    if (ids->count == ids->cap) {
        size_t cap = ids->cap ? ids->cap * 2 : 16;
        struct hd_slice *grown = hd_arena_calloc(ids->call->arena, cap, sizeof(*grown));

        if (!grown)
            return HD_ENOMEM;
        if (ids->count > 0)
            memcpy(grown, ids->list, ids->count * sizeof(*grown));
        ids->list = grown;
        ids->cap = cap;
    }
    err = hd_arena_copy(ids->call->arena, id, &ids->list[ids->count]);
    ids->count += !err;
    return err;
}

struct cron_removal {
    struct hd_call *call;
    const struct hd_assistant_rec *assistant;
    struct hd_batch_builder *batch;
};

/* Another user's cron may belong to an assistant of its own with the same id. */
static int is_cron_of(const struct cron_removal *removal, const struct hd_cron_rec *cron, bool *out)
{
    const struct hd_assistant_rec *assistant = removal->assistant;
    struct hd_call *call = removal->call;
    struct hd_assistant_rec own;
    int err;

    *out = hd_slice_eq(cron->assistant_id, assistant->id);
    if (!*out || hd_slice_eq(cron->principal, assistant->principal))
        return 0;
    err = hd_assistant_read(call->app->store, cron->principal, assistant->id, call->arena, &own,
                            &call->fault);
    *out = err == HD_ENOTFOUND;
    if (!*out)
        return err;
    call->fault = (struct heddle_error){0};
    return 0;
}

static int on_cron(void *arg, const struct hd_cron_rec *cron)
{
    const struct cron_removal *removal = arg;
    struct hd_slice principal, id;
    bool is_match;
    int err = is_cron_of(removal, cron, &is_match);

    if (err || !is_match)
        return err;
    err = hd_arena_copy(&removal->batch->arena, cron->principal, &principal);
    if (!err)
        err = hd_arena_copy(&removal->batch->arena, cron->id, &id);
    return err ? err : hd_cron_delete(removal->batch, principal, id);
}

/* Deletes the assistant, all its versions, and its crons: of a shared one, those of all users. */
static int delete_stored(struct hd_call *call, const struct hd_assistant_rec *assistant)
{
    struct hd_batch_builder batch;
    struct cron_removal removal = {.call = call, .assistant = assistant, .batch = &batch};
    struct hd_batch view;
    int err;

    hd_batch_init(&batch);
    err =
        assistant->principal.len > 0
            ? hd_crons_scan(call->app->store, assistant->principal, on_cron, &removal, &call->fault)
            : hd_crons_scan_all(call->app->store, on_cron, &removal, &call->fault);
    if (!err)
        err = hd_assistant_delete(&batch, assistant->principal, assistant->id);
    view = hd_batch_view(&batch);
    if (!err)
        err = hd_rows_apply(call->app->store, assistant->id, &view, NULL, &call->fault);
    hd_batch_fini(&batch);
    return err;
}

static int on_assistant_thread(void *arg, const struct hd_thread_rec *thread)
{
    struct ids *ids = arg;
    struct hd_json metadata = {NULL};
    hd_json_val id;
    int err;

    if (thread->metadata.len == 0)
        return 0;
    err = hd_json_parse(&metadata, thread->metadata, &ids->call->fault);
    id = hd_json_get(hd_json_root(&metadata), HD_S("assistant_id"));
    if (!err && hd_json_is_string(id) && hd_slice_eq(hd_json_string(id), ids->assistant_id))
        err = keep_id(ids, thread->id);
    hd_json_fini(&metadata);
    return err;
}

/* A list, since clients of other servers may read one. */
static void put_deleted_id(struct hd_call *call, const struct hd_assistant_rec *assistant)
{
    hd_jw_array(&call->jw);
    hd_jw_string(&call->jw, assistant->id);
    hd_jw_array_end(&call->jw);
}

static void on_threads_deleted(struct hd_call *call, size_t count)
{
    (void)call;
    (void)count;
}

/* In the arena of its call. */
struct assistant_removal {
    struct hd_call *call;
    struct hd_assistant_rec assistant;
    bool deletes_threads;
    size_t waited_for; /* runs that have not ended */
    struct hd_run_selection selection;
    struct hd_peer_cancel elsewhere; /* runs of other servers; counts as one that is waited for */
};

struct removal_waiter {
    struct assistant_removal *removal;
    struct hd_waiter waiter;
};

static struct hd_step find_threads(struct hd_call *call)
{
    const struct assistant_removal *removal = call->state;
    struct ids threads = {.call = call, .assistant_id = removal->assistant.id};
    int err = hd_threads_scan(call->app->store, call->actor, true, on_assistant_thread, &threads,
                              &call->fault);

    return err ? hd_step_fail(err)
               : hd_thread_delete_start(call, threads.list, threads.count, on_threads_deleted);
}

static struct hd_step after_runs(struct assistant_removal *removal)
{
    return removal->deletes_threads
               ? hd_call_visit(removal->call, find_threads, hd_thread_delete_then)
               : HD_DONE;
}

static void end_wait_of_removal(void *ctx)
{
    struct assistant_removal *removal = ctx;

    if (--removal->waited_for == 0)
        hd_call_resume(removal->call, after_runs(removal));
}

static void on_run_ended(void *ctx, const struct hd_outcome *outcome)
{
    struct removal_waiter *own = ctx;

    (void)outcome;
    own->waiter.link = NULL;
    end_wait_of_removal(own->removal);
}

static void wait_for_run(void *ctx, const struct hd_run_rec *run)
{
    struct assistant_removal *removal = ctx;
    struct hd_call *call = removal->call;
    struct removal_waiter *own = hd_arena_calloc(call->arena, 1, sizeof(*own));

    if (!own)
        return; /* the response may be early */
    own->removal = removal;
    own->waiter.fn = on_run_ended;
    own->waiter.ctx = own;
    if (hd_queue_wait(call->app->queue, run->principal, run->thread_id, run->run_id, &own->waiter))
        removal->waited_for++;
}

/* Stops the runs of the assistant on all threads, also on those that other users share. */
static struct hd_step delete_assistant_then(struct hd_call *call)
{
    struct assistant_removal *removal = call->state;
    const struct hd_assistant_rec *assistant = &removal->assistant;
    bool is_shared = assistant->principal.len == 0; /* then all users run it */
    int err;

    removal->selection =
        (struct hd_run_selection){.actor = is_shared ? NULL : &assistant->principal,
                                  .assistant_id = &assistant->id,
                                  .running = true,
                                  .pending = true};
    removal->elsewhere = (struct hd_peer_cancel){.call = call,
                                                 .action = HD_CANCEL_INTERRUPT,
                                                 .waits = true,
                                                 .selection = &removal->selection,
                                                 .done = end_wait_of_removal,
                                                 .ctx = removal};
    hd_queue_cancel_all(call->app->queue, &removal->selection, HD_CANCEL_INTERRUPT, wait_for_run,
                        removal);
    err = hd_peer_cancel_start(&removal->elsewhere);
    removal->waited_for += err == 0;
    if (err < 0 && removal->waited_for == 0)
        return hd_step_fail(err);
    return removal->waited_for > 0 ? HD_WAIT : after_runs(removal);
}

/* The assistant is deleted before its runs and threads: without it no run of it can start. */
static struct hd_step delete_assistant(struct hd_call *call)
{
    struct assistant_removal *removal = hd_arena_calloc(call->arena, 1, sizeof(*removal));
    int err = removal ? 0 : HD_ENOMEM;

    if (!err)
        err = hd_params_bool(&call->query, HD_S("delete_threads"), false, &removal->deletes_threads,
                             &call->fault);
    if (!err)
        err = read_own(call, &removal->assistant);
    if (!err)
        err = delete_stored(call, &removal->assistant);
    if (err)
        return hd_step_fail(err);
    removal->call = call;
    call->state = removal;
    put_deleted_id(call, &removal->assistant);
    return HD_NEXT;
}

static const struct hd_endpoint routes[] = {
    {.method = HD_METHOD_POST,
     .pattern = "/assistants",
     .access = HD_ACCESS_USER,
     .on = HD_ON_ASSISTANTS_CREATE,
     .grows = true,
     .work = create_assistant,
     .tag = "Assistants",
     .summary = "Create an assistant",
     .body = "AssistantCreate",
     .answer = "Assistant"},
    {.method = HD_METHOD_GET,
     .pattern = "/assistants/{assistant_id}",
     .access = HD_ACCESS_USER,
     .on = HD_ON_ASSISTANTS_READ,
     .work = get_assistant,
     .tag = "Assistants",
     .summary = "Get an assistant",
     .answer = "Assistant"},
    {.method = HD_METHOD_PATCH,
     .pattern = "/assistants/{assistant_id}",
     .access = HD_ACCESS_USER,
     .on = HD_ON_ASSISTANTS_UPDATE,
     .grows = true,
     .work = patch_assistant,
     .tag = "Assistants",
     .summary = "Update an assistant, which creates a new version",
     .body = "?AssistantPatch",
     .answer = "Assistant"},
    {.method = HD_METHOD_DELETE,
     .pattern = "/assistants/{assistant_id}",
     .access = HD_ACCESS_USER,
     .on = HD_ON_ASSISTANTS_DELETE,
     .also_on = HD_ON_THREADS_DELETE,
     .frees = true,
     .work = delete_assistant,
     .then = delete_assistant_then,
     .tag = "Assistants",
     .summary =
         "Stop the runs of an assistant and delete it, its versions and crons, and optionally "
         "its threads",
     .query = "delete_threads",
     .answer = "Ids"},
    {.method = HD_METHOD_POST,
     .pattern = "/assistants/{assistant_id}/versions",
     .access = HD_ACCESS_USER,
     .on = HD_ON_ASSISTANTS_READ,
     .work = list_versions,
     .tag = "Assistants",
     .summary = "List the versions of an assistant, newest first",
     .body = "?AssistantVersions",
     .answer = "[Assistant"},
    {.method = HD_METHOD_POST,
     .pattern = "/assistants/{assistant_id}/latest",
     .access = HD_ACCESS_USER,
     .on = HD_ON_ASSISTANTS_UPDATE,
     .work = set_latest,
     .tag = "Assistants",
     .summary = "Make a version of an assistant the current one",
     .body = "AssistantLatest",
     .answer = "Assistant"},
};

const struct hd_routes hd_routes_assistants = {routes, HD_COUNT(routes)};
