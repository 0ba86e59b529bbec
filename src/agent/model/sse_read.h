/* Parses server-sent events, in pieces of any size. Pure. */
#ifndef HD_AGENT_MODEL_SSE_READ_H
#define HD_AGENT_MODEL_SSE_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/compiler.h"
#include "base/slice.h"

struct hd_sse_event {
    struct hd_slice name; /* empty: none */
    struct hd_slice data; /* lines joined by \n */
    struct hd_slice id;   /* the last one received */
    bool has_id;          /* in this event */
};

struct hd_sse_read {
    struct hd_buf line, data, name, id;
    int64_t retry_ms; /* -1: none */
    bool has_data, has_id;
    bool was_cr;    /* skip a \n after it */
    bool has_begun; /* a byte order mark is only allowed before */
};

/* `max` bytes of an event at most. */
void hd_sse_read_init(struct hd_sse_read *sse, size_t max);
void hd_sse_read_fini(struct hd_sse_read *sse);
/*
 * Calls `fn` for each complete event; its error ends reading and is returned. HD_ELIMIT: an event
 * is too large, or HD_ENOMEM.
 */
typedef int (*hd_sse_fn)(void *ctx, const struct hd_sse_event *event);
HD_MUST_CHECK int hd_sse_read(struct hd_sse_read *sse, struct hd_slice bytes, hd_sse_fn fn,
                              void *ctx);
/* Whether the stream may end here: no event is incomplete. */
bool hd_sse_read_is_whole(const struct hd_sse_read *sse);

#endif
