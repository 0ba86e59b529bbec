/*
 * A value given as a growth (list_append.h): its reference is the parent's reference without its
 * end and with the new pieces appended.
 */
#include "store/list_append.h"
#include "store/plan.h"

static bool is_bracket(const struct hd_segment *segment)
{
    return !segment->is_extent && hd_slice_eq(segment->literal, HD_S("]"));
}

/* True when the reference is of the growth's base and ends as required. */
static bool is_base(const struct hd_ref *ref, const struct hd_growth *growth)
{
    size_t count = ref->segment_count;

    return !ref->is_inline && ref->size == growth->base_size &&
           ref->checksum == growth->base_checksum && count >= 2 &&
           is_bracket(&ref->segments[count - 1]) &&
           (!growth->drops_chunk || ref->segments[count - 2].is_extent);
}

/*
 * Uses the cache only: reading the parent would cost more than it saves. While an epoch is odd no
 * old chunk may be referred to.
 */
static int find_base(struct hd_planner *p, const struct heddle_value *value,
                     const struct hd_growth *growth, struct hd_ref *ref, bool *is_found)
{
    const struct heddle_checkpoint *put = &p->request->as.put;
    struct hd_arena *arena = &p->lane->batch.arena;
    struct hd_slice channel = hd_from_public(value->channel), encoded;
    const struct hd_channel_entry *entry;
    struct hd_checkpoint_body body;
    int err;

    *is_found = false;
    if ((p->state->epoch & 1) ||
        !hd_cached_head(p->state, hd_from_public(put->ns), hd_from_public(put->parent), &encoded))
        return 0;
    err = hd_checkpoint_body_parse(encoded, arena, &body);
    entry = err ? NULL : hd_checkpoint_body_entry(&body, channel);
    if (!entry || !hd_slice_eq(entry->type, hd_from_public(value->type)))
        return err;
    err = hd_ref_parse(entry->ref, channel, arena, ref);
    *is_found = !err && is_base(ref, growth);
    return err;
}

static int extend(struct hd_planner *p, struct hd_slice channel, const struct hd_growth *growth,
                  struct hd_ref *base, struct hd_slice *out)
{
    struct hd_plan_parts parts = {.base = base->segments,
                                  .base_count = base->segment_count - 1,
                                  .pieces = &growth->pieces,
                                  .size = growth->size,
                                  .checksum = growth->checksum};
    struct hd_segment *last = &base->segments[parts.base_count - 1];

    if (growth->drops_chunk && --last->count == 0)
        parts.base_count--;
    if (last->is_extent && last->count == 1)
        last->rest_comma = false; /* as a builder writes it */
    return hd_plan_parts(p, channel, &parts, out);
}

/* From now on the request has the value as bytes. */
static int make_whole(struct hd_planner *p, size_t i)
{
    struct hd_lane_request *request = p->request;
    size_t count = request->as.put.value_count;
    const struct hd_growth *growth = request->growths[i];
    struct heddle_value *values = hd_arena_calloc(&request->arena, count, sizeof(*values));
    const struct hd_growth **growths = hd_arena_calloc(&request->arena, count, sizeof(*growths));
    char *bytes = hd_arena_alloc(&request->arena, growth->size);
    int err;

    if (!values || !growths || !bytes)
        return HD_ENOMEM;
    memcpy(values, request->as.put.values, count * sizeof(*values));
    memcpy(growths, request->growths, count * sizeof(*growths));
    hd_growth_write(growth, bytes);
    values[i].data = (struct heddle_bytes){bytes, growth->size};
    growths[i] = NULL;
    err = growth->size <= HD_INLINE_MAX
              ? 0
              : hd_split(hd_from_public(values[i].type), hd_slice(bytes, growth->size),
                         &request->pieces[i]);
    if (err)
        return err;
    request->as.put.values = values;
    request->growths = growths;
    return 0;
}

int hd_plan_growth(struct hd_planner *p, size_t i, struct hd_slice *out)
{
    const struct heddle_value *value = &p->request->as.put.values[i];
    const struct hd_growth *growth = p->request->growths[i];
    struct hd_slice channel = hd_from_public(value->channel);
    struct hd_plan_parts all = {
        .pieces = &growth->pieces, .size = growth->size, .checksum = growth->checksum};
    struct hd_ref base;
    bool is_found = false;
    int err = 0;

    if (growth->size > HD_INLINE_MAX && !growth->has_base)
        return hd_plan_parts(p, channel, &all, out);
    if (growth->size > HD_INLINE_MAX)
        err = find_base(p, value, growth, &base, &is_found);
    if (!err && is_found)
        return extend(p, channel, growth, &base, out);
    if (!err)
        err = make_whole(p, i);
    return err ? err : hd_plan_value(p, &p->request->as.put.values[i], i, out);
}
