/* The server side of HTTP requests: a server on the test's own loop that sends scripted responses
 * and observes its connections. */
#ifndef TESTS_UNIT_PEER_H
#define TESTS_UNIT_PEER_H

#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "base/clock.h"
#include "tests/unit/check.h"

#define PEER_ANSWERS 16
#define PEER_LIMIT_US 60000000 /* a test that waits longer fails */

/* Scripts without a response: sends nothing, or closes the connection. */
#define PEER_SILENCE ((const char *)NULL)
#define PEER_CLOSE ""

#define PEER_CHUNK 1000
#define PEER_FRAME 1007
#define PEER_END 5

struct peer {
    uv_loop_t *loop;
    uv_tcp_t listening;
    uv_timer_t tick; /* wakes the loop, so that waits end */
    int port;
    const char *answers[PEER_ANSWERS]; /* one per request; the last one for all others */
    size_t answer_count;
    bool closes;     /* the connection, after each response */
    bool is_chunked; /* in frames of PEER_FRAME bytes, each with PEER_CHUNK; and PEER_END */
    size_t flood;    /* bytes after the response */
    size_t sent;     /* flood bytes that the kernel has accepted */
    int blocked;     /* loop iterations in which the kernel accepted nothing */
    char last[65536];
    size_t last_len;
    int requests, connections, gone; /* gone: closed by the client */
    struct peer_conn *conns;
};

struct peer_conn {
    uv_tcp_t tcp;
    struct peer *peer;
    struct peer_conn *next;
    size_t flood;
    bool is_closing;
    char in[65536];
    size_t len;
};

static inline void peer_on_closed(uv_handle_t *handle)
{
    struct peer_conn *conn = handle->data;
    struct peer_conn **at = &conn->peer->conns;

    while (*at != conn)
        at = &(*at)->next;
    *at = conn->next;
    free(conn);
}

static inline void peer_hang_up(struct peer_conn *conn)
{
    if (!conn->is_closing)
        uv_close((uv_handle_t *)&conn->tcp, peer_on_closed);
    conn->is_closing = true;
}

/* The next bytes; in chunked responses they depend on the number of bytes sent. */
static inline void peer_fill(const struct peer_conn *conn, char *room, size_t len)
{
    static const char size[] = "3e8\r\n";

    memset(room, 'x', len);
    for (size_t i = 0; conn->peer->is_chunked && i < len; i++) {
        size_t end = conn->peer->flood - PEER_END;
        size_t at = (conn->peer->sent + i) % PEER_FRAME;

        if (conn->peer->sent + i >= end)
            room[i] = "0\r\n\r\n"[conn->peer->sent + i - end];
        else if (at < 5)
            room[i] = size[at];
        else if (at >= 5 + PEER_CHUNK)
            room[i] = "\r\n"[at - 5 - PEER_CHUNK];
    }
}

static inline void peer_flood(struct peer_conn *conn)
{
    static char room[65536];

    while (conn->flood > 0 && !conn->is_closing) {
        size_t len = conn->flood < sizeof(room) ? conn->flood : sizeof(room);
        uv_buf_t out = uv_buf_init(room, (unsigned)len);
        int sent;

        peer_fill(conn, room, len);
        sent = uv_try_write((uv_stream_t *)&conn->tcp, &out, 1);
        if (sent == UV_EAGAIN) {
            conn->peer->blocked++;
            return;
        }
        if (sent < 0) {
            conn->peer->gone++;
            peer_hang_up(conn);
            return;
        }
        conn->peer->blocked = 0;
        conn->flood -= (size_t)sent;
        conn->peer->sent += (size_t)sent;
    }
}

static inline void peer_answer(struct peer_conn *conn)
{
    struct peer *peer = conn->peer;
    size_t turn = (size_t)peer->requests++;
    const char *answer;
    uv_buf_t out;

    memcpy(peer->last, conn->in, conn->len);
    peer->last_len = conn->len;
    conn->len = 0;
    answer = peer->answers[turn < peer->answer_count ? turn : peer->answer_count - 1];
    if (!answer)
        return;
    out = uv_buf_init((char *)(uintptr_t)answer, (unsigned)strlen(answer));
    if (out.len > 0)
        assert_int_equal(uv_try_write((uv_stream_t *)&conn->tcp, &out, 1), out.len);
    conn->flood = peer->flood;
    peer_flood(conn);
    if (peer->closes || out.len == 0)
        peer_hang_up(conn);
}

/* True when the request is complete. */
static inline bool peer_is_whole(struct peer_conn *conn)
{
    const char *end = memmem(conn->in, conn->len, "\r\n\r\n", 4);
    const char *length = strcasestr(conn->in, "\r\ncontent-length:");
    size_t body = end && length && length < end ? strtoul(length + 17, NULL, 10) : 0;

    return end && conn->len >= (size_t)(end + 4 - conn->in) + body;
}

static inline void peer_on_alloc(uv_handle_t *handle, size_t size, uv_buf_t *buf)
{
    struct peer_conn *conn = handle->data;

    (void)size;
    *buf = uv_buf_init(conn->in + conn->len, (unsigned)(sizeof(conn->in) - 1 - conn->len));
}

static inline void peer_on_read(uv_stream_t *stream, ssize_t len, const uv_buf_t *buf)
{
    struct peer_conn *conn = stream->data;

    (void)buf;
    if (len < 0) {
        conn->peer->gone++;
        peer_hang_up(conn);
        return;
    }
    conn->len += (size_t)len;
    conn->in[conn->len] = '\0';
    if (len > 0 && peer_is_whole(conn))
        peer_answer(conn);
}

static inline void peer_on_connection(uv_stream_t *listening, int status)
{
    struct peer *peer = listening->data;
    struct peer_conn *conn = calloc(1, sizeof(*conn));

    assert_int_equal(status, 0);
    assert_non_null(conn);
    peer->connections++;
    conn->peer = peer;
    conn->next = peer->conns;
    peer->conns = conn;
    assert_int_equal(uv_tcp_init(peer->loop, &conn->tcp), 0);
    conn->tcp.data = conn;
    assert_int_equal(uv_accept(listening, (uv_stream_t *)&conn->tcp), 0);
    assert_int_equal(uv_read_start((uv_stream_t *)&conn->tcp, peer_on_alloc, peer_on_read), 0);
}

static inline void peer_on_tick(uv_timer_t *timer)
{
    struct peer *peer = timer->data;

    for (struct peer_conn *conn = peer->conns, *next; conn; conn = next) {
        next = conn->next;
        peer_flood(conn);
    }
}

static inline void peer_open(struct peer *peer, uv_loop_t *loop)
{
    struct sockaddr_in address;
    int len = sizeof(address);

    memset(peer, 0, sizeof(*peer));
    peer->loop = loop;
    assert_int_equal(uv_tcp_init(loop, &peer->listening), 0);
    peer->listening.data = peer;
    assert_int_equal(uv_ip4_addr("127.0.0.1", 0, &address), 0);
    assert_int_equal(uv_tcp_bind(&peer->listening, (struct sockaddr *)&address, 0), 0);
    assert_int_equal(uv_listen((uv_stream_t *)&peer->listening, 8, peer_on_connection), 0);
    assert_int_equal(uv_tcp_getsockname(&peer->listening, (struct sockaddr *)&address, &len), 0);
    peer->port = ntohs(address.sin_port);
    assert_int_equal(uv_timer_init(loop, &peer->tick), 0);
    peer->tick.data = peer;
    assert_int_equal(uv_timer_start(&peer->tick, peer_on_tick, 1, 1), 0);
}

/* Refuses connections from now on. */
static inline void peer_refuse(struct peer *peer)
{
    if (!uv_is_closing((uv_handle_t *)&peer->listening))
        uv_close((uv_handle_t *)&peer->listening, NULL);
}

/* The loop must run afterwards. */
static inline void peer_close(struct peer *peer)
{
    peer_refuse(peer);
    uv_close((uv_handle_t *)&peer->tick, NULL);
    for (struct peer_conn *conn = peer->conns; conn; conn = conn->next)
        peer_hang_up(conn);
}

static inline void peer_will(struct peer *peer, const char *answer)
{
    peer->answers[peer->answer_count++] = answer;
}

static inline bool peer_waits(struct peer *peer, int64_t began)
{
    if (hd_clock_monotonic_us() - began > PEER_LIMIT_US)
        fail_msg("it took too long");
    uv_run(peer->loop, UV_RUN_ONCE);
    return true;
}

/* Runs the loop until the condition is true. */
#define UNTIL(peer, condition) \
    for (int64_t began_ = hd_clock_monotonic_us(); !(condition) && peer_waits((peer), began_);)

#endif
