#include "server/store_lock.h"

#include <stdio.h>

#include "base/alloc.h"
#include "cluster/membership.h"
#include "config/config.h"
#include "server/store_lock_file.h"
#include "store/rows.h"

struct hd_store_lock {
    struct hd_server_identity self;
    struct hd_store_lock_file *file; /* NULL: the store is not a file */
    struct hd_store_lease *lease;    /* NULL: no other machine can use the store, or it is shared */
    struct hd_cluster *cluster;      /* NULL: it is not shared */
};

static int join_cluster(struct hd_store_lock *hold, struct heddle *store,
                        const struct hd_config *config, uv_loop_t *loop, hd_lease_lost_fn lost,
                        void *ctx, struct heddle_error *fault)
{
    const struct hd_cluster_options options = {.url = config->store,
                                               .address = config->cluster_address,
                                               .lease_us = config->cluster_lease_us,
                                               .self = &hold->self,
                                               .loop = loop,
                                               .lost = lost,
                                               .lost_ctx = ctx};

    return hd_cluster_join(store, &options, &hold->cluster, fault);
}

int hd_store_lock_take(struct heddle *store, const struct hd_config *config, uv_loop_t *loop,
                       hd_lease_lost_fn lost, void *ctx, struct hd_store_lock **out,
                       struct heddle_error *fault)
{
    struct hd_store_lock *hold = hd_calloc(1, sizeof(*hold));
    const char *file = hd_rows_file(store);
    int err = 0;

    if (!hold)
        return HD_ENOMEM;
    hd_server_identity_init(&hold->self);
    *out = hold;
    if (config->cluster_address[0]) {
        err = join_cluster(hold, store, config, loop, lost, ctx, fault);
    } else if (file) {
        err = hd_store_lock_file_take(file, &hold->self, &hold->file, fault);
    } else if (hd_rows_is_remote(store)) {
        const struct hd_store_lease_options options = {
            .url = config->store, .self = &hold->self, .loop = loop, .lost = lost, .ctx = ctx};

        err = hd_store_lease_take(store, &options, &hold->lease, fault);
    }
    return err;
}

struct hd_cluster *hd_store_lock_cluster(const struct hd_store_lock *hold)
{
    return hold->cluster;
}

void hd_store_lock_set_address(struct hd_store_lock *hold, const char *address)
{
    (void)snprintf(hold->self.address, sizeof(hold->self.address), "%s", address);
    if (hold->file)
        hd_store_lock_file_update(hold->file, &hold->self);
    if (hold->lease)
        hd_store_lease_update(hold->lease, &hold->self);
}

void hd_store_lock_leave_loop(struct hd_store_lock *hold)
{
    if (!hold)
        return;
    hd_store_lease_leave_loop(hold->lease);
    hd_cluster_leave_loop(hold->cluster);
}

void hd_store_lock_release(struct hd_store_lock *hold)
{
    if (!hold)
        return;
    hd_store_lock_file_release(hold->file);
    hd_store_lease_release(hold->lease);
    hd_cluster_leave(hold->cluster);
    hd_free(hold);
}
