/* Lines of a thread, and the status that follows from them. */
#include "records/line.h"

#include <string.h>

#include "run/pending_admission.h"
#include "store/rows.h"
#include "tests/unit/app_world.h"

#define ASKED_A "{\"task-a\":[{\"id\":\"1\"}]}"
#define ASKED_B "{\"task-b\":[{\"id\":\"2\"}]}"

static int setup(void **state)
{
    *state = world_open("memory:", NULL);
    return 0;
}

static int teardown(void **state)
{
    world_close(*state);
    return 0;
}

static void set_line(struct app_world *w, struct hd_lines *lines,
                     const struct hd_thread_rec *thread, const char *ns,
                     enum hd_thread_status status, const char *interrupts)
{
    struct hd_line_rec *line = hd_lines_change(lines, thread, hd_slice_cstr(ns), &w->arena);

    assert_non_null(line);
    line->status = status;
    line->interrupts = hd_slice_cstr(interrupts);
}

static void assert_text(struct hd_slice found, const char *expected)
{
    assert_int_equal(found.len, strlen(expected));
    if (found.len > 0)
        assert_memory_equal(found.ptr, expected, found.len);
}

/* The head of the thread is on line `b`. */
static void the_status_of_a_thread_follows_from_its_lines(void **state)
{
    static const struct {
        enum hd_thread_status a, b;
        bool is_busy;
        enum hd_thread_status expected;
    } table[] = {
        {HD_THREAD_IDLE, HD_THREAD_IDLE, false, HD_THREAD_IDLE},
        {HD_THREAD_IDLE, HD_THREAD_ERROR, false, HD_THREAD_ERROR},
        {HD_THREAD_ERROR, HD_THREAD_IDLE, false, HD_THREAD_IDLE},
        {HD_THREAD_INTERRUPTED, HD_THREAD_IDLE, false, HD_THREAD_INTERRUPTED},
        {HD_THREAD_INTERRUPTED, HD_THREAD_ERROR, false, HD_THREAD_INTERRUPTED},
        {HD_THREAD_ERROR, HD_THREAD_INTERRUPTED, false, HD_THREAD_INTERRUPTED},
        {HD_THREAD_INTERRUPTED, HD_THREAD_ERROR, true, HD_THREAD_BUSY},
        {HD_THREAD_IDLE, HD_THREAD_IDLE, true, HD_THREAD_BUSY},
    };
    struct app_world *w = *state;

    for (size_t i = 0; i < HD_COUNT(table); i++) {
        struct hd_thread_rec thread = {.id = HD_S("t"), .head = {.ns = HD_S("b")}};
        struct hd_lines lines = {NULL, 0, 0};

        set_line(w, &lines, &thread, "a", table[i].a, "");
        set_line(w, &lines, &thread, "b", table[i].b, "");
        assert_err(hd_lines_settle(&lines, &thread, table[i].is_busy, &w->arena), 0);
        assert_int_equal(thread.status, table[i].expected);
    }
}

static void the_interrupts_of_a_thread_are_those_of_all_lines(void **state)
{
    struct hd_thread_rec thread = {.id = HD_S("t"), .head = {.ns = HD_S("b")}};
    struct hd_lines lines = {NULL, 0, 0};
    struct app_world *w = *state;

    assert_err(hd_lines_settle(&lines, &thread, false, &w->arena), 0);
    assert_text(thread.interrupts, "");
    set_line(w, &lines, &thread, "a", HD_THREAD_INTERRUPTED, ASKED_A);
    set_line(w, &lines, &thread, "b", HD_THREAD_IDLE, "{}");
    assert_err(hd_lines_settle(&lines, &thread, false, &w->arena), 0);
    assert_text(thread.interrupts, ASKED_A);
    set_line(w, &lines, &thread, "b", HD_THREAD_INTERRUPTED, ASKED_B);
    assert_err(hd_lines_settle(&lines, &thread, true, &w->arena), 0);
    assert_text(thread.interrupts, "{\"task-a\":[{\"id\":\"1\"}],\"task-b\":[{\"id\":\"2\"}]}");
    hd_lines_remove(&lines, HD_S("a"));
    hd_lines_remove(&lines, HD_S("none"));
    assert_null(hd_lines_find(&lines, HD_S("a")));
    assert_err(hd_lines_settle(&lines, &thread, false, &w->arena), 0);
    assert_text(thread.interrupts, ASKED_B);
}

static void lines_are_stored_and_deleted(void **state)
{
    const struct hd_thread_rec thread = {.id = HD_S("t")}, other = {.id = HD_S("u")};
    struct hd_lines lines = {NULL, 0, 0}, read;
    struct app_world *w = *state;
    struct hd_batch_builder batch;
    struct hd_batch view;

    for (int i = 0; i < 6; i++) { /* more than the list holds at first */
        static const char *const names[] = {"", "a", "b", "c", "d", "e"};

        set_line(w, &lines, &thread, names[i], HD_THREAD_INTERRUPTED, ASKED_A);
    }
    hd_lines_find(&lines, HD_S("e"))->is_changed = false;
    hd_batch_init(&batch);
    assert_err(hd_lines_put(&batch, &lines), 0);
    assert_err(hd_line_delete(&batch, &thread, HD_S("a")), 0);
    view = hd_batch_view(&batch);
    assert_err(hd_rows_apply(w->app.store, HD_S("t"), &view, NULL, &w->fault), 0);
    hd_batch_fini(&batch);
    assert_err(hd_lines_read(w->app.store, &thread, &w->arena, &read, &w->fault), 0);
    assert_int_equal(read.count, 4);
    assert_null(hd_lines_find(&read, HD_S("a")));
    assert_null(hd_lines_find(&read, HD_S("e")));
    assert_text(hd_lines_find(&read, HD_S(""))->interrupts, ASKED_A);
    assert_int_equal(hd_lines_find(&read, HD_S("d"))->status, HD_THREAD_INTERRUPTED);
    assert_false(hd_lines_find(&read, HD_S("d"))->is_changed);
    assert_err(hd_lines_read(w->app.store, &other, &w->arena, &read, &w->fault), 0);
    assert_int_equal(read.count, 0);
}

/* Version 6 had no lines: the status and the interrupts of the thread are those of its head. */
static void an_old_thread_has_the_line_of_its_head(void **state)
{
    struct hd_thread_rec thread = {.id = HD_S("t"),
                                   .status = HD_THREAD_INTERRUPTED,
                                   .interrupts = HD_S(ASKED_A),
                                   .head = {.ns = HD_S("b"), .checkpoint_id = HD_S("1")},
                                   .head_before = {.ns = HD_S("a"), .checkpoint_id = HD_S("0")}};
    struct app_world *w = *state;
    struct hd_line_rec *line;
    struct hd_lines lines;

    assert_err(hd_lines_read(w->app.store, &thread, &w->arena, &lines, &w->fault), 0);
    assert_int_equal(lines.count, 1);
    line = hd_lines_find(&lines, HD_S("b"));
    assert_non_null(line);
    assert_true(line->is_changed);
    assert_int_equal(line->status, HD_THREAD_INTERRUPTED);
    assert_text(line->interrupts, ASKED_A);
    assert_text(line->checkpoint_id, "1");
    /* While a run was in flight, the status from before it was that of the earlier head. */
    thread.status = HD_THREAD_BUSY;
    thread.status_before = HD_THREAD_INTERRUPTED;
    thread.has_before = true;
    assert_err(hd_lines_read(w->app.store, &thread, &w->arena, &lines, &w->fault), 0);
    assert_int_equal(lines.count, 1);
    line = hd_lines_find(&lines, HD_S("a"));
    assert_non_null(line);
    assert_int_equal(line->status, HD_THREAD_INTERRUPTED);
    assert_text(line->checkpoint_id, "0");
}

static void admissions_are_ordered_per_line(void **state)
{
    static const char first[] = "00000000-0000-7000-8000-000000000001";
    struct hd_slice run = HD_S(first), none = {NULL, 0}, thread = HD_S("t");
    struct hd_pending_admissions all;

    (void)state;
    assert_err(hd_pending_admissions_init(&all), 0);
    assert_err(hd_pending_admission_add(&all, none, run), 0);
    assert_false(hd_pending_admission_is_before(&all, none, thread, HD_S("a"), 9));
    hd_pending_admission_set_order(&all, none, run, thread, HD_S("a"), 5);
    assert_true(hd_pending_admission_is_before(&all, none, thread, HD_S("a"), 6));
    assert_false(hd_pending_admission_is_before(&all, none, thread, HD_S("a"), 5));
    assert_false(hd_pending_admission_is_before(&all, none, thread, HD_S("b"), 6));
    assert_false(hd_pending_admission_is_before(&all, none, thread, none, 6));
    assert_false(hd_pending_admission_is_before(&all, none, HD_S("u"), HD_S("a"), 6));
    /* A second attempt may have another line. */
    hd_pending_admission_set_order(&all, none, run, thread, HD_S("b"), 7);
    assert_false(hd_pending_admission_is_before(&all, none, thread, HD_S("a"), 8));
    assert_true(hd_pending_admission_is_before(&all, none, thread, HD_S("b"), 8));
    hd_pending_admission_leave(&all, none, run);
    assert_false(hd_pending_admission_is_before(&all, none, thread, HD_S("b"), 8));
    hd_pending_admissions_fini(&all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_status_of_a_thread_follows_from_its_lines, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(the_interrupts_of_a_thread_are_those_of_all_lines, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(lines_are_stored_and_deleted, setup, teardown),
        cmocka_unit_test_setup_teardown(an_old_thread_has_the_line_of_its_head, setup, teardown),
        cmocka_unit_test(admissions_are_ordered_per_line),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
