/* The path from the first checkpoint of a namespace to one of its heads, and the origins of the
 * messages at its end. For store threads. */
#ifndef HD_API_STATE_MESSAGE_PATH_H
#define HD_API_STATE_MESSAGE_PATH_H

#include "api/state/checkpoint_index.h"

struct hd_message_path {
    struct hd_checkpoint_target target;
    struct hd_checkpoint_node *
        *points; /* oldest first; in the arena of their hd_checkpoint_index */
    size_t length;
    struct hd_checkpoint_node *
        *added; /* points whose messages may differ from those of the point before */
    size_t added_count;
};

/* A message at the end of a path. */
struct hd_message_path_entry {
    const struct hd_message_path *path;
    hd_json_val message;
    size_t position; /* index in the list of messages */
    struct hd_checkpoint_node
        *point; /* the first checkpoint on the path that has it; NULL: unknown */
};

/* Bounded by the number of points: a damaged tree may have cycles. `head` NULL: an empty path. */
HD_MUST_CHECK int hd_message_path_find(struct hd_checkpoint_index *points,
                                       struct hd_checkpoint_node *head,
                                       struct hd_message_path *path);

/*
 * Finds the checkpoint of each message; those of one path are adjacent, in any order, before and
 * after. Reads the messages that each state added (hd_state_delta()). When many are unknown,
 * bisects the path, so that it only reads states between which messages were added. Remembers the
 * results (message_path_memory.h).
 */
HD_MUST_CHECK int hd_message_path_locate(struct hd_call *call,
                                         struct hd_message_path_entry *entries, size_t count);
/* Sorts by checkpoint, then by position in the list. All must have been located. */
void hd_message_path_sort(struct hd_message_path_entry *entries, size_t count);

/* Empty: no id. */
struct hd_slice hd_message_id(hd_json_val message);
/* Maps the messages of a list by their ids. */
HD_MUST_CHECK int hd_message_path_index(struct hd_map *map, hd_json_val list);

#endif
