/* Included by every unit test: cmocka with its prerequisites, and slices in assertions. */
#ifndef HD_TESTS_UNIT_CHECK_H
#define HD_TESTS_UNIT_CHECK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/slice.h"

/* Prints both sides when they differ. */
#define assert_slice(got, expected) check_slice((got), (expected), __FILE__, __LINE__)

/* Compares error codes and prints their names when they differ. */
#define assert_err(got, expected) \
    _assert_string_equal(hd_error_name(got), hd_error_name(expected), __FILE__, __LINE__)

static inline void check_slice(struct hd_slice got, struct hd_slice expected, const char *file,
                               int line)
{
    if (hd_slice_eq(got, expected))
        return;
    print_error("got:      %.*s\nexpected: %.*s\n", (int)got.len, got.ptr ? got.ptr : "",
                (int)expected.len, expected.ptr ? expected.ptr : "");
    _fail(file, line);
}

/* Runs `work` with the first, the second, … allocation failing, once with that one alone and once
 * with all after it. It must return HD_ENOMEM and clean up (the sanitizer finds leaks) until it
 * needs no more allocations. Returns the number of allocations. */
static inline long check_every_allocation(int (*work)(void *arg), void *arg)
{
    for (long n = 1; n < 100000; n++) {
        long asked = n;

        for (int sticky = 0; sticky < 2; sticky++) {
            int err;

            (void)hd_alloc_fail_at(n, sticky);
            err = work(arg);
            asked = hd_alloc_fail_at(0, 0);
            assert_err(err, asked < n ? 0 : HD_ENOMEM);
        }
        if (asked < n)
            return n - 1;
    }
    fail_msg("allocations never end");
    return 0;
}

#endif
