#include "graph/engine/patience.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/list.h"
#include "base/log.h"

enum { PAUSE_MIN_MS = 50, PAUSE_MAX_MS = 2000 };

struct hd_patience {
    uv_timer_t timer;
    int64_t outage_us;
    HD_FIFO(struct hd_store_retry) failed; /* in the order in which they failed */
    size_t count;
    uint64_t pause_ms;
    bool is_back; /* the store is available again: retry all */
    bool is_ended;
};

int hd_patience_create(uv_loop_t *loop, int64_t outage_us, struct hd_patience **out)
{
    struct hd_patience *patience = hd_calloc(1, sizeof(*patience));

    if (!patience)
        return HD_ENOMEM;
    (void)uv_timer_init(loop, &patience->timer); /* cannot fail */
    patience->timer.data = patience;
    patience->outage_us = outage_us;
    patience->pause_ms = PAUSE_MIN_MS;
    *out = patience;
    return 0;
}

static void on_patience_closed(uv_handle_t *handle)
{
    hd_free(handle->data);
}

void hd_patience_destroy(struct hd_patience *patience)
{
    if (patience)
        uv_close((uv_handle_t *)&patience->timer, on_patience_closed);
}

static struct hd_store_retry *take_first(struct hd_patience *patience)
{
    struct hd_store_retry *retry;

    hd_fifo_pop(&patience->failed, retry, next);
    patience->count--;
    return retry;
}

/* A call that fails again is appended to the list and not retried in this pass. */
static void on_retry_timer(uv_timer_t *timer)
{
    struct hd_patience *patience = timer->data;
    size_t turns = patience->is_back || patience->is_ended ? patience->count : 1;

    patience->is_back = false;
    for (; turns > 0 && patience->failed.first; turns--) {
        struct hd_store_retry *retry = take_first(patience);

        retry->again(retry->arg);
    }
    if (patience->failed.first && !uv_is_active((uv_handle_t *)timer))
        uv_timer_start(timer, on_retry_timer, patience->pause_ms, 0);
}

static void start_retry_timer(struct hd_patience *patience, uint64_t wait_ms)
{
    if (!uv_is_active((uv_handle_t *)&patience->timer) ||
        uv_timer_get_due_in(&patience->timer) > wait_ms)
        uv_timer_start(&patience->timer, on_retry_timer, wait_ms, 0);
}

static void queue_retry(struct hd_patience *patience, struct hd_store_retry *retry)
{
    bool is_first = !patience->failed.first && retry->until_us == 0;

    if (retry->until_us == 0)
        retry->until_us = hd_clock_monotonic_us() + patience->outage_us;
    else if (patience->pause_ms < PAUSE_MAX_MS)
        patience->pause_ms *= 2;
    if (is_first)
        hd_log(HD_LOG_WARN, "store", "the store is unavailable: runs wait for up to %lld s",
               (long long)(patience->outage_us / 1000000));
    hd_fifo_push(&patience->failed, retry, next);
    patience->count++;
    start_retry_timer(patience, patience->pause_ms);
}

bool hd_patience_wait(struct hd_patience *patience, struct hd_store_retry *retry, int err)
{
    if (!patience)
        return false;
    if (!hd_error_is_transient(err)) {
        if (retry->until_us == 0)
            return false;
        patience->pause_ms = PAUSE_MIN_MS;
        patience->is_back = patience->failed.first != NULL;
        if (patience->failed.first)
            start_retry_timer(patience, 0);
        return false;
    }
    if (patience->is_ended || patience->outage_us == 0 ||
        (retry->until_us && hd_clock_monotonic_us() >= retry->until_us))
        return false;
    queue_retry(patience, retry);
    return true;
}

void hd_patience_end(struct hd_patience *patience)
{
    patience->is_ended = true;
    if (patience->failed.first)
        start_retry_timer(patience, 0);
}

size_t hd_patience_count(const struct hd_patience *patience)
{
    return patience->count;
}
