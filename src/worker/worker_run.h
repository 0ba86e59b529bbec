/*
 * Runs of graphs whose code is in workers: the straight counterpart of graph/engine/run.h.
 *
 * The worker is given what the run is about and tells what its graph streams; its checkpoints
 * come back as operations (worker/worker_ops.h). When it has ended, the state that it left is read
 * from the store: what a run says of itself and what anybody reads later is the same. A worker
 * that is lost is replaced: the run goes on from the last checkpoint, unless it was lost
 * HD_MAX_LOSSES times in the same step.
 *
 * Everything here happens on the loop.
 */
#ifndef HD_WORKER_WORKER_RUN_H
#define HD_WORKER_WORKER_RUN_H

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
    struct hd_run_result run; /* its `output` is NULL: */
    struct hd_slice output;   /* JSON; empty: none */
    struct hd_slice error;    /* JSON of one that failed: {"error", "message", "traceback"?, …} */
    bool is_read; /* what it left is known: checkpoint_id, step, next, asked are as stored */
};

/* Zero-initialise. Everything but `graph` is copied or counted. */
struct hd_worker_run_options {
    const struct hd_app_graph *graph;
    struct hd_slice run_id, assistant_id;
    struct hd_slice principal, actor, thread, root; /* as in struct hd_run_options */
    int64_t guard;
    int attempt;
    struct hd_run_losses losses; /* so far */
    bool is_continued;           /* it has made checkpoints: it goes on, whatever the input is */
    struct hd_slice goes_on_at;  /* … at this one of them; empty: the latest */

    struct hd_slice checkpoint_id; /* empty: the latest */
    const struct hd_val *checkpoint_map;
    const struct hd_val *input;   /* NULL or null: goes on where the thread stands */
    const struct hd_val *command; /* as requests have it; NULL: none */
    const struct hd_val *config;  /* object with `configurable`, `tags`, …; with markers */
    const struct hd_val *secrets;
    const struct hd_val *context;
    const struct hd_val *metadata; /* added to that of checkpoints */
    struct hd_slice durability;    /* empty: async */
    const struct hd_val *before, *after;
    unsigned modes; /* HD_STREAM_… */
    bool subgraphs;
    bool is_inner; /* another run waits for it: it need not wait its turn */
    bool is_quiet; /* nobody listens, until hd_worker_run_listen() */

    /* `ns` relative to the root, `text` JSON for clients. May be NULL. */
    void (*on_piece)(void *ctx, struct hd_slice ns, enum hd_stream_mode mode, struct hd_slice text);
    /* The worker was lost, and it is begun once more. May be NULL. */
    void (*on_attempt)(void *ctx, int attempt, const struct hd_run_losses *losses);
    /* Once, and last. */
    void (*on_done)(void *ctx, const struct hd_worker_run_result *result);
    void *ctx;
};

/* Never calls back before it returned. */
HD_MUST_CHECK int hd_worker_run_start(struct hd_app *app,
                                      const struct hd_worker_run_options *options,
                                      struct hd_worker_run **out);
/* It ends soon, whatever its worker does. */
void hd_worker_run_cancel(struct hd_worker_run *remote);
/* As hd_run_hold(). */
void hd_worker_run_hold(struct hd_worker_run *remote, bool is_held);
/* Somebody listens now. */
void hd_worker_run_listen(struct hd_worker_run *remote);

/* The owner of its calls' scopes (runtime/runtime.h) is the struct hd_worker_run. */
const struct hd_worker_run_options *hd_worker_run_options(const struct hd_worker_run *remote);
bool hd_worker_run_is_held(const struct hd_worker_run *remote);
bool hd_worker_run_is_cancelled(const struct hd_worker_run *remote);
/* It does not end before as many hd_worker_run_let_go() have come. */
void hd_worker_run_keep(struct hd_worker_run *remote);
void hd_worker_run_let_go(struct hd_worker_run *remote);

#endif
