/*
 * A lease on a database that processes on other machines may use: rows of the table `servers` with
 * a random token and a beat counter. A separate thread changes the counter five times in each
 * lease, as long as the loop turns. Others observe it: a counter that stays the same for a lease
 * of the observer's own clock, with successful reads throughout, belongs to a dead server. The
 * lease uses neither clocks of other machines nor session state of the database, so poolers are
 * safe.
 *
 * A server that was paused (SIGSTOP, a suspended machine, a lost network) may continue after
 * another one has replaced it. So batches are refused if the lease was not renewed for eight tenths
 * of its time, and after a pause the loop waits for a renewal before it continues. A server that
 * finds its row changed or removed calls `lost` and stops writing.
 *
 * This is the common part of two modes: one server alone (server/store_lease.h), and several that
 * share the store (cluster/membership.h). A mode acquires and removes its rows itself, through the
 * connection of the lease, and renews them when the lease calls it.
 */
#ifndef HD_CLUSTER_LEASE_H
#define HD_CLUSTER_LEASE_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/compiler.h"
#include "base/error.h"

struct heddle;
struct hd_backend;
struct hd_lease;

/* Called once, on a thread of the lease; the process has to end. */
typedef void (*hd_lease_lost_fn)(void *ctx, const char *text);

struct hd_lease_mode {
    /*
     * Renews the rows once, on the thread of the lease; blocks. 0: renewed; HD_ECLOSED: lost, and
     * `fault` has the reason. `is_update`: hd_lease_update() was called.
     */
    int (*renew)(void *ctx, bool is_update, struct heddle_error *fault);
    /*
     * After each renewal: observes other servers; blocks. HD_ECLOSED as above, other errors are
     * ignored. May be NULL.
     */
    int (*observe)(void *ctx, struct heddle_error *fault);
    /* Like renew(): it failed, or was not attempted because the loop is stuck. May be NULL. */
    void (*missed)(void *ctx);
    /*
     * On the loop: the lease was not renewed for eight tenths of its time, or is renewed again. May
     * be NULL.
     */
    void (*doubt)(void *ctx, bool in_doubt);
    const char *fenced; /* the error of a batch after the loss */
};

struct hd_lease_options {
    const char *url; /* of the store; the lease opens a separate connection */
    int64_t lease_us;
    const struct hd_lease_mode *mode;
    void *ctx; /* of the mode */
    hd_lease_lost_fn lost;
    void *lost_ctx;
};

/* Opens the connection. */
HD_MUST_CHECK int hd_lease_create(const struct hd_lease_options *options, struct hd_lease **out,
                                  struct heddle_error *fault);
/* The connection: for the mode before hd_lease_start(), in renew(), and after hd_lease_stop(). */
struct hd_backend *hd_lease_backend(struct hd_lease *lease);
/*
 * The rows were acquired by a batch that was sent at `confirmed_us` of hd_clock_boot_us(). Fences
 * the store and begins to renew. Also after an error the caller leaves the loop and stops.
 */
HD_MUST_CHECK int hd_lease_start(struct hd_lease *lease, struct heddle *store, uv_loop_t *loop,
                                 int64_t confirmed_us);
/* Renews at once. May be called from any thread. */
void hd_lease_update(struct hd_lease *lease);
/* True: the lease was not renewed for eight tenths of its time. May be called from any thread. */
bool hd_lease_in_doubt(const struct hd_lease *lease);
int64_t hd_lease_us(const struct hd_lease *lease);
/* The loop is about to end: closes the handles of the lease. It is still renewed. */
void hd_lease_leave_loop(struct hd_lease *lease);
/* After the loop has closed the handles: ends the thread. Then the mode removes its rows. */
void hd_lease_stop(struct hd_lease *lease);
/* Accepts NULL. */
void hd_lease_destroy(struct hd_lease *lease);

#endif
