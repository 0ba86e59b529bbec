/*
 * A growing array of one type, with an optional limit:
 *
 *   HD_VEC(struct hd_span) spans = {.limit = 100};
 *
 *   err = hd_vec_push(&spans, span);
 *   for (size_t i = 0; i < spans.count; i++)
 *       … spans.items[i] …
 *   hd_vec_fini(&spans);
 *
 * All bytes zero is an empty vector without a limit. The capacity doubles, so that pushing is cheap
 * on average. An operation that fails with HD_ENOMEM or HD_ELIMIT changes nothing.
 */
#ifndef HD_BASE_VEC_H
#define HD_BASE_VEC_H

#include <stddef.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "base/error.h"

#define HD_VEC(type)                              \
    struct {                                      \
        type *items;                              \
        size_t count;                             \
        size_t cap;                               \
        size_t limit; /* elements; 0: no limit */ \
    }

/*
 * Makes room for `more` elements after `count`: the caller may write there itself and then add to
 * `count`. 0, HD_ENOMEM or HD_ELIMIT.
 */
#define hd_vec_reserve(vec, more)                                                               \
    ((more) <= (vec)->cap - (vec)->count                                                        \
         ? 0                                                                                    \
         : hd_vec_grow(&(vec)->items, &(vec)->cap, sizeof(*(vec)->items), (vec)->count, (more), \
                       (vec)->limit))

/* Appends a copy of the value, which may be a compound literal. 0, HD_ENOMEM or HD_ELIMIT. */
#define hd_vec_push(vec, ...)                                                      \
    (hd_vec_reserve(vec, 1) == 0 ? ((vec)->items[(vec)->count++] = __VA_ARGS__, 0) \
     : (vec)->limit != 0 && (vec)->count >= (vec)->limit ? HD_ELIMIT               \
                                                         : HD_ENOMEM)

/* Frees the memory; what the elements own is the caller's. The limit stays. */
#define hd_vec_fini(vec)               \
    do {                               \
        hd_free((vec)->items);         \
        (vec)->items = NULL;           \
        (vec)->count = (vec)->cap = 0; \
    } while (0)

/*
 * The same for an array whose pointer, count and capacity are members of their own: makes room for
 * `more` elements, or for one. 0 or HD_ENOMEM.
 */
#define hd_array_reserve(items, count, cap, more) \
    ((more) <= (cap) - (count)                    \
         ? 0                                      \
         : hd_vec_grow(&(items), &(cap), sizeof(*(items)), (count), (more), 0))
#define hd_array_grow(items, count, cap) hd_array_reserve(items, count, cap, 1)

/* The function behind the macros. `items` points to the pointer to the first element. */
HD_MUST_CHECK int hd_vec_grow(void *items, size_t *cap, size_t size, size_t count, size_t more,
                              size_t limit);

#endif
