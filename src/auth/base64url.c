#include "auth/base64url.h"

#include <stdint.h>

#include "base/error.h"

static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

void hd_base64url_encode(const void *bytes, size_t len, char *out)
{
    const unsigned char *in = bytes;
    uint32_t bits = 0;
    unsigned count = 0;

    for (size_t i = 0; i < len; i++) {
        bits = bits << 8 | in[i];
        for (count += 8; count >= 6; count -= 6)
            *out++ = letters[bits >> (count - 6) & 63];
    }
    if (count > 0)
        *out = letters[bits << (6 - count) & 63];
}

/* The value of a character; -1: invalid. */
static int value_of(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    if (c == '-')
        return 62;
    return c == '_' ? 63 : -1;
}

int hd_base64url_decode(struct hd_slice text, unsigned char *out, size_t *len)
{
    uint32_t bits = 0;
    unsigned count = 0;
    size_t used = 0;

    for (size_t i = 0; i < text.len; i++) {
        int value = value_of(text.ptr[i]);

        if (value < 0)
            return HD_EINVAL;
        bits = bits << 6 | (uint32_t)value;
        count += 6;
        if (count >= 8) {
            count -= 8;
            out[used++] = (unsigned char)(bits >> count & 255);
        }
    }
    if (count >= 6 || (bits & ((1u << count) - 1)) != 0)
        return HD_EINVAL;
    *len = used;
    return 0;
}
