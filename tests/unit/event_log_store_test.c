/* Event logs on disk: events evicted from memory are read from the store, and none is missing. */
#include "events/event_log.h"

#include "base/map.h"
#include "store/batch.h"
#include "store/rows.h"
#include "tests/unit/app_world.h"

#define RUN "00000000-0000-4000-8000-000000000001"
#define OTHER "00000000-0000-4000-8000-000000000002"
#define THREAD "00000000-0000-4000-8000-00000000000a"
#define FEED_BYTES ((size_t)16 << 10)
#define LARGE ((size_t)100 << 10) /* more than a page, and than the memory limit */
#define SMALL ((size_t)1 << 10)

struct page_sums {
    int64_t last;
    uint64_t events;
    size_t pages;
};

struct world {
    struct app_world *app;
    struct hd_event_logs *event_logs;
    struct hd_event_log *log;
    struct hd_arena arena;
    struct hd_entry *stored;
};

static int setup(void **state)
{
    const struct hd_event_log_limits limits = {
        .log_bytes = FEED_BYTES, .total_bytes = 64 * FEED_BYTES, .idle_us = 1000000};
    struct world *w = calloc(1, sizeof(*w));

    assert_non_null(w);
    w->app = world_open("memory:", NULL);
    hd_arena_init(&w->arena, (size_t)64 << 20);
    assert_err(hd_event_logs_create(&w->app->loop, w->app->app.store, &limits, &w->event_logs), 0);
    w->log = hd_event_log_get(w->event_logs, NOBODY, HD_S(THREAD), 0);
    assert_non_null(w->log);
    hd_event_log_hold(w->log);
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;

    hd_event_log_release(w->log);
    hd_event_logs_destroy(w->event_logs);
    hd_arena_fini(&w->arena);
    world_close(w->app);
    free(w);
    return 0;
}

static void add_of(struct world *w, const char *run, size_t size, bool is_stored)
{
    static char text[LARGE];
    const struct hd_event_log_entry news = {.run_id = hd_slice_cstr(run),
                                            .mode = 1,
                                            .name = HD_S("values"),
                                            .data = hd_slice(text, size),
                                            .is_stored = is_stored};

    assert_err(hd_event_log_add(w->log, &news), 0);
}

static void add(struct world *w, size_t size, bool is_stored)
{
    add_of(w, RUN, size, is_stored);
}

static uint64_t read_behind(struct world *w, const char *run, uint64_t after)
{
    assert_err(hd_event_log_pages_read(w->app->app.store, NOBODY, HD_S(THREAD), hd_slice_cstr(run),
                                       &after, &w->arena, &w->stored, &w->app->fault),
               0);
    return after;
}

static void read_pages(struct world *w)
{
    assert_int_equal(read_behind(w, "", 0), 0);
}

/* As a join that has found a hole; returns the sequence number up to which events are settled. */
static uint64_t settle(struct world *w)
{
    uint64_t forgotten = hd_event_log_forgotten(w->log);

    hd_event_log_flush(w->log);
    assert_err(hd_event_log_pages_settle(w->app->app.store, NOBODY, HD_S(THREAD), &w->app->fault),
               0);
    read_pages(w);
    return forgotten;
}

/* The log has all events from `first` to `last`, in order. */
static void expect_events(struct world *w, uint64_t first, uint64_t last)
{
    struct hd_cursor cursor = {.modes = 1};
    const struct hd_entry *entry;

    hd_cursor_open(&cursor, w->log, first - 1);
    while ((entry = hd_cursor_peek(&cursor))) {
        assert_int_equal(entry->seq, first++);
        hd_cursor_advance(&cursor);
    }
    assert_int_equal(first, last + 1);
    hd_cursor_close(&cursor);
}

static void a_reader_waits_for_a_write_in_flight(void **state)
{
    struct world *w = *state;
    uint64_t settled;

    read_pages(w); /* before the first event */
    for (int i = 0; i < 10; i++)
        add(w, LARGE, true);
    assert_int_equal(hd_event_log_forgotten(w->log), 9);
    assert_true(hd_event_log_has_hole(w->log, w->stored, 0, 0));
    assert_true(hd_event_log_has_hole(w->log, w->stored, 8, 0));
    assert_false(hd_event_log_has_hole(w->log, w->stored, 9, 0));
    settled = settle(w);
    assert_false(hd_event_log_has_hole(w->log, w->stored, 0, 0));
    assert_false(hd_event_log_has_hole(w->log, w->stored, 0, settled));
    assert_err(hd_event_log_prepend(w->log, w->stored, 0), 0);
    expect_events(w, 1, 10);
    expect_events(w, 4, 10);
}

/* An incomplete page is neither in the log's memory nor stored: it is flushed first. */
static void pending_events_are_stored_first(void **state)
{
    struct world *w = *state;

    for (int i = 0; i < 40; i++)
        add(w, SMALL, true);
    read_pages(w);
    assert_null(w->stored);
    assert_true(hd_event_log_has_hole(w->log, w->stored, 0, 0));
    (void)settle(w);
    assert_false(hd_event_log_has_hole(w->log, w->stored, 0, 0));
    assert_err(hd_event_log_prepend(w->log, w->stored, 0), 0);
    expect_events(w, 1, 40);
}

static void more_may_be_forgotten_meanwhile(void **state)
{
    struct world *w = *state;
    uint64_t settled;

    add(w, LARGE, true);
    add(w, LARGE, true);
    settled = settle(w);
    assert_int_equal(settled, 1);
    for (int i = 0; i < 3; i++)
        add(w, LARGE, true);
    assert_true(hd_event_log_has_hole(w->log, w->stored, 0, settled));
    settled = settle(w);
    assert_false(hd_event_log_has_hole(w->log, w->stored, 0, settled));
    assert_err(hd_event_log_prepend(w->log, w->stored, 0), 0);
    expect_events(w, 1, 5);
    /* Prepended events can be evicted again. */
    add(w, LARGE, true);
    assert_true(hd_event_log_has_hole(w->log, NULL, 0, 0));
    (void)settle(w);
    assert_err(hd_event_log_prepend(w->log, w->stored, 0), 0);
    expect_events(w, 1, 6);
}

/* Events that are not being stored are no hole. */
static void events_that_are_never_stored_leave_no_hole(void **state)
{
    struct world *w = *state;

    for (int i = 0; i < 3; i++)
        add(w, LARGE, false);
    assert_int_equal(hd_event_log_forgotten(w->log), 0);
    assert_false(hd_event_log_has_hole(w->log, NULL, 0, 0));
    add(w, LARGE, true);
    add(w, LARGE, true);
    assert_true(hd_event_log_has_hole(w->log, NULL, 0, 0));
    /* A page could not be stored: more waiting would not help. */
    assert_false(hd_event_log_has_hole(w->log, NULL, 0, hd_event_log_forgotten(w->log)));
}

static size_t count_stored(const struct world *w)
{
    size_t count = 0;

    for (const struct hd_entry *entry = w->stored; entry; entry = entry->next)
        count++;
    return count;
}

/* A reader that resumes near the end reads only the last pages. */
static void only_requested_events_are_read(void **state)
{
    struct world *w = *state;
    uint64_t after;

    for (int i = 0; i < 6; i++)
        add_of(w, RUN, LARGE, true);
    for (int i = 0; i < 4; i++)
        add_of(w, OTHER, LARGE, true);
    (void)settle(w);
    assert_int_equal(count_stored(w), 10);
    assert_int_equal(read_behind(w, "", 7), 7);
    assert_int_equal(count_stored(w), 3);
    assert_int_equal(read_behind(w, RUN, 4), 4);
    assert_int_equal(count_stored(w), 6);
    assert_int_equal(read_behind(w, THREAD, 0), UINT64_MAX);
    assert_int_equal(count_stored(w), 0);
    assert_err(hd_event_log_prepend(w->log, w->stored, UINT64_MAX), 0);
    /* First the second run only, then more events, then all. */
    after = read_behind(w, OTHER, 0);
    assert_int_equal(after, 6);
    assert_int_equal(count_stored(w), 4);
    assert_err(hd_event_log_prepend(w->log, w->stored, after), 0);
    expect_events(w, 7, 10);
    after = read_behind(w, "", 3);
    assert_err(hd_event_log_prepend(w->log, w->stored, after), 0);
    expect_events(w, 4, 10);
    read_pages(w);
    assert_err(hd_event_log_prepend(w->log, w->stored, 0), 0);
    expect_events(w, 1, 10);
}

static void add_held(struct world *w, const char *run)
{
    const struct hd_event_log_entry news = {.run_id = hd_slice_cstr(run),
                                            .name = HD_S("end"),
                                            .data = HD_S("{}"),
                                            .is_stored = true,
                                            .is_last = true,
                                            .is_held = true};

    assert_err(hd_event_log_add(w->log, &news), 0);
}

/* The log would evict the first event, but it is being stored together with the end of the run. */
static void a_page_that_is_taken_stays_in_memory(void **state)
{
    struct world *w = *state;
    struct hd_event_log_page page;

    add(w, SMALL, true);
    add_held(w, RUN);
    hd_event_log_take_page(w->log, HD_S(RUN), &page);
    assert_int_equal(page.first, 1);
    assert_int_equal(page.last, 2);
    settle(w);
    assert_null(w->stored);
    hd_event_log_show(w->log, HD_S(RUN));
    add_of(w, OTHER, LARGE, true);
    assert_int_equal(hd_event_log_forgotten(w->log), 0);
    expect_events(w, 1, 3);
    hd_event_log_page_fini(&page, w->log);
    add_of(w, OTHER, SMALL, true);
    assert_int_equal(hd_event_log_forgotten(w->log), 3);
}

/* ---- several runs ----------------------------------------------------- */

/* Stores a page as the batch that ends a run does. */
static void store_page(struct world *w, const struct hd_event_log_page *page)
{
    struct hd_batch_builder batch;
    struct hd_batch view;
    struct hd_slice lane;

    hd_batch_init(&batch);
    assert_err(hd_thread_lane(&batch.arena, NOBODY, HD_S(THREAD), &lane), 0);
    assert_err(hd_event_log_page_put(&batch, NOBODY, HD_S(THREAD), page), 0);
    view = hd_batch_view(&batch);
    assert_err(hd_rows_apply(w->app->app.store, lane, &view, NULL, &w->app->fault), 0);
    hd_batch_fini(&batch);
}

/* The numbers of the events after `after` for readers of the run; "": of the thread. */
static void expect_numbers(struct world *w, const char *run, uint64_t after, const char *expected)
{
    struct hd_cursor cursor = {.modes = 1};
    const struct hd_entry *entry;
    char text[256] = "";
    size_t len = 0;

    memcpy(cursor.run_id, run, strlen(run));
    hd_cursor_open(&cursor, w->log, after);
    while ((entry = hd_cursor_peek(&cursor))) {
        len += (size_t)snprintf(text + len, sizeof(text) - len, "%llu%s ",
                                (unsigned long long)entry->seq, entry->is_last ? "e" : "");
        hd_cursor_advance(&cursor);
    }
    hd_cursor_close(&cursor);
    assert_string_equal(text, expected);
}

/* Forgets the log and reads it again, as a new process does. */
static void reopen(struct world *w)
{
    uint64_t seq = hd_event_log_seq(w->log);

    settle(w);
    hd_event_log_release(w->log);
    hd_event_log_drop(w->log);
    w->log = hd_event_log_get(w->event_logs, NOBODY, HD_S(THREAD), seq);
    assert_non_null(w->log);
    hd_event_log_hold(w->log);
    assert_err(hd_event_log_prepend(w->log, w->stored, 0), 0);
}

static int on_page_row(void *arg, size_t which, const struct hd_cell *cells)
{
    struct page_sums *sums = arg;

    (void)which;
    assert_true(cells[HD_EVENT_PAGES_FIRST].number > sums->last);
    sums->last = cells[HD_EVENT_PAGES_LAST].number;
    sums->events +=
        hd_event_page_count(cells[HD_EVENT_PAGES_RUN].bytes, cells[HD_EVENT_PAGES_FIRST].number,
                            cells[HD_EVENT_PAGES_LAST].number);
    sums->pages++;
    return 0;
}

/* The stored pages do not overlap; counts them and their events. */
static struct page_sums sum_pages(struct world *w)
{
    const struct hd_cell prefix[] = {hd_cell_bytes(NOBODY), hd_cell_bytes(HD_S(THREAD))};
    const struct hd_query query = {.table = HD_EVENT_PAGES,
                                   .index = HD_PRIMARY,
                                   .prefix = prefix,
                                   .prefix_count = HD_COUNT(prefix),
                                   .columns = HD_ALL_COLUMNS};
    struct page_sums sums = {0};

    assert_err(hd_rows_read(w->app->app.store, &query, 1, on_page_row, &sums, &w->app->fault), 0);
    return sums;
}

static void two_runs_share_pages(void **state)
{
    struct world *w = *state;

    for (int i = 0; i < 3; i++) {
        add_of(w, RUN, 10, true);
        add_of(w, OTHER, 10, true);
    }
    add_of(w, OTHER, 10, false); /* leaves out a number */
    add_of(w, RUN, 10, true);
    expect_numbers(w, RUN, 0, "1 3 5 8 ");
    expect_numbers(w, OTHER, 2, "4 6 7 ");
    reopen(w);
    assert_int_equal(sum_pages(w).pages, 1);
    assert_int_equal(sum_pages(w).events, 7);
    expect_numbers(w, "", 0, "1 2 3 4 5 6 8 ");
    expect_numbers(w, RUN, 3, "5 8 ");
    expect_numbers(w, OTHER, 0, "2 4 6 ");
    assert_int_equal(read_behind(w, OTHER, 0), 1);
    assert_int_equal(count_stored(w), 6);
    assert_int_equal(read_behind(w, THREAD, 0), UINT64_MAX);
}

/* A reader sees the other run's events at once, then the end with a higher number. */
static void a_held_end_delays_no_other_run(void **state)
{
    struct world *w = *state;
    struct hd_event_log_page page;

    add_of(w, RUN, 10, true);
    add_of(w, OTHER, 10, true);
    add_held(w, RUN);
    hd_event_log_take_page(w->log, HD_S(RUN), &page);
    add_of(w, OTHER, 10, true);
    expect_numbers(w, "", 0, "1 2 4 ");
    expect_numbers(w, OTHER, 0, "2 4 ");
    store_page(w, &page);
    /* A join that finds the stored end does not show it before its time. */
    read_pages(w);
    assert_err(hd_event_log_prepend(w->log, w->stored, 0), 0);
    expect_numbers(w, "", 0, "1 2 4 ");
    hd_event_log_page_fini(&page, w->log);
    hd_event_log_show(w->log, HD_S(RUN));
    expect_numbers(w, "", 0, "1 2 4 5e ");
    expect_numbers(w, RUN, 0, "1 5e ");
    reopen(w);
    expect_numbers(w, "", 0, "1 2 4 5e ");
    expect_numbers(w, "", 4, "5e ");
    assert_int_equal(sum_pages(w).last, 5);
}

/* The stored end has the number 3, its repetition is only in memory. */
static void a_repeated_end_is_read_once(void **state)
{
    struct world *w = *state;
    struct hd_event_log_page page;

    add_of(w, RUN, 10, true);
    add_of(w, OTHER, 10, true);
    add_held(w, RUN);
    hd_event_log_take_page(w->log, HD_S(RUN), &page);
    add_of(w, OTHER, LARGE, true);
    store_page(w, &page);
    hd_event_log_page_fini(&page, w->log);
    hd_event_log_show(w->log, HD_S(RUN)); /* forgets all others */
    expect_numbers(w, "", 0, "5e ");
    assert_err(hd_event_log_pages_settle(w->app->app.store, NOBODY, HD_S(THREAD), &w->app->fault),
               0);
    read_pages(w);
    assert_int_equal(count_stored(w), 4);
    assert_err(hd_event_log_prepend(w->log, w->stored, 0), 0);
    expect_numbers(w, "", 0, "1 2 4 5e ");
}

/* The end has released the thread, so the token of the log's guard does not hold any more. */
static void a_repeated_end_is_stored_at_once(void **state)
{
    struct world *w = *state;
    struct hd_event_log_page page;

    add_of(w, RUN, 10, true);
    add_held(w, RUN);
    hd_event_log_take_page(w->log, HD_S(RUN), &page);
    add_of(w, OTHER, 10, true);
    store_page(w, &page);
    hd_event_log_guard(w->log, (struct hd_guard){.token = 7});
    hd_event_log_show(w->log, HD_S(RUN));
    hd_event_log_page_fini(&page, w->log);
    expect_numbers(w, "", 0, "1 3 4e ");
    reopen(w);
    expect_numbers(w, "", 0, "1 3 4e ");
    expect_numbers(w, "", 3, "4e ");
}

/* The second end is stored first. */
static void two_ends_in_flight_store_separate_pages(void **state)
{
    struct world *w = *state;
    struct hd_event_log_page first, second;

    add_of(w, RUN, 10, true);
    add_of(w, OTHER, 10, true);
    add_held(w, RUN);
    hd_event_log_take_page(w->log, HD_S(RUN), &first);
    add_of(w, OTHER, 10, true);
    add_held(w, OTHER);
    hd_event_log_take_page(w->log, HD_S(OTHER), &second);
    assert_int_equal(first.first, 3);
    assert_int_equal(first.last, 3);
    assert_int_equal(second.first, 4);
    assert_int_equal(second.last, 5);
    store_page(w, &second);
    hd_event_log_show(w->log, HD_S(OTHER));
    hd_event_log_page_fini(&second, w->log);
    expect_numbers(w, "", 0, "1 2 4 5e ");
    store_page(w, &first);
    hd_event_log_show(w->log, HD_S(RUN));
    hd_event_log_page_fini(&first, w->log);
    expect_numbers(w, "", 0, "1 2 4 5e 6e ");
    reopen(w);
    expect_numbers(w, "", 0, "1 2 4 5e 6e ");
    expect_numbers(w, OTHER, 0, "2 4 5e ");
    assert_int_equal(sum_pages(w).events, 6);
}

/* Ends that become visible in the order of their numbers keep them. */
static void ends_in_order_keep_their_numbers(void **state)
{
    struct world *w = *state;
    struct hd_event_log_page first, second;

    add_held(w, RUN);
    hd_event_log_take_page(w->log, HD_S(RUN), &first);
    add_held(w, OTHER);
    hd_event_log_take_page(w->log, HD_S(OTHER), &second);
    hd_event_log_show(w->log, HD_S(RUN));
    hd_event_log_show(w->log, HD_S(OTHER));
    expect_numbers(w, "", 0, "1e 2e ");
    hd_event_log_page_fini(&first, w->log);
    hd_event_log_page_fini(&second, w->log);
}

/* A page that is stored much later keeps only its own events in memory, not those before. */
static void a_taken_page_is_unpinned_alone(void **state)
{
    struct world *w = *state;
    struct hd_event_log_page first, second;

    add_held(w, RUN);
    hd_event_log_take_page(w->log, HD_S(RUN), &first);
    add_of(w, OTHER, SMALL, true);
    add_held(w, OTHER);
    hd_event_log_take_page(w->log, HD_S(OTHER), &second);
    hd_event_log_page_fini(&second, w->log);
    add(w, LARGE, true);
    assert_int_equal(hd_event_log_forgotten(w->log), 0);
    hd_event_log_page_fini(&first, w->log);
    add(w, SMALL, true);
    assert_int_equal(hd_event_log_forgotten(w->log), 4);
}

/* A run that starts behind a gap leaves the events of the running one as they are. */
static void a_gap_beside_another_run_loses_nothing(void **state)
{
    struct world *w = *state;
    uint64_t gap = hd_event_log_gap(2, 2);

    add_of(w, OTHER, 10, true);
    add_of(w, OTHER, 10, true);
    assert_ptr_equal(hd_event_log_get(w->event_logs, NOBODY, HD_S(THREAD), gap), w->log);
    add_of(w, RUN, 10, true);
    add_of(w, OTHER, 10, true);
    assert_int_equal(gap, 2000000);
    expect_numbers(w, "", 0, "1 2 2000001 2000002 ");
    reopen(w);
    expect_numbers(w, "", 0, "1 2 2000001 2000002 ");
    expect_numbers(w, OTHER, 1, "2 2000002 ");
    assert_int_equal(sum_pages(w).events, 4);
}

static void add_thread(struct world *w, struct hd_thread_rec *thread)
{
    struct hd_batch_builder batch;

    hd_thread_init(thread, NOBODY, HD_S(THREAD));
    thread->created_at = 7;
    hd_batch_init(&batch);
    assert_err(hd_thread_add(&batch, thread), 0);
    assert_err(world_apply(w->app, &batch), 0);
}

static void erase(struct world *w, const struct hd_thread_rec *thread, const char *run)
{
    struct hd_map runs;

    hd_map_init(&runs, 10);
    assert_err(hd_map_put(&runs, hd_slice_cstr(run), w), 0);
    hd_event_log_flush(w->log);
    assert_err(hd_event_log_pages_settle(w->app->app.store, NOBODY, HD_S(THREAD), &w->app->fault),
               0);
    assert_err(
        hd_event_log_erase(w->app->app.store, thread, &runs, hd_slice(NULL, 0), &w->app->fault), 0);
    hd_map_fini(&runs);
}

static void an_erased_run_leaves_the_events_of_others(void **state)
{
    struct world *w = *state;
    struct hd_thread_rec thread;

    add_thread(w, &thread);
    add_of(w, RUN, LARGE, true); /* a page of its own */
    for (int i = 0; i < 2; i++) {
        add_of(w, RUN, 10, true);
        add_of(w, OTHER, 10, true);
    }
    erase(w, &thread, RUN);
    hd_event_log_hide(w->log, HD_S(RUN));
    reopen(w);
    assert_int_equal(sum_pages(w).pages, 1);
    assert_int_equal(sum_pages(w).events, 2);
    expect_numbers(w, "", 0, "3 5 ");
    erase(w, &thread, OTHER);
    assert_int_equal(sum_pages(w).pages, 0);
}

/* Of no run, as those of a room. */
static void add_said(struct world *w, const char *data)
{
    const struct hd_event_log_entry news = {
        .mode = 1, .name = HD_S("room/message"), .data = hd_slice_cstr(data), .is_stored = true};

    assert_err(hd_event_log_add(w->log, &news), 0);
}

static void events_are_erased_by_their_data(void **state)
{
    struct world *w = *state;
    struct hd_cursor cursor = {.modes = 1};
    struct hd_thread_rec thread;
    struct hd_map none;

    add_thread(w, &thread);
    add_said(w, "{\"id\":\"m1\",\"text\":\"secret\"}");
    add_said(w, "{\"id\":\"m2\"}");
    hd_event_log_flush(w->log);
    assert_err(hd_event_log_pages_settle(w->app->app.store, NOBODY, HD_S(THREAD), &w->app->fault),
               0);
    hd_map_init(&none, 1);
    assert_err(hd_event_log_erase(w->app->app.store, &thread, &none, HD_S("{\"id\":\"m1\""),
                                  &w->app->fault),
               0);
    hd_map_fini(&none);
    hd_event_log_hide_data(w->log, HD_S("{\"id\":\"m1\""));
    hd_cursor_open(&cursor, w->log, 0);
    assert_true(hd_cursor_peek(&cursor)->is_hidden);
    hd_cursor_advance(&cursor);
    assert_false(hd_cursor_peek(&cursor)->is_hidden);
    hd_cursor_close(&cursor);
    reopen(w);
    expect_numbers(w, "", 0, "2 ");
}

/* Otherwise the pages of the deleted thread would be written again. */
static void no_page_of_a_deleted_thread_is_written_again(void **state)
{
    struct world *w = *state;
    struct hd_thread_rec thread;

    add_thread(w, &thread);
    thread.created_at++; /* the record is of a new thread with the same id */
    add_of(w, RUN, 10, true);
    add_of(w, OTHER, 10, true);
    erase(w, &thread, RUN);
    assert_int_equal(sum_pages(w).events, 2);
}

static void hidden_events_stay_for_readers_at_them(void **state)
{
    struct world *w = *state;
    struct hd_cursor cursor = {.modes = 1};

    add_of(w, OTHER, 10, false);
    add_of(w, RUN, 10, false);
    add_of(w, OTHER, 10, false);
    hd_cursor_open(&cursor, w->log, 1);
    hd_event_log_hide(w->log, HD_S(RUN));
    assert_true(hd_cursor_peek(&cursor)->is_hidden);
    hd_cursor_advance(&cursor);
    assert_false(hd_cursor_peek(&cursor)->is_hidden);
    hd_cursor_close(&cursor);
}

int main(void)
{
#define CASE(function) cmocka_unit_test_setup_teardown(function, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(a_reader_waits_for_a_write_in_flight),
        CASE(pending_events_are_stored_first),
        CASE(more_may_be_forgotten_meanwhile),
        CASE(events_that_are_never_stored_leave_no_hole),
        CASE(only_requested_events_are_read),
        CASE(a_page_that_is_taken_stays_in_memory),
        CASE(two_runs_share_pages),
        CASE(a_held_end_delays_no_other_run),
        CASE(a_repeated_end_is_read_once),
        CASE(a_repeated_end_is_stored_at_once),
        CASE(two_ends_in_flight_store_separate_pages),
        CASE(ends_in_order_keep_their_numbers),
        CASE(a_taken_page_is_unpinned_alone),
        CASE(a_gap_beside_another_run_loses_nothing),
        CASE(an_erased_run_leaves_the_events_of_others),
        CASE(no_page_of_a_deleted_thread_is_written_again),
        CASE(hidden_events_stay_for_readers_at_them),
        CASE(events_are_erased_by_their_data),
    };
#undef CASE

    return cmocka_run_group_tests(tests, NULL, NULL);
}
