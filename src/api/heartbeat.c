/*
 * All heartbeats have the same interval, so a list in the order of the last send is also in the
 * order of the due times: a send moves a heartbeat to the end, and one timer waits for the first.
 */
#include "api/heartbeat.h"

#include "base/alloc.h"
#include "base/error.h"

struct hd_heartbeats {
    uv_timer_t timer;
    uint64_t interval_ms;
    struct hd_heartbeat *first;
    struct hd_heartbeat *last;
};

static void heartbeat_unlink(struct hd_heartbeat *heartbeat)
{
    struct hd_heartbeats *beats = heartbeat->beats;

    if (heartbeat->prev)
        heartbeat->prev->next = heartbeat->next;
    else
        beats->first = heartbeat->next;
    if (heartbeat->next)
        heartbeat->next->prev = heartbeat->prev;
    else
        beats->last = heartbeat->prev;
}

static void heartbeat_append(struct hd_heartbeats *beats, struct hd_heartbeat *heartbeat)
{
    heartbeat->due = uv_now(beats->timer.loop) + beats->interval_ms;
    heartbeat->next = NULL;
    heartbeat->prev = beats->last;
    if (beats->last)
        beats->last->next = heartbeat;
    else
        beats->first = heartbeat;
    beats->last = heartbeat;
}

/* A heartbeat that sends moves behind `last`, and does not fire twice. */
void hd_heartbeats_fire(struct hd_heartbeats *beats)
{
    struct hd_heartbeat *last = beats->last, *next;

    for (struct hd_heartbeat *heartbeat = beats->first; heartbeat; heartbeat = next) {
        next = heartbeat == last ? NULL : heartbeat->next;
        heartbeat->fn(heartbeat->ctx);
    }
}

static void on_heartbeat_timer(uv_timer_t *timer);

/* A send does not restart the timer: when it fires too early it is set again. */
static void beats_wait(struct hd_heartbeats *beats)
{
    uint64_t now = uv_now(beats->timer.loop);

    if (beats->interval_ms > 0 && beats->first && !uv_is_active((uv_handle_t *)&beats->timer))
        uv_timer_start(&beats->timer, on_heartbeat_timer,
                       beats->first->due > now ? beats->first->due - now : 0, 0);
}

static void on_heartbeat_timer(uv_timer_t *timer)
{
    struct hd_heartbeats *beats = timer->data;
    uint64_t now = uv_now(timer->loop);
    struct hd_heartbeat *heartbeat;

    while ((heartbeat = beats->first) && heartbeat->due <= now) {
        hd_heartbeat_touch(heartbeat);
        heartbeat->fn(heartbeat->ctx);
    }
    beats_wait(beats);
}

int hd_heartbeats_create(uv_loop_t *loop, uint64_t interval_ms, struct hd_heartbeats **out)
{
    struct hd_heartbeats *beats = hd_calloc(1, sizeof(*beats));

    if (!beats)
        return HD_ENOMEM;
    if (uv_timer_init(loop, &beats->timer)) {
        hd_free(beats);
        return HD_EIO;
    }
    beats->timer.data = beats;
    beats->interval_ms = interval_ms;
    uv_unref((uv_handle_t *)&beats->timer);
    *out = beats;
    return 0;
}

static void on_heartbeat_closed(uv_handle_t *handle)
{
    hd_free(handle->data);
}

void hd_heartbeats_destroy(struct hd_heartbeats *beats)
{
    if (beats)
        uv_close((uv_handle_t *)&beats->timer, on_heartbeat_closed);
}

void hd_heartbeat_start(struct hd_heartbeats *beats, struct hd_heartbeat *heartbeat,
                        void (*fn)(void *ctx), void *ctx)
{
    *heartbeat = (struct hd_heartbeat){.fn = fn, .ctx = ctx, .beats = beats};
    heartbeat_append(beats, heartbeat);
    beats_wait(beats);
}

void hd_heartbeat_touch(struct hd_heartbeat *heartbeat)
{
    if (!heartbeat->beats)
        return;
    heartbeat_unlink(heartbeat);
    heartbeat_append(heartbeat->beats, heartbeat);
}

void hd_heartbeat_stop(struct hd_heartbeat *heartbeat)
{
    if (!heartbeat->beats)
        return;
    heartbeat_unlink(heartbeat);
    heartbeat->beats = NULL;
}
