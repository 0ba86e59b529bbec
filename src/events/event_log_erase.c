/*
 * Erases the events of runs from a thread's log, when their agent is removed from the thread, and
 * those of a message that is purged from a room. In the store, their pages are deleted, and pages
 * that they share are written again without them. In memory they are hidden: a cursor may be at one
 * of them.
 */
#include <heddle.h>
#include <string.h>

#include "events/event_log_internal.h"
#include "records/record.h"
#include "store/codec/pack.h"
#include "store/rows.h"
#include "store/thread_fence.h"

struct log_erasure {
    struct hd_slice principal, thread;
    const struct hd_map *run_ids;
    struct hd_slice data; /* the beginning of the data of other events to erase; empty: none */
    struct hd_batch_builder batch;
    struct hd_arena scratch; /* for one unpacked page */
};

static bool is_erased(const struct log_erasure *erasure, struct hd_slice run_id)
{
    return hd_map_get(erasure->run_ids, run_id) != NULL;
}

static bool begins_with(struct hd_slice data, struct hd_slice begin)
{
    return begin.len > 0 && hd_slice_starts(data, begin);
}

static int delete_page(struct log_erasure *erasure, const struct hd_cell *cells)
{
    const struct hd_cell key[] = {hd_cell_bytes(erasure->principal), hd_cell_bytes(erasure->thread),
                                  hd_cell_int(cells[HD_EVENT_PAGES_FIRST].number)};

    return hd_batch_delete(&erasure->batch, HD_EVENT_PAGES, key, HD_COUNT(key));
}

/* Copies the events of other runs to `page`; *is_changed: there are others. */
static int keep_others(const struct log_erasure *erasure, struct hd_event_page_reader *reader,
                       struct hd_event_log_page *page, bool *is_changed)
{
    struct hd_event_page_item event;
    int err = 0;

    *is_changed = false;
    while (!err) {
        err = hd_event_page_reader_next(reader, &event);
        if (!err && (is_erased(erasure, event.run_id) || begins_with(event.data, erasure->data)))
            *is_changed = true;
        else if (!err)
            err = hd_event_page_add(page, &event);
    }
    return err == HD_ENOTFOUND ? 0 : err;
}

static int erase_from_page(struct log_erasure *erasure, const struct hd_cell *cells)
{
    struct hd_slice label = cells[HD_EVENT_PAGES_RUN].bytes, plain;
    struct hd_event_log_page page = {.count = 0};
    struct hd_event_page_reader reader;
    bool is_changed;
    int err;

    hd_arena_reset(&erasure->scratch);
    err = hd_unpack_copy(&erasure->scratch, cells[HD_EVENT_PAGES_DATA].bytes, &plain);
    if (err)
        return err;
    hd_buf_init(&page.data, HD_PAGE_LIMIT);
    reader = hd_event_page_reader(label, plain);
    err = keep_others(erasure, &reader, &page, &is_changed);
    if (!err && is_changed)
        err = delete_page(erasure, cells);
    if (!err && is_changed && page.count > 0)
        err = hd_event_log_page_put(&erasure->batch, erasure->principal, erasure->thread, &page);
    hd_buf_fini(&page.data);
    return err;
}

static int on_erased_page(void *arg, size_t which, const struct hd_cell *cells)
{
    struct log_erasure *erasure = arg;
    struct hd_slice label = cells[HD_EVENT_PAGES_RUN].bytes;

    (void)which;
    if (is_erased(erasure, label))
        return delete_page(erasure, cells);
    return hd_event_page_may_have(label, hd_slice(NULL, 0)) ? erase_from_page(erasure, cells) : 0;
}

int hd_event_log_erase(struct heddle *store, const struct hd_thread_rec *thread,
                       const struct hd_map *run_ids, struct hd_slice data,
                       struct heddle_error *fault)
{
    const struct hd_cell prefix[] = {hd_cell_bytes(thread->principal), hd_cell_bytes(thread->id)};
    const struct hd_query query = {.table = HD_EVENT_PAGES,
                                   .index = HD_PRIMARY,
                                   .prefix = prefix,
                                   .prefix_count = HD_COUNT(prefix),
                                   .columns = HD_ALL_COLUMNS};
    struct log_erasure erasure = {
        .principal = thread->principal, .thread = thread->id, .run_ids = run_ids, .data = data};
    const struct hd_guard guard = {.created_at = thread->created_at};
    struct hd_slice lane;
    struct hd_batch view;
    int err;

    hd_batch_init(&erasure.batch);
    hd_arena_init(&erasure.scratch, 2 * HD_PAGE_LIMIT);
    err = hd_thread_lane(&erasure.batch.arena, thread->principal, thread->id, &lane);
    if (!err)
        err = hd_thread_fence_expect(&erasure.batch, lane, &guard);
    if (!err)
        err = hd_rows_scan(store, query, on_erased_page, &erasure, fault);
    view = hd_batch_view(&erasure.batch);
    if (!err)
        err = hd_rows_apply(store, lane, &view, NULL, fault);
    hd_arena_fini(&erasure.scratch);
    hd_batch_fini(&erasure.batch);
    return err == HD_ECONFLICT ? 0 : err; /* the thread was deleted */
}

void hd_event_log_hide(struct hd_event_log *log, struct hd_slice run_id)
{
    for (struct hd_entry *entry = log->head; entry; entry = entry->next) {
        if (hd_slice_eq(hd_slice_cstr(entry->run_id), run_id))
            entry->is_hidden = true;
    }
}

void hd_event_log_hide_data(struct hd_event_log *log, struct hd_slice data)
{
    for (struct hd_entry *entry = log->head; entry; entry = entry->next) {
        if (begins_with(hd_entry_data(entry), data))
            entry->is_hidden = true;
    }
}
