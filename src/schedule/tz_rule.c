/* POSIX TZ strings: "CET-1CEST,M3.5.0,M10.5.0/3". */
#include "schedule/tz_internal.h"

#include <string.h>

#include "base/calendar.h"
#include "base/error.h"

#define HOUR 3600
#define MAX_OFFSET_HOURS 24
/* RFC 9636: a change may be up to a week away from its day. */
#define MAX_TIME_HOURS 167

/* ---- reading ---------------------------------------------------------- */

static bool take_char(struct hd_slice *s, char c)
{
    if (s->len == 0 || s->ptr[0] != c)
        return false;
    s->ptr++;
    s->len--;
    return true;
}

static bool take_number(struct hd_slice *s, int max, int *out)
{
    int value = 0;
    size_t i = 0;

    while (i < s->len && i < 4 && s->ptr[i] >= '0' && s->ptr[i] <= '9')
        value = value * 10 + (s->ptr[i++] - '0');
    s->ptr += i;
    s->len -= i;
    *out = value;
    return i > 0 && value <= max;
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Checks the form of the abbreviation, which is not used. */
static bool skip_name(struct hd_slice *s)
{
    bool is_quoted = take_char(s, '<');
    size_t len = 0;

    while (len < s->len && (is_quoted ? s->ptr[len] != '>' : is_letter(s->ptr[len])))
        len++;
    s->ptr += len;
    s->len -= len;
    return len >= 3 && (!is_quoted || take_char(s, '>'));
}

/* [+-]hh[:mm[:ss]] */
static bool take_time(struct hd_slice *s, int max_hours, int32_t *out)
{
    int sign = take_char(s, '-') ? -1 : 1;
    int hours = 0, minutes = 0, seconds = 0;

    if (sign > 0)
        (void)take_char(s, '+');
    if (!take_number(s, max_hours, &hours))
        return false;
    if (take_char(s, ':')) {
        if (!take_number(s, 59, &minutes))
            return false;
        if (take_char(s, ':') && !take_number(s, 59, &seconds))
            return false;
    }
    *out = sign * (hours * HOUR + minutes * 60 + seconds);
    return true;
}

static bool take_date(struct hd_slice *s, struct hd_tz_date *date)
{
    bool is_good;

    *date = (struct hd_tz_date){.seconds = 2 * HOUR};
    if (take_char(s, 'M')) {
        date->kind = HD_TZ_WEEKDAY;
        is_good = take_number(s, 12, &date->month) && date->month >= 1 && take_char(s, '.') &&
                  take_number(s, 5, &date->week) && date->week >= 1 && take_char(s, '.') &&
                  take_number(s, 6, &date->day);
    } else if (take_char(s, 'J')) {
        date->kind = HD_TZ_DAY_NO_LEAP_DAY;
        is_good = take_number(s, 365, &date->day) && date->day >= 1;
    } else {
        date->kind = HD_TZ_DAY;
        is_good = take_number(s, 365, &date->day);
    }
    return is_good && (!take_char(s, '/') || take_time(s, MAX_TIME_HOURS, &date->seconds));
}

/* POSIX counts offsets westwards, all other formats eastwards. */
int hd_tz_rule_parse(struct hd_tz_rule *rule, struct hd_slice text)
{
    *rule = (struct hd_tz_rule){0};
    if (!skip_name(&text) || !take_time(&text, MAX_OFFSET_HOURS, &rule->offset))
        return HD_ECORRUPT;
    rule->offset = -rule->offset;
    if (text.len == 0)
        return 0;
    rule->has_dst = true;
    rule->dst_offset = rule->offset + HOUR;
    if (!skip_name(&text))
        return HD_ECORRUPT;
    if (text.len > 0 && text.ptr[0] != ',') {
        if (!take_time(&text, MAX_OFFSET_HOURS, &rule->dst_offset))
            return HD_ECORRUPT;
        rule->dst_offset = -rule->dst_offset;
    }
    if (!take_char(&text, ',') || !take_date(&text, &rule->to_dst) || !take_char(&text, ',') ||
        !take_date(&text, &rule->from_dst) || text.len > 0)
        return HD_ECORRUPT;
    return 0;
}

/* ---- lookup ----------------------------------------------------------- */

struct offset_change {
    int64_t at;
    int32_t offset; /* after the change */
};

/* Local seconds since 1970 of a date in `year`. */
static int64_t date_seconds(const struct hd_tz_date *date, int64_t year)
{
    int64_t first = hd_days_from_date(year, 1, 1), day = first + date->day;

    if (date->kind == HD_TZ_DAY_NO_LEAP_DAY) {
        day -= !(hd_is_leap_year(year) && date->day >= 60);
    } else if (date->kind == HD_TZ_WEEKDAY) {
        int64_t month = hd_days_from_date(year, date->month, 1);
        int64_t end = month + hd_days_in_month(year, date->month);

        day = month + (date->day - hd_weekday(month) + 7) % 7 + (int64_t)(date->week - 1) * 7;
        day -= day >= end ? 7 : 0;
    }
    return day * HD_DAY_SECONDS + date->seconds;
}

/* The two changes of a year in their order; `out` stays sorted when years are added in order. */
static size_t add_changes(const struct hd_tz_rule *rule, int64_t year, struct offset_change *out,
                          size_t count)
{
    struct offset_change both[] = {
        {date_seconds(&rule->to_dst, year) - rule->offset, rule->dst_offset},
        {date_seconds(&rule->from_dst, year) - rule->dst_offset, rule->offset},
    };
    bool is_south = both[1].at < both[0].at;

    for (size_t i = 0; i < 2; i++) {
        struct offset_change change = both[is_south ? 1 - i : i];
        size_t place = count++;

        for (; place > 0 && out[place - 1].at > change.at; place--)
            out[place] = out[place - 1];
        out[place] = change;
    }
    return count;
}

/* Changes may coincide (daylight-saving time all year): the later one in the list applies. */
struct hd_tz_span hd_tz_rule_span(const struct hd_tz_rule *rule, int64_t seconds)
{
    int64_t year = hd_date_from_days(hd_floor_div(seconds, HD_DAY_SECONDS)).year;
    struct offset_change changes[10];
    size_t count = 0, i;

    if (!rule->has_dst)
        return (struct hd_tz_span){-HD_TZ_FOREVER, HD_TZ_FOREVER, rule->offset, rule->offset};
    /* Two years on both sides: a change may be a week away from its year. */
    for (int64_t y = year - 2; y <= year + 2; y++)
        count = add_changes(rule, y, changes, count);
    for (i = count; i > 0 && changes[i - 1].at > seconds; i--)
        ;
    struct hd_tz_span span = {
        .begin = changes[i - 1].at,
        .end = changes[i].at,
        .offset = changes[i - 1].offset,
    };
    for (i--; i > 0 && changes[i - 1].at == span.begin; i--)
        ;
    span.offset_before = changes[i > 0 ? i - 1 : 0].offset;
    return span;
}
