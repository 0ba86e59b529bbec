/*
 * The wire of a TLS connection. OpenSSL works on memory: data read from the socket goes into one
 * BIO, data to send comes from another and is written here, so the loop stays in control.
 *
 * Little is buffered: each read is decrypted and passed on at once (a partial record waits in
 * OpenSSL), and CHUNK bytes of a response are encrypted when all before them are sent. While the
 * socket is full (`flying`) nothing is encrypted, so back-pressure is the same as for a plain wire.
 *
 * try_write() must return how much the kernel has taken. Encrypted data that did not fit cannot be
 * taken back: then it returns 0, and the send() that follows skips those bytes (`early`).
 */
#include <openssl/err.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "http/wire.h"

#define RECORD ((size_t)16 * 1024)
#define CHUNK (4 * RECORD)
#define MOST_OUT ((size_t)256 * 1024) /* unsolicited output allowed from OpenSSL */

#define PLAIN_BODY "{\"detail\":\"this port requires TLS: use https instead of http\"}"
#define PLAIN_ANSWER                                                                       \
    "HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\ncontent-length: 62\r\n" \
    "connection: close\r\n\r\n" PLAIN_BODY

_Static_assert(sizeof(PLAIN_BODY) - 1 == 62, "content-length of PLAIN_ANSWER");

struct tls_wire {
    struct hd_http_wire base; /* must be first */
    SSL *ssl;                 /* has both BIOs */
    BIO *in, *out;
    struct hd_buf flying; /* encrypted, being written to the socket */
    struct hd_slice parts[HD_WIRE_PARTS];
    size_t part_count, part_at;
    size_t early;    /* bytes of the next parts that are already encrypted */
    size_t in_chunk; /* plain bytes of `flying` */
    bool is_sending; /* hd_conn_sent() will follow */
    bool is_writing; /* on_flown() will follow */
    bool has_begun;  /* data was received */
    bool is_plain;   /* the client uses HTTP without TLS */
    bool has_failed; /* nothing more can be encrypted */
};

static struct tls_wire *tls_of(const struct hd_conn *conn)
{
    return (struct tls_wire *)conn;
}

static void pump(struct tls_wire *wire);

/* ---- to the socket ---------------------------------------------------- */

static void on_flown(uv_write_t *req, int status)
{
    struct tls_wire *wire = req->data;
    struct hd_conn *conn = &wire->base.conn;
    size_t limit = wire->flying.limit;

    hd_buf_fini(&wire->flying);
    hd_buf_init(&wire->flying, limit);
    wire->in_chunk = 0;
    wire->is_writing = false;
    if (status == 0 && conn->state != HD_CONN_CLOSED) {
        pump(wire);
        return;
    }
    if (wire->is_sending) {
        wire->is_sending = false;
        hd_conn_sent(conn, true);
    } else {
        hd_conn_break(conn);
    }
}

/* Frees a large buffer: a connection may be idle for long. */
static void empty(BIO *bio)
{
    BUF_MEM *old, *fresh;

    (void)BIO_get_mem_ptr(bio, &old);
    fresh = old->max > RECORD ? BUF_MEM_new() : NULL;
    if (fresh)
        (void)BIO_set_mem_buf(bio, fresh, BIO_CLOSE);
    else
        (void)BIO_reset(bio);
}

static bool start_writing(struct tls_wire *wire)
{
    char none[1] = "";
    uv_buf_t buf =
        uv_buf_init(wire->flying.len ? wire->flying.ptr : none, (unsigned)wire->flying.len);

    wire->base.write.data = wire;
    wire->is_writing =
        uv_write(&wire->base.write, hd_wire_stream(&wire->base.conn), &buf, 1, on_flown) == 0;
    return wire->is_writing;
}

/* Writes the BIO's data: now, or as `flying`. False: broken. */
static bool flush_bio(struct tls_wire *wire)
{
    uv_stream_t *stream = hd_wire_stream(&wire->base.conn);
    char *bytes;
    long len = BIO_get_mem_data(wire->out, &bytes);
    uv_buf_t buf = uv_buf_init(bytes, (unsigned)len);
    int done = 0;

    if (wire->is_writing)
        return (size_t)len <= MOST_OUT;
    if (len > 0)
        done = uv_try_write(stream, &buf, 1);
    if (done < 0 && done != UV_EAGAIN)
        return false;
    if (done < 0)
        done = 0;
    if (done < len && hd_buf_append(&wire->flying, bytes + done, (size_t)(len - done)))
        return false;
    empty(wire->out);
    return wire->flying.len == 0 || start_writing(wire);
}

/* Writes to the BIO, which always has room. */
static bool encrypt(struct tls_wire *wire, const char *bytes, size_t len)
{
    size_t done;

    ERR_clear_error();
    if (!wire->has_failed && SSL_write_ex(wire->ssl, bytes, len, &done) == 1 && done == len)
        return true;
    wire->has_failed = true;
    return false;
}

/* ---- plain bytes to send ---------------------------------------------- */

static bool is_ready(const struct tls_wire *wire)
{
    return !wire->base.conn.is_greeting && !wire->has_failed && !wire->is_writing;
}

/* Encrypts and writes up to CHUNK bytes; returns their number, -1: broken. */
static ptrdiff_t write_chunk(struct tls_wire *wire, const struct hd_slice *parts, size_t count,
                             size_t skip)
{
    size_t total = 0;

    for (size_t i = 0; i < count && total < CHUNK; i++) {
        size_t from = skip < parts[i].len ? skip : parts[i].len;
        size_t len = parts[i].len - from;

        skip -= from;
        if (len > CHUNK - total)
            len = CHUNK - total;
        if (len > 0 && !encrypt(wire, parts[i].ptr + from, len))
            return -1;
        total += len;
    }
    return flush_bio(wire) ? (ptrdiff_t)total : -1;
}

static ptrdiff_t try_write(struct hd_conn *conn, const struct hd_slice *parts, size_t count)
{
    struct tls_wire *wire = tls_of(conn);
    ptrdiff_t total = 0;

    wire->early = 0;
    if (wire->has_failed)
        return -1;
    while (is_ready(wire) && !wire->is_sending) {
        ptrdiff_t len = write_chunk(wire, parts, count, (size_t)total);

        if (len <= 0)
            return len < 0 ? -1 : total;
        if (wire->is_writing)
            wire->early = wire->in_chunk = (size_t)len;
        else
            total += len;
    }
    return total;
}

/* The next piece of send()'s parts; empty: nothing is left. */
static struct hd_slice next_piece(struct tls_wire *wire, size_t most)
{
    while (wire->part_at < wire->part_count) {
        struct hd_slice *part = &wire->parts[wire->part_at];
        struct hd_slice piece = hd_slice(part->ptr, part->len < most ? part->len : most);

        if (part->len > 0) {
            *part = hd_slice(part->ptr + piece.len, part->len - piece.len);
            return piece;
        }
        wire->part_at++;
    }
    return hd_slice(NULL, 0);
}

/* Encrypts and writes until the socket is full; reports completion. */
static void pump(struct tls_wire *wire)
{
    struct hd_conn *conn = &wire->base.conn;
    bool is_broken = !flush_bio(wire);

    while (!is_broken && wire->is_sending && is_ready(wire)) {
        struct hd_slice piece;

        for (wire->in_chunk = 0; wire->in_chunk < CHUNK && !is_broken;
             wire->in_chunk += piece.len) {
            piece = next_piece(wire, CHUNK - wire->in_chunk);
            if (piece.len == 0)
                break;
            is_broken = !encrypt(wire, piece.ptr, piece.len);
        }
        if (!is_broken && wire->in_chunk == 0) {
            wire->is_sending = false;
            hd_conn_sent(conn, false);
            return;
        }
        is_broken = is_broken || !flush_bio(wire);
    }
    if (!is_broken)
        return;
    if (wire->is_sending && !wire->is_writing) {
        wire->is_sending = false;
        hd_conn_sent(conn, true);
        return;
    }
    hd_conn_break(conn);
}

/*
 * hd_conn_sent() must not be called before this returns: for data written at once, an empty write
 * calls on_flown() later.
 */
static int send_all(struct hd_conn *conn, const struct hd_slice *parts, size_t count)
{
    struct tls_wire *wire = tls_of(conn);
    size_t early = wire->early;

    wire->early = 0;
    wire->part_at = 0;
    wire->part_count = count;
    for (size_t i = 0; i < count; i++) {
        size_t skip = early < parts[i].len ? early : parts[i].len;

        wire->parts[i] = hd_slice(parts[i].ptr + skip, parts[i].len - skip);
        early -= skip;
    }
    wire->is_sending = wire->is_writing || start_writing(wire);
    return wire->is_sending ? 0 : HD_EIO;
}

/* In plain bytes: `flying` is slightly larger. */
static size_t unsent(const struct hd_conn *conn)
{
    const struct tls_wire *wire = tls_of(conn);
    size_t left = uv_stream_get_write_queue_size(hd_wire_stream(conn));

    if (left > wire->in_chunk)
        left = wire->in_chunk;
    for (size_t i = wire->part_at; wire->is_sending && i < wire->part_count; i++)
        left += wire->parts[i].len;
    return left;
}

/* ---- input ------------------------------------------------------------ */

static void fail_wire(struct tls_wire *wire)
{
    struct hd_conn *conn = &wire->base.conn;

    wire->has_failed = true;
    if (conn->is_greeting)
        conn->hub->stats.refused++;
    (void)flush_bio(wire); /* the TLS alert */
    hd_conn_break(conn);
}

static void continue_handshake(struct tls_wire *wire)
{
    struct hd_conn *conn = &wire->base.conn;
    int rc;

    ERR_clear_error();
    rc = SSL_accept(wire->ssl);
    if (rc == 1) {
        conn->is_greeting = false;
        hd_conn_enter(conn, conn->state); /* restarts its timeout */
    } else if (SSL_get_error(wire->ssl, rc) != SSL_ERROR_WANT_READ) {
        fail_wire(wire);
        return;
    }
    if (!flush_bio(wire))
        hd_conn_break(conn);
}

/* Decrypts everything possible: nothing may wait here while the socket is not read. */
static void decrypt(struct tls_wire *wire)
{
    struct hd_conn *conn = &wire->base.conn;
    char plain[RECORD];
    size_t len;
    int why = SSL_ERROR_NONE;

    while (conn->state != HD_CONN_CLOSED && !conn->has_ended) {
        ERR_clear_error();
        if (SSL_read_ex(wire->ssl, plain, sizeof(plain), &len) == 1) {
            hd_conn_read(conn, plain, len);
            continue;
        }
        why = SSL_get_error(wire->ssl, 0);
        if (why == SSL_ERROR_ZERO_RETURN)
            hd_conn_end(conn);
        break;
    }
    if (BIO_pending(wire->in) == 0)
        empty(wire->in);
    if (why != SSL_ERROR_NONE && why != SSL_ERROR_WANT_READ && why != SSL_ERROR_ZERO_RETURN)
        fail_wire(wire);
    else if (conn->state != HD_CONN_CLOSED && !flush_bio(wire))
        hd_conn_break(conn);
}

/* Responds to a request without TLS. */
static void refuse_plain(struct tls_wire *wire)
{
    static char text[] = PLAIN_ANSWER;
    struct hd_conn *conn = &wire->base.conn;
    uv_buf_t buf = uv_buf_init(text, sizeof(text) - 1);

    wire->is_plain = wire->has_failed = true;
    conn->hub->stats.refused++;
    if (uv_try_write(hd_wire_stream(conn), &buf, 1) != (int)buf.len) {
        hd_conn_break(conn);
        return;
    }
    conn->is_greeting = false;
    hd_conn_enter(conn, HD_CONN_LINGERING);
    hd_http_wire_shut_down(conn);
}

static bool looks_plain(const char *bytes)
{
    return bytes[0] >= 'A' && bytes[0] <= 'Z';
}

static void take_encrypted(struct tls_wire *wire, const char *bytes, size_t len)
{
    struct hd_conn *conn = &wire->base.conn;

    if (!wire->has_begun && looks_plain(bytes))
        refuse_plain(wire);
    wire->has_begun = true;
    if (wire->is_plain || conn->state == HD_CONN_LINGERING) {
        hd_conn_read(conn, bytes, len);
        return;
    }
    if (wire->has_failed)
        return;
    if (BIO_write(wire->in, bytes, (int)len) != (int)len) {
        fail_wire(wire);
        return;
    }
    if (conn->is_greeting)
        continue_handshake(wire);
    if (!conn->is_greeting && conn->state != HD_CONN_CLOSED)
        decrypt(wire);
}

static void on_encrypted_read(uv_stream_t *stream, ssize_t len, const uv_buf_t *buf)
{
    struct hd_conn *conn = stream->data;

    if (len > 0)
        take_encrypted(tls_of(conn), buf->base, (size_t)len);
    else if (len == UV_EOF && !conn->is_greeting)
        hd_conn_end(conn);
    else if (len < 0)
        hd_conn_break(conn);
}

static void set_reading(struct hd_conn *conn, bool is_on)
{
    hd_http_wire_set_reading(conn, is_on, on_encrypted_read);
}

/* ---- end -------------------------------------------------------------- */

/* Sends close_notify, so that the peer can detect truncation. */
static void send_close_notify(struct tls_wire *wire)
{
    if (wire->base.conn.is_greeting || wire->has_failed || wire->is_writing)
        return;
    ERR_clear_error();
    (void)SSL_shutdown(wire->ssl);
    (void)flush_bio(wire);
    wire->has_failed = true;
}

static void shut_down(struct hd_conn *conn)
{
    send_close_notify(tls_of(conn));
    hd_http_wire_shut_down(conn);
}

static void close_wire(struct hd_conn *conn)
{
    if (!conn->is_broken)
        send_close_notify(tls_of(conn));
    conn->is_greeting = false;
    hd_http_wire_close(conn);
}

void hd_http_wire_tls_destroy(struct hd_http_wire *base)
{
    struct tls_wire *wire = (struct tls_wire *)base;

    SSL_free(wire->ssl);
    hd_buf_fini(&wire->flying);
    hd_free(wire);
}

static void release_tls_conn(struct hd_conn *conn)
{
    struct hd_hub *hub = conn->hub;

    hd_http_wire_tls_destroy(hd_wire_of(conn));
    hd_http_server_released(hub);
}

/* ---- start ------------------------------------------------------------ */

struct hd_http_wire *hd_http_wire_tls_create(struct hd_tls *tls)
{
    struct tls_wire *wire = hd_calloc(1, sizeof(*wire));

    if (!wire)
        return NULL;
    hd_buf_init(&wire->flying, MOST_OUT + 2 * CHUNK);
    wire->ssl = hd_tls_new(tls);
    wire->in = BIO_new(BIO_s_mem());
    wire->out = BIO_new(BIO_s_mem());
    if (!wire->ssl || !wire->in || !wire->out) {
        BIO_free(wire->in);
        BIO_free(wire->out);
        hd_http_wire_tls_destroy(&wire->base);
        return NULL;
    }
    BIO_set_mem_eof_return(wire->in, -1); /* empty is not EOF */
    SSL_set_bio(wire->ssl, wire->in, wire->out);
    SSL_set_accept_state(wire->ssl);
    return &wire->base;
}

void hd_http_wire_tls_greet(struct hd_http_wire *wire)
{
    wire->conn.is_greeting = true;
    set_reading(&wire->conn, true);
}

const struct hd_http_wire_ops hd_http_wire_tls = {
    .try_write = try_write,
    .send = send_all,
    .unsent = unsent,
    .set_reading = set_reading,
    .is_hung_up = hd_http_wire_is_hung_up,
    .bound_kernel = hd_http_wire_bound_kernel,
    .shut_down = shut_down,
    .close = close_wire,
    .release = release_tls_conn,
    .wake = hd_http_server_wake,
    .now = hd_http_wire_now,
};
