/*
 * Who a run works for, as graphs see it: the members of the configurable that begin with
 * langgraph_auth. Where users authenticate the server alone sets them.
 */
#ifndef HD_RECORDS_RUN_USER_H
#define HD_RECORDS_RUN_USER_H

#include <stdbool.h>

#include "auth/identity.h"
#include "base/compiler.h"
#include "base/json.h"
#include "base/slice.h"
#include "value/val.h"

#define HD_USER HD_S("langgraph_auth_user")

/* All take the object and return it; NULL: HD_ENOMEM. */
HD_MUST_CHECK struct hd_val *hd_user_drop(struct hd_val *configurable);
/* At admission: what is stored, no more than is needed. */
HD_MUST_CHECK struct hd_val *hd_user_add(struct hd_val *configurable, struct hd_slice subject,
                                         bool is_admin);
/*
 * The same of one that the project's own code knows: takes an object, whose member HD_USER is what
 * it knows.
 */
HD_MUST_CHECK struct hd_val *hd_user_add_known(struct hd_val *configurable, struct hd_val *known);
/* When it begins: what graphs see of it, as on LangGraph's own server. */
HD_MUST_CHECK struct hd_val *hd_user_show(struct hd_val *configurable);

/* What workers are told of somebody: what the project's own code said, or what is known here. */
void hd_user_put(struct hd_jw *jw, const struct hd_identity *who);

#endif
