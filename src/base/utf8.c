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

/* The second byte is where overlong forms, surrogates and what lies above U+10FFFF show. */
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
