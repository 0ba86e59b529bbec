/*
 * The rule at the end of a zone's file, a POSIX TZ string: it applies after the last change that
 * the file lists.
 */
#ifndef HD_SCHEDULE_TZ_INTERNAL_H
#define HD_SCHEDULE_TZ_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/slice.h"
#include "schedule/tz.h"

/* The date of a clock change within a year. */
struct hd_tz_date {
    enum {
        HD_TZ_WEEKDAY,         /* Mm.w.d: weekday `day` of week `week` of `month` */
        HD_TZ_DAY_NO_LEAP_DAY, /* Jn: 1 to 365, 29 February is never counted */
        HD_TZ_DAY              /* n: 0 to 365 */
    } kind;
    int month, week, day;
    int32_t seconds; /* local time of that day; may be negative or beyond 24 hours */
};

struct hd_tz_rule {
    int32_t offset;     /* of standard time */
    int32_t dst_offset; /* of daylight-saving time */
    bool has_dst;
    struct hd_tz_date to_dst, from_dst;
};

/* HD_ECORRUPT: invalid. */
HD_MUST_CHECK int hd_tz_rule_parse(struct hd_tz_rule *rule, struct hd_slice text);

struct hd_tz_span hd_tz_rule_span(const struct hd_tz_rule *rule, int64_t seconds);

#endif
