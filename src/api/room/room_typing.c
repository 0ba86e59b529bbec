/* Typing in a room: an event for the editors whose streams are open. */
#include "api/api.h"
#include "api/room/room_find.h"
#include "api/room/room_people.h"
#include "api/room/room_presence.h"

struct typing {
    struct hd_thread_rec thread;
    struct hd_room_rec room;
    struct hd_room_person me;
};

static struct hd_step post_typing(struct hd_call *call)
{
    struct typing *typing = hd_arena_calloc(call->arena, 1, sizeof(*typing));
    int err = typing ? hd_room_find(call, &typing->thread, &typing->room) : HD_ENOMEM;

    if (!err)
        err = hd_room_people_me(call, &typing->me);
    call->state = typing;
    return hd_step_next(err);
}

static struct hd_step post_typing_then(struct hd_call *call)
{
    const struct typing *typing = call->state;
    const struct hd_thread_rec *thread = &typing->thread;
    struct hd_room_presences *presences = hd_api_room_presences(call->api);

    hd_room_presence_switch(presences, thread->principal, thread->id, typing->room.has_presence);
    hd_room_presence_typing(presences, thread->principal, thread->id, &typing->me);
    call->status = 204;
    return HD_DONE;
}

static const struct hd_endpoint routes[] = {
    {.method = HD_METHOD_POST,
     .pattern = "/threads/{thread_id}/room/typing",
     .access = HD_ACCESS_EDITOR,
     .by = HD_BY_HOLDER,
     .on = HD_ON_THREADS_READ,
     .work = post_typing,
     .then = post_typing_then,
     .tag = "Rooms",
     .summary = "Show to the other editors that the caller types",
     .body = "?Ignored",
     .status = 204},
};

const struct hd_routes hd_routes_room_typing = {routes, HD_COUNT(routes)};
