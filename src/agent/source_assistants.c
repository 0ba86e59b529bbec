/*
 * `assistants`: other assistants of this server as tools. The value is a list of their ids, names
 * or graphs, or an object with that list as `assistants`. Each is a tool that takes a message and
 * returns the assistant's last message. Its interrupts become the call's.
 */
#include <stdio.h>

#include "agent/agent_internal.h"
#include "agent/tool.h"
#include "base/alloc.h"
#include "graph/engine/engine.h"
#include "graph/engine/loop.h"
#include "graph/engine/run.h"
#include "graph/engine/save.h"
#include "graph/engine/task.h"

#define MAX_ASSISTANTS 64

static const struct hd_val *list_of(const struct hd_val *value)
{
    return hd_val_is_object(value) ? hd_val_get(value, HD_S("assistants")) : value;
}

static int check_assistants(const struct hd_val *value, struct heddle_error *fault)
{
    const struct hd_val *list = list_of(value);

    if (!hd_val_is_list(list))
        return hd_error_set(fault, HD_EINVAL, "must be a list of assistants, not %s",
                            hd_val_type_name(list));
    if (hd_val_count(list) > MAX_ASSISTANTS)
        return hd_error_set(fault, HD_EINVAL, "must not be more than %d assistants",
                            MAX_ASSISTANTS);
    for (size_t i = 0; i < hd_val_count(list); i++) {
        struct hd_slice name = hd_val_get_string(hd_val_at(list, i));

        if (name.len == 0 || hd_slice_eq(name, HD_S("*")))
            return hd_error_set(fault, HD_EINVAL, "assistant %zu must be an id, a name or a graph",
                                i);
    }
    return 0;
}

/* ---- opening ---------------------------------------------------------- */

/* Stays until all lookups are done, even when the source is closed. */
struct assistants {
    struct hd_tool_source *source; /* NULL: closed */
    size_t pending;
    size_t count;
    struct hd_val *found[MAX_ASSISTANTS]; /* NULL: not found */
};

struct looking {
    struct assistants *all;
    size_t index;
};

static const struct hd_delegates *delegates_of(const struct hd_engine_run *run)
{
    const struct hd_agents *agents = hd_agents_of_run(run);

    return agents ? agents->options.delegates : NULL;
}

static void free_assistants(struct assistants *all)
{
    for (size_t i = 0; i < all->count; i++)
        hd_val_unref(all->found[i]);
    hd_free(all);
}

static struct hd_val *parameters(void)
{
    struct hd_val *message = hd_val_with(hd_val_object(), HD_S("type"), hd_val_cstr("string"));
    struct hd_val *schema = hd_val_with(hd_val_object(), HD_S("type"), hd_val_cstr("object"));

    message = hd_val_with(message, HD_S("description"),
                          hd_val_cstr("The message to the agent. Of this conversation it sees only "
                                      "earlier messages to it."));
    schema = hd_val_with(schema, HD_S("properties"),
                         hd_val_with(hd_val_object(), HD_S("message"), message));
    return hd_val_with(schema, HD_S("required"),
                       hd_val_append(hd_val_list(), hd_val_cstr("message")));
}

static int add_assistant_tool(struct hd_tool_source *source, struct hd_val *assistant)
{
    struct hd_slice name = hd_val_get_string(hd_val_get(assistant, HD_S("name")));
    struct hd_slice said = hd_val_get_string(hd_val_get(assistant, HD_S("description")));
    struct hd_val *schema = parameters();
    struct hd_val *text = said.len > 0 ? hd_val_string(said)
                                       : hd_val_printf("Calls the agent \"%.*s\".", (int)name.len,
                                                       name.ptr ? name.ptr : "");
    int err = HD_ENOMEM;

    if (schema && text) {
        /* A delegate has its own limits, and the run's. */
        const struct hd_tool tool = {.name = name,
                                     .description = hd_val_get_string(text),
                                     .parameters = schema,
                                     .timeout_ms = -1,
                                     .own = assistant};

        err = hd_source_add(source, &tool);
    }
    hd_val_unref(schema);
    hd_val_unref(text);
    return err;
}

static void be_ready(struct assistants *all)
{
    const struct hd_val *list = list_of(all->source->value);
    char problem[256] = "";
    size_t len = 0;
    int err = 0;

    for (size_t i = 0; i < all->count && !err; i++) {
        struct hd_slice wanted = hd_val_get_string(hd_val_at(list, i));

        if (all->found[i])
            err = add_assistant_tool(all->source, all->found[i]);
        else if (len < sizeof(problem) - 1)
            len += (size_t)snprintf(problem + len, sizeof(problem) - len, "%s\"%.*s\"",
                                    len ? ", " : "no assistant ", (int)wanted.len, wanted.ptr);
    }
    hd_source_ready(all->source, err ? hd_error_text(err) : len ? problem : NULL);
}

static void end_one(struct assistants *all)
{
    if (--all->pending > 0)
        return;
    if (all->source)
        be_ready(all);
    else
        free_assistants(all);
}

static void on_assistant_found(void *arg, const struct hd_val *assistant)
{
    struct looking *looking = arg;
    struct assistants *all = looking->all;

    all->found[looking->index] = hd_val_ref(assistant);
    hd_free(looking);
    end_one(all);
}

static int look_up_assistant(struct assistants *all, const struct hd_delegates *delegates,
                             size_t index, struct hd_slice wanted)
{
    struct looking *looking = hd_calloc(1, sizeof(*looking));
    int err;

    if (!looking)
        return HD_ENOMEM;
    looking->all = all;
    looking->index = index;
    err = delegates->find(delegates->ctx, all->source->run, wanted, on_assistant_found, looking);
    if (err)
        hd_free(looking);
    else
        all->pending++;
    return err;
}

static int open_assistants(struct hd_tool_source *source)
{
    const struct hd_delegates *delegates = delegates_of(source->run);
    const struct hd_val *list = list_of(source->value);
    struct assistants *all;
    int err = 0;

    if (!delegates) {
        hd_source_ready(source, "no other assistants are available");
        return 0;
    }
    all = hd_calloc(1, sizeof(*all));
    if (!all)
        return HD_ENOMEM;
    source->own = all;
    all->source = source;
    all->count = hd_val_count(list);
    all->pending = 1; /* until all lookups are started */
    for (size_t i = 0; i < all->count && !err; i++)
        err = look_up_assistant(all, delegates, i, hd_val_get_string(hd_val_at(list, i)));
    if (err) {
        source->own = NULL;
        all->source = NULL;
    }
    end_one(all);
    return err;
}

static void close_assistants(struct hd_tool_source *source)
{
    struct assistants *all = source->own;

    if (!all)
        return;
    all->source = NULL;
    source->own = NULL;
    if (all->pending == 0)
        free_assistants(all);
}

/* ---- results ---------------------------------------------------------- */

static struct hd_slice content_part_text(const struct hd_val *part)
{
    if (hd_val_is_string(part))
        return hd_val_get_string(part);
    return hd_val_get_string(hd_val_get(part, HD_S("text")));
}

/* The text of a message; NULL: HD_ENOMEM. */
static struct hd_val *message_text(const struct hd_val *message)
{
    const struct hd_val *content = hd_val_get(message, HD_S("content"));
    struct hd_val *text = NULL;
    struct hd_buf buf;
    int err = 0;

    if (!hd_val_is_list(content))
        return hd_val_string(hd_val_get_string(content));
    hd_buf_init(&buf, HD_ENGINE_MAX_VALUE);
    for (size_t i = 0; i < hd_val_count(content) && !err; i++)
        err = hd_buf_append_slice(&buf, content_part_text(hd_val_at(content, i)));
    if (!err)
        text = hd_val_string(hd_buf_slice(&buf));
    hd_buf_fini(&buf);
    return text;
}

/* Its last message. For a graph without messages, the whole output. */
static struct hd_val *last_words(const struct hd_val *output)
{
    const struct hd_val *messages = hd_val_get(output, HD_S("messages"));
    struct hd_val *text = NULL;
    struct hd_buf buf;

    for (size_t i = hd_val_count(messages); i-- > 0;) {
        const struct hd_val *message = hd_val_at(messages, i);

        if (hd_slice_eq(hd_val_get_string(hd_val_get(message, HD_S("type"))), HD_S("ai")))
            return message_text(message);
    }
    hd_buf_init(&buf, HD_ENGINE_MAX_VALUE);
    if (hd_val_write_text(&buf, output) == 0)
        text = hd_val_string(hd_buf_slice(&buf));
    hd_buf_fini(&buf);
    return text;
}

static struct hd_val *artifact_of(const struct hd_val *assistant,
                                  const struct hd_engine_run_result *result)
{
    struct hd_val *artifact = hd_val_object();

    artifact = hd_val_with(artifact, HD_S("assistant_id"),
                           hd_val_ref(hd_val_get(assistant, HD_S("assistant_id"))));
    return hd_val_with(artifact, HD_S("checkpoint_id"),
                       hd_val_cstr(result->checkpoint_id ? result->checkpoint_id : ""));
}

/* ---- interrupts ------------------------------------------------------- */

static struct hd_val *ids_of(const struct hd_val *interrupts)
{
    struct hd_val *ids = hd_val_list();

    for (size_t i = 0; i < hd_val_count(interrupts); i++)
        ids = hd_val_append(ids, hd_val_ref(hd_val_get(hd_val_at(interrupts, i), HD_S("id"))));
    return ids;
}

/* Adds the assistant, for the human who replies; the ids route the reply back. */
static struct hd_val *who_asks(const struct hd_val *assistant, const struct hd_val *interrupts)
{
    struct hd_val *who = hd_val_object();

    who = hd_val_with(who, HD_S("assistant_id"),
                      hd_val_ref(hd_val_get(assistant, HD_S("assistant_id"))));
    who = hd_val_with(who, HD_S("name"), hd_val_ref(hd_val_get(assistant, HD_S("name"))));
    return hd_val_with(who, HD_S("interrupt_ids"), ids_of(interrupts));
}

static struct hd_val *value_at(const struct hd_val *interrupts, size_t index)
{
    const struct hd_val *value = hd_val_get(hd_val_at(interrupts, index), HD_S("value"));

    return value ? hd_val_ref(value) : hd_val_null();
}

/*
 * A single interrupt keeps its value. Several become `questions`, a list; a breakpoint is an
 * interrupt without a value.
 */
static struct hd_val *question_of(const struct hd_val *assistant,
                                  const struct hd_engine_run_result *result)
{
    const struct hd_val *interrupts = result->interrupts;
    struct hd_val *question;

    if (hd_val_count(interrupts) == 1) {
        question = value_at(interrupts, 0);
        if (!hd_val_is_object(question) || hd_val_kind(question) != HD_KIND_NONE)
            return question;
    } else {
        struct hd_val *all = hd_val_list();

        for (size_t i = 0; i < hd_val_count(interrupts); i++)
            all = hd_val_append(all, value_at(interrupts, i));
        question = hd_val_with(hd_val_object(), HD_S("questions"), all);
        if (hd_val_count(interrupts) == 0)
            question = hd_val_with(question, HD_S("next"),
                                   result->next ? hd_val_ref(result->next) : hd_val_list());
    }
    return hd_val_with(question, HD_S("delegate"), who_asks(assistant, interrupts));
}

/* ---- calls ------------------------------------------------------------ */

static void on_delegate_done(void *arg, const struct hd_engine_run_result *result)
{
    struct hd_tool_call *call = arg;
    const struct hd_val *assistant = call->tool->own;
    struct hd_slice name = hd_val_get_string(hd_val_get(assistant, HD_S("name")));

    call->own = NULL;
    switch (result->status) {
    case HD_ENGINE_RUN_DONE:
        hd_tool_done(call, last_words(result->output), artifact_of(assistant, result));
        break;
    case HD_ENGINE_RUN_INTERRUPTED:
        hd_tool_ask(call, question_of(assistant, result));
        break;
    case HD_ENGINE_RUN_FAILED:
        hd_tool_error(call, "%.*s: %s: %s", (int)name.len, name.ptr, result->error_type,
                      result->error_text);
        break;
    case HD_ENGINE_RUN_CANCELLED:
        hd_tool_error(call, "%.*s was stopped", (int)name.len, name.ptr);
        break;
    }
}

static struct hd_val *make_input(struct hd_slice text)
{
    struct hd_val *message = hd_val_message("human", hd_val_string(text), NULL);

    return hd_val_with(hd_val_object(), HD_S("messages"), hd_val_append(hd_val_list(), message));
}

static int call(struct hd_tool_call *call)
{
    const struct hd_delegates *delegates = delegates_of(call->task->loop->run);
    const struct hd_val *assistant = call->tool->own;
    const struct hd_val *answer = hd_tool_answer(call);
    struct hd_slice text = hd_val_get_string(hd_val_get(call->args, HD_S("message")));
    struct hd_val *input = NULL;
    struct hd_delegate *delegate = NULL;
    int err = 0;

    if (!answer && text.len == 0) {
        hd_tool_error(call, "message: expected a text");
        return 0;
    }
    if (!answer) {
        input = make_input(text);
        err = input ? 0 : HD_ENOMEM;
    }
    if (!err)
        err = delegates->start(delegates->ctx, call->task,
                               hd_val_get_string(hd_val_get(assistant, HD_S("assistant_id"))),
                               call->id, input, answer, on_delegate_done, call, &delegate);
    if (!err)
        call->own = delegate;
    hd_val_unref(input);
    return err;
}

static void cancel_delegate(struct hd_tool_call *call)
{
    const struct hd_delegates *delegates = delegates_of(call->task->loop->run);
    struct hd_delegate *delegate = call->own;

    call->own = NULL;
    if (delegate)
        delegates->cancel(delegates->ctx, delegate);
}

const struct hd_source_kind hd_source_assistants = {
    .name = "assistants",
    .check = check_assistants,
    .open = open_assistants,
    .close = close_assistants,
    .call = call,
    .cancel = cancel_delegate,
};
