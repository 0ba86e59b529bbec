/*
 * Where two values differ. Ids that are made anew each time (UUIDs, also within longer
 * strings) are not compared by their text but by their relations: the same id on one side
 * must be the same id on the other, wherever they occur in what one struct has compared.
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
    struct hd_map left, right;  /* ids to those they were seen with */
    struct hd_buf path;         /* of the difference: `.messages[3].content`; ends with NUL */
    const struct hd_val *a, *b; /* what is there, on each side; NULL: nothing */
};

void hd_diff_init(struct hd_diff *diff);
void hd_diff_fini(struct hd_diff *diff);

/* *out: whether they differ; then path, a and b say where. 0, HD_ENOMEM or HD_ELIMIT. */
HD_MUST_CHECK int hd_diff_find(struct hd_diff *diff, const struct hd_val *a, const struct hd_val *b,
                               bool *out);

#endif
