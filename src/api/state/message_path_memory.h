/*
 * A cache of message origins, the checkpoints that messages came from. Finding an origin reads a
 * state, which costs more in a longer conversation.
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

/* The root namespace of an agent in a thread. */
struct hd_message_path_place {
    struct hd_slice principal, thread, ns;
};

HD_MUST_CHECK int hd_message_path_memory_create(struct hd_message_path_memory **out);
void hd_message_path_memory_destroy(struct hd_message_path_memory *memory);

/* The cached origins of a place, locked until hd_message_path_memory_leave(). NULL: no memory for
 * it; leave must be called all the same. */
struct hd_message_path_slot;
struct hd_message_path_slot *
hd_message_path_memory_enter(struct hd_message_path_memory *memory,
                             const struct hd_message_path_place *place);
void hd_message_path_memory_leave(struct hd_message_path_memory *memory);

/* The id of a message's checkpoint, valid until leave; empty: unknown. */
struct hd_slice hd_message_path_recall(const struct hd_message_path_slot *slot,
                                       struct hd_slice message);
/* When the slot is full, all its origins are dropped. */
void hd_message_path_remember(struct hd_message_path_slot *slot, struct hd_slice message,
                              struct hd_slice checkpoint);

#endif
