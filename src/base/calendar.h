/*
 * Days and dates of the Gregorian calendar, without time zones and without the
 * C library: any year, no global state.
 */
#ifndef HD_BASE_CALENDAR_H
#define HD_BASE_CALENDAR_H

#include <stdbool.h>
#include <stdint.h>

#define HD_DAY_SECONDS 86400

struct hd_date {
    int64_t year;
    int month; /* 1 to 12 */
    int day;   /* 1 to 31 */
};

/* Rounded down, also below zero. */
static inline int64_t hd_floor_div(int64_t value, int64_t by)
{
    return value / by - (value % by < 0);
}

static inline bool hd_is_leap_year(int64_t year)
{
    return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

static inline int hd_days_in_month(int64_t year, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};

    return month == 2 && hd_is_leap_year(year) ? 29 : days[month - 1];
}

/*
 * Days since 1970-01-01. Both ways count from 1 March, so that the leap day is the
 * last of a year, and in eras of 400 years, which have 146,097 days each.
 */
static inline int64_t hd_days_from_date(int64_t year, int month, int day)
{
    int64_t y = month > 2 ? year : year - 1;
    int64_t era = hd_floor_div(y, 400);
    int64_t year_of_era = y - era * 400;
    int64_t day_of_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;
    int64_t day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;

    return era * 146097 + day_of_era - 719468;
}

static inline struct hd_date hd_date_from_days(int64_t days)
{
    int64_t era = hd_floor_div(days + 719468, 146097);
    int64_t day_of_era = days + 719468 - era * 146097;
    int64_t year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    int64_t month_of_year = (5 * day_of_year + 2) / 153;
    int month = (int)(month_of_year < 10 ? month_of_year + 3 : month_of_year - 9);

    return (struct hd_date){
        .year = year_of_era + era * 400 + (month <= 2),
        .month = month,
        .day = (int)(day_of_year - (153 * month_of_year + 2) / 5 + 1),
    };
}

/* 0 is Sunday. */
static inline int hd_weekday(int64_t days)
{
    return (int)(days + 4 - hd_floor_div(days + 4, 7) * 7);
}

#endif
