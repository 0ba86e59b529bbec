#include "api/agent_delete.h"

#include "api/state/branch_names.h"
#include "api/state/branch_tree.h"
#include "api/state/checkpoint_target.h"
#include "api/stop_runs.h"
#include "base/clock.h"
#include "events/event_log.h"
#include "records/line.h"
#include "run/delegate.h"
#include "run/room/room_waiting.h"
#include "run/thread_prune.h"
#include "search/thread_texts.h"

#define MAX_ROUNDS 20

/* In the arena of its call. */
struct agent_removal {
    struct hd_thread_rec thread;
    struct hd_slice root;   /* the namespace of the assistant */
    struct hd_slice *lines; /* of the agent: `root`, and those where it ran last */
    size_t count;
    bool is_known; /* one of them has a record or a checkpoint */
    struct hd_stop_runs stop;
    int rounds;
    bool is_repeated; /* a run has started meanwhile */
    struct hd_pruned_runs gone;
};

/* ---- what to remove --------------------------------------------------- */

/* The line of an agent that only other agents called has no record. */
static int has_checkpoints(struct hd_call *call, const struct agent_removal *removal, bool *out)
{
    struct hd_checkpoint_target target = {.thread = removal->thread};
    int err = hd_checkpoint_target_of_root(call, &target, removal->root);

    return err ? err : hd_checkpoint_target_has(call, &target, hd_slice(NULL, 0), out);
}

static bool is_of_agent(const struct agent_removal *removal, const struct hd_line_rec *line)
{
    const struct hd_slice prefix = HD_S("assistant:");
    struct hd_slice id = hd_slice(removal->root.ptr + prefix.len, removal->root.len - prefix.len);

    return hd_slice_eq(line->ns, removal->root) || hd_slice_eq(line->assistant_id, id);
}

static int find_lines(struct hd_call *call, struct agent_removal *removal)
{
    struct hd_lines lines;
    int err = hd_lines_read(call->app->store, &removal->thread, call->arena, &lines, &call->fault);

    if (!err)
        removal->lines = hd_arena_calloc(call->arena, lines.count + 1, sizeof(*removal->lines));
    if (err || !removal->lines)
        return err ? err : HD_ENOMEM;
    removal->lines[0] = removal->root;
    removal->count = 1;
    removal->is_known = false;
    for (size_t i = 0; i < lines.count; i++) {
        if (!is_of_agent(removal, &lines.list[i]))
            continue;
        removal->is_known = true;
        if (!hd_slice_eq(lines.list[i].ns, removal->root))
            removal->lines[removal->count++] = lines.list[i].ns;
    }
    return removal->is_known ? 0 : has_checkpoints(call, removal, &removal->is_known);
}

static bool has_line(const struct agent_removal *removal, struct hd_slice ns)
{
    for (size_t i = 0; i < removal->count; i++) {
        if (hd_slice_eq(removal->lines[i], ns))
            return true;
    }
    return false;
}

/* The runs in flight on the lines. */
static int find_line_runs(struct hd_call *call, struct agent_removal *removal)
{
    const struct hd_thread_rec *thread = &removal->thread;
    struct hd_run_rec *runs = NULL;
    size_t count = 0;
    int err = hd_runs_active(call->app->store, thread->principal, thread->id, call->arena, &runs,
                             &count, &call->fault);

    removal->stop.count = 0;
    for (size_t i = 0; !err && i < count; i++) {
        struct hd_slice ns;

        err = hd_run_line(&runs[i], call->arena, &ns, &call->fault);
        if (!err && has_line(removal, ns))
            err = hd_stop_runs_add(&removal->stop, &runs[i]);
    }
    return err;
}

static int find_all(struct hd_call *call, struct agent_removal *removal)
{
    int err = hd_call_thread(call, &removal->thread);

    if (!err)
        err = find_lines(call, removal);
    return err ? err : find_line_runs(call, removal);
}

/* ---- removing --------------------------------------------------------- */

/* The names of the line's branches, which are in the thread's metadata. */
static int drop_names(struct hd_call *call, struct hd_thread_rec *thread, struct hd_slice ns)
{
    struct hd_branch_tree tree = {.call = call, .target = {.thread = *thread}};
    int err = hd_checkpoint_target_of_root(call, &tree.target, ns);

    if (!err)
        err = hd_branch_tree_read(&tree);
    if (!err)
        err = hd_branch_tree_grow(&tree);
    for (size_t i = 0; !err && i < tree.count; i++)
        tree.branches[i].is_gone = true;
    if (!err)
        err = hd_branch_names_change(&tree, NULL, hd_slice(NULL, 0), &thread->metadata);
    hd_branch_tree_fini(&tree);
    return err;
}

static int remove_line(struct hd_call *call, struct agent_removal *removal, struct hd_slice ns)
{
    struct hd_thread_rec *thread = &removal->thread;
    int err = hd_call_thread(call, thread);

    if (!err)
        err = drop_names(call, thread, ns);
    if (err)
        return err;
    thread->updated_at = thread->state_updated_at = hd_clock_now_us();
    hd_thread_touch(thread, thread->updated_at);
    err = hd_thread_prune_line(call->app->store, thread, ns, call->arena, &removal->gone,
                               &call->fault);
    if (!err)
        hd_thread_indexer_note(call->app->texts, thread->principal, thread->id);
    return err;
}

static struct hd_step remove_lines(struct hd_call *call)
{
    struct agent_removal *removal = call->state;
    int err = find_all(call, removal);

    removal->is_repeated = !err && removal->stop.count > 0 && removal->rounds < MAX_ROUNDS;
    if (removal->is_repeated)
        return HD_NEXT;
    for (size_t i = 0; !err && i < removal->count; i++)
        err = remove_line(call, removal, removal->lines[i]);
    removal->is_repeated = err == HD_ECONFLICT && removal->rounds < MAX_ROUNDS;
    if (!removal->is_repeated)
        return hd_step_next(err);
    call->fault = (struct heddle_error){0};
    return HD_NEXT;
}

static struct hd_event_log *find_log(struct hd_call *call, const struct agent_removal *removal)
{
    return hd_event_log_find(call->app->event_logs, removal->thread.principal, removal->thread.id);
}

static struct hd_step after_removal(struct hd_call *call)
{
    struct agent_removal *removal = call->state;
    struct hd_event_log *log = find_log(call, removal);

    for (size_t i = 0; log && i < removal->gone.count; i++)
        hd_event_log_hide(log, removal->gone.ids[i]);
    if (removal->is_repeated) {
        removal->rounds++;
        return hd_stop_runs_start(&removal->stop);
    }
    if (removal->thread.is_room) /* its questions ended, too */
        hd_room_waiting_check(call->app, removal->thread.principal, removal->thread.id);
    call->status = 204;
    return HD_DONE;
}

/* The events of the stopped runs get to the store before the line is removed. */
static struct hd_step remove_stopped(struct hd_call *call)
{
    struct hd_event_log *log = find_log(call, call->state);

    if (log)
        hd_event_log_flush(log);
    return hd_call_visit(call, remove_lines, after_removal);
}

/* ---- the endpoint ----------------------------------------------------- */

struct hd_step hd_agent_delete_start(struct hd_call *call)
{
    struct agent_removal *removal = hd_arena_calloc(call->arena, 1, sizeof(*removal));
    int err = removal ? hd_checkpoint_target_assistant_root(call, call->params[1], &removal->root)
                      : HD_ENOMEM;

    if (err)
        return hd_step_fail(err);
    call->state = removal;
    removal->stop.call = call;
    removal->stop.then = remove_stopped;
    err = find_all(call, removal);
    if (!err && !removal->is_known && removal->stop.count == 0)
        return hd_call_refuse(call, 404, "Agent not found in the thread");
    return hd_step_next(err);
}

struct hd_step hd_agent_delete_then(struct hd_call *call)
{
    struct agent_removal *removal = call->state;

    for (size_t i = 0; i < removal->count; i++) {
        if (hd_delegation_is_on_line(call->app->delegation, call->principal, removal->thread.id,
                                     removal->lines[i]))
            return hd_call_refuse(call, 409, "Another agent is calling this agent");
    }
    return hd_stop_runs_start(&removal->stop);
}
