/*
 * What the end of a run adds to its batch in a room: its answer as a chat message, or its question,
 * and the events. Store threads; the events begin and end on the loop.
 *
 * The answer is the last `ai` message with content that the run has added to its root graph. A run
 * without one leaves a message without content, with its error or with the reason; one that was
 * deleted or rolled back leaves nothing. The message has the id that was chosen when the run was
 * admitted, and gets its number now.
 *
 * In a thread that is no room nothing is added.
 */
#ifndef HD_RUN_ROOM_ANSWER_H
#define HD_RUN_ROOM_ANSWER_H

#include <stdbool.h>
#include <stddef.h>

#include "app/app.h"
#include "base/arena.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/slice.h"
#include "records/line.h"
#include "room/room.h"
#include "store/batch.h"

struct hd_event_batch;
struct hd_run_commit;

/* The most events of the end of one run. */
#define HD_ROOM_ANSWER_EVENTS ((size_t)200)

/*
 * Appends the rows. `thread` and `lines` are as they were before the end: their heads are those
 * before the run. The caller puts the thread afterwards, whose event_seq may be raised.
 * `events` NULL or without room for the thread's numbers: HD_EBUSY, and nothing may be stored; the
 * caller begins new events and calls again.
 */
HD_MUST_CHECK int hd_room_answer_put(struct hd_app *app, const struct hd_run_commit *commit,
                                     struct hd_thread_rec *thread, const struct hd_lines *lines,
                                     struct hd_event_batch *events, struct hd_batch_builder *batch,
                                     struct hd_arena *arena, struct heddle_error *fault);

/*
 * The message that a run has left, from the states before and after it: for answers that are not
 * posted yet (cascades). `before` and `after` are checkpoints of `ns`; `before` may be empty.
 * *content is empty when the run has said nothing. In the arena.
 */
struct hd_room_said {
    struct hd_slice content;   /* JSON */
    struct hd_slice source_id; /* its id in the state */
};
struct hd_room_said_place {
    struct hd_slice principal, thread_id, ns, graph_id, assistant_id;
    struct hd_slice before, after;
};
HD_MUST_CHECK int hd_room_answer_find(struct hd_app *app, const struct hd_room_said_place *place,
                                      struct hd_arena *arena, struct hd_room_said *out,
                                      struct heddle_error *fault);

#endif
