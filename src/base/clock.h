/* The time. All code reads it through these functions, so that tests can set it. */
#ifndef HD_BASE_CLOCK_H
#define HD_BASE_CLOCK_H

#include <stddef.h>
#include <stdint.h>

/* Microseconds since 1970-01-01 UTC. */
int64_t hd_clock_now_us(void);

/* Microseconds of a clock that never goes back; only differences are meaningful. */
int64_t hd_clock_monotonic_us(void);

/* The same, and it keeps counting while the machine is suspended. */
int64_t hd_clock_boot_us(void);

void hd_clock_sleep_us(int64_t us);

/* "2026-01-31T12:34:56.123456+00:00": the form LangGraph's Python loop writes. Needs 33 bytes. */
void hd_clock_format_iso(int64_t us, char out[33]);

/* Test hook: hd_clock_now_us() returns this fixed time; 0 returns to the real clock. */
void hd_clock_set_for_test(int64_t us);

#endif
