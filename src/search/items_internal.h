/* Shared by the files of items. */
#ifndef HD_SEARCH_ITEMS_INTERNAL_H
#define HD_SEARCH_ITEMS_INTERNAL_H

#include "search/items.h"
#include "store/batch.h"

/* Adds to the batch that the item was used, unless it was so a moment ago. */
HD_MUST_CHECK int hd_items_touch(struct hd_batch_builder *batch, const struct hd_item_rec *item,
                                 int64_t now);

#endif
