/*
 * Presence in rooms: the people with an open `room` stream on this server, typing, and read marks.
 * Editors whose stream is open get the events room/presence {"people"}, room/typing {"person"} and
 * room/read {"reader", "seq"}, which have no numbers and are not stored. Each is sent at most once
 * per second: of presence and of a person's read marks the latest, of typing the first.
 *
 * Nothing is sent while the room's setting `presence` is off. Belongs to the loop.
 */
#ifndef HD_API_ROOM_ROOM_PRESENCE_H
#define HD_API_ROOM_ROOM_PRESENCE_H

#include <stdbool.h>
#include <stdint.h>

#include "api/api.h"
#include "room/room_view.h"

struct hd_room_presences;
struct hd_present_room;

/* One open stream. Zero-initialise. Private. */
struct hd_room_presence {
    struct hd_present_room *room; /* NULL: not entered */
    struct hd_room_person person;
    struct hd_room_presence *next;
    struct hd_room_presence **link;
};

HD_MUST_CHECK int hd_room_presences_create(struct hd_app *app, struct hd_room_presences **out);
/* Every presence must have left. */
void hd_room_presences_destroy(struct hd_room_presences *presences);

/*
 * The person has opened a stream of the room. Borrows the person until hd_room_presence_leave().
 * Without memory the person is not shown.
 */
void hd_room_presence_enter(struct hd_room_presences *presences, struct hd_room_presence *presence,
                            struct hd_slice principal, struct hd_slice thread_id,
                            const struct hd_room_person *person);
/* Does nothing when it has not entered. */
void hd_room_presence_leave(struct hd_room_presence *presence);

/* The room's setting `presence`; it is on at first. For a room without open streams: nothing. */
void hd_room_presence_switch(struct hd_room_presences *presences, struct hd_slice principal,
                             struct hd_slice thread_id, bool is_on);
/* The person types; or has read up to `seq`. */
void hd_room_presence_typing(struct hd_room_presences *presences, struct hd_slice principal,
                             struct hd_slice thread_id, const struct hd_room_person *person);
void hd_room_presence_read(struct hd_room_presences *presences, struct hd_slice principal,
                           struct hd_slice thread_id, const struct hd_room_person *person,
                           int64_t seq);

#endif
