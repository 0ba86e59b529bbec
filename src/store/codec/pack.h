/*
 * Compression of stored bytes, if it saves space: one codec byte, then the bytes as they are or a
 * zstd frame. Short texts share a built-in dictionary of the words that are common in checkpoints
 * and messages.
 */
#ifndef HD_STORE_CODEC_PACK_H
#define HD_STORE_CODEC_PACK_H

#include <stddef.h>

#include "base/arena.h"
#include "base/compiler.h"
#include "base/slice.h"

/* The packed form, in `arena`; 0 or HD_ENOMEM. */
HD_MUST_CHECK int hd_pack(struct hd_arena *arena, struct hd_slice bytes, struct hd_slice *out);

/* The same without compression. */
HD_MUST_CHECK int hd_pack_raw(struct hd_arena *arena, struct hd_slice bytes, struct hd_slice *out);

/* The size of the unpacked form; HD_ECORRUPT when the header is invalid. */
HD_MUST_CHECK int hd_unpacked_size(struct hd_slice packed, size_t *out);

/*
 * Writes exactly hd_unpacked_size() bytes to `out`, which has room for `cap`; HD_ECORRUPT
 * otherwise.
 */
HD_MUST_CHECK int hd_unpack(struct hd_slice packed, char *out, size_t cap, size_t *len);

/* Unpacks into memory of `arena`. */
HD_MUST_CHECK int hd_unpack_copy(struct hd_arena *arena, struct hd_slice packed,
                                 struct hd_slice *out);

#endif
