/* What was compressed before: embedded files. */
#ifndef HD_HTTP_GZIP_H
#define HD_HTTP_GZIP_H

#include "base/buf.h"
#include "base/compiler.h"
#include "base/slice.h"

/*
 * Appends what `in`, all of one gzip member, unpacks to. `out` is given room for all of its limit,
 * which should be the length. HD_EINVAL: it is none, or is longer than that. HD_ENOMEM.
 */
HD_MUST_CHECK int hd_gunzip(struct hd_slice in, struct hd_buf *out);

#endif
