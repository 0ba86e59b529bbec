/*
 * Cron schedules: when a cron fires next, in a time zone.
 *
 * Five fields: minute (0-59), hour (0-23), day of the month (1-31 or L, the last), month (1-12 or
 * JAN-DEC), weekday (0-7 or SUN-SAT, 0 and 7 are Sunday). An optional sixth and last field is the
 * second (0-59, default 0), as in croniter. A field is `*` or a list of values and ranges ("1,15",
 * "9-17"), each with an optional step ("8-18/2"); a step after a single value extends to the end of
 * the field ("5/15"). A range may wrap around ("22-2", "FRI-MON"). For days, `?` means `*`.
 * Instead of fields: @yearly @annually @monthly @weekly @daily @midnight @hourly.
 *
 * If both days are restricted, a match of either is enough ("0 0 13 * 5": each 13th and each
 * Friday). A day is unrestricted if its field is `*`, without a step or with a step of 1.
 *
 * When local time jumps (daylight-saving time):
 *   - a schedule that names hours fires once, at the jump, for all skipped local times, and only at
 *     the first occurrence of repeated local times;
 *   - a schedule for every hour follows real time: skipped times do not fire, and repeated hours
 *     fire twice.
 * Debian's cron does the first for jobs at fixed times and the second for jobs with `*`.
 */
#ifndef HD_SCHEDULE_CRON_SCHEDULE_H
#define HD_SCHEDULE_CRON_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"
#include "base/slice.h"
#include "schedule/tz.h"

#define HD_SCHEDULE_MAX_TEXT 1024

/* Bit n represents the value n. */
struct hd_schedule {
    uint64_t seconds;
    uint64_t minutes;
    uint32_t hours;
    uint32_t days;
    uint16_t months;
    uint8_t weekdays;
    bool on_last_day; /* L */
    bool any_day;     /* the day of the month is not restricted */
    bool any_weekday; /* nor the weekday */
    bool names_hours; /* not every hour */
};

/*
 * HD_EINVAL: invalid ("schedule: minute 61 is not in 0-59"), or it never fires, such as on 30
 * February; *schedule is unchanged then.
 */
HD_MUST_CHECK int hd_schedule_parse(struct hd_schedule *schedule, struct hd_slice text,
                                    struct heddle_error *fault);

/*
 * The first firing strictly after `after_us` (microseconds UTC); `tz` NULL is UTC. HD_ENOTFOUND: no
 * firing within the years 1 to 9999.
 */
HD_MUST_CHECK int hd_schedule_next(const struct hd_schedule *schedule, const struct hd_tz *tz,
                                   int64_t after_us, int64_t *next_us, struct heddle_error *fault);

#endif
