/*
 * The runs of a room as the planner of cascades needs them (room/cascade_plan.h): from the records
 * of the room, its runs and its cascades, and from the checkpoints. Store threads.
 *
 * Runs that a finished cascade has repeated are in the place of the first ones. Those of other
 * cascades, and those that a cascade has removed from their line, are not there.
 */
#ifndef HD_RUN_ROOM_CASCADE_PAST_H
#define HD_RUN_ROOM_CASCADE_PAST_H

#include <stdbool.h>
#include <stddef.h>

#include "app/app.h"
#include "base/arena.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/slice.h"
#include "records/line.h"
#include "records/record.h"
#include "room/cascade_plan.h"
#include "room/cascade_steps.h"
#include "room/room.h"

struct hd_room_cascade_run {
    struct hd_room_run_rec row;
    struct hd_run_rec run; /* zeroed when it was deleted */
    bool has_run;
    size_t
        input_count; /* the first of `given`: its input; the others are replies to its questions */
};

struct hd_room_cascade_past {
    /* Set by the caller. */
    struct hd_app *app;
    struct hd_arena *arena; /* memory of everything below */
    const struct hd_thread_rec *thread;
    struct hd_slice actor; /* the editor: has_agent is about its right to use the agents */

    struct hd_room_rec room;
    struct hd_room_agent *agents;
    size_t agent_count;
    struct hd_cascade_rec *cascades; /* newest first */
    size_t cascade_count;
    struct hd_lines lines;
    struct hd_cascade_past *past;
    struct hd_room_cascade_run *runs; /* of `past` */
    struct hd_cascade_extra *extras;  /* likewise */
    size_t count;
};

/* HD_ENOTFOUND: the thread is no room. */
HD_MUST_CHECK int hd_room_cascade_past_read(struct hd_room_cascade_past *past,
                                            struct heddle_error *fault);

/* Plans. `recorded`: the steps so far, for answers that were equal; may be empty. */
struct hd_room_cascade_change {
    struct hd_cascade_pair edited; /* as in struct hd_cascade_question */
    struct hd_slice retried;
    size_t limit;
    const struct hd_cascade_list *recorded;
};
HD_MUST_CHECK int hd_room_cascade_past_plan(struct hd_room_cascade_past *past,
                                            const struct hd_room_cascade_change *change,
                                            struct hd_cascade_answer *out,
                                            struct heddle_error *fault);

/* The place of the run in `past`; past->count: it is not there. */
size_t hd_room_cascade_past_find(const struct hd_room_cascade_past *past, struct hd_slice run_id);

/* The run whose answer the message is, in its place in `past`; past->count: none. */
size_t hd_room_cascade_past_answered(const struct hd_room_cascade_past *past,
                                     struct hd_slice message_id);

/*
 * Where a run began on the line `ns`: `known` (the head before it) when that is not empty, else the
 * parent of its first checkpoint there, else that checkpoint when it has only the input. Empty: the
 * checkpoint was pruned, or there is none. In the arena.
 */
HD_MUST_CHECK int hd_room_cascade_past_fork(const struct hd_room_cascade_past *past,
                                            struct hd_slice run_id, struct hd_slice ns,
                                            struct hd_slice known, struct hd_slice *out,
                                            struct heddle_error *fault);

/* The namespaces of the lines that the delegates of a run changed; in the arena. */
HD_MUST_CHECK int hd_room_cascade_past_touched(struct hd_arena *arena, struct hd_slice touches,
                                               const struct hd_slice **out, size_t *count);

#endif
