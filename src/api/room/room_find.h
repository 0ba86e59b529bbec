/*
 * The room of a request, its messages, and what the caller may do with them. For store threads.
 */
#ifndef HD_API_ROOM_ROOM_FIND_H
#define HD_API_ROOM_ROOM_FIND_H

#include "api/api.h"
#include "records/record.h"
#include "room/room.h"

/* The thread of the path and its room: one with the defaults and rev 0 for a thread that is no
 * room. HD_ENOTFOUND, as hd_call_thread(), for a thread that does not exist. */
HD_MUST_CHECK int hd_room_find(struct hd_call *call, struct hd_thread_rec *thread,
                               struct hd_room_rec *room);
/* The room of a thread that was read. */
HD_MUST_CHECK int hd_room_find_of(struct hd_call *call, const struct hd_thread_rec *thread,
                                  struct hd_room_rec *room);
/* A message of the thread by its id; HD_ENOTFOUND sets call->fault. */
HD_MUST_CHECK int hd_room_find_message(struct hd_call *call, const struct hd_thread_rec *thread,
                                       struct hd_slice id, struct hd_room_message_rec *out);
/* True when the caller, a person, has sent the message. */
bool hd_room_find_is_author(const struct hd_call *call, const struct hd_room_message_rec *message);
/* The key of the caller as a person of rooms: hd_room_person.key. */
struct hd_slice hd_room_find_me(const struct hd_call *call);
/* The number of messages that the caller has not read; 0 for a thread that is no room. */
HD_MUST_CHECK int hd_room_find_unread(struct hd_call *call, const struct hd_thread_rec *thread,
                                      int64_t *out);

#endif
