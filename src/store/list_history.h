/*
 * What is new in a list from checkpoint to checkpoint, at the cost of what is new.
 *
 * Each checkpoint of a conversation has the whole list, so to read one after the other is to read
 * its square. But a list is stored as chunks, and of one that grows every checkpoint refers to
 * those of the one before it and to a few more. Comparing the references tells which chunks no
 * checkpoint before had; only those are read, each once.
 *
 * A chunk has one or more elements, so of those that are told some may have been there before: when
 * an element was told first counts. Lists only, in the canonical encoding; what else a checkpoint
 * may have of the channel has to be read as ever.
 */
#ifndef HD_STORE_LIST_HISTORY_H
#define HD_STORE_LIST_HISTORY_H

#include <heddle.h>

#include "base/compiler.h"
#include "base/error.h"
#include "base/slice.h"

struct hd_trail {
    struct heddle_thread thread;
    struct hd_slice ns;
    struct hd_slice channel;
    struct hd_slice task;       /* its writes to the channel change what is there: not told then */
    const struct hd_slice *ids; /* of checkpoints, in the order in which they came to be */
    size_t count;
    size_t known; /* of the first so many nothing is told; what they have is not new */
};

/*
 * `elements`: those of the list that ids[which] brought, as JSON with commas between them. NULL:
 * that cannot be told of this one, which may have any; or it is not there. May use the store; not 0
 * ends the walk and is returned.
 */
typedef int (*hd_trail_fn)(void *arg, size_t which, const struct hd_slice *elements);

/* In the order of `ids`; those that brought nothing are left out. Blocks. */
HD_MUST_CHECK int hd_trail_walk(struct heddle *store, const struct hd_trail *trail, hd_trail_fn fn,
                                void *arg, struct hd_fault *fault);

#endif
