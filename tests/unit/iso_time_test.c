/* Times in ISO 8601. */
#include "base/iso_time.h"

#include "base/clock.h"
#include "base/compiler.h"
#include "tests/unit/check.h"

static void times_are_read(void **state)
{
    static const struct {
        const char *text, *wanted;
    } cases[] = {
        {"2026-01-31T12:34:56.123456+00:00", "2026-01-31T12:34:56.123456+00:00"},
        {"2026-01-31T12:34:56Z", "2026-01-31T12:34:56.000000+00:00"},
        {"2026-01-31t12:34:56z", "2026-01-31T12:34:56.000000+00:00"},
        {"2026-01-31 12:34:56", "2026-01-31T12:34:56.000000+00:00"},
        {"2026-01-31T12:34", "2026-01-31T12:34:00.000000+00:00"},
        {"2026-01-31", "2026-01-31T00:00:00.000000+00:00"},
        {"2026-01-31T12:34:56.5Z", "2026-01-31T12:34:56.500000+00:00"},
        {"2026-01-31T12:34:56.1234567899Z", "2026-01-31T12:34:56.123456+00:00"},
        {"2026-01-31T00:30:00+01:00", "2026-01-30T23:30:00.000000+00:00"},
        {"2026-01-31T00:30:00+0545", "2026-01-30T18:45:00.000000+00:00"},
        {"2026-12-31T23:30:00-01:00", "2027-01-01T00:30:00.000000+00:00"},
        {"2024-02-29T00:00:00Z", "2024-02-29T00:00:00.000000+00:00"},
        {"1969-12-31T23:59:59.999999Z", "1969-12-31T23:59:59.999999+00:00"},
        {"0001-01-01T00:00:00Z", "0001-01-01T00:00:00.000000+00:00"},
        {"9999-12-31T23:59:59Z", "9999-12-31T23:59:59.000000+00:00"},
    };

    (void)state;
    for (size_t i = 0; i < HD_COUNT(cases); i++) {
        char shown[33];
        int64_t us = 0;

        if (!hd_iso_parse(hd_slice_cstr(cases[i].text), &us))
            fail_msg("%s was refused", cases[i].text);
        hd_clock_format_iso(us, shown);
        assert_string_equal(shown, cases[i].wanted);
    }
}

static void other_texts_are_refused(void **state)
{
    static const char *const bad[] = {
        "",
        "soon",
        "2026",
        "2026-1-31",
        "2026-02-30",
        "2025-02-29",
        "2026-13-01",
        "2026-00-01",
        "2026-01-00",
        "0000-01-01",
        "2026-01-31T",
        "2026-01-31T12",
        "2026-01-31T24:00",
        "2026-01-31T12:60",
        "2026-01-31T12:00:60",
        "2026-01-31T12:00:",
        "2026-01-31T12:00:00.",
        "2026-01-31T12:00:00.Z",
        "2026-01-31T12:00:00+",
        "2026-01-31T12:00:00+1",
        "2026-01-31T12:00:00+24:00",
        "2026-01-31T12:00:00+01:60",
        "2026-01-31T12:00:00 +01:00",
        "2026-01-31T12:00:00Z ",
        " 2026-01-31T12:00:00Z",
        "2026-01-31X12:00:00Z",
        "-026-01-31T12:00:00Z",
    };
    int64_t us = 7;

    (void)state;
    for (size_t i = 0; i < HD_COUNT(bad); i++) {
        if (hd_iso_parse(hd_slice_cstr(bad[i]), &us))
            fail_msg("%s was taken", bad[i]);
    }
    assert_int_equal(us, 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(times_are_read),
        cmocka_unit_test(other_texts_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
