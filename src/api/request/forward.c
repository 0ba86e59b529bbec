#include "api/request/forward.h"

#include <string.h>

#include "api/request/access.h"
#include "api/request/peer_watch.h"
#include "auth/digest.h"
#include "auth/forwarded.h"
#include "base/alloc.h"
#include "base/log.h"
#include "base/uuid.h"
#include "cluster/cluster.h"
#include "config/config.h"
#include "http/server.h"
#include "net/http_client.h"
#include "records/hold.h"

#define MAX_TRIES 4                   /* look-ups of the holder for one request */
#define RETRY_S 1                     /* Retry-After while no server can answer */
#define CONNECT_MS 3000               /* to a server of the same cluster */
#define MAX_PENDING ((size_t)1 << 20) /* of a stream whose client does not read */
#define MAX_WHOLE ((size_t)1 << 30)
#define MAX_LINES 160
#define LOOP_COMPRESSES ((size_t)32 << 10)

struct hd_forwards {
    struct hd_client *client;
    struct hd_peer_watches *watches;
    struct hd_forwarded_key key;
    uint64_t count; /* requests sent to other servers */
};

/* A call that another server answers; in the arena of the call. */
struct hd_forwarding {
    struct hd_peer_watch watch;
    struct hd_call *call;
    enum hd_stage stage; /* where the look-up is repeated */
    int tries;
    struct hd_slice server;        /* its id; empty: this one */
    struct hd_held_thread *thread; /* as found; NULL: only its hold was read */
    struct hd_forward_message message;
    struct hd_client_request *request; /* NULL: it has ended */
    bool is_moved;                     /* the other server does not hold the thread */
    bool is_streaming;                 /* the response to the client has begun */
    bool is_paused;
    struct hd_buf pending; /* of the stream; the client has no room for it yet */
    size_t sent;
};

/* ---- refusals --------------------------------------------------------- */

struct hd_step hd_forward_refuse(struct hd_call *call)
{
    hd_call_header_int(call, HD_S("Retry-After"), RETRY_S);
    return hd_call_refuse(call, 503, "the server that holds the thread cannot be reached");
}

static struct hd_step refuse_as_not_holder(struct hd_call *call)
{
    hd_call_header(call, HD_NOT_HOLDER, HD_S("1"));
    return hd_call_refuse(call, 409, "another server holds the thread");
}

/* ---- requests of other servers ---------------------------------------- */

static struct hd_forwarded_target target_of(const struct hd_http_request *request)
{
    return (struct hd_forwarded_target){
        .method = request->method_name, .path = request->path, .query = request->query};
}

static struct hd_step refuse_signature(struct hd_call *call)
{
    hd_log(HD_LOG_WARN, "cluster",
           "a forwarded request is refused: its signature is not valid, or "
           "the servers differ in their authentication");
    /* The sender tries again, and does not pass the 401 on to its client. */
    hd_call_header(call, HD_NOT_HOLDER, HD_S("1"));
    return hd_call_refuse(call, 401, "the forwarded request is not valid");
}

struct hd_step hd_forward_accept(struct hd_call *call)
{
    const struct hd_forwards *forwards = hd_api_forwards(call->api);
    const struct hd_http_request *request = hd_exchange_request(call->exchange);
    const struct hd_forwarded_target target = target_of(request);
    struct hd_forwarded *forwarded;
    struct hd_slice header;
    int err;

    if (!forwards || !hd_request_header(request, HD_FORWARDED_HEADER, &header))
        return HD_NEXT;
    forwarded = hd_arena_calloc(call->arena, 1, sizeof(*forwarded));
    if (!forwarded)
        return hd_step_fail(HD_ENOMEM);
    err = hd_forwarded_read(&forwards->key, hd_cluster_self(call->app->cluster), header, &target,
                            call->arena, forwarded);
    if (err == HD_ETAKEN)
        return refuse_as_not_holder(call);
    if (err)
        return err == HD_EACCESS ? refuse_signature(call) : hd_step_fail(err);
    call->forwarded = forwarded;
    call->is_audited = true; /* by the server that the client has reached */
    if (!call->app->auth_service != !forwarded->identity)
        return refuse_signature(call);
    return HD_NEXT;
}

struct hd_step hd_forward_check_body(struct hd_call *call)
{
    const struct hd_http_request *request = hd_exchange_request(call->exchange);
    unsigned char body[HD_SHA256_LEN];
    int err = hd_sha256(request->body, body);

    if (err)
        return hd_step_fail(err);
    return memcmp(body, call->forwarded->body, sizeof(body)) == 0 ? HD_NEXT
                                                                  : refuse_signature(call);
}

/* ---- requests to other servers ---------------------------------------- */

static bool is_one_of(struct hd_slice name, const char *const *names)
{
    for (size_t i = 0; names[i]; i++) {
        size_t len = strlen(names[i]);
        bool is_prefix = names[i][len - 1] == '-';

        if (name.len >= len && (is_prefix || name.len == len) &&
            hd_slice_eq_nocase(hd_slice(name.ptr, len), hd_slice_cstr(names[i])))
            return true;
    }
    return false;
}

/*
 * Not sent on: headers of one connection, those of browsers, which the front has checked, and
 * credentials, which the identity replaces.
 */
static bool is_sent_on(struct hd_slice name)
{
    static const char *const kept[] = {"accept-encoding",
                                       "access-control-",
                                       "authorization",
                                       "connection",
                                       "content-length",
                                       "cookie",
                                       "expect",
                                       "heddle-act-for",
                                       "heddle-forwarded",
                                       "heddle-run-token",
                                       "host",
                                       "keep-alive",
                                       "origin",
                                       "proxy-",
                                       "sec-",
                                       "te",
                                       "trailer",
                                       "transfer-encoding",
                                       "upgrade",
                                       "x-api-key",
                                       "x-request-id",
                                       NULL};

    return !is_one_of(name, kept);
}

bool hd_forward_is_passed_on(struct hd_slice name)
{
    static const char *const kept[] = {"access-control-",
                                       "connection",
                                       "content-length",
                                       "content-type",
                                       "date",
                                       "heddle-event-",
                                       "heddle-not-holder",
                                       "keep-alive",
                                       "proxy-",
                                       "server",
                                       "strict-transport-security",
                                       "trailer",
                                       "transfer-encoding",
                                       "upgrade",
                                       "x-content-type-options",
                                       "x-request-id",
                                       NULL};

    return !is_one_of(name, kept);
}

bool hd_forward_header(struct hd_slice *lines, struct hd_slice *name, struct hd_slice *value)
{
    while (lines->len > 0) {
        const char *end = memchr(lines->ptr, '\n', lines->len);
        struct hd_slice line = hd_slice(lines->ptr, end ? (size_t)(end - lines->ptr) : lines->len);
        size_t taken = line.len + (end != NULL);
        const char *colon = memchr(line.ptr, ':', line.len);

        *lines = hd_slice(lines->ptr + taken, lines->len - taken);
        if (!colon) /* the status, or the blank line at the end */
            continue;
        *name = hd_slice(line.ptr, (size_t)(colon - line.ptr));
        *value = hd_slice(colon + 1, line.len - name->len - 1);
        while (value->len > 0 && strchr(" \t\r", value->ptr[value->len - 1]))
            value->len--;
        while (value->len > 0 && strchr(" \t", value->ptr[0]))
            *value = hd_slice(value->ptr + 1, value->len - 1);
        return true;
    }
    return false;
}

static int add_line(struct hd_forward_message *message, const char *line)
{
    if (!line)
        return HD_ENOMEM;
    if (message->line_count == MAX_LINES)
        return HD_ELIMIT;
    message->lines[message->line_count++] = line;
    return 0;
}

/* libcurl sends a header without a value only when a semicolon ends it. */
static int forward_add_header(struct hd_forward_message *message, struct hd_arena *arena,
                              struct hd_slice name, struct hd_slice value)
{
    return add_line(message, hd_arena_printf(arena, value.len > 0 ? "%.*s: %.*s" : "%.*s;%.*s",
                                             (int)name.len, name.ptr, (int)value.len, value.ptr));
}

static int add_signature(const struct hd_call *call, struct hd_slice server, struct hd_arena *arena,
                         struct hd_forward_message *message)
{
    const struct hd_http_request *request = hd_exchange_request(call->exchange);
    const struct hd_forwarded_target target = target_of(request);
    struct hd_forwarded forwarded = {.source = hd_cluster_self(call->app->cluster),
                                     .target = server,
                                     .identity = call->identity,
                                     .by = call->by,
                                     .principal = call->principal,
                                     .role = call->role};
    struct hd_buf text;
    int err;

    hd_buf_init(&text, HD_FORWARDED_MAX);
    err = hd_sha256(request->body, forwarded.body);
    if (!err)
        err = hd_forwarded_write(&hd_api_forwards(call->api)->key, &forwarded, &target, &text);
    if (!err)
        err = forward_add_header(message, arena, HD_FORWARDED_HEADER, hd_buf_slice(&text));
    hd_buf_fini(&text);
    return err;
}

/* libcurl adds these unless they are given: an empty value removes them. */
static int add_absent(const struct hd_http_request *request, struct hd_forward_message *message)
{
    static const char *const names[] = {"accept", "content-type", "user-agent"};
    static const char *const lines[] = {"accept:", "content-type:", "user-agent:"};
    struct hd_slice unused;
    int err = 0;

    for (size_t i = 0; !err && i < HD_COUNT(names); i++) {
        if (!hd_request_header(request, hd_slice_cstr(names[i]), &unused))
            err = add_line(message, lines[i]);
    }
    return err;
}

static int add_headers(const struct hd_call *call, const char *last_event_id,
                       struct hd_arena *arena, struct hd_forward_message *message)
{
    const struct hd_http_request *request = hd_exchange_request(call->exchange);
    const struct hd_slice last = HD_S("last-event-id");
    int err = 0;

    for (size_t i = 0; !err && i < request->header_count; i++) {
        const struct hd_header *header = &request->headers[i];

        if (is_sent_on(header->name) && !(last_event_id && hd_slice_eq(header->name, last)))
            err = forward_add_header(message, arena, header->name, header->value);
    }
    if (!err && last_event_id && last_event_id[0])
        err = forward_add_header(message, arena, last, hd_slice_cstr(last_event_id));
    if (!err)
        err = add_absent(request, message);
    return err ? err
               : forward_add_header(message, arena, HD_S("x-request-id"),
                                    hd_exchange_id(call->exchange));
}

struct hd_slice hd_forward_origin(const char *address)
{
    const char *host = strstr(address, "://");

    host = host ? host + 3 : address;
    return hd_slice(address, (size_t)(host - address) + strcspn(host, "/"));
}

int hd_forward_write(const struct hd_call *call, struct hd_slice server, const char *last_event_id,
                     struct hd_arena *arena, struct hd_forward_message *out)
{
    const struct hd_http_request *request = hd_exchange_request(call->exchange);
    struct hd_cluster_server found;
    struct hd_slice origin;
    int err;

    *out = (struct hd_forward_message){.url = NULL};
    if (!hd_cluster_find(call->app->cluster, server, &found))
        return HD_ENOTFOUND;
    /* The path of the request has http.mount_prefix. */
    origin = hd_forward_origin(found.address);
    out->lines = hd_arena_calloc(arena, MAX_LINES, sizeof(*out->lines));
    out->url = hd_arena_printf(arena, "%.*s%.*s%s%.*s", (int)origin.len, origin.ptr,
                               (int)request->path.len, request->path.ptr,
                               request->query.len > 0 ? "?" : "", (int)request->query.len,
                               request->query.ptr);
    err = out->lines && out->url ? 0 : HD_ENOMEM;
    if (!err)
        err = add_signature(call, server, arena, out);
    return err ? err : add_headers(call, last_event_id, arena, out);
}

/* ---- finding the server (store thread) -------------------------------- */

static bool is_enabled(const struct hd_call *call)
{
    /* A HEAD has no body to wait for. */
    return hd_api_forwards(call->api) &&
           hd_exchange_request(call->exchange)->method != HD_METHOD_HEAD;
}

static struct hd_forwarding *get_forwarding(struct hd_call *call)
{
    if (!call->forwarding)
        call->forwarding = hd_arena_calloc(call->arena, 1, sizeof(*call->forwarding));
    if (call->forwarding)
        call->forwarding->call = call;
    return call->forwarding;
}

/*
 * A server that cannot be found has joined a moment ago, or is gone. `is_held`: then another one
 * will take the thread over soon.
 */
static struct hd_step do_without(struct hd_call *call, struct hd_slice server, bool is_held)
{
    bool is_gone = false;
    int err =
        is_held ? 0 : hd_cluster_check_gone(call->app->cluster, server, &is_gone, &call->fault);

    if (err)
        return hd_step_fail(err);
    return is_gone ? HD_NEXT : hd_forward_refuse(call);
}

static struct hd_step send_to(struct hd_call *call, struct hd_slice server, bool is_held)
{
    struct hd_forwarding *forwarding = call->forwarding;
    int err = hd_forward_write(call, server, NULL, call->arena, &forwarding->message);

    if (err == HD_ENOTFOUND)
        return do_without(call, server, is_held);
    forwarding->server = server;
    return err ? hd_step_fail(err) : hd_call_go_to(call, HD_STAGE_FORWARD);
}

static struct hd_step find_source(struct hd_call *call, struct hd_slice server)
{
    struct hd_cluster_server found;

    if (!hd_cluster_find(call->app->cluster, server, &found))
        return do_without(call, server, false);
    call->forwarding->server = server;
    return HD_NEXT;
}

/* The admission of a run needs the thread as well: then both are read in one round trip. */
static int locate_hold(struct hd_call *call, struct hd_slice thread_id, struct hd_hold *out)
{
    struct hd_forwarding *forwarding = get_forwarding(call);
    struct heddle *store = call->app->store;
    int err;

    if (!forwarding)
        return HD_ENOMEM;
    if (!call->route->admits)
        return hd_hold_read(store, call->principal, thread_id, call->arena, out, &call->fault);
    if (!forwarding->thread)
        forwarding->thread = hd_arena_calloc(call->arena, 1, sizeof(*forwarding->thread));
    if (!forwarding->thread)
        return HD_ENOMEM;
    err = hd_hold_read_thread(store, call->principal, thread_id, call->arena, forwarding->thread,
                              &call->fault);
    *out = forwarding->thread->hold;
    return err;
}

struct hd_step hd_forward_find(struct hd_call *call, struct hd_slice thread_id,
                               enum hd_answered_by by)
{
    struct hd_slice self = hd_cluster_self(call->app->cluster), server;
    struct hd_forwarding *forwarding;
    struct hd_hold hold;
    int err;

    if (!is_enabled(call) || (call->forwarded && by == HD_BY_FOLLOWER))
        return HD_NEXT;
    err = locate_hold(call, thread_id, &hold);
    if (err)
        return hd_step_fail(err);
    forwarding = call->forwarding;
    forwarding->server = hd_slice(NULL, 0);
    forwarding->stage = call->stage;
    server = by == HD_BY_HOLDER || hold.token ? hold.server : hold.last;
    if (server.len == 0 || hd_slice_eq(server, self))
        return HD_NEXT;
    if (call->forwarded)
        return hold.token ? refuse_as_not_holder(call) : HD_NEXT;
    return by == HD_BY_FOLLOWER ? find_source(call, server)
                                : send_to(call, server, hold.token != 0);
}

bool hd_forward_locates(const struct hd_call *call)
{
    return call->route->by != HD_BY_ANY && hd_access_is_thread(call->route) && is_enabled(call);
}

struct hd_step hd_forward_locate(struct hd_call *call)
{
    char id[HD_UUID_SIZE];
    uint8_t bytes[16];

    if (!hd_uuid_parse(call->params[0], bytes)) /* refused by the route */
        return HD_NEXT;
    hd_uuid_format(bytes, id);
    return hd_forward_find(call, hd_slice(id, HD_UUID_LEN), call->route->by);
}

struct hd_step hd_forward_again(struct hd_call *call)
{
    struct hd_forwarding *forwarding = get_forwarding(call);

    if (!forwarding)
        return hd_step_fail(HD_ENOMEM);
    if (call->forwarded)
        return refuse_as_not_holder(call);
    if (++forwarding->tries == MAX_TRIES)
        return hd_forward_refuse(call);
    return hd_call_go_to(call, HD_STAGE_LOCATE);
}

const struct hd_held_thread *hd_forward_thread(const struct hd_call *call)
{
    return call->forwarding ? call->forwarding->thread : NULL;
}

struct hd_slice hd_forward_source(const struct hd_call *call)
{
    return call->forwarding ? call->forwarding->server : hd_slice(NULL, 0);
}

bool hd_forward_is_elsewhere(const struct hd_call *call)
{
    return call->forwarding && call->forwarding->message.url && call->forwarding->server.len > 0;
}

/* ---- the end ---------------------------------------------------------- */

static void end_forwarding(struct hd_forwarding *forwarding)
{
    if (forwarding->request)
        hd_client_cancel(forwarding->request);
    forwarding->request = NULL;
    hd_peer_watch_stop(&forwarding->watch);
    hd_buf_fini(&forwarding->pending);
}

/* The client has left: the other server sees the same. */
static void on_client_gone(void *ctx)
{
    struct hd_forwarding *forwarding = ctx;
    struct hd_call *call = forwarding->call;

    end_forwarding(forwarding);
    hd_call_free(call);
}

/* The client sees that the stream is incomplete, and connects again. */
static void break_off_answer(struct hd_forwarding *forwarding)
{
    struct hd_call *call = forwarding->call;
    struct hd_exchange *ex = call->exchange;

    end_forwarding(forwarding);
    hd_call_free(call);
    hd_http_stream_abort(ex);
}

/* The other server, or the connection to it, is gone. */
static void fail_forwarding(struct hd_forwarding *forwarding)
{
    struct hd_call *call = forwarding->call;

    if (forwarding->is_streaming) {
        break_off_answer(forwarding);
        return;
    }
    end_forwarding(forwarding);
    hd_exchange_on_gone(call->exchange, NULL, NULL);
    hd_call_resume(call, hd_forward_refuse(call));
}

/* ---- the answer ------------------------------------------------------- */

static struct hd_slice header_of(struct hd_slice lines, struct hd_slice wanted)
{
    struct hd_slice name, value;

    while (hd_forward_header(&lines, &name, &value)) {
        if (hd_slice_eq_nocase(name, wanted))
            return value;
    }
    return hd_slice(NULL, 0);
}

static bool is_endless(const struct hd_client_response *head)
{
    return header_of(head->headers, HD_S("transfer-encoding")).len > 0;
}

/* Status and headers; HD_ENOMEM is noticed when they are sent. */
static void copy_head(struct hd_call *call, const struct hd_client_response *head)
{
    struct hd_slice lines = head->headers, name, value;

    call->status = (int)head->status;
    while (hd_forward_header(&lines, &name, &value)) {
        if (hd_forward_is_passed_on(name))
            hd_call_header(call, name, value);
    }
    if (hd_arena_copy(call->arena, header_of(head->headers, HD_S("content-type")),
                      &call->content_type))
        call->content_type = hd_slice(NULL, 0);
}

static void finish_stream(struct hd_forwarding *forwarding)
{
    struct hd_call *call = forwarding->call;
    struct hd_exchange *ex = call->exchange;

    hd_peer_watch_stop(&forwarding->watch);
    hd_buf_fini(&forwarding->pending);
    hd_call_free(call);
    hd_http_stream_end(ex);
}

/* The client has room. */
static void on_client_room(void *ctx)
{
    struct hd_forwarding *forwarding = ctx;
    struct hd_buf *pending = &forwarding->pending;
    struct hd_slice rest =
        hd_slice(pending->ptr + forwarding->sent, pending->len - forwarding->sent);

    if (rest.len > 0)
        forwarding->sent += hd_http_stream_write(forwarding->call->exchange, &rest, 1);
    if (forwarding->sent < pending->len)
        return;
    hd_buf_reset(pending);
    forwarding->sent = 0;
    if (!forwarding->request) {
        finish_stream(forwarding);
    } else if (forwarding->is_paused) {
        forwarding->is_paused = false;
        hd_client_resume(forwarding->request);
    }
}

static bool on_peer_head(void *ctx, const struct hd_client_response *head)
{
    struct hd_forwarding *forwarding = ctx;
    struct hd_call *call = forwarding->call;

    hd_peer_watch_touch(&forwarding->watch);
    forwarding->is_moved = header_of(head->headers, HD_NOT_HOLDER).len > 0;
    if (forwarding->is_moved || !is_endless(head))
        return false;
    forwarding->is_streaming = true;
    copy_head(call, head);
    hd_call_send_headers(call);
    hd_exchange_on_gone(call->exchange, NULL, NULL);
    hd_http_stream_begin(call->exchange, call->status, call->content_type, on_client_room,
                         on_client_gone, forwarding);
    return true;
}

static void on_peer_data(void *ctx, struct hd_slice data)
{
    struct hd_forwarding *forwarding = ctx;
    size_t taken = 0;

    hd_peer_watch_touch(&forwarding->watch);
    if (forwarding->pending.len == 0)
        taken = hd_http_stream_write(forwarding->call->exchange, &data, 1);
    if (taken == data.len)
        return;
    if (hd_buf_append(&forwarding->pending, data.ptr + taken, data.len - taken)) {
        break_off_answer(forwarding);
        return;
    }
    forwarding->is_paused = true;
    hd_client_pause(forwarding->request);
}

/* Store thread: compresses the answer (pipeline.c). */
static struct hd_step keep_answer(struct hd_call *call)
{
    (void)call;
    return HD_DONE;
}

static void answer_whole(struct hd_forwarding *forwarding,
                         const struct hd_client_response *response)
{
    struct hd_call *call = forwarding->call;
    int err;

    copy_head(call, response);
    hd_buf_fini(&call->out);
    hd_buf_init(&call->out, MAX_WHOLE);
    err = hd_buf_append_slice(&call->out, response->body);
    end_forwarding(forwarding);
    hd_exchange_on_gone(call->exchange, NULL, NULL);
    if (err)
        hd_call_resume(call, hd_step_fail(err));
    else if (call->out.len >= LOOP_COMPRESSES)
        hd_call_resume(call, hd_call_visit(call, keep_answer, NULL));
    else
        hd_call_resume(call, HD_DONE);
}

/* A third server holds the thread now, or none. */
static void look_again(struct hd_forwarding *forwarding)
{
    struct hd_call *call = forwarding->call;

    end_forwarding(forwarding);
    hd_exchange_on_gone(call->exchange, NULL, NULL);
    hd_call_resume(call, ++forwarding->tries == MAX_TRIES ? hd_forward_refuse(call)
                                                          : hd_call_go_to(call, forwarding->stage));
}

static void on_peer_answer(void *ctx, const struct hd_client_response *response)
{
    struct hd_forwarding *forwarding = ctx;

    forwarding->request = NULL;
    if (response->error) {
        hd_log(HD_LOG_WARN, "cluster", "a request to server %.*s failed: %s",
               (int)forwarding->server.len, forwarding->server.ptr, response->error);
        fail_forwarding(forwarding);
    } else if (forwarding->is_moved) {
        look_again(forwarding);
    } else if (!forwarding->is_streaming) {
        answer_whole(forwarding, response);
    } else if (forwarding->pending.len == 0) {
        finish_stream(forwarding);
    }
}

/* ---- sending ---------------------------------------------------------- */

static void on_peer_lost(void *ctx)
{
    fail_forwarding(ctx);
}

struct hd_step hd_forward_send(struct hd_call *call)
{
    struct hd_forwarding *forwarding = call->forwarding;
    struct hd_forwards *forwards = hd_api_forwards(call->api);
    const struct hd_http_request *request = hd_exchange_request(call->exchange);
    const struct hd_client_options options = {.method = hd_method_name(request->method),
                                              .url = forwarding->message.url,
                                              .headers = forwarding->message.lines,
                                              .header_count = forwarding->message.line_count,
                                              .body = request->body.len > 0 ? request->body
                                                                            : hd_slice(NULL, 0),
                                              .connect_ms = CONNECT_MS,
                                              .is_direct = true,
                                              .is_verbatim = true,
                                              .is_trusted = true,
                                              .max_body = MAX_WHOLE,
                                              .on_head = on_peer_head,
                                              .on_data = on_peer_data};
    int err;

    forwarding->is_moved = forwarding->is_streaming = forwarding->is_paused = false;
    forwarding->sent = 0;
    hd_buf_init(&forwarding->pending, MAX_PENDING);
    err = hd_client_send(forwards->client, &options, on_peer_answer, forwarding,
                         &forwarding->request);
    if (err)
        return hd_step_fail(err);
    forwards->count++;
    hd_peer_watch_start(forwards->watches, &forwarding->watch, forwarding->server, on_peer_lost,
                        forwarding);
    hd_exchange_on_gone(call->exchange, on_client_gone, forwarding);
    return HD_WAIT;
}

/* ---- all of them ------------------------------------------------------ */

uint64_t hd_forwards_count(const struct hd_forwards *forwards)
{
    return forwards ? forwards->count : 0;
}

int hd_forwards_create(struct hd_app *app, struct hd_forwards **out)
{
    struct hd_forwards *forwards;
    int err;

    *out = NULL;
    if (!hd_cluster_is_on(app->cluster))
        return 0;
    forwards = hd_calloc(1, sizeof(*forwards));
    if (!forwards)
        return HD_ENOMEM;
    err = hd_forwarded_key_derive(hd_slice_cstr(app->config->cluster_key), &forwards->key);
    if (!err)
        err = hd_client_create(app->loop, &forwards->client);
    if (!err)
        err = hd_peer_watches_create(app, forwards->client, &forwards->watches);
    if (err) {
        hd_client_destroy(forwards->client);
        hd_free(forwards);
        return err;
    }
    hd_client_set_connections(forwards->client, 0);
    *out = forwards;
    return 0;
}

void hd_forwards_destroy(struct hd_forwards *forwards)
{
    if (!forwards)
        return;
    hd_client_destroy(forwards->client);
    hd_peer_watches_destroy(forwards->watches);
    hd_free(forwards);
}

struct hd_client *hd_forwards_client(struct hd_forwards *forwards)
{
    return forwards->client;
}

struct hd_peer_watches *hd_forwards_watches(struct hd_forwards *forwards)
{
    return forwards->watches;
}

const struct hd_forwarded_key *hd_forwards_key(const struct hd_forwards *forwards)
{
    return &forwards->key;
}
