/*
 * A request for the application becomes the op `request` of a worker. Its first piece has status
 * and headers. A small response with a Content-Length is collected and sent whole; others are
 * streamed, with back-pressure to the worker while the client does not read.
 */
#include "api/custom.h"

#include <pthread.h>
#include <string.h>

#include "api/access.h"
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

/* One request; in the arena of its call. */
struct visit {
    struct hd_custom *custom;
    struct hd_call *call;
    struct hd_rt_call *asked;      /* NULL: the call to the worker has ended */
    struct hd_worker_access *pass; /* the caller's; NULL: unknown */
    struct hd_json head;           /* {"status", "headers"} */
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

static void learn(struct hd_custom *custom, hd_json_val routes)
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

static void learn_document(struct hd_custom *custom, hd_json_val document)
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
    learn(custom, hd_json_get(app, HD_S("routes")));
    learn_document(custom, hd_json_get(app, HD_S("openapi")));
    hd_json_fini(&json);
}

/* ---- the end of a visit ----------------------------------------------- */

static void visit_release(struct visit *visit)
{
    if (visit->asked)
        hd_rt_call_drop(visit->asked);
    visit->asked = NULL;
    hd_worker_access_close(visit->pass);
    visit->pass = NULL;
    hd_json_fini(&visit->head);
    hd_buf_fini(&visit->body);
}

/* Only before anything was sent. */
static void visit_fall_back(struct visit *visit)
{
    struct hd_call *call = visit->call;

    hd_exchange_on_gone(call->exchange, NULL, NULL);
    visit_release(visit);
    call->route = visit->fallback;
    hd_call_resume(call, HD_NEXT);
}

/* Only before anything was sent. */
static void visit_refuse(struct visit *visit, int status, const char *text)
{
    struct hd_call *call = visit->call;

    if (visit->fallback) {
        visit_fall_back(visit);
        return;
    }
    hd_exchange_on_gone(call->exchange, NULL, NULL);
    visit_release(visit);
    hd_call_resume(call, hd_call_refuse(call, status, "%s", text));
}

static void visit_fail(struct visit *visit, int status, const char *text)
{
    struct hd_exchange *ex = visit->call->exchange;

    if (!visit->is_streaming) {
        visit_refuse(visit, status, text);
        return;
    }
    visit_release(visit);
    hd_call_free(visit->call);
    hd_http_stream_abort(ex);
}

static void on_visit_gone(void *ctx)
{
    struct visit *visit = ctx;

    visit_release(visit);
    hd_call_free(visit->call);
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

static struct hd_slice find_header(struct visit *visit, const char *name)
{
    struct hd_json_iter it = hd_json_iter(hd_json_get(hd_json_root(&visit->head), HD_S("headers")));

    while (hd_json_next(&it)) {
        if (hd_slice_eq_nocase(pair_at(it.val, 0), hd_slice_cstr(name)))
            return to_bytes(visit->call->arena, pair_at(it.val, 1));
    }
    return HD_S("");
}

static void send_headers(struct visit *visit)
{
    struct hd_json_iter it = hd_json_iter(hd_json_get(hd_json_root(&visit->head), HD_S("headers")));
    struct hd_exchange *ex = visit->call->exchange;

    visit->call->status = visit->status;
    hd_call_send_headers(visit->call);
    while (hd_json_next(&it)) {
        struct hd_slice name = pair_at(it.val, 0);

        if (hd_slice_is_token(name) && !is_ours(name))
            hd_answer_header(ex, name, to_bytes(visit->call->arena, pair_at(it.val, 1)));
    }
}

static void answer_whole(struct visit *visit)
{
    struct hd_exchange *ex = visit->call->exchange;
    struct hd_slice type = visit->content_type;
    struct hd_buf body = visit->body;
    int status = visit->status;

    hd_exchange_on_gone(ex, NULL, NULL);
    send_headers(visit);
    hd_buf_init(&visit->body, 0);
    visit_release(visit);
    hd_call_free(visit->call);
    if (body.len == 0 && type.len == 0)
        hd_answer_empty(ex, status);
    else
        hd_answer(ex, status, type.len > 0 ? type : HD_S("application/octet-stream"), &body);
    hd_buf_fini(&body);
}

/* Must be the last call: a released reply may arrive at once and end the visit. */
static void set_held(struct visit *visit, bool is_held)
{
    bool is_new = visit->is_held != is_held;

    visit->is_held = is_held;
    if (is_new && visit->asked)
        hd_rt_call_hold(visit->asked, is_held);
}

/* Writes as much as the client accepts. */
static void visit_pump(struct visit *visit)
{
    struct hd_exchange *ex = visit->call->exchange;
    struct hd_slice rest = hd_slice(visit->body.ptr + visit->sent, visit->body.len - visit->sent);

    if (rest.len > 0)
        visit->sent += hd_http_stream_write(ex, &rest, 1);
    if (visit->sent < visit->body.len) {
        set_held(visit, true);
        return;
    }
    hd_buf_reset(&visit->body);
    visit->sent = 0;
    if (visit->has_ended) {
        visit_release(visit);
        hd_call_free(visit->call);
        hd_http_stream_end(ex);
        return;
    }
    set_held(visit, false);
}

static void on_room(void *ctx)
{
    visit_pump(ctx);
}

static void begin_stream(struct visit *visit)
{
    struct hd_slice type = visit->content_type;

    visit->is_streaming = true;
    send_headers(visit);
    hd_http_stream_begin(visit->call->exchange, visit->status,
                         type.len > 0 ? type : HD_S("application/octet-stream"), on_room,
                         on_visit_gone, visit);
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

static bool take_head(struct visit *visit, struct hd_slice text)
{
    int64_t status = 0, length = -1;
    struct hd_slice told;

    if (hd_json_parse(&visit->head, text, NULL) ||
        !hd_json_int(hd_json_get(hd_json_root(&visit->head), HD_S("status")), &status) ||
        status < 200 || status > 599 ||
        !are_sound(hd_json_get(hd_json_root(&visit->head), HD_S("headers"))))
        return false;
    visit->has_head = true;
    visit->status = (int)status;
    if (status == 404 && visit->fallback)
        return true;
    visit->content_type = find_header(visit, "content-type");
    told = find_header(visit, "content-length");
    for (size_t i = 0; i < told.len && told.len < 10; i++)
        length = told.ptr[i] >= '0' && told.ptr[i] <= '9'
                     ? (length < 0 ? 0 : length) * 10 + (told.ptr[i] - '0')
                     : MAX_WHOLE + 1;
    visit->is_whole =
        status == 204 || status == 304 ||
        (length >= 0 && length <= MAX_WHOLE && find_header(visit, "content-encoding").len == 0);
    if (!visit->is_whole)
        begin_stream(visit);
    return true;
}

static void on_visit_piece(void *ctx, const struct hd_rt_message *message)
{
    struct visit *visit = ctx;
    int err = 0;

    if (!visit->has_head && !take_head(visit, message->head)) {
        visit_fail(visit, 502, "the application's response is invalid");
        return;
    }
    if (visit->status == 404 && visit->fallback) {
        visit_fall_back(visit);
        return;
    }
    for (size_t i = 0; !err && i < message->blob_count; i++)
        err = hd_buf_append_slice(&visit->body, message->blobs[i]);
    if (err)
        visit_fail(visit, 502, "the application's response is too large");
    else if (visit->is_streaming && message->blob_count > 0)
        visit_pump(visit);
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

static void on_visit_end(void *ctx, enum hd_rt_end end, const struct hd_rt_message *message)
{
    struct visit *visit = ctx;

    visit->asked = NULL;
    hd_worker_access_close(visit->pass);
    visit->pass = NULL;
    visit->has_ended = true;
    if (end == HD_RT_REFUSED || end == HD_RT_LOST)
        log_error(message);
    /* A failed application may have sent its error response already. */
    if (end == HD_RT_REFUSED && visit->is_whole && visit->body.len > 0)
        answer_whole(visit);
    else if (end == HD_RT_REFUSED)
        visit_fail(visit, 500, "Internal Server Error");
    else if (end == HD_RT_LOST)
        visit_fail(visit, 503, "the application cannot be reached at the moment");
    else if (end == HD_RT_LATE)
        visit_fail(visit, 504, "the application did not answer in time");
    else if (!visit->has_head)
        visit_fail(visit, 502, "the application did not answer");
    else if (visit->is_whole)
        answer_whole(visit);
    else
        visit_pump(visit);
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

static int write_question(const struct visit *visit, struct hd_buf *out)
{
    const struct hd_http_request *request = hd_exchange_request(visit->call->exchange);
    struct hd_arena *arena = visit->call->arena;
    struct hd_jw jw;

    hd_jw_init(&jw, out);
    hd_jw_object(&jw);
    hd_jw_key(&jw, HD_S("op"));
    hd_jw_string(&jw, HD_S("request"));
    hd_jw_key(&jw, HD_S("method"));
    hd_jw_string(&jw, request->method_name);
    hd_jw_key(&jw, HD_S("path"));
    hd_jw_string(&jw, visit->call->path);
    hd_jw_key(&jw, HD_S("query"));
    hd_jw_string(&jw, request->query);
    hd_jw_key(&jw, HD_S("headers"));
    hd_jw_array(&jw);
    for (size_t i = 0; i < request->header_count; i++) {
        if (hd_slice_eq(request->headers[i].name, HD_WORKER_ACCESS_HEADER))
            continue;
        hd_jw_array(&jw);
        hd_jw_string(&jw, request->headers[i].name);
        hd_jw_string(&jw, to_text(arena, request->headers[i].value));
        hd_jw_array_end(&jw);
    }
    hd_jw_array_end(&jw);
    if (visit->call->who) {
        hd_jw_key(&jw, HD_S("user"));
        hd_user_put(&jw, visit->call->who);
    }
    hd_worker_access_put(&jw, visit->call->app, visit->pass);
    if (visit->is_inner) {
        hd_jw_key(&jw, HD_S("inner"));
        hd_jw_bool(&jw, true);
    }
    hd_jw_object_end(&jw);
    return hd_jw_finish(&jw);
}

static struct visit *make_visit(struct hd_call *call)
{
    struct visit *visit = hd_arena_calloc(call->arena, 1, sizeof(*visit));

    if (!visit)
        return NULL;
    visit->custom = hd_api_custom(call->api);
    visit->call = call;
    hd_buf_init(&visit->body, MAX_QUEUED);
    return visit;
}

static struct hd_step send_question(struct visit *visit)
{
    struct hd_call *call = visit->call;
    const struct hd_http_request *request = hd_exchange_request(call->exchange);
    struct hd_rt_call_options options = {.language = hd_api_custom(call->api)->language,
                                         .blobs = &request->body,
                                         .blob_count = request->body.len > 0,
                                         .timeout_us = call->app->config->run_timeout_us,
                                         .patience_us = call->app->config->runtime_start_timeout_us,
                                         .on_piece = on_visit_piece,
                                         .on_end = on_visit_end,
                                         .ctx = visit};
    struct hd_buf head;
    int err;

    hd_buf_init(&head, MAX_HEAD);
    err = call->who || visit->is_inner
              ? hd_worker_access_open(call->app, call->who, visit->is_inner, &visit->pass)
              : 0;
    if (!err)
        err = write_question(visit, &head);
    options.head = hd_buf_slice(&head);
    if (!err)
        err = hd_runtime_call(call->app->runtime, &options, &visit->asked);
    hd_buf_fini(&head);
    if (err) {
        visit_release(visit);
        return hd_step_fail(err);
    }
    hd_exchange_on_gone(call->exchange, on_visit_gone, visit);
    return HD_WAIT;
}

/* The caller is authenticated, if the route requires it. */
static struct hd_step visit_application(struct hd_call *call)
{
    struct visit *visit = make_visit(call);

    return visit ? send_question(visit) : hd_step_fail(HD_ENOMEM);
}

static struct hd_step visit_middleware(struct hd_call *call)
{
    struct visit *visit = make_visit(call);

    if (!visit)
        return hd_step_fail(HD_ENOMEM);
    visit->is_inner = true;
    return send_question(visit);
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

    set_application_route(call, !is_first && !is_public, visit_middleware);
    return HD_NEXT;
}

/* ---- routes of the application ----------------------------------------- */

struct hd_step hd_custom_take(struct hd_call *call)
{
    const struct hd_http_request *request = hd_exchange_request(call->exchange);
    struct hd_slice unused;

    set_application_route(call, call->app->config->http_custom_route_auth, visit_application);
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
    struct visit *visit = make_visit(call);

    if (!visit)
        return hd_step_fail(HD_ENOMEM);
    visit->fallback = call->route;
    call->route = &open_route;
    return send_question(visit);
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
