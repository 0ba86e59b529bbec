/*
 * A channel's list between two saves: what to hand to the store so that a save
 * costs what was added (store/list_append.h). One for each channel of a loop, on the
 * loop's thread; the growths it gives out may outlive it.
 */
#ifndef HD_GRAPH_ENGINE_LIST_TRACKER_H
#define HD_GRAPH_ENGINE_LIST_TRACKER_H

#include "base/compiler.h"
#include "store/list_append.h"
#include "value/val.h"

/* Shorter lists are written anew each time: that costs less than to remember their text. */
#define HD_GROWING_MIN 8

/* Zero-initialise it. */
struct hd_growing {
    struct hd_listing *listing;
    struct hd_val *list; /* whose text it is */
    size_t lasting;      /* so many of its elements do not depend on a graph */
};

void hd_growing_fini(struct hd_growing *growing);

/* Makes it independent of the graph. 0 or HD_ENOMEM. */
HD_MUST_CHECK int hd_growing_outlast(struct hd_growing *growing);

/* Bytes of its text. */
size_t hd_growing_size(const struct hd_growing *growing);

/*
 * Starts with a list that was loaded: `val` is what `text` says. What cannot be gone on from is
 * forgotten. 0 or HD_ENOMEM.
 */
HD_MUST_CHECK int hd_growing_load(struct hd_growing *growing, const struct hd_val *val,
                                  struct hd_slice text);

/*
 * What `val`, a channel's checkpoint value, has become since the last call; NULL
 * when it is to be written as a whole. Give it back with hd_growth_destroy() when
 * the put is done. 0, HD_ENOMEM or HD_ELIMIT (too deep); the next call starts
 * afresh then.
 */
HD_MUST_CHECK int hd_growing_save(struct hd_growing *growing, const struct hd_val *val,
                                  struct hd_growth **out);

#endif
