/*
 * A connection to a worker: frames over a Unix or TCP socket on the loop.
 *
 * Frames that are sent in one turn of the loop leave together, by hd_link_flush(). Frames that come
 * are given on as soon as they are whole. A link that ended, or was closed, calls nothing any more;
 * its memory goes when the loop has closed its socket.
 */
#ifndef HD_RUNTIME_LINK_H
#define HD_RUNTIME_LINK_H

#include <stdbool.h>
#include <uv.h>

#include "base/compiler.h"
#include "runtime/frame.h"
#include "runtime/runtime.h"

struct hd_link;

/* The reason of an end that is no fault of what was sent. */
#define HD_LINK_CLOSED "it closed the connection"

struct hd_link_events {
    /* The frame is borrowed, unless hd_link_keep() is called. False: it is none that may come. */
    bool (*on_frame)(void *ctx, const struct hd_frame *frame);
    /* The other side closed, or sent what is no frame: `why`. Nothing follows. */
    void (*on_end)(void *ctx, const char *why);
    /* Bytes of hd_link_send() have left. */
    void (*on_sent)(void *ctx);
};

/*
 * Takes the connection that waits at the listener, a uv_pipe_t or a uv_tcp_t, and reads it.
 * `on_closed` is called when its memory has gone; also when this fails.
 */
HD_MUST_CHECK int hd_link_accept(uv_stream_t *listener, const struct hd_link_events *events,
                                 void *ctx, void (*on_closed)(void *arg), void *arg,
                                 struct hd_link **out);
/* Somebody else is told from now on; on_closed stays. */
void hd_link_hand_over(struct hd_link *link, const struct hd_link_events *events, void *ctx);
/* The largest frame that is read from now on. */
void hd_link_set_limit(struct hd_link *link, size_t limit);
/* Nothing is called any more but on_closed. What was sent before and can leave at once does. */
void hd_link_close(struct hd_link *link);

/*
 * `release` NULL: the message is borrowed for the call. Otherwise its bytes are borrowed until
 * release(arg), which is called exactly once: also when the call fails, and perhaps before it
 * returns.
 */
HD_MUST_CHECK int hd_link_send(struct hd_link *link, enum hd_frame_type type, uint32_t id,
                               const struct hd_rt_message *message, void (*release)(void *arg),
                               void *arg);
void hd_link_flush(struct hd_link *link);
/* Bytes that were sent and have not left. */
size_t hd_link_unsent(const struct hd_link *link);

/* In on_frame: moves or copies the bytes of the frame, which then refers to them, to *memory
 * (hd_free()). */
HD_MUST_CHECK int hd_link_keep(struct hd_link *link, struct hd_frame *frame, char **memory);

void hd_link_set_reading(struct hd_link *link, bool is_on);
/* Bytes that came since it was asked last. */
size_t hd_link_heard(struct hd_link *link);

#endif
