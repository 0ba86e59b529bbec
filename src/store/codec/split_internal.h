/*
 * Shared by the cutters of split*.c.
 *
 * A cutter walks over the value once. `done` is the end of the pieces so far; a format reports the
 * elements it finds, in order, with hd_cutter_element(), and all other bytes (brackets, keys,
 * headers, odd separators) become glue. So a format only chooses where to cut: the pieces always
 * join to the value.
 */
#ifndef HD_STORE_CODEC_SPLIT_INTERNAL_H
#define HD_STORE_CODEC_SPLIT_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "store/codec/split.h"

#define HD_SPLIT_BIG 256u        /* elements and arrays of at least this size get a chunk */
#define HD_SPLIT_GROUP_AVG 1024u /* target size of groups of smaller elements */
#define HD_SPLIT_GROUP_MAX 4096u

struct hd_cutter {
    struct hd_pieces *pieces;
    const char *done;      /* everything before it is in pieces */
    const char *group;     /* first byte of the open group of small elements, or NULL */
    const char *group_end; /* one past its last element */
};

/* [begin, end) is the next element. 0 or HD_ENOMEM. */
HD_MUST_CHECK int hd_cutter_element(struct hd_cutter *cutter, const char *begin, const char *end);

/* Closes the open group: the following element belongs to another list, or to none. */
HD_MUST_CHECK int hd_cutter_flush(struct hd_cutter *cutter);

/* At most HD_LITERAL_MAX bytes, kept beside the value. 0 or HD_ENOMEM. */
HD_MUST_CHECK int hd_pieces_add_literal(struct hd_pieces *pieces, struct hd_slice bytes);

/* A position to return to when a list turns out too short to be cut. Only valid between groups. */
struct hd_cutter_mark {
    const char *done;
    size_t count;
};

struct hd_cutter_mark hd_cutter_mark(const struct hd_cutter *cutter);
void hd_cutter_rewind(struct hd_cutter *cutter, struct hd_cutter_mark mark);

/*
 * The formats: report the elements of `bytes`. HD_EINVAL when it is not such a text; the pieces cut
 * so far are invalid then. Never read outside of `bytes`.
 */
HD_MUST_CHECK int hd_split_json(struct hd_cutter *cutter, struct hd_slice bytes);
/* From the first byte of a JSON value to the byte after it; NULL when it does not end. */
const char *hd_split_json_value(const char *value, const char *end);
HD_MUST_CHECK int hd_split_msgpack(struct hd_cutter *cutter, struct hd_slice bytes);

/* Parameters for cutting bytes of unknown structure, chosen by their length. */
struct hd_cdc {
    size_t min;
    size_t max;
    uint64_t threshold;
};

struct hd_cdc hd_cdc(size_t size);

/* Length of the first piece of `bytes`, from 1 to cdc->max; `bytes` must not be empty. */
size_t hd_cdc_next(const struct hd_cdc *cdc, struct hd_slice bytes);

#endif
