/* Shared declarations of the delegate*.c files. */
#ifndef HD_RUN_DELEGATE_INTERNAL_H
#define HD_RUN_DELEGATE_INTERNAL_H

#include "agent/agent.h"
#include "app/app.h"
#include "base/arena.h"
#include "base/error.h"
#include "graph/engine/run.h"
#include "records/record.h"
#include "run/delegate.h"
#include "value/val.h"
#include "run/worker_run.h"

enum hd_delegate_state {
    HD_DELEGATE_WAITS, /* queued behind another call of the same assistant */
    HD_DELEGATE_READS, /* a store thread owns `arena` and the members below it */
    HD_DELEGATE_WORKS
};

struct hd_delegation {
    struct hd_app *app;
    struct hd_delegates table;
    struct hd_delegate *first;
};

struct hd_delegate {
    struct hd_delegation *delegation;
    struct hd_delegate *next;  /* in the order of their calls */
    struct hd_delegate *outer; /* the delegate that called it; NULL: the active run */
    struct hd_active_run *active;
    struct hd_run *parent;         /* the waiting run; NULL: a worker's run waits */
    struct hd_task *task;          /* the waiting task; invalid after a cancel */
    struct hd_worker_run *caller;  /* the waiting worker's run; NULL: `parent` waits */
    struct hd_rt_request *request; /* the worker's pending request */
    struct hd_slice task_id;       /* stored in its checkpoints; for a worker's call a substitute */
    struct hd_slice place;         /* for a worker's run: the namespace of the calling task */
    enum hd_delegate_state state;
    bool is_cancelled;             /* no task waits; only the parent's end does */
    struct hd_val *input, *answer; /* one of them is NULL */
    void (*done)(void *arg, const struct hd_run_result *result);
    void *arg;
    struct hd_run *run;           /* NULL: not started, or ended */
    struct hd_worker_run *remote; /* in place of `run` when its graph is in a worker */

    struct hd_arena arena;
    struct hd_slice assistant_id;
    struct hd_slice tool_call_id;
    struct hd_slice principal, actor, thread;
    struct hd_assistant_rec assistant;
    const struct hd_app_graph *graph;
    struct hd_slice root;      /* its namespace */
    struct hd_slice chosen;    /* the checkpoint that a client chose as head; empty: none */
    struct hd_val *state_then; /* its stored state, to resume or to apply an answer */
    int err;
    struct hd_fault fault;
};

/* The settings inherited from the caller. Borrowed. */
struct hd_delegate_caller {
    const struct hd_val *config; /* `configurable` */
    const struct hd_val *secrets, *metadata, *tags;
    int64_t guard;
    int64_t recursion_limit;
    enum hd_durability durability;
    bool is_held;
};

struct hd_delegate_caller hd_delegate_caller(const struct hd_delegate *delegate);

/*
 * delegate_config.c: the values among the options of its run. The caller releases them with
 * hd_delegate_values_fini().
 */
struct hd_delegate_values {
    struct hd_val *config, *context, *metadata, *secrets, *command;
    int64_t recursion_limit;
};

HD_MUST_CHECK int hd_delegate_values(const struct hd_delegate *delegate,
                                     struct hd_delegate_values *out, struct hd_fault *fault);
void hd_delegate_values_fini(struct hd_delegate_values *values);

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
/* The namespace of its events for clients. */
HD_MUST_CHECK int hd_delegate_path(const struct hd_delegate *delegate, struct hd_slice ns,
                                   struct hd_buf *out);
/* Its run has ended. */
void hd_delegate_ended(struct hd_delegate *delegate, const struct hd_run_result *result);

/* delegate_run_worker.c: delegates whose graph is in a worker. */

HD_MUST_CHECK int hd_delegate_launch_remote(struct hd_delegate *delegate,
                                            const struct hd_delegate_values *values);
/* The delegate that owns this run; NULL: none. */
struct hd_delegate *hd_delegate_of(const struct hd_worker_run *remote);

/* delegate_worker.c: delegates that workers call. */

/* Replies to the worker and frees the delegate. */
void hd_delegate_answer(struct hd_delegate *delegate, const struct hd_run_result *result);

#endif
