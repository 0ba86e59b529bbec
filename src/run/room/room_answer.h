/*
 * What the end of a run adds to its batch in a room: its answer as a chat message, or its question,
 * and the events. Store threads; the events begin and end on the loop.
 *
 * The answer is the last `ai` message with content that the run has added to its root graph. A run
 * without one leaves a message without content, with its error or with the reason; one that was
 * deleted or rolled back leaves nothing. The message has the id that was chosen when the run was
 * admitted, and gets its number now. A run off the head posts nothing: its cascade does.
 *
 * An end settles the earlier questions of its line: they are answered, or replaced by its own.
 *
 * In a thread that is no room nothing is added.
 *
 *   room_answer.c        the rows and the events
 *   room_answer_find.c   what the run has said
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
#include "room/room.h"
#include "store/batch.h"

struct hd_event_batch;
struct hd_run_commit;
struct hd_thread_rec;

/* The most events of the end of one run. The last one is the `room/run` of that run; readers see
 * them before its `end`. */
#define HD_ROOM_ANSWER_EVENTS ((size_t)200)

/* The `error` of a message whose run has ended well without saying anything. */
#define HD_ROOM_SILENT "{\"error\":\"NoAnswer\",\"message\":\"the agent said nothing\"}"

/*
 * Appends the rows. The caller puts the thread afterwards, whose event_seq may be raised. HD_EBUSY:
 * the thread is a room, and `events` is NULL or its numbers are used; nothing may be stored, and
 * the caller begins new events with the event_seq of `thread`.
 */
HD_MUST_CHECK int hd_room_answer_put(struct hd_app *app, const struct hd_run_commit *commit,
                                     struct hd_thread_rec *thread, struct hd_event_batch *events,
                                     struct hd_batch_builder *batch, struct hd_arena *arena,
                                     struct heddle_error *fault);

/*
 * The message that a run has left, from the states before and after it: for answers that are not
 * posted yet (cascades). `before` and `after` are checkpoints of `ns`; `before` may be empty.
 * *content is empty when the run has said nothing, or its graph is not served. In the arena.
 */
struct hd_room_said {
    struct hd_slice content;   /* JSON, as hd_room_content_said() */
    struct hd_slice source_id; /* its id in the state */
};
struct hd_room_said_place {
    struct hd_slice principal, thread_id, ns, graph_id;
    struct hd_slice before, after;
    struct hd_slice kwargs; /* JSON, of the run: it has not said the messages of its input; or
                               empty */
    /*
     * A message that the run appended to the conversation; or empty. With it the answer is found
     * among the messages that the run added; else both states are read.
     */
    struct hd_slice trigger;
};
HD_MUST_CHECK int hd_room_answer_find(struct hd_app *app, const struct hd_room_said_place *place,
                                      struct hd_arena *arena, struct hd_room_said *out,
                                      struct heddle_error *fault);

#endif
