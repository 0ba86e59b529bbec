/*
 * Uses llhttp without lenient flags: it refuses bare LF, obs-fold, white space before the colon,
 * and Content-Length twice or with Transfer-Encoding, all of which enable request smuggling.
 * Checked here: Host, the version, the transfer coding, the form of the target, and all sizes.
 */
#include "http/parse.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/vec.h"
#include "http/server.h"

#define KEPT_BUFFER ((size_t)16 * 1024)
#define RESERVED_BODY ((size_t)64 * 1024)

struct hd_span {
    uint32_t name_at;
    uint32_t name_len;
    uint32_t value_at;
    uint32_t value_len;
};

static struct hd_parser *parser_of(llhttp_t *http)
{
    return http->data;
}

/* Keeps the first reason. */
static int reject_request(struct hd_parser *parser, int status, const char *reason)
{
    if (parser->status == 0) {
        parser->status = status;
        (void)snprintf(parser->reason, sizeof(parser->reason), "%s", reason);
    }
    return -1;
}

static int refuse_memory(struct hd_parser *parser)
{
    return reject_request(parser, 503, "the server is out of memory");
}

static int refuse_head(struct hd_parser *parser)
{
    bool is_target = parser->span_count == 0;

    return reject_request(parser, is_target ? 414 : 431,
                          is_target ? "the request's target is too long"
                                    : "the request's head is too large");
}

/* Appends to the head's text; request buffers use 32-bit offsets, see hd_http_server_create(). */
static int append_head(struct hd_parser *parser, const char *at, size_t len)
{
    int err = hd_buf_append(&parser->head, at, len);

    if (err == HD_ELIMIT)
        return refuse_head(parser);
    return err ? refuse_memory(parser) : 0;
}

static int on_target(llhttp_t *http, const char *at, size_t len)
{
    struct hd_parser *parser = parser_of(http);

    if (append_head(parser, at, len))
        return -1;
    parser->target_len += len;
    return 0;
}

static int add_span(struct hd_parser *parser)
{
    if (parser->span_count == parser->limits->headers)
        return reject_request(parser, 431, "the request has too many headers");
    if (hd_array_grow(parser->spans, parser->span_count, parser->span_cap) != 0)
        return refuse_memory(parser);
    parser->spans[parser->span_count++] = (struct hd_span){.name_at = (uint32_t)parser->head.len};
    return 0;
}

/* Chunk extensions and trailers count against the head's limit and are not kept. */
static int count_extra(struct hd_parser *parser, size_t len)
{
    parser->head_bytes += len;
    if (parser->head_bytes > parser->limits->head)
        return reject_request(parser, 431,
                              "the request's chunk extensions or trailers are too large");
    return 0;
}

static int on_extension(llhttp_t *http, const char *at, size_t len)
{
    (void)at;
    return count_extra(parser_of(http), len);
}

static int on_field(llhttp_t *http, const char *at, size_t len)
{
    struct hd_parser *parser = parser_of(http);
    struct hd_span *span;
    char *copy;

    if (parser->has_head)
        return count_extra(parser, len);
    if (parser->is_in_value || parser->span_count == 0) {
        if (add_span(parser))
            return -1;
        parser->is_in_value = false;
    }
    if (append_head(parser, at, len))
        return -1;
    span = &parser->spans[parser->span_count - 1];
    span->name_len += (uint32_t)len;
    copy = parser->head.ptr + parser->head.len - len;
    for (size_t i = 0; i < len; i++) {
        if (copy[i] >= 'A' && copy[i] <= 'Z')
            copy[i] = (char)(copy[i] + ('a' - 'A'));
    }
    return 0;
}

/* Not in on_value(), which is not called for an empty value. */
static int on_field_end(llhttp_t *http)
{
    struct hd_parser *parser = parser_of(http);

    if (parser->has_head)
        return 0;
    parser->spans[parser->span_count - 1].value_at = (uint32_t)parser->head.len;
    parser->is_in_value = true;
    return 0;
}

static int on_value(llhttp_t *http, const char *at, size_t len)
{
    struct hd_parser *parser = parser_of(http);

    if (parser->has_head)
        return count_extra(parser, len);
    if (append_head(parser, at, len))
        return -1;
    parser->spans[parser->span_count - 1].value_len += (uint32_t)len;
    return 0;
}

static enum hd_method method_of(const llhttp_t *http)
{
    switch (http->method) {
    case HTTP_GET:
        return HD_METHOD_GET;
    case HTTP_HEAD:
        return HD_METHOD_HEAD;
    case HTTP_POST:
        return HD_METHOD_POST;
    case HTTP_PUT:
        return HD_METHOD_PUT;
    case HTTP_PATCH:
        return HD_METHOD_PATCH;
    case HTTP_DELETE:
        return HD_METHOD_DELETE;
    case HTTP_OPTIONS:
        return HD_METHOD_OPTIONS;
    default:
        return HD_METHOD_OTHER;
    }
}

static struct hd_slice trim_end(struct hd_slice s)
{
    while (s.len > 0 && (s.ptr[s.len - 1] == ' ' || s.ptr[s.len - 1] == '\t'))
        s.len--;
    return s;
}

/* The head's text no longer moves: offsets become slices. */
static int fill_headers(struct hd_parser *parser)
{
    struct hd_http_request *request = &parser->request;
    const char *text = parser->head.ptr;
    struct hd_header *headers;

    headers = hd_arena_alloc(parser->arena, parser->span_count * sizeof(*headers));
    if (!headers)
        return refuse_memory(parser);
    for (size_t i = 0; i < parser->span_count; i++) {
        const struct hd_span *span = &parser->spans[i];

        headers[i].name = hd_slice(text + span->name_at, span->name_len);
        headers[i].value = trim_end(hd_slice(text + span->value_at, span->value_len));
    }
    request->headers = headers;
    request->header_count = parser->span_count;
    return 0;
}

/* Removes "http://host" from "http://host/path"; other targets stay unchanged. */
static struct hd_slice take_authority(struct hd_slice target, struct hd_slice *authority)
{
    const char *begin = NULL;
    size_t skip = 0;

    *authority = hd_slice("", 0);
    if (target.len > 7 && hd_slice_eq_nocase(hd_slice(target.ptr, 7), HD_S("http://")))
        skip = 7;
    else if (target.len > 8 && hd_slice_eq_nocase(hd_slice(target.ptr, 8), HD_S("https://")))
        skip = 8;
    if (skip == 0)
        return target;
    for (begin = target.ptr + skip; begin < target.ptr + target.len; begin++) {
        if (*begin == '/' || *begin == '?')
            break;
    }
    *authority = hd_slice(target.ptr + skip, (size_t)(begin - target.ptr) - skip);
    target.len -= (size_t)(begin - target.ptr);
    return hd_slice(begin, target.len);
}

static int fill_target(struct hd_parser *parser)
{
    struct hd_http_request *request = &parser->request;
    struct hd_slice target = hd_slice(parser->head.ptr, parser->target_len);
    const char *mark;

    target = take_authority(target, &request->authority);
    mark = target.len ? memchr(target.ptr, '#', target.len) : NULL;
    if (mark)
        target.len = (size_t)(mark - target.ptr);
    mark = target.len ? memchr(target.ptr, '?', target.len) : NULL;
    request->path = target;
    request->query = hd_slice("", 0);
    if (mark) {
        request->path.len = (size_t)(mark - target.ptr);
        request->query = hd_slice(mark + 1, target.len - request->path.len - 1);
    }
    if (request->path.len == 0)
        request->path = HD_S("/");
    if (request->path.ptr[0] == '/')
        return 0;
    if (request->method == HD_METHOD_OPTIONS && hd_slice_eq(request->path, HD_S("*")))
        return 0;
    return reject_request(parser, 400, "malformed request: the target does not begin with '/'");
}

static size_t count_of(const struct hd_http_request *request, struct hd_slice name)
{
    size_t count = 0;

    for (size_t i = 0; i < request->header_count; i++)
        count += hd_slice_eq(request->headers[i].name, name);
    return count;
}

static int check_host(struct hd_parser *parser)
{
    size_t count = count_of(&parser->request, HD_S("host"));

    if (count > 1)
        return reject_request(parser, 400, "malformed request: more than one Host header");
    if (count == 0 && !parser->request.is_http10)
        return reject_request(parser, 400, "malformed request: no Host header");
    return 0;
}

/* "chunked", once, is the only transfer coding allowed for a request. */
static int check_coding(struct hd_parser *parser)
{
    const struct hd_http_request *request = &parser->request;
    struct hd_slice coding;

    if (hd_request_header(request, HD_S("transfer-encoding"), &coding)) {
        if (request->is_http10)
            return reject_request(parser, 400, "malformed request: Transfer-Encoding in HTTP/1.0");
        if (!hd_slice_eq_nocase(coding, HD_S("chunked")) ||
            count_of(request, HD_S("transfer-encoding")) > 1)
            return reject_request(parser, 501,
                                  "unsupported Transfer-Encoding: only chunked is supported");
    }
    if (hd_request_header(request, HD_S("content-encoding"), &coding) && coding.len > 0 &&
        !hd_slice_eq_nocase(coding, HD_S("identity")))
        return reject_request(parser, 415, "Content-Encoding is not supported in requests");
    return 0;
}

static int refuse_body(struct hd_parser *parser)
{
    char text[96];

    (void)snprintf(text, sizeof(text), "the request's body is larger than %zu bytes",
                   parser->limits->body);
    return reject_request(parser, 413, text);
}

static int check_body(struct hd_parser *parser)
{
    const llhttp_t *http = &parser->http;
    struct hd_slice expectation;

    if ((http->flags & F_CONTENT_LENGTH) && http->content_length > parser->limits->body)
        return refuse_body(parser);
    if (!hd_request_header(&parser->request, HD_S("expect"), &expectation))
        return 0;
    if (!hd_slice_eq_nocase(expectation, HD_S("100-continue")))
        return reject_request(parser, 417, "unsupported Expect: only 100-continue is supported");
    parser->expects_continue = !parser->request.is_http10 &&
                               ((http->flags & F_CHUNKED) ||
                                ((http->flags & F_CONTENT_LENGTH) && http->content_length > 0));
    return 0;
}

static int check_head(struct hd_parser *parser)
{
    int err;

    err = check_host(parser);
    if (!err)
        err = check_coding(parser);
    return err ? err : check_body(parser);
}

static int on_request_head(llhttp_t *http)
{
    struct hd_parser *parser = parser_of(http);
    struct hd_http_request *request = &parser->request;
    int err;

    parser->has_head = true;
    if (http->http_major != 1 || http->http_minor > 1)
        return reject_request(parser, 505, "only HTTP/1.1 and HTTP/1.0 are supported");
    if (http->method == HTTP_CONNECT)
        return reject_request(parser, 501, "this server is not a proxy");
    request->method = method_of(http);
    request->method_name = hd_slice_cstr(llhttp_method_name((llhttp_method_t)http->method));
    request->is_http10 = http->http_minor == 0;
    request->is_kept_alive = llhttp_should_keep_alive(http) != 0;
    request->body = hd_slice("", 0);
    err = fill_headers(parser);
    if (!err)
        err = fill_target(parser);
    if (!err)
        err = check_head(parser);
    /*
     * The client may offer another protocol (h2c, websocket); continuing with HTTP/1.1 declines it.
     */
    http->upgrade = 0;
    return err;
}

static int on_body_part(llhttp_t *http, const char *at, size_t len)
{
    struct hd_parser *parser = parser_of(http);
    struct hd_buf *body = &parser->body;
    uint64_t whole = (http->flags & F_CONTENT_LENGTH) ? http->content_length : 0;
    int err = 0;

    if (*parser->body_held + len > parser->limits->body_total)
        return reject_request(parser, 503,
                              "the memory for request bodies is used up; try again later");
    if (body->len == 0 && whole > len && whole <= RESERVED_BODY)
        err = hd_buf_reserve(body, (size_t)whole);
    if (!err)
        err = hd_buf_append(body, at, len);
    if (err == HD_ELIMIT)
        return refuse_body(parser);
    if (err)
        return refuse_memory(parser);
    *parser->body_held += len;
    return 0;
}

static int on_request_done(llhttp_t *http)
{
    struct hd_parser *parser = parser_of(http);

    if (parser->body.len > 0)
        parser->request.body = hd_buf_slice(&parser->body);
    return HPE_PAUSED;
}

static const llhttp_settings_t settings = {
    .on_url = on_target,
    .on_header_field = on_field,
    .on_header_field_complete = on_field_end,
    .on_header_value = on_value,
    .on_headers_complete = on_request_head,
    .on_body = on_body_part,
    .on_message_complete = on_request_done,
    .on_chunk_extension_name = on_extension,
    .on_chunk_extension_value = on_extension,
};

void hd_parser_init(struct hd_parser *parser, const struct hd_http_server_limits *limits,
                    uint64_t *body_held, struct hd_arena *arena)
{
    *parser = (struct hd_parser){.limits = limits, .arena = arena};
    parser->body_held = body_held;
    hd_buf_init(&parser->head, limits->head);
    hd_buf_init(&parser->body, limits->body);
    llhttp_init(&parser->http, HTTP_REQUEST, &settings);
    parser->http.data = parser;
}

void hd_parser_fini(struct hd_parser *parser)
{
    *parser->body_held -= parser->body.len;
    hd_parser_trim(parser);
    *parser = (struct hd_parser){0};
}

/* llhttp has one code for an unknown version and for a bad line end. */
static bool is_version_error(const llhttp_t *http, llhttp_errno_t error)
{
    static const char other[] = "Expected CRLF after version";

    if (error == HPE_PAUSED_H2_UPGRADE)
        return true;
    return error == HPE_INVALID_VERSION && strcmp(llhttp_get_error_reason(http), other) != 0;
}

/* Maps llhttp's error. */
static enum hd_parse_outcome refuse_error(struct hd_parser *parser, llhttp_errno_t error)
{
    char text[sizeof(parser->reason)];

    if (is_version_error(&parser->http, error)) {
        (void)reject_request(parser, 505, "only HTTP/1.1 and HTTP/1.0 are supported");
        return HD_PARSE_REFUSED;
    }
    (void)snprintf(text, sizeof(text), "malformed request: %s",
                   llhttp_get_error_reason(&parser->http));
    (void)reject_request(parser, 400, text);
    return HD_PARSE_REFUSED;
}

enum hd_parse_outcome hd_parser_feed(struct hd_parser *parser, const char *data, size_t len,
                                     size_t *used)
{
    llhttp_errno_t error;

    *used = len;
    if (parser->status)
        return HD_PARSE_REFUSED;
    error = llhttp_execute(&parser->http, data, len);
    if (error == HPE_PAUSED) {
        *used = (size_t)(llhttp_get_error_pos(&parser->http) - data);
        return HD_PARSE_DONE;
    }
    if (error != HPE_OK)
        return refuse_error(parser, error);
    if (!parser->has_head) {
        /* Includes bytes that are not kept, such as spaces before a value. */
        parser->head_bytes += len;
        if (parser->head_bytes > parser->limits->head) {
            (void)refuse_head(parser);
            return HD_PARSE_REFUSED;
        }
    }
    return HD_PARSE_MORE;
}

void hd_parser_next(struct hd_parser *parser)
{
    *parser->body_held -= parser->body.len;
    hd_buf_reset(&parser->head);
    hd_buf_reset(&parser->body);
    if (parser->head.cap > KEPT_BUFFER || parser->body.cap > KEPT_BUFFER)
        hd_parser_trim(parser);
    parser->span_count = 0;
    parser->target_len = 0;
    parser->head_bytes = 0;
    parser->has_head = parser->is_in_value = parser->expects_continue = false;
    parser->request = (struct hd_http_request){0};
    llhttp_resume(&parser->http);
}

void hd_parser_trim(struct hd_parser *parser)
{
    hd_buf_fini(&parser->head);
    hd_buf_fini(&parser->body);
    hd_free(parser->spans);
    parser->spans = NULL;
    parser->span_cap = 0;
    hd_buf_init(&parser->head, parser->limits->head);
    hd_buf_init(&parser->body, parser->limits->body);
}
