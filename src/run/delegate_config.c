/*
 * The configuration of a delegate: that of its assistant, plus the values of the calling run that
 * belong to the user rather than to the calling agent (identity, headers and keys).
 */
#include <string.h>

#include "graph/engine/engine.h"
#include "graph/engine/run.h"
#include "graph/engine/task.h"
#include "records/run_user.h"
#include "run/active_run.h"
#include "run/delegate_internal.h"
#include "secret/secret.h"

/* ---- caller ----------------------------------------------------------- */

static enum hd_durability durability_of(struct hd_slice name)
{
    if (hd_slice_eq(name, HD_S("sync")))
        return HD_DURABLE_SYNC;
    return hd_slice_eq(name, HD_S("exit")) ? HD_DURABLE_EXIT : HD_DURABLE_ASYNC;
}

struct hd_delegate_caller hd_delegate_caller(const struct hd_delegate *d)
{
    struct hd_delegate_caller caller = {.recursion_limit = 0};

    if (d->caller) {
        const struct hd_worker_run_options *options = hd_worker_run_options(d->caller);

        caller.config = hd_val_get(options->config, HD_S("configurable"));
        caller.tags = hd_val_get(options->config, HD_S("tags"));
        caller.secrets = options->secrets;
        caller.metadata = options->metadata;
        caller.guard = options->guard;
        caller.durability = durability_of(options->durability);
        caller.is_held = hd_worker_run_is_held(d->caller);
        (void)hd_val_get_int(hd_val_get(options->config, HD_S("recursion_limit")),
                             &caller.recursion_limit);
        return caller;
    }
    caller.config = d->parent->options.config;
    caller.tags = d->parent->options.tags;
    caller.secrets = d->parent->options.secrets;
    caller.metadata = d->parent->options.metadata;
    caller.guard = d->parent->options.guard;
    caller.durability = d->parent->options.durability;
    caller.is_held = d->parent->is_held;
    caller.recursion_limit = d->parent->options.recursion_limit;
    return caller;
}

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

static struct hd_slice url_of(const struct hd_val *configurable)
{
    return hd_val_get_string(hd_val_get(configurable, HD_S("base_url")));
}

/*
 * True if the delegate inherits this member of the caller's configurable. The API key for a server
 * that the request chose (base_url) is never sent to another server.
 */
static bool is_passed_on(struct hd_slice name, const struct hd_val *from, const struct hd_val *own)
{
    if (hd_slice_eq(name, HD_S("custom_api_key")))
        return hd_slice_eq(url_of(from), url_of(own));
    return hd_secret_is_name(name) || hd_slice_starts(name, HD_S("langgraph_auth")) ||
           hd_slice_starts(name, HD_S("x-")) || hd_slice_eq(name, HD_S("user-agent"));
}

/* Takes and returns `own`, whose members take precedence. */
static struct hd_val *pass_on(struct hd_val *own, const struct hd_val *from)
{
    for (size_t i = 0; own && i < hd_val_count(from); i++) {
        struct hd_val *key;
        struct hd_val *val = hd_val_member(from, i, &key);
        struct hd_slice name = hd_val_get_string(key);

        if (hd_val_is_null(hd_val_get(own, name)) && is_passed_on(name, from, own))
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
    own = pass_on(hd_secrets_take(own, secrets), hd_delegate_caller(d).config);
    own = with_text(own, "run_id", d->active->rec.run_id);
    own = with_text(own, "thread_id", d->active->rec.thread_id);
    own = with_text(own, "graph_id", d->graph->id);
    own = with_text(own, "assistant_id", d->assistant.id);
    return with_text(own, "checkpoint_ns", d->root);
}

/* The run's metadata, with this assistant, and the task and tool call that wait for it. */
static struct hd_val *make_delegate_metadata(const struct hd_delegate *d)
{
    struct hd_val *metadata = hd_val_object();

    if (hd_delegate_caller(d).metadata)
        metadata = hd_val_merge(metadata, hd_delegate_caller(d).metadata);
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
    const struct hd_val *open = hd_val_get(d->state_then, HD_S("interrupts"));
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
    *out = hd_val_with(hd_val_record(HD_KIND_COMMAND), HD_S("resume"), answers);
    return *out ? 0 : HD_ENOMEM;
}

/* Fails if another task has used the assistant since the interrupt. */
static int answer_interrupts(const struct hd_delegate *d, struct hd_val **out,
                             struct hd_fault *fault)
{
    const struct hd_val *metadata = hd_val_get(d->state_then, HD_S("metadata"));
    struct hd_slice task = hd_val_get_string(hd_val_get(metadata, HD_S(HD_META_TASK)));
    struct hd_val *asked;
    int err;

    if (!hd_slice_eq(task, d->task_id))
        return hd_fault_set(fault, HD_EINVAL, "its question is not open any more");
    asked = hd_task_asked(d->task);
    err = asked ? make_command(d, asked, out) : HD_ENOMEM;
    hd_val_unref(asked);
    return err;
}

/* ---- public functions ------------------------------------------------- */

int hd_delegate_values(const struct hd_delegate *d, struct hd_delegate_values *out,
                       struct hd_fault *fault)
{
    const struct hd_delegate_caller caller = hd_delegate_caller(d);
    struct hd_val *config = parse_object(d->assistant.config);
    int err = config ? 0 : HD_ENOMEM;

    *out = (struct hd_delegate_values){.recursion_limit = caller.recursion_limit};
    out->secrets = hd_val_ref(caller.secrets);
    if (!err)
        out->config = make_configurable(d, config, &out->secrets);
    out->context = parse_object(d->assistant.context);
    if (d->actor.len > 0)
        out->context = hd_user_drop(out->context);
    out->context = hd_secrets_take(out->context, &out->secrets);
    out->metadata = make_delegate_metadata(d);
    hd_val_get_int(hd_val_get(config, HD_S("recursion_limit")), &out->recursion_limit);
    if (out->recursion_limit > INT32_MAX || out->recursion_limit < 0)
        out->recursion_limit = INT32_MAX;
    if (!out->config || !out->context || !out->metadata)
        err = HD_ENOMEM;
    if (!err && d->answer)
        err = answer_interrupts(d, &out->command, fault);
    hd_val_unref(config);
    if (err)
        hd_delegate_values_fini(out);
    return err;
}

void hd_delegate_values_fini(struct hd_delegate_values *values)
{
    hd_val_unref(values->config);
    hd_val_unref(values->context);
    hd_val_unref(values->metadata);
    hd_val_unref(values->secrets);
    hd_val_unref(values->command);
    *values = (struct hd_delegate_values){.recursion_limit = 0};
}
