/* Shared by the files of cascades: one attempt of hd_room_cascade_apply(). */
#ifndef HD_RUN_ROOM_CASCADE_INTERNAL_H
#define HD_RUN_ROOM_CASCADE_INTERNAL_H

#include "base/vec.h"
#include "run/admit.h"
#include "run/cascade/room_cascade.h"
#include "run/cascade/room_cascade_past.h"

struct hd_room_cascade_message {
    struct hd_room_message_rec *message;
    struct hd_room_content_rec *content; /* of the current version; NULL: none */
    bool is_new;                         /* the message; its id is known to the room */
    bool has_new_content;                /* the content is a new version */
};

/* Rows to be written, and runs to be started. Everything is in the arena. */
struct hd_room_cascade_try {
    struct hd_room_cascade *op;
    struct hd_admission_group *group;
    struct heddle_error *fault;
    bool is_over; /* it has ended without a batch, and without an error */
    struct hd_room_cascade_past past;
    struct hd_cascade_rec *cascade; /* &op->cascade; NULL: none is written */
    struct hd_room_cascade_message *messages;
    size_t message_count, message_cap;
    size_t event_count, event_bytes; /* of the messages */
    const struct hd_room_run_rec **rows;
    size_t row_count, row_cap;
    struct hd_cascade_entry **started; /* of op->steps, for op->runs */
    struct hd_room_cascade_inbox {
        struct hd_slice member;
        bool is_added; /* else removed */
    } * inbox;         /* people, of an edit */
    size_t inbox_count;
    bool moves_lines; /* past.lines are written, and `heads` become the heads */
    struct hd_room_cascade_head {
        struct hd_slice ns, id;
    } * heads;
    size_t head_count, head_cap;
};

/* An array in the arena grows by doubling. NULL: no memory. */
void *hd_room_cascade_grow(struct hd_arena *arena, void *items, size_t size, size_t count,
                           size_t *cap);

/* ---- room_cascade_settle.c -------------------------------------------- */

/* Sets the states of running steps whose runs have ended. */
HD_MUST_CHECK int hd_room_cascade_settle(struct hd_room_cascade_try *t,
                                         struct hd_cascade_list *steps);
/* The answer of a step that is done. Its content is empty without an answer of the run. */
struct hd_room_said;
HD_MUST_CHECK int hd_room_cascade_said(struct hd_room_cascade_try *t,
                                       const struct hd_cascade_entry *step,
                                       struct hd_room_said *out, struct hd_room_run_rec *row,
                                       struct hd_run_rec *run);

/* ---- room_cascade_start.c --------------------------------------------- */

/* Makes the runs of these steps, as many as one group has. Steps that cannot be made are skipped.
 */
HD_MUST_CHECK int hd_room_cascade_start(struct hd_room_cascade_try *t, const size_t *ready,
                                        size_t count);

/* ---- room_cascade_switch.c -------------------------------------------- */

/* The questions that steps have asked become stale. */
HD_MUST_CHECK int hd_room_cascade_mark_questions(struct hd_room_cascade_try *t,
                                                 const struct hd_cascade_list *steps);
/* The answers of all steps do, too. */
HD_MUST_CHECK int hd_room_cascade_mark_stale(struct hd_room_cascade_try *t,
                                             const struct hd_cascade_list *steps);
/* The new answers and heads replace the old ones. */
HD_MUST_CHECK int hd_room_cascade_switch(struct hd_room_cascade_try *t);
HD_MUST_CHECK int hd_room_cascade_undo(struct hd_room_cascade_try *t);

/* ---- room_cascade_mentions.c ------------------------------------------ */

/* Changes the mentions of the edited message, op->message; `before` is its old content. */
HD_MUST_CHECK int hd_room_cascade_mention(struct hd_room_cascade_try *t, struct hd_slice before);
/* The entries of people whom the edit has added or removed. */
HD_MUST_CHECK int hd_room_cascade_put_inbox(const struct hd_room_cascade_try *t,
                                            struct hd_batch_builder *batch);

/* ---- room_cascade_write.c --------------------------------------------- */

/* Notes the message for the batch; returns it in *out. */
HD_MUST_CHECK int hd_room_cascade_note(struct hd_room_cascade_try *t,
                                       const struct hd_room_message_rec *message,
                                       const struct hd_room_content_rec *content,
                                       struct hd_room_cascade_message **out);
HD_MUST_CHECK int hd_room_cascade_note_row(struct hd_room_cascade_try *t,
                                           const struct hd_room_run_rec *row);
/* `extend` of the group; ctx is a struct hd_room_cascade_try. */
HD_MUST_CHECK int hd_room_cascade_extend(void *ctx, struct hd_batch_builder *batch,
                                         struct hd_thread_rec *thread, struct heddle_error *fault);

#endif
