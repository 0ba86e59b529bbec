/*
 * The loop of a graph: runs supersteps until no task is left.
 *
 *   load → apply input (loop_input.c) → [tick: prepare, stop before?, start tasks
 *        → all tasks ended → after: apply, save, stop after?]* → end
 *
 * hd_loop_advance() proceeds as far as possible without waiting. It is called again whenever a task
 * or a save ends.
 */
#include "graph/engine/loop.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/slice.h"
#include "graph/decl/graph.h"
#include "graph/engine/apply.h"
#include "graph/engine/checkpoint_state.h"
#include "graph/engine/engine.h"
#include "graph/engine/events.h"
#include "graph/engine/failure.h"
#include "graph/engine/list_cache.h"
#include "graph/engine/list_tracker.h"
#include "graph/engine/ns.h"
#include "graph/engine/run.h"
#include "graph/engine/task.h"
#include "graph/engine/task_status.h"
#include "graph/engine/tasks.h"
#include "graph/engine/writes.h"
#include "store/rows.h"
#include "value/val.h"

#define MAX_TURNS 64 /* steps of the state machine before it yields to other runs */

static void end_pause(struct hd_loop *loop);

/* ---- creating --------------------------------------------------------- */

int hd_loop_create(struct hd_engine_run *run, struct hd_task *outer, const struct hd_graph *graph,
                   const char *ns, struct hd_loop **out)
{
    struct hd_loop *loop = hd_calloc(1, sizeof(*loop));
    int err = HD_ENOMEM;

    if (!loop)
        return HD_ENOMEM;
    loop->run = run;
    loop->outer = outer;
    loop->graph = graph;
    loop->saves = run->engine->store != NULL;
    loop->resuming = -1;
    loop->recursion_limit = outer ? outer->loop->recursion_limit : run->recursion_limit;
    loop->place = hd_ns_join(run->options.root, hd_slice_cstr(ns), &loop->ns);
    loop->saved_versions = hd_calloc(graph->channel_count, sizeof(struct hd_val *));
    loop->tracker = hd_calloc(graph->channel_count, sizeof(*loop->tracker));
    loop->parents = hd_val_object();
    loop->metadata = hd_val_with(hd_val_object(), HD_S("step"), hd_val_int(-2));
    if (loop->place && loop->saved_versions && loop->tracker && loop->parents && loop->metadata)
        err = hd_checkpoint_state_init(&loop->live, graph);
    if (err) {
        hd_loop_destroy(loop);
        return err;
    }
    loop->live.floor = run->floor;
    *out = loop;
    return 0;
}

void hd_loop_destroy(struct hd_loop *loop)
{
    if (!loop)
        return;
    end_pause(loop);
    hd_dlist_remove(loop, parked);
    hd_tasks_fini(&loop->tasks);
    hd_checkpoint_state_fini(&loop->live);
    hd_pending_writes_fini(&loop->pending_writes);
    for (size_t i = 0; loop->saved_versions && i < loop->graph->channel_count; i++)
        hd_val_unref(loop->saved_versions[i]);
    hd_free(loop->saved_versions);
    for (size_t i = 0; loop->tracker && i < loop->graph->channel_count; i++)
        hd_list_tracker_fini(&loop->tracker[i]);
    hd_free(loop->tracker);
    heddle_tuple_free(loop->load.tuple);
    hd_val_unref(loop->parents);
    hd_val_unref(loop->metadata);
    hd_val_unref(loop->null_resume);
    hd_val_unref(loop->latest);
    hd_val_unref(loop->interrupts);
    hd_val_unref(loop->command);
    hd_val_unref(loop->input);
    hd_val_unref(loop->input_command);
    hd_failure_fini(&loop->failure);
    hd_failure_fini(&loop->save_failure);
    hd_free(loop->written);
    hd_free(loop->place);
    hd_free(loop);
}

struct hd_slice hd_loop_ns(const struct hd_loop *loop)
{
    return hd_slice_cstr(loop->ns);
}

struct hd_slice hd_loop_place(const struct hd_loop *loop)
{
    return hd_slice_cstr(loop->place);
}

const size_t *hd_loop_output(const struct hd_loop *loop, size_t *count)
{
    *count = loop->graph->output_count;
    return loop->outer || loop->run->options.shows_output ? loop->graph->output : NULL;
}

static bool is_output(const struct hd_loop *loop, int channel)
{
    size_t count;
    const size_t *output = hd_loop_output(loop, &count);

    if (!output)
        return channel >= 0 && (size_t)channel < loop->graph->state_count;
    for (size_t i = 0; i < count; i++) {
        if (channel >= 0 && output[i] == (size_t)channel)
            return true;
    }
    return false;
}

/* ---- events ----------------------------------------------------------- */

int hd_loop_emit_values(struct hd_loop *loop)
{
    struct hd_event event = {.type = HD_EVENT_VALUES, .loop = loop};

    /* The parent graph uses the last values as the node's result. */
    if (loop->outer) {
        size_t count;
        const size_t *output = hd_loop_output(loop, &count);

        hd_val_unref(loop->latest);
        loop->latest = hd_checkpoint_state_read(&loop->live, output, count);
        if (!loop->latest)
            return HD_ENOMEM;
    }
    hd_emit(loop, &event);
    return 0;
}

int hd_loop_output_writes(struct hd_loop *loop, struct hd_task *task,
                          const struct hd_writes *writes, bool is_cached)
{
    struct hd_event event = {.loop = loop, .task = task, .writes = writes, .is_cached = is_cached};

    if (task->node->index == HD_GRAPH_START || writes->count == 0)
        return 0;
    if (writes->list[0].channel == HD_W_INTERRUPT) {
        event.type = HD_EVENT_INTERRUPT;
        event.value = writes->list[0].val;
        hd_emit(loop, &event);
    } else if (writes->list[0].channel != HD_W_ERROR) {
        event.type = HD_EVENT_UPDATE;
        hd_emit(loop, &event);
    }
    if (!is_cached) {
        event.type = HD_EVENT_TASK_RESULT;
        hd_emit(loop, &event);
    }
    return 0;
}

/* ---- the end ---------------------------------------------------------- */

static bool has_own_memory(const struct hd_loop *loop)
{
    return strchr(loop->ns, ':') == NULL;
}

/* A namespace with a task id belongs to one task, so its lists are not cached. */
bool hd_loop_caches_lists(const struct hd_loop *loop)
{
    return loop->saves && has_own_memory(loop);
}

struct hd_list_cache_key hd_loop_list_cache_key(const struct hd_loop *loop)
{
    return (struct hd_list_cache_key){loop->run->options.principal, loop->run->options.thread,
                                      hd_slice_cstr(loop->place)};
}

static void leave_to_next(struct hd_loop *loop)
{
    struct hd_list_cache_key key = hd_loop_list_cache_key(loop);

    if (hd_loop_caches_lists(loop))
        hd_list_cache_keep(loop->run->engine->list_cache, &key, loop->graph, loop->tracker);
}

static int apply_tasks(struct hd_loop *loop, bool *updated)
{
    struct hd_applied *list = hd_calloc(loop->tasks.count + 1, sizeof(*list));
    int err;

    if (!list)
        return HD_ENOMEM;
    for (size_t i = 0; i < loop->tasks.count; i++)
        list[i] = hd_task_applied(loop->tasks.list[i]);
    err = hd_apply(&loop->live, list, loop->tasks.count, true, updated, &loop->failure);
    hd_free(list);
    return err;
}

/* Emits a values event if output channels changed and a task of the step wrote to one. */
static int emit_values(struct hd_loop *loop, const bool *updated)
{
    bool changed = false, wrote = false;

    for (size_t i = 0; i < loop->graph->state_count; i++)
        changed = changed || (updated[i] && is_output(loop, (int)i));
    for (size_t i = 0; i < loop->tasks.count && changed && !wrote; i++) {
        const struct hd_writes *writes = &loop->tasks.list[i]->writes;

        for (size_t j = 0; j < writes->count && !wrote; j++)
            wrote = is_output(loop, writes->list[j].channel);
    }
    return changed && wrote ? hd_loop_emit_values(loop) : 0;
}

/*
 * Emits the values with the writes of finished tasks applied, although the interrupted step is not
 * stored as complete.
 */
static int show_unfinished(struct hd_loop *loop)
{
    bool any = false;
    bool *updated;
    int err;

    for (size_t i = 0; loop->has_tasks && i < loop->tasks.count; i++)
        any = any || loop->tasks.list[i]->writes.count > 0;
    if (!any || loop->pending_writes.count == 0)
        return 0;
    updated = hd_calloc(loop->graph->channel_count, sizeof(*updated));
    if (!updated)
        return HD_ENOMEM;
    err = apply_tasks(loop, updated);
    if (!err)
        err = emit_values(loop, updated);
    hd_free(updated);
    return err;
}

static int end_interrupted(struct hd_loop *loop)
{
    struct hd_event event = {.type = HD_EVENT_INTERRUPT, .loop = loop};
    int err = 0;

    if (loop->outer)
        return 0;
    err = show_unfinished(loop);
    if (!err && hd_val_count(loop->interrupts) == 0)
        hd_emit(loop, &event);
    return err;
}

void hd_loop_finish(struct hd_loop *loop, enum hd_loop_end end)
{
    /* The recursion limit is reached between steps: saves like an ordinary end. */
    bool is_late = end == HD_END_FAILED && loop->step > loop->stop;
    bool is_ordinary = end == HD_END_DONE || is_late;
    int err = 0;

    loop->status = HD_LOOP_ENDING;
    loop->end = end;
    if (loop->run->options.durability == HD_DURABLE_EXIT &&
        (!loop->outer || !is_ordinary || has_own_memory(loop))) {
        err = hd_loop_put_checkpoint(loop, NULL);
        if (!err)
            err = hd_loop_put_pending(loop);
    }
    if (!err && end == HD_END_INTERRUPTED)
        err = end_interrupted(loop);
    if (err) {
        hd_failure_code(&loop->failure, err, NULL);
        loop->end = HD_END_FAILED;
    }
}

static void fail_loop(struct hd_loop *loop, int err)
{
    hd_failure_code(&loop->failure, err, NULL);
    hd_loop_finish(loop, HD_END_FAILED);
}

/* ---- a superstep ------------------------------------------------------ */

static void drop_tasks(struct hd_loop *loop)
{
    hd_tasks_fini(&loop->tasks);
    loop->has_tasks = false;
    hd_val_unref(loop->null_resume);
    loop->null_resume = NULL;
    loop->null_resume_used = false;
}

static int prepare(struct hd_loop *loop)
{
    struct hd_event event = {.type = HD_EVENT_CHECKPOINT, .loop = loop};
    int err;

    drop_tasks(loop);
    err = hd_tasks_prepare(&loop->tasks, &loop->live, hd_loop_ns(loop), loop->step,
                           loop->live.has_updated);
    loop->has_tasks = err == 0;
    for (size_t i = 0; i < loop->pending_writes.count && !loop->null_resume; i++) {
        const struct hd_pending_write *pending_write = &loop->pending_writes.list[i];

        if (pending_write->write.channel == HD_W_RESUME && hd_is_null_task(pending_write->task))
            loop->null_resume = hd_val_ref(pending_write->write.val);
    }
    for (size_t i = 0; i < loop->tasks.count && !err; i++) {
        loop->tasks.list[i]->loop = loop;
        err = hd_resume_prepare(loop->tasks.list[i]);
    }
    if (!err && loop->saves)
        hd_emit(loop, &event);
    return err;
}

/* Restores the writes of tasks that an earlier run has finished. */
static int reapply(struct hd_loop *loop)
{
    int err = 0;

    for (size_t i = 0; i < loop->tasks.count && !err; i++) {
        struct hd_task *task = loop->tasks.list[i];

        err = hd_status_output(&loop->pending_writes, task->id, &task->writes);
        if (task->writes.count > 0)
            task->status = HD_TASK_DONE;
    }
    return err;
}

static bool is_stop(const struct hd_stops *stops, bool is_declared, const struct hd_node *node)
{
    if (!stops->all && stops->count == 0)
        return is_declared;
    if (stops->all)
        return node->index != HD_GRAPH_START;
    for (size_t i = 0; i < stops->count; i++) {
        if (hd_slice_eq(stops->names[i], node->name))
            return true;
    }
    return false;
}

/*
 * A breakpoint stops once per change of the channels, so a resumed run does not stop there again.
 */
static bool should_stop(const struct hd_loop *loop, bool is_before)
{
    static const struct hd_stops none = {false, NULL, 0};
    const struct hd_engine_run_options *options = &loop->run->options;
    const struct hd_stops *stops = loop->outer ? &none
                                   : is_before ? &options->before
                                               : &options->after;
    const struct hd_versions_seen *seen = &loop->live.seen[hd_versions_seen_interrupt(loop->graph)];
    bool is_new = false, is_there = false;

    for (size_t i = 0; i < loop->tasks.count && !is_there; i++) {
        const struct hd_node *node = loop->tasks.list[i]->node;

        is_there = is_stop(stops, is_before ? node->stops_before : node->stops_after, node);
    }
    for (size_t i = 0; i < loop->graph->channel_count && is_there && !is_new; i++)
        is_new = hd_version_after(loop->live.versions[i], hd_versions_seen_get(seen, i));
    return is_there && is_new;
}

static int announce(struct hd_loop *loop)
{
    int err = 0;

    for (size_t i = 0; i < loop->tasks.count; i++) {
        struct hd_event event = {.type = HD_EVENT_TASK, .loop = loop, .task = loop->tasks.list[i]};

        if (event.task->node->index != HD_GRAPH_START)
            hd_emit(loop, &event);
    }
    for (size_t i = 0; i < loop->tasks.count && !err; i++) {
        struct hd_task *task = loop->tasks.list[i];

        if (task->writes.count > 0)
            err = hd_loop_output_writes(loop, task, &task->writes, true);
    }
    return err;
}

static void stop_others(struct hd_loop *loop);

/* The started tasks may have ended: stops the others after a failure. */
static void end_starting(struct hd_loop *loop)
{
    bool is_broken = false;

    loop->is_starting = false;
    for (size_t i = 0; i < loop->tasks.count; i++)
        is_broken = is_broken || loop->tasks.list[i]->status == HD_TASK_FAILED;
    if (is_broken)
        stop_others(loop);
}

static void start_tasks(struct hd_loop *loop)
{
    loop->is_starting = true;
    loop->is_working = true;
    for (size_t i = 0; i < loop->tasks.count; i++)
        loop->running += loop->tasks.list[i]->writes.count == 0;
    for (size_t i = 0; i < loop->tasks.count; i++) {
        if (loop->tasks.list[i]->status == HD_TASK_READY)
            hd_task_start(loop->tasks.list[i]);
    }
    end_starting(loop);
}

void hd_loop_retry(struct hd_loop *loop, struct hd_task *task, void (*start)(struct hd_task *task))
{
    loop->is_starting = true;
    start(task);
    end_starting(loop);
    hd_loop_advance(loop);
}

static void tick(struct hd_loop *loop)
{
    int err = prepare(loop);

    if (!err && loop->step > loop->stop) {
        hd_failure_set(&loop->failure, "GraphRecursionError",
                       "Recursion limit of %lld reached without hitting a stop condition. You can "
                       "increase the limit by setting the `recursion_limit` config key.\nFor "
                       "troubleshooting, visit: https://docs.langchain.com/oss/python/langgraph/"
                       "errors/GRAPH_RECURSION_LIMIT",
                       (long long)loop->recursion_limit);
        hd_loop_finish(loop, HD_END_FAILED);
        return;
    }
    if (!err && loop->tasks.count == 0) {
        hd_loop_finish(loop, HD_END_DONE);
        return;
    }
    if (!err && !loop->is_replaying)
        err = reapply(loop);
    if (!err && should_stop(loop, true)) {
        hd_loop_finish(loop, HD_END_INTERRUPTED);
        return;
    }
    if (!err)
        err = announce(loop);
    if (err)
        fail_loop(loop, err);
    else
        start_tasks(loop);
}

/* A task failed: stops the tasks that are still running and stores a CancelledError for each. */
static void stop_others(struct hd_loop *loop)
{
    for (size_t i = 0; i < loop->tasks.count; i++) {
        struct hd_task *task = loop->tasks.list[i];
        int err;

        if (task->status != HD_TASK_RUNNING)
            continue;
        hd_task_stop(task);
        task->status = HD_TASK_CANCELLED;
        loop->running--;
        err = hd_writes_add(&task->writes, HD_W_ERROR, hd_val_cstr("CancelledError()"));
        if (!err)
            err = hd_loop_put_writes(loop, task, task->writes.list, task->writes.count);
        if (err)
            hd_failure_code(&loop->failure, err, NULL);
    }
}

/* Ends a superstep whose tasks are all done. */
static int complete(struct hd_loop *loop)
{
    bool *updated = hd_calloc(loop->graph->channel_count, sizeof(*updated));
    int err = updated ? apply_tasks(loop, updated) : HD_ENOMEM;

    if (!err) {
        memcpy(loop->live.updated, updated, loop->graph->channel_count * sizeof(*updated));
        loop->live.has_updated = true;
        err = emit_values(loop, updated);
    }
    hd_free(updated);
    if (err)
        return err;
    hd_pending_writes_fini(&loop->pending_writes);
    loop->has_old_pending_writes = false;
    loop->has_tasks = false;
    loop->written_count = 0;
    loop->is_replaying = false;
    return hd_loop_put_checkpoint(loop, "loop");
}

static int gather_interrupts(struct hd_loop *loop)
{
    loop->interrupts = hd_val_list();
    for (size_t i = 0; i < loop->tasks.count && loop->interrupts; i++) {
        if (loop->tasks.list[i]->questions)
            loop->interrupts = hd_val_extend(loop->interrupts, loop->tasks.list[i]->questions);
    }
    return loop->interrupts ? 0 : HD_ENOMEM;
}

static struct hd_task *find_status(const struct hd_loop *loop, enum hd_task_status status)
{
    for (size_t i = 0; i < loop->tasks.count; i++) {
        if (loop->tasks.list[i]->status == status)
            return loop->tasks.list[i];
    }
    return NULL;
}

/* All tasks have ended, with any status. */
static void after(struct hd_loop *loop)
{
    struct hd_task *task;
    int err = 0;

    loop->is_working = false;
    if (hd_failed(&loop->failure)) {
        hd_loop_finish(loop, HD_END_FAILED);
        return;
    }
    if ((task = find_status(loop, HD_TASK_FAILED))) {
        hd_failure_set_text(&loop->failure, hd_slice_cstr(task->failure.type),
                            hd_slice_cstr(task->failure.text));
        hd_loop_finish(loop, HD_END_FAILED);
        return;
    }
    if ((task = find_status(loop, HD_TASK_LEFT))) {
        loop->command = hd_val_ref(task->command);
        hd_loop_finish(loop, HD_END_LEFT);
        return;
    }
    if (find_status(loop, HD_TASK_ASKING)) {
        err = gather_interrupts(loop);
        if (!err)
            hd_loop_finish(loop, HD_END_INTERRUPTED);
        else
            fail_loop(loop, err);
        return;
    }
    err = complete(loop);
    if (!err && should_stop(loop, false)) {
        err = prepare(loop);
        if (!err) {
            hd_loop_finish(loop, HD_END_INTERRUPTED);
            return;
        }
    }
    loop->resuming = -1;
    if (err)
        fail_loop(loop, err);
}

/*
 * True if the next step must wait for a save: of the checkpoint that it starts from, or of the
 * command that the run starts with. While the store is unavailable, no run advances past its saves.
 */
static bool must_wait(const struct hd_loop *loop)
{
    return !loop->is_working && loop->saving > 0 &&
           (loop->run->options.durability == HD_DURABLE_SYNC ||
            hd_rows_waiting(loop->run->engine->store) > 0);
}

static void free_pause(uv_handle_t *handle)
{
    hd_free(handle);
}

static void end_pause(struct hd_loop *loop)
{
    if (!loop->pause)
        return;
    uv_idle_stop(loop->pause);
    uv_close((uv_handle_t *)loop->pause, free_pause);
    loop->pause = NULL;
}

static void on_pause(uv_idle_t *idle)
{
    struct hd_loop *loop = idle->data;

    end_pause(loop);
    hd_loop_advance(loop);
}

/*
 * Continues in the next iteration of the event loop, after other runs. False: no memory; the caller
 * continues at once.
 */
static bool pause_for_others(struct hd_loop *loop)
{
    loop->pause = hd_calloc(1, sizeof(*loop->pause));
    if (!loop->pause)
        return false;
    /* Not a timer: libuv runs all due timers in one pass, including timers that they start. */
    uv_idle_init(loop->run->engine->uv, loop->pause);
    loop->pause->data = loop;
    uv_idle_start(loop->pause, on_pause);
    return true;
}

/* Ends a cancelled loop. A settled step is stored first. */
static void end_cancelled_loop(struct hd_loop *loop)
{
    if (loop->is_settled && !hd_failed(&loop->failure)) {
        int err;

        loop->is_working = false;
        loop->settled_at = loop->step;
        err = complete(loop);
        if (err)
            hd_failure_code(&loop->save_failure, err, NULL);
    }
    hd_loop_finish(loop, HD_END_CANCELLED);
}

/* While the engine is suspended the loop waits in its list, unless it was cancelled. */
static bool park(struct hd_loop *loop)
{
    struct hd_engine *engine = loop->run->engine;

    if (!engine->is_suspended || loop->is_given_up)
        return false;
    if (!loop->parked.at)
        hd_dlist_insert(&engine->parked, loop, parked);
    return true;
}

void hd_loop_leave_park(struct hd_loop *loop)
{
    hd_dlist_remove(loop, parked);
    hd_loop_advance(loop);
}

void hd_loop_advance(struct hd_loop *loop)
{
    int turns = 0;

    if (loop->is_advancing || loop->is_starting || loop->pause || park(loop))
        return;
    loop->is_advancing = true;
    while (loop->status == HD_LOOP_RUNNING && loop->running == 0 && !must_wait(loop)) {
        if (++turns > MAX_TURNS && !loop->is_given_up && pause_for_others(loop))
            break;
        if (loop->is_given_up)
            end_cancelled_loop(loop);
        else if (hd_failed(&loop->save_failure) && loop->run->options.durability == HD_DURABLE_SYNC)
            hd_loop_finish(loop, HD_END_FAILED);
        else if (loop->is_working)
            after(loop);
        else
            tick(loop);
    }
    loop->is_advancing = false;
    if (loop->status != HD_LOOP_ENDING || loop->saving > 0)
        return;
    loop->status = HD_LOOP_ENDED;
    if (hd_failed(&loop->save_failure) && loop->end != HD_END_CANCELLED) {
        hd_failure_set_text(&loop->failure, hd_slice_cstr(loop->save_failure.type),
                            hd_slice_cstr(loop->save_failure.text));
        loop->end = HD_END_FAILED;
    }
    leave_to_next(loop);
    if (!loop->is_entering)
        loop->on_end(loop); /* may destroy it */
}

void hd_loop_saved(struct hd_loop *loop)
{
    hd_loop_advance(loop);
}

void hd_loop_ended_task(struct hd_loop *loop, const struct hd_task *task)
{
    bool is_failure = task->status == HD_TASK_FAILED;

    loop->running--;
    if (is_failure && !loop->is_starting)
        stop_others(loop);
    hd_loop_advance(loop);
}

/* True if all other tasks of the step are done. */
static bool is_last_of_step(const struct hd_loop *loop, const struct hd_task *task)
{
    for (size_t i = 0; i < loop->tasks.count; i++) {
        if (loop->tasks.list[i] != task && loop->tasks.list[i]->status != HD_TASK_DONE)
            return false;
    }
    return true;
}

static bool settle_task(struct hd_loop *loop, struct hd_task *task)
{
    const struct hd_node_kind *kind = task->node->kind;

    if (!loop->run->is_settling || loop != loop->run->root || !task->work || !kind ||
        !kind->settle || !is_last_of_step(loop, task) || !kind->settle(task))
        return false;
    loop->is_settled = task->status == HD_TASK_DONE;
    return true;
}

void hd_loop_cancel(struct hd_loop *loop)
{
    loop->is_given_up = true;
    end_pause(loop);
    if (loop->status == HD_LOOP_LOADING || loop->status >= HD_LOOP_ENDING)
        return;                /* on_loaded() checks is_given_up, or the loop is ending */
    loop->is_advancing = true; /* a subgraph that ends at once must not end this loop */
    for (size_t i = 0; i < loop->tasks.count; i++) {
        struct hd_task *task = loop->tasks.list[i];

        if (task->status != HD_TASK_RUNNING)
            continue;
        if (task->inner) {
            hd_loop_cancel(task->inner); /* ends later, when its saves are done */
            continue;
        }
        if (settle_task(loop, task))
            continue;
        hd_task_stop(task);
        task->status = HD_TASK_CANCELLED;
        loop->running--;
    }
    loop->is_advancing = false;
    hd_loop_advance(loop);
}

static void on_gone(struct hd_loop *loop)
{
    struct hd_loop *root = loop->run->root;

    hd_loop_destroy(loop);
    root->saving--;
    hd_loop_advance(root);
}

/* Counts as a save of the root loop, so that the run ends after the abandoned loop's saves. */
void hd_loop_abandon(struct hd_loop *loop)
{
    loop->run->root->saving++;
    loop->outer = NULL;
    loop->on_end = on_gone;
    hd_loop_cancel(loop);
}
