/*
 * Joins this server to those that share its store, and leaves them (cluster/cluster.h). For the
 * code that opens and closes the server.
 *
 * After each renewal of its row a server reads all rows and judges the others: one whose process
 * has ended on this host, or whose counter was unchanged for its lease, loses its row by a batch
 * that expects the row as observed. When the leader has no row any more, the first server that
 * changes the mark (server_row.h) becomes the leader.
 */
#ifndef HD_CLUSTER_MEMBERSHIP_H
#define HD_CLUSTER_MEMBERSHIP_H

#include <uv.h>

#include "base/compiler.h"
#include "base/error.h"
#include "cluster/cluster.h"
#include "cluster/lease.h"
#include "cluster/server_identity.h"

struct heddle;

struct hd_cluster_options {
    const char *url;     /* of the store; the lease opens a separate connection */
    const char *address; /* of this server, for the others */
    int64_t lease_us;
    const struct hd_server_identity *self; /* its address, id and lease are set here */
    uv_loop_t *loop;
    hd_lease_lost_fn lost;
    void *lost_ctx;
};

/*
 * HD_EBUSY: a server uses the store alone; `fault` names it. HD_EINVAL: the store is for one server
 * only. Blocks for at most the lease of a server that has ended. Fences `store`. Also after an
 * error the caller leaves the loop and the cluster, if *out is not NULL.
 */
HD_MUST_CHECK int hd_cluster_join(struct heddle *store, const struct hd_cluster_options *options,
                                  struct hd_cluster **out, struct heddle_error *fault);
/* The loop is about to end: closes the handles. Accepts NULL. */
void hd_cluster_leave_loop(struct hd_cluster *cluster);
/* After the loop has closed the handles and the store its last write: removes the rows. Accepts
 * NULL. */
void hd_cluster_leave(struct hd_cluster *cluster);

#endif
