/* Decompression of embedded files. */
#ifndef HD_HTTP_GZIP_H
#define HD_HTTP_GZIP_H

#include "base/buf.h"
#include "base/compiler.h"
#include "base/slice.h"

/*
 * Appends the contents of `in`, one whole gzip member. `out` is reserved up to its limit, which
 * should be the length. HD_EINVAL: invalid, or longer than that. HD_ENOMEM.
 */
HD_MUST_CHECK int hd_gunzip(struct hd_slice in, struct hd_buf *out);

#endif
