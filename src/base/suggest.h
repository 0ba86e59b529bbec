/* Names in error messages: cut to a length that fits, and the name that was probably meant. */
#ifndef HD_BASE_SUGGEST_H
#define HD_BASE_SUGGEST_H

#include <stddef.h>

#include "base/slice.h"

/* Arguments for "%.*s": the text, cut to what fits in a message. */
#define HD_SHOW(s) hd_show_len(s), ((s).ptr ? (s).ptr : "")
int hd_show_len(struct hd_slice s);

/* Finds the candidate nearest to a name, for "did you mean". */
struct hd_near {
    struct hd_slice wanted;
    struct hd_slice best;
    size_t distance;
    char text[160];
};

void hd_near_init(struct hd_near *near, struct hd_slice wanted);
void hd_near_try(struct hd_near *near, struct hd_slice candidate);
/* "; did you mean "x"?" or nothing. */
const char *hd_near_text(struct hd_near *near);

#endif
