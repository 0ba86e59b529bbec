/* Values to cut, and checks of the pieces. */
#ifndef HD_TESTS_SPLIT_HELP_H
#define HD_TESTS_SPLIT_HELP_H

#include "store/codec/split.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/error.h"
#include "tests/split_check.h"

/* ---- values to cut ---------------------------------------------------- */

struct text {
    char *ptr;
    size_t len;
    size_t cap;
};

static inline void put(struct text *t, const void *bytes, size_t len)
{
    if (t->len + len > t->cap) {
        t->cap = (t->len + len) * 2;
        t->ptr = realloc(t->ptr, t->cap);
        assert_non_null(t->ptr);
    }
    if (len > 0)
        memcpy(t->ptr + t->len, bytes, len);
    t->len += len;
}

static inline void put_str(struct text *t, const char *s)
{
    put(t, s, strlen(s));
}

static inline void put_byte(struct text *t, unsigned byte)
{
    unsigned char b = (unsigned char)byte;

    put(t, &b, 1);
}

static inline void put_be(struct text *t, uint64_t number, int size)
{
    while (size-- > 0)
        put_byte(t, (unsigned)(number >> (8 * size)) & 0xff);
}

static inline void put_fill(struct text *t, char byte, size_t count)
{
    while (count-- > 0)
        put(t, &byte, 1);
}

static uint64_t random_state;

static inline uint32_t next_random(void)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(random_state >> 32);
}

/* Bytes that differ for each `seed`. */
static inline void put_random(struct text *t, uint32_t seed, size_t count)
{
    random_state = seed;
    while (count-- > 0)
        put_byte(t, next_random() >> 24);
}

/* A message whose content has `size` bytes. */
static inline void put_message(struct text *t, uint32_t seed, size_t size)
{
    char head[96];

    random_state = seed;
    snprintf(head, sizeof(head), "{\"$\":\"message\",\"type\":\"%s\",\"id\":\"m%u\",\"content\":\"",
             seed % 2 ? "human" : "ai", seed);
    put_str(t, head);
    while (size-- > 0)
        put_byte(t, 'a' + next_random() % 26);
    put_str(t, "\"}");
}

/* Messages from..to (exclusive) joined by `separator`, within `open` and `close`. */
static inline struct text messages(const char *open, uint32_t from, uint32_t to, size_t size,
                                   const char *separator, const char *close)
{
    struct text t = {0};
    uint32_t i;

    put_str(&t, open);
    for (i = from; i < to; i++) {
        if (i > from)
            put_str(&t, separator);
        put_message(&t, i, size);
    }
    put_str(&t, close);
    return t;
}

static inline struct text numbers(const char *open, int from, int to, const char *close)
{
    struct text t = {0};
    char number[32];
    int i;

    put_str(&t, open);
    for (i = from; i < to; i++) {
        snprintf(number, sizeof(number), i > from ? ",%d" : "%d", i);
        put_str(&t, number);
    }
    put_str(&t, close);
    return t;
}

static inline void put_ext(struct text *t, uint32_t seed, size_t size)
{
    put_byte(t, 0xc8);
    put_be(t, size, 2);
    put_byte(t, 5);
    put_random(t, seed, size);
}

static inline struct text msgpack_messages(unsigned head, uint64_t count, uint32_t from,
                                           uint32_t to, size_t size)
{
    struct text t = {0};

    put_byte(&t, head);
    put_be(&t, count, head == 0xdd ? 4 : head == 0xdc ? 2 : 0);
    while (from < to)
        put_ext(&t, from++, size);
    return t;
}

/* ---- cutting them ----------------------------------------------------- */

/* Cuts and checks; the caller frees with drop(). */
static inline struct hd_pieces split(const char *type, const struct text *t)
{
    struct hd_pieces pieces;
    const char *fault;

    hd_pieces_init(&pieces);
    assert_true(hd_split(hd_slice_cstr(type), hd_slice(t->ptr, t->len), &pieces) == 0);
    fault = hd_check_pieces(hd_slice(t->ptr, t->len), &pieces);
    if (fault)
        fail_msg("%s (type %s, %zu bytes)", fault, type, t->len);
    return pieces;
}

static inline void drop(struct hd_pieces *pieces, struct text *t)
{
    hd_pieces_fini(pieces);
    free(t->ptr);
}

static inline struct hd_pieces split_str(const char *type, const char *s)
{
    struct text t = {(char *)(uintptr_t)s, strlen(s), 0};

    return split(type, &t);
}

static inline size_t chunk_count(const struct hd_pieces *pieces)
{
    size_t count = 0;
    size_t i;

    for (i = 0; i < pieces->count; i++)
        count += pieces->items[i].is_chunk;
    return count;
}

static inline bool has_chunk(const struct hd_pieces *pieces, struct hd_hash128 hash)
{
    size_t i;

    for (i = 0; i < pieces->count; i++)
        if (pieces->items[i].is_chunk && pieces->items[i].hash.lo == hash.lo &&
            pieces->items[i].hash.hi == hash.hi)
            return true;
    return false;
}

static inline bool has_chunk_of(const struct hd_pieces *pieces, struct hd_slice bytes)
{
    XXH128_hash_t hash = XXH3_128bits(bytes.ptr, bytes.len);

    return has_chunk(pieces, (struct hd_hash128){hash.low64, hash.high64});
}

/* The number of chunks of `a` that `b` does not have. */
static inline size_t missing(const struct hd_pieces *a, const struct hd_pieces *b)
{
    size_t count = 0;
    size_t i;

    for (i = 0; i < a->count; i++)
        count += a->items[i].is_chunk && !has_chunk(b, a->items[i].hash);
    return count;
}

static inline bool is_piece(const struct hd_piece *piece, bool is_chunk, bool comma,
                            const char *bytes)
{
    return piece->is_chunk == is_chunk && piece->comma == comma &&
           hd_slice_eq(piece->bytes, hd_slice_cstr(bytes));
}

#endif
