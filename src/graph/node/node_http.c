/* `http`: sends an HTTP request. */
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/slice.h"
#include "graph/decl/decl.h"
#include "graph/decl/graph.h"
#include "graph/decl/nodes.h"
#include "graph/engine/engine.h"
#include "graph/engine/loop.h"
#include "graph/engine/task.h"
#include "graph/expr/expr.h"
#include "graph/node/idempotency_key.h"
#include "net/http_client.h"
#include "net/outgoing.h"
#include "secret/secret.h"
#include "value/val.h"

#define MAX_HEADERS 64

struct http_header {
    struct hd_slice name;
    const struct hd_expr *value;
};

struct http_headers {
    struct http_header *list;
    size_t count;
};

struct http_spec {
    const struct hd_expr *url;
    struct hd_slice method;
    struct http_headers headers;
    const struct hd_expr *body;   /* NULL: none */
    const struct hd_expr *update; /* NULL: none; sees the response */
    const struct hd_expr *expect; /* NULL: a status from 200 to 299 */
};

static int read_url_expr(struct hd_decl *decl, const struct hd_decl_at *at,
                         const struct hd_field *field, void *out)
{
    struct hd_slice text = hd_json_string(at->val);

    (void)field;
    if (!hd_json_is_string(at->val) && !hd_json_is_object(at->val))
        return hd_decl_fail_type(decl, at, "a URL");
    if (hd_json_is_string(at->val) && !hd_slice_starts(text, HD_S("http://")) &&
        !hd_slice_starts(text, HD_S("https://")) && !hd_slice_starts(text, HD_S("{{")))
        return hd_decl_fail(decl, at, "must begin with http:// or https://");
    return hd_decl_expr_in(decl, at, 0, out);
}

static int read_method(struct hd_decl *decl, const struct hd_decl_at *at,
                       const struct hd_field *field, void *out)
{
    static const char *const methods[] = {"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"};
    struct hd_slice text = hd_json_string(at->val);

    (void)field;
    for (size_t i = 0; i < HD_COUNT(methods); i++) {
        if (hd_slice_eq(text, hd_slice_cstr(methods[i]))) {
            *(struct hd_slice *)out = hd_slice_cstr(methods[i]);
            return 0;
        }
    }
    return hd_decl_fail(decl, at, "must be GET, POST, PUT, PATCH, DELETE or HEAD");
}

static int read_headers(struct hd_decl *decl, const struct hd_decl_at *at,
                        const struct hd_field *field, void *out)
{
    struct hd_json_iter it = hd_json_iter(at->val);
    size_t size = hd_json_size(at->val);
    struct http_headers headers = {0};
    int err = 0;

    (void)field;
    if (!hd_json_is_object(at->val))
        return hd_decl_fail_type(decl, at, "an object of names to values");
    if (size > MAX_HEADERS)
        return hd_decl_fail(decl, at, "has at most %d headers", MAX_HEADERS);
    headers.list = hd_arena_calloc(&decl->hold->arena, size ? size : 1, sizeof(*headers.list));
    if (!headers.list)
        return HD_ENOMEM;
    while (err == 0 && hd_json_next(&it)) {
        struct hd_decl_at member = hd_decl_at_key(at, it.key, it.val);
        struct http_header *header = &headers.list[headers.count++];

        if (!hd_slice_is_token(it.key))
            return hd_decl_fail(decl, &member, "is not a valid header name");
        err = hd_decl_copy(decl, it.key, &header->name);
        if (err == 0)
            err = hd_decl_expr_in(decl, &member, 0, &header->value);
    }
    *(struct http_headers *)out = headers;
    return err;
}

static const struct hd_field fields[] = {
    {"url", read_url_expr, offsetof(struct http_spec, url), true, 0, 0, 0},
    {"method", read_method, offsetof(struct http_spec, method), false, 0, 0, 0},
    {"headers", read_headers, offsetof(struct http_spec, headers), false, 0, 0, 0},
    {"body", hd_decl_read_expr, offsetof(struct http_spec, body), false, 0, 0, 0},
    {"update", hd_decl_read_update, offsetof(struct http_spec, update), false, 0, 0,
     HD_PLACE(RESPONSE)},
    {"expect", hd_decl_read_expr, offsetof(struct http_spec, expect), false, 0, 0,
     HD_PLACE(RESPONSE)},
};

static int read_http_node(struct hd_decl *decl, const struct hd_decl_at *at, struct hd_node *node)
{
    struct http_spec *spec = hd_arena_calloc(&decl->hold->arena, 1, sizeof(*spec));
    int err;

    if (!spec)
        return HD_ENOMEM;
    node->spec = spec;
    err = hd_decl_node_fields(decl, at, fields, HD_COUNT(fields), spec);
    if (err == 0 && !spec->method.ptr)
        spec->method = spec->body ? HD_S("POST") : HD_S("GET");
    return err;
}

/* ---- running ---------------------------------------------------------- */

static void cancel_http(struct hd_task *task)
{
    hd_client_cancel(task->work);
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* Converts lines "Name: value" to an object with names in lower case. */
static struct hd_val *read_header_lines(struct hd_slice text)
{
    struct hd_val *headers = hd_val_object();
    const char *line = text.ptr, *end = text.ptr + text.len;

    while (headers && line && line < end) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        const char *colon = memchr(line, ':', (size_t)((stop ? stop : end) - line));
        const char *last = stop ? stop : end;
        char name[256];
        size_t len = colon ? (size_t)(colon - line) : 0;

        if (colon && len < sizeof(name)) {
            for (size_t i = 0; i < len; i++)
                name[i] = lower(line[i]);
            colon++;
            while (colon < last && *colon == ' ')
                colon++;
            while (last > colon && (last[-1] == '\r' || last[-1] == ' '))
                last--;
            headers = hd_val_with(headers, hd_slice(name, len),
                                  hd_val_string(hd_slice(colon, (size_t)(last - colon))));
        }
        line = stop ? stop + 1 : NULL;
    }
    return headers;
}

static struct hd_val *make_response(const struct hd_client_response *response)
{
    struct hd_val *val = hd_val_object(), *body = NULL;

    if (hd_val_parse_json(response->body, &body, NULL) != 0)
        body = hd_val_string(response->body);
    val = hd_val_with(val, HD_S("status"), hd_val_int(response->status));
    val = hd_val_with(val, HD_S("headers"), read_header_lines(response->headers));
    return hd_val_with(val, HD_S("body"), body);
}

static int is_expected(const struct http_spec *spec, const struct hd_scope *scope, long status,
                       bool *out)
{
    *out = status >= 200 && status <= 299;
    return spec->expect ? hd_expr_holds(spec->expect, scope, out) : 0;
}

static void on_response(void *ctx, const struct hd_client_response *response)
{
    struct hd_task *task = ctx;
    const struct http_spec *spec = task->node->spec;
    struct hd_scope scope = hd_task_scope(task);
    struct hd_val *val;
    bool is_fine = false;
    int err = 0;

    task->work = NULL;
    if (response->failure == HD_CLIENT_REFUSED) {
        hd_task_fail(task, "PermissionError", "%s", HD_OUTGOING_REFUSAL);
        return;
    }
    if (response->error) {
        hd_task_fail(task, "ConnectionError", "%s", response->error);
        return;
    }
    val = make_response(response);
    scope.places[HD_PLACE_RESPONSE] = val;
    err = val ? is_expected(spec, &scope, response->status, &is_fine) : HD_ENOMEM;
    if (err)
        hd_task_fail_code(task, err, NULL);
    else if (!is_fine)
        hd_task_fail(task, "HTTPError", "HTTP Error %ld", response->status);
    else
        hd_task_finish_exprs(task, &scope, spec->update, NULL, false);
    hd_val_unref(val);
}

/* ---- request ---------------------------------------------------------- */

/* A request under construction. */
struct request_parts {
    struct hd_buf url, body, header_text;
    const char *headers[MAX_HEADERS + 2];
    size_t offsets[MAX_HEADERS + 1];
    size_t header_count;
    char key[HD_CALL_KEY_LINE_SIZE];
    char lost[80]; /* the path of a secret that is no longer known; empty: none */
};

static int eval_text(const struct hd_expr *expr, const struct hd_scope *scope, struct hd_buf *out)
{
    struct hd_val *val;
    int err = hd_expr_eval(expr, scope, &val);

    if (err)
        return err;
    err = hd_val_write_text(out, val);
    hd_val_unref(val);
    return err;
}

/* Notes the path in the first marker of the text, which has one. */
static void note_lost(struct request_parts *parts, struct hd_buf *text)
{
    static const char path[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";
    const char *marker = hd_buf_append_byte(text, 0) ? NULL : strstr(text->ptr, HD_SECRET_PREFIX);

    if (!marker)
        return;
    marker += strlen(HD_SECRET_PREFIX);
    (void)snprintf(parts->lost, sizeof(parts->lost), "%.*s", (int)strspn(marker, path), marker);
}

/* Replaces markers by their secrets: headers carry API keys. */
static int eval_header(struct request_parts *parts, const struct hd_task *task,
                       const struct hd_expr *expr, const struct hd_scope *scope)
{
    struct hd_buf text;
    int err;

    hd_buf_init(&text, (size_t)1 << 20);
    err = eval_text(expr, scope, &text);
    if (!err)
        err = hd_secrets_reveal_text(hd_buf_slice(&text), task->loop->run->options.secrets,
                                     &parts->header_text);
    if (err == HD_ENOTFOUND)
        note_lost(parts, &text);
    hd_buf_fini(&text);
    return err;
}

static bool has_control(struct hd_slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        if ((unsigned char)text.ptr[i] < 0x20 && text.ptr[i] != '\t')
            return true;
    }
    return false;
}

static bool has_header(const struct http_spec *spec, const char *name)
{
    for (size_t i = 0; i < spec->headers.count; i++) {
        struct hd_slice given = spec->headers.list[i].name;

        if (given.len == strlen(name) && strncasecmp(given.ptr, name, given.len) == 0)
            return true;
    }
    return false;
}

static int add_call_key(struct request_parts *parts, const struct hd_task *task)
{
    int err;

    if (has_header(task->node->spec, HD_CALL_KEY_HEADER))
        return 0;
    err = hd_idempotency_key_line(task, HD_S(""), parts->key);
    if (!err)
        parts->headers[parts->header_count++] = parts->key;
    return err;
}

static int eval_headers(struct request_parts *parts, const struct hd_task *task,
                        const struct hd_scope *scope)
{
    const struct http_spec *spec = task->node->spec;
    int err = 0;

    for (size_t i = 0; i < spec->headers.count && !err; i++) {
        struct hd_slice name = spec->headers.list[i].name;
        size_t start = parts->header_text.len;

        parts->offsets[parts->header_count++] = start;
        err = hd_buf_printf(&parts->header_text, "%.*s: ", (int)name.len, name.ptr);
        if (!err)
            err = eval_header(parts, task, spec->headers.list[i].value, scope);
        if (!err &&
            has_control(hd_slice(parts->header_text.ptr + start, parts->header_text.len - start)))
            err = HD_EINVAL;
        if (!err)
            err = hd_buf_append_byte(&parts->header_text, 0);
    }
    if (!err && !has_header(spec, "content-type")) {
        parts->offsets[parts->header_count++] = parts->header_text.len;
        err = hd_buf_append(&parts->header_text, "Content-Type: application/json", 31);
    }
    for (size_t i = 0; i < parts->header_count && !err; i++)
        parts->headers[i] = parts->header_text.ptr + parts->offsets[i];
    return err ? err : add_call_key(parts, task);
}

static int eval_body(struct request_parts *parts, const struct http_spec *spec,
                     const struct hd_scope *scope)
{
    struct hd_val *val;
    int err;

    if (!spec->body)
        return 0;
    err = hd_expr_eval(spec->body, scope, &val);
    if (err)
        return err;
    err = hd_val_render(&parts->body, val);
    hd_val_unref(val);
    return err;
}

static int send_node_request(struct hd_task *task, struct request_parts *parts)
{
    const struct http_spec *spec = task->node->spec;
    struct hd_engine *engine = task->loop->run->engine;
    struct hd_scope scope = hd_task_scope(task);
    struct hd_client_request *request;
    struct hd_client *http = hd_engine_http(engine);
    struct hd_client_options options = {.method = spec->method.ptr, .headers = parts->headers};
    int err = http ? 0 : HD_ENOMEM;

    if (!err)
        err = eval_text(spec->url, &scope, &parts->url);
    if (!err)
        err = hd_buf_append_byte(&parts->url, 0);
    if (!err)
        err = eval_headers(parts, task, &scope);
    if (!err)
        err = eval_body(parts, spec, &scope);
    options.url = parts->url.ptr;
    options.header_count = parts->header_count;
    options.body = hd_buf_slice(&parts->body);
    /* A constant URL contains nothing from the state: the author of the graph chose it. */
    options.is_trusted = hd_expr_literal(spec->url) != NULL;
    if (!err)
        err = hd_client_send(http, &options, on_response, task, &request);
    if (!err)
        task->work = request;
    return err;
}

static int start_http(struct hd_task *task)
{
    struct request_parts *parts = hd_calloc(1, sizeof(*parts));
    int err;

    if (!parts)
        return HD_ENOMEM;
    hd_buf_init(&parts->url, (size_t)1 << 20);
    hd_buf_init(&parts->header_text, (size_t)1 << 20);
    hd_buf_init(&parts->body, HD_EXPR_MAX_BYTES);
    err = send_node_request(task, parts);
    hd_buf_fini(&parts->url);
    hd_buf_fini(&parts->header_text);
    hd_buf_fini(&parts->body);
    if (err == HD_ENOTFOUND) {
        hd_task_fail(task, "ValueError",
                     "a key that a header uses is no longer available: send %s with the run",
                     parts->lost[0] ? parts->lost : "it");
        err = 0;
    }
    hd_free(parts);
    return err;
}

const struct hd_node_kind hd_node_http = {
    .name = "http",
    .read = read_http_node,
    .start = start_http,
    .cancel = cancel_http,
};
