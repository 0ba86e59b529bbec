/*
 * Deleting a chat message, by its author or the owner of the thread. The message stays as one
 * without content, and later runs do not get it. The response names what the message has left:
 * versions, and the inputs, checkpoints and events of runs that were given it.
 */
#include "api/api.h"
#include "api/room/room_change.h"
#include "api/room/room_find.h"

struct deletion {
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
    return HD_NEXT;
}

/* ---- what remains ----------------------------------------------------- */

/* `given` is a list of [message id, version]. */
static int was_given(const struct hd_room_run_rec *run, struct hd_slice id, bool *out)
{
    struct hd_json json = {NULL};
    struct hd_json_iter it;
    int err = run->given.len > 0 ? hd_json_parse(&json, run->given, NULL) : 0;

    *out = false;
    it = hd_json_iter(hd_json_root(&json));
    while (!err && !*out && hd_json_next(&it)) {
        struct hd_json_iter pair = hd_json_iter(it.val);

        *out = hd_json_next(&pair) && hd_slice_eq(hd_json_string(pair.val), id);
    }
    hd_json_fini(&json);
    return err == HD_EINVAL ? HD_ECORRUPT : err;
}

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
    for (size_t i = 0; !err && !deletion->has_runs && i < run_count; i++) {
        deletion->has_runs = hd_slice_eq(runs[i].trigger, message->id);
        if (!deletion->has_runs)
            err = was_given(&runs[i], message->id, &deletion->has_runs);
    }
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
    return find_remains(call, change);
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
        hd_jw_string(jw, HD_S("events"));
    }
    hd_jw_array_end(jw);
    hd_jw_object_end(jw);
}

static struct hd_step delete_message(struct hd_call *call)
{
    struct hd_room_change *change = hd_arena_calloc(call->arena, 1, sizeof(*change));
    struct deletion *deletion = hd_arena_calloc(call->arena, 1, sizeof(*deletion));

    if (!change || !deletion)
        return hd_step_fail(HD_ENOMEM);
    *change = (struct hd_room_change){.message_id = call->params[1],
                                      .check = check_deletion,
                                      .apply = apply_deletion,
                                      .show = show_deleted,
                                      .ctx = deletion};
    return hd_room_change_start(call, change);
}

static const struct hd_endpoint routes[] = {
    {.method = HD_METHOD_DELETE,
     .pattern = "/threads/{thread_id}/room/messages/{message_id}",
     .access = HD_ACCESS_VIEWER,
     .by = HD_BY_HOLDER,
     .on = HD_ON_THREADS_UPDATE,
     .work = delete_message,
     .then = hd_room_change_then,
     .tag = "Rooms",
     .summary = "Delete a chat message; its place stays",
     .answer = "RoomDeletion"},
};

const struct hd_routes hd_routes_room_delete = {routes, HD_COUNT(routes)};
