/*
 * Which runs are at work and which wait: one at a time on a thread, and not more at once than the
 * configuration allows. Of the runs of a thread that are due, the one that the thread took in first
 * begins first: their order is a number of the thread's record, not a time.
 *
 * What is stored says the same (run records with a due time are in flight), so
 * a queue can be made again after a crash. A run enters the queue when its
 * record is stored and leaves it when its end is. One that is on its way here counts as in flight.
 *
 * Everything here happens on the loop, but for hd_queue_expect*() and hd_queue_unexpect().
 */
#ifndef HD_RUN_QUEUE_H
#define HD_RUN_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/slice.h"
#include "records/record.h"

struct hd_app;
struct hd_queue;
struct hd_active_run;

enum hd_cancel { HD_CANCEL_INTERRUPT, HD_CANCEL_ROLLBACK };

HD_MUST_CHECK int hd_queue_create(struct hd_app *app, struct hd_queue **out);
/* Nothing may be at work. */
void hd_queue_destroy(struct hd_queue *queue);

/*
 * Brings back what was in flight when the last process ended: what was at work goes on from its
 * last checkpoint, unless it was lost HD_MAX_LOSSES times in the same step. Waits for the store;
 * for the start of the server.
 */
HD_MUST_CHECK int hd_queue_recover(struct hd_queue *queue, struct hd_fault *fault);

/*
 * The run's record is about to be stored, and hd_queue_add() comes then: until that, it can be
 * waited for and cancelled. The other: it was not stored. Both for store threads.
 */
HD_MUST_CHECK int hd_queue_expect(struct hd_queue *queue, struct hd_slice principal,
                                  struct hd_slice run_id);
void hd_queue_unexpect(struct hd_queue *queue, struct hd_slice principal, struct hd_slice run_id);

/*
 * The order on its thread that the expected run is about to be stored with: later runs of the
 * thread wait until it is added. For store threads.
 */
void hd_queue_expect_order(struct hd_queue *queue, struct hd_slice principal,
                           struct hd_slice run_id, struct hd_slice thread, int64_t order);

/*
 * Takes in a run whose record is stored. `is_streamed`: somebody reads its events,
 * or will; otherwise they are made only when somebody does. `event_seq`: where the
 * numbers of the thread's events stand. Gives back the place that hd_admit() took for it
 * (gate/limits.h) at its end, or when this fails.
 */
HD_MUST_CHECK int hd_queue_add(struct hd_queue *queue, const struct hd_run_rec *run,
                               int64_t event_seq, bool is_streamed);

bool hd_queue_has(struct hd_queue *queue, struct hd_slice principal, struct hd_slice thread,
                  struct hd_slice run_id);

/* Whether the run is in flight and has not begun: the end of a cancelled one is stored at once. */
bool hd_queue_is_waiting(struct hd_queue *queue, struct hd_slice principal, struct hd_slice thread,
                         struct hd_slice run_id);

/*
 * Cancels all of a principal's that are at work, or all that wait, or both; returns how many there
 * were. Calls `fn` for each before it is cancelled; it may wait for the run.
 */
size_t hd_queue_cancel_all(struct hd_queue *queue, struct hd_slice principal, bool running,
                           bool pending, enum hd_cancel action,
                           void (*fn)(void *ctx, const struct hd_run_rec *run), void *ctx);

struct hd_queue_counts {
    size_t running;
    size_t pending;
    uint64_t ended; /* since the start */
    uint64_t failed;
};

struct hd_queue_counts hd_queue_counts(const struct hd_queue *queue);

/* ---- waiting for the end ---------------------------------------------- */

/* How a run ended. */
struct hd_outcome {
    enum hd_run_state status;
    bool is_deleted;            /* rolled back: there is no record of it any more */
    struct hd_slice values;     /* JSON: what it made, as `wait` answers it; empty: nothing */
    struct hd_slice error_type; /* of a failed one */
    struct hd_slice error_text;
    struct hd_slice checkpoint_id; /* the last one it made or stood on; may be empty */
    int64_t step;                  /* where it stopped */
    struct hd_slice receipt; /* JSON, of one that was stopped: as its record keeps it; or empty */
};

typedef void (*hd_outcome_fn)(void *ctx, const struct hd_outcome *outcome);

struct hd_waiter {
    hd_outcome_fn fn; /* called once, when the end is stored */
    void *ctx;
    struct hd_waiter *next;
    struct hd_waiter **link; /* NULL: it does not wait */
};

/* False: there is no such run in flight. The waiter stays the caller's. */
bool hd_queue_wait(struct hd_queue *queue, struct hd_slice principal, struct hd_slice thread,
                   struct hd_slice run_id, struct hd_waiter *waiter);
void hd_waiter_leave(struct hd_waiter *waiter);

/* ---- stopping --------------------------------------------------------- */

/*
 * Stops a run, at work or not, at once; wait for the end to know that it stopped.
 * False: there is no such run in flight. One that is on its way here is stopped as it comes.
 */
bool hd_queue_cancel(struct hd_queue *queue, struct hd_slice principal, struct hd_slice thread,
                     struct hd_slice run_id, enum hd_cancel action);

/*
 * For the end of the process: starts nothing more, stops what is at work without
 * ending it, so that the next process goes on with it. `done` when all is quiet.
 */
void hd_queue_drain(struct hd_queue *queue, void (*done)(void *ctx), void *ctx);

#endif
