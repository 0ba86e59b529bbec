/* The wire of a plain TCP connection on the loop. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "http/wire.h"

#define KEEPALIVE_SECONDS 60

static unsigned fill_uv_bufs(uv_buf_t bufs[HD_WIRE_PARTS], const struct hd_slice *parts,
                             size_t count)
{
    for (size_t i = 0; i < count; i++)
        bufs[i] = uv_buf_init((char *)parts[i].ptr, (unsigned)parts[i].len);
    return (unsigned)count;
}

static ptrdiff_t try_write(struct hd_conn *conn, const struct hd_slice *parts, size_t count)
{
    uv_buf_t bufs[HD_WIRE_PARTS];
    int done = uv_try_write(hd_wire_stream(conn), bufs, fill_uv_bufs(bufs, parts, count));

    return done == UV_EAGAIN ? 0 : done;
}

static void on_written(uv_write_t *req, int status)
{
    hd_conn_sent(req->data, status != 0);
}

static int send_all(struct hd_conn *conn, const struct hd_slice *parts, size_t count)
{
    struct hd_http_wire *wire = hd_wire_of(conn);
    uv_buf_t bufs[HD_WIRE_PARTS];

    wire->write.data = conn;
    return uv_write(&wire->write, hd_wire_stream(conn), bufs, fill_uv_bufs(bufs, parts, count),
                    on_written);
}

static size_t unsent(const struct hd_conn *conn)
{
    return uv_stream_get_write_queue_size(hd_wire_stream(conn));
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    struct hd_conn *conn = handle->data;

    (void)suggested;
    *buf = hd_http_server_read_buffer(conn->hub);
}

static void on_plain_read(uv_stream_t *stream, ssize_t len, const uv_buf_t *buf)
{
    struct hd_conn *conn = stream->data;

    if (len > 0)
        hd_conn_read(conn, buf->base, (size_t)len);
    else if (len == UV_EOF)
        hd_conn_end(conn);
    else if (len < 0)
        hd_conn_break(conn);
}

void hd_http_wire_set_reading(struct hd_conn *conn, bool is_on, uv_read_cb fn)
{
    if (!is_on)
        (void)uv_read_stop(hd_wire_stream(conn));
    else if (uv_read_start(hd_wire_stream(conn), on_alloc, fn) != 0)
        hd_conn_break(conn);
}

static void set_reading(struct hd_conn *conn, bool is_on)
{
    hd_http_wire_set_reading(conn, is_on, on_plain_read);
}

bool hd_http_wire_is_hung_up(struct hd_conn *conn)
{
    struct pollfd fd = {.events = POLLRDHUP};

    if (uv_fileno((uv_handle_t *)hd_wire_stream(conn), &fd.fd) != 0)
        return true;
    return poll(&fd, 1, 0) == 1 && (fd.revents & (POLLRDHUP | POLLHUP | POLLERR));
}

/* The kernel doubles the value, for its bookkeeping. */
void hd_http_wire_bound_kernel(struct hd_conn *conn, size_t bytes)
{
    int value = (int)(bytes / 2);

    (void)uv_send_buffer_size((uv_handle_t *)hd_wire_stream(conn), &value);
}

static void on_shut_down(uv_shutdown_t *req, int status)
{
    (void)req;
    (void)status;
}

void hd_http_wire_shut_down(struct hd_conn *conn)
{
    (void)uv_shutdown(&hd_wire_of(conn)->shutdown, hd_wire_stream(conn), on_shut_down);
}

static void on_conn_closed(uv_handle_t *handle)
{
    struct hd_conn *conn = handle->data;
    struct hd_hub *hub = conn->hub;

    conn->pins++;
    hd_conn_closed(conn);
    hd_http_server_has_room(hub);
    conn->pins--;
    hd_conn_release(conn);
}

/* The kernel would retry sending to a peer that does not read for minutes. */
static void forget_unsent(struct hd_conn *conn)
{
    const struct linger at_once = {.l_onoff = 1, .l_linger = 0};
    uv_os_fd_t fd;

    if (uv_fileno((uv_handle_t *)hd_wire_stream(conn), &fd) == 0)
        (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
}

void hd_http_wire_close(struct hd_conn *conn)
{
    if (conn->is_broken)
        forget_unsent(conn);
    uv_close((uv_handle_t *)hd_wire_stream(conn), on_conn_closed);
}

static void release_plain_conn(struct hd_conn *conn)
{
    struct hd_hub *hub = conn->hub;

    hd_free(hd_wire_of(conn));
    hd_http_server_released(hub);
}

int64_t hd_http_wire_now(const struct hd_hub *hub)
{
    return (int64_t)uv_now(hd_http_server_loop(hub));
}

const struct hd_http_wire_ops hd_http_wire_uv = {
    .try_write = try_write,
    .send = send_all,
    .unsent = unsent,
    .set_reading = set_reading,
    .is_hung_up = hd_http_wire_is_hung_up,
    .bound_kernel = hd_http_wire_bound_kernel,
    .shut_down = hd_http_wire_shut_down,
    .close = hd_http_wire_close,
    .release = release_plain_conn,
    .wake = hd_http_server_wake,
    .now = hd_http_wire_now,
};

/* The peer's address as text, and whether it is this machine. */
static void find_peer(struct hd_http_wire *wire)
{
    static const char mapped[] = "::ffff:";
    struct sockaddr_storage peer = {0};
    struct hd_conn *conn = &wire->conn;
    int len = sizeof(peer);
    const void *address = &((struct sockaddr_in *)&peer)->sin_addr;

    if (uv_tcp_getpeername(&wire->tcp, (struct sockaddr *)&peer, &len) != 0)
        return;
    if (peer.ss_family == AF_INET6)
        address = &((struct sockaddr_in6 *)&peer)->sin6_addr;
    if (!inet_ntop(peer.ss_family, address, conn->peer, sizeof(conn->peer)))
        return;
    if (strncmp(conn->peer, mapped, strlen(mapped)) == 0)
        memmove(conn->peer, conn->peer + strlen(mapped), strlen(conn->peer + strlen(mapped)) + 1);
    conn->is_loopback = strncmp(conn->peer, "127.", 4) == 0 || strcmp(conn->peer, "::1") == 0;
}

int hd_http_wire_accept(struct hd_hub *hub, uv_stream_t *listener)
{
    struct hd_tls *tls = hub->config.tls;
    struct hd_http_wire *wire = tls ? hd_http_wire_tls_create(tls) : hd_calloc(1, sizeof(*wire));
    int err;

    if (!wire)
        return HD_ENOMEM;
    err = uv_tcp_init(hd_http_server_loop(hub), &wire->tcp);
    if (err) {
        if (tls)
            hd_http_wire_tls_destroy(wire);
        else
            hd_free(wire);
        return HD_EIO;
    }
    hd_conn_init(&wire->conn, hub);
    wire->tcp.data = &wire->conn;
    err = uv_accept(listener, (uv_stream_t *)&wire->tcp);
    if (!err)
        err = uv_tcp_nodelay(&wire->tcp, 1);
    if (!err)
        err = uv_tcp_keepalive(&wire->tcp, 1, KEEPALIVE_SECONDS);
    if (!err) {
        find_peer(wire);
        if (tls)
            hd_http_wire_tls_greet(wire);
        else
            set_reading(&wire->conn, true);
    } else {
        hd_conn_break(&wire->conn);
    }
    return 0;
}
