#include "runtime/link.h"

#include <string.h>

#include "base/alloc.h"
#include "base/error.h"

#define CHUNK ((size_t)64 * 1024)
#define MAX_BUFFER (HD_FRAME_MAX * 2)
#define JOINED ((size_t)64 * 1024)   /* larger messages are not copied if possible */
#define AT_ONCE ((size_t)256 * 1024) /* sent before the end of the loop iteration */
#define MAX_SPARE ((size_t)1 << 20)  /* of buffers kept for reuse */
#define KEEPALIVE_SECONDS 60

struct hd_link {
    union {
        uv_handle_t handle;
        uv_stream_t stream;
        uv_pipe_t pipe;
        uv_tcp_t tcp;
    } uv;
    const struct hd_link_events *events;
    void *ctx;
    void (*on_closed)(void *arg);
    void *closed_arg;
    struct hd_buf in; /* incomplete frames, or several small ones */
    struct hd_buf out;
    size_t limit;
    size_t heard;
    bool is_reading;
    bool is_over;   /* on_end was called, or the link was closed: no more callbacks */
    bool is_closed; /* uv_close() was called */
    char *kept;     /* the buffer was moved out by hd_link_keep() */
};

/* Bytes being written. */
struct parcel {
    uv_write_t write;
    struct hd_link *link;
    char *memory;
    void (*release)(void *arg);
    void *arg;
};

/* ---- end -------------------------------------------------------------- */

static void on_link_closed(uv_handle_t *handle)
{
    struct hd_link *link = handle->data;
    void (*fn)(void *arg) = link->on_closed;
    void *arg = link->closed_arg;

    hd_buf_fini(&link->in);
    hd_buf_fini(&link->out);
    hd_free(link);
    if (fn)
        fn(arg);
}

void hd_link_close(struct hd_link *link)
{
    if (!link || link->is_closed)
        return;
    if (!link->is_over && link->out.len > 0) {
        uv_buf_t buf = uv_buf_init(link->out.ptr, (unsigned)link->out.len);

        if (uv_stream_get_write_queue_size(&link->uv.stream) == 0 && link->out.len <= AT_ONCE)
            (void)uv_try_write(&link->uv.stream, &buf, 1);
    }
    link->is_over = true;
    link->is_closed = true;
    uv_close(&link->uv.handle, on_link_closed);
}

static void end_link(struct hd_link *link, const char *why)
{
    if (link->is_over)
        return;
    link->is_over = true;
    (void)uv_read_stop(&link->uv.stream);
    link->events->on_end(link->ctx, why);
}

/* ---- reading -------------------------------------------------------------- */

/* The buffer for a large frame grows with the bytes received: a length alone allocates nothing. */
static size_t wanted(const struct hd_link *link)
{
    size_t total = 0, step = link->in.len > CHUNK ? link->in.len : CHUNK;

    if (hd_frame_size(hd_buf_slice(&link->in), link->limit, &total) == 0 && total > CHUNK)
        return total - link->in.len < step ? total - link->in.len : step;
    return CHUNK - link->in.len;
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    struct hd_link *link = handle->data;
    size_t size = wanted(link);

    (void)suggested;
    if (hd_buf_reserve(&link->in, size))
        *buf = uv_buf_init(NULL, 0); /* libuv calls on_link_read with UV_ENOBUFS */
    else
        *buf = uv_buf_init(link->in.ptr + link->in.len, (unsigned)size);
}

/* Delivers the first frame in the buffer from `at`; 0: none is complete, or the link is over. */
static size_t give(struct hd_link *link, size_t at)
{
    struct hd_slice rest = hd_slice(link->in.ptr + at, link->in.len - at);
    struct hd_frame frame;
    size_t total;

    if (hd_frame_size(rest, link->limit, &total)) {
        end_link(link, "it sent an invalid frame");
        return 0;
    }
    if (total == 0 || total > rest.len)
        return 0;
    if (hd_frame_read(hd_slice(rest.ptr, total), &frame) ||
        !link->events->on_frame(link->ctx, &frame))
        end_link(link, "it sent a frame that violates the protocol");
    return link->is_over ? 0 : total;
}

static void give_all(struct hd_link *link)
{
    size_t at = 0, used;

    while (!link->is_over && at < link->in.len && (used = give(link, at)) > 0) {
        at += used;
        if (link->kept) { /* it was the whole buffer */
            link->kept = NULL;
            at = 0;
        }
    }
    if (at > 0 && at < link->in.len)
        memmove(link->in.ptr, link->in.ptr + at, link->in.len - at);
    link->in.len -= at;
    if (link->in.len == 0 && link->in.cap > MAX_SPARE) {
        hd_buf_fini(&link->in);
        hd_buf_init(&link->in, MAX_BUFFER);
    }
}

static void on_link_read(uv_stream_t *stream, ssize_t len, const uv_buf_t *buf)
{
    struct hd_link *link = stream->data;

    (void)buf;
    if (link->is_over)
        return;
    if (len > 0) {
        link->heard += (size_t)len;
        link->in.len += (size_t)len;
        give_all(link);
    } else if (len == UV_ENOBUFS) {
        end_link(link, "out of memory for a message from it");
    } else if (len < 0) {
        end_link(link, HD_LINK_CLOSED);
    }
}

int hd_link_keep(struct hd_link *link, struct hd_frame *frame, char **memory)
{
    const char *begin = frame->lengths.ptr - HD_FRAME_FIXED;
    size_t total = (size_t)(frame->blobs.ptr + frame->blobs.len - begin);
    char *copy;

    if (begin == link->in.ptr && total == link->in.len && total > CHUNK) {
        link->kept = hd_buf_take(&link->in, &total);
        *memory = link->kept;
        return 0;
    }
    copy = hd_malloc(total);
    if (!copy)
        return HD_ENOMEM;
    memcpy(copy, begin, total);
    *memory = copy;
    return hd_frame_read(hd_slice(copy, total), frame);
}

void hd_link_set_reading(struct hd_link *link, bool is_on)
{
    if (link->is_over || link->is_reading == is_on)
        return;
    link->is_reading = is_on;
    if (!is_on)
        (void)uv_read_stop(&link->uv.stream);
    else if (uv_read_start(&link->uv.stream, on_alloc, on_link_read))
        link->is_reading = false; /* it is closing: pending calls time out */
}

size_t hd_link_heard(struct hd_link *link)
{
    size_t heard = link->heard;

    link->heard = 0;
    return heard;
}

/* ---- writing -------------------------------------------------------------- */

static void free_parcel(struct parcel *parcel)
{
    if (parcel->release)
        parcel->release(parcel->arg);
    hd_free(parcel->memory);
    hd_free(parcel);
}

static void on_written(uv_write_t *write, int status)
{
    struct parcel *parcel = write->data;
    struct hd_link *link = parcel->link;

    free_parcel(parcel);
    if (link->is_over)
        return;
    if (status)
        end_link(link, HD_LINK_CLOSED);
    else
        link->events->on_sent(link->ctx);
}

/* Takes `memory` when it succeeds. */
static int post(struct hd_link *link, const uv_buf_t *bufs, size_t count, char *memory,
                void (*release)(void *arg), void *arg)
{
    struct parcel *parcel = hd_calloc(1, sizeof(*parcel));

    if (!parcel)
        return HD_ENOMEM;
    parcel->write.data = parcel;
    parcel->link = link;
    if (uv_write(&parcel->write, &link->uv.stream, bufs, (unsigned)count, on_written)) {
        hd_free(parcel);
        return HD_EIO;
    }
    parcel->memory = memory;
    parcel->release = release;
    parcel->arg = arg;
    return 0;
}

static void post_rest(struct hd_link *link, size_t done)
{
    size_t len;
    char *memory = hd_buf_take(&link->out, &len);
    uv_buf_t buf = uv_buf_init(memory + done, (unsigned)(len - done));

    if (post(link, &buf, 1, memory, NULL, NULL)) {
        hd_free(memory);
        end_link(link, "out of memory for a message to it");
    }
}

void hd_link_flush(struct hd_link *link)
{
    uv_buf_t buf;
    int done = 0;

    if (link->is_over || link->out.len == 0)
        return;
    buf = uv_buf_init(link->out.ptr, (unsigned)link->out.len);
    if (uv_stream_get_write_queue_size(&link->uv.stream) == 0)
        done = uv_try_write(&link->uv.stream, &buf, 1);
    if (done < 0 && done != UV_EAGAIN) {
        hd_buf_reset(&link->out);
        end_link(link, HD_LINK_CLOSED);
        return;
    }
    if ((size_t)(done > 0 ? done : 0) < link->out.len)
        post_rest(link, done > 0 ? (size_t)done : 0);
    else
        hd_buf_reset(&link->out);
}

static size_t size_of(const struct hd_rt_message *message)
{
    size_t sum = message->head.len;

    for (size_t i = 0; i < message->blob_count; i++)
        sum += message->blobs[i].len;
    return sum;
}

static int join_frame(struct hd_link *link, enum hd_frame_type type, uint32_t id,
                      const struct hd_rt_message *message)
{
    size_t before = link->out.len;
    int err =
        hd_frame_write(&link->out, type, id, message->head, message->blobs, message->blob_count);

    for (size_t i = 0; !err && i < message->blob_count; i++)
        err = hd_buf_append_slice(&link->out, message->blobs[i]);
    if (err)
        link->out.len = before;
    return err;
}

/* The blobs are not copied but written from the caller's memory. */
static int post_large(struct hd_link *link, enum hd_frame_type type, uint32_t id,
                      const struct hd_rt_message *message, void (*release)(void *arg), void *arg)
{
    uv_buf_t *bufs = hd_malloc((message->blob_count + 1) * sizeof(*bufs));
    size_t len, count = 1;
    char *memory;
    int err = bufs ? 0 : HD_ENOMEM;

    hd_link_flush(link);
    if (!err)
        err = link->is_over ? HD_ECLOSED
                            : hd_frame_write(&link->out, type, id, message->head, message->blobs,
                                             message->blob_count);
    if (err) {
        hd_free(bufs);
        return err;
    }
    memory = hd_buf_take(&link->out, &len);
    bufs[0] = uv_buf_init(memory, (unsigned)len);
    for (size_t i = 0; i < message->blob_count; i++)
        if (message->blobs[i].len > 0)
            bufs[count++] =
                uv_buf_init((char *)message->blobs[i].ptr, (unsigned)message->blobs[i].len);
    err = post(link, bufs, count, memory, release, arg);
    hd_free(bufs);
    if (err)
        hd_free(memory);
    return err;
}

int hd_link_send(struct hd_link *link, enum hd_frame_type type, uint32_t id,
                 const struct hd_rt_message *message, void (*release)(void *arg), void *arg)
{
    int err;

    if (link->is_over)
        return HD_ECLOSED;
    if (release && size_of(message) > JOINED)
        return post_large(link, type, id, message, release, arg);
    err = join_frame(link, type, id, message);
    if (err)
        return err;
    if (link->out.len > AT_ONCE)
        hd_link_flush(link);
    return release ? HD_READY : 0;
}

size_t hd_link_unsent(const struct hd_link *link)
{
    return link->out.len + uv_stream_get_write_queue_size(&link->uv.stream);
}

/* ---- start ------------------------------------------------------------ */

static int init_socket(struct hd_link *link, const uv_stream_t *listener)
{
    uv_loop_t *loop = listener->loop;

    return listener->type == UV_NAMED_PIPE ? uv_pipe_init(loop, &link->uv.pipe, 0)
                                           : uv_tcp_init(loop, &link->uv.tcp);
}

int hd_link_accept(uv_stream_t *listener, const struct hd_link_events *events, void *ctx,
                   void (*closed)(void *arg), void *arg, struct hd_link **out)
{
    struct hd_link *link = hd_calloc(1, sizeof(*link));
    int err;

    if (!link || init_socket(link, listener)) {
        hd_free(link);
        return HD_ENOMEM;
    }
    link->uv.handle.data = link;
    link->events = events;
    link->ctx = ctx;
    link->limit = SIZE_MAX;
    hd_buf_init(&link->in, MAX_BUFFER);
    hd_buf_init(&link->out, MAX_BUFFER);
    err = uv_accept(listener, &link->uv.stream);
    if (!err && listener->type == UV_TCP) {
        (void)uv_tcp_nodelay(&link->uv.tcp, 1);
        (void)uv_tcp_keepalive(&link->uv.tcp, 1, KEEPALIVE_SECONDS);
    }
    if (!err) {
        err = uv_read_start(&link->uv.stream, on_alloc, on_link_read);
        link->is_reading = !err;
    }
    if (err) {
        hd_link_close(link);
        return HD_EIO;
    }
    link->on_closed = closed;
    link->closed_arg = arg;
    *out = link;
    return 0;
}

void hd_link_hand_over(struct hd_link *link, const struct hd_link_events *events, void *ctx)
{
    link->events = events;
    link->ctx = ctx;
}

void hd_link_set_limit(struct hd_link *link, size_t limit)
{
    link->limit = limit;
}
