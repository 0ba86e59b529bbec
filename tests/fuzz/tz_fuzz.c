/* libFuzzer: any bytes as a time zone file. An accepted file has a span for every time that
 * contains this time, and a schedule in the zone fires after the given time. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "schedule/cron_schedule.h"
#include "schedule/tz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const int64_t times[] = {
    INT64_C(-60000000000), -2147483648, -1, 0, 1, 1711846800, 1729990800, 2147483648,
    INT64_C(250000000000),
};

static void require(bool is_so, const char *what)
{
    if (is_so)
        return;
    fprintf(stderr, "%s\n", what);
    abort();
}

static void fire(const char *text, const struct hd_tz *tz, int64_t at)
{
    struct hd_schedule schedule;
    int64_t next;
    int err;

    require(hd_schedule_parse(&schedule, hd_slice_cstr(text), NULL) == 0, "a bad schedule");
    err = hd_schedule_next(&schedule, tz, at * 1000000, &next, NULL);
    require(err == 0 || err == HD_ENOTFOUND, "an odd error");
    require(err != 0 || next > at * 1000000, "a firing in the past");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct heddle_error fault = {0};
    struct hd_tz *tz;
    int err = hd_tz_parse(&tz, hd_slice(data, size), &fault);

    require(err == 0 || (err == HD_ECORRUPT && fault.text[0]), "an odd error");
    if (err != 0)
        return 0;
    for (size_t i = 0; i < HD_COUNT(times); i++) {
        struct hd_tz_span span = hd_tz_span(tz, times[i]);

        require(span.begin <= times[i] && times[i] < span.end, "a span somewhere else");
        require(span.offset > -93600 && span.offset < 93600, "an odd offset");
        fire("30 2 * * *", tz, times[i]);
        fire("*/15 * 29 2 *", tz, times[i]);
    }
    hd_tz_close(tz);
    return 0;
}
