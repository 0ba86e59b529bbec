/*
 * Splits a value so that unchanged parts are split the same way again.
 *
 * A value becomes a list of pieces: short *literals*, kept beside the value, and *chunks*, stored
 * once by content. A list of messages is cut at its elements, so appending one message leaves all
 * other chunks unchanged; so does removing the first one. Bytes of unknown structure are cut at
 * positions that depend on their content (a rolling hash). Pure: no I/O, no state.
 *
 * The comma between two elements of a JSON array belongs to no piece: `comma` marks that one
 * precedes this piece. So an element is the same chunk at every position.
 */
#ifndef HD_STORE_CODEC_SPLIT_H
#define HD_STORE_CODEC_SPLIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/slice.h"

#define HD_LITERAL_MAX 64                   /* a literal piece is never longer */
#define HD_CHUNK_MAX (1u << 20)             /* a chunk is never longer */
#define HD_CHUNK_SEQ_MAX ((int64_t)1 << 62) /* greatest stored number */

struct hd_hash128 {
    uint64_t lo, hi;
};

/* XXH3-128, the identity of chunks. */
struct hd_hash128 hd_hash128_of(struct hd_slice bytes);

struct hd_piece {
    struct hd_slice bytes;  /* borrows from the value */
    struct hd_hash128 hash; /* XXH3-128 of bytes; chunks only */
    bool is_chunk;
    bool comma; /* one ',' precedes it in the value */
};

struct hd_pieces {
    struct hd_piece *items;
    size_t count;
    size_t cap;
};

void hd_pieces_init(struct hd_pieces *pieces);
void hd_pieces_fini(struct hd_pieces *pieces);

/*
 * Splits `bytes`, whose serializer tag is `type` ("hd1" and "json": JSON text; "msgpack"; anything
 * else, or text that does not parse: by content). Replaces the contents of `pieces`. 0 or
 * HD_ENOMEM.
 */
HD_MUST_CHECK int hd_split(struct hd_slice type, struct hd_slice bytes, struct hd_pieces *pieces);

#endif
