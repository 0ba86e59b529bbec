#include "run/unsettled.h"

#include <uv.h>

#include "app/app.h"
#include "app/defer.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/list.h"
#include "base/log.h"
#include "run/queue.h"

#define CHECK_MS 1000
#define MAX_RUN ((size_t)512 << 20)
/* A commit whose connection has ended may take effect later; then its run is not there yet. */
#define WAIT_US (60 * INT64_C(1000000))

struct admission_doubt {
    struct hd_unsettled *unsettled;
    struct hd_arena arena; /* memory of `run` */
    struct hd_run_rec run;
    int64_t event_seq;
    int64_t since; /* monotonic */
    int err;       /* of the latest look-up */
    int64_t rev;   /* of the stored run; 0: it has ended */
    struct admission_doubt *next;
};

struct hd_unsettled {
    struct hd_app *app;
    uv_timer_t timer;
    uv_mutex_t lock; /* protects `added` */
    HD_FIFO(struct admission_doubt) added;
    bool is_stopped;
};

static void free_doubt(struct admission_doubt *doubt)
{
    hd_arena_fini(&doubt->arena);
    hd_free(doubt);
}

static void push_doubt(struct admission_doubt *doubt)
{
    struct hd_unsettled *unsettled = doubt->unsettled;

    uv_mutex_lock(&unsettled->lock);
    hd_fifo_push(&unsettled->added, doubt, next);
    uv_mutex_unlock(&unsettled->lock);
}

void hd_unsettled_add(struct hd_unsettled *unsettled, const struct hd_run_rec *run,
                      int64_t event_seq)
{
    struct admission_doubt *doubt = unsettled ? hd_calloc(1, sizeof(*doubt)) : NULL;

    if (!doubt)
        return;
    doubt->unsettled = unsettled;
    doubt->event_seq = event_seq;
    doubt->since = hd_clock_monotonic_us();
    hd_arena_init(&doubt->arena, MAX_RUN);
    if (hd_run_rec_copy(&doubt->arena, run, &doubt->run))
        free_doubt(doubt);
    else
        push_doubt(doubt);
}

/* ---- look-ups --------------------------------------------------------- */

static void look_up(void *arg)
{
    struct admission_doubt *doubt = arg;
    const struct hd_run_rec *run = &doubt->run;
    struct hd_run_rec stored;
    struct hd_arena arena;

    hd_arena_init(&arena, MAX_RUN);
    doubt->err = hd_run_read(doubt->unsettled->app->store, run->principal, run->thread_id,
                             run->run_id, &arena, &stored, NULL);
    if (!doubt->err)
        doubt->rev = stored.due_at ? stored.rev : 0;
    hd_arena_fini(&arena);
}

static void enter_queue(struct admission_doubt *doubt)
{
    struct hd_queue *queue = doubt->unsettled->app->queue;
    const struct hd_run_rec *run = &doubt->run;
    int err;

    doubt->run.rev = doubt->rev;
    if (!doubt->rev || hd_queue_has(queue, run->principal, run->thread_id, run->run_id))
        return;
    err = hd_queue_continue(queue, run, doubt->event_seq, false);
    if (err)
        hd_log(HD_LOG_ERROR, "run", "run %.*s waits for a restart: %s", (int)run->run_id.len,
               run->run_id.ptr, hd_error_text(err));
}

static void on_looked_up(void *arg)
{
    struct admission_doubt *doubt = arg;
    struct hd_unsettled *unsettled = doubt->unsettled;
    bool is_recent = hd_clock_monotonic_us() - doubt->since < WAIT_US;

    if (unsettled->is_stopped) {
        free_doubt(doubt);
    } else if (doubt->err && (doubt->err != HD_ENOTFOUND || is_recent)) {
        push_doubt(doubt);
    } else {
        if (!doubt->err)
            enter_queue(doubt);
        free_doubt(doubt);
    }
}

static struct admission_doubt *pop_doubt(struct hd_unsettled *unsettled)
{
    struct admission_doubt *doubt;

    uv_mutex_lock(&unsettled->lock);
    doubt = unsettled->added.first;
    if (doubt)
        hd_fifo_pop(&unsettled->added, doubt, next);
    uv_mutex_unlock(&unsettled->lock);
    return doubt;
}

/* Looked-up runs return to the list in a later turn of the loop. */
static void on_doubt_timer(uv_timer_t *timer)
{
    struct hd_unsettled *unsettled = timer->data;
    struct admission_doubt *doubt;

    while ((doubt = pop_doubt(unsettled))) {
        if (hd_defer_run(unsettled->app->defer, look_up, on_looked_up, doubt)) {
            push_doubt(doubt);
            return;
        }
    }
}

/* ---- open and close --------------------------------------------------- */

int hd_unsettled_create(struct hd_app *app, struct hd_unsettled **out)
{
    struct hd_unsettled *unsettled = hd_calloc(1, sizeof(*unsettled));

    if (!unsettled)
        return HD_ENOMEM;
    if (uv_mutex_init(&unsettled->lock)) {
        hd_free(unsettled);
        return HD_ENOMEM;
    }
    (void)uv_timer_init(app->loop, &unsettled->timer); /* cannot fail, as the next line */
    (void)uv_timer_start(&unsettled->timer, on_doubt_timer, CHECK_MS, CHECK_MS);
    uv_unref((uv_handle_t *)&unsettled->timer);
    unsettled->timer.data = unsettled;
    unsettled->app = app;
    *out = unsettled;
    return 0;
}

void hd_unsettled_stop(struct hd_unsettled *unsettled)
{
    if (!unsettled)
        return;
    unsettled->is_stopped = true;
    (void)uv_timer_stop(&unsettled->timer); /* cannot fail */
}

static void on_unsettled_closed(uv_handle_t *handle)
{
    struct hd_unsettled *unsettled = handle->data;

    uv_mutex_destroy(&unsettled->lock);
    hd_free(unsettled);
}

void hd_unsettled_destroy(struct hd_unsettled *unsettled)
{
    struct admission_doubt *doubt;

    if (!unsettled)
        return;
    while ((doubt = pop_doubt(unsettled)))
        free_doubt(doubt);
    uv_close((uv_handle_t *)&unsettled->timer, on_unsettled_closed);
}
