/*
 * Taking away what a thread need not keep, or all of it. For store threads.
 *
 * What somebody may still want stays: the heads that were chosen, and the checkpoints at which runs
 * in flight begin. The record is expected to be as it was read, so that no run begins meanwhile at
 * what goes.
 */
#ifndef HD_RUN_PRUNE_H
#define HD_RUN_PRUNE_H

#include <heddle.h>

#include "base/compiler.h"
#include "base/error.h"
#include "config/ttl.h"
#include "records/record.h"

struct hd_prune {
    enum hd_ttl_strategy strategy;
    size_t keep_last;
    bool is_dry;  /* nothing goes, it is only counted */
    bool is_over; /* its time was: it has none until it is used again */
};

struct hd_removed {
    int64_t threads; /* deleted */
    int64_t runs;
    int64_t events; /* pages of them */
    int64_t checkpoints;
    int64_t writes;
    int64_t bytes; /* of everything, keys included, before the database's own overhead */
};

/*
 * Adds to *removed. HD_ECONFLICT: somebody has changed the record since, and nothing went. Deleting
 * does not look whether a run is at work.
 */
HD_MUST_CHECK int hd_thread_prune(struct heddle *store, const struct hd_thread_rec *thread,
                                  const struct hd_prune *prune, struct hd_removed *removed,
                                  struct hd_fault *fault);
/*
 * The same for the thread of that id, read again as often as somebody changes it. HD_ENOTFOUND:
 * there is none.
 */
HD_MUST_CHECK int hd_thread_prune_by_id(struct heddle *store, struct hd_slice principal,
                                        struct hd_slice id, const struct hd_prune *prune,
                                        struct hd_removed *removed, struct hd_fault *fault);

/*
 * Takes a checkpoint away with everything that grows from it (store/prune.h) and stores the
 * thread's record as it is in `changed`, both or neither. HD_ECONFLICT: somebody has changed the
 * record since it was read, and nothing went.
 */
HD_MUST_CHECK int hd_thread_cut(struct heddle *store, struct hd_thread_rec *changed,
                                struct hd_slice ns, struct hd_slice id, struct hd_fault *fault);

#endif
