/*
 * Messages to an agent whose question is open, and agents' messages that ask other agents
 * (hd_room_rec.waits): their runs are admitted once the agent asks nothing any more. They act as
 * the senders of the messages; in a chain (run/room/room_chain.h) as its first asker.
 */
#ifndef HD_RUN_ROOM_WAITING_H
#define HD_RUN_ROOM_WAITING_H

#include "app/app.h"
#include "base/slice.h"

/*
 * Loop: admits the waiting runs of a room whose agents have no open question, in the background.
 * For the end of a run, for what ends a question, and for reminders (run/room/room_reminders.h): a
 * message whose run is refused, or fails, is tried again later and delays no other one. A message
 * that is not there any more, or whose agent has left the room, makes no run.
 */
void hd_room_waiting_check(struct hd_app *app, struct hd_slice principal,
                           struct hd_slice thread_id);

#endif
