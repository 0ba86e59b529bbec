#include "base/utf8.h"

#include <stdint.h>

static size_t length_of(uint8_t lead)
{
    if (lead < 0x80)
        return 1;
    if (lead >= 0xc2 && lead < 0xe0)
        return 2;
    if (lead >= 0xe0 && lead < 0xf0)
        return 3;
    return lead >= 0xf0 && lead < 0xf5 ? 4 : 0;
}

/* The second byte reveals overlong forms, surrogates and values above U+10FFFF. */
static int second_is_good(uint8_t lead, uint8_t second)
{
    uint8_t low = 0x80, high = 0xbf;

    switch (lead) {
    case 0xe0:
        low = 0xa0;
        break;
    case 0xed:
        high = 0x9f;
        break;
    case 0xf0:
        low = 0x90;
        break;
    case 0xf4:
        high = 0x8f;
        break;
    default:
        break;
    }
    return second >= low && second <= high;
}

size_t hd_utf8_char(const char *pos, const char *end)
{
    const uint8_t *p = (const uint8_t *)pos;
    size_t len;

    if (pos == end)
        return 0;
    len = length_of(p[0]);
    if (len <= 1)
        return len;
    if (len > (size_t)(end - pos) || !second_is_good(p[0], p[1]))
        return 0;
    for (size_t i = 2; i < len; i++)
        if ((p[i] & 0xc0) != 0x80)
            return 0;
    return len;
}

size_t hd_utf8_count(struct hd_slice text)
{
    size_t count = 0;

    for (size_t i = 0; i < text.len; i++)
        count += ((unsigned char)text.ptr[i] & 0xC0) != 0x80;
    return count;
}

bool hd_utf8_is_valid(struct hd_slice text)
{
    const char *pos = text.ptr, *end = text.ptr ? text.ptr + text.len : NULL;

    while (pos < end) {
        size_t len = hd_utf8_char(pos, end);

        if (len == 0)
            return false;
        pos += len;
    }
    return true;
}

size_t hd_utf8_cut(const char *text, size_t len)
{
    size_t start = len;

    while (start > 0 && len - start < 3 && ((uint8_t)text[start - 1] & 0xc0) == 0x80)
        start--;
    if (start == 0 || (uint8_t)text[start - 1] < 0xc0)
        return len;
    start--;
    return start + length_of((uint8_t)text[start]) <= len ? len : start;
}

/* ---- finding ---- */

uint32_t hd_utf8_next(const char **pos, const char *end)
{
    const uint8_t *p = (const uint8_t *)*pos;
    size_t len = hd_utf8_char(*pos, end);
    uint32_t c = len > 1 ? p[0] & (0x7fu >> len) : p[0];

    for (size_t i = 1; i < len; i++)
        c = c << 6 | (p[i] & 0x3f);
    *pos += len ? len : 1;
    return c;
}

size_t hd_utf8_put(uint32_t c, char out[4])
{
    size_t len = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;

    if (len == 1) {
        out[0] = (char)c;
        return 1;
    }
    for (size_t i = len - 1; i > 0; i--, c >>= 6)
        out[i] = (char)(0x80 | (c & 0x3f));
    out[0] = (char)(((0xf00u >> len) & 0xffu) | c);
    return len;
}

static bool is_between(uint32_t c, uint32_t first, uint32_t last)
{
    return c >= first && c <= last;
}

/* In these the lower-case letter follows its upper-case one. */
static bool is_capital_of_a_pair(uint32_t c)
{
    if (is_between(c, 0x139, 0x148) || is_between(c, 0x179, 0x17e) || is_between(c, 0x4c1, 0x4ce))
        return c % 2 == 1;
    return (is_between(c, 0x100, 0x137) || is_between(c, 0x14a, 0x177) ||
            is_between(c, 0x460, 0x481) || is_between(c, 0x48a, 0x4bf) ||
            is_between(c, 0x4d0, 0x52f)) &&
           c % 2 == 0;
}

/* Vowels with an accent, and the final sigma. */
static uint32_t small_greek(uint32_t c)
{
    if (c == 0x386)
        return 0x3ac;
    if (is_between(c, 0x388, 0x38a))
        return c + 0x25;
    if (c == 0x38c)
        return 0x3cc;
    if (is_between(c, 0x38e, 0x38f))
        return c + 0x3f;
    return c == 0x3c2 ? 0x3c3 : c;
}

uint32_t hd_utf8_small(uint32_t c)
{
    if (is_between(c, 'A', 'Z') || (is_between(c, 0xc0, 0xde) && c != 0xd7) ||
        (is_between(c, 0x391, 0x3ab) && c != 0x3a2) || is_between(c, 0x410, 0x42f))
        return c + 0x20;
    if (is_between(c, 0x400, 0x40f))
        return c + 0x50;
    if (is_between(c, 0x386, 0x3c2))
        return small_greek(c);
    if (c == 0x178)
        return 0xff;
    return c + (is_capital_of_a_pair(c) && c != 0x130);
}

static bool begins(const char *pos, const char *end, struct hd_slice part)
{
    const char *other = part.ptr, *other_end = part.ptr + part.len;

    while (other < other_end) {
        if (pos == end || hd_utf8_small(hd_utf8_next(&pos, end)) !=
                              hd_utf8_small(hd_utf8_next(&other, other_end)))
            return false;
    }
    return true;
}

bool hd_utf8_finds(struct hd_slice text, struct hd_slice part)
{
    const char *pos = text.ptr, *end = text.len ? text.ptr + text.len : text.ptr;

    if (part.len == 0)
        return true;
    while (pos != end) {
        if (begins(pos, end, part))
            return true;
        (void)hd_utf8_next(&pos, end);
    }
    return false;
}
