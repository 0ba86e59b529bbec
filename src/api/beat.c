#include "api/beat.h"

#include "base/alloc.h"
#include "base/error.h"

struct hd_beats {
    uv_timer_t timer;
    struct hd_beat *first;
};

void hd_beats_fire(struct hd_beats *beats)
{
    struct hd_beat *next;

    for (struct hd_beat *beat = beats->first; beat; beat = next) {
        next = beat->next;
        beat->fn(beat->ctx);
    }
}

static void on_timer(uv_timer_t *timer)
{
    hd_beats_fire(timer->data);
}

int hd_beats_create(uv_loop_t *loop, uint64_t interval_ms, struct hd_beats **out)
{
    struct hd_beats *beats = hd_calloc(1, sizeof(*beats));

    if (!beats)
        return HD_ENOMEM;
    if (uv_timer_init(loop, &beats->timer)) {
        hd_free(beats);
        return HD_EIO;
    }
    beats->timer.data = beats;
    if (interval_ms > 0)
        uv_timer_start(&beats->timer, on_timer, interval_ms, interval_ms);
    uv_unref((uv_handle_t *)&beats->timer);
    *out = beats;
    return 0;
}

static void on_closed(uv_handle_t *handle)
{
    hd_free(handle->data);
}

void hd_beats_destroy(struct hd_beats *beats)
{
    if (beats)
        uv_close((uv_handle_t *)&beats->timer, on_closed);
}

void hd_beat_start(struct hd_beats *beats, struct hd_beat *beat, void (*fn)(void *ctx), void *ctx)
{
    *beat = (struct hd_beat){.fn = fn, .ctx = ctx, .next = beats->first, .link = &beats->first};
    if (beat->next)
        beat->next->link = &beat->next;
    beats->first = beat;
}

void hd_beat_stop(struct hd_beat *beat)
{
    if (!beat->link)
        return;
    *beat->link = beat->next;
    if (beat->next)
        beat->next->link = beat->link;
    beat->link = NULL;
}
