/* Cascades: what follows from the edit of a chat message. */
#include "api/room/room_regenerate.h"
#include "api/state/checkpoint_target.h"
#include "room/room_view.h"

#define LIST_MOST 1000
#define LIST_USUAL 50

static struct hd_step list_cascades(struct hd_call *call)
{
    struct hd_thread_rec thread;
    struct hd_cascade_rec *cascades = NULL;
    size_t count = 0;
    int64_t limit;
    int err =
        hd_params_int(&call->query, HD_S("limit"), 1, LIST_MOST, LIST_USUAL, &limit, &call->fault);

    if (!err)
        err = hd_call_thread(call, &thread);
    if (!err)
        err = hd_cascades_read(call->app->store, call->principal, thread.id, (size_t)limit,
                               call->arena, &cascades, &count, &call->fault);
    if (err)
        return hd_step_fail(err);
    hd_jw_array(&call->jw);
    for (size_t i = 0; i < count; i++)
        hd_room_view_cascade(&call->jw, &cascades[i]);
    hd_jw_array_end(&call->jw);
    return HD_DONE;
}

static struct hd_step get_cascade(struct hd_call *call)
{
    struct hd_slice id = call->params[1];
    struct hd_cascade_rec cascade;
    struct hd_thread_rec thread;
    int err = hd_call_thread(call, &thread);

    if (!err) {
        err = hd_cascade_read(call->app->store, call->principal, thread.id, id, call->arena,
                              &cascade, &call->fault);
        if (err == HD_ENOTFOUND)
            return hd_call_refuse(call, 404, "Cascade with ID %.*s not found",
                                  (int)(id.len < 100 ? id.len : 100), id.ptr);
    }
    if (err)
        return hd_step_fail(err);
    hd_room_view_cascade(&call->jw, &cascade);
    return HD_DONE;
}

static void show_cascade(struct hd_call *call, const struct hd_room_cascade *op)
{
    hd_room_view_cascade(&call->jw, &op->cascade);
}

static struct hd_step act_on_cascade(struct hd_call *call)
{
    static const char *const actions[] = {"approve", "decline", "cancel", "undo", NULL};
    static const enum hd_room_cascade_verb verbs[] = {HD_ROOM_CASCADE_APPROVE,
                                                      HD_ROOM_CASCADE_DECLINE,
                                                      HD_ROOM_CASCADE_CANCEL, HD_ROOM_CASCADE_UNDO};
    struct hd_room_cascade op = {.cascade_id = call->params[1]};
    int action = -1;
    int err = hd_body_word(call, "action", actions, &action);

    if (!err && action < 0)
        err = hd_error_set(&call->fault, HD_EINVAL, "action: it is missing");
    if (!err)
        err = hd_body_string(call, "up_to", &op.up_to);
    if (err)
        return hd_step_fail(err);
    op.verb = verbs[action];
    return hd_room_regenerate_begin(call, &op, show_cascade);
}

static const struct hd_endpoint routes[] = {
    {.method = HD_METHOD_GET,
     .pattern = "/threads/{thread_id}/cascades",
     .access = HD_ACCESS_VIEWER,
     .on = HD_ON_THREADS_READ,
     .work = list_cascades,
     .tag = "Rooms",
     .summary = "List the cascades of a room, newest first",
     .query = "limit",
     .answer = "[RoomCascade"},
    {.method = HD_METHOD_GET,
     .pattern = "/threads/{thread_id}/cascades/{cascade_id}",
     .access = HD_ACCESS_VIEWER,
     .on = HD_ON_THREADS_READ,
     .work = get_cascade,
     .tag = "Rooms",
     .summary = "Get a cascade",
     .answer = "RoomCascade"},
    {.method = HD_METHOD_POST,
     .pattern = "/threads/{thread_id}/cascades/{cascade_id}",
     .access = HD_ACCESS_EDITOR,
     .by = HD_BY_HOLDER,
     .admits = true,
     .on = HD_ON_THREADS_CREATE_RUN,
     .work = act_on_cascade,
     .then = hd_room_regenerate_then,
     .tag = "Rooms",
     .summary = "Approve, decline, cancel or undo a cascade",
     .body = "RoomCascadeAction",
     .answer = "RoomCascade"},
};

const struct hd_routes hd_routes_room_cascades = {routes, HD_COUNT(routes)};
