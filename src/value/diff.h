/*
 * Finds the first difference of two values. Generated ids (UUIDs, also within longer strings) are
 * compared by their relations, not by their text: an id on one side must always correspond to the
 * same id on the other, in all comparisons with one struct.
 */
#ifndef HD_VALUE_DIFF_H
#define HD_VALUE_DIFF_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/compiler.h"
#include "base/map.h"
#include "value/val.h"

struct hd_diff {
    struct hd_arena arena;
    struct hd_map left, right;  /* ids and their counterparts on the other side */
    struct hd_buf path;         /* of the difference: `.messages[3].content`; ends with NUL */
    const struct hd_val *a, *b; /* the values there, on each side; NULL: missing */
};

void hd_diff_init(struct hd_diff *diff);
void hd_diff_fini(struct hd_diff *diff);

/* *out: true if they differ; path, a and b then describe it. 0, HD_ENOMEM or HD_ELIMIT. */
HD_MUST_CHECK int hd_diff_find(struct hd_diff *diff, const struct hd_val *a, const struct hd_val *b,
                               bool *out);

#endif
