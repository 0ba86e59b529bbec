/* Event logs: when the reader that waits for a run falls too far behind, and when it catches up. */
#include "events/event_log.h"

#include <uv.h>

#include "base/compiler.h"
#include "tests/unit/check.h"

#define RUN "00000000-0000-4000-8000-000000000001"
#define OTHER "00000000-0000-4000-8000-000000000002"
#define FEED_BYTES ((size_t)64 << 10)

struct world {
    uv_loop_t loop;
    struct hd_event_logs *event_logs;
    struct hd_event_log *log;
    struct hd_cursor cursor;
    struct hd_event_log_watch watch;
    bool is_behind;
    int changes;
};

static void on_lag(void *ctx, bool is_behind)
{
    struct world *w = ctx;

    assert_true(is_behind != w->is_behind);
    w->is_behind = is_behind;
    w->changes++;
}

static int setup_with(void **state, size_t total_bytes)
{
    const struct hd_event_log_limits limits = {
        .log_bytes = FEED_BYTES, .total_bytes = total_bytes, .idle_us = 1000000};
    struct world *w = calloc(1, sizeof(*w));

    assert_non_null(w);
    assert_int_equal(uv_loop_init(&w->loop), 0);
    assert_err(hd_event_logs_create(&w->loop, NULL, &limits, &w->event_logs), 0);
    w->log = hd_event_log_get(w->event_logs, HD_S(""), HD_S("t"), 0);
    assert_non_null(w->log);
    hd_event_log_hold(w->log);
    w->watch = (struct hd_event_log_watch){.on_lag = on_lag, .ctx = w};
    hd_event_log_watch(w->log, HD_S(RUN), &w->watch);
    *state = w;
    return 0;
}

static int setup(void **state)
{
    return setup_with(state, 64 * FEED_BYTES);
}

static int setup_tight(void **state)
{
    return setup_with(state, 2 * FEED_BYTES);
}

static int teardown(void **state)
{
    struct world *w = *state;

    hd_cursor_close(&w->cursor);
    hd_event_log_release(w->log);
    hd_event_logs_destroy(w->event_logs);
    uv_run(&w->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&w->loop), 0);
    free(w);
    return 0;
}

static void open_cursor(struct world *w, struct hd_cursor *cursor, const char *run, bool is_creator)
{
    *cursor = (struct hd_cursor){.modes = 1, .is_creator = is_creator};
    memcpy(cursor->run_id, run, HD_UUID_SIZE);
    hd_cursor_open(cursor, w->log, HD_FROM_NOW);
}

static void add_to(struct hd_event_log *log, size_t bytes)
{
    static char text[1000];

    for (size_t told = 0; told < bytes; told += sizeof(text)) {
        const struct hd_event_log_entry news = {.run_id = HD_S(RUN),
                                                .mode = 1,
                                                .name = HD_S("values"),
                                                .data = hd_slice(text, sizeof(text))};

        assert_err(hd_event_log_add(log, &news), 0);
    }
}

static void add(struct world *w, size_t bytes)
{
    add_to(w->log, bytes);
}

static void read_all(struct hd_cursor *cursor)
{
    while (hd_cursor_peek(cursor))
        hd_cursor_advance(cursor);
}

static void half_is_too_much(void **state)
{
    struct world *w = *state;

    open_cursor(w, &w->cursor, RUN, true);
    add(w, FEED_BYTES / 4);
    assert_false(w->is_behind);
    add(w, FEED_BYTES / 3);
    assert_true(w->is_behind);
    assert_false(w->cursor.is_lost);
    /* Reading a part is not enough. */
    for (int i = 0; i < 5; i++)
        hd_cursor_advance(&w->cursor);
    assert_true(w->is_behind);
    read_all(&w->cursor);
    assert_false(w->is_behind);
    assert_int_equal(w->changes, 2);
    add(w, FEED_BYTES * 2 / 3);
    assert_true(w->is_behind);
    assert_int_equal(w->changes, 3);
}

static void a_reading_client_is_never_behind(void **state)
{
    struct world *w = *state;

    open_cursor(w, &w->cursor, RUN, true);
    for (int i = 0; i < 100; i++) {
        add(w, FEED_BYTES / 10);
        read_all(&w->cursor);
    }
    assert_int_equal(w->changes, 0);
}

static void a_disconnected_client_is_not_behind(void **state)
{
    struct world *w = *state;

    open_cursor(w, &w->cursor, RUN, true);
    add(w, FEED_BYTES * 2 / 3);
    assert_true(w->is_behind);
    hd_cursor_close(&w->cursor);
    assert_false(w->is_behind);
    add(w, FEED_BYTES * 2);
    assert_int_equal(w->changes, 2);
}

static void others_may_be_behind(void **state)
{
    struct world *w = *state;
    struct hd_cursor other;

    open_cursor(w, &w->cursor, RUN, false);
    open_cursor(w, &other, OTHER, true);
    add(w, FEED_BYTES * 2);
    assert_true(w->cursor.is_lost);
    assert_int_equal(w->changes, 0);
    hd_cursor_close(&other);
}

static void a_run_without_readers_is_not_held(void **state)
{
    struct world *w = *state;

    add(w, FEED_BYTES * 4);
    assert_int_equal(w->changes, 0);
}

static void an_ended_log_does_not_notify(void **state)
{
    struct world *w = *state;

    open_cursor(w, &w->cursor, RUN, true);
    hd_event_log_unwatch(&w->watch);
    add(w, FEED_BYTES * 2 / 3);
    read_all(&w->cursor);
    assert_int_equal(w->changes, 0);
}

/* Many readers that are a little behind exceed the total limit. */
static void memory_for_all_is_shared(void **state)
{
    struct world *w = *state;
    struct hd_event_log *others[2] = {hd_event_log_get(w->event_logs, HD_S(""), HD_S("a"), 0),
                                      hd_event_log_get(w->event_logs, HD_S(""), HD_S("b"), 0)};

    for (size_t i = 0; i < HD_COUNT(others); i++)
        add_to(others[i], FEED_BYTES * 3 / 4);
    open_cursor(w, &w->cursor, RUN, true);
    add(w, FEED_BYTES / 10);
    assert_true(w->is_behind);
    assert_false(w->cursor.is_lost);
    read_all(&w->cursor);
    assert_false(w->is_behind);
}

static void add_run(struct hd_event_log *log, const char *run, size_t bytes)
{
    static char text[FEED_BYTES];
    const struct hd_event_log_entry news = {.run_id = hd_slice_cstr(run),
                                            .mode = 1,
                                            .name = HD_S("values"),
                                            .data = hd_slice(text, bytes)};

    assert_err(hd_event_log_add(log, &news), 0);
}

/* Each run waits for its own reader, also when another watch ends. */
static void each_run_has_its_own_watch(void **state)
{
    struct world *w = *state;
    struct world other = {.log = w->log};
    struct hd_event_log_watch watch = {.on_lag = on_lag, .ctx = &other};

    hd_event_log_watch(w->log, HD_S(OTHER), &watch);
    open_cursor(w, &w->cursor, RUN, true);
    open_cursor(w, &other.cursor, OTHER, true);
    add_run(w->log, RUN, FEED_BYTES * 2 / 3);
    assert_true(w->is_behind);
    assert_false(other.is_behind);
    add_run(w->log, OTHER, 10);
    read_all(&other.cursor);
    assert_int_equal(other.changes, 0);
    hd_event_log_unwatch(&watch);
    assert_true(w->is_behind);
    read_all(&w->cursor);
    assert_false(w->is_behind);
    assert_int_equal(other.changes, 0);
    hd_cursor_close(&other.cursor);
}

static void on_reader(void *ctx)
{
    (*(int *)ctx)++;
}

static void only_readers_of_the_run_are_reported(void **state)
{
    struct world *w = *state;
    struct hd_cursor all = {.modes = 1};
    int first = 0, second = 0;
    struct hd_event_log_watch watches[] = {
        {.on_lag = on_lag, .on_reader = on_reader, .ctx = &first},
        {.on_lag = on_lag, .on_reader = on_reader, .ctx = &second}};

    hd_event_log_unwatch(&w->watch);
    hd_event_log_watch(w->log, HD_S(RUN), &watches[0]);
    hd_event_log_watch(w->log, HD_S(OTHER), &watches[1]);
    open_cursor(w, &w->cursor, RUN, false);
    assert_int_equal(first, 1);
    assert_int_equal(second, 0);
    assert_true(hd_event_log_has_readers(w->log, HD_S(RUN)));
    assert_false(hd_event_log_has_readers(w->log, HD_S(OTHER)));
    assert_true(hd_event_log_has_readers(w->log, hd_slice(NULL, 0)));
    hd_cursor_open(&all, w->log, HD_FROM_NOW);
    assert_int_equal(first, 2);
    assert_int_equal(second, 1);
    assert_true(hd_event_log_has_readers(w->log, HD_S(OTHER)));
    hd_cursor_close(&all);
    hd_event_log_unwatch(&watches[0]);
    hd_event_log_unwatch(&watches[1]);
}

static void on_ticked(uv_timer_t *timer)
{
    uv_close((uv_handle_t *)timer, NULL);
}

/* Runs the timer of the logs at least once; it does not keep the loop alive by itself. */
static void tick(struct world *w)
{
    uv_timer_t timer;

    assert_int_equal(uv_timer_init(&w->loop, &timer), 0);
    assert_int_equal(uv_timer_start(&timer, on_ticked, 250, 0), 0);
    uv_run(&w->loop, UV_RUN_DEFAULT);
}

/* The thread's record has the number 1, but the log has used more. */
static void a_log_with_uncovered_numbers_stays(void **state)
{
    const struct hd_event_log_limits limits = {
        .log_bytes = FEED_BYTES, .total_bytes = FEED_BYTES, .idle_us = 1};
    struct world *w = *state;
    struct hd_event_logs *logs;
    struct hd_event_log *log;

    assert_err(hd_event_logs_create(&w->loop, NULL, &limits, &logs), 0);
    log = hd_event_log_get(logs, HD_S(""), HD_S("t"), 1);
    assert_non_null(log);
    add_run(log, RUN, 10);
    add_run(log, RUN, 10);
    tick(w);
    assert_ptr_equal(hd_event_log_get(logs, HD_S(""), HD_S("t"), 2), log);
    assert_int_equal(hd_event_log_seq(log), 3);
    tick(w);
    assert_ptr_equal(hd_event_log_find(logs, HD_S(""), HD_S("t")), log);
    hd_event_log_covered(log, 3);
    tick(w);
    assert_null(hd_event_log_find(logs, HD_S(""), HD_S("t")));
    hd_event_logs_destroy(logs);
}

/* ---- numbers of other servers ----------------------------------------- */

static void skipped_numbers_are_not_used_again(void **state)
{
    struct world *w = *state;

    add(w, 3000);
    hd_event_log_skip(w->log, 100);
    assert_int_equal(hd_event_log_seq(w->log), 100);
    assert_int_equal(hd_event_log_since(w->log), 100);
    assert_int_equal(hd_event_log_position(w->log), 100);
    add(w, 1000);
    open_cursor(w, &w->cursor, RUN, false);
    hd_cursor_close(&w->cursor);
    hd_cursor_open(&w->cursor, w->log, 0);
    assert_int_equal(hd_cursor_peek(&w->cursor)->seq, 101);
    hd_cursor_advance(&w->cursor);
    assert_null(hd_cursor_peek(&w->cursor));
}

static void lower_numbers_skip_nothing(void **state)
{
    struct world *w = *state;

    add(w, 3000);
    open_cursor(w, &w->cursor, RUN, false);
    hd_event_log_skip(w->log, 3);
    hd_event_log_skip(w->log, 2);
    assert_false(w->cursor.is_lost);
    assert_int_equal(hd_event_log_since(w->log), 0);
    hd_cursor_close(&w->cursor);
    hd_cursor_open(&w->cursor, w->log, 0);
    assert_int_equal(hd_cursor_peek(&w->cursor)->seq, 1);
}

static void readers_of_skipped_numbers_are_lost_or_skipped(void **state)
{
    struct world *w = *state;
    struct hd_cursor idle;

    open_cursor(w, &w->cursor, RUN, false);
    add(w, 3000);
    open_cursor(w, &idle, RUN, false);
    hd_event_log_skip(w->log, 4);
    assert_true(w->cursor.is_lost);
    assert_true(idle.is_skipped);
    assert_false(idle.is_lost);
    assert_null(hd_cursor_peek(&w->cursor));
    hd_cursor_close(&idle);
    hd_cursor_open(&idle, w->log, HD_FROM_NOW);
    assert_false(idle.is_skipped);
    hd_cursor_close(&idle);
}

static void a_shared_log_skips_unless_a_run_holds_it(void **state)
{
    struct world *w = *state;

    hd_event_logs_share(w->event_logs);
    add(w, 3000);
    assert_ptr_equal(hd_event_log_get(w->event_logs, HD_S(""), HD_S("t"), 50), w->log);
    assert_int_equal(hd_event_log_since(w->log), 0);
    hd_event_log_release(w->log);
    assert_ptr_equal(hd_event_log_get(w->event_logs, HD_S(""), HD_S("t"), 60), w->log);
    assert_int_equal(hd_event_log_since(w->log), 60);
    hd_event_log_hold(w->log);
}

static void count_log(void *ctx, const struct hd_event_log_place *place)
{
    (void)place;
    ++*(int *)ctx;
}

static int logs_to_check(const struct world *w)
{
    int count = 0;

    hd_event_logs_each(w->event_logs, count_log, &count);
    return count;
}

static void a_shared_log_of_an_earlier_thread_is_dropped_when_it_is_opened(void **state)
{
    struct world *w = *state;
    struct hd_event_log *log;

    hd_event_logs_share(w->event_logs);
    log = hd_event_log_open(w->event_logs, HD_S(""), HD_S("u"), 100, 7);
    add_to(log, 1000);
    assert_ptr_equal(hd_event_log_open(w->event_logs, HD_S(""), HD_S("u"), 100, 8), log);
    hd_cursor_open(&w->cursor, log, 0);
    log = hd_event_log_open(w->event_logs, HD_S(""), HD_S("u"), 200, 3);
    assert_int_equal(hd_event_log_seq(log), 8); /* a reader has not read everything */
    hd_cursor_close(&w->cursor);
    log = hd_event_log_open(w->event_logs, HD_S(""), HD_S("u"), 200, 3);
    assert_int_equal(hd_event_log_seq(log), 3);
}

static void shared_logs_without_readers_are_not_looked_up(void **state)
{
    struct world *w = *state;
    struct hd_event_log *log;

    hd_event_logs_share(w->event_logs);
    assert_int_equal(logs_to_check(w), 0); /* a run holds the only one */
    log = hd_event_log_open(w->event_logs, HD_S(""), HD_S("u"), 100, 7);
    assert_int_equal(logs_to_check(w), 0);
    hd_cursor_open(&w->cursor, log, HD_FROM_NOW);
    assert_int_equal(logs_to_check(w), 1);
    hd_cursor_close(&w->cursor);
    assert_non_null(hd_event_log_get(w->event_logs, HD_S(""), HD_S("of unknown age"), 7));
    assert_int_equal(logs_to_check(w), 1);
}

static void a_new_log_begins_above_the_stored_numbers(void **state)
{
    struct world *w = *state;
    const struct hd_event_log *log = hd_event_log_get(w->event_logs, HD_S(""), HD_S("new"), 7);

    assert_int_equal(hd_event_log_since(log), 7);
    assert_int_equal(hd_event_log_position(log), 7);
}

static void a_held_event_is_above_the_position(void **state)
{
    struct world *w = *state;
    const struct hd_event_log_entry end = {
        .run_id = HD_S(RUN), .name = HD_S("end"), .data = HD_S("null"), .is_held = true};

    add(w, 2000);
    assert_err(hd_event_log_add(w->log, &end), 0);
    assert_int_equal(hd_event_log_position(w->log), 2);
    hd_event_log_show(w->log, HD_S(RUN));
    assert_int_equal(hd_event_log_position(w->log), 3);
}

/* Whatever a held event's number becomes, the next process uses a greater one. */
static void a_record_covers_the_held_events(void **state)
{
    struct world *w = *state;
    struct hd_event_log_entry end = {.name = HD_S("end"), .data = HD_S("null"), .is_held = true};
    uint64_t reserved;

    add(w, 2000);
    hd_event_log_hold(w->log);
    end.run_id = HD_S(RUN);
    assert_err(hd_event_log_add(w->log, &end), 0);
    assert_int_equal(hd_event_log_reserve(w->log), hd_event_log_seq(w->log)); /* one alone */
    end.run_id = HD_S(OTHER);
    assert_err(hd_event_log_add(w->log, &end), 0);
    reserved = hd_event_log_reserve(w->log);
    hd_event_log_show(w->log, HD_S(OTHER));
    hd_event_log_show(w->log, HD_S(RUN));
    assert_int_equal(hd_event_log_seq(w->log), 5); /* 2 events, both ends, the first end again */
    assert_in_range(reserved, 5, 6);
    /* Numbers that this server has reserved are not another one's. */
    hd_event_logs_share(w->event_logs);
    hd_event_log_covered(w->log, reserved);
    hd_event_log_release(w->log);
    hd_event_log_release(w->log);
    open_cursor(w, &w->cursor, RUN, false);
    assert_ptr_equal(hd_event_log_get(w->event_logs, HD_S(""), HD_S("t"), reserved), w->log);
    assert_false(w->cursor.is_skipped || w->cursor.is_lost);
    assert_int_equal(hd_event_log_seq(w->log), reserved);
    hd_event_log_hold(w->log);
}

int main(void)
{
#define CASE(function) cmocka_unit_test_setup_teardown(function, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(half_is_too_much),
        CASE(a_reading_client_is_never_behind),
        CASE(a_disconnected_client_is_not_behind),
        CASE(others_may_be_behind),
        CASE(a_run_without_readers_is_not_held),
        CASE(each_run_has_its_own_watch),
        CASE(only_readers_of_the_run_are_reported),
        CASE(a_log_with_uncovered_numbers_stays),
        CASE(an_ended_log_does_not_notify),
        CASE(skipped_numbers_are_not_used_again),
        CASE(lower_numbers_skip_nothing),
        CASE(readers_of_skipped_numbers_are_lost_or_skipped),
        CASE(a_shared_log_skips_unless_a_run_holds_it),
        CASE(a_shared_log_of_an_earlier_thread_is_dropped_when_it_is_opened),
        CASE(shared_logs_without_readers_are_not_looked_up),
        CASE(a_new_log_begins_above_the_stored_numbers),
        CASE(a_held_event_is_above_the_position),
        CASE(a_record_covers_the_held_events),
        cmocka_unit_test_setup_teardown(memory_for_all_is_shared, setup_tight, teardown),
    };
#undef CASE

    return cmocka_run_group_tests(tests, NULL, NULL);
}
