#include "server/leader_work.h"

#include <string.h>
#include <uv.h>

#include "app/app.h"
#include "base/alloc.h"
#include "base/log.h"
#include "cluster/cluster.h"
#include "schedule/cron.h"
#include "search/thread_texts.h"
#include "webhook/webhook.h"

#define LOOK_MS 1000

struct hd_leader_work {
    struct hd_app *app;
    uv_timer_t timer;
    bool is_leader; /* at the last look */
    struct hd_cluster_server servers[HD_CLUSTER_MAX_SERVERS], seen[HD_CLUSTER_MAX_SERVERS];
    size_t count; /* of `servers`, which were alive at the last look */
};

/* Reads the servers; true if one of those of the last look is gone. */
static bool has_lost_one(struct hd_leader_work *work)
{
    size_t count = hd_cluster_list(work->app->cluster, work->seen), at = 0;
    bool is_gone = false;

    for (size_t i = 0; i < work->count && !is_gone; i++) { /* both are sorted */
        while (at < count && strcmp(work->seen[at].id, work->servers[i].id) < 0)
            at++;
        is_gone = at == count || strcmp(work->seen[at].id, work->servers[i].id) != 0;
    }
    memcpy(work->servers, work->seen, count * sizeof(*work->seen));
    work->count = count;
    return is_gone;
}

static void on_leader_timer(uv_timer_t *timer)
{
    struct hd_leader_work *work = timer->data;
    bool was_leader = work->is_leader, has_lost = has_lost_one(work);

    work->is_leader = hd_cluster_is_leader(work->app->cluster);
    if (!work->is_leader || (was_leader && !has_lost))
        return;
    if (!was_leader)
        hd_log(HD_LOG_INFO, "cluster", "this server is the leader");
    hd_scheduler_wake(work->app->scheduler);
    hd_webhooks_recover(work->app->webhooks);
    hd_thread_indexer_compare(work->app->texts);
}

int hd_leader_work_create(struct hd_app *app, struct hd_leader_work **out)
{
    struct hd_leader_work *work;

    *out = NULL;
    if (!hd_cluster_is_on(app->cluster))
        return 0;
    work = hd_calloc(1, sizeof(*work));
    if (!work)
        return HD_ENOMEM;
    if (uv_timer_init(app->loop, &work->timer)) {
        hd_free(work);
        return HD_EIO;
    }
    work->app = app;
    work->timer.data = work;
    uv_timer_start(&work->timer, on_leader_timer, LOOK_MS, LOOK_MS);
    *out = work;
    return 0;
}

static void on_leader_work_closed(uv_handle_t *handle)
{
    hd_free(handle->data);
}

void hd_leader_work_destroy(struct hd_leader_work *work)
{
    if (work)
        uv_close((uv_handle_t *)&work->timer, on_leader_work_closed);
}
