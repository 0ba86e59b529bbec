/*
 * Replies to the questions of repeated runs. Such a run is off the head, so the reply resumes
 * it there: its message makes no run, and the cascade continues with it. For posting, store
 * threads.
 */
#ifndef HD_RUN_CASCADE_ROOM_CASCADE_REPLY_H
#define HD_RUN_CASCADE_ROOM_CASCADE_REPLY_H

#include <stdbool.h>

#include "app/app.h"
#include "base/arena.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/slice.h"
#include "room/cascade_steps.h"
#include "room/room.h"
#include "store/batch.h"

struct hd_event_batch;

/* The most events of a reply: the question, the cascade. */
#define HD_ROOM_CASCADE_REPLY_EVENTS 2

struct hd_room_cascade_reply {
    bool is_needed; /* the question is that of a cascade */
    bool is_open;   /* the cascade still waits for the reply */
    struct hd_room_message_rec question;
    struct hd_cascade_rec cascade;
    struct hd_cascade_list steps;
    struct hd_cascade_entry *step;
};

/* Finds the cascade of a question, a message of the room. In the arena. */
HD_MUST_CHECK int hd_room_cascade_reply_find(struct hd_app *app,
                                             const struct hd_room_message_rec *question,
                                             struct hd_arena *arena,
                                             struct hd_room_cascade_reply *out,
                                             struct heddle_error *fault);
/*
 * Appends the rows and the events. `message_id`: the reply; `resume`: JSON, its value. Changes
 * `room`, which the caller puts; afterwards the caller calls hd_room_cascade_jobs_add().
 */
HD_MUST_CHECK int hd_room_cascade_reply_put(struct hd_room_cascade_reply *reply,
                                            struct hd_slice message_id, struct hd_slice resume,
                                            struct hd_room_rec *room, struct hd_event_batch *events,
                                            struct hd_batch_builder *batch, struct hd_arena *arena);

#endif
