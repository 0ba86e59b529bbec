/*
 * Threads for work that may block, started when needed up to a limit. Work is
 * taken in the order it was added.
 */
#include <pthread.h>

#include "base/alloc.h"
#include "store/store.h"

struct task {
    void (*work)(void *arg);
    void *arg;
    struct task *next;
};

struct hd_crew {
    /* `lock` protects everything below. */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct task *queue;
    struct task **tail;
    pthread_t *threads;
    unsigned thread_count;
    unsigned idle_count;
    unsigned queued; /* tasks that nobody has taken yet */
    unsigned limit;
    bool is_closing;
};

int hd_crew_open(struct hd_crew **out, unsigned limit)
{
    struct hd_crew *crew = hd_calloc(1, sizeof(*crew));

    if (!crew)
        return HD_ENOMEM;
    crew->threads = hd_calloc(limit, sizeof(*crew->threads));
    if (!crew->threads) {
        hd_free(crew);
        return HD_ENOMEM;
    }
    crew->limit = limit;
    crew->tail = &crew->queue;
    pthread_mutex_init(&crew->lock, NULL);
    pthread_cond_init(&crew->changed, NULL);
    *out = crew;
    return 0;
}

static struct task *take(struct hd_crew *crew)
{
    struct task *task = crew->queue;

    crew->queue = task->next;
    crew->queued--;
    if (!crew->queue)
        crew->tail = &crew->queue;
    return task;
}

static void *serve(void *arg)
{
    struct hd_crew *crew = arg;

    pthread_mutex_lock(&crew->lock);
    for (;;) {
        while (crew->queue) {
            struct task *task = take(crew);

            pthread_mutex_unlock(&crew->lock);
            task->work(task->arg);
            hd_free(task);
            pthread_mutex_lock(&crew->lock);
        }
        if (crew->is_closing)
            break;
        crew->idle_count++;
        pthread_cond_wait(&crew->changed, &crew->lock);
        crew->idle_count--;
    }
    pthread_mutex_unlock(&crew->lock);
    return NULL;
}

/*
 * One more thread when all are busy or about to be. Without any thread the work
 * would never run. While the crew closes, whoever adds work runs it himself.
 */
static int staff(struct hd_crew *crew)
{
    if (crew->idle_count > crew->queued || crew->thread_count == crew->limit ||
        (crew->is_closing && crew->thread_count > 0))
        return 0;
    if (pthread_create(&crew->threads[crew->thread_count], NULL, serve, crew) == 0)
        crew->thread_count++;
    return crew->thread_count > 0 ? 0 : HD_ENOMEM;
}

int hd_crew_add(struct hd_crew *crew, void (*work)(void *arg), void *arg)
{
    struct task *task = hd_calloc(1, sizeof(*task));
    int err;

    if (!task)
        return HD_ENOMEM;
    task->work = work;
    task->arg = arg;
    pthread_mutex_lock(&crew->lock);
    err = staff(crew);
    if (!err) {
        *crew->tail = task;
        crew->tail = &task->next;
        crew->queued++;
        pthread_cond_signal(&crew->changed);
    }
    pthread_mutex_unlock(&crew->lock);
    if (err)
        hd_free(task);
    return err;
}

void hd_crew_close(struct hd_crew *crew)
{
    if (!crew)
        return;
    pthread_mutex_lock(&crew->lock);
    crew->is_closing = true;
    pthread_cond_broadcast(&crew->changed);
    pthread_mutex_unlock(&crew->lock);
    for (unsigned i = 0; i < crew->thread_count; i++)
        pthread_join(crew->threads[i], NULL);
    pthread_cond_destroy(&crew->changed);
    pthread_mutex_destroy(&crew->lock);
    hd_free(crew->threads);
    hd_free(crew);
}
