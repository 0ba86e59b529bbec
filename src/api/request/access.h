/*
 * Access control: maps a route and credentials to the compartment that a request uses.
 *
 * Every endpoint declares the access it requires (hd_endpoint.access); an undeclared one keeps the
 * server from starting. When the path names a thread, the lookup tries the caller's own threads,
 * then those it participates in (records/participants.h). Unauthorized and nonexistent threads are
 * indistinguishable.
 */
#ifndef HD_API_REQUEST_ACCESS_H
#define HD_API_REQUEST_ACCESS_H

#include "api/api.h"
#include "auth/identity.h"

/*
 * HD_EINVAL: the route declares no access or no custom auth event, or requires a thread that its
 * path does not name.
 */
HD_MUST_CHECK int hd_access_check(const struct hd_endpoint *route, struct heddle_error *fault);
/* The first part of the route's path is a thread. */
bool hd_access_is_thread(const struct hd_endpoint *route);

/* ---- stages (pipeline.h) ---------------------------------------------- */

/* HD_STAGE_AUTHENTICATE: sets call->identity from the credentials. */
struct hd_step hd_access_authenticate(struct hd_call *call);
/*
 * HD_STAGE_ACT_FOR, when the request names a user for whom an administrator acts: call->identity
 * becomes call->by. HD_STAGE_FIND_USER: finds the principal of that user.
 */
bool hd_access_names_user(const struct hd_call *call);
struct hd_step hd_access_act_for(struct hd_call *call);
bool hd_access_acts_for(const struct hd_call *call);
struct hd_step hd_access_find_user(struct hd_call *call);
/* HD_STAGE_ENTER: the identity is final; checks administrators' routes and counts the request. */
struct hd_step hd_access_enter(struct hd_call *call);
/* Parts of HD_STAGE_PREPARE. The thread in the path: sets call->principal and call->role. */
struct hd_step hd_access_path(struct hd_call *call);
/* The principal's storage limit, when the route stores data. */
struct hd_step hd_access_storage(struct hd_call *call);
/* Loop: the exchange ends; releases the caller's identity. */
void hd_access_leave(struct hd_call *call);

/* ---- for routes, on store threads ------------------------------------- */

/*
 * A thread that a body names: its owner and the caller's role in it. For a thread that
 * is not shared with the caller, or does not exist: the caller's own principal and HD_ROLE_OWNER,
 * so that the route's own lookup fails.
 */
HD_MUST_CHECK int hd_access_find(struct hd_call *call, struct hd_slice thread_id,
                                 struct hd_slice *principal, enum hd_role *role);
/* hd_access_find(); HD_NEXT, or a 403 when the role is lower. */
HD_MUST_CHECK struct hd_step hd_access_need(struct hd_call *call, struct hd_slice thread_id,
                                            enum hd_role least, struct hd_slice *principal);
/* Refuses with the required role. */
struct hd_step hd_access_refuse(struct hd_call *call, enum hd_role least);

#endif
