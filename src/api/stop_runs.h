/* Stops runs and waits until their ends are stored. */
#ifndef HD_API_STOP_RUNS_H
#define HD_API_STOP_RUNS_H

#include "api/api.h"
#include "api/peer_cancel.h"
#include "records/record.h"
#include "run/queue.h"

/* In the arena of its call. */
struct hd_stop_runs {
    struct hd_call *call;
    struct hd_run_rec *runs; /* of call->principal, in the order of their threads' queues */
    size_t count;
    size_t cap;
    struct hd_step (*then)(struct hd_call *call); /* when all have ended */
    size_t ended;                                 /* the first `ended` runs */
    struct hd_waiter waiter;
    struct hd_peer_cancel elsewhere; /* those that other servers execute */
    bool is_waiting_elsewhere, has_all_here;
};

/* Appends a run. The caller may also clear `count` and start again. For store threads. */
HD_MUST_CHECK int hd_stop_runs_add(struct hd_stop_runs *stop, const struct hd_run_rec *run);

/* Interrupts the runs, waits, and goes on with `then`. On the loop. */
struct hd_step hd_stop_runs_start(struct hd_stop_runs *stop);

#endif
