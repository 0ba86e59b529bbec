/*
 * One run of a room: from a chat message and an agent to the request of a run, and to the record
 * that connects both. For hd_admit_group(): posting, the messages of agents that ask others, and
 * cascades. Store threads.
 */
#ifndef HD_RUN_ROOM_REQUEST_H
#define HD_RUN_ROOM_REQUEST_H

#include <stdbool.h>
#include <stddef.h>

#include "app/app.h"
#include "base/arena.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/json.h"
#include "base/slice.h"
#include "room/room.h"
#include "room/room_input.h"
#include "run/admit.h"

struct hd_room_request_options {
    struct hd_app *app;
    struct hd_arena *arena;
    const struct hd_thread_rec *thread;
    struct hd_room_rec *room;
    struct hd_room_item trigger;
    struct hd_slice assistant_id;
    struct hd_slice actor; /* the asker */
    /* Owns or sees the assistant (hd_room_agent.actor) while it takes part in the thread; else, and
     * when empty, the actor does. */
    struct hd_slice lender;
    struct hd_slice ns; /* the line; empty: that of the assistant */
    bool is_shared;     /* the room has more than one person */
    uint32_t modes;     /* of its stream; 0: those of a room */
    /*
     * The trigger answers a question of the agent: JSON, the value that the run resumes with. The
     * run is given the trigger only, and the mark of its line stays.
     */
    struct hd_slice resume;
    /* A run that is repeated: it starts at this checkpoint, or at the beginning when it is empty.*/
    bool is_repeated;
    struct hd_slice fork;
    const struct hd_room_item *items; /* what it is given besides the trigger, when repeated */
    size_t count;
};

/* In the arena, but for `body`: hd_room_request_fini(). */
struct hd_room_run {
    struct hd_json body; /* of the request */
    struct hd_run_request request;
    struct hd_admission admission; /* its request is set; the caller sets what it knows */
    struct hd_room_run_rec rec;    /* without run_id, answer and head_before */
    struct hd_slice ns;            /* the line */
};

/*
 * Makes the request and the record. Unless the run is repeated or resumes, reads what the line was
 * not given yet, and moves the line's mark in options->room. HD_EINVAL: the agent cannot be asked,
 * because its graph is not there, or its input has no `messages`. HD_ENOTFOUND: there is no such
 * assistant. On error nothing is to be freed.
 */
HD_MUST_CHECK int hd_room_request_make(const struct hd_room_request_options *options,
                                       struct hd_room_run **out, struct heddle_error *fault);
void hd_room_request_fini(struct hd_room_run *run);

/*
 * For `extend` of the group: completes the record with the run's id, makes the id of the answer,
 * and appends the rows of both. The caller puts the room. The end of the run adds head_before.
 */
HD_MUST_CHECK int hd_room_request_put(struct hd_batch_builder *batch, struct hd_room_run *run,
                                      struct hd_arena *arena);

#endif
