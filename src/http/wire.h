/* Shared by both kinds of wires: a TCP socket on the loop. */
#ifndef HD_HTTP_WIRE_H
#define HD_HTTP_WIRE_H

#include <openssl/ssl.h>
#include <uv.h>

#include "http/internal.h"

#define HD_WIRE_PARTS 4

struct hd_http_wire {
    struct hd_conn conn; /* must be first */
    uv_tcp_t tcp;
    uv_write_t write;
    uv_shutdown_t shutdown;
};

static inline struct hd_http_wire *hd_wire_of(const struct hd_conn *conn)
{
    return (struct hd_http_wire *)conn;
}

static inline uv_stream_t *hd_wire_stream(const struct hd_conn *conn)
{
    return (uv_stream_t *)&hd_wire_of(conn)->tcp;
}

/* Starts reading from the socket into the hub's buffer, with `fn` as callback; or stops. */
void hd_http_wire_set_reading(struct hd_conn *conn, bool is_on, uv_read_cb fn);

/* Operations of struct hd_http_wire_ops common to both. */
bool hd_http_wire_is_hung_up(struct hd_conn *conn);
void hd_http_wire_bound_kernel(struct hd_conn *conn, size_t bytes);
void hd_http_wire_shut_down(struct hd_conn *conn);
void hd_http_wire_close(struct hd_conn *conn);
int64_t hd_http_wire_now(const struct hd_hub *hub);

/* wire_tls.c: a TLS wire, not yet connected; NULL: no memory. */
struct hd_http_wire *hd_http_wire_tls_create(struct hd_tls *tls);
void hd_http_wire_tls_destroy(struct hd_http_wire *wire);
/* Starts reading, and expects a handshake. */
void hd_http_wire_tls_greet(struct hd_http_wire *wire);

/* tls.c: for a new connection; NULL: no memory. */
SSL *hd_tls_new(struct hd_tls *tls);

#endif
