/*
 * Internals of the runtime.
 *
 *   runtime.c   lifetime: create, start, reload, drain, destroy; deferred work and timers
 *   listen.c    sockets, and connections that have not sent hello
 *   worker.c    one worker: its process, its link, hello, ready, ping, its end
 *   pool.c      how many workers there are, and which one gets a call
 *   call.c      the server's calls to workers
 *   request.c   the workers' requests to the server
 *   scope.c     what a call permits a worker to do
 *
 * Everything runs on the loop, except `work` of ops, which runs on store threads and returns
 * through runtime->wake.
 *
 * A worker that ends is first marked (hd_rt_worker_end()); its calls are notified in
 * hd_runtime_settle(), never inside a user's call.
 */
#ifndef HD_RUNTIME_RUNTIME_INTERNAL_H
#define HD_RUNTIME_RUNTIME_INTERNAL_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/json.h"
#include "graph/engine/patience.h"
#include "runtime/link.h"
#include "runtime/proc.h"
#include "runtime/runtime.h"

#define HD_RT_PROTOCOL 1
#define HD_RT_KEY_SIZE 65
#define HD_RT_BUCKETS 64
#define HD_RT_MAX_WORKERS 1024            /* of a language, including remote ones */
#define HD_RT_MAX_WAITING ((size_t)65536) /* calls without a worker */
#define HD_RT_MAX_OPS 32                  /* tables of ops */
#define HD_RT_MAX_WORK 256                /* running ops of a worker; it is not read at the limit */
#define HD_RT_MAX_WORK_BYTES ((size_t)256 << 20)
#define HD_RT_MAX_STARTED 1024              /* ops of a worker that were started */
#define HD_RT_MAX_QUEUED ((size_t)8 << 20)  /* bytes of held pieces; it is not read above */
#define HD_RT_MAX_UNSENT ((size_t)64 << 20) /* bytes that it has not read */

enum hd_rt_worker_state {
    HD_WORKER_STARTING, /* has not sent hello */
    HD_WORKER_LOADING,  /* has not sent ready */
    HD_WORKER_READY,
    HD_WORKER_DRAINING, /* ends when idle */
    HD_WORKER_ENDING    /* is lost */
};

/* Why a worker is replaced. */
enum hd_rt_worker_age {
    HD_WORKER_FINE,
    HD_WORKER_OLD,  /* files have changed: it works on until a new one is ready */
    HD_WORKER_HEAVY /* it uses too much memory: no more runs */
};

struct hd_rt_worker {
    struct hd_runtime *runtime;
    struct hd_rt_worker *next;
    enum hd_rt_language language;
    int number;
    int slot; /* -1: remote */
    enum hd_rt_worker_state state;
    enum hd_rt_worker_age age;
    bool is_replaced; /* a new one is ready */
    bool is_refused;  /* incompatible versions: a new worker would be refused too */
    bool is_notified; /* its callers were notified that it is lost */
    bool is_shut;     /* it closed its connection: the exit status of its process is the reason */
    bool is_late;     /* the ping has timed out; data that arrived in time may still be read */
    bool is_crowding; /* it is not read: too many of its requests are pending */
    char name[32];    /* "python 1" */
    char key[HD_RT_KEY_SIZE];
    struct hd_proc *proc; /* NULL: it has ended, or is remote */
    struct hd_link *link;
    char why[300];     /* why it is lost */
    int64_t since_us;  /* start of this state */
    int64_t ready_us;  /* 0: never */
    int64_t exited_us; /* 0: alive; its link may have unread data */
    int64_t kill_us;   /* in HD_WORKER_ENDING: time of the kill */
    int64_t heard_us;  /* last time that it sent or read data */
    int64_t pinged_us, weighed_us;
    int64_t beaten_us;                   /* time of the last sign of life that it was sent */
    size_t unsent;                       /* last seen value, to detect progress */
    uint32_t last_id, ping_id, drain_id; /* 0: not sent */
    struct hd_rt_call *calls[HD_RT_BUCKETS];
    size_t call_count, run_count;
    struct hd_rt_request_box *requests[HD_RT_BUCKETS];
    size_t work_count, work_bytes, started_count;
    size_t queued; /* bytes of held pieces */
};

/* A slot for a worker of a language. */
struct hd_rt_slot {
    struct hd_rt_worker *worker; /* the newest; NULL: waits to be started */
    int64_t start_us;
    unsigned failures; /* in a row */
};

struct hd_rt_pool {
    struct hd_rt_slot *slots;
    int slot_count;
    struct hd_rt_call *waiting, **waiting_tail; /* in order */
    size_t waiting_count, waiting_others;       /* calls that are not runs */
    int64_t deserted_us;                        /* time since when none is ready; 0: one is */
    uint64_t restarts;
    char why[400]; /* why the last one was lost */
};

struct hd_op_table {
    const struct hd_rt_op *ops;
    size_t count;
    void *ctx;
};

/* What a call permits its worker; reference-counted on the loop. */
struct hd_scope_ref {
    unsigned refs;
    size_t at_work;          /* running ops, on threads */
    size_t started;          /* ops with `start` that are pending */
    struct hd_rt_call *call; /* NULL: ended */
    struct hd_rt_scope scope;
    struct hd_arena arena;
    struct hd_val **kept; /* all frozen values */
    size_t kept_count, kept_cap;
};

/* A queued message, in one allocation. */
struct hd_rt_kept {
    struct hd_rt_kept *next;
    struct hd_rt_message message;
    size_t bytes;
};

struct hd_rt_call {
    struct hd_runtime *runtime;
    struct hd_rt_call *next; /* in the pool's queue, or the worker's bucket */
    struct hd_rt_call *all_next, **all_link;
    enum hd_rt_language language;
    struct hd_rt_worker *worker; /* NULL: it waits for one, or has lost it */
    uint32_t id;
    bool is_waiting; /* in the pool's queue */
    bool is_run;
    bool is_held;
    bool is_dropped; /* no more callbacks */
    bool is_cancelled;
    bool is_giving; /* in a callback */
    bool has_end;   /* `end` is to be delivered */
    bool is_soon;   /* in runtime->soon */
    enum hd_rt_end end;
    struct hd_rt_kept *end_message;
    struct hd_rt_kept *asked; /* while it waits */
    struct hd_rt_kept *pieces, **pieces_tail;
    struct hd_scope_ref *scope;
    int64_t made_us, timeout_us, patience_us;
    struct hd_rt_call *soon_next;
    void (*on_piece)(void *ctx, const struct hd_rt_message *message);
    void (*on_end)(void *ctx, enum hd_rt_end end, const struct hd_rt_message *message);
    void *ctx;
};

/* A worker's request. */
struct hd_rt_request_box {
    struct hd_rt_request request;   /* must be first */
    struct hd_rt_request_box *next; /* in the worker's bucket */
    struct hd_rt_request_box *done_next;
    struct hd_rt_worker *worker; /* NULL: lost */
    uint32_t id;
    const struct hd_rt_op *op;
    struct hd_scope_ref *scope;
    struct hd_json json;
    struct hd_arena arena;
    char *memory; /* the frame */
    size_t bytes;
    struct hd_store_retry retry; /* of an op with `work` */
    bool is_cancelled;
    bool is_answered;
};

/* A connection that has not sent hello. */
struct hd_rt_guest;

struct hd_runtime {
    uv_loop_t *loop;
    struct heddle *store;
    const struct hd_rt_settings *settings;
    hd_rt_ready_fn on_ready;
    void *ready_ctx;
    struct hd_op_table tables[HD_RT_MAX_OPS];
    size_t table_count;

    uv_pipe_t pipe;
    uv_tcp_t tcp;
    bool has_pipe, has_tcp;
    char folder[108], path[108]; /* of the Unix socket */
    struct hd_rt_guest *guests;
    size_t remote_guests; /* of them, those over TCP */

    uv_prepare_t flusher; /* writes the frames of this loop iteration */
    uv_timer_t later;     /* runs deferred work */
    uv_timer_t ticker;
    uv_signal_t child;   /* SIGCHLD */
    uv_async_t wake;     /* an op is done */
    size_t open_handles; /* those above, and the handles of links and processes */
    bool is_started, is_draining, is_destroyed;
    bool is_suspended; /* hd_runtime_suspend() */
    int64_t drain_until_us;
    void (*drained)(void *ctx);
    void *drained_ctx;

    struct hd_rt_worker *workers;
    int last_number[HD_RT_LANGUAGES];
    uint64_t tick_ms;
    struct hd_rt_pool pools[HD_RT_LANGUAGES];
    struct hd_rt_call *calls; /* all */
    size_t call_count[HD_RT_LANGUAGES];
    size_t timed_count;                   /* of calls with a timeout */
    struct hd_rt_call *soon, **soon_tail; /* have an end or pieces to deliver */
    size_t soon_count;
    size_t open_requests;

    pthread_mutex_t lock; /* protects the members below */
    struct hd_rt_request_box *done, **done_tail;
};

/* runtime.c */
extern const char *const hd_rt_language_names[HD_RT_LANGUAGES];
/* Schedules hd_runtime_settle() on the loop. */
void hd_runtime_wake(struct hd_runtime *runtime);
/* A handle of a link or a process was closed. */
void hd_runtime_closed(void *runtime);
int64_t hd_runtime_now(const struct hd_runtime *runtime);

/* listen.c */
HD_MUST_CHECK int hd_listen_open(struct hd_runtime *runtime, struct heddle_error *fault);
void hd_listen_close(struct hd_runtime *runtime, uv_close_cb closed);
void hd_listen_tick(struct hd_runtime *runtime, int64_t now);

/* worker.c */
HD_MUST_CHECK int hd_rt_worker_start(struct hd_runtime *runtime, enum hd_rt_language language,
                                     int slot, struct hd_rt_worker **out,
                                     struct heddle_error *fault);
/* Identifies a worker by its hello. The error is sent as the response. */
HD_MUST_CHECK int hd_rt_worker_greet(struct hd_runtime *runtime, hd_json_val hello, bool is_remote,
                                     struct hd_rt_worker **out, struct heddle_error *fault);
/* The guest's link becomes the worker's; responds to its hello. */
void hd_rt_worker_adopt(struct hd_rt_worker *worker, struct hd_link *link, uint32_t id);
/* Marks it as lost; callbacks follow later. */
void hd_rt_worker_end(struct hd_rt_worker *worker, const char *fmt, ...) HD_PRINTF(2, 3);
void hd_rt_worker_drain(struct hd_rt_worker *worker);
/* Whether it can be freed: it has ended, and its callers were notified. */
bool hd_rt_worker_settle(struct hd_rt_worker *worker);
void hd_rt_worker_destroy(struct hd_rt_worker *worker);
void hd_rt_worker_tick(struct hd_rt_worker *worker, int64_t now);
/* Stops its process, or continues it; a remote worker holds its runs meanwhile. */
void hd_rt_worker_suspend(struct hd_rt_worker *worker, bool is_suspended);
/* Starts or stops reading its link. */
void hd_rt_worker_regulate(struct hd_rt_worker *worker);
void hd_rt_worker_answer(struct hd_rt_worker *worker, uint32_t id, struct hd_slice head);
void hd_rt_worker_is_ready(struct hd_rt_worker *worker, uint32_t id, struct hd_slice head);

/* pool.c */
HD_MUST_CHECK int hd_pool_open(struct hd_runtime *runtime, enum hd_rt_language language);
/* Starts missing workers when they are due. */
void hd_pool_staff(struct hd_runtime *runtime, enum hd_rt_language language, int64_t now);
/* The worker has ended: its slot is free. */
void hd_pool_lost(struct hd_rt_worker *worker, int64_t now);
void hd_pool_ready(struct hd_rt_worker *worker);
/* The best worker for a call; NULL: none can take it now. */
struct hd_rt_worker *hd_pool_pick(struct hd_runtime *runtime, enum hd_rt_language language,
                                  bool is_run);
/* Assigns waiting calls to workers. */
void hd_pool_feed(struct hd_runtime *runtime, enum hd_rt_language language);
void hd_pool_tick(struct hd_runtime *runtime, enum hd_rt_language language, int64_t now);
void hd_pool_close(struct hd_runtime *runtime, enum hd_rt_language language);
/* Whether it needs a check within less than a second. */
bool hd_pool_is_busy(const struct hd_runtime *runtime, enum hd_rt_language language);
/* Starts a new one in its slot. */
void hd_pool_replace(struct hd_rt_worker *worker, enum hd_rt_worker_age age);
/* It reports that files have changed. */
void hd_pool_changed(struct hd_rt_worker *worker, int64_t now);
/* Drains replaced workers that are idle. */
void hd_pool_retire(struct hd_rt_worker *worker);

/* call.c */
/* Sends its message; HD_RT_LOST follows if that fails. */
void hd_rt_call_assign(struct hd_rt_call *call, struct hd_rt_worker *worker);
bool hd_rt_call_frame(struct hd_rt_worker *worker, const struct hd_frame *frame);
/* All calls of the worker end as lost. */
void hd_rt_call_lose_all(struct hd_rt_worker *worker);
void hd_rt_call_lose(struct hd_rt_call *call, const char *text);
void hd_rt_call_soon(struct hd_rt_call *call);
/* Runs due callbacks; calls that cannot be notified yet stay. */
void hd_rt_call_settle(struct hd_runtime *runtime);
void hd_rt_call_tick(struct hd_runtime *runtime, int64_t now);
/* A call of the runtime itself (ping, drain), without a struct. */
HD_MUST_CHECK int hd_rt_call_plain(struct hd_rt_worker *worker, struct hd_slice head, uint32_t *id);
/* The worker's call with that number that may still make requests; NULL: none. */
struct hd_rt_call *hd_rt_call_find_open(struct hd_rt_worker *worker, uint32_t id);
void hd_rt_call_drop_all(struct hd_runtime *runtime);
/* Tells a remote worker to hold its calls; those that are held for other reasons stay so. */
void hd_rt_call_suspend_all(struct hd_rt_worker *worker, bool is_suspended);

/* request.c */
bool hd_rt_request_frame(struct hd_rt_worker *worker, const struct hd_frame *frame);
void hd_rt_request_lose_all(struct hd_rt_worker *worker);
void hd_rt_request_scope_ended(struct hd_runtime *runtime, const struct hd_scope_ref *scope);
void hd_rt_request_wake(struct hd_runtime *runtime);
/* Appends the head of an error frame. */
HD_MUST_CHECK int hd_rt_request_write_error(struct hd_buf *out, const char *type, int code,
                                            const char *text);
HD_MUST_CHECK int hd_rt_request_refuse(struct hd_link *link, uint32_t id, int code,
                                       const char *text);

/* scope.c */
HD_MUST_CHECK int hd_scope_make(const struct hd_rt_scope *from, struct hd_scope_ref **out);
struct hd_scope_ref *hd_scope_ref(struct hd_scope_ref *scope);
void hd_scope_unref(struct hd_scope_ref *scope);

#endif
