/*
 * Prunes a thread: selects the checkpoints that stay and removes the others.
 *
 *   prune_tree.h   reads the trees of a thread and marks the checkpoints that stay
 *   prune.c        counts, removes the rest in portions, links the remaining ones
 *
 * Every remaining checkpoint reads as before: its values, its writes, its pending sends and the
 * histories of its delta channels. With HEDDLE_KEEP_BRANCHES, and when a branch is removed, its
 * parent becomes the nearest remaining ancestor, so that trees, forks and histories have no holes.
 *
 * The rows are read without the lane, and each batch enters it separately, so that other writers
 * can proceed. A batch expects that nothing was put since the trees were read; otherwise they are
 * read again, and after repeated conflicts with the lane held.
 */
#ifndef HD_STORE_PRUNE_H
#define HD_STORE_PRUNE_H

#include "base/map.h"
#include "store/batch.h"
#include "store/store.h"

struct hd_prune_options {
    enum heddle_prune strategy;
    /*
     * Replaces the strategy: removes this checkpoint with all its descendants and everything that
     * belongs to their tasks, or with an empty id the namespace and all namespaces below it; the
     * rest stays. In one batch, not in portions. NULL: not used.
     */
    const struct hd_key *fall;
    /*
     * Replaces the strategy: only the heads stay, with their ancestors and everything that belongs
     * to the tasks of these.
     */
    bool keeps_paths;
    size_t last;                /* HEDDLE_KEEP_BRANCHES: of each branch, at least 1 */
    const struct hd_key *heads; /* checkpoints that stay; those of other threads are ignored */
    size_t head_count;
    bool is_dry; /* count only, change nothing */
    /*
     * Operations on the server's tables that are applied together with the first removal, or not at
     * all; NULL: none. If they conflict nothing is removed, and the result is HD_ECONFLICT.
     */
    const struct hd_batch *also;
    struct heddle_usage
        *removed; /* added to the existing totals; NULL: no counting, which saves time */
};

/* A missing thread or an already removed checkpoint is not an error. */
HD_MUST_CHECK int hd_prune_thread(struct hd_store *store, struct hd_slice thread,
                                  const struct hd_prune_options *keep, struct heddle_error *fault);

/* ---- collect.c: chunks ---- */

struct hd_collection {
    struct hd_slice thread;
    int64_t epoch; /* the thread's, odd */
    bool has_lane; /* the caller holds the lane; otherwise each batch enters it */
    /* Only counts, as if the checkpoints in this map (hd_prune_name()) were gone. */
    const struct hd_map *doomed;
    struct heddle_usage *removed; /* or NULL */
};

/* Deletes the chunks that nothing in the thread refers to. */
HD_MUST_CHECK int hd_collect(struct hd_store *store, const struct hd_collection *collection,
                             struct heddle_error *fault);

/* Applies the batch, in the lane of the thread. `failed` as of hd_backend_apply(), or NULL. */
HD_MUST_CHECK int hd_prune_apply(struct hd_store *store, struct hd_slice thread,
                                 const struct hd_batch_builder *builder, bool has_lane,
                                 size_t *failed, struct heddle_error *fault);
/* The name of a checkpoint in such a map, in the arena. */
HD_MUST_CHECK int hd_prune_name(struct hd_arena *arena, struct hd_slice ns, struct hd_slice id,
                                struct hd_slice *out);
/* Bytes of a row as heddle_thread_usage() counts them. */
int64_t hd_row_bytes(enum hd_table_id table, const struct hd_cell *cells);

#endif
