/* Observation of other servers, with injected times. */
#include "cluster/observation.h"

#include "tests/unit/check.h"

#define SECOND INT64_C(1000000)
#define LEASE (10 * SECOND)

static struct hd_observation observation;

static int set_up(void **state)
{
    (void)state;
    hd_observation_init(&observation, LEASE);
    return 0;
}

/* A look at the rows of two servers, "a" and "b", that takes a millisecond. */
static void look_at(int64_t now, int64_t beat_a, int64_t beat_b)
{
    hd_observation_begin(&observation, now, now + 1000);
    hd_observation_note(&observation, "a", 1, beat_a);
    hd_observation_note(&observation, "b", 2, beat_b);
    hd_observation_end(&observation);
}

static int64_t silence_of_a(void)
{
    return hd_observation_silence(&observation, "a");
}

static void silence_is_measured_from_the_end_of_the_first_look(void **state)
{
    (void)state;
    look_at(SECOND, 7, 1);
    assert_int_equal(silence_of_a(), 0);
    for (int i = 2; i <= 12; i++)
        look_at(i * SECOND, 7, i);
    assert_int_equal(silence_of_a(), 11 * SECOND - 1000);
    assert_int_equal(hd_observation_silence(&observation, "b"), 0);
    assert_false(hd_observation_has_changed(&observation, "a"));
    assert_true(hd_observation_has_changed(&observation, "b"));
}

static void each_beat_ends_silence(void **state)
{
    (void)state;
    for (int i = 1; i <= 9; i++)
        look_at(i * SECOND, 7, 1);
    assert_int_equal(silence_of_a(), 8 * SECOND - 1000);
    look_at(10 * SECOND, 6, 1); /* any other number */
    assert_int_equal(silence_of_a(), 0);
    look_at(11 * SECOND, 6, 1);
    assert_int_equal(silence_of_a(), SECOND - 1000);
}

static void a_failed_look_starts_the_observation_again(void **state)
{
    (void)state;
    for (int i = 1; i <= 9; i++)
        look_at(i * SECOND, 7, 1);
    hd_observation_restart(&observation);
    look_at(10 * SECOND, 7, 1);
    assert_int_equal(silence_of_a(), 0);
    look_at(11 * SECOND, 7, 1);
    assert_int_equal(silence_of_a(), SECOND - 1000);
}

static void a_slow_look_starts_the_observation_again(void **state)
{
    (void)state;
    for (int i = 1; i <= 9; i++)
        look_at(i * SECOND, 7, 1);
    hd_observation_begin(&observation, 10 * SECOND, 14 * SECOND);
    hd_observation_note(&observation, "a", 1, 7);
    hd_observation_end(&observation);
    assert_int_equal(silence_of_a(), 0);
    look_at(15 * SECOND, 7, 1);
    assert_int_equal(silence_of_a(), SECOND);
}

/* The observer was paused, and with it perhaps the database or the whole machine. */
static void a_long_time_without_a_look_starts_the_observation_again(void **state)
{
    (void)state;
    look_at(1 * SECOND, 7, 1);
    look_at(100 * SECOND, 7, 1);
    assert_int_equal(silence_of_a(), 0);
    for (int i = 101; i <= 111; i++)
        look_at(i * SECOND, 7, 1);
    assert_true(silence_of_a() >= LEASE);
}

static void another_token_is_another_server(void **state)
{
    (void)state;
    for (int i = 1; i <= 9; i++)
        look_at(i * SECOND, 7, 1);
    hd_observation_begin(&observation, 10 * SECOND, 10 * SECOND);
    hd_observation_note(&observation, "a", 99, 7);
    hd_observation_end(&observation);
    assert_int_equal(silence_of_a(), 0);
    assert_false(hd_observation_has_changed(&observation, "a"));
}

static void a_server_that_was_not_found_is_forgotten(void **state)
{
    (void)state;
    look_at(1 * SECOND, 7, 1);
    look_at(2 * SECOND, 7, 1);
    hd_observation_begin(&observation, 3 * SECOND, 3 * SECOND);
    hd_observation_note(&observation, "b", 2, 1);
    hd_observation_end(&observation);
    assert_int_equal(silence_of_a(), 0);
    assert_int_equal(hd_observation_silence(&observation, "b"), 2 * SECOND - 1000);
    look_at(4 * SECOND, 7, 1);
    assert_int_equal(silence_of_a(), 0);
}

static void unknown_and_surplus_servers_are_never_silent(void **state)
{
    char slot[HD_UUID_SIZE];

    (void)state;
    assert_int_equal(hd_observation_silence(&observation, "none"), 0);
    for (int look = 1; look <= 2; look++) {
        hd_observation_begin(&observation, look * SECOND, look * SECOND);
        for (int i = 0; i < 3 * HD_CLUSTER_MAX_SERVERS; i++) {
            (void)snprintf(slot, sizeof(slot), "%d", i);
            hd_observation_note(&observation, slot, i, 1);
        }
        hd_observation_end(&observation);
    }
    assert_int_equal(hd_observation_silence(&observation, "0"), SECOND);
    assert_int_equal(hd_observation_silence(&observation, slot), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(silence_is_measured_from_the_end_of_the_first_look, set_up),
        cmocka_unit_test_setup(each_beat_ends_silence, set_up),
        cmocka_unit_test_setup(a_failed_look_starts_the_observation_again, set_up),
        cmocka_unit_test_setup(a_slow_look_starts_the_observation_again, set_up),
        cmocka_unit_test_setup(a_long_time_without_a_look_starts_the_observation_again, set_up),
        cmocka_unit_test_setup(another_token_is_another_server, set_up),
        cmocka_unit_test_setup(a_server_that_was_not_found_is_forgotten, set_up),
        cmocka_unit_test_setup(unknown_and_surplus_servers_are_never_silent, set_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
