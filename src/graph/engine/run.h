/*
 * Running graphs: the engine's public face.
 *
 * An engine belongs to one uv loop and one store. A run is one call of a graph
 * on a thread: it loads the thread's checkpoint, works in supersteps as
 * LangGraph does, saves a checkpoint after each, and ends when nothing is left
 * to do, a question waits for an answer, a breakpoint is reached, something
 * failed or somebody cancelled it. Whenever it ends, what is stored can be
 * resumed.
 *
 * Everything happens on the loop's thread; calls from other threads are not
 * allowed. Events come while the run works, `on_done` exactly once and last.
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
#include "value/val.h"

struct heddle;
struct hd_engine;
struct hd_patience;
struct hd_origin;
struct hd_outgoing;
struct hd_run;
struct hd_task;
struct hd_event;

/* In the metadata of checkpoints of a run that a task waits for: the task's id. */
#define HD_META_TASK "parent_task_id"

enum hd_durability {
    HD_DURABLE_ASYNC, /* saves while the next step works */
    HD_DURABLE_SYNC,  /* a step begins when the checkpoint before it is stored */
    HD_DURABLE_EXIT   /* saves once, at the end */
};

/*
 * `is_direct`: calls on the store never wait for a disk or a network (memory:),
 * so they are made on the loop. `store` must outlive the engine; NULL: nothing is
 * saved, every run begins empty.
 */
HD_MUST_CHECK int hd_engine_create(struct heddle *store, uv_loop_t *loop, bool is_direct,
                                   struct hd_engine **out);
/* No run may be at work. The memory goes when the loop has closed the engine's handle. */
void hd_engine_destroy(struct hd_engine *engine);
/* Where requests of its runs may go (outgoing.h); before the first run. Must stay; NULL: anywhere.
 */
/* Loads of runs wait for a store that is away. It must outlive the engine's calls. */
void hd_engine_set_patience(struct hd_engine *engine, struct hd_patience *patience);
void hd_engine_set_outgoing(struct hd_engine *engine, const struct hd_outgoing *outgoing);

/* Which nodes to stop at: those named, or all. */
struct hd_stops {
    bool all;
    const struct hd_slice *names;
    size_t count;
};

enum hd_run_status {
    HD_RUN_DONE,
    HD_RUN_INTERRUPTED, /* by a question or a breakpoint */
    HD_RUN_FAILED,
    HD_RUN_CANCELLED
};

/*
 * How a run ended, and where: what hd_state_get() would say of the thread, without
 * reading it. Valid during on_done.
 */
struct hd_run_result {
    enum hd_run_status status;
    const struct hd_val *output;     /* the graph's output; NULL when it failed or was cancelled */
    const struct hd_val *interrupts; /* list of interrupt records; NULL: none */
    const char *error_type;          /* of HD_RUN_FAILED: the name of Python's class */
    const char *error_text;

    /*
     * The root graph's checkpoint that it made last, or else the one that it began
     * with. Empty: there is none, or it could not be stored.
     */
    const char *checkpoint_id;
    int64_t step;       /* of that checkpoint, as its metadata say; -2: there is none */
    int64_t stopped_at; /* the step that was at work, or would have been next */
    /* Pieces of messages that models sent, and (list) the tools that a cancel has stopped. */
    int64_t piece_count;
    const struct hd_val *tools; /* NULL: none */
    const struct hd_val *next;  /* list of the nodes that are still to run; NULL: out of memory */
    const struct hd_val *asked; /* object: id of a task to list of interrupt records; likewise */
};

typedef void (*hd_event_fn)(void *ctx, const struct hd_event *event);
typedef void (*hd_run_done_fn)(void *ctx, const struct hd_run_result *result);

/* What to run. Zero-initialise. Everything is borrowed for the call, but `graph`
 * until the run's memory is gone: after on_done, when the loop has turned once more. */
struct hd_run_options {
    const struct hd_graph *graph;
    struct hd_slice principal; /* whose thread it is */
    struct hd_slice actor;     /* who asked for the run; empty: nobody authenticates */
    struct hd_slice thread;
    int64_t guard;                       /* of all it stores: see struct hd_put_extras; 0: none */
    struct hd_slice root;                /* where its checkpoints are stored: ns.h; empty: "" */
    struct hd_slice checkpoint_id;       /* empty: the latest */
    const struct hd_val *checkpoint_map; /* namespace (relative) to checkpoint id; NULL: none */
    const struct hd_val *input;          /* NULL or null: go on where the thread stands */
    const struct hd_val *command;        /* a command record, instead of an input */
    enum hd_durability durability;
    struct hd_stops before, after; /* empty: the graph's own breakpoints */
    int recursion_limit;           /* 0: the graph's */
    const struct hd_val *config;   /* `configurable`; object or NULL */
    const struct hd_val *secrets;  /* what markers in `config` stand for (secret.h); or NULL */
    const struct hd_val *context;
    const struct hd_val *metadata; /* members are added to each checkpoint's metadata */
    const struct hd_val *tags;     /* list of strings, shown with what models say; or NULL */
    bool shows_output;             /* events show the graph's output channels, not its state */
    bool asks_again;               /* an answer that an earlier run brought is not for this one */
    /*
     * The task of another run that waits for this one: its events show it as that task's subgraph.
     * Must stay while events are told. NULL: none.
     */
    struct hd_task *around;
    /* Where to keep what it finds, for whoever wants to undo it (origin.h); NULL: nowhere. */
    struct hd_origin **origins;

    hd_event_fn on_event; /* may be NULL */
    hd_run_done_fn on_done;
    void *ctx;
};

/* Never calls back before it returned. HD_EINVAL: no such root can be. */
HD_MUST_CHECK int hd_run_start(struct hd_engine *engine, const struct hd_run_options *options,
                               struct hd_run **out);
/*
 * Stops whatever it waits for at once; it ends as soon as what it has produced is
 * stored. Nothing happens when it ends already. May be called from on_event.
 */
void hd_run_cancel(struct hd_run *run);
/*
 * The same, but work of the root graph that can be ended with what it has so far is: the answer of
 * a model becomes a message that is marked as stopped, in a checkpoint of its own. Only when
 * nothing else of the step is unfinished, so that a run that goes on later repeats the others.
 */
void hd_run_stop(struct hd_run *run);

/*
 * Held, it reads nothing more from models until it is let go: whoever tells its events cannot
 * keep up.
 */
void hd_run_hold(struct hd_run *run, bool is_held);

#endif
