/*
 * The stream mode that clients call `messages`: not pieces, but after each piece the
 * whole message as far as it is known. One object for a run gathers what
 * HD_STREAM_MESSAGES gives:
 *
 *   messages/metadata  once for each message: {id: {"metadata": {…}}}
 *   messages/partial   after each piece: [message so far]
 *   messages/complete  when it is whole: [message]
 */
#ifndef HD_GRAPH_STREAM_PARTIALS_H
#define HD_GRAPH_STREAM_PARTIALS_H

#include "base/compiler.h"
#include "value/val.h"

/* Zero-initialise it. Belongs to one thread, as its values do. */
struct hd_partials {
    struct hd_val *messages; /* object: by id what is known so far; true: whole, and told */
};

void hd_partials_fini(struct hd_partials *partials);

/* Borrows both; `event` is one of the names above. */
typedef void (*hd_partials_fn)(void *ctx, const char *event, const struct hd_val *data);

/* Data of HD_STREAM_MESSAGES: [message or piece, metadata]. 0 or HD_ENOMEM. */
HD_MUST_CHECK int hd_partials_message(struct hd_partials *partials, const struct hd_val *pair,
                                      hd_partials_fn fn, void *ctx);

/* Data of HD_STREAM_VALUES: messages in it that nobody has seen, such as the input's, are whole. */
HD_MUST_CHECK int hd_partials_values(struct hd_partials *partials, const struct hd_val *values,
                                     hd_partials_fn fn, void *ctx);

#endif
