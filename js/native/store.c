/*
 * Stores in JavaScript: opening, closing, and returning results to its thread.
 *
 * The core may be used while `running` operations are registered, and is closed exactly once, by
 * hd_js_store_shutdown(), after the last one has finished. Four paths lead there: close() from a
 * pool thread; closeAll() when the process exits; the environment's cleanup hook when a worker is
 * terminated; or the garbage collector, when the store is unreachable. Afterwards no thread of the
 * core exists, so none can touch freed memory.
 */
#include "addon.h"

#include "base/alloc.h"
#include "base/error.h"

#define STORE_MAGIC 0x48445354u

/* ---- lifetime of the struct --------------------------------------------- */

void hd_js_store_unref(struct hd_js_store *store)
{
    if (--store->refs > 0)
        return;
    pthread_cond_destroy(&store->changed);
    pthread_mutex_destroy(&store->lock);
    store->magic = 0;
    hd_free(store);
}

static struct hd_js_store *store_create(struct heddle *core)
{
    struct hd_js_store *store = hd_calloc(1, sizeof(*store));

    if (!store)
        return NULL;
    if (pthread_mutex_init(&store->lock, NULL) != 0)
        goto free_store;
    if (pthread_cond_init(&store->changed, NULL) != 0)
        goto destroy_lock;
    store->magic = STORE_MAGIC;
    store->core = core;
    store->refs = 1;
    return store;

destroy_lock:
    pthread_mutex_destroy(&store->lock);
free_store:
    hd_free(store);
    return NULL;
}

static void link_home(struct hd_js_store *store, struct hd_js_env *home)
{
    store->home = home;
    store->next = home->stores;
    if (store->next)
        store->next->prev = store;
    home->stores = store;
}

static void unlink_home(struct hd_js_store *store)
{
    if (!store->home)
        return;
    if (store->prev)
        store->prev->next = store->next;
    else
        store->home->stores = store->next;
    if (store->next)
        store->next->prev = store->prev;
    store->home = NULL;
}

/* ---- registering operations --------------------------------------------- */

bool hd_js_store_begin(struct hd_js_store *store)
{
    bool is_open;

    pthread_mutex_lock(&store->lock);
    is_open = store->state == HD_JS_OPEN;
    if (is_open)
        store->running++;
    pthread_mutex_unlock(&store->lock);
    return is_open;
}

void hd_js_store_finish(struct hd_js_store *store, struct hd_js_op *op)
{
    pthread_mutex_lock(&store->lock);
    if (op) {
        if (store->last)
            store->last->next = op;
        else
            store->first = op;
        store->last = op;
        /* Under the lock: once running is 0 and the lock is free, the function may be gone. */
        if (!store->is_awake && store->wake)
            store->is_awake =
                napi_call_threadsafe_function(store->wake, NULL, napi_tsfn_nonblocking) == napi_ok;
    }
    store->running--;
    pthread_cond_broadcast(&store->changed);
    pthread_mutex_unlock(&store->lock);
}

void hd_js_store_hold(napi_env env, struct hd_js_store *store)
{
    if (store->pending++ > 0)
        return;
    napi_ref_threadsafe_function(env, store->wake);
    napi_reference_ref(env, store->self, NULL);
}

void hd_js_store_let_go(napi_env env, struct hd_js_store *store)
{
    if (--store->pending > 0)
        return;
    if (store->wake)
        napi_unref_threadsafe_function(env, store->wake);
    napi_reference_unref(env, store->self, NULL);
}

static struct hd_js_op *take_finished(struct hd_js_store *store)
{
    struct hd_js_op *op;

    pthread_mutex_lock(&store->lock);
    op = store->first;
    store->first = store->last = NULL;
    store->is_awake = false;
    pthread_mutex_unlock(&store->lock);
    return op;
}

static void settle_finished(napi_env env, struct hd_js_store *store)
{
    struct hd_js_op *op = take_finished(store);

    while (op) {
        struct hd_js_op *next = op->next;

        hd_js_op_settle(env, op);
        hd_js_store_let_go(env, store);
        op = next;
    }
}

/* The wake-up callback; env is NULL when the environment is shutting down. */
static void deliver(napi_env env, napi_value function, void *context, void *data)
{
    (void)function;
    (void)data;
    if (env)
        settle_finished(env, context);
}

/* ---- closing ---------------------------------------------------------- */

static void close_lists(struct hd_js_store *store)
{
    for (struct hd_js_list *list = store->lists; list; list = store->lists)
        heddle_list_close(hd_js_list_take(list));
}

/* On any thread: waits for running operations and closes the core, or waits until another thread
 * has. */
static void shutdown_store(struct hd_js_store *store)
{
    pthread_mutex_lock(&store->lock);
    store->state = store->state == HD_JS_OPEN ? HD_JS_CLOSING : store->state;
    while (store->running > 0 || (store->is_shutting && store->state != HD_JS_CLOSED))
        pthread_cond_wait(&store->changed, &store->lock);
    bool is_mine = store->state != HD_JS_CLOSED;
    store->is_shutting = true;
    pthread_mutex_unlock(&store->lock);
    if (!is_mine)
        return;
    close_lists(store);
    heddle_close(store->core);
    pthread_mutex_lock(&store->lock);
    store->core = NULL;
    store->state = HD_JS_CLOSED;
    pthread_cond_broadcast(&store->changed);
    pthread_mutex_unlock(&store->lock);
}

/* The environment goes away with the store open: no promise can be settled. */
static void leave_env(void *arg)
{
    struct hd_js_store *store = arg;
    struct hd_js_op *op;

    shutdown_store(store);
    pthread_mutex_lock(&store->lock);
    store->wake = NULL;
    pthread_mutex_unlock(&store->lock);
    for (op = take_finished(store); op;) {
        struct hd_js_op *next = op->next;

        hd_js_op_free(NULL, op);
        op = next;
    }
    unlink_home(store);
}

/* Called once the store is closed; removes all of its data from the environment. */
static void detach(napi_env env, struct hd_js_store *store)
{
    napi_threadsafe_function wake = store->wake;

    settle_finished(env, store);
    if (!wake)
        return;
    napi_remove_env_cleanup_hook(env, leave_env, store);
    unlink_home(store);
    pthread_mutex_lock(&store->lock);
    store->wake = NULL;
    pthread_mutex_unlock(&store->lock);
    napi_release_threadsafe_function(wake, napi_tsfn_release);
}

static void finalize_store(napi_env env, void *data, void *hint)
{
    struct hd_js_store *store = data;

    (void)hint;
    shutdown_store(store);
    detach(env, store);
    hd_js_store_unref(store);
}

static void finalize_wake(napi_env env, void *data, void *hint)
{
    (void)env;
    (void)hint;
    hd_js_store_unref(data);
}

/* ---- open() and close() as asynchronous work -------------------------- */

struct request {
    napi_async_work work;
    napi_deferred deferred;
    napi_ref held; /* closing: the store */
    struct hd_js_store *store;
    struct heddle *core;
    char *url;
    int code;
    struct heddle_error error;
};

static void request_free(napi_env env, struct request *request)
{
    if (request->work)
        napi_delete_async_work(env, request->work);
    if (request->held)
        napi_delete_reference(env, request->held);
    hd_free(request->url);
    hd_free(request);
}

/* Starts the work and returns its promise; frees the request on failure. */
static napi_value request_start(napi_env env, struct request *request,
                                napi_async_execute_callback execute,
                                napi_async_complete_callback complete)
{
    napi_value name, promise;

    if (napi_create_string_utf8(env, "heddle", NAPI_AUTO_LENGTH, &name) != napi_ok ||
        napi_create_promise(env, &request->deferred, &promise) != napi_ok)
        goto fail;
    if (napi_create_async_work(env, NULL, name, execute, complete, request, &request->work) !=
            napi_ok ||
        napi_queue_async_work(env, request->work) != napi_ok) {
        napi_reject_deferred(env, request->deferred, hd_js_error(env, HD_ENOMEM, NULL));
        request_free(env, request);
        return promise;
    }
    return promise;

fail:
    request_free(env, request);
    return hd_js_rejected(env, HD_ENOMEM, NULL);
}

static void execute_open(napi_env env, void *data)
{
    struct request *request = data;

    (void)env;
    request->code = heddle_open(&request->core, request->url, &request->error);
}

/* The external that JavaScript holds, with all of its data; NULL when out of memory. */
static napi_value wrap_store(napi_env env, struct hd_js_store *store, struct hd_js_env *home)
{
    napi_value name, external;

    if (napi_create_string_utf8(env, "heddle", NAPI_AUTO_LENGTH, &name) != napi_ok ||
        napi_create_threadsafe_function(env, NULL, NULL, name, 0, 1, store, finalize_wake, store,
                                        deliver, &store->wake) != napi_ok)
        return NULL;
    store->refs++;
    napi_unref_threadsafe_function(env, store->wake);
    if (napi_add_env_cleanup_hook(env, leave_env, store) != napi_ok)
        goto release_wake;
    link_home(store, home);
    if (napi_create_external(env, store, finalize_store, NULL, &external) != napi_ok)
        goto remove_hook;
    store->refs++;
    if (napi_create_reference(env, external, 0, &store->self) != napi_ok)
        return NULL; /* the finalizer does the rest */
    return external;

remove_hook:
    unlink_home(store);
    napi_remove_env_cleanup_hook(env, leave_env, store);
release_wake:
    napi_release_threadsafe_function(store->wake, napi_tsfn_release);
    store->wake = NULL;
    return NULL;
}

static napi_value adopt(napi_env env, struct heddle *core)
{
    struct hd_js_store *store = store_create(core);
    struct hd_js_env *home = NULL;
    napi_value external = NULL;

    if (!store) {
        heddle_close(core);
        return NULL;
    }
    if (napi_get_instance_data(env, (void **)&home) == napi_ok && home)
        external = wrap_store(env, store, home);
    if (!external)
        shutdown_store(store);
    hd_js_store_unref(store);
    return external;
}

static void complete_open(napi_env env, napi_status status, void *data)
{
    struct request *request = data;
    napi_value external = NULL;

    if (status != napi_ok && request->core) {
        heddle_close(request->core);
        request->code = HD_ECLOSED;
    } else if (request->core) {
        external = adopt(env, request->core);
        request->code = external ? 0 : HD_ENOMEM;
    }
    if (external)
        napi_resolve_deferred(env, request->deferred, external);
    else
        napi_reject_deferred(
            env, request->deferred,
            hd_js_error(env, request->code ? request->code : HD_ECLOSED, &request->error));
    request_free(env, request);
}

napi_value hd_js_store_open(napi_env env, napi_callback_info info)
{
    size_t argc = 1, len = 0;
    napi_value argv[1];
    struct request *request;

    if (napi_get_cb_info(env, info, &argc, argv, NULL, NULL) != napi_ok || argc < 1 ||
        napi_get_value_string_utf8(env, argv[0], NULL, 0, &len) != napi_ok)
        return hd_js_rejected(env, HD_EINVAL, NULL);
    request = hd_calloc(1, sizeof(*request));
    if (!request || !(request->url = hd_malloc(len + 1)) ||
        napi_get_value_string_utf8(env, argv[0], request->url, len + 1, &len) != napi_ok) {
        if (request)
            hd_free(request->url);
        hd_free(request);
        return hd_js_rejected(env, HD_ENOMEM, NULL);
    }
    return request_start(env, request, execute_open, complete_open);
}

static void execute_close(napi_env env, void *data)
{
    struct request *request = data;

    (void)env;
    shutdown_store(request->store);
}

static void complete_close(napi_env env, napi_status status, void *data)
{
    struct request *request = data;
    napi_value undefined;

    if (status != napi_ok)
        shutdown_store(request->store);
    detach(env, request->store);
    napi_get_undefined(env, &undefined);
    napi_resolve_deferred(env, request->deferred, undefined);
    request_free(env, request);
}

napi_value hd_js_store_close(napi_env env, napi_callback_info info)
{
    size_t argc = 1;
    napi_value argv[1];
    struct hd_js_store *store = NULL;
    struct request *request;

    if (napi_get_cb_info(env, info, &argc, argv, NULL, NULL) == napi_ok && argc == 1)
        store = hd_js_store_from(env, argv[0]);
    if (!store)
        return hd_js_rejected(env, HD_EINVAL, NULL);
    request = hd_calloc(1, sizeof(*request));
    if (!request || napi_create_reference(env, argv[0], 1, &request->held) != napi_ok) {
        hd_free(request);
        return hd_js_rejected(env, HD_ENOMEM, NULL);
    }
    request->store = store;
    /* From here on no new operation starts, even if the pool is busy. */
    pthread_mutex_lock(&store->lock);
    if (store->state == HD_JS_OPEN)
        store->state = HD_JS_CLOSING;
    pthread_mutex_unlock(&store->lock);
    return request_start(env, request, execute_close, complete_close);
}

napi_value hd_js_store_close_all(napi_env env, napi_callback_info info)
{
    struct hd_js_env *home = NULL;

    (void)info;
    if (napi_get_instance_data(env, (void **)&home) != napi_ok || !home)
        return NULL;
    for (struct hd_js_store *store = home->stores; store; store = store->next)
        shutdown_store(store);
    return NULL;
}

/* ---- handles ---------------------------------------------------------- */

void *hd_js_external(napi_env env, napi_value value)
{
    napi_valuetype type;
    void *data = NULL;

    if (napi_typeof(env, value, &type) != napi_ok || type != napi_external ||
        napi_get_value_external(env, value, &data) != napi_ok)
        return NULL;
    return data;
}

struct hd_js_store *hd_js_store_from(napi_env env, napi_value value)
{
    struct hd_js_store *store = hd_js_external(env, value);

    return store && store->magic == STORE_MAGIC ? store : NULL;
}
