/*
 * Heartbeats of long responses. Each connection has its own: it fires when nothing was sent on that
 * connection for the interval.
 */
#ifndef HD_API_HEARTBEAT_H
#define HD_API_HEARTBEAT_H

#include <stdint.h>
#include <uv.h>

#include "base/compiler.h"

struct hd_heartbeats;

struct hd_heartbeat {
    void (*fn)(void *ctx); /* may stop its own heartbeat, and no other */
    void *ctx;
    struct hd_heartbeats *beats; /* NULL: stopped */
    uint64_t due;                /* in milliseconds of the loop's time */
    struct hd_heartbeat *next;
    struct hd_heartbeat *prev;
};

/* 0 ms: never. */
HD_MUST_CHECK int hd_heartbeats_create(uv_loop_t *loop, uint64_t interval_ms,
                                       struct hd_heartbeats **out);
void hd_heartbeats_destroy(struct hd_heartbeats *beats);

/* Fires all heartbeats now. */
void hd_heartbeats_fire(struct hd_heartbeats *beats);

void hd_heartbeat_start(struct hd_heartbeats *beats, struct hd_heartbeat *heartbeat,
                        void (*fn)(void *ctx), void *ctx);

/* Something was sent: the interval begins again. */
void hd_heartbeat_touch(struct hd_heartbeat *heartbeat);
void hd_heartbeat_stop(struct hd_heartbeat *heartbeat);

#endif
