/*
 * The configuration, context, metadata and arguments of a run, merged from assistant, thread and
 * request. Secrets are removed from all of them.
 */
#include "app/app.h"
#include "base/buf.h"
#include "base/json.h"
#include "records/run_user.h"
#include "records/stream_modes.h"
#include "records/thread_heads.h"
#include "run/admit_internal.h"
#include "secret/secret.h"

#define MAX_KWARGS ((size_t)256 << 20)

/* ---- merging ---------------------------------------------------------- */

static int render_val(struct hd_arena *arena, const struct hd_val *val, struct hd_slice *out)
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

/* Merges the result of a parser if it is an object. Takes both values; returns `into`. */
static struct hd_val *merge_parsed(struct hd_val *into, int err, struct hd_val *more)
{
    if (err == HD_ENOMEM) {
        hd_val_unref(into);
        into = NULL;
    } else if (!err && hd_val_is_object(more)) {
        into = hd_val_merge(into, more);
    }
    hd_val_unref(more);
    return into;
}

/* Merges a JSON object; other texts are ignored. Takes and returns `into`. */
static struct hd_val *merge_text(struct hd_val *into, struct hd_slice text)
{
    struct hd_val *more = NULL;
    int err;

    if (text.len == 0)
        return into;
    err = hd_val_parse_json(text, &more, NULL);
    return merge_parsed(into, err, more);
}

static struct hd_val *merge_json(struct hd_val *into, hd_json_val json)
{
    struct hd_val *more = NULL;
    int err;

    if (!hd_json_is_object(json))
        return into;
    err = hd_val_from_json(json, &more, NULL);
    return merge_parsed(into, err, more);
}

/* Merges member `name` of the JSON object `text`. Takes and returns `into`. */
static struct hd_val *merge_member(struct hd_val *into, struct hd_slice text, const char *name)
{
    struct hd_val *object = NULL, *member = NULL;
    int err;

    if (text.len == 0)
        return into;
    err = hd_val_parse_json(text, &object, NULL);
    if (!err)
        member = hd_val_ref(hd_val_get(object, hd_slice_cstr(name)));
    hd_val_unref(object);
    return merge_parsed(into, err, member);
}

static struct hd_val *with_text(struct hd_val *object, const char *key, struct hd_slice text)
{
    return text.len > 0 ? hd_val_with(object, hd_slice_cstr(key), hd_val_string(text)) : object;
}

/* ---- configurable ----------------------------------------------------- */

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

/*
 * Merges the configurable of the thread, the headers and the configurable of the request. A private
 * run gets nothing of the thread: that may come from another person.
 */
static struct hd_val *merge_given(struct hd_val *into, const struct hd_admit_run *run)
{
    if (!run->a->is_config_private)
        into = merge_member(into, run->attempt->thread.config, "configurable");
    into = merge_text(into, run->a->headers);
    return merge_json(into, run->a->request->configurable);
}

static struct hd_val *merge_configurable(struct hd_admit_run *run)
{
    struct hd_val *configurable = hd_val_object();

    configurable = merge_member(configurable, run->assistant.config, "configurable");
    configurable = merge_given(configurable, run);
    if (run->a->subject.len > 0)
        configurable = hd_user_drop(configurable);
    return hd_secrets_take(configurable, &run->secrets);
}

/* Removes the headers, unless the request has the member too. Takes and returns `given`. */
static struct hd_val *drop_headers(struct hd_val *given, const struct hd_admit_run *run)
{
    struct hd_val *headers = merge_text(hd_val_object(), run->a->headers);

    if (!headers) {
        hd_val_unref(given);
        return NULL;
    }
    for (size_t i = 0; given && i < hd_val_count(headers); i++) {
        struct hd_val *key;
        struct hd_slice name;

        (void)hd_val_member(headers, i, &key);
        name = hd_val_get_string(key);
        if (!hd_json_get(run->a->request->configurable, name))
            given = hd_val_without(given, name);
    }
    hd_val_unref(headers);
    return given;
}

/*
 * The part of `configurable` that the thread keeps. Values from the assistant are excluded: the
 * thread may use another assistant next, and the assistant may be updated.
 */
static struct hd_val *stored_configurable(const struct hd_admit_run *run)
{
    struct hd_val *given = merge_given(hd_val_object(), run), *kept;

    if (run->a->hides_headers)
        given = drop_headers(given, run);
    kept = given ? hd_val_object() : NULL;
    for (size_t i = 0; i < hd_val_count(run->configurable); i++) {
        struct hd_val *key;
        struct hd_val *val = hd_val_member(run->configurable, i, &key);
        struct hd_slice name = hd_val_get_string(key);

        if (!is_of_run(name) && hd_val_get(given, name))
            kept = hd_val_with(kept, name, hd_val_ref(val));
    }
    hd_val_unref(given);
    return kept;
}

/* The user of custom auth; its secrets stay in memory, and are not for rooms of several people. */
static struct hd_val *known_user(struct hd_admit_run *run)
{
    struct hd_val *user = merge_text(hd_val_object(), run->a->user);
    struct hd_val *kept_back = NULL;

    user = hd_secrets_take(hd_val_with(hd_val_object(), HD_USER, user),
                           run->a->is_config_private ? &kept_back : &run->secrets);
    hd_val_unref(kept_back);
    return user;
}

/* Adds the user of custom auth. Takes and returns `configurable`. */
static struct hd_val *with_known_user(struct hd_val *configurable, struct hd_admit_run *run)
{
    struct hd_val *known = known_user(run);

    if (known)
        return hd_user_add_known(configurable, known);
    hd_val_unref(configurable);
    return NULL;
}

static struct hd_val *run_configurable(struct hd_admit_run *run)
{
    struct hd_val *configurable = hd_val_merge(hd_val_object(), run->configurable);

    if (run->a->subject.len > 0)
        configurable = hd_user_add(configurable, run->a->subject, run->a->is_admin);
    if (run->a->user.len > 0)
        configurable = with_known_user(configurable, run);
    configurable = with_text(configurable, "run_id", run->a->run.run_id);
    configurable = with_text(configurable, "thread_id", run->attempt->thread.id);
    configurable = with_text(configurable, "graph_id", run->assistant.graph_id);
    configurable = with_text(configurable, "assistant_id", run->assistant.id);
    configurable = with_text(configurable, "cron_id", run->a->cron_id);
    configurable = hd_val_with(configurable, HD_S("checkpoint_ns"), hd_val_string(run->ns));
    configurable = hd_val_without(configurable, HD_S("checkpoint_id"));
    configurable = hd_val_without(configurable, HD_S("checkpoint_map"));
    configurable = with_text(configurable, "checkpoint_id", run->checkpoint_id);
    if (run->checkpoint_map.len > 0)
        configurable = hd_val_with(configurable, HD_S("checkpoint_map"),
                                   merge_text(hd_val_object(), run->checkpoint_map));
    return configurable;
}

/* ---- metadata --------------------------------------------------------- */

/* Sets the thread's owner, whatever owner the request gives. */
static struct hd_val *with_owner(struct hd_val *metadata, const struct hd_admit_run *run)
{
    struct hd_val *thread = merge_text(hd_val_object(), run->attempt->thread.metadata);
    struct hd_val *owner = hd_val_get(thread, HD_S("owner"));

    metadata = hd_val_without(metadata, HD_S("owner"));
    if (owner)
        metadata = hd_val_with(metadata, HD_S("owner"), hd_val_ref(owner));
    if (!thread) {
        hd_val_unref(metadata);
        metadata = NULL;
    }
    hd_val_unref(thread);
    return metadata;
}

static struct hd_val *run_metadata(struct hd_admit_run *run)
{
    const struct hd_run_request *request = run->a->request;
    struct hd_val *metadata = hd_val_object();

    metadata = merge_text(metadata, run->assistant.metadata);
    metadata = merge_text(metadata, run->attempt->thread.metadata);
    /* Branch names belong to the thread: every checkpoint of the run would contain them. */
    metadata = hd_val_without(metadata, HD_S(HD_BRANCH_NAMES));
    metadata = merge_json(metadata, hd_json_get(request->config, HD_S("metadata")));
    metadata = merge_json(metadata, request->metadata);
    if (run->a->subject.len > 0)
        metadata = with_owner(metadata, run);
    return hd_secrets_take(with_text(metadata, "assistant_id", run->assistant.id), &run->secrets);
}

int hd_admit_config_own_thread(struct hd_admit_attempt *t)
{
    struct hd_val *metadata =
        hd_val_with(hd_val_object(), HD_S("owner"), hd_val_string(t->group->subject));
    int err;

    metadata = hd_secrets_take(merge_text(metadata, t->group->stamps), &t->secrets);
    err = render_val(t->group->arena, metadata, &t->thread.metadata);
    hd_val_unref(metadata);
    return err;
}

/* ---- the run ---------------------------------------------------------- */

/* Takes secrets from the rest of a config; configurable and metadata are handled elsewhere. */
static struct hd_val *take_rest(struct hd_admit_run *run, struct hd_val *config)
{
    config = hd_val_with(config, HD_S("configurable"), hd_val_null());
    config = hd_val_with(config, HD_S("metadata"), hd_val_null());
    return hd_secrets_take(config, &run->secrets);
}

static struct hd_val *run_config(struct hd_admit_run *run, const struct hd_val *metadata)
{
    struct hd_val *config = merge_text(hd_val_object(), run->assistant.config);

    config = take_rest(run, merge_json(config, run->a->request->config));
    config = hd_val_with(config, HD_S("configurable"), run_configurable(run));
    return hd_val_with(config, HD_S("metadata"), hd_val_ref(metadata));
}

/* The assistant's context merged with the request's; a non-object in the request replaces it. */
static struct hd_val *run_context(struct hd_admit_run *run)
{
    hd_json_val given = run->a->request->context;
    struct hd_val *context = NULL;
    int err;

    if (!given || hd_json_is_object(given)) {
        context = merge_json(merge_text(hd_val_object(), run->assistant.context), given);
    } else {
        err = hd_val_from_json(given, &context, NULL);
        if (err && err != HD_ENOMEM)
            context = hd_val_null();
    }
    /* Clients must not set the user in the context either. */
    if (run->a->subject.len > 0 && hd_val_is_object(context))
        context = hd_user_drop(context);
    return hd_secrets_take(context, &run->secrets);
}

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

static void put_context(struct hd_jw *jw, const struct hd_val *context)
{
    hd_jw_key(jw, HD_S("context"));
    hd_val_put_rendered(jw, context);
}

bool hd_admit_config_is_temporary(const struct hd_admit_run *run)
{
    return run->a->thread_id.len == 0 && run->attempt->count == 1 && !run->a->request->keeps_thread;
}

static const char *const durability_names[] = {
    [HD_DURABLE_ASYNC] = "async", [HD_DURABLE_SYNC] = "sync", [HD_DURABLE_EXIT] = "exit"};

/* Writes the arguments of the run, which clients see and from which it starts. */
static int write_kwargs(const struct hd_admit_run *run, const struct hd_val *config,
                        const struct hd_val *context, struct hd_buf *out)
{
    const struct hd_run_request *request = run->a->request;
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
    hd_jw_put_bool(&jw, "temporary", hd_admit_config_is_temporary(run));
    hd_jw_put_bool(&jw, "subgraphs", request->subgraphs);
    hd_jw_put_bool(&jw, "resumable", request->is_resumable);
    hd_jw_put_string(&jw, "durability", hd_slice_cstr(durability_names[request->durability]));
    hd_jw_object_end(&jw);
    return hd_jw_finish(&jw);
}

/* Begins with the secrets of the thread's metadata, which is merged into that of the run. */
static int share_secrets(struct hd_admit_run *run)
{
    if (run->attempt->secrets)
        run->secrets = hd_val_merge(hd_val_object(), run->attempt->secrets);
    return run->attempt->secrets && !run->secrets ? HD_ENOMEM : 0;
}

static int make_arguments(struct hd_admit_run *run, const struct hd_val *metadata)
{
    struct hd_val *config = run_config(run, metadata);
    struct hd_val *context = run_context(run);
    struct hd_buf kwargs;
    int err = config && context ? 0 : HD_ENOMEM;

    hd_buf_init(&kwargs, MAX_KWARGS);
    if (!err)
        err = write_kwargs(run, config, context, &kwargs);
    if (!err)
        err = hd_arena_copy(run->a->arena, hd_buf_slice(&kwargs), &run->a->run.kwargs);
    hd_buf_fini(&kwargs);
    hd_val_unref(context);
    hd_val_unref(config);
    return err;
}

int hd_admit_config_make(struct hd_admit_run *run)
{
    struct hd_val *metadata;
    int err = share_secrets(run);

    if (err)
        return err;
    run->configurable = merge_configurable(run);
    metadata = run->configurable ? run_metadata(run) : NULL;
    err = metadata ? make_arguments(run, metadata) : HD_ENOMEM;
    if (!err)
        err = render_val(run->a->arena, metadata, &run->a->run.metadata);
    hd_val_unref(metadata);
    return err;
}

int hd_admit_config_put_secrets(struct hd_admit_run *run)
{
    return run->secrets ? render_val(run->a->arena, run->secrets, &run->a->run.secrets) : 0;
}

/* ---- the thread ------------------------------------------------------- */

static int keep_config(struct hd_admit_run *run)
{
    struct hd_thread_rec *thread = &run->attempt->thread;
    struct hd_val *config = merge_text(hd_val_object(), thread->config);
    int err;

    config = take_rest(run, merge_json(config, run->a->request->config));
    config = hd_val_without(config, HD_S("metadata"));
    config = hd_val_with(config, HD_S("configurable"), stored_configurable(run));
    err = render_val(run->a->arena, config, &thread->config);
    hd_val_unref(config);
    return err;
}

int hd_admit_config_keep(struct hd_admit_run *run)
{
    struct hd_thread_rec *thread = &run->attempt->thread;
    struct hd_val *metadata = merge_text(hd_val_object(), thread->metadata);
    int err;

    metadata = with_text(metadata, "graph_id", run->assistant.graph_id);
    metadata = with_text(metadata, "assistant_id", run->assistant.id);
    err = render_val(run->a->arena, metadata, &thread->metadata);
    hd_val_unref(metadata);
    return err || run->a->is_config_private ? err : keep_config(run);
}
