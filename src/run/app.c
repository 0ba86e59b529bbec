#include "run/app.h"

#include <heddle.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/uuid.h"
#include "graph/run.h"
#include "run/assistant.h"
#include "run/config.h"
#include "run/defer.h"
#include "run/feed.h"
#include "run/queue.h"

#define FEED_IDLE_US (2 * 60 * 1000000LL) /* events are kept that long after the last */

const struct hd_app_graph *hd_app_graph(const struct hd_app *app, struct hd_slice id)
{
    for (size_t i = 0; i < app->graph_count; i++) {
        if (hd_slice_eq(app->graphs[i].id, id))
            return &app->graphs[i];
    }
    return NULL;
}

static int open_store(struct hd_app *app, struct hd_fault *fault)
{
    struct heddle_error error = {0};
    int err = heddle_open(&app->store, app->config->store, &error);

    return err ? hd_fault_set(fault, err, "%s: %s", app->config->store, error.text) : 0;
}

static int open_parts(struct hd_app *app)
{
    const struct hd_config *config = app->config;
    const struct hd_feed_limits limits = {.feed_bytes = config->stream_retention_bytes,
                                          .total_bytes = config->stream_memory,
                                          .idle_us = FEED_IDLE_US};
    bool is_direct = strncmp(config->store, "memory:", 7) == 0;
    int err = hd_defer_create(app->loop, app->store, is_direct, &app->defer);

    if (!err)
        err = hd_engine_create(app->store, app->loop, is_direct, &app->engine);
    if (!err)
        err = hd_feeds_create(app->loop, app->store, &limits, &app->feeds);
    if (!err)
        err = hd_queue_create(app, &app->queue);
    return err;
}

int hd_app_open(struct hd_app *app, struct hd_fault *fault)
{
    int err = open_store(app, fault);

    app->started_at = hd_clock_now_us();
    if (!err)
        err = open_parts(app);
    if (!err)
        err = hd_assistants_install(app, fault);
    if (!err)
        err = hd_queue_recover(app->queue, fault);
    if (err)
        hd_app_close(app);
    return err;
}

void hd_app_close(struct hd_app *app)
{
    hd_queue_destroy(app->queue);
    hd_feeds_destroy(app->feeds);
    hd_engine_destroy(app->engine);
    hd_defer_destroy(app->defer);
    app->queue = NULL;
    app->feeds = NULL;
    app->engine = NULL;
    app->defer = NULL;
}

void hd_app_close_store(struct hd_app *app)
{
    heddle_close(app->store);
    app->store = NULL;
}
