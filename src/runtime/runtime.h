/*
 * Workers: processes that run the graphs of a langgraph.json, and what the server says to
 * them. docs/runtime.md is the protocol.
 *
 * Everything here happens on the loop, but for hd_rt_op.work.
 */
#ifndef HD_RUNTIME_RUNTIME_H
#define HD_RUNTIME_RUNTIME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "base/buf.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/json.h"
#include "base/slice.h"
#include "value/val.h"

struct hd_runtime;
struct hd_rt_call;
struct hd_patience;
struct hd_rt_request;
struct hd_arena;

/* The oldest version of LangGraph whose graphs workers run, in both languages. */
#define HD_RT_LANGGRAPH "1.0"

/* Whether a version of LangGraph is HD_RT_LANGGRAPH or newer; one that cannot be read is. */
bool hd_rt_is_new_enough(struct hd_slice version);

enum hd_rt_language { HD_RT_PYTHON, HD_RT_JS, HD_RT_LANGUAGES };

/* A frame's content. Borrowed. */
struct hd_rt_message {
    struct hd_slice head; /* JSON object */
    const struct hd_slice *blobs;
    size_t blob_count;
};

/* ---- settings --------------------------------------------------------- */

/* How to start the workers of one language. `argv` empty: none are started. */
struct hd_rt_program {
    const char *const *argv; /* NULL after the last */
    const char *const *env;  /* "NAME=value", added to the server's own; NULL after the last */
    const char *folder;      /* where it starts; NULL: here */
    int workers;             /* so many are kept */
    struct hd_slice project; /* JSON: the member of hello's answer */
};

struct hd_rt_settings {
    struct hd_rt_program programs[HD_RT_LANGUAGES];
    const char *listen; /* host:port; NULL: only the Unix socket */
    const char *key;    /* for TCP */
    int jobs;           /* calls of `run` at once in a worker */
    size_t memory;      /* bytes resident; 0: any */
    int64_t start_timeout_us;
    int64_t hang_timeout_us;
    int64_t drain_us;
    struct hd_patience *patience; /* of ops with a store that is away; NULL: none */
    bool is_direct; /* nothing in the store ever waits (memory:): ops are done on the loop */
};

/* What a worker said when it was ready. `head` is valid during the call. */
typedef void (*hd_rt_ready_fn)(void *ctx, enum hd_rt_language language, struct hd_slice head);

/* ---- operations that workers ask for ---------------------------------- */

/*
 * `work` runs on a store thread, reads request->message and makes the answer: request->head,
 * request->blobs. `start`, instead, runs on the loop and answers later with
 * hd_rt_request_answer().
 */
struct hd_rt_op {
    const char *name;
    void (*work)(struct hd_rt_request *request);
    void (*start)(struct hd_rt_request *request);
    bool needs_scope; /* `call` names one of the server's calls to that worker */
};

/* What a call lets the worker do. Copied when the call is made. */
struct hd_rt_scope {
    struct hd_slice principal;     /* whose thread */
    struct hd_slice actor;         /* who asked */
    struct hd_slice thread;        /* empty: no thread */
    struct hd_slice root;          /* added to namespaces */
    int64_t guard;                 /* store/thread_fence.h */
    const struct hd_val *metadata; /* members are added to each checkpoint's; or NULL */
    const struct hd_val *secrets;  /* texts that never are stored; or NULL */
    void *owner;                   /* of whoever made the call; for ops that `start` */
};

struct hd_rt_request {
    struct hd_runtime *runtime;
    enum hd_rt_language language;
    const struct hd_rt_scope *scope; /* NULL: without one */
    const char *op;
    struct hd_rt_message message;
    hd_json_val root;       /* message.head, read */
    struct hd_arena *arena; /* lives until the answer has left */
    void *ctx;              /* that hd_runtime_add_ops() was given */

    /*
     * `start` may set both. Called at most once, on the loop, when nobody waits for the answer any
     * more: the worker cancelled it, was lost, or the call of the scope has ended (scope->owner
     * may go). The answer is still due.
     */
    void (*on_cancel)(struct hd_rt_request *request);
    void *state;

    /* The answer of `work`. */
    struct hd_buf head; /* empty: {} */
    struct hd_slice *blobs;
    size_t blob_count;
    void (*free_blobs)(void *arg); /* called when they have left; NULL: they are the arena's */
    void *free_arg;
    struct hd_fault fault; /* code not 0: an error is answered */
};

/* `ops` must stay. Before the first worker is started. */
HD_MUST_CHECK int hd_runtime_add_ops(struct hd_runtime *runtime, const struct hd_rt_op *ops,
                                     size_t count, void *ctx);
/* Of an op with `start`: exactly one answer ends it. */
HD_MUST_CHECK int hd_rt_request_piece(struct hd_rt_request *request,
                                      const struct hd_rt_message *message);
void hd_rt_request_answer(struct hd_rt_request *request);

/* ---- life ------------------------------------------------------------- */

struct heddle;

/*
 * `store`: whose threads do the work of ops; NULL: it is done on the loop. Settings are borrowed
 * until hd_runtime_destroy().
 */
HD_MUST_CHECK int hd_runtime_create(uv_loop_t *loop, struct heddle *store,
                                    const struct hd_rt_settings *settings, struct hd_runtime **out,
                                    struct hd_fault *fault);
void hd_runtime_on_ready(struct hd_runtime *runtime, hd_rt_ready_fn fn, void *ctx);
/* Starts the workers. */
HD_MUST_CHECK int hd_runtime_start(struct hd_runtime *runtime, struct hd_fault *fault);
/* The port of TCP: of `listen` with port 0. 0: there is none. */
int hd_runtime_port(const struct hd_runtime *runtime);
/* Starts new workers of the language; the old ones end when nothing is at work in them. */
void hd_runtime_reload(struct hd_runtime *runtime, enum hd_rt_language language);
/* No more calls; `done` when all workers have ended (they are killed after drain_us). */
void hd_runtime_drain(struct hd_runtime *runtime, void (*done)(void *ctx), void *ctx);
/*
 * Calls are dropped: nothing is called any more. The memory goes when ops have been answered and
 * the loop has closed its handles.
 */
void hd_runtime_destroy(struct hd_runtime *runtime);

struct hd_rt_counts {
    int workers;  /* that are ready */
    int starting; /* or wait to be started again */
    size_t calls;
    uint64_t restarts;
};
struct hd_rt_counts hd_runtime_counts(const struct hd_runtime *runtime,
                                      enum hd_rt_language language);

/* ---- calls ------------------------------------------------------------ */

enum hd_rt_end {
    HD_RT_ANSWERED,
    HD_RT_REFUSED, /* the worker answered with an error: message.head has it */
    /*
     * `message.head` says why, alike: its type is WorkerLost when a worker had the call and died
     * or hung, else WorkerUnavailable.
     */
    HD_RT_LOST,
    HD_RT_LATE /* timeout_us is over; the worker was told to cancel */
};

struct hd_rt_call_options {
    enum hd_rt_language language;
    struct hd_slice head; /* with `op`; copied */
    const struct hd_slice *blobs;
    size_t blob_count;
    const struct hd_rt_scope *scope; /* may be NULL */
    bool is_run;        /* counts for `jobs`: waits its turn, in order, when all workers are full */
    int64_t timeout_us; /* 0: none */
    /* Waits as long for a worker that is starting; 0: HD_RT_LOST at once when none is ready. */
    int64_t patience_us;
    void (*on_piece)(void *ctx, const struct hd_rt_message *message); /* may be NULL */
    void (*on_end)(void *ctx, enum hd_rt_end end, const struct hd_rt_message *message);
    void *ctx;
};

/*
 * Never calls back before it returned; `on_end` comes exactly once, and last, when no op of the
 * call's scope is at work any more. HD_ECLOSED: it is being drained; HD_EBUSY: too many wait.
 */
HD_MUST_CHECK int hd_runtime_call(struct hd_runtime *runtime,
                                  const struct hd_rt_call_options *options,
                                  struct hd_rt_call **out);
/* Tells the worker; `on_end` comes still. One that waits for a worker ends soon, HD_RT_LOST. */
void hd_rt_call_cancel(struct hd_rt_call *call);
/* The worker is to send no pieces, or to go on. */
void hd_rt_call_hold(struct hd_rt_call *call, bool is_held);
/* Ends the call now: nothing is called any more. What the worker still sends is dropped. */
void hd_rt_call_drop(struct hd_rt_call *call);

#endif
