/* What the files about delegates share. */
#ifndef HD_RUN_DELEGATE_INTERNAL_H
#define HD_RUN_DELEGATE_INTERNAL_H

#include "agent/agent.h"
#include "base/arena.h"
#include "base/error.h"
#include "graph/run.h"
#include "graph/val.h"
#include "run/app.h"
#include "run/delegate.h"
#include "run/record.h"

enum hd_delegate_state {
    HD_DELEGATE_WAITS, /* another call of the same assistant is at work */
    HD_DELEGATE_READS, /* a store thread has `arena` and what is below it */
    HD_DELEGATE_WORKS
};

struct hd_delegate {
    struct hd_delegation *delegation;
    struct hd_delegate *next;  /* in the order of their calls */
    struct hd_delegate *outer; /* the delegate that called it; NULL: the run of the ticket */
    struct hd_ticket *ticket;
    struct hd_run *parent; /* the run that waits; */
    struct hd_task *task;  /* and the task. Not to be looked at when it is cancelled */
    enum hd_delegate_state state;
    bool is_cancelled;             /* nobody waits for it but the parent's end */
    struct hd_val *input, *answer; /* one of them is NULL */
    void (*done)(void *arg, const struct hd_run_result *result);
    void *arg;
    struct hd_run *run; /* NULL: not begun, or over */

    struct hd_arena arena;
    struct hd_slice assistant_id;
    struct hd_slice tool_call_id;
    struct hd_slice principal, actor, thread;
    struct hd_assistant_rec assistant;
    const struct hd_app_graph *graph;
    struct hd_slice root;      /* its namespace */
    struct hd_slice chosen;    /* the checkpoint that somebody chose as its head; empty: none */
    struct hd_val *state_then; /* where it stood, when an answer has come */
    int err;
    struct hd_fault fault;
};

/* What its run is given, but for the functions: delegate_config.c. The values are the caller's. */
struct hd_delegate_values {
    struct hd_val *config, *context, *metadata, *secrets, *command;
    int64_t recursion_limit;
};

HD_MUST_CHECK int hd_delegate_values(const struct hd_delegate *delegate,
                                     struct hd_delegate_values *out, struct hd_fault *fault);
void hd_delegate_values_fini(struct hd_delegate_values *values);

#endif
