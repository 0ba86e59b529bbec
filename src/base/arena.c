/*
 * Blocks in a list, newest first; only the head is filled further. A request that is large for a
 * new block gets its own block behind the head, so that the rest of the head is not lost. Under
 * AddressSanitizer free memory is poisoned, and a gap follows each allocation.
 */
#include "base/arena.h"

#include <stdalign.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"

#define ALIGNMENT alignof(max_align_t)
#define FIRST_BLOCK ((size_t)960) /* with its header still a small size for allocators */
#define LARGEST_BLOCK ((size_t)256 * 1024)

struct hd_arena_block {
    struct hd_arena_block *next;
    size_t cap; /* bytes in data */
    size_t used;
    alignas(max_align_t) char data[];
};

/* The target of allocations of size 0; never written. */
static max_align_t nothing;

static size_t align_up(size_t size)
{
    return (size + ALIGNMENT - 1) & ~(ALIGNMENT - 1);
}

static struct hd_arena_block *block_create(size_t cap)
{
    struct hd_arena_block *block = hd_malloc(sizeof(*block) + cap);

    if (!block)
        return NULL;
    block->next = NULL;
    block->cap = cap;
    block->used = 0;
    HD_POISON(block->data, cap);
    return block;
}

static void block_destroy(struct hd_arena_block *block)
{
    HD_UNPOISON(block->data, block->cap);
    hd_free(block);
}

/* Blocks double up to a bound, so that small arenas stay small and large ones have few blocks. */
static size_t next_cap(const struct hd_arena *arena)
{
    size_t cap = arena->head ? arena->head->cap * 2 : FIRST_BLOCK;

    return cap < LARGEST_BLOCK ? cap : LARGEST_BLOCK;
}

static struct hd_arena_block *block_for(struct hd_arena *arena, size_t size)
{
    struct hd_arena_block *head = arena->head, *block;
    size_t cap = next_cap(arena);
    int is_large = size > cap / 4;

    if (head && head->cap - head->used >= size)
        return head;
    block = block_create(is_large ? size : cap);
    if (!block)
        return NULL;
    if (is_large && head) {
        block->next = head->next;
        head->next = block;
    } else {
        block->next = head;
        arena->head = block;
    }
    return block;
}

void hd_arena_init(struct hd_arena *arena, size_t limit)
{
    *arena = (struct hd_arena){.limit = limit};
}

void hd_arena_fini(struct hd_arena *arena)
{
    struct hd_arena_block *block = arena->head, *next;

    for (; block; block = next) {
        next = block->next;
        block_destroy(block);
    }
    *arena = (struct hd_arena){0};
}

void hd_arena_reset(struct hd_arena *arena)
{
    struct hd_arena_block *keep = arena->head, *block, *next;

    arena->used = 0;
    if (!keep)
        return;
    for (block = keep->next; block; block = next) {
        next = block->next;
        block_destroy(block);
    }
    keep->next = NULL;
    keep->used = 0;
    HD_POISON(keep->data, keep->cap);
}

void *hd_arena_alloc(struct hd_arena *arena, size_t size)
{
    struct hd_arena_block *block;
    size_t room;
    char *ptr;

    if (size == 0)
        return &nothing;
    if (size > arena->limit - arena->used || size > SIZE_MAX / 2)
        return NULL;
    room = align_up(size + HD_REDZONE);
    block = block_for(arena, room);
    if (!block)
        return NULL;
    ptr = block->data + block->used;
    block->used += room;
    arena->used += size;
    HD_UNPOISON(ptr, size);
    return ptr;
}

void *hd_arena_calloc(struct hd_arena *arena, size_t count, size_t size)
{
    void *ptr;

    if (size != 0 && count > SIZE_MAX / size)
        return NULL;
    ptr = hd_arena_alloc(arena, count * size);
    return ptr ? memset(ptr, 0, count * size) : NULL;
}

int hd_arena_copy(struct hd_arena *arena, struct hd_slice s, struct hd_slice *out)
{
    char *copy;

    if (s.len == SIZE_MAX)
        return HD_ENOMEM;
    copy = hd_arena_alloc(arena, s.len + 1);
    if (!copy)
        return HD_ENOMEM;
    if (s.len > 0)
        memcpy(copy, s.ptr, s.len);
    copy[s.len] = '\0';
    *out = hd_slice(copy, s.len);
    return 0;
}

char *hd_arena_printf(struct hd_arena *arena, const char *fmt, ...)
{
    va_list args, again;
    char *text = NULL;
    int len;

    va_start(args, fmt);
    va_copy(again, args);
    len = vsnprintf(NULL, 0, fmt, args);
    if (len >= 0)
        text = hd_arena_alloc(arena, (size_t)len + 1);
    if (text)
        (void)vsnprintf(text, (size_t)len + 1, fmt, again);
    va_end(again);
    va_end(args);
    return text;
}
