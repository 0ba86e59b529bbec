/*
 * A steady beat for answers that take long: one timer for all of them, so that
 * each comes at regular intervals.
 */
#ifndef HD_API_BEAT_H
#define HD_API_BEAT_H

#include <stdint.h>
#include <uv.h>

#include "base/compiler.h"

struct hd_beats;

struct hd_beat {
    void (*fn)(void *ctx); /* may stop its own beat, and no other */
    void *ctx;
    struct hd_beat *next;
    struct hd_beat **link; /* NULL: it does not beat */
};

/* 0 ms: never. */
HD_MUST_CHECK int hd_beats_create(uv_loop_t *loop, uint64_t interval_ms, struct hd_beats **out);
void hd_beats_destroy(struct hd_beats *beats);

/* All at once, now. */
void hd_beats_fire(struct hd_beats *beats);

void hd_beat_start(struct hd_beats *beats, struct hd_beat *beat, void (*fn)(void *ctx), void *ctx);
void hd_beat_stop(struct hd_beat *beat);

#endif
