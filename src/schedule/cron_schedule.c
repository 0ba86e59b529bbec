#include "schedule/cron_schedule.h"

#include <string.h>
#include <strings.h>

#include "base/calendar.h"
#include "base/suggest.h"

#define DAY 86400
/* Maximum distance of two 29 Februaries (1896 and 1904, 2096 and 2104). */
#define MAX_YEARS_BETWEEN 8
/* 0001-01-01 and 9999-12-31, a day away from both ends. */
#define MIN_SECONDS (INT64_C(-62135596800) + DAY)
#define MAX_SECONDS (INT64_C(253402300800) - DAY)

/* ---- parsing ---------------------------------------------------------- */

struct field {
    const char *name;
    int min, max;
    const char *words; /* three letters each, for min, min + 1, … */
};

static const struct field fields[] = {
    {"minute", 0, 59, ""},
    {"hour", 0, 23, ""},
    {"day", 1, 31, ""},
    {"month", 1, 12, "JANFEBMARAPRMAYJUNJULAUGSEPOCTNOVDEC"},
    {"weekday", 0, 7, "SUNMONTUEWEDTHUFRISAT"},
    {"second", 0, 59, ""},
};

enum { MINUTE, HOUR, DAY_OF_MONTH, MONTH, WEEKDAY, SECOND };

static const struct {
    const char *name;
    const char *means;
} macros[] = {
    {"@yearly", "0 0 1 1 *"}, {"@annually", "0 0 1 1 *"}, {"@monthly", "0 0 1 * *"},
    {"@weekly", "0 0 * * 0"}, {"@daily", "0 0 * * *"},    {"@midnight", "0 0 * * *"},
    {"@hourly", "0 * * * *"},
};

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Returns the part of `s` before `separator` and removes it and the separator from `s`. */
static struct hd_slice cut(struct hd_slice *s, char separator)
{
    const char *found = s->len > 0 ? memchr(s->ptr, separator, s->len) : NULL;
    struct hd_slice head = *s;

    if (found)
        head.len = (size_t)(found - s->ptr);
    *s = found ? hd_slice(found + 1, s->len - head.len - 1) : hd_slice("", 0);
    return head;
}

static int find_word(const struct field *field, struct hd_slice text)
{
    for (int i = 0; text.len == 3 && field->words[(size_t)i * 3]; i++) {
        if (strncasecmp(field->words + (size_t)i * 3, text.ptr, 3) == 0)
            return field->min + i;
    }
    return -1;
}

/* -1: not a number; a value above `max`: too large. */
static int parse_number(struct hd_slice text, int max)
{
    int value = text.len > 0 ? 0 : -1;

    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] < '0' || text.ptr[i] > '9')
            return -1;
        if (value <= max)
            value = value * 10 + (text.ptr[i] - '0');
    }
    return value;
}

static int missing(const struct field *field, struct heddle_error *fault)
{
    return hd_error_set(fault, HD_EINVAL, "schedule: a value of the %s is missing", field->name);
}

static int parse_value(const struct field *field, struct hd_slice text, int *out,
                       struct heddle_error *fault)
{
    int value = find_word(field, text);

    if (text.len == 0)
        return missing(field, fault);
    if (value < 0)
        value = parse_number(text, field->max);
    if (value < 0)
        return hd_error_set(fault, HD_EINVAL, "schedule: %s \"%.*s\" is not a %s", field->name,
                            HD_SHOW(text), field->words[0] ? "number or a name" : "number");
    if (value < field->min || value > field->max)
        return hd_error_set(fault, HD_EINVAL, "schedule: %s %.*s is not in %d-%d", field->name,
                            HD_SHOW(text), field->min, field->max);
    *out = value;
    return 0;
}

/* The number of distinct values; weekday 7 is the same as 0. */
static int value_count(const struct field *field)
{
    return field == &fields[WEEKDAY] ? 7 : field->max - field->min + 1;
}

/* A step may cover all values (every 24 hours is once a day); a larger one is an error. */
static int parse_step(const struct field *field, struct hd_slice text, int *out,
                      struct heddle_error *fault)
{
    int max = value_count(field), value = parse_number(text, max);

    if (value < 1 || value > max)
        return hd_error_set(fault, HD_EINVAL, "schedule: step \"%.*s\" of the %s is not in 1-%d",
                            HD_SHOW(text), field->name, max);
    *out = value;
    return 0;
}

/* The values from low to high; wraps around if high < low. */
static uint64_t range_bits(const struct field *field, int low, int high, int step)
{
    int count = value_count(field);
    int steps = high >= low ? high - low : high + count - low;
    uint64_t bits = 0;

    for (int i = 0; i <= steps; i += step)
        bits |= UINT64_C(1) << (field->min + (low - field->min + i) % count);
    return bits;
}

static int parse_range(const struct field *field, struct hd_slice text, bool has_step, int *low,
                       int *high, struct heddle_error *fault)
{
    bool has_end = text.len > 0 && memchr(text.ptr, '-', text.len);
    struct hd_slice first = cut(&text, '-');
    int err = parse_value(field, first, low, fault);

    if (err == 0 && has_end)
        err = parse_value(field, text, high, fault);
    else if (!has_step)
        *high = *low;
    if (err == 0 && field == &fields[WEEKDAY] && *low == 7) {
        *low = 0;
        *high = *high == 7 ? 0 : *high;
    }
    return err;
}

/* An element of a list: a value, a range or `*`, with an optional step. */
static int parse_part(const struct field *field, struct hd_slice part, uint64_t *bits,
                      struct heddle_error *fault)
{
    bool has_step = memchr(part.ptr, '/', part.len) != NULL;
    struct hd_slice range = cut(&part, '/');
    int low = field->min, high = field->min + value_count(field) - 1, step = 1, err = 0;

    if (!hd_slice_eq(range, HD_S("*")))
        err = parse_range(field, range, has_step, &low, &high, fault);
    if (err == 0 && has_step)
        err = parse_step(field, part, &step, fault);
    if (err == 0)
        *bits |= range_bits(field, low, high, step);
    return err;
}

static int parse_field(const struct field *field, struct hd_slice text, struct hd_schedule *s,
                       uint64_t *bits, struct heddle_error *fault)
{
    bool is_day = field == &fields[DAY_OF_MONTH];
    int err = 0;

    *bits = 0;
    if (text.len > 0 && text.ptr[text.len - 1] == ',')
        return missing(field, fault);
    if ((is_day || field == &fields[WEEKDAY]) && hd_slice_eq(text, HD_S("?")))
        text = HD_S("*");
    while (err == 0 && text.len > 0) {
        struct hd_slice part = cut(&text, ',');

        if (is_day && part.len == 1 && (part.ptr[0] | 0x20) == 'l')
            s->on_last_day = true;
        else if (part.len == 0)
            err = missing(field, fault);
        else
            err = parse_part(field, part, bits, fault);
    }
    return err;
}

static struct hd_slice next_word(struct hd_slice *text)
{
    struct hd_slice word;

    while (text->len > 0 && is_blank(text->ptr[0])) {
        text->ptr++;
        text->len--;
    }
    word = hd_slice(text->ptr, 0);
    while (word.len < text->len && !is_blank(text->ptr[word.len]))
        word.len++;
    text->ptr += word.len;
    text->len -= word.len;
    return word;
}

static struct hd_slice trim_blanks(struct hd_slice text)
{
    while (text.len > 0 && is_blank(text.ptr[0])) {
        text.ptr++;
        text.len--;
    }
    while (text.len > 0 && is_blank(text.ptr[text.len - 1]))
        text.len--;
    return text;
}

static int split_fields(struct hd_slice text, struct hd_slice words[6], struct heddle_error *fault)
{
    size_t count = 0;
    struct hd_slice word;

    while ((word = next_word(&text)).len > 0) {
        if (count < 6)
            words[count] = word;
        count++;
    }
    if (count == 5)
        words[SECOND] = HD_S("0");
    if (count == 5 || count == 6)
        return 0;
    return hd_error_set(
        fault, HD_EINVAL,
        "schedule: %zu field%s instead of 5 (minute hour day month weekday) or 6 (… second)", count,
        count == 1 ? "" : "s");
}

static int expand_macro(struct hd_slice *text, struct heddle_error *fault)
{
    for (size_t i = 0; i < HD_COUNT(macros); i++) {
        if (strlen(macros[i].name) == text->len &&
            strncasecmp(macros[i].name, text->ptr, text->len) == 0) {
            *text = hd_slice_cstr(macros[i].means);
            return 0;
        }
    }
    return hd_error_set(fault, HD_EINVAL,
                        "schedule: \"%.*s\" is not one of @yearly @annually @monthly @weekly "
                        "@daily @midnight @hourly",
                        HD_SHOW(*text));
}

/* Every month has all weekdays; days of the month need a month that has them. */
static bool can_fire(const struct hd_schedule *s)
{
    if (!s->any_weekday || s->any_day || s->on_last_day)
        return true;
    for (int month = 1; month <= 12; month++) {
        uint64_t days = (UINT64_C(2) << hd_days_in_month(2000, month)) - 1;

        if (s->months >> month & 1 && s->days & days)
            return true;
    }
    return false;
}

static bool is_all(struct hd_slice text)
{
    return hd_slice_eq(text, HD_S("*")) || hd_slice_eq(text, HD_S("?")) ||
           hd_slice_eq(text, HD_S("*/1"));
}

int hd_schedule_parse(struct hd_schedule *schedule, struct hd_slice text,
                      struct heddle_error *fault)
{
    struct hd_schedule s = {0};
    struct hd_slice words[6];
    uint64_t bits[6];
    int err = 0;

    if (text.len > HD_SCHEDULE_MAX_TEXT)
        return hd_error_set(fault, HD_EINVAL, "schedule: longer than %d characters",
                            HD_SCHEDULE_MAX_TEXT);
    text = trim_blanks(text);
    if (text.len > 0 && text.ptr[0] == '@')
        err = expand_macro(&text, fault);
    if (err == 0)
        err = split_fields(text, words, fault);
    for (int i = 0; err == 0 && i < 6; i++)
        err = parse_field(&fields[i], words[i], &s, &bits[i], fault);
    if (err != 0)
        return err;
    s.seconds = bits[SECOND];
    s.minutes = bits[MINUTE];
    s.hours = (uint32_t)bits[HOUR];
    s.days = (uint32_t)bits[DAY_OF_MONTH];
    s.months = (uint16_t)bits[MONTH];
    s.weekdays = (uint8_t)bits[WEEKDAY];
    s.any_day = is_all(words[DAY_OF_MONTH]);
    s.any_weekday = is_all(words[WEEKDAY]);
    s.names_hours = s.hours != 0xffffff;
    if (!can_fire(&s))
        return hd_error_set(fault, HD_EINVAL, "schedule: never fires: no month of it has that day");
    *schedule = s;
    return 0;
}

/* ---- the next time, in local time -------------------------------------- */

static bool day_matches(const struct hd_schedule *s, const struct hd_date *date, int64_t day)
{
    bool is_day = s->days >> date->day & 1;
    bool is_weekday = s->weekdays >> hd_weekday(day) & 1;

    if (s->on_last_day)
        is_day |= date->day == hd_days_in_month(date->year, date->month);
    if (s->any_day || s->any_weekday)
        return (s->any_day || is_day) && (s->any_weekday || is_weekday);
    return is_day || is_weekday;
}

/* The first minute of a day that matches, from minute `from` on; -1 when none is left. */
static int next_minute(const struct hd_schedule *s, int from)
{
    for (int hour = from / 60; hour < 24; hour++, from = hour * 60) {
        uint64_t left = s->minutes >> (from % 60);

        if (!(s->hours >> hour & 1) || left == 0)
            continue;
        while (!(left & 1)) {
            left >>= 1;
            from++;
        }
        return from;
    }
    return -1;
}

/* The first second of a minute that matches, from `from` on; 60 when none is left. */
static int next_second(const struct hd_schedule *s, int from)
{
    while (from < 60 && !(s->seconds >> from & 1))
        from++;
    return from;
}

/* The number of the first minute with a second that matches at or after `local`. */
static int64_t first_minute(const struct hd_schedule *s, int64_t local)
{
    int64_t minute = hd_floor_div(local, 60);

    return next_second(s, (int)(local - minute * 60)) < 60 ? minute : minute + 1;
}

/*
 * The first match at or after `local` and before `end` (local seconds); `end`: no match. Tests day
 * by day, and skips months that do not match.
 */
static int64_t next_local(const struct hd_schedule *s, int64_t local, int64_t end)
{
    int64_t minute = first_minute(s, local);
    int64_t day = hd_floor_div(minute, 1440);
    int from = (int)(minute - day * 1440);

    while (day * DAY < end) {
        struct hd_date date = hd_date_from_days(day);
        int found = -1;

        if (!(s->months >> date.month & 1)) {
            day += hd_days_in_month(date.year, date.month) - date.day + 1;
            from = 0;
            continue;
        }
        if (day_matches(s, &date, day))
            found = next_minute(s, from);
        if (found >= 0) {
            int64_t at = day * DAY + (int64_t)found * 60;

            at += next_second(s, local > at ? (int)(local - at) : 0);

            return at < end ? at : end;
        }
        day++;
        from = 0;
    }
    return end;
}

/* ---- the next time, in a zone ------------------------------------------ */

static int64_t least_time(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/*
 * The first firing at or after `from` in one span, or HD_TZ_FOREVER. At the start of the span, the
 * local times skipped by the jump count.
 */
static int64_t next_in_span(const struct hd_schedule *s, const struct hd_tz_span *span,
                            int64_t from, int64_t end)
{
    int64_t jump = span->begin + span->offset_before, landed = span->begin + span->offset;
    int64_t local = from + span->offset, found;

    if (s->names_hours && from == span->begin && jump < landed &&
        next_local(s, jump, landed) < landed)
        return span->begin;
    /* Skip repeated local times. */
    if (s->names_hours && landed < jump && local < jump)
        local = jump;
    found = next_local(s, local, end + span->offset);
    return found < end + span->offset ? found - span->offset : HD_TZ_FOREVER;
}

int hd_schedule_next(const struct hd_schedule *schedule, const struct hd_tz *tz, int64_t after_us,
                     int64_t *next_us, struct heddle_error *fault)
{
    int64_t from = hd_floor_div(after_us, 1000000) + 1, found = HD_TZ_FOREVER;
    int64_t end = from + (int64_t)(MAX_YEARS_BETWEEN * 366 + 1) * DAY;

    if (from < MIN_SECONDS || from > MAX_SECONDS)
        return hd_error_set(fault, HD_ENOTFOUND, "schedule: never fires after that time");
    end = least_time(end, MAX_SECONDS);
    while (found == HD_TZ_FOREVER && from < end) {
        struct hd_tz_span span = hd_tz_span(tz, from);

        found = next_in_span(schedule, &span, from, least_time(span.end, end));
        from = span.end;
    }
    if (found == HD_TZ_FOREVER)
        return hd_error_set(fault, HD_ENOTFOUND, "schedule: never fires after that time");
    *next_us = found * 1000000;
    return 0;
}
