/*
 * The states of a connection:
 *
 *   idle → head → body → handling → writing ─→ idle
 *                            └→ streaming ─┘     (or lingering → closed)
 *
 * Bytes received while a request is handled wait in `pending`, up to a limit; then the socket is
 * not read, so TCP slows down a peer that pipelines. A peer that closes its sending side sends no
 * more requests, but may read the responses. Only an exchange with on_gone treats it as gone.
 */
#include <assert.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "http/internal.h"

#define CONTINUE HD_S("HTTP/1.1 100 Continue\r\n\r\n")
#define LARGEST_READ ((size_t)64 * 1024)
#define MOST_LINGERED ((size_t)64 * 1024 * 1024)
#define KEPT_ARENA ((size_t)16 * 1024)
#define ARENA_FOR_USERS ((size_t)16 * 1024 * 1024)
#define TRIM_AFTER_MS 1000
#define MOST_PARTS 4
#define KERNEL_AFTER_STREAM ((size_t)1024 * 1024)

void hd_conn_init(struct hd_conn *conn, struct hd_hub *hub)
{
    const struct hd_http_server_limits *limits = &hub->config.limits;

    *conn = (struct hd_conn){.hub = hub};
    hd_dlist_insert(&hub->conns, conn, all);
    hub->stats.connections_open++;
    hub->stats.connections_total++;
    hd_buf_init(&conn->pending, limits->pipelined + 2 * LARGEST_READ);
    hd_buf_init(&conn->head, HD_MAX_ANSWER_HEAD + 4096);
    hd_buf_init(&conn->ex.lines, HD_MAX_ANSWER_HEAD);
    hd_arena_init(&conn->ex.arena, limits->body + 2 * limits->head + ARENA_FOR_USERS);
    hd_parser_init(&conn->parser, limits, &hub->stats.body_bytes, &conn->ex.arena);
    hd_conn_enter(conn, HD_CONN_IDLE);
}

static void fini(struct hd_conn *conn)
{
    hd_http_stream_drop(conn);
    hd_parser_fini(&conn->parser);
    hd_arena_fini(&conn->ex.arena);
    hd_buf_fini(&conn->ex.lines);
    hd_buf_fini(&conn->ex.body);
    hd_buf_fini(&conn->pending);
    hd_buf_fini(&conn->head);
}

void hd_conn_release(struct hd_conn *conn)
{
    if (!conn->is_wire_closed || conn->ex.is_held || conn->is_queued || conn->pins > 0)
        return;
    hd_dlist_remove(conn, all);
    fini(conn);
    conn->hub->wire->release(conn);
}

void hd_conn_enter(struct hd_conn *conn, enum hd_conn_state state)
{
    conn->state = state;
    conn->since_ms = conn->hub->wire->now(conn->hub);
}

static bool is_receiving(const struct hd_conn *conn)
{
    return conn->state <= HD_CONN_BODY;
}

static bool has_pending(const struct hd_conn *conn)
{
    return conn->pending_at < conn->pending.len;
}

static void drop_pending(struct hd_conn *conn)
{
    size_t limit = conn->pending.limit;

    hd_buf_fini(&conn->pending);
    hd_buf_init(&conn->pending, limit);
    conn->pending_at = 0;
}

static void set_paused(struct hd_conn *conn, bool is_paused)
{
    if (conn->is_paused == is_paused || conn->has_ended)
        return;
    conn->is_paused = is_paused;
    conn->hub->wire->set_reading(conn, !is_paused);
}

static void close_wire(struct hd_conn *conn)
{
    hd_conn_enter(conn, HD_CONN_CLOSED);
    conn->hub->wire->close(conn);
}

/*
 * If unread bytes are left, close() makes the kernel send a reset, and the peer may lose the
 * response. So after a refusal, input is read for a while.
 */
static void close_gently(struct hd_conn *conn)
{
    drop_pending(conn);
    if (conn->has_ended || !(conn->is_refused || conn->is_paused)) {
        close_wire(conn);
        return;
    }
    hd_conn_enter(conn, HD_CONN_LINGERING);
    conn->hub->wire->shut_down(conn);
    set_paused(conn, false);
}

/* Memory that the wire still borrows stays until the wire returns it. */
static void drop_answer(struct hd_conn *conn)
{
    if (conn->is_sending)
        return;
    hd_buf_fini(&conn->ex.body);
    hd_http_stream_drop(conn);
}

static void reset_arena(struct hd_arena *arena)
{
    size_t limit = arena->limit;

    if (arena->used <= KEPT_ARENA) {
        hd_arena_reset(arena);
        return;
    }
    hd_arena_fini(arena);
    hd_arena_init(arena, limit);
}

void hd_conn_settle(struct hd_conn *conn)
{
    struct hd_http_server_stats *stats = &conn->hub->stats;
    const struct hd_http_server_config *config = &conn->hub->config;
    struct hd_exchange *ex = &conn->ex;

    if (!ex->is_open)
        return;
    ex->is_held = ex->is_open = false;
    stats->requests_open--;
    stats->streams_open -= ex->is_stream;
    stats->answers[ex->status >= 100 && ex->status < 600 ? ex->status / 100 : 0]++;
    if (config->answered)
        config->answered(config->ctx, ex, ex->status, ex->body_bytes,
                         hd_clock_monotonic_us() - ex->started_us);
    if (ex->at_end)
        ex->at_end(ex->end_ctx);
    ex->at_end = NULL;
    conn->ready &= ~(unsigned)(HD_READY_FLUSH | HD_READY_ROOM | HD_READY_GONE);
    ex->on_gone = NULL;
    ex->on_room = NULL;
    drop_answer(conn);
    hd_buf_reset(&ex->lines);
    ex->request = (struct hd_http_request){0};
    ex->actor = hd_slice(NULL, 0);
    if (!conn->is_refused)
        hd_parser_next(&conn->parser);
    reset_arena(&ex->arena);
}

/*
 * The small kernel buffer of a stream is too small for the responses after it: they would wait for
 * the peer's delayed acknowledgement every few kilobytes.
 */
static void widen_kernel(struct hd_conn *conn)
{
    if (conn->ex.is_stream && conn->hub->config.limits.stream_kernel > 0)
        conn->hub->wire->bound_kernel(conn, KERNEL_AFTER_STREAM);
}

void hd_conn_answered(struct hd_conn *conn)
{
    hd_conn_settle(conn);
    if (conn->closes || conn->hub->is_closing || conn->hub->is_crowded) {
        close_gently(conn);
        return;
    }
    widen_kernel(conn);
    hd_conn_enter(conn, HD_CONN_IDLE);
    if (!conn->is_consuming && (has_pending(conn) || conn->has_ended))
        hd_hub_mark(conn, HD_READY_NEXT);
}

void hd_conn_break(struct hd_conn *conn)
{
    struct hd_exchange *ex = &conn->ex;

    if (conn->state == HD_CONN_CLOSED)
        return;
    conn->is_broken = ex->is_open;
    close_wire(conn);
    drop_pending(conn);
    if (!ex->is_open)
        return;
    conn->hub->stats.gone++;
    if (!ex->is_held)
        hd_conn_settle(conn);
    else if (ex->on_gone)
        hd_hub_mark(conn, HD_READY_GONE);
}

int hd_conn_write(struct hd_conn *conn, const struct hd_slice *parts, size_t count)
{
    struct hd_slice rest[MOST_PARTS];
    size_t left = 0, rest_count = 0;
    ptrdiff_t done;

    assert(count <= MOST_PARTS && !conn->is_sending);
    done = conn->hub->wire->try_write(conn, parts, count);
    if (done < 0)
        return -1;
    conn->hub->stats.bytes_out += (uint64_t)done;
    for (size_t i = 0; i < count; i++) {
        size_t skip = (size_t)done < parts[i].len ? (size_t)done : parts[i].len;

        done -= (ptrdiff_t)skip;
        if (skip < parts[i].len)
            rest[rest_count++] = hd_slice(parts[i].ptr + skip, parts[i].len - skip);
        left += parts[i].len - skip;
    }
    if (left == 0)
        return 1;
    if (conn->hub->wire->send(conn, rest, rest_count) != 0)
        return -1;
    conn->is_sending = true;
    conn->unsent = conn->answer_bytes = left;
    conn->since_ms = conn->hub->wire->now(conn->hub);
    return 0;
}

void hd_conn_sent(struct hd_conn *conn, bool is_broken)
{
    conn->is_sending = false;
    if (conn->state == HD_CONN_CLOSED) {
        drop_answer(conn);
        return;
    }
    if (is_broken) {
        hd_conn_break(conn);
        return;
    }
    conn->hub->stats.bytes_out += conn->answer_bytes;
    if (conn->state == HD_CONN_WRITING)
        hd_conn_answered(conn);
    else if (conn->state == HD_CONN_STREAMING)
        hd_http_stream_sent(conn);
}

void hd_conn_closed(struct hd_conn *conn)
{
    assert(conn->state == HD_CONN_CLOSED);
    conn->is_wire_closed = true;
    conn->hub->stats.connections_open--;
    hd_conn_release(conn);
}

static bool is_sound_id(struct hd_slice id)
{
    if (id.len == 0 || id.len > HD_MAX_REQUEST_ID)
        return false;
    for (size_t i = 0; i < id.len; i++) {
        if (id.ptr[i] <= ' ' || id.ptr[i] > '~')
            return false;
    }
    return true;
}

static void open_exchange(struct hd_conn *conn)
{
    struct hd_exchange *ex = &conn->ex;

    hd_conn_enter(conn, HD_CONN_HANDLING);
    ex->request = conn->parser.request;
    ex->is_open = ex->is_held = true;
    ex->is_packed = ex->has_failed = ex->is_stream = ex->has_caching = ex->has_retry = false;
    ex->status = 0;
    ex->line_count = ex->body_bytes = 0;
    ex->started_us = hd_clock_monotonic_us();
    ex->peer =
        hd_browser_policy_peer(&conn->hub->config.guard, &ex->request, hd_slice_cstr(conn->peer));
    ex->id = hd_request_value(&ex->request, HD_S("x-request-id"));
    if (!is_sound_id(ex->id)) {
        hd_hub_new_id(conn->hub, ex->id_text);
        ex->id = hd_slice(ex->id_text, HD_UUID_LEN);
    }
    conn->closes = conn->is_refused || conn->hub->is_closing || conn->hub->is_crowded ||
                   !ex->request.is_kept_alive;
    conn->hub->stats.requests_open++;
    conn->hub->stats.requests_total++;
}

static void answer_preflight(struct hd_conn *conn)
{
    struct hd_exchange *ex = &conn->ex;

    if (hd_cors_write_preflight(&ex->lines, &conn->hub->config.cors, &ex->request))
        ex->has_failed = true;
    hd_answer_empty(ex, 204);
}

static void dispatch(struct hd_conn *conn)
{
    const struct hd_http_server_config *config = &conn->hub->config;
    struct hd_refusal_text refusal;

    open_exchange(conn);
    refusal = hd_browser_policy_check(config, &conn->ex.request);
    if (refusal.status)
        hd_answer_error(&conn->ex, refusal.status, "%s", refusal.text);
    else if (hd_cors_is_preflight(&conn->ex.request))
        answer_preflight(conn);
    else
        config->handler(config->ctx, &conn->ex);
}

/* Responds without calling the handler, and closes. */
static void refuse_request(struct hd_conn *conn, int status, const char *reason)
{
    conn->hub->stats.refused++;
    conn->is_refused = true;
    open_exchange(conn);
    hd_answer_error(&conn->ex, status, "%s", reason);
}

/* Skipped when the socket is full: the client sends its body after a timeout anyway. */
static void send_continue(struct hd_conn *conn)
{
    struct hd_slice part = CONTINUE;
    ptrdiff_t done;

    conn->parser.expects_continue = false;
    done = conn->hub->wire->try_write(conn, &part, 1);
    if (done != 0 && done != (ptrdiff_t)part.len)
        hd_conn_break(conn);
}

static void await_more(struct hd_conn *conn)
{
    enum hd_conn_state state = conn->parser.has_head ? HD_CONN_BODY : HD_CONN_HEAD;

    if (conn->state != state)
        hd_conn_enter(conn, state);
    if (conn->parser.expects_continue && conn->parser.body.len == 0)
        send_continue(conn);
}

/* Parses requests until one must wait for its response; returns the number of bytes used. */
static size_t consume(struct hd_conn *conn, const char *data, size_t len)
{
    size_t at = 0, used;

    conn->is_consuming = true;
    while (at < len && is_receiving(conn)) {
        /* Skip line breaks after a request. */
        if (conn->state == HD_CONN_IDLE && (data[at] == '\r' || data[at] == '\n')) {
            at++;
            continue;
        }
        switch (hd_parser_feed(&conn->parser, data + at, len - at, &used)) {
        case HD_PARSE_MORE:
            await_more(conn);
            break;
        case HD_PARSE_DONE:
            dispatch(conn);
            break;
        case HD_PARSE_REFUSED:
            refuse_request(conn, conn->parser.status, conn->parser.reason);
            break;
        }
        at += used;
    }
    conn->is_consuming = false;
    return at;
}

static void stash(struct hd_conn *conn, const char *data, size_t len)
{
    if (hd_buf_append(&conn->pending, data, len)) {
        hd_conn_break(conn);
        return;
    }
    if (conn->pending.len - conn->pending_at >= conn->hub->config.limits.pipelined)
        set_paused(conn, true);
}

void hd_conn_read(struct hd_conn *conn, const char *data, size_t len)
{
    size_t used = 0;

    conn->hub->stats.bytes_in += len;
    if (conn->state == HD_CONN_LINGERING) {
        conn->lingered += len;
        if (conn->lingered > MOST_LINGERED)
            close_wire(conn);
        return;
    }
    if (is_receiving(conn) && !has_pending(conn))
        used = consume(conn, data, len);
    if (used < len && conn->state < HD_CONN_LINGERING)
        stash(conn, data + used, len - used);
}

/* Continues with input that arrived during the last request. */
static void take_next(struct hd_conn *conn)
{
    if (!is_receiving(conn))
        return;
    if (has_pending(conn)) {
        size_t used = consume(conn, conn->pending.ptr + conn->pending_at,
                              conn->pending.len - conn->pending_at);

        conn->pending_at += used;
    }
    if (conn->state >= HD_CONN_LINGERING || has_pending(conn))
        return;
    drop_pending(conn);
    set_paused(conn, false);
    if (conn->has_ended && is_receiving(conn))
        close_wire(conn);
}

void hd_conn_end(struct hd_conn *conn)
{
    struct hd_exchange *ex = &conn->ex;

    conn->has_ended = true;
    switch (conn->state) {
    case HD_CONN_IDLE:
    case HD_CONN_HEAD:
    case HD_CONN_BODY:
        if (!has_pending(conn))
            close_wire(conn);
        break;
    case HD_CONN_HANDLING:
    case HD_CONN_STREAMING:
        if (ex->is_held && ex->on_gone)
            hd_conn_break(conn);
        break;
    case HD_CONN_LINGERING:
        close_wire(conn);
        break;
    case HD_CONN_WRITING:
    case HD_CONN_CLOSED:
        break;
    }
}

/* Notifies the holder that the response is not read: the peer is gone, or sent a HEAD. */
static void notify_gone(struct hd_conn *conn)
{
    struct hd_exchange *ex = &conn->ex;
    bool is_head = conn->state == HD_CONN_STREAMING && ex->request.method == HD_METHOD_HEAD;
    hd_gone_fn on_gone = ex->on_gone;

    if (!ex->is_held || !on_gone)
        return;
    if (!is_head && conn->state != HD_CONN_CLOSED) {
        if (!conn->has_ended)
            return;
        hd_conn_break(conn);
    }
    ex->on_gone = NULL;
    on_gone(ex->ctx);
    ex->is_held = false;
    if (!is_head)
        hd_conn_settle(conn);
}

void hd_conn_run(struct hd_conn *conn, unsigned bits)
{
    struct hd_exchange *ex = &conn->ex;

    ex->burst = 0;
    if (bits & HD_READY_GONE)
        notify_gone(conn);
    if (bits & HD_READY_NEXT)
        take_next(conn);
    if (conn->state != HD_CONN_STREAMING)
        return;
    if ((bits & HD_READY_ROOM) && ex->is_held && ex->on_room && !conn->is_sending) {
        ex->wants_room = false;
        ex->on_room(ex->ctx);
    }
    /* After on_room, so that the head and the first bytes are sent together. */
    if ((bits & HD_READY_FLUSH) || (conn->ready & HD_READY_FLUSH)) {
        conn->ready &= ~(unsigned)HD_READY_FLUSH;
        hd_http_stream_flush(conn);
    }
}

/* Time limit of a transfer: a base, and the time for its size at the minimum rate. */
static bool is_late(const struct hd_conn *conn, int64_t start_ms, size_t bytes)
{
    int64_t waited = conn->hub->wire->now(conn->hub) - conn->since_ms;

    return waited >= start_ms + (int64_t)(bytes / conn->hub->config.limits.rate) * 1000;
}

static void time_out_conn(struct hd_conn *conn)
{
    conn->hub->stats.timeouts++;
    hd_conn_break(conn);
}

static void refuse_late(struct hd_conn *conn, const char *reason)
{
    conn->hub->stats.timeouts++;
    refuse_request(conn, 408, reason);
}

static void tick_sending(struct hd_conn *conn)
{
    int64_t write_ms = conn->hub->config.limits.write_ms;
    size_t unsent;

    if (!conn->is_sending)
        return;
    unsent = conn->hub->wire->unsent(conn);
    if (conn->state == HD_CONN_STREAMING && unsent != conn->unsent) {
        conn->unsent = unsent;
        conn->since_ms = conn->hub->wire->now(conn->hub);
        return;
    }
    if (is_late(conn, write_ms, conn->state == HD_CONN_STREAMING ? 0 : conn->answer_bytes - unsent))
        time_out_conn(conn);
}

/* EOF is not seen while the socket is not read. An on_gone callback is called all the same. */
static void tick_paused(struct hd_conn *conn)
{
    if (conn->is_paused && conn->state != HD_CONN_CLOSED && conn->ex.is_held && conn->ex.on_gone &&
        conn->hub->wire->is_hung_up(conn))
        hd_conn_break(conn);
}

static void tick_idle(struct hd_conn *conn)
{
    if (conn->is_greeting) {
        if (is_late(conn, conn->hub->config.limits.head_ms, 0))
            time_out_conn(conn);
        return;
    }
    if (is_late(conn, conn->hub->config.limits.idle_ms, 0)) {
        close_wire(conn);
        return;
    }
    if (is_late(conn, TRIM_AFTER_MS, 0) && conn->head.cap > 0) {
        size_t limit = conn->head.limit, lines = conn->ex.lines.limit;

        hd_parser_trim(&conn->parser);
        hd_buf_fini(&conn->head);
        hd_buf_init(&conn->head, limit);
        hd_buf_fini(&conn->ex.lines);
        hd_buf_init(&conn->ex.lines, lines);
        limit = conn->ex.arena.limit;
        hd_arena_fini(&conn->ex.arena);
        hd_arena_init(&conn->ex.arena, limit);
    }
}

void hd_conn_tick(struct hd_conn *conn)
{
    const struct hd_http_server_limits *limits = &conn->hub->config.limits;

    switch (conn->state) {
    case HD_CONN_IDLE:
        if (!has_pending(conn))
            tick_idle(conn);
        break;
    case HD_CONN_HEAD:
        if (is_late(conn, limits->head_ms, 0))
            refuse_late(conn, "the request's head took too long");
        break;
    case HD_CONN_BODY:
        if (is_late(conn, limits->body_ms, conn->parser.body.len))
            refuse_late(conn, "the request's body took too long");
        break;
    case HD_CONN_HANDLING:
    case HD_CONN_STREAMING:
    case HD_CONN_WRITING:
        tick_sending(conn);
        tick_paused(conn);
        break;
    case HD_CONN_LINGERING:
        if (is_late(conn, limits->linger_ms, 0))
            close_wire(conn);
        break;
    case HD_CONN_CLOSED:
        break;
    }
}

void hd_conn_finish(struct hd_conn *conn)
{
    if (conn->state == HD_CONN_IDLE && !has_pending(conn))
        close_wire(conn);
    else
        conn->closes = true;
}
