/*
 * Runs of graphs whose code is in workers: the counterpart of graph/engine/run.h.
 *
 * The worker receives the run and sends the events that its graph streams; it stores checkpoints
 * through operations (worker/worker_ops.h). When the run has ended, its final state is read from
 * the store, so the result equals what later readers see. If a worker is lost, the run continues at
 * another worker from the last checkpoint, unless it was lost HD_MAX_LOSSES times in the same step.
 *
 * Everything here runs on the loop.
 */
#ifndef HD_RUN_WORKER_RUN_H
#define HD_RUN_WORKER_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "app/app.h"
#include "base/compiler.h"
#include "base/slice.h"
#include "graph/engine/events.h"
#include "graph/engine/run.h"
#include "records/run_losses.h"
#include "value/val.h"

struct hd_worker_run;

struct hd_worker_run_result {
    struct hd_run_result run; /* `run.output` is NULL, because it is text here: */
    struct hd_slice output;   /* JSON; empty: none */
    struct hd_slice error;    /* JSON of a failed run: {"error", "message", "traceback"?, …} */
    bool is_read; /* the final state was read: checkpoint_id, step, next and `asked` are set */
};

/* Zero-initialise. `graph` is borrowed; the rest is copied or reference-counted. */
struct hd_worker_run_options {
    const struct hd_app_graph *graph;
    struct hd_slice run_id, assistant_id;
    struct hd_slice principal, actor, thread, root; /* as in struct hd_run_options */
    int64_t guard;
    int attempt;
    struct hd_run_losses losses; /* so far */
    bool is_continued; /* it has made checkpoints and continues there; `input` is ignored */
    struct hd_slice goes_on_at; /* … at this checkpoint; empty: the latest */

    struct hd_slice checkpoint_id; /* empty: the latest */
    const struct hd_val *checkpoint_map;
    const struct hd_val *input;   /* NULL or null: continues from the thread's state */
    const struct hd_val *command; /* as in requests; NULL: none */
    const struct hd_val *config;  /* object with `configurable`, `tags`, …; secrets are markers */
    const struct hd_val *secrets;
    const struct hd_val *context;
    const struct hd_val *metadata; /* added to each checkpoint's metadata */
    struct hd_slice durability;    /* empty: async */
    const struct hd_val *before, *after;
    unsigned modes; /* HD_STREAM_… */
    bool subgraphs;
    bool is_inner; /* another run waits for it: it does not count for `jobs` (runtime/runtime.h) */
    bool is_quiet; /* no events are needed before hd_worker_run_listen() */

    /* `ns` is relative to the root, `text` is JSON for clients. May be NULL. */
    void (*on_piece)(void *ctx, struct hd_slice ns, enum hd_stream_mode mode, struct hd_slice text);
    /* The worker was lost, and the run restarts. May be NULL. */
    void (*on_attempt)(void *ctx, int attempt, const struct hd_run_losses *losses);
    /* Called once, last. */
    void (*on_done)(void *ctx, const struct hd_worker_run_result *result);
    void *ctx;
};

/* Never calls back before it returns. */
HD_MUST_CHECK int hd_worker_run_start(struct hd_app *app,
                                      const struct hd_worker_run_options *options,
                                      struct hd_worker_run **out);
/* The run ends soon, even if its worker does not react. */
void hd_worker_run_cancel(struct hd_worker_run *remote);
/* Applies back-pressure, as hd_run_hold() does. */
void hd_worker_run_hold(struct hd_worker_run *remote, bool is_held);
/* Events are needed from now on: ends `is_quiet`. */
void hd_worker_run_listen(struct hd_worker_run *remote);

/* The struct hd_worker_run is `owner` in the scope of its calls (runtime/runtime.h). */
const struct hd_worker_run_options *hd_worker_run_options(const struct hd_worker_run *remote);
bool hd_worker_run_is_held(const struct hd_worker_run *remote);
bool hd_worker_run_is_cancelled(const struct hd_worker_run *remote);
/* Delays on_done until each hd_worker_run_keep() has a matching hd_worker_run_let_go(). */
void hd_worker_run_keep(struct hd_worker_run *remote);
void hd_worker_run_let_go(struct hd_worker_run *remote);

#endif
