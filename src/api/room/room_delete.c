/*
 * Deleting a chat message, by its author or the owner of the thread. The message stays as one
 * without content, and later runs do not get it. The response names what the message has left:
 * versions, inputs and checkpoints of runs that were given it, and events. With `purge` these are
 * removed first (room_purge.h).
 */
#include "api/api.h"
#include "api/room/room_change.h"
#include "api/room/room_find.h"
#include "api/room/room_purge.h"

struct deletion {
    bool purges;
    struct hd_room_purge purge;
    int err; /* of the purge */
    bool has_versions;
    bool has_runs; /* one of them was given the message, or has made it */
};

static struct hd_step check_deletion(struct hd_call *call, struct hd_room_change *change)
{
    if (call->role < HD_ROLE_OWNER && !hd_room_find_is_author(call, &change->message))
        return hd_call_refuse(call, 403,
                              "only the author of a message or the owner of the thread may do "
                              "this");
    if (change->message.state == HD_ROOM_PENDING)
        return hd_call_refuse(call, 409, "the question is open: answer it or withdraw it first");
    if (((const struct deletion *)change->ctx)->purges && change->thread.status == HD_THREAD_BUSY)
        return hd_call_refuse(call, 409, "Thread is busy");
    return HD_NEXT;
}

/* ---- what remains ----------------------------------------------------- */

static int find_remains(struct hd_call *call, struct hd_room_change *change)
{
    const struct hd_room_message_rec *message = &change->message;
    struct deletion *deletion = change->ctx;
    struct hd_room_content_rec *versions = NULL;
    struct hd_room_run_rec *runs = NULL;
    size_t version_count = 0, run_count = 0;
    int err =
        hd_room_versions_read(call->app->store, message->principal, message->thread_id, message->id,
                              call->arena, &versions, &version_count, &call->fault);

    if (!err)
        err = hd_room_runs_read(call->app->store, message->principal, message->thread_id,
                                hd_slice(NULL, 0), call->arena, &runs, &run_count, &call->fault);
    deletion->has_versions = version_count > 0;
    deletion->has_runs = message->run_id.len > 0;
    for (size_t i = 0; !err && !deletion->has_runs && i < run_count; i++)
        err = hd_room_purge_concerns(&runs[i], message, &deletion->has_runs);
    return err;
}

static int apply_deletion(struct hd_call *call, struct hd_room_change *change,
                          struct hd_batch_builder *batch)
{
    (void)batch;
    if (change->message.state == HD_ROOM_PENDING)
        return hd_room_change_refuse(change, 409,
                                     "the question is open: answer it or withdraw it first");
    change->message.state = HD_ROOM_DELETED;
    /* They repeat its content. */
    change->message.interrupts = change->message.error = change->message.feedback =
        hd_slice(NULL, 0);
    return ((const struct deletion *)change->ctx)->purges ? 0 : find_remains(call, change);
}

static void show_deleted(struct hd_call *call, struct hd_room_change *change)
{
    const struct deletion *deletion = change->ctx;
    struct hd_jw *jw = &call->jw;

    hd_room_change_show_message(call, change);
    hd_jw_put_array(jw, "remains");
    if (deletion->has_versions)
        hd_jw_string(jw, HD_S("versions"));
    if (deletion->has_runs) {
        hd_jw_string(jw, HD_S("run_inputs"));
        hd_jw_string(jw, HD_S("checkpoints"));
    }
    if (deletion->has_versions || deletion->has_runs) /* it was an event when it was added */
        hd_jw_string(jw, HD_S("events"));
    hd_jw_array_end(jw);
    hd_jw_object_end(jw);
}

/* The beginning of the data of events about the message: hd_room_view_message() begins with it. */
static int write_event_begin(struct hd_call *call, struct hd_slice id, struct hd_slice *out)
{
    struct hd_buf buf;
    int err;

    hd_buf_init(&buf, SIZE_MAX);
    err = hd_buf_append_slice(&buf, HD_S("{\"message\":{\"id\":"));
    if (!err)
        err = hd_json_write_string(&buf, id);
    if (!err)
        err = hd_arena_copy(call->arena, hd_buf_slice(&buf), out);
    hd_buf_fini(&buf);
    return err;
}

static struct hd_step delete_message(struct hd_call *call)
{
    struct hd_room_change *change = hd_arena_calloc(call->arena, 1, sizeof(*change));
    struct deletion *deletion = hd_arena_calloc(call->arena, 1, sizeof(*deletion));
    struct hd_slice id = call->params[1];
    int err;

    if (!change || !deletion)
        return hd_step_fail(HD_ENOMEM);
    deletion->purge.message_id = id;
    err = hd_params_bool(&call->query, HD_S("purge"), false, &deletion->purges, &call->fault);
    if (!err)
        err = write_event_begin(call, id, &deletion->purge.events);
    if (err)
        return hd_step_fail(err);
    *change = (struct hd_room_change){.message_id = id,
                                      .check = check_deletion,
                                      .apply = apply_deletion,
                                      .show = show_deleted,
                                      .ctx = deletion};
    return hd_room_change_start(call, change);
}

/* ---- purge ------------------------------------------------------------ */

static struct hd_step purge_message(struct hd_call *call)
{
    struct hd_room_change *change = call->state;
    struct deletion *deletion = change->ctx;

    deletion->err = hd_room_purge_apply(call, &deletion->purge);
    return HD_NEXT; /* the loop hides what was removed, also after an error */
}

/* The event of the deletion follows: it would be removed otherwise. */
static struct hd_step after_purge(struct hd_call *call)
{
    struct hd_room_change *change = call->state;
    const struct deletion *deletion = change->ctx;

    hd_room_purge_end(call, change->thread.id, &deletion->purge);
    if (deletion->err == HD_EBUSY)
        return hd_call_refuse(call, 409, "%s",
                              call->fault.code ? call->fault.text : "Thread is busy");
    return deletion->err ? hd_step_fail(deletion->err) : hd_room_change_then(call);
}

static struct hd_step delete_then(struct hd_call *call)
{
    const struct hd_room_change *change = call->state;
    const struct deletion *deletion = change->ctx;

    if (!deletion->purges)
        return hd_room_change_then(call);
    hd_room_purge_begin(call, change->thread.id);
    return hd_call_visit(call, purge_message, after_purge);
}

static const struct hd_endpoint routes[] = {
    {.method = HD_METHOD_DELETE,
     .pattern = "/threads/{thread_id}/room/messages/{message_id}",
     .access = HD_ACCESS_VIEWER,
     .by = HD_BY_HOLDER,
     .on = HD_ON_THREADS_UPDATE,
     .work = delete_message,
     .frees = true,
     .then = delete_then,
     .tag = "Rooms",
     .summary = "Delete a chat message; its place stays",
     .query = "purge",
     .answer = "RoomDeletion"},
};

const struct hd_routes hd_routes_room_delete = {routes, HD_COUNT(routes)};
