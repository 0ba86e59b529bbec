/*
 * Which checkpoints messages came from, as it was found out before: finding it out reads a state
 * for each of them, which costs more the longer a conversation is.
 *
 * A message whose checkpoint is also on another path has the same origin on that path: ancestors do
 * not change. A message whose checkpoint was pruned or is on another branch is searched again. Only
 * ids are kept, for the most recently used threads. Any thread.
 */
#ifndef HD_API_STATE_MESSAGE_PATH_MEMORY_H
#define HD_API_STATE_MESSAGE_PATH_MEMORY_H

#include "base/compiler.h"
#include "base/slice.h"

struct hd_message_path_memory;

/* An agent in a thread. */
struct hd_message_path_place {
    struct hd_slice principal, thread, ns;
};

HD_MUST_CHECK int hd_message_path_memory_create(struct hd_message_path_memory **out);
void hd_message_path_memory_destroy(struct hd_message_path_memory *memory);

/*
 * The known origins of a place, locked until hd_message_path_memory_leave(). NULL: no memory for
 * it; leave must follow all the same.
 */
struct hd_message_path_slot;
struct hd_message_path_slot *
hd_message_path_memory_enter(struct hd_message_path_memory *memory,
                             const struct hd_message_path_place *place);
void hd_message_path_memory_leave(struct hd_message_path_memory *memory);

/* The id of a message's checkpoint, until the memory is left; empty: not known. */
struct hd_slice hd_message_path_recall(const struct hd_message_path_slot *slot,
                                       struct hd_slice message);
/* Without room all origins of the place are dropped. */
void hd_message_path_remember(struct hd_message_path_slot *slot, struct hd_slice message,
                              struct hd_slice checkpoint);

#endif
