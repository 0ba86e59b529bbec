#include "api/room/room_copies.h"

#include "api/room/room_people.h"
#include "base/clock.h"
#include "run/assistant_lookup.h"

/* Also true for agents that the caller brought into the room. */
static int is_usable_agent(struct hd_call *call, const struct hd_room_agent *agent, bool *out)
{
    struct hd_assistant_rec assistant;
    struct heddle_error fault = {0};
    int err = hd_assistant_lookup(call->app, call->actor, agent->assistant_id, call->arena,
                                  &assistant, &fault);

    *out = !err;
    if (err && err != HD_ENOTFOUND)
        return hd_error_set(&call->fault, err, "%s", fault.text);
    return 0;
}

static int keep_usable_agents(struct hd_call *call, struct hd_room_rec *room)
{
    struct hd_room_agent *agents = NULL;
    bool has_default = false;
    size_t count = 0, kept = 0;
    int err = hd_room_agents_read(room, call->arena, &agents, &count, &call->fault);

    for (size_t i = 0; !err && i < count; i++) {
        bool is_usable;

        err = is_usable_agent(call, &agents[i], &is_usable);
        if (err || !is_usable)
            continue;
        has_default |= hd_slice_eq(agents[i].assistant_id, room->default_assistant_id);
        agents[kept] = agents[i];
        agents[kept++].actor = call->actor;
    }
    if (err)
        return err;
    if (!has_default)
        room->default_assistant_id = hd_slice(NULL, 0);
    return hd_room_agents_write(room, agents, kept, call->arena);
}

int hd_room_copies_read(struct hd_call *call, const struct hd_thread_rec *source, int64_t up_to,
                        struct hd_room_copy *out)
{
    int err = hd_room_copy_read(call->app->store, source->principal, source->id, up_to, call->arena,
                                out, &call->fault);

    return err ? err : keep_usable_agents(call, &out->room);
}

/* The caller has seen these messages in the source. */
static int mark_read(struct hd_call *call, const struct hd_room_copy *copy,
                     const struct hd_thread_rec *target, struct hd_batch_builder *last)
{
    struct hd_room_person me;
    struct hd_room_read_rec mark = {.principal = target->principal,
                                    .thread_id = target->id,
                                    .seq = copy->room.last_seq,
                                    .updated_at = hd_clock_now_us()};
    int err = hd_room_people_me(call, &me);

    if (err)
        return err;
    mark.reader = me.key;
    mark.reader_id = me.id;
    return hd_room_read_put(last, &mark);
}

int hd_room_copies_write(struct hd_call *call, struct hd_room_copy *copy,
                         const struct hd_thread_rec *target, struct hd_batch_builder *last)
{
    int err;

    copy->room.updated_at = target->updated_at;
    err = hd_room_copy_write(call->app->store, copy, target->principal, target->id, last,
                             &call->fault);
    return err ? err : mark_read(call, copy, target, last);
}
