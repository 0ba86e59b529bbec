/*
 * Performs the runs of a thread again, in memory, with what was recorded of them instead of the
 * network, and compares the states they make with those that are stored.
 */
#ifndef HD_REPLAY_REPLAY_H
#define HD_REPLAY_REPLAY_H

#include <stdbool.h>
#include <stddef.h>

#include "app/app.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/slice.h"
#include "records/record.h"
#include "records/recording.h"
#include "value/val.h"

/* The result of one run. Everything is borrowed for the call. */
struct hd_replayed {
    const struct hd_run_rec *run;    /* as it is stored */
    size_t number;                   /* from 1 on */
    enum hd_run_state status;        /* how it ended this time */
    const char *error;               /* NULL, or what it failed with */
    size_t steps_then, steps_now;    /* checkpoints of its root graph */
    bool was_edited;                 /* the state was edited before it */
    bool ended_otherwise;            /* `status` is not that of `run`, which has ended */
    bool differs;                    /* a state, a request, or how the run ended */
    int64_t step;                    /* the first that differs */
    const char *path;                /* where in its state; NULL: no state differs */
    const struct hd_val *then, *now; /* what is there; NULL: nothing */
    const struct hd_replay_notes *notes;
};

typedef void (*hd_replayed_fn)(void *ctx, const struct hd_replayed *replayed);

/*
 * `app` has a loop, graphs, and a configuration whose store is memory:; it is opened and closed
 * here. HD_ENOTFOUND: there is no such thread. Runs the loop.
 */
HD_MUST_CHECK int hd_replay(struct hd_app *app, struct heddle *original, struct hd_slice principal,
                            struct hd_slice thread, hd_replayed_fn fn, void *ctx,
                            struct heddle_error *fault);

#endif
