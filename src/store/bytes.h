/* Slices as the public API has them, and back. */
#ifndef HD_STORE_BYTES_H
#define HD_STORE_BYTES_H

#include <heddle.h>

#include "base/slice.h"

static inline struct hd_slice hd_from_public(struct heddle_bytes bytes)
{
    return hd_slice(bytes.data, bytes.len);
}

static inline struct heddle_bytes hd_to_public(struct hd_slice s)
{
    return (struct heddle_bytes){s.ptr, s.len};
}

#endif
