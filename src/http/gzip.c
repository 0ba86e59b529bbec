#include "http/gzip.h"

#include <limits.h>
#include <zlib.h>

#include "base/alloc.h"
#include "base/error.h"
#include "http/internal.h"

#define LEVEL 1 /* five times as fast as the default 6 and, on JSON, a tenth larger */
#define WINDOW_WITH_GZIP_HEADER (15 + 16)
#define MEMORY 8

bool hd_gzip_is_worth(struct hd_slice content_type)
{
    static const struct hd_slice prefixes[] = {
        HD_S_INIT("application/json"),         HD_S_INIT("text/"),
        HD_S_INIT("application/javascript"),   HD_S_INIT("image/svg+xml"),
        HD_S_INIT("application/openapi+json"),
    };

    for (size_t i = 0; i < HD_COUNT(prefixes); i++) {
        if (hd_slice_starts(content_type, prefixes[i]))
            return true;
    }
    return false;
}

static void *allocate(void *opaque, uInt count, uInt size)
{
    (void)opaque;
    return hd_calloc(count, size);
}

static void release_block(void *opaque, void *ptr)
{
    (void)opaque;
    hd_free(ptr);
}

int hd_gzip(struct hd_slice in, struct hd_buf *out)
{
    z_stream z = {.zalloc = allocate, .zfree = release_block};
    int err, code;

    if (in.len > UINT_MAX)
        return HD_ELIMIT;
    err = hd_buf_reserve(out, in.len);
    if (err)
        return err;
    if (deflateInit2(&z, LEVEL, Z_DEFLATED, WINDOW_WITH_GZIP_HEADER, MEMORY, Z_DEFAULT_STRATEGY) !=
        Z_OK)
        return HD_ENOMEM;
    z.next_in = (Bytef *)in.ptr;
    z.avail_in = (uInt)in.len;
    z.next_out = (Bytef *)(out->ptr + out->len);
    z.avail_out = (uInt)in.len;
    code = deflate(&z, Z_FINISH);
    if (code == Z_STREAM_END)
        out->len += z.total_out;
    (void)deflateEnd(&z);
    return code == Z_STREAM_END ? 0 : HD_ELIMIT;
}

int hd_gunzip(struct hd_slice in, struct hd_buf *out)
{
    z_stream z = {.zalloc = allocate, .zfree = release_block};
    size_t room = out->limit - out->len;
    int err, code;

    if (in.len > UINT_MAX || room > UINT_MAX)
        return HD_ELIMIT;
    err = hd_buf_reserve(out, room);
    if (err)
        return err;
    if (inflateInit2(&z, WINDOW_WITH_GZIP_HEADER) != Z_OK)
        return HD_ENOMEM;
    z.next_in = (Bytef *)in.ptr;
    z.avail_in = (uInt)in.len;
    z.next_out = (Bytef *)(out->ptr + out->len);
    z.avail_out = (uInt)room;
    code = inflate(&z, Z_FINISH);
    if (code == Z_STREAM_END)
        out->len += z.total_out;
    (void)inflateEnd(&z);
    if (code == Z_MEM_ERROR)
        return HD_ENOMEM;
    return code == Z_STREAM_END ? 0 : HD_EINVAL;
}
