#include "api/room/room_find.h"

#include "api/state/checkpoint_target.h"

int hd_room_find_of(struct hd_call *call, const struct hd_thread_rec *thread,
                    struct hd_room_rec *room)
{
    int err = HD_ENOTFOUND;

    if (thread->is_room)
        err = hd_room_read(call->app->store, thread->principal, thread->id, call->arena, room,
                           &call->fault);
    if (err != HD_ENOTFOUND)
        return err;
    call->fault = (struct heddle_error){0};
    hd_room_init(room, thread->principal, thread->id);
    return 0;
}

int hd_room_find(struct hd_call *call, struct hd_thread_rec *thread, struct hd_room_rec *room)
{
    int err = hd_call_thread(call, thread);

    return err ? err : hd_room_find_of(call, thread, room);
}

int hd_room_find_message(struct hd_call *call, const struct hd_thread_rec *thread,
                         struct hd_slice id, struct hd_room_message_rec *out)
{
    int err = HD_ENOTFOUND;

    if (thread->is_room)
        err = hd_room_message_read(call->app->store, thread->principal, thread->id, id, call->arena,
                                   out, &call->fault);
    if (err != HD_ENOTFOUND)
        return err;
    call->fault = (struct heddle_error){0};
    return hd_error_set(&call->fault, HD_ENOTFOUND, "Message with ID %.*s not found",
                        (int)(id.len < HD_ROOM_MAX_ID ? id.len : HD_ROOM_MAX_ID), id.ptr);
}

/* Without authentication all callers are one person. */
struct hd_slice hd_room_find_me(const struct hd_call *call)
{
    return call->identity ? call->actor : hd_slice(NULL, 0);
}

bool hd_room_find_is_author(const struct hd_call *call, const struct hd_room_message_rec *message)
{
    return message->kind == HD_ROOM_PERSON && hd_slice_eq(message->sender, hd_room_find_me(call));
}

int hd_room_find_unread(struct hd_call *call, const struct hd_thread_rec *thread, int64_t *out)
{
    struct heddle *store = call->app->store;
    struct hd_slice me = hd_room_find_me(call);
    struct hd_room_read_rec mark;
    int err;

    *out = 0;
    if (!thread->is_room)
        return 0;
    err = hd_room_read_mark(store, thread->principal, thread->id, me, call->arena, &mark,
                            &call->fault);
    return err ? err
               : hd_room_messages_count(store, thread->principal, thread->id, me, mark.seq, out,
                                        &call->fault);
}
