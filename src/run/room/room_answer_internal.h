/* Shared by room_answer*.c and room_plain.c. */
#ifndef HD_RUN_ROOM_ANSWER_INTERNAL_H
#define HD_RUN_ROOM_ANSWER_INTERNAL_H

#include <stdint.h>

#include "base/json.h"
#include "room/room.h"
#include "run/room/room_answer.h"
#include "run/run_commit.h"

/* The end of one run, whose rows are being appended. */
struct hd_room_answering {
    struct hd_app *app;
    const struct hd_run_commit *commit;
    struct hd_thread_rec *thread;
    struct hd_event_batch *events;
    size_t event_count, event_bytes;
    struct hd_batch_builder *batch;
    struct hd_arena *arena;
    struct heddle_error *fault;
    struct hd_room_rec room;
    struct hd_room_run_rec run;
    struct hd_slice reply_to; /* of the answer; or empty */
    struct hd_slice replaces; /* likewise */
    int64_t now;
};

/* Where the run was, and what it was given. */
struct hd_room_said_place hd_room_answer_place(const struct hd_room_answering *a);
/* The messages at a checkpoint of the place, in *json: NULL for a state without a list of them. */
HD_MUST_CHECK int hd_room_answer_messages(struct hd_app *app,
                                          const struct hd_room_said_place *place,
                                          struct hd_slice id, struct hd_json *json,
                                          hd_json_val *out, struct heddle_error *fault);
/* True for an error with which the state can never be read. */
bool hd_room_answer_is_lasting(int err);

/* Appends a message that is new, with its id and content, and its event. */
HD_MUST_CHECK int hd_room_answer_add(struct hd_room_answering *a,
                                     const struct hd_room_message_rec *message,
                                     const struct hd_room_content_rec *content);
/*
 * Appends a message that has changed, and its event. Numbers the change. `content` NULL: the stored
 * one.
 */
HD_MUST_CHECK int hd_room_answer_change(struct hd_room_answering *a,
                                        struct hd_room_message_rec *message,
                                        const struct hd_room_content_rec *content);

/*
 * room_plain.c: makes the record of a run that no chat message made, and appends the human messages
 * that its line did not have. A run forked before the head makes the later turns of its line stale.
 */
HD_MUST_CHECK int hd_room_plain_add(struct hd_room_answering *a);

#endif
