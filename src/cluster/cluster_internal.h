/* Shared by cluster.c, the state that other parts read, and membership.c, which maintains it. */
#ifndef HD_CLUSTER_CLUSTER_INTERNAL_H
#define HD_CLUSTER_CLUSTER_INTERNAL_H

#include <pthread.h>
#include <uv.h>

#include "cluster/cluster.h"
#include "cluster/lease.h"
#include "cluster/observation.h"
#include "cluster/server_row.h"

#define HD_CLUSTER_CALLBACKS 8

struct hd_cluster {
    struct heddle *store;
    struct hd_lease *lease;

    /* ---- for the thread that joins, renews and leaves */
    struct hd_server_row row;
    struct hd_server_rows rows; /* as read last, without those that were removed since */
    struct hd_observation observation;
    int64_t mark_token; /* of the leader; 0: there is no mark */

    /* ---- for the loop */
    uv_async_t async;
    bool has_async;
    bool was_leader; /* as the callbacks were last told */
    struct {
        hd_cluster_gone_fn fn;
        void *ctx;
    } on_gone[HD_CLUSTER_CALLBACKS];
    struct {
        hd_cluster_leader_fn fn;
        void *ctx;
    } on_leader[HD_CLUSTER_CALLBACKS];
    struct {
        hd_cluster_doubt_fn fn;
        void *ctx;
    } on_doubt[HD_CLUSTER_CALLBACKS];
    size_t gone_callbacks, leader_callbacks, doubt_callbacks;

    pthread_mutex_t lock; /* protects the members below, and `async` from being closed */
    struct hd_cluster_server servers[HD_CLUSTER_MAX_SERVERS];
    size_t count;
    bool is_leader;
    bool is_retiring;
    char gone[HD_SERVER_ROWS_MAX][HD_UUID_SIZE]; /* to be reported on the loop */
    size_t gone_count;
};

bool hd_cluster_is_retiring(struct hd_cluster *cluster);
HD_MUST_CHECK int hd_cluster_open_state(struct hd_cluster *cluster, uv_loop_t *loop);
void hd_cluster_close_async(struct hd_cluster *cluster);
/* Publishes `rows` and the leader to other threads, and reports changes on the loop. */
void hd_cluster_publish(struct hd_cluster *cluster);
/* Reports a server that is gone with the next hd_cluster_publish(). */
void hd_cluster_note_gone(struct hd_cluster *cluster, const char *id);
/* On the loop. */
void hd_cluster_report_doubt(struct hd_cluster *cluster, bool in_doubt);

#endif
