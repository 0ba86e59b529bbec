#include "server/leader_work.h"

#include "app/app.h"
#include "base/log.h"
#include "cluster/cluster.h"
#include "schedule/cron.h"
#include "search/thread_texts.h"
#include "webhook/webhook.h"

static void do_leader_work(struct hd_app *app)
{
    if (!app->texts) /* closed */
        return;
    hd_scheduler_wake(app->scheduler);
    hd_webhooks_recover(app->webhooks);
    hd_thread_indexer_compare(app->texts);
}

static void on_server_gone(void *ctx, struct hd_slice id)
{
    struct hd_app *app = ctx;

    (void)id;
    if (hd_cluster_is_leader(app->cluster))
        do_leader_work(app);
}

static void on_leader(void *ctx)
{
    hd_log(HD_LOG_INFO, "cluster", "this server is the leader");
    do_leader_work(ctx);
}

/* What was due meanwhile was left alone. */
static void on_doubt(void *ctx, bool in_doubt)
{
    struct hd_app *app = ctx;

    if (!in_doubt && hd_cluster_is_leader(app->cluster))
        do_leader_work(app);
}

int hd_leader_work_start(struct hd_app *app)
{
    int err = hd_cluster_on_gone(app->cluster, on_server_gone, app);

    if (!err)
        err = hd_cluster_on_leader(app->cluster, on_leader, app);
    return err ? err : hd_cluster_on_doubt(app->cluster, on_doubt, app);
}
