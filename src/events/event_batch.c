#include "events/event_batch.h"

#include <heddle.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "events/event_log_internal.h"
#include "records/record.h"

#define MAX_RETRY_US INT64_C(30000000)
#define LEAD 1000 /* events that runs of the thread may add before the batch is applied */

struct hd_event_batch *hd_event_batch_begin(struct hd_event_logs *logs, struct hd_slice principal,
                                            struct hd_slice thread, int64_t seq, size_t count)
{
    struct hd_event_log *log = hd_event_log_get(logs, principal, thread, (uint64_t)seq);
    struct hd_event_batch *events = log ? hd_calloc(1, sizeof(*events)) : NULL;
    struct hd_event_batch **link;

    if (!events)
        return NULL;
    hd_buf_init(&events->page.data, HD_PAGE_LIMIT);
    events->log = log;
    events->first = hd_event_log_top(log) + LEAD;
    events->held = hd_event_log_held(log);
    events->last = events->first + count - 1;
    for (link = &log->batches; *link; link = &(*link)->next)
        continue;
    *link = events;
    return events;
}

struct hd_event_batch *hd_event_batch_apart(int64_t seq, size_t count)
{
    struct hd_event_batch *events = hd_calloc(1, sizeof(*events));

    if (!events)
        return NULL;
    hd_buf_init(&events->page.data, HD_PAGE_LIMIT);
    events->first = (uint64_t)seq + 1;
    events->last = events->first + count - 1;
    return events;
}

void hd_event_batch_reset(struct hd_event_batch *events)
{
    hd_event_page_reset(&events->page);
}

int hd_event_batch_add(struct hd_event_batch *events, struct hd_slice run_id, uint32_t mode,
                       struct hd_slice name, struct hd_slice data)
{
    const struct hd_event_page_item event = {.seq = events->first + events->page.count,
                                             .mode = mode,
                                             .run_id = run_id,
                                             .name = name,
                                             .data = data};

    return event.seq > events->last ? HD_ELIMIT : hd_event_page_add(&events->page, &event);
}

bool hd_event_batch_fits(const struct hd_event_batch *events, const struct hd_thread_rec *thread)
{
    return thread->event_seq < (int64_t)events->first;
}

bool hd_event_batch_has_time(int64_t *until)
{
    int64_t now = hd_clock_monotonic_us();

    if (*until == 0)
        *until = now + MAX_RETRY_US;
    return now < *until;
}

int hd_event_batch_put(const struct hd_event_batch *events, struct hd_batch_builder *batch,
                       struct hd_thread_rec *thread)
{
    int64_t seq = (int64_t)(events->page.last + events->held);

    if (events->page.count == 0)
        return 0;
    if (seq > thread->event_seq)
        thread->event_seq = seq;
    return hd_event_log_page_put(batch, thread->principal, thread->id, &events->page);
}

static void free_events(struct hd_event_batch *events)
{
    hd_buf_fini(&events->page.data);
    hd_free(events);
}

/* Runs have used the numbers meanwhile: the event gets a new one, and is stored again with it. */
static int show_late(struct hd_event_log *log, const struct hd_event_page_item *event)
{
    const struct hd_event_log_entry added = {.run_id = event->run_id,
                                             .mode = event->mode,
                                             .name = event->name,
                                             .data = event->data,
                                             .is_stored = true};

    return hd_event_log_add(log, &added);
}

static void show_events(struct hd_event_log *log, const struct hd_event_batch *events)
{
    char label[HD_PAGE_LABEL_SIZE];
    struct hd_event_page_reader reader;
    struct hd_event_page_item event;
    int err = 0;

    hd_event_page_label(&events->page, label);
    reader = hd_event_page_reader(hd_slice_cstr(label), hd_buf_slice(&events->page.data));
    while (!err) {
        err = hd_event_page_reader_next(&reader, &event);
        if (!err && event.seq <= log->seq)
            err = show_late(log, &event);
        else if (!err)
            err = hd_event_log_add_stored(log, &event);
    }
    if (err != HD_ENOTFOUND)
        hd_log(HD_LOG_WARN, "events", "out of memory: an event is missing");
    if (events->page.count > 0)
        hd_event_log_covered(log, events->page.last + events->held);
}

/* In the order of the numbers: later events wait for earlier ones. */
void hd_event_batch_end(struct hd_event_batch *events, bool is_stored)
{
    struct hd_event_log *log = events ? events->log : NULL;

    if (!log) { /* the thread was deleted, or has no readers */
        if (events)
            free_events(events);
        return;
    }
    events->is_ended = true;
    if (!is_stored)
        hd_event_batch_reset(events);
    while (log->batches && log->batches->is_ended) {
        struct hd_event_batch *first = log->batches;

        log->batches = first->next;
        show_events(log, first);
        free_events(first);
    }
}
