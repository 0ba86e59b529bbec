#include "run/admit.h"

#include <heddle.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/uuid.h"
#include "cluster/cluster.h"
#include "gate/limits.h"
#include "records/hold.h"
#include "records/run_slot.h"
#include "records/run_user.h"
#include "records/stream_modes.h"
#include "records/thread_heads.h"
#include "records/thread_roots.h"
#include "run/assistant_lookup.h"
#include "run/delegate.h"
#include "run/queue.h"
#include "run/run_commit.h"
#include "run/unsettled.h"
#include "search/thread_texts.h"
#include "secret/secret.h"
#include "store/rows.h"
#include "value/val.h"
#include "webhook/webhook.h"

#define MAX_KWARGS ((size_t)256 << 20)

static const char too_many_runs[] = "too many runs (limits.runs)";

/* The state of one attempt. */
struct attempt {
    struct hd_admission *a;
    struct heddle_error *fault;
    struct hd_assistant_rec assistant;
    struct hd_thread_rec thread;
    bool is_new_thread;
    struct hd_slice ns;
    struct hd_slice
        shown; /* the root of the checkpoint that the request names; empty: none, or "" */
    struct hd_slice checkpoint_id;
    struct hd_slice checkpoint_map;
    struct hd_run_rec *active; /* in flight on the line */
    size_t active_count;
    bool is_busy;            /* a run or a delegate executes on the line, or a run waits there */
    struct hd_val *secrets;  /* removed from the stored values; NULL: none */
    struct hd_run_slot slot; /* of the actor; 0: runs are not counted in the store */
    int64_t token;           /* of the hold on the thread; 0: this server uses its store alone */
    bool claims;             /* this attempt claims the thread */
};

static int refuse_run(struct attempt *t, int status, const char *fmt, ...) HD_PRINTF(3, 4);

/* Refuses the run; returns the error that ends the attempt. */
static int refuse_run(struct attempt *t, int status, const char *fmt, ...)
{
    char text[200];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    t->a->refusal = status;
    return hd_error_set(t->fault, HD_EINVAL, "%s", text);
}

static int render_val(struct hd_arena *arena, struct hd_val *val, struct hd_slice *out)
{
    struct hd_buf buf;
    int err = val ? 0 : HD_ENOMEM;

    hd_buf_init(&buf, MAX_KWARGS);
    if (!err)
        err = hd_val_render(&buf, val);
    if (!err)
        err = hd_arena_copy(arena, hd_buf_slice(&buf), out);
    hd_buf_fini(&buf);
    return err;
}

/* Merges a JSON object; other texts are ignored. Takes and returns `into`. */
static struct hd_val *merge_text(struct hd_val *into, struct hd_slice text)
{
    struct hd_val *more = NULL;

    if (text.len == 0)
        return into;
    if (hd_val_parse_json(text, &more, NULL) || !hd_val_is_object(more)) {
        hd_val_unref(more);
        return into;
    }
    into = hd_val_merge(into, more);
    hd_val_unref(more);
    return into;
}

/* ---- namespace and checkpoint ----------------------------------------- */

int hd_admit_assistant_ns(struct hd_arena *arena, struct hd_slice assistant_id,
                          struct hd_slice *out)
{
    char *text = hd_arena_printf(arena, "assistant:%.*s", (int)assistant_id.len, assistant_id.ptr);

    *out = hd_slice_cstr(text);
    return text ? 0 : HD_ENOMEM;
}

static struct hd_slice configured(const struct hd_run_request *request, const char *name)
{
    return hd_json_string(hd_json_get(request->configurable, hd_slice_cstr(name)));
}

/* With namespaces_show off, clients neither receive nor send the root of a namespace. */
static bool is_relative(const struct attempt *t)
{
    return !t->a->app->config->namespaces_show &&
           !hd_root_is_assistant(t->a->request->checkpoint_ns);
}

/* The root of the checkpoint that the request names; *is_named is false without one. */
static int find_shown(struct attempt *t, bool *is_named)
{
    const struct hd_run_request *request = t->a->request;

    t->shown = hd_slice(NULL, 0);
    *is_named = request->has_checkpoint_ns && !is_relative(t);
    if (!*is_named)
        return 0;
    if (request->checkpoint_ns.len == 0)
        return hd_thread_has_empty_root(t->a->app->store, &t->thread, is_named, t->fault);
    return hd_thread_root_of(t->a->app->store, &t->thread, request->checkpoint_ns, &t->shown,
                             t->fault);
}

/*
 * The namespace is that of the assistant, unless the configurable names another one; "" names the
 * empty root only where clients see roots. A checkpoint of another assistant is ignored: clients
 * send the head that they display, and the user may have switched the assistant since.
 */
static int choose_place(struct attempt *t)
{
    const struct hd_run_request *request = t->a->request;
    bool has_root =
        request->has_root && (request->root.len > 0 || t->a->app->config->namespaces_show);
    bool is_named = false;
    int err = hd_admit_assistant_ns(t->a->arena, t->assistant.id, &t->ns);

    if (!err)
        err = find_shown(t, &is_named);
    if (err)
        return err;
    if (has_root)
        t->ns = request->root;
    t->checkpoint_id = configured(request, "checkpoint_id");
    if (t->checkpoint_id.len == 0)
        t->checkpoint_id = request->checkpoint_id;
    if (!is_named || hd_slice_eq(t->shown, t->ns))
        return 0;
    if (!has_root && !hd_root_is_assistant(t->shown))
        t->ns = t->shown;
    else
        t->checkpoint_id = hd_slice(NULL, 0);
    return 0;
}

/* True if the request names a checkpoint of a subgraph. */
static bool is_inside(struct attempt *t)
{
    return t->a->request->checkpoint_ns.len > t->shown.len;
}

/* Strips the root, if present, from a namespace of the checkpoint map. */
static struct hd_slice below_root(const struct attempt *t, struct hd_slice ns)
{
    if (!hd_slice_starts(ns, t->ns) || t->ns.len == 0)
        return ns;
    if (ns.len == t->ns.len)
        return hd_slice(NULL, 0);
    if (ns.ptr[t->ns.len] != '|')
        return ns;
    return hd_slice(ns.ptr + t->ns.len + 1, ns.len - t->ns.len - 1);
}

static int write_map(struct attempt *t, struct hd_buf *buf)
{
    struct hd_json_iter it = hd_json_iter(t->a->request->checkpoint_map);
    struct hd_jw jw;

    hd_jw_init(&jw, buf);
    hd_jw_object(&jw);
    while (hd_json_next(&it)) {
        if (!hd_json_is_string(it.val))
            continue;
        hd_jw_key(&jw, below_root(t, it.key));
        hd_jw_string(&jw, hd_json_string(it.val));
    }
    hd_jw_object_end(&jw);
    return hd_jw_finish(&jw);
}

/* For a checkpoint of a subgraph, the run starts at the root's checkpoint, found in the map. */
static int follow_map(struct attempt *t)
{
    hd_json_val map = t->a->request->checkpoint_map, root = hd_json_get(map, HD_S(""));
    struct hd_buf buf;
    int err;

    if (!is_inside(t) || t->checkpoint_id.len == 0)
        return 0;
    if (!hd_json_is_string(root))
        root = hd_json_get(map, t->ns);
    if (!hd_json_is_string(root))
        return refuse_run(t, 422,
                          "checkpoint_map: needed to run from the checkpoint of a subgraph");
    hd_buf_init(&buf, MAX_KWARGS);
    err = write_map(t, &buf);
    if (!err)
        err = hd_arena_copy(t->a->arena, hd_buf_slice(&buf), &t->checkpoint_map);
    hd_buf_fini(&buf);
    t->checkpoint_id = hd_json_string(root);
    return err;
}

/* True if the run waits neither for a delay nor for others on its line. */
static bool begins_now(const struct attempt *t)
{
    return !t->is_busy && t->a->request->delay_us == 0;
}

/*
 * Uses the head that a client chose if the request names no checkpoint. A pending run reads its
 * head when it starts, since the runs before it change the head.
 */
static int follow_head(struct attempt *t)
{
    if (t->checkpoint_id.len > 0 || !begins_now(t))
        return 0;
    return hd_thread_heads_get(t->a->app->store, &t->thread, t->ns, t->a->arena, &t->checkpoint_id,
                               t->fault);
}

static int check_checkpoint(struct attempt *t)
{
    int err = 0;

    if (t->checkpoint_id.len > 0)
        err = hd_thread_heads_check(t->a->app->store, t->a->principal, t->thread.id, t->ns,
                                    t->checkpoint_id, t->fault);
    return err == HD_ENOTFOUND ? refuse_run(t, 404, "Checkpoint not found") : err;
}

/* ---- assistant and thread --------------------------------------------- */

static int find_assistant(struct attempt *t)
{
    struct hd_slice id = t->a->request->assistant_id;
    int err = hd_assistant_lookup(t->a->app, t->a->actor, id, t->a->arena, &t->assistant, t->fault);

    if (err != HD_ENOTFOUND)
        return err;
    return refuse_run(t, 404,
                      "No assistant found for \"%.*s\". Make sure the assistant ID is for a valid "
                      "assistant or a valid graph ID.",
                      (int)(id.len < 60 ? id.len : 60), id.ptr);
}

/* Deletes an expired thread and returns HD_ENOTFOUND for it. */
static int read_thread(struct attempt *t)
{
    struct hd_admission *a = t->a;
    int err =
        hd_thread_read(a->app->store, a->principal, a->thread_id, a->arena, &t->thread, t->fault);

    if (err || !hd_thread_is_over(&t->thread, hd_clock_now_us()))
        return err;
    err = hd_run_commit_expire_thread(a->app->store, &t->thread, t->fault);
    return err ? err : HD_ENOTFOUND;
}

/* Initializes a new thread, with its owner in the metadata. */
static int init_thread(struct attempt *t, struct hd_slice id)
{
    struct hd_val *metadata;
    int err;

    t->is_new_thread = true;
    hd_thread_init(&t->thread, t->a->principal, id);
    if (t->a->subject.len == 0)
        return 0;
    metadata = hd_val_with(hd_val_object(), HD_S("owner"), hd_val_string(t->a->subject));
    metadata = hd_secrets_take(merge_text(metadata, t->a->stamps), &t->secrets);
    err = render_val(t->a->arena, metadata, &t->thread.metadata);
    hd_val_unref(metadata);
    return err;
}

/* Participants of a shared thread may not create threads for its owner. */
static bool may_create(const struct attempt *t)
{
    return t->a->request->creates_thread && hd_slice_eq(t->a->actor, t->a->principal);
}

static int find_thread(struct attempt *t)
{
    struct hd_admission *a = t->a;
    char *id;
    int err;

    if (a->thread_id.len == 0) {
        id = hd_arena_alloc(a->arena, HD_UUID_SIZE);
        if (!id)
            return HD_ENOMEM;
        hd_uuid_v4(id);
        return init_thread(t, hd_slice(id, HD_UUID_LEN));
    }
    err = read_thread(t);
    if (err != HD_ENOTFOUND)
        return err;
    if (!may_create(t))
        return refuse_run(t, 404, "Thread with ID %.*s not found", (int)a->thread_id.len,
                          a->thread_id.ptr);
    return init_thread(t, a->thread_id);
}

static int check_webhook(struct attempt *t)
{
    struct hd_slice url = t->a->request->webhook;
    int err = url.len > 0 ? hd_webhook_allowed(t->a->app->config, url, t->fault) : 0;

    if (err == HD_EINVAL)
        t->a->refusal = 422;
    return err;
}

/* Keeps the runs of the line: those of other agents neither wait for this run nor delay it. */
static int keep_line(struct attempt *t)
{
    size_t kept = 0;
    int err = 0;

    for (size_t i = 0; !err && i < t->active_count; i++) {
        struct hd_slice ns;

        err = hd_run_line(&t->active[i], t->a->arena, &ns, t->fault);
        if (!err && hd_slice_eq(ns, t->ns))
            t->active[kept++] = t->active[i];
    }
    t->active_count = kept;
    return err;
}

static int check_active(struct attempt *t)
{
    int err = 0;

    /* Only a busy thread has runs in flight. */
    if (t->thread.status == HD_THREAD_BUSY)
        err = hd_runs_active(t->a->app->store, t->a->principal, t->thread.id, t->a->arena,
                             &t->active, &t->active_count, t->fault);
    if (!err && t->a->app->config->namespaces_parallel)
        err = keep_line(t);
    if (err)
        return err;
    t->is_busy =
        t->active_count > 0 ||
        hd_delegation_is_on_line(t->a->app->delegation, t->a->principal, t->thread.id, t->ns);
    if (t->is_busy && t->a->request->multitask == HD_MULTITASK_REJECT)
        return refuse_run(t, 409,
                          "Thread is already running a task. Wait for it to finish or choose a "
                          "different multitask strategy.");
    return 0;
}

/* ---- configuration and metadata --------------------------------------- */

/* Keys of the configurable that belong to one run, not to the thread. */
static bool is_of_run(struct hd_slice key)
{
    static const char *const names[] = {"checkpoint_id", "checkpoint_ns", "checkpoint_map",
                                        "run_id",        "thread_id",     "assistant_id",
                                        "graph_id",      "cron_id",       NULL};

    for (size_t i = 0; names[i]; i++) {
        if (hd_slice_eq(key, hd_slice_cstr(names[i])))
            return true;
    }
    return hd_slice_starts(key, HD_S("__")) || hd_slice_starts(key, HD_S("langgraph_auth"));
}

static struct hd_val *merge_json(struct hd_val *into, hd_json_val json)
{
    struct hd_val *more = NULL;

    if (!hd_json_is_object(json) || hd_val_from_json(json, &more, NULL))
        return into;
    into = hd_val_merge(into, more);
    hd_val_unref(more);
    return into;
}

/* Merges member `name` of the JSON object `text`. Takes and returns `into`. */
static struct hd_val *merge_member(struct hd_val *into, struct hd_slice text, const char *name)
{
    struct hd_val *object = NULL;

    if (text.len == 0 || hd_val_parse_json(text, &object, NULL))
        return into;
    if (hd_val_is_object(hd_val_get(object, hd_slice_cstr(name))))
        into = hd_val_merge(into, hd_val_get(object, hd_slice_cstr(name)));
    hd_val_unref(object);
    return into;
}

/* Merges the configurable of the thread, the headers and the configurable of the request. */
static struct hd_val *merge_given(struct hd_val *into, const struct attempt *t)
{
    into = merge_member(into, t->thread.config, "configurable");
    into = merge_text(into, t->a->headers);
    return merge_json(into, t->a->request->configurable);
}

/*
 * The part of `configurable` that the thread keeps. Values from the assistant are excluded: the
 * thread may use another assistant next, and the assistant may be updated.
 */
static struct hd_val *stored_configurable(const struct attempt *t,
                                          const struct hd_val *configurable)
{
    struct hd_val *given = merge_given(hd_val_object(), t);
    struct hd_val *kept = hd_val_object();

    for (size_t i = 0; i < hd_val_count(configurable); i++) {
        struct hd_val *key;
        struct hd_val *val = hd_val_member(configurable, i, &key);
        struct hd_slice name = hd_val_get_string(key);

        if (!is_of_run(name) && hd_val_get(given, name))
            kept = hd_val_with(kept, name, hd_val_ref(val));
    }
    hd_val_unref(given);
    return kept;
}

static struct hd_val *with_text(struct hd_val *object, const char *key, struct hd_slice text)
{
    return text.len > 0 ? hd_val_with(object, hd_slice_cstr(key), hd_val_string(text)) : object;
}

static struct hd_val *merged_configurable(const struct attempt *t)
{
    struct hd_val *configurable = hd_val_object();

    configurable = merge_member(configurable, t->assistant.config, "configurable");
    configurable = merge_given(configurable, t);
    return t->a->subject.len > 0 ? hd_user_drop(configurable) : configurable;
}

/* The user of custom auth; its secrets stay in memory. */
static struct hd_val *known_user(struct attempt *t)
{
    struct hd_val *user = merge_text(hd_val_object(), t->a->user);

    return hd_secrets_take(hd_val_with(hd_val_object(), HD_USER, user), &t->secrets);
}

static struct hd_val *run_configurable(struct attempt *t, const struct hd_val *merged)
{
    struct hd_val *configurable = hd_val_merge(hd_val_object(), merged);

    if (t->a->subject.len > 0)
        configurable = hd_user_add(configurable, t->a->subject, t->a->is_admin);
    if (t->a->user.len > 0)
        configurable = hd_user_add_known(configurable, known_user(t));
    configurable = with_text(configurable, "run_id", t->a->run.run_id);
    configurable = with_text(configurable, "thread_id", t->thread.id);
    configurable = with_text(configurable, "graph_id", t->assistant.graph_id);
    configurable = with_text(configurable, "assistant_id", t->assistant.id);
    configurable = with_text(configurable, "cron_id", t->a->cron_id);
    configurable = hd_val_with(configurable, HD_S("checkpoint_ns"), hd_val_string(t->ns));
    configurable = hd_val_without(configurable, HD_S("checkpoint_id"));
    configurable = hd_val_without(configurable, HD_S("checkpoint_map"));
    configurable = with_text(configurable, "checkpoint_id", t->checkpoint_id);
    if (t->checkpoint_map.len > 0)
        configurable = hd_val_with(configurable, HD_S("checkpoint_map"),
                                   merge_text(hd_val_object(), t->checkpoint_map));
    return configurable;
}

/* Sets the thread's owner, whatever owner the request gives. */
static struct hd_val *with_owner(struct hd_val *metadata, const struct attempt *t)
{
    struct hd_val *thread = merge_text(hd_val_object(), t->thread.metadata);
    struct hd_val *owner = hd_val_get(thread, HD_S("owner"));

    metadata = hd_val_without(metadata, HD_S("owner"));
    if (owner)
        metadata = hd_val_with(metadata, HD_S("owner"), hd_val_ref(owner));
    hd_val_unref(thread);
    return metadata;
}

static struct hd_val *run_metadata(struct attempt *t)
{
    const struct hd_run_request *request = t->a->request;
    struct hd_val *metadata = hd_val_object();

    metadata = merge_text(metadata, t->assistant.metadata);
    metadata = merge_text(metadata, t->thread.metadata);
    /* Branch names belong to the thread: every checkpoint of the run would contain them. */
    metadata = hd_val_without(metadata, HD_S(HD_BRANCH_NAMES));
    metadata = merge_json(metadata, hd_json_get(request->config, HD_S("metadata")));
    metadata = merge_json(metadata, request->metadata);
    if (t->a->subject.len > 0)
        metadata = with_owner(metadata, t);
    return hd_secrets_take(with_text(metadata, "assistant_id", t->assistant.id), &t->secrets);
}

/* Takes secrets from the rest of a config; configurable and metadata are handled elsewhere. */
static struct hd_val *take_rest(struct attempt *t, struct hd_val *config)
{
    config = hd_val_with(config, HD_S("configurable"), hd_val_null());
    config = hd_val_with(config, HD_S("metadata"), hd_val_null());
    return hd_secrets_take(config, &t->secrets);
}

static struct hd_val *run_config(struct attempt *t, const struct hd_val *merged,
                                 const struct hd_val *metadata)
{
    struct hd_val *config = merge_text(hd_val_object(), t->assistant.config);

    config = take_rest(t, merge_json(config, t->a->request->config));
    config = hd_val_with(config, HD_S("configurable"), run_configurable(t, merged));
    return hd_val_with(config, HD_S("metadata"), hd_val_ref(metadata));
}

/* ---- records ---------------------------------------------------------- */

static void put_json(struct hd_jw *jw, const char *name, hd_json_val val)
{
    if (!val)
        return;
    hd_jw_put_val(jw, name, val);
}

static void put_modes(struct hd_jw *jw, uint32_t modes)
{
    const char *name;
    uint32_t mode;

    hd_jw_put_array(jw, "stream_mode");
    for (size_t i = 0; (name = hd_mode_at(i, &mode)); i++) {
        if (modes & mode)
            hd_jw_string(jw, hd_slice_cstr(name));
    }
    hd_jw_array_end(jw);
}

/* A run that was requested without a thread gets one that is deleted when it ends. */
static bool is_temporary(const struct attempt *t)
{
    return t->a->thread_id.len == 0 && !t->a->request->keeps_thread;
}

static void put_context(struct hd_jw *jw, const struct hd_val *context)
{
    hd_jw_key(jw, HD_S("context"));
    hd_val_put_rendered(jw, context);
}

/* The assistant's context merged with the request's; a non-object in the request replaces it. */
static struct hd_val *run_context(struct attempt *t)
{
    hd_json_val given = t->a->request->context;
    struct hd_val *context = NULL;

    if (!given || hd_json_is_object(given))
        context = merge_json(merge_text(hd_val_object(), t->assistant.context), given);
    else if (hd_val_from_json(given, &context, NULL))
        context = hd_val_null();
    /* Clients must not set the user in the context either. */
    if (t->a->subject.len > 0 && hd_val_is_object(context))
        context = hd_user_drop(context);
    return hd_secrets_take(context, &t->secrets);
}

static const char *const durability_names[] = {
    [HD_DURABLE_ASYNC] = "async", [HD_DURABLE_SYNC] = "sync", [HD_DURABLE_EXIT] = "exit"};

/* Writes the arguments of the run, which clients see and from which it starts. */
static int write_kwargs(const struct attempt *t, const struct hd_val *config,
                        const struct hd_val *context, struct hd_buf *out)
{
    const struct hd_run_request *request = t->a->request;
    struct hd_jw jw;

    hd_jw_init(&jw, out);
    hd_jw_object(&jw);
    hd_jw_key(&jw, HD_S("input"));
    if (request->input)
        hd_jw_val(&jw, request->input);
    else
        hd_jw_null(&jw);
    put_json(&jw, "command", request->command);
    hd_jw_key(&jw, HD_S("config"));
    hd_val_put_rendered(&jw, config);
    put_context(&jw, context);
    if (request->webhook.len > 0)
        hd_jw_put_string(&jw, "webhook", request->webhook);
    put_modes(&jw, request->modes);
    put_json(&jw, "feedback_keys", request->feedback_keys);
    put_json(&jw, "interrupt_before", request->interrupt_before);
    put_json(&jw, "interrupt_after", request->interrupt_after);
    hd_jw_put_bool(&jw, "temporary", is_temporary(t));
    hd_jw_put_bool(&jw, "subgraphs", request->subgraphs);
    hd_jw_put_bool(&jw, "resumable", request->is_resumable);
    hd_jw_put_string(&jw, "durability", hd_slice_cstr(durability_names[request->durability]));
    hd_jw_object_end(&jw);
    return hd_jw_finish(&jw);
}

static int make_run(struct attempt *t, const struct hd_val *merged)
{
    struct hd_admission *a = t->a;
    struct hd_val *metadata = run_metadata(t);
    struct hd_val *config = run_config(t, merged, metadata);
    struct hd_val *context = run_context(t);
    struct hd_buf kwargs;
    int err = metadata && config && context ? 0 : HD_ENOMEM;

    hd_buf_init(&kwargs, MAX_KWARGS);
    if (!err)
        err = write_kwargs(t, config, context, &kwargs);
    if (!err)
        err = hd_arena_copy(a->arena, hd_buf_slice(&kwargs), &a->run.kwargs);
    if (!err)
        err = render_val(a->arena, metadata, &a->run.metadata);
    hd_buf_fini(&kwargs);
    hd_val_unref(context);
    hd_val_unref(config);
    hd_val_unref(metadata);
    return err;
}

/* Records of threads that an earlier version created lack `last_run`. */
static int find_last_run(struct attempt *t)
{
    struct hd_admission *a = t->a;
    struct hd_run_rec *runs;
    size_t count;
    int err;

    if (t->is_new_thread || t->thread.last_run.len > 0)
        return 0;
    err = hd_runs_list(a->app->store, a->principal, t->thread.id, NULL, 0, 1, a->arena, &runs,
                       &count, t->fault);
    if (!err && count > 0)
        t->thread.last_run = runs[0].run_id;
    return err;
}

/* Replaces the run's id by one that sorts after `after`, also in the pending admissions. */
static int renew_id(struct attempt *t, struct hd_slice after)
{
    struct hd_admission *a = t->a;
    char *id = hd_arena_alloc(a->arena, HD_UUID_SIZE);
    int err = HD_ENOMEM;

    if (id) {
        hd_uuid_v7_after(after, id);
        err = hd_queue_expect(a->app->queue, a->principal, hd_slice(id, HD_UUID_LEN));
    }
    if (err)
        return err;
    hd_queue_unexpect(a->app->queue, a->principal, a->run.run_id);
    a->run.run_id = hd_slice(id, HD_UUID_LEN);
    return 0;
}

/* Sets the order on the thread. The id sorts after earlier ids even if the clock went back. */
static int take_order(struct attempt *t)
{
    struct hd_run_rec *run = &t->a->run;
    int err = find_last_run(t);

    if (!err && hd_slice_cmp(run->run_id, t->thread.last_run) <= 0)
        err = renew_id(t, t->thread.last_run);
    if (err)
        return err;
    run->order = ++t->thread.run_order;
    t->thread.last_run = run->run_id;
    hd_queue_expect_order(t->a->app->queue, t->a->principal, run->run_id, t->thread.id, t->ns,
                          run->order);
    return 0;
}

/* Finds a slot where the runs of the actor are counted in the store. */
static int find_slot(struct attempt *t)
{
    struct hd_admission *a = t->a;
    int64_t most = hd_limits_cluster_runs(a->app->limits, a->actor);
    int err = 0;

    if (most > 0)
        err = hd_run_slot_find(a->app->store, a->actor, most, &t->slot, t->fault);
    if (err != HD_ELIMIT)
        return err;
    a->retry_s = hd_limits_refuse_run(a->app->limits);
    return refuse_run(t, 429, "%s", too_many_runs);
}

static void fill_run(struct attempt *t, int64_t now)
{
    struct hd_run_rec *run = &t->a->run;

    run->principal = t->a->principal;
    run->actor = t->a->actor;
    run->thread_id = t->thread.id;
    run->assistant_id = t->assistant.id;
    run->ns = t->ns;
    run->status = begins_now(t) ? HD_RUN_STATE_RUNNING : HD_RUN_STATE_PENDING;
    run->created_at = now + t->a->request->delay_us;
    run->updated_at = now;
    run->due_at = run->created_at;
    run->attempt = 1;
    run->multitask = t->a->request->multitask;
}

/* Stores the last assistant and the configuration in the thread's record. */
static int fill_thread(struct attempt *t, const struct hd_val *merged, int64_t now)
{
    struct hd_thread_rec *thread = &t->thread;
    struct hd_val *metadata = merge_text(hd_val_object(), thread->metadata);
    struct hd_val *config = merge_text(hd_val_object(), thread->config);
    int err;

    metadata = with_text(metadata, "graph_id", t->assistant.graph_id);
    metadata = with_text(metadata, "assistant_id", t->assistant.id);
    config = take_rest(t, merge_json(config, t->a->request->config));
    config = hd_val_without(config, HD_S("metadata"));
    config = hd_val_with(config, HD_S("configurable"), stored_configurable(t, merged));
    err = render_val(t->a->arena, metadata, &thread->metadata);
    if (!err)
        err = render_val(t->a->arena, config, &thread->config);
    hd_val_unref(metadata);
    hd_val_unref(config);
    if (thread->status != HD_THREAD_BUSY) {
        thread->has_before = true;
        thread->status_before = thread->status;
        thread->head_before = thread->head;
    }
    thread->status = HD_THREAD_BUSY;
    thread->updated_at = now;
    thread->head = (struct hd_head){.ns = t->ns,
                                    .checkpoint_id = t->checkpoint_id,
                                    .graph_id = t->assistant.graph_id,
                                    .assistant_id = t->assistant.id};
    if (!t->is_new_thread)
        return err;
    thread->created_at = thread->state_updated_at = now;
    return err ? err : hd_ttl_standard(t->a->app->config, t->a->arena, &thread->ttl);
}

/* The claim of the thread, or the expectation that this server still holds it. */
static int add_hold(struct hd_batch_builder *batch, const struct attempt *t)
{
    struct hd_slice self = hd_cluster_self(t->a->app->cluster);
    const struct hd_hold hold = {.token = t->token, .server = self, .last = self};

    if (!t->token)
        return 0;
    return t->claims ? hd_hold_put(batch, t->a->principal, t->thread.id, &hold)
                     : hd_hold_expect(batch, t->a->principal, t->thread.id, t->token);
}

static int store_admission(struct attempt *t)
{
    struct hd_batch_builder batch;
    struct hd_batch view;
    struct hd_slice lane;
    int err;

    hd_batch_init(&batch);
    err = t->is_new_thread ? hd_thread_add(&batch, &t->thread) : hd_thread_put(&batch, &t->thread);
    if (!err && !hd_thread_head_is_set(&t->thread.head_before) && !is_temporary(t))
        err =
            hd_thread_texts_add_label(&batch, t->a->principal, t->thread.id, t->a->request->input);
    if (!err)
        err = t->slot.number ? hd_run_slot_take(&batch, &t->slot, &t->a->run) : 0;
    if (!err)
        err = hd_run_add(&batch, &t->a->run);
    if (!err && t->a->extend)
        err = t->a->extend(t->a->extend_ctx, &batch, t->fault);
    if (!err)
        err = add_hold(&batch, t);
    if (!err)
        err = hd_thread_lane(t->a->arena, t->a->principal, t->thread.id, &lane);
    view = hd_batch_view(&batch);
    t->a->is_sent = !err;
    t->a->event_seq = t->thread.event_seq;
    t->a->run.guard = (struct hd_guard){t->thread.created_at, t->token};
    if (!err)
        err = hd_rows_apply(t->a->app->store, lane, &view, NULL, t->fault);
    hd_batch_fini(&batch);
    return err;
}

/* Lists the runs to cancel: all that are in flight on the line. */
static int list_cancelled(struct attempt *t)
{
    struct hd_admission *a = t->a;

    if (a->request->multitask != HD_MULTITASK_INTERRUPT &&
        a->request->multitask != HD_MULTITASK_ROLLBACK)
        return 0;
    a->cancelled = hd_arena_calloc(a->arena, t->active_count + 1, sizeof(*a->cancelled));
    if (!a->cancelled)
        return HD_ENOMEM;
    for (size_t i = 0; i < t->active_count; i++)
        a->cancelled[a->cancelled_count++] = t->active[i].run_id;
    return 0;
}

/*
 * Where several servers share the store, this one claims an unheld thread. A thread that another
 * server holds ends the attempt: that server admits its runs. The holder may be gone; then it is
 * being taken over.
 */
static int check_hold(struct attempt *t)
{
    struct hd_admission *a = t->a;
    struct hd_cluster *cluster = a->app->cluster;
    struct hd_hold hold;
    int err;

    if (!hd_cluster_is_on(cluster))
        return 0;
    err = hd_hold_read(a->app->store, a->principal, t->thread.id, a->arena, &hold, t->fault);
    if (err)
        return err;
    if (hold.token && !hd_slice_eq(hold.server, hd_cluster_self(cluster))) {
        a->holder = hold.server;
        return HD_EBUSY;
    }
    t->claims = hold.token == 0;
    t->token = t->claims ? hd_hold_token() : hold.token;
    return 0;
}

static int find_all(struct attempt *t)
{
    int err = check_webhook(t);

    if (!err)
        err = find_assistant(t);
    if (!err)
        err = find_thread(t);
    if (!err)
        err = check_hold(t);
    if (!err)
        err = choose_place(t);
    if (!err)
        err = check_active(t);
    if (!err)
        err = follow_map(t);
    if (!err)
        err = follow_head(t);
    if (!err)
        err = check_checkpoint(t);
    return err;
}

static int try_once(struct attempt *t)
{
    int64_t now = hd_clock_now_us();
    struct hd_val *merged;
    int err = find_all(t);

    if (!err)
        err = find_slot(t);
    if (!err)
        err = take_order(t);
    if (err)
        return err;
    merged = hd_secrets_take(merged_configurable(t), &t->secrets);
    fill_run(t, now);
    err = merged ? make_run(t, merged) : HD_ENOMEM;
    if (!err)
        err = fill_thread(t, merged, now);
    hd_val_unref(merged);
    if (!err && t->secrets)
        err = render_val(t->a->arena, t->secrets, &t->a->run.secrets);
    if (!err)
        err = list_cancelled(t);
    if (!err)
        err = store_admission(t);
    return err;
}

/* Takes one of the actor's slots (limits.runs); after hd_queue_add() the queue releases it. */
static bool has_place(struct hd_admission *a, struct heddle_error *fault)
{
    a->retry_s = hd_limits_take(a->app->limits, a->actor, HD_LIMIT_RUNS);
    if (a->retry_s == 0)
        return true;
    a->refusal = 429;
    hd_error_set(fault, HD_ELIMIT, "%s", too_many_runs);
    return false;
}

static int admit_once(void *arg, struct heddle_error *fault)
{
    struct hd_admission *a = arg;
    struct attempt t = {.a = a, .fault = fault};
    int err;

    a->cancelled_count = 0;
    a->holder = hd_slice(NULL, 0);
    a->is_sent = false;
    a->run.secrets = hd_slice(NULL, 0);
    err = try_once(&t);
    hd_val_unref(t.secrets);
    return err;
}

int hd_admit(struct hd_admission *a, struct heddle_error *fault)
{
    char *id = hd_arena_alloc(a->arena, HD_UUID_SIZE);
    int err;

    if (!id)
        return HD_ENOMEM;
    if (!has_place(a, fault))
        return 0;
    hd_uuid_v7(id);
    a->run.run_id = hd_slice(id, HD_UUID_LEN);
    if (hd_queue_expect(a->app->queue, a->principal, a->run.run_id)) {
        hd_limits_give(a->app->limits, a->actor, HD_LIMIT_RUNS);
        return HD_ENOMEM;
    }
    err = hd_rows_change(a->app->store, admit_once, a, fault);
    if (err || a->refusal) {
        hd_queue_unexpect(a->app->queue, a->principal, a->run.run_id);
        hd_limits_give(a->app->limits, a->actor, HD_LIMIT_RUNS);
    }
    if (a->is_sent && hd_error_is_transient(err))
        hd_unsettled_add(a->app->unsettled, &a->run, a->event_seq);
    return a->refusal || a->holder.len > 0 ? 0 : err;
}
