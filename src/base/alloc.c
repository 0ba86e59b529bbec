#include "base/alloc.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

/*
 * Counting the allocations of all threads in one place would cost more than an allocation, so
 * counting starts with the first call of the test hook.
 */
static atomic_bool is_watched;
static atomic_long asked;
static atomic_long fail_at;
static atomic_bool is_sticky;

static bool must_fail(void)
{
    long nth, target;

    if (!atomic_load_explicit(&is_watched, memory_order_relaxed))
        return false;
    nth = atomic_fetch_add(&asked, 1) + 1;
    target = atomic_load(&fail_at);
    if (target == 0)
        return false;
    return nth == target || (nth > target && atomic_load(&is_sticky));
}

void *hd_malloc(size_t size)
{
    return must_fail() ? NULL : malloc(size ? size : 1);
}

void *hd_calloc(size_t count, size_t size)
{
    if (must_fail() || (size > 0 && count > SIZE_MAX / size))
        return NULL;
    return count > 0 && size > 0 ? calloc(count, size) : calloc(1, 1);
}

void *hd_realloc(void *ptr, size_t size)
{
    return must_fail() ? NULL : realloc(ptr, size ? size : 1);
}

void hd_free(void *ptr)
{
    free(ptr);
}

long hd_alloc_fail_at(long n, int sticky)
{
    long before;

    atomic_store(&fail_at, 0);
    before = atomic_exchange(&asked, 0);
    atomic_store(&is_sticky, sticky != 0);
    atomic_store(&fail_at, n);
    atomic_store(&is_watched, true);
    return before;
}
