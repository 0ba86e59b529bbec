#include "api/request/peer.h"

#include "api/request/forward.h"
#include "api/request/peer_watch.h"
#include "auth/forwarded.h"
#include "base/alloc.h"
#include "base/log.h"
#include "cluster/cluster.h"
#include "config/config.h"
#include "net/http_client.h"

#define CONNECT_MS 3000
#define MAX_ANSWER ((size_t)1 << 20)

struct hd_peer_request {
    struct hd_peer_watch watch;
    struct hd_client_request *request; /* NULL: it has ended */
    hd_peer_fn fn;
    void *ctx;
};

bool hd_peer_is_caller(const struct hd_call *call)
{
    return call->forwarded != NULL;
}

void hd_peer_cancel(struct hd_peer_request *request)
{
    if (request->request)
        hd_client_cancel(request->request);
    hd_peer_watch_stop(&request->watch);
    hd_free(request);
}

static void finish(struct hd_peer_request *request, int status, struct hd_slice body)
{
    hd_peer_fn fn = request->fn;
    void *ctx = request->ctx;

    if (status != 200)
        hd_log(HD_LOG_WARN, "cluster", "a request to the server %s failed, status %d",
               request->watch.server, status);
    hd_peer_cancel(request);
    fn(ctx, status, body);
}

static void on_answer(void *ctx, const struct hd_client_response *response)
{
    struct hd_peer_request *request = ctx;

    request->request = NULL;
    finish(request, response->error ? 0 : (int)response->status, response->body);
}

static void on_server_lost(void *ctx)
{
    finish(ctx, 0, hd_slice(NULL, 0));
}

/* ---- sending ---------------------------------------------------------- */

static int sign(const struct hd_call *call, struct hd_slice server, struct hd_slice path,
                struct hd_slice body, struct hd_buf *out)
{
    const struct hd_forwarded_target target = {.method = HD_S("POST"), .path = path};
    struct hd_forwarded forwarded = {.source = hd_cluster_self(call->app->cluster),
                                     .target = server,
                                     .identity = call->identity,
                                     .principal = call->actor,
                                     .role = HD_ROLE_OWNER};
    int err = hd_buf_append_slice(out, HD_FORWARDED_HEADER);

    if (!err)
        err = hd_buf_append_slice(out, HD_S(": "));
    if (!err)
        err = hd_sha256(body, forwarded.body);
    if (!err)
        err = hd_forwarded_write(hd_forwards_key(hd_api_forwards(call->api)), &forwarded, &target,
                                 out);
    return err ? err : hd_buf_append_byte(out, '\0');
}

static int post(struct hd_peer_request *request, const struct hd_call *call, struct hd_slice server,
                const char *url, struct hd_slice path, struct hd_slice body)
{
    struct hd_buf signature;
    const char *lines[] = {"Content-Type: application/json", "Expect:", NULL};
    struct hd_client_options options = {.method = "POST",
                                        .url = url,
                                        .headers = lines,
                                        .header_count = HD_COUNT(lines),
                                        .body = body,
                                        .connect_ms = CONNECT_MS,
                                        .is_direct = true,
                                        .is_verbatim = true,
                                        .is_trusted = true,
                                        .max_body = MAX_ANSWER};
    int err;

    hd_buf_init(&signature, 2 * HD_FORWARDED_MAX);
    err = sign(call, server, path, body, &signature);
    lines[2] = signature.ptr;
    if (!err)
        err = hd_client_send(hd_forwards_client(hd_api_forwards(call->api)), &options, on_answer,
                             request, &request->request);
    hd_buf_fini(&signature);
    return err;
}

int hd_peer_send(const struct hd_call *call, struct hd_slice server, const char *path,
                 struct hd_slice body, hd_peer_fn fn, void *ctx, struct hd_peer_request **out)
{
    const char *prefix = call->app->config->http_mount_prefix;
    struct hd_cluster_server found;
    struct hd_peer_request *request;
    struct hd_slice origin;
    char *whole, *url;
    int err;

    if (!hd_cluster_find(call->app->cluster, server, &found))
        return HD_ENOTFOUND;
    origin = hd_forward_origin(found.address);
    whole = hd_arena_printf(call->arena, "%s%s", prefix, path);
    url = whole ? hd_arena_printf(call->arena, "%.*s%s", (int)origin.len, origin.ptr, whole) : NULL;
    request = url ? hd_calloc(1, sizeof(*request)) : NULL;
    if (!request)
        return HD_ENOMEM;
    request->fn = fn;
    request->ctx = ctx;
    err = post(request, call, server, url, hd_slice_cstr(whole), body);
    if (err) {
        hd_peer_cancel(request);
        return err;
    }
    hd_peer_watch_start(hd_forwards_watches(hd_api_forwards(call->api)), &request->watch, server,
                        on_server_lost, request);
    *out = request;
    return 0;
}
