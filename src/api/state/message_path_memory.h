/*
 * Which checkpoints messages came from, as it was found out before: finding it out reads a state
 * for each of them, which costs more the longer a conversation is.
 *
 * A message whose checkpoint is also on another way came from there on that way too: ancestors do
 * not change. One whose checkpoint is not, because it was pruned or is of another branch, has to be
 * found again. Only ids are kept, of the threads that were asked for last. Any thread.
 */
#ifndef HD_API_STATE_MESSAGE_PATH_MEMORY_H
#define HD_API_STATE_MESSAGE_PATH_MEMORY_H

#include "base/compiler.h"
#include "base/slice.h"

struct hd_way_memory;

/* An agent in a thread. */
struct hd_way_place {
    struct hd_slice principal, thread, ns;
};

HD_MUST_CHECK int hd_way_memory_create(struct hd_way_memory **out);
void hd_way_memory_destroy(struct hd_way_memory *memory);

/*
 * What is known of a place, which is nobody else's until the memory is left. NULL: there is no
 * memory for it; leave all the same.
 */
struct hd_way_slot;
struct hd_way_slot *hd_way_memory_enter(struct hd_way_memory *memory,
                                        const struct hd_way_place *place);
void hd_way_memory_leave(struct hd_way_memory *memory);

/* The id of a message's checkpoint, until the memory is left; empty: not known. */
struct hd_slice hd_way_recall(const struct hd_way_slot *slot, struct hd_slice message);
/* What there is no room for is forgotten, with all else of the place. */
void hd_way_remember(struct hd_way_slot *slot, struct hd_slice message, struct hd_slice checkpoint);

#endif
