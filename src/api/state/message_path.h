/*
 * The way from the first checkpoint of a namespace to one of its heads, and where the messages
 * came from that are there at its end. For store threads.
 */
#ifndef HD_API_STATE_MESSAGE_PATH_H
#define HD_API_STATE_MESSAGE_PATH_H

#include "api/state/checkpoint_index.h"

struct hd_way {
    struct hd_spot spot;
    struct hd_point **points; /* the oldest first; in the arena of their hd_points */
    size_t length;
    struct hd_point **news; /* those of them whose messages may be others than the one before has */
    size_t news_count;
};

/* A message that is there at the end of a way. */
struct hd_said {
    const struct hd_way *way;
    hd_json_val message;
    size_t position;        /* in the list of messages */
    struct hd_point *point; /* the first checkpoint on the way that has it; NULL: not known yet */
};

/* Bounded by the number of points: a damaged tree may go in circles. `head` NULL: an empty way. */
HD_MUST_CHECK int hd_way_find(struct hd_points *points, struct hd_point *head, struct hd_way *way);

/*
 * Finds the point of each; those of one way stand together, in any order, and do so afterwards.
 * Asks what each state brought (hd_state_delta()). Where that is not known of many, halves the way,
 * so that only states are read between which something was said. Remembers what it found
 * (message_path_memory.h).
 */
HD_MUST_CHECK int hd_said_locate(struct hd_call *call, struct hd_said *said, size_t count);
/* By checkpoint, within one in the order of the list. All must have been located. */
void hd_said_sort(struct hd_said *said, size_t count);

/* Empty: it has none. */
struct hd_slice hd_message_id(hd_json_val message);
/* Puts the messages of a list into a map by their ids. */
HD_MUST_CHECK int hd_messages_index(struct hd_map *map, hd_json_val list);

#endif
