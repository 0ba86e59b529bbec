/*
 * Write requests, checked before they enter a lane.
 *
 * Splitting the values takes time in proportion to their size. A caller that waits does it on its
 * own thread, so that lanes are not held up; for an asynchronous one (an event loop) the lane does
 * it.
 */
#include "store/codec/value.h"
#include "store/lane.h"

static int check_values(struct hd_store *store, const struct heddle_value *values, size_t count,
                        struct heddle_error *fault)
{
    int err = 0;

    for (size_t i = 0; !err && i < count; i++) {
        const struct heddle_value *value = &values[i];

        if (value->data.len > store->max_value)
            return hd_error_set(
                fault, HD_ELIMIT,
                "the value of channel '%.*s' has %zu bytes, more than max_value=%zu",
                (int)(value->channel.len < 80 ? value->channel.len : 80),
                (const char *)value->channel.data, value->data.len, store->max_value);
        err = hd_check_length(hd_from_public(value->channel), HD_MAX_CHANNEL, "channel", fault);
        if (!err)
            err = hd_check_length(hd_from_public(value->type), HD_MAX_TYPE, "type", fault);
    }
    return err;
}

static const struct heddle_value *values_of(const struct hd_lane_request *request, size_t *count)
{
    switch (request->kind) {
    case HD_REQUEST_PUT:
        *count = request->as.put.value_count;
        return request->as.put.values;
    case HD_REQUEST_WRITES:
        *count = request->as.writes.value_count;
        return request->as.writes.values;
    case HD_REQUEST_ROWS:
    case HD_REQUEST_JOB:
        break;
    }
    *count = 0;
    return NULL;
}

int hd_lane_request_cut(struct hd_lane_request *request)
{
    size_t count;
    const struct heddle_value *values = values_of(request, &count);
    struct hd_pieces *pieces;
    int err = 0;

    if (request->pieces)
        return 0;
    pieces = hd_arena_calloc(&request->arena, count, sizeof(*pieces));
    if (!pieces)
        return HD_ENOMEM;
    for (size_t i = 0; i < count; i++)
        hd_pieces_init(&pieces[i]);
    for (size_t i = 0; !err && i < count; i++) {
        if (values[i].data.len > HD_INLINE_MAX && !(request->growths && request->growths[i]))
            err = hd_split(hd_from_public(values[i].type), hd_from_public(values[i].data),
                           &pieces[i]);
    }
    for (size_t i = 0; err && i < count; i++)
        hd_pieces_fini(&pieces[i]);
    if (!err)
        request->pieces = pieces;
    return err;
}

void hd_lane_request_fini(struct hd_lane_request *request)
{
    size_t count;

    values_of(request, &count);
    for (size_t i = 0; request->pieces && i < count; i++)
        hd_pieces_fini(&request->pieces[i]);
    request->pieces = NULL;
    if (request->kind == HD_REQUEST_ROWS)
        hd_batch_fini(&request->as.rows.owned);
    hd_arena_fini(&request->arena);
}

static void request_init(struct hd_lane_request *request, enum hd_lane_request_kind kind)
{
    memset(request, 0, sizeof(*request));
    request->kind = kind;
    hd_arena_init(&request->arena, SIZE_MAX / 2);
}

static int check_id(struct heddle_bytes id, const char *what, struct heddle_error *fault)
{
    if (id.len == 0)
        return hd_error_set(fault, HD_EINVAL, "%s is empty", what);
    return hd_check_length(hd_from_public(id), HD_MAX_ID, what, fault);
}

int hd_lane_request_put(struct hd_store *store, struct hd_lane_request *request,
                        const struct heddle_checkpoint *put, struct heddle_error *fault)
{
    int err;

    request_init(request, HD_REQUEST_PUT);
    request->as.put = *put;
    err = hd_store_thread_key(&put->thread, &request->arena, &request->thread, fault);
    if (!err)
        err = hd_check_length(hd_from_public(put->ns), HD_MAX_NS, "checkpoint_ns", fault);
    if (!err)
        err = check_id(put->id, "checkpoint_id", fault);
    if (!err)
        err =
            hd_check_length(hd_from_public(put->parent), HD_MAX_ID, "parent checkpoint_id", fault);
    if (!err)
        err = check_values(store, put->values, put->value_count, fault);
    if (err)
        hd_lane_request_fini(request);
    return err;
}

int hd_lane_request_writes(struct hd_store *store, struct hd_lane_request *request,
                           const struct heddle_writes *writes, struct heddle_error *fault)
{
    int err;

    request_init(request, HD_REQUEST_WRITES);
    request->as.writes = *writes;
    err = hd_store_thread_key(&writes->thread, &request->arena, &request->thread, fault);
    if (!err)
        err = hd_check_length(hd_from_public(writes->ns), HD_MAX_NS, "checkpoint_ns", fault);
    if (!err)
        err = check_id(writes->checkpoint_id, "checkpoint_id", fault);
    if (!err)
        err = hd_check_length(hd_from_public(writes->task_id), HD_MAX_ID, "task_id", fault);
    if (!err)
        err = hd_check_length(hd_from_public(writes->task_path), HD_MAX_PATH, "task_path", fault);
    if (!err)
        err = check_values(store, writes->values, writes->value_count, fault);
    if (err)
        hd_lane_request_fini(request);
    return err;
}

void hd_lane_request_rows(struct hd_lane_request *request, struct hd_slice key,
                          const struct hd_batch *batch)
{
    request_init(request, HD_REQUEST_ROWS);
    request->thread = key;
    request->as.rows.batch = *batch;
    hd_batch_init(&request->as.rows.owned);
}
