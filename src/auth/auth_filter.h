/*
 * Filters that handlers of custom auth return: which objects somebody may see. Pure.
 *
 *   {"owner": "x"}                   equal, as JSON; what is not there equals nothing
 *   {"owner": {"$eq": "x"}}          the same
 *   {"teams": {"$contains": "a"}}    a list that has it; of a list: all of them
 *   {"$or": [{…}, {…}]}, {"$and": …} one of them, all of them
 *
 * All members must match. What is no filter lets nobody see anything: it is refused before it is
 * used.
 */
#ifndef HD_AUTH_AUTH_FILTER_H
#define HD_AUTH_AUTH_FILTER_H

#include <stdbool.h>

#include "base/compiler.h"
#include "base/error.h"
#include "base/json.h"

#define HD_GRANT_MAX_DEPTH 8 /* of $or and $and in each other */

/* HD_EINVAL with a sentence when it is none; NULL and null let everything be seen. */
HD_MUST_CHECK int hd_grant_check(hd_json_val filter, struct hd_fault *fault);

/* Only for a filter that was checked. `object` NULL: one without members. */
bool hd_grant_allows(hd_json_val filter, hd_json_val object);

#endif
