/* A checkpoint in memory: channels, their versions, and the versions that each node has seen. */
#ifndef HD_GRAPH_ENGINE_CHECKPOINT_STATE_H
#define HD_GRAPH_ENGINE_CHECKPOINT_STATE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/slice.h"
#include "base/uuid.h"
#include "graph/decl/graph.h"

struct hd_channel;
struct hd_list_tracker;
struct hd_pending_writes;
struct hd_val;
struct heddle_tuple;

#define HD_CHECKPOINT_V 4 /* the format of stored checkpoints */

struct hd_version_seen {
    size_t channel;
    struct hd_val *version;
};

/* A row of versions_seen. Rows: nodes by index, then __input__ and __interrupt__. */
struct hd_versions_seen {
    bool is_there; /* false: the row is absent, which differs from an empty row */
    struct hd_version_seen *list;
    size_t count;
    size_t cap;
};

struct hd_checkpoint_state {
    const struct hd_graph *graph;
    struct hd_channel *channels;
    struct hd_val **versions;      /* by channel; NULL: none */
    struct hd_val *other_versions; /* object: of channels that the graph does not have */
    struct hd_versions_seen *seen;
    struct hd_val *other_seen; /* object: of nodes that the graph does not have */
    char id[HD_UUID_SIZE];
    char ts[40];
    bool *updated; /* by channel; meaningful when has_updated */
    bool has_updated;
    bool skips_state; /* does not load the values of the state's channels */
    char *floor;      /* HD_UUID_SIZE bytes: new ids sort after this id; or NULL */
};

static inline size_t hd_versions_seen_input(const struct hd_graph *graph)
{
    return graph->node_count;
}

static inline size_t hd_versions_seen_interrupt(const struct hd_graph *graph)
{
    return graph->node_count + 1;
}

/* Makes an empty checkpoint with a new id. */
HD_MUST_CHECK int hd_checkpoint_state_init(struct hd_checkpoint_state *live,
                                           const struct hd_graph *graph);
void hd_checkpoint_state_fini(struct hd_checkpoint_state *live);
bool hd_checkpoint_state_has_versions(const struct hd_checkpoint_state *live);
bool hd_checkpoint_state_any_updated(const struct hd_checkpoint_state *live);

/* NULL: not seen. */
struct hd_val *hd_versions_seen_get(const struct hd_versions_seen *seen, size_t channel);
HD_MUST_CHECK int hd_versions_seen_put(struct hd_versions_seen *seen, size_t channel,
                                       const struct hd_val *version);
/* a > b; NULL is less than every version. */
bool hd_version_after(const struct hd_val *a, const struct hd_val *b);
/* A version greater than every version of the checkpoint. */
HD_MUST_CHECK struct hd_val *hd_version_next(const struct hd_checkpoint_state *live);

/*
 * Fills an empty checkpoint, and `pending_writes` with its writes, from a stored one. `tracker`, by
 * channel, supplies the lists that the store did not return, and receives those it did; NULL: the
 * store returned every value.
 */
HD_MUST_CHECK int hd_checkpoint_state_load(struct hd_checkpoint_state *live,
                                           struct hd_pending_writes *pending_writes,
                                           struct hd_list_tracker *tracker,
                                           const struct heddle_tuple *tuple,
                                           struct heddle_error *fault);
/* Assigns a new id, which sorts after the current one and after live->floor, and a new time. */
void hd_checkpoint_state_renew(struct hd_checkpoint_state *live, int step);
/* Sets `floor` to `id` if `id` sorts after it. */
void hd_floor_raise(char floor[HD_UUID_SIZE], struct hd_slice id);
/* Appends the checkpoint as JSON, without values. */
HD_MUST_CHECK int hd_checkpoint_state_write(const struct hd_checkpoint_state *live,
                                            struct hd_buf *out);

/* True if the channel has a version that the node has not seen. */
bool hd_checkpoint_state_has_unseen(const struct hd_checkpoint_state *live,
                                    const struct hd_node *node, size_t channel);

/* The values of the channels that have one, in order; `indexes` NULL: the state's channels. */
HD_MUST_CHECK struct hd_val *hd_checkpoint_state_read(const struct hd_checkpoint_state *live,
                                                      const size_t *indexes, size_t count);

#endif
