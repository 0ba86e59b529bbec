/*
 * The form of a value in the row that owns it (a checkpoint or a write): short values inline,
 * longer ones as a *reference*: literals and extents of chunks, with the length and a checksum of
 * the whole.
 *
 * Chunks are numbered within a chunk sequence (a thread has one sequence for each channel name),
 * and consecutive chunks make one extent. So an append-only list of any length is a single extent:
 * the reference does not grow with the history.
 */
#ifndef HD_STORE_CODEC_VALUE_H
#define HD_STORE_CODEC_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/compiler.h"
#include "base/slice.h"

#define HD_INLINE_MAX 128      /* longer values are chunked */
#define HD_REF_MAX (64u << 20) /* an encoded reference is never longer */

struct hd_segment {
    bool is_extent;
    struct hd_slice literal;  /* if it is not an extent */
    struct hd_slice sequence; /* if it is an extent: this and the members below */
    int64_t start;
    uint64_t count;
    bool first_comma; /* a ',' precedes the first chunk of the extent */
    bool rest_comma;  /* … and each further one */
};

struct hd_ref {
    bool is_inline;
    struct hd_slice inline_bytes;
    uint64_t size;
    uint64_t checksum; /* XXH3-64 of the value; chunked only */
    struct hd_segment *segments;
    size_t segment_count;
};

/*
 * `own` is the sequence of extents that name none. Slices borrow from `encoded`, segments live in
 * `arena`.
 */
HD_MUST_CHECK int hd_ref_parse(struct hd_slice encoded, struct hd_slice own, struct hd_arena *arena,
                               struct hd_ref *out);

/* Appends the encoding of a short value. */
HD_MUST_CHECK int hd_ref_write_inline(struct hd_buf *out, struct hd_slice bytes);

/* Builds a chunked reference piece by piece. */
struct hd_ref_builder {
    struct hd_buf segments;
    size_t segment_count;
    struct hd_slice own;
    struct hd_segment extent; /* being extended; count 0: none */
    int64_t end;              /* of the extent before it */
};

void hd_ref_builder_init(struct hd_ref_builder *builder, struct hd_slice own);
void hd_ref_builder_fini(struct hd_ref_builder *builder);
HD_MUST_CHECK int hd_ref_builder_literal(struct hd_ref_builder *builder, struct hd_slice bytes,
                                         bool comma);
/* `sequence` is borrowed until finish. */
HD_MUST_CHECK int hd_ref_builder_chunk(struct hd_ref_builder *builder, struct hd_slice sequence,
                                       int64_t seq, bool comma);
/* Appends a segment of another reference unchanged. */
HD_MUST_CHECK int hd_ref_builder_segment(struct hd_ref_builder *builder,
                                         const struct hd_segment *segment);
HD_MUST_CHECK int hd_ref_builder_finish(struct hd_ref_builder *builder, uint64_t size,
                                        uint64_t checksum, struct hd_buf *out);

uint64_t hd_value_checksum(struct hd_slice value);

/*
 * The body of a checkpoint row: the caller's JSON, and for each channel that
 * has a value at the checkpoint's version its type and reference.
 */
struct hd_channel_entry {
    struct hd_slice channel;
    struct hd_slice type;
    struct hd_slice ref;
};

struct hd_checkpoint_body {
    int64_t v; /* the checkpoint's format version, its "v"; 0 when absent */
    struct hd_slice json;
    struct hd_channel_entry *entries; /* in byte order of channel */
    size_t entry_count;
};

/* The entry of a channel, or NULL. */
const struct hd_channel_entry *hd_checkpoint_body_entry(const struct hd_checkpoint_body *body,
                                                        struct hd_slice channel);

HD_MUST_CHECK int hd_checkpoint_body_write(struct hd_buf *out,
                                           const struct hd_checkpoint_body *body);
HD_MUST_CHECK int hd_checkpoint_body_parse(struct hd_slice encoded, struct hd_arena *arena,
                                           struct hd_checkpoint_body *out);

#endif
