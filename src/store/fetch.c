/*
 * Assembles values from their references.
 *
 * Each extent of chunks is one range scan; all scans go to the backend at once and their rows
 * arrive in order, so a value is filled from front to back. An extent within another extent of the
 * same reading is not read again: a history of ten checkpoints reads the conversation once and
 * copies the common part.
 */
#include "store/fetch.h"

#include "store/allowance.h"
#include "store/codec/pack.h"

/* An extent that is read, with the positions of its chunks in the target's bytes. */
struct hd_range {
    struct hd_slice thread;
    struct hd_fetch_target *target;
    const struct hd_segment *segment;
    size_t *begins; /* of each chunk, without the comma before it */
    size_t *ends;
    uint64_t count; /* chunks that arrived */
    struct hd_cell prefix[2];
    struct hd_cell low, high;
    struct hd_range *next;
};

/* For each extent of a target: the range it is copied from, or its own. */
struct hd_fetch_source {
    const struct hd_range *range;
    bool is_own;
};

static int target_append(struct hd_fetch_target *t, const void *bytes, size_t len)
{
    if (len > t->ref.size - t->filled)
        return HD_ECORRUPT;
    if (len)
        memcpy(t->bytes + t->filled, bytes, len);
    t->filled += len;
    return 0;
}

/* Copies an extent that was read for another value, earlier in the same reading. */
static int extent_copy(struct hd_fetch_target *t, const struct hd_segment *segment,
                       const struct hd_range *range)
{
    size_t first = (size_t)(segment->start - range->segment->start);
    size_t last = first + (size_t)segment->count - 1;
    int err = 0;

    if (last >= range->count)
        return HD_ECORRUPT; /* chunks are missing */
    if (segment->first_comma)
        err = target_append(t, ",", 1);
    return err ? err
               : target_append(t, range->target->bytes + range->begins[first],
                               range->ends[last] - range->begins[first]);
}

/* Fills the segments that need no more rows, up to its next own extent that lacks chunks. */
static int target_fill(struct hd_fetch_target *t)
{
    int err = 0;

    while (!err && t->segment < t->ref.segment_count) {
        const struct hd_segment *segment = &t->ref.segments[t->segment];
        const struct hd_fetch_source *source = &t->sources[t->segment];

        if (!segment->is_extent) {
            err = target_append(t, segment->literal.ptr, segment->literal.len);
        } else if (!source->is_own) {
            err = extent_copy(t, segment, source->range);
        } else {
            if (t->in_extent < segment->count)
                break;
            t->in_extent = 0;
        }
        t->segment++;
    }
    return err;
}

static int fetch_on_chunk(void *arg, size_t which, const struct hd_cell *cells)
{
    struct hd_range *range = arg;
    struct hd_fetch_target *t = range->target;
    const struct hd_segment *segment = range->segment;
    size_t len;
    int err = target_fill(t);

    (void)which;
    if (err)
        return err;
    if (t->segment == t->ref.segment_count || segment != &t->ref.segments[t->segment])
        return HD_ECORRUPT;
    if (cells[HD_CHUNKS_SEQ].number != segment->start + (int64_t)t->in_extent)
        return HD_ECORRUPT; /* a chunk is missing */
    if (t->in_extent == 0 ? segment->first_comma : segment->rest_comma)
        err = target_append(t, ",", 1);
    if (!err)
        err = hd_unpack(cells[HD_CHUNKS_DATA].bytes, t->bytes + t->filled,
                        (size_t)t->ref.size - t->filled, &len);
    if (err)
        return err;
    range->begins[range->count] = t->filled;
    t->filled += len;
    range->ends[range->count++] = t->filled;
    t->in_extent++;
    return 0;
}

static int finish_target(struct hd_fetch_target *t)
{
    int err = target_fill(t);
    struct hd_slice value = hd_slice(t->bytes, t->filled);

    if (err)
        return err;
    if (t->segment < t->ref.segment_count || t->filled != t->ref.size ||
        hd_value_checksum(value) != t->ref.checksum)
        return HD_ECORRUPT;
    *t->out = hd_to_public(value);
    return 0;
}

static bool covers(const struct hd_range *range, struct hd_slice thread,
                   const struct hd_segment *segment)
{
    const struct hd_segment *whole = range->segment;

    return segment->start >= whole->start &&
           segment->start + (int64_t)segment->count <= whole->start + (int64_t)whole->count &&
           (segment->count == 1 || segment->rest_comma == whole->rest_comma) &&
           hd_slice_eq(segment->sequence, whole->sequence) && hd_slice_eq(thread, range->thread);
}

static int range_create(struct hd_fetch *fetch, struct hd_fetch_target *t, struct hd_slice thread,
                        const struct hd_segment *segment, struct hd_range **out)
{
    struct hd_range *range = hd_arena_calloc(fetch->arena, 1, sizeof(*range));
    size_t count = (size_t)segment->count;

    /* A count from disk may have any value, but there are never more chunks than bytes. */
    if (segment->count > t->ref.size)
        return HD_ECORRUPT;
    if (!range)
        return HD_ENOMEM;
    range->begins = hd_arena_alloc(fetch->arena, 2 * count * sizeof(*range->begins));
    if (!range->begins)
        return HD_ENOMEM;
    range->ends = range->begins + count;
    range->thread = thread;
    range->target = t;
    range->segment = segment;
    range->prefix[0] = hd_cell_bytes(thread);
    range->prefix[1] = hd_cell_bytes(segment->sequence);
    range->low = hd_cell_int(segment->start);
    range->high = hd_cell_int(segment->start + (int64_t)segment->count);
    range->next = fetch->ranges;
    fetch->ranges = range;
    *out = range;
    return 0;
}

static int extent_add(struct hd_fetch *fetch, struct hd_reading *reading, struct hd_fetch_target *t,
                      struct hd_slice thread, size_t at)
{
    const struct hd_segment *segment = &t->ref.segments[at];
    struct hd_range *range = fetch->ranges;
    int err;

    for (; range; range = range->next) {
        if (covers(range, thread, segment)) {
            t->sources[at] = (struct hd_fetch_source){.range = range};
            return 0;
        }
    }
    err = range_create(fetch, t, thread, segment, &range);
    if (err)
        return err;
    t->sources[at] = (struct hd_fetch_source){.range = range, .is_own = true};
    return hd_reading_add(reading,
                          (struct hd_query){.table = HD_CHUNKS,
                                            .index = HD_PRIMARY,
                                            .prefix = range->prefix,
                                            .prefix_count = 2,
                                            .low = &range->low,
                                            .high = &range->high,
                                            .columns = 1u << HD_CHUNKS_DATA},
                          (struct hd_receiver){.fn = fetch_on_chunk, .arg = range});
}

void hd_fetch_init(struct hd_fetch *fetch, struct hd_arena *arena)
{
    memset(fetch, 0, sizeof(*fetch));
    fetch->arena = arena;
}

int hd_fetch_add(struct hd_fetch *fetch, struct hd_reading *reading, struct hd_slice thread,
                 struct hd_slice channel, struct hd_slice ref, struct heddle_bytes *out)
{
    struct hd_fetch_target *t = hd_arena_calloc(fetch->arena, 1, sizeof(*t));
    int err = t ? hd_ref_parse(ref, channel, fetch->arena, &t->ref) : HD_ENOMEM;

    if (err)
        return err;
    if (t->ref.is_inline) {
        *out = hd_to_public(t->ref.inline_bytes);
        return 0;
    }
    if (t->ref.size > SIZE_MAX / 4) /* from disk: it must not wrap around below */
        return HD_ECORRUPT;
    if (fetch->allowance)
        err = fetch->allowance->take(fetch->allowance, t->ref.size);
    if (err)
        return err;
    t->bytes = hd_arena_alloc(fetch->arena, (size_t)t->ref.size + 1);
    t->sources = hd_arena_calloc(fetch->arena, t->ref.segment_count, sizeof(*t->sources));
    if (!t->bytes || !t->sources)
        return HD_ENOMEM;
    t->out = out;
    hd_fifo_push(&fetch->targets, t, next);
    for (size_t i = 0; !err && i < t->ref.segment_count; i++) {
        if (t->ref.segments[i].is_extent)
            err = extent_add(fetch, reading, t, thread, i);
    }
    return err;
}

int hd_fetch_finish(struct hd_fetch *fetch)
{
    struct hd_allowance *allowance = fetch->allowance;
    int err = 0;

    for (struct hd_fetch_target *t = fetch->targets.first; !err && t; t = t->next)
        err = finish_target(t);
    hd_fetch_init(fetch, fetch->arena);
    fetch->allowance = allowance;
    return err;
}

static int copy_cell(struct hd_arena *arena, const struct hd_cell *cell, struct heddle_bytes *out)
{
    struct hd_slice copied;
    int err = hd_arena_copy(arena, cell->bytes, &copied);

    if (!err)
        *out = hd_to_public(copied);
    return err;
}

int hd_copy_write(struct hd_arena *arena, const struct hd_cell *cells, struct heddle_write *write,
                  struct hd_slice *ref)
{
    int err = copy_cell(arena, &cells[HD_WRITES_TASK], &write->task_id);

    write->idx = cells[HD_WRITES_IDX].number;
    if (!err)
        err = copy_cell(arena, &cells[HD_WRITES_PATH], &write->task_path);
    if (!err)
        err = copy_cell(arena, &cells[HD_WRITES_CHANNEL], &write->value.channel);
    if (!err)
        err = copy_cell(arena, &cells[HD_WRITES_TYPE], &write->value.type);
    return err ? err : hd_arena_copy(arena, cells[HD_WRITES_VALUE].bytes, ref);
}
