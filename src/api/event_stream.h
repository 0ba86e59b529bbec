/*
 * Server-sent events from a thread's event log. Frames are built when the socket has room for them.
 * A reader that does not read holds the run that it created (events/event_log.h), loses its stream
 * when its next event leaves the memory, and its connection after a time without progress
 * (http/conn.c).
 */
#ifndef HD_API_EVENT_STREAM_H
#define HD_API_EVENT_STREAM_H

#include <stdbool.h>
#include <stdint.h>

#include "api/api.h"
#include "events/event_log.h"
#include "room/room_view.h"

/*
 * What a stream without an end tells the part that gives it events of other servers
 * (stream_follow.h).
 */
struct hd_event_stream_giver {
    /* Everything was sent. May call hd_event_stream_give(); true: it has. */
    bool (*on_empty)(void *ctx);
    /* Other servers have added events to the thread of the log: it must be left. */
    void (*on_skipped)(void *ctx);
    /* The stream has ended. */
    void (*on_end)(void *ctx);
    void *ctx;
};

#define HD_EVENT_STREAM_MAX_RUNS 8

/* The part of an event log to send. Zero-initialise; borrowed for the call. */
struct hd_event_stream_options {
    struct hd_slice thread_id;
    struct hd_slice run_id; /* empty: events of all runs, and the stream never ends */
    /*
     * Several runs in place of run_id: their events, and those that belong to no run, until all of
     * them have ended. Up to HD_EVENT_STREAM_MAX_RUNS.
     */
    const struct hd_slice *runs;
    size_t run_count;
    struct hd_slice first; /* a frame that precedes the events; or empty */
    uint32_t modes;
    uint64_t after;             /* see hd_cursor_open() */
    bool is_over;               /* no more events will follow: the stream ends when all were sent */
    bool is_lifecycle;          /* only the start and end of runs, and the events in `modes` */
    bool is_selected;           /* only the events in `modes`, no shared ones */
    bool cancels_on_disconnect; /* a disconnect of the reader cancels the run */
    bool is_creator; /* the reader created the run, which is subject to its back-pressure */
    /*
     * Between events, a comment says up to which number the reader has everything: the reader is
     * another server.
     */
    bool has_marks;
    struct hd_event_stream_giver giver; /* all NULL: none */
    /* Who reads the events of a room, for room_presence.h; NULL: not shown. In the call's arena. */
    const struct hd_room_person *person;
    bool has_presence; /* the room's setting */
};

/*
 * For `then` to return: responds with the events of `log`. NULL as log: an empty stream. Sends
 * the headers of the call.
 */
HD_MUST_CHECK struct hd_step hd_event_stream_send(struct hd_call *call, struct hd_event_log *log,
                                                  const struct hd_event_stream_options *events);

/* ---- streams with changing sources ------------------------------------ */

struct hd_event_stream;

/*
 * The same in two parts: NULL: no memory. hd_event_stream_begin() is for `then` to return, or, with
 * HD_WAIT, for a callback to ignore; a stream without a log gets its events later.
 */
HD_MUST_CHECK struct hd_event_stream *
hd_event_stream_create(struct hd_call *call, const struct hd_event_stream_options *events);
struct hd_step hd_event_stream_begin(struct hd_event_stream *stream, struct hd_event_log *log);

/* Reads another log, above number `after`, or no log any more. */
void hd_event_stream_read(struct hd_event_stream *stream, struct hd_event_log *log, uint64_t after);
void hd_event_stream_leave(struct hd_event_stream *stream);
/* Asks the giver for events, when everything was sent. */
void hd_event_stream_wake(struct hd_event_stream *stream);
/* Sends a whole frame; copies it. */
HD_MUST_CHECK int hd_event_stream_give(struct hd_event_stream *stream, struct hd_slice frame);
/* Everything was sent, and the log has no more. */
bool hd_event_stream_is_empty(const struct hd_event_stream *stream);
/* The last number that was read from a log; 0: none. */
uint64_t hd_event_stream_last(const struct hd_event_stream *stream);

/* Ends the stream when everything was sent; the other one at once, as incomplete. */
void hd_event_stream_finish(struct hd_event_stream *stream);
void hd_event_stream_break_off(struct hd_event_stream *stream);

#endif
