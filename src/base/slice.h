/*
 * A borrowed sequence of bytes. Not NUL-terminated, may contain NUL, may be empty with ptr == NULL.
 * Ids, namespaces and values are all slices.
 */
#ifndef HD_BASE_SLICE_H
#define HD_BASE_SLICE_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct hd_slice {
    const char *ptr;
    size_t len;
};

/* A slice of a string literal: as an expression, and as an initialiser of static data. */
#define HD_S(literal) ((struct hd_slice)HD_S_INIT(literal))
#define HD_S_INIT(literal)             \
    {                                  \
        (literal), sizeof(literal) - 1 \
    }

static inline struct hd_slice hd_slice(const void *ptr, size_t len)
{
    return (struct hd_slice){ptr, len};
}

static inline struct hd_slice hd_slice_cstr(const char *text)
{
    return (struct hd_slice){text, text ? strlen(text) : 0};
}

static inline bool hd_slice_eq(struct hd_slice a, struct hd_slice b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

/* Byte order, the shorter first when one is a prefix of the other. */
static inline int hd_slice_cmp(struct hd_slice a, struct hd_slice b)
{
    size_t common = a.len < b.len ? a.len : b.len;
    int order = common ? memcmp(a.ptr, b.ptr, common) : 0;

    if (order != 0)
        return order;
    return a.len < b.len ? -1 : a.len > b.len;
}

static inline bool hd_slice_starts(struct hd_slice s, struct hd_slice prefix)
{
    return s.len >= prefix.len && (prefix.len == 0 || memcmp(s.ptr, prefix.ptr, prefix.len) == 0);
}

/* RFC 9110's token: the characters of header names. */
static inline bool hd_slice_is_token(struct hd_slice s)
{
    for (size_t i = 0; i < s.len; i++) {
        char c = s.ptr[i];
        bool is_alnum = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');

        if (!is_alnum && !(c && strchr("!#$%&'*+-.^_`|~", c)))
            return false;
    }
    return s.len > 0;
}

#endif
