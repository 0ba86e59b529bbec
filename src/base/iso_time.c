#include "base/iso_time.h"

#include "base/buf.h"
#include "base/calendar.h"

#define US_PER_S INT64_C(1000000)

/* Exactly `count` digits. */
static bool time_read_number(struct hd_reader *r, int count, int64_t *out)
{
    int64_t value = 0;

    if (r->end - r->pos < count)
        return false;
    for (int i = 0; i < count; i++, r->pos++) {
        if (*r->pos < '0' || *r->pos > '9')
            return false;
        value = value * 10 + (*r->pos - '0');
    }
    *out = value;
    return true;
}

static bool time_take_digit(struct hd_reader *r, char wanted)
{
    if (r->pos == r->end || *r->pos != wanted)
        return false;
    r->pos++;
    return true;
}

static bool read_date(struct hd_reader *r, int64_t *days)
{
    int64_t year, month, day;

    if (!time_read_number(r, 4, &year) || !time_take_digit(r, '-') ||
        !time_read_number(r, 2, &month) || !time_take_digit(r, '-') ||
        !time_read_number(r, 2, &day))
        return false;
    if (year < 1 || month < 1 || month > 12 || day < 1 || day > hd_days_in_month(year, (int)month))
        return false;
    *days = hd_days_from_date(year, (int)month, (int)day);
    return true;
}

/* Digits after the sixth are read and ignored. */
static bool read_fraction(struct hd_reader *r, int64_t *us)
{
    int64_t unit = US_PER_S / 10;
    const char *begin = r->pos;

    *us = 0;
    for (; r->pos < r->end && *r->pos >= '0' && *r->pos <= '9'; r->pos++) {
        *us += (*r->pos - '0') * unit;
        unit /= 10;
    }
    return r->pos > begin;
}

static bool read_time(struct hd_reader *r, int64_t *us)
{
    int64_t hour, minute, second = 0, fraction = 0;

    if (!time_read_number(r, 2, &hour) || !time_take_digit(r, ':') ||
        !time_read_number(r, 2, &minute))
        return false;
    if (time_take_digit(r, ':')) {
        if (!time_read_number(r, 2, &second))
            return false;
        if (time_take_digit(r, '.') && !read_fraction(r, &fraction))
            return false;
    }
    if (hour > 23 || minute > 59 || second > 59)
        return false;
    *us = (hour * 3600 + minute * 60 + second) * US_PER_S + fraction;
    return true;
}

/* Z, +01:00 or +0100; absent means UTC. */
static bool read_zone(struct hd_reader *r, int64_t *us)
{
    int64_t hours, minutes;
    bool is_east;

    *us = 0;
    if (r->pos == r->end || time_take_digit(r, 'Z') || time_take_digit(r, 'z'))
        return true;
    is_east = *r->pos == '+';
    if (!time_take_digit(r, '+') && !time_take_digit(r, '-'))
        return false;
    if (!time_read_number(r, 2, &hours))
        return false;
    (void)time_take_digit(r, ':');
    if (!time_read_number(r, 2, &minutes) || hours > 23 || minutes > 59)
        return false;
    *us = (hours * 60 + minutes) * 60 * US_PER_S;
    if (!is_east)
        *us = -*us;
    return true;
}

bool hd_iso_parse(struct hd_slice text, int64_t *out)
{
    struct hd_reader r = hd_reader(text);
    int64_t days, time = 0, zone = 0;

    if (text.len == 0 || !read_date(&r, &days))
        return false;
    if (r.pos < r.end) {
        if (!time_take_digit(&r, 'T') && !time_take_digit(&r, 't') && !time_take_digit(&r, ' '))
            return false;
        if (!read_time(&r, &time) || !read_zone(&r, &zone) || r.pos < r.end)
            return false;
    }
    *out = days * HD_DAY_SECONDS * US_PER_S + time - zone;
    return true;
}
