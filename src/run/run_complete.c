/*
 * The end of a run: stored first, shown then. On a store thread one batch changes the records of
 * the run and its thread and adds the page with the run's last events. Back on the loop the waiters
 * are called, readers see the last events, and the next run of the thread may begin.
 */
#include <heddle.h>

#include "app/defer.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "config/config.h"
#include "run/active_run.h"
#include "run/run_commit.h"
#include "run/run_log.h"
#include "search/thread_texts.h"
#include "webhook/webhook.h"

#define MAX_TRIM_STRIDE 1024
#define MANY_BYTES ((uint64_t)16 << 20) /* of stored events; with fewer each run trims */
#define PATIENCE 5 /* least attempts to store an end before waiters get an error */

/* ---- telling ---------------------------------------------------------- */

static void add_last(struct hd_ticket *ticket, struct hd_slice name, struct hd_slice data,
                     bool is_last)
{
    const struct hd_news news = {.run_id = ticket->rec.run_id,
                                 .name = name,
                                 .data = data,
                                 .is_stored = ticket->is_resumable,
                                 .is_last = is_last,
                                 .is_held = true};

    if (hd_feed_add(ticket->feed, &news))
        hd_log(HD_LOG_WARN, "run", "out of memory: an event is missing");
}

static void write_end(const struct hd_ticket *ticket, struct hd_buf *out)
{
    const struct hd_outcome *outcome = &ticket->outcome;
    struct hd_jw jw;

    hd_buf_reset(out);
    hd_jw_init(&jw, out);
    hd_jw_object(&jw);
    hd_jw_key(&jw, HD_S("run_id"));
    hd_jw_string(&jw, ticket->rec.run_id);
    hd_jw_key(&jw, HD_S("checkpoint_id"));
    if (outcome->checkpoint_id.len > 0)
        hd_jw_string(&jw, outcome->checkpoint_id);
    else
        hd_jw_null(&jw);
    hd_jw_key(&jw, HD_S("status"));
    hd_jw_string(&jw, hd_slice_cstr(hd_run_state_name(outcome->status)));
    if (outcome->receipt.len > 0) {
        hd_jw_key(&jw, HD_S("receipt"));
        hd_jw_raw(&jw, outcome->receipt);
    }
    hd_jw_object_end(&jw);
    if (hd_jw_finish(&jw))
        hd_buf_reset(out);
}

/* Of a run that never began: those who wait for its events learn that there are none. */
static void find_feed(struct hd_ticket *ticket)
{
    const struct hd_run_rec *run = &ticket->rec;
    struct hd_feeds *feeds = ticket->app->feeds;

    if (ticket->feed || !hd_feed_find(feeds, run->principal, run->thread_id))
        return;
    ticket->feed = hd_feed_get(feeds, run->principal, run->thread_id, (uint64_t)ticket->event_seq);
    if (ticket->feed) {
        hd_feed_hold(ticket->feed);
        hd_feed_guard(ticket->feed, run->thread_created);
    }
}

/* The last events get their numbers now. They are stored with the end, and shown after it. */
static void add_last_events(struct hd_ticket *ticket)
{
    struct hd_buf *scratch = &ticket->app->queue->scratch;
    bool shows_end = ticket->app->config->stream_end_event;

    find_feed(ticket);
    if (!ticket->feed)
        return;
    if (ticket->outcome.error_type.len > 0)
        add_last(ticket, HD_S("error"), hd_buf_slice(&ticket->error), false);
    write_end(ticket, scratch);
    add_last(ticket, shows_end ? HD_S("end") : HD_S(""), hd_buf_slice(scratch), true);
    if (ticket->is_resumable)
        hd_feed_take_page(ticket->feed, &ticket->last_page);
}

static void tell_waiters(struct hd_ticket *ticket, const struct hd_outcome *outcome)
{
    while (ticket->waiters) {
        struct hd_waiter *waiter = ticket->waiters;

        hd_waiter_leave(waiter);
        waiter->fn(waiter->ctx, outcome);
    }
}

/* What the run made, as JSON, when somebody wants it. */
static void render_output(struct hd_ticket *ticket)
{
    bool has_webhook = hd_val_is_string(hd_val_get(ticket->kwargs, HD_S("webhook")));

    ticket->outcome.values = hd_buf_slice(&ticket->values); /* a worker's is text already */
    if (!ticket->output || ticket->values.len > 0 || (!ticket->waiters && !has_webhook))
        return;
    if (hd_val_render(&ticket->values, ticket->output))
        hd_buf_reset(&ticket->values);
    ticket->outcome.values = hd_buf_slice(&ticket->values);
}

/* ---- storing ---------------------------------------------------------- */

struct ending_task {
    struct hd_ticket *ticket;
    struct hd_ending ending;
    struct hd_webhook *webhook; /* NULL: none */
    int err;
    struct hd_fault fault;
};

static void store(void *arg)
{
    struct ending_task *task = arg;

    task->err = hd_ending_store(task->ticket->app, &task->ending, &task->fault);
}

/* The feed of a thread that is gone goes too, when nobody reads it. */
static void drop_feed(struct hd_ticket *ticket)
{
    struct hd_feed *feed = ticket->feed;

    ticket->feed = NULL;
    hd_page_fini(&ticket->last_page, feed);
    hd_feed_release(feed);
    if (!hd_feed_has_readers(feed))
        hd_feed_drop(feed);
}

static void end(struct hd_ticket *ticket, struct hd_webhook *webhook)
{
    hd_run_log("run ended", &ticket->rec, ticket->outcome.status);
    render_output(ticket);
    if (ticket->feed)
        hd_feed_show(ticket->feed, ticket->rec.run_id);
    tell_waiters(ticket, &ticket->outcome);
    hd_webhook_send(webhook);
    if (ticket->is_temporary && ticket->feed)
        drop_feed(ticket);
    hd_queue_ended(ticket);
}

/*
 * A database that is full or away comes back: until then the run has not ended. If it does not come
 * back while this process lives, the next one finds the run in flight.
 */
static void try_later(struct hd_ticket *ticket, int err, const struct hd_fault *fault)
{
    const char *text = fault->code ? fault->text : hd_error_text(err);
    int64_t now = hd_clock_monotonic_us();
    const struct hd_outcome failure = {.status = HD_RUN_STATE_ERROR,
                                       .error_type = HD_S("StoreError"),
                                       .error_text = hd_slice_cstr(text)};

    hd_log(HD_LOG_ERROR, "run", "the end of run %.*s is not stored yet: %s",
           (int)ticket->rec.run_id.len, ticket->rec.run_id.ptr, text);
    if (ticket->unstored_since == 0)
        ticket->unstored_since = now;
    if (++ticket->tries >= PATIENCE &&
        now - ticket->unstored_since >= ticket->app->config->outage_timeout_us)
        tell_waiters(ticket, &failure);
    hd_queue_later(ticket);
}

static void on_stored(void *arg)
{
    struct ending_task *task = arg;
    struct hd_ticket *ticket = task->ticket;

    ticket->app->queue->storing--;
    if (task->err) {
        hd_webhook_cancel(task->webhook);
        try_later(ticket, task->err, &task->fault);
    } else if (ticket->stop == HD_STOP_ROLLBACK && !task->ending.is_rolled_back) {
        hd_webhook_cancel(task->webhook);
        hd_finish_again(ticket); /* no trace of it was wanted, while its end was stored */
    } else {
        ticket->outcome.is_deleted = task->ending.is_rolled_back;
        if (!ticket->is_temporary)
            hd_texts_note(ticket->app->texts, ticket->rec.principal, ticket->rec.thread_id);
        end(ticket, task->webhook);
    }
    hd_free(task);
}

/*
 * To find old pages, all pages of the thread are counted. Threads of many short runs have many
 * pages, so only a run whose events cross a multiple of the stride does it: by then a thread has at
 * most that many events more than the limit.
 */
static bool is_trim_due(const struct hd_ticket *ticket)
{
    const struct hd_config *config = ticket->app->config;
    uint64_t stride = (uint64_t)config->stream_retention_events / 64;

    if (!ticket->is_resumable || !ticket->feed)
        return false;
    if (stride > MAX_TRIM_STRIDE)
        stride = MAX_TRIM_STRIDE;
    if (stride == 0 || (uint64_t)config->stream_retention_bytes < MANY_BYTES ||
        hd_feed_has_large(ticket->feed))
        return true;
    return hd_feed_seq(ticket->feed) / stride != (uint64_t)ticket->event_seq / stride;
}

static struct hd_page_limits limits_of(const struct hd_ticket *ticket)
{
    const struct hd_config *config = ticket->app->config;

    return (struct hd_page_limits){
        .is_due = is_trim_due(ticket),
        .events = config->stream_retention_events,
        .bytes = config->stream_retention_bytes,
        .has_large = ticket->feed && hd_feed_has_large(ticket->feed),
    };
}

static struct hd_ending describe(struct hd_ticket *ticket)
{
    return (struct hd_ending){
        .run = &ticket->rec,
        .status = ticket->outcome.status,
        .ns = ticket->root,
        .graph_id = ticket->graph ? ticket->graph->id : hd_slice(NULL, 0),
        .checkpoint_id = ticket->outcome.checkpoint_id,
        .interrupts = hd_buf_slice(&ticket->interrupts),
        .error = hd_buf_slice(&ticket->error),
        .receipt = ticket->outcome.receipt,
        .has_begun = ticket->is_started,
        .has_next = ticket->has_next,
        .is_rolled_back = ticket->stop == HD_STOP_ROLLBACK,
        .origins = ticket->origins,
        .deletes_thread = ticket->is_temporary,
        .event_seq = ticket->feed ? (int64_t)hd_feed_seq(ticket->feed) : 0,
        .last_page = &ticket->last_page,
        .pages = limits_of(ticket),
    };
}

void hd_finish_again(struct hd_ticket *ticket)
{
    struct ending_task *task = hd_calloc(1, sizeof(*task));

    if (task) {
        render_output(ticket);
        task->ticket = ticket;
        task->ending = describe(ticket);
        task->webhook = hd_run_webhook(ticket);
        task->ending.webhook = hd_webhook_row(task->webhook);
    }
    if (!task || hd_defer_run(ticket->app->defer, store, on_stored, task)) {
        hd_webhook_cancel(task ? task->webhook : NULL);
        hd_free(task);
        hd_queue_later(ticket);
        return;
    }
    ticket->app->queue->storing++;
}

/* ---- suspending ------------------------------------------------------- */

struct suspension {
    struct hd_ticket *ticket;
    int err;
    struct hd_fault fault;
};

static void suspend(void *arg)
{
    struct suspension *suspension = arg;
    struct hd_ticket *ticket = suspension->ticket;

    suspension->err = hd_run_mark_suspended(ticket->app->store, &ticket->rec, &suspension->fault);
}

/* Without the mark, the next process takes the stop for a crash and begins the run all the same. */
static void on_suspended(void *arg)
{
    struct suspension *suspension = arg;
    struct hd_ticket *ticket = suspension->ticket;

    ticket->app->queue->storing--;
    if (suspension->err && suspension->err != HD_ENOTFOUND)
        hd_log(HD_LOG_WARN, "run", "run %.*s could not be suspended: %s",
               (int)ticket->rec.run_id.len, ticket->rec.run_id.ptr, suspension->fault.text);
    hd_free(suspension);
    hd_queue_ended(ticket);
}

/* The process ends. The next one goes on with the run, and must not count this as a crash. */
static void leave_to_next(struct hd_ticket *ticket)
{
    bool has_begun = ticket->rec.status == HD_RUN_STATE_RUNNING;
    struct suspension *suspension = has_begun ? hd_calloc(1, sizeof(*suspension)) : NULL;

    if (suspension)
        suspension->ticket = ticket;
    if (!suspension || hd_defer_run(ticket->app->defer, suspend, on_suspended, suspension)) {
        hd_free(suspension);
        hd_queue_later(ticket);
        return;
    }
    ticket->app->queue->storing++;
}

/* Never frees the ticket before it returns: callers go through lists of them. */
void hd_finish(struct hd_ticket *ticket)
{
    struct hd_fault fault = {0};

    if (ticket->stop == HD_STOP_DRAIN) {
        leave_to_next(ticket);
        return;
    }
    if (!ticket->kwargs && hd_work_prepare(ticket, &fault))
        hd_log(HD_LOG_WARN, "run", "a run that never began: %s", fault.text);
    if (ticket->stop != HD_STOP_NONE && !ticket->is_started)
        hd_work_receipt(ticket, NULL);
    add_last_events(ticket);
    hd_finish_again(ticket);
}
