/*
 * Query strings: `a=1&b=x%20y`. Pure.
 *
 * Clients encode the same thing in several ways (http lists as repeated keys, as JSON
 * text, with commas); the one list parser and the one boolean parser here take them all.
 * An empty value is the same as none. Errors are HD_EINVAL with a sentence that names
 * the parameter.
 */
#ifndef HD_HTTP_QUERY_H
#define HD_HTTP_QUERY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/slice.h"

#define HD_PARAMS_MAX 256       /* pairs in a query string */
#define HD_PARAMS_MAX_LIST 1024 /* elements of one list */

struct hd_param {
    struct hd_slice name;
    struct hd_slice value;
};

struct hd_params {
    struct hd_param *pairs;
    size_t count;
};

/*
 * Replaces %XX (and '+' by a space, when `plus`). Borrows `text` when there is nothing
 * to do, else decodes into the arena. HD_EINVAL: a '%' without two hex digits, bytes that
 * are not UTF-8, or a NUL.
 */
HD_MUST_CHECK int hd_percent_decode(struct hd_slice text, bool plus, struct hd_arena *arena,
                                    struct hd_slice *out);

/* `query` is what follows the '?'. HD_EINVAL, HD_ELIMIT (too many) or HD_ENOMEM. */
HD_MUST_CHECK int hd_params_parse(struct hd_params *out, struct hd_slice query,
                                  struct hd_arena *arena, struct hd_fault *fault);

/* The first value that is not empty; false when there is none. */
bool hd_params_get(const struct hd_params *params, struct hd_slice name, struct hd_slice *out);

/*
 * All values as one list: repeated keys, JSON arrays of scalars, comma-separated text and bare
 * scalars, also mixed. An element of a JSON array that is no string is its text (1, true). None, or
 * only empty ones: count 0.
 */
HD_MUST_CHECK int hd_params_list(const struct hd_params *params, struct hd_slice name,
                                 struct hd_arena *arena, struct hd_slice **items, size_t *count,
                                 struct hd_fault *fault);

/* 1, 0, true, false, yes or no in any case; `otherwise` when there is none. */
HD_MUST_CHECK int hd_params_bool(const struct hd_params *params, struct hd_slice name,
                                 bool otherwise, bool *out, struct hd_fault *fault);

/* A decimal integer from min to max; `otherwise` (which need not be between) when there is none. */
HD_MUST_CHECK int hd_params_int(const struct hd_params *params, struct hd_slice name, int64_t min,
                                int64_t max, int64_t otherwise, int64_t *out,
                                struct hd_fault *fault);

#endif
