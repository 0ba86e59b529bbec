/* Checks of a list of pieces; shared by the unit test and the fuzzer. */
#ifndef HD_TESTS_SPLIT_CHECK_H
#define HD_TESTS_SPLIT_CHECK_H

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "store/codec/split.h"

static inline const char *hd_check_piece(const struct hd_piece *piece)
{
    XXH128_hash_t hash = XXH3_128bits(piece->bytes.ptr, piece->bytes.len);

    if (piece->bytes.len == 0)
        return "a piece is empty";
    if (piece->bytes.len > (piece->is_chunk ? HD_CHUNK_MAX : HD_LITERAL_MAX))
        return "a piece is too long";
    if (piece->is_chunk && (piece->hash.lo != hash.low64 || piece->hash.hi != hash.high64))
        return "the hash of a chunk is not that of its bytes";
    return NULL;
}

/* Returns NULL or the error: pieces must be well-formed and join to `value`. */
static inline const char *hd_check_pieces(struct hd_slice value, const struct hd_pieces *pieces)
{
    size_t pos = 0;
    size_t i;

    for (i = 0; i < pieces->count; i++) {
        const struct hd_piece *piece = &pieces->items[i];
        const char *fault = hd_check_piece(piece);

        if (fault)
            return fault;
        if (piece->comma && (pos == value.len || value.ptr[pos++] != ','))
            return "a comma that is not in the value";
        if (piece->bytes.ptr != value.ptr + pos || piece->bytes.len > value.len - pos)
            return "pieces do not follow one another";
        pos += piece->bytes.len;
    }
    return pos == value.len ? NULL : "the end of the value is missing";
}

#endif
