/* The end of a superstep: applies writes to the channels and increments versions. */
#include "graph/engine/apply.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/slice.h"
#include "graph/decl/graph.h"
#include "graph/engine/channel.h"
#include "graph/engine/checkpoint_state.h"
#include "graph/engine/failure.h"
#include "graph/engine/writes.h"
#include "value/val.h"

struct applying {
    struct hd_checkpoint_state *live;
    struct hd_val *version; /* the next version; NULL: versions do not change */
    bool *updated;
    bool any_trigger; /* a channel that can trigger a node was updated */
    struct hd_failure *failure;
};

static int in_order(const void *a, const void *b)
{
    const struct hd_applied *x = a, *y = b;
    int order;

    if (x->rank != y->rank)
        return x->rank - y->rank;
    order = hd_slice_cmp(x->name, y->name);
    /* Only pulled nodes (rank 2) are ordered by name; sends are ordered by index. */
    if (x->rank != 2 || order == 0)
        return x->index < y->index ? -1 : x->index > y->index;
    return order;
}

static void set_version(struct applying *a, size_t channel)
{
    if (!a->version)
        return;
    hd_val_unref(a->live->versions[channel]);
    a->live->versions[channel] = hd_val_ref(a->version);
}

static bool is_trigger(const struct hd_graph *graph, size_t channel)
{
    enum hd_graph_reducer reducer = graph->channels[channel].reducer;

    return channel == graph->start_channel || reducer == HD_REDUCE_TRIGGER ||
           reducer == HD_REDUCE_TRIGGER_AFTER || reducer == HD_REDUCE_BARRIER ||
           reducer == HD_REDUCE_BARRIER_AFTER;
}

/* The channel has changed. Without a version no channel counts as updated, as in LangGraph. */
static void mark(struct applying *a, size_t channel)
{
    set_version(a, channel);
    if (!a->version || !hd_channel_is_available(&a->live->channels[channel]))
        return;
    a->updated[channel] = true;
    a->any_trigger = a->any_trigger || is_trigger(a->live->graph, channel);
}

static int see(struct hd_checkpoint_state *live, const struct hd_applied *applied)
{
    struct hd_versions_seen *seen = &live->seen[applied->row];
    int err = 0;

    seen->is_there = true;
    for (size_t i = 0; i < applied->trigger_count && !err; i++) {
        size_t channel = applied->triggers[i];

        if (live->versions[channel])
            err = hd_versions_seen_put(seen, channel, live->versions[channel]);
    }
    return err;
}

static void consume(struct applying *a, const struct hd_applied *applied)
{
    for (size_t i = 0; i < applied->trigger_count; i++) {
        if (hd_channel_consume(&a->live->channels[applied->triggers[i]]))
            set_version(a, applied->triggers[i]);
    }
}

static int update(struct applying *a, size_t channel, struct hd_val *const *vals, size_t count)
{
    struct hd_refusal refusal = {0};
    bool changed = false;
    int err = hd_channel_update(&a->live->channels[channel], vals, count, &changed, &refusal);

    if (err)
        hd_failure_refusal(a->failure, err, &refusal);
    if (!err && changed)
        mark(a, channel);
    return err;
}

/* Updates each channel once with all its writes, in the order of their tasks. */
static int update_written(struct applying *a, const struct hd_applied *list, size_t count)
{
    size_t total = 0, found;
    struct hd_val **vals;
    int err = 0;

    for (size_t i = 0; i < count; i++)
        total += list[i].writes->count;
    if (total == 0)
        return 0;
    vals = hd_malloc(total * sizeof(struct hd_val *));
    if (!vals)
        return HD_ENOMEM;
    for (size_t channel = 0; channel < a->live->graph->channel_count && !err; channel++) {
        found = 0;
        for (size_t i = 0; i < count; i++) {
            for (size_t j = 0; j < list[i].writes->count; j++) {
                if (list[i].writes->list[j].channel == (int)channel)
                    vals[found++] = list[i].writes->list[j].val;
            }
        }
        if (found > 0)
            err = update(a, channel, vals, found);
    }
    hd_free(vals);
    return err;
}

static int next_step(struct applying *a)
{
    int err = 0;

    for (size_t i = 0; i < a->live->graph->channel_count && !err; i++) {
        if (hd_channel_is_available(&a->live->channels[i]) && !a->updated[i])
            err = update(a, i, NULL, 0);
    }
    return err;
}

static void finish_channels(struct applying *a)
{
    for (size_t i = 0; i < a->live->graph->channel_count; i++) {
        if (hd_channel_finish(&a->live->channels[i]))
            mark(a, i);
    }
}

static int run(struct applying *a, struct hd_applied *list, size_t count)
{
    bool bumps = false;
    int err = 0;

    qsort(list, count, sizeof(*list), in_order);
    for (size_t i = 0; i < count && !err; i++) {
        bumps = bumps || list[i].bumps;
        err = see(a->live, &list[i]);
    }
    for (size_t i = 0; i < count && !err; i++)
        consume(a, &list[i]);
    if (!err)
        err = update_written(a, list, count);
    if (!err && bumps)
        err = next_step(a);
    if (!err && bumps && !a->any_trigger)
        finish_channels(a);
    return err;
}

int hd_apply(struct hd_checkpoint_state *live, struct hd_applied *list, size_t count,
             bool is_versioned, bool *updated, struct hd_failure *failure)
{
    struct applying a = {.live = live, .updated = updated, .failure = failure};
    bool *own = NULL;
    int err = 0;

    if (!updated)
        own = a.updated = hd_calloc(live->graph->channel_count, sizeof(*own));
    if (is_versioned)
        a.version = hd_version_next(live);
    if (!a.updated || (is_versioned && !a.version))
        err = HD_ENOMEM;
    if (!err)
        err = run(&a, list, count);
    if (err == HD_ENOMEM)
        hd_failure_code(failure, err, NULL);
    hd_val_unref(a.version);
    hd_free(own);
    return err;
}
