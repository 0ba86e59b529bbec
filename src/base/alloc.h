/*
 * The process allocator behind one interface, so that tests can make the n-th allocation fail (n =
 * 1, 2, …) and reach every error path.
 */
#ifndef HD_BASE_ALLOC_H
#define HD_BASE_ALLOC_H

#include <stddef.h>

#include "base/compiler.h"

HD_MUST_CHECK void *hd_malloc(size_t size);
HD_MUST_CHECK void *hd_calloc(size_t count, size_t size);
HD_MUST_CHECK void *hd_realloc(void *ptr, size_t size);
void hd_free(void *ptr);

/*
 * Test hook: the n-th allocation from now fails, and when `sticky` all later ones too. n == 0
 * switches it off. Returns the number of allocations requested since the last call. Process-wide,
 * not for production use.
 */
long hd_alloc_fail_at(long n, int sticky);

#endif
