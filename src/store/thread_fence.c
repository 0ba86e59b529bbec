#include "store/thread_fence.h"

#include "store/lane.h"

int hd_thread_fence_expect(struct hd_batch_builder *batch, struct hd_slice thread,
                           const struct hd_guard *guard)
{
    struct heddle_thread parts = hd_store_thread_from_key(thread);
    const struct hd_cell key[] = {hd_cell_bytes(hd_from_public(parts.principal)),
                                  hd_cell_bytes(hd_from_public(parts.id))};

    if (guard->token)
        return hd_batch_expect(batch, HD_HOLDS, key, HD_HOLDS_TOKEN, guard->token);
    if (guard->created_at)
        return hd_batch_expect(batch, HD_THREAD_INFO, key, HD_THREAD_INFO_CREATED,
                               guard->created_at);
    return 0;
}

static int on_record(void *arg, size_t which, const struct hd_cell *cells)
{
    (void)which;
    *(int64_t *)arg = cells[HD_THREAD_INFO_CREATED].number;
    return 0;
}

int hd_thread_fence_error(struct hd_backend *backend, struct hd_slice thread,
                          const struct hd_guard *guard, enum hd_table_id table)
{
    struct heddle_thread parts = hd_store_thread_from_key(thread);
    const struct hd_cell key[] = {hd_cell_bytes(hd_from_public(parts.principal)),
                                  hd_cell_bytes(hd_from_public(parts.id))};
    const struct hd_query query = {.table = HD_THREAD_INFO,
                                   .index = HD_PRIMARY,
                                   .prefix = key,
                                   .prefix_count = HD_COUNT(key),
                                   .limit = 1,
                                   .columns = 1u << HD_THREAD_INFO_CREATED};
    struct heddle_error ignored = {0};
    int64_t created_at = 0;

    if (table != HD_HOLDS)
        return table == HD_THREAD_INFO ? HD_ENOTFOUND : 0;
    if (!guard->created_at || hd_backend_read(backend, &query, 1, on_record, &created_at, &ignored))
        return HD_ETAKEN;
    return created_at == guard->created_at ? HD_ETAKEN : HD_ENOTFOUND;
}

int hd_thread_fence_renew(struct heddle *store, struct hd_batch_builder *batch,
                          struct hd_slice thread, struct heddle_error *fault)
{
    int64_t epoch;
    int err = hd_store_read_epoch(hd_store_of(store), thread, &epoch, fault);

    if (err == HD_ENOTFOUND)
        return 0; /* a writer that adds the row verifies its guard */
    /* The parity stays: an odd epoch belongs to a collector (collect.c). */
    return err ? err : hd_batch_expect_epoch(batch, thread, epoch, HD_THREADS_EPOCH, epoch + 2);
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
