/* Edits of chat messages, and answers of agents that are made again. */
#include "api/room/room_body.h"
#include "api/room/room_regenerate.h"
#include "room/room_view.h"

static void show_plan(struct hd_call *call, const struct hd_room_cascade *op)
{
    hd_jw_object(&call->jw);
    hd_jw_key(&call->jw, HD_S("plan"));
    hd_cascade_steps_put(&call->jw, &op->steps);
    hd_jw_put_int(&call->jw, "free", (int64_t)op->free);
    hd_jw_put_int(&call->jw, "possible", (int64_t)op->possible);
    hd_jw_put_int(&call->jw, "limit", op->limit);
    hd_jw_object_end(&call->jw);
}

static void show_edit(struct hd_call *call, const struct hd_room_cascade *op)
{
    if (op->is_dry) {
        show_plan(call, op);
        return;
    }
    hd_jw_object(&call->jw);
    hd_jw_key(&call->jw, HD_S("message"));
    hd_room_view_message(&call->jw, &op->message, &op->body, op->views, op->view_count);
    hd_jw_key(&call->jw, HD_S("cascade"));
    if (op->has_cascade)
        hd_room_view_cascade(&call->jw, &op->cascade);
    else
        hd_jw_null(&call->jw);
    hd_jw_object_end(&call->jw);
}

/* The members that edits and retries have in common. */
static int read_plan_options(struct hd_call *call, struct hd_room_cascade *op)
{
    hd_json_val limit = hd_body_get(call, "limit");
    int err = hd_body_int(call, "limit", 0, HD_ROOM_CASCADE_MAX_LIMIT, &op->limit);

    op->has_limit = limit && !hd_json_is_null(limit);
    op->message_id = call->params[1];
    return err ? err : hd_body_bool(call, "dry_run", &op->is_dry);
}

static int read_edit(struct hd_call *call, struct hd_room_cascade *op)
{
    static const char *const cascades[] = {"auto", "none", NULL};
    static const char *const strategies[] = {"reject", "interrupt", NULL};
    int cascade = 0, strategy = 0;
    int err = hd_room_body_content(call, &op->content);

    if (!err)
        err = hd_room_body_metadata(call, &op->metadata);
    if (!err)
        err = read_plan_options(call, op);
    if (!err)
        err = hd_body_word(call, "cascade", cascades, &cascade);
    if (!err)
        err = hd_body_word(call, "if_running", strategies, &strategy);
    op->is_alone = cascade == 1;
    op->interrupts_run = strategy == 1;
    return err;
}

static struct hd_step edit_message(struct hd_call *call)
{
    struct hd_room_cascade op = {.verb = HD_ROOM_CASCADE_EDIT};
    int err = read_edit(call, &op);

    return err ? hd_step_fail(err) : hd_room_regenerate_begin(call, &op, show_edit);
}

static struct hd_step retry_message(struct hd_call *call)
{
    struct hd_room_cascade op = {.verb = HD_ROOM_CASCADE_RETRY};
    int err = read_plan_options(call, &op);

    return err ? hd_step_fail(err) : hd_room_regenerate_begin(call, &op, show_edit);
}

static const struct hd_endpoint routes[] = {
    {.method = HD_METHOD_PATCH,
     .pattern = "/threads/{thread_id}/room/messages/{message_id}",
     .access = HD_ACCESS_EDITOR,
     .by = HD_BY_HOLDER,
     .admits = true,
     .on = HD_ON_THREADS_CREATE_RUN,
     .grows = true,
     .work = edit_message,
     .then = hd_room_regenerate_then,
     .tag = "Rooms",
     .summary = "Edit a chat message, and make the answers again that depend on it",
     .body = "RoomMessageEdit",
     .answer = "RoomMessageEdited"},
    {.method = HD_METHOD_POST,
     .pattern = "/threads/{thread_id}/room/messages/{message_id}/retry",
     .access = HD_ACCESS_EDITOR,
     .by = HD_BY_HOLDER,
     .admits = true,
     .on = HD_ON_THREADS_CREATE_RUN,
     .grows = true,
     .work = retry_message,
     .then = hd_room_regenerate_then,
     .tag = "Rooms",
     .summary = "Make the answer of an agent again, and those that depend on it",
     .body = "?RoomMessageRetry",
     .answer = "RoomMessageEdited"},
};

const struct hd_routes hd_routes_room_edit = {routes, HD_COUNT(routes)};
