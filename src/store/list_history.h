/*
 * Finds the elements that each checkpoint added to a list, at the cost of the added elements.
 *
 * Each checkpoint of a conversation has the whole list, so reading one after the other takes
 * quadratic time. But a list is stored as chunks, and in a growing list every checkpoint refers to
 * the chunks of the one before it and to a few more. Comparing the references shows the chunks that
 * no earlier checkpoint had; only those are read, each once.
 *
 * A chunk has one or more elements, so some reported elements may have been there before: the first
 * report of an element counts. Lists in the canonical encoding only; other values of the channel
 * must be read as usual.
 */
#ifndef HD_STORE_LIST_HISTORY_H
#define HD_STORE_LIST_HISTORY_H

#include <heddle.h>

#include "base/compiler.h"
#include "base/error.h"
#include "base/slice.h"

struct hd_list_history {
    struct heddle_thread thread;
    struct hd_slice ns;
    struct hd_slice channel;
    /* its writes to the channel change existing elements: not reported then */
    struct hd_slice task;
    const struct hd_slice *ids; /* of checkpoints, in the order of their creation */
    size_t count;
    size_t known; /* the first `known` ids report nothing; their elements are not new */
};

/*
 * `elements`: the list elements that ids[which] added, as JSON with commas between them. NULL:
 * unknown for this checkpoint, which may have added any; or it does not exist. May use the store; a
 * result other than 0 ends the walk and is returned.
 */
typedef int (*hd_list_history_fn)(void *arg, size_t which, const struct hd_slice *elements);

/* In the order of `ids`, without those that added nothing. Blocks. */
HD_MUST_CHECK int hd_list_history_walk(struct heddle *store, const struct hd_list_history *history,
                                       hd_list_history_fn fn, void *arg,
                                       struct heddle_error *fault);

#endif
