/*
 * Filters of item searches: which values match {"field": wanted, …}.
 *
 * All fields must match. `wanted` is a value that must be equal (numbers by their value, a field
 * that is missing is null), an object whose members match in turn, an array whose elements do, or
 * an object of operators: {"$gte": 1, "$lt": 10}. Operators: $eq, $ne; $gt, $gte, $lt, $lte between
 * two numbers or two strings (by code points). Values that cannot be compared do not match.
 */
#ifndef HD_RECORDS_ITEM_FILTER_H
#define HD_RECORDS_ITEM_FILTER_H

#include <stdbool.h>

#include "base/compiler.h"
#include "base/error.h"
#include "base/json.h"

/* HD_EINVAL with a sentence when it is no filter; NULL and null match everything. */
HD_MUST_CHECK int hd_filter_check(hd_json_val filter, struct heddle_error *fault);

/* Only for a filter that was checked. */
bool hd_filter_matches(hd_json_val filter, hd_json_val value);

#endif
