/*
 * Tracks a channel's list between two saves, so that a save writes only the appended elements
 * (store/list_append.h). One per channel of a loop, on the loop's thread. The growths it
 * returns may outlive it.
 */
#ifndef HD_GRAPH_ENGINE_LIST_TRACKER_H
#define HD_GRAPH_ENGINE_LIST_TRACKER_H

#include "base/compiler.h"
#include "store/list_append.h"
#include "value/val.h"

/* Shorter lists are rewritten by each save, which costs less than keeping their text. */
#define HD_LIST_TRACKER_MIN 8

/* Zero-initialise it. */
struct hd_list_tracker {
    struct hd_listing *listing;
    struct hd_val *list; /* the list that `listing` encodes */
    size_t lasting;      /* number of leading elements that do not depend on a graph */
};

void hd_list_tracker_fini(struct hd_list_tracker *tracker);

/* Makes it independent of the graph. 0 or HD_ENOMEM. */
HD_MUST_CHECK int hd_list_tracker_outlast(struct hd_list_tracker *tracker);

/* Size of its text in bytes. */
size_t hd_list_tracker_size(const struct hd_list_tracker *tracker);

/*
 * Starts with a loaded list: `val` is the value of `text`. Drops a list to which nothing can be
 * appended. 0 or HD_ENOMEM.
 */
HD_MUST_CHECK int hd_list_tracker_load(struct hd_list_tracker *tracker, const struct hd_val *val,
                                       struct hd_slice text);

/*
 * *out is the change of `val`, a channel's checkpoint value, since the last call; NULL if the save
 * must write the whole value. Free it with hd_growth_destroy() after the put. 0, HD_ENOMEM or
 * HD_ELIMIT (too deep); after an error the next call starts afresh.
 */
HD_MUST_CHECK int hd_list_tracker_save(struct hd_list_tracker *tracker, const struct hd_val *val,
                                       struct hd_growth **out);

#endif
