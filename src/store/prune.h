/*
 * Pruning a thread: which of its checkpoints stay, and removing the others.
 *
 *   prune_tree.h   reads the trees of a thread and marks what stays
 *   prune.c        counts, removes the rest in portions, joins what stays
 *
 * Whatever stays reads as before: its values, its writes, its pending sends and the histories of
 * its delta channels. With HEDDLE_KEEP_BRANCHES, and when a branch falls, its parent becomes the
 * nearest ancestor that stays, so that trees, forks and histories have no holes.
 *
 * The rows are read without the lane, and each batch enters it for itself, so that others write
 * meanwhile. A batch expects that nothing was put since the trees were read; otherwise they are
 * read again, and when that goes on, with the lane held.
 */
#ifndef HD_STORE_PRUNE_H
#define HD_STORE_PRUNE_H

#include "base/map.h"
#include "store/batch.h"
#include "store/store.h"

struct hd_keep {
    enum heddle_prune strategy;
    /*
     * Instead of a strategy: this checkpoint goes with everything that grows from it and all that
     * belongs to tasks of those; the rest stays. At once, not in portions. NULL: none.
     */
    const struct hd_key *fall;
    size_t last;                /* HEDDLE_KEEP_BRANCHES: of each line, at least 1 */
    const struct hd_key *heads; /* checkpoints that stay; of other threads: ignored */
    size_t head_count;
    bool is_dry; /* counts, changes nothing */
    /*
     * Operations of the server's tables that take effect with the first removal, or do not; NULL:
     * none. If they conflict nothing happens, and the answer is HD_ECONFLICT.
     */
    const struct hd_batch *also;
    struct heddle_usage
        *removed; /* added to what is there; NULL: nobody counts, which saves time */
};

/* A thread that is not there is no error, nor is a checkpoint that fell already. */
HD_MUST_CHECK int hd_keep(struct hd_store *store, struct hd_slice thread,
                          const struct hd_keep *keep, struct hd_fault *fault);

/* ---- collect.c: chunks ---- */

struct hd_collection {
    struct hd_slice thread;
    int64_t epoch; /* the thread's, odd */
    bool has_lane; /* the caller does; otherwise each batch enters it */
    /* Only counts, as if the checkpoints that are in here (hd_keep_name()) were gone. */
    const struct hd_map *doomed;
    struct heddle_usage *removed; /* or NULL */
};

/* Deletes the chunks that nothing in the thread refers to. */
HD_MUST_CHECK int hd_collect(struct hd_store *store, const struct hd_collection *collection,
                             struct hd_fault *fault);

/* Applies the batch, in the lane of the thread. `failed` as of hd_backend_apply(), or NULL. */
HD_MUST_CHECK int hd_keep_apply(struct hd_store *store, struct hd_slice thread,
                                const struct hd_batch_builder *builder, bool has_lane,
                                size_t *failed, struct hd_fault *fault);
/* A checkpoint's name in such a map, in the arena. */
HD_MUST_CHECK int hd_keep_name(struct hd_arena *arena, struct hd_slice ns, struct hd_slice id,
                               struct hd_slice *out);
/* Bytes of a row as heddle_thread_usage() counts them. */
int64_t hd_row_bytes(enum hd_table_id table, const struct hd_cell *cells);

#endif
