/*
 * The queue of runs: one run at a time on a line (an agent's root namespace in a thread), and at
 * most max_runs at once in the process. Runs of different lines execute in parallel, unless
 * namespaces.parallel is off: then a thread executes one run at a time. The due runs of a line
 * start in the order of admission, which is a number in the thread's record, not a time.
 *
 * Run records with a due time are in flight, so the queue can be rebuilt after a crash. A run
 * enters the queue when its record is stored and leaves it when its end is stored. A run that is
 * being admitted counts as in flight.
 *
 * All functions run on the loop, except hd_queue_expect*() and hd_queue_unexpect().
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
/* No run may be running. */
void hd_queue_destroy(struct hd_queue *queue);

/*
 * Restores the runs that were in flight when the last process ended. Running ones resume from their
 * last checkpoint, unless they were lost HD_MAX_LOSSES times in the same step. Blocks on the store;
 * for the start of the server.
 */
HD_MUST_CHECK int hd_queue_recover(struct hd_queue *queue, struct heddle_error *fault);

/*
 * Adds a run that another process has left, after run_recover.h has stored its new attempt.
 * `is_continued`: it has stored checkpoints.
 */
HD_MUST_CHECK int hd_queue_continue(struct hd_queue *queue, const struct hd_run_rec *run,
                                    int64_t event_seq, bool is_continued);

/* Runs that are added in between start in their order, not as they are added. */
void hd_queue_pause_starts(struct hd_queue *queue);
void hd_queue_resume_starts(struct hd_queue *queue);

/*
 * Announces a run whose record is about to be stored: it can be waited for and cancelled before
 * hd_queue_add(). hd_queue_unexpect() withdraws it when it was not stored. For store threads.
 */
HD_MUST_CHECK int hd_queue_expect(struct hd_queue *queue, struct hd_slice principal,
                                  struct hd_slice run_id);
void hd_queue_unexpect(struct hd_queue *queue, struct hd_slice principal, struct hd_slice run_id);

/*
 * The line and the order that the expected run is about to be stored with: later runs of the line
 * wait until it is added. For store threads.
 */
void hd_queue_expect_order(struct hd_queue *queue, struct hd_slice principal,
                           struct hd_slice run_id, struct hd_slice thread, struct hd_slice ns,
                           int64_t order);

/*
 * Adds a run whose record is stored. `is_streamed`: a client reads its events or will; otherwise
 * events are created only while a reader exists. `event_seq`: the thread's last event number.
 * Releases the slot that hd_admit() took (gate/limits.h) when the run ends, or when this fails.
 */
HD_MUST_CHECK int hd_queue_add(struct hd_queue *queue, const struct hd_run_rec *run,
                               int64_t event_seq, bool is_streamed);

bool hd_queue_has(struct hd_queue *queue, struct hd_slice principal, struct hd_slice thread,
                  struct hd_slice run_id);

/* Returns whether the run is in flight and has not started: a cancel then ends it at once. */
bool hd_queue_is_waiting(struct hd_queue *queue, struct hd_slice principal, struct hd_slice thread,
                         struct hd_slice run_id);

/* The runs in flight that have all these members. */
struct hd_run_selection {
    const struct hd_slice *principal; /* NULL: any; the same for the other two */
    const struct hd_slice *actor;
    const struct hd_slice *assistant_id;
    bool running, pending; /* the runs at work, the others */
};

/*
 * Cancels the selected runs; returns their number. Calls `fn` for each before it is cancelled; `fn`
 * may wait for the run.
 */
size_t hd_queue_cancel_all(struct hd_queue *queue, const struct hd_run_selection *selection,
                           enum hd_cancel action,
                           void (*fn)(void *ctx, const struct hd_run_rec *run), void *ctx);

struct hd_queue_counts {
    size_t running;
    size_t pending;
    size_t threads; /* with runs of either kind */
    uint64_t ended; /* since the start */
    uint64_t failed;
};

struct hd_queue_counts hd_queue_counts(const struct hd_queue *queue);

/* ---- waiting for the end ---------------------------------------------- */

/* The outcome of a run. */
struct hd_outcome {
    enum hd_run_state status;
    bool is_deleted;            /* rolled back: its record is deleted */
    bool is_taken;              /* another server continues it; the rest is not known */
    struct hd_slice values;     /* JSON: its output, as `wait` returns it; may be empty */
    struct hd_slice error_type; /* of a failed run */
    struct hd_slice error_text;
    struct hd_slice checkpoint_id; /* the last one that it made or started from; may be empty */
    int64_t step;                  /* the last step */
    struct hd_slice receipt; /* JSON: the receipt of a stopped run, as in its record; or empty */
};

typedef void (*hd_outcome_fn)(void *ctx, const struct hd_outcome *outcome);

struct hd_waiter {
    hd_outcome_fn fn; /* called once, when the end is stored */
    void *ctx;
    struct hd_waiter *next;
    struct hd_waiter **link; /* NULL: not in a list */
};

/* Returns false when no such run is in flight. The caller keeps ownership of the waiter. */
bool hd_queue_wait(struct hd_queue *queue, struct hd_slice principal, struct hd_slice thread,
                   struct hd_slice run_id, struct hd_waiter *waiter);
void hd_waiter_leave(struct hd_waiter *waiter);

/* ---- stopping --------------------------------------------------------- */

/*
 * Requests that a run stops; hd_queue_wait() reports when it has. Returns false when no such run is
 * in flight. A run that is being admitted is stopped when it enters the queue.
 */
bool hd_queue_cancel(struct hd_queue *queue, struct hd_slice principal, struct hd_slice thread,
                     struct hd_slice run_id, enum hd_cancel action);

/*
 * Suspends the runs of a server that does not know whether it may still write: no run starts, no
 * model or tool is called, nothing is read from models, no event is made, and no run times out.
 * They continue when it is released. Cancels and drains work meanwhile.
 */
void hd_queue_suspend(struct hd_queue *queue, bool is_suspended);

/*
 * For shutdown: starts no more runs and suspends the running ones, so that the next process resumes
 * them. HD_READY: no run is running. 0: calls `done` when none is.
 */
HD_MUST_CHECK int hd_queue_drain(struct hd_queue *queue, void (*done)(void *ctx), void *ctx);

#endif
