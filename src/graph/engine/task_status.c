/*
 * Derives the status of tasks from the pending writes of a checkpoint. A task is finished if it has
 * an output write; until then its interrupts are pending.
 */
#include "graph/engine/task_status.h"

#include <string.h>

#include "base/slice.h"
#include "base/uuid.h"
#include "graph/decl/graph.h"
#include "graph/engine/writes.h"
#include "value/val.h"

static bool is_of(const struct hd_pending_write *pending_write, const char *task)
{
    return memcmp(pending_write->task, task, HD_UUID_LEN) == 0;
}

int hd_status_output(const struct hd_pending_writes *pending_writes, const char *task,
                     struct hd_writes *out)
{
    int err = 0;

    for (size_t i = 0; i < pending_writes->count && !err; i++) {
        if (is_of(&pending_writes->list[i], task) &&
            !hd_write_is_control(&pending_writes->list[i].write))
            err = hd_writes_copy(out, &pending_writes->list[i].write, 1);
    }
    return err;
}

bool hd_status_is_finished(const struct hd_pending_writes *pending_writes, const char *task)
{
    for (size_t i = 0; i < pending_writes->count; i++) {
        if (is_of(&pending_writes->list[i], task) &&
            !hd_write_is_control(&pending_writes->list[i].write))
            return true;
    }
    return false;
}

struct hd_val *hd_status_interrupts(const struct hd_pending_writes *pending_writes,
                                    const char *task)
{
    struct hd_val *list = hd_val_list();

    for (size_t i = 0; i < pending_writes->count && list; i++) {
        const struct hd_pending_write *pending_write = &pending_writes->list[i];

        if (!is_of(pending_write, task) || pending_write->write.channel != HD_W_INTERRUPT)
            continue;
        if (hd_val_is_list(pending_write->write.val))
            list = hd_val_extend(list, pending_write->write.val);
        else
            list = hd_val_append(list, hd_val_ref(pending_write->write.val));
    }
    return list;
}

struct hd_val *hd_status_error(const struct hd_pending_writes *pending_writes, const char *task)
{
    for (size_t i = 0; i < pending_writes->count; i++) {
        if (is_of(&pending_writes->list[i], task) &&
            pending_writes->list[i].write.channel == HD_W_ERROR)
            return pending_writes->list[i].write.val;
    }
    return NULL;
}

/* True if an interrupt with this id precedes element `index` of write `at`. */
static bool counted_before(const struct hd_pending_writes *pending_writes, size_t at, size_t index,
                           struct hd_slice id)
{
    for (size_t i = 0; i <= at; i++) {
        const struct hd_val *list = pending_writes->list[i].write.val;

        if (pending_writes->list[i].write.channel != HD_W_INTERRUPT || !hd_val_is_list(list))
            continue;
        for (size_t j = 0; j < hd_val_count(list) && (i < at || j < index); j++) {
            if (hd_slice_eq(hd_val_get_string(hd_val_get(hd_val_at(list, j), HD_S("id"))), id))
                return true;
        }
    }
    return false;
}

int hd_status_pending(const struct hd_pending_writes *pending_writes, size_t *count)
{
    *count = 0;
    for (size_t i = 0; i < pending_writes->count; i++) {
        const struct hd_pending_write *pending_write = &pending_writes->list[i];
        const struct hd_val *list = pending_write->write.val;

        if (pending_write->write.channel != HD_W_INTERRUPT ||
            hd_is_null_task(pending_write->task) ||
            hd_status_is_finished(pending_writes, pending_write->task))
            continue;
        if (!hd_val_is_list(list)) {
            *count += 1;
            continue;
        }
        for (size_t j = 0; j < hd_val_count(list); j++) {
            struct hd_slice id = hd_val_get_string(hd_val_get(hd_val_at(list, j), HD_S("id")));

            *count += !counted_before(pending_writes, i, j, id);
        }
    }
    return 0;
}

static bool is_among(int channel, const size_t *indexes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (channel >= 0 && indexes[i] == (size_t)channel)
            return true;
    }
    return false;
}

/* Several writes to one channel are shown together, as {"$writes": […]}. */
static struct hd_val *fold(struct hd_val *result, struct hd_slice name, const struct hd_val *val)
{
    struct hd_val *before = hd_val_get(result, name);
    struct hd_val *all;

    if (hd_val_is_null(before))
        return hd_val_with(result, name, hd_val_ref(val));
    all = hd_val_get(before, HD_S("$writes"));
    if (hd_val_is_list(all))
        all = hd_val_append(hd_val_ref(all), hd_val_ref(val));
    else
        all = hd_val_append(hd_val_append(hd_val_list(), hd_val_ref(before)), hd_val_ref(val));
    return hd_val_with(result, name, hd_val_with(hd_val_object(), HD_S("$writes"), all));
}

struct hd_val *hd_status_result(const struct hd_graph *graph, const struct hd_writes *writes,
                                const size_t *indexes, size_t count)
{
    struct hd_val *result = hd_val_object(), *only;

    for (size_t i = 0; i < writes->count && result; i++) {
        int channel = writes->list[i].channel;

        if (indexes ? is_among(channel, indexes, count)
                    : channel >= 0 && (size_t)channel < graph->state_count)
            result = fold(result, graph->channels[channel].name, writes->list[i].val);
    }
    if (!graph->is_single || indexes || !result)
        return result;
    only = hd_val_count(result) > 0 ? hd_val_ref(hd_val_member(result, 0, NULL)) : hd_val_null();
    hd_val_unref(result);
    return only;
}
