/*
 * Purging a chat message: removes what a deleted message has left in its thread. Each run that was
 * given the message, or has made it, is removed with its checkpoints, and so are the later
 * checkpoints of the lines and the runs that made them: they have the message in their states.
 * Of these runs the records (with their inputs), webhooks, recorded exchanges and events are
 * deleted. Their answers stay in the room.
 *
 * The lines continue at their newest remaining checkpoints, and are given the messages behind the
 * purged one again. No run may be in flight. A purge that fails can be repeated.
 */
#ifndef HD_API_ROOM_ROOM_PURGE_H
#define HD_API_ROOM_ROOM_PURGE_H

#include "api/api.h"
#include "base/compiler.h"
#include "room/room.h"
#include "run/thread_prune.h"

struct hd_room_purge {
    struct hd_slice message_id;
    struct hd_slice events;     /* the beginning of the data of the message's events */
    struct hd_pruned_runs gone; /* the removed runs */
};

/* Loop, before the purge: the events of the thread get to the store. */
void hd_room_purge_begin(struct hd_call *call, struct hd_slice thread_id);
/* Store thread. HD_EBUSY: a run is in flight; with a fault: a question depends on the message. */
HD_MUST_CHECK int hd_room_purge_apply(struct hd_call *call, struct hd_room_purge *purge);
/* Loop, also after a failure: hides removed events that are in memory. */
void hd_room_purge_end(struct hd_call *call, struct hd_slice thread_id,
                       const struct hd_room_purge *purge);

/* Sets *out to whether the run was given the message, was made by it, or has made it. */
HD_MUST_CHECK int hd_room_purge_concerns(const struct hd_room_run_rec *run,
                                         const struct hd_room_message_rec *message, bool *out);

#endif
