/*
 * Channels: what a graph's state is made of. Each has a value or none, and a
 * way to take the writes of a superstep, all at once; these are LangGraph's,
 * to the letter, errors included.
 *
 * A channel is driven by the loop: hd_channel_update() at the end of every
 * superstep (without values too), hd_channel_consume() when a node that it
 * triggers has run, hd_channel_finish() when nothing is left to do.
 *
 * One const table (channel.c) has a line for each reducer.
 */
#ifndef HD_GRAPH_ENGINE_CHANNEL_H
#define HD_GRAPH_ENGINE_CHANNEL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/compiler.h"
#include "base/error.h"
#include "graph/decl/graph.h"
#include "value/val.h"

/* Deeper values are refused, so that what the text has around them fits as well. */
#define HD_CHANNEL_MAX_DEPTH (HD_JSON_MAX_DEPTH - 12)

struct hd_messages;

struct hd_channel {
    const struct hd_graph *graph;
    const struct hd_graph_channel *decl;
    struct hd_val *value; /* NULL: none; of a barrier the list of names seen, NULL: no one */
    bool is_finished;     /* of those that wait for the end */
    struct hd_messages *messages; /* what is known of a list of messages; made when needed */
};

/* Why a channel refused an update, as Python would have raised it. Zero-initialise it. */
struct hd_refusal {
    const char *type; /* "InvalidUpdateError" …, a literal; NULL: it did not refuse */
    struct hd_val *text;
};

void hd_refusal_fini(struct hd_refusal *refusal);

/* Channel `index` of the graph, which outlives it, as it is before any update. */
void hd_channel_init(struct hd_channel *channel, const struct hd_graph *graph, size_t index);
void hd_channel_fini(struct hd_channel *channel);

/*
 * Gives it the state that a checkpoint has for it; NULL: the checkpoint has
 * none. HD_EINVAL when no such channel can have left that, HD_ENOMEM.
 */
HD_MUST_CHECK int hd_channel_restore(struct hd_channel *channel, const struct hd_val *saved,
                                     struct hd_fault *fault);
/* What a checkpoint keeps of it; *out is NULL when that is nothing. The caller's. */
HD_MUST_CHECK int hd_channel_checkpoint(const struct hd_channel *channel, struct hd_val **out);

/* Its value, borrowed; NULL when it is not available. */
struct hd_val *hd_channel_get(const struct hd_channel *channel);

static inline bool hd_channel_is_available(const struct hd_channel *channel)
{
    return hd_channel_get(channel) != NULL;
}

/*
 * The writes of a superstep, in order. *has_changed says whether it gets a new
 * version. HD_EINVAL: refused, the reason is in `refusal` (which may be NULL);
 * HD_ENOMEM. It stays as it was then.
 */
HD_MUST_CHECK int hd_channel_update(struct hd_channel *channel, struct hd_val *const *values,
                                    size_t count, bool *has_changed, struct hd_refusal *refusal);

/*
 * What its value would be after such an update; NULL: none. It stays as it is.
 * The next update costs least when *out was given back before.
 */
HD_MUST_CHECK int hd_channel_peek(struct hd_channel *channel, struct hd_val *const *values,
                                  size_t count, struct hd_val **out, struct hd_refusal *refusal);

/* True when that changed it. */
bool hd_channel_consume(struct hd_channel *channel);
bool hd_channel_finish(struct hd_channel *channel);

/*
 * What add_messages makes of a write before it merges it: a list of messages
 * that all have ids. A write that went through here is the same in the task's
 * stored writes, in what routes see and in the state.
 */
HD_MUST_CHECK int hd_messages_prepare(const struct hd_val *write, struct hd_val **out,
                                      struct hd_refusal *refusal);

#endif
