/*
 * A growing byte buffer with a limit given at construction. An append that
 * would pass the limit fails with HD_ELIMIT and changes nothing.
 */
#ifndef HD_BASE_BUF_H
#define HD_BASE_BUF_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/compiler.h"
#include "base/slice.h"

struct hd_buf {
    char *ptr;
    size_t len;
    size_t cap;
    size_t limit;
};

void hd_buf_init(struct hd_buf *buf, size_t limit);
void hd_buf_fini(struct hd_buf *buf);
/* As hd_buf_fini(), for secrets: overwrites the memory before it is freed. */
void hd_buf_fini_secret(struct hd_buf *buf);
void hd_buf_reset(struct hd_buf *buf);

/* Reserves `more` bytes after len: the caller may write there itself and then add to len. */
HD_MUST_CHECK int hd_buf_reserve(struct hd_buf *buf, size_t more);

/* Inline, because all text passes through them. */
HD_MUST_CHECK static inline int hd_buf_append(struct hd_buf *buf, const void *bytes, size_t len)
{
    int err = 0;

    if (len == 0)
        return 0;
    if (len > buf->cap - buf->len || len > buf->limit - buf->len)
        err = hd_buf_reserve(buf, len);
    if (err)
        return err;
    memcpy(buf->ptr + buf->len, bytes, len);
    buf->len += len;
    return 0;
}

HD_MUST_CHECK static inline int hd_buf_append_slice(struct hd_buf *buf, struct hd_slice s)
{
    return hd_buf_append(buf, s.ptr, s.len);
}

HD_MUST_CHECK static inline int hd_buf_append_byte(struct hd_buf *buf, uint8_t byte)
{
    return hd_buf_append(buf, &byte, 1);
}

/* Appends the number in decimal. */
HD_MUST_CHECK int hd_buf_append_int(struct hd_buf *buf, int64_t value);
HD_MUST_CHECK int hd_buf_printf(struct hd_buf *buf, const char *fmt, ...) HD_PRINTF(2, 3);

/* LEB128 unsigned, and 8 bytes little endian. */
HD_MUST_CHECK int hd_buf_append_varint(struct hd_buf *buf, uint64_t value);
HD_MUST_CHECK int hd_buf_append_u64(struct hd_buf *buf, uint64_t value);
/* A varint length followed by the bytes. */
HD_MUST_CHECK int hd_buf_append_lenslice(struct hd_buf *buf, struct hd_slice s);

/* Percent-encodes for a URL: all but RFC 3986's unreserved characters become %XX. */
HD_MUST_CHECK int hd_buf_append_escaped(struct hd_buf *buf, struct hd_slice text);

/* Moves the memory out (free with hd_free); the buffer becomes empty. */
char *hd_buf_take(struct hd_buf *buf, size_t *len);

static inline struct hd_slice hd_buf_slice(const struct hd_buf *buf)
{
    return hd_slice(buf->ptr, buf->len);
}

/*
 * The reading side: a cursor over borrowed bytes. Every reader checks bounds,
 * advances on success and returns HD_ECORRUPT otherwise.
 */
struct hd_reader {
    const char *pos;
    const char *end;
};

static inline struct hd_reader hd_reader(struct hd_slice s)
{
    return (struct hd_reader){s.ptr, s.ptr ? s.ptr + s.len : NULL};
}

HD_MUST_CHECK int hd_read_byte(struct hd_reader *r, uint8_t *out);
HD_MUST_CHECK int hd_read_varint(struct hd_reader *r, uint64_t *out);
HD_MUST_CHECK int hd_read_u64(struct hd_reader *r, uint64_t *out);
HD_MUST_CHECK int hd_read_bytes(struct hd_reader *r, size_t len, struct hd_slice *out);
HD_MUST_CHECK int hd_read_lenslice(struct hd_reader *r, struct hd_slice *out);

#endif
