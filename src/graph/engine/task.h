/*
 * A task: one execution of a node in a superstep. The first part describes a task (tasks.c,
 * task_id.c); the second runs it (task.c) and is the interface that node kinds use.
 */
#ifndef HD_GRAPH_ENGINE_TASK_H
#define HD_GRAPH_ENGINE_TASK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "base/buf.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/slice.h"
#include "base/uuid.h"
#include "graph/decl/graph.h"
#include "graph/engine/apply.h"
#include "graph/engine/failure.h"
#include "graph/engine/writes.h"
#include "graph/expr/expr.h"

struct hd_checkpoint_state;
struct hd_loop;

#define HD_PULL SIZE_MAX

enum hd_task_status {
    HD_TASK_READY,
    HD_TASK_RUNNING,
    HD_TASK_DONE, /* its writes exist, from this run or an earlier one */
    HD_TASK_ASKING,
    HD_TASK_FAILED,
    HD_TASK_CANCELLED,
    HD_TASK_LEFT /* it returned a command for the parent graph */
};

struct hd_task {
    struct hd_loop *loop; /* NULL: the task is only described, not run */
    const struct hd_graph *graph;
    const struct hd_node *node;
    char id[HD_UUID_SIZE];
    size_t push;          /* index of the send, or HD_PULL */
    struct hd_val *arg;   /* of the send */
    struct hd_val *input; /* computed on first use by hd_task_input() */
    struct hd_writes writes;
    enum hd_task_status status;
    bool has_written; /* the loop's pending writes may include writes of this task */

    /* while running */
    struct hd_val **channels; /* visible to expressions; by channel of the state */
    struct hd_val *resume;    /* list of its resume values */
    size_t asked;             /* interrupts so far, in this attempt */
    size_t subgraph_count;
    int attempts;
    bool was_retried;
    struct hd_val *questions; /* interrupted: list of interrupt records */
    struct hd_failure failure;
    struct hd_val *command; /* LEFT: update and goto for the parent graph */
    uv_timer_t *timer;      /* the node kind's, or the delay between attempts */
    uv_timer_t *deadline;
    void (*on_timer)(struct hd_task *task);
    void *work;            /* private data of the node kind */
    struct hd_loop *inner; /* subgraph */
    int64_t began_us;      /* start of the attempt */
    /* Ids in the events mode, of the task and of the model call; empty: not assigned yet. */
    char trace[HD_UUID_SIZE];
    char call_trace[HD_UUID_SIZE];
};

/* ---- description ------------------------------------------------------ */

/* A LangGraph.js task id depends on a trigger: the first of its triggers with an unseen version. */
HD_MUST_CHECK int hd_task_js_id(const struct hd_task *task, const struct hd_checkpoint_state *live,
                                struct hd_slice ns, int64_t step, size_t trigger,
                                char out[HD_UUID_SIZE]);
/* The task's id as the runtime `ids` computes it. */
HD_MUST_CHECK int hd_task_id(const struct hd_task *task, const struct hd_checkpoint_state *live,
                             struct hd_slice ns, int64_t step, enum hd_graph_ids ids,
                             char out[HD_UUID_SIZE]);
HD_MUST_CHECK struct hd_val *hd_task_input(struct hd_task *task,
                                           const struct hd_checkpoint_state *live);
/* Appends `parent|node:id`. */
HD_MUST_CHECK int hd_task_ns(const struct hd_task *task, struct hd_slice parent,
                             struct hd_buf *out);
/* The path as the store keeps it, and as clients see it. */
HD_MUST_CHECK int hd_task_path(const struct hd_task *task, struct hd_buf *out);
HD_MUST_CHECK struct hd_val *hd_task_path_val(const struct hd_task *task);
/* The channels that triggered it, sorted; `__pregel_push` for sends. */
HD_MUST_CHECK struct hd_val *hd_task_triggers(const struct hd_task *task);
/* True if the node runs a graph that has checkpoints. */
bool hd_node_has_states(const struct hd_node *node);
struct hd_applied hd_task_applied(const struct hd_task *task);

/* XXH3-128 of the text, 32 hexadecimal digits. */
void hd_hash_hex(struct hd_slice text, char out[33]);

/* ---- running ---------------------------------------------------------- */

void hd_task_start(struct hd_task *task);
/* Stops it without an event. */
void hd_task_stop(struct hd_task *task);

/* Node kinds end a task with one of these; later calls for the same attempt are ignored. */

/* Takes `update` and `go`; NULL: none. `to_parent`: a command for the parent graph. */
void hd_task_finish(struct hd_task *task, struct hd_val *update, struct hd_val *go, bool to_parent);
/* Ends it without any write, including those of its edges, so no task follows it. */
void hd_task_rest(struct hd_task *task);
void hd_task_fail(struct hd_task *task, const char *type, const char *fmt, ...) HD_PRINTF(3, 4);
void hd_task_fail_code(struct hd_task *task, int err, const struct heddle_error *fault);
void hd_task_fail_text(struct hd_task *task, struct hd_slice type, struct hd_slice text);
/* Interrupts the task. Takes `interrupts`. */
void hd_task_ask(struct hd_task *task, struct hd_val *interrupts);
/* Evaluates the update and the goto (each may be NULL) and finishes. */
void hd_task_finish_exprs(struct hd_task *task, const struct hd_scope *scope,
                          const struct hd_expr *update, const struct hd_expr *go, bool to_parent);

/* Node kinds call these while the task runs. */

/* The scope of the node's expressions; borrows from the task. */
struct hd_scope hd_task_scope(struct hd_task *task);
/* The resume value of the next interrupt: 0 and a borrowed value, or HD_ENOTFOUND. */
HD_MUST_CHECK int hd_task_answer(struct hd_task *task, struct hd_val **out);
/* An interrupt record with `value`, which it takes. */
HD_MUST_CHECK struct hd_val *hd_task_question(struct hd_task *task, struct hd_val *value);
void hd_task_emit(struct hd_task *task, const struct hd_val *value);
/* Emits a model's message, whole or a chunk. `model` is the model's name. */
void hd_task_message(struct hd_task *task, const char *model, const struct hd_val *message);
/*
 * Emits the start of a model call, or its end if `answer` is given. `id`, at most 36 characters,
 * identifies the call; NULL: any.
 */
void hd_task_call(struct hd_task *task, const char *model, const char *id,
                  const struct hd_val *messages, const struct hd_val *answer);
/*
 * Emits the start of a tool call, its end (`output` given) or its failure (`is_error`): `output` is
 * the tool message. `id` is the call's.
 */
void hd_task_tool(struct hd_task *task, struct hd_slice name, struct hd_slice id,
                  const struct hd_val *input, const struct hd_val *output, bool is_error);
/* The values of the task's last interrupts, from before the resume: a list; NULL: HD_ENOMEM. */
HD_MUST_CHECK struct hd_val *hd_task_asked(const struct hd_task *task);
/* Calls `fn` after `ms`; one timer at a time. */
HD_MUST_CHECK int hd_task_wait(struct hd_task *task, int64_t ms, void (*fn)(struct hd_task *));

/* ---- resume.c --------------------------------------------------------- */

HD_MUST_CHECK int hd_resume_prepare(struct hd_task *task);
/*
 * For a subgraph whose checkpoint was loaded: sets is_answered if it has got past the interrupts
 * that its parent graph has stored. That is so when an earlier run ended before the parent graph
 * stored the outcome. The stored resume value without an id was for those interrupts.
 */
HD_MUST_CHECK int hd_resume_check_parent(struct hd_loop *loop);
bool hd_is_interrupt_id(struct hd_slice text);

#endif
