/*
 * Lease on a database that processes on other machines may use: one server at a time
 * (cluster/lease.h).
 *
 * The server that holds the lease has the row of slot "". A server that starts and finds rows
 * observes them: a counter that changes belongs to a live server, and the start is refused. A
 * counter that stays the same for the server's lease belongs to a dead one, and its row is
 * replaced; when the row names a process of this host that no longer exists, at once.
 */
#ifndef HD_SERVER_STORE_LEASE_H
#define HD_SERVER_STORE_LEASE_H

#include <uv.h>

#include "base/compiler.h"
#include "base/error.h"
#include "cluster/lease.h"
#include "cluster/server_identity.h"

struct heddle;
struct hd_store_lease;

struct hd_store_lease_options {
    const char *url; /* of the store; the lease opens a separate connection */
    const struct hd_server_identity *self;
    uv_loop_t *loop;
    hd_lease_lost_fn lost;
    void *ctx;
};

/*
 * Blocks for at most the lease time. HD_EBUSY: held; `fault` names the server. Fences `store`. Also
 * after an error the caller leaves the loop and releases *out, if that is not NULL.
 */
HD_MUST_CHECK int hd_store_lease_take(struct heddle *store,
                                      const struct hd_store_lease_options *options,
                                      struct hd_store_lease **out, struct heddle_error *fault);
/* Records the identity that refused servers report; written with the next beat. */
void hd_store_lease_update(struct hd_store_lease *lease, const struct hd_server_identity *self);
/* The loop is about to end: closes the lease's handles. Beats continue. Accepts NULL. */
void hd_store_lease_leave_loop(struct hd_store_lease *lease);
/* After the loop has closed the handles: removes the row. Accepts NULL. */
void hd_store_lease_release(struct hd_store_lease *lease);

#endif
