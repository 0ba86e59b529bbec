/* State updates: their request format, and their effect on the thread's record. For store
 * threads. */
#ifndef HD_API_STATE_SUPERSTEPS_H
#define HD_API_STATE_SUPERSTEPS_H

#include "api/api.h"
#include "api/state/checkpoint_target.h"
#include "api/request/worker_query.h"
#include "graph/state/state.h"

/* Lists are in the arena; their values are reference counted. */
struct hd_supersteps {
    struct hd_superstep *list;
    size_t count;
};

/* The body's list [{"updates": [{"values", "command", "as_node"}, …]}, …]; absent: count 0. */
HD_MUST_CHECK int hd_supersteps_read(struct hd_call *call, struct hd_supersteps *out);
/* HD_EINVAL: `values` in the body is neither an object, a list nor null. */
HD_MUST_CHECK int hd_supersteps_check_values(struct hd_call *call);
/* One superstep from the body's `values` and `as_node`. */
HD_MUST_CHECK int hd_supersteps_read_values(struct hd_call *call, struct hd_supersteps *out);
/* Also after a failed read. */
void hd_supersteps_fini(struct hd_supersteps *supersteps);

/* Applies the supersteps at target->checkpoint_id, or at the current head, and makes the last new
 * checkpoint the current head. *config is that checkpoint's (state.h) and belongs to the caller;
 * target->thread becomes the stored record. */
HD_MUST_CHECK int hd_supersteps_apply(struct hd_call *call, struct hd_checkpoint_target *target,
                                      const struct hd_supersteps *supersteps,
                                      struct hd_val **config);

/* Applies the new head to the record of target->thread and stores it. */
HD_MUST_CHECK int hd_supersteps_refresh(struct hd_call *call, struct hd_checkpoint_target *target,
                                        struct hd_slice checkpoint_id);
/* Metadata of the new checkpoints. NULL: no memory. */
HD_MUST_CHECK struct hd_val *hd_supersteps_metadata(const struct hd_checkpoint_target *target);

/* ---- through a worker ------------------------------------------------- */

/* Slices are in the arena. */
struct hd_supersteps_remote {
    struct hd_checkpoint_target *target;
    struct hd_slice head, text;             /* the query */
    struct hd_slice checkpoint_id, ns, map; /* the reply */
};

/* On a store thread: builds the query after the body was read; `from_values`: in the format of
 * hd_supersteps_read_values(). The target must outlive the query. */
HD_MUST_CHECK int hd_supersteps_prepare(struct hd_call *call, struct hd_checkpoint_target *target,
                                        bool from_values, struct hd_supersteps_remote *out);
/* On the loop, for `then` to return: hd_call_query_worker(). */
HD_MUST_CHECK struct hd_step hd_supersteps_query(struct hd_call *call,
                                                 const struct hd_supersteps_remote *remote,
                                                 hd_worker_reply_fn on_reply, hd_error_fn on_error);
/* On the loop: reads the worker's reply. */
HD_MUST_CHECK int hd_supersteps_read_reply(struct hd_call *call,
                                           const struct hd_rt_message *message,
                                           struct hd_supersteps_remote *remote);
/* On a store thread: does the work of hd_supersteps_apply() after the checkpoints are stored. */
HD_MUST_CHECK int hd_supersteps_settle(struct hd_call *call,
                                       const struct hd_supersteps_remote *remote,
                                       struct hd_val **config);

#endif
