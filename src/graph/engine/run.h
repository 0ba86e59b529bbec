/*
 * The engine's public interface: engines and runs.
 *
 * An engine belongs to one uv loop and one store. A run executes a graph on a thread: it loads the
 * thread's checkpoint, runs supersteps as LangGraph does and saves a checkpoint after each. It ends
 * when no task is left, at an interrupt or a breakpoint, on a failure, or when it is cancelled. The
 * stored thread can always be resumed.
 *
 * All functions and callbacks run on the loop's thread. Events arrive during the run; `on_done` is
 * called exactly once, last.
 */
#ifndef HD_GRAPH_ENGINE_RUN_H
#define HD_GRAPH_ENGINE_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "base/compiler.h"
#include "base/slice.h"
#include "graph/decl/graph.h"
#include "store/guard.h"
#include "value/val.h"

struct heddle;
struct hd_engine;
struct hd_patience;
struct hd_origin;
struct hd_outgoing;
struct hd_engine_run;
struct hd_task;
struct hd_event;

/* Checkpoint metadata of a delegated run: the id of the task that waits for it. */
#define HD_META_TASK "parent_task_id"

enum hd_durability {
    HD_DURABLE_ASYNC, /* saves while the next step runs */
    HD_DURABLE_SYNC,  /* a step starts when the previous checkpoint is stored */
    HD_DURABLE_EXIT   /* saves once, at the end */
};

/*
 * `is_direct`: store calls never wait for a disk or a network (memory:), so they run on the loop.
 * `store` must outlive the engine; NULL: nothing is saved and every run starts empty.
 */
HD_MUST_CHECK int hd_engine_create(struct heddle *store, uv_loop_t *loop, bool is_direct,
                                   struct hd_engine **out);
/* No run may be active. Memory is freed when the loop has closed the engine's handles. */
void hd_engine_destroy(struct hd_engine *engine);
/* Loads wait while the store is unavailable. `patience` must outlive the engine's calls. */
void hd_engine_set_patience(struct hd_engine *engine, struct hd_patience *patience);
/*
 * Suspends all runs of the engine: no superstep, task or tool call begins, nothing is sent to or
 * read from other servers. Work that goes on by itself, such as a program that is a tool, ends, and
 * its result waits. A cancelled run ends all the same.
 */
void hd_engine_suspend(struct hd_engine *engine, bool is_suspended);
/*
 * Restricts the destinations of outgoing requests (outgoing.h). Call before the first run;
 * `outgoing` must outlive the engine; NULL: no restriction.
 */
void hd_engine_set_outgoing(struct hd_engine *engine, const struct hd_outgoing *outgoing);

/* Breakpoints: the named nodes, or all. */
struct hd_stops {
    bool all;
    const struct hd_slice *names;
    size_t count;
};

enum hd_engine_run_status {
    HD_ENGINE_RUN_DONE,
    HD_ENGINE_RUN_INTERRUPTED, /* by an interrupt or a breakpoint */
    HD_ENGINE_RUN_FAILED,
    HD_ENGINE_RUN_CANCELLED
};

/*
 * The outcome of a run and the thread's position, as hd_state_get() would return it, without a
 * read. Valid during on_done.
 */
struct hd_engine_run_result {
    enum hd_engine_run_status status;
    const struct hd_val *output;     /* the graph's output; NULL when it failed or was cancelled */
    const struct hd_val *interrupts; /* list of interrupt records; NULL: none */
    const char *error_type;          /* of HD_ENGINE_RUN_FAILED: the Python exception class */
    const char *error_text;

    /*
     * The last checkpoint of the root graph, or else the initial one. Empty: none, or it could not
     * be stored.
     */
    const char *checkpoint_id;
    int64_t step;       /* of that checkpoint, from its metadata; -2: none */
    int64_t stopped_at; /* the step that was running, or the next one */
    /* Message chunks that models sent, and (list) the tools that a cancel stopped. */
    int64_t chunk_count;
    const struct hd_val *tools; /* NULL: none */
    const struct hd_val *next;  /* list of the next nodes; NULL: out of memory */
    const struct hd_val
        *asked; /* object: task id to list of interrupt records; NULL: out of memory */
};

typedef void (*hd_event_fn)(void *ctx, const struct hd_event *event);
typedef void (*hd_engine_run_done_fn)(void *ctx, const struct hd_engine_run_result *result);

/* Zero-initialise. Everything is borrowed for the call, but `graph` until the run is freed: one
 * loop iteration after on_done. */
struct hd_engine_run_options {
    const struct hd_graph *graph;
    struct hd_slice principal; /* owner of the thread */
    struct hd_slice actor;     /* user that started the run; empty: no authentication */
    struct hd_slice thread;
    struct hd_guard guard;               /* for all its saves: see struct hd_put_extras */
    struct hd_slice root;                /* root namespace of its checkpoints: ns.h; empty: "" */
    struct hd_slice checkpoint_id;       /* empty: the latest */
    bool is_own;                         /* checkpoint_id is its own, or that of its question: */
                                         /* the run goes on there, without a fork */
    const struct hd_val *checkpoint_map; /* namespace (relative) to checkpoint id; NULL: none */
    const struct hd_val *input;          /* NULL or null: continue from the checkpoint */
    const struct hd_val *command;        /* a command record, instead of an input */
    enum hd_durability durability;
    struct hd_stops before, after; /* empty: the graph's own breakpoints */
    int recursion_limit;           /* 0: the graph's */
    const struct hd_val *config;   /* `configurable`; object or NULL */
    const struct hd_val *secrets;  /* values of the markers in `config` (secret.h); or NULL */
    const struct hd_val *context;
    const struct hd_val *metadata; /* members are added to each checkpoint's metadata */
    const struct hd_val *tags;     /* list of strings, shown with messages of models; or NULL */
    bool shows_output;             /* events show the graph's output channels, not its state */
    bool asks_again;               /* ignores resume values that an earlier run stored */
    /*
     * The task of another run that waits for this one: events show this run as that task's
     * subgraph. Must outlive the events. NULL: none.
     */
    struct hd_task *around;
    /* Receives the initial checkpoints, for a rollback (origin.h); NULL: not recorded. */
    struct hd_origin **origins;

    hd_event_fn on_event; /* may be NULL */
    hd_engine_run_done_fn on_done;
    void *ctx;
};

/* Never calls back before it returns. HD_EINVAL: invalid root. */
HD_MUST_CHECK int hd_engine_run_start(struct hd_engine *engine,
                                      const struct hd_engine_run_options *options,
                                      struct hd_engine_run **out);
/*
 * Cancels all tasks at once; the run ends when its saves are done. No effect on a run that is
 * ending. May be called from on_event.
 */
void hd_engine_run_cancel(struct hd_engine_run *run);
/*
 * Cancels the run but keeps partial output of the root graph: the model's partial answer becomes a
 * message marked as stopped, in a separate checkpoint. Only if no other task of the step is
 * unfinished; a later run repeats the others.
 */
void hd_engine_run_stop(struct hd_engine_run *run);

/*
 * Applies back-pressure: a held run reads nothing more from models until it is released, because
 * the event consumer cannot keep up.
 */
void hd_engine_run_hold(struct hd_engine_run *run, bool is_held);

#endif
