/*
 * Gives the leader of a cluster the work of servers that are gone: crons, webhooks, the search index.
 * Its own parts ask hd_cluster_is_leader() when they are due; this one tells them when to look at
 * once. Belongs to the loop.
 */
#ifndef HD_SERVER_LEADER_WORK_H
#define HD_SERVER_LEADER_WORK_H

#include "base/compiler.h"

struct hd_app;
struct hd_leader_work;

/* *out is NULL for a server that uses its store alone. */
HD_MUST_CHECK int hd_leader_work_create(struct hd_app *app, struct hd_leader_work **out);
/* NULL is fine. */
void hd_leader_work_destroy(struct hd_leader_work *work);

#endif
