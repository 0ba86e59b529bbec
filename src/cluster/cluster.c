#include "cluster/cluster.h"

#include <string.h>

#include "base/alloc.h"
#include "cluster/cluster_internal.h"
#include "store/rows.h"

/* ---- what other parts read --------------------------------------------- */

bool hd_cluster_is_on(const struct hd_cluster *cluster)
{
    return cluster != NULL;
}

struct hd_slice hd_cluster_self(const struct hd_cluster *cluster)
{
    return cluster ? hd_slice_cstr(cluster->row.slot) : hd_slice(NULL, 0);
}

bool hd_cluster_is_leader(struct hd_cluster *cluster)
{
    bool is_leader;

    if (!cluster)
        return true;
    pthread_mutex_lock(&cluster->lock);
    is_leader = cluster->is_leader;
    pthread_mutex_unlock(&cluster->lock);
    return is_leader && !hd_lease_in_doubt(cluster->lease);
}

void hd_cluster_retire(struct hd_cluster *cluster)
{
    if (!cluster)
        return;
    pthread_mutex_lock(&cluster->lock);
    cluster->is_retiring = true;
    pthread_mutex_unlock(&cluster->lock);
}

bool hd_cluster_is_retiring(struct hd_cluster *cluster)
{
    bool is_retiring;

    pthread_mutex_lock(&cluster->lock);
    is_retiring = cluster->is_retiring;
    pthread_mutex_unlock(&cluster->lock);
    return is_retiring;
}

size_t hd_cluster_size(struct hd_cluster *cluster)
{
    size_t count;

    if (!cluster)
        return 1;
    pthread_mutex_lock(&cluster->lock);
    count = cluster->count;
    pthread_mutex_unlock(&cluster->lock);
    return count;
}

bool hd_cluster_find(struct hd_cluster *cluster, struct hd_slice id, struct hd_cluster_server *out)
{
    bool is_found = false;

    if (!cluster)
        return false;
    pthread_mutex_lock(&cluster->lock);
    for (size_t i = 0; i < cluster->count && !is_found; i++) {
        is_found = hd_slice_eq(hd_slice_cstr(cluster->servers[i].id), id);
        if (is_found)
            *out = cluster->servers[i];
    }
    pthread_mutex_unlock(&cluster->lock);
    return is_found;
}

static int on_own_row(void *arg, size_t which, const struct hd_cell *cells)
{
    (void)which;
    (void)cells;
    *(bool *)arg = false;
    return 1;
}

int hd_cluster_check_gone(struct hd_cluster *cluster, struct hd_slice id, bool *out,
                          struct heddle_error *fault)
{
    const struct hd_cell slot = hd_cell_bytes(id);
    const struct hd_query query = {
        .table = HD_SERVERS, .index = HD_PRIMARY, .prefix = &slot, .prefix_count = 1, .limit = 1};

    *out = id.len > 0;
    if (!cluster || id.len == 0)
        return 0;
    return hd_rows_read(cluster->store, &query, 1, on_own_row, out, fault);
}

size_t hd_cluster_list(struct hd_cluster *cluster, struct hd_cluster_server *out)
{
    size_t count;

    if (!cluster)
        return 0;
    pthread_mutex_lock(&cluster->lock);
    count = cluster->count;
    memcpy(out, cluster->servers, count * sizeof(*out));
    pthread_mutex_unlock(&cluster->lock);
    return count;
}

int64_t hd_cluster_lease_us(const struct hd_cluster *cluster)
{
    return cluster ? hd_lease_us(cluster->lease) : 0;
}

bool hd_cluster_in_doubt(const struct hd_cluster *cluster)
{
    return cluster && hd_lease_in_doubt(cluster->lease);
}

/* ---- callbacks --------------------------------------------------------- */

int hd_cluster_on_gone(struct hd_cluster *cluster, hd_cluster_gone_fn fn, void *ctx)
{
    if (!cluster)
        return 0;
    if (cluster->gone_callbacks == HD_CLUSTER_CALLBACKS)
        return HD_ELIMIT;
    cluster->on_gone[cluster->gone_callbacks].fn = fn;
    cluster->on_gone[cluster->gone_callbacks++].ctx = ctx;
    return 0;
}

int hd_cluster_on_leader(struct hd_cluster *cluster, hd_cluster_leader_fn fn, void *ctx)
{
    if (!cluster)
        return 0;
    if (cluster->leader_callbacks == HD_CLUSTER_CALLBACKS)
        return HD_ELIMIT;
    cluster->on_leader[cluster->leader_callbacks].fn = fn;
    cluster->on_leader[cluster->leader_callbacks++].ctx = ctx;
    return 0;
}

int hd_cluster_on_doubt(struct hd_cluster *cluster, hd_cluster_doubt_fn fn, void *ctx)
{
    if (!cluster)
        return 0;
    if (cluster->doubt_callbacks == HD_CLUSTER_CALLBACKS)
        return HD_ELIMIT;
    cluster->on_doubt[cluster->doubt_callbacks].fn = fn;
    cluster->on_doubt[cluster->doubt_callbacks++].ctx = ctx;
    return 0;
}

void hd_cluster_report_doubt(struct hd_cluster *cluster, bool in_doubt)
{
    for (size_t i = 0; i < cluster->doubt_callbacks; i++)
        cluster->on_doubt[i].fn(cluster->on_doubt[i].ctx, in_doubt);
}

static void report_gone(struct hd_cluster *cluster, const char *id)
{
    for (size_t i = 0; i < cluster->gone_callbacks; i++)
        cluster->on_gone[i].fn(cluster->on_gone[i].ctx, hd_slice_cstr(id));
}

/* Removes and copies the first one; false: there is none. */
static bool take_gone(struct hd_cluster *cluster, char *id)
{
    bool has_one;

    pthread_mutex_lock(&cluster->lock);
    has_one = cluster->gone_count > 0;
    if (has_one) {
        memcpy(id, cluster->gone[0], HD_UUID_SIZE);
        cluster->gone_count--;
        memmove(cluster->gone[0], cluster->gone[1], cluster->gone_count * HD_UUID_SIZE);
    }
    pthread_mutex_unlock(&cluster->lock);
    return has_one;
}

static void on_cluster_changed(uv_async_t *async)
{
    struct hd_cluster *cluster = async->data;
    char id[HD_UUID_SIZE];
    bool is_leader;

    while (take_gone(cluster, id))
        report_gone(cluster, id);
    pthread_mutex_lock(&cluster->lock);
    is_leader = cluster->is_leader;
    pthread_mutex_unlock(&cluster->lock);
    if (is_leader && !cluster->was_leader) {
        for (size_t i = 0; i < cluster->leader_callbacks; i++)
            cluster->on_leader[i].fn(cluster->on_leader[i].ctx);
    }
    cluster->was_leader = is_leader;
}

/* ---- what membership.c writes ------------------------------------------ */

static void copy_server(const struct hd_cluster *cluster, const struct hd_server_row *row,
                        struct hd_cluster_server *out)
{
    memset(out, 0, sizeof(*out));
    memcpy(out->id, row->slot, sizeof(out->id));
    memcpy(out->address, row->identity.address, sizeof(out->address));
    memcpy(out->version, row->identity.version, sizeof(out->version));
    memcpy(out->host, row->identity.host, sizeof(out->host));
    out->pid = row->identity.pid;
    out->is_leader = row->token == cluster->mark_token;
    out->is_self = row->token == cluster->row.token;
}

/* Call it with the lock held. */
static void add_gone(struct hd_cluster *cluster, const char *id)
{
    for (size_t i = 0; i < cluster->gone_count; i++) {
        if (strcmp(cluster->gone[i], id) == 0)
            return;
    }
    if (cluster->gone_count < HD_COUNT(cluster->gone))
        memcpy(cluster->gone[cluster->gone_count++], id, HD_UUID_SIZE);
}

void hd_cluster_note_gone(struct hd_cluster *cluster, const char *id)
{
    pthread_mutex_lock(&cluster->lock);
    add_gone(cluster, id);
    pthread_mutex_unlock(&cluster->lock);
}

void hd_cluster_publish(struct hd_cluster *cluster)
{
    bool is_leader = cluster->mark_token == cluster->row.token, is_changed;
    size_t count = 0;

    pthread_mutex_lock(&cluster->lock);
    is_leader = is_leader && (cluster->is_leader || !cluster->is_retiring);
    for (size_t i = 0; i < cluster->count; i++) {
        if (!hd_server_row_find(&cluster->rows, cluster->servers[i].id))
            add_gone(cluster, cluster->servers[i].id);
    }
    for (size_t i = 0; i < cluster->rows.count && count < HD_COUNT(cluster->servers); i++) {
        if (cluster->rows.items[i].slot[0])
            copy_server(cluster, &cluster->rows.items[i], &cluster->servers[count++]);
    }
    cluster->count = count;
    is_changed = cluster->gone_count > 0 || is_leader != cluster->is_leader;
    cluster->is_leader = is_leader;
    if (is_changed && cluster->has_async)
        (void)uv_async_send(&cluster->async); /* fails only without a handle */
    pthread_mutex_unlock(&cluster->lock);
}

int hd_cluster_open_state(struct hd_cluster *cluster, uv_loop_t *loop)
{
    if (uv_async_init(loop, &cluster->async, on_cluster_changed))
        return HD_EIO;
    cluster->async.data = cluster;
    uv_unref((uv_handle_t *)&cluster->async);
    pthread_mutex_lock(&cluster->lock);
    cluster->has_async = true;
    if (cluster->gone_count > 0 || cluster->is_leader)
        (void)uv_async_send(&cluster->async);
    pthread_mutex_unlock(&cluster->lock);
    return 0;
}

void hd_cluster_close_async(struct hd_cluster *cluster)
{
    bool has_async;

    pthread_mutex_lock(&cluster->lock);
    has_async = cluster->has_async;
    cluster->has_async = false;
    pthread_mutex_unlock(&cluster->lock);
    if (has_async)
        uv_close((uv_handle_t *)&cluster->async, NULL);
}
