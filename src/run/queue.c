#include "run/queue.h"

#include <string.h>

#include "app/defer.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "config/config.h"
#include "gate/limits.h"
#include "records/thread_heads.h"
#include "run/active_run.h"
#include "run/delegate.h"
#include "run/off_head.h"
#include "run/queue_lines.h"
#include "run/run_commit.h"
#include "run/run_log.h"
#include "run/run_recover.h"
#include "worker/resume_answers.h"

#define MAX_THREAD_QUEUES ((size_t)1 << 22)
#define TICK_MS 1000 /* accuracy of timeouts */
#define MAX_ACTIVE_RUN ((size_t)512 << 20)
#define RETRY_US 100000      /* until the next attempt to store an end; doubles */
#define MAX_RETRY_US 5000000 /* up to this */
#define HELD_US 5000         /* until a run held by a pending admission is checked again */

static void on_queue_tick(uv_timer_t *timer);
static void meet(struct hd_active_run *active, struct hd_pending_admission *admission);
static void refuse_admission(struct hd_pending_admission *admission);
static void queue_resume(struct hd_queue *queue);
static void set_timer(struct hd_queue *queue, int64_t wait_us);

int hd_queue_create(struct hd_app *app, struct hd_queue **out)
{
    struct hd_queue *queue = hd_calloc(1, sizeof(*queue));

    if (!queue)
        return HD_ENOMEM;
    if (hd_pending_admissions_init(&queue->admissions)) {
        hd_free(queue);
        return HD_EIO;
    }
    if (uv_timer_init(app->loop, &queue->timer)) {
        hd_pending_admissions_fini(&queue->admissions);
        hd_free(queue);
        return HD_EIO;
    }
    queue->timer.data = queue;
    queue->app = app;
    queue->ready_tail = &queue->ready;
    hd_map_init(&queue->thread_queues, MAX_THREAD_QUEUES);
    hd_buf_init(&queue->scratch, HD_EVENT_LIMIT);
    *out = queue;
    return 0;
}

static void on_queue_closed(uv_handle_t *handle)
{
    hd_free(handle->data);
}

static void free_active_run(struct hd_active_run *active)
{
    hd_run_execute_fini(active);
    hd_arena_fini(&active->arena);
    hd_free(active);
}

static void free_thread_queue(struct hd_thread_queue *thread_queue)
{
    while (thread_queue->first) {
        struct hd_line_queue *line = thread_queue->first;

        while (line->first) {
            struct hd_active_run *active = line->first;

            line->first = active->next;
            free_active_run(active);
        }
        thread_queue->first = line->next;
        hd_free(line);
    }
    hd_free(thread_queue);
}

void hd_queue_destroy(struct hd_queue *queue)
{
    struct hd_slice key;
    size_t pos = 0;
    void *value;

    if (!queue)
        return;
    while (hd_map_next(&queue->thread_queues, &pos, &key, &value))
        free_thread_queue(value);
    hd_map_fini(&queue->thread_queues);
    hd_buf_fini(&queue->scratch);
    hd_pending_admissions_fini(&queue->admissions);
    uv_close((uv_handle_t *)&queue->timer, on_queue_closed);
}

struct hd_queue_counts hd_queue_counts(const struct hd_queue *queue)
{
    return (struct hd_queue_counts){.running = queue->running,
                                    .pending = queue->pending,
                                    .threads = queue->thread_queues.count,
                                    .ended = queue->ended,
                                    .failed = queue->failed};
}

/* ---- runs ------------------------------------------------------------- */

bool hd_queue_has(struct hd_queue *queue, struct hd_slice principal, struct hd_slice thread,
                  struct hd_slice run_id)
{
    return hd_queue_lines_run(queue, principal, thread, run_id) ||
           hd_pending_admission_find(&queue->admissions, principal, run_id);
}

bool hd_queue_is_waiting(struct hd_queue *queue, struct hd_slice principal, struct hd_slice thread,
                         struct hd_slice run_id)
{
    const struct hd_active_run *active = hd_queue_lines_run(queue, principal, thread, run_id);

    return active ? !active->is_started
                  : hd_pending_admission_find(&queue->admissions, principal, run_id) != NULL;
}

/*
 * Returns whether a run precedes another of its line: a run of an earlier process, first of all
 * one with stored checkpoints, since its next step builds on them; otherwise by order.
 */
static bool comes_before(const struct hd_active_run *active, const struct hd_active_run *other)
{
    bool has_begun = active->rec.status == HD_RUN_STATE_RUNNING;

    if (has_begun != (other->rec.status == HD_RUN_STATE_RUNNING))
        return has_begun;
    if (active->is_continued != other->is_continued)
        return active->is_continued;
    return active->rec.order < other->rec.order;
}

/* Inserts in the order of comes_before(); the running run stays first. */
static void insert(struct hd_line_queue *line, struct hd_active_run *active)
{
    struct hd_active_run **link = &line->first;

    if (line->is_busy && *link)
        link = &(*link)->next;
    while (*link && !comes_before(active, *link))
        link = &(*link)->next;
    active->next = *link;
    *link = active;
}

/* The line as hd_queue_expect_order() announces it. */
static struct hd_slice held_line(const struct hd_active_run *active)
{
    return hd_queue_lines_are_parallel(active->app->queue) ? active->root : hd_slice(NULL, 0);
}

/*
 * Returns whether an earlier run of the line is still being admitted: two store threads report to
 * the loop in any order. A run that was stored as running has no earlier one.
 */
static bool is_held(const struct hd_active_run *active)
{
    return active->rec.status == HD_RUN_STATE_PENDING && !active->rec.is_off_head &&
           hd_pending_admission_is_before(&active->app->queue->admissions, active->rec.principal,
                                          active->rec.thread_id, held_line(active),
                                          active->rec.order);
}

/* The first run that is due; NULL: none, and *next is when to check again (INT64_MAX: never). */
static struct hd_active_run *find_due(const struct hd_line_queue *line, int64_t *next)
{
    int64_t now = hd_clock_now_us();

    *next = INT64_MAX;
    for (struct hd_active_run *active = line->first; active; active = active->next) {
        int64_t due = hd_run_not_before(&active->rec);

        if (active->stop != HD_STOP_NONE)
            continue;
        if (due <= now && !is_held(active))
            return active;
        if (due <= now) {
            *next = now + HELD_US;
            return NULL; /* the runs behind it are held too */
        }
        *next = due < *next ? due : *next;
    }
    return NULL;
}

static void move_to_front(struct hd_line_queue *line, struct hd_active_run *active)
{
    struct hd_active_run **link = &line->first;

    while (*link != active)
        link = &(*link)->next;
    *link = active->next;
    active->next = line->first;
    line->first = active;
}

/* ---- start ------------------------------------------------------------ */

/*
 * Marks the record of a pending run as running. For a run of an earlier process, finds the
 * checkpoint at which it resumes.
 */
struct promotion {
    struct hd_active_run *active;
    int err;
    bool is_gone; /* cancelled or deleted meanwhile */
    struct heddle_error fault;
};

/* Reads the run's namespace (into its arena) and whether it names a checkpoint to start at. */
static int read_place(struct hd_active_run *active, struct hd_slice *ns, bool *names_checkpoint,
                      struct heddle_error *fault)
{
    struct hd_json json = {NULL};
    hd_json_val configurable;
    int err = hd_json_parse(&json, active->rec.kwargs, fault);

    configurable =
        hd_json_get(hd_json_get(hd_json_root(&json), HD_S("config")), HD_S("configurable"));
    *names_checkpoint = hd_json_string(hd_json_get(configurable, HD_S("checkpoint_id"))).len > 0;
    if (!err)
        err = hd_arena_copy(&active->arena,
                            hd_json_string(hd_json_get(configurable, HD_S("checkpoint_ns"))), ns);
    hd_json_fini(&json);
    return err;
}

/* Finds the stored head, unless the run names a checkpoint. */
static int find_head(struct heddle *store, struct hd_active_run *active,
                     const struct hd_thread_rec *thread, struct heddle_error *fault)
{
    bool names_checkpoint;
    struct hd_slice ns;
    int err = read_place(active, &ns, &names_checkpoint, fault);

    if (!err && !names_checkpoint)
        err = hd_thread_heads_get(store, thread, ns, &active->arena, &active->head, fault);
    return err;
}

/*
 * Finds the checkpoint at which the run resumes, if that is not the latest one. `has_branches`: the
 * latest may change before the run reads it.
 */
static int find_end(struct hd_active_run *active, bool has_branches, struct heddle_error *fault)
{
    const struct hd_run_rec *run = &active->rec;
    bool names_checkpoint;
    struct hd_slice ns;
    int err = read_place(active, &ns, &names_checkpoint, fault);

    if (err)
        return err;
    return (has_branches ? hd_thread_heads_made : hd_thread_heads_beside)(
        active->app->store, run->principal, run->thread_id, ns, run->run_id, &active->arena,
        &active->continue_at, fault);
}

/* Finds the progress that an earlier process made. */
static int look_back(struct hd_active_run *active, const struct hd_thread_rec *thread,
                     struct heddle_error *fault)
{
    bool is_off_head = active->rec.is_off_head;
    struct hd_slice asked = is_off_head ? active->rec.asked : thread->interrupts;
    struct hd_answers_left answers;
    int err = hd_run_commit_has_checkpoint(active->app->store, &active->rec, &active->is_continued,
                                           fault);

    if (!err && active->is_continued)
        err = find_end(active, is_off_head || thread->heads.len > 0, fault);
    if (!err)
        err = hd_answers_check(active->app, &active->rec, active->head, asked, &answers, fault);
    if (err)
        return err;
    active->is_answered = answers.are_taken;
    active->command = answers.command;
    active->is_continued = active->is_continued || (answers.are_taken && !answers.command);
    return 0;
}

/* Reads the changes that earlier runs made to the thread since this run was admitted. */
static int read_thread(struct heddle *store, struct hd_active_run *active,
                       struct heddle_error *fault)
{
    struct hd_thread_rec thread;
    struct hd_arena arena;
    int err;

    hd_arena_init(&arena, MAX_ACTIVE_RUN);
    err =
        hd_thread_read(store, active->rec.principal, active->rec.thread_id, &arena, &thread, fault);
    if (!err && thread.event_seq > active->event_seq)
        active->event_seq = thread.event_seq;
    if (!err && thread.heads.len > 0)
        err = find_head(store, active, &thread, fault);
    if (!err && active->rec.attempt > 1)
        err = look_back(active, &thread, fault);
    hd_arena_fini(&arena);
    return err;
}

static int promote(void *arg)
{
    struct promotion *promotion = arg;
    struct hd_active_run *active = promotion->active;
    struct heddle *store = active->app->store;

    promotion->fault = (struct heddle_error){0};
    promotion->err = active->rec.is_off_head ? hd_off_head_keep(active->app, &active->rec,
                                                                active->root, &promotion->fault)
                                             : 0;
    if (!promotion->err)
        promotion->err = read_thread(store, active, &promotion->fault);
    if (!promotion->err && active->rec.status == HD_RUN_STATE_PENDING)
        promotion->err = hd_run_mark_running(store, &active->rec, &promotion->fault);
    return promotion->err;
}

static void begin_run(struct hd_active_run *active)
{
    active->is_started = true;
    hd_run_log("run started", &active->rec, HD_RUN_STATE_RUNNING);
    hd_run_execute(active);
}

static void on_promoted(void *arg)
{
    struct promotion *promotion = arg;
    struct hd_active_run *active = promotion->active;

    if (active->app->queue->is_draining && active->stop == HD_STOP_NONE) {
        active->stop = HD_STOP_DRAIN; /* the next process starts it */
        hd_run_complete(active);
    } else if (promotion->err == HD_ENOTFOUND || active->stop != HD_STOP_NONE) {
        active->outcome.status = HD_RUN_STATE_INTERRUPTED;
        hd_run_complete(active);
    } else if (promotion->err) {
        hd_log(HD_LOG_ERROR, "run", "cannot start a run: %s", promotion->fault.text);
        hd_run_execute_fail(active, "RuntimeError", "the database did not respond");
    } else {
        begin_run(active);
    }
    hd_free(promotion);
}

static void start_queued_run(struct hd_line_queue *line, struct hd_active_run *active)
{
    struct hd_queue *queue = active->app->queue;
    struct promotion *promotion;

    move_to_front(line, active);
    line->is_busy = true;
    queue->pending--;
    queue->running++;
    if (active->rec.status == HD_RUN_STATE_RUNNING && active->rec.attempt == 1) {
        begin_run(active);
        return;
    }
    hd_run_execute_open_log(active);
    promotion = hd_calloc(1, sizeof(*promotion));
    if (promotion)
        promotion->active = active;
    if (!promotion || hd_defer_patiently(queue->app->defer, promote, on_promoted, promotion)) {
        hd_free(promotion);
        hd_run_execute_fail(active, "MemoryError", "out of memory");
    }
}

static void enqueue_ready(struct hd_line_queue *line)
{
    struct hd_queue *queue = line->thread_queue->queue;

    if (line->is_ready)
        return;
    line->is_ready = true;
    line->next_ready = NULL;
    *queue->ready_tail = line;
    queue->ready_tail = &line->next_ready;
}

static struct hd_line_queue *dequeue_ready(struct hd_queue *queue)
{
    struct hd_line_queue *line = queue->ready;

    if (!line)
        return NULL;
    queue->ready = line->next_ready;
    if (!queue->ready)
        queue->ready_tail = &queue->ready;
    line->is_ready = false;
    return line;
}

/* Queues the line for a free slot, or sets the timer to the time of its next due run. */
static void line_up(struct hd_line_queue *line)
{
    int64_t next;

    if (line->is_busy || hd_queue_lines_are_visited(line))
        return;
    if (find_due(line, &next))
        enqueue_ready(line);
    else if (next != INT64_MAX)
        set_timer(line->thread_queue->queue, next - hd_clock_now_us());
}

static bool may_start(const struct hd_queue *queue)
{
    return !queue->is_draining && !queue->is_paused && !queue->is_suspended;
}

/* Starts due runs while slots are free. */
static void queue_resume(struct hd_queue *queue)
{
    size_t limit = (size_t)queue->app->config->max_runs;

    while (may_start(queue) && queue->running < limit && queue->ready) {
        struct hd_line_queue *line = dequeue_ready(queue);
        struct hd_active_run *active;
        int64_t next;

        if (!line->first) {
            hd_queue_lines_drop(line);
            continue;
        }
        active = line->is_busy || hd_queue_lines_are_visited(line) ? NULL : find_due(line, &next);
        if (active)
            start_queued_run(line, active);
        else
            line_up(line);
    }
}

/* ---- time ------------------------------------------------------------- */

static void set_timer(struct hd_queue *queue, int64_t wait_us)
{
    uint64_t wait = wait_us <= 0 ? 1 : (uint64_t)wait_us / 1000 + 1;

    if (wait > TICK_MS)
        wait = TICK_MS;
    if (!uv_is_active((uv_handle_t *)&queue->timer) || uv_timer_get_due_in(&queue->timer) > wait)
        uv_timer_start(&queue->timer, on_queue_tick, wait, 0);
}

void hd_queue_later(struct hd_active_run *active)
{
    struct hd_queue *queue = active->app->queue;
    int64_t wait = RETRY_US;

    for (int i = 1; i < active->tries && wait < MAX_RETRY_US; i++)
        wait *= 2;
    if (queue->is_draining)
        wait = 0;
    active->later_at = hd_clock_monotonic_us() + wait;
    active->next_later = queue->later;
    queue->later = active;
    set_timer(queue, wait);
}

/* Retries to store the ends of runs. During a drain, leaves them to the next process. */
static void go_through_later(struct hd_queue *queue, int64_t mono, int64_t *next)
{
    struct hd_active_run *list = queue->later;

    queue->later = NULL;
    while (list) {
        struct hd_active_run *active = list;

        list = active->next_later;
        if (queue->is_draining) {
            hd_queue_ended(active);
        } else if (active->later_at <= mono) {
            hd_run_complete_again(active);
        } else {
            active->next_later = queue->later;
            queue->later = active;
            if (active->later_at - mono < *next)
                *next = active->later_at - mono;
        }
    }
}

void hd_queue_wake(struct hd_queue *queue)
{
    set_timer(queue, 0);
}

static bool is_quiet(const struct hd_queue *queue)
{
    return queue->running == 0 && queue->storing == 0 && !queue->later;
}

/* Stops a run that exceeds its timeout. */
static void check_line(struct hd_line_queue *line, int64_t mono)
{
    struct hd_active_run *active = line->first;

    if (!active)
        return;
    if (line->is_busy && active->runner && mono > active->deadline &&
        !active->app->queue->is_suspended)
        hd_run_execute_stop(active, HD_STOP_TIMEOUT);
    line_up(line);
}

/* Stops runs that exceed their timeout, starts due runs, and restarts the timer if needed. */
static void on_queue_tick(uv_timer_t *timer)
{
    struct hd_queue *queue = timer->data;
    int64_t mono = hd_clock_monotonic_us();
    int64_t next = queue->running > 0 ? (int64_t)TICK_MS * 1000 : INT64_MAX;
    struct hd_slice key;
    size_t pos = 0;
    void *value;

    go_through_later(queue, mono, &next);
    if (queue->is_draining && queue->drained && is_quiet(queue)) {
        queue->drained(queue->drained_ctx); /* this may have freed the queue */
        return;
    }
    while (hd_map_next(&queue->thread_queues, &pos, &key, &value)) {
        struct hd_thread_queue *thread_queue = value;

        for (struct hd_line_queue *line = thread_queue->first; line; line = line->next)
            check_line(line, mono);
    }
    queue_resume(queue);
    if (next != INT64_MAX)
        set_timer(queue, next);
}

/* ---- add and remove --------------------------------------------------- */

static int make_active_run(const struct hd_run_rec *run, struct hd_active_run **out)
{
    struct hd_active_run *active = hd_calloc(1, sizeof(*active));
    int err;

    if (!active)
        return HD_ENOMEM;
    hd_arena_init(&active->arena, MAX_ACTIVE_RUN);
    hd_buf_init(&active->values, HD_EVENT_LIMIT);
    hd_buf_init(&active->interrupts, HD_EVENT_LIMIT);
    hd_buf_init(&active->error, HD_EVENT_LIMIT);
    hd_buf_init(&active->receipt, HD_EVENT_LIMIT);
    err = hd_run_rec_copy(&active->arena, run, &active->rec);
    if (!err)
        err = hd_run_line(&active->rec, &active->arena, &active->root, NULL);
    if (err)
        free_active_run(active);
    else
        *out = active;
    return err;
}

/* `is_continued`: an earlier process has stored checkpoints of the run. */
static int queue_add(struct hd_queue *queue, const struct hd_run_rec *run, int64_t event_seq,
                     bool is_streamed, bool is_continued)
{
    struct hd_pending_admission *admission =
        hd_pending_admission_take(&queue->admissions, run->principal, run->run_id);
    struct hd_active_run *active = NULL;
    struct hd_slice line = {NULL, 0};
    int err = make_active_run(run, &active);

    if (!err)
        err = hd_queue_lines_name(queue, run, active->root, &active->arena, &line);
    if (!err)
        active->line = hd_queue_lines_get(queue, run->principal, run->thread_id, line);
    if (err || !active->line) {
        hd_limits_give(queue->app->limits, run->actor, HD_LIMIT_RUNS);
        if (active)
            free_active_run(active);
        refuse_admission(admission);
        return err ? err : HD_ENOMEM;
    }
    active->app = queue->app;
    active->event_seq = event_seq;
    active->is_streamed = is_streamed;
    active->is_continued = is_continued;
    if (run->status == HD_RUN_STATE_RUNNING) /* the thread's record is not read again */
        hd_run_execute_open_log(active);
    queue->pending++;
    hd_run_log("run admitted", &active->rec, active->rec.status);
    insert(active->line, active);
    line_up(active->line);
    queue_resume(queue);
    set_timer(queue, 0); /* it also checks timeouts */
    meet(active, admission);
    return 0;
}

int hd_queue_add(struct hd_queue *queue, const struct hd_run_rec *run, int64_t event_seq,
                 bool is_streamed)
{
    return queue_add(queue, run, event_seq, is_streamed, false);
}

void hd_queue_ended(struct hd_active_run *active)
{
    struct hd_line_queue *line = active->line;
    struct hd_queue *queue = active->app->queue;
    struct hd_active_run **link = &line->first;
    bool was_first = line->first == active && line->is_busy;

    while (*link != active)
        link = &(*link)->next;
    *link = active->next;
    if (was_first) {
        line->is_busy = false;
        queue->running--;
    } else {
        queue->pending--;
    }
    queue->ended++;
    queue->failed += active->outcome.status == HD_RUN_STATE_ERROR;
    hd_limits_give(queue->app->limits, active->rec.actor, HD_LIMIT_RUNS);
    free_active_run(active);
    /* Delegates come before queued runs: a running run waits for them. */
    line->visitors++;
    hd_delegation_resume(queue->app->delegation);
    line->visitors--;
    line_up(line);
    hd_queue_lines_drop(line);
    queue_resume(queue);
    if (queue->is_draining)
        set_timer(queue, 0);
}

/* ---- delegates on a line ---------------------------------------------- */

struct hd_active_run *hd_queue_line_run(struct hd_queue *queue, struct hd_slice principal,
                                        struct hd_slice thread, struct hd_slice ns)
{
    struct hd_thread_queue *of = hd_queue_lines_thread(queue, principal, thread);
    struct hd_line_queue *line = NULL;

    if (!hd_queue_lines_are_parallel(queue))
        return NULL;
    line = hd_queue_lines_find(of, ns);
    if (!line || !line->is_busy)
        line = hd_queue_lines_busy_branch(of, ns);
    return line ? line->first : NULL;
}

int hd_queue_line_enter(struct hd_queue *queue, struct hd_slice principal, struct hd_slice thread,
                        struct hd_slice ns)
{
    struct hd_line_queue *line;

    if (!hd_queue_lines_are_parallel(queue))
        return 0;
    line = hd_queue_lines_get(queue, principal, thread, ns);
    if (!line)
        return HD_ENOMEM;
    line->visitors++;
    return 0;
}

void hd_queue_line_leave(struct hd_queue *queue, struct hd_slice principal, struct hd_slice thread,
                         struct hd_slice ns)
{
    struct hd_line_queue *line =
        hd_queue_lines_are_parallel(queue)
            ? hd_queue_lines_find(hd_queue_lines_thread(queue, principal, thread), ns)
            : NULL;

    if (!line)
        return;
    line->visitors--;
    for (struct hd_line_queue *other = line->thread_queue->first; other; other = other->next)
        line_up(other);
    hd_queue_lines_drop(line);
    queue_resume(queue);
}

/* ---- waiting and stopping --------------------------------------------- */

bool hd_queue_wait(struct hd_queue *queue, struct hd_slice principal, struct hd_slice thread,
                   struct hd_slice run_id, struct hd_waiter *waiter)
{
    struct hd_active_run *active = hd_queue_lines_run(queue, principal, thread, run_id);
    struct hd_pending_admission *admission =
        active ? NULL : hd_pending_admission_find(&queue->admissions, principal, run_id);
    struct hd_waiter **list = active ? &active->waiters : admission ? &admission->waiters : NULL;

    if (!list)
        return false;
    waiter->next = *list;
    waiter->link = list;
    if (waiter->next)
        waiter->next->link = &waiter->next;
    *list = waiter;
    return true;
}

int hd_queue_expect(struct hd_queue *queue, struct hd_slice principal, struct hd_slice run_id)
{
    return hd_pending_admission_add(&queue->admissions, principal, run_id);
}

void hd_queue_expect_order(struct hd_queue *queue, struct hd_slice principal,
                           struct hd_slice run_id, struct hd_slice thread, struct hd_slice ns,
                           int64_t order)
{
    hd_pending_admission_set_order(&queue->admissions, principal, run_id, thread,
                                   hd_queue_lines_are_parallel(queue) ? ns : hd_slice(NULL, 0),
                                   order);
}

void hd_queue_unexpect(struct hd_queue *queue, struct hd_slice principal, struct hd_slice run_id)
{
    hd_pending_admission_leave(&queue->admissions, principal, run_id);
}

/* Iterates over all runs in the queue; hd_run_complete() frees none before it returns. */
struct run_iter {
    struct hd_queue *queue;
    size_t pos;
    struct hd_line_queue *line;
    struct hd_active_run *run; /* the next one */
};

static struct hd_active_run *next_run(struct run_iter *it)
{
    struct hd_active_run *found;

    while (!it->run) {
        struct hd_slice key;
        void *value;

        if (it->line && it->line->next) {
            it->line = it->line->next;
        } else if (hd_map_next(&it->queue->thread_queues, &it->pos, &key, &value)) {
            it->line = ((struct hd_thread_queue *)value)->first;
        } else {
            return NULL;
        }
        it->run = it->line ? it->line->first : NULL;
    }
    found = it->run;
    it->run = found->next;
    return found;
}

static bool is_at_work(const struct hd_active_run *active)
{
    return active->line->is_busy && active->line->first == active;
}

static void cancel_run(struct hd_active_run *active, enum hd_cancel action)
{
    enum hd_stop stop = action == HD_CANCEL_ROLLBACK ? HD_STOP_ROLLBACK : HD_STOP_INTERRUPT;
    bool was_stopped = active->stop != HD_STOP_NONE;

    hd_run_execute_stop(active, stop);
    /* A pending run ends here; a running one ends when the engine reports it. */
    if (!was_stopped && !is_at_work(active)) {
        active->outcome.status = HD_RUN_STATE_INTERRUPTED;
        hd_run_complete(active);
    }
}

/* Applies the waiters and the cancel that arrived while the run was being admitted. */
static void meet(struct hd_active_run *active, struct hd_pending_admission *admission)
{
    if (!admission)
        return;
    active->waiters = admission->waiters;
    if (active->waiters)
        active->waiters->link = &active->waiters;
    if (admission->is_cancelled)
        cancel_run(active, admission->action);
    hd_pending_admission_free(admission);
}

/* No memory for the run: fails its waiters now, since it only starts after a restart. */
static void refuse_admission(struct hd_pending_admission *admission)
{
    const struct hd_outcome outcome = {.status = HD_RUN_STATE_ERROR,
                                       .error_type = HD_S("MemoryError"),
                                       .error_text = HD_S("out of memory")};

    while (admission && admission->waiters) {
        struct hd_waiter *waiter = admission->waiters;

        hd_waiter_leave(waiter);
        waiter->fn(waiter->ctx, &outcome);
    }
    hd_pending_admission_free(admission);
}

bool hd_queue_cancel(struct hd_queue *queue, struct hd_slice principal, struct hd_slice thread,
                     struct hd_slice run_id, enum hd_cancel action)
{
    struct hd_active_run *active = hd_queue_lines_run(queue, principal, thread, run_id);
    struct hd_pending_admission *admission =
        active ? NULL : hd_pending_admission_find(&queue->admissions, principal, run_id);

    if (active)
        cancel_run(active, action);
    if (admission) {
        admission->is_cancelled = true;
        admission->action = action;
    }
    return active || admission;
}

static bool is_selected(const struct hd_run_selection *selection,
                        const struct hd_active_run *active)
{
    const struct hd_run_rec *run = &active->rec;

    return (!selection->principal || hd_slice_eq(run->principal, *selection->principal)) &&
           (!selection->actor || hd_slice_eq(run->actor, *selection->actor)) &&
           (!selection->assistant_id || hd_slice_eq(run->assistant_id, *selection->assistant_id)) &&
           (is_at_work(active) ? selection->running : selection->pending);
}

size_t hd_queue_cancel_all(struct hd_queue *queue, const struct hd_run_selection *selection,
                           enum hd_cancel action,
                           void (*fn)(void *ctx, const struct hd_run_rec *run), void *ctx)
{
    struct hd_active_run *active;
    struct run_iter it = {.queue = queue};
    size_t count = 0;

    while ((active = next_run(&it))) {
        if (!is_selected(selection, active))
            continue;
        fn(ctx, &active->rec);
        cancel_run(active, action);
        count++;
    }
    return count;
}

/* True if the record of a first run is marked as running although it waits for a free slot. */
static bool looks_begun(const struct hd_active_run *active)
{
    return active->line->first == active && !active->line->is_busy &&
           active->stop == HD_STOP_NONE && active->rec.status == HD_RUN_STATE_RUNNING;
}

int hd_queue_drain(struct hd_queue *queue, void (*done)(void *ctx), void *ctx)
{
    struct hd_active_run *active;
    struct run_iter it = {.queue = queue};

    queue->is_draining = true;
    while ((active = next_run(&it))) {
        if (is_at_work(active) && active->runner) {
            hd_run_execute_stop(active, HD_STOP_DRAIN);
        } else if (looks_begun(active)) {
            active->stop = HD_STOP_DRAIN;
            hd_run_complete(active);
        }
    }
    if (queue->is_suspended && queue->app->runtime)
        hd_runtime_end_suspended(queue->app->runtime);
    if (is_quiet(queue))
        return HD_READY;
    queue->drained = done;
    queue->drained_ctx = ctx;
    return 0;
}

/* ---- recovery --------------------------------------------------------- */

int hd_queue_continue(struct hd_queue *queue, const struct hd_run_rec *run, int64_t event_seq,
                      bool is_continued)
{
    queue->recovered++;
    hd_limits_hold(queue->app->limits, run->actor, HD_LIMIT_RUNS);
    return queue_add(queue, run, event_seq, false, is_continued);
}

static int on_in_flight(void *arg, const struct hd_run_rec *run, int64_t event_seq,
                        bool is_continued)
{
    return hd_queue_continue(arg, run, event_seq, is_continued);
}

void hd_queue_pause_starts(struct hd_queue *queue)
{
    queue->is_paused = true;
}

void hd_queue_resume_starts(struct hd_queue *queue)
{
    queue->is_paused = false;
    queue_resume(queue);
}

int hd_queue_recover(struct hd_queue *queue, struct heddle_error *fault)
{
    int err;

    hd_queue_pause_starts(queue);
    err = hd_run_recover(queue->app, on_in_flight, queue, fault);
    if (queue->recovered > 0)
        hd_log(HD_LOG_INFO, "run", "%zu unfinished runs continue", queue->recovered);
    hd_queue_resume_starts(queue);
    return err;
}
