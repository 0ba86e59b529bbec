/*
 * The people of a room: the owner of the thread, its participants, and the caller. Users who take
 * part through an organisation are not listed. For store threads.
 *
 * Clients see the subject of a person as its id. Without authentication all callers are one person.
 */
#ifndef HD_API_ROOM_ROOM_PEOPLE_H
#define HD_API_ROOM_ROOM_PEOPLE_H

#include "api/api.h"
#include "records/record.h"
#include "room/room_view.h"

/* The caller; the result borrows from its identity. */
HD_MUST_CHECK int hd_room_people_me(struct hd_call *call, struct hd_room_person *out);
/* A person by its principal. Its id is empty when the store does not know it. In the arena. */
HD_MUST_CHECK int hd_room_people_find(struct hd_call *call, struct hd_slice principal,
                                      struct hd_room_person *out);
/* Everybody, the owner first. In the arena. */
HD_MUST_CHECK int hd_room_people_read(struct hd_call *call, const struct hd_thread_rec *thread,
                                      struct hd_room_person **out, size_t *count);

#endif
