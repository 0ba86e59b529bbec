#include "graph/engine/checkpoint_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/slice.h"
#include "base/uuid.h"
#include "base/vec.h"
#include "graph/decl/graph.h"
#include "graph/engine/channel.h"
#include "value/val.h"

#define EMPTY_STEP (-2) /* the step of an empty checkpoint */

int hd_checkpoint_state_init(struct hd_checkpoint_state *live, const struct hd_graph *graph)
{
    size_t count = graph->channel_count;
    int err = 0;

    *live = (struct hd_checkpoint_state){.graph = graph};
    live->channels = hd_calloc(count, sizeof(*live->channels));
    live->versions = hd_calloc(count, sizeof(*live->versions));
    live->updated = hd_calloc(count, sizeof(*live->updated));
    live->seen = hd_calloc(graph->node_count + 2, sizeof(*live->seen));
    if (!live->channels || !live->versions || !live->updated || !live->seen)
        err = HD_ENOMEM;
    for (size_t i = 0; i < count && !err; i++)
        hd_channel_init(&live->channels[i], graph, i);
    if (err) {
        hd_checkpoint_state_fini(live);
        return err;
    }
    hd_checkpoint_state_renew(live, EMPTY_STEP);
    return 0;
}

static void fini_seen(struct hd_versions_seen *seen)
{
    for (size_t i = 0; i < seen->count; i++)
        hd_val_unref(seen->list[i].version);
    hd_free(seen->list);
}

void hd_checkpoint_state_fini(struct hd_checkpoint_state *live)
{
    const struct hd_graph *graph = live->graph;

    if (!graph)
        return;
    for (size_t i = 0; live->channels && i < graph->channel_count; i++)
        hd_channel_fini(&live->channels[i]);
    for (size_t i = 0; live->versions && i < graph->channel_count; i++)
        hd_val_unref(live->versions[i]);
    for (size_t i = 0; live->seen && i < graph->node_count + 2; i++)
        fini_seen(&live->seen[i]);
    hd_free(live->channels);
    hd_free(live->versions);
    hd_free(live->updated);
    hd_free(live->seen);
    hd_val_unref(live->other_versions);
    hd_val_unref(live->other_seen);
    memset(live, 0, sizeof(*live));
}

void hd_floor_raise(char floor[HD_UUID_SIZE], struct hd_slice id)
{
    if (id.len != HD_UUID_LEN || hd_slice_cmp(id, hd_slice_cstr(floor)) <= 0)
        return;
    memcpy(floor, id.ptr, HD_UUID_LEN);
    floor[HD_UUID_LEN] = '\0';
}

void hd_checkpoint_state_renew(struct hd_checkpoint_state *live, int step)
{
    char floor[HD_UUID_SIZE];

    memcpy(floor, live->id, sizeof(floor));
    if (live->floor)
        hd_floor_raise(floor, hd_slice_cstr(live->floor));
    hd_uuid_checkpoint_after(step, hd_slice_cstr(floor), live->id);
    if (live->floor)
        hd_floor_raise(live->floor, hd_slice_cstr(live->id));
    hd_clock_format_iso(hd_clock_now_us(), live->ts);
}

bool hd_checkpoint_state_has_versions(const struct hd_checkpoint_state *live)
{
    for (size_t i = 0; i < live->graph->channel_count; i++) {
        if (live->versions[i])
            return true;
    }
    return hd_val_count(live->other_versions) > 0;
}

bool hd_checkpoint_state_any_updated(const struct hd_checkpoint_state *live)
{
    for (size_t i = 0; live->has_updated && i < live->graph->channel_count; i++) {
        if (live->updated[i])
            return true;
    }
    return false;
}

struct hd_val *hd_versions_seen_get(const struct hd_versions_seen *seen, size_t channel)
{
    for (size_t i = 0; i < seen->count; i++) {
        if (seen->list[i].channel == channel)
            return seen->list[i].version;
    }
    return NULL;
}

int hd_versions_seen_put(struct hd_versions_seen *seen, size_t channel,
                         const struct hd_val *version)
{
    int err;

    seen->is_there = true;
    for (size_t i = 0; i < seen->count; i++) {
        if (seen->list[i].channel == channel) {
            hd_val_unref(seen->list[i].version);
            seen->list[i].version = hd_val_ref(version);
            return 0;
        }
    }
    err = hd_array_grow(seen->list, seen->count, seen->cap);
    if (!err)
        seen->list[seen->count++] = (struct hd_version_seen){channel, hd_val_ref(version)};
    return err;
}

bool hd_version_after(const struct hd_val *a, const struct hd_val *b)
{
    double x, y;

    if (!a)
        return false;
    if (!b)
        return true;
    if (hd_val_get_double(a, &x) && hd_val_get_double(b, &y))
        return x > y;
    return hd_slice_cmp(hd_val_get_string(a), hd_val_get_string(b)) > 0;
}

static const struct hd_val *greatest(const struct hd_checkpoint_state *live)
{
    const struct hd_val *max = NULL;

    for (size_t i = 0; i < live->graph->channel_count; i++) {
        if (hd_version_after(live->versions[i], max))
            max = live->versions[i];
    }
    for (size_t i = 0; i < hd_val_count(live->other_versions); i++) {
        const struct hd_val *version = hd_val_member(live->other_versions, i, NULL);

        if (hd_version_after(version, max))
            max = version;
    }
    return max;
}

static void put_digits(char *out, uint64_t value, int width)
{
    for (int i = width - 1; i >= 0; i--, value /= 10)
        out[i] = (char)('0' + value % 10);
}

/* A counter, then a random number that distinguishes the versions of branches. */
struct hd_val *hd_version_next(const struct hd_checkpoint_state *live)
{
    const struct hd_val *max = greatest(live);
    char text[32 + 3 + 15];
    double number;
    uint64_t random;

    /* Other runtimes use plain numbers. The versions of a thread must stay comparable. */
    if (max && hd_val_get_double(max, &number))
        return hd_val_int((int64_t)number + 1);
    hd_random(&random, sizeof(random));
    put_digits(text, strtoull(max ? hd_val_get_string(max).ptr : "0", NULL, 10) + 1, 32);
    memcpy(text + 32, ".0.", 3);
    put_digits(text + 35, random % UINT64_C(1000000000000000), 15);
    return hd_val_string(hd_slice(text, sizeof(text)));
}

struct hd_val *hd_checkpoint_state_read(const struct hd_checkpoint_state *live,
                                        const size_t *indexes, size_t count)
{
    struct hd_val *values;

    if (!indexes && live->graph->is_single) {
        const struct hd_val *only = hd_channel_get(&live->channels[0]);

        return only ? hd_val_ref(only) : hd_val_null();
    }
    values = hd_val_object();
    if (!indexes)
        count = live->graph->state_count;
    for (size_t i = 0; i < count && values; i++) {
        size_t channel = indexes ? indexes[i] : i;
        const struct hd_val *val = hd_channel_get(&live->channels[channel]);

        if (val)
            values = hd_val_with(values, live->graph->channels[channel].name, hd_val_ref(val));
    }
    return values;
}
