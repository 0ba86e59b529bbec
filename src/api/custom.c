/*
 * A request for the application becomes the op `request` of a worker. Its first piece has status
 * and headers. A small response with a Content-Length is collected and sent whole; others are
 * streamed, with back-pressure to the worker while the client does not read.
 */
#include "api/custom.h"

#include <pthread.h>
#include <string.h>

#include "api/request/access.h"
#include "api/page.h"
#include "base/alloc.h"
#include "base/log.h"
#include "config/config.h"
#include "config/project.h"
#include "gate/worker_access.h"
#include "records/run_user.h"

#define MAX_HEAD ((size_t)16 << 20)
#define MAX_WHOLE ((int64_t)1 << 20)
#define MAX_QUEUED ((size_t)64 << 20) /* data that a worker may send before it notices the pause */
#define MAX_ROUTES 1000
#define MAX_DOCUMENT ((size_t)4 << 20)

struct hd_custom {
    struct hd_app *app;
    enum hd_rt_language language;
    struct hd_arena arena; /* of the routes */
    struct hd_slice *routes;
    size_t route_count;
    struct hd_slice *weak; /* with precedence over the chat page only */
    size_t weak_count;
    bool is_ready; /* a worker has loaded the application */
    bool has_middleware;
    pthread_mutex_t lock;
    struct hd_buf document; /* guarded by the lock */
};

/* A request that was forwarded to the application; in the arena of its call. */
struct forward {
    struct hd_custom *custom;
    struct hd_call *call;
    struct hd_rt_call *worker_call; /* NULL: the call to the worker has ended */
    struct hd_worker_access *pass;  /* the caller's; NULL: unknown */
    struct hd_json head;            /* {"status", "headers"} */
    bool has_head;
    bool is_whole;
    bool is_streaming;
    bool has_ended;
    bool is_held;
    bool is_inner; /* for a route of the server: only the middleware is needed */
    int status;
    struct hd_slice content_type;
    struct hd_buf body;
    size_t sent;
    const struct hd_endpoint *fallback; /* the server's route of a 404; NULL: none */
};

/* ---- paths of the application ----------------------------------------- */

static struct hd_slice next_segment(struct hd_slice *path)
{
    const char *slash;
    size_t len;

    while (path->len > 0 && path->ptr[0] == '/')
        *path = hd_slice(path->ptr + 1, path->len - 1);
    slash = path->len > 0 ? memchr(path->ptr, '/', path->len) : NULL;
    len = slash ? (size_t)(slash - path->ptr) : path->len;
    *path = hd_slice(path->ptr + len, path->len - len);
    return hd_slice(path->ptr - len, len);
}

static bool takes_the_rest(struct hd_slice segment)
{
    return segment.len > 0 && (segment.ptr[segment.len - 1] == '*' ||
                               (segment.len > 6 && segment.ptr[0] == '{' &&
                                memcmp(segment.ptr + segment.len - 6, ":path}", 6) == 0));
}

bool hd_custom_matches(struct hd_slice pattern, struct hd_slice path)
{
    for (;;) {
        struct hd_slice want = next_segment(&pattern), have = next_segment(&path);

        if (takes_the_rest(want))
            return true;
        if (want.len == 0 || have.len == 0)
            return want.len == have.len;
        if (want.ptr[0] != '{' && want.ptr[0] != ':' && !hd_slice_eq(want, have))
            return false;
    }
}

/* A catch-all route, or one of the application's documents, has no precedence over the server's. */
static bool is_firm(struct hd_slice route)
{
    static const char *const weak[] = {
        "/docs", "/docs/oauth2-redirect", "/redoc", "/openapi.json", "/ok", "/health"};
    struct hd_slice rest = route, first = next_segment(&rest);

    for (size_t i = 0; i < HD_COUNT(weak); i++) {
        if (hd_slice_eq(hd_slice_cstr(weak[i]), route))
            return false;
    }
    return first.len > 0 && first.ptr[0] != '{' && first.ptr[0] != ':' && !takes_the_rest(first);
}

static bool has_one(const struct hd_slice *routes, size_t count, struct hd_slice path)
{
    for (size_t i = 0; i < count; i++) {
        if (hd_custom_matches(routes[i], path))
            return true;
    }
    return false;
}

bool hd_custom_has(const struct hd_custom *custom, struct hd_slice path)
{
    return custom && has_one(custom->routes, custom->route_count, path);
}

bool hd_custom_has_page(const struct hd_custom *custom, struct hd_slice path)
{
    return custom && has_one(custom->weak, custom->weak_count, path);
}

static void keep_routes(struct hd_custom *custom, hd_json_val routes)
{
    struct hd_json_iter it = hd_json_iter(routes);

    hd_arena_reset(&custom->arena);
    custom->route_count = custom->weak_count = 0;
    custom->routes = hd_arena_calloc(&custom->arena, MAX_ROUTES, sizeof(*custom->routes));
    custom->weak = hd_arena_calloc(&custom->arena, MAX_ROUTES, sizeof(*custom->weak));
    while (custom->routes && custom->weak && custom->route_count < MAX_ROUTES &&
           custom->weak_count < MAX_ROUTES && hd_json_next(&it)) {
        struct hd_slice route = hd_json_string(it.val), copy;

        if (hd_arena_copy(&custom->arena, route, &copy))
            break;
        if (is_firm(route))
            custom->routes[custom->route_count++] = copy;
        else
            custom->weak[custom->weak_count++] = copy;
    }
}

static void keep_document(struct hd_custom *custom, hd_json_val document)
{
    struct hd_jw jw;

    pthread_mutex_lock(&custom->lock);
    hd_buf_reset(&custom->document);
    hd_jw_init(&jw, &custom->document);
    if (document)
        hd_jw_val(&jw, document);
    if (!document || hd_jw_finish(&jw))
        hd_buf_reset(&custom->document);
    pthread_mutex_unlock(&custom->lock);
}

int hd_custom_document(struct hd_custom *custom, struct hd_arena *arena, struct hd_slice *out)
{
    int err;

    *out = hd_slice(NULL, 0);
    if (!custom)
        return 0;
    pthread_mutex_lock(&custom->lock);
    err = hd_arena_copy(arena, hd_buf_slice(&custom->document), out);
    pthread_mutex_unlock(&custom->lock);
    return err;
}

static void on_application_ready(void *ctx, enum hd_rt_language language, struct hd_slice head)
{
    struct hd_custom *custom = ctx;
    struct hd_json json;
    hd_json_val app;

    if (language != custom->language || hd_json_parse(&json, head, NULL))
        return;
    app = hd_json_get(hd_json_root(&json), HD_S("app"));
    custom->is_ready = true;
    /* An application that failed to load may have middleware, and a configured order relies on
     * it. */
    custom->has_middleware = hd_json_is_true(hd_json_get(app, HD_S("middleware"))) ||
                             (hd_json_get(app, HD_S("error")) &&
                              custom->app->config->http_middleware_order != HD_MIDDLEWARE_DEFAULT);
    keep_routes(custom, hd_json_get(app, HD_S("routes")));
    keep_document(custom, hd_json_get(app, HD_S("openapi")));
    hd_json_fini(&json);
}

/* ---- the end ---------------------------------------------------------- */

static void forward_release(struct forward *forward)
{
    if (forward->worker_call)
        hd_rt_call_drop(forward->worker_call);
    forward->worker_call = NULL;
    hd_worker_access_close(forward->pass);
    forward->pass = NULL;
    hd_json_fini(&forward->head);
    hd_buf_fini(&forward->body);
}

/* Only before anything was sent. */
static void forward_fall_back(struct forward *forward)
{
    struct hd_call *call = forward->call;

    hd_exchange_on_gone(call->exchange, NULL, NULL);
    forward_release(forward);
    call->route = forward->fallback;
    hd_call_resume(call, HD_NEXT);
}

/* Only before anything was sent. */
static void forward_refuse(struct forward *forward, int status, const char *text)
{
    struct hd_call *call = forward->call;

    if (forward->fallback) {
        forward_fall_back(forward);
        return;
    }
    hd_exchange_on_gone(call->exchange, NULL, NULL);
    forward_release(forward);
    hd_call_resume(call, hd_call_refuse(call, status, "%s", text));
}

static void forward_fail(struct forward *forward, int status, const char *text)
{
    struct hd_exchange *ex = forward->call->exchange;

    if (!forward->is_streaming) {
        forward_refuse(forward, status, text);
        return;
    }
    forward_release(forward);
    hd_call_free(forward->call);
    hd_http_stream_abort(ex);
}

static void on_forward_gone(void *ctx)
{
    struct forward *forward = ctx;

    forward_release(forward);
    hd_call_free(forward->call);
}

/* ---- the response ----------------------------------------------------- */

/* Headers are bytes: in JSON each byte is the character with the same number. */
static struct hd_slice to_bytes(struct hd_arena *arena, struct hd_slice text)
{
    char *out = hd_arena_alloc(arena, text.len + 1);
    size_t len = 0;

    for (size_t i = 0; out && i < text.len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];

        if ((c == 0xc2 || c == 0xc3) && i + 1 < text.len)
            c = (unsigned char)(((c & 3) << 6) | (text.ptr[++i] & 0x3f));
        out[len++] = (char)c;
    }
    return hd_slice(out, out ? len : 0);
}

/* Headers that the server sets. */
static bool is_ours(struct hd_slice name)
{
    static const char *const ours[] = {
        "connection", "content-length", "content-type",      "date",    "keep-alive",  "server",
        "te",         "trailer",        "transfer-encoding", "upgrade", "x-request-id"};

    for (size_t i = 0; i < HD_COUNT(ours); i++) {
        if (hd_slice_eq_nocase(name, hd_slice_cstr(ours[i])))
            return true;
    }
    return name.len > 15 && hd_slice_eq_nocase(hd_slice(name.ptr, 15), HD_S("access-control-"));
}

static struct hd_slice pair_at(hd_json_val pair, size_t index)
{
    struct hd_json_iter it = hd_json_iter(pair);

    for (size_t i = 0; hd_json_next(&it); i++) {
        if (i == index)
            return hd_json_string(it.val);
    }
    return HD_S("");
}

static struct hd_slice find_header(struct forward *forward, const char *name)
{
    struct hd_json_iter it =
        hd_json_iter(hd_json_get(hd_json_root(&forward->head), HD_S("headers")));

    while (hd_json_next(&it)) {
        if (hd_slice_eq_nocase(pair_at(it.val, 0), hd_slice_cstr(name)))
            return to_bytes(forward->call->arena, pair_at(it.val, 1));
    }
    return HD_S("");
}

static void send_headers(struct forward *forward)
{
    struct hd_json_iter it =
        hd_json_iter(hd_json_get(hd_json_root(&forward->head), HD_S("headers")));
    struct hd_exchange *ex = forward->call->exchange;

    forward->call->status = forward->status;
    hd_call_send_headers(forward->call);
    while (hd_json_next(&it)) {
        struct hd_slice name = pair_at(it.val, 0);

        if (hd_slice_is_token(name) && !is_ours(name))
            hd_answer_header(ex, name, to_bytes(forward->call->arena, pair_at(it.val, 1)));
    }
}

static void answer_whole(struct forward *forward)
{
    struct hd_exchange *ex = forward->call->exchange;
    struct hd_slice type = forward->content_type;
    struct hd_buf body = forward->body;
    int status = forward->status;

    hd_exchange_on_gone(ex, NULL, NULL);
    send_headers(forward);
    hd_buf_init(&forward->body, 0);
    forward_release(forward);
    hd_call_free(forward->call);
    if (body.len == 0 && type.len == 0)
        hd_answer_empty(ex, status);
    else
        hd_answer(ex, status, type.len > 0 ? type : HD_S("application/octet-stream"), &body);
    hd_buf_fini(&body);
}

/* Must be the last call: a released reply may arrive at once and end the request. */
static void set_held(struct forward *forward, bool is_held)
{
    bool is_new = forward->is_held != is_held;

    forward->is_held = is_held;
    if (is_new && forward->worker_call)
        hd_rt_call_hold(forward->worker_call, is_held);
}

/* Writes as much as the client accepts. */
static void forward_pump(struct forward *forward)
{
    struct hd_exchange *ex = forward->call->exchange;
    struct hd_slice rest =
        hd_slice(forward->body.ptr + forward->sent, forward->body.len - forward->sent);

    if (rest.len > 0)
        forward->sent += hd_http_stream_write(ex, &rest, 1);
    if (forward->sent < forward->body.len) {
        set_held(forward, true);
        return;
    }
    hd_buf_reset(&forward->body);
    forward->sent = 0;
    if (forward->has_ended) {
        forward_release(forward);
        hd_call_free(forward->call);
        hd_http_stream_end(ex);
        return;
    }
    set_held(forward, false);
}

static void on_room(void *ctx)
{
    forward_pump(ctx);
}

static void begin_stream(struct forward *forward)
{
    struct hd_slice type = forward->content_type;

    forward->is_streaming = true;
    send_headers(forward);
    hd_http_stream_begin(forward->call->exchange, forward->status,
                         type.len > 0 ? type : HD_S("application/octet-stream"), on_room,
                         on_forward_gone, forward);
}

/* A value with line breaks would add headers. */
static bool are_sound(hd_json_val headers)
{
    struct hd_json_iter it = hd_json_iter(headers);

    while (hd_json_next(&it)) {
        struct hd_slice value = pair_at(it.val, 1);

        for (size_t i = 0; i < value.len; i++) {
            unsigned char c = (unsigned char)value.ptr[i];

            if ((c < ' ' && c != '\t') || c == 0x7f)
                return false;
        }
    }
    return true;
}

static bool take_head(struct forward *forward, struct hd_slice text)
{
    int64_t status = 0, length = -1;
    struct hd_slice length_text;

    if (hd_json_parse(&forward->head, text, NULL) ||
        !hd_json_int(hd_json_get(hd_json_root(&forward->head), HD_S("status")), &status) ||
        status < 200 || status > 599 ||
        !are_sound(hd_json_get(hd_json_root(&forward->head), HD_S("headers"))))
        return false;
    forward->has_head = true;
    forward->status = (int)status;
    if (status == 404 && forward->fallback)
        return true;
    forward->content_type = find_header(forward, "content-type");
    length_text = find_header(forward, "content-length");
    for (size_t i = 0; i < length_text.len && length_text.len < 10; i++)
        length = length_text.ptr[i] >= '0' && length_text.ptr[i] <= '9'
                     ? (length < 0 ? 0 : length) * 10 + (length_text.ptr[i] - '0')
                     : MAX_WHOLE + 1;
    forward->is_whole =
        status == 204 || status == 304 ||
        (length >= 0 && length <= MAX_WHOLE && find_header(forward, "content-encoding").len == 0);
    if (!forward->is_whole)
        begin_stream(forward);
    return true;
}

static void on_forward_piece(void *ctx, const struct hd_rt_message *message)
{
    struct forward *forward = ctx;
    int err = 0;

    if (!forward->has_head && !take_head(forward, message->head)) {
        forward_fail(forward, 502, "the application's response is invalid");
        return;
    }
    if (forward->status == 404 && forward->fallback) {
        forward_fall_back(forward);
        return;
    }
    for (size_t i = 0; !err && i < message->blob_count; i++)
        err = hd_buf_append_slice(&forward->body, message->blobs[i]);
    if (err)
        forward_fail(forward, 502, "the application's response is too large");
    else if (forward->is_streaming && message->blob_count > 0)
        forward_pump(forward);
}

static void log_error(const struct hd_rt_message *message)
{
    struct hd_slice type, text, file;
    struct hd_json json;
    int64_t line = 0;

    if (hd_json_parse(&json, message->head, NULL))
        return;
    type = hd_json_string(hd_json_get(hd_json_root(&json), HD_S("type")));
    text = hd_json_string(hd_json_get(hd_json_root(&json), HD_S("message")));
    file = hd_json_string(hd_json_get(hd_json_root(&json), HD_S("file")));
    (void)hd_json_int(hd_json_get(hd_json_root(&json), HD_S("line")), &line);
    hd_log(HD_LOG_ERROR, "app", "%.*s: %.*s (%.*s:%lld)", (int)type.len, type.ptr, (int)text.len,
           text.ptr, (int)file.len, file.ptr, (long long)line);
    hd_json_fini(&json);
}

static void on_forward_end(void *ctx, enum hd_rt_end end, const struct hd_rt_message *message)
{
    struct forward *forward = ctx;

    forward->worker_call = NULL;
    hd_worker_access_close(forward->pass);
    forward->pass = NULL;
    forward->has_ended = true;
    if (end == HD_RT_REFUSED || end == HD_RT_LOST)
        log_error(message);
    /* A failed application may have sent its error response already. */
    if (end == HD_RT_REFUSED && forward->is_whole && forward->body.len > 0)
        answer_whole(forward);
    else if (end == HD_RT_REFUSED)
        forward_fail(forward, 500, "Internal Server Error");
    else if (end == HD_RT_LOST)
        forward_fail(forward, 503, "the application cannot be reached at the moment");
    else if (end == HD_RT_LATE)
        forward_fail(forward, 504, "the application did not respond in time");
    else if (!forward->has_head)
        forward_fail(forward, 502, "the application did not respond");
    else if (forward->is_whole)
        answer_whole(forward);
    else
        forward_pump(forward);
}

/* ---- the request to the worker */

/* The inverse of to_bytes(). */
static struct hd_slice to_text(struct hd_arena *arena, struct hd_slice bytes)
{
    char *out = hd_arena_alloc(arena, 2 * bytes.len + 1);
    size_t len = 0;

    for (size_t i = 0; out && i < bytes.len; i++) {
        unsigned char c = (unsigned char)bytes.ptr[i];

        if (c >= 0x80) {
            out[len++] = (char)(0xc0 | (c >> 6));
            c = (unsigned char)(0x80 | (c & 0x3f));
        }
        out[len++] = (char)c;
    }
    return hd_slice(out, out ? len : 0);
}

static int forward_write(const struct forward *forward, struct hd_buf *out)
{
    const struct hd_http_request *request = hd_exchange_request(forward->call->exchange);
    struct hd_arena *arena = forward->call->arena;
    struct hd_jw jw;

    hd_jw_init(&jw, out);
    hd_jw_object(&jw);
    hd_jw_put_string(&jw, "op", HD_S("request"));
    hd_jw_put_string(&jw, "method", request->method_name);
    hd_jw_put_string(&jw, "path", forward->call->path);
    hd_jw_put_string(&jw, "query", request->query);
    hd_jw_put_array(&jw, "headers");
    for (size_t i = 0; i < request->header_count; i++) {
        if (hd_slice_eq(request->headers[i].name, HD_WORKER_ACCESS_HEADER))
            continue;
        hd_jw_array(&jw);
        hd_jw_string(&jw, request->headers[i].name);
        hd_jw_string(&jw, to_text(arena, request->headers[i].value));
        hd_jw_array_end(&jw);
    }
    hd_jw_array_end(&jw);
    if (forward->call->identity) {
        hd_jw_key(&jw, HD_S("user"));
        hd_user_put(&jw, forward->call->identity);
    }
    hd_worker_access_put(&jw, forward->call->app, forward->pass);
    if (forward->is_inner)
        hd_jw_put_bool(&jw, "inner", true);
    hd_jw_object_end(&jw);
    return hd_jw_finish(&jw);
}

static struct forward *make_forward(struct hd_call *call)
{
    struct forward *forward = hd_arena_calloc(call->arena, 1, sizeof(*forward));

    if (!forward)
        return NULL;
    forward->custom = hd_api_custom(call->api);
    forward->call = call;
    hd_buf_init(&forward->body, MAX_QUEUED);
    return forward;
}

static struct hd_step forward_send(struct forward *forward)
{
    struct hd_call *call = forward->call;
    const struct hd_http_request *request = hd_exchange_request(call->exchange);
    struct hd_rt_call_options options = {.language = hd_api_custom(call->api)->language,
                                         .blobs = &request->body,
                                         .blob_count = request->body.len > 0,
                                         .timeout_us = call->app->config->run_timeout_us,
                                         .patience_us = call->app->config->runtime_start_timeout_us,
                                         .on_piece = on_forward_piece,
                                         .on_end = on_forward_end,
                                         .ctx = forward};
    struct hd_buf head;
    int err;

    hd_buf_init(&head, MAX_HEAD);
    err = call->identity || forward->is_inner
              ? hd_worker_access_open(call->app, call->identity, forward->is_inner, &forward->pass)
              : 0;
    if (!err)
        err = forward_write(forward, &head);
    options.head = hd_buf_slice(&head);
    if (!err)
        err = hd_runtime_call(call->app->runtime, &options, &forward->worker_call);
    hd_buf_fini(&head);
    if (err) {
        forward_release(forward);
        return hd_step_fail(err);
    }
    hd_exchange_on_gone(call->exchange, on_forward_gone, forward);
    return HD_WAIT;
}

/* The caller is authenticated, if the route requires it. */
static struct hd_step forward_request(struct hd_call *call)
{
    struct forward *forward = make_forward(call);

    return forward ? forward_send(forward) : hd_step_fail(HD_ENOMEM);
}

static struct hd_step forward_to_middleware(struct hd_call *call)
{
    struct forward *forward = make_forward(call);

    if (!forward)
        return hd_step_fail(HD_ENOMEM);
    forward->is_inner = true;
    return forward_send(forward);
}

/*
 * The application is the operator's own code: it decides on access itself, unless configured
 * otherwise.
 */
static const struct hd_endpoint open_route = {.method = HD_METHOD_OTHER,
                                              .pattern = "http.app",
                                              .access = HD_ACCESS_PUBLIC,
                                              .on = HD_ON_NOTHING,
                                              .is_application = true};
static const struct hd_endpoint guarded_route = {.method = HD_METHOD_OTHER,
                                                 .pattern = "http.app",
                                                 .access = HD_ACCESS_USER,
                                                 .on = HD_ON_NOTHING,
                                                 .is_application = true};

static void set_application_route(struct hd_call *call, bool is_guarded, hd_stage_fn then)
{
    hd_call_set_route(call, is_guarded ? &guarded_route : &open_route);
    call->then = then;
}

/* ---- middleware around routes of the server ---------------------------- */

static bool is_inner(const struct hd_call *call)
{
    const struct hd_worker_access *pass;
    struct hd_slice token;

    if (!hd_request_header(hd_exchange_request(call->exchange), HD_WORKER_ACCESS_HEADER, &token))
        return false;
    pass = hd_worker_access_find(call->app, token);
    return pass && hd_worker_access_is_inner(pass);
}

bool hd_custom_wraps(const struct hd_call *call)
{
    const struct hd_custom *custom = hd_api_custom(call->api);
    struct hd_slice path = call->path;

    /* Health checks must not depend on a worker, and the page is not an API. */
    if (!custom || hd_page_is(path) || hd_slice_eq(path, HD_S("/ok")) ||
        hd_slice_eq(path, HD_S("/health")))
        return false;
    /* Until the application is loaded its middleware is unknown: requests wait for that. */
    return (custom->has_middleware || !custom->is_ready) && !is_inner(call);
}

struct hd_step hd_custom_wrap(struct hd_call *call, bool is_public)
{
    bool is_first = call->app->config->http_middleware_order != HD_MIDDLEWARE_AUTH_FIRST;

    set_application_route(call, !is_first && !is_public, forward_to_middleware);
    return HD_NEXT;
}

/* ---- routes of the application ----------------------------------------- */

struct hd_step hd_custom_take(struct hd_call *call)
{
    const struct hd_http_request *request = hd_exchange_request(call->exchange);
    struct hd_slice unused;

    set_application_route(call, call->app->config->http_custom_route_auth, forward_request);
    if (hd_request_header(request, HD_S("upgrade"), &unused))
        return hd_call_refuse(call, 501, "WebSockets of the application are not served");
    return HD_NEXT;
}

/* Browsers that open a page have no credentials yet. */
bool hd_custom_may_serve(const struct hd_call *call)
{
    const struct hd_custom *custom = hd_api_custom(call->api);

    return custom && custom->is_ready && !call->route->is_application && hd_page_is(call->path) &&
           !call->app->config->http_custom_route_auth;
}

struct hd_step hd_custom_try(struct hd_call *call)
{
    struct forward *forward = make_forward(call);

    if (!forward)
        return hd_step_fail(HD_ENOMEM);
    forward->fallback = call->route;
    call->route = &open_route;
    return forward_send(forward);
}

/* ---- public functions ------------------------------------------------- */

int hd_custom_create(struct hd_app *app, struct hd_custom **out)
{
    struct hd_project_code code;
    struct hd_custom *custom;
    int err;

    *out = NULL;
    if (!app->runtime || !hd_project_part(app->config, HD_PROJECT_APP, &code))
        return 0;
    custom = hd_calloc(1, sizeof(*custom));
    if (!custom)
        return HD_ENOMEM;
    custom->app = app;
    custom->language = code.language;
    hd_arena_init(&custom->arena, (size_t)4 << 20);
    hd_buf_init(&custom->document, MAX_DOCUMENT);
    pthread_mutex_init(&custom->lock, NULL);
    err = hd_app_on_ready(app, on_application_ready, custom);
    if (err) {
        hd_custom_destroy(custom);
        return err;
    }
    *out = custom;
    return 0;
}

void hd_custom_destroy(struct hd_custom *custom)
{
    if (!custom)
        return;
    hd_arena_fini(&custom->arena);
    hd_buf_fini(&custom->document);
    pthread_mutex_destroy(&custom->lock);
    hd_free(custom);
}
