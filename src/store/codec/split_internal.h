/*
 * What the cutters of split*.c share.
 *
 * A cutter walks over the value once. `done` is how far the pieces reach; a
 * format names the elements it finds, in order, with hd_cutter_element(), and
 * everything it does not name (brackets, keys, headers, odd separators) becomes
 * glue on its own. So a format cannot break the promise that the pieces join
 * to the value: it only chooses where to cut.
 */
#ifndef HD_STORE_CODEC_SPLIT_INTERNAL_H
#define HD_STORE_CODEC_SPLIT_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "store/codec/split.h"

#define HD_SPLIT_BIG 256u        /* elements and arrays from this size on are worth a chunk */
#define HD_SPLIT_GROUP_AVG 1024u /* what groups of smaller elements aim at */
#define HD_SPLIT_GROUP_MAX 4096u

struct hd_cutter {
    struct hd_pieces *pieces;
    const char *done;      /* everything before it is in pieces */
    const char *group;     /* first byte of the open group of small elements, or NULL */
    const char *group_end; /* one behind its last element */
};

/* [begin, end) is the next element. 0 or HD_ENOMEM. */
HD_MUST_CHECK int hd_cutter_element(struct hd_cutter *cutter, const char *begin, const char *end);

/* Closes the open group: what follows belongs to another list, or to none. */
HD_MUST_CHECK int hd_cutter_flush(struct hd_cutter *cutter);

/* At most HD_LITERAL_MAX bytes that are kept beside the value. 0 or HD_ENOMEM. */
HD_MUST_CHECK int hd_pieces_add_literal(struct hd_pieces *pieces, struct hd_slice bytes);

/* A place to go back to when a list turns out too short to be cut. Only valid between groups. */
struct hd_cutter_mark {
    const char *done;
    size_t count;
};

struct hd_cutter_mark hd_cutter_mark(const struct hd_cutter *cutter);
void hd_cutter_rewind(struct hd_cutter *cutter, struct hd_cutter_mark mark);

/*
 * The formats: name the elements of `bytes`. HD_EINVAL when it is not such a
 * text; what was cut until then is void. Never read outside of `bytes`.
 */
HD_MUST_CHECK int hd_split_json(struct hd_cutter *cutter, struct hd_slice bytes);
/* From the first byte of a JSON value to the byte behind it; NULL when it does not end. */
const char *hd_split_json_value(const char *value, const char *end);
HD_MUST_CHECK int hd_split_msgpack(struct hd_cutter *cutter, struct hd_slice bytes);

/* How to cut bytes of unknown structure, chosen by their number. */
struct hd_cdc {
    size_t min;
    size_t max;
    uint64_t threshold;
};

struct hd_cdc hd_cdc(size_t size);

/* Length of the first piece of `bytes`: from 1 to cdc->max, given that bytes is not empty. */
size_t hd_cdc_next(const struct hd_cdc *cdc, struct hd_slice bytes);

#endif
