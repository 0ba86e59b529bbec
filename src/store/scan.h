/*
 * A scan of any length in pages, so that neither side holds more than a page. Each page sees the
 * rows committed when it is read.
 */
#ifndef HD_STORE_SCAN_H
#define HD_STORE_SCAN_H

#include "store/backend.h"

/*
 * Runs `query` along its key or index, query.limit rows at a time (0: a default). `fn` receives
 * every row with which = 0 and may use the backend; a positive result ends the scan.
 */
HD_MUST_CHECK int hd_scan(struct hd_backend *backend, struct hd_query query, hd_row_fn fn,
                          void *arg, struct heddle_error *fault);

#endif
