#include "api/api.h"

#include <string.h>

#include "api/request/access.h"
#include "api/request/audit_request.h"
#include "api/request/authorize.h"
#include "api/request/forward.h"
#include "api/custom.h"
#include "api/heartbeat.h"
#include "api/page.h"
#include "api/state/message_path_memory.h"
#include "api/room/room_presence.h"
#include "api/stream_access.h"
#include "api/stream_follow.h"
#include "api/thread_view.h"
#include "auth/forwarded.h"
#include "base/alloc.h"
#include "base/log.h"
#include "config/config.h"
#include "http/server.h"
#include "search/thread_texts.h"

struct hd_api {
    struct hd_app *app;
    struct hd_router *router;
    struct hd_forwards *forwards; /* NULL: no cluster */
    struct hd_heartbeats *beats;
    struct hd_stream_accesses *watches;
    struct hd_room_presences *presences;
    struct hd_stream_follows *follows; /* NULL: no cluster */
    struct hd_custom *custom;          /* NULL: no http.app */
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
    call->role = HD_ROLE_OWNER;
    call->status = 200;
    call->content_type = HD_TYPE_JSON;
    hd_buf_init(&call->out, api->app->config->max_answer);
    hd_jw_init(&call->jw, &call->out);
    hd_budget_init(call);
    return call;
}

/* Releases everything outside the arena. The call itself ends with the exchange. */
void hd_call_free(struct hd_call *call)
{
    hd_access_leave(call);
    hd_authorize_free(call);
    if (call->forwarded)
        hd_forwarded_fini(call->forwarded);
    if (call->free_state)
        call->free_state(call->state);
    hd_json_fini(&call->json);
    hd_buf_fini(&call->out);
}

void hd_call_send_headers(struct hd_call *call)
{
    hd_call_audit(call);
    for (const struct hd_call_header *header = call->headers; header; header = header->next)
        hd_answer_header(call->exchange, header->name, header->value);
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
        hd_jw_put_string(&call->jw, "detail", hd_slice_cstr(text));
        hd_jw_object_end(&call->jw);
        err = hd_jw_finish(&call->jw);
    }
    if (err)
        hd_buf_reset(&call->out);
}

struct hd_step hd_call_refuse(struct hd_call *call, int status, const char *fmt, ...)
{
    char text[1024];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    write_refusal(call, status, text);
    return HD_DONE;
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

struct hd_step hd_call_refuse_limit(struct hd_call *call, enum hd_limit limit, int retry_s)
{
    hd_call_header_int(call, HD_S("Retry-After"), retry_s);
    return hd_call_refuse(call, 429, "too many %s (limits.%s)", hd_limit_name(limit),
                          hd_limit_name(limit));
}

struct hd_step hd_call_refuse_thread(struct hd_call *call, struct hd_slice thread_id)
{
    return hd_call_refuse(call, 404, "Thread with ID %.*s not found", (int)thread_id.len,
                          thread_id.ptr);
}

/* ---- from request to route -------------------------------------------- */

static void put_allowed_methods(struct hd_exchange *ex, unsigned methods)
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

/* True when the project's application handles the request. */
static bool is_of_application(const struct hd_api *api, struct hd_slice path,
                              enum hd_match_kind kind)
{
    if (!api->custom)
        return false;
    return kind == HD_MATCH_NO_PATH || hd_custom_has(api->custom, path) ||
           (hd_page_is(path) && (kind != HD_MATCH_FOUND || hd_custom_has_page(api->custom, path)));
}

void hd_call_set_route(struct hd_call *call, const struct hd_endpoint *route)
{
    call->route = route;
    call->work = route->work;
    call->then = route->then;
}

/* HD_STAGE_ROUTE. */
static struct hd_step find_route(struct hd_call *call, const struct hd_match *match)
{
    const struct hd_api *api = call->api;
    const struct hd_endpoint *found =
        match->kind == HD_MATCH_FOUND ? api->endpoints[match->route] : NULL;

    /* The project's application and middleware have run where the client is. */
    if (!call->forwarded && is_of_application(api, call->path, match->kind))
        return hd_custom_take(call);
    if (found && !call->forwarded && hd_custom_wraps(call))
        return hd_custom_wrap(call, found->access == HD_ACCESS_PUBLIC);
    switch (match->kind) {
    case HD_MATCH_FOUND:
        hd_call_set_route(call, found);
        memcpy(call->params, match->params, sizeof(call->params));
        return HD_NEXT;
    case HD_MATCH_OPTIONS:
        put_allowed_methods(call->exchange, match->methods);
        call->status = 204;
        return HD_DONE;
    case HD_MATCH_NO_PATH:
        break;
    case HD_MATCH_NO_METHOD:
        put_allowed_methods(call->exchange, match->methods);
        return hd_call_refuse(call, 405, "Method Not Allowed");
    case HD_MATCH_MALFORMED:
        return hd_call_refuse(call, 400, "the path is not percent-encoded UTF-8");
    }
    return hd_call_refuse(call, 404, "Not Found");
}

void hd_api_handle(void *ctx, struct hd_exchange *ex)
{
    struct hd_api *api = ctx;
    const struct hd_http_request *request = hd_exchange_request(ex);
    struct hd_call *call = make_call(api, ex);
    struct hd_slice path = request->path;
    struct hd_match match = {.kind = HD_MATCH_NO_PATH};
    struct hd_step step;

    hd_api_log_request(ex);
    if (!call || (take_prefix(api, &path) &&
                  hd_router_match(api->router, request->method, path, call->arena, &match))) {
        hd_answer_error(ex, 503, "out of memory");
        return;
    }
    call->path = path;
    step = hd_forward_accept(call);
    hd_call_resume(call, hd_step_is_next(step) ? find_route(call, &match) : step);
}

/* ---- public functions ------------------------------------------------- */

static size_t count_routes(void)
{
    size_t count = 0;

    while (hd_endpoint_at(count))
        count++;
    return count;
}

int hd_api_create(struct hd_app *app, struct hd_api **out, struct heddle_error *fault)
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
        err = hd_forwards_create(app, &api->forwards);
    if (!err)
        err = hd_heartbeats_create(app->loop, (uint64_t)app->config->stream_heartbeat_ms,
                                   &api->beats);
    if (!err)
        err = hd_stream_accesses_create(app, &api->watches);
    if (!err)
        err = hd_room_presences_create(app, &api->presences);
    if (!err)
        err = hd_stream_follows_create(app, &api->follows);
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
        hd_thread_indexer_start(app->texts, hd_thread_view_messages);
    *out = api;
    return 0;
}

void hd_api_destroy(struct hd_api *api)
{
    if (!api)
        return;
    hd_message_path_memory_destroy(api->message_path_memory);
    hd_site_destroy(api->site);
    hd_stream_follows_destroy(api->follows);
    hd_room_presences_destroy(api->presences);
    hd_stream_accesses_destroy(api->watches);
    hd_heartbeats_destroy(api->beats);
    hd_forwards_destroy(api->forwards);
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

struct hd_forwards *hd_api_forwards(const struct hd_api *api)
{
    return api->forwards;
}

struct hd_heartbeats *hd_api_heartbeats(const struct hd_api *api)
{
    return api->beats;
}

struct hd_stream_follows *hd_api_stream_follows(const struct hd_api *api)
{
    return api->follows;
}

struct hd_room_presences *hd_api_room_presences(const struct hd_api *api)
{
    return api->presences;
}

struct hd_stream_accesses *hd_api_stream_accesses(const struct hd_api *api)
{
    return api->watches;
}

void hd_api_end_thread_streams(struct hd_api *api)
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
