/*
 * Event logs in the store. A page (event_page.h) is packed like chunks. Pages of a thread do not
 * overlap: each has the stored events that were added between two flushes. All writes of a thread
 * are in one lane, which applies them in order and one at a time; only a page that is taken for the
 * end of a run may be stored later than its successors. It has no events of other runs.
 *
 * During an outage of the database, pages wait in their lane
 * (hd_rows_set_outage()) and are stored when it is back. A page that is not stored in time is lost:
 * its events are readable only while they are in the memory of this process. When the process ends,
 * the later pages of its thread are lost too: the stored events are those that readers saw first.
 */
#include <heddle.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "events/event_log_internal.h"
#include "records/record.h"
#include "store/batch.h"
#include "store/codec/pack.h"
#include "store/rows.h"
#include "store/thread_fence.h"

/* ---- write ------------------------------------------------------------ */

static struct hd_event_page_item event_of(const struct hd_entry *entry)
{
    return (struct hd_event_page_item){.seq = entry->seq,
                                       .mode = entry->mode,
                                       .is_last = entry->is_last,
                                       .is_repeat = entry->is_repeat,
                                       .run_id = hd_slice_cstr(entry->run_id),
                                       .name = hd_entry_name(entry),
                                       .data = hd_entry_data(entry)};
}

/* True if all events of the page are of the run. */
static bool is_page_of(const struct hd_event_log_page *page, struct hd_slice run_id)
{
    return !page->is_shared && hd_slice_eq(hd_slice_cstr(page->run_id), run_id);
}

void hd_event_log_page_add(struct hd_event_log *log, const struct hd_entry *entry, bool is_held)
{
    const struct hd_event_page_item event = event_of(entry);
    struct hd_event_log_page *page = &log->page;

    if (is_held && page->count > 0 && !is_page_of(page, event.run_id))
        hd_event_log_flush(log);
    if (hd_event_page_add(page, &event)) {
        hd_log(HD_LOG_WARN, "events", "an event is too large to be stored (%zu bytes)",
               entry->data_len);
        return;
    }
    if (!log->is_dirty) {
        log->is_dirty = true;
        log->next_dirty = log->logs->dirty;
        log->logs->dirty = log;
    }
    /* A held entry is stored with the end of its run: hd_event_log_take_page(). */
    if (page->data.len >= HD_PAGE_BYTES && !is_held)
        hd_event_log_flush(log);
}

void hd_event_log_page_forget(struct hd_event_log *log)
{
    struct hd_event_log **link = &log->logs->dirty;

    hd_event_page_reset(&log->page);
    if (!log->is_dirty)
        return;
    while (*link != log)
        link = &(*link)->next_dirty;
    *link = log->next_dirty;
    log->is_dirty = false;
}

static void on_page_stored(void *arg, int code, const struct heddle_error *error)
{
    (void)arg;
    if (code && code != HD_ECONFLICT) /* HD_ECONFLICT: the thread was deleted */
        hd_log(HD_LOG_ERROR, "events", "a page of events was not stored: %s", error->text);
}

int hd_event_log_page_put(struct hd_batch_builder *batch, struct hd_slice principal,
                          struct hd_slice thread, const struct hd_event_log_page *page)
{
    struct hd_arena *arena = &batch->arena;
    char text[HD_PAGE_LABEL_SIZE];
    struct hd_slice label, data;

    hd_event_page_label(page, text);
    if (hd_arena_copy(arena, hd_slice_cstr(text), &label) ||
        hd_pack(arena, hd_buf_slice(&page->data), &data))
        return HD_ENOMEM;

    const struct hd_cell row[] = {
        [HD_EVENT_PAGES_PRINCIPAL] = hd_cell_bytes(principal),
        [HD_EVENT_PAGES_THREAD] = hd_cell_bytes(thread),
        [HD_EVENT_PAGES_FIRST] = hd_cell_int((int64_t)page->first),
        [HD_EVENT_PAGES_LAST] = hd_cell_int((int64_t)page->last),
        [HD_EVENT_PAGES_RUN] = hd_cell_bytes(label),
        [HD_EVENT_PAGES_CREATED] = hd_cell_int(hd_clock_now_us()),
        [HD_EVENT_PAGES_DATA] = hd_cell_bytes(data),
    };

    return hd_batch_row(batch, HD_OP_PUT, HD_EVENT_PAGES, row);
}

/* Conflicts if the thread was deleted or taken over. */
static int expect_thread(struct hd_batch_builder *batch, const struct hd_event_log *log)
{
    struct hd_slice key;
    int err = hd_arena_copy(&batch->arena, hd_slice(log->key, log->key_len), &key);

    return err ? err : hd_thread_fence_expect(batch, key, &log->guard);
}

void hd_event_log_guard(struct hd_event_log *log, struct hd_guard guard)
{
    if (!hd_guard_eq(log->guard, guard))
        hd_event_log_flush(log);
    log->guard = guard;
}

/* Adds the page as a row; its values are copied to the builder's arena. */
static int add_page_row(struct hd_batch_builder *batch, const struct hd_event_log *log)
{
    struct hd_slice principal, thread;
    struct hd_arena *arena = &batch->arena;

    if (hd_arena_copy(arena, hd_event_log_principal(log), &principal) ||
        hd_arena_copy(arena, hd_event_log_thread(log), &thread))
        return HD_ENOMEM;
    return hd_event_log_page_put(batch, principal, thread, &log->page);
}

static void note_size(struct hd_event_log *log)
{
    log->has_large |= log->page.data.len > 2 * HD_PAGE_BYTES;
}

void hd_event_log_flush(struct hd_event_log *log)
{
    struct hd_batch_builder batch;
    int err;

    if (log->page.count == 0)
        return;
    note_size(log);
    hd_batch_init(&batch);
    err = hd_guard_is_set(log->guard) ? expect_thread(&batch, log) : 0;
    if (!err)
        err = add_page_row(&batch, log);
    if (!err)
        err = hd_rows_apply_async(log->logs->store, hd_slice(log->key, log->key_len), &batch,
                                  on_page_stored, NULL);
    if (err) {
        hd_batch_fini(&batch);
        hd_log(HD_LOG_ERROR, "events", "a page of events was not stored: %s", hd_error_text(err));
    }
    hd_event_log_page_forget(log);
}

void hd_event_log_take_page(struct hd_event_log *log, struct hd_slice run_id,
                            struct hd_event_log_page *out)
{
    *out = (struct hd_event_log_page){0};
    if (log->page.count == 0 || !is_page_of(&log->page, run_id))
        return;
    note_size(log);
    *out = log->page;
    hd_buf_init(&log->page.data, HD_PAGE_LIMIT);
    hd_event_log_page_forget(log);
    out->next_taken = log->taken;
    log->taken = out;
}

void hd_event_log_page_fini(struct hd_event_log_page *page, struct hd_event_log *log)
{
    struct hd_event_log_page **link = &log->taken;

    if (page->count == 0)
        return;
    while (*link != page)
        link = &(*link)->next_taken;
    *link = page->next_taken;
    hd_buf_fini(&page->data);
    *page = (struct hd_event_log_page){0};
}

bool hd_event_log_has_large(const struct hd_event_log *log)
{
    return log->has_large;
}

/* ---- read ------------------------------------------------------------- */

struct log_page_reading {
    struct hd_arena *arena;
    struct hd_arena scratch; /* for one unpacked page */
    struct hd_entry **first; /* the list of the entries that were read */
    struct hd_entry **tail;
    struct hd_slice run; /* skip events before the first one of this run; empty: none to skip */
    uint64_t after;
};

/* Removes the entries that the event replaces. */
static void drop_replaced(struct log_page_reading *reading, const struct hd_event_page_item *event)
{
    struct hd_entry **link = reading->first;

    while (*link) {
        const struct hd_event_page_item before = event_of(*link);

        if (hd_event_page_item_replaces(event, &before))
            *link = (*link)->next;
        else
            link = &(*link)->next;
    }
    reading->tail = link;
}

static int keep_event(struct log_page_reading *reading, const struct hd_event_page_item *event)
{
    struct hd_entry *entry =
        hd_arena_calloc(reading->arena, 1, sizeof(*entry) + event->name.len + event->data.len);

    if (!entry)
        return HD_ENOMEM;
    entry->seq = event->seq;
    entry->mode = event->mode;
    entry->is_last = event->is_last;
    entry->is_repeat = event->is_repeat;
    if (event->run_id.len > 0)
        memcpy(entry->run_id, event->run_id.ptr, event->run_id.len);
    entry->name_len = event->name.len;
    entry->data_len = event->data.len;
    if (event->name.len > 0)
        memcpy(entry->text, event->name.ptr, event->name.len);
    if (event->data.len > 0)
        memcpy(entry->text + event->name.len, event->data.ptr, event->data.len);
    if (event->is_repeat)
        drop_replaced(reading, event);
    *reading->tail = entry;
    reading->tail = &entry->next;
    return 0;
}

/* False: it is before the first event of the run, which sets the number where reading starts. */
static bool is_event_wanted(struct log_page_reading *reading,
                            const struct hd_event_page_item *event)
{
    if (reading->run.len == 0)
        return true;
    if (!hd_slice_eq(event->run_id, reading->run))
        return false;
    reading->run = hd_slice(NULL, 0);
    if (event->seq - 1 > reading->after)
        reading->after = event->seq - 1;
    return true;
}

static int on_event_page(void *arg, size_t which, const struct hd_cell *cells)
{
    struct log_page_reading *reading = arg;
    struct hd_event_page_item event;
    struct hd_event_page_reader r;
    struct hd_slice plain;
    int err;

    (void)which;
    if ((uint64_t)cells[HD_EVENT_PAGES_LAST].number <= reading->after)
        return 0;
    if (reading->run.len > 0 &&
        !hd_event_page_may_have(cells[HD_EVENT_PAGES_RUN].bytes, reading->run))
        return 0;
    hd_arena_reset(&reading->scratch);
    err = hd_unpack_copy(&reading->scratch, cells[HD_EVENT_PAGES_DATA].bytes, &plain);
    if (err)
        return err;
    r = hd_event_page_reader(cells[HD_EVENT_PAGES_RUN].bytes, plain);
    while (!err) {
        err = hd_event_page_reader_next(&r, &event);
        if (!err && is_event_wanted(reading, &event))
            err = keep_event(reading, &event);
    }
    return err == HD_ENOTFOUND ? 0 : err;
}

int hd_event_log_pages_read(struct heddle *store, struct hd_slice principal, struct hd_slice thread,
                            struct hd_slice run, uint64_t *after, struct hd_arena *arena,
                            struct hd_entry **out, struct heddle_error *fault)
{
    const struct hd_cell prefix[] = {hd_cell_bytes(principal), hd_cell_bytes(thread)};
    struct hd_query query = {.table = HD_EVENT_PAGES,
                             .index = HD_PRIMARY,
                             .prefix = prefix,
                             .prefix_count = HD_COUNT(prefix),
                             .columns = HD_ALL_COLUMNS};
    struct log_page_reading reading = {
        .arena = arena, .first = out, .tail = out, .run = run, .after = *after};
    int err;

    *out = NULL;
    hd_arena_init(&reading.scratch, 2 * HD_PAGE_LIMIT);
    err = hd_rows_read(store, &query, 1, on_event_page, &reading, fault);
    hd_arena_fini(&reading.scratch);
    *after = reading.run.len > 0 ? UINT64_MAX : reading.after;
    return err;
}

static bool has_pages_after(const struct hd_event_log *log, uint64_t after)
{
    return log->has_pages && log->pages_after <= after;
}

/* True if the stored entry is held, or in memory with another number. */
static bool is_shown_later(const struct hd_event_log *log, const struct hd_entry *stored)
{
    const struct hd_event_page_item before = event_of(stored);
    const struct hd_entry *entry;

    for (entry = log->held; entry; entry = entry->next) {
        if (entry->seq == stored->seq)
            return true;
    }
    for (const struct hd_event_batch *batch = log->batches; batch; batch = batch->next) {
        if (stored->seq >= batch->first && stored->seq <= batch->last)
            return true;
    }
    for (entry = log->has_repeats && stored->mode == 0 ? log->head : NULL; entry;
         entry = entry->next) {
        const struct hd_event_page_item event = event_of(entry);

        if (hd_event_page_item_replaces(&event, &before))
            return true;
    }
    return false;
}

/* Copies the stored entries that are older than those in memory. */
static int copy_older(const struct hd_event_log *log, const struct hd_entry *stored,
                      struct hd_entry ***tail, size_t *bytes)
{
    uint64_t end = log->head ? log->head->seq + log->head->is_transient : UINT64_MAX;

    for (; stored && stored->seq < end; stored = stored->next) {
        size_t size = sizeof(*stored) + stored->name_len + stored->data_len;
        struct hd_entry *copy;

        if (is_shown_later(log, stored))
            continue;
        copy = hd_malloc(size);
        if (!copy)
            return HD_ENOMEM;
        memcpy(copy, stored, size);
        copy->next = NULL;
        copy->refs = 1;
        copy->is_stored = true;
        **tail = copy;
        *tail = &copy->next;
        *bytes += size;
    }
    return 0;
}

int hd_event_log_prepend(struct hd_event_log *log, const struct hd_entry *stored, uint64_t after)
{
    struct hd_entry *first = NULL;
    struct hd_entry **tail = &first;
    size_t bytes = 0;

    if (has_pages_after(log, after))
        return 0;
    if (copy_older(log, stored, &tail, &bytes)) {
        while (first) {
            struct hd_entry *next = first->next;

            hd_free(first);
            first = next;
        }
        return HD_ENOMEM;
    }
    log->has_pages = true;
    log->pages_after = after;
    if (!first)
        return 0;
    *tail = log->head;
    if (!log->head) {
        log->tail = tail;
        for (const struct hd_entry *entry = first; entry; entry = entry->next) {
            if (entry->seq > log->seq)
                log->seq = entry->seq;
            log->shown = entry->seq;
        }
    }
    log->head = first;
    log->bytes += bytes;
    log->logs->bytes += bytes;
    return 0;
}

uint64_t hd_event_log_forgotten(const struct hd_event_log *log)
{
    return log->forgotten;
}

bool hd_event_log_has_hole(const struct hd_event_log *log, const struct hd_entry *stored,
                           uint64_t after, uint64_t settled)
{
    uint64_t last = after > settled ? after : settled;

    if (has_pages_after(log, after) || last >= log->forgotten)
        return false;
    for (; stored; stored = stored->next)
        last = stored->seq > last ? stored->seq : last;
    return last < log->forgotten;
}

/*
 * A lane applies its writes in order, so this waits for a write of its own: the deletion of page 0,
 * which never exists.
 */
int hd_event_log_pages_settle(struct heddle *store, struct hd_slice principal,
                              struct hd_slice thread, struct heddle_error *fault)
{
    const struct hd_cell key[] = {hd_cell_bytes(principal), hd_cell_bytes(thread), hd_cell_int(0)};
    struct hd_batch_builder batch;
    struct hd_batch view;
    struct hd_slice lane;
    int err;

    hd_batch_init(&batch);
    err = hd_thread_lane(&batch.arena, principal, thread, &lane);
    if (!err)
        err = hd_batch_delete(&batch, HD_EVENT_PAGES, key, HD_COUNT(key));
    view = hd_batch_view(&batch);
    if (!err)
        err = hd_rows_apply(store, lane, &view, NULL, fault);
    hd_batch_fini(&batch);
    return err;
}
