/*
 * The `extract` of a thread search: names, and for each the path of its value,
 * such as {"last": "values.messages[-1].content"}.
 *
 * A path begins with a member of the thread (values, metadata, …) and continues with ".key", "[3]",
 * "[-1]" (from the end) or "[\"any key\"]". A missing value is null.
 */
#ifndef HD_RECORDS_EXTRACT_H
#define HD_RECORDS_EXTRACT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/json.h"
#include "base/slice.h"

#define HD_EXTRACT_MAX_PATHS 10
#define HD_EXTRACT_MAX_STEPS 64
#define HD_EXTRACT_MAX_TEXT 1024

struct hd_extract_step {
    struct hd_slice key; /* when it is no index */
    int64_t index;
    bool is_index;
};

struct hd_extract_path {
    struct hd_slice name; /* under which the value is returned */
    struct hd_extract_step *steps;
    size_t count; /* at least 1; the first has a key */
};

struct hd_extract {
    struct hd_extract_path paths[HD_EXTRACT_MAX_PATHS];
    size_t count;
};

/*
 * NULL and null are no paths at all. HD_EINVAL with a sentence, or HD_ENOMEM. The contents of
 * `extract` are in `arena`, except strings, which are borrowed from `val`.
 */
HD_MUST_CHECK int hd_extract_parse(struct hd_extract *extract, hd_json_val val,
                                   struct hd_arena *arena, struct heddle_error *fault);

/* The member of the thread that a path begins with, e.g. to find out whether values are needed. */
static inline struct hd_slice hd_extract_member(const struct hd_extract_path *path)
{
    return path->steps[0].key;
}

/* Follows a path from the value of that member; NULL: there is nothing. */
hd_json_val hd_extract_find(const struct hd_extract_path *path, hd_json_val member);

#endif
