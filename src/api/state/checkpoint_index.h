/*
 * The tree of checkpoints without their values: ids, parents and metadata. For store threads.
 */
#ifndef HD_API_STATE_CHECKPOINT_INDEX_H
#define HD_API_STATE_CHECKPOINT_INDEX_H

#include "api/api.h"
#include "api/state/checkpoint_target.h"
#include "base/arena.h"
#include "base/json.h"
#include "base/map.h"

/* A checkpoint. */
struct hd_checkpoint_node {
    struct hd_slice ns;
    struct hd_slice id;
    struct hd_slice parent_id; /* empty: none */
    struct hd_slice created_at;
    struct hd_slice source;
    struct hd_slice run_id; /* empty: not made by a run */
    struct hd_slice graph_id;
    struct hd_slice assistant_id;
    struct hd_slice messages_version;  /* the version of its messages; empty: unknown */
    struct hd_slice task_id;           /* of the delegating agent; empty: made by a user */
    struct hd_checkpoint_node *parent; /* NULL: none, or pruned */
    struct hd_checkpoint_node *child;  /* the newest child */
    struct hd_checkpoint_node *older;  /* the next older child of its parent */
    size_t children;
    void *branch; /* for the user of the index */
};

struct hd_checkpoint_index {
    struct hd_checkpoint_node *list; /* oldest first, as the store lists them */
    size_t *by_id;                   /* indices into `list`, in the order of ids */
    size_t count;
    size_t cap;
    struct hd_arena arena;
};

/* Reads one namespace; with `ns` NULL all root namespaces of the thread. */
HD_MUST_CHECK int hd_checkpoint_index_read(struct hd_call *call, struct hd_slice thread_id,
                                           const struct hd_slice *ns,
                                           struct hd_checkpoint_index *out);
/* Also after a failed read. */
void hd_checkpoint_index_fini(struct hd_checkpoint_index *points);
/* NULL: the namespace has no such checkpoint. An empty id is the newest. */
struct hd_checkpoint_node *hd_checkpoint_index_find(const struct hd_checkpoint_index *points,
                                                    struct hd_slice ns, struct hd_slice id);

/* The values at a checkpoint, as clients see them; channels other than `messages` may be missing.
 * The caller frees `json`. */
HD_MUST_CHECK int hd_checkpoint_index_messages(struct hd_call *call,
                                               const struct hd_checkpoint_target *target,
                                               struct hd_slice id, struct hd_json *json);
/* The messages that checkpoints added, as hd_state_delta() reports them. */
HD_MUST_CHECK int hd_checkpoint_index_delta(struct hd_call *call,
                                            const struct hd_checkpoint_target *target,
                                            const struct hd_state_walk *walk, hd_state_delta_fn fn,
                                            void *ctx);

#endif
