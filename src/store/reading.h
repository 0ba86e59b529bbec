/* Several queries, each with its own receiver, sent to the backend in one round trip. */
#ifndef HD_STORE_READING_H
#define HD_STORE_READING_H

#include "base/vec.h"
#include "store/backend.h"

struct hd_receiver {
    hd_row_fn fn;
    void *arg;
    size_t which; /* passed to fn */
};

struct hd_reading {
    HD_VEC(struct hd_query) queries;
    HD_VEC(struct hd_receiver) receivers; /* of the queries */
};

void hd_reading_init(struct hd_reading *reading);
void hd_reading_fini(struct hd_reading *reading);
/* Removes the queries and keeps the memory. */
void hd_reading_reset(struct hd_reading *reading);

/* The memory that the query points to must stay valid until the reading was run. */
HD_MUST_CHECK int hd_reading_add(struct hd_reading *reading, struct hd_query query,
                                 struct hd_receiver receiver);

/* Runs all queries in the order they were added, and removes them. */
HD_MUST_CHECK int hd_reading_run(struct hd_reading *reading, struct hd_backend *backend,
                                 struct heddle_error *fault);

#endif
