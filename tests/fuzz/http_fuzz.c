/*
 * libFuzzer: a connection over an in-memory transport. The input is the peer's data, mixed with
 * other events (0xff and a byte for the kind): the peer closes or resets the connection, time
 * passes, the socket accepts written data, handlers respond late, an allocation fails. In the end
 * every exchange has ended, every buffer is freed, and the output begins like a response.
 *
 *   byte 0   bytes that the socket accepts at once (0: all)
 *   byte 1   the allocation that fails (0: none); above 127 all later ones, too
 *   the rest data of the peer, and events
 */
#include <stdint.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/json.h"
#include "http/internal.h"

#define MOST_CALLS 64
#define EVENT 0xff

static void require(bool is_true)
{
    if (!is_true)
        abort();
}

/* The peer, and the clock. */
static struct {
    struct hd_hub hub;
    struct hd_conn *conn;
    int64_t now;
    size_t takes; /* bytes at once; 0: all */
    size_t unsent;
    bool is_sending;
    bool is_closing;
    bool is_reading;
    bool is_hung_up;
    bool is_released;
    char out[16]; /* the first bytes written */
    size_t out_len;
    size_t sum;
} world;

/* A request that its handler holds. */
struct call {
    struct hd_exchange *ex;
    bool is_stream;
    bool is_watched;
    size_t left; /* bytes of the stream to write */
};

static struct call *calls[MOST_CALLS];
static size_t call_count;

static size_t total(const struct hd_slice *parts, size_t count)
{
    size_t sum = 0;

    for (size_t i = 0; i < count; i++)
        sum += parts[i].len;
    return sum;
}

/* Reads every byte, so that the sanitizer detects freed memory. */
static void keep(const struct hd_slice *parts, size_t count, size_t most)
{
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < parts[i].len && most > 0; k++, most--) {
            world.sum += (unsigned char)parts[i].ptr[k];
            if (world.out_len < sizeof(world.out))
                world.out[world.out_len++] = parts[i].ptr[k];
        }
    }
}

static ptrdiff_t try_write(struct hd_conn *conn, const struct hd_slice *parts, size_t count)
{
    size_t sum = total(parts, count);
    size_t taken = world.takes && world.takes < sum ? world.takes : sum;

    require(conn == world.conn && !world.is_closing);
    if (world.is_sending)
        return 0;
    if (world.is_hung_up)
        return -1;
    keep(parts, count, taken);
    return (ptrdiff_t)taken;
}

static struct hd_slice sending[4];
static size_t sending_count;

static int send_all(struct hd_conn *conn, const struct hd_slice *parts, size_t count)
{
    require(conn == world.conn && !world.is_sending && !world.is_closing && count <= 4);
    memcpy(sending, parts, count * sizeof(*parts));
    sending_count = count;
    world.unsent = total(parts, count);
    world.is_sending = true;
    return 0;
}

static size_t unsent(const struct hd_conn *conn)
{
    (void)conn;
    return world.unsent;
}

static void set_reading(struct hd_conn *conn, bool is_on)
{
    (void)conn;
    require(!world.is_closing);
    world.is_reading = is_on;
}

static bool is_hung_up(struct hd_conn *conn)
{
    (void)conn;
    return world.is_hung_up;
}

static void bound_kernel(struct hd_conn *conn, size_t bytes)
{
    (void)conn;
    require(bytes > 0);
}

static void shut_down(struct hd_conn *conn)
{
    (void)conn;
    require(!world.is_closing);
}

static void close_wire(struct hd_conn *conn)
{
    (void)conn;
    require(!world.is_closing);
    world.is_closing = true;
}

static void release(struct hd_conn *conn)
{
    require(conn == world.conn && !world.is_released);
    world.is_released = true;
    hd_free(conn);
}

static void wake(struct hd_hub *hub)
{
    (void)hub;
}

static int64_t now(const struct hd_hub *hub)
{
    (void)hub;
    return world.now;
}

static const struct hd_http_wire_ops ops = {
    .try_write = try_write,
    .send = send_all,
    .unsent = unsent,
    .set_reading = set_reading,
    .is_hung_up = is_hung_up,
    .bound_kernel = bound_kernel,
    .shut_down = shut_down,
    .close = close_wire,
    .release = release,
    .wake = wake,
    .now = now,
};

static void forget(struct call *call)
{
    for (size_t i = 0; i < call_count; i++) {
        if (calls[i] == call) {
            calls[i] = calls[--call_count];
            free(call);
            return;
        }
    }
    abort();
}

static void on_gone(void *ctx)
{
    struct call *call = ctx;

    require(call->is_watched);
    forget(call);
}

static void on_room(void *ctx)
{
    static const char bytes[5000];
    struct call *call = ctx;
    struct hd_slice parts[2] = {hd_slice(bytes, call->left / 2),
                                hd_slice(bytes, call->left - call->left / 2)};
    size_t taken = hd_http_stream_write(call->ex, parts, 2);

    require(taken <= call->left);
    call->left -= taken;
    if (call->left == 0) {
        hd_http_stream_end(call->ex);
        forget(call);
    }
}

static void begin_stream(struct call *call)
{
    call->is_stream = call->is_watched = true;
    hd_http_stream_begin_sse(call->ex, 200, on_room, on_gone, call);
}

/* Reads all data of the request, so that the sanitizer detects freed memory. */
static size_t touch(const struct hd_http_request *request)
{
    size_t sum = 0;

    for (size_t i = 0; i < request->header_count; i++) {
        for (size_t k = 0; k < request->headers[i].name.len; k++)
            sum += (size_t)request->headers[i].name.ptr[k];
        for (size_t k = 0; k < request->headers[i].value.len; k++)
            sum += (size_t)request->headers[i].value.ptr[k];
    }
    for (size_t i = 0; i < request->body.len; i++)
        sum += (size_t)request->body.ptr[i];
    for (size_t i = 0; i < request->query.len; i++)
        sum += (size_t)request->query.ptr[i];
    return sum;
}

static void echo(struct hd_exchange *ex)
{
    struct hd_slice body = hd_exchange_request(ex)->body;
    struct hd_buf out;

    hd_buf_init(&out, (size_t)1 << 20);
    hd_answer_header(ex, HD_S("x-echo"), hd_exchange_request(ex)->path);
    if (hd_json_write_string(&out, body)) {
        hd_buf_fini(&out);
        hd_answer_error(ex, 503, "no memory");
        return;
    }
    hd_answer_json(ex, 200, &out);
}

/* The second character of the path selects the behaviour. */
static void handle(void *ctx, struct hd_exchange *ex)
{
    const struct hd_http_request *request = hd_exchange_request(ex);
    char kind = request->path.len > 1 ? request->path.ptr[1] : 'e';
    struct call *call;

    (void)ctx;
    require(request->path.len > 0 && touch(request) < SIZE_MAX);
    call = kind == 'e' || call_count == MOST_CALLS ? NULL : calloc(1, sizeof(*call));
    if (!call) {
        echo(ex);
        return;
    }
    call->ex = ex;
    call->left = 1 + request->path.len * 100;
    if (call->left > 5000)
        call->left = 5000;
    calls[call_count++] = call;
    if (kind == 's')
        begin_stream(call);
    if (kind == 'w') {
        call->is_watched = true;
        hd_exchange_on_gone(ex, on_gone, call);
    }
}

static void answered(void *ctx, const struct hd_exchange *ex, int status, size_t bytes,
                     int64_t took_us)
{
    (void)ctx;
    (void)bytes;
    require(hd_exchange_id(ex).len > 0 && status < 600 && took_us >= 0);
}

/* The data being sent has left, or never will. */
static void finish_sending(bool is_broken)
{
    if (!world.is_sending)
        return;
    world.is_sending = false;
    if (!is_broken)
        keep(sending, sending_count, SIZE_MAX);
    world.unsent = 0;
    hd_conn_sent(world.conn, is_broken);
}

static void finish_closing(void)
{
    if (!world.is_closing || world.is_released || world.conn->is_wire_closed)
        return;
    finish_sending(true);
    hd_conn_closed(world.conn);
}

static void answer_one(size_t which, bool aborts)
{
    struct call *call;

    if (call_count == 0)
        return;
    call = calls[which % call_count];
    if (call->is_stream && aborts) {
        hd_http_stream_abort(call->ex);
        forget(call);
    } else if (call->is_stream) {
        on_room(call);
    } else if (aborts) {
        begin_stream(call);
    } else {
        struct hd_exchange *ex = call->ex;

        forget(call);
        echo(ex);
    }
}

static bool is_open(void)
{
    return !world.is_released && !world.is_closing;
}

static void event(uint8_t code)
{
    switch (code % 10) {
    case 0:
        if (is_open())
            hd_conn_end(world.conn);
        break;
    case 1:
        world.is_hung_up = true;
        if (is_open() && code > 127)
            hd_conn_break(world.conn);
        break;
    case 2:
        world.now += code * 100;
        if (!world.is_released)
            hd_hub_tick(&world.hub);
        break;
    case 3:
        finish_sending(code > 200);
        break;
    case 4:
        answer_one(code / 10, false);
        break;
    case 5:
        answer_one(code / 10, true);
        break;
    case 6:
        world.hub.is_crowded = code > 127;
        break;
    case 7:
        world.hub.is_closing = true;
        if (is_open())
            hd_conn_finish(world.conn);
        break;
    default:
        hd_hub_run(&world.hub);
        break;
    }
}

/* Uses a separate block, so that the sanitizer detects a read past its end. */
static void feed(const uint8_t *data, size_t len)
{
    char *copy = malloc(len ? len : 1);

    require(copy);
    memcpy(copy, data, len);
    if (len > 0 && is_open() && world.is_reading && !world.conn->has_ended)
        hd_conn_read(world.conn, copy, len);
    free(copy);
}

static void play(const uint8_t *data, size_t size)
{
    while (size > 0) {
        const uint8_t *mark = memchr(data, EVENT, size);
        size_t len = mark ? (size_t)(mark - data) : size;

        feed(data, len);
        finish_closing();
        if (mark && len + 1 < size)
            event(data[len + 1]);
        len = mark && len + 1 < size ? len + 2 : size;
        data += len;
        size -= len;
    }
}

static void start(const uint8_t *data)
{
    struct hd_http_server_config config;

    hd_http_server_config_init(&config);
    config.limits.head = 1024;
    config.limits.body = 2048;
    config.limits.body_total = 3000;
    config.limits.pipelined = 512;
    config.limits.stream_buffer = 256;
    config.gzip_min = 512;
    config.gzip_on_loopback = true;
    config.handler = handle;
    config.answered = answered;
    memset(&world, 0, sizeof(world));
    world.takes = data[0] * 7u;
    world.is_reading = true;
    hd_hub_init(&world.hub, &ops, &config);
    world.conn = malloc(sizeof(*world.conn));
    require(world.conn);
    hd_conn_init(world.conn, &world.hub);
    (void)hd_alloc_fail_at(data[1] & 127, data[1] > 127);
}

/* Ends everything and checks that nothing is left. */
static void stop(void)
{
    (void)hd_alloc_fail_at(0, 0);
    if (is_open())
        hd_conn_break(world.conn);
    finish_closing();
    for (int i = 0; i < 10 && (world.hub.ready.first || call_count > 0); i++) {
        hd_hub_run(&world.hub);
        while (call_count > 0) {
            size_t before = call_count;
            struct call *call = calls[0];

            if (call->is_watched)
                break;
            answer_one(0, false);
            require(call_count < before);
        }
    }
    require(call_count == 0 && world.is_released && !world.hub.conns);
    require(world.hub.stats.requests_open == 0 && world.hub.stats.streams_open == 0);
    require(world.hub.stats.body_bytes == 0 && world.hub.stats.connections_open == 0);
    hd_hub_fini(&world.hub);
}

/* The output begins like a response. */
static void check_output(void)
{
    static const struct hd_slice begin = HD_S_INIT("HTTP/1.1 ");
    size_t len = world.out_len < begin.len ? world.out_len : begin.len;

    require(memcmp(world.out, begin.ptr, len) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    start(data);
    play(data + 2, size - 2);
    check_output();
    stop();
    return 0;
}
