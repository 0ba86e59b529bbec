/*
 * A loop runs one graph in supersteps, in one namespace of the thread. It owns the current
 * checkpoint, the writes pending on it and the tasks of the superstep. A run has one root loop;
 * a task that runs a subgraph has an inner loop.
 */
#ifndef HD_GRAPH_ENGINE_LOOP_H
#define HD_GRAPH_ENGINE_LOOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "base/compiler.h"
#include "base/list.h"
#include "base/slice.h"
#include "base/uuid.h"
#include "graph/engine/checkpoint_state.h"
#include "graph/engine/failure.h"
#include "graph/engine/list_cache.h"
#include "graph/engine/save.h"
#include "graph/engine/tasks.h"
#include "graph/engine/writes.h"
#include "store/list_append.h"

struct hd_event;
struct hd_origin;
struct hd_engine_run;
struct hd_task;

enum hd_loop_status {
    HD_LOOP_LOADING,
    HD_LOOP_RUNNING,
    HD_LOOP_ENDING, /* waits for saves */
    HD_LOOP_ENDED
};

enum hd_loop_end {
    HD_END_DONE,
    HD_END_INTERRUPTED,
    HD_END_FAILED,
    HD_END_LEFT, /* a command for the parent graph */
    HD_END_CANCELLED
};

struct hd_loop {
    struct hd_engine_run *run;
    struct hd_task *outer; /* the task that runs this subgraph; NULL: the root */
    const struct hd_graph *graph;
    char *place;            /* the namespace as the store keeps it */
    char *ns;               /* the same, relative to the run's root: the end of `place` */
    struct hd_val *parents; /* checkpoint_map of the parent graphs; object */
    bool saves;             /* false: stores nothing */
    bool has_checkpoint_id; /* the run addressed a checkpoint */
    bool sees_replay;       /* uses run->replay */
    /* The parent graph's is_resuming: -1 unset, 0 no, 1 yes. */
    int resuming;

    enum hd_loop_status status;
    enum hd_loop_end end;
    struct hd_load load;
    struct hd_checkpoint_state live;
    struct hd_pending_writes pending_writes;
    bool has_old_pending_writes;     /* the loaded checkpoint had pending writes */
    struct hd_origin *origin;        /* of the loaded checkpoint; NULL: not recorded */
    struct hd_val **saved_versions;  /* of the last stored checkpoint */
    struct hd_list_tracker *tracker; /* by channel: lists as last stored */
    struct hd_val *metadata;         /* of the checkpoint; object */
    char saved_id[HD_UUID_SIZE];     /* the checkpoint loaded or stored last; empty: none */
    char parent_id[HD_UUID_SIZE];    /* of its parent; empty: none */
    char loaded_id[HD_UUID_SIZE];    /* of the initial checkpoint, also if it is not stored */
    int64_t step, stop;
    int64_t recursion_limit; /* supersteps; a subgraph can set its own limit */
    bool is_replaying;
    bool has_stored; /* a checkpoint with saved_id is stored */
    bool has_tasks;  /* `tasks` belong to the current checkpoint */
    struct hd_tasks tasks;
    struct hd_val *null_resume; /* resume value without an id, for the first interrupt */
    bool null_resume_used;
    bool is_answered; /* its parent graphs' null_resume is used: hd_resume_check_parent() */

    size_t running;
    bool is_advancing;
    bool is_starting;          /* tasks are being started: their ends are handled afterwards */
    bool is_entering;          /* hd_loop_start() has not returned */
    bool is_working;           /* the superstep's tasks have started and are not yet applied */
    struct hd_val *latest;     /* the last values event (subgraphs) */
    struct hd_val *interrupts; /* list */
    struct hd_failure failure;
    struct hd_val *command; /* LEFT */
    struct hd_val *input;   /* NULL: none */
    struct hd_val *input_command;

    struct hd_write_chain chain;   /* orders its checkpoints */
    size_t saving;                 /* store calls in progress */
    char (*written)[HD_UUID_SIZE]; /* tasks that wrote in this run: exit mode */
    size_t written_count, written_cap;
    struct hd_failure save_failure;
    bool is_given_up;         /* cancelled: ends when its saves are done */
    bool is_settled;          /* its last task ended with partial output; the step is complete */
    int64_t settled_at;       /* that step */
    char trace[HD_UUID_SIZE]; /* its id in the events mode; empty: not assigned yet */
    HD_DLINK(struct hd_loop) parked; /* in engine->parked */
    uv_idle_t *pause;                /* yields to the event loop after many steps without I/O */

    void (*on_end)(struct hd_loop *loop);
};

HD_MUST_CHECK int hd_loop_create(struct hd_engine_run *run, struct hd_task *outer,
                                 const struct hd_graph *graph, const char *ns,
                                 struct hd_loop **out);
void hd_loop_destroy(struct hd_loop *loop);
/*
 * Takes the input or command (NULL: none). HD_READY: the loop has ended. 0: calls on_end once,
 * later.
 */
HD_MUST_CHECK int hd_loop_start(struct hd_loop *loop, struct hd_val *input, struct hd_val *command);
void hd_loop_cancel(struct hd_loop *loop);
/* Cancels a loop without calling on_end: it frees itself when its saves are done. */
void hd_loop_abandon(struct hd_loop *loop);
/* Advances as far as possible; may free the loop. */
void hd_loop_advance(struct hd_loop *loop);
/* The engine is no longer suspended: advances. */
void hd_loop_leave_park(struct hd_loop *loop);
/* Starts another attempt of a task with `start`, and advances afterwards. */
void hd_loop_retry(struct hd_loop *loop, struct hd_task *task, void (*start)(struct hd_task *task));
/* A task has ended: advances if it was the last, unless tasks are being started. */
void hd_loop_ended_task(struct hd_loop *loop, const struct hd_task *task);
/* A save has ended. */
void hd_loop_saved(struct hd_loop *loop);
/* loop_input.c: applies the input, the command or a resume. */
HD_MUST_CHECK int hd_loop_apply_input(struct hd_loop *loop, struct hd_val *input,
                                      struct hd_val *command);
/* `task` NULL: writes of the run itself. */
HD_MUST_CHECK int hd_loop_put_writes(struct hd_loop *loop, struct hd_task *task,
                                     const struct hd_write *list, size_t count);
/* Exit mode: stores the pending writes of the last step. */
HD_MUST_CHECK int hd_loop_put_pending(struct hd_loop *loop);
/* Ends the loop with `end` as soon as its saves are done. */
void hd_loop_finish(struct hd_loop *loop, enum hd_loop_end end);
/* Emits the writes of a task as events. */
HD_MUST_CHECK int hd_loop_output_writes(struct hd_loop *loop, struct hd_task *task,
                                        const struct hd_writes *writes, bool is_cached);
/* `source` NULL: the end of a run in exit mode. */
HD_MUST_CHECK int hd_loop_put_checkpoint(struct hd_loop *loop, const char *source);
struct hd_slice hd_loop_ns(const struct hd_loop *loop);
/* True if the next run on the thread can reuse this loop's lists; the key for list_cache.h. */
bool hd_loop_caches_lists(const struct hd_loop *loop);
struct hd_list_cache_key hd_loop_list_cache_key(const struct hd_loop *loop);
/* The namespace in which its checkpoints are stored. */
struct hd_slice hd_loop_place(const struct hd_loop *loop);
HD_MUST_CHECK int hd_loop_emit_values(struct hd_loop *loop);
/* The channels that values and updates events show. */
const size_t *hd_loop_output(const struct hd_loop *loop, size_t *count);

/* events.c */
void hd_emit(struct hd_loop *loop, const struct hd_event *event);

#endif
