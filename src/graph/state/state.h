/*
 * Reads and updates the stored states of a graph's threads: LangGraph's get_state,
 * get_state_history, update_state and bulk_update_state. The functions block on the store. They
 * need no run and do not disturb one. Any thread may call them (heddle_defer), even while the loop
 * and other threads use the same graph: each call creates its own values, which belong to the
 * calling thread until it hands all of them over to another.
 *
 * A state is an object:
 *
 *   {"values": {…}, "next": [node, …],
 *    "tasks": [{"id", "name", "path", "error", "interrupts", "state", "result"}, …],
 *    "metadata": {…}, "created_at": time, "config": C, "parent_config": C,
 *    "interrupts": […]}
 *
 * C is {"thread_id", "checkpoint_ns", "checkpoint_id"} and, in subgraphs, "checkpoint_map".
 * Namespaces are relative to the address's root. A task's `state` is null, the C of its subgraph,
 * or, if subgraphs are requested, a state.
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
#include "store/guard.h"
#include "value/val.h"

struct hd_allowance;
struct heddle;
struct hd_failure;

/* The address of a checkpoint. Borrows everything for the duration of the call. */
struct hd_address {
    struct heddle *store;
    const struct hd_graph *graph; /* the root graph, even if `ns` is a subgraph's */
    struct hd_slice principal;
    struct hd_slice thread;
    struct hd_guard guard;         /* of the stored rows: see struct hd_put_extras */
    struct hd_slice root;          /* namespace of the root graph's checkpoints: ns.h; empty: "" */
    struct hd_slice ns;            /* relative to `root`; empty: the root graph */
    struct hd_slice checkpoint_id; /* empty: the latest */
    /*
     * States have `values_text` instead of `values`: the JSON that clients see, as a string. For
     * states that are only rendered; saves creating values from the stored text.
     */
    bool as_text;
    bool without_values;            /* states have no values and no text; best with as_text */
    struct hd_allowance *allowance; /* for values read (store/allowance.h); NULL: none */
    bool keeps_values;              /* in a history, the caller keeps the values of all states */
    struct hd_slice only;           /* hd_state_values() may omit all other channels; empty: all */
};

/*
 * HD_EINVAL or another error, with the cause in `failure`, which the caller frees. A thread without
 * checkpoints has an empty state, without values and metadata.
 */
HD_MUST_CHECK int hd_state_get(const struct hd_address *at, bool subgraphs, struct hd_val **out,
                               struct hd_failure *failure);

/* Newest first. `state` is borrowed. A result other than 0 ends the listing and is returned. */
typedef int (*hd_state_fn)(void *ctx, const struct hd_val *state);

/* `limit` negative: no limit. `before`, `filter`: as in heddle_query; may be empty. */
HD_MUST_CHECK int hd_state_history(const struct hd_address *at, int64_t limit,
                                   struct hd_slice before, struct hd_slice filter, hd_state_fn fn,
                                   void *ctx, struct hd_failure *failure);

/*
 * Appends only the `values` of hd_state_get(), as the JSON that clients see; {} for a thread
 * without checkpoints. Costs reading the checkpoint and rendering it.
 */
HD_MUST_CHECK int hd_state_values(const struct hd_address *at, struct hd_buf *out,
                                  struct hd_failure *failure);

/* Checkpoints of an address, in the order of their creation. */
struct hd_state_walk {
    const struct hd_slice *ids;
    size_t count;
    size_t known; /* the first `known` ids report nothing; their elements are not new */
};

/*
 * `list`: the elements that ids[which] added to a list, as clients see them; may include elements
 * that an earlier checkpoint has too. NULL: unknown, so the values of this checkpoint must be read.
 * A result other than 0 ends the walk and is returned.
 */
typedef int (*hd_state_delta_fn)(void *ctx, size_t which, hd_json_val list);

/*
 * Reports the elements that each checkpoint added to the list in channel at->only, in order and
 * without checkpoints that added nothing. The cost is proportional to the final list; calling
 * hd_state_values() for each checkpoint would be quadratic.
 */
HD_MUST_CHECK int hd_state_delta(const struct hd_address *at, const struct hd_state_walk *walk,
                                 hd_state_delta_fn fn, void *ctx, struct hd_failure *failure);

/*
 * Appends a state in the form of the HTTP API (ThreadState): `config` is called `checkpoint`; a
 * task has the config of its subgraph in `checkpoint`, or its state in `state`. `thread_id` is the
 * clients' id of the thread. Namespaces are shown as stored, below `root`; with an empty `root`
 * they stay relative. HD_ELIMIT if it does not fit the buffer, or HD_ENOMEM; appends nothing on
 * error.
 */
HD_MUST_CHECK int hd_state_render(struct hd_buf *out, const struct hd_val *state,
                                  struct hd_slice thread_id, struct hd_slice root);
/* The same into a writer, which keeps the error. */
void hd_state_put(struct hd_jw *jw, const struct hd_val *state, struct hd_slice thread_id,
                  struct hd_slice root);
/* Writes a C alone, as a state has it in `checkpoint`. */
void hd_state_put_config(struct hd_jw *jw, const struct hd_val *config, struct hd_slice thread_id,
                         struct hd_slice root);

struct hd_update {
    const struct hd_val *values; /* an object, a command, or NULL */
    struct hd_slice as_node;     /* empty: the node that wrote last */
    struct hd_slice task_id;     /* empty: that of a pending task of the node, or a derived one */
};

struct hd_superstep {
    const struct hd_update *updates;
    size_t count;
};

/* *out: the C of the new checkpoint. `metadata` (may be NULL) is added to each checkpoint. */
HD_MUST_CHECK int hd_state_update(const struct hd_address *at, const struct hd_superstep *steps,
                                  size_t count, const struct hd_val *metadata, struct hd_val **out,
                                  struct hd_failure *failure);

#endif
