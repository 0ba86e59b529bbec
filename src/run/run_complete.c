/*
 * The end of a run: it is stored before clients see it. On a store thread, one batch changes the
 * records of the run and its thread and adds the page with the run's last events. Then, on the
 * loop, readers get the last events, waiters are called, and the next run of the thread may start.
 */
#include <heddle.h>

#include "app/defer.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "config/config.h"
#include "events/event_batch.h"
#include "run/active_run.h"
#include "run/cascade/room_cascade_jobs.h"
#include "run/room/room_answer.h"
#include "run/room/room_waiting.h"
#include "run/run_commit.h"
#include "run/run_log.h"
#include "search/thread_texts.h"
#include "webhook/webhook.h"

#define MAX_TRIM_STRIDE 1024
#define MANY_BYTES ((uint64_t)16 << 20) /* below this limit of stored events every run trims */
#define PATIENCE 5 /* minimum attempts to store an end before waiters get an error */

/* ---- last events ------------------------------------------------------ */

static void add_last(struct hd_active_run *active, struct hd_slice name, struct hd_slice data,
                     bool is_last)
{
    const struct hd_event_log_entry entry = {.run_id = active->rec.run_id,
                                             .name = name,
                                             .data = data,
                                             .is_stored = active->is_resumable,
                                             .is_last = is_last,
                                             .is_held = true};

    if (hd_event_log_add(active->log, &entry))
        hd_log(HD_LOG_WARN, "run", "out of memory: an event is missing");
}

static void write_end(const struct hd_active_run *active, struct hd_buf *out)
{
    const struct hd_outcome *outcome = &active->outcome;
    struct hd_jw jw;

    hd_buf_reset(out);
    hd_jw_init(&jw, out);
    hd_jw_object(&jw);
    hd_jw_put_string(&jw, "run_id", active->rec.run_id);
    hd_jw_key(&jw, HD_S("checkpoint_id"));
    if (outcome->checkpoint_id.len > 0)
        hd_jw_string(&jw, outcome->checkpoint_id);
    else
        hd_jw_null(&jw);
    hd_jw_put_string(&jw, "status", hd_slice_cstr(hd_run_state_name(outcome->status)));
    if (outcome->receipt.len > 0)
        hd_jw_put_raw(&jw, "receipt", outcome->receipt);
    hd_jw_object_end(&jw);
    if (hd_jw_finish(&jw))
        hd_buf_reset(out);
}

/* Finds the event log of a run that never started, so that its readers get the last events. */
static void find_log(struct hd_active_run *active)
{
    const struct hd_run_rec *run = &active->rec;
    struct hd_event_logs *logs = active->app->event_logs;

    if (!active->log && hd_event_log_find(logs, run->principal, run->thread_id))
        hd_run_execute_open_log(active);
}

/* Numbers the last events now. They are stored with the end, and visible afterwards. */
static void add_last_events(struct hd_active_run *active)
{
    struct hd_buf *scratch = &active->app->queue->scratch;
    bool shows_end = active->app->config->stream_end_event;

    find_log(active);
    if (!active->log)
        return;
    if (active->outcome.error_type.len > 0)
        add_last(active, HD_S("error"), hd_buf_slice(&active->error), false);
    write_end(active, scratch);
    add_last(active, shows_end ? HD_S("end") : HD_S(""), hd_buf_slice(scratch), true);
    if (active->is_resumable)
        hd_event_log_take_page(active->log, active->rec.run_id, &active->last_page);
}

void hd_waiter_leave(struct hd_waiter *waiter)
{
    if (!waiter->link)
        return;
    *waiter->link = waiter->next;
    if (waiter->next)
        waiter->next->link = waiter->link;
    waiter->link = NULL;
}

static void notify_waiters(struct hd_active_run *active, const struct hd_outcome *outcome)
{
    while (active->waiters) {
        struct hd_waiter *waiter = active->waiters;

        hd_waiter_leave(waiter);
        waiter->fn(waiter->ctx, outcome);
    }
}

/* Renders the output as JSON if a waiter or a webhook needs it. */
static void render_output(struct hd_active_run *active)
{
    bool has_webhook = hd_val_is_string(hd_val_get(active->kwargs, HD_S("webhook")));

    active->outcome.values = hd_buf_slice(&active->values); /* output of a worker is JSON already */
    if (!active->output || active->values.len > 0 || (!active->waiters && !has_webhook))
        return;
    if (hd_val_render(&active->values, active->output))
        hd_buf_reset(&active->values);
    active->outcome.values = hd_buf_slice(&active->values);
}

/* ---- store ------------------------------------------------------------ */

struct outcome_task {
    struct hd_active_run *active;
    struct hd_run_commit outcome;
    struct hd_webhook *webhook; /* NULL: none */
    int64_t room_seq;           /* -1: no events of a room are missing */
    bool has_waits;             /* messages of the room wait for a question */
    int err;
    struct heddle_error fault;
};

static void store_outcome(void *arg)
{
    struct outcome_task *task = arg;

    task->err = hd_run_commit_store(task->active->app, &task->outcome, &task->fault);
}

/* Releases the event log of a deleted thread, and drops it if it has no reader. */
static void drop_log(struct hd_active_run *active)
{
    struct hd_event_log *log = active->log;

    active->log = NULL;
    hd_event_log_page_fini(&active->last_page, log);
    hd_event_log_release(log);
    if (!hd_event_log_has_readers(log, hd_slice(NULL, 0)))
        hd_event_log_drop(log);
}

static void end_active_run(struct hd_active_run *active, struct hd_webhook *webhook,
                           struct hd_event_batch *events)
{
    hd_run_log("run ended", &active->rec, active->outcome.status);
    render_output(active);
    hd_event_batch_end(events, true); /* a stream that ends with the run shows its answer */
    if (active->log)
        hd_event_log_show(active->log, active->rec.run_id);
    notify_waiters(active, &active->outcome);
    hd_room_cascade_jobs_run_ended(active->app->cascades, &active->rec);
    hd_webhook_send(webhook);
    if (active->is_temporary && active->log)
        drop_log(active);
    hd_queue_ended(active);
}

/*
 * The run is in flight until its end is stored: a full or unreachable database is temporary. If
 * this process ends first, the next one finds the run in flight. Waiters get an error after
 * outage_timeout.
 */
static void try_later(struct hd_active_run *active, int err, const struct heddle_error *fault)
{
    const char *text = fault->code ? fault->text : hd_error_text(err);
    int64_t now = hd_clock_monotonic_us();
    const struct hd_outcome failure = {.status = HD_RUN_STATE_ERROR,
                                       .error_type = HD_S("StoreError"),
                                       .error_text = hd_slice_cstr(text)};

    hd_log(HD_LOG_ERROR, "run", "the end of run %.*s is not stored yet: %s",
           (int)active->rec.run_id.len, active->rec.run_id.ptr, text);
    if (active->unstored_since == 0)
        active->unstored_since = now;
    if (++active->tries >= PATIENCE &&
        now - active->unstored_since >= active->app->config->outage_timeout_us)
        notify_waiters(active, &failure);
    hd_queue_later(active);
}

/*
 * Another server has taken over the thread and continues the run: nothing is stored here. Readers
 * reconnect.
 */
static void abandon_run(struct hd_active_run *active)
{
    const struct hd_outcome outcome = {.status = HD_RUN_STATE_ERROR,
                                       .is_taken = true,
                                       .error_type = HD_S("TakenOver"),
                                       .error_text = HD_S("another server continues the run")};

    hd_run_log("run taken over", &active->rec, active->rec.status);
    if (active->log)
        hd_event_log_lose(active->log);
    notify_waiters(active, &outcome);
    hd_queue_ended(active);
}

/* `room_seq`: as in struct outcome_task; otherwise the event_seq behind which events begin. */
static void store_end(struct hd_active_run *active, int64_t room_seq);

/* Nothing was stored, or not what the run needs now. */
static void undo_outcome(struct outcome_task *task)
{
    struct hd_active_run *active = task->active;

    hd_webhook_cancel(task->webhook);
    hd_event_batch_end(task->outcome.events, false);
    if (task->err == HD_EBUSY && task->room_seq >= 0)
        store_end(active, task->room_seq);
    else if (task->err == HD_ETAKEN)
        abandon_run(active);
    else
        try_later(active, task->err, &task->fault);
}

static void on_outcome_stored(void *arg)
{
    struct outcome_task *task = arg;
    struct hd_active_run *active = task->active;

    active->app->queue->storing--;
    if (task->err) {
        undo_outcome(task);
    } else if (active->stop == HD_STOP_ROLLBACK && !task->outcome.is_rolled_back) {
        hd_webhook_cancel(task->webhook);
        hd_event_batch_end(task->outcome.events, true);
        hd_run_complete_again(active); /* a rollback was requested while the end was being stored */
    } else {
        active->outcome.is_deleted = task->outcome.is_rolled_back;
        if (active->log)
            hd_event_log_covered(active->log, (uint64_t)task->outcome.event_seq);
        if (!active->is_temporary)
            hd_thread_indexer_note(active->app->texts, active->rec.principal,
                                   active->rec.thread_id);
        if (task->has_waits)
            hd_room_waiting_check(active->app, active->rec.principal, active->rec.thread_id);
        end_active_run(active, task->webhook, task->outcome.events);
    }
    hd_free(task);
}

/*
 * Trimming scans all pages of the thread, which are many after many short runs. So only a run
 * whose events cross a multiple of the stride trims: the thread then has at most one stride of
 * events above the limit.
 */
static bool is_trim_due(const struct hd_active_run *active)
{
    const struct hd_config *config = active->app->config;
    uint64_t stride = (uint64_t)config->stream_retention_events / 64;

    if (!active->is_resumable || !active->log)
        return false;
    if (stride > MAX_TRIM_STRIDE)
        stride = MAX_TRIM_STRIDE;
    if (stride == 0 || (uint64_t)config->stream_retention_bytes < MANY_BYTES ||
        hd_event_log_has_large(active->log))
        return true;
    return hd_event_log_seq(active->log) / stride != (uint64_t)active->event_seq / stride;
}

static struct hd_page_limits limits_of(const struct hd_active_run *active)
{
    const struct hd_config *config = active->app->config;

    return (struct hd_page_limits){
        .is_due = is_trim_due(active),
        .events = config->stream_retention_events,
        .bytes = config->stream_retention_bytes,
        .has_large = active->log && hd_event_log_has_large(active->log),
    };
}

static struct hd_run_commit describe_outcome(struct hd_active_run *active)
{
    return (struct hd_run_commit){
        .run = &active->rec,
        .status = active->outcome.status,
        .ns = active->root,
        .graph_id = active->graph ? active->graph->id : hd_slice(NULL, 0),
        .checkpoint_id = active->outcome.checkpoint_id,
        .interrupts = hd_buf_slice(&active->interrupts),
        .error = hd_buf_slice(&active->error),
        .receipt = active->outcome.receipt,
        .has_begun = active->is_started,
        .has_next = active->has_next,
        .is_rolled_back = active->stop == HD_STOP_ROLLBACK,
        .origins = active->origins,
        .deletes_thread = active->is_temporary,
        .event_seq = active->log ? (int64_t)hd_event_log_reserve(active->log) : 0,
        .last_page = &active->last_page,
        .pages = limits_of(active),
    };
}

static int begin_room_events(struct outcome_task *task, int64_t seq)
{
    const struct hd_run_rec *run = &task->active->rec;

    if (seq < 0)
        return 0;
    task->outcome.events = hd_event_batch_begin(task->active->app->event_logs, run->principal,
                                                run->thread_id, seq, HD_ROOM_ANSWER_EVENTS);
    return task->outcome.events ? 0 : HD_ENOMEM;
}

static struct outcome_task *make_outcome(struct hd_active_run *active, int64_t room_seq)
{
    struct outcome_task *task = hd_calloc(1, sizeof(*task));

    if (!task)
        return NULL;
    render_output(active);
    task->active = active;
    task->room_seq = -1;
    task->outcome = describe_outcome(active);
    task->outcome.room_seq = &task->room_seq;
    task->outcome.has_waits = &task->has_waits;
    if (begin_room_events(task, room_seq)) {
        hd_free(task);
        return NULL;
    }
    task->webhook = hd_run_webhook(active);
    task->outcome.webhook = hd_webhook_row(task->webhook);
    return task;
}

static void store_end(struct hd_active_run *active, int64_t room_seq)
{
    struct outcome_task *task = make_outcome(active, room_seq);

    if (!task || hd_defer_run(active->app->defer, store_outcome, on_outcome_stored, task)) {
        hd_webhook_cancel(task ? task->webhook : NULL);
        hd_event_batch_end(task ? task->outcome.events : NULL, false);
        hd_free(task);
        hd_queue_later(active);
        return;
    }
    active->app->queue->storing++;
}

void hd_run_complete_again(struct hd_active_run *active)
{
    store_end(active, -1);
}

/* ---- suspend ---------------------------------------------------------- */

struct suspension {
    struct hd_active_run *active;
    int err;
    struct heddle_error fault;
};

static void suspend(void *arg)
{
    struct suspension *suspension = arg;
    struct hd_active_run *active = suspension->active;

    suspension->err = hd_run_mark_suspended(active->app->store, &active->rec, &suspension->fault);
}

/* Without the mark, the next process counts the stop as a crash, and still resumes the run. */
static void on_suspended(void *arg)
{
    struct suspension *suspension = arg;
    struct hd_active_run *active = suspension->active;

    active->app->queue->storing--;
    if (suspension->err && suspension->err != HD_ENOTFOUND && suspension->err != HD_ETAKEN)
        hd_log(HD_LOG_WARN, "run", "run %.*s could not be suspended: %s",
               (int)active->rec.run_id.len, active->rec.run_id.ptr, suspension->fault.text);
    hd_free(suspension);
    hd_queue_ended(active);
}

/* Shutdown: marks the run so that the next process resumes it without counting a crash. */
static void leave_to_next(struct hd_active_run *active)
{
    bool has_begun = active->rec.status == HD_RUN_STATE_RUNNING;
    struct suspension *suspension = has_begun ? hd_calloc(1, sizeof(*suspension)) : NULL;

    if (suspension)
        suspension->active = active;
    if (!suspension || hd_defer_run(active->app->defer, suspend, on_suspended, suspension)) {
        hd_free(suspension);
        hd_queue_later(active);
        return;
    }
    active->app->queue->storing++;
}

/* Never frees the active run before it returns: callers iterate over lists of runs. */
void hd_run_complete(struct hd_active_run *active)
{
    struct heddle_error fault = {0};

    if (active->stop == HD_STOP_DRAIN) {
        leave_to_next(active);
        return;
    }
    if (!active->kwargs && hd_run_execute_prepare(active, &fault))
        hd_log(HD_LOG_WARN, "run", "a run that was never started: %s", fault.text);
    if (active->stop != HD_STOP_NONE && !active->is_started)
        hd_run_execute_receipt(active, NULL);
    add_last_events(active);
    hd_run_complete_again(active);
}
