/* Shared declarations of the delegate*.c files. */
#ifndef HD_RUN_DELEGATE_INTERNAL_H
#define HD_RUN_DELEGATE_INTERNAL_H

#include "agent/agent.h"
#include "app/app.h"
#include "base/arena.h"
#include "base/error.h"
#include "records/record.h"
#include "run/delegate.h"
#include "run/line_visits.h"
#include "run/runner.h"
#include "value/val.h"

enum hd_delegate_state {
    HD_DELEGATE_WAITS, /* another run or delegate executes on its line */
    HD_DELEGATE_READS, /* a store thread owns `arena` and the members below it */
    HD_DELEGATE_WORKS
};

struct hd_delegation {
    struct hd_app *app;
    struct hd_delegates table;
    struct hd_line_visits visits; /* of the delegates that are on their line */
    struct hd_delegate *first;
};

struct hd_delegate {
    struct hd_delegation *delegation;
    struct hd_delegate *next;  /* in the order of their calls */
    struct hd_delegate *outer; /* the delegate that called it; NULL: the active run */
    struct hd_active_run *active;
    struct hd_runner *caller;      /* the waiting runner */
    struct hd_task *task;          /* its waiting task, invalid after a cancel; NULL: `request` */
    struct hd_rt_request *request; /* its worker's pending request; NULL: `task` */
    struct hd_slice task_id;       /* stored in its checkpoints; for a worker's call a substitute */
    struct hd_slice place;         /* for a worker's call: the namespace of the calling task */
    enum hd_delegate_state state;
    bool is_on_line;               /* hd_queue_line_enter() was called */
    bool is_cancelled;             /* no task waits; only the parent's end does */
    struct hd_val *input, *answer; /* one of them is NULL */
    void (*done)(void *arg, const struct hd_engine_run_result *result);
    void *arg;
    struct hd_runner *runner; /* NULL: not started, or ended */

    struct hd_arena arena;
    struct hd_slice assistant_id;
    struct hd_slice tool_call_id;
    struct hd_slice principal, actor, thread;
    struct hd_assistant_rec assistant;
    const struct hd_app_graph *graph;
    struct hd_slice root;   /* its namespace */
    struct hd_slice chosen; /* the checkpoint that a client chose as head; empty: none */
    bool is_own; /* off the head: its run has made `chosen`, or asked the question there */
    struct hd_val *stored_state; /* to resume it or to apply an answer */
    int err;
    struct heddle_error fault;
};

/*
 * delegate_config.c: the options of its runner, except the callbacks. The caller releases the
 * values with hd_runner_options_fini().
 */
HD_MUST_CHECK int hd_delegate_options(const struct hd_delegate *delegate,
                                      struct hd_runner_options *out, struct heddle_error *fault);

/* delegate.c */

/* As hd_delegates.find, for this `actor`. */
HD_MUST_CHECK int hd_delegate_find(struct hd_delegation *delegation, struct hd_slice actor,
                                   struct hd_slice assistant,
                                   void (*found)(void *arg, const struct hd_val *assistant),
                                   void *arg);
/* Starts or queues a delegate whose assistant_id is set. Takes `delegate`, also on failure. */
HD_MUST_CHECK int hd_delegate_start(struct hd_delegate *delegate);
/* May free the delegate. */
void hd_delegate_stop(struct hd_delegate *delegate);
void hd_delegate_free(struct hd_delegate *delegate);
/* The delegate that this runner executes; NULL: it executes a run. */
struct hd_delegate *hd_delegate_of(const struct hd_runner *runner);

/* delegate_worker.c: delegates that workers call. */

/* Replies to the worker and frees the delegate. */
void hd_delegate_answer(struct hd_delegate *delegate, const struct hd_engine_run_result *result);

#endif
