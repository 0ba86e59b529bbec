/*
 * The stream mode `messages` of clients: after each piece, the whole message so far. One object per
 * run joins the data of HD_STREAM_MESSAGES and produces:
 *
 *   messages/metadata  once per message: {id: {"metadata": {…}}}
 *   messages/partial   after each piece: [message so far]
 *   messages/complete  when the message is complete: [message]
 */
#ifndef HD_GRAPH_STREAM_PARTIALS_H
#define HD_GRAPH_STREAM_PARTIALS_H

#include "base/compiler.h"
#include "value/val.h"

/* Zero-initialise. Used by one thread only, like its values. */
struct hd_partials {
    struct hd_val *messages; /* by id: the joined pieces, or true if complete and sent */
};

void hd_partials_fini(struct hd_partials *partials);

/* Both are borrowed; `event` is one of the names above. */
typedef void (*hd_partials_fn)(void *ctx, const char *event, const struct hd_val *data);

/* Data of HD_STREAM_MESSAGES: [message or piece, metadata]. 0 or HD_ENOMEM. */
HD_MUST_CHECK int hd_partials_message(struct hd_partials *partials, const struct hd_val *pair,
                                      hd_partials_fn fn, void *ctx);

/* Data of HD_STREAM_VALUES. Messages that were not sent before, such as the input, are complete. */
HD_MUST_CHECK int hd_partials_values(struct hd_partials *partials, const struct hd_val *values,
                                     hd_partials_fn fn, void *ctx);

#endif
