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

#define HD_COUNT(array) (sizeof(array) / sizeof((array)[0]))

#endif
