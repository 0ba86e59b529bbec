/*
 * Server-sent events from a thread's feed. Frames are made when the socket has
 * room for them: a reader that does not read costs its connection and nothing
 * that grows.
 */
#ifndef HD_API_EVENTS_H
#define HD_API_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "api/api.h"
#include "events/event_log.h"

/* The part of a feed to send. Zero-initialise; borrowed for the call. */
struct hd_events {
    struct hd_slice thread_id;
    struct hd_slice run_id; /* empty: of all runs, and the stream never ends */
    uint32_t modes;
    uint64_t after;     /* see hd_cursor_open() */
    bool is_over;       /* nothing more will come: ends when all was sent */
    bool is_lifecycle;  /* only the start and end of runs, and the events in `modes` */
    bool is_selected;   /* only the events in `modes`, no shared ones */
    bool is_cancelling; /* the run is cancelled when the reader goes */
    bool is_creator;    /* the run was begun for this reader, and waits for it */
};

/*
 * Answers the call with the events of `feed` and owns it from then on. NULL as
 * feed: an empty stream. Headers of the call are sent.
 */
void hd_events_send(struct hd_call *call, struct hd_event_log *feed,
                    const struct hd_events *events);

#endif
