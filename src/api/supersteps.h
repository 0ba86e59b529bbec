/*
 * Changing states by hand: updates as requests give them, and what they mean for
 * the record of their thread. For store threads.
 */
#ifndef HD_API_SUPERSTEPS_H
#define HD_API_SUPERSTEPS_H

#include "api/api.h"
#include "api/spot.h"
#include "graph/state.h"

/* Lists are in the arena, their values are counted. */
struct hd_supersteps {
    struct hd_superstep *list;
    size_t count;
};

/* The body's list [{"updates": [{"values", "command", "as_node"}, …]}, …]; none: count 0. */
HD_MUST_CHECK int hd_supersteps_read(struct hd_call *call, struct hd_supersteps *out);
/* One superstep from the body's `values` and `as_node`. */
HD_MUST_CHECK int hd_supersteps_read_values(struct hd_call *call, struct hd_supersteps *out);
/* Also after one of them failed. */
void hd_supersteps_fini(struct hd_supersteps *supersteps);

/*
 * Applies them at spot->checkpoint_id, or at the current head, and makes the last
 * checkpoint that this gives the current head. *config is that checkpoint's (state.h),
 * the caller's; the record in spot->thread is as it is stored then.
 */
HD_MUST_CHECK int hd_supersteps_apply(struct hd_call *call, struct hd_spot *spot,
                                      const struct hd_supersteps *supersteps,
                                      struct hd_val **config);

#endif
