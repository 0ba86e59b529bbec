/*
 * The thread, namespace and checkpoint of a request.
 *
 * A thread has a line of checkpoints for each of its agents: a *root* namespace, assistant:<id> or
 * one that a run named, and below it the namespaces of its subgraphs. A request names one by
 * checkpoint_ns or assistant_id; the default is that of the latest run. "" names the empty root if
 * clients see roots and the thread uses it; otherwise it is the same as absent. When a client chose
 * another head than the newest checkpoint (PATCH …/branches), the thread's record has it in
 * `heads`.
 *
 * All functions block on the store: for store threads.
 */
#ifndef HD_API_STATE_CHECKPOINT_TARGET_H
#define HD_API_STATE_CHECKPOINT_TARGET_H

#include <stdbool.h>

#include "api/api.h"
#include "graph/state/state.h"
#include "records/line.h"
#include "records/record.h"
#include "run/run_commit.h"

struct hd_failure;

struct hd_checkpoint_target {
    struct hd_thread_rec thread;
    bool has_root;                    /* false: the request determines no namespace */
    struct hd_slice root;             /* may be empty */
    struct hd_slice inner;            /* of a subgraph, relative to the root */
    struct hd_slice assistant_id;     /* the assistant of the root; empty: none */
    struct hd_slice graph_id;         /* empty: unknown */
    const struct hd_app_graph *graph; /* NULL: unknown, or not served any more */
    struct hd_slice checkpoint_id;    /* requested; empty: the current head */
    struct hd_slice chosen;           /* the chosen head; empty: the newest checkpoint */
};

/* The thread of the path. HD_ENOTFOUND, also for an expired one, sets call->fault. */
HD_MUST_CHECK int hd_call_thread(struct hd_call *call, struct hd_thread_rec *out);
/* The same by id. */
HD_MUST_CHECK int hd_call_thread_read(struct hd_call *call, struct hd_slice id,
                                      struct hd_thread_rec *out);

/* The target that the query (checkpoint_ns, assistant_id) names in the path's thread. */
HD_MUST_CHECK int hd_checkpoint_target_of_query(struct hd_call *call,
                                                struct hd_checkpoint_target *target);
/*
 * The target that the body names: checkpoint_ns, assistant_id and checkpoint
 * {checkpoint_ns, checkpoint_id, checkpoint_map}, or checkpoint_id beside it.
 */
HD_MUST_CHECK int hd_checkpoint_target_of_body(struct hd_call *call,
                                               struct hd_checkpoint_target *target);
/* The target of the thread's latest run; target->thread must be set. */
HD_MUST_CHECK int hd_checkpoint_target_of_thread(struct hd_call *call,
                                                 struct hd_checkpoint_target *target);
/*
 * The root namespace of an assistant, by its id or the name of a graph. The assistant may have been
 * deleted; its checkpoints may still exist. HD_ENOTFOUND: neither an id nor a graph.
 */
HD_MUST_CHECK int hd_checkpoint_target_assistant_root(struct hd_call *call, struct hd_slice id,
                                                      struct hd_slice *out);
/* A root namespace of target->thread. */
HD_MUST_CHECK int hd_checkpoint_target_of_root(struct hd_call *call,
                                               struct hd_checkpoint_target *target,
                                               struct hd_slice root);

/* `id` empty: the newest checkpoint. The target must have a graph. States are read for
 * rendering. */
struct hd_address hd_checkpoint_target_address(const struct hd_call *call,
                                               const struct hd_checkpoint_target *target,
                                               struct hd_slice id);
/*
 * The state of a checkpoint in the thread's record, for a run or a request that makes it the head.
 */
struct hd_standing {
    struct hd_slice interrupts; /* JSON object: task id to list; empty: no interrupts */
    struct hd_slice next;       /* JSON list: the nodes that a run would execute */
    bool has_next;              /* it is not empty */
};

/* `id` empty: the newest checkpoint. Empty for a graph that is not served. In the arena. */
HD_MUST_CHECK int hd_checkpoint_target_standing(struct hd_call *call,
                                                const struct hd_checkpoint_target *target,
                                                struct hd_slice id, struct hd_standing *out);
/* The prefix of shown namespaces: the root with namespaces_show, else empty. */
struct hd_slice hd_checkpoint_target_shown_root(const struct hd_call *call,
                                                const struct hd_checkpoint_target *target);
/* Writes the member checkpoint_ns of a response, as shown to clients; null without a namespace. */
void hd_checkpoint_target_put_ns(struct hd_call *call, const struct hd_checkpoint_target *target);
/* The stored namespace, in the arena. */
HD_MUST_CHECK int hd_checkpoint_target_ns(struct hd_call *call,
                                          const struct hd_checkpoint_target *target,
                                          struct hd_slice *out);
/* True when the namespace has that checkpoint; with an empty `id`: any. */
HD_MUST_CHECK int hd_checkpoint_target_has(struct hd_call *call,
                                           const struct hd_checkpoint_target *target,
                                           struct hd_slice id, bool *out);
/* HD_ENOTFOUND with `Checkpoint not found` when the target's checkpoint does not exist. */
HD_MUST_CHECK int hd_checkpoint_target_check(struct hd_call *call,
                                             const struct hd_checkpoint_target *target);
/* HD_ENOTFOUND when there are checkpoints of a graph that is not served any more. */
HD_MUST_CHECK int hd_checkpoint_target_check_graph(struct hd_call *call,
                                                   const struct hd_checkpoint_target *target);

/* Copies an error of the engine to the call; frees the failure. Returns err. */
int hd_call_failure(struct hd_call *call, int err, struct hd_failure *failure);
/* The same after reading: an impossible namespace has no checkpoints, which is no error. */
int hd_checkpoint_target_failure(struct hd_call *call, const struct hd_checkpoint_target *target,
                                 int err, struct hd_failure *failure);

/* Changes the record of a thread that was read. `change` is called with the stored record until its
 * result could be stored. */
typedef int (*hd_thread_change_fn)(struct hd_call *call, struct hd_thread_rec *thread, void *ctx);
HD_MUST_CHECK int hd_call_thread_change(struct hd_call *call, struct hd_thread_rec *thread,
                                        hd_thread_change_fn change, void *ctx);
/* The same with the lines of the thread, which are stored with it. */
typedef int (*hd_lines_change_fn)(struct hd_call *call, struct hd_thread_rec *thread,
                                  struct hd_lines *lines, void *ctx);
HD_MUST_CHECK int hd_call_lines_change(struct hd_call *call, struct hd_thread_rec *thread,
                                       hd_lines_change_fn change, void *ctx);

/*
 * The checkpoint becomes the head of the target's line: sets the line, and what follows from it in
 * `thread`. A line with a run in flight stays as it is. `thread` must have been touched: the line
 * gets the same time.
 */
HD_MUST_CHECK int hd_checkpoint_target_settle(struct hd_call *call,
                                              const struct hd_checkpoint_target *target,
                                              struct hd_slice checkpoint_id,
                                              const struct hd_standing *standing,
                                              struct hd_thread_rec *thread, struct hd_lines *lines);
/* Sets *out to whether a run is in flight on the target's line. */
HD_MUST_CHECK int hd_checkpoint_target_is_busy(struct hd_call *call,
                                               const struct hd_checkpoint_target *target,
                                               bool *out);

#endif
