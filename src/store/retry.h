/*
 * Retries with back-off after a write conflict.
 *
 * The number of lost attempts is no measure of progress: a slow machine loses many in a row. So
 * optimistic writers retry until the store's timeout, and beyond it only until HD_TRIES_MIN
 * attempts. The first retry is immediate, because the conflicting write has usually finished. Later
 * ones follow after growing, randomised pauses, each at least as long as the attempt, so that two
 * long writers do not block each other forever.
 *
 *     struct hd_conflict_retry retry = {0};
 *
 *     do
 *         err = attempt(…);
 *     while (err == HD_ECONFLICT && hd_conflict_retry(store, &retry, &err, fault));
 */
#ifndef HD_STORE_RETRY_H
#define HD_STORE_RETRY_H

#include "store/store.h"

enum {
    HD_TRIES_MIN = 5, /* regardless of their duration */
    HD_LOOKS_MIN = 3  /* reads of a damaged-looking value without a change */
};

struct hd_conflict_retry {
    unsigned tries;
    int64_t until_us; /* end of the timeout */
    int64_t began_us; /* start of the latest attempt */
    uint64_t epochs;  /* hd_conflict_retry_read(): the epochs at the last read */
    bool has_changed; /* … and whether they have ever changed */
    unsigned same;    /* … and for how many reads they have not */
};

/*
 * Returns true after a pause and clears `fault`. Returns false when the timeout is over and sets
 * *err and `fault`.
 */
HD_MUST_CHECK bool hd_conflict_retry(const struct hd_store *store, struct hd_conflict_retry *retry,
                                     int *err, struct heddle_error *fault);

/*
 * The same for a reader of these threads that found an incomplete value (*err is HD_ECORRUPT): rows
 * are not read in one transaction, and a value may have been deleted after its row was read. A
 * deletion changes the epoch. So the value is damaged only if the epochs were the same before and
 * after several reads.
 */
HD_MUST_CHECK bool hd_conflict_retry_read(struct hd_store *store, struct hd_conflict_retry *retry,
                                          const struct hd_key *keys, size_t count, int *err,
                                          struct heddle_error *fault);

#endif
