/*
 * The server's parts, for those that need them all. Made by hd_app_open() and
 * the same until hd_app_close(); what is behind the pointers belongs to the
 * loop, but for the store, the configuration and the graphs, which every thread
 * may use.
 */
#ifndef HD_APP_APP_H
#define HD_APP_APP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/slice.h"
#include "graph/decl/graph.h"
#include "runtime/runtime.h"

struct heddle;
struct hd_config;
struct hd_defer;
struct hd_delegation;
struct hd_agents;
struct hd_audit;
struct hd_embedder;
struct hd_engine;
struct hd_event_logs;
struct hd_auth_service;
struct hd_store_lock;
struct hd_client;
struct hd_limits;
struct hd_worker_access;
struct hd_patience;
struct hd_queue;
struct hd_recorder;
struct hd_recording;
struct hd_scheduler;
struct hd_sweeper;
struct hd_thread_indexer;
struct hd_webhooks;

/*
 * What workers say of a graph that is theirs. It never changes: another takes its place, and the
 * old ones stay until the end, since threads may be reading them.
 */
struct hd_app_form {
    struct hd_graph *graph;  /* to read what is stored with (graph/state/worker_graph.h) */
    struct hd_slice schemas; /* JSON: {"input", "output", "state", "config", "context"} or empty */
    struct hd_slice error;   /* JSON, when it could not be loaded: {"type", "message", …} */
    bool has_types;          /* workers know more of its schemas: the operation `schemas` */
    bool is_told;            /* by a worker; false: none was ready yet */
    bool has_structure;      /* false: nobody knows; what is stored is shown as it is */
    struct hd_app_form *older;
    struct hd_buf text, schemas_text, error_text; /* what was said, and the texts above */
};

/* A graph that can be run, under the id that clients know it by. */
struct hd_app_graph {
    struct hd_slice id;
    char assistant_id[37];  /* of its system assistant */
    struct hd_graph *graph; /* NULL: it is remote */
    struct hd_slice description;
    bool is_remote; /* its code is in workers */
    enum hd_rt_language language;
    struct hd_app_form *form; /* of a remote one: only by hd_app_form() */
};

#define HD_APP_HOOKS 8
#define HD_APP_PASS_BUCKETS 64

struct hd_app_hook {
    hd_rt_ready_fn fn;
    void *ctx;
};

struct hd_app {
    uv_loop_t *loop;
    struct heddle *store;
    const struct hd_config *config;
    struct hd_app_graph *graphs;
    size_t graph_count;
    int64_t started_at;
    int port;                   /* that the server listens on; 0: not yet. The loop's */
    struct hd_store_lock *hold; /* on the store: other servers are refused */
    void (*lost)(void *ctx, const char *text); /* the hold, on another thread; set before opening */
    void *lost_ctx;

    struct hd_patience *patience; /* of runs with a store that is away */
    struct hd_defer *defer;
    struct hd_limits *limits; /* for each principal; NULL: none */
    struct hd_audit *audit;   /* NULL: none */
    struct hd_engine *engine;
    struct hd_agents *agents;
    struct hd_delegation *delegation; /* assistants as tools of others */
    struct hd_recording *recording;   /* NULL: nothing is recorded */
    struct hd_recorder *recorder;     /* that agents use; set before opening: that one */
    struct hd_event_logs *feeds;
    struct hd_queue *queue;
    struct hd_client *http;       /* for requests of the server's own, not the graphs' */
    struct hd_auth_service *gate; /* NULL: no authentication */
    struct hd_worker_access
        *passes[HD_APP_PASS_BUCKETS]; /* of calls that are open: worker_access.h */
    struct hd_webhooks *webhooks;
    struct hd_scheduler *scheduler; /* of crons */
    struct hd_sweeper *sweeper;
    struct hd_thread_indexer *texts; /* the search index of threads */

    struct hd_arena runtime_arena; /* what the settings point to */
    struct hd_rt_settings runtime_settings;
    struct hd_embedder *embedder; /* NULL: items are not found by their meaning */
    struct hd_runtime *runtime;   /* NULL: no graph and nothing else is in workers */
    struct hd_app_hook hooks[HD_APP_HOOKS];
    size_t hook_count;

    uv_timer_t drain_timer;
    unsigned draining; /* parts that are not quiet yet */
    void (*drained)(void *ctx);
    void *drained_ctx;
};

/* NULL: there is no graph of that id. */
const struct hd_app_graph *hd_app_graph(const struct hd_app *app, struct hd_slice id);

/* Of a remote graph, at this moment; it stays valid. For any thread. NULL: native. */
const struct hd_app_form *hd_app_form(const struct hd_app_graph *graph);
/* What states are read with, native or not; it stays valid. For any thread. */
const struct hd_graph *hd_app_shape(const struct hd_app_graph *graph);

/*
 * `fn` hears of each worker that is ready, after the graphs' forms are those that it told. For
 * parts that hd_app_open() makes.
 */
HD_MUST_CHECK int hd_app_on_ready(struct hd_app *app, hd_rt_ready_fn fn, void *ctx);

#endif
