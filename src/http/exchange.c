#include "http/exchange.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "base/utf8.h"
#include "http/internal.h"

#define DETAIL_SIZE ((size_t)1024)

/* The response when there is no memory for headers or text. */
#define NO_MEMORY HD_S("{\"detail\":\"the server is out of memory\"}")

const struct hd_http_request *hd_exchange_request(const struct hd_exchange *ex)
{
    return &ex->request;
}

struct hd_arena *hd_exchange_arena(struct hd_exchange *ex)
{
    return &ex->arena;
}

struct hd_slice hd_exchange_id(const struct hd_exchange *ex)
{
    return ex->id;
}

void hd_exchange_set_actor(struct hd_exchange *ex, struct hd_slice actor)
{
    if (hd_arena_copy(&ex->arena, actor, &ex->actor))
        ex->actor = hd_slice(NULL, 0);
}

struct hd_slice hd_exchange_actor(const struct hd_exchange *ex)
{
    return ex->actor;
}

struct hd_slice hd_exchange_peer(const struct hd_exchange *ex)
{
    return ex->peer;
}

void hd_exchange_on_gone(struct hd_exchange *ex, hd_gone_fn on_gone, void *ctx)
{
    struct hd_conn *conn = hd_conn_of(ex);

    assert(ex->is_held);
    ex->on_gone = on_gone;
    ex->ctx = ctx;
    if (on_gone && hd_exchange_is_gone(ex))
        hd_hub_mark(conn, HD_READY_GONE);
}

void hd_exchange_at_end(struct hd_exchange *ex, hd_end_fn at_end, void *ctx)
{
    ex->at_end = at_end;
    ex->end_ctx = ctx;
}

bool hd_exchange_is_gone(const struct hd_exchange *ex)
{
    const struct hd_conn *conn = hd_conn_of(ex);

    return conn->state == HD_CONN_CLOSED || conn->has_ended;
}

/* A header's name is a token, its value has no control characters except tab. */
static bool is_sound(struct hd_slice name, struct hd_slice value)
{
    if (name.len == 0)
        return false;
    for (size_t i = 0; i < name.len; i++) {
        if (name.ptr[i] <= ' ' || name.ptr[i] > '~' || name.ptr[i] == ':')
            return false;
    }
    for (size_t i = 0; i < value.len; i++) {
        unsigned char c = (unsigned char)value.ptr[i];

        if ((c < ' ' && c != '\t') || c == 0x7f)
            return false;
    }
    return true;
}

static int append_line(struct hd_buf *lines, struct hd_slice name, struct hd_slice value)
{
    size_t before = lines->len;
    int err;

    err = hd_buf_append_slice(lines, name);
    if (!err)
        err = hd_buf_append_slice(lines, HD_S(": "));
    if (!err)
        err = hd_buf_append_slice(lines, value);
    if (!err)
        err = hd_buf_append_slice(lines, HD_S("\r\n"));
    if (err)
        lines->len = before;
    return err;
}

void hd_answer_header(struct hd_exchange *ex, struct hd_slice name, struct hd_slice value)
{
    assert(ex->is_held);
    if (!is_sound(name, value) || ex->line_count == HD_MAX_ANSWER_HEADERS ||
        append_line(&ex->lines, name, value)) {
        ex->has_failed = true;
        return;
    }
    ex->line_count++;
    if (hd_slice_eq_nocase(name, HD_S("content-encoding")))
        ex->is_packed = true;
    if (hd_slice_eq_nocase(name, HD_S("cache-control")))
        ex->has_caching = true;
    if (hd_slice_eq_nocase(name, HD_S("retry-after")))
        ex->has_retry = true;
}

static bool takes_gzip(const struct hd_exchange *ex)
{
    const struct hd_conn *conn = hd_conn_of(ex);

    return (!conn->is_loopback || conn->hub->config.gzip_on_loopback) &&
           hd_request_accepts_gzip(&ex->request);
}

int hd_exchange_compress(struct hd_exchange *ex, struct hd_slice content_type, struct hd_buf *body)
{
    size_t least = hd_conn_of(ex)->hub->config.gzip_min;
    struct hd_buf packed;
    int err;

    if (ex->is_packed || least == 0 || body->len < least || !hd_gzip_is_worth(content_type))
        return 0;
    ex->is_packed = true;
    err = append_line(&ex->lines, HD_S("vary"), HD_S("accept-encoding"));
    if (err || !takes_gzip(ex))
        return err;
    hd_buf_init(&packed, body->len);
    err = hd_gzip(hd_buf_slice(body), &packed);
    if (!err)
        err = append_line(&ex->lines, HD_S("content-encoding"), HD_S("gzip"));
    if (err) {
        hd_buf_fini(&packed);
        return err == HD_ELIMIT ? 0 : err;
    }
    hd_buf_fini(body);
    *body = packed;
    return 0;
}

/* 204 and 304 have no body and no Content-Length. */
static bool has_body(int status)
{
    return status != 204 && status != 304;
}

static void send_answer(struct hd_conn *conn, int status, struct hd_slice type,
                        struct hd_slice body)
{
    struct hd_http_head head = {.status = status};
    struct hd_slice parts[2];
    size_t count = 1;

    if (has_body(status)) {
        head.content_type = body.len > 0 ? type : hd_slice(NULL, 0);
        head.has_length = true;
        head.length = body.len;
    }
    if (hd_http_head_write(conn, &head)) {
        hd_conn_break(conn);
        return;
    }
    conn->ex.status = status;
    parts[0] = hd_buf_slice(&conn->head);
    if (head.length > 0 && conn->ex.request.method != HD_METHOD_HEAD) {
        conn->ex.body_bytes = body.len;
        parts[count++] = body;
    }
    hd_conn_enter(conn, HD_CONN_WRITING);
    switch (hd_conn_write(conn, parts, count)) {
    case 1:
        hd_conn_answered(conn);
        break;
    case -1:
        hd_conn_break(conn);
        break;
    default:
        break;
    }
}

/* `body` is static, or owned by ex->body. */
static void answer_exchange(struct hd_exchange *ex, int status, struct hd_slice type,
                            struct hd_slice body)
{
    struct hd_conn *conn = hd_conn_of(ex);

    assert(ex->is_held && !ex->is_stream && status >= 200 && status < 600);
    ex->is_held = false;
    ex->on_gone = NULL;
    if (conn->state == HD_CONN_CLOSED) {
        ex->status = 0;
        hd_conn_settle(conn);
        hd_conn_release(conn);
        return;
    }
    if (ex->has_failed) {
        hd_buf_reset(&ex->lines);
        ex->has_retry = false;
        send_answer(conn, 503, HD_TYPE_JSON, NO_MEMORY);
        return;
    }
    send_answer(conn, status, type, body);
}

void hd_answer(struct hd_exchange *ex, int status, struct hd_slice content_type,
               struct hd_buf *body)
{
    assert(ex->is_held);
    /* If out of memory, send it uncompressed. */
    if (has_body(status) && hd_exchange_compress(ex, content_type, body))
        ex->is_packed = true;
    ex->body = *body;
    hd_buf_init(body, body->limit);
    answer_exchange(ex, status, content_type, hd_buf_slice(&ex->body));
}

void hd_answer_json(struct hd_exchange *ex, int status, struct hd_buf *body)
{
    hd_answer(ex, status, HD_TYPE_JSON, body);
}

void hd_answer_static(struct hd_exchange *ex, int status, struct hd_slice content_type,
                      struct hd_slice body)
{
    answer_exchange(ex, status, content_type, body);
}

void hd_answer_empty(struct hd_exchange *ex, int status)
{
    answer_exchange(ex, status, hd_slice(NULL, 0), hd_slice(NULL, 0));
}

void hd_answer_error(struct hd_exchange *ex, int status, const char *fmt, ...)
{
    char text[DETAIL_SIZE];
    struct hd_buf body;
    struct hd_jw jw;
    va_list args;
    int len;

    va_start(args, fmt);
    len = vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    if (len < 0)
        len = 0;
    if ((size_t)len >= sizeof(text))
        len = (int)hd_utf8_cut(text, sizeof(text) - 1);
    hd_buf_init(&body, DETAIL_SIZE * 8);
    hd_jw_init(&jw, &body);
    hd_jw_object(&jw);
    hd_jw_put_string(&jw, "detail", hd_slice(text, (size_t)len));
    hd_jw_object_end(&jw);
    if (hd_jw_finish(&jw)) {
        hd_buf_fini(&body);
        ex->has_failed = true;
    }
    hd_answer_json(ex, status, &body);
}
