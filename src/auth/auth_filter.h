/*
 * Filters returned by handlers of custom auth: which objects a user may see. Pure.
 *
 *   {"owner": "x"}                   equal, as JSON; a missing member equals nothing
 *   {"owner": {"$eq": "x"}}          the same
 *   {"teams": {"$contains": "a"}}    a list that contains it; for a list: all of them
 *   {"$or": [{…}, {…}]}, {"$and": …} one of them, all of them
 *
 * All members must match. An invalid filter is rejected before use and so shows nothing.
 */
#ifndef HD_AUTH_AUTH_FILTER_H
#define HD_AUTH_AUTH_FILTER_H

#include <stdbool.h>

#include "base/compiler.h"
#include "base/error.h"
#include "base/json.h"

#define HD_AUTH_FILTER_MAX_DEPTH 8 /* of nested $or and $and */

/* HD_EINVAL with an error text when it is invalid; NULL and null match everything. */
HD_MUST_CHECK int hd_auth_filter_check(hd_json_val filter, struct heddle_error *fault);

/* `filter` must have been checked. `object` NULL: one without members. */
bool hd_auth_filter_allows(hd_json_val filter, hd_json_val object);

#endif
