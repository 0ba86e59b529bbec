/*
 * Channels hold the state of a graph. A channel has a value or is empty, and reduces all writes of
 * a superstep at once. Behaviour and errors are exactly those of LangGraph's channels.
 *
 * The loop calls hd_channel_update() at the end of every superstep (also without values),
 * hd_channel_consume() when a node that the channel triggers has run, and hd_channel_finish() when
 * no task is left.
 *
 * A const table in channel.c has one entry per reducer.
 */
#ifndef HD_GRAPH_ENGINE_CHANNEL_H
#define HD_GRAPH_ENGINE_CHANNEL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/compiler.h"
#include "base/error.h"
#include "graph/decl/graph.h"
#include "value/val.h"

/* Deeper values are refused, which leaves room for the JSON levels around a stored value. */
#define HD_CHANNEL_MAX_DEPTH (HD_JSON_MAX_DEPTH - 12)

struct hd_messages;

struct hd_channel {
    const struct hd_graph *graph;
    const struct hd_graph_channel *decl;
    struct hd_val *value;         /* NULL: empty; of a barrier: the list of names seen */
    bool is_finished;             /* of _AFTER reducers: the value is available */
    struct hd_messages *messages; /* index of a message list; created on first use */
};

/* The reason why a channel refused an update, as a Python exception. Zero-initialise it. */
struct hd_refusal {
    const char *type; /* "InvalidUpdateError" …, a literal; NULL: no refusal */
    struct hd_val *text;
};

void hd_refusal_fini(struct hd_refusal *refusal);

/* Initialises channel `index` of the graph, which must outlive it, to its initial value. */
void hd_channel_init(struct hd_channel *channel, const struct hd_graph *graph, size_t index);
void hd_channel_fini(struct hd_channel *channel);

/*
 * Sets the value that a checkpoint stored; `saved` NULL: the initial value. HD_EINVAL if the value
 * does not fit the channel, HD_ENOMEM.
 */
HD_MUST_CHECK int hd_channel_restore(struct hd_channel *channel, const struct hd_val *saved,
                                     struct heddle_error *fault);
/* The value to store in a checkpoint; *out is NULL if nothing is stored. The caller owns *out. */
HD_MUST_CHECK int hd_channel_checkpoint(const struct hd_channel *channel, struct hd_val **out);

/* Its value, borrowed; NULL if no value is available. */
struct hd_val *hd_channel_get(const struct hd_channel *channel);

static inline bool hd_channel_is_available(const struct hd_channel *channel)
{
    return hd_channel_get(channel) != NULL;
}

/*
 * Applies the writes of a superstep, in order. *has_changed is true if the channel gets a new
 * version. HD_EINVAL: refused, with the reason in `refusal` (which may be NULL); HD_ENOMEM. After
 * an error the channel is unchanged.
 */
HD_MUST_CHECK int hd_channel_update(struct hd_channel *channel, struct hd_val *const *values,
                                    size_t count, bool *has_changed, struct hd_refusal *refusal);

/*
 * *out is the value after such an update; NULL: none. Leaves the channel unchanged. The next update
 * is cheapest if *out was released before.
 */
HD_MUST_CHECK int hd_channel_peek(struct hd_channel *channel, struct hd_val *const *values,
                                  size_t count, struct hd_val **out, struct hd_refusal *refusal);

/* Both return true if the channel changed. */
bool hd_channel_consume(struct hd_channel *channel);
bool hd_channel_finish(struct hd_channel *channel);

/*
 * Prepares a write for add_messages: *out is a list of messages that all have ids. These ids are
 * the same in the stored writes of the task, in the state that routes see and in the state.
 */
HD_MUST_CHECK int hd_messages_prepare(const struct hd_val *write, struct hd_val **out,
                                      struct hd_refusal *refusal);

#endif
