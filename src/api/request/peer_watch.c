#include "api/request/peer_watch.h"

#include <stdio.h>
#include <string.h>
#include <uv.h>

#include "api/request/forward.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "cluster/cluster.h"
#include "net/http_client.h"

#define CHECK_MS 1000
#define QUIET_US 2000000 /* a silent server is asked after this time */
#define CONNECT_MS 3000
#define ASK_MS 6000
#define MAX_OK ((size_t)64 << 10)

struct hd_peer_watches {
    struct hd_app *app;
    struct hd_client *client;
    uv_timer_t timer;
    struct hd_peer_watch *first;
    struct peer_check *checks;
};

/* A question for /ok. */
struct peer_question {
    hd_peer_watches_fn fn;
    void *ctx;
    struct hd_client_request *request;
};

/* A question because of silence. */
struct peer_check {
    HD_DLINK(struct peer_check) all;
    struct hd_peer_watches *watches;
    char server[HD_UUID_SIZE];
    int64_t asked_at;
};

/* ---- questions -------------------------------------------------------- */

static void on_peer_ok(void *ctx, const struct hd_client_response *response)
{
    struct peer_question *question = ctx;

    question->fn(question->ctx, !response->error && response->status == 200);
    hd_free(question);
}

int hd_peer_watches_ask(struct hd_peer_watches *watches, struct hd_slice server,
                        hd_peer_watches_fn fn, void *ctx)
{
    struct hd_cluster_server found;
    struct peer_question *question;
    struct hd_slice origin;
    char url[300];
    struct hd_client_options options = {.method = "GET",
                                        .url = url,
                                        .timeout_ms = ASK_MS,
                                        .connect_ms = CONNECT_MS,
                                        .is_direct = true,
                                        .is_trusted = true,
                                        .max_body = MAX_OK};
    int err;

    if (!hd_cluster_find(watches->app->cluster, server, &found))
        return HD_ENOTFOUND;
    origin = hd_forward_origin(found.address);
    (void)snprintf(url, sizeof(url), "%.*s/ok", (int)origin.len, origin.ptr);
    question = hd_calloc(1, sizeof(*question));
    if (!question)
        return HD_ENOMEM;
    question->fn = fn;
    question->ctx = ctx;
    err = hd_client_send(watches->client, &options, on_peer_ok, question, &question->request);
    if (err)
        hd_free(question);
    return err;
}

/* ---- watches ---------------------------------------------------------- */

static bool is_same_server(const char *a, const char *b)
{
    return memcmp(a, b, HD_UUID_SIZE) == 0;
}

/* The next watch of the server that was started before; a callback may have ended others. */
static struct hd_peer_watch *find_watch(const struct hd_peer_watches *watches, const char *server,
                                        int64_t before)
{
    struct hd_peer_watch *watch = watches->first;

    while (watch && (!is_same_server(watch->server, server) || watch->started_at > before))
        watch = watch->all.next;
    return watch;
}

static void on_checked(void *ctx, bool answers)
{
    struct peer_check *check = ctx;
    struct hd_peer_watches *watches = check->watches;
    struct hd_peer_watch *watch;

    hd_dlist_remove(check, all);
    for (watch = watches->first; answers && watch; watch = watch->all.next) {
        if (is_same_server(watch->server, check->server))
            watch->heard_at = hd_clock_monotonic_us();
    }
    if (!answers)
        hd_log(HD_LOG_WARN, "cluster", "server %s does not answer", check->server);
    while (!answers && (watch = find_watch(watches, check->server, check->asked_at)))
        watch->lost(watch->ctx);
    hd_free(check);
}

static void check_server(struct hd_peer_watches *watches, const char *server)
{
    struct peer_check *check = watches->checks;

    while (check && !is_same_server(check->server, server))
        check = check->all.next;
    if (check)
        return;
    check = hd_calloc(1, sizeof(*check));
    if (!check)
        return; /* the timer tries again */
    check->watches = watches;
    check->asked_at = hd_clock_monotonic_us();
    memcpy(check->server, server, HD_UUID_SIZE);
    if (hd_peer_watches_ask(watches, hd_slice_cstr(server), on_checked, check))
        hd_free(check);
    else
        hd_dlist_insert(&watches->checks, check, all);
}

static struct hd_peer_watch *find_gone(const struct hd_peer_watches *watches)
{
    struct hd_cluster_server found;

    for (struct hd_peer_watch *watch = watches->first; watch; watch = watch->all.next) {
        if (!hd_cluster_find(watches->app->cluster, hd_slice_cstr(watch->server), &found))
            return watch;
    }
    return NULL;
}

static void on_peers_timer(uv_timer_t *timer)
{
    struct hd_peer_watches *watches = timer->data;
    int64_t now = hd_clock_monotonic_us();
    struct hd_peer_watch *watch;

    while ((watch = find_gone(watches)))
        watch->lost(watch->ctx);
    for (watch = watches->first; watch; watch = watch->all.next) {
        if (now - watch->heard_at > QUIET_US)
            check_server(watches, watch->server);
    }
    if (!watches->first)
        uv_timer_stop(timer);
}

void hd_peer_watch_start(struct hd_peer_watches *watches, struct hd_peer_watch *watch,
                         struct hd_slice server, void (*lost)(void *ctx), void *ctx)
{
    *watch = (struct hd_peer_watch){.lost = lost, .ctx = ctx};
    memcpy(watch->server, server.ptr, server.len < HD_UUID_LEN ? server.len : HD_UUID_LEN);
    watch->heard_at = watch->started_at = hd_clock_monotonic_us();
    if (!watches->first)
        uv_timer_start(&watches->timer, on_peers_timer, CHECK_MS, CHECK_MS);
    hd_dlist_insert(&watches->first, watch, all);
}

void hd_peer_watch_touch(struct hd_peer_watch *watch)
{
    watch->heard_at = hd_clock_monotonic_us();
}

void hd_peer_watch_stop(struct hd_peer_watch *watch)
{
    hd_dlist_remove(watch, all);
}

/* ---- public functions ------------------------------------------------- */

int hd_peer_watches_create(struct hd_app *app, struct hd_client *client,
                           struct hd_peer_watches **out)
{
    struct hd_peer_watches *watches = hd_calloc(1, sizeof(*watches));

    if (!watches)
        return HD_ENOMEM;
    if (uv_timer_init(app->loop, &watches->timer)) {
        hd_free(watches);
        return HD_EIO;
    }
    watches->app = app;
    watches->client = client;
    watches->timer.data = watches;
    uv_unref((uv_handle_t *)&watches->timer);
    *out = watches;
    return 0;
}

static void on_watches_closed(uv_handle_t *handle)
{
    hd_free(handle->data);
}

void hd_peer_watches_destroy(struct hd_peer_watches *watches)
{
    if (watches)
        uv_close((uv_handle_t *)&watches->timer, on_watches_closed);
}
