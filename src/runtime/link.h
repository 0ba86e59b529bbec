/*
 * A connection to a worker: frames over a Unix or TCP socket on the loop.
 *
 * Frames sent in one loop iteration are written together, by hd_link_flush(). Frames received are
 * delivered as soon as they are complete. A link that ended, or was closed, makes no more
 * callbacks; its memory is freed when the loop has closed its socket.
 */
#ifndef HD_RUNTIME_LINK_H
#define HD_RUNTIME_LINK_H

#include <stdbool.h>
#include <uv.h>

#include "base/compiler.h"
#include "runtime/frame.h"
#include "runtime/runtime.h"

struct hd_link;

/* The reason of an end without a protocol error. */
#define HD_LINK_CLOSED "it closed the connection"

struct hd_link_events {
    /* The frame is borrowed, unless hd_link_keep() is called. False: it is not allowed now. */
    bool (*on_frame)(void *ctx, const struct hd_frame *frame);
    /* The peer closed, or sent an invalid frame: `why`. No callback follows. */
    void (*on_end)(void *ctx, const char *why);
    /* Bytes of hd_link_send() were written. */
    void (*on_sent)(void *ctx);
};

/*
 * Accepts the listener's waiting connection, a uv_pipe_t or a uv_tcp_t, and reads from it.
 * `on_closed` is called when its memory is freed, after hd_link_close().
 */
HD_MUST_CHECK int hd_link_accept(uv_stream_t *listener, const struct hd_link_events *events,
                                 void *ctx, void (*on_closed)(void *arg), void *arg,
                                 struct hd_link **out);
/* Replaces the callbacks, except on_closed. */
void hd_link_hand_over(struct hd_link *link, const struct hd_link_events *events, void *ctx);
/* Sets the maximum length of frames received. */
void hd_link_set_limit(struct hd_link *link, size_t limit);
/*
 * No callback follows except on_closed. Data sent before is still written if the socket takes it at
 * once.
 */
void hd_link_close(struct hd_link *link);

/*
 * `release` NULL: the message is borrowed for the call. Otherwise 0: its bytes are borrowed until
 * release(arg) is called, never before this returns. HD_READY: they were copied, and `release` is
 * not called.
 */
HD_MUST_CHECK int hd_link_send(struct hd_link *link, enum hd_frame_type type, uint32_t id,
                               const struct hd_rt_message *message, void (*release)(void *arg),
                               void *arg);
void hd_link_flush(struct hd_link *link);
/* Bytes queued and not yet written. */
size_t hd_link_unsent(const struct hd_link *link);

/*
 * In on_frame: moves or copies the frame's bytes to *memory (hd_free()); the frame then refers to
 * it.
 */
HD_MUST_CHECK int hd_link_keep(struct hd_link *link, struct hd_frame *frame, char **memory);

void hd_link_set_reading(struct hd_link *link, bool is_on);
/* Bytes received since the last call. */
size_t hd_link_heard(struct hd_link *link);

#endif
