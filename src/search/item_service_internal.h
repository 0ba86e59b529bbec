/* Shared by the files of items. */
#ifndef HD_SEARCH_ITEM_SERVICE_INTERNAL_H
#define HD_SEARCH_ITEM_SERVICE_INTERNAL_H

#include "search/item_service.h"
#include "store/batch.h"

/* Adds to the batch that the item was used, unless it was so a moment ago. */
HD_MUST_CHECK int hd_item_service_touch(struct hd_batch_builder *batch,
                                        const struct hd_item_rec *item, int64_t now);

#endif
