/*
 * Which thread a request is about, which namespace of it, and which checkpoint.
 *
 * A thread has a line of checkpoints for each of its agents: a *root* namespace,
 * assistant:<id> or one that a run gave itself, and below it those of subgraphs. A
 * request names one by checkpoint_ns or assistant_id, or means that of the latest
 * run. Where somebody chose another head than the newest checkpoint (PATCH
 * …/branches), the thread's record has it in `heads`.
 *
 * Everything here waits for the store: for store threads.
 */
#ifndef HD_API_STATE_CHECKPOINT_TARGET_H
#define HD_API_STATE_CHECKPOINT_TARGET_H

#include <stdbool.h>

#include "api/api.h"
#include "graph/state/state.h"
#include "records/record.h"
#include "run/run_commit.h"

struct hd_failure;

struct hd_spot {
    struct hd_thread_rec thread;
    struct hd_slice root;             /* empty: no namespace follows from the request */
    struct hd_slice inner;            /* of a subgraph, relative to the root */
    struct hd_slice assistant_id;     /* whose root it is; empty: nobody's */
    struct hd_slice graph_id;         /* empty: nobody knows */
    const struct hd_app_graph *graph; /* NULL: not known, or not served any more */
    struct hd_slice checkpoint_id;    /* asked for; empty: the current head */
    struct hd_slice chosen;           /* the head that was chosen; empty: it is the newest */
};

/* The thread of the path. HD_ENOTFOUND says so in call->fault; so it is with one that expired. */
HD_MUST_CHECK int hd_call_thread(struct hd_call *call, struct hd_thread_rec *out);
/* The same by id. */
HD_MUST_CHECK int hd_call_thread_read(struct hd_call *call, struct hd_slice id,
                                      struct hd_thread_rec *out);

/* The spot that the query (checkpoint_ns, assistant_id) names in the path's thread. */
HD_MUST_CHECK int hd_spot_of_query(struct hd_call *call, struct hd_spot *spot);
/*
 * The spot that the body names: checkpoint_ns, assistant_id and checkpoint
 * {checkpoint_ns, checkpoint_id, checkpoint_map}, or checkpoint_id beside it.
 */
HD_MUST_CHECK int hd_spot_of_body(struct hd_call *call, struct hd_spot *spot);
/* That of the thread's latest run; spot->thread must be set. */
HD_MUST_CHECK int hd_spot_of_thread(struct hd_call *call, struct hd_spot *spot);
/* A root namespace of spot->thread. */
HD_MUST_CHECK int hd_spot_of_root(struct hd_call *call, struct hd_spot *spot, struct hd_slice root);

/* `id` empty: the newest checkpoint. The spot must have a graph. States come for rendering. */
struct hd_address hd_spot_address(const struct hd_call *call, const struct hd_spot *spot,
                                  struct hd_slice id);
/* What the thread's record says of a checkpoint, whether a run or a request made it the head. */
struct hd_standing {
    struct hd_slice interrupts; /* JSON object: task id to list; empty: nothing is asked */
    bool has_next;              /* a run would have something to do */
};

/* `id` empty: the newest checkpoint. A graph that is not served says nothing. In the arena. */
HD_MUST_CHECK int hd_spot_standing(struct hd_call *call, const struct hd_spot *spot,
                                   struct hd_slice id, struct hd_standing *out);
/* What namespaces are shown below: the root, or nothing when the configuration says so. */
struct hd_slice hd_spot_shown_root(const struct hd_call *call, const struct hd_spot *spot);
/* Writes the member checkpoint_ns of an answer, as it is shown; null when there is none. */
void hd_spot_put_ns(struct hd_call *call, const struct hd_spot *spot);
/* The stored namespace, in the arena. */
HD_MUST_CHECK int hd_spot_ns(struct hd_call *call, const struct hd_spot *spot,
                             struct hd_slice *out);
/* Whether the namespace has that checkpoint; with an empty `id`: any. */
HD_MUST_CHECK int hd_spot_has(struct hd_call *call, const struct hd_spot *spot, struct hd_slice id,
                              bool *out);
/* HD_ENOTFOUND with `Checkpoint not found` when the spot names one that is not there. */
HD_MUST_CHECK int hd_spot_check(struct hd_call *call, const struct hd_spot *spot);
/* HD_ENOTFOUND when there are checkpoints of a graph that is not served any more. */
HD_MUST_CHECK int hd_spot_check_graph(struct hd_call *call, const struct hd_spot *spot);

/* An error of the engine becomes the call's; lets the failure go. Returns err. */
int hd_call_failure(struct hd_call *call, int err, struct hd_failure *failure);
/* The same after reading: a namespace that cannot be is one without checkpoints, and no error. */
int hd_spot_failure(struct hd_call *call, const struct hd_spot *spot, int err,
                    struct hd_failure *failure);

/*
 * Changes the record of a thread that was read: `change` is called until what it made
 * of the record could be stored, each time with what is stored now.
 */
typedef int (*hd_thread_change_fn)(struct hd_call *call, struct hd_thread_rec *thread, void *ctx);
HD_MUST_CHECK int hd_call_thread_change(struct hd_call *call, struct hd_thread_rec *thread,
                                        hd_thread_change_fn change, void *ctx);

#endif
