/*
 * The pieces, the cutter that makes them, and the choice of the format.
 *
 * Large elements become separate chunks. Smaller ones are grouped, and the hash of its last element
 * decides where a group ends, so that groups return to the same cuts after an insertion or a
 * removal. An element ends a group with a probability in proportion to its length: so groups of
 * numbers and of short messages have about the same number of bytes.
 */
#include "store/codec/split.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/vec.h"
#include "store/codec/split_internal.h"

#define GROUP_MIN 256u /* identical elements must not become a chunk each */

_Static_assert(HD_SPLIT_GROUP_AVG == 1u << 10, "ends_group() multiplies by 2^32 / 2^10");

void hd_pieces_init(struct hd_pieces *pieces)
{
    *pieces = (struct hd_pieces){0};
}

void hd_pieces_fini(struct hd_pieces *pieces)
{
    hd_free(pieces->items);
    *pieces = (struct hd_pieces){0};
}

static int pieces_add(struct hd_pieces *pieces, const struct hd_piece *piece)
{
    int err = hd_array_grow(pieces->items, pieces->count, pieces->cap);

    if (!err)
        pieces->items[pieces->count++] = *piece;
    return err;
}

int hd_pieces_add_literal(struct hd_pieces *pieces, struct hd_slice bytes)
{
    struct hd_piece piece = {.bytes = bytes};

    return pieces_add(pieces, &piece);
}

struct hd_hash128 hd_hash128_of(struct hd_slice bytes)
{
    XXH128_hash_t hash = XXH3_128bits(bytes.ptr, bytes.len);

    return (struct hd_hash128){.lo = hash.low64, .hi = hash.high64};
}

static int add_chunk(struct hd_pieces *pieces, struct hd_slice bytes, bool comma)
{
    struct hd_piece piece = {
        .bytes = bytes,
        .hash = hd_hash128_of(bytes),
        .is_chunk = true,
        .comma = comma,
    };

    return pieces_add(pieces, &piece);
}

static int add_by_content(struct hd_pieces *pieces, struct hd_slice bytes, bool comma)
{
    struct hd_cdc cdc = hd_cdc(bytes.len);

    while (bytes.len > 0) {
        size_t len = hd_cdc_next(&cdc, bytes);

        if (add_chunk(pieces, hd_slice(bytes.ptr, len), comma) != 0)
            return HD_ENOMEM;
        bytes = hd_slice(bytes.ptr + len, bytes.len - len);
        comma = false;
    }
    return 0;
}

static int add_glue(struct hd_pieces *pieces, struct hd_slice bytes)
{
    if (bytes.len == 0)
        return 0;
    if (bytes.len <= HD_LITERAL_MAX)
        return hd_pieces_add_literal(pieces, bytes);
    return add_by_content(pieces, bytes, false);
}

/* Makes [begin, end) a chunk, and the bytes between it and the last piece its comma or glue. */
static int emit(struct hd_cutter *c, const char *begin, const char *end)
{
    struct hd_slice gap = hd_slice(c->done, (size_t)(begin - c->done));
    struct hd_slice bytes = hd_slice(begin, (size_t)(end - begin));
    bool comma = gap.len == 1 && gap.ptr[0] == ',';

    if (!comma && add_glue(c->pieces, gap) != 0)
        return HD_ENOMEM;
    c->done = end;
    if (bytes.len <= HD_CHUNK_MAX)
        return add_chunk(c->pieces, bytes, comma);
    return add_by_content(c->pieces, bytes, comma);
}

/* True for len of every HD_SPLIT_GROUP_AVG elements of that length. */
static bool ends_group(const char *element, size_t len)
{
    uint64_t hash = XXH3_64bits(element, len) >> 32;

    return hash < (uint64_t)len << (32 - 10);
}

int hd_cutter_flush(struct hd_cutter *c)
{
    const char *begin = c->group;

    if (!begin)
        return 0;
    c->group = NULL;
    return emit(c, begin, c->group_end);
}

int hd_cutter_element(struct hd_cutter *c, const char *begin, const char *end)
{
    size_t len = (size_t)(end - begin);

    if (len >= HD_SPLIT_BIG || (c->group && (size_t)(end - c->group) > HD_SPLIT_GROUP_MAX)) {
        int err = hd_cutter_flush(c);

        if (err != 0)
            return err;
    }
    if (len >= HD_SPLIT_BIG)
        return emit(c, begin, end);
    if (!c->group)
        c->group = begin;
    c->group_end = end;
    if ((size_t)(end - c->group) >= GROUP_MIN && ends_group(begin, len))
        return hd_cutter_flush(c);
    return 0;
}

struct hd_cutter_mark hd_cutter_mark(const struct hd_cutter *c)
{
    return (struct hd_cutter_mark){.done = c->done, .count = c->pieces->count};
}

void hd_cutter_rewind(struct hd_cutter *c, struct hd_cutter_mark mark)
{
    c->done = mark.done;
    c->group = NULL;
    c->pieces->count = mark.count;
}

/* Cuts by structure; HD_EINVAL when there is no structure. */
static int split_by_structure(struct hd_slice type, struct hd_slice bytes, struct hd_pieces *pieces)
{
    struct hd_cutter cutter = {.pieces = pieces, .done = bytes.ptr};
    int err = HD_EINVAL;

    if (hd_slice_eq(type, HD_S("hd1")) || hd_slice_eq(type, HD_S("json")))
        err = hd_split_json(&cutter, bytes);
    else if (hd_slice_eq(type, HD_S("msgpack")))
        err = hd_split_msgpack(&cutter, bytes);
    if (err == 0)
        err = hd_cutter_flush(&cutter);
    if (err != 0)
        return err;
    return add_glue(pieces, hd_slice(cutter.done, (size_t)(bytes.ptr + bytes.len - cutter.done)));
}

int hd_split(struct hd_slice type, struct hd_slice bytes, struct hd_pieces *pieces)
{
    int err;

    pieces->count = 0;
    if (bytes.len == 0)
        return 0;
    err = split_by_structure(type, bytes, pieces);
    if (err == HD_EINVAL) {
        pieces->count = 0;
        err = add_by_content(pieces, bytes, false);
    }
    if (err != 0)
        pieces->count = 0;
    return err;
}
