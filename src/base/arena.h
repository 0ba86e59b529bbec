/*
 * Memory that is freed all at once: one request, one batch, one result. An arena never moves an
 * allocation. Not thread-safe; one owner at a time.
 */
#ifndef HD_BASE_ARENA_H
#define HD_BASE_ARENA_H

#include <stdarg.h>
#include <stddef.h>

#include "base/compiler.h"
#include "base/slice.h"

struct hd_arena_block;

struct hd_arena {
    struct hd_arena_block *head;
    size_t used;  /* bytes allocated, over all blocks */
    size_t limit; /* upper bound of `used` */
};

/* Takes no memory yet. `limit` bounds the sum of all allocations. */
void hd_arena_init(struct hd_arena *arena, size_t limit);
void hd_arena_fini(struct hd_arena *arena);

/* Frees all allocations but keeps one block for reuse. */
void hd_arena_reset(struct hd_arena *arena);

/*
 * Aligned for any type; NULL when memory or the limit is exhausted. Size 0 also returns a pointer.
 */
HD_MUST_CHECK void *hd_arena_alloc(struct hd_arena *arena, size_t size);
HD_MUST_CHECK void *hd_arena_calloc(struct hd_arena *arena, size_t count, size_t size);

/* Copies `s` (and adds a NUL after it) into the arena; 0 or HD_ENOMEM. */
HD_MUST_CHECK int hd_arena_copy(struct hd_arena *arena, struct hd_slice s, struct hd_slice *out);

/* NUL-terminated, formatted; NULL when memory is exhausted. */
HD_MUST_CHECK char *hd_arena_printf(struct hd_arena *arena, const char *fmt, ...) HD_PRINTF(2, 3);

#endif
