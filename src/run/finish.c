/*
 * The end of a run: stored first, told then. On a store thread the run's record and its
 * thread's are changed together; back on the loop those who wait are told, and
 * the next run of the thread may begin.
 */
#include <heddle.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "run/config.h"
#include "run/defer.h"
#include "run/ending.h"
#include "run/ticket.h"

#define MAX_PAGES 256 /* of stored events of one thread */

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
    hd_jw_object_end(&jw);
    if (hd_jw_finish(&jw))
        hd_buf_reset(out);
}

/* The last events get their numbers now and are shown when the end is stored. */
static void add_last_events(struct hd_ticket *ticket)
{
    struct hd_buf *scratch = &ticket->app->queue->scratch;
    bool shows_end = ticket->app->config->stream_end_event;

    if (!ticket->feed)
        return;
    if (ticket->outcome.error_type.len > 0)
        add_last(ticket, HD_S("error"), hd_buf_slice(&ticket->error), false);
    write_end(ticket, scratch);
    add_last(ticket, shows_end ? HD_S("end") : HD_S(""), hd_buf_slice(scratch), true);
    hd_feed_flush(ticket->feed);
}

static void tell_waiters(struct hd_ticket *ticket)
{
    while (ticket->waiters) {
        struct hd_waiter *waiter = ticket->waiters;

        hd_waiter_leave(waiter);
        waiter->fn(waiter->ctx, &ticket->outcome);
    }
}

/* What the run made, as JSON, when somebody wants it. */
static void render_output(struct hd_ticket *ticket)
{
    bool has_webhook = hd_val_is_string(hd_val_get(ticket->kwargs, HD_S("webhook")));

    if (!ticket->output || (!ticket->waiters && !has_webhook))
        return;
    if (hd_val_render(&ticket->values, ticket->output))
        hd_buf_reset(&ticket->values);
    ticket->outcome.values = hd_buf_slice(&ticket->values);
}

/* ---- storing ---------------------------------------------------------- */

struct ending_task {
    struct hd_ticket *ticket;
    struct hd_ending ending;
    int err;
    struct hd_fault fault;
};

static void store(void *arg)
{
    struct ending_task *task = arg;

    task->err = hd_ending_store(task->ticket->app, &task->ending, &task->fault);
}

static void end(struct hd_ticket *ticket)
{
    render_output(ticket);
    if (ticket->feed)
        hd_feed_show(ticket->feed);
    tell_waiters(ticket);
    if (ticket->is_temporary && ticket->feed) {
        struct hd_feed *feed = ticket->feed;

        ticket->feed = NULL;
        hd_feed_release(feed);
    }
    hd_queue_ended(ticket);
}

static void on_stored(void *arg)
{
    struct ending_task *task = arg;
    struct hd_ticket *ticket = task->ticket;

    /* What is not stored is found in flight by the next process, which then ends it. */
    if (task->err)
        hd_log(HD_LOG_ERROR, "run", "the end of run %.*s was not stored: %s",
               (int)ticket->rec.run_id.len, ticket->rec.run_id.ptr,
               task->fault.code ? task->fault.text : hd_error_text(task->err));
    ticket->outcome.is_deleted = ticket->stop == HD_STOP_ROLLBACK;
    hd_free(task);
    end(ticket);
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
        .has_begun = ticket->is_started,
        .has_next = ticket->has_next,
        .is_rolled_back = ticket->stop == HD_STOP_ROLLBACK,
        .deletes_thread = ticket->is_temporary,
        .event_seq = ticket->feed ? (int64_t)hd_feed_seq(ticket->feed) : 0,
        .stored_pages = ticket->is_resumable ? MAX_PAGES : 0,
    };
}

void hd_finish(struct hd_ticket *ticket)
{
    struct ending_task *task;

    if (ticket->stop == HD_STOP_DRAIN) {
        hd_queue_ended(ticket);
        return;
    }
    if (ticket->outcome.status == HD_RUN_STATE_TIMEOUT) {
        ticket->outcome.error_type = HD_S("TimeoutError");
        ticket->outcome.error_text = HD_S("the run took longer than it may");
    }
    add_last_events(ticket);
    task = hd_calloc(1, sizeof(*task));
    if (!task) {
        end(ticket);
        return;
    }
    task->ticket = ticket;
    task->ending = describe(ticket);
    if (hd_defer_run(ticket->app->defer, store, on_stored, task)) {
        hd_free(task);
        end(ticket);
    }
}
