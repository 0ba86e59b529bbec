/* Plans a value as a reference: finds its stored chunks and assigns numbers to the others. */
#include "store/codec/pack.h"
#include "store/codec/value.h"
#include "store/plan.h"

int hd_plan_pack(struct hd_planner *p, struct hd_slice bytes, struct hd_slice *out)
{
    struct hd_arena *arena = &p->lane->batch.arena;

    return p->lane->store->backend->keeps_raw ? hd_pack_raw(arena, bytes, out)
                                              : hd_pack(arena, bytes, out);
}

static int add_chunk(struct hd_planner *p, struct hd_slice name, uint32_t sequence,
                     const struct hd_piece *piece, int64_t *seq)
{
    struct hd_arena *arena = &p->lane->batch.arena;
    struct hd_slice packed, hash;
    int err = hd_plan_pack(p, piece->bytes, &packed);

    if (!err)
        err = hd_arena_copy(arena, hd_slice(&piece->hash, sizeof(piece->hash)), &hash);
    if (!err)
        err = hd_cached_add(p->state, sequence, piece->hash, seq);
    if (err)
        return err;
    struct hd_cell cells[] = {
        [HD_CHUNKS_THREAD] = hd_cell_bytes(p->request->thread),
        [HD_CHUNKS_STREAM] = hd_cell_bytes(name),
        [HD_CHUNKS_SEQ] = hd_cell_int(*seq),
        [HD_CHUNKS_HASH] = hd_cell_bytes(hash),
        [HD_CHUNKS_DATA] = hd_cell_bytes(packed),
    };
    return hd_batch_row(&p->lane->batch, HD_OP_ADD, HD_CHUNKS, cells);
}

/*
 * Writes and the values made from them share chunks in one sequence, as long as they are the same
 * bytes in the same order: a task writes a message, the next checkpoint's list ends with it, and
 * its chunk is already at the position where the list continues. If a reducer changes the written
 * value (a missing id, a dict that becomes a message, tasks applied in another order), the writes'
 * chunks would lie between those of the list and cut it into many extents. If that happens
 * repeatedly (once is no proof: two calls may overtake each other), the channel's writes use a
 * separate sequence.
 */
static const struct hd_slice writes_sequence = HD_S_INIT("__writes__");

static void claim(struct hd_chunk_sequence *sequence, int64_t follows, int64_t seq)
{
    if (sequence->unclaimed && seq >= sequence->unclaimed) {
        *(follows && seq != follows ? &sequence->misses : &sequence->hits) += 1;
        sequence->unclaimed = seq + 1 < sequence->first + (int64_t)sequence->count ? seq + 1 : 0;
    }
}

/*
 * The place of a chunk of a channel's value. `follows` is the number after the previous chunk: an
 * append-only list matches there without a lookup. Only its own sequence is searched: a value with
 * chunks from others would scatter over them.
 */
static int place_in_value(struct hd_planner *p, struct hd_slice name, uint32_t own,
                          const struct hd_piece *piece, int64_t follows, int64_t *seq)
{
    int err = 0;

    if (hd_cached_is_chunk(p->state, own, follows, piece->hash))
        *seq = follows;
    else
        *seq = hd_cached_find(p->state, own, piece->hash);
    if (*seq == 0)
        err = add_chunk(p, name, own, piece, seq);
    if (!err)
        claim(&p->state->sequences[own], follows, *seq);
    return err;
}

/* The same for a write's value, which may use chunks of any sequence: it does not grow. */
static int place_in_write(struct hd_planner *p, struct hd_slice name, uint32_t own,
                          const struct hd_piece *piece, uint32_t *sequence, int64_t *seq)
{
    int err;

    *sequence = own;
    *seq = hd_cached_find(p->state, own, piece->hash);
    if (*seq == 0)
        *seq = hd_cached_find_any(p->state, piece->hash, sequence);
    if (*seq)
        return 0;
    *sequence = own;
    err = add_chunk(p, name, own, piece, seq);
    if (!err && p->state->sequences[own].unclaimed == 0)
        p->state->sequences[own].unclaimed = *seq;
    return err;
}

static int refer_to_pieces(struct hd_planner *p, const struct hd_pieces *pieces,
                           struct hd_slice name, uint32_t own, int64_t follows,
                           struct hd_ref_builder *builder)
{
    bool is_write = p->request->kind == HD_REQUEST_WRITES;

    for (size_t i = 0; i < pieces->count; i++) {
        const struct hd_piece *piece = &pieces->items[i];
        uint32_t sequence = own;
        int64_t seq;
        int err;

        if (!piece->is_chunk) {
            err = hd_ref_builder_literal(builder, piece->bytes, piece->comma);
        } else {
            err = is_write ? place_in_write(p, name, own, piece, &sequence, &seq)
                           : place_in_value(p, name, own, piece, follows, &seq);
            if (!err)
                err = hd_ref_builder_chunk(builder, p->state->sequences[sequence].name, seq,
                                           piece->comma);
            follows = seq + 1;
        }
        if (err)
            return err;
    }
    return 0;
}

static int sequence_load(struct hd_planner *p, struct hd_slice name, uint32_t *out)
{
    if (!hd_cached_has_sequence(p->state, name) && p->has_earlier)
        return HD_EBUSY;
    return hd_cached_sequence(p->state, p->lane->store->backend, name, out, p->fault);
}

static bool differs(const struct hd_chunk_sequence *sequence)
{
    return sequence->misses > 3 + sequence->hits / 16;
}

/* The sequence for new chunks of the value. */
static int sequence_choose(struct hd_planner *p, struct hd_slice channel, struct hd_slice *name,
                           uint32_t *out)
{
    uint32_t writes;
    int err = sequence_load(p, channel, out);

    *name = channel;
    if (err || p->request->kind != HD_REQUEST_WRITES)
        return err;
    err = sequence_load(p, writes_sequence, &writes);
    /* An earlier writer that filled it found the two to differ; no need to measure again. */
    if (!err && (differs(&p->state->sequences[*out]) || p->state->sequences[writes].count > 0)) {
        *name = writes_sequence;
        *out = writes;
    }
    return err;
}

/* Begins with the segments of another reference; *follows is the number after its last chunk. */
static int refer_to_base(const struct hd_plan_parts *parts, struct hd_ref_builder *builder,
                         int64_t *follows)
{
    int err = 0;

    *follows = 0;
    for (size_t i = 0; !err && i < parts->base_count; i++) {
        const struct hd_segment *segment = &parts->base[i];

        err = hd_ref_builder_segment(builder, segment);
        if (segment->is_extent)
            *follows = segment->start + (int64_t)segment->count;
    }
    return err;
}

int hd_plan_parts(struct hd_planner *p, struct hd_slice channel, const struct hd_plan_parts *parts,
                  struct hd_slice *out)
{
    struct hd_buf *buf = &p->lane->scratch;
    struct hd_ref_builder builder;
    struct hd_slice name;
    int64_t follows;
    uint32_t own;
    int err = sequence_choose(p, channel, &name, &own);

    if (err)
        return err;
    hd_buf_reset(buf);
    hd_ref_builder_init(&builder, channel);
    err = refer_to_base(parts, &builder, &follows);
    if (!err)
        err = refer_to_pieces(p, parts->pieces, name, own, follows, &builder);
    if (!err)
        err = hd_ref_builder_finish(&builder, parts->size, parts->checksum, buf);
    if (!err)
        err = hd_arena_copy(&p->lane->batch.arena, hd_buf_slice(buf), out);
    hd_ref_builder_fini(&builder);
    return err;
}

int hd_plan_value(struct hd_planner *p, const struct heddle_value *value, size_t i,
                  struct hd_slice *out)
{
    struct hd_slice data = hd_from_public(value->data);
    struct hd_buf *buf = &p->lane->scratch;
    struct hd_plan_parts parts;
    int err;

    if (data.len <= HD_INLINE_MAX) {
        hd_buf_reset(buf);
        err = hd_ref_write_inline(buf, data);
        return err ? err : hd_arena_copy(&p->lane->batch.arena, hd_buf_slice(buf), out);
    }
    parts = (struct hd_plan_parts){
        .pieces = &p->request->pieces[i], .size = data.len, .checksum = hd_value_checksum(data)};
    return hd_plan_parts(p, hd_from_public(value->channel), &parts, out);
}
