/*
 * Whom a chat message may mention: the people and the agents of the room, and the assistants that
 * its sender sees. Those join the room by being asked. Store threads.
 */
#ifndef HD_RUN_ROOM_MEMBERS_H
#define HD_RUN_ROOM_MEMBERS_H

#include <stdbool.h>
#include <stddef.h>

#include "app/app.h"
#include "base/arena.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/slice.h"
#include "room/room.h"
#include "room/room_ask.h"
#include "room/room_view.h"

#define HD_ROOM_MAX_ASSISTANTS \
    10000 /* of the sender and of the server, each; others have no name */

struct hd_room_members_query {
    struct hd_app *app;
    struct hd_arena *arena;
    const struct hd_room_rec *room;
    const struct hd_room_person *people;
    size_t people_count;
    struct hd_slice actor;   /* the sender */
    bool has_mentions;       /* the message may mention assistants that are not in the room */
    struct hd_slice replied; /* the agent of the message that it replies to; or empty */
};

struct hd_room_members {
    struct hd_ask_member *list;
    size_t count;
    struct hd_room_agent *agents; /* of the room, with space for those that join */
    size_t agent_count;
    bool has_joined; /* agents were added */
};

/* In the arena. */
HD_MUST_CHECK int hd_room_members_read(const struct hd_room_members_query *query,
                                       struct hd_room_members *out, struct heddle_error *fault);

/*
 * The room's agent for a member, which joins unless it is in the room; its name is unique there. A
 * pointer into members->agents. HD_EINVAL: the room has HD_ROOM_MAX_AGENTS already.
 */
HD_MUST_CHECK int hd_room_members_join(struct hd_room_members *members, size_t index,
                                       struct hd_arena *arena, const struct hd_room_agent **out,
                                       struct heddle_error *fault);

#endif
