#include "schedule/cron_schedule.h"

#include <string.h>

#include "base/calendar.h"
#include "tests/unit/check.h"
#include "tests/unit/table_lines.h"

static int64_t utc(int64_t year, int month, int day, int hour, int minute)
{
    return hd_days_from_date(year, month, day) * 86400 + hour * 3600 + minute * 60;
}

static struct hd_schedule parse(const char *text)
{
    struct hd_schedule schedule;
    struct heddle_error fault = {0};

    if (hd_schedule_parse(&schedule, hd_slice_cstr(text), &fault) != 0)
        fail_msg("%s: %s", text, fault.text);
    return schedule;
}

static int64_t next_in(const char *text, const struct hd_tz *tz, int64_t after)
{
    struct hd_schedule schedule = parse(text);
    int64_t next = 0;

    assert_err(hd_schedule_next(&schedule, tz, after * 1000000, &next, NULL), 0);
    assert_int_equal(next % 1000000, 0);
    return next / 1000000;
}

/* ---- reading ----------------------------------------------------------- */

static void fields_become_sets(void **state)
{
    static const struct {
        const char *text;
        uint64_t minutes;
        uint32_t hours, days;
        unsigned months, weekdays;
    } cases[] = {
        {"* * * * *", 0xfffffffffffffff, 0xffffff, 0xfffffffe, 0x1ffe, 0x7f},
        {"0 0 1 1 0", 1, 1, 2, 2, 1},
        {"59 23 31 12 7", UINT64_C(1) << 59, 1 << 23, 1u << 31, 1 << 12, 1},
        {"*/20 */8 */10 */4 */3", 0x10000100001, 0x10101, 0x80200802, 0x222, 0x49},
        {"5/15 20/2 25/3 10/1 4/2", 0x4000800100020, 0x500000, 0x92000000, 0x1c00, 0x50},
        {"1,2,2,1 1-3,5 1 JAN,mar-May 1", 6, 0x2e, 2, 0x3a, 2},
        {"0 22-2 1 NOV-feb fri-MON", 1, 0xc00007, 2, 0x1806, 0x63},
        {"0 0 * * 5-7", 1, 1, 0xfffffffe, 0x1ffe, 0x61},
        {"0 0 * * 0-7", 1, 1, 0xfffffffe, 0x1ffe, 0x7f},
        {"0 0 * * 7-2", 1, 1, 0xfffffffe, 0x1ffe, 0x07},
        {"0 0 * * 7-7", 1, 1, 0xfffffffe, 0x1ffe, 0x01},
        {"0 0 * * 7/3", 1, 1, 0xfffffffe, 0x1ffe, 0x49},
        {"0 0 * * sat-sun", 1, 1, 0xfffffffe, 0x1ffe, 0x41},
        {"50-10/5 0 ? * ?", UINT64_C(33) << 50 | 0x421, 1, 0xfffffffe, 0x1ffe, 0x7f},
        {" \t00  07 \n08 09 * ", 1, 0x80, 0x100, 0x200, 0x7f},
        {"*/60 */24 * */12 */7", 1, 1, 0xfffffffe, 2, 1},
        {"@yearly", 1, 1, 2, 2, 0x7f},
        {"@Annually", 1, 1, 2, 2, 0x7f},
        {"@monthly", 1, 1, 2, 0x1ffe, 0x7f},
        {" @weekly ", 1, 1, 0xfffffffe, 0x1ffe, 1},
        {"@daily", 1, 1, 0xfffffffe, 0x1ffe, 0x7f},
        {"@midnight", 1, 1, 0xfffffffe, 0x1ffe, 0x7f},
        {"@hourly", 1, 0xffffff, 0xfffffffe, 0x1ffe, 0x7f},
    };

    (void)state;
    for (size_t i = 0; i < HD_COUNT(cases); i++) {
        struct hd_schedule s = parse(cases[i].text);

        if (s.minutes != cases[i].minutes || s.hours != cases[i].hours || s.days != cases[i].days ||
            s.months != cases[i].months || s.weekdays != cases[i].weekdays)
            fail_msg("%s: %llx %x %x %x %x", cases[i].text, (unsigned long long)s.minutes, s.hours,
                     s.days, s.months, s.weekdays);
    }
}

static void errors_name_the_invalid_field(void **state)
{
    static const struct {
        const char *text;
        const char *says;
    } cases[] = {
        {"61 * * * *", "schedule: minute 61 is not in 0-59"},
        {"60 * * * *", "schedule: minute 60 is not in 0-59"},
        {"0 24 * * *", "schedule: hour 24 is not in 0-23"},
        {"0 0 0 * *", "schedule: day 0 is not in 1-31"},
        {"0 0 1 13 *", "schedule: month 13 is not in 1-12"},
        {"0 0 1 0 *", "schedule: month 0 is not in 1-12"},
        {"0 0 * * 8", "schedule: weekday 8 is not in 0-7"},
        {"99999999999999999999 * * * *", "is not in 0-59"},
        {"1-61 * * * *", "schedule: minute 61 is not in 0-59"},
        {"a * * * *", "schedule: minute \"a\" is not a number"},
        {"-1 * * * *", "schedule: a value of the minute is missing"},
        {"1- * * * *", "schedule: a value of the minute is missing"},
        {"1-2-3 * * * *", "schedule: minute \"2-3\" is not a number"},
        {"0 0 * FOO *", "schedule: month \"FOO\" is not a number or a name"},
        {"0 0 * * JAN", "schedule: weekday \"JAN\" is not a number or a name"},
        {"MON * * * *", "schedule: minute \"MON\" is not a number"},
        {"1,,2 * * * *", "schedule: a value of the minute is missing"},
        {"1, * * * *", "schedule: a value of the minute is missing"},
        {", * * * *", "schedule: a value of the minute is missing"},
        {"*/0 * * * *", "schedule: step \"0\" of the minute is not in 1-60"},
        {"*/61 * * * *", "schedule: step \"61\" of the minute is not in 1-60"},
        {"*/ * * * *", "schedule: step \"\" of the minute is not in 1-60"},
        {"*/-5 * * * *", "schedule: step \"-5\" of the minute is not in 1-60"},
        {"*/5/5 * * * *", "schedule: step \"5/5\" of the minute is not in 1-60"},
        {"*/99999999999999 * * * *", "of the minute is not in 1-60"},
        {"? * * * *", "schedule: minute \"?\" is not a number"},
        {"* * * *", "schedule: 4 fields instead of 5 (minute hour day month weekday)"},
        {"5", "schedule: 1 field instead of 5"},
        {"", "schedule: 0 fields instead of 5"},
        {" \t ", "schedule: 0 fields instead of 5"},
        {"* * * * * * *", "schedule: 7 fields instead of 5"},
        {"* * * * * 60", "schedule: second 60 is not in 0-59"},
        {"@reboot", "schedule: \"@reboot\" is not one of @yearly"},
        {"@", "schedule: \"@\" is not one of"},
        {"0 0 30 2 *", "schedule: never fires"},
        {"0 0 31 2,4,6,9,11 *", "schedule: never fires"},
        {"0 0 31 APR ?", "schedule: never fires"},
    };

    (void)state;
    for (size_t i = 0; i < HD_COUNT(cases); i++) {
        struct hd_schedule schedule = {.days = 77};
        struct heddle_error fault = {0};

        if (hd_schedule_parse(&schedule, hd_slice_cstr(cases[i].text), &fault) != HD_EINVAL ||
            !strstr(fault.text, cases[i].says))
            fail_msg("%s: %s", cases[i].text, fault.text);
        assert_int_equal(schedule.days, 77);
    }
}

static void a_text_may_not_be_endless(void **state)
{
    char text[HD_SCHEDULE_MAX_TEXT + 1];
    struct hd_schedule schedule;
    struct heddle_error fault = {0};

    (void)state;
    memset(text, ' ', sizeof(text));
    assert_err(hd_schedule_parse(&schedule, hd_slice(text, sizeof(text)), &fault), HD_EINVAL);
    assert_string_equal(fault.text, "schedule: longer than 1024 characters");
}

/* ---- firing ------------------------------------------------------------ */

static void the_next_firing_is_strictly_later(void **state)
{
    struct hd_schedule schedule = parse("* * * * *");
    int64_t next;

    (void)state;
    assert_err(hd_schedule_next(&schedule, NULL, 0, &next, NULL), 0);
    assert_int_equal(next, 60000000);
    assert_err(hd_schedule_next(&schedule, NULL, -1, &next, NULL), 0);
    assert_int_equal(next, 0);
    assert_err(hd_schedule_next(&schedule, NULL, 59999999, &next, NULL), 0);
    assert_int_equal(next, 60000000);
    assert_err(hd_schedule_next(&schedule, NULL, 60000001, &next, NULL), 0);
    assert_int_equal(next, 120000000);
}

static void days_follow_the_or_rule(void **state)
{
    int64_t new_year = utc(2026, 1, 1, 0, 0); /* a Thursday */

    (void)state;
    assert_int_equal(next_in("0 0 13 * *", NULL, new_year), utc(2026, 1, 13, 0, 0));
    assert_int_equal(next_in("0 0 * * 5", NULL, new_year), utc(2026, 1, 2, 0, 0));
    assert_int_equal(next_in("0 0 3 * 5", NULL, utc(2026, 1, 2, 0, 0)), utc(2026, 1, 3, 0, 0));
    assert_int_equal(next_in("0 0 3 * 5", NULL, utc(2026, 1, 3, 0, 0)), utc(2026, 1, 9, 0, 0));
    assert_int_equal(next_in("0 0 */1 * 1", NULL, new_year), utc(2026, 1, 5, 0, 0));
    assert_int_equal(next_in("0 0 1-31 * 1", NULL, new_year), utc(2026, 1, 2, 0, 0));
    /* The date does not exist, but Mondays do. */
    assert_int_equal(next_in("0 0 31 4 1", NULL, new_year), utc(2026, 4, 6, 0, 0));
    assert_int_equal(next_in("0 0 L * *", NULL, utc(2026, 1, 31, 0, 0)), utc(2026, 2, 28, 0, 0));
    assert_int_equal(next_in("0 0 15,l 2 *", NULL, utc(2028, 2, 15, 0, 0)), utc(2028, 2, 29, 0, 0));
}

static void leap_days_are_found_over_eight_years(void **state)
{
    (void)state;
    assert_int_equal(next_in("0 0 29 2 *", NULL, utc(2096, 2, 29, 0, 0)), utc(2104, 2, 29, 0, 0));
    assert_int_equal(next_in("0 0 29 2 *", NULL, utc(2000, 2, 29, 0, 0)), utc(2004, 2, 29, 0, 0));
}

static void time_has_an_end(void **state)
{
    struct hd_schedule schedule = parse("0 0 29 2 *");
    static const int64_t times[] = {INT64_MIN, INT64_MAX, INT64_C(253402300799000000),
                                    INT64_C(253400000000000000)};

    (void)state;
    for (size_t i = 0; i < HD_COUNT(times); i++) {
        struct heddle_error fault = {0};
        int64_t next = 7;

        assert_err(hd_schedule_next(&schedule, NULL, times[i], &next, &fault), HD_ENOTFOUND);
        assert_int_equal(next, 7);
        assert_non_null(strstr(fault.text, "schedule: "));
    }
}

static void check_firing(char **field)
{
    int64_t after = strtoll(field[2], NULL, 10), next;
    struct heddle_error fault = {0};
    struct hd_tz *tz;

    if (hd_tz_open(&tz, NULL, hd_slice_cstr(field[1]), &fault) != 0)
        fail_msg("%s: %s", field[1], fault.text);
    next = next_in(field[0], tz, after);
    if (next != strtoll(field[3], NULL, 10))
        fail_msg("%s in %s after %s: %lld instead of %s", field[0], field[1], field[2],
                 (long long)next, field[3]);
    hd_tz_close(tz);
}

static void firings_are_those_of_the_table(void **state)
{
    (void)state;
    assert_true(table_lines("schedules.tsv", 4, check_firing) > 500);
}

/* ---- where the clocks change ------------------------------------------- */

/* Berlin 2024: on 31 March 02:00 became 03:00 (01:00 UTC), on 27 October 03:00 became 02:00. */
static void check_row(const char *text, int64_t after, const int64_t *expected, size_t count)
{
    struct hd_tz *tz;

    assert_err(hd_tz_open(&tz, NULL, HD_S("Europe/Berlin"), NULL), 0);
    for (size_t i = 0; i < count; i++) {
        int64_t next = next_in(text, tz, after);

        if (next != expected[i])
            fail_msg("%s, number %zu: %lld instead of %lld", text, i, (long long)next,
                     (long long)expected[i]);
        after = next;
    }
    hd_tz_close(tz);
}

#define CHECK_ROW(text, after, ...)                        \
    check_row(text, after, (const int64_t[]){__VA_ARGS__}, \
              sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t))

static void skipped_times_fire_once_at_the_jump(void **state)
{
    int64_t eve = utc(2024, 3, 30, 12, 0);

    (void)state;
    CHECK_ROW("30 2 * * *", eve, utc(2024, 3, 31, 1, 0), utc(2024, 4, 1, 0, 30));
    CHECK_ROW("15,45 2 * * *", eve, utc(2024, 3, 31, 1, 0), utc(2024, 4, 1, 0, 15));
    CHECK_ROW("0 2,3 * * *", eve, utc(2024, 3, 31, 1, 0), utc(2024, 4, 1, 0, 0));
    CHECK_ROW("30 1-3 * * *", eve, utc(2024, 3, 31, 0, 30), utc(2024, 3, 31, 1, 0),
              utc(2024, 3, 31, 1, 30), utc(2024, 3, 31, 23, 30));
}

static void every_hour_leaves_skipped_times_out(void **state)
{
    (void)state;
    CHECK_ROW("30 * * * *", utc(2024, 3, 31, 0, 0), utc(2024, 3, 31, 0, 30),
              utc(2024, 3, 31, 1, 30), utc(2024, 3, 31, 2, 30));
    CHECK_ROW("*/30 * * * *", utc(2024, 3, 31, 0, 30), utc(2024, 3, 31, 1, 0),
              utc(2024, 3, 31, 1, 30));
}

static void doubled_times_fire_the_first_time_only(void **state)
{
    (void)state;
    CHECK_ROW("30 2 * * *", utc(2024, 10, 26, 12, 0), utc(2024, 10, 27, 0, 30),
              utc(2024, 10, 28, 1, 30));
    CHECK_ROW("0 2,3 * * *", utc(2024, 10, 26, 12, 0), utc(2024, 10, 27, 0, 0),
              utc(2024, 10, 27, 2, 0));
    /* The start time is in the second of the two hours. */
    CHECK_ROW("30 2 * * *", utc(2024, 10, 27, 1, 10), utc(2024, 10, 28, 1, 30));
}

static void every_hour_fires_in_both_doubled_hours(void **state)
{
    (void)state;
    CHECK_ROW("30 * * * *", utc(2024, 10, 27, 0, 0), utc(2024, 10, 27, 0, 30),
              utc(2024, 10, 27, 1, 30), utc(2024, 10, 27, 2, 30));
}

/* ---- seconds ----------------------------------------------------------- */

static void a_sixth_field_names_seconds(void **state)
{
    int64_t noon = utc(2026, 11, 16, 12, 0);

    (void)state;
    assert_int_equal(next_in("* * * * *", NULL, noon + 1), noon + 60);
    assert_int_equal(next_in("* * * * * 30", NULL, noon), noon + 30);
    assert_int_equal(next_in("* * * * * 30", NULL, noon + 30), noon + 90);
    assert_int_equal(next_in("* * * * * */20", NULL, noon + 19), noon + 20);
    assert_int_equal(next_in("* * * * * */20", NULL, noon + 40), noon + 60);
    assert_int_equal(next_in("0 12 * * * 5,59", NULL, noon), noon + 5);
    assert_int_equal(next_in("0 12 * * * 5,59", NULL, noon + 5), noon + 59);
    assert_int_equal(next_in("0 12 * * * 5,59", NULL, noon + 59), noon + 86400 + 5);
    /* The fields in front of it keep their meaning: every second of the first minute. */
    assert_int_equal(next_in("0 * * * * *", NULL, noon + 58), noon + 59);
    assert_int_equal(next_in("0 * * * * *", NULL, noon + 59), noon + 3600);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sixth_field_names_seconds),
        cmocka_unit_test(fields_become_sets),
        cmocka_unit_test(errors_name_the_invalid_field),
        cmocka_unit_test(a_text_may_not_be_endless),
        cmocka_unit_test(the_next_firing_is_strictly_later),
        cmocka_unit_test(days_follow_the_or_rule),
        cmocka_unit_test(leap_days_are_found_over_eight_years),
        cmocka_unit_test(time_has_an_end),
        cmocka_unit_test(firings_are_those_of_the_table),
        cmocka_unit_test(skipped_times_fire_once_at_the_jump),
        cmocka_unit_test(every_hour_leaves_skipped_times_out),
        cmocka_unit_test(doubled_times_fire_the_first_time_only),
        cmocka_unit_test(every_hour_fires_in_both_doubled_hours),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
