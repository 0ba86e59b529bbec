/* Start, reload and shutdown of all workers, and timers. */
#include <signal.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "runtime/runtime_internal.h"

#define SHORT_TICK_MS 50
#define LONG_TICK_MS 1000
#define PATIENT_HANG_US INT64_C(5000000) /* shorter limits are checked more often */

const char *const hd_rt_language_names[HD_RT_LANGUAGES] = {"python", "js"};

int64_t hd_runtime_now(const struct hd_runtime *runtime)
{
    (void)runtime;
    return (int64_t)(uv_hrtime() / 1000);
}

/* ---- end -------------------------------------------------------------- */

static void free_runtime(struct hd_runtime *runtime)
{
    for (int i = 0; i < HD_RT_LANGUAGES; i++)
        hd_pool_close(runtime, (enum hd_rt_language)i);
    pthread_mutex_destroy(&runtime->lock);
    hd_free(runtime);
}

void hd_runtime_closed(void *arg)
{
    struct hd_runtime *runtime = arg;

    if (--runtime->open_handles == 0)
        free_runtime(runtime);
}

static void on_handle_closed(uv_handle_t *handle)
{
    hd_runtime_closed(handle->data);
}

static void close_handles(struct hd_runtime *runtime)
{
    if (uv_is_closing((uv_handle_t *)&runtime->ticker))
        return;
    uv_close((uv_handle_t *)&runtime->flusher, on_handle_closed);
    uv_close((uv_handle_t *)&runtime->later, on_handle_closed);
    uv_close((uv_handle_t *)&runtime->ticker, on_handle_closed);
    uv_close((uv_handle_t *)&runtime->child, on_handle_closed);
    uv_close((uv_handle_t *)&runtime->wake, on_handle_closed);
}

static void end_when_idle(struct hd_runtime *runtime)
{
    void (*drained)(void *ctx) = runtime->drained;

    if (runtime->workers || runtime->open_requests > 0 || runtime->soon)
        return;
    if (runtime->is_draining && drained) {
        runtime->drained = NULL;
        drained(runtime->drained_ctx);
    }
    if (runtime->is_destroyed)
        close_handles(runtime);
}

/* ---- loop iterations -------------------------------------------------- */

static void settle_workers(struct hd_runtime *runtime)
{
    struct hd_rt_worker *worker = runtime->workers;

    while (worker) {
        struct hd_rt_worker *next = worker->next;

        hd_pool_retire(worker);
        if (hd_rt_worker_settle(worker))
            hd_rt_worker_destroy(worker);
        worker = next;
    }
}

static bool is_restless(const struct hd_runtime *runtime)
{
    const struct hd_rt_settings *settings = runtime->settings;

    if (runtime->is_draining || runtime->is_destroyed || runtime->guests ||
        runtime->timed_count > 0 ||
        (settings->hang_timeout_us > 0 && settings->hang_timeout_us < PATIENT_HANG_US) ||
        (settings->lease_us > 0 && settings->lease_us < PATIENT_HANG_US))
        return true;
    for (const struct hd_rt_worker *worker = runtime->workers; worker; worker = worker->next)
        if (worker->state != HD_WORKER_READY || worker->is_late || worker->exited_us)
            return true;
    for (int i = 0; i < HD_RT_LANGUAGES; i++)
        if (hd_pool_is_busy(runtime, (enum hd_rt_language)i))
            return true;
    return false;
}

static void on_runtime_tick(uv_timer_t *timer);

static void set_pace(struct hd_runtime *runtime)
{
    uint64_t ms = is_restless(runtime) ? SHORT_TICK_MS : LONG_TICK_MS;

    if (!uv_is_closing((uv_handle_t *)&runtime->ticker) && runtime->tick_ms != ms) {
        runtime->tick_ms = ms;
        (void)uv_timer_start(&runtime->ticker, on_runtime_tick, ms, ms);
    }
}

static void settle_runtime(struct hd_runtime *runtime)
{
    int64_t now = hd_runtime_now(runtime);

    hd_rt_call_settle(runtime);
    settle_workers(runtime);
    for (int i = 0; i < HD_RT_LANGUAGES; i++)
        hd_pool_tick(runtime, (enum hd_rt_language)i, now);
    set_pace(runtime);
    end_when_idle(runtime);
}

static void on_later(uv_timer_t *timer)
{
    settle_runtime(timer->data);
}

void hd_runtime_wake(struct hd_runtime *runtime)
{
    if (!uv_is_closing((uv_handle_t *)&runtime->later) &&
        !uv_is_active((uv_handle_t *)&runtime->later))
        (void)uv_timer_start(&runtime->later, on_later, 0, 0);
}

static void kill_all(struct hd_runtime *runtime)
{
    for (struct hd_rt_worker *worker = runtime->workers; worker; worker = worker->next)
        hd_rt_worker_end(worker, "was killed: it did not end in time");
}

static void on_runtime_tick(uv_timer_t *timer)
{
    struct hd_runtime *runtime = timer->data;
    int64_t now = hd_runtime_now(runtime);

    for (struct hd_rt_worker *worker = runtime->workers; worker; worker = worker->next)
        hd_rt_worker_tick(worker, now);
    hd_listen_tick(runtime, now);
    hd_rt_call_tick(runtime, now);
    if (runtime->is_draining && now >= runtime->drain_until_us)
        kill_all(runtime);
    settle_runtime(runtime);
}

static void on_child(uv_signal_t *handle, int number)
{
    struct hd_runtime *runtime = handle->data;
    int64_t now = hd_runtime_now(runtime);

    (void)number;
    for (struct hd_rt_worker *worker = runtime->workers; worker; worker = worker->next)
        hd_rt_worker_tick(worker, now);
    hd_runtime_wake(runtime);
}

static void on_prepare(uv_prepare_t *handle)
{
    struct hd_runtime *runtime = handle->data;

    for (struct hd_rt_worker *worker = runtime->workers; worker; worker = worker->next)
        if (worker->link)
            hd_link_flush(worker->link);
}

static void on_requests_wake(uv_async_t *handle)
{
    hd_rt_request_wake(handle->data);
}

/* ---- start ------------------------------------------------------------ */

static void init_handle(struct hd_runtime *runtime, uv_handle_t *handle)
{
    handle->data = runtime;
    runtime->open_handles++;
}

/* Those that cannot fail come last. */
static int init_handles(struct hd_runtime *runtime)
{
    if (uv_async_init(runtime->loop, &runtime->wake, on_requests_wake))
        return HD_ENOMEM;
    init_handle(runtime, (uv_handle_t *)&runtime->wake);
    (void)uv_signal_init(runtime->loop, &runtime->child);
    init_handle(runtime, (uv_handle_t *)&runtime->child);
    (void)uv_prepare_init(runtime->loop, &runtime->flusher);
    init_handle(runtime, (uv_handle_t *)&runtime->flusher);
    (void)uv_timer_init(runtime->loop, &runtime->later);
    init_handle(runtime, (uv_handle_t *)&runtime->later);
    (void)uv_timer_init(runtime->loop, &runtime->ticker);
    init_handle(runtime, (uv_handle_t *)&runtime->ticker);
    return 0;
}

static void ignore_sigpipe(void)
{
    struct sigaction action;

    if (sigaction(SIGPIPE, NULL, &action) == 0 && action.sa_handler == SIG_DFL)
        (void)signal(SIGPIPE, SIG_IGN);
}

static struct hd_runtime *create_runtime(uv_loop_t *loop, struct heddle *store,
                                         const struct hd_rt_settings *settings)
{
    struct hd_runtime *runtime = hd_calloc(1, sizeof(*runtime));

    if (!runtime)
        return NULL;
    runtime->loop = loop;
    runtime->store = store;
    runtime->settings = settings;
    runtime->done_tail = &runtime->done;
    runtime->soon_tail = &runtime->soon;
    if (pthread_mutex_init(&runtime->lock, NULL)) {
        hd_free(runtime);
        return NULL;
    }
    return runtime;
}

int hd_runtime_create(uv_loop_t *loop, struct heddle *store, const struct hd_rt_settings *settings,
                      struct hd_runtime **out, struct heddle_error *fault)
{
    struct hd_runtime *runtime = create_runtime(loop, store, settings);
    int err = runtime ? 0 : HD_ENOMEM;

    for (int i = 0; !err && i < HD_RT_LANGUAGES; i++)
        err = hd_pool_open(runtime, (enum hd_rt_language)i);
    if (!err)
        err = init_handles(runtime);
    if (err) {
        if (runtime)
            free_runtime(runtime);
        return hd_error_set(fault, err, err == HD_ELIMIT ? "too many workers" : "out of memory");
    }
    ignore_sigpipe();
    *out = runtime;
    return 0;
}

void hd_runtime_on_ready(struct hd_runtime *runtime, hd_rt_ready_fn fn, void *ctx)
{
    runtime->on_ready = fn;
    runtime->ready_ctx = ctx;
}

int hd_runtime_start(struct hd_runtime *runtime, struct heddle_error *fault)
{
    int err = hd_listen_open(runtime, fault);

    if (!err && (uv_signal_start(&runtime->child, on_child, SIGCHLD) ||
                 uv_prepare_start(&runtime->flusher, on_prepare)))
        err = hd_error_set(fault, HD_EIO, "cannot watch processes");
    if (err) {
        hd_listen_close(runtime, on_handle_closed);
        return err;
    }
    runtime->is_started = true;
    set_pace(runtime);
    hd_runtime_wake(runtime);
    return 0;
}

void hd_runtime_suspend(struct hd_runtime *runtime, bool is_suspended)
{
    if (runtime->is_suspended == is_suspended || runtime->is_draining || runtime->is_destroyed)
        return;
    runtime->is_suspended = is_suspended;
    for (struct hd_rt_worker *worker = runtime->workers; worker; worker = worker->next)
        hd_rt_worker_suspend(worker, is_suspended);
    hd_runtime_wake(runtime);
}

void hd_runtime_end_suspended(struct hd_runtime *runtime)
{
    for (struct hd_rt_worker *worker = runtime->workers; worker; worker = worker->next) {
        if (runtime->is_suspended && worker->proc)
            hd_rt_worker_end(worker, "was killed: the server ends while it is suspended");
    }
}

void hd_runtime_drain(struct hd_runtime *runtime, void (*done)(void *ctx), void *ctx)
{
    if (runtime->is_draining)
        return;
    hd_runtime_end_suspended(runtime);
    runtime->is_draining = true;
    runtime->drain_until_us = hd_runtime_now(runtime) + runtime->settings->drain_us;
    runtime->drained = done;
    runtime->drained_ctx = ctx;
    for (int i = 0; i < HD_RT_LANGUAGES; i++)
        while (runtime->pools[i].waiting)
            hd_rt_call_lose(runtime->pools[i].waiting, "the server is shutting down");
    for (struct hd_rt_worker *worker = runtime->workers; worker; worker = worker->next)
        hd_rt_worker_drain(worker);
    set_pace(runtime);
    hd_runtime_wake(runtime);
}

void hd_runtime_destroy(struct hd_runtime *runtime)
{
    if (!runtime || runtime->is_destroyed)
        return;
    runtime->is_destroyed = true;
    runtime->drained = NULL;
    hd_rt_call_drop_all(runtime);
    for (struct hd_rt_worker *worker = runtime->workers; worker; worker = worker->next) {
        /* Cancel started ops now: their owners may be freed later. */
        hd_rt_request_lose_all(worker);
        hd_rt_worker_end(worker, "is no longer needed");
    }
    hd_listen_close(runtime, on_handle_closed);
    set_pace(runtime);
    hd_runtime_wake(runtime);
}
