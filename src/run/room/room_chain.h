/*
 * Chains: an agent's answer asks other agents of the room, as the original asker. A chain begins
 * with the message of a person; hd_room_rec.ask_depth and ask_runs limit it, and each agent runs in
 * it once. Store threads.
 */
#ifndef HD_RUN_ROOM_CHAIN_H
#define HD_RUN_ROOM_CHAIN_H

#include <stdint.h>

#include "app/app.h"
#include "base/arena.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/slice.h"
#include "room/room.h"

struct hd_room_answering;

/* What the runs that a message makes inherit. */
struct hd_room_chain {
    struct hd_slice asker;   /* the actor of its runs */
    struct hd_slice subject; /* as in struct hd_admission */
    struct hd_slice id;      /* hd_room_run_rec.chain */
    int64_t depth;           /* hd_room_run_rec.depth */
};

/* HD_ENOTFOUND: the run that made the message of an agent is not there any more. In the arena. */
HD_MUST_CHECK int hd_room_chain_of(struct hd_app *app, const struct hd_room_message_rec *message,
                                   struct hd_arena *arena, struct hd_room_chain *out,
                                   struct heddle_error *fault);

/*
 * For the end of a run: finds the agents that its answer asks, sets message->mentions, and adds
 * their waits to the room; the runs are admitted after the end (run/room/room_waiting.h). Does
 * nothing where agents do not ask, or the chain may not go on.
 */
HD_MUST_CHECK int hd_room_chain_ask(struct hd_room_answering *a,
                                    struct hd_room_message_rec *message, struct hd_slice content);

#endif
