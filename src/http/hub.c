#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "http/internal.h"

#define KIB ((size_t)1024)
#define MIB (KIB * 1024)
#define POOL 64 /* stream buffers kept for reuse */

void hd_http_server_config_init(struct hd_http_server_config *config)
{
    *config = (struct hd_http_server_config){
        .limits =
            {
                .connections = 10000,
                .head = 64 * KIB,
                .headers = 128,
                .body = 64 * MIB,
                .body_total = 512 * MIB,
                .pipelined = 64 * KIB,
                .stream_buffer = 16 * KIB,
                .stream_kernel = 64 * KIB,
                .idle_ms = 75000,
                .head_ms = 20000,
                .body_ms = 30000,
                .write_ms = 30000,
                .linger_ms = 2000,
                .rate = 1 * KIB,
            },
        .cors = {.max_age = 600},
        .gzip_min = 32 * KIB,
    };
}

void hd_hub_init(struct hd_hub *hub, const struct hd_http_wire_ops *wire,
                 const struct hd_http_server_config *config)
{
    *hub = (struct hd_hub){.wire = wire, .config = *config, .date_second = -1};
    hd_random(hub->id_seed, sizeof(hub->id_seed));
}

void hd_hub_fini(struct hd_hub *hub)
{
    for (size_t i = 0; i < hub->buffer_count; i++)
        hd_free(hub->buffers[i]);
    hd_free(hub->buffers);
    *hub = (struct hd_hub){0};
}

void hd_hub_mark(struct hd_conn *conn, unsigned bits)
{
    struct hd_hub *hub = conn->hub;

    conn->ready |= bits;
    if (conn->is_queued)
        return;
    conn->is_queued = true;
    if (!hub->ready.first)
        hub->wire->wake(hub);
    hd_fifo_push(&hub->ready, conn, ready_next);
}

void hd_hub_run(struct hd_hub *hub)
{
    struct hd_conn *conn = hub->ready.first, *next;

    hub->ready.first = hub->ready.last = NULL;
    for (; conn; conn = next) {
        unsigned bits = conn->ready;

        next = conn->ready_next;
        conn->ready = 0;
        conn->is_queued = false;
        conn->pins++;
        hd_conn_run(conn, bits);
        conn->pins--;
        hd_conn_release(conn);
    }
}

/* A connection may leave the list during its tick, but no other may. */
void hd_hub_tick(struct hd_hub *hub)
{
    struct hd_conn *conn = hub->conns, *next;

    for (; conn; conn = next) {
        next = conn->all.next;
        hd_conn_tick(conn);
    }
}

/* The list has the newest first: of connections idle equally long the oldest is closed. */
bool hd_hub_evict(struct hd_hub *hub)
{
    struct hd_conn *oldest = NULL;

    for (struct hd_conn *conn = hub->conns; conn; conn = conn->all.next) {
        if (conn->state == HD_CONN_IDLE && conn->ready == 0 &&
            (!oldest || conn->since_ms <= oldest->since_ms))
            oldest = conn;
    }
    if (oldest)
        hd_conn_finish(oldest);
    return oldest != NULL;
}

const char *hd_hub_date(struct hd_hub *hub)
{
    int64_t second = hd_clock_now_us() / 1000000;

    if (second != hub->date_second) {
        hub->date_second = second;
        hd_date_format(second, hub->date);
    }
    return hub->date;
}

/* Looks like a random UUID; made from a seed and a counter, because a request id is not secret. */
void hd_hub_new_id(struct hd_hub *hub, char out[HD_UUID_SIZE])
{
    uint64_t count = ++hub->id_count;
    uint8_t bytes[16];

    memcpy(bytes, hub->id_seed, sizeof(hub->id_seed));
    bytes[6] = (uint8_t)((bytes[6] & 0x0f) | 0x40);
    bytes[8] = (uint8_t)((bytes[8] & 0x3f) | 0x80);
    for (size_t i = 0; i < 6; i++)
        bytes[15 - i] = (uint8_t)(count >> (8 * i));
    hd_uuid_format(bytes, out);
}

char *hd_hub_take_buffer(struct hd_hub *hub)
{
    if (hub->buffer_count > 0)
        return hub->buffers[--hub->buffer_count];
    return hd_malloc(HD_STREAM_GAP + hub->config.limits.stream_buffer + HD_STREAM_TAIL);
}

void hd_hub_give_buffer(struct hd_hub *hub, char *buffer)
{
    if (!hub->buffers)
        hub->buffers = hd_calloc(POOL, sizeof(*hub->buffers));
    if (hub->buffers && hub->buffer_count < POOL)
        hub->buffers[hub->buffer_count++] = buffer;
    else
        hd_free(buffer);
}
