/*
 * Cron schedules: when a cron fires next, in a time zone.
 *
 * Five fields: minute (0-59), hour (0-23), day of the month (1-31 or L, the last), month (1-12 or
 * JAN-DEC), weekday (0-7 or SUN-SAT, 0 and 7 are Sunday). A sixth is the second (0-59; 0 without
 * it), which comes last, as in croniter. A field is
 * `*` or a list of values and ranges ("1,15", "9-17"), each with or without a step
 * ("8-18/2"; a step behind a single value goes from there to the end: "5/15"). A
 * range may go over the end ("22-2", "FRI-MON"). `?` is `*` for days. Or one of
 * @yearly @annually @monthly @weekly @daily @midnight @hourly.
 *
 * When both days are restricted, one of them is enough ("0 0 13 * 5": each 13th
 * and each Friday). A day is unrestricted when its field is `*`, with
 * a step of 1 or without.
 *
 * When local time jumps (daylight-saving time):
 *   - a schedule that names hours fires for local times that are skipped at the
 *     moment of the jump, once for all of them; and for local times that come twice
 *     it fires the first time only;
 *   - a schedule for every hour follows the clock: nothing fires for skipped times
 *     (the interval of real time stays the same), and hours that come twice fire twice.
 * The first is what cron of Debian does for jobs at fixed times, the second what it
 * does for jobs with `*`.
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

/* Bit n stands for the value n. */
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
 * HD_EINVAL with a sentence ("schedule: minute 61 is not in 0-59"), also for a
 * schedule that never fires, such as 30 February. *schedule is untouched then.
 */
HD_MUST_CHECK int hd_schedule_parse(struct hd_schedule *schedule, struct hd_slice text,
                                    struct hd_fault *fault);

/*
 * The first firing strictly after `after_us` (microseconds UTC); `tz` NULL is UTC. HD_ENOTFOUND: no
 * firing within the years 1 to 9999.
 */
HD_MUST_CHECK int hd_schedule_next(const struct hd_schedule *schedule, const struct hd_tz *tz,
                                   int64_t after_us, int64_t *next_us, struct hd_fault *fault);

#endif
