#include "base/buf.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"

#define FIRST_CAP 64
#define VARINT_MAX_BYTES 10

/* Makes cap at least `need`; doubling keeps appends linear in total. */
static int buf_grow(struct hd_buf *buf, size_t need)
{
    size_t cap = buf->cap ? buf->cap : FIRST_CAP;
    char *ptr;

    while (cap < need)
        cap = cap > SIZE_MAX / 2 ? need : cap * 2;
    if (cap > buf->limit && need <= buf->limit)
        cap = buf->limit;
    ptr = hd_realloc(buf->ptr, cap);
    if (!ptr)
        return HD_ENOMEM;
    buf->ptr = ptr;
    buf->cap = cap;
    return 0;
}

void hd_buf_init(struct hd_buf *buf, size_t limit)
{
    *buf = (struct hd_buf){.limit = limit};
}

void hd_buf_fini(struct hd_buf *buf)
{
    hd_free(buf->ptr);
    *buf = (struct hd_buf){0};
}

void hd_buf_fini_secret(struct hd_buf *buf)
{
    if (buf->ptr)
        explicit_bzero(buf->ptr, buf->cap);
    hd_buf_fini(buf);
}

void hd_buf_reset(struct hd_buf *buf)
{
    buf->len = 0;
}

int hd_buf_reserve(struct hd_buf *buf, size_t more)
{
    if (more > buf->limit - buf->len)
        return HD_ELIMIT;
    return more <= buf->cap - buf->len ? 0 : buf_grow(buf, buf->len + more);
}

int hd_buf_append_int(struct hd_buf *buf, int64_t value)
{
    char digits[20], *end = digits + sizeof(digits), *pos = end;
    uint64_t rest = value < 0 ? -(uint64_t)value : (uint64_t)value;

    do
        *--pos = (char)('0' + rest % 10);
    while ((rest /= 10) > 0);
    if (value < 0)
        *--pos = '-';
    return hd_buf_append(buf, pos, (size_t)(end - pos));
}

/* Formats into the available space and reserves more only if that was too little. */
int hd_buf_printf(struct hd_buf *buf, const char *fmt, ...)
{
    size_t room = buf->cap - buf->len;
    va_list args;
    int err, len;

    va_start(args, fmt);
    len = vsnprintf(room ? buf->ptr + buf->len : NULL, room, fmt, args);
    va_end(args);
    if (len < 0)
        return HD_EINVAL;
    if ((size_t)len > buf->limit - buf->len)
        return HD_ELIMIT;
    if ((size_t)len >= room) {
        /* One byte over the limit may be needed, for the NUL that is not kept. */
        err = buf_grow(buf, buf->len + (size_t)len + 1);
        if (err)
            return err;
        va_start(args, fmt);
        (void)vsnprintf(buf->ptr + buf->len, (size_t)len + 1, fmt, args);
        va_end(args);
    }
    buf->len += (size_t)len;
    return 0;
}

int hd_buf_append_varint(struct hd_buf *buf, uint64_t value)
{
    uint8_t bytes[VARINT_MAX_BYTES];
    size_t len = 0;

    for (; value >= 0x80; value >>= 7)
        bytes[len++] = (uint8_t)(value | 0x80);
    bytes[len++] = (uint8_t)value;
    return hd_buf_append(buf, bytes, len);
}

int hd_buf_append_u64(struct hd_buf *buf, uint64_t value)
{
    uint8_t bytes[8];

    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)(value >> (8 * i));
    return hd_buf_append(buf, bytes, sizeof(bytes));
}

int hd_buf_append_lenslice(struct hd_buf *buf, struct hd_slice s)
{
    size_t before = buf->len;
    int err;

    err = hd_buf_append_varint(buf, s.len);
    if (err)
        return err;
    err = hd_buf_append_slice(buf, s);
    if (err)
        buf->len = before;
    return err;
}

int hd_buf_append_escaped(struct hd_buf *buf, struct hd_slice text)
{
    int err = 0;

    for (size_t i = 0; i < text.len && !err; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        bool is_plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
                        (c >= 'A' && c <= 'Z') || (c && strchr("-._~", c));

        err = is_plain ? hd_buf_append_byte(buf, c) : hd_buf_printf(buf, "%%%02X", c);
    }
    return err;
}

char *hd_buf_take(struct hd_buf *buf, size_t *len)
{
    char *ptr = buf->ptr;

    if (len)
        *len = buf->len;
    hd_buf_init(buf, buf->limit);
    return ptr;
}

static size_t left(const struct hd_reader *r)
{
    return r->pos ? (size_t)(r->end - r->pos) : 0;
}

int hd_read_byte(struct hd_reader *r, uint8_t *out)
{
    if (left(r) == 0)
        return HD_ECORRUPT;
    *out = (uint8_t)*r->pos++;
    return 0;
}

/* Each number has exactly one encoding: more bytes than needed are an error, like too few. */
int hd_read_varint(struct hd_reader *r, uint64_t *out)
{
    const char *pos = r->pos;
    size_t room = left(r);
    uint64_t value = 0;

    for (size_t i = 0; i < room && i < VARINT_MAX_BYTES; i++) {
        uint8_t byte = (uint8_t)pos[i];

        if (i == VARINT_MAX_BYTES - 1 && byte > 1)
            return HD_ECORRUPT;
        value |= (uint64_t)(byte & 0x7f) << (7 * i);
        if (byte & 0x80)
            continue;
        if (byte == 0 && i > 0)
            return HD_ECORRUPT;
        r->pos = pos + i + 1;
        *out = value;
        return 0;
    }
    return HD_ECORRUPT;
}

int hd_read_u64(struct hd_reader *r, uint64_t *out)
{
    uint64_t value = 0;

    if (left(r) < 8)
        return HD_ECORRUPT;
    for (size_t i = 0; i < 8; i++)
        value |= (uint64_t)(uint8_t)r->pos[i] << (8 * i);
    r->pos += 8;
    *out = value;
    return 0;
}

int hd_read_bytes(struct hd_reader *r, size_t len, struct hd_slice *out)
{
    if (len > left(r))
        return HD_ECORRUPT;
    *out = hd_slice(r->pos, len);
    if (len > 0)
        r->pos += len;
    return 0;
}

int hd_read_lenslice(struct hd_reader *r, struct hd_slice *out)
{
    struct hd_reader ahead = *r;
    uint64_t len;
    int err;

    err = hd_read_varint(&ahead, &len);
    if (err)
        return err;
    if (len > left(&ahead))
        return HD_ECORRUPT;
    err = hd_read_bytes(&ahead, (size_t)len, out);
    if (err)
        return err;
    *r = ahead;
    return 0;
}
