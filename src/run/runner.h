/*
 * Runners: the execution of one graph on a thread, for a run or for a delegate.
 *
 * The graph decides the implementation: the native engine (runner_engine.c), or a worker process
 * (runner_worker.c). Both load the thread's checkpoint, execute the graph, store checkpoints and
 * report events and a result in the same way, so callers need not know which one it is.
 *
 * Everything here runs on the loop.
 */
#ifndef HD_RUN_RUNNER_H
#define HD_RUN_RUNNER_H

#include <stdbool.h>
#include <stdint.h>

#include "app/app.h"
#include "base/compiler.h"
#include "base/slice.h"
#include "graph/engine/events.h"
#include "graph/engine/run.h"
#include "records/run_losses.h"
#include "store/guard.h"
#include "value/val.h"

struct hd_runner;

/* An event of the graph in one stream mode. Borrowed for the callback. */
struct hd_runner_event {
    struct hd_slice ns; /* relative to the root */
    enum hd_stream_mode mode;
    const struct hd_val *data; /* NULL: `text` */
    struct hd_slice text;      /* JSON for clients */
};

/* Valid during on_done. */
struct hd_runner_result {
    struct hd_engine_run_result run;
    struct hd_slice output; /* of a worker: JSON, and `run.output` is NULL; empty: none */
    struct hd_slice error; /* of a worker: JSON, {"error", "message", "traceback"?, …}; or empty */
};

/*
 * Zero-initialise. `graph` and the texts are borrowed until on_done has returned; values are
 * reference-counted.
 */
struct hd_runner_options {
    const struct hd_app_graph *graph;
    struct hd_slice run_id, assistant_id;
    struct hd_slice principal, actor, thread, root; /* as in struct hd_engine_run_options */
    struct hd_guard guard; /* the thread fence of its saves (store/thread_fence.h) */
    int attempt;
    struct hd_run_losses losses; /* so far */
    bool is_continued; /* it has made checkpoints and continues there; `input` is ignored */
    /*
     * … at this checkpoint; empty: the latest. Without is_continued: checkpoint_id is the same
     * checkpoint, and was made by the run, or by the one whose question it answers.
     */
    struct hd_slice continue_at;

    struct hd_slice checkpoint_id; /* empty: the latest */
    const struct hd_val *checkpoint_map;
    const struct hd_val *input;   /* NULL or null: continues from the thread's state */
    const struct hd_val *command; /* as in requests; NULL: none */
    const struct hd_val *config;  /* object with `configurable`, `tags`, …; secrets are markers */
    const struct hd_val *secrets;
    const struct hd_val *context;
    const struct hd_val *metadata;       /* added to each checkpoint's metadata */
    struct hd_slice durability;          /* sync, exit or async; empty: async */
    const struct hd_val *before, *after; /* breakpoints: "*" or a list of nodes */
    bool asks_again;                     /* as in struct hd_engine_run_options; for the engine */

    struct hd_runner *caller;   /* the runner that waits for this one; NULL: none */
    struct hd_task *around;     /* the task of the engine that waits for it; NULL: none */
    const struct hd_val *tags;  /* shown with messages of the engine; workers use those in config */
    struct hd_origin **origins; /* as in struct hd_engine_run_options; for the engine */

    unsigned modes; /* HD_STREAM_… that a reader may request */
    bool subgraphs;
    bool is_quiet; /* no events are needed before hd_runner_listen() */

    /* The modes that have a reader now. */
    unsigned (*get_modes)(void *ctx);
    void (*on_event)(void *ctx, const struct hd_runner_event *event);
    /* The worker was lost, and the run restarts. May be NULL. */
    void (*on_attempt)(void *ctx, int attempt, const struct hd_run_losses *losses);
    /* Called once, last. Frees the runner. */
    void (*on_done)(void *ctx, const struct hd_runner_result *result);
    void *ctx;
};

/* Never calls back before it returns. A caller's hold applies to the new runner. */
HD_MUST_CHECK int hd_runner_start(struct hd_app *app, const struct hd_runner_options *options,
                                  struct hd_runner **out);
/*
 * The runner ends soon, even if its worker does not react. `keeps_answer`: the engine stores the
 * model's partial answer (hd_engine_run_stop()). May be called from on_event.
 */
void hd_runner_cancel(struct hd_runner *runner, bool keeps_answer);
/* Applies back-pressure: a held runner reads nothing from models and workers until released. */
void hd_runner_hold(struct hd_runner *runner, bool is_held);
/* Events are needed from now on: ends `is_quiet`. */
void hd_runner_listen(struct hd_runner *runner);
/* Delays on_done until each hd_runner_keep() has a matching hd_runner_release(). */
void hd_runner_keep(struct hd_runner *runner);
void hd_runner_release(struct hd_runner *runner);

/* Its options. The worker implementation updates attempt, losses and metadata. Borrowed. */
const struct hd_runner_options *hd_runner_options(const struct hd_runner *runner);
/* The runner of an engine run: hd_runner_start() started every run of app->engine. */
struct hd_runner *hd_runner_of(const struct hd_engine_run *run);

/* Releases the values of options whose owner holds a reference to each. */
void hd_runner_options_fini(struct hd_runner_options *options);

#endif
