/* Shared by the files of this folder. */
#ifndef HD_GRAPH_STATE_STATE_INTERNAL_H
#define HD_GRAPH_STATE_STATE_INTERNAL_H

#include "base/buf.h"
#include "base/compiler.h"
#include "base/slice.h"
#include "base/uuid.h"
#include "graph/decl/graph.h"
#include "graph/engine/checkpoint_state.h"
#include "graph/engine/failure.h"
#include "graph/engine/tasks.h"
#include "graph/engine/writes.h"
#include "graph/state/state.h"
#include "value/val.h"

/* A loaded checkpoint. */
struct hd_found {
    const struct hd_graph *graph; /* the graph of the namespace */
    struct hd_graph *guessed;     /* the same, derived from an open graph's checkpoint; or NULL */
    char *place;                  /* namespace of its stored checkpoints */
    char *ns;                     /* the same, relative to the address's root: the end of `place` */
    bool is_there;
    struct hd_checkpoint_state live;
    struct hd_pending_writes pending_writes;
    struct hd_val *metadata; /* object; NULL: no checkpoint */
    char parent[HD_UUID_SIZE];
    int64_t step; /* of the checkpoint; -1 without one */
};

HD_MUST_CHECK int hd_found_load(struct hd_found *found, const struct hd_address *at,
                                struct hd_failure *failure);
/* Resolves the address and reads its checkpoint; *tuple is NULL if none is stored. */
HD_MUST_CHECK int hd_found_fetch(struct hd_found *found, const struct hd_address *at,
                                 struct heddle_tuple **tuple, struct hd_failure *failure);
HD_MUST_CHECK int hd_found_take(struct hd_found *found, const struct heddle_tuple *tuple,
                                struct hd_failure *failure);
/* True if the namespace, relative to the graph's root, belongs to one of its subgraphs. */
bool hd_state_knows_ns(const struct hd_graph *graph, struct hd_slice ns);

/* For an open graph: derives a graph from the checkpoint. Call before hd_found_take(). */
HD_MUST_CHECK int hd_found_fit(struct hd_found *found, const struct heddle_tuple *tuple,
                               struct hd_failure *failure);
HD_MUST_CHECK int hd_found_init(struct hd_found *found, const struct hd_address *at,
                                struct hd_failure *failure);
void hd_found_fini(struct hd_found *found);

/*
 * True if the state's values can be copied as stored: no write has to be applied to them.
 * `is_live`: writes of finished tasks would be applied.
 */
bool hd_tuple_is_plain(const struct hd_graph *graph, const struct heddle_tuple *tuple,
                       bool is_live);
/* True if a channel's value equals its stored checkpoint value. */
bool hd_reducer_shows_stored(enum hd_graph_reducer reducer);
/* For a plain tuple: appends the values as JSON, all or `only` one channel (empty: all). */
HD_MUST_CHECK int hd_tuple_render(const struct hd_graph *graph, const struct heddle_tuple *tuple,
                                  struct hd_slice only, struct hd_buf *out);

/* The C of state.h; `id` empty: null. */
HD_MUST_CHECK struct hd_val *hd_state_config(struct hd_slice thread, const char *ns, const char *id,
                                             const struct hd_val *metadata);
/* Applies the pending writes that belong to no task, with or without new versions. */
HD_MUST_CHECK int hd_found_apply_null(struct hd_found *found, bool is_versioned,
                                      struct hd_failure *failure);
/* Sets the tasks' writes from the stored pending writes, and applies them. */
HD_MUST_CHECK int hd_found_apply_tasks(struct hd_found *found, struct hd_tasks *tasks, bool all,
                                       bool is_versioned, struct hd_failure *failure);

#endif
