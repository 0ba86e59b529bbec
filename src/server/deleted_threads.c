#include "server/deleted_threads.h"

#include <uv.h>

#include "app/app.h"
#include "app/defer.h"
#include "base/alloc.h"
#include "base/arena.h"
#include "base/log.h"
#include "cluster/cluster.h"
#include "events/event_log.h"
#include "store/rows.h"

#define LOOK_MS 2000
#define AT_ONCE 64 /* threads of one read */
#define MAX_ARENA ((size_t)64 << 20)

struct checked_thread {
    struct checked_thread *next;
    struct hd_event_log_place place;
};

struct hd_deleted_threads {
    struct hd_app *app;
    uv_timer_t timer;

    /* A look; belongs to the store thread while it reads. */
    struct hd_arena arena;
    struct checked_thread *first;
    int err;
    struct heddle_error fault;
};

/* ---- reading (store thread) ------------------------------------------- */

static int on_created_at(void *arg, size_t which, const struct hd_cell *cells)
{
    struct checked_thread *const *threads = arg;

    threads[which]->place.created_at = cells[HD_THREAD_INFO_CREATED].number;
    return 0;
}

static int read_some(struct hd_deleted_threads *t, struct checked_thread **at)
{
    struct checked_thread *threads[AT_ONCE];
    struct hd_cell keys[AT_ONCE][2];
    struct hd_query queries[AT_ONCE];
    size_t count = 0;

    for (; *at && count < AT_ONCE; *at = (*at)->next, count++) {
        threads[count] = *at;
        keys[count][0] = hd_cell_bytes((*at)->place.principal);
        keys[count][1] = hd_cell_bytes((*at)->place.thread);
        queries[count] = (struct hd_query){.table = HD_THREAD_INFO,
                                           .index = HD_PRIMARY,
                                           .prefix = keys[count],
                                           .prefix_count = HD_COUNT(keys[count]),
                                           .columns = 1u << HD_THREAD_INFO_CREATED};
    }
    return hd_rows_read(t->app->store, queries, count, on_created_at, threads, &t->fault);
}

static void read_created(void *arg)
{
    struct hd_deleted_threads *t = arg;
    struct checked_thread *at = t->first;

    while (!t->err && at)
        t->err = read_some(t, &at);
}

/* ---- before and after it (loop) --------------------------------------- */

/* Without memory the thread is checked by the next look. */
static void add_thread(void *ctx, const struct hd_event_log_place *place)
{
    struct hd_deleted_threads *t = ctx;
    struct checked_thread *thread = hd_arena_calloc(&t->arena, 1, sizeof(*thread));

    if (!thread || hd_arena_copy(&t->arena, place->principal, &thread->place.principal) ||
        hd_arena_copy(&t->arena, place->thread, &thread->place.thread))
        return;
    thread->next = t->first;
    t->first = thread;
}

static void on_created_read(void *arg)
{
    struct hd_deleted_threads *t = arg;

    if (t->err)
        hd_log(HD_LOG_WARN, "cluster", "threads with readers could not be checked: %s",
               t->fault.code ? t->fault.text : hd_error_text(t->err));
    for (const struct checked_thread *at = t->first; !t->err && at; at = at->next)
        hd_event_logs_check(t->app->event_logs, &at->place);
    hd_arena_reset(&t->arena);
    if (!uv_is_closing((uv_handle_t *)&t->timer))
        uv_timer_again(&t->timer);
}

static void on_deleted_timer(uv_timer_t *timer)
{
    struct hd_deleted_threads *t = timer->data;

    t->first = NULL;
    t->err = 0;
    t->fault = (struct heddle_error){0};
    hd_event_logs_each(t->app->event_logs, add_thread, t);
    if (!t->first)
        return;
    if (hd_defer_run(t->app->defer, read_created, on_created_read, t))
        hd_arena_reset(&t->arena);
    else
        uv_timer_stop(timer);
}

int hd_deleted_threads_create(struct hd_app *app, struct hd_deleted_threads **out)
{
    struct hd_deleted_threads *t;

    *out = NULL;
    if (!hd_cluster_is_on(app->cluster))
        return 0;
    t = hd_calloc(1, sizeof(*t));
    if (!t)
        return HD_ENOMEM;
    if (uv_timer_init(app->loop, &t->timer)) {
        hd_free(t);
        return HD_EIO;
    }
    t->app = app;
    t->timer.data = t;
    hd_arena_init(&t->arena, MAX_ARENA);
    uv_timer_start(&t->timer, on_deleted_timer, LOOK_MS, LOOK_MS);
    uv_unref((uv_handle_t *)&t->timer);
    *out = t;
    return 0;
}

static void on_deleted_closed(uv_handle_t *handle)
{
    struct hd_deleted_threads *t = handle->data;

    hd_arena_fini(&t->arena);
    hd_free(t);
}

void hd_deleted_threads_destroy(struct hd_deleted_threads *t)
{
    if (t)
        uv_close((uv_handle_t *)&t->timer, on_deleted_closed);
}
