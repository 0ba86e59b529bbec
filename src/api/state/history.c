/* The states of a namespace, newest first. */
#include "api/api.h"
#include "api/state/checkpoint_target.h"
#include "api/state/state_view.h"
#include "graph/engine/failure.h"

struct history_view {
    struct hd_call *call;
    struct hd_checkpoint_target target;
    struct hd_state_view_select select;
    int64_t limit;
    struct hd_slice before;
    struct hd_slice filter;
};

static int on_state(void *ctx, const struct hd_val *state)
{
    struct history_view *history = ctx;
    int err = hd_state_view(history->call, &history->target, &history->select, state);

    history->call->budget.shown += !err;
    return err;
}

static int list_states(struct history_view *history)
{
    struct hd_call *call = history->call;
    const struct hd_checkpoint_target *target = &history->target;
    struct hd_failure failure = {NULL, NULL};
    struct hd_address at;
    int err;

    if (!target->graph)
        return hd_checkpoint_target_check_graph(call, target);
    at = hd_checkpoint_target_address(call, target, target->checkpoint_id);
    at.without_values = !hd_state_view_select_has_values(&history->select);
    at.allowance = &call->budget.allowance;
    at.keeps_values = history->select.count == 0;
    err = hd_state_history(&at, history->limit, history->before, history->filter, on_state, history,
                           &failure);
    return hd_checkpoint_target_failure(call, target, err, &failure);
}

static int history_show(struct history_view *history)
{
    int err;

    hd_jw_array(&history->call->jw);
    err = list_states(history);
    hd_jw_array_end(&history->call->jw);
    return err;
}

static struct hd_step get_history(struct hd_call *call)
{
    struct history_view history = {.call = call};
    int err = hd_params_int(&call->query, HD_S("limit"), 1, 1000, 10, &history.limit, &call->fault);

    if (!err)
        err = hd_state_view_select_query(call, &history.select);
    hd_params_get(&call->query, HD_S("before"), &history.before);
    if (!err)
        err = hd_checkpoint_target_of_query(call, &history.target);
    if (!err)
        err = history_show(&history);
    hd_state_view_select_fini(&history.select);
    return hd_step_done(err);
}

/* The id of a checkpoint, a checkpoint, or a config with one. */
static int read_before(struct hd_call *call, struct hd_slice *out)
{
    hd_json_val before = hd_body_get(call, "before"), id = before;

    if (hd_json_is_object(before)) {
        id = hd_json_get(before, HD_S("checkpoint_id"));
        if (!id)
            id = hd_json_get(hd_json_get(before, HD_S("configurable")), HD_S("checkpoint_id"));
    }
    if (before && !hd_json_is_string(id) && !(hd_json_is_object(before) && hd_json_is_null(id)))
        return hd_error_set(
            &call->fault, HD_EINVAL,
            "before: expected the id of a checkpoint, or an object with a checkpoint_id");
    *out = hd_json_string(id);
    return 0;
}

static struct hd_step post_history(struct hd_call *call)
{
    struct history_view history = {.call = call, .limit = 10};
    hd_json_val metadata;
    int err = hd_body_int(call, "limit", 1, 1000, &history.limit);

    if (!err)
        err = read_before(call, &history.before);
    if (!err)
        err = hd_body_object(call, "metadata", &metadata);
    if (!err)
        err = hd_call_text(call, metadata, &history.filter);
    if (!err)
        err = hd_state_view_select_body(call, &history.select);
    if (!err)
        err = hd_checkpoint_target_of_body(call, &history.target);
    if (!err)
        err = history_show(&history);
    hd_state_view_select_fini(&history.select);
    return hd_step_done(err);
}

static const struct hd_endpoint routes[] = {
    {.method = HD_METHOD_GET,
     .pattern = "/threads/{thread_id}/history",
     .access = HD_ACCESS_VIEWER,
     .on = HD_ON_THREADS_READ,
     .work = get_history,
     .tag = "Threads",
     .summary = "List the states of a thread, newest first",
     .query = "limit before checkpoint_ns assistant_id state_select",
     .answer = "[ThreadState"},
    {.method = HD_METHOD_POST,
     .pattern = "/threads/{thread_id}/history",
     .access = HD_ACCESS_VIEWER,
     .on = HD_ON_THREADS_READ,
     .work = post_history,
     .tag = "Threads",
     .summary = "List the states of a thread, newest first",
     .body = "?ThreadHistory",
     .answer = "[ThreadState"},
};

const struct hd_routes hd_routes_history = {routes, HD_COUNT(routes)};
