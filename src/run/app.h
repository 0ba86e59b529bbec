/*
 * The server's parts, for those that need them all. Made by hd_app_open() and
 * the same until hd_app_close(); what is behind the pointers belongs to the
 * loop, but for the store, the configuration and the graphs, which every thread
 * may use.
 */
#ifndef HD_RUN_APP_H
#define HD_RUN_APP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "base/compiler.h"
#include "base/error.h"
#include "base/slice.h"
#include "graph/graph.h"

struct heddle;
struct hd_config;
struct hd_defer;
struct hd_engine;
struct hd_feeds;
struct hd_queue;

/* A graph that can be run, under the id that clients know it by. */
struct hd_app_graph {
    struct hd_slice id;
    char assistant_id[37]; /* of its system assistant */
    struct hd_graph *graph;
    struct hd_slice description;
};

struct hd_app {
    uv_loop_t *loop;
    struct heddle *store;
    const struct hd_config *config;
    struct hd_app_graph *graphs;
    size_t graph_count;
    int64_t started_at;

    struct hd_defer *defer;
    struct hd_engine *engine;
    struct hd_feeds *feeds;
    struct hd_queue *queue;
};

/*
 * Opens the store that the configuration names and everything on it; `loop`,
 * `config` and the graphs must be set before. What was in flight goes on.
 */
HD_MUST_CHECK int hd_app_open(struct hd_app *app, struct hd_fault *fault);
/* Nothing may be at work. The loop must run until its handles are closed; the store last. */
void hd_app_close(struct hd_app *app);
void hd_app_close_store(struct hd_app *app);

/* NULL: there is no graph of that id. */
const struct hd_app_graph *hd_app_graph(const struct hd_app *app, struct hd_slice id);

#endif
