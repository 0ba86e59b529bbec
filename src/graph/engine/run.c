/* Runs: creates the root loop from the options, and calls on_done when the loop has ended. */
#include "graph/engine/run.h"

#include <string.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/slice.h"
#include "graph/engine/checkpoint_state.h"
#include "graph/engine/engine.h"
#include "graph/engine/events.h"
#include "graph/engine/failure.h"
#include "graph/engine/loop.h"
#include "graph/engine/ns.h"
#include "graph/engine/task.h"
#include "graph/engine/task_status.h"
#include "graph/engine/tasks.h"
#include "value/val.h"

static int copy_slice(struct hd_slice *slice)
{
    char *copy = hd_malloc(slice->len + 1);

    if (!copy)
        return HD_ENOMEM;
    if (slice->len > 0)
        memcpy(copy, slice->ptr, slice->len);
    copy[slice->len] = '\0';
    slice->ptr = copy;
    return 0;
}

static void free_slice(struct hd_slice *slice)
{
    hd_free((char *)(uintptr_t)slice->ptr);
    slice->ptr = NULL;
}

static int copy_stops(struct hd_stops *stops)
{
    struct hd_slice *names = hd_calloc(stops->count + 1, sizeof(*names));
    int err = names ? 0 : HD_ENOMEM;
    size_t done = 0;

    for (; done < stops->count && !err; done++) {
        names[done] = stops->names[done];
        err = copy_slice(&names[done]);
    }
    stops->names = names;
    if (err)
        stops->count = done ? done - 1 : 0;
    return err;
}

static void free_stops(struct hd_stops *stops)
{
    struct hd_slice *names = (struct hd_slice *)(uintptr_t)stops->names;

    for (size_t i = 0; names && i < stops->count; i++)
        free_slice(&names[i]);
    hd_free(names);
}

/* Copies everything that was borrowed. After an error, members that were not copied are NULL. */
static int copy_options(struct hd_engine_run *run, const struct hd_engine_run_options *options)
{
    struct hd_engine_run_options *own = &run->options;
    struct hd_slice *slices[] = {&own->principal, &own->actor, &own->thread, &own->root,
                                 &own->checkpoint_id};
    int err = 0;

    *own = *options;
    own->input = hd_val_ref(options->input);
    own->command = hd_val_ref(options->command);
    own->config = hd_val_ref(options->config);
    own->secrets = hd_val_ref(options->secrets);
    own->context = hd_val_ref(options->context);
    own->metadata = hd_val_ref(options->metadata);
    own->tags = hd_val_ref(options->tags);
    own->checkpoint_map = hd_val_ref(options->checkpoint_map);
    own->before = own->after = (struct hd_stops){options->before.all, NULL, 0};
    own->after.all = options->after.all;
    for (size_t i = 0; i < HD_COUNT(slices); i++) {
        if (err)
            slices[i]->ptr = NULL;
        else
            err = copy_slice(slices[i]);
        if (err)
            *slices[i] = (struct hd_slice){NULL, 0};
    }
    if (!err) {
        own->before = options->before;
        err = copy_stops(&own->before);
    }
    if (!err) {
        own->after = options->after;
        err = copy_stops(&own->after);
    }
    return err;
}

static void free_run(struct hd_engine_run *run)
{
    struct hd_engine_run_options *own = &run->options;
    const struct hd_val *vals[] = {own->input,   own->command,  own->config, own->secrets,
                                   own->context, own->metadata, own->tags,   own->checkpoint_map};

    hd_loop_destroy(run->root);
    for (size_t i = 0; i < HD_COUNT(vals); i++)
        hd_val_unref((struct hd_val *)(uintptr_t)vals[i]);
    free_slice(&own->principal);
    free_slice(&own->actor);
    free_slice(&own->thread);
    free_slice(&own->root);
    free_slice(&own->checkpoint_id);
    free_stops(&own->before);
    free_stops(&own->after);
    hd_val_unref(run->resume_map);
    hd_val_unref(run->seen_messages);
    hd_val_unref(run->tools);
    if (run->replay)
        hd_val_unref(run->replay->visited);
    hd_free(run->replay);
    hd_free(run);
}

static void on_run_closed(uv_handle_t *handle)
{
    free_run(handle->data);
}

/* ---- the end ---------------------------------------------------------- */

/* The nodes of unfinished tasks, and the interrupts of these tasks by task id. */
static int describe_unfinished(const struct hd_loop *loop, struct hd_tasks *tasks,
                               struct hd_val **next, struct hd_val **asked)
{
    *next = hd_val_list();
    *asked = hd_val_object();
    hd_tasks_sort(tasks);
    for (size_t i = 0; i < tasks->count && *next && *asked; i++) {
        const struct hd_task *task = tasks->list[i];
        struct hd_val *questions;

        if (hd_status_is_finished(&loop->pending_writes, task->id))
            continue;
        *next = hd_val_append(*next, hd_val_string(task->node->name));
        questions = hd_status_interrupts(&loop->pending_writes, task->id);
        if (!questions || hd_val_count(questions) > 0)
            *asked = hd_val_with(*asked, hd_slice_cstr(task->id), questions);
        else
            hd_val_unref(questions);
    }
    return *next && *asked ? 0 : HD_ENOMEM;
}

/* The loop has its tasks, unless it ended between two steps or before the first. */
static int describe_end(struct hd_loop *loop, struct hd_val **next, struct hd_val **asked)
{
    struct hd_tasks tasks = {NULL, 0, 0};
    int err;

    if (loop->has_tasks)
        return describe_unfinished(loop, &loop->tasks, next, asked);
    err = hd_tasks_prepare(&tasks, &loop->live, hd_loop_ns(loop), loop->step, false);
    if (!err)
        err = describe_unfinished(loop, &tasks, next, asked);
    hd_tasks_fini(&tasks);
    return err;
}

static void describe_place(const struct hd_loop *loop, struct hd_engine_run_result *result)
{
    bool is_known = loop->has_stored && !hd_failed(&loop->save_failure);

    result->checkpoint_id = is_known ? loop->saved_id : "";
    result->stopped_at = loop->is_settled ? loop->settled_at : loop->step;
    if (!hd_val_get_int(hd_val_get(loop->metadata, HD_S("step")), &result->step))
        result->step = -2;
}

/* `output` NULL: the run failed or was cancelled. */
static void emit_end(struct hd_loop *loop, const struct hd_val *output)
{
    struct hd_event event = {.type = HD_EVENT_GRAPH_END, .loop = loop, .value = output};

    if (output)
        hd_emit(loop, &event);
}

static void on_root_end(struct hd_loop *loop)
{
    static const enum hd_engine_run_status statuses[] = {
        [HD_END_DONE] = HD_ENGINE_RUN_DONE,
        [HD_END_INTERRUPTED] = HD_ENGINE_RUN_INTERRUPTED,
        [HD_END_FAILED] = HD_ENGINE_RUN_FAILED,
        [HD_END_LEFT] = HD_ENGINE_RUN_FAILED,
        [HD_END_CANCELLED] = HD_ENGINE_RUN_CANCELLED,
    };
    struct hd_engine_run *run = loop->run;
    struct hd_engine_run_result result = {.status = statuses[loop->end]};
    struct hd_val *output = NULL, *next = NULL, *asked = NULL;
    int err = describe_end(loop, &next, &asked);

    if (loop->end == HD_END_LEFT)
        hd_failure_set(&loop->failure, "ParentCommand", "there is no parent graph");
    if (result.status == HD_ENGINE_RUN_DONE || result.status == HD_ENGINE_RUN_INTERRUPTED) {
        output =
            hd_checkpoint_state_read(&loop->live, loop->graph->output, loop->graph->output_count);
        if (err || !output) {
            hd_failure_code(&loop->failure, HD_ENOMEM, NULL);
            result.status = HD_ENGINE_RUN_FAILED;
        }
    }
    result.output = result.status == HD_ENGINE_RUN_FAILED ? NULL : output;
    result.interrupts = loop->interrupts;
    result.chunk_count = run->chunk_count;
    result.tools = run->tools;
    result.next = next;
    result.asked = asked;
    describe_place(loop, &result);
    emit_end(loop, result.output);
    if (result.status == HD_ENGINE_RUN_FAILED) {
        result.error_type = loop->failure.type;
        result.error_text = loop->failure.text ? loop->failure.text : "out of memory";
    }
    if (run->extension)
        run->extension->free(run->extension);
    run->extension = NULL;
    run->options.on_done(run->options.ctx, &result);
    hd_val_unref(output);
    hd_val_unref(next);
    hd_val_unref(asked);
    uv_close((uv_handle_t *)&run->starter, on_run_closed);
}

/* Runs on the loop, so that no callback runs before hd_engine_run_start() has returned. */
static void on_start(uv_timer_t *timer)
{
    struct hd_engine_run *run = timer->data;

    if (run->engine->is_suspended && !run->root->is_given_up) {
        uv_timer_start(timer, on_start, HD_ENGINE_SUSPENDED_MS, 0);
        return;
    }
    if (hd_loop_start(run->root, hd_val_ref(run->options.input),
                      hd_val_ref(run->options.command)) == HD_READY)
        on_root_end(run->root);
}

static int create_root(struct hd_engine_run *run)
{
    int err = hd_loop_create(run, NULL, run->options.graph, "", &run->root);

    if (err)
        return err;
    run->root->on_end = on_root_end;
    if (run->options.checkpoint_map)
        run->root->parents = hd_val_merge(run->root->parents, run->options.checkpoint_map);
    return run->root->parents ? 0 : HD_ENOMEM;
}

int hd_engine_run_start(struct hd_engine *engine, const struct hd_engine_run_options *options,
                        struct hd_engine_run **out)
{
    struct hd_engine_run *run = hd_calloc(1, sizeof(*run));
    int err;

    if (!run)
        return HD_ENOMEM;
    if (!hd_ns_is_root(options->root) || options->graph->is_foreign) {
        hd_free(run);
        return options->graph->is_foreign ? HD_EUNSUPPORTED : HD_EINVAL;
    }
    run->engine = engine;
    run->recursion_limit =
        options->recursion_limit > 0 ? options->recursion_limit : options->graph->recursion_limit;
    err = copy_options(run, options);
    if (!err)
        err = create_root(run);
    if (err) {
        free_run(run);
        return err;
    }
    uv_timer_init(engine->uv, &run->starter);
    run->starter.data = run;
    uv_timer_start(&run->starter, on_start, 0, 0);
    *out = run;
    return 0;
}

static void cancel_run(struct hd_engine_run *run)
{
    run->is_cancelled = true;
    hd_loop_cancel(run->root);
}

static void on_cancel(uv_timer_t *timer)
{
    cancel_run(timer->data);
}

void hd_engine_run_hold(struct hd_engine_run *run, bool is_held)
{
    if (run->is_held == is_held)
        return;
    run->is_held = is_held;
    if (run->extension)
        run->extension->hold(run->extension, is_held);
}

/*
 * During on_event the emitting code is still running and cannot be stopped: cancels from a timer.
 */
void hd_engine_run_cancel(struct hd_engine_run *run)
{
    if (run->is_cancelled)
        return;
    if (run->telling > 0)
        uv_timer_start(&run->starter, on_cancel, 0, 0);
    else
        cancel_run(run);
}

void hd_engine_run_stop(struct hd_engine_run *run)
{
    run->is_settling = !run->is_cancelled;
    hd_engine_run_cancel(run);
}
