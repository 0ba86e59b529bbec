/*
 * The Node-API addon: stores and operations on them.
 *
 * A *store* wraps an open libheddle store. An *operation* is one call on it: the JavaScript thread
 * copies its input (or, for buffers, keeps it alive), a thread of the store does the work, and the
 * JavaScript thread settles the promise with the result. One wake-up settles all operations that
 * finish while JavaScript is busy.
 *
 * Functions run on the JavaScript thread unless their comment names another thread.
 */
#ifndef HD_JS_ADDON_H
#define HD_JS_ADDON_H

#include <node_api.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <heddle.h>

#include "base/arena.h"
#include "base/compiler.h"

enum hd_js_state { HD_JS_OPEN, HD_JS_CLOSING, HD_JS_CLOSED };

struct hd_js_store {
    uint32_t magic;
    struct hd_js_store *prev, *next; /* all stores of this environment */
    struct hd_js_env *home;
    struct heddle *core;           /* NULL once closed */
    napi_threadsafe_function wake; /* NULL once the environment is shutting down */
    napi_ref self;                 /* strong while promises are pending */
    unsigned pending;              /* promises not settled yet */
    unsigned refs;                 /* holders of this struct */

    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t changed;
    enum hd_js_state state;
    bool is_shutting;              /* a thread is in hd_js_store_shutdown() */
    bool is_awake;                 /* a wake-up is pending */
    unsigned running;              /* operations that still use core */
    struct hd_js_op *first, *last; /* finished, to be settled */
    struct hd_js_list *lists;
};

/* A listing that is open in the core. Its fields are guarded by the lock of its store. */
struct hd_js_list {
    uint32_t magic;
    struct hd_js_store *store;
    struct hd_js_list *prev, *next;
    struct heddle_list *core; /* NULL once closed */
};

/* The open stores of one environment (the main thread or a worker). */
struct hd_js_env {
    struct hd_js_store *stores;
};

/* ---- operations ------------------------------------------------------- */

enum hd_js_items { HD_JS_NO_ITEMS, HD_JS_TEXTS, HD_JS_VALUES };

struct hd_js_op;

/*
 * One entry of the addon's interface. Called from JavaScript as name(store, texts, items, number,
 * list); returns a promise. Trailing arguments that an operation does not need may be omitted. A
 * text may be null.
 */
struct hd_js_operation {
    const char *name;
    unsigned text_count;
    enum hd_js_items items;
    bool has_list;

    /* Either: starts the work, which ends in hd_js_op_done(). */
    int (*start)(struct hd_js_op *op);
    /* Or: does the work on a thread of the store. */
    int (*work)(struct hd_js_op *op);

    /* Optional. The value of the promise; NULL when an exception is pending. */
    napi_value (*answer)(napi_env env, struct hd_js_op *op);
    /* Optional. Frees the results of start or work in `out`; may run without an environment. */
    void (*release)(struct hd_js_op *op);
};

struct hd_js_page {
    struct heddle_tuple *tuples; /* copies in the arena */
    size_t count;
    bool is_last;
};

struct hd_js_op {
    struct hd_js_op *next;
    const struct hd_js_operation *operation;
    struct hd_js_store *store;
    struct hd_js_list *list;
    napi_deferred deferred;
    napi_ref kept; /* the items, whose buffers are in use */
    struct hd_arena arena;

    struct heddle_bytes *texts;  /* data is NULL for null */
    struct heddle_bytes *items;  /* HD_JS_TEXTS */
    struct heddle_value *values; /* HD_JS_VALUES */
    size_t item_count;
    int64_t number;

    union {
        struct heddle_checkpoint checkpoint;
        struct heddle_writes writes;
    } in;
    union {
        struct heddle_tuple *tuple;
        struct hd_js_list *list;
        struct hd_js_page page;
        struct heddle_histories *histories;
        struct heddle_threads *threads;
        struct heddle_usage usage;
    } out;
    int code;
    struct heddle_error error;
};

extern const struct hd_js_operation hd_js_operations[];
extern const size_t hd_js_operation_count;

/* The callback of every operation; its data is the struct hd_js_operation. */
napi_value hd_js_call(napi_env env, napi_callback_info info);

/* For heddle_put_async() and its like, on a thread of the store. */
void hd_js_op_done(void *op, int code, const struct heddle_error *error);

/* Settles the promise and frees the operation. */
void hd_js_op_settle(napi_env env, struct hd_js_op *op);

/* Frees the operation; env is NULL when the environment is gone. */
void hd_js_op_free(napi_env env, struct hd_js_op *op);

/* ---- stores ----------------------------------------------------------- */

napi_value hd_js_store_open(napi_env env, napi_callback_info info);
napi_value hd_js_store_close(napi_env env, napi_callback_info info);
/* Closes every store of the environment; waits for running operations. */
napi_value hd_js_store_close_all(napi_env env, napi_callback_info info);

/* NULL when the value is not a store. */
struct hd_js_store *hd_js_store_from(napi_env env, napi_value value);

/* Releases one reference to the struct. */
void hd_js_store_unref(struct hd_js_store *store);

/* Registers an operation; false when the store is closing. Pairs with hd_js_store_finish(). */
bool hd_js_store_begin(struct hd_js_store *store);

/* On any thread: unregisters an operation and, unless op is NULL, queues it for settlement. */
void hd_js_store_finish(struct hd_js_store *store, struct hd_js_op *op);

/* Counts pending promises: keeps the process and the store alive meanwhile. */
void hd_js_store_hold(napi_env env, struct hd_js_store *store);
void hd_js_store_let_go(napi_env env, struct hd_js_store *store);

/* ---- listings --------------------------------------------------------- */

/* On any thread: a listing, closed with its store at the latest; NULL when out of memory. */
struct hd_js_list *hd_js_list_create(struct hd_js_store *store, struct heddle_list *core);

/* On any thread: removes it from the store's list; NULL when it was already closed. */
struct heddle_list *hd_js_list_take(struct hd_js_list *list);

/* Closes and frees it. */
void hd_js_list_drop(struct hd_js_list *list);

/* The external that JavaScript holds; its finalizer drops the listing. NULL, without effect, on
 * failure. */
napi_value hd_js_list_wrap(napi_env env, struct hd_js_list *list);

/* NULL when the value is not a listing. */
struct hd_js_list *hd_js_list_from(napi_env env, napi_value value);

/* ---- JavaScript values ------------------------------------------------ */

/* An error object with a code such as "HEDDLE_EINVAL"; `error` may be NULL. */
napi_value hd_js_error(napi_env env, int code, const struct heddle_error *error);

/* A rejected promise with that error. */
napi_value hd_js_rejected(napi_env env, int code, const struct heddle_error *error);

/* The pointer of an external; NULL when the value is another type. */
void *hd_js_external(napi_env env, napi_value value);

/* Copies a string; null and undefined give data == NULL. HD_EINVAL for other types. */
HD_MUST_CHECK int hd_js_text(napi_env env, napi_value value, struct hd_arena *arena,
                             struct heddle_bytes *out);

napi_value hd_js_answer_tuple(napi_env env, struct hd_js_op *op);
napi_value hd_js_answer_list(napi_env env, struct hd_js_op *op);
napi_value hd_js_answer_page(napi_env env, struct hd_js_op *op);
napi_value hd_js_answer_histories(napi_env env, struct hd_js_op *op);
napi_value hd_js_answer_threads(napi_env env, struct hd_js_op *op);
napi_value hd_js_answer_usage(napi_env env, struct hd_js_op *op);

#endif
