/* Several queries, each with its own receiver, sent to the backend in one round trip. */
#ifndef HD_STORE_READING_H
#define HD_STORE_READING_H

#include "store/backend.h"

struct hd_receiver {
    hd_row_fn fn;
    void *arg;
    size_t which; /* passed to fn */
};

struct hd_reading {
    struct hd_query *queries;
    struct hd_receiver *receivers;
    size_t count;
    size_t cap;
};

void hd_reading_init(struct hd_reading *reading);
void hd_reading_fini(struct hd_reading *reading);

/* The memory that the query points to must stay valid until the reading was run. */
HD_MUST_CHECK int hd_reading_add(struct hd_reading *reading, struct hd_query query,
                                 struct hd_receiver receiver);

/* Runs all queries in the order they were added, and removes them. */
HD_MUST_CHECK int hd_reading_run(struct hd_reading *reading, struct hd_backend *backend,
                                 struct hd_fault *fault);

#endif
