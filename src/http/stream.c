/*
 * Responses of unknown length. Written data waits in one buffer until the end of the loop
 * iteration, so that many small events are sent in one write and one chunk. While the socket does
 * not take the buffer no more is accepted: a stalled reader costs one buffer. An idle stream has
 * none.
 */
#include <assert.h>
#include <string.h>

#include "base/error.h"
#include "http/internal.h"

/* Bytes that one stream may send in a loop iteration before others get their turn. */
#define MOST_BURST ((size_t)256 * 1024)
#define LAST_CHUNK HD_S("0\r\n\r\n")

void hd_http_stream_drop(struct hd_conn *conn)
{
    struct hd_exchange *ex = &conn->ex;

    if (ex->buffer)
        hd_hub_give_buffer(conn->hub, ex->buffer);
    ex->buffer = NULL;
    ex->used = 0;
}

static bool is_head(const struct hd_exchange *ex)
{
    return ex->request.method == HD_METHOD_HEAD;
}

static int write_stream_head(struct hd_conn *conn, struct hd_slice content_type)
{
    struct hd_exchange *ex = &conn->ex;
    struct hd_http_head head = {
        .status = ex->status, .content_type = content_type, .is_chunked = ex->is_chunked};

    if (ex->has_failed)
        return HD_ENOMEM;
    if (ex->request.is_http10)
        conn->closes = true;
    return hd_http_head_write(conn, &head);
}

void hd_http_stream_begin(struct hd_exchange *ex, int status, struct hd_slice content_type,
                          hd_room_fn on_room, hd_gone_fn on_gone, void *ctx)
{
    struct hd_conn *conn = hd_conn_of(ex);

    assert(ex->is_held && !ex->is_stream && on_gone);
    ex->on_room = on_room;
    ex->ctx = ctx;
    ex->is_stream = true;
    ex->is_chunked = !ex->request.is_http10;
    ex->is_ended = is_head(ex);
    ex->has_sent_end = ex->has_sent_head = ex->wants_room = false;
    ex->burst = 0;
    conn->hub->stats.streams_open++;
    hd_exchange_on_gone(ex, on_gone, ctx);
    if (hd_exchange_is_gone(ex))
        return;
    ex->status = status;
    if (write_stream_head(conn, content_type)) {
        hd_conn_break(conn);
        return;
    }
    hd_conn_enter(conn, HD_CONN_STREAMING);
    if (conn->hub->config.limits.stream_kernel > 0)
        conn->hub->wire->bound_kernel(conn, conn->hub->config.limits.stream_kernel);
    hd_hub_mark(conn, HD_READY_FLUSH | (is_head(ex) ? HD_READY_GONE : HD_READY_ROOM));
}

void hd_http_stream_begin_sse(struct hd_exchange *ex, int status, hd_room_fn on_room,
                              hd_gone_fn on_gone, void *ctx)
{
    hd_answer_header(ex, HD_S("cache-control"), HD_S("no-store"));
    hd_answer_header(ex, HD_S("x-accel-buffering"), HD_S("no"));
    hd_http_stream_begin(ex, status, HD_TYPE_SSE, on_room, on_gone, ctx);
}

static char *append_slice(char *end, struct hd_slice s)
{
    memcpy(end, s.ptr, s.len);
    return end + s.len;
}

/* Adds the chunk's size before and the line break after the buffered data. */
static struct hd_slice frame(struct hd_exchange *ex)
{
    static const char digits[] = "0123456789abcdef";
    char *begin = ex->buffer + HD_STREAM_GAP, *end = begin + ex->used;
    size_t size = ex->used;

    if (!ex->is_chunked)
        return hd_slice(begin, ex->used);
    *--begin = '\n';
    *--begin = '\r';
    for (; size > 0; size >>= 4)
        *--begin = digits[size & 15];
    end = append_slice(end, HD_S("\r\n"));
    if (ex->is_ended)
        end = append_slice(end, LAST_CHUNK);
    return hd_slice(begin, (size_t)(end - begin));
}

void hd_http_stream_flush(struct hd_conn *conn)
{
    struct hd_exchange *ex = &conn->ex;
    struct hd_slice parts[2];
    size_t count = 0;
    int rc = 1;

    if (conn->is_sending || conn->state != HD_CONN_STREAMING)
        return;
    if (!ex->has_sent_head)
        parts[count++] = hd_buf_slice(&conn->head);
    ex->has_sent_head = true;
    if (ex->used > 0)
        parts[count++] = frame(ex);
    else if (ex->is_ended && ex->is_chunked && !is_head(ex))
        parts[count++] = LAST_CHUNK;
    ex->body_bytes += ex->used;
    ex->has_sent_end = ex->is_ended;
    if (count > 0)
        rc = hd_conn_write(conn, parts, count);
    if (rc < 0)
        hd_conn_break(conn);
    else if (rc > 0)
        hd_http_stream_sent(conn);
}

void hd_http_stream_sent(struct hd_conn *conn)
{
    struct hd_exchange *ex = &conn->ex;

    hd_http_stream_drop(conn);
    if (ex->has_sent_end)
        hd_conn_answered(conn);
    else if (ex->is_ended)
        hd_http_stream_flush(conn);
    else if (ex->wants_room)
        hd_hub_mark(conn, HD_READY_ROOM);
}

/* Copies as much as fits; 0 when there is no room. */
static size_t buffer_bytes(struct hd_conn *conn, const char *bytes, size_t len)
{
    struct hd_exchange *ex = &conn->ex;
    size_t cap = conn->hub->config.limits.stream_buffer;

    if (conn->state != HD_CONN_STREAMING || conn->is_sending || ex->burst >= MOST_BURST)
        return 0;
    if (!ex->buffer)
        ex->buffer = hd_hub_take_buffer(conn->hub);
    if (!ex->buffer) {
        hd_conn_break(conn);
        return 0;
    }
    if (len > cap - ex->used)
        len = cap - ex->used;
    memcpy(ex->buffer + HD_STREAM_GAP + ex->used, bytes, len);
    ex->used += len;
    ex->burst += len;
    if (ex->used == cap)
        hd_http_stream_flush(conn);
    return len;
}

size_t hd_http_stream_write(struct hd_exchange *ex, const struct hd_slice *parts, size_t count)
{
    struct hd_conn *conn = hd_conn_of(ex);
    size_t taken = 0, now;

    assert(ex->is_held && ex->is_stream);
    for (size_t i = 0; i < count; i++) {
        for (size_t at = 0; at < parts[i].len; at += now) {
            now = is_head(ex) ? parts[i].len
                              : buffer_bytes(conn, parts[i].ptr + at, parts[i].len - at);
            taken += now;
            if (now > 0)
                continue;
            ex->wants_room = true;
            if (!conn->is_sending && conn->state == HD_CONN_STREAMING)
                hd_hub_mark(conn, HD_READY_FLUSH);
            return taken;
        }
    }
    if (ex->used > 0)
        hd_hub_mark(conn, HD_READY_FLUSH);
    return taken;
}

/* Removes the callbacks. */
static void remove_callbacks(struct hd_exchange *ex)
{
    assert(ex->is_held && ex->is_stream);
    ex->is_held = false;
    ex->on_gone = NULL;
    ex->on_room = NULL;
}

void hd_http_stream_end(struct hd_exchange *ex)
{
    struct hd_conn *conn = hd_conn_of(ex);

    remove_callbacks(ex);
    ex->is_ended = true;
    if (conn->state == HD_CONN_STREAMING) {
        hd_hub_mark(conn, HD_READY_FLUSH);
        return;
    }
    /* The stream never began, because the peer was gone. */
    hd_conn_break(conn);
    hd_conn_settle(conn);
    hd_conn_release(conn);
}

void hd_http_stream_abort(struct hd_exchange *ex)
{
    struct hd_conn *conn = hd_conn_of(ex);

    remove_callbacks(ex);
    hd_conn_break(conn);
    hd_conn_settle(conn);
    hd_conn_release(conn);
}
