/*
 * Runs tasks: attempts, time limits and outcomes. The node kinds (node_*.c) do the work and report
 * through the functions at the bottom.
 */
#include "graph/engine/task.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/slice.h"
#include "graph/decl/graph.h"
#include "graph/engine/channel.h"
#include "graph/engine/checkpoint_state.h"
#include "graph/engine/command.h"
#include "graph/engine/engine.h"
#include "graph/engine/events.h"
#include "graph/engine/failure.h"
#include "graph/engine/loop.h"
#include "graph/engine/task_status.h"
#include "graph/engine/writes.h"
#include "graph/expr/expr.h"
#include "value/val.h"

/* ---- timers ----------------------------------------------------------- */

static void free_timer(uv_handle_t *handle)
{
    hd_free(handle);
}

static void drop_timer(uv_timer_t **timer)
{
    if (!*timer)
        return;
    uv_timer_stop(*timer);
    uv_close((uv_handle_t *)*timer, free_timer);
    *timer = NULL;
}

static int start_task_timer(struct hd_task *task, uv_timer_t **timer, int64_t ms, uv_timer_cb fn)
{
    drop_timer(timer);
    *timer = hd_calloc(1, sizeof(**timer));
    if (!*timer)
        return HD_ENOMEM;
    uv_timer_init(task->loop->run->engine->uv, *timer);
    (*timer)->data = task;
    /* The loop's cached time may be old after a long computation. */
    uv_update_time(task->loop->run->engine->uv);
    uv_timer_start(*timer, fn, (uint64_t)(ms > 0 ? ms : 0), 0);
    return 0;
}

/* True: the engine is suspended, and the timer tries again later. */
static bool delay_timer(const struct hd_task *task, uv_timer_t *timer, uv_timer_cb fn)
{
    return task->loop->run->engine->is_suspended &&
           uv_timer_start(timer, fn, HD_ENGINE_SUSPENDED_MS, 0) == 0;
}

static void on_task_timer(uv_timer_t *timer)
{
    struct hd_task *task = timer->data;

    if (delay_timer(task, timer, on_task_timer))
        return;
    drop_timer(&task->timer);
    task->on_timer(task);
}

int hd_task_wait(struct hd_task *task, int64_t ms, void (*fn)(struct hd_task *))
{
    task->on_timer = fn;
    return start_task_timer(task, &task->timer, ms, on_task_timer);
}

/* ---- ending ----------------------------------------------------------- */

/* Stops the node kind, finished or not. It reports nothing afterwards. */
static void stop_work(struct hd_task *task)
{
    const struct hd_node_kind *kind = task->node->kind;

    drop_timer(&task->timer);
    drop_timer(&task->deadline);
    if (task->work && kind && kind->cancel)
        kind->cancel(task);
    task->work = NULL;
}

void hd_task_stop(struct hd_task *task)
{
    if (task->status != HD_TASK_RUNNING)
        return;
    stop_work(task);
}

static void end_task(struct hd_task *task, enum hd_task_status status)
{
    task->status = status;
    hd_loop_ended_task(task->loop, task);
}

static void retry_task(struct hd_task *task);

static bool is_retried(const struct hd_task *task)
{
    const struct hd_retry *retry = &task->node->retry;

    if (task->attempts >= retry->attempts)
        return false;
    for (size_t i = 0; i < retry->on_count && retry->on; i++) {
        if (hd_slice_eq(retry->on[i], hd_slice_cstr(task->failure.type)))
            return true;
    }
    return !retry->on;
}

static int64_t delay(const struct hd_task *task)
{
    const struct hd_retry *retry = &task->node->retry;
    double ms = (double)retry->delay_ms;

    for (int i = 1; i < task->attempts; i++)
        ms *= retry->backoff;
    if (retry->max_delay_ms > 0 && ms > (double)retry->max_delay_ms)
        ms = (double)retry->max_delay_ms;
    return (int64_t)ms;
}

static void show_result(struct hd_task *task);
static void commit(struct hd_task *task);

static int rescue_update(struct hd_task *task, struct hd_val **out)
{
    struct hd_scope scope = hd_task_scope(task);
    const char *text = task->failure.text ? task->failure.text : "";
    struct hd_val *error =
        hd_val_with(hd_val_object(), HD_S("type"), hd_val_cstr(task->failure.type));
    int err;

    error = hd_val_with(error, HD_S("message"), hd_val_cstr(text));
    if (!error)
        return HD_ENOMEM;
    scope.places[HD_PLACE_ERROR] = error;
    err = hd_expr_eval(task->node->on_error, &scope, out);
    hd_val_unref(error);
    return err;
}

/*
 * Ends the task with its node's on_error; false: the node has none, the run is cancelled, or
 * on_error fails too.
 */
static bool rescue(struct hd_task *task)
{
    struct hd_scope scope = hd_task_scope(task);
    struct hd_failure failure = {NULL, NULL};
    struct hd_val *update = NULL;
    int err;

    if (!task->node->on_error || task->loop->run->is_cancelled || !task->channels)
        return false;
    hd_writes_clear(&task->writes);
    err = rescue_update(task, &update);
    if (!err)
        err = hd_command_node_writes(task->graph, task->node, &task->loop->live, &scope, update,
                                     NULL, &task->writes, &failure);
    hd_val_unref(update);
    hd_failure_fini(&failure);
    if (err) {
        hd_writes_clear(&task->writes);
        return false;
    }
    hd_failure_fini(&task->failure);
    if (hd_run_listens(task->loop->run))
        show_result(task);
    commit(task);
    return true;
}

/* The task has failed, finally or until the next attempt. */
static void fail_task(struct hd_task *task)
{
    int err;

    stop_work(task);
    if (!task->loop->run->is_cancelled && is_retried(task)) {
        task->was_retried = true;
        if (hd_task_wait(task, delay(task), retry_task) == 0)
            return;
    }
    if (rescue(task))
        return;
    err = hd_writes_add(&task->writes, HD_W_ERROR, hd_failure_repr(&task->failure));
    task->status = HD_TASK_FAILED;
    if (!err)
        err = hd_loop_put_writes(task->loop, task, task->writes.list, task->writes.count);
    if (err)
        hd_failure_code(&task->loop->failure, err, NULL);
    end_task(task, HD_TASK_FAILED);
}

void hd_task_fail_text(struct hd_task *task, struct hd_slice type, struct hd_slice text)
{
    if (task->status != HD_TASK_RUNNING)
        return;
    hd_failure_set_text(&task->failure, type, text);
    fail_task(task);
}

void hd_task_fail(struct hd_task *task, const char *type, const char *fmt, ...)
{
    char text[2048];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    hd_task_fail_text(task, hd_slice_cstr(type), hd_slice_cstr(text));
}

void hd_task_fail_code(struct hd_task *task, int err, const struct heddle_error *fault)
{
    if (task->status != HD_TASK_RUNNING)
        return;
    hd_failure_code(&task->failure, err, fault);
    fail_task(task);
}

void hd_task_ask(struct hd_task *task, struct hd_val *interrupts)
{
    struct hd_writes writes = {NULL, 0, 0};
    int err = interrupts ? 0 : HD_ENOMEM;

    if (task->status != HD_TASK_RUNNING) {
        hd_val_unref(interrupts);
        return;
    }
    stop_work(task);
    task->questions = interrupts;
    if (!err && hd_val_count(interrupts) > 0)
        err = hd_writes_add(&writes, HD_W_INTERRUPT, hd_val_ref(interrupts));
    for (size_t i = 0; i < task->writes.count && !err && writes.count > 0; i++) {
        if (task->writes.list[i].channel == HD_W_RESUME)
            err = hd_writes_copy(&writes, &task->writes.list[i], 1);
    }
    hd_writes_clear(&task->writes);
    if (!err)
        err = hd_loop_put_writes(task->loop, task, writes.list, writes.count);
    if (err)
        hd_failure_code(&task->loop->failure, err, NULL);
    hd_writes_fini(&writes);
    end_task(task, HD_TASK_ASKING);
}

/* ---- messages --------------------------------------------------------- */

static bool was_shown(struct hd_engine_run *run, struct hd_slice id)
{
    return hd_val_get(run->seen_messages, id) != NULL;
}

static int mark_shown(struct hd_engine_run *run, struct hd_slice id)
{
    if (id.len == 0 || was_shown(run, id))
        return 0;
    run->seen_messages = hd_val_with(run->seen_messages ? run->seen_messages : hd_val_object(), id,
                                     hd_val_bool(true));
    return run->seen_messages ? 0 : HD_ENOMEM;
}

static bool has_message(const struct hd_val *val, struct hd_slice id)
{
    if (hd_val_kind(val) == HD_KIND_MESSAGE)
        return hd_slice_eq(hd_val_get_string(hd_val_get(val, HD_S("id"))), id);
    for (size_t i = hd_val_is_list(val) ? hd_val_count(val) : 0; i-- > 0;) {
        const struct hd_val *item = hd_val_at(val, i);

        if (hd_val_kind(item) == HD_KIND_MESSAGE &&
            hd_slice_eq(hd_val_get_string(hd_val_get(item, HD_S("id"))), id))
            return true;
    }
    return false;
}

/* True if the node received the message, which is then not new in its result. */
static bool was_given(const struct hd_task *task, struct hd_slice id)
{
    for (size_t i = 0; task->push == HD_PULL && i < task->graph->state_count; i++) {
        if (has_message(task->channels[i], id))
            return true;
    }
    for (size_t i = 0; hd_val_is_object(task->arg) && i < hd_val_count(task->arg); i++) {
        if (has_message(hd_val_member(task->arg, i, NULL), id))
            return true;
    }
    return false;
}

static void emit_message(struct hd_task *task, const struct hd_val *message, const char *model)
{
    struct hd_event event = {.type = HD_EVENT_MESSAGE,
                             .loop = task->loop,
                             .task = task,
                             .value = message,
                             .name = model,
                             .is_from_model = model != NULL};

    if (mark_shown(task->loop->run, hd_val_get_string(hd_val_get(message, HD_S("id")))) == 0)
        hd_emit(task->loop, &event);
}

static void show(struct hd_task *task, const struct hd_val *message)
{
    struct hd_slice id = hd_val_get_string(hd_val_get(message, HD_S("id")));

    if (hd_val_kind(message) != HD_KIND_MESSAGE)
        return;
    if (id.len == 0 || (!was_shown(task->loop->run, id) && !was_given(task, id)))
        emit_message(task, message, NULL);
}

/* Emits the messages of the result that were not emitted while the node ran. */
static void show_result(struct hd_task *task)
{
    for (size_t i = 0; i < task->writes.count; i++) {
        const struct hd_val *val = task->writes.list[i].val;

        if (task->writes.list[i].channel < 0 ||
            (size_t)task->writes.list[i].channel >= task->graph->state_count)
            continue;
        show(task, val);
        for (size_t j = 0; hd_val_is_list(val) && j < hd_val_count(val); j++)
            show(task, hd_val_at(val, j));
    }
}

void hd_task_message(struct hd_task *task, const char *model, const struct hd_val *message)
{
    task->loop->run->chunk_count++;
    if (hd_run_listens(task->loop->run))
        emit_message(task, message, model);
}

void hd_task_call(struct hd_task *task, const char *model, const char *id,
                  const struct hd_val *messages, const struct hd_val *answer)
{
    struct hd_event event = {.type = answer ? HD_EVENT_MODEL_END : HD_EVENT_MODEL,
                             .loop = task->loop,
                             .task = task,
                             .value = answer,
                             .input = messages,
                             .name = model};

    if (!answer)
        snprintf(task->call_trace, sizeof(task->call_trace), "%s", id ? id : "");
    hd_emit(task->loop, &event);
}

/* Adds to the run's list of running tools, which a cancelled run reports. */
static int note_tool(struct hd_engine_run *run, struct hd_slice name, struct hd_slice id)
{
    struct hd_val *tool = hd_val_with(hd_val_object(), HD_S("name"), hd_val_string(name));

    tool = hd_val_with(tool, HD_S("id"), hd_val_string(id));
    if (!run->tools)
        run->tools = hd_val_list();
    run->tools = hd_val_append(run->tools, tool);
    return run->tools ? 0 : HD_ENOMEM;
}

static void forget_tool(struct hd_engine_run *run, struct hd_slice id)
{
    struct hd_val *left = hd_val_list();

    for (size_t i = 0; i < hd_val_count(run->tools); i++) {
        struct hd_val *tool = hd_val_at(run->tools, i);

        if (!hd_slice_eq(hd_val_get_string(hd_val_get(tool, HD_S("id"))), id))
            left = hd_val_append(left, hd_val_ref(tool));
    }
    hd_val_unref(run->tools);
    run->tools = left;
}

void hd_task_tool(struct hd_task *task, struct hd_slice name, struct hd_slice id,
                  const struct hd_val *input, const struct hd_val *output, bool is_error)
{
    struct hd_event event = {.type = output ? HD_EVENT_TOOL_END : HD_EVENT_TOOL,
                             .loop = task->loop,
                             .task = task,
                             .value = output,
                             .input = input,
                             .tool = name,
                             .tool_id = id,
                             .is_error = is_error};

    if (output)
        forget_tool(task->loop->run, id);
    else if (note_tool(task->loop->run, name, id))
        hd_log(HD_LOG_WARN, "engine", "out of memory: a running tool is not tracked");
    hd_emit(task->loop, &event);
}

struct hd_val *hd_task_asked(const struct hd_task *task)
{
    struct hd_val *interrupts = hd_status_interrupts(&task->loop->pending_writes, task->id);
    struct hd_val *values = hd_val_list();

    for (size_t i = 0; i < hd_val_count(interrupts); i++) {
        struct hd_val *value = hd_val_get(hd_val_at(interrupts, i), HD_S("value"));

        values = hd_val_append(values, value ? hd_val_ref(value) : hd_val_null());
    }
    if (!interrupts) {
        hd_val_unref(values);
        values = NULL;
    }
    hd_val_unref(interrupts);
    return values;
}

void hd_task_emit(struct hd_task *task, const struct hd_val *value)
{
    struct hd_event event = {
        .type = HD_EVENT_CUSTOM, .loop = task->loop, .task = task, .value = value};

    hd_emit(task->loop, &event);
}

/* ---- working ---------------------------------------------------------- */

static int fill_channels(struct hd_task *task)
{
    const struct hd_graph *graph = task->graph;
    const struct hd_node *node = task->node;
    const struct hd_checkpoint_state *live = &task->loop->live;

    if (task->channels)
        return 0;
    task->channels = hd_calloc(graph->state_count, sizeof(struct hd_val *));
    if (!task->channels)
        return HD_ENOMEM;
    if (task->push != HD_PULL) {
        for (size_t i = 0; i < graph->state_count; i++)
            task->channels[i] = hd_val_get(task->arg, graph->channels[i].name);
        return 0;
    }
    for (size_t i = 0; i < (node->reads ? node->read_count : graph->state_count); i++) {
        size_t channel = node->reads ? node->reads[i] : i;

        task->channels[channel] = hd_channel_get(&live->channels[channel]);
    }
    return 0;
}

struct hd_scope hd_task_scope(struct hd_task *task)
{
    struct hd_scope scope = {
        .channels = task->channels, .channel_count = task->graph->state_count, .input = task->arg};

    scope.places[HD_PLACE_CONFIG] = task->loop->run->options.config;
    scope.places[HD_PLACE_CONTEXT] = task->loop->run->options.context;
    return scope;
}

static int emit_declared(struct hd_task *task)
{
    struct hd_scope scope = hd_task_scope(task);
    int err = 0;

    for (size_t i = 0; i < task->node->emit_count && !err; i++) {
        struct hd_val *val;

        err = hd_expr_eval(task->node->emit[i], &scope, &val);
        if (!err) {
            hd_task_emit(task, val);
            hd_val_unref(val);
        }
    }
    return err;
}

static void commit(struct hd_task *task)
{
    bool is_all_control = true;
    int err = 0;

    task->status = HD_TASK_DONE;
    for (size_t i = 0; i < task->writes.count; i++)
        is_all_control = is_all_control && hd_write_is_control(&task->writes.list[i]);
    if (is_all_control)
        err = hd_writes_add(&task->writes, HD_W_NO_WRITES, hd_val_null());
    if (!err)
        err = hd_loop_put_writes(task->loop, task, task->writes.list, task->writes.count);
    if (err)
        hd_failure_code(&task->loop->failure, err, NULL);
    end_task(task, HD_TASK_DONE);
}

/* A command for the parent graph: this task writes nothing, the parent's node does. */
static void leave_graph(struct hd_task *task, const struct hd_val *update, const struct hd_val *go)
{
    struct hd_val *command = hd_val_record(HD_KIND_COMMAND);

    if (update)
        command = hd_val_with(command, HD_S("update"), hd_val_ref(update));
    if (go)
        command = hd_val_with(command, HD_S("goto"), hd_val_ref(go));
    if (!command) {
        hd_task_fail_code(task, HD_ENOMEM, NULL);
        return;
    }
    stop_work(task);
    task->command = command;
    end_task(task, HD_TASK_LEFT);
}

void hd_task_finish(struct hd_task *task, struct hd_val *update, struct hd_val *go, bool to_parent)
{
    struct hd_scope scope = hd_task_scope(task);
    int err = 0;

    if (task->status == HD_TASK_RUNNING && to_parent) {
        leave_graph(task, update, go);
    } else if (task->status == HD_TASK_RUNNING) {
        err = hd_command_node_writes(task->graph, task->node, &task->loop->live, &scope, update, go,
                                     &task->writes, &task->failure);
        if (err) {
            fail_task(task);
        } else {
            stop_work(task);
            if (hd_run_listens(task->loop->run) && task->node->index != HD_GRAPH_START)
                show_result(task);
            commit(task);
        }
    }
    hd_val_unref(update);
    hd_val_unref(go);
}

void hd_task_rest(struct hd_task *task)
{
    if (task->status != HD_TASK_RUNNING)
        return;
    stop_work(task);
    commit(task);
}

void hd_task_finish_exprs(struct hd_task *task, const struct hd_scope *scope,
                          const struct hd_expr *update, const struct hd_expr *go, bool to_parent)
{
    struct hd_val *changes = NULL, *target = NULL;
    int err = 0;

    if (update)
        err = hd_expr_eval(update, scope, &changes);
    if (!err && go)
        err = hd_expr_eval(go, scope, &target);
    if (err) {
        hd_val_unref(changes);
        hd_task_fail_code(task, err, NULL);
        return;
    }
    hd_task_finish(task, changes, target, to_parent);
}

static void on_deadline(uv_timer_t *timer)
{
    struct hd_task *task = timer->data;
    struct hd_slice name = task->node->name;

    if (delay_timer(task, timer, on_deadline))
        return;
    hd_task_fail(task, "NodeTimeoutError",
                 "Node '%.*s' exceeded its run timeout of %.3fs (elapsed: %.3fs).", (int)name.len,
                 name.ptr, (double)task->node->timeout_ms / 1000,
                 (double)(hd_clock_monotonic_us() - task->began_us) / 1e6);
}

static void attempt(struct hd_task *task)
{
    int err = fill_channels(task); /* the previous attempt may have failed to allocate them */

    task->attempts++;
    task->asked = 0;
    hd_writes_clear(&task->writes);
    hd_failure_fini(&task->failure);
    task->began_us = hd_clock_monotonic_us();
    if (!err && task->node->timeout_ms > 0)
        err = start_task_timer(task, &task->deadline, task->node->timeout_ms, on_deadline);
    if (!err)
        err = emit_declared(task);
    if (!err)
        err = task->node->kind->start(task);
    if (err)
        hd_task_fail_code(task, err, NULL);
}

static void retry_task(struct hd_task *task)
{
    hd_loop_retry(task->loop, task, attempt);
}

/* The channel that receives an input that is a plain string. */
#define INPUT_CHANNEL "input"

static bool has_input_channel(const struct hd_graph *graph)
{
    for (size_t i = 0; i < graph->state_count; i++) {
        if (hd_slice_eq(graph->channels[i].name, HD_S(INPUT_CHANNEL)))
            return true;
    }
    return false;
}

/* __start__ passes the input on. The input may be a command. */
static void start_graph(struct hd_task *task)
{
    struct hd_val *input = hd_task_input(task, &task->loop->live);

    if (hd_val_kind(input) == HD_KIND_COMMAND)
        hd_task_finish(task, hd_val_ref(hd_val_get(input, HD_S("update"))),
                       hd_val_ref(hd_val_get(input, HD_S("goto"))), false);
    else if (hd_val_is_string(input) && has_input_channel(task->graph))
        hd_task_finish(task, hd_val_with(hd_val_object(), HD_S(INPUT_CHANNEL), hd_val_ref(input)),
                       NULL, false);
    else
        hd_task_finish(task, hd_val_ref(input), NULL, false);
}

void hd_task_start(struct hd_task *task)
{
    int err = fill_channels(task);

    task->status = HD_TASK_RUNNING;
    if (!err && task->node->index == HD_GRAPH_START) {
        start_graph(task);
        return;
    }
    if (err)
        hd_task_fail_code(task, err, NULL);
    else
        attempt(task);
}
