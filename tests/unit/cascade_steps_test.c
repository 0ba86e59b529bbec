/* The steps of a cascade: as its record keeps them, merged with a new plan, and what follows. */
#include "room/cascade_steps.h"

#include <string.h>

#include "tests/unit/check.h"

#define STEP(run, status, more)                                                            \
    "{\"run_id\":\"" run "\",\"assistant_id\":\"a\",\"trigger\":\"M1\",\"answer\":\"M2\"," \
    "\"why\":\"trigger\",\"cause\":\"M1\",\"status\":\"" status "\"" more "}"

static struct hd_arena arena;
static struct heddle_error fault;

static int setup(void **state)
{
    (void)state;
    hd_arena_init(&arena, (size_t)1 << 20);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    hd_arena_fini(&arena);
    return 0;
}

static struct hd_cascade_list read_steps(const char *text)
{
    struct hd_cascade_list list;

    assert_err(hd_cascade_steps_read(hd_slice_cstr(text), &arena, &list, &fault), 0);
    return list;
}

static struct hd_cascade_decision decide(struct hd_cascade_list *list)
{
    struct hd_cascade_decision decision;

    assert_err(hd_cascade_steps_decide(list, &arena, &decision), 0);
    return decision;
}

static void the_record_keeps_every_member(void **state)
{
    struct hd_cascade_list list = read_steps("[" STEP(
        "R1", "done",
        ",\"new_run_id\":\"N1\",\"new_answer\":\"M9\",\"equal\":true") "," STEP("R2", "waiting",
                                                                                ",\"approval\":"
                                                                                "\"effects\","
                                                                                "\"after\":[0],"
                                                                                "\"tools\":["
                                                                                "\"mail\"],"
                                                                                "\"joined\":true,"
                                                                                "\"approved\":true,"
                                                                                "\"blocked\":"
                                                                                "\"because\"") "]");
    struct hd_cascade_list again;
    struct hd_slice first, second;

    (void)state;
    assert_int_equal(list.count, 2);
    assert_slice(list.items[0].new_run_id, HD_S("N1"));
    assert_slice(list.items[0].new_answer, HD_S("M9"));
    assert_true(list.items[0].is_equal);
    assert_int_equal(list.items[0].state, HD_CASCADE_STEP_DONE);
    assert_int_equal(list.items[1].approval, HD_CASCADE_EFFECTS);
    assert_int_equal(list.items[1].after_count, 1);
    assert_slice(list.items[1].tools, HD_S("[\"mail\"]"));
    assert_slice(list.items[1].blocked, HD_S("because"));
    assert_true(list.items[1].is_joined && list.items[1].is_approved);
    assert_err(hd_cascade_steps_write(&list, &arena, &first), 0);
    assert_err(hd_cascade_steps_read(first, &arena, &again, &fault), 0);
    assert_err(hd_cascade_steps_write(&again, &arena, &second), 0);
    assert_slice(first, second);
}

static void only_the_record_has_the_value_of_a_reply(void **state)
{
    struct hd_cascade_list list =
        read_steps("[" STEP("R1", "question", ",\"reply\":\"M3\",\"resume\":\"secret\"") "]");
    struct hd_slice record;
    struct hd_buf shown;
    struct hd_jw jw;

    (void)state;
    assert_err(hd_cascade_steps_write(&list, &arena, &record), 0);
    assert_non_null(strstr(record.ptr, "\"resume\":\"secret\""));
    hd_buf_init(&shown, SIZE_MAX);
    hd_jw_init(&jw, &shown);
    hd_cascade_steps_put(&jw, &list);
    assert_err(hd_jw_finish(&jw), 0);
    assert_err(hd_buf_append_slice(&shown, hd_slice("", 1)), 0);
    assert_non_null(strstr(hd_buf_slice(&shown).ptr, "\"reply\":\"M3\""));
    assert_null(strstr(hd_buf_slice(&shown).ptr, "secret"));
    hd_buf_fini(&shown);
}

static void a_damaged_record_is_an_error(void **state)
{
    static const char *const texts[] = {
        "{}",
        "[{}]",
        "[" STEP("R1", "asleep", "") "]",
        "[" STEP("R1", "waiting", ",\"after\":[0]") "]",
        "[" STEP("R1", "waiting", ",\"approval\":\"never\"") "]",
    };
    struct hd_cascade_list list;

    (void)state;
    for (size_t i = 0; i < HD_COUNT(texts); i++)
        assert_err(hd_cascade_steps_read(hd_slice_cstr(texts[i]), &arena, &list, &fault),
                   HD_ECORRUPT);
}

static void a_step_begins_when_those_before_it_have_ended(void **state)
{
    struct hd_cascade_list list = read_steps("[" STEP("R1", "waiting", "") "," STEP(
        "R2", "waiting", "") "," STEP("R3", "waiting", ",\"after\":[0,1]") "]");
    struct hd_cascade_decision decision = decide(&list);

    (void)state;
    assert_int_equal(decision.ready_count, 2);
    list.items[0].state = HD_CASCADE_STEP_DONE;
    list.items[1].state = HD_CASCADE_STEP_RUNNING;
    decision = decide(&list);
    assert_int_equal(decision.ready_count, 0);
    assert_int_equal(decision.running, 1);
    list.items[1].state = HD_CASCADE_STEP_SKIPPED;
    decision = decide(&list);
    assert_int_equal(decision.ready_count, 1);
    assert_int_equal(decision.ready[0], 2);
    assert_false(decision.is_complete);
    list.items[2].state = HD_CASCADE_STEP_DONE;
    assert_true(decide(&list).is_complete);
}

static void an_approval_of_a_part_skips_the_rest(void **state)
{
    struct hd_cascade_list list = read_steps(
        "[" STEP("R1", "done", "") "," STEP("R2", "waiting", ",\"approval\":\"limit\"") "," STEP(
            "R3", "waiting", ",\"approval\":\"limit\"") "]");
    struct hd_cascade_decision decision = decide(&list);

    (void)state;
    assert_int_equal(decision.unapproved, 2);
    assert_int_equal(decision.ready_count, 0);
    hd_cascade_steps_approve(&list, HD_S("R2"));
    decision = decide(&list);
    assert_int_equal(decision.ready_count, 1);
    assert_int_equal(decision.unapproved, 0);
    assert_int_equal(list.items[2].state, HD_CASCADE_STEP_SKIPPED);
    list.items[1].state = HD_CASCADE_STEP_DONE;
    assert_true(decide(&list).is_complete);
}

static void a_step_behind_a_refused_one_is_skipped(void **state)
{
    struct hd_cascade_list list =
        read_steps("[" STEP("R1", "waiting", ",\"approval\":\"effects\"") "," STEP(
            "R2", "waiting", ",\"approval\":\"effects\"") "," STEP("R3", "waiting",
                                                                   ",\"after\":[1]") "]");

    (void)state;
    hd_cascade_steps_approve(&list, HD_S("R1"));
    assert_int_equal(decide(&list).ready_count, 1);
    assert_int_equal(list.items[2].state, HD_CASCADE_STEP_SKIPPED);
}

static void what_cannot_be_repeated_does_not_stop_the_others(void **state)
{
    struct hd_cascade_list list =
        read_steps("[" STEP("R1", "waiting", ",\"blocked\":\"pruned\"") "," STEP(
            "R2", "waiting", ",\"after\":[0]") "]");
    struct hd_cascade_decision decision = decide(&list);

    (void)state;
    assert_int_equal(list.items[0].state, HD_CASCADE_STEP_SKIPPED);
    assert_slice(list.items[0].blocked, HD_S("pruned"));
    assert_int_equal(decision.ready_count, 1);
    assert_int_equal(decision.ready[0], 1);
}

/* ---- merging ---------------------------------------------------------- */

/* Runs R1, R2, R3; the plan has those whose bit is set. */
static struct hd_cascade_list merge(const struct hd_cascade_list *recorded, unsigned runs,
                                    unsigned in_flight)
{
    static const struct hd_cascade_past past[] = {
        {.run_id = {"R1", 2}}, {.run_id = {"R2", 2}}, {.run_id = {"R3", 2}}};
    struct hd_cascade_step steps[3] = {{.past = 0}};
    struct hd_cascade_extra extras[3] = {{.is_in_flight = false}};
    struct hd_cascade_answer plan = {.steps = steps};
    struct hd_cascade_news news = {.past = past,
                                   .past_count = 3,
                                   .plan = &plan,
                                   .extras = extras,
                                   .is_first = recorded->count == 0};
    struct hd_cascade_list merged;
    size_t before = 0;

    for (size_t i = 0; i < 3; i++) {
        extras[i].is_in_flight = in_flight >> i & 1;
        if (!(runs >> i & 1))
            continue;
        if (plan.count > 0) {
            before = plan.count - 1;
            steps[plan.count].after = &before;
            steps[plan.count].after_count = 1;
        }
        steps[plan.count++].past = i;
    }
    assert_err(hd_cascade_steps_merge(recorded, &news, &arena, &merged), 0);
    return merged;
}

static void a_run_that_began_meanwhile_joins(void **state)
{
    struct hd_cascade_list none = {NULL, 0}, list = merge(&none, 3, 0);

    (void)state;
    assert_int_equal(list.count, 2);
    assert_false(list.items[0].is_joined);
    list.items[0].state = HD_CASCADE_STEP_RUNNING;
    list.items[0].new_run_id = HD_S("N1");
    list = merge(&list, 7, 4);
    assert_int_equal(list.count, 3);
    assert_slice(list.items[0].new_run_id, HD_S("N1"));
    assert_true(list.items[2].is_joined);
    assert_false(list.items[1].is_joined);
    assert_int_equal(decide(&list).in_flight, 1);
}

static void a_joined_step_over_the_limit_is_skipped(void **state)
{
    struct hd_cascade_list none = {NULL, 0}, list = merge(&none, 1, 0);
    struct hd_cascade_decision decision;

    (void)state;
    list.items[0].state = HD_CASCADE_STEP_DONE;
    list = merge(&list, 5, 4);
    list.items[1].approval = HD_CASCADE_OVER_LIMIT;
    assert_int_equal(decide(&list).in_flight, 1); /* its end would move the head again */
    list.items[1].is_in_flight = false;
    decision = decide(&list);
    assert_true(decision.is_complete);
    assert_int_equal(list.items[1].state, HD_CASCADE_STEP_SKIPPED);
}

static void an_approval_of_all_is_about_joined_steps_over_the_limit(void **state)
{
    struct hd_cascade_list none = {NULL, 0}, list = merge(&none, 1, 0);
    struct hd_cascade_decision decision;

    (void)state;
    list.items[0].state = HD_CASCADE_STEP_DONE;
    list = merge(&list, 7, 0);
    list.items[1].approval = HD_CASCADE_OVER_LIMIT;
    list.items[2].approval = HD_CASCADE_EFFECTS;
    hd_cascade_steps_approve_joined(&list);
    decision = decide(&list);
    assert_int_equal(decision.ready_count, 1);
    assert_int_equal(decision.ready[0], 1);
    assert_int_equal(decision.unapproved, 1);
}

static void a_waiting_step_that_is_not_affected_any_more_is_dropped(void **state)
{
    struct hd_cascade_list none = {NULL, 0}, list = merge(&none, 7, 0);

    (void)state;
    list.items[0].state = HD_CASCADE_STEP_DONE;
    list = merge(&list, 5, 0);
    assert_int_equal(list.count, 2);
    assert_slice(list.items[1].run_id, HD_S("R3"));
    assert_int_equal(list.items[1].after[0], 0);
    list.items[1].state = HD_CASCADE_STEP_RUNNING;
    assert_int_equal(merge(&list, 1, 0).count, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_record_keeps_every_member, setup, teardown),
        cmocka_unit_test_setup_teardown(only_the_record_has_the_value_of_a_reply, setup, teardown),
        cmocka_unit_test_setup_teardown(a_damaged_record_is_an_error, setup, teardown),
        cmocka_unit_test_setup_teardown(a_step_begins_when_those_before_it_have_ended, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(an_approval_of_a_part_skips_the_rest, setup, teardown),
        cmocka_unit_test_setup_teardown(a_step_behind_a_refused_one_is_skipped, setup, teardown),
        cmocka_unit_test_setup_teardown(what_cannot_be_repeated_does_not_stop_the_others, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_run_that_began_meanwhile_joins, setup, teardown),
        cmocka_unit_test_setup_teardown(a_joined_step_over_the_limit_is_skipped, setup, teardown),
        cmocka_unit_test_setup_teardown(an_approval_of_all_is_about_joined_steps_over_the_limit,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(a_waiting_step_that_is_not_affected_any_more_is_dropped,
                                        setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
