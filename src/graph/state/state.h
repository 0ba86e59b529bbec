/*
 * Looking at what is stored of a graph's threads, and changing it by hand: what
 * LangGraph calls get_state, get_state_history, update_state and
 * bulk_update_state. These wait for the store; no run is needed, and none is
 * disturbed. They may be called on any thread (heddle_defer), also while the loop
 * and other threads use the same graph: each call makes values of its own, which
 * belong to the thread that made them, or to whom it hands them all over.
 *
 * A state is an object:
 *
 *   {"values": {…}, "next": [node, …],
 *    "tasks": [{"id", "name", "path", "error", "interrupts", "state", "result"}, …],
 *    "metadata": {…}, "created_at": time, "config": C, "parent_config": C,
 *    "interrupts": […]}
 *
 * where C is {"thread_id", "checkpoint_ns", "checkpoint_id"} and, in subgraphs,
 * "checkpoint_map"; namespaces are relative to the address's root. A task's `state` is
 * null, the C of its subgraph, or, when subgraphs are requested, a state.
 */
#ifndef HD_GRAPH_STATE_STATE_H
#define HD_GRAPH_STATE_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/compiler.h"
#include "base/json.h"
#include "base/slice.h"
#include "graph/decl/graph.h"
#include "value/val.h"

struct hd_allowance;
struct heddle;
struct hd_failure;

/* Which checkpoint of which graph. Borrows everything for the call. */
struct hd_address {
    struct heddle *store;
    const struct hd_graph *graph; /* the root graph, also when `ns` is a subgraph's */
    struct hd_slice principal;
    struct hd_slice thread;
    int64_t guard;                 /* of what is stored: see struct hd_put_extras; 0: none */
    struct hd_slice root;          /* where its checkpoints are stored: ns.h; empty: "" */
    struct hd_slice ns;            /* relative to `root`; empty: the root graph */
    struct hd_slice checkpoint_id; /* empty: the latest */
    /*
     * States are only to be rendered: instead of `values` they have `values_text`, the
     * JSON that clients see, as a string. That saves making values of what is stored.
     */
    bool as_text;
    bool without_values;            /* states have no values and no text; best with as_text */
    struct hd_allowance *allowance; /* of values that are read (store/allowance.h); NULL: none */
    bool keeps_values;    /* a history: the caller keeps the values of all states, not of one */
    struct hd_slice only; /* hd_state_values() may leave out all channels but this; empty: none */
};

/*
 * HD_EINVAL and others with the cause in `failure`, which the caller lets go. A
 * thread without checkpoints has a state too: without values and metadata.
 */
HD_MUST_CHECK int hd_state_get(const struct hd_address *at, bool subgraphs, struct hd_val **out,
                               struct hd_failure *failure);

/* Newest first. `state` is borrowed; not 0 ends the listing and is returned. */
typedef int (*hd_state_fn)(void *ctx, const struct hd_val *state);

/* `limit` negative: all. `before`, `filter`: as in heddle_query; may be empty. */
HD_MUST_CHECK int hd_state_history(const struct hd_address *at, int64_t limit,
                                   struct hd_slice before, struct hd_slice filter, hd_state_fn fn,
                                   void *ctx, struct hd_failure *failure);

/*
 * Only what hd_state_get() calls `values`, appended as the JSON that clients see: {}
 * for a thread without checkpoints. Costs reading the checkpoint and writing it out.
 */
HD_MUST_CHECK int hd_state_values(const struct hd_address *at, struct hd_buf *out,
                                  struct hd_failure *failure);

/* Checkpoints of an address, in the order in which they came to be. */
struct hd_state_walk {
    const struct hd_slice *ids;
    size_t count;
    size_t known; /* of the first so many nothing is told; what they have is not new */
};

/*
 * `list`: what ids[which] brought to a list, as clients see it, and perhaps elements that one
 * before it has too. NULL: that is not known of this one, and its values have to be looked at. Not
 * 0 ends the walk and is returned.
 */
typedef int (*hd_state_delta_fn)(void *ctx, size_t which, hd_json_val list);

/*
 * How the list in channel at->only came to be: costs about as much as it has in the end, where
 * hd_state_values() of each checkpoint would cost its square. In order; those that brought
 * nothing are left out.
 */
HD_MUST_CHECK int hd_state_delta(const struct hd_address *at, const struct hd_state_walk *walk,
                                 hd_state_delta_fn fn, void *ctx, struct hd_failure *failure);

/*
 * A state as the HTTP API shows it (ThreadState): `config` is called `checkpoint`,
 * a task names the place of its subgraph's states in `checkpoint`, or has one in
 * `state`. `thread_id` is what clients call the thread. Namespaces are shown below
 * `root`, as they are stored; with an empty one they stay relative. HD_ELIMIT when it
 * does not fit the buffer, or HD_ENOMEM; appends nothing then.
 */
HD_MUST_CHECK int hd_state_render(struct hd_buf *out, const struct hd_val *state,
                                  struct hd_slice thread_id, struct hd_slice root);
/* The same into a writer, which keeps the error. */
void hd_state_put(struct hd_jw *jw, const struct hd_val *state, struct hd_slice thread_id,
                  struct hd_slice root);
/* A C alone, as a state shows it in `checkpoint`. */
void hd_state_put_config(struct hd_jw *jw, const struct hd_val *config, struct hd_slice thread_id,
                         struct hd_slice root);

struct hd_update {
    const struct hd_val *values; /* an object, a command, or NULL */
    struct hd_slice as_node;     /* empty: whoever wrote last */
    struct hd_slice task_id;     /* empty: the task's that it stands for */
};

struct hd_superstep {
    const struct hd_update *updates;
    size_t count;
};

/* *out: the C of the new checkpoint. `metadata` (may be NULL) is added to the checkpoints'. */
HD_MUST_CHECK int hd_state_update(const struct hd_address *at, const struct hd_superstep *steps,
                                  size_t count, const struct hd_val *metadata, struct hd_val **out,
                                  struct hd_failure *failure);

#endif
