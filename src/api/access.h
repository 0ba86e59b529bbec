/*
 * Who may do what: from a route and credentials to the compartment that a request is about.
 *
 * Every endpoint says what it takes to be let in (hd_endpoint.access); one that says nothing is a
 * mistake that keeps the server from starting. Where the path names a thread, that thread is looked
 * for among the caller's own, then among those it takes part in (records/participants.h). Somebody
 * else's thread is not found, in the same way and with the same words as one that does not exist.
 */
#ifndef HD_API_ACCESS_H
#define HD_API_ACCESS_H

#include "api/api.h"
#include "auth/identity.h"

/*
 * HD_EINVAL: the route does not say who may use it, or what of custom auth it concerns, or says it
 * of a thread it does not name.
 */
HD_MUST_CHECK int hd_access_check(const struct hd_endpoint *route, struct hd_fault *fault);
/* The first part of the route's path is a thread. */
bool hd_access_is_thread(const struct hd_endpoint *route);

/* Loop: finds out who asks and whether it may; goes on with `next`, or answers itself. */
void hd_access_enter(struct hd_call *call, void (*next)(struct hd_call *call));
/* Loop: the exchange ends, and with it what is known of who asked. */
void hd_access_leave(struct hd_call *call);

/*
 * Store thread, before `work`: the thread in the path. Sets call->principal and call->role. A
 * positive answer: it was refused, the refusal is in the call.
 */
HD_MUST_CHECK int hd_access_path(struct hd_call *call);

/*
 * The same for a thread that a body names: whose it is and what the caller may do with it. The
 * caller's own principal and HD_ROLE_OWNER when nobody shared it, whether or not it exists: what
 * is not there will not be found.
 */
HD_MUST_CHECK int hd_access_find(struct hd_call *call, struct hd_slice thread_id,
                                 struct hd_slice *principal, enum hd_role *role);
/* hd_access_find(); a positive answer, and a 403 in the call, when the role is less. */
HD_MUST_CHECK int hd_access_need(struct hd_call *call, struct hd_slice thread_id,
                                 enum hd_role least, struct hd_slice *principal);
/* Says which role it would take; for `work` (HD_CALL_ANSWERED). */
int hd_access_refuse(struct hd_call *call, enum hd_role least);

/*
 * Store thread, before `work`: whether the principal may store more, when the route does. A
 * positive answer: it was refused.
 */
HD_MUST_CHECK int hd_access_room(struct hd_call *call);

#endif
