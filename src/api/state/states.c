/* The state of a thread: current, at a checkpoint, and updates of it. */
#include "api/api.h"
#include "api/state/checkpoint_target.h"
#include "api/state/state_view.h"
#include "api/state/supersteps.h"
#include "base/log.h"
#include "cluster/cluster.h"
#include "events/event_log.h"
#include "graph/engine/failure.h"
#include "records/stream_modes.h"

/* ---- reading ---------------------------------------------------------- */

static int not_found(struct hd_call *call)
{
    return hd_error_set(&call->fault, HD_ENOTFOUND, "Checkpoint not found");
}

/* *out NULL: no checkpoint. */
static int read_state(struct hd_call *call, const struct hd_checkpoint_target *target,
                      bool subgraphs, struct hd_val **out)
{
    struct hd_slice id = target->checkpoint_id.len > 0 ? target->checkpoint_id : target->chosen;
    struct hd_failure failure = {NULL, NULL};
    struct hd_address at;
    int err;

    *out = NULL;
    if (!target->graph) {
        err = hd_checkpoint_target_check_graph(call, target);
    } else {
        at = hd_checkpoint_target_address(call, target, id);
        at.allowance = &call->budget.allowance;
        err = hd_checkpoint_target_failure(call, target,
                                           hd_state_get(&at, subgraphs, out, &failure), &failure);
    }
    if (!err && hd_val_is_null(hd_val_get(*out, HD_S("metadata")))) {
        hd_val_unref(*out);
        *out = NULL;
    }
    if (!err && !*out && target->checkpoint_id.len > 0)
        err = not_found(call);
    return err;
}

static int state_update_show(struct hd_call *call, const struct hd_checkpoint_target *target,
                             bool subgraphs, struct hd_state_view_select *select)
{
    struct hd_val *state = NULL;
    int err = read_state(call, target, subgraphs, &state);

    if (!err)
        err = hd_state_view(call, target, select, state);
    hd_val_unref(state);
    return err;
}

/* GET: `checkpoint_id` empty for the current head. */
static int show_queried(struct hd_call *call, struct hd_slice checkpoint_id)
{
    struct hd_state_view_select select = {.names = NULL};
    struct hd_checkpoint_target target;
    bool subgraphs;
    int err = hd_params_bool(&call->query, HD_S("subgraphs"), false, &subgraphs, &call->fault);

    if (!err)
        err = hd_state_view_select_query(call, &select);
    if (!err)
        err = hd_checkpoint_target_of_query(call, &target);
    if (!err) {
        target.checkpoint_id = checkpoint_id;
        err = state_update_show(call, &target, subgraphs, &select);
    }
    hd_state_view_select_fini(&select);
    return err;
}

static struct hd_step get_state(struct hd_call *call)
{
    return hd_step_done(show_queried(call, hd_slice(NULL, 0)));
}

static struct hd_step get_state_at(struct hd_call *call)
{
    struct hd_slice id;
    int err = hd_path_uuid(call, 1, "checkpoint_id", &id);

    return hd_step_done(err ? err : show_queried(call, id));
}

static struct hd_step post_state_at(struct hd_call *call)
{
    struct hd_state_view_select select = {.names = NULL};
    bool subgraphs = false;
    struct hd_checkpoint_target target;
    int err = hd_body_bool(call, "subgraphs", &subgraphs);

    if (!err)
        err = hd_state_view_select_body(call, &select);
    if (!err)
        err = hd_checkpoint_target_of_body(call, &target);
    if (!err)
        err = state_update_show(call, &target, subgraphs, &select);
    hd_state_view_select_fini(&select);
    return hd_step_done(err);
}

/* ---- changing --------------------------------------------------------- */

static void put_answer(struct hd_call *call, const struct hd_checkpoint_target *target,
                       const struct hd_val *config)
{
    static const char *const names[] = {"checkpoint", "configurable"};
    struct hd_jw *jw = &call->jw;

    hd_jw_object(jw);
    for (size_t i = 0; i < HD_COUNT(names); i++) {
        hd_jw_key(jw, hd_slice_cstr(names[i]));
        hd_state_put_config(jw, config, target->thread.id,
                            hd_checkpoint_target_shown_root(call, target));
    }
    hd_jw_put_string(jw, "checkpoint_id",
                     hd_val_get_string(hd_val_get(config, HD_S("checkpoint_id"))));
    hd_jw_object_end(jw);
}

struct state_update {
    struct hd_checkpoint_target target;
    struct hd_supersteps_remote remote; /* for a graph whose code runs in workers */
};

static int state_update_apply(struct hd_call *call, struct state_update *update)
{
    struct hd_checkpoint_target *target = &update->target;
    struct hd_supersteps supersteps;
    struct hd_val *config = NULL;
    int err = hd_supersteps_read_values(call, &supersteps);

    if (!err && target->graph->is_remote)
        err = hd_supersteps_prepare(call, target, true, &update->remote);
    else if (!err)
        err = hd_supersteps_apply(call, target, &supersteps, &config);
    if (!err && config)
        put_answer(call, target, config);
    hd_val_unref(config);
    hd_supersteps_fini(&supersteps);
    return err ? err : call->jw.err;
}

static struct hd_step update_work(struct hd_call *call)
{
    struct state_update *update = hd_arena_calloc(call->arena, 1, sizeof(*update));
    bool is_busy;
    int err = update ? hd_supersteps_check_values(call) : HD_ENOMEM;

    call->state = update;
    if (!err)
        err = hd_checkpoint_target_of_body(call, &update->target);
    if (err)
        return hd_step_fail(err);
    err = hd_checkpoint_target_is_busy(call, &update->target, &is_busy);
    if (err)
        return hd_step_fail(err);
    if (is_busy)
        return hd_call_refuse(call, 409, "Thread is busy");
    err = hd_checkpoint_target_check(call, &update->target);
    if (err)
        return hd_step_fail(err);
    if (!update->target.graph)
        return hd_call_refuse(call, 400,
                              "No graph is known for this thread: set assistant_id, or graph_id in "
                              "the thread's metadata");
    err = state_update_apply(call, update);
    return hd_step_next(err);
}

/* Notifies the readers of the thread's stream, if any. */
static struct hd_step announce_update(struct hd_call *call)
{
    const struct state_update *update = call->state;
    const struct hd_checkpoint_target *target = &update->target;
    struct hd_event_logs *event_logs = call->app->event_logs;
    struct hd_event_log *log = hd_event_log_find(event_logs, call->principal, target->thread.id);
    const struct hd_event_log_entry added = {.mode = HD_MODE_STATE_UPDATE,
                                             .name = HD_S("state_update"),
                                             .data = hd_buf_slice(&call->out)};

    /*
     * The record's event_seq already includes this event. In a cluster its readers may be at other
     * servers, and come for it later.
     */
    if ((log || hd_cluster_is_on(call->app->cluster)) && target->thread.event_seq > 0)
        log = hd_event_log_open(event_logs, call->principal, target->thread.id,
                                target->thread.created_at, (uint64_t)target->thread.event_seq - 1);
    /* When memory is short, the event log reports lost events to its readers. */
    if (log && hd_event_log_add(log, &added))
        hd_log(HD_LOG_WARN, "api", "out of memory: an event is missing");
    if (log)
        hd_event_log_covered(log, (uint64_t)target->thread.event_seq);
    return HD_DONE;
}

static struct hd_step state_update_settle(struct hd_call *call)
{
    struct state_update *update = call->state;
    struct hd_val *config = NULL;
    int err = hd_supersteps_settle(call, &update->remote, &config);

    if (!err)
        put_answer(call, &update->target, config);
    hd_val_unref(config);
    err = err ? err : call->jw.err;
    return hd_step_next(err);
}

static struct hd_step on_updated(struct hd_call *call, const struct hd_rt_message *message)
{
    struct state_update *update = call->state;
    int err = hd_supersteps_read_reply(call, message, &update->remote);

    return err ? hd_step_fail(err) : hd_call_visit(call, state_update_settle, announce_update);
}

static struct hd_step update_then(struct hd_call *call)
{
    struct state_update *update = call->state;

    return update->remote.head.len > 0
               ? hd_supersteps_query(call, &update->remote, on_updated, NULL)
               : announce_update(call);
}

static const struct hd_endpoint routes[] = {
    {.method = HD_METHOD_GET,
     .pattern = "/threads/{thread_id}/state",
     .access = HD_ACCESS_VIEWER,
     .on = HD_ON_THREADS_READ,
     .work = get_state,
     .tag = "Threads",
     .summary = "Get the current state of a thread",
     .query = "subgraphs checkpoint_ns assistant_id state_select",
     .answer = "ThreadState"},
    {.method = HD_METHOD_POST,
     .pattern = "/threads/{thread_id}/state",
     .access = HD_ACCESS_EDITOR,
     .by = HD_BY_LAST_HOLDER,
     .on = HD_ON_THREADS_UPDATE,
     .grows = true,
     .work = update_work,
     .then = update_then,
     .tag = "Threads",
     .summary = "Update the state of a thread; from an older checkpoint this creates a branch",
     .body = "ThreadStateUpdate",
     .answer = "ThreadStateUpdated"},
    {.method = HD_METHOD_GET,
     .pattern = "/threads/{thread_id}/state/{checkpoint_id}",
     .access = HD_ACCESS_VIEWER,
     .on = HD_ON_THREADS_READ,
     .work = get_state_at,
     .tag = "Threads",
     .summary = "Get the state of a thread at a checkpoint",
     .query = "subgraphs checkpoint_ns assistant_id state_select",
     .answer = "ThreadState"},
    {.method = HD_METHOD_POST,
     .pattern = "/threads/{thread_id}/state/checkpoint",
     .access = HD_ACCESS_VIEWER,
     .on = HD_ON_THREADS_READ,
     .work = post_state_at,
     .tag = "Threads",
     .summary = "Get the state of a thread at a checkpoint",
     .body = "ThreadStateAt",
     .answer = "ThreadState"},
};

const struct hd_routes hd_routes_states = {routes, HD_COUNT(routes)};
