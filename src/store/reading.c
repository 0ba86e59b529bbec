#include "store/reading.h"

#include "base/alloc.h"

void hd_reading_init(struct hd_reading *reading)
{
    memset(reading, 0, sizeof(*reading));
}

void hd_reading_fini(struct hd_reading *reading)
{
    hd_free(reading->queries);
    hd_free(reading->receivers);
    memset(reading, 0, sizeof(*reading));
}

static int reading_grow(struct hd_reading *reading)
{
    size_t cap = reading->cap ? reading->cap * 2 : 16;
    struct hd_query *queries = hd_realloc(reading->queries, cap * sizeof(*queries));
    struct hd_receiver *receivers;

    if (!queries)
        return HD_ENOMEM;
    reading->queries = queries;
    receivers = hd_realloc(reading->receivers, cap * sizeof(*receivers));
    if (!receivers)
        return HD_ENOMEM;
    reading->receivers = receivers;
    reading->cap = cap;
    return 0;
}

int hd_reading_add(struct hd_reading *reading, struct hd_query query, struct hd_receiver receiver)
{
    int err = reading->count == reading->cap ? reading_grow(reading) : 0;

    if (err)
        return err;
    reading->queries[reading->count] = query;
    reading->receivers[reading->count] = receiver;
    reading->count++;
    return 0;
}

static int dispatch(void *arg, size_t which, const struct hd_cell *cells)
{
    const struct hd_reading *reading = arg;
    const struct hd_receiver *receiver = &reading->receivers[which];

    return receiver->fn(receiver->arg, receiver->which, cells);
}

int hd_reading_run(struct hd_reading *reading, struct hd_backend *backend, struct hd_fault *fault)
{
    int err = 0;

    if (reading->count > 0)
        err = hd_backend_read(backend, reading->queries, reading->count, dispatch, reading, fault);
    reading->count = 0;
    return err;
}
