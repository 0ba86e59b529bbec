/*
 * Query strings: `a=1&b=x%20y`. Pure.
 *
 * Clients encode the same value in several ways (lists as repeated keys, as JSON text, with
 * commas); the list parser and the boolean parser here accept them all. An empty value is the same
 * as none. Errors are HD_EINVAL with a text that names the parameter.
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
 * Decodes %XX (and '+' to a space, if `plus`). Borrows `text` if there is nothing to decode, else
 * uses the arena. HD_EINVAL: a '%' without two hex digits, invalid UTF-8, or a NUL.
 */
HD_MUST_CHECK int hd_percent_decode(struct hd_slice text, bool plus, struct hd_arena *arena,
                                    struct hd_slice *out);

/* `query` is the part after '?'. HD_EINVAL, HD_ELIMIT (too many) or HD_ENOMEM. */
HD_MUST_CHECK int hd_params_parse(struct hd_params *out, struct hd_slice query,
                                  struct hd_arena *arena, struct heddle_error *fault);

/* The first nonempty value; false when there is none. */
bool hd_params_get(const struct hd_params *params, struct hd_slice name, struct hd_slice *out);
/* True if the parameter is there, even with an empty value. */
bool hd_params_has(const struct hd_params *params, struct hd_slice name);

/*
 * All values as one list: repeated keys, JSON arrays of scalars, comma-separated text and bare
 * scalars, also mixed. A JSON array element that is not a string becomes its text (1, true). None,
 * or only empty ones: count 0.
 */
HD_MUST_CHECK int hd_params_list(const struct hd_params *params, struct hd_slice name,
                                 struct hd_arena *arena, struct hd_slice **items, size_t *count,
                                 struct heddle_error *fault);

/* 1, 0, true, false, yes or no, case-insensitive; `otherwise` when missing. */
HD_MUST_CHECK int hd_params_bool(const struct hd_params *params, struct hd_slice name,
                                 bool otherwise, bool *out, struct heddle_error *fault);

/* A decimal integer from min to max; `otherwise` (any value) when missing. */
HD_MUST_CHECK int hd_params_int(const struct hd_params *params, struct hd_slice name, int64_t min,
                                int64_t max, int64_t otherwise, int64_t *out,
                                struct heddle_error *fault);

#endif
