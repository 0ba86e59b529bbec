/*
 * Preloaded, it shifts the time of day by STEPPED_CLOCK seconds: a machine whose clock was set.
 *
 *   cc -shared -fPIC -o stepped_clock.so stepped_clock.c
 *   STEPPED_CLOCK=-30 LD_PRELOAD=./stepped_clock.so heddle serve …
 **/
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static time_t offset(void)
{
    const char *text = getenv("STEPPED_CLOCK");

    return text ? (time_t)strtol(text, NULL, 10) : 0;
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
    int result = (int)syscall(SYS_clock_gettime, clock, now);

    if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        now->tv_sec += offset();
    return result;
}

int gettimeofday(struct timeval *now, void *zone)
{
    struct timespec precise;
    int result = clock_gettime(CLOCK_REALTIME, &precise);

    (void)zone;
    now->tv_sec = precise.tv_sec;
    now->tv_usec = precise.tv_nsec / 1000;
    return result;
}

time_t time(time_t *out)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_REALTIME, &now);
    if (out)
        *out = now.tv_sec;
    return now.tv_sec;
}
