/*
 * Who said the messages of a path. For store threads.
 *
 * A human message is of the person, or the cron, whose run brought it, also in a shared thread; in
 * a room it may be of another person or agent, whose words the run was given. An `ai` message that
 * arrived in an input is of the one who sent it. Between agents, the caller says what the delegate
 * is given. A message that was written by an update of the state has no known sender.
 */
#ifndef HD_API_STATE_MESSAGE_SENDERS_H
#define HD_API_STATE_MESSAGE_SENDERS_H

#include "api/api.h"
#include "api/state/message_path.h"
#include "base/arena.h"
#include "records/record.h"
#include "room/room_view.h"

struct hd_message_sender {
    bool is_known;
    bool is_delegated; /* between agents: one called the other as its tool */
    struct hd_room_person person;
    struct hd_slice shown; /* JSON, in place of `person`; or empty */
};

/* out[i] is the sender of entries[i], which were located. In the arena. */
HD_MUST_CHECK int hd_message_senders_find(struct hd_call *call, const struct hd_thread_rec *thread,
                                          const struct hd_message_path_entry *entries, size_t count,
                                          struct hd_arena *arena, struct hd_message_sender *out);

/* Writes the member `sender`: {"type", "id", "name"} or null. */
void hd_message_senders_put(struct hd_jw *jw, const struct hd_message_sender *sender);

/*
 * The member of a message that a room has given: additional_kwargs.heddle. NULL: none. A client may
 * send the same, so it counts in runs that a chat message made.
 */
hd_json_val hd_message_senders_mark(hd_json_val message);

#endif
