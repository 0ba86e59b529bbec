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
struct hd_delegation;
struct hd_agents;
struct hd_audit;
struct hd_engine;
struct hd_feeds;
struct hd_gate;
struct hd_http;
struct hd_limits;
struct hd_queue;
struct hd_recorder;
struct hd_recording;
struct hd_scheduler;
struct hd_sweeper;
struct hd_webhooks;

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
    int port; /* that the server listens on; 0: not yet. The loop's */

    struct hd_defer *defer;
    struct hd_limits *limits; /* for each principal; NULL: none */
    struct hd_audit *audit;   /* NULL: none */
    struct hd_engine *engine;
    struct hd_agents *agents;
    struct hd_delegation *delegation; /* assistants as tools of others */
    struct hd_recording *recording;   /* NULL: nothing is recorded */
    struct hd_recorder *recorder;     /* that agents use; set before opening: that one */
    struct hd_feeds *feeds;
    struct hd_queue *queue;
    struct hd_http *http; /* for requests of the server's own, not the graphs' */
    struct hd_gate *gate; /* NULL: nobody authenticates */
    struct hd_webhooks *webhooks;
    struct hd_scheduler *scheduler; /* of crons */
    struct hd_sweeper *sweeper;

    uv_timer_t drain_timer;
    unsigned draining; /* parts that are not quiet yet */
    void (*drained)(void *ctx);
    void *drained_ctx;
};

/*
 * Opens the store that the configuration names and everything on it; `loop`,
 * `config` and the graphs must be set before. What was in flight goes on.
 */
HD_MUST_CHECK int hd_app_open(struct hd_app *app, struct hd_fault *fault);
/*
 * For the end of the process: starts nothing more, stops runs so that the next process goes on
 * with them, and delivers what webhooks it can within the configured time. `done`, later,
 * when all is quiet.
 */
void hd_app_drain(struct hd_app *app, void (*done)(void *ctx), void *ctx);
/* Nothing may be at work. The loop must run until its handles are closed; the store last. */
void hd_app_close(struct hd_app *app);
void hd_app_close_store(struct hd_app *app);

/* NULL: there is no graph of that id. */
const struct hd_app_graph *hd_app_graph(const struct hd_app *app, struct hd_slice id);

#endif
