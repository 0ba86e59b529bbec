#include "base/clock.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#define US_PER_S INT64_C(1000000)

static _Atomic int64_t fixed_us;

static int64_t read_clock(clockid_t id)
{
    struct timespec now;

    /* Cannot fail for the clocks that are read here. */
    (void)clock_gettime(id, &now);
    return (int64_t)now.tv_sec * US_PER_S + now.tv_nsec / 1000;
}

int64_t hd_clock_now_us(void)
{
    int64_t fixed = atomic_load_explicit(&fixed_us, memory_order_relaxed);

    return fixed ? fixed : read_clock(CLOCK_REALTIME);
}

int64_t hd_clock_monotonic_us(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

int64_t hd_clock_boot_us(void)
{
#ifdef CLOCK_BOOTTIME
    return read_clock(CLOCK_BOOTTIME);
#else
    return read_clock(CLOCK_MONOTONIC);
#endif
}

void hd_clock_sleep_us(int64_t us)
{
    struct timespec left;

    if (us <= 0)
        return;
    left.tv_sec = (time_t)(us / US_PER_S);
    left.tv_nsec = (long)(us % US_PER_S) * 1000;
    while (clock_nanosleep(CLOCK_MONOTONIC, 0, &left, &left) == EINTR)
        ;
}

static void put_digits(char *out, int64_t value, int width)
{
    for (int i = width - 1; i >= 0; i--) {
        out[i] = (char)('0' + value % 10);
        value /= 10;
    }
}

void hd_clock_format_iso(int64_t us, char out[33])
{
    int64_t second = us / US_PER_S, fraction = us % US_PER_S;
    struct tm tm = {0};
    time_t time;

    if (fraction < 0) {
        fraction += US_PER_S;
        second--;
    }
    time = (time_t)second;
    (void)gmtime_r(&time, &tm);
    memcpy(out, "0000-00-00T00:00:00.000000+00:00", 33);
    /* Years before 0 and after 9999 have no such form; they are written modulo 10,000. */
    put_digits(out, (tm.tm_year + INT64_C(1900)) % 10000 + (tm.tm_year < -1900 ? 10000 : 0), 4);
    put_digits(out + 5, tm.tm_mon + 1, 2);
    put_digits(out + 8, tm.tm_mday, 2);
    put_digits(out + 11, tm.tm_hour, 2);
    put_digits(out + 14, tm.tm_min, 2);
    put_digits(out + 17, tm.tm_sec, 2);
    put_digits(out + 20, fraction, 6);
}

void hd_clock_set_for_test(int64_t us)
{
    atomic_store(&fixed_us, us);
}
