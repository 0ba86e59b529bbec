#include "api/disconnect.h"

#include "api/request/forward.h"
#include "api/request/peer_watch.h"
#include "auth/forwarded.h"
#include "base/alloc.h"
#include "base/log.h"
#include "http/server.h"
#include "run/queue.h"

#define MAX_IDS 4096

/* Outlives the call. */
struct disconnect {
    struct hd_app *app;
    struct hd_arena arena;
    struct hd_slice principal, thread_id, run_id;
};

static void free_disconnect(struct disconnect *disconnect)
{
    hd_arena_fini(&disconnect->arena);
    hd_free(disconnect);
}

static void on_front_asked(void *ctx, bool answers)
{
    struct disconnect *disconnect = ctx;

    if (answers)
        hd_queue_cancel(disconnect->app->queue, disconnect->principal, disconnect->thread_id,
                        disconnect->run_id, HD_CANCEL_INTERRUPT);
    free_disconnect(disconnect);
}

/* A server that stops or dies closes its connections as a client does that leaves. */
static int ask_front(const struct hd_call *call, struct hd_slice thread_id, struct hd_slice run_id)
{
    struct disconnect *disconnect = hd_calloc(1, sizeof(*disconnect));
    int err;

    if (!disconnect)
        return HD_ENOMEM;
    disconnect->app = call->app;
    hd_arena_init(&disconnect->arena, MAX_IDS);
    err = hd_arena_copy(&disconnect->arena, call->principal, &disconnect->principal);
    if (!err)
        err = hd_arena_copy(&disconnect->arena, thread_id, &disconnect->thread_id);
    if (!err)
        err = hd_arena_copy(&disconnect->arena, run_id, &disconnect->run_id);
    if (!err)
        err = hd_peer_watches_ask(hd_forwards_watches(hd_api_forwards(call->api)),
                                  call->forwarded->source, on_front_asked, disconnect);
    if (err)
        free_disconnect(disconnect);
    return err;
}

void hd_disconnect_cancel(struct hd_call *call, struct hd_slice thread_id, struct hd_slice run_id)
{
    int err = 0;

    if (hd_http_server_is_closing(hd_api_server(call->api)))
        return;
    if (call->forwarded)
        err = ask_front(call, thread_id, run_id);
    else
        hd_queue_cancel(call->app->queue, call->principal, thread_id, run_id, HD_CANCEL_INTERRUPT);
    if (err && err != HD_ENOTFOUND)
        hd_log(HD_LOG_WARN, "api", "a run whose client has left goes on: %s", hd_error_text(err));
}
