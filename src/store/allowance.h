/*
 * Limits how many bytes of values a read may assemble. References hold the length of each value, so
 * the limit is checked before memory is taken and before any chunk is read.
 */
#ifndef HD_STORE_ALLOWANCE_H
#define HD_STORE_ALLOWANCE_H

#include <heddle.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

struct hd_allowance {
    /* A result other than 0 ends the read and is returned by it; nothing was taken then. */
    int (*take)(struct hd_allowance *allowance, uint64_t bytes);
    /* Returns bytes that are not needed any more. */
    void (*give)(struct hd_allowance *allowance, uint64_t bytes);
    uint64_t taken; /* updated by both functions */
    size_t fits;    /* after HD_ELIMIT in a list: how many of its tuples are within the allowance */
};

/* As heddle_get(). `allowance` may be NULL. */
HD_MUST_CHECK int hd_store_get_within(struct heddle *store, const struct heddle_key *key,
                                      struct hd_allowance *allowance, struct heddle_tuple **out,
                                      struct heddle_error *error);

/*
 * Tuples that the list reads from now on count against the allowance: with `keeps`, each until the
 * list ends, otherwise until the next page is read. In the second case the list reads as few at
 * once as fit, and one of any size.
 */
void hd_list_within(struct heddle_list *list, struct hd_allowance *allowance, bool keeps);

#endif
