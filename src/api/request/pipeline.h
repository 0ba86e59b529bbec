/*
 * The pipeline of a request: each call passes the stages below, in order.
 *
 * A stage is one function that returns one step:
 *
 *   HD_NEXT  the next stage follows.
 *   HD_DONE  the response in the call is sent, and the call ends. Every refusal returns it:
 *            `return hd_call_refuse(call, 404, "…")`.
 *   HD_WAIT  the stage keeps the call, which must not be used any more by the caller. Either an
 *            asynchronous operation resumes it by hd_call_resume(), or the stage sends the response
 *            itself and ends the call by hd_call_free().
 *   error    the call ends with the status of the error code, and with the text of call->fault, or
 *            with the code's own text when call->fault is empty.
 *
 * A stage runs on the loop, which owns runs, event logs and connections, or on a store thread,
 * where it may wait for the database: there it uses only the call, the store, the configuration and
 * the graphs. The driver moves the call between the threads; consecutive stages on store threads
 * take one visit, and stages that do not apply to the call are skipped. Only stages on the loop may
 * return HD_WAIT.
 */
#ifndef HD_API_REQUEST_PIPELINE_H
#define HD_API_REQUEST_PIPELINE_H

#include <stdbool.h>

#include "base/compiler.h"

struct hd_call;

/* The result of a stage: a type of its own, so that an error code cannot be taken for it. */
struct hd_step {
    enum { HD_STEP_ERROR, HD_STEP_NEXT, HD_STEP_DONE, HD_STEP_WAIT, HD_STEP_GO_TO } kind;
    int err; /* of HD_STEP_ERROR */
};

#define HD_NEXT ((struct hd_step){HD_STEP_NEXT, 0})
#define HD_DONE ((struct hd_step){HD_STEP_DONE, 0})
#define HD_WAIT ((struct hd_step){HD_STEP_WAIT, 0})

static inline struct hd_step hd_step_fail(int err)
{
    return (struct hd_step){HD_STEP_ERROR, err};
}

/* HD_NEXT, unless `err` is an error. */
static inline struct hd_step hd_step_next(int err)
{
    return err ? hd_step_fail(err) : HD_NEXT;
}

/* HD_DONE, unless `err` is an error. */
static inline struct hd_step hd_step_done(int err)
{
    return err ? hd_step_fail(err) : HD_DONE;
}

static inline bool hd_step_is_next(struct hd_step step)
{
    return step.kind == HD_STEP_NEXT;
}

typedef struct hd_step (*hd_stage_fn)(struct hd_call *call);
/* Loop: the route's own step in place of an error. */
typedef struct hd_step (*hd_error_fn)(struct hd_call *call, int err);

enum hd_stage {
    HD_STAGE_ROUTE,         /* loop: finds the route, in hd_api_handle() */
    HD_STAGE_APPLICATION,   /* loop: the project's application, for paths of the chat page */
    HD_STAGE_AUTHENTICATE,  /* loop: the identity of the caller (access.h) */
    HD_STAGE_ACT_FOR,       /* loop: the user for whom an administrator acts */
    HD_STAGE_FIND_USER,     /* store thread: the principal of that user */
    HD_STAGE_ENTER,         /* loop: routes for administrators, limits per user */
    HD_STAGE_QUERY,         /* loop: the query string */
    HD_STAGE_FIND_HANDLERS, /* loop: which handlers the project has, for AUTHORIZE (authorize.h) */
    HD_STAGE_PREPARE,       /* store thread: type, thread and role, storage limit, body */
    HD_STAGE_LOCATE,        /* store thread: the server that holds the thread (forward.h) */
    HD_STAGE_FORWARD,       /* loop: that server answers */
    HD_STAGE_EVENT,         /* store thread: the first event for a handler */
    HD_STAGE_AUTHORIZE,     /* loop: sends the event to its handler */
    HD_STAGE_APPLY,         /* store thread: the reply; another event goes to AUTHORIZE */
    HD_STAGE_WORK,          /* store thread: call->work */
    HD_STAGE_THEN,          /* loop: call->then */
    HD_STAGES
};

/*
 * Loop: continues a call whose stage has returned HD_WAIT, as if the stage had returned `step` now.
 * For callbacks, which never run before the stage has returned.
 */
void hd_call_resume(struct hd_call *call, struct hd_step step);

/* For a stage to return: continues at this stage instead of the next. */
HD_MUST_CHECK struct hd_step hd_call_go_to(struct hd_call *call, enum hd_stage stage);

/*
 * For a route that needs another visit to a store thread: continues at HD_STAGE_WORK with these
 * functions in place of the route's. `then` may be NULL. Clears call->on_error.
 */
HD_MUST_CHECK struct hd_step hd_call_visit(struct hd_call *call, hd_stage_fn work,
                                           hd_stage_fn then);

#endif
