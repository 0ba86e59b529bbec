/* What the files about delegates share. */
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
#include "worker/worker_run.h"

enum hd_delegate_state {
    HD_DELEGATE_WAITS, /* another call of the same assistant is at work */
    HD_DELEGATE_READS, /* a store thread has `arena` and what is below it */
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
    struct hd_run *parent;         /* the run that waits; NULL: a worker's does */
    struct hd_task *task;          /* and the task. Not to be looked at when it is cancelled */
    struct hd_worker_run *caller;  /* the worker's run; NULL: `parent` waits */
    struct hd_rt_request *request; /* that it waits with */
    struct hd_slice task_id;       /* or what stands for one, in its checkpoints */
    struct hd_slice place;         /* of a worker's run: the namespace of the task that called */
    enum hd_delegate_state state;
    bool is_cancelled;             /* nobody waits for it but the parent's end */
    struct hd_val *input, *answer; /* one of them is NULL */
    void (*done)(void *arg, const struct hd_run_result *result);
    void *arg;
    struct hd_run *run;           /* NULL: not begun, or over */
    struct hd_worker_run *remote; /* the same, when its graph is in workers */

    struct hd_arena arena;
    struct hd_slice assistant_id;
    struct hd_slice tool_call_id;
    struct hd_slice principal, actor, thread;
    struct hd_assistant_rec assistant;
    const struct hd_app_graph *graph;
    struct hd_slice root;      /* its namespace */
    struct hd_slice chosen;    /* the checkpoint that somebody chose as its head; empty: none */
    struct hd_val *state_then; /* where it stood, when an answer has come, or to go on */
    int err;
    struct hd_fault fault;
};

/* What it has from whoever called it. Borrowed. */
struct hd_delegate_caller {
    const struct hd_val *config; /* `configurable` */
    const struct hd_val *secrets, *metadata, *tags;
    int64_t guard;
    int64_t recursion_limit;
    enum hd_durability durability;
    bool is_held;
};

struct hd_delegate_caller hd_delegate_caller(const struct hd_delegate *delegate);

/* What its run is given, but for the functions: delegate_config.c. The values are the caller's. */
struct hd_delegate_values {
    struct hd_val *config, *context, *metadata, *secrets, *command;
    int64_t recursion_limit;
};

HD_MUST_CHECK int hd_delegate_values(const struct hd_delegate *delegate,
                                     struct hd_delegate_values *out, struct hd_fault *fault);
void hd_delegate_values_fini(struct hd_delegate_values *values);

/* delegate.c */

/* As struct hd_delegates has it, for whom `actor` is. */
HD_MUST_CHECK int hd_delegate_find(struct hd_delegation *delegation, struct hd_slice actor,
                                   struct hd_slice assistant,
                                   void (*found)(void *arg, const struct hd_val *assistant),
                                   void *arg);
/* Takes one that is made and has its assistant_id: it begins, or waits. Frees it when it fails. */
HD_MUST_CHECK int hd_delegate_start(struct hd_delegate *delegate);
/* It may be gone afterwards. */
void hd_delegate_stop(struct hd_delegate *delegate);
void hd_delegate_free(struct hd_delegate *delegate);
/* Where its events are shown. */
HD_MUST_CHECK int hd_delegate_path(const struct hd_delegate *delegate, struct hd_slice ns,
                                   struct hd_buf *out);
/* Its run has ended. */
void hd_delegate_ended(struct hd_delegate *delegate, const struct hd_run_result *result);

/* delegate_run_worker.c: those whose graph is in workers. */

HD_MUST_CHECK int hd_delegate_launch_remote(struct hd_delegate *delegate,
                                            const struct hd_delegate_values *values);
/* Whose run it is; NULL: no delegate's. */
struct hd_delegate *hd_delegate_of(const struct hd_worker_run *remote);

/* delegate_worker.c: those that workers call. */

/* Answers the worker; the delegate goes. */
void hd_delegate_answer(struct hd_delegate *delegate, const struct hd_run_result *result);

#endif
