/*
 * The servers that share a store. Each has a row in the table `servers` with its address and a beat
 * counter; one of them is the leader, which does the work that must be done once: crons, sweeps,
 * webhooks of other servers' runs.
 *
 * A server is gone when another one has removed its row: it has stopped, or its counter has not
 * changed for a lease of the observer's own clock. A server whose row was removed ends. So a hold
 * (records/hold.h) of a server without a row is free to be taken over.
 *
 * All functions accept NULL: a server that uses its store alone. They may be called from any
 * thread.
 */
#ifndef HD_CLUSTER_CLUSTER_H
#define HD_CLUSTER_CLUSTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"
#include "base/slice.h"
#include "base/uuid.h"

struct hd_cluster;

struct hd_cluster_server {
    char id[HD_UUID_SIZE]; /* random, one for each start */
    char address[256];     /* URL */
    char version[32];
    char host[128];
    int64_t pid;
    bool is_leader;
    bool is_self;
};

#define HD_CLUSTER_MAX_SERVERS 64

/* Returns whether the store may have several servers. */
bool hd_cluster_is_on(const struct hd_cluster *cluster);
/* The id of this server; empty for NULL. Valid for the life of the cluster. */
struct hd_slice hd_cluster_self(const struct hd_cluster *cluster);
/*
 * Returns whether this server does the work that must be done once; true for NULL. False while its
 * lease is in doubt: another server may be the leader by then.
 */
bool hd_cluster_is_leader(struct hd_cluster *cluster);
/*
 * This server is about to stop, as soon as its responses have ended: it does not become the leader.
 * If it is the leader, it stays it until it leaves.
 */
void hd_cluster_retire(struct hd_cluster *cluster);
/* The number of live servers; 1 for NULL. */
size_t hd_cluster_size(struct hd_cluster *cluster);
/*
 * Finds a server as of the last beat; false: it is gone, or has joined since. Does not block. To
 * take a thread over, use hd_cluster_check_gone().
 */
bool hd_cluster_find(struct hd_cluster *cluster, struct hd_slice id, struct hd_cluster_server *out);
/*
 * Reads from the store whether the server with this id, which the caller knows from a row read
 * before, is gone; it then never comes back. Blocks. NULL: every server but an empty id is gone.
 */
HD_MUST_CHECK int hd_cluster_check_gone(struct hd_cluster *cluster, struct hd_slice id, bool *out,
                                        struct heddle_error *fault);
/* Copies the live servers, at most HD_CLUSTER_MAX_SERVERS, by id; returns their number. */
size_t hd_cluster_list(struct hd_cluster *cluster, struct hd_cluster_server *out);

/* The lease of this server; 0 for NULL. */
int64_t hd_cluster_lease_us(const struct hd_cluster *cluster);
/*
 * Returns whether the lease was not renewed for eight tenths of its time, so that batches of this
 * server are refused; false for NULL.
 */
bool hd_cluster_in_doubt(const struct hd_cluster *cluster);

/* ---- callbacks, on the loop ------------------------------------------- */

/*
 * They may be registered on the loop at any time, up to eight of each kind (HD_ELIMIT); with NULL
 * nothing is ever called. They are called by later turns of the loop.
 */

/* A server is gone: it has stopped or died. Its id is valid during the call. */
typedef void (*hd_cluster_gone_fn)(void *ctx, struct hd_slice id);
/* This server has become the leader, also at its start. */
typedef void (*hd_cluster_leader_fn)(void *ctx);
/* The lease is in doubt, or is renewed again. */
typedef void (*hd_cluster_doubt_fn)(void *ctx, bool in_doubt);

HD_MUST_CHECK int hd_cluster_on_gone(struct hd_cluster *cluster, hd_cluster_gone_fn fn, void *ctx);
HD_MUST_CHECK int hd_cluster_on_leader(struct hd_cluster *cluster, hd_cluster_leader_fn fn,
                                       void *ctx);
HD_MUST_CHECK int hd_cluster_on_doubt(struct hd_cluster *cluster, hd_cluster_doubt_fn fn,
                                      void *ctx);

#endif
