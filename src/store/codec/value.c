/*
 * Encodings, all integers as varints:
 *
 *   inline reference    1, bytes
 *   chunked reference   2, size, checksum (8 bytes), number of segments, segments
 *   segment             flags; literal: length, bytes
 *                              extent: [length, sequence name,] first number, count
 *                       (the first number of an extent counts from the end of the one before,
 *                       zigzag: lists with regular gaps then compress to next to nothing)
 *   body                1, v, JSON length and text, number of entries,
 *                       each: channel, type, reference (length and bytes)
 *
 * They are read back from disk, so every reader checks every bound.
 */
#include "store/codec/value.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/error.h"

enum { REF_INLINE = 1, REF_CHUNKED = 2 };
enum { SEG_EXTENT = 1, SEG_FIRST_COMMA = 2, SEG_REST_COMMA = 4, SEG_NAMED_SEQUENCE = 8 };
enum { BODY_FORMAT = 1 };

uint64_t hd_value_checksum(struct hd_slice value)
{
    return XXH3_64bits(value.ptr ? value.ptr : "", value.len);
}

int hd_ref_write_inline(struct hd_buf *out, struct hd_slice bytes)
{
    int err = hd_buf_append_byte(out, REF_INLINE);

    return err ? err : hd_buf_append_slice(out, bytes);
}

static uint64_t zigzag(int64_t n)
{
    return n < 0 ? ~((uint64_t)n << 1) : (uint64_t)n << 1;
}

static int64_t unzigzag(uint64_t n)
{
    return (int64_t)(n >> 1) ^ -(int64_t)(n & 1);
}

static int extent_parse(struct hd_reader *r, uint8_t flags, struct hd_slice own, int64_t *end,
                        struct hd_segment *segment)
{
    uint64_t gap;
    int64_t start;
    int err;

    segment->is_extent = true;
    segment->sequence = own;
    segment->first_comma = flags & SEG_FIRST_COMMA;
    segment->rest_comma = flags & SEG_REST_COMMA;
    if (flags & SEG_NAMED_SEQUENCE) {
        err = hd_read_lenslice(r, &segment->sequence);
        if (err)
            return err;
    }
    err = hd_read_varint(r, &gap);
    if (!err)
        err = hd_read_varint(r, &segment->count);
    if (err)
        return err;
    start = (int64_t)((uint64_t)*end + (uint64_t)unzigzag(gap));
    if (start < 0 || segment->count == 0 || segment->count > (uint64_t)(INT64_MAX - start))
        return HD_ECORRUPT;
    segment->start = start;
    *end = start + (int64_t)segment->count;
    return 0;
}

static int parse_segment(struct hd_reader *r, struct hd_slice own, int64_t *end,
                         struct hd_segment *segment)
{
    uint8_t flags;
    int err = hd_read_byte(r, &flags);

    if (err)
        return err;
    if (flags & SEG_EXTENT)
        return extent_parse(r, flags, own, end, segment);
    segment->is_extent = false;
    return hd_read_lenslice(r, &segment->literal);
}

static int parse_chunked(struct hd_reader *r, struct hd_slice own, struct hd_arena *arena,
                         struct hd_ref *out)
{
    uint64_t count;
    int64_t end = 0;
    int err = hd_read_varint(r, &out->size);

    if (!err)
        err = hd_read_u64(r, &out->checksum);
    if (!err)
        err = hd_read_varint(r, &count);
    if (err)
        return err;
    if (count > (uint64_t)(r->end - r->pos)) /* a segment has at least one byte */
        return HD_ECORRUPT;
    out->segments = hd_arena_calloc(arena, (size_t)count, sizeof(*out->segments));
    if (!out->segments)
        return HD_ENOMEM;
    out->segment_count = (size_t)count;
    for (size_t i = 0; i < out->segment_count; i++) {
        err = parse_segment(r, own, &end, &out->segments[i]);
        if (err)
            return err;
    }
    return r->pos == r->end ? 0 : HD_ECORRUPT;
}

int hd_ref_parse(struct hd_slice encoded, struct hd_slice own, struct hd_arena *arena,
                 struct hd_ref *out)
{
    struct hd_reader r = hd_reader(encoded);
    uint8_t kind;
    int err = hd_read_byte(&r, &kind);

    if (err)
        return err;
    memset(out, 0, sizeof(*out));
    if (kind == REF_CHUNKED)
        return parse_chunked(&r, own, arena, out);
    if (kind != REF_INLINE)
        return HD_ECORRUPT;
    out->is_inline = true;
    out->inline_bytes = hd_slice(r.pos, (size_t)(r.end - r.pos));
    out->size = out->inline_bytes.len;
    return 0;
}

void hd_ref_builder_init(struct hd_ref_builder *builder, struct hd_slice own)
{
    memset(builder, 0, sizeof(*builder));
    hd_buf_init(&builder->segments, HD_REF_MAX);
    builder->own = own;
}

void hd_ref_builder_fini(struct hd_ref_builder *builder)
{
    hd_buf_fini(&builder->segments);
}

static int extent_flush(struct hd_ref_builder *builder)
{
    struct hd_segment *extent = &builder->extent;
    bool is_named = !hd_slice_eq(extent->sequence, builder->own);
    uint8_t flags =
        (uint8_t)(SEG_EXTENT | (extent->first_comma ? SEG_FIRST_COMMA : 0) |
                  (extent->rest_comma ? SEG_REST_COMMA : 0) | (is_named ? SEG_NAMED_SEQUENCE : 0));
    int err;

    if (extent->count == 0)
        return 0;
    err = hd_buf_append_byte(&builder->segments, flags);
    if (!err && is_named)
        err = hd_buf_append_lenslice(&builder->segments, extent->sequence);
    if (!err)
        err = hd_buf_append_varint(&builder->segments, zigzag(extent->start - builder->end));
    if (!err)
        err = hd_buf_append_varint(&builder->segments, extent->count);
    builder->end = extent->start + (int64_t)extent->count;
    builder->segment_count++;
    extent->count = 0;
    return err;
}

int hd_ref_builder_literal(struct hd_ref_builder *builder, struct hd_slice bytes, bool comma)
{
    int err = extent_flush(builder);

    if (!err)
        err = hd_buf_append_byte(&builder->segments, 0);
    if (!err)
        err = hd_buf_append_varint(&builder->segments, bytes.len + comma);
    if (!err && comma)
        err = hd_buf_append_byte(&builder->segments, ',');
    if (!err)
        err = hd_buf_append_slice(&builder->segments, bytes);
    builder->segment_count++;
    return err;
}

static bool extends(const struct hd_segment *extent, struct hd_slice sequence, int64_t seq,
                    bool comma)
{
    return extent->count > 0 && seq == extent->start + (int64_t)extent->count &&
           (extent->count == 1 || comma == extent->rest_comma) &&
           hd_slice_eq(sequence, extent->sequence);
}

int hd_ref_builder_chunk(struct hd_ref_builder *builder, struct hd_slice sequence, int64_t seq,
                         bool comma)
{
    struct hd_segment *extent = &builder->extent;
    int err;

    if (extends(extent, sequence, seq, comma)) {
        extent->rest_comma = comma;
        extent->count++;
        return 0;
    }
    err = extent_flush(builder);
    *extent = (struct hd_segment){
        .is_extent = true, .sequence = sequence, .start = seq, .count = 1, .first_comma = comma};
    return err;
}

int hd_ref_builder_segment(struct hd_ref_builder *builder, const struct hd_segment *segment)
{
    int err;

    if (!segment->is_extent)
        return hd_ref_builder_literal(builder, segment->literal, false);
    err = extent_flush(builder);
    builder->extent = *segment;
    return err;
}

int hd_ref_builder_finish(struct hd_ref_builder *builder, uint64_t size, uint64_t checksum,
                          struct hd_buf *out)
{
    int err = extent_flush(builder);

    if (!err)
        err = hd_buf_append_byte(out, REF_CHUNKED);
    if (!err)
        err = hd_buf_append_varint(out, size);
    if (!err)
        err = hd_buf_append_u64(out, checksum);
    if (!err)
        err = hd_buf_append_varint(out, builder->segment_count);
    if (!err)
        err = hd_buf_append_slice(out, hd_buf_slice(&builder->segments));
    return err;
}

const struct hd_channel_entry *hd_checkpoint_body_entry(const struct hd_checkpoint_body *body,
                                                        struct hd_slice channel)
{
    for (size_t i = 0; i < body->entry_count; i++) {
        if (hd_slice_eq(body->entries[i].channel, channel))
            return &body->entries[i];
    }
    return NULL;
}

int hd_checkpoint_body_write(struct hd_buf *out, const struct hd_checkpoint_body *body)
{
    int err = hd_buf_append_varint(out, BODY_FORMAT);

    if (!err)
        err = hd_buf_append_varint(out, (uint64_t)body->v);
    if (!err)
        err = hd_buf_append_lenslice(out, body->json);
    if (!err)
        err = hd_buf_append_varint(out, body->entry_count);
    for (size_t i = 0; !err && i < body->entry_count; i++) {
        err = hd_buf_append_lenslice(out, body->entries[i].channel);
        if (!err)
            err = hd_buf_append_lenslice(out, body->entries[i].type);
        if (!err)
            err = hd_buf_append_lenslice(out, body->entries[i].ref);
    }
    return err;
}

static int parse_entries(struct hd_reader *r, struct hd_arena *arena,
                         struct hd_checkpoint_body *out)
{
    uint64_t count;
    int err = hd_read_varint(r, &count);

    if (err)
        return err;
    if (count > (uint64_t)(r->end - r->pos) / 3) /* three lengths at least */
        return HD_ECORRUPT;
    out->entries = hd_arena_calloc(arena, (size_t)count, sizeof(*out->entries));
    if (!out->entries)
        return HD_ENOMEM;
    out->entry_count = (size_t)count;
    for (size_t i = 0; !err && i < out->entry_count; i++) {
        err = hd_read_lenslice(r, &out->entries[i].channel);
        if (!err)
            err = hd_read_lenslice(r, &out->entries[i].type);
        if (!err)
            err = hd_read_lenslice(r, &out->entries[i].ref);
    }
    return err;
}

int hd_checkpoint_body_parse(struct hd_slice encoded, struct hd_arena *arena,
                             struct hd_checkpoint_body *out)
{
    struct hd_reader r = hd_reader(encoded);
    uint64_t format, v;
    int err = hd_read_varint(&r, &format);

    memset(out, 0, sizeof(*out));
    if (err)
        return err;
    if (format != BODY_FORMAT)
        return HD_ECORRUPT;
    err = hd_read_varint(&r, &v);
    if (!err)
        err = hd_read_lenslice(&r, &out->json);
    if (!err)
        err = parse_entries(&r, arena, out);
    if (err)
        return err;
    out->v = (int64_t)v;
    return r.pos == r.end ? 0 : HD_ECORRUPT;
}
