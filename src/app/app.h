/*
 * All parts of the server. hd_server_open() creates them; the pointers do not change until
 * hd_server_close(). The parts belong to the loop, except the store, the configuration and the
 * graphs, which every thread may use.
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
struct hd_cluster;
struct hd_defer;
struct hd_delegation;
struct hd_deleted_threads;
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
struct hd_room_cascade_jobs;
struct hd_room_reminders;
struct hd_takeover;
struct hd_unsettled;
struct hd_thread_indexer;
struct hd_webhooks;

/*
 * The description that workers sent of a remote graph. It is immutable: a new form replaces it, and
 * old forms are freed at the end, since threads may still read them.
 */
struct hd_app_form {
    struct hd_graph *graph;  /* to read stored state (graph/state/worker_graph.h) */
    struct hd_slice schemas; /* JSON: {"input", "output", "state", "config", "context"} or empty */
    struct hd_slice error;   /* JSON, if the graph could not be loaded: {"type", "message", …} */
    bool has_types;          /* the worker operation `schemas` returns more detailed schemas */
    bool is_described;       /* sent by a worker; false: no worker was ready yet */
    bool has_structure;      /* false: unknown; stored state is shown as it is */
    struct hd_app_form *older;
    struct hd_buf text, schemas_text, error_text; /* the description; memory of the above */
};

/* A graph that this server runs, with its id for clients. */
struct hd_app_graph {
    struct hd_slice id;
    char assistant_id[37];  /* of its system assistant */
    struct hd_graph *graph; /* NULL: remote */
    struct hd_slice description;
    bool is_remote; /* its code is in workers */
    enum hd_rt_language language;
    struct hd_app_form *form; /* remote graphs only; read it with hd_app_form() */
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
    int port;                   /* that the server listens on; 0: not yet. For the loop */
    struct hd_store_lock *hold; /* lock on the store: other servers are refused */
    struct hd_cluster *cluster; /* the servers of the store; NULL: this one alone */
    /* Called on another thread when the lock was lost; set it before opening. */
    void (*lost)(void *ctx, const char *text);
    void *lost_ctx;

    struct hd_patience *patience; /* retries of runs during a store outage */
    struct hd_defer *defer;
    struct hd_limits *limits; /* per principal; NULL: no limits */
    struct hd_audit *audit;   /* NULL: no audit log */
    struct hd_engine *engine;
    struct hd_agents *agents;
    struct hd_delegation *delegation; /* assistants as tools of agents */
    struct hd_recording *recording;   /* NULL: nothing is recorded */
    struct hd_recorder *recorder; /* for agents, in place of `recording`; set it before opening */
    struct hd_event_logs *event_logs;
    struct hd_queue *queue;
    struct hd_unsettled *unsettled;        /* admissions with an unknown outcome */
    struct hd_room_cascade_jobs *cascades; /* what follows from edits in rooms */
    struct hd_room_reminders *reminders;   /* of messages that wait in rooms */
    struct hd_takeover *takeover;          /* NULL: this server uses its store alone */
    struct hd_client *http;                /* for requests of the server; graphs have another one */
    struct hd_auth_service *auth_service;  /* NULL: no authentication */
    struct hd_worker_access *passes[HD_APP_PASS_BUCKETS]; /* of pending calls: worker_access.h */
    struct hd_webhooks *webhooks;
    struct hd_scheduler *scheduler; /* starts the runs of crons */
    struct hd_sweeper *sweeper;
    struct hd_thread_indexer *texts;            /* the search index of threads */
    struct hd_deleted_threads *deleted_threads; /* by other servers; NULL: no cluster */

    struct hd_arena runtime_arena; /* memory of runtime_settings */
    struct hd_rt_settings runtime_settings;
    struct hd_embedder *embedder; /* NULL: no semantic search of items */
    struct hd_runtime *runtime;   /* NULL: no workers are configured */
    struct hd_app_hook hooks[HD_APP_HOOKS];
    size_t hook_count;

    uv_timer_t drain_timer;
    unsigned draining; /* parts with pending work */
    void (*drained)(void *ctx);
    void *drained_ctx;
};

/* Returns NULL if no graph has this id. */
const struct hd_app_graph *hd_app_graph(const struct hd_app *app, struct hd_slice id);

/* The current form of a remote graph; NULL: native. Valid until hd_server_close(). For any
 * thread. */
const struct hd_app_form *hd_app_form(const struct hd_app_graph *graph);
/* The graph for reading stored state, native or remote. Valid as above. For any thread. */
const struct hd_graph *hd_app_shape(const struct hd_app_graph *graph);

/*
 * Calls `fn` for each worker that becomes ready, after its forms of the graphs are in place. For
 * parts that hd_server_open() creates. HD_ELIMIT: more than HD_APP_HOOKS.
 */
HD_MUST_CHECK int hd_app_on_ready(struct hd_app *app, hd_rt_ready_fn fn, void *ctx);

#endif
