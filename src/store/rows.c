#include "store/rows.h"

#include <stdatomic.h>

#include "base/alloc.h"
#include "store/lane.h"
#include "store/retry.h"
#include "store/scan.h"

int hd_rows_apply(struct heddle *store, struct hd_slice lane_key, const struct hd_batch *batch,
                  size_t *failed, struct heddle_error *fault)
{
    struct hd_lane_request request;
    int err;

    hd_lane_request_rows(&request, lane_key, batch);
    err = hd_lane_run(hd_store_of(store), &request, fault);
    if (err == HD_ECONFLICT && failed)
        *failed = request.as.rows.failed;
    hd_lane_request_fini(&request);
    return err;
}

/* Moves the batch into the request, which outlives the caller's builder. */
static int own(struct hd_lane_request *request, struct hd_batch_builder *taken)
{
    int err = hd_arena_copy(&request->arena, request->thread, &request->thread);

    if (err)
        return err;
    request->as.rows.owned = *taken;
    hd_batch_init(taken);
    return 0;
}

int hd_rows_apply_async(struct heddle *store, struct hd_slice lane_key,
                        struct hd_batch_builder *taken, heddle_done done, void *arg)
{
    struct hd_lane_request *request = hd_malloc(sizeof(*request));
    struct hd_batch batch = hd_batch_view(taken);
    int err;

    if (!request)
        return HD_ENOMEM;
    hd_lane_request_rows(request, lane_key, &batch);
    request->done = done;
    request->done_arg = arg;
    err = own(request, taken);
    if (!err) {
        err = hd_lane_queue(hd_store_of(store), request);
        if (!err) {
            hd_lanes_wake(hd_store_of(store));
            return 0;
        }
        *taken = request->as.rows.owned;
        hd_batch_init(&request->as.rows.owned);
    }
    hd_lane_request_fini(request);
    hd_free(request);
    return err;
}

int hd_rows_change(struct heddle *store, hd_rows_change_fn attempt, void *arg,
                   struct heddle_error *fault)
{
    struct hd_conflict_retry retry = {0};
    int err;

    do
        err = attempt(arg, fault);
    while (err == HD_ECONFLICT && hd_conflict_retry(hd_store_of(store), &retry, &err, fault));
    return err;
}

int hd_rows_read(struct heddle *store, const struct hd_query *queries, size_t count, hd_row_fn fn,
                 void *arg, struct heddle_error *fault)
{
    return hd_backend_read(hd_store_of(store)->backend, queries, count, fn, arg, fault);
}

int hd_rows_scan(struct heddle *store, struct hd_query query, hd_row_fn fn, void *arg,
                 struct heddle_error *fault)
{
    return hd_scan(hd_store_of(store)->backend, query, fn, arg, fault);
}

int hd_rows_count(struct heddle *store, struct hd_query query, int64_t *out,
                  struct heddle_error *fault)
{
    return hd_backend_count(hd_store_of(store)->backend, query, out, fault);
}

int hd_rows_nearest(struct heddle *store, const struct hd_query *queries, size_t count,
                    struct hd_slice vector, hd_row_fn fn, void *arg, struct heddle_error *fault)
{
    return hd_backend_nearest(hd_store_of(store)->backend, queries, count, vector, fn, arg, fault);
}

struct hd_rows_counts hd_rows_counts(struct heddle *store)
{
    struct hd_backend *backend = hd_store_of(store)->backend;

    return (struct hd_rows_counts){
        .reads = atomic_load_explicit(&backend->reads, memory_order_relaxed),
        .writes = atomic_load_explicit(&backend->writes, memory_order_relaxed)};
}

const char *hd_rows_file(struct heddle *store)
{
    return hd_store_of(store)->backend->file;
}

int hd_rows_upgrade(struct heddle *store, struct heddle_error *fault)
{
    return hd_backend_upgrade(hd_store_of(store)->backend, fault);
}

bool hd_rows_is_remote(struct heddle *store)
{
    return hd_store_of(store)->backend->is_remote;
}

void hd_rows_set_fence(struct heddle *store, int (*fence)(void *arg, struct heddle_error *fault),
                       void *arg)
{
    struct hd_backend *backend = hd_store_of(store)->backend;

    backend->fence = fence;
    backend->fence_arg = arg;
}

void hd_rows_set_outage(struct heddle *store, int64_t outage_us)
{
    hd_store_of(store)->outage_us = outage_us;
}

void hd_rows_end_outage(struct heddle *store)
{
    atomic_store(&hd_store_of(store)->is_ending, true);
    hd_lanes_wake(hd_store_of(store));
}

size_t hd_rows_waiting(struct heddle *store)
{
    return atomic_load_explicit(&hd_store_of(store)->waiting_count, memory_order_relaxed);
}
