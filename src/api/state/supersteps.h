/*
 * Changing states by hand: updates as requests give them, and what they mean for
 * the record of their thread. For store threads.
 */
#ifndef HD_API_STATE_SUPERSTEPS_H
#define HD_API_STATE_SUPERSTEPS_H

#include "api/api.h"
#include "api/state/checkpoint_target.h"
#include "api/worker_query.h"
#include "graph/state/state.h"

/* Lists are in the arena, their values are counted. */
struct hd_supersteps {
    struct hd_superstep *list;
    size_t count;
};

/* The body's list [{"updates": [{"values", "command", "as_node"}, …]}, …]; none: count 0. */
HD_MUST_CHECK int hd_supersteps_read(struct hd_call *call, struct hd_supersteps *out);
/* HD_EINVAL: the type of `values` in the body does not match what the next superstep takes. */
HD_MUST_CHECK int hd_supersteps_check_values(struct hd_call *call);
/* One superstep from the body's `values` and `as_node`. */
HD_MUST_CHECK int hd_supersteps_read_values(struct hd_call *call, struct hd_supersteps *out);
/* Also after one of them failed. */
void hd_supersteps_fini(struct hd_supersteps *supersteps);

/*
 * Applies them at target->checkpoint_id, or at the current head, and makes the last
 * checkpoint that this gives the current head. *config is that checkpoint's (state.h),
 * the caller's; the record in target->thread is as it is stored then.
 */
HD_MUST_CHECK int hd_supersteps_apply(struct hd_call *call, struct hd_checkpoint_target *target,
                                      const struct hd_supersteps *supersteps,
                                      struct hd_val **config);

/* Applies the new head to the record of target->thread, as it is then stored. */
HD_MUST_CHECK int hd_supersteps_refresh(struct hd_call *call, struct hd_checkpoint_target *target,
                                        struct hd_slice checkpoint_id);
/* Of the checkpoints that are made. NULL: no memory. */
HD_MUST_CHECK struct hd_val *hd_supersteps_metadata(const struct hd_checkpoint_target *target);

/* ---- through a worker ------------------------------------------------- */

/* Slices are the arena's. */
struct hd_supersteps_remote {
    struct hd_checkpoint_target *target;
    struct hd_slice head, text;             /* the question */
    struct hd_slice checkpoint_id, ns, map; /* the answer */
};

/*
 * On a store thread: builds the query after the body was read; `from_values`: as
 * hd_supersteps_read_values() reads it. The target must stay.
 */
HD_MUST_CHECK int hd_supersteps_prepare(struct hd_call *call, struct hd_checkpoint_target *target,
                                        bool from_values, struct hd_supersteps_remote *out);
/* On the loop. One of the two is called, which owns the call then. */
void hd_supersteps_ask(struct hd_call *call, const struct hd_supersteps_remote *remote,
                       hd_worker_reply_fn then, void (*otherwise)(struct hd_call *call, int err));
/* On the loop: what the worker has answered. */
HD_MUST_CHECK int hd_supersteps_answer(struct hd_call *call, const struct hd_rt_message *message,
                                       struct hd_supersteps_remote *remote);
/* On a store thread: does the work of hd_supersteps_apply() after the checkpoints are stored. */
HD_MUST_CHECK int hd_supersteps_settle(struct hd_call *call,
                                       const struct hd_supersteps_remote *remote,
                                       struct hd_val **config);

#endif
