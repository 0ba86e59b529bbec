/*
 * Posting a chat message: the message, its runs and their admissions are stored in one batch, with
 * the events that report them. Store threads; the events begin and end on the loop.
 *
 *   loop           hd_event_batch_begin() with HD_ROOM_POST_EVENTS
 *   store thread   hd_room_post()
 *   loop           hd_event_batch_end(); hd_queue_add() for each run
 *
 * A reply to an open question of an agent resumes the run that asks; the end of that run settles
 * the question. Other messages to this agent wait: their runs are admitted later
 * (run/room/room_waiting.h).
 */
#ifndef HD_RUN_ROOM_POST_H
#define HD_RUN_ROOM_POST_H

#include <stdbool.h>
#include <stddef.h>

#include "app/app.h"
#include "auth/identity.h"
#include "base/arena.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/slice.h"
#include "room/room.h"
#include "room/room_view.h"
#include "run/cascade/room_cascade_reply.h"
#include "run/room/room_request.h"

struct hd_event_batch;
struct hd_held_thread;

/* The most events of one message: itself, and its runs. */
#define HD_ROOM_POST_EVENTS (1 + HD_ROOM_MAX_ASKED + HD_ROOM_CASCADE_REPLY_EVENTS)

struct hd_room_post {
    /* The request. */
    struct hd_app *app;
    struct hd_arena *arena; /* memory of everything below */
    struct hd_slice principal;
    struct hd_slice thread_id;
    const struct hd_held_thread *seen; /* as in struct hd_admission; may be NULL */
    struct hd_room_person sender;      /* its key is the actor */
    enum hd_role role;
    struct hd_slice subject; /* as in struct hd_admission */
    bool is_admin;
    struct hd_slice user;
    struct hd_slice headers;             /* used while the room has one person */
    const struct hd_room_person *people; /* that the message may mention; the sender too */
    size_t people_count;
    struct hd_slice id;       /* of the message; empty: a new one */
    struct hd_slice content;  /* JSON: a string or a list of blocks */
    struct hd_slice metadata; /* JSON object; or empty */
    struct hd_slice reply_to; /* or empty */
    bool has_mentions;        /* the request lists them */
    const struct hd_slice *mentions;
    size_t mention_count;
    uint32_t modes; /* of the streams of its runs; 0: those of a room */
    struct hd_event_batch *events;

    /* The result. */
    int refusal, retry_s;   /* as in struct hd_admission; the text is in `fault` */
    struct hd_slice holder; /* likewise */
    bool needs_numbers;     /* nothing was stored: end the events and begin new ones */
    bool is_repeated;       /* an earlier request posted it: the rest is its result */
    bool has_waits;         /* messages of the room wait for a question: hd_room_waiting_check() */
    struct hd_slice
        cascade_id;    /* it replies to a question of this cascade, which continues; or empty */
    int64_t event_seq; /* of the thread */
    struct hd_room_message_rec message;
    struct hd_room_content_rec body; /* of its current version */
    struct hd_room_run **runs;       /* admitted by this call */
    size_t run_count;
    struct hd_room_view_run *views; /* of the runs */
    size_t view_count;
};

/* Returns 0, also for a refusal, with `holder` or `needs_numbers`, or the store's error. */
HD_MUST_CHECK int hd_room_post(struct hd_room_post *post, struct heddle_error *fault);
/* Frees what is not in the arena. */
void hd_room_post_fini(struct hd_room_post *post);

#endif
