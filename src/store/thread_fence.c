#include "store/thread_fence.h"

#include "store/lane.h"

int hd_thread_fence_expect(struct hd_batch_builder *batch, struct hd_slice thread,
                           int64_t created_at)
{
    struct heddle_thread parts = hd_store_thread_from_key(thread);
    const struct hd_cell key[] = {hd_cell_bytes(hd_from_public(parts.principal)),
                                  hd_cell_bytes(hd_from_public(parts.id))};

    return hd_batch_expect(batch, HD_THREAD_INFO, key, HD_THREAD_INFO_CREATED, created_at);
}

struct erasure {
    struct hd_slice thread;
    const struct hd_batch *rows;
};

static int erase_job(struct hd_store *store, struct hd_lane *lane, void *arg,
                     struct heddle_error *fault)
{
    const struct erasure *erasure = arg;
    struct hd_batch_builder builder;
    struct hd_batch batch;
    size_t failed;
    int err;

    (void)lane;
    hd_batch_init(&builder);
    err = hd_batch_append(&builder, erasure->rows);
    if (!err)
        err = hd_batch_erase(&builder, erasure->thread);
    batch = hd_batch_view(&builder);
    if (!err)
        err = hd_backend_apply(store->backend, &batch, &failed, fault);
    hd_batch_fini(&builder);
    return err;
}

int hd_thread_fence_erase(struct heddle *store, struct hd_slice thread, const struct hd_batch *rows,
                          struct heddle_error *fault)
{
    struct erasure erasure = {thread, rows};

    return hd_lane_job(hd_store_of(store), thread, erase_job, &erasure, fault);
}
