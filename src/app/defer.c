#include "app/defer.h"

#include <heddle.h>
#include <pthread.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/list.h"
#include "graph/engine/patience.h"

struct task {
    struct hd_defer *defer;
    void (*work)(void *arg);
    int (*attempt)(void *arg); /* in place of `work`: with retries */
    void (*done)(void *arg);
    void *arg;
    int err; /* of the latest attempt */
    struct hd_store_retry retry;
    struct task *next;
};

struct hd_defer {
    uv_async_t wake;
    struct heddle *store;
    struct hd_patience *patience; /* NULL: none */
    bool is_direct;
    size_t count; /* belongs to the loop */

    HD_FIFO(struct task) finished; /* protected by `lock` */
    pthread_mutex_t lock;
};

static void finish_task(struct task *task)
{
    struct hd_defer *defer = task->defer;

    pthread_mutex_lock(&defer->lock);
    hd_fifo_push(&defer->finished, task, next);
    /* With the lock held: the loop may destroy `defer` as soon as it has seen the last task. */
    uv_async_send(&defer->wake);
    pthread_mutex_unlock(&defer->lock);
}

static void work_on_thread(void *arg)
{
    struct task *task = arg;

    if (task->attempt)
        task->err = task->attempt(task->arg);
    else
        task->work(task->arg);
    finish_task(task);
}

static void on_defer_wake(uv_async_t *handle)
{
    struct hd_defer *defer = handle->data;
    struct task *list;

    pthread_mutex_lock(&defer->lock);
    list = defer->finished.first;
    defer->finished.first = defer->finished.last = NULL;
    pthread_mutex_unlock(&defer->lock);

    while (list) {
        struct task *task = list;

        list = task->next;
        if (task->attempt && hd_patience_wait(defer->patience, &task->retry, task->err))
            continue;
        defer->count--;
        task->done(task->arg);
        hd_free(task);
    }
}

int hd_defer_create(uv_loop_t *loop, struct heddle *store, bool is_direct,
                    struct hd_patience *patience, struct hd_defer **out)
{
    struct hd_defer *defer = hd_calloc(1, sizeof(*defer));

    if (!defer)
        return HD_ENOMEM;
    if (pthread_mutex_init(&defer->lock, NULL)) {
        hd_free(defer);
        return HD_ENOMEM;
    }
    if (uv_async_init(loop, &defer->wake, on_defer_wake)) {
        pthread_mutex_destroy(&defer->lock);
        hd_free(defer);
        return HD_ENOMEM;
    }
    defer->wake.data = defer;
    defer->store = store;
    defer->is_direct = is_direct;
    defer->patience = patience;
    *out = defer;
    return 0;
}

static void on_defer_closed(uv_handle_t *handle)
{
    struct hd_defer *defer = handle->data;

    pthread_mutex_destroy(&defer->lock);
    hd_free(defer);
}

void hd_defer_destroy(struct hd_defer *defer)
{
    if (defer)
        uv_close((uv_handle_t *)&defer->wake, on_defer_closed);
}

/* Repeats the attempt after an outage. */
static void attempt_again(void *arg)
{
    struct task *task = arg;

    if (heddle_defer(task->defer->store, work_on_thread, task) == 0)
        return;
    task->retry.until_us = 1; /* no more retries: the latest result is final */
    finish_task(task);
}

static int start_task(const struct task *wanted)
{
    struct hd_defer *defer = wanted->defer;
    struct task *task = hd_malloc(sizeof(*task));
    int err = 0;

    if (!task)
        return HD_ENOMEM;
    *task = *wanted;
    task->retry = (struct hd_store_retry){.again = attempt_again, .arg = task};
    if (defer->is_direct)
        work_on_thread(task);
    else
        err = heddle_defer(defer->store, work_on_thread, task);
    if (err) {
        hd_free(task);
        return err;
    }
    defer->count++;
    return 0;
}

int hd_defer_run(struct hd_defer *defer, void (*work)(void *arg), void (*done)(void *arg),
                 void *arg)
{
    const struct task task = {.defer = defer, .work = work, .done = done, .arg = arg};

    return start_task(&task);
}

int hd_defer_patiently(struct hd_defer *defer, int (*work)(void *arg), void (*done)(void *arg),
                       void *arg)
{
    const struct task task = {.defer = defer, .attempt = work, .done = done, .arg = arg};

    return start_task(&task);
}

size_t hd_defer_count(const struct hd_defer *defer)
{
    return defer->count;
}
