/*
 * Who a run works for, as graphs see it: the members of the configurable that begin with
 * langgraph_auth. Where users authenticate the server alone sets them.
 */
#ifndef HD_RUN_USER_H
#define HD_RUN_USER_H

#include <stdbool.h>

#include "base/compiler.h"
#include "base/slice.h"
#include "graph/val.h"

/* Both take the object and return it; NULL: HD_ENOMEM. */
HD_MUST_CHECK struct hd_val *hd_user_drop(struct hd_val *configurable);
HD_MUST_CHECK struct hd_val *hd_user_add(struct hd_val *configurable, struct hd_slice subject,
                                         bool is_admin);

#endif
