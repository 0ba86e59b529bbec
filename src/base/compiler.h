/*
 * The only place for compiler extensions. Everything else is plain C11.
 */
#ifndef HD_BASE_COMPILER_H
#define HD_BASE_COMPILER_H

#if defined(__GNUC__) || defined(__clang__)
#define HD_MUST_CHECK __attribute__((warn_unused_result))
#define HD_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define HD_UNLIKELY(x) __builtin_expect(!!(x), 0)
#else
#define HD_MUST_CHECK
#define HD_PRINTF(fmt, args)
#define HD_UNLIKELY(x) (x)
#endif

/*
 * AddressSanitizer cannot see into our own allocator; these mark its memory. Without
 * AddressSanitizer they are empty, and the gap between two allocations is 0.
 */
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HD_HAS_ASAN 1
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define HD_HAS_ASAN 1
#endif

#ifdef HD_HAS_ASAN
#include <sanitizer/asan_interface.h>
#define HD_POISON(ptr, len) ASAN_POISON_MEMORY_REGION(ptr, len)
#define HD_UNPOISON(ptr, len) ASAN_UNPOISON_MEMORY_REGION(ptr, len)
#define HD_REDZONE 16
#else
#define HD_POISON(ptr, len) ((void)(ptr), (void)(len))
#define HD_UNPOISON(ptr, len) ((void)(ptr), (void)(len))
#define HD_REDZONE 0
#endif

#define HD_COUNT(array) (sizeof(array) / sizeof((array)[0]))

#endif
