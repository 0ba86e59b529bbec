/*
 * The streams of threads in a cluster. The events of a thread come from the server that holds it,
 * or held it last; a client's stream stays at the server that the client has reached, which reads
 * the events of the others and changes the source when another server claims the thread.
 *
 * Every 200 ms one visit to a store thread looks at the holds of all threads with such streams. A
 * new source is asked for the events above the last one that was sent. It has all that it made; the
 * old source is read first, up to the number at which the new one began: it says in marks
 * (hd_event_stream_options.has_marks) how far its reader has come. Then the stream changes between
 * two events, and events that both sources have are sent once. A source that is gone is not waited
 * for; what it had not stored is lost with it, and the next attempt of its runs says so.
 *
 * Belongs to the loop.
 */
#ifndef HD_API_STREAM_FOLLOW_H
#define HD_API_STREAM_FOLLOW_H

#include <stdbool.h>

#include "api/api.h"
#include "api/event_stream.h"
#include "base/compiler.h"

struct hd_stream_follows;

/* *out is NULL without a cluster. */
HD_MUST_CHECK int hd_stream_follows_create(struct hd_app *app, struct hd_stream_follows **out);
/* Every stream must have ended. */
void hd_stream_follows_destroy(struct hd_stream_follows *follows);

/* The request is a client's, and its thread may be held by other servers. */
bool hd_stream_follow_applies(const struct hd_call *call);
/*
 * For `then` to return, as hd_event_stream_send(). NULL as log: hd_forward_source() has the events.
 */
HD_MUST_CHECK struct hd_step hd_stream_follow_send(struct hd_call *call, struct hd_event_log *log,
                                                   const struct hd_event_stream_options *events);

/* At the source, for the server that follows: what it needs to know of the log. Adds headers. */
void hd_stream_follow_announce(struct hd_call *call, const struct hd_event_log *log,
                               struct hd_event_stream_options *events);

#endif
