/*
 * Inside the runtime.
 *
 *   runtime.c   life: create, start, reload, drain, destroy; what is done later and in time
 *   listen.c    sockets, and connections that have not said hello
 *   worker.c    one worker: its process, its link, hello, ready, ping, how it ends
 *   pool.c      which worker does what, and how many there are
 *   call.c      the server's calls to workers
 *   request.c   the workers' calls to the server
 *   scope.c     what a call lets a worker do
 *
 * Everything is on the loop; `work` of ops alone is on store threads, and comes back through
 * runtime->wake.
 *
 * A worker that ends is first marked (hd_worker_end()), and told to whoever waits for it in
 * hd_runtime_settle(), never inside a call of the user.
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
#define HD_RT_MAX_WORKERS 1024            /* of a language, those from elsewhere included */
#define HD_RT_MAX_WAITING ((size_t)65536) /* calls without a worker */
#define HD_RT_MAX_OPS 32                  /* tables of ops */
#define HD_RT_MAX_WORK 256                /* ops of a worker at work; it is not read meanwhile */
#define HD_RT_MAX_WORK_BYTES ((size_t)256 << 20)
#define HD_RT_MAX_STARTED 1024              /* ops of a worker that were started */
#define HD_RT_MAX_QUEUED ((size_t)8 << 20)  /* bytes of held pieces; it is not read beyond */
#define HD_RT_MAX_UNSENT ((size_t)64 << 20) /* bytes that it does not take */

enum hd_worker_state {
    HD_WORKER_STARTING, /* has not said hello */
    HD_WORKER_LOADING,  /* has not said that it is ready */
    HD_WORKER_READY,
    HD_WORKER_DRAINING, /* ends when nothing is at work */
    HD_WORKER_ENDING    /* is lost */
};

/* Why a worker is to go. */
enum hd_worker_age {
    HD_WORKER_FINE,
    HD_WORKER_OLD,  /* the files have changed: until there is a new one it does all it did */
    HD_WORKER_HEAVY /* it has grown too large: no more runs */
};

struct hd_worker {
    struct hd_runtime *runtime;
    struct hd_worker *next;
    enum hd_rt_language language;
    int number;
    int slot; /* -1: it came from elsewhere */
    enum hd_worker_state state;
    enum hd_worker_age age;
    bool is_replaced; /* a new one is ready */
    bool is_refused;  /* its versions do not fit: another one would be refused too */
    bool is_told;     /* whoever waited for it was told that it is lost */
    bool is_shut;     /* it closed its connection: how its process ended says why */
    bool is_late;     /* the time for its ping is over; what it said may still be read */
    bool is_crowding; /* it is not read: too much of what it said is not done yet */
    char name[32];    /* "python 1" */
    char key[HD_RT_KEY_SIZE];
    struct hd_proc *proc; /* NULL: it has ended, or runs elsewhere */
    struct hd_link *link;
    char why[300];     /* it is lost */
    int64_t since_us;  /* when this state began */
    int64_t ready_us;  /* 0: it never was */
    int64_t exited_us; /* 0: it lives; its link may have more to say */
    int64_t kill_us;   /* in HD_WORKER_ENDING: when it is killed */
    int64_t heard_us;  /* when it last said something, or took something */
    int64_t pinged_us, weighed_us;
    size_t unsent;                       /* as last seen, to notice progress */
    uint32_t last_id, ping_id, drain_id; /* 0: not asked */
    struct hd_rt_call *calls[HD_RT_BUCKETS];
    size_t call_count, run_count;
    struct hd_request_box *requests[HD_RT_BUCKETS];
    size_t work_count, work_bytes, started_count;
    size_t queued; /* bytes of held pieces */
};

/* A place for a worker of a language. */
struct hd_rt_slot {
    struct hd_worker *worker; /* the newest; NULL: it waits to be started */
    int64_t start_us;
    unsigned failures; /* in a row */
};

struct hd_rt_pool {
    struct hd_rt_slot *slots;
    int slot_count;
    struct hd_rt_call *waiting, **waiting_tail; /* in order */
    size_t waiting_count, waiting_others;       /* those that are no runs */
    int64_t deserted_us;                        /* since when none is ready; 0: one is */
    uint64_t restarts;
    char why[400]; /* the last one was lost */
};

struct hd_op_table {
    const struct hd_rt_op *ops;
    size_t count;
    void *ctx;
};

/* What a call lets its worker do; counted on the loop. */
struct hd_scope_ref {
    unsigned refs;
    size_t at_work;          /* ops, on threads */
    size_t started;          /* ops that answer later */
    struct hd_rt_call *call; /* NULL: it has ended */
    struct hd_rt_scope scope;
    struct hd_arena arena;
    struct hd_val **kept; /* all frozen values */
    size_t kept_count, kept_cap;
};

/* A message that waits, in one allocation. */
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
    struct hd_worker *worker; /* NULL: it waits for one, or has lost it */
    uint32_t id;
    bool is_waiting; /* in the pool's queue */
    bool is_run;
    bool is_held;
    bool is_dropped; /* nobody wants to know any more */
    bool is_cancelled;
    bool is_giving; /* in a callback */
    bool has_end;   /* `end` is to be told */
    bool is_soon;   /* is in runtime->soon */
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

/* A worker's call. */
struct hd_request_box {
    struct hd_rt_request request; /* must be first */
    struct hd_request_box *next;  /* in the worker's bucket */
    struct hd_request_box *done_next;
    struct hd_worker *worker; /* NULL: it is lost */
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

/* A connection that has not said hello. */
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

    uv_prepare_t flusher; /* sends what was said in this turn */
    uv_timer_t later;     /* does what could not be done at once */
    uv_timer_t ticker;
    uv_signal_t child;   /* a process has ended */
    uv_async_t wake;     /* an op is done */
    size_t open_handles; /* those above, and what links and processes have */
    bool is_started, is_draining, is_destroyed;
    int64_t drain_until_us;
    void (*drained)(void *ctx);
    void *drained_ctx;

    struct hd_worker *workers;
    int last_number[HD_RT_LANGUAGES];
    uint64_t tick_ms;
    struct hd_rt_pool pools[HD_RT_LANGUAGES];
    struct hd_rt_call *calls; /* all */
    size_t call_count[HD_RT_LANGUAGES];
    size_t timed_count;                   /* of calls with a timeout */
    struct hd_rt_call *soon, **soon_tail; /* have an end or pieces to tell */
    size_t soon_count;
    size_t open_requests;

    pthread_mutex_t lock; /* protects what follows */
    struct hd_request_box *done, **done_tail;
};

/* runtime.c */
extern const char *const hd_rt_language_names[HD_RT_LANGUAGES];
/* hd_runtime_settle() is called soon, on the loop. */
void hd_runtime_wake(struct hd_runtime *runtime);
/* A handle of a link or a process has gone. */
void hd_runtime_closed(void *runtime);
int64_t hd_runtime_now(const struct hd_runtime *runtime);

/* listen.c */
HD_MUST_CHECK int hd_listen_open(struct hd_runtime *runtime, struct hd_fault *fault);
void hd_listen_close(struct hd_runtime *runtime, uv_close_cb closed);
void hd_listen_tick(struct hd_runtime *runtime, int64_t now);

/* worker.c */
HD_MUST_CHECK int hd_worker_start(struct hd_runtime *runtime, enum hd_rt_language language,
                                  int slot, struct hd_worker **out, struct hd_fault *fault);
/* Finds out who it is by its hello. The error is answered. */
HD_MUST_CHECK int hd_worker_greet(struct hd_runtime *runtime, hd_json_val hello, bool is_remote,
                                  struct hd_worker **out, struct hd_fault *fault);
/* The guest's link becomes the worker's, and its hello is answered. */
void hd_worker_adopt(struct hd_worker *worker, struct hd_link *link, uint32_t id);
/* It is lost; nothing is told yet. */
void hd_worker_end(struct hd_worker *worker, const char *fmt, ...) HD_PRINTF(2, 3);
void hd_worker_drain(struct hd_worker *worker);
/* Whether its memory can go: it has ended, and everybody was told. */
bool hd_worker_settle(struct hd_worker *worker);
void hd_worker_destroy(struct hd_worker *worker);
void hd_worker_tick(struct hd_worker *worker, int64_t now);
/* Reads it, or not. */
void hd_worker_regulate(struct hd_worker *worker);
void hd_worker_answer(struct hd_worker *worker, uint32_t id, struct hd_slice head);
void hd_worker_is_ready(struct hd_worker *worker, uint32_t id, struct hd_slice head);

/* pool.c */
HD_MUST_CHECK int hd_pool_open(struct hd_runtime *runtime, enum hd_rt_language language);
/* Starts workers where one is missing and it is time. */
void hd_pool_staff(struct hd_runtime *runtime, enum hd_rt_language language, int64_t now);
/* The worker has ended: its place is free. */
void hd_pool_lost(struct hd_worker *worker, int64_t now);
void hd_pool_ready(struct hd_worker *worker);
/* The one that does it; NULL: none can now. */
struct hd_worker *hd_pool_pick(struct hd_runtime *runtime, enum hd_rt_language language,
                               bool is_run);
/* Gives waiting calls to workers. */
void hd_pool_feed(struct hd_runtime *runtime, enum hd_rt_language language);
void hd_pool_tick(struct hd_runtime *runtime, enum hd_rt_language language, int64_t now);
void hd_pool_close(struct hd_runtime *runtime, enum hd_rt_language language);
/* Whether something is to be looked after in less than a second. */
bool hd_pool_is_busy(const struct hd_runtime *runtime, enum hd_rt_language language);
/* A new one is started in its place. */
void hd_pool_replace(struct hd_worker *worker, enum hd_worker_age age);
/* It says that files have changed. */
void hd_pool_changed(struct hd_worker *worker, int64_t now);
/* Drains those that are replaced and have nothing to do. */
void hd_pool_retire(struct hd_worker *worker);

/* call.c */
/* Its message is what is sent; HD_RT_LOST follows when it cannot be. */
void hd_call_assign(struct hd_rt_call *call, struct hd_worker *worker);
bool hd_call_frame(struct hd_worker *worker, const struct hd_frame *frame);
/* Everything the worker has to do is lost. */
void hd_call_lose_all(struct hd_worker *worker);
void hd_call_lose(struct hd_rt_call *call, const char *text);
void hd_call_soon(struct hd_rt_call *call);
/* Tells what is to be told; those that cannot be told yet stay. */
void hd_call_settle(struct hd_runtime *runtime);
void hd_call_tick(struct hd_runtime *runtime, int64_t now);
/* A call of the runtime itself (ping, drain), without a struct. */
HD_MUST_CHECK int hd_call_plain(struct hd_worker *worker, struct hd_slice head, uint32_t *id);
/* The worker's call of that number which may still ask for things; NULL: there is none. */
struct hd_rt_call *hd_call_find_open(struct hd_worker *worker, uint32_t id);
void hd_call_drop_all(struct hd_runtime *runtime);

/* request.c */
bool hd_request_frame(struct hd_worker *worker, const struct hd_frame *frame);
void hd_request_lose_all(struct hd_worker *worker);
void hd_request_scope_ended(struct hd_runtime *runtime, const struct hd_scope_ref *scope);
void hd_request_wake(struct hd_runtime *runtime);
/* Appends the head of an error frame. */
HD_MUST_CHECK int hd_request_write_error(struct hd_buf *out, const char *type, int code,
                                         const char *text);
HD_MUST_CHECK int hd_request_refuse(struct hd_link *link, uint32_t id, int code, const char *text);

/* scope.c */
HD_MUST_CHECK int hd_scope_make(const struct hd_rt_scope *from, struct hd_scope_ref **out);
struct hd_scope_ref *hd_scope_ref(struct hd_scope_ref *scope);
void hd_scope_unref(struct hd_scope_ref *scope);

#endif
