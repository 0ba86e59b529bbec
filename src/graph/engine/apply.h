/* The end of a superstep: applies the writes of its tasks to the channels. */
#ifndef HD_GRAPH_ENGINE_APPLY_H
#define HD_GRAPH_ENGINE_APPLY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/compiler.h"
#include "base/slice.h"

struct hd_failure;
struct hd_checkpoint_state;
struct hd_writes;

/* The writes of one task. */
struct hd_applied {
    size_t row; /* in live->seen */
    bool bumps; /* has triggers */
    const size_t *triggers;
    size_t trigger_count;
    const struct hd_writes *writes;
    /* Order: input, updates, pulled nodes by name, pushed ones by index. */
    int rank;
    struct hd_slice name;
    size_t index;
};

/*
 * Marks versions as seen, empties consumed channels and reduces the writes into the channels. With
 * `is_versioned` false no version changes, which serves to show a state with writes applied.
 * `updated` (by channel, zeroed before) is set for each channel that changed; may be NULL.
 * HD_EINVAL: a channel refuses a write; `failure` has the reason.
 */
HD_MUST_CHECK int hd_apply(struct hd_checkpoint_state *live, struct hd_applied *list, size_t count,
                           bool is_versioned, bool *updated, struct hd_failure *failure);

#endif
