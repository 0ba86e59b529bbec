#include "base/clock.h"

#include <time.h>

#include "tests/unit/check.h"

static void times_have_the_documented_form(void **state)
{
    static const struct {
        int64_t us;
        const char *expected;
    } cases[] = {
        {0, "1970-01-01T00:00:00.000000+00:00"},
        {INT64_C(1769862896123456), "2026-01-31T12:34:56.123456+00:00"},
        {INT64_C(951782400000000), "2000-02-29T00:00:00.000000+00:00"},
        {INT64_C(4102444799999999), "2099-12-31T23:59:59.999999+00:00"},
        {-1, "1969-12-31T23:59:59.999999+00:00"},
        {INT64_C(-1000000), "1969-12-31T23:59:59.000000+00:00"},
        {INT64_C(253402300799999999), "9999-12-31T23:59:59.999999+00:00"},
    };

    (void)state;
    for (size_t i = 0; i < HD_COUNT(cases); i++) {
        char out[33];

        hd_clock_format_iso(cases[i].us, out);
        assert_string_equal(out, cases[i].expected);
    }
}

static void no_time_overflows_the_text(void **state)
{
    static const int64_t times[] = {INT64_MIN, INT64_MIN / 2, INT64_MAX / 2, INT64_MAX};

    (void)state;
    for (size_t i = 0; i < HD_COUNT(times); i++) {
        char out[33];

        hd_clock_format_iso(times[i], out);
        assert_int_equal(strlen(out), 32);
        assert_int_equal(strspn(out, "0123456789"), 4);
    }
}

static void now_is_the_time_of_the_machine(void **state)
{
    int64_t before = (int64_t)time(NULL) - 1, now = hd_clock_now_us() / 1000000;

    (void)state;
    assert_true(now >= before);
    assert_true(now <= (int64_t)time(NULL) + 1);
}

static void tests_can_set_the_clock(void **state)
{
    (void)state;
    hd_clock_set_for_test(12345);
    assert_int_equal(hd_clock_now_us(), 12345);
    assert_int_equal(hd_clock_now_us(), 12345);
    hd_clock_set_for_test(0);
    assert_true(hd_clock_now_us() > 12345);
}

static void sleep_takes_at_least_its_time(void **state)
{
    int64_t before = hd_clock_monotonic_us();

    (void)state;
    hd_clock_sleep_us(20000);
    assert_true(hd_clock_monotonic_us() - before >= 20000);
    before = hd_clock_monotonic_us();
    hd_clock_sleep_us(0);
    hd_clock_sleep_us(-5000000);
    assert_true(hd_clock_monotonic_us() - before < 5000000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(times_have_the_documented_form),
        cmocka_unit_test(no_time_overflows_the_text),
        cmocka_unit_test(now_is_the_time_of_the_machine),
        cmocka_unit_test(tests_can_set_the_clock),
        cmocka_unit_test(sleep_takes_at_least_its_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
