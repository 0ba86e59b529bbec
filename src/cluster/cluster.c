#include "cluster/cluster.h"

bool hd_cluster_is_on(const struct hd_cluster *cluster)
{
    return cluster != NULL;
}

struct hd_slice hd_cluster_self(const struct hd_cluster *cluster)
{
    (void)cluster;
    return hd_slice(NULL, 0);
}

bool hd_cluster_is_leader(struct hd_cluster *cluster)
{
    return cluster == NULL;
}

size_t hd_cluster_size(struct hd_cluster *cluster)
{
    (void)cluster;
    return 1;
}

bool hd_cluster_find(struct hd_cluster *cluster, struct hd_slice id, struct hd_cluster_server *out)
{
    (void)cluster;
    (void)id;
    (void)out;
    return false;
}

size_t hd_cluster_list(struct hd_cluster *cluster, struct hd_cluster_server *out)
{
    (void)cluster;
    (void)out;
    return 0;
}
