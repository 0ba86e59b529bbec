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
/* Returns whether this server does the work that must be done once; true for NULL. */
bool hd_cluster_is_leader(struct hd_cluster *cluster);
/* The number of live servers; 1 for NULL. */
size_t hd_cluster_size(struct hd_cluster *cluster);
/* Finds a live server; false: it is gone. */
bool hd_cluster_find(struct hd_cluster *cluster, struct hd_slice id, struct hd_cluster_server *out);
/* Copies the live servers, at most HD_CLUSTER_MAX_SERVERS, by id; returns their number. */
size_t hd_cluster_list(struct hd_cluster *cluster, struct hd_cluster_server *out);

#endif
