/*
 * The user of a run, as graphs see it: the members of the configurable that begin with
 * langgraph_auth. With authentication, only the server sets them.
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
/* At admission: adds the members that are stored, no more than needed. */
HD_MUST_CHECK struct hd_val *hd_user_add(struct hd_val *configurable, struct hd_slice subject,
                                         bool is_admin);
/* The same for a user of custom auth: takes an object with the user in its member HD_USER. */
HD_MUST_CHECK struct hd_val *hd_user_add_known(struct hd_val *configurable, struct hd_val *known);
/* At the start of the run: the members that graphs see, as on LangGraph's server. */
HD_MUST_CHECK struct hd_val *hd_user_show(struct hd_val *configurable);

/* Writes the user for workers: as custom auth returned it, or from the identity. */
void hd_user_put(struct hd_jw *jw, const struct hd_identity *who);

#endif
