/* libFuzzer: any text as a schedule. An accepted one fires after the given time, at the start of a
 * minute that its sets allow, and again after that. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/calendar.h"
#include "schedule/cron_schedule.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool is_so, const char *what)
{
    if (is_so)
        return;
    fprintf(stderr, "%s\n", what);
    abort();
}

static void check_sets(const struct hd_schedule *s, int64_t seconds)
{
    int64_t day = hd_floor_div(seconds, HD_DAY_SECONDS), rest = seconds - day * HD_DAY_SECONDS;
    struct hd_date date = hd_date_from_days(day);

    require(rest % 60 == 0, "not the beginning of a minute");
    require(s->minutes >> (rest / 60 % 60) & 1, "a wrong minute");
    require(s->hours >> (rest / 3600) & 1, "a wrong hour");
    require(s->months >> date.month & 1, "a wrong month");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hd_schedule schedule;
    struct heddle_error fault = {0};
    int err = hd_schedule_parse(&schedule, hd_slice(data, size), &fault);
    int64_t at = 1700000000000000;

    require(err == 0 || (err == HD_EINVAL && fault.text[0]), "an odd error");
    for (int i = 0; err == 0 && i < 3; i++) {
        int64_t next;

        require(hd_schedule_next(&schedule, NULL, at, &next, NULL) == 0, "it never fires");
        require(next > at, "a firing in the past");
        check_sets(&schedule, next / 1000000);
        at = next;
    }
    return 0;
}
