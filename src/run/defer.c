#include "run/defer.h"

#include <heddle.h>
#include <pthread.h>

#include "base/alloc.h"
#include "base/error.h"

struct task {
    struct hd_defer *defer;
    void (*work)(void *arg);
    void (*done)(void *arg);
    void *arg;
    struct task *next;
};

struct hd_defer {
    uv_async_t wake;
    struct heddle *store;
    bool is_direct;
    size_t count; /* the loop's */

    pthread_mutex_t lock; /* protects what follows */
    struct task *finished;
    struct task **tail;
};

static void finish(struct task *task)
{
    struct hd_defer *defer = task->defer;

    pthread_mutex_lock(&defer->lock);
    task->next = NULL;
    *defer->tail = task;
    defer->tail = &task->next;
    /* Inside the lock: the defer may go as soon as the loop has seen its last task. */
    uv_async_send(&defer->wake);
    pthread_mutex_unlock(&defer->lock);
}

static void work_on_thread(void *arg)
{
    struct task *task = arg;

    task->work(task->arg);
    finish(task);
}

static void on_wake(uv_async_t *handle)
{
    struct hd_defer *defer = handle->data;
    struct task *list;

    pthread_mutex_lock(&defer->lock);
    list = defer->finished;
    defer->finished = NULL;
    defer->tail = &defer->finished;
    pthread_mutex_unlock(&defer->lock);

    while (list) {
        struct task *task = list;

        list = task->next;
        defer->count--;
        task->done(task->arg);
        hd_free(task);
    }
}

int hd_defer_create(uv_loop_t *loop, struct heddle *store, bool is_direct, struct hd_defer **out)
{
    struct hd_defer *defer = hd_calloc(1, sizeof(*defer));

    if (!defer)
        return HD_ENOMEM;
    if (pthread_mutex_init(&defer->lock, NULL)) {
        hd_free(defer);
        return HD_ENOMEM;
    }
    if (uv_async_init(loop, &defer->wake, on_wake)) {
        pthread_mutex_destroy(&defer->lock);
        hd_free(defer);
        return HD_ENOMEM;
    }
    defer->wake.data = defer;
    defer->store = store;
    defer->is_direct = is_direct;
    defer->tail = &defer->finished;
    *out = defer;
    return 0;
}

static void on_closed(uv_handle_t *handle)
{
    struct hd_defer *defer = handle->data;

    pthread_mutex_destroy(&defer->lock);
    hd_free(defer);
}

void hd_defer_destroy(struct hd_defer *defer)
{
    if (defer)
        uv_close((uv_handle_t *)&defer->wake, on_closed);
}

int hd_defer_run(struct hd_defer *defer, void (*work)(void *arg), void (*done)(void *arg),
                 void *arg)
{
    struct task *task = hd_malloc(sizeof(*task));
    int err = 0;

    if (!task)
        return HD_ENOMEM;
    *task = (struct task){.defer = defer, .work = work, .done = done, .arg = arg};
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

size_t hd_defer_count(const struct hd_defer *defer)
{
    return defer->count;
}
