/*
 * The agents that a chat message asks, and the people that it mentions. Pure.
 *
 * Mentions decide: those in the text, or the explicit list of the request in place of it. Without a
 * mention the message asks the agent whose message it replies to, else the default agent of the
 * room, else none. A message that mentions people only asks no agent.
 *
 * People and agents share one name space. A name means a member of the room before an assistant of
 * the sender, and that before an assistant of the server.
 */
#ifndef HD_ROOM_ROOM_ASK_H
#define HD_ROOM_ROOM_ASK_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/slice.h"
#include "room/room.h"

#define HD_ROOM_MAX_MENTIONS 32 /* people and agents in one message */

/* A lower rank precedes a higher one. */
enum hd_ask_rank { HD_ASK_ROOM, HD_ASK_OWN, HD_ASK_SYSTEM };

/* One that a message may mention. The same agent may be there several times, with other names. */
struct hd_ask_member {
    enum hd_room_sender kind; /* a person or an agent */
    enum hd_ask_rank rank;
    struct hd_slice key;   /* a principal or an assistant id */
    struct hd_slice id;    /* as clients see it */
    struct hd_slice name;  /* empty: it can be mentioned by its id only */
    struct hd_slice actor; /* of an agent: hd_room_agent.actor */
};

struct hd_ask_question {
    const struct hd_ask_member *members;
    size_t member_count;
    const struct hd_slice *texts; /* of the content */
    size_t text_count;
    bool has_list;               /* the request lists the mentions: the texts have none */
    const struct hd_slice *list; /* names, or ids as clients see them */
    size_t list_count;
    struct hd_slice replied_agent; /* the sender of the message that it replies to; or empty */
    struct hd_slice default_agent; /* of the room; or empty */
};

/* Indices of members, each agent or person once, in the order of the message. */
struct hd_ask_answer {
    size_t mentioned[HD_ROOM_MAX_MENTIONS];
    size_t mentioned_count;
    size_t asked[HD_ROOM_MAX_ASKED]; /* agents */
    size_t asked_count;
};

/*
 * HD_EINVAL, with the cause in `fault`: a name is ambiguous (with the candidates), a listed one is
 * unknown, there are too many, or the agent that is asked without a mention is none of the members.
 */
HD_MUST_CHECK int hd_room_ask(const struct hd_ask_question *question, struct hd_arena *arena,
                              struct hd_ask_answer *out, struct heddle_error *fault);

#endif
