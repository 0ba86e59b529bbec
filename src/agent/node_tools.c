/*
 * `tools`: one tool call. Each call is started by a send, so that calls of one message are separate
 * tasks: they run concurrently, interrupt separately and are stored as each completes.
 *
 * Errors of a call are for the model: a tool message with status "error". A call that the client
 * answers writes nothing and triggers nothing.
 *
 * Human replies arrive in the order of the interrupts: first for approval, then for the tool's own
 * interrupts. Both restart the task.
 */
#include <stdarg.h>
#include <string.h>
#include <uv.h>

#include "agent/agent_internal.h"
#include "agent/approval.h"
#include "agent/source.h"
#include "agent/tools.h"
#include "agent/toolset.h"
#include "base/alloc.h"
#include "base/uuid.h"
#include "graph/decl/decl.h"
#include "graph/engine/engine.h"
#include "graph/engine/loop.h"
#include "graph/engine/task.h"

#define TIMEOUT_MS 60000
#define MAX_RESULT ((int64_t)256 << 10)
#define MAX_SOURCES 32
#define MAX_NAMES 2000 /* bytes of the list of tools in an error */

/* ---- reading ---------------------------------------------------------- */

static int fail_kind(struct hd_decl *decl, const struct hd_decl_at *at)
{
    struct hd_near near;
    const char *name;

    hd_near_init(&near, at->key);
    for (size_t i = 0; (name = hd_source_kind_name(i)); i++)
        hd_near_try(&near, hd_slice_cstr(name));
    return hd_decl_fail(decl, at, "unknown kind of source \"%.*s\"%s", HD_SHOW(at->key),
                        hd_near_text(&near));
}

static int read_source(struct hd_decl *decl, const struct hd_decl_at *at,
                       struct hd_tools_source *out)
{
    struct hd_json_iter it = hd_json_iter(at->val);
    struct heddle_error fault = {0};
    const struct hd_val *literal;
    struct hd_decl_at member;
    int err;

    if (!hd_json_is_object(at->val) || hd_json_size(at->val) != 1 || !hd_json_next(&it))
        return hd_decl_fail(decl, at, "must be an object with one member: a kind of source");
    member = hd_decl_at_key(at, it.key, it.val);
    out->kind = hd_source_kind_find(it.key);
    if (!out->kind)
        return fail_kind(decl, &member);
    err = hd_decl_expr_in(decl, &member, 0, &out->value);
    if (err)
        return err;
    literal = hd_expr_literal(out->value);
    if (!hd_val_is_null(literal) && out->kind->check)
        err = out->kind->check(literal, &fault);
    return err == HD_EINVAL ? hd_decl_fail(decl, &member, "%s", fault.text) : err;
}

static int read_tool_sources(struct hd_decl *decl, const struct hd_decl_at *at,
                             const struct hd_field *field, void *out)
{
    struct hd_json_iter it = hd_json_iter(at->val);
    size_t size = hd_json_size(at->val);
    struct hd_tools_sources sources = {0};
    int err = 0;

    (void)field;
    if (!hd_json_is_array(at->val))
        return hd_decl_fail_type(decl, at, "a list of sources");
    if (size > MAX_SOURCES)
        return hd_decl_fail(decl, at, "has at most %d sources", MAX_SOURCES);
    sources.list = hd_arena_calloc(&decl->hold->arena, size + 1, sizeof(*sources.list));
    if (!sources.list)
        return HD_ENOMEM;
    while (err == 0 && hd_json_next(&it)) {
        struct hd_decl_at element = hd_decl_at_index(at, sources.count, it.val);

        err = read_source(decl, &element, &sources.list[sources.count++]);
    }
    *(struct hd_tools_sources *)out = sources;
    return err;
}

static int read_approval(struct hd_decl *decl, const struct hd_decl_at *at,
                         const struct hd_field *field, void *out)
{
    const struct hd_expr **expr = out;
    struct heddle_error fault = {0};
    int err = hd_decl_read_expr(decl, at, field, out);

    if (err || !hd_expr_literal(*expr))
        return err;
    err = hd_approval_check(hd_expr_literal(*expr), &fault);
    return err ? hd_decl_fail(decl, at, "%s", fault.text) : 0;
}

static int read_channel(struct hd_decl *decl, const struct hd_decl_at *at,
                        const struct hd_field *field, void *out)
{
    size_t ignored;
    int err = hd_decl_read_string(decl, at, field, out);

    return err ? err : hd_decl_find_channel(decl, at, *(struct hd_slice *)out, &ignored);
}

static const struct hd_field fields[] = {
    {"sources", read_tool_sources, offsetof(struct hd_tools_spec, sources), true, 0, 0, 0},
    {"call", hd_decl_read_expr, offsetof(struct hd_tools_spec, call), false, 0, 0, 0},
    {"channel", read_channel, offsetof(struct hd_tools_spec, channel), false, 0, 0, 0},
    {"approval", read_approval, offsetof(struct hd_tools_spec, approval), false, 0, 0, 0},
    {"tool_timeout_ms", hd_decl_read_int, offsetof(struct hd_tools_spec, tool_timeout_ms), false, 1,
     HD_GRAPH_MAX_WAIT_MS, 0},
    {"max_result_bytes", hd_decl_read_int, offsetof(struct hd_tools_spec, max_result_bytes), false,
     1, INT64_C(16) << 20, 0},
};

static int read_tools_node(struct hd_decl *decl, const struct hd_decl_at *at, struct hd_node *node)
{
    struct hd_tools_spec *spec = hd_arena_calloc(&decl->hold->arena, 1, sizeof(*spec));
    size_t ignored;
    int err;

    if (!spec)
        return HD_ENOMEM;
    node->spec = spec;
    node->may_stop = true;
    spec->tool_timeout_ms = TIMEOUT_MS;
    spec->max_result_bytes = MAX_RESULT;
    err = hd_decl_node_fields(decl, at, fields, HD_COUNT(fields), spec);
    if (!err && !spec->channel.ptr) {
        spec->channel = HD_S("messages");
        err = hd_decl_find_channel(decl, at, spec->channel, &ignored);
    }
    return err;
}

/* ---- a running call --------------------------------------------------- */

/* The result of a call that ended before the source's call() returned. */
struct early_result {
    bool is_there, is_error, is_question;
    struct hd_val *content, *artifact, *question;
};

struct tool_work {
    struct hd_tool_call call; /* for the source */
    struct hd_val *given;     /* the call as the model made it; `id` and `name` borrow from it */
    struct hd_slice name;     /* the model's name for the tool */
    struct hd_val *args;
    struct hd_val *asked;  /* list: the interrupt before this attempt, or empty */
    struct hd_val *answer; /* the reply to the tool's interrupt; NULL: none */
    bool is_edited;
    struct hd_toolset_wait *wait; /* for the tools; NULL: available */
    bool is_calling;
    bool is_entering; /* the source's call() has not returned */
    struct early_result early;
    uv_timer_t *timer;
};

static const struct hd_tools_spec *spec_of(const struct tool_work *work)
{
    return work->call.task->node->spec;
}

static void free_call_timer(uv_handle_t *handle)
{
    hd_free(handle);
}

/* Detaches it from the task; pending operations must have been stopped. */
static void free_tool_work(struct tool_work *work)
{
    work->call.task->work = NULL;
    if (work->timer)
        uv_close((uv_handle_t *)work->timer, free_call_timer);
    hd_val_unref(work->given);
    hd_val_unref(work->args);
    hd_val_unref(work->asked);
    hd_val_unref(work->answer);
    hd_val_unref(work->early.content);
    hd_val_unref(work->early.artifact);
    hd_val_unref(work->early.question);
    hd_free(work);
}

static void cancel_tool_work(struct hd_task *task)
{
    struct tool_work *work = task->work;

    if (work->wait)
        hd_toolset_cancel(work->wait);
    if (work->is_calling)
        work->call.tool->source->kind->cancel(&work->call);
    free_tool_work(work);
}

/* ---- ending ----------------------------------------------------------- */

/* The members of the message that are no part of the result. NULL: HD_ENOMEM. */
static struct hd_val *make_marks(const struct tool_work *work)
{
    struct hd_val *marks = hd_val_object();

    if (work->is_edited)
        marks = hd_val_with(marks, HD_S("edited_args"), hd_val_ref(work->args));
    if (work->call.tool && work->call.tool->is_read_only)
        marks = hd_val_with(marks, HD_S("read_only"), hd_val_bool(true));
    return marks;
}

/* Takes both; `artifact` may be NULL. */
static struct hd_val *make_message(const struct tool_work *work, struct hd_val *content,
                                   struct hd_val *artifact, bool is_error)
{
    size_t max = (size_t)spec_of(work)->max_result_bytes;
    struct hd_val *message, *marks = make_marks(work);
    char id[HD_UUID_SIZE];

    hd_uuid_v4(id);
    message = hd_val_message("tool", hd_tool_content(content, max), id);
    message = hd_val_with(message, HD_S("name"), hd_val_string(work->name));
    message = hd_val_with(message, HD_S("tool_call_id"), hd_val_string(work->call.id));
    if (!marks || hd_val_count(marks) > 0)
        message = hd_val_with(message, HD_S("additional_kwargs"), hd_val_ref(marks));
    if (!hd_val_is_null(artifact) && hd_tool_is_small(artifact, max))
        message = hd_val_with(message, HD_S("artifact"), hd_val_ref(artifact));
    if (is_error)
        message = hd_val_with(message, HD_S("status"), hd_val_cstr("error"));
    hd_val_unref(marks);
    hd_val_unref(artifact);
    return message;
}

/* Ends the task with this message (taken). */
static void finish_tool_call(struct tool_work *work, struct hd_val *content,
                             struct hd_val *artifact, bool is_error)
{
    const struct hd_tools_spec *spec = spec_of(work);
    struct hd_task *task = work->call.task;
    struct hd_val *message = make_message(work, content, artifact, is_error);
    struct hd_val *update = NULL;

    if (message) {
        update = hd_val_append(hd_val_list(), hd_val_ref(message));
        update = hd_val_with(hd_val_object(), spec->channel, update);
    }
    if (message && work->is_calling)
        hd_task_tool(task, work->name, work->call.id, work->args, message, is_error);
    free_tool_work(work);
    hd_val_unref(message);
    if (update)
        hd_task_finish(task, update, NULL, false);
    else
        hd_task_fail_code(task, HD_ENOMEM, NULL);
}

static void finish_error(struct tool_work *work, const char *fmt, ...) HD_PRINTF(2, 3);

static void finish_error(struct tool_work *work, const char *fmt, ...)
{
    struct hd_val *text;
    va_list args;

    va_start(args, fmt);
    text = hd_val_vprintf(fmt, args);
    va_end(args);
    finish_tool_call(work, text, NULL, true);
}

/* Takes `question`. The task restarts when a reply arrives. */
static void ask_question(struct tool_work *work, struct hd_val *question)
{
    struct hd_task *task = work->call.task;

    free_tool_work(work);
    hd_task_ask(task, hd_val_append(hd_val_list(), hd_task_question(task, question)));
}

/* ---- results from sources --------------------------------------------- */

/* Takes both. */
static void take_result(struct tool_work *work, struct hd_val *content, struct hd_val *artifact,
                        bool is_error)
{
    if (work->is_entering)
        work->early = (struct early_result){
            .is_there = true, .is_error = is_error, .content = content, .artifact = artifact};
    else
        finish_tool_call(work, content, artifact, is_error);
}

void hd_tool_done(struct hd_tool_call *call, struct hd_val *content, struct hd_val *artifact)
{
    take_result(call->node, content, artifact, false);
}

void hd_tool_error(struct hd_tool_call *call, const char *fmt, ...)
{
    struct hd_val *text, *whole = NULL;
    va_list args;

    va_start(args, fmt);
    text = hd_val_vprintf(fmt, args);
    va_end(args);
    if (text)
        whole = hd_slice_starts(hd_val_get_string(text), HD_S("Error"))
                    ? hd_val_ref(text)
                    : hd_val_printf("Error: %s", hd_val_get_string(text).ptr);
    hd_val_unref(text);
    take_result(call->node, whole, NULL, true);
}

/* The tool does not run while it waits for the reply. Takes `question`. */
static void interrupt_tool_call(struct tool_work *work, struct hd_val *question)
{
    struct hd_val *output =
        hd_val_with(hd_val_object(), HD_S("content"), hd_val_cstr("waits for a reply"));

    if (output)
        hd_task_tool(work->call.task, work->name, work->call.id, work->args, output, true);
    hd_val_unref(output);
    ask_question(work, question);
}

void hd_tool_ask(struct hd_tool_call *call, struct hd_val *question)
{
    struct tool_work *work = call->node;

    if (work->is_entering)
        work->early =
            (struct early_result){.is_there = true, .is_question = true, .question = question};
    else
        interrupt_tool_call(work, question);
}

const struct hd_val *hd_tool_answer(const struct hd_tool_call *call)
{
    return ((const struct tool_work *)call->node)->answer;
}

const struct hd_val *hd_tool_question(const struct hd_tool_call *call)
{
    const struct tool_work *work = call->node;

    return work->answer ? hd_val_at(work->asked, 0) : NULL;
}

/* ---- calling ---------------------------------------------------------- */

static void on_timeout(uv_timer_t *timer)
{
    struct tool_work *work = timer->data;

    if (work->call.task->loop->run->engine->is_suspended)
        return; /* it repeats */
    work->call.tool->source->kind->cancel(&work->call);
    finish_error(work, "Error: %.*s timed out after %.3g seconds.", (int)work->name.len,
                 work->name.ptr, (double)uv_timer_get_repeat(timer) / 1000);
}

static int limit_call(struct tool_work *work)
{
    int64_t ms = work->call.tool->timeout_ms;
    uv_loop_t *uv = work->call.task->loop->run->engine->uv;

    if (ms == 0)
        ms = spec_of(work)->tool_timeout_ms;
    if (ms < 0)
        return 0;
    work->timer = hd_calloc(1, sizeof(*work->timer));
    if (!work->timer)
        return HD_ENOMEM;
    uv_timer_init(uv, work->timer);
    work->timer->data = work;
    uv_update_time(uv);
    uv_timer_start(work->timer, on_timeout, (uint64_t)ms, (uint64_t)ms);
    return 0;
}

/* Ends the call with the result that arrived before the source's call() returned. */
static void use_early_result(struct tool_work *work)
{
    struct early_result early = work->early;

    work->early = (struct early_result){0};
    if (early.is_question)
        interrupt_tool_call(work, early.question);
    else
        finish_tool_call(work, early.content, early.artifact, early.is_error);
}

static void begin_tool_call(struct tool_work *work);

static void on_resumed(struct hd_task *task)
{
    begin_tool_call(task->work);
}

/* The call begins when the engine is no longer suspended. */
static int postpone_call(struct tool_work *work)
{
    return hd_task_wait(work->call.task, HD_ENGINE_SUSPENDED_MS, on_resumed);
}

static void begin_tool_call(struct tool_work *work)
{
    struct hd_task *task = work->call.task;
    bool is_suspended = task->loop->run->engine->is_suspended;
    int err = is_suspended ? postpone_call(work) : limit_call(work);

    if (is_suspended && !err)
        return;
    if (err) {
        finish_error(work, "Error: %s", hd_error_text(err));
        return;
    }
    work->call.args = work->args;
    work->is_calling = true;
    hd_task_tool(task, work->name, work->call.id, work->args, NULL, false);
    work->is_entering = true;
    err = work->call.tool->source->kind->call(&work->call);
    work->is_entering = false;
    if (err)
        finish_error(work, "Error: the tool could not be called: %s", hd_error_text(err));
    else if (work->early.is_there)
        use_early_result(work);
}

/* ---- interrupts ------------------------------------------------------- */

/* A task without an interrupt must not take a reply meant for another one. */
static int next_answer(struct tool_work *work, struct hd_val **out)
{
    struct hd_task *task = work->call.task;

    if (task->asked >= hd_val_count(task->resume) && hd_val_count(work->asked) == 0)
        return HD_ENOTFOUND;
    return hd_task_answer(task, out);
}

/* Whether approval is required; also when the policy has changed since. */
static int find_approval(struct tool_work *work, struct hd_val *policy, struct hd_approval *out,
                         struct heddle_error *fault)
{
    const struct hd_tool *tool = work->call.tool;
    const struct hd_val *question = hd_val_at(work->asked, 0);
    struct hd_approval asked;
    int err = hd_approval_find(policy, work->name, tool->name, work->args, out, fault);

    if (!err && !out->is_needed &&
        hd_approval_is_question(question, work->name, work->call.id, &asked))
        *out = asked;
    return err;
}

/* The first valid reply. HD_ENOTFOUND: none; `fault` may have the reason. */
static int find_decision(struct tool_work *work, const struct hd_approval *approval,
                         struct hd_decision *out, struct heddle_error *fault)
{
    struct hd_val *answer;
    int err;

    for (;;) {
        err = next_answer(work, &answer);
        if (err)
            return err;
        *fault = (struct heddle_error){0};
        err = hd_approval_answer(answer, approval, work->name, out, fault);
        if (!err && out->verdict == HD_EDIT) {
            err = hd_tool_args_check(work->call.tool->parameters, out->args, fault);
            if (err)
                hd_decision_fini(out);
        }
        if (err != HD_EINVAL)
            return err;
    }
}

/* The tool's own interrupt and its reply. */
static int find_tool_answer(struct tool_work *work)
{
    struct hd_val *answer;
    int err = next_answer(work, &answer);

    while (!err) {
        hd_val_unref(work->answer);
        work->answer = hd_val_ref(answer);
        err = next_answer(work, &answer);
    }
    return err == HD_ENOTFOUND ? 0 : err;
}

static void begin_or_fail(struct tool_work *work)
{
    int err = find_tool_answer(work);

    if (err)
        finish_error(work, "Error: %s", hd_error_text(err));
    else
        begin_tool_call(work);
}

static void follow(struct tool_work *work, struct hd_decision *decision)
{
    switch (decision->verdict) {
    case HD_EDIT:
        hd_val_unref(work->args);
        work->args = hd_val_ref(decision->args);
        work->is_edited = true;
        begin_or_fail(work);
        break;
    case HD_RESPOND:
        finish_tool_call(work, hd_val_ref(decision->text), NULL, false);
        break;
    case HD_IGNORE:
        if (decision->text)
            finish_tool_call(work, hd_val_ref(decision->text), NULL, true);
        else
            finish_error(work, "The user declined the call of %.*s. It was not executed.",
                         (int)work->name.len, work->name.ptr);
        break;
    default:
        begin_or_fail(work);
    }
}

static void approve(struct tool_work *work, struct hd_val *policy)
{
    struct hd_decision decision = {0};
    struct hd_approval approval;
    struct heddle_error fault = {0};
    int err = find_approval(work, policy, &approval, &fault);

    if (err) {
        finish_error(work,
                     "Error: %.*s was not called, because it is not clear whether it needs "
                     "approval: the policy %s",
                     (int)work->name.len, work->name.ptr, fault.text);
        return;
    }
    if (!approval.is_needed) {
        begin_or_fail(work);
        return;
    }
    err = find_decision(work, &approval, &decision, &fault);
    if (err == HD_ENOTFOUND)
        ask_question(work, hd_approval_question(&approval, work->name, work->args, work->call.id,
                                                fault.text[0] ? fault.text : NULL));
    else if (err)
        finish_error(work, "Error: %s", hd_error_text(err));
    else
        follow(work, &decision);
    hd_decision_fini(&decision);
}

static void check_approval(struct tool_work *work)
{
    struct hd_scope scope = hd_task_scope(work->call.task);
    const struct hd_expr *expr = spec_of(work)->approval;
    struct hd_val *policy = hd_val_null();
    int err = expr ? hd_expr_eval(expr, &scope, &policy) : 0;

    if (err) {
        finish_error(work, "Error: %s", hd_error_text(err));
        return;
    }
    approve(work, policy);
    hd_val_unref(policy);
}

/* ---- finding the tool ------------------------------------------------- */

static void finish_unknown(struct tool_work *work, const struct hd_toolset *set)
{
    struct hd_buf names;
    size_t i;
    int err = 0;

    hd_buf_init(&names, MAX_NAMES);
    for (i = 0; i < set->count && !err; i++)
        err = hd_buf_printf(&names, "%s%.*s", i ? ", " : "", (int)set->entries[i].name.len,
                            set->entries[i].name.ptr);
    if (set->count == 0)
        finish_error(work, "Error: %.*s is not a valid tool: there are none.", (int)work->name.len,
                     work->name.ptr);
    else
        finish_error(work, "Error: %.*s is not a valid tool, try one of [%.*s%s].",
                     (int)work->name.len, work->name.ptr, (int)names.len,
                     names.ptr ? names.ptr : "", err ? ", …" : "");
    hd_buf_fini(&names);
}

static void on_tools(void *ctx, const struct hd_toolset *set)
{
    struct tool_work *work = ctx;
    struct hd_task *task = work->call.task;
    struct heddle_error fault = {0};

    work->wait = NULL;
    if (!set) {
        finish_error(work, "Error: %s", hd_error_text(HD_ENOMEM));
        return;
    }
    work->call.tool = hd_toolset_find(set, work->name);
    if (!work->call.tool) {
        finish_unknown(work, set);
    } else if (work->call.tool->is_client) {
        free_tool_work(work);
        hd_task_rest(task);
    } else if (hd_tool_args_check(work->call.tool->parameters, work->args, &fault) != 0) {
        finish_error(work, "Error: invalid arguments for %.*s: %s. Please fix them and try again.",
                     (int)work->name.len, work->name.ptr, fault.text);
    } else {
        check_approval(work);
    }
}

/* The call: from the node's expression, or from the send. */
static int find_call(struct hd_task *task, struct hd_val **out)
{
    const struct hd_tools_spec *spec = task->node->spec;
    struct hd_scope scope = hd_task_scope(task);
    struct hd_val *call = NULL;
    size_t channel;

    if (spec->call)
        return hd_expr_eval(spec->call, &scope, out);
    if (task->push != HD_PULL)
        call = hd_val_get(task->arg, HD_S("call"));
    channel = call ? HD_GRAPH_END : hd_graph_find_channel(task->graph, HD_S("call"));
    if (channel < task->graph->state_count)
        call = task->channels[channel];
    *out = call ? hd_val_ref(call) : hd_val_null();
    return 0;
}

static int make_work(struct hd_task *task, struct hd_val *given, struct tool_work **out)
{
    struct tool_work *work = hd_calloc(1, sizeof(*work));
    const struct hd_val *args = hd_val_get(given, HD_S("args"));

    if (!work)
        return HD_ENOMEM;
    work->call.task = task;
    work->call.node = work;
    work->given = hd_val_ref(given);
    work->name = hd_val_get_string(hd_val_get(given, HD_S("name")));
    work->call.id = hd_val_get_string(hd_val_get(given, HD_S("id")));
    work->args = hd_val_is_null(args) ? hd_val_object() : hd_val_ref(args);
    work->asked = hd_task_asked(task);
    if (!work->args || !work->asked) {
        free_tool_work(work);
        return HD_ENOMEM;
    }
    *out = work;
    return 0;
}

static int start_tools_node(struct hd_task *task)
{
    struct tool_work *work = NULL;
    struct hd_val *given;
    int err = find_call(task, &given);

    if (err)
        return err;
    if (hd_val_is_null(given)) {
        hd_task_finish(task, NULL, NULL, false);
        return 0;
    }
    if (!hd_val_is_string(hd_val_get(given, HD_S("name"))))
        hd_task_fail(task, "ValueError", "a call of a tool must be an object with \"name\"");
    else
        err = make_work(task, given, &work);
    hd_val_unref(given);
    if (!work)
        return err;
    err = hd_toolset_get(task, task->node, on_tools, work, &work->wait);
    if (err)
        free_tool_work(work);
    else
        task->work = work;
    return err;
}

const struct hd_node_kind hd_node_tools = {
    .name = "tools",
    .read = read_tools_node,
    .start = start_tools_node,
    .cancel = cancel_tool_work,
};
