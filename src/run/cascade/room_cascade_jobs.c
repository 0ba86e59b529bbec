#include "run/cascade/room_cascade_jobs.h"

#include <uv.h>

#include "app/app.h"
#include "app/defer.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "cluster/cluster.h"
#include "events/event_batch.h"
#include "run/queue.h"
#include "run/cascade/room_cascade.h"
#include "run/room/room_waiting.h"

#define TICK_MS 500
#define RETRY_US (1 * INT64_C(1000000))
#define HOLDER_US (5 * INT64_C(1000000))  /* another server has the thread */
#define SEARCH_US (15 * INT64_C(1000000)) /* for the cascades of servers that are gone */
#define MAX_MEMORY ((size_t)1 << 30)
#define MAX_REASON 300
#define MAX_ERRORS 5 /* that are not transient */

struct cascade_job {
    struct hd_room_cascade_jobs *jobs;
    struct cascade_job *next;
    struct hd_arena names; /* memory of the three */
    struct hd_slice principal, thread_id, cascade_id;
    struct hd_arena arena; /* of `op` */
    struct hd_room_cascade op;
    struct hd_event_batch *events;
    int err;
    int errors; /* in a row that are not transient */
    struct heddle_error fault;
    char reason[MAX_REASON]; /* why the cascade fails; empty: it advances */
    bool is_busy;
    bool is_due;      /* again, when the present work is done */
    int64_t retry_at; /* monotonic; 0: none */
};

struct hd_room_cascade_jobs {
    struct hd_app *app;
    uv_timer_t timer;
    struct cascade_job *list;
    int64_t search_at; /* monotonic; 0: a search is running, or there is no cluster */
    bool is_stopped;
};

static void cascade_job_run(struct cascade_job *job);

/* ---- jobs ------------------------------------------------------------- */

static void free_job(struct cascade_job *job)
{
    struct cascade_job **link = &job->jobs->list;

    while (*link != job)
        link = &(*link)->next;
    *link = job->next;
    hd_event_batch_end(job->events, false);
    hd_room_cascade_fini(&job->op);
    hd_arena_fini(&job->arena);
    hd_arena_fini(&job->names);
    hd_free(job);
}

static struct cascade_job *find_job(const struct hd_room_cascade_jobs *jobs,
                                    struct hd_slice principal, struct hd_slice cascade_id)
{
    struct cascade_job *job = jobs->list;

    while (job &&
           !(hd_slice_eq(job->principal, principal) && hd_slice_eq(job->cascade_id, cascade_id)))
        job = job->next;
    return job;
}

static struct cascade_job *make_job(struct hd_room_cascade_jobs *jobs, struct hd_slice principal,
                                    struct hd_slice thread_id, struct hd_slice cascade_id)
{
    struct cascade_job *job = hd_calloc(1, sizeof(*job));

    if (!job)
        return NULL;
    hd_arena_init(&job->names, MAX_MEMORY);
    hd_arena_init(&job->arena, MAX_MEMORY);
    if (hd_arena_copy(&job->names, principal, &job->principal) ||
        hd_arena_copy(&job->names, thread_id, &job->thread_id) ||
        hd_arena_copy(&job->names, cascade_id, &job->cascade_id)) {
        hd_arena_fini(&job->names);
        hd_free(job);
        return NULL;
    }
    job->jobs = jobs;
    job->next = jobs->list;
    jobs->list = job;
    return job;
}

/* ---- after a batch ---------------------------------------------------- */

/* The runs are stored: at the latest the next process recovers them. */
static void queue_runs(struct hd_app *app, const struct hd_room_cascade *op)
{
    for (size_t i = 0; i < op->run_count; i++) {
        const struct hd_admission *admission = &op->runs[i]->admission;
        int err = hd_queue_add(app->queue, &admission->run, op->event_seq, false);

        if (err)
            hd_log(HD_LOG_ERROR, "run", "run %.*s waits for a restart: %s",
                   (int)admission->run.run_id.len, admission->run.run_id.ptr, hd_error_text(err));
    }
}

static void take_effect(struct hd_room_cascade_jobs *jobs, const struct hd_room_cascade *op)
{
    queue_runs(jobs->app, op);
    for (size_t i = 0; i < op->cancelled_count; i++)
        hd_queue_cancel(jobs->app->queue, op->principal, op->thread_id, op->cancelled[i],
                        HD_CANCEL_INTERRUPT);
    /* Messages may have waited behind its question. */
    if (op->has_cascade && op->cascade.status != HD_CASCADE_RUNNING)
        hd_room_waiting_check(jobs->app, op->principal, op->thread_id);
}

void hd_room_cascade_jobs_follow(struct hd_room_cascade_jobs *jobs,
                                 const struct hd_room_cascade *op)
{
    hd_event_batch_end(op->events, op->is_stored);
    if (!op->is_stored)
        return;
    take_effect(jobs, op);
    if (op->has_cascade && op->cascade.status == HD_CASCADE_RUNNING)
        hd_room_cascade_jobs_add(jobs, op->principal, op->thread_id, op->cascade.id);
}

/* ---- one step --------------------------------------------------------- */

/* Store thread. */
static void apply_job(void *arg)
{
    struct cascade_job *job = arg;

    job->fault = (struct heddle_error){0};
    job->err = hd_room_cascade_apply(&job->op, &job->fault);
}

static void retry_job(struct cascade_job *job, int64_t pause)
{
    job->retry_at = hd_clock_monotonic_us() + pause;
}

static void begin_numbers(struct cascade_job *job)
{
    job->events = hd_event_batch_begin(job->jobs->app->event_logs, job->principal, job->thread_id,
                                       job->op.event_seq, HD_ROOM_CASCADE_EVENTS);
    if (job->events)
        cascade_job_run(job);
    else
        retry_job(job, RETRY_US);
}

/* A refusal that another attempt would repeat ends the cascade; a deleted thread ends the job. */
static void refuse_job(struct cascade_job *job)
{
    if (job->op.refusal == 429) {
        retry_job(job, job->op.retry_s > 0 ? job->op.retry_s * INT64_C(1000000) : RETRY_US);
    } else if (job->reason[0] || !job->op.has_cascade) {
        free_job(job);
    } else {
        snprintf(job->reason, sizeof(job->reason), "%s", job->fault.text);
        cascade_job_run(job);
    }
}

/* An error that lasts ends the cascade; others, such as a store outage, end themselves. */
static void fail_job(struct cascade_job *job)
{
    const char *text = job->fault.code ? job->fault.text : hd_error_text(job->err);
    bool is_lasting = !hd_error_is_transient(job->err) && ++job->errors == MAX_ERRORS;

    hd_log(HD_LOG_WARN, "room", "a cascade %s: %s", is_lasting ? "fails" : "continues later", text);
    if (is_lasting && job->reason[0]) {
        free_job(job);
        return;
    }
    if (is_lasting) {
        snprintf(job->reason, sizeof(job->reason), "%s", text);
        job->errors = 0;
    }
    retry_job(job, RETRY_US);
}

static void continue_job(struct cascade_job *job)
{
    const struct hd_room_cascade *op = &job->op;
    bool is_running = op->has_cascade && op->cascade.status == HD_CASCADE_RUNNING;

    job->errors = 0;
    if (op->is_stored)
        take_effect(job->jobs, op);
    if (!is_running)
        free_job(job);
    else if (job->is_due || op->is_more)
        cascade_job_run(job);
}

/* The events end with each attempt: while numbers are reserved, readers get no later events. */
static void on_job_applied(void *arg)
{
    struct cascade_job *job = arg;

    job->is_busy = false;
    hd_event_batch_end(job->events, job->op.is_stored);
    job->events = NULL;
    if (job->jobs->is_stopped && !job->op.is_stored) {
        free_job(job);
    } else if (job->err) {
        fail_job(job);
    } else if (job->op.holder.len > 0) {
        retry_job(job, HOLDER_US);
    } else if (job->op.needs_numbers) {
        begin_numbers(job);
    } else if (job->op.refusal) {
        refuse_job(job);
    } else {
        continue_job(job);
    }
}

static void cascade_job_run(struct cascade_job *job)
{
    struct hd_room_cascade_jobs *jobs = job->jobs;

    job->is_due = job->is_busy;
    if (job->is_busy || jobs->is_stopped)
        return;
    hd_room_cascade_fini(&job->op);
    hd_arena_reset(&job->arena);
    job->retry_at = 0;
    job->op = (struct hd_room_cascade){.app = jobs->app,
                                       .arena = &job->arena,
                                       .principal = job->principal,
                                       .thread_id = job->thread_id,
                                       .cascade_id = job->cascade_id,
                                       .verb = HD_ROOM_CASCADE_ADVANCE,
                                       .events = job->events};
    if (job->reason[0]) {
        job->op.verb = HD_ROOM_CASCADE_FAIL;
        job->op.reason = hd_slice_cstr(job->reason);
    }
    if (!hd_defer_run(jobs->app->defer, apply_job, on_job_applied, job)) {
        job->is_busy = true;
        return;
    }
    hd_event_batch_end(job->events, false);
    job->events = NULL;
    retry_job(job, RETRY_US);
}

void hd_room_cascade_jobs_add(struct hd_room_cascade_jobs *jobs, struct hd_slice principal,
                              struct hd_slice thread_id, struct hd_slice cascade_id)
{
    struct cascade_job *job = find_job(jobs, principal, cascade_id);

    if (!job)
        job = make_job(jobs, principal, thread_id, cascade_id);
    if (job)
        cascade_job_run(job);
    else
        hd_log(HD_LOG_ERROR, "room", "a cascade waits for a restart: out of memory");
}

void hd_room_cascade_jobs_run_ended(struct hd_room_cascade_jobs *jobs, const struct hd_run_rec *run)
{
    for (struct cascade_job *job = jobs ? jobs->list : NULL; job; job = job->next) {
        if (hd_slice_eq(job->principal, run->principal) &&
            hd_slice_eq(job->thread_id, run->thread_id))
            cascade_job_run(job);
    }
}

/* ---- searching -------------------------------------------------------- */

struct cascade_search {
    struct hd_room_cascade_jobs *jobs;
    struct hd_arena arena;
    struct found_cascade {
        struct hd_slice principal, thread_id, id;
        struct found_cascade *next;
    } * found;
    int err;
};

static int on_open_cascade(void *arg, const struct hd_cascade_rec *cascade)
{
    struct cascade_search *search = arg;
    struct found_cascade *found;
    int err;

    if (cascade->status != HD_CASCADE_RUNNING)
        return 0;
    found = hd_arena_alloc(&search->arena, sizeof(*found));
    if (!found)
        return HD_ENOMEM;
    err = hd_arena_copy(&search->arena, cascade->principal, &found->principal);
    if (!err)
        err = hd_arena_copy(&search->arena, cascade->thread_id, &found->thread_id);
    if (!err)
        err = hd_arena_copy(&search->arena, cascade->id, &found->id);
    found->next = search->found;
    search->found = found;
    return err;
}

static void add_found(struct cascade_search *search)
{
    for (struct found_cascade *found = search->found; found; found = found->next) {
        if (!find_job(search->jobs, found->principal, found->id))
            hd_room_cascade_jobs_add(search->jobs, found->principal, found->thread_id, found->id);
    }
}

int hd_room_cascade_jobs_begin(struct hd_room_cascade_jobs *jobs, struct heddle_error *fault)
{
    struct cascade_search search = {.jobs = jobs};
    int err;

    hd_arena_init(&search.arena, MAX_MEMORY);
    err = hd_cascades_open(jobs->app->store, on_open_cascade, &search, fault);
    if (!err)
        add_found(&search);
    hd_arena_fini(&search.arena);
    if (hd_cluster_is_on(jobs->app->cluster))
        jobs->search_at = hd_clock_monotonic_us() + SEARCH_US;
    return err;
}

/* Store thread. */
static void search_cascades(void *arg)
{
    struct cascade_search *search = arg;

    search->err = hd_cascades_open(search->jobs->app->store, on_open_cascade, search, NULL);
}

static void on_searched(void *arg)
{
    struct cascade_search *search = arg;

    if (!search->err && !search->jobs->is_stopped)
        add_found(search);
    search->jobs->search_at = hd_clock_monotonic_us() + SEARCH_US;
    hd_arena_fini(&search->arena);
    hd_free(search);
}

static void begin_search(struct hd_room_cascade_jobs *jobs)
{
    struct cascade_search *search = hd_calloc(1, sizeof(*search));

    jobs->search_at = hd_clock_monotonic_us() + SEARCH_US;
    if (!search)
        return;
    search->jobs = jobs;
    hd_arena_init(&search->arena, MAX_MEMORY);
    if (hd_defer_run(jobs->app->defer, search_cascades, on_searched, search)) {
        hd_arena_fini(&search->arena);
        hd_free(search);
        return;
    }
    jobs->search_at = 0;
}

static void on_cascade_timer(uv_timer_t *timer)
{
    struct hd_room_cascade_jobs *jobs = timer->data;
    int64_t now = hd_clock_monotonic_us();

    for (struct cascade_job *job = jobs->list; job; job = job->next) {
        if (!job->is_busy && job->retry_at != 0 && job->retry_at <= now)
            cascade_job_run(job);
    }
    if (jobs->search_at != 0 && jobs->search_at <= now)
        begin_search(jobs);
}

/* ---- open and close --------------------------------------------------- */

int hd_room_cascade_jobs_create(struct hd_app *app, struct hd_room_cascade_jobs **out)
{
    struct hd_room_cascade_jobs *jobs = hd_calloc(1, sizeof(*jobs));

    if (!jobs)
        return HD_ENOMEM;
    (void)uv_timer_init(app->loop, &jobs->timer); /* cannot fail, as the next line */
    (void)uv_timer_start(&jobs->timer, on_cascade_timer, TICK_MS, TICK_MS);
    uv_unref((uv_handle_t *)&jobs->timer);
    jobs->timer.data = jobs;
    jobs->app = app;
    *out = jobs;
    return 0;
}

void hd_room_cascade_jobs_stop(struct hd_room_cascade_jobs *jobs)
{
    if (!jobs)
        return;
    jobs->is_stopped = true;
    (void)uv_timer_stop(&jobs->timer); /* cannot fail */
}

static void on_jobs_closed(uv_handle_t *handle)
{
    hd_free(handle->data);
}

void hd_room_cascade_jobs_destroy(struct hd_room_cascade_jobs *jobs)
{
    if (!jobs)
        return;
    while (jobs->list)
        free_job(jobs->list);
    uv_close((uv_handle_t *)&jobs->timer, on_jobs_closed);
}
