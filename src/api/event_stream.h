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

/* The part of an event log to send. Zero-initialise; borrowed for the call. */
struct hd_event_stream_options {
    struct hd_slice thread_id;
    struct hd_slice run_id; /* empty: events of all runs, and the stream never ends */
    uint32_t modes;
    uint64_t after;             /* see hd_cursor_open() */
    bool is_over;               /* no more events will follow: the stream ends when all were sent */
    bool is_lifecycle;          /* only the start and end of runs, and the events in `modes` */
    bool is_selected;           /* only the events in `modes`, no shared ones */
    bool cancels_on_disconnect; /* a disconnect of the reader cancels the run */
    bool is_creator; /* the reader created the run, which is subject to its back-pressure */
};

/*
 * For `then` to return: responds with the events of `log`. NULL as log: an empty stream. Sends
 * the headers of the call.
 */
HD_MUST_CHECK struct hd_step hd_event_stream_send(struct hd_call *call, struct hd_event_log *log,
                                                  const struct hd_event_stream_options *events);

#endif
