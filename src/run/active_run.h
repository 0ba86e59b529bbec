/*
 * A run in flight, shared by the files that handle it: queue.c starts it, run_execute.c executes
 * it, run_complete.c stores its end.
 */
#ifndef HD_RUN_ACTIVE_RUN_H
#define HD_RUN_ACTIVE_RUN_H

#include "app/app.h"
#include "auth/identity.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/map.h"
#include "events/event_log.h"
#include "graph/stream/partials.h"
#include "run/pending_admission.h"
#include "run/queue.h"
#include "run/runner.h"
#include "value/val.h"

#define HD_EVENT_LIMIT ((size_t)256 << 20) /* bytes of one event or response */

struct hd_origin;
struct hd_line_queue;

enum hd_stop {
    HD_STOP_NONE,
    HD_STOP_INTERRUPT, /* cancelled by a request */
    HD_STOP_ROLLBACK,  /* cancelled by a request; its record and checkpoints are deleted */
    HD_STOP_TIMEOUT,
    HD_STOP_DRAIN /* shutdown; the next process resumes it */
};

struct hd_active_run {
    struct hd_app *app;
    struct hd_line_queue *line;
    struct hd_active_run *next; /* the next run of the same line */
    struct hd_arena arena;      /* memory of `rec` */
    struct hd_run_rec rec;
    int64_t event_seq;
    struct hd_waiter *waiters;
    struct hd_active_run *next_later; /* see hd_queue_later() */
    int64_t later_at;                 /* monotonic */
    int tries;                        /* attempts to store its end */
    int64_t unstored_since;           /* monotonic time of the first failed attempt; 0: none */
    bool is_streamed;
    bool is_continued;           /* it made checkpoints in an earlier process */
    struct hd_slice continue_at; /* its last checkpoint, unless that is the latest one; or empty */
    bool is_answered; /* an earlier process applied its resume values: do not repeat that */
    enum hd_stop stop;

    /* While running. */
    bool is_started;
    struct hd_runner *runner; /* NULL: not started, or done */
    const struct hd_app_graph *graph;
    struct hd_val *kwargs;
    struct hd_val *command;   /* the rest of the command in kwargs, for a restarted run; or NULL */
    struct hd_val *secrets;   /* values of its markers; NULL: none, or lost in a restart */
    struct hd_slice root;     /* the namespace of its root graph */
    struct hd_slice head;     /* the head that a client chose, if the run was pending; or empty */
    struct hd_event_log *log; /* held; NULL: the run never needed one */
    struct hd_event_log_watch watch;
    struct hd_partials partials;
    bool has_values; /* the first state was emitted */
    uint32_t modes;
    bool subgraphs;
    bool is_resumable;
    bool is_temporary; /* its thread is deleted when it ends */
    int64_t started_at;
    int64_t deadline; /* monotonic */

    /* The outcome; set by run_execute.c, stored by run_complete.c. */
    struct hd_outcome outcome;
    struct hd_val *output;    /* NULL: none */
    struct hd_buf values;     /* the output as JSON, if a waiter exists */
    struct hd_buf interrupts; /* JSON: task id to list */
    struct hd_buf error;      /* JSON */
    struct hd_buf receipt;    /* JSON of a stopped run: step, streamed tokens, tools in flight */
    struct hd_event_log_page last_page; /* the last events, stored with the end; may be empty */
    struct hd_origin *origins;          /* the state before the run, for a rollback */
    bool has_next;
};

/*
 * The runs of one line: an agent's root namespace in a thread. The first may be running. Without
 * namespaces.parallel a thread has one line, for all its agents.
 */
struct hd_line_queue {
    struct hd_thread_queue *thread_queue;
    struct hd_line_queue *next; /* of the same thread */
    struct hd_active_run *first;
    struct hd_line_queue *next_ready;
    bool is_ready;   /* in the list `ready`: waits for a free slot */
    bool is_busy;    /* its first run is starting, running or being stored */
    size_t visitors; /* delegates that execute on the line: no run starts */
    size_t ns_len;
    char ns[];
};

struct hd_thread_queue { /* the lines of one thread that have runs or visitors */
    struct hd_queue *queue;
    struct hd_line_queue *first;
    size_t key_len;
    char key[];
};

struct hd_queue {
    struct hd_app *app;
    struct hd_map thread_queues; /* by principal:thread */
    uv_timer_t timer;
    size_t running;
    size_t pending;
    uint64_t ended;
    uint64_t failed;
    size_t recovered;
    size_t storing; /* number of ends being stored */
    struct hd_active_run *later;
    struct hd_pending_admissions admissions;
    struct hd_line_queue *ready;
    struct hd_line_queue **ready_tail;
    struct hd_buf scratch;

    bool is_paused;    /* see hd_queue_pause_starts() */
    bool is_suspended; /* hd_queue_suspend() */
    bool is_draining;
    void (*drained)(void *ctx);
    void *drained_ctx;
};

/* run_execute.c: starts the run. Always ends in hd_run_complete(), also if the start fails. */
void hd_run_execute(struct hd_active_run *active);
/*
 * Opens and holds the event log of the run, or raises its number to active->event_seq. Call it
 * before the thread's record is read: numbers of later events are in the log, those of earlier ones
 * in the record.
 */
void hd_run_execute_open_log(struct hd_active_run *active);
/* Reads the record of a run that ends before it starts. */
HD_MUST_CHECK int hd_run_execute_prepare(struct hd_active_run *active, struct heddle_error *fault);
/* The stream modes that have a reader; 0: none. */
unsigned hd_run_execute_modes(const struct hd_active_run *active);
/* The modes that a later reader may request. */
unsigned hd_run_execute_all_modes(const struct hd_active_run *active);
/*
 * Appends an event of the run or of a delegate. Its `ns` is the namespace that clients see, `root`
 * the one of its checkpoints.
 */
void hd_run_execute_emit(struct hd_active_run *active, const struct hd_runner_event *event,
                         struct hd_slice root);
/* Writes the receipt of a stopped run; `result` NULL: it never started. */
void hd_run_execute_receipt(struct hd_active_run *active,
                            const struct hd_engine_run_result *result);
/* Ends a run that cannot start. */
void hd_run_execute_fail(struct hd_active_run *active, const char *type, const char *text);
void hd_run_execute_stop(struct hd_active_run *active, enum hd_stop stop);
void hd_run_execute_fini(struct hd_active_run *active);

/* run_complete.c: stores the end, notifies the waiters, then calls hd_queue_ended(). */
void hd_run_complete(struct hd_active_run *active);
/* Retries after a store error. */
void hd_run_complete_again(struct hd_active_run *active);

/*
 * run_webhook.c: the webhook that reports the end of the run, stored with that end; NULL: the run
 * has no webhook. Borrows nothing from the run.
 */
HD_MUST_CHECK struct hd_webhook *hd_run_webhook(const struct hd_active_run *active);

/* queue.c: starts due runs soon. */
void hd_queue_wake(struct hd_queue *queue);
/* queue.c: the end is stored, or left to the next process. Frees the active run. */
void hd_queue_ended(struct hd_active_run *active);
/* Retries with back-off to store the end. During a drain, leaves it to the next process. */
void hd_queue_later(struct hd_active_run *active);

/*
 * For delegates, which execute on the line of their assistant. The run that is running on a line;
 * NULL: none. Without namespaces.parallel always NULL: the thread executes one run at a time, and
 * a delegate is a part of it.
 */
struct hd_active_run *hd_queue_line_run(struct hd_queue *queue, struct hd_slice principal,
                                        struct hd_slice thread, struct hd_slice ns);
/* A delegate enters a line without a running run: no run of the line starts until it leaves. */
HD_MUST_CHECK int hd_queue_line_enter(struct hd_queue *queue, struct hd_slice principal,
                                      struct hd_slice thread, struct hd_slice ns);
void hd_queue_line_leave(struct hd_queue *queue, struct hd_slice principal, struct hd_slice thread,
                         struct hd_slice ns);

#endif
