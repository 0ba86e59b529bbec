/*
 * An engine and its runs, from the inside. Callers that only start runs include run.h.
 *
 * Ownership: an engine has runs; a run has one root loop, whose tasks may have inner loops
 * (subgraphs). Values are reference counted; every other object has one owner.
 */
#ifndef HD_GRAPH_ENGINE_ENGINE_H
#define HD_GRAPH_ENGINE_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "base/uuid.h"
#include "graph/engine/extension.h"
#include "graph/engine/run.h"

struct hd_client;
struct hd_loop;
struct hd_patience;
struct hd_list_cache;
struct hd_save;
struct hd_val;

#define HD_ENGINE_LIST_CACHE ((size_t)64 << 20) /* bytes of lists kept for later runs */

struct hd_engine {
    struct heddle *store;
    uv_loop_t *uv;
    bool is_direct;
    uv_async_t async;
    uv_prepare_t sender; /* submits the store calls queued in this loop iteration */
    unsigned open_handles;
    uv_mutex_t lock;
    struct hd_save *finished; /* by other threads; newest first */
    struct hd_save *spare;    /* for reuse */
    unsigned spare_count;
    size_t in_flight;
    struct hd_client *http;             /* created on first use */
    const struct hd_outgoing *outgoing; /* allowed destinations; NULL: all */
    struct hd_list_cache *list_cache;
    struct hd_patience *patience; /* retries while the store is unavailable; NULL: none */
    struct hd_engine_extension *extension;
    bool is_suspended;      /* hd_engine_suspend() */
    struct hd_loop *parked; /* they wait for its end */
};

#define HD_ENGINE_SUSPENDED_MS 20 /* timers that are due while it is suspended try again so often */

/* The client for requests to other servers, created on first use. NULL: no memory. */
struct hd_client *hd_engine_http(struct hd_engine *engine);

/* Subgraphs of a replayed run look up checkpoints from before the replay; each node once. */
struct hd_replay {
    char id[HD_UUID_SIZE];
    struct hd_val *visited; /* list of strings */
};

struct hd_engine_run {
    struct hd_engine *engine;
    struct hd_engine_run_options options; /* the run owns its slices and values */
    struct hd_loop *root;
    char floor[HD_UUID_SIZE]; /* the greatest checkpoint id read or created so far */
    int64_t recursion_limit;
    struct hd_val *resume_map; /* object: interrupt id to resume value; NULL: none */
    struct hd_replay *replay;
    struct hd_val *seen_messages; /* object: ids that the messages mode has emitted */
    bool is_cancelled;
    bool is_settling; /* hd_engine_run_stop() */
    bool is_held;     /* hd_engine_run_hold() */
    struct hd_engine_run_extension *extension;
    int64_t chunk_count;  /* message chunks that models have sent */
    struct hd_val *tools; /* list: the names of running tools; NULL: none yet */
    int telling;          /* nested calls of on_event */
    uv_timer_t starter;   /* starts the run, or cancels it after a cancel from on_event */
};

static inline bool hd_run_listens(const struct hd_engine_run *run)
{
    return run->options.on_event != NULL;
}

#endif
