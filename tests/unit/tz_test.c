#include "schedule/tz.h"

#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/calendar.h"
#include "schedule/tz_internal.h"
#include "tests/unit/check.h"
#include "tests/unit/table_lines.h"

static void days_and_dates_are_the_inverse_of_each_other(void **state)
{
    (void)state;
    assert_int_equal(hd_days_from_date(1970, 1, 1), 0);
    assert_int_equal(hd_days_from_date(2000, 3, 1), 11017);
    assert_int_equal(hd_days_from_date(1, 1, 1), -719162);
    assert_int_equal(hd_weekday(0), 4);
    assert_int_equal(hd_weekday(-5), 6);
    for (int64_t day = -1000000; day < 3000000; day += 13) {
        struct hd_date date = hd_date_from_days(day);

        assert_in_range(date.month, 1, 12);
        assert_in_range(date.day, 1, hd_days_in_month(date.year, date.month));
        assert_int_equal(hd_days_from_date(date.year, date.month, date.day), day);
    }
}

/* ---- the system's zones ------------------------------------------------ */

static void check_offset(char **field)
{
    int64_t at = strtoll(field[1], NULL, 10);
    struct heddle_error fault = {0};
    struct hd_tz_span span;
    struct hd_tz *tz;

    if (hd_tz_open(&tz, NULL, hd_slice_cstr(field[0]), &fault) != 0)
        fail_msg("%s: %s", field[0], fault.text);
    span = hd_tz_span(tz, at);
    if (span.offset != strtol(field[2], NULL, 10))
        fail_msg("%s at %s: %d instead of %s", field[0], field[1], span.offset, field[2]);
    assert_true(span.begin <= at && at < span.end);
    hd_tz_close(tz);
}

static void offsets_are_those_of_the_table(void **state)
{
    (void)state;
    assert_true(table_lines("zones.tsv", 3, check_offset) > 500);
}

static void spans_follow_each_other(void **state)
{
    static const char *const names[] = {"Europe/Berlin", "America/Sao_Paulo", "Asia/Tokyo",
                                        "Africa/Casablanca", "Australia/Lord_Howe"};

    (void)state;
    for (size_t i = 0; i < HD_COUNT(names); i++) {
        int64_t at = -HD_TZ_FOREVER, end = INT64_C(7258118400); /* 2200 */
        struct hd_tz_span before = {0};
        struct hd_tz *tz;

        assert_err(hd_tz_open(&tz, NULL, hd_slice_cstr(names[i]), NULL), 0);
        while (at < end) {
            struct hd_tz_span span = hd_tz_span(tz, at);

            assert_int_equal(span.begin, at);
            assert_true(span.end > at);
            assert_int_equal(span.offset_before,
                             at == -HD_TZ_FOREVER ? span.offset : before.offset);
            assert_memory_equal(&(struct hd_tz_span[]){hd_tz_span(tz, span.end - 1)}, &span,
                                sizeof(span));
            before = span;
            at = span.end;
        }
        hd_tz_close(tz);
    }
}

static void utc_needs_no_file(void **state)
{
    static const char *const names[] = {"", "UTC", "Etc/UTC"};
    struct hd_tz *tz = (struct hd_tz *)&names;

    (void)state;
    for (size_t i = 0; i < HD_COUNT(names); i++) {
        assert_err(hd_tz_open(&tz, "/nonexistent", hd_slice_cstr(names[i]), NULL), 0);
        assert_null(tz);
    }
    assert_int_equal(hd_tz_span(NULL, 5).offset, 0);
    assert_int_equal(hd_tz_span(NULL, 5).end, HD_TZ_FOREVER);
}

static void names_that_are_no_zones_are_refused(void **state)
{
    static const char *const names[] = {
        "Europe/Berln",
        "../../../etc/passwd",
        "/etc/passwd",
        "Europe/../Europe/Berlin",
        "Europe",
        "Europe/",
        "Europe//Berlin",
        ".",
        "zone.tab",
        "Europe/Berlin\n",
        "./UTC",
        "Europe/Berlin/x",
        " ",
        "CET-1CEST",
    };
    char text[HD_TZ_MAX_NAME + 2];

    (void)state;
    for (size_t i = 0; i < HD_COUNT(names); i++) {
        struct heddle_error fault = {0};
        struct hd_tz *tz;

        assert_err(hd_tz_open(&tz, NULL, hd_slice_cstr(names[i]), &fault), HD_EINVAL);
        assert_non_null(strstr(fault.text, "is not a time zone such as"));
    }
    memset(text, 'a', sizeof(text));
    assert_err(hd_tz_open(&(struct hd_tz *){0}, NULL, hd_slice(text, sizeof(text)), NULL),
               HD_EINVAL);
}

static void without_zone_files_the_error_names_the_package(void **state)
{
    struct heddle_error fault = {0};
    struct hd_tz *tz;

    (void)state;
    assert_err(hd_tz_open(&tz, "/nonexistent", HD_S("Europe/Berlin"), &fault), HD_ENOTFOUND);
    assert_non_null(strstr(fault.text, "install the package tzdata"));
}

static int open_berlin(void *arg)
{
    struct hd_tz *tz = NULL;
    int err = hd_tz_open(&tz, arg, HD_S("Europe/Berlin"), NULL);

    hd_tz_close(tz);
    return err;
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    assert_true(check_every_allocation(open_berlin, NULL) > 0);
}

/* ---- files ------------------------------------------------------------- */

static void put(struct hd_buf *out, int64_t value, int bytes)
{
    for (int i = bytes - 1; i >= 0; i--)
        assert_err(hd_buf_append_byte(out, (uint8_t)((uint64_t)value >> (8 * i))), 0);
}

static void put_head(struct hd_buf *out, char version, uint32_t leaps, uint32_t times,
                     uint32_t types)
{
    assert_err(hd_buf_append(out, "TZif", 4), 0);
    put(out, version, 1);
    for (int i = 0; i < 15; i++)
        put(out, 0, 1);
    put(out, 0, 4);
    put(out, 0, 4);
    put(out, leaps, 4);
    put(out, times, 4);
    put(out, types, 4);
    put(out, 4, 4);
}

/* One change, at `at`, from offset 0 to `offset`. */
static void make_file(struct hd_buf *out, char version, uint32_t leaps, int64_t at, int32_t offset,
                      uint8_t index, const char *rule)
{
    hd_buf_reset(out);
    put_head(out, version, 0, 0, 0);
    put(out, 0, 4);
    put_head(out, version, leaps, 1, 2);
    put(out, at, 8);
    put(out, index, 1);
    put(out, 0, 6);
    put(out, offset, 4);
    put(out, 0, 2);
    put(out, 0, 4);
    assert_err(hd_buf_append_slice(out, hd_slice_cstr(rule)), 0);
}

static void files_are_read(void **state)
{
    struct hd_buf file;
    struct hd_tz *tz;

    (void)state;
    hd_buf_init(&file, 4096);
    make_file(&file, '2', 0, 1000, -3600, 1, "\n\n");
    assert_err(hd_tz_parse(&tz, hd_buf_slice(&file), NULL), 0);
    assert_int_equal(hd_tz_span(tz, 999).offset, 0);
    assert_int_equal(hd_tz_span(tz, 999).end, 1000);
    assert_int_equal(hd_tz_span(tz, 1000).offset, -3600);
    assert_int_equal(hd_tz_span(tz, 1000).offset_before, 0);
    assert_int_equal(hd_tz_span(tz, 1000).end, HD_TZ_FOREVER);
    hd_tz_close(tz);

    make_file(&file, '3', 0, 1000, -3600, 1, "\nXXX1YYY,M3.2.0,M11.1.0\n");
    assert_err(hd_tz_parse(&tz, hd_buf_slice(&file), NULL), 0);
    assert_int_equal(hd_tz_span(tz, 1000).begin, 1000);
    assert_int_equal(hd_tz_span(tz, 1000).offset, -3600);
    assert_int_equal(hd_tz_span(tz, 1720000000).offset, 0);
    hd_tz_close(tz);
    hd_buf_fini(&file);
}

static void damaged_files_are_refused(void **state)
{
    struct hd_buf file;
    struct hd_tz *tz;

    (void)state;
    hd_buf_init(&file, 4096);
    make_file(&file, '2', 0, 1000, -3600, 1, "\nCET-1\n");
    assert_err(hd_tz_parse(&tz, hd_buf_slice(&file), NULL), 0);
    hd_tz_close(tz);
    for (size_t len = 0; len < file.len; len++)
        assert_err(hd_tz_parse(&tz, hd_slice(file.ptr, len), NULL), HD_ECORRUPT);
    make_file(&file, '\0', 0, 1000, 0, 1, "\n\n");
    assert_err(hd_tz_parse(&tz, hd_buf_slice(&file), NULL), HD_ECORRUPT);
    make_file(&file, '2', 1, 1000, 0, 1, "123456789012\n\n");
    assert_err(hd_tz_parse(&tz, hd_buf_slice(&file), NULL), HD_ECORRUPT);
    make_file(&file, '2', 0, INT64_MAX, 0, 1, "\n\n");
    assert_err(hd_tz_parse(&tz, hd_buf_slice(&file), NULL), HD_ECORRUPT);
    make_file(&file, '2', 0, 1000, 93600, 1, "\n\n");
    assert_err(hd_tz_parse(&tz, hd_buf_slice(&file), NULL), HD_ECORRUPT);
    make_file(&file, '2', 0, 1000, 0, 2, "\n\n");
    assert_err(hd_tz_parse(&tz, hd_buf_slice(&file), NULL), HD_ECORRUPT);
    make_file(&file, '2', 0, 1000, 0, 1, "\nnonsense\n");
    assert_err(hd_tz_parse(&tz, hd_buf_slice(&file), NULL), HD_ECORRUPT);
    hd_buf_fini(&file);
}

/* ---- rules ------------------------------------------------------------- */

static void rules_are_followed(void **state)
{
    static const struct {
        const char *rule;
        int64_t begin; /* of a span */
        int32_t before, after;
    } cases[] = {
        /* 2024: Berlin, New York, Sydney, Dublin (winter is the exception), Lord Howe, Nuuk */
        {"CET-1CEST,M3.5.0,M10.5.0/3", 1711846800, 3600, 7200},
        {"CET-1CEST,M3.5.0,M10.5.0/3", 1729990800, 7200, 3600},
        {"EST5EDT,M3.2.0,M11.1.0", 1710054000, -18000, -14400},
        {"AEST-10AEDT,M10.1.0,M4.1.0/3", 1712419200, 39600, 36000},
        {"IST-1GMT0,M10.5.0,M3.5.0/1", 1711846800, 0, 3600},
        {"<+1030>-10:30<+11>-11,M10.1.0,M4.1.0", 1712415600, 39600, 37800},
        {"<-02>2<-01>,M3.5.0/-1,M10.5.0/0", 1711846800, -7200, -3600},
        /* Days by number: 1 March 2024 (J60, and 60 counted from 0), 31 December at 24:00 */
        {"AAA0BBB,J60/0,J365/24", 1709251200, 0, 3600},
        {"AAA0BBB,60/0,J365/24", 1709251200, 0, 3600},
        {"AAA0BBB,59/0,J365/24", 1709164800, 0, 3600},
        {"AAA0BBB,J60/0,J365/25", 1704067200, 3600, 0},
    };

    (void)state;
    for (size_t i = 0; i < HD_COUNT(cases); i++) {
        struct hd_tz_rule rule;
        struct hd_tz_span span;

        assert_err(hd_tz_rule_parse(&rule, hd_slice_cstr(cases[i].rule)), 0);
        span = hd_tz_rule_span(&rule, cases[i].begin);
        if (span.begin != cases[i].begin || span.offset != cases[i].after ||
            span.offset_before != cases[i].before)
            fail_msg("%s: from %lld, %d after %d", cases[i].rule, (long long)span.begin,
                     span.offset, span.offset_before);
        assert_int_equal(hd_tz_rule_span(&rule, cases[i].begin - 1).offset, cases[i].before);
        assert_int_equal(hd_tz_rule_span(&rule, cases[i].begin - 1).end, cases[i].begin);
    }
}

static void daylight_saving_time_all_year_is_one_offset(void **state)
{
    struct hd_tz_rule rule;

    (void)state;
    assert_err(hd_tz_rule_parse(&rule, HD_S("XXX3EDT4,0/0,J365/23")), 0);
    for (int64_t at = 1600000000; at < 1700000000; at += 86400 * 7) {
        assert_int_equal(hd_tz_rule_span(&rule, at).offset, -14400);
        assert_int_equal(hd_tz_rule_span(&rule, at).offset_before, -14400);
    }
}

static void bad_rules_are_refused(void **state)
{
    static const char *const rules[] = {
        "",
        "CE-1",
        "CET",
        "CET-25",
        "CET-1:60",
        "CET-1CEST",
        "CET-1CEST,M3",
        "CET-1CE,M3",
        "CET-1CEST,M13.1.0,M1.1.0",
        "<CET-1",
        "CET-1x",
        "CET-1CEST,M3.6.0,M10.5.0",
        "A0B,1,2",
        "CET-1CEST,M3.5.0,M10.5.0/168",
        "CET-1CEST,J0,J5",
        "CET-1CEST,1,366",
        "CET-1CEST,M3.5.0,M10.5.0 ",
        "CET-1CEST,M3.5.7,M10.5.0",
    };
    struct hd_tz_rule rule;

    (void)state;
    for (size_t i = 0; i < HD_COUNT(rules); i++) {
        if (hd_tz_rule_parse(&rule, hd_slice_cstr(rules[i])) != HD_ECORRUPT)
            fail_msg("%s was taken", rules[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(days_and_dates_are_the_inverse_of_each_other),
        cmocka_unit_test(offsets_are_those_of_the_table),
        cmocka_unit_test(spans_follow_each_other),
        cmocka_unit_test(utc_needs_no_file),
        cmocka_unit_test(names_that_are_no_zones_are_refused),
        cmocka_unit_test(without_zone_files_the_error_names_the_package),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(files_are_read),
        cmocka_unit_test(damaged_files_are_refused),
        cmocka_unit_test(rules_are_followed),
        cmocka_unit_test(daylight_saving_time_all_year_is_one_offset),
        cmocka_unit_test(bad_rules_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
