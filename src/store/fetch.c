/*
 * Values put together again from their references.
 *
 * Each run of chunks is one range scan; all scans go to the backend at once
 * and their rows come back in order, so a value is filled from front to back
 * as they arrive.
 */
#include "store/fetch.h"

#include "store/pack.h"

struct hd_range {
    struct hd_cell prefix[2];
    struct hd_cell low, high;
};

static int append(struct hd_target *t, const void *bytes, size_t len)
{
    if (len > t->ref.size - t->filled)
        return HD_ECORRUPT;
    if (len)
        memcpy(t->bytes + t->filled, bytes, len);
    t->filled += len;
    return 0;
}

/* Fills literals up to the next run that still lacks chunks. */
static int fill_literals(struct hd_target *t)
{
    int err = 0;

    while (!err && t->segment < t->ref.segment_count) {
        const struct hd_segment *segment = &t->ref.segments[t->segment];

        if (segment->is_run) {
            if (t->in_run < segment->count)
                break;
            t->in_run = 0;
        } else {
            err = append(t, segment->literal.ptr, segment->literal.len);
        }
        t->segment++;
    }
    return err;
}

static int on_chunk(void *arg, size_t which, const struct hd_cell *cells)
{
    struct hd_target *t = arg;
    const struct hd_segment *segment;
    size_t len;
    int err = fill_literals(t);

    (void)which;
    if (err)
        return err;
    if (t->segment == t->ref.segment_count)
        return HD_ECORRUPT;
    segment = &t->ref.segments[t->segment];
    if (cells[HD_CHUNKS_SEQ].number != segment->start + (int64_t)t->in_run)
        return HD_ECORRUPT; /* a chunk is missing */
    if (t->in_run == 0 ? segment->first_comma : segment->rest_comma)
        err = append(t, ",", 1);
    if (!err)
        err = hd_unpack(cells[HD_CHUNKS_DATA].bytes, t->bytes + t->filled,
                        (size_t)t->ref.size - t->filled, &len);
    if (err)
        return err;
    t->filled += len;
    t->in_run++;
    return 0;
}

static int finish_target(struct hd_target *t)
{
    int err = fill_literals(t);
    struct hd_slice value = hd_slice(t->bytes, t->filled);

    if (err)
        return err;
    if (t->segment < t->ref.segment_count || t->filled != t->ref.size ||
        hd_value_checksum(value) != t->ref.checksum)
        return HD_ECORRUPT;
    *t->out = hd_to_public(value);
    return 0;
}

static int add_range(struct hd_reading *reading, struct hd_target *t, struct hd_slice thread,
                     const struct hd_segment *segment, struct hd_arena *arena)
{
    struct hd_range *range = hd_arena_alloc(arena, sizeof(*range));

    if (!range)
        return HD_ENOMEM;
    range->prefix[0] = hd_cell_bytes(thread);
    range->prefix[1] = hd_cell_bytes(segment->stream);
    range->low = hd_cell_int(segment->start);
    range->high = hd_cell_int(segment->start + (int64_t)segment->count);
    return hd_reading_add(reading,
                          (struct hd_query){.table = HD_CHUNKS,
                                            .index = HD_PRIMARY,
                                            .prefix = range->prefix,
                                            .prefix_count = 2,
                                            .low = &range->low,
                                            .high = &range->high,
                                            .columns = 1u << HD_CHUNKS_DATA},
                          (struct hd_receiver){.fn = on_chunk, .arg = t});
}

void hd_fetch_init(struct hd_fetch *fetch, struct hd_arena *arena)
{
    memset(fetch, 0, sizeof(*fetch));
    fetch->arena = arena;
}

int hd_fetch_add(struct hd_fetch *fetch, struct hd_reading *reading, struct hd_slice thread,
                 struct hd_slice channel, struct hd_slice ref, struct heddle_bytes *out)
{
    struct hd_target *t = hd_arena_calloc(fetch->arena, 1, sizeof(*t));
    int err = t ? hd_ref_parse(ref, channel, fetch->arena, &t->ref) : HD_ENOMEM;

    if (err)
        return err;
    if (t->ref.is_inline) {
        *out = hd_to_public(t->ref.inline_bytes);
        return 0;
    }
    if (t->ref.size > SIZE_MAX / 4) /* from disk: it must not wrap around below */
        return HD_ECORRUPT;
    t->bytes = hd_arena_alloc(fetch->arena, (size_t)t->ref.size + 1);
    if (!t->bytes)
        return HD_ENOMEM;
    t->out = out;
    t->next = fetch->targets;
    fetch->targets = t;
    for (size_t i = 0; !err && i < t->ref.segment_count; i++) {
        if (t->ref.segments[i].is_run)
            err = add_range(reading, t, thread, &t->ref.segments[i], fetch->arena);
    }
    return err;
}

int hd_fetch_finish(struct hd_fetch *fetch)
{
    int err = 0;

    for (struct hd_target *t = fetch->targets; !err && t; t = t->next)
        err = finish_target(t);
    fetch->targets = NULL;
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
