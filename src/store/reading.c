#include "store/reading.h"

void hd_reading_init(struct hd_reading *reading)
{
    memset(reading, 0, sizeof(*reading));
}

void hd_reading_fini(struct hd_reading *reading)
{
    hd_vec_fini(&reading->queries);
    hd_vec_fini(&reading->receivers);
    memset(reading, 0, sizeof(*reading));
}

void hd_reading_reset(struct hd_reading *reading)
{
    reading->queries.count = reading->receivers.count = 0;
}

int hd_reading_add(struct hd_reading *reading, struct hd_query query, struct hd_receiver receiver)
{
    int err = hd_vec_reserve(&reading->receivers, 1);

    if (!err)
        err = hd_vec_push(&reading->queries, query);
    if (!err)
        err = hd_vec_push(&reading->receivers, receiver);
    return err;
}

static int dispatch(void *arg, size_t which, const struct hd_cell *cells)
{
    const struct hd_reading *reading = arg;
    const struct hd_receiver *receiver = &reading->receivers.items[which];

    return receiver->fn(receiver->arg, receiver->which, cells);
}

int hd_reading_run(struct hd_reading *reading, struct hd_backend *backend,
                   struct heddle_error *fault)
{
    int err = 0;

    if (reading->queries.count > 0)
        err = hd_backend_read(backend, reading->queries.items, reading->queries.count, dispatch,
                              reading, fault);
    hd_reading_reset(reading);
    return err;
}
