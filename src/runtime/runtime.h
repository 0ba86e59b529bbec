/*
 * Workers: processes that run the graphs of a langgraph.json, and the server's calls to them.
 * docs/runtime.md has the protocol.
 *
 * Everything here runs on the loop, except hd_rt_op.work.
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

/* The oldest version of LangGraph that workers support, in both languages. */
#define HD_RT_LANGGRAPH "1.0"

/*
 * Whether a version of LangGraph is HD_RT_LANGGRAPH or newer; true for one that cannot be parsed.
 */
bool hd_rt_is_new_enough(struct hd_slice version);

enum hd_rt_language { HD_RT_PYTHON, HD_RT_JS, HD_RT_LANGUAGES };

/* A frame's content. Borrowed. */
struct hd_rt_message {
    struct hd_slice head; /* JSON object */
    const struct hd_slice *blobs;
    size_t blob_count;
};

/* ---- settings --------------------------------------------------------- */

/* How to start the workers of one language. `argv` empty: none is started. */
struct hd_rt_program {
    const char *const *argv; /* NULL-terminated */
    const char *const *env;  /* "NAME=value", added to the server's; NULL-terminated */
    const char *folder;      /* working directory; NULL: the current one */
    int workers;             /* number of workers to keep */
    struct hd_slice project; /* JSON: sent in the response to hello */
};

struct hd_rt_settings {
    struct hd_rt_program programs[HD_RT_LANGUAGES];
    const char *listen; /* host:port; NULL: only the Unix socket */
    const char *key;    /* for TCP */
    int jobs;           /* concurrent calls of `run` per worker */
    size_t memory;      /* bytes resident; 0: no limit */
    int64_t start_timeout_us;
    int64_t hang_timeout_us;
    int64_t lease_us; /* a worker that has heard nothing from the server for so long ends; 0: no */
    int64_t drain_us;
    struct hd_patience *patience; /* of ops while the store is unavailable; NULL: none */
    bool is_direct;               /* the store never blocks (memory:): ops run on the loop */
};

/* A worker's ready message. `head` is valid during the call. */
typedef void (*hd_rt_ready_fn)(void *ctx, enum hd_rt_language language, struct hd_slice head);

/* ---- operations for workers ------------------------------------------- */

/*
 * `work` runs on a store thread, reads request->message and makes the response: request->head,
 * request->blobs. `start`, instead, runs on the loop and responds later with
 * hd_rt_request_answer().
 */
struct hd_rt_op {
    const char *name;
    void (*work)(struct hd_rt_request *request);
    void (*start)(struct hd_rt_request *request);
    bool needs_scope; /* `call` must name one of the server's calls to that worker */
};

/* What a worker may do for a call. Copied when the call is made. */
struct hd_rt_scope {
    struct hd_slice principal; /* owner of the thread */
    struct hd_slice actor;     /* who started the run */
    struct hd_slice thread;    /* empty: no thread */
    struct hd_slice root;      /* added to namespaces */
    int64_t guard;             /* the members of struct hd_guard (store/guard.h) */
    int64_t token;
    const struct hd_val *metadata; /* added to each checkpoint's metadata; or NULL */
    const struct hd_val *secrets;  /* texts that are never stored; or NULL */
    void *owner;                   /* of the call's maker; for ops with `start` */
};

struct hd_rt_request {
    struct hd_runtime *runtime;
    enum hd_rt_language language;
    const struct hd_rt_scope *scope; /* NULL: none */
    const char *op;
    struct hd_rt_message message;
    hd_json_val root;       /* message.head, parsed */
    struct hd_arena *arena; /* valid until the response is sent */
    void *ctx;              /* from hd_runtime_add_ops() */

    /*
     * `start` may set both. Called at most once, on the loop, when the response is no longer
     * needed: the worker cancelled it, was lost, or the call of the scope has ended (scope->owner
     * may be freed). A response is still required.
     */
    void (*on_cancel)(struct hd_rt_request *request);
    void *state;

    /* The response of `work`. */
    struct hd_buf head; /* empty: {} */
    struct hd_slice *blobs;
    size_t blob_count;
    void (*free_blobs)(void *arg); /* called when they are sent; NULL: they are in the arena */
    void *free_arg;
    struct heddle_error fault; /* code not 0: the response is an error */
};

/* Borrows `ops` for the runtime's life. Call before the first worker starts. */
HD_MUST_CHECK int hd_runtime_add_ops(struct hd_runtime *runtime, const struct hd_rt_op *ops,
                                     size_t count, void *ctx);
/* For an op with `start`: exactly one response ends it. */
HD_MUST_CHECK int hd_rt_request_piece(struct hd_rt_request *request,
                                      const struct hd_rt_message *message);
void hd_rt_request_answer(struct hd_rt_request *request);

/* ---- lifetime --------------------------------------------------------- */

struct heddle;

/*
 * `store`: its threads run the ops; NULL: ops run on the loop. Settings are borrowed until
 * hd_runtime_destroy().
 */
HD_MUST_CHECK int hd_runtime_create(uv_loop_t *loop, struct heddle *store,
                                    const struct hd_rt_settings *settings, struct hd_runtime **out,
                                    struct heddle_error *fault);
void hd_runtime_on_ready(struct hd_runtime *runtime, hd_rt_ready_fn fn, void *ctx);
/* Starts the workers. */
HD_MUST_CHECK int hd_runtime_start(struct hd_runtime *runtime, struct heddle_error *fault);
/* The TCP port, also if `listen` has port 0. 0: none. */
int hd_runtime_port(const struct hd_runtime *runtime);
/* Starts new workers of the language; the old ones end when they are idle. */
void hd_runtime_reload(struct hd_runtime *runtime, enum hd_rt_language language);
/*
 * Refuses new calls; calls `done`, never before this returns, when all workers have ended (they are
 * killed after drain_us).
 */
void hd_runtime_drain(struct hd_runtime *runtime, void (*done)(void *ctx), void *ctx);
/*
 * Suspends all workers. Those that the server has started are stopped (SIGSTOP) with the programs
 * that they have started, so they make no call and read nothing; remote ones get HOLD for each
 * run. New workers are not started. A drain kills stopped workers at once.
 */
void hd_runtime_suspend(struct hd_runtime *runtime, bool is_suspended);
/* Kills the workers that are stopped; their calls are lost. */
void hd_runtime_end_suspended(struct hd_runtime *runtime);
/*
 * Drops all calls, without callbacks. The memory is freed when ops have ended and the loop has
 * closed its handles.
 */
void hd_runtime_destroy(struct hd_runtime *runtime);

struct hd_rt_counts {
    int workers;  /* ready */
    int starting; /* or waiting to be restarted */
    size_t calls;
    uint64_t restarts;
};
struct hd_rt_counts hd_runtime_counts(const struct hd_runtime *runtime,
                                      enum hd_rt_language language);

/* ---- calls ------------------------------------------------------------ */

enum hd_rt_end {
    HD_RT_ANSWERED,
    HD_RT_REFUSED, /* the worker returned an error, in message.head */
    /*
     * `message.head` has the reason: its type is WorkerLost when a worker had the call and died or
     * hung, else WorkerUnavailable.
     */
    HD_RT_LOST,
    HD_RT_LATE /* timeout_us has passed; the worker was sent a cancel */
};

struct hd_rt_call_options {
    enum hd_rt_language language;
    struct hd_slice head; /* with `op`; copied */
    const struct hd_slice *blobs;
    size_t blob_count;
    const struct hd_rt_scope *scope; /* may be NULL */
    bool is_run;                     /* counts for `jobs`: queued when all workers are full */
    int64_t timeout_us;              /* 0: none */
    /* Maximum wait for a worker that is starting; 0: HD_RT_LOST at once when none is ready. */
    int64_t patience_us;
    void (*on_piece)(void *ctx, const struct hd_rt_message *message); /* may be NULL */
    void (*on_end)(void *ctx, enum hd_rt_end end, const struct hd_rt_message *message);
    void *ctx;
};

/*
 * Never calls back before it returns; `on_end` is called exactly once, last, when no op of the
 * call's scope is running. HD_ECLOSED: draining; HD_EBUSY: too many calls wait.
 */
HD_MUST_CHECK int hd_runtime_call(struct hd_runtime *runtime,
                                  const struct hd_rt_call_options *options,
                                  struct hd_rt_call **out);
/*
 * Sends a cancel to the worker; `on_end` still follows. A call that waits for a worker ends soon,
 * with HD_RT_LOST.
 */
void hd_rt_call_cancel(struct hd_rt_call *call);
/* Stops or resumes the worker's pieces. */
void hd_rt_call_hold(struct hd_rt_call *call, bool is_held);
/* Ends the call now, without callbacks. Frames that the worker still sends are dropped. */
void hd_rt_call_drop(struct hd_rt_call *call);

#endif
