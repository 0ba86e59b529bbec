/* Limits per principal: no principal uses up the limits of another. */
#include "gate/limits.h"

#include "tests/unit/app_world.h"

#define ADA HD_S("ada")
#define BOB HD_S("bob")

static struct hd_limits *make(int64_t requests, int64_t runs, int64_t streams, int64_t bytes)
{
    const struct hd_limits_config config = {.most = {requests, runs, streams, bytes}};
    struct hd_limits *limits;

    assert_int_equal(hd_limits_create(&config, &limits), 0);
    return limits;
}

static void a_minute_of_requests_may_come_at_once(void **state)
{
    struct hd_limits *limits = make(100, 0, 0, 0);
    int granted = 0, retry = 0;

    (void)state;
    while (retry == 0 && granted < 1000) {
        retry = hd_limits_request(limits, ADA);
        granted += retry == 0;
    }
    assert_in_range(granted, 100, 200); /* more only when the machine stalls */
    assert_in_range(retry, 1, 60);
    assert_int_equal(hd_limits_refused(limits, HD_LIMIT_REQUESTS), 1);
    assert_int_equal(hd_limits_request(limits, BOB), 0);
    hd_limits_destroy(limits);
}

static void released_capacity_can_be_taken_again(void **state)
{
    struct hd_limits *limits = make(0, 2, 1, 0);

    (void)state;
    assert_int_equal(hd_limits_take(limits, ADA, HD_LIMIT_RUNS), 0);
    assert_int_equal(hd_limits_take(limits, ADA, HD_LIMIT_RUNS), 0);
    assert_true(hd_limits_take(limits, ADA, HD_LIMIT_RUNS) > 0);
    assert_int_equal(hd_limits_take(limits, ADA, HD_LIMIT_STREAMS), 0);
    assert_true(hd_limits_take(limits, ADA, HD_LIMIT_STREAMS) > 0);
    assert_int_equal(hd_limits_take(limits, BOB, HD_LIMIT_RUNS), 0);
    hd_limits_give(limits, ADA, HD_LIMIT_RUNS);
    assert_int_equal(hd_limits_take(limits, ADA, HD_LIMIT_RUNS), 0);
    assert_int_equal(hd_limits_refused(limits, HD_LIMIT_RUNS), 1);
    assert_int_equal(hd_limits_refused(limits, HD_LIMIT_STREAMS), 1);
    hd_limits_destroy(limits);
}

static void earlier_admissions_count_beyond_the_limit(void **state)
{
    struct hd_limits *limits = make(0, 1, 0, 0);

    (void)state;
    hd_limits_hold(limits, ADA, HD_LIMIT_RUNS);
    hd_limits_hold(limits, ADA, HD_LIMIT_RUNS);
    hd_limits_give(limits, ADA, HD_LIMIT_RUNS);
    assert_true(hd_limits_take(limits, ADA, HD_LIMIT_RUNS) > 0);
    hd_limits_give(limits, ADA, HD_LIMIT_RUNS);
    assert_int_equal(hd_limits_take(limits, ADA, HD_LIMIT_RUNS), 0);
    hd_limits_destroy(limits);
}

static void without_limit_or_principal_nothing_is_refused(void **state)
{
    struct hd_limits *limits = make(0, 0, 0, 0), *small = make(1, 1, 1, 1);

    (void)state;
    for (int i = 0; i < 100; i++) {
        assert_int_equal(hd_limits_request(limits, ADA), 0);
        assert_int_equal(hd_limits_take(limits, ADA, HD_LIMIT_RUNS), 0);
        assert_int_equal(hd_limits_request(small, HD_S("")), 0);
        assert_int_equal(hd_limits_take(small, HD_S(""), HD_LIMIT_STREAMS), 0);
        assert_int_equal(hd_limits_request(NULL, ADA), 0);
    }
    hd_limits_destroy(limits);
    hd_limits_destroy(small);
}

/* Thousands of idle principals are dropped; those with something in flight stay. */
static void the_idle_are_forgotten(void **state)
{
    struct hd_limits *limits = make(0, 1, 0, 0);
    char name[16];

    (void)state;
    assert_int_equal(hd_limits_take(limits, ADA, HD_LIMIT_RUNS), 0);
    for (int i = 0; i < 5000; i++) {
        snprintf(name, sizeof(name), "p%d", i);
        assert_int_equal(hd_limits_take(limits, hd_slice_cstr(name), HD_LIMIT_RUNS), 0);
        hd_limits_give(limits, hd_slice_cstr(name), HD_LIMIT_RUNS);
    }
    assert_true(hd_limits_take(limits, ADA, HD_LIMIT_RUNS) > 0);
    hd_limits_destroy(limits);
}

static void put_item(struct app_world *w, struct hd_slice principal, struct hd_slice value)
{
    const struct hd_item_rec item = {
        .principal = principal, .ns = HD_S("n"), .key = HD_S("k"), .value = value};

    APPLY(w, hd_item_put(&batch, &item));
}

static void bytes_come_back_when_something_is_deleted(void **state)
{
    struct app_world *w = world_open("memory:", NULL);
    struct hd_limits *limits = make(0, 0, 0, 50);
    int retry = -1;

    (void)state;
    assert_int_equal(hd_limits_room(limits, w->app.store, ADA, &retry, &w->fault), 0);
    assert_int_equal(retry, 0);
    put_item(w, ADA, HD_S("{\"text\": \"fifty bytes and some more are in this value\"}"));
    hd_limits_freed(limits, ADA);
    assert_int_equal(hd_limits_room(limits, w->app.store, ADA, &retry, &w->fault), 0);
    assert_true(retry > 0);
    assert_int_equal(hd_limits_room(limits, w->app.store, BOB, &retry, &w->fault), 0);
    assert_int_equal(retry, 0);
    APPLY(w, hd_item_delete(&batch, ADA, HD_S("n"), HD_S("k")));
    hd_limits_freed(limits, ADA);
    assert_int_equal(hd_limits_room(limits, w->app.store, ADA, &retry, &w->fault), 0);
    assert_int_equal(retry, 0);
    hd_limits_destroy(limits);
    world_close(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_minute_of_requests_may_come_at_once),
        cmocka_unit_test(released_capacity_can_be_taken_again),
        cmocka_unit_test(earlier_admissions_count_beyond_the_limit),
        cmocka_unit_test(without_limit_or_principal_nothing_is_refused),
        cmocka_unit_test(the_idle_are_forgotten),
        cmocka_unit_test(bytes_come_back_when_something_is_deleted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
