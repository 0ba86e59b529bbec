/*
 * Cascades: what follows from the edit of a chat message, or from the retry of an answer. Each call
 * below is one batch, so the record of a cascade is its whole state, and any server continues it
 * after a crash. Store threads; the events begin and end on the loop.
 *
 *   loop           hd_event_batch_begin() with HD_ROOM_CASCADE_EVENTS
 *   store thread   hd_room_cascade_apply()
 *   loop           hd_event_batch_end(); cancel `cancelled`; hd_queue_add() for each run;
 *                  hd_room_cascade_jobs_add() (room_cascade_jobs.h)
 *
 *   room_cascade.c          edits, retries, decisions of people, and the next step of a cascade
 *   room_cascade_past.c     the runs of the room, for the planner
 *   room_cascade_tools.c    the tools that runs have called
 *   room_cascade_start.c    from steps to runs off the head
 *   room_cascade_mentions.c the mentions of an edited message
 *   room_cascade_settle.c   what became of these runs
 *   room_cascade_switch.c   the switch to the new answers, stale marks, undo
 *   room_cascade_write.c    the rows and events of a batch
 */
#ifndef HD_RUN_ROOM_CASCADE_H
#define HD_RUN_ROOM_CASCADE_H

#include <stdbool.h>
#include <stddef.h>

#include "app/app.h"
#include "auth/identity.h"
#include "base/arena.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/slice.h"
#include "room/cascade_steps.h"
#include "room/room.h"
#include "room/room_view.h"
#include "run/room/room_request.h"

struct hd_event_batch;
struct hd_held_thread;

#define HD_ROOM_CASCADE_EVENTS ((size_t)4000) /* the most events of one batch */
#define HD_ROOM_CASCADE_MAX_LIMIT 1000        /* runs without an approval */

enum hd_room_cascade_verb {
    HD_ROOM_CASCADE_EDIT,
    HD_ROOM_CASCADE_RETRY,
    HD_ROOM_CASCADE_APPROVE,
    HD_ROOM_CASCADE_DECLINE,
    HD_ROOM_CASCADE_CANCEL,
    HD_ROOM_CASCADE_UNDO,
    HD_ROOM_CASCADE_ADVANCE, /* the next step of a running cascade */
    HD_ROOM_CASCADE_FAIL     /* it cannot continue; `reason` */
};

struct hd_room_cascade {
    /* The request. */
    struct hd_app *app;
    struct hd_arena *arena; /* memory of everything below */
    struct hd_slice principal;
    struct hd_slice thread_id;
    const struct hd_held_thread *seen; /* as in struct hd_admission; may be NULL */
    enum hd_room_cascade_verb verb;
    struct hd_room_person editor; /* of EDIT and RETRY */
    struct hd_slice user;         /* likewise; as in struct hd_admission */
    /* EDIT and RETRY. */
    struct hd_slice message_id;
    const struct hd_room_person *people; /* of EDIT: those that the message may mention */
    size_t people_count;
    struct hd_slice content;  /* of EDIT: JSON */
    struct hd_slice metadata; /* JSON; empty: that of the last version */
    bool has_limit;           /* else the room's */
    int64_t limit;
    bool is_dry;         /* plans, and stores nothing */
    bool is_alone;       /* no cascade: the answers become stale */
    bool interrupts_run; /* of the edited message; false: such a run is a refusal */
    /* The others. */
    struct hd_slice cascade_id;
    struct hd_slice up_to;         /* of APPROVE: a run; empty: all */
    struct hd_slice reason;        /* of FAIL */
    struct hd_event_batch *events; /* NULL: nothing may be stored */

    /* The result. */
    int refusal, retry_s;   /* as in struct hd_admission; the text is in `fault` */
    struct hd_slice holder; /* likewise */
    bool needs_numbers;     /* nothing was stored: end the events and begin new ones */
    int64_t event_seq;      /* of the thread */
    bool is_stored;         /* a batch was applied */
    bool has_message;       /* of EDIT and RETRY */
    struct hd_room_message_rec message;
    struct hd_room_content_rec body;
    struct hd_room_view_run *views; /* the runs of the message */
    size_t view_count;
    bool has_cascade;
    struct hd_cascade_rec cascade;
    struct hd_cascade_list steps; /* of the cascade, or the plan of a dry run */
    size_t free, possible;        /* of the plan: struct hd_cascade_answer */
    struct hd_room_run **runs;    /* admitted by this call */
    size_t run_count;
    struct hd_slice *cancelled; /* runs that the caller cancels */
    size_t cancelled_count;
    bool is_more; /* ADVANCE can be called again at once */
};

/* Returns 0, also for a refusal, with `holder` or `needs_numbers`, or the store's error. */
HD_MUST_CHECK int hd_room_cascade_apply(struct hd_room_cascade *op, struct heddle_error *fault);
/* Frees what is not in the arena. */
void hd_room_cascade_fini(struct hd_room_cascade *op);

#endif
