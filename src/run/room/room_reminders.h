/*
 * Reminders of rooms with waiting messages (run/room/room_waiting.h): a room whose run could not be
 * admitted is checked again after a pause. At the start of a server, or of the leader of several,
 * and when another server is gone, all rooms with waiting messages are checked. The record of a
 * room is its state, so a reminder too many does no harm. Belongs to the loop.
 */
#ifndef HD_RUN_ROOM_REMINDERS_H
#define HD_RUN_ROOM_REMINDERS_H

#include "base/compiler.h"
#include "base/slice.h"

struct hd_app;
struct hd_room_reminders;

/* Also after an error the caller destroys *out, if it is not NULL. */
HD_MUST_CHECK int hd_room_reminders_create(struct hd_app *app, struct hd_room_reminders **out);
/* At the start, after runs were recovered: begins the check of all rooms. */
void hd_room_reminders_begin(struct hd_room_reminders *reminders);
/* Starts no more work. Accepts NULL. */
void hd_room_reminders_stop(struct hd_room_reminders *reminders);
/* No work may be pending (hd_defer_count()). Accepts NULL. */
void hd_room_reminders_destroy(struct hd_room_reminders *reminders);

/*
 * Checks the room again after `pause_s` seconds. Without memory, at the next end of a run of the
 * room or at the next start.
 */
void hd_room_reminders_add(struct hd_room_reminders *reminders, struct hd_slice principal,
                           struct hd_slice thread_id, int pause_s);

#endif
