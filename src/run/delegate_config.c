/*
 * The configuration of a delegate: that of its assistant, plus the values of the calling run that
 * belong to the user rather than to the calling agent (identity, headers and keys).
 */
#include <string.h>

#include "graph/engine/task.h"
#include "records/run_user.h"
#include "run/active_run.h"
#include "run/delegate_internal.h"
#include "secret/secret.h"

/* ---- configuration ---------------------------------------------------- */

/* Parses a JSON object; other texts give an empty object. NULL: HD_ENOMEM. */
static struct hd_val *parse_object(struct hd_slice text)
{
    struct hd_val *val = NULL;

    if (text.len > 0 && hd_val_parse_json(text, &val, NULL) == 0 && hd_val_is_object(val))
        return val;
    hd_val_unref(val);
    return hd_val_object();
}

static const struct hd_val *caller_config(const struct hd_delegate *d)
{
    return hd_runner_options(d->caller)->config;
}

static struct hd_slice url_of(const struct hd_val *configurable)
{
    return hd_val_get_string(hd_val_get(configurable, HD_S("base_url")));
}

/*
 * True if the delegate inherits this member of the caller's configurable. The API key for a server
 * that the request chose (base_url) is never sent to another server.
 */
static bool is_inherited(struct hd_slice name, const struct hd_val *from, const struct hd_val *own)
{
    if (hd_slice_eq(name, HD_S("custom_api_key")))
        return hd_slice_eq(url_of(from), url_of(own));
    return hd_secret_is_name(name) || hd_slice_starts(name, HD_S("langgraph_auth")) ||
           hd_slice_starts(name, HD_S("x-")) || hd_slice_eq(name, HD_S("user-agent"));
}

/* Takes and returns `own`, whose members take precedence. */
static struct hd_val *inherit_members(struct hd_val *own, const struct hd_val *from)
{
    for (size_t i = 0; own && i < hd_val_count(from); i++) {
        struct hd_val *key;
        struct hd_val *val = hd_val_member(from, i, &key);
        struct hd_slice name = hd_val_get_string(key);

        if (hd_val_is_null(hd_val_get(own, name)) && is_inherited(name, from, own))
            own = hd_val_with(own, name, hd_val_ref(val));
    }
    return own;
}

static struct hd_val *with_text(struct hd_val *object, const char *name, struct hd_slice text)
{
    return hd_val_with(object, hd_slice_cstr(name), hd_val_string(text));
}

static struct hd_val *make_configurable(const struct hd_delegate *d, const struct hd_val *config,
                                        struct hd_val **secrets)
{
    const struct hd_val *given = hd_val_get(config, HD_S("configurable"));
    struct hd_val *own = hd_val_is_object(given) ? hd_val_ref(given) : hd_val_object();

    /* The user comes from the run: an assistant must not set it. */
    if (d->actor.len > 0)
        own = hd_user_drop(own);
    /* Before the caller's values are added: markers in the assistant's config must not be valid. */
    own = inherit_members(hd_secrets_take(own, secrets),
                          hd_val_get(caller_config(d), HD_S("configurable")));
    own = with_text(own, "run_id", d->active->rec.run_id);
    own = with_text(own, "thread_id", d->active->rec.thread_id);
    own = with_text(own, "graph_id", d->graph->id);
    own = with_text(own, "assistant_id", d->assistant.id);
    return with_text(own, "checkpoint_ns", d->root);
}

/* The run's metadata, with this assistant, and the task and tool call that wait for it. */
static struct hd_val *make_delegate_metadata(const struct hd_delegate *d)
{
    const struct hd_val *inherited = hd_runner_options(d->caller)->metadata;
    struct hd_val *metadata = hd_val_object();

    if (inherited)
        metadata = hd_val_merge(metadata, inherited);
    metadata = with_text(metadata, "graph_id", d->graph->id);
    metadata = with_text(metadata, "assistant_id", d->assistant.id);
    if (d->tool_call_id.len > 0)
        metadata = with_text(metadata, "tool_call_id", d->tool_call_id);
    return with_text(metadata, HD_META_TASK, d->task_id);
}

/* ---- resume values ---------------------------------------------------- */

static struct hd_slice id_of(const struct hd_val *interrupt)
{
    return hd_val_get_string(hd_val_get(interrupt, HD_S("id")));
}

/* The ids of the delegate's interrupts that the task passed on; NULL: unknown. Borrowed. */
static const struct hd_val *asked_ids(const struct hd_val *asked)
{
    const struct hd_val *delegate = hd_val_get(hd_val_at(asked, 0), HD_S("delegate"));
    const struct hd_val *ids = hd_val_get(delegate, HD_S("interrupt_ids"));

    return hd_val_is_list(ids) ? ids : NULL;
}

static bool has_id(const struct hd_val *ids, struct hd_slice id)
{
    for (size_t i = 0; i < hd_val_count(ids); i++) {
        if (hd_slice_eq(hd_val_get_string(hd_val_at(ids, i)), id))
            return true;
    }
    return false;
}

/* The value for interrupt `index` of `count`: from an object by id, from a list, or the value. */
static const struct hd_val *choose_answer(const struct hd_val *answer, size_t index, size_t count,
                                          struct hd_slice id)
{
    if (hd_val_is_object(answer) && hd_val_get(answer, id))
        return hd_val_get(answer, id);
    if (count > 1 && hd_val_is_list(answer) && hd_val_count(answer) == count)
        return hd_val_at(answer, index);
    return answer;
}

/*
 * Resumes only the interrupts that the task passed on, by id: a reply from before a crash must not
 * resume a later interrupt. *out NULL: none of them is open, the run continues without a reply.
 */
static int make_command(const struct hd_delegate *d, const struct hd_val *asked,
                        struct hd_val **out)
{
    const struct hd_val *open = hd_val_get(d->stored_state, HD_S("interrupts"));
    const struct hd_val *ids = asked_ids(asked);
    struct hd_val *answers = hd_val_object();
    size_t count = hd_val_count(open);

    *out = NULL;
    for (size_t i = 0; answers && i < count; i++) {
        struct hd_slice id = id_of(hd_val_at(open, i));
        const struct hd_val *answer = choose_answer(d->answer, i, count, id);

        if (!ids || has_id(ids, id))
            answers = hd_val_with(answers, id, hd_val_ref(answer));
    }
    if (!answers || hd_val_count(answers) == 0) {
        hd_val_unref(answers);
        return answers ? 0 : HD_ENOMEM;
    }
    *out = hd_val_with(hd_val_object(), HD_S("resume"), answers);
    return *out ? 0 : HD_ENOMEM;
}

/* Fails if another task has used the assistant since the interrupt. */
static int answer_interrupts(const struct hd_delegate *d, struct hd_val **out,
                             struct heddle_error *fault)
{
    const struct hd_val *metadata = hd_val_get(d->stored_state, HD_S("metadata"));
    struct hd_slice task = hd_val_get_string(hd_val_get(metadata, HD_S(HD_META_TASK)));
    struct hd_val *asked;
    int err;

    if (!hd_slice_eq(task, d->task_id))
        return hd_error_set(fault, HD_EINVAL, "its interrupt is no longer open");
    asked = hd_task_asked(d->task);
    err = asked ? make_command(d, asked, out) : HD_ENOMEM;
    hd_val_unref(asked);
    return err;
}

/* ---- options ---------------------------------------------------------- */

/* The limit of the assistant, or else of the caller; 0: the graph's. */
static int64_t choose_recursion_limit(const struct hd_delegate *d, const struct hd_val *config)
{
    int64_t limit = 0;

    (void)hd_val_get_int(hd_val_get(caller_config(d), HD_S("recursion_limit")), &limit);
    (void)hd_val_get_int(hd_val_get(config, HD_S("recursion_limit")), &limit);
    return limit > INT32_MAX || limit < 0 ? INT32_MAX : limit;
}

/* Its `config` and `context`, and the values of the markers in both. NULL: HD_ENOMEM. */
static void fill_config(const struct hd_delegate *d, struct hd_runner_options *out)
{
    struct hd_val *secrets = hd_val_ref(hd_runner_options(d->caller)->secrets);
    struct hd_val *own = parse_object(d->assistant.config);
    struct hd_val *context = parse_object(d->assistant.context);
    struct hd_val *config = hd_val_object();
    int64_t limit = choose_recursion_limit(d, own);

    config =
        hd_val_with(config, HD_S("configurable"), own ? make_configurable(d, own, &secrets) : NULL);
    if (limit > 0)
        config = hd_val_with(config, HD_S("recursion_limit"), hd_val_int(limit));
    if (d->actor.len > 0)
        context = hd_user_drop(context);
    out->context = hd_secrets_take(context, &secrets);
    out->config = config;
    out->secrets = secrets;
    hd_val_unref(own);
}

/* True if the run was started for the same task: then it resumes at its last checkpoint. */
static bool is_begun(const struct hd_delegate *d)
{
    const struct hd_val *metadata = hd_val_get(d->stored_state, HD_S("metadata"));
    const struct hd_val *task = hd_val_get(metadata, HD_S(HD_META_TASK));

    return !d->answer && task && hd_slice_eq(hd_val_get_string(task), d->task_id);
}

int hd_delegate_options(const struct hd_delegate *d, struct hd_runner_options *out,
                        struct heddle_error *fault)
{
    const struct hd_runner_options *caller = hd_runner_options(d->caller);
    struct hd_val *command = NULL;
    int err = 0;

    *out = (struct hd_runner_options){
        .graph = d->graph,
        .run_id = d->active->rec.run_id,
        .assistant_id = d->assistant.id,
        .principal = d->principal,
        .actor = d->actor,
        .thread = d->thread,
        .root = d->root,
        .guard = caller->guard,
        .attempt = 1,
        .is_continued = is_begun(d),
        .checkpoint_id = d->chosen,
        .continue_at = d->is_own ? d->chosen : hd_slice(NULL, 0),
        .input = hd_val_ref(d->input),
        .metadata = make_delegate_metadata(d),
        .durability = caller->durability,
        .caller = d->caller,
        .around = d->task,
        .tags = hd_val_ref(caller->tags),
        .origins = &d->active->origins,
        .modes = hd_run_execute_all_modes(d->active),
        .subgraphs = d->active->subgraphs,
    };
    fill_config(d, out);
    if (!out->config || !out->context || !out->metadata)
        err = HD_ENOMEM;
    if (!err && d->answer)
        err = answer_interrupts(d, &command, fault);
    out->command = command;
    if (err)
        hd_runner_options_fini(out);
    return err;
}
