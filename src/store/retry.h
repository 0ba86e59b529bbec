/*
 * Trying again what somebody else was in the way of.
 *
 * How often one loses against others says nothing: a slow machine loses many
 * times in a row. So everything that is optimistic goes on for as long as the
 * store's timeout allows, and longer only if few attempts took all of it. The
 * first time at once: what stood in the way is as a rule gone. Then after
 * pauses that grow, that last as long as the attempt did at least, so that two
 * who need long do not hinder each other for ever, and that differ.
 *
 *     struct hd_again again = {0};
 *
 *     do
 *         err = attempt(…);
 *     while (err == HD_ECONFLICT && hd_again(store, &again, &err, fault));
 */
#ifndef HD_STORE_RETRY_H
#define HD_STORE_RETRY_H

#include "store/store.h"

enum {
    HD_TRIES_MIN = 5, /* however long they take */
    HD_LOOKS_MIN = 3  /* at what looks damaged, while nothing changes */
};

struct hd_again {
    unsigned tries;
    int64_t until_us; /* when the timeout ends */
    int64_t began_us; /* the latest attempt */
    uint64_t epochs;  /* hd_look_again(): what they were then */
    bool has_changed; /* …and whether that has ever changed */
    unsigned same;    /* …and for how many looks they have not */
};

/*
 * True after a pause, and forgets what is in `fault`. False when the time is up: *err and `fault`
 * say so.
 */
HD_MUST_CHECK bool hd_again(const struct hd_store *store, struct hd_again *again, int *err,
                            struct hd_fault *fault);

/*
 * The same for whoever reads these threads and found a value that is not whole (*err is
 * HD_ECORRUPT): rows are not read in one transaction, and a value may have been taken away after
 * its row was read. But whoever takes away changes the epoch. So it is damaged if the epochs were
 * the same before and after a look at it, and that several times: who says so should be sure.
 */
HD_MUST_CHECK bool hd_look_again(struct hd_store *store, struct hd_again *again,
                                 const struct hd_key *keys, size_t count, int *err,
                                 struct hd_fault *fault);

#endif
