/*
 * Heartbeats of answers that take long. Each connection has its own: it fires when nothing was
 * sent on that connection for the interval.
 */
#ifndef HD_API_HEARTBEAT_H
#define HD_API_HEARTBEAT_H

#include <stdint.h>
#include <uv.h>

#include "base/compiler.h"

struct hd_beats;

struct hd_beat {
    void (*fn)(void *ctx); /* may stop its own heartbeat, and no other */
    void *ctx;
    struct hd_beats *beats; /* NULL: stopped */
    uint64_t due;           /* in milliseconds of the loop's time */
    struct hd_beat *next;
    struct hd_beat *prev;
};

/* 0 ms: never. */
HD_MUST_CHECK int hd_beats_create(uv_loop_t *loop, uint64_t interval_ms, struct hd_beats **out);
void hd_beats_destroy(struct hd_beats *beats);

/* Fires all heartbeats now. */
void hd_beats_fire(struct hd_beats *beats);

void hd_beat_start(struct hd_beats *beats, struct hd_beat *beat, void (*fn)(void *ctx), void *ctx);

/* Something was sent: the interval begins again. */
void hd_beat_touch(struct hd_beat *beat);
void hd_beat_stop(struct hd_beat *beat);

#endif
