/* Events that are stored with the rows that they report: their order, and what readers miss. */
#include "events/event_batch.h"

#include "events/event_log.h"
#include "records/record.h"
#include "store/batch.h"
#include "store/rows.h"
#include "tests/unit/app_world.h"

#define RUN "00000000-0000-4000-8000-000000000001"
#define THREAD "00000000-0000-4000-8000-00000000000a"
#define MODE 2
#define MOST 64

struct world {
    struct app_world *app;
    struct hd_event_logs *event_logs;
    struct hd_event_log *log;
    struct hd_arena arena;
    struct hd_cursor cursor;
    struct hd_thread_rec thread;
    char seen[MOST + 1]; /* the first letter of each event's data */
    uint64_t last;
};

static int setup(void **state)
{
    const struct hd_event_log_limits limits = {
        .log_bytes = 1 << 20, .total_bytes = 8 << 20, .idle_us = 1000000};
    struct world *w = calloc(1, sizeof(*w));

    assert_non_null(w);
    w->app = world_open("memory:", NULL);
    hd_arena_init(&w->arena, (size_t)64 << 20);
    assert_err(hd_event_logs_create(&w->app->loop, w->app->app.store, &limits, &w->event_logs), 0);
    w->log = hd_event_log_get(w->event_logs, NOBODY, HD_S(THREAD), 0);
    assert_non_null(w->log);
    w->cursor.modes = MODE;
    hd_cursor_open(&w->cursor, w->log, HD_FROM_NOW);
    w->thread = (struct hd_thread_rec){.principal = NOBODY, .id = HD_S(THREAD)};
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;

    hd_cursor_close(&w->cursor);
    hd_event_logs_destroy(w->event_logs);
    hd_arena_fini(&w->arena);
    world_close(w->app);
    free(w);
    return 0;
}

static struct hd_event_batch *begin(struct world *w, const char *letters)
{
    struct hd_event_batch *events = hd_event_batch_begin(w->event_logs, NOBODY, HD_S(THREAD),
                                                         w->thread.event_seq, strlen(letters));

    assert_non_null(events);
    for (size_t i = 0; letters[i]; i++)
        assert_err(hd_event_batch_add(events, hd_slice(NULL, 0), MODE, HD_S("room/message"),
                                      hd_slice(letters + i, 1)),
                   0);
    return events;
}

static void store(struct world *w, struct hd_event_batch *events)
{
    struct hd_batch_builder builder;
    struct hd_batch view;

    assert_true(hd_event_batch_fits(events, &w->thread));
    hd_batch_init(&builder);
    assert_err(hd_event_batch_put(events, &builder, &w->thread), 0);
    view = hd_batch_view(&builder);
    assert_err(hd_rows_apply(w->app->app.store, HD_S(":" THREAD), &view, NULL, &w->app->fault), 0);
    hd_batch_fini(&builder);
}

static void add_run_event(struct world *w, char letter)
{
    const struct hd_event_log_entry added = {.run_id = HD_S(RUN),
                                             .mode = MODE,
                                             .name = HD_S("values"),
                                             .data = hd_slice(&letter, 1),
                                             .is_stored = true};

    assert_err(hd_event_log_add(w->log, &added), 0);
}

static void note_event(struct world *w, const struct hd_entry *entry)
{
    size_t count = strlen(w->seen);

    assert_true(count < MOST);
    assert_true(entry->is_transient || entry->seq > w->last);
    if (!entry->is_transient)
        w->last = entry->seq;
    w->seen[count] = hd_entry_data(entry).ptr[0];
    w->seen[count + 1] = '\0';
}

static void expect_seen(struct world *w, const char *letters)
{
    const struct hd_entry *entry;

    while ((entry = hd_cursor_peek(&w->cursor))) {
        note_event(w, entry);
        hd_cursor_advance(&w->cursor);
    }
    assert_string_equal(w->seen, letters);
}

/* As a reader after a restart. */
static void expect_stored(struct world *w, const char *letters)
{
    struct hd_entry *stored;
    uint64_t after = 0;

    hd_event_log_flush(w->log);
    w->seen[0] = '\0';
    w->last = 0;
    assert_err(hd_event_log_pages_settle(w->app->app.store, NOBODY, HD_S(THREAD), &w->app->fault),
               0);
    assert_err(hd_event_log_pages_read(w->app->app.store, NOBODY, HD_S(THREAD), hd_slice(NULL, 0),
                                       &after, &w->arena, &stored, &w->app->fault),
               0);
    for (; stored; stored = stored->next)
        note_event(w, stored);
    assert_string_equal(w->seen, letters);
}

static void events_are_seen_when_their_rows_are_stored(void **state)
{
    struct world *w = *state;
    struct hd_event_batch *events = begin(w, "ab");

    expect_seen(w, "");
    store(w, events);
    expect_seen(w, "");
    hd_event_batch_end(events, true);
    expect_seen(w, "ab");
    assert_int_equal(w->thread.event_seq, w->last);
    expect_stored(w, "ab");
}

static void a_failed_batch_leaves_no_event(void **state)
{
    struct world *w = *state;

    hd_event_batch_end(begin(w, "ab"), false);
    add_run_event(w, 'c');
    expect_seen(w, "c");
    expect_stored(w, "c");
}

static void runs_do_not_wait_for_the_batch(void **state)
{
    struct world *w = *state;
    struct hd_event_batch *events;

    add_run_event(w, 'a');
    events = begin(w, "d");
    add_run_event(w, 'b');
    store(w, events);
    add_run_event(w, 'c');
    expect_seen(w, "abc");
    hd_event_batch_end(events, true);
    add_run_event(w, 'e');
    expect_seen(w, "abcde");
    expect_stored(w, "abcde");
}

static void later_batches_wait_for_earlier_ones(void **state)
{
    struct world *w = *state;
    struct hd_event_batch *first = begin(w, "a"), *second = begin(w, "b");

    store(w, first);
    store(w, second);
    hd_event_batch_end(second, true);
    expect_seen(w, "");
    hd_event_batch_end(first, true);
    expect_seen(w, "ab");
    expect_stored(w, "ab");
}

static void a_batch_that_comes_too_late_begins_again(void **state)
{
    struct world *w = *state;
    struct hd_event_batch *first = begin(w, "b"), *second = begin(w, "a");

    store(w, second);
    assert_false(hd_event_batch_fits(first, &w->thread));
    hd_event_batch_end(second, true);
    hd_event_batch_end(first, false);
    expect_seen(w, "a");
    first = begin(w, "b");
    store(w, first);
    hd_event_batch_end(first, true);
    expect_seen(w, "ab");
    expect_stored(w, "ab");
}

/* The record may be read before the events of an applied batch are shown. */
static void the_record_may_be_ahead_of_the_readers(void **state)
{
    struct world *w = *state;
    struct hd_event_batch *first = begin(w, "a"), *second;

    store(w, first);
    second = begin(w, "b");
    hd_event_batch_end(first, true);
    store(w, second);
    hd_event_batch_end(second, true);
    expect_seen(w, "ab");
    expect_stored(w, "ab");
}

/* During an outage of the database a run may add more events than the numbers leave room for. */
static void a_batch_that_takes_long_is_seen_later(void **state)
{
    struct world *w = *state;
    struct hd_event_batch *events = begin(w, "z");
    const struct hd_entry *entry;

    for (int i = 0; i < 2000; i++)
        add_run_event(w, 'r');
    store(w, events);
    hd_event_batch_end(events, true);
    while ((entry = hd_cursor_peek(&w->cursor))) {
        w->seen[0] = hd_entry_data(entry).ptr[0];
        assert_true(entry->seq > w->last);
        w->last = entry->seq;
        hd_cursor_advance(&w->cursor);
    }
    assert_int_equal(w->seen[0], 'z');
}

static void a_deleted_thread_has_no_events(void **state)
{
    struct world *w = *state;
    struct hd_event_batch *events = begin(w, "a");

    hd_event_log_drop(w->log);
    hd_event_batch_end(events, true);
    w->log = hd_event_log_get(w->event_logs, NOBODY, HD_S(THREAD), 0);
    assert_non_null(w->log);
    hd_cursor_open(&w->cursor, w->log, 0);
    expect_seen(w, "");
}

static void an_event_without_a_number_is_for_those_who_are_there(void **state)
{
    struct world *w = *state;

    add_run_event(w, 'a');
    assert_err(hd_event_log_send(w->log, MODE, HD_S("room/typing"), HD_S("t")), 0);
    add_run_event(w, 'b');
    expect_seen(w, "atb");
    hd_cursor_close(&w->cursor);
    w->seen[0] = '\0';
    w->last = 0;
    hd_cursor_open(&w->cursor, w->log, 0);
    expect_seen(w, "ab");
    expect_stored(w, "ab");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(events_are_seen_when_their_rows_are_stored, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_failed_batch_leaves_no_event, setup, teardown),
        cmocka_unit_test_setup_teardown(runs_do_not_wait_for_the_batch, setup, teardown),
        cmocka_unit_test_setup_teardown(later_batches_wait_for_earlier_ones, setup, teardown),
        cmocka_unit_test_setup_teardown(a_batch_that_comes_too_late_begins_again, setup, teardown),
        cmocka_unit_test_setup_teardown(the_record_may_be_ahead_of_the_readers, setup, teardown),
        cmocka_unit_test_setup_teardown(a_batch_that_takes_long_is_seen_later, setup, teardown),
        cmocka_unit_test_setup_teardown(a_deleted_thread_has_no_events, setup, teardown),
        cmocka_unit_test_setup_teardown(an_event_without_a_number_is_for_those_who_are_there, setup,
                                        teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
