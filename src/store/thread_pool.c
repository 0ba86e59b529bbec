/*
 * Threads for work that may block, started when needed up to a limit. Work runs in the order it was
 * added.
 */
#include <pthread.h>

#include "base/alloc.h"
#include "base/list.h"
#include "store/store.h"

struct deferred_task {
    void (*work)(void *arg);
    void *arg;
    struct deferred_task *next;
};

struct hd_thread_pool {
    /* `lock` protects everything below. */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    HD_FIFO(struct deferred_task) queue;
    pthread_t *threads;
    unsigned thread_count;
    unsigned idle_count;
    unsigned queued; /* tasks that no thread has taken yet */
    unsigned limit;
    bool is_closing;
};

int hd_thread_pool_open(struct hd_thread_pool **out, unsigned limit)
{
    struct hd_thread_pool *pool = hd_calloc(1, sizeof(*pool));

    if (!pool)
        return HD_ENOMEM;
    pool->threads = hd_calloc(limit, sizeof(*pool->threads));
    if (!pool->threads) {
        hd_free(pool);
        return HD_ENOMEM;
    }
    pool->limit = limit;
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->changed, NULL);
    *out = pool;
    return 0;
}

static struct deferred_task *pool_take_task(struct hd_thread_pool *pool)
{
    struct deferred_task *task;

    hd_fifo_pop(&pool->queue, task, next);
    pool->queued--;
    return task;
}

static void *serve(void *arg)
{
    struct hd_thread_pool *pool = arg;

    pthread_mutex_lock(&pool->lock);
    for (;;) {
        while (pool->queue.first) {
            struct deferred_task *task = pool_take_task(pool);

            pthread_mutex_unlock(&pool->lock);
            task->work(task->arg);
            hd_free(task);
            pthread_mutex_lock(&pool->lock);
        }
        if (pool->is_closing)
            break;
        pool->idle_count++;
        pthread_cond_wait(&pool->changed, &pool->lock);
        pool->idle_count--;
    }
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

/*
 * Starts one more thread when all are busy or about to be. Without any thread the work would never
 * run. While the pool closes, the caller runs the work itself.
 */
static int staff(struct hd_thread_pool *pool)
{
    if (pool->idle_count > pool->queued || pool->thread_count == pool->limit ||
        (pool->is_closing && pool->thread_count > 0))
        return 0;
    if (pthread_create(&pool->threads[pool->thread_count], NULL, serve, pool) == 0)
        pool->thread_count++;
    return pool->thread_count > 0 ? 0 : HD_ENOMEM;
}

int hd_thread_pool_add(struct hd_thread_pool *pool, void (*work)(void *arg), void *arg)
{
    struct deferred_task *task = hd_calloc(1, sizeof(*task));
    int err;

    if (!task)
        return HD_ENOMEM;
    task->work = work;
    task->arg = arg;
    pthread_mutex_lock(&pool->lock);
    err = staff(pool);
    if (!err) {
        hd_fifo_push(&pool->queue, task, next);
        pool->queued++;
        pthread_cond_signal(&pool->changed);
    }
    pthread_mutex_unlock(&pool->lock);
    if (err)
        hd_free(task);
    return err;
}

void hd_thread_pool_close(struct hd_thread_pool *pool)
{
    if (!pool)
        return;
    pthread_mutex_lock(&pool->lock);
    pool->is_closing = true;
    pthread_cond_broadcast(&pool->changed);
    pthread_mutex_unlock(&pool->lock);
    for (unsigned i = 0; i < pool->thread_count; i++)
        pthread_join(pool->threads[i], NULL);
    pthread_cond_destroy(&pool->changed);
    pthread_mutex_destroy(&pool->lock);
    hd_free(pool->threads);
    hd_free(pool);
}
