/*
 * The right of this server to use a store. Two servers that do not know each other would both
 * execute its runs.
 *
 * A database file is held by a kernel lock (store_lock_file.h); a database that other machines may
 * use by a lease (store_lease.h), or, with the cluster settings, by joining the other servers
 * (cluster/membership.h); a store in memory needs no lock. Commands such as `heddle doctor` and
 * users of the library take no lock and may run beside a server.
 */
#ifndef HD_SERVER_STORE_LOCK_H
#define HD_SERVER_STORE_LOCK_H

#include "server/store_lease.h"

struct hd_cluster;
struct hd_config;
struct hd_store_lock;

/*
 * HD_EBUSY: held; `fault` names the server. `lost` is called when another server has taken
 * over the store, which only happens after this one was paused or cut off; the process has to end.
 * Also after an error the caller leaves the loop and releases *out.
 */
HD_MUST_CHECK int hd_store_lock_take(struct heddle *store, const struct hd_config *config,
                                     uv_loop_t *loop, hd_lease_lost_fn lost, void *ctx,
                                     struct hd_store_lock **out, struct heddle_error *fault);
/* The servers that share the store; NULL: this one uses it alone. Valid until the release. */
struct hd_cluster *hd_store_lock_cluster(const struct hd_store_lock *hold);
/* Sets the server's URL, which refused servers report. A shared store has cluster.address. */
void hd_store_lock_set_address(struct hd_store_lock *hold, const char *address);
/* Call it before the loop ends. Accepts NULL. */
void hd_store_lock_leave_loop(struct hd_store_lock *hold);
/* Call it after the loop has ended and the store is closed. Accepts NULL. */
void hd_store_lock_release(struct hd_store_lock *hold);

#endif
