#include "api/api.h"

#include <string.h>

#include "api/access.h"
#include "api/audit_request.h"
#include "api/authorize.h"
#include "api/custom.h"
#include "api/heartbeat.h"
#include "api/page.h"
#include "api/state/message_path_memory.h"
#include "api/stream_access.h"
#include "api/thread_view.h"
#include "app/defer.h"
#include "base/alloc.h"
#include "base/log.h"
#include "config/config.h"
#include "http/server.h"
#include "search/thread_texts.h"

struct hd_api {
    struct hd_app *app;
    struct hd_router *router;
    struct hd_heartbeats *beats;
    struct hd_stream_accesses *watches;
    struct hd_custom *custom; /* NULL: no http.app */
    struct hd_site *site;
    struct hd_message_path_memory *message_path_memory;
    const struct hd_endpoint **endpoints; /* of the router */
    const struct hd_http_server *server;
    struct hd_answers answers;
};

/* ---- the lifetime of a call ------------------------------------------- */

static struct hd_call *make_call(struct hd_api *api, struct hd_exchange *ex)
{
    struct hd_arena *arena = hd_exchange_arena(ex);
    struct hd_call *call = hd_arena_calloc(arena, 1, sizeof(*call));

    if (!call)
        return NULL;
    call->app = api->app;
    call->api = api;
    call->exchange = ex;
    call->arena = arena;
    call->status = 200;
    call->content_type = HD_TYPE_JSON;
    hd_buf_init(&call->out, api->app->config->max_answer);
    hd_jw_init(&call->jw, &call->out);
    hd_budget_init(call);
    return call;
}

/* Releases everything outside the arena. The call itself ends with the exchange. */
static void call_release(struct hd_call *call)
{
    hd_access_leave(call);
    hd_authorize_free(call);
    hd_json_fini(&call->json);
    hd_buf_fini(&call->out);
}

void hd_call_free(struct hd_call *call)
{
    call_release(call);
}

void hd_call_send_headers(struct hd_call *call)
{
    hd_call_audit(call);
    for (const struct hd_call_header *header = call->headers; header; header = header->next)
        hd_answer_header(call->exchange, header->name, header->value);
}

void hd_call_answer(struct hd_call *call)
{
    struct hd_exchange *ex = call->exchange;
    struct hd_buf out = call->out;

    hd_call_send_headers(call);
    hd_buf_init(&call->out, 0);
    call_release(call);
    if (out.len == 0) {
        hd_buf_fini(&out);
        hd_answer_empty(ex, call->status);
        return;
    }
    hd_answer(ex, call->status, call->content_type, &out);
    hd_buf_fini(&out);
}

/* The body of a refusal: {"detail"} or, if configured, the text alone. */
static void write_refusal(struct hd_call *call, int status, const char *text)
{
    int err;

    hd_buf_reset(&call->out);
    hd_jw_init(&call->jw, &call->out);
    call->status = status;
    if (call->app->config->errors_plain_text) {
        call->content_type = HD_TYPE_TEXT;
        err = hd_buf_append_slice(&call->out, hd_slice_cstr(text));
    } else {
        call->content_type = HD_TYPE_JSON;
        hd_jw_object(&call->jw);
        hd_jw_key(&call->jw, HD_S("detail"));
        hd_jw_string(&call->jw, hd_slice_cstr(text));
        hd_jw_object_end(&call->jw);
        err = hd_jw_finish(&call->jw);
    }
    if (err)
        hd_buf_reset(&call->out);
}

int hd_call_refuse(struct hd_call *call, int status, const char *fmt, ...)
{
    char text[1024];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    write_refusal(call, status, text);
    return HD_CALL_ANSWERED;
}

void hd_call_header(struct hd_call *call, struct hd_slice name, struct hd_slice value)
{
    struct hd_call_header *header = hd_arena_calloc(call->arena, 1, sizeof(*header));

    if (!header || hd_arena_copy(call->arena, name, &header->name) ||
        hd_arena_copy(call->arena, value, &header->value)) {
        call->jw.err = HD_ENOMEM;
        return;
    }
    header->next = call->headers;
    call->headers = header;
}

int hd_call_refuse_limit(struct hd_call *call, enum hd_limit limit, int retry_s)
{
    hd_call_header_int(call, HD_S("Retry-After"), retry_s);
    return hd_call_refuse(call, 429, "too many %s (limits.%s)", hd_limit_name(limit),
                          hd_limit_name(limit));
}

int hd_call_refuse_thread(struct hd_call *call, struct hd_slice thread_id)
{
    return hd_call_refuse(call, 404, "Thread with ID %.*s not found", (int)thread_id.len,
                          thread_id.ptr);
}

static void set_error(struct hd_call *call, int err)
{
    int status = hd_error_http_status(err);

    if (status >= 500)
        hd_log(HD_LOG_ERROR, "api", "%s: %s", call->route ? call->route->pattern : "request",
               call->fault.code ? call->fault.text : hd_error_text(err));
    hd_error_hide_paths(call->fault.text);
    write_refusal(call, status, call->fault.code ? call->fault.text : hd_error_text(err));
}

void hd_call_fail(struct hd_call *call, int err)
{
    set_error(call, err);
    hd_call_answer(call);
}

/* ---- work on store threads -------------------------------------------- */

/* Work of a call on a store thread. */
struct errand {
    struct hd_call *call;
    hd_work_fn work;
    void (*then)(struct hd_call *call, int err);
    int err;
};

static void do_errand(void *arg)
{
    struct errand *errand = arg;
    struct hd_call *call = errand->call;

    errand->err = errand->work(call);
    if (errand->err == HD_CALL_ANSWERED && call->jw.err)
        errand->err = call->jw.err;
    if (errand->err == HD_CALL_ANSWERED && call->out.len > 0 &&
        hd_exchange_compress(call->exchange, call->content_type, &call->out))
        hd_log(HD_LOG_DEBUG, "api", "an answer is sent uncompressed: out of memory");
    errand->err = hd_budget_settle(call, errand->err);
}

static void errand_done(void *arg)
{
    struct errand *errand = arg;

    errand->then(errand->call, errand->err);
}

int hd_call_defer(struct hd_call *call, hd_work_fn work,
                  void (*then)(struct hd_call *call, int err))
{
    struct errand *errand = hd_arena_alloc(call->arena, sizeof(*errand));

    if (!errand)
        return HD_ENOMEM;
    *errand = (struct errand){.call = call, .work = work, .then = then};
    return hd_defer_run(call->app->defer, do_errand, errand_done, errand);
}

/* ---- from request to route -------------------------------------------- */

static void call_continue(struct hd_call *call, int err)
{
    if (err == HD_CALL_CONTINUES)
        call->route->then(call);
    else if (err < 0)
        hd_call_fail(call, err);
    else
        hd_call_answer(call);
}

static int parse_body(struct hd_call *call)
{
    const struct hd_http_request *request = hd_exchange_request(call->exchange);
    int err;

    if (!call->route->body)
        return 0;
    if (request->body.len == 0) {
        if (call->route->body[0] == '?')
            return 0;
        return hd_fault_set(&call->fault, HD_EINVAL, "a JSON body is required");
    }
    err = hd_json_parse(&call->json, request->body, &call->fault);
    if (err)
        return err;
    call->body = hd_json_root(&call->json);
    err = hd_json_check_names(call->body, &call->fault);
    if (err)
        return err;
    if (hd_json_is_null(call->body))
        call->body = NULL;
    if (call->body && !hd_json_is_object(call->body) && call->route->body[0] != '[')
        return hd_fault_set(&call->fault, HD_EINVAL, "the body must be an object, not %s",
                            hd_json_type_name(call->body));
    if (!call->body && call->route->body[0] != '?')
        return hd_fault_set(&call->fault, HD_EINVAL, "a JSON body is required");
    return 0;
}

/*
 * Pages can send text and forms to any server without a preflight. Without users a page that sends
 * JSON therefore has to name its type.
 */
static bool has_sound_type(const struct hd_call *call)
{
    const struct hd_http_request *request = hd_exchange_request(call->exchange);

    return call->app->config->auth.val || !call->route->body || request->body.len == 0 ||
           !hd_request_is_of_page(request) || hd_request_is_json(request);
}

/* The body is parsed on the store thread: parsing a large one would block the loop. */
static int call_prepare(struct hd_call *call)
{
    int err;

    if (!has_sound_type(call))
        return hd_call_refuse(call, 415,
                              "the body must be sent with Content-Type: application/json");
    err = hd_access_path(call);
    if (!err)
        err = hd_access_room(call);
    if (err > 0)
        return HD_CALL_ANSWERED;
    if (!err)
        err = parse_body(call);
    return err ? err : HD_CALL_CONTINUES;
}

static int do_work(struct hd_call *call)
{
    return call->route->work ? call->route->work(call) : HD_CALL_CONTINUES;
}

static int prepare_and_work(struct hd_call *call)
{
    int err = call_prepare(call);

    return err == HD_CALL_CONTINUES ? do_work(call) : err;
}

static void call_begin(struct hd_call *call)
{
    int err = 0;

    if (!call->route->work && !call->route->body && !hd_access_is_thread(call->route)) {
        call->route->then(call);
        return;
    }
    err = hd_call_defer(call, prepare_and_work, call_continue);
    if (err)
        hd_call_fail(call, err);
}

static void call_start(struct hd_call *call)
{
    static const struct hd_authorize_steps steps = {
        .prepare = call_prepare, .work = do_work, .resume = call_continue, .otherwise = call_begin};
    const struct hd_http_request *request = hd_exchange_request(call->exchange);
    int err = hd_params_parse(&call->query, request->query, call->arena, &call->fault);

    if (err)
        hd_call_fail(call, err);
    else
        hd_authorize(call, &steps);
}

static void say_allowed(struct hd_exchange *ex, unsigned methods)
{
    char text[64];

    hd_method_list(methods, text);
    hd_answer_header(ex, HD_S("Allow"), hd_slice_cstr(text));
}

/*
 * The path without http.mount_prefix; false when it does not begin with it. Health checks bypass
 * mount_prefix.
 */
static bool take_prefix(const struct hd_api *api, struct hd_slice *path)
{
    struct hd_slice prefix = hd_slice_cstr(api->app->config->http_mount_prefix);

    if (prefix.len == 0 || hd_slice_eq(*path, HD_S("/ok")) || hd_slice_eq(*path, HD_S("/health")))
        return true;
    if (!hd_slice_starts(*path, prefix) || (path->len > prefix.len && path->ptr[prefix.len] != '/'))
        return false;
    *path = path->len > prefix.len ? hd_slice(path->ptr + prefix.len, path->len - prefix.len)
                                   : HD_S("/");
    return true;
}

static void call_enter(struct hd_call *call)
{
    hd_access_enter(call, call_start);
}

/* True when the project's application handles the request; the call then belongs to it. */
static bool is_of_app(const struct hd_api *api, struct hd_slice path, enum hd_match_kind kind)
{
    if (!api->custom)
        return false;
    return kind == HD_MATCH_NO_PATH || hd_custom_has(api->custom, path) ||
           (hd_page_is(path) && (kind != HD_MATCH_FOUND || hd_custom_has_page(api->custom, path)));
}

void hd_api_handle(void *ctx, struct hd_exchange *ex)
{
    struct hd_api *api = ctx;
    const struct hd_http_request *request = hd_exchange_request(ex);
    struct hd_call *call = make_call(api, ex);
    struct hd_slice path = request->path;
    struct hd_match match = {.kind = HD_MATCH_NO_PATH};

    hd_api_log_request(ex);
    if (!call || (take_prefix(api, &path) &&
                  hd_router_match(api->router, request->method, path, call->arena, &match))) {
        hd_answer_error(ex, 503, "out of memory");
        return;
    }
    if (is_of_app(api, path, match.kind)) {
        hd_custom_take(api->custom, call, path);
        return;
    }
    if (match.kind == HD_MATCH_FOUND && hd_custom_wraps(api->custom, call, path)) {
        hd_custom_wrap(api->custom, call, path,
                       api->endpoints[match.route]->access == HD_ACCESS_PUBLIC);
        return;
    }
    switch (match.kind) {
    case HD_MATCH_FOUND:
        call->route = api->endpoints[match.route];
        memcpy(call->params, match.params, sizeof(call->params));
        if (api->custom && hd_page_is(path))
            hd_custom_try(api->custom, call, path, call_enter);
        else
            call_enter(call);
        return;
    case HD_MATCH_OPTIONS:
        say_allowed(ex, match.methods);
        call->status = 204;
        break;
    case HD_MATCH_NO_PATH:
        hd_call_refuse(call, 404, "Not Found");
        break;
    case HD_MATCH_NO_METHOD:
        say_allowed(ex, match.methods);
        hd_call_refuse(call, 405, "Method Not Allowed");
        break;
    case HD_MATCH_MALFORMED:
        hd_call_refuse(call, 400, "the path is not percent-encoded UTF-8");
        break;
    }
    hd_call_answer(call);
}

/* ---- public functions ------------------------------------------------- */

static size_t count_routes(void)
{
    size_t count = 0;

    while (hd_endpoint_at(count))
        count++;
    return count;
}

int hd_api_create(struct hd_app *app, struct hd_api **out, struct hd_fault *fault)
{
    struct hd_api *api = hd_calloc(1, sizeof(*api));
    size_t count = count_routes(), kept = 0;
    struct hd_router_entry *entries = hd_calloc(count, sizeof(*entries));
    int err = api && entries ? 0 : HD_ENOMEM;

    if (!err)
        api->endpoints = hd_calloc(count, sizeof(*api->endpoints));
    if (!err && !api->endpoints)
        err = HD_ENOMEM;
    for (size_t i = 0; !err && i < count; i++) {
        const struct hd_endpoint *endpoint = hd_endpoint_at(i);

        err = hd_access_check(endpoint, fault);
        if (err || !hd_endpoint_is_on(app->config, endpoint))
            continue;
        entries[kept] = (struct hd_router_entry){endpoint->method, endpoint->pattern};
        api->endpoints[kept++] = endpoint;
    }
    if (!err)
        err = hd_router_create(&api->router, entries, kept, fault);
    if (!err)
        err = hd_custom_create(app, &api->custom);
    if (!err)
        err = hd_heartbeats_create(app->loop, (uint64_t)app->config->stream_heartbeat_ms,
                                   &api->beats);
    if (!err)
        err = hd_stream_accesses_create(app, &api->watches);
    if (!err)
        err = hd_site_create(&api->site);
    if (!err)
        err = hd_message_path_memory_create(&api->message_path_memory);
    hd_free(entries);
    if (err) {
        hd_api_destroy(api);
        return err;
    }
    api->app = app;
    if (app->texts)
        hd_thread_indexer_start(app->texts, hd_thread_read_messages);
    *out = api;
    return 0;
}

void hd_api_destroy(struct hd_api *api)
{
    if (!api)
        return;
    hd_message_path_memory_destroy(api->message_path_memory);
    hd_site_destroy(api->site);
    hd_stream_accesses_destroy(api->watches);
    hd_heartbeats_destroy(api->beats);
    hd_router_destroy(api->router);
    hd_custom_destroy(api->custom);
    hd_free(api->endpoints);
    hd_free(api);
}

struct hd_answers *hd_api_answers(struct hd_api *api)
{
    return &api->answers;
}

struct hd_custom *hd_api_custom(const struct hd_api *api)
{
    return api->custom;
}

struct hd_site *hd_api_site(const struct hd_api *api)
{
    return api->site;
}

struct hd_message_path_memory *hd_api_message_path_memory(const struct hd_api *api)
{
    return api->message_path_memory;
}

struct hd_heartbeats *hd_api_heartbeats(const struct hd_api *api)
{
    return api->beats;
}

struct hd_stream_accesses *hd_api_stream_accesses(const struct hd_api *api)
{
    return api->watches;
}

void hd_api_end_streams(struct hd_api *api)
{
    hd_heartbeats_fire(api->beats);
}

void hd_api_set_server(struct hd_api *api, const struct hd_http_server *server)
{
    api->server = server;
}

const struct hd_config *hd_api_config(const struct hd_api *api)
{
    return api->app->config;
}

const struct hd_http_server *hd_api_server(const struct hd_api *api)
{
    return api->server;
}
