/*
 * Lease on a database that processes on other machines may use: one server at a time.
 *
 * The server that holds the lease has a row in the table `servers` with a random token and a beat
 * counter. A separate thread increments the counter every two seconds, as long as the loop turns. A
 * server that starts and finds the row observes it: a counter that changes belongs to a live
 * server, and the start is refused. A counter that stays the same for ten seconds of the observer's
 * own clock, with successful reads throughout, belongs to a dead one, and the row is replaced. When
 * the row names a process of this host that no longer exists, it is replaced at once. The lease
 * uses neither clocks of other machines nor session state of the database, so poolers are safe.
 *
 * A server that was paused (SIGSTOP, a suspended machine, a lost network) may continue after
 * another one has replaced its row. So batches are refused if the lease was not renewed for eight
 * seconds, and after a pause the loop waits for a renewal before it continues. A server that finds
 * another token in its row calls `lost` and stops writing.
 */
#ifndef HD_SERVER_STORE_LEASE_H
#define HD_SERVER_STORE_LEASE_H

#include <uv.h>

#include "base/compiler.h"
#include "base/error.h"
#include "server/server_identity.h"

struct heddle;
struct hd_store_lease;

/* Called once, on a thread of the lease; the process has to end. */
typedef void (*hd_store_lease_lost_fn)(void *ctx, const char *text);

struct hd_store_lease_options {
    const char *url; /* of the store; the lease opens a separate connection */
    const struct hd_server_identity *self;
    uv_loop_t *loop;
    hd_store_lease_lost_fn lost;
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
