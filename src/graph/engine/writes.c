/* Lists of writes: those of tasks, and those pending on a checkpoint. */
#include "graph/engine/writes.h"

#include <string.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/slice.h"
#include "base/uuid.h"
#include "base/vec.h"
#include "graph/decl/graph.h"
#include "value/val.h"

/* Indexed by the negated channel number. */
static const char *const specials[] = {
    [-HD_W_ERROR] = "__error__",
    [-HD_W_SCHEDULED] = "__scheduled__",
    [-HD_W_INTERRUPT] = "__interrupt__",
    [-HD_W_RESUME] = "__resume__",
    [-HD_W_NO_WRITES] = "__no_writes__",
    [-HD_W_RETURN] = "__return__",
    [-HD_W_ERROR_SOURCE] = "__error_source_node__",
};

int hd_write_channel(const struct hd_graph *graph, struct hd_slice name)
{
    size_t channel = hd_graph_find_channel(graph, name);

    if (channel != HD_GRAPH_END)
        return (int)channel;
    for (int i = 1; i < (int)HD_COUNT(specials); i++) {
        if (hd_slice_eq(name, hd_slice_cstr(specials[i])))
            return -i;
    }
    return HD_W_OTHER;
}

struct hd_slice hd_write_name(const struct hd_graph *graph, const struct hd_write *write)
{
    if (write->channel >= 0)
        return graph->channels[write->channel].name;
    if (write->channel == HD_W_OTHER)
        return hd_val_get_string(write->name);
    return hd_slice_cstr(specials[-write->channel]);
}

static int push(struct hd_writes *writes, int channel, struct hd_val *name, struct hd_val *val)
{
    if (!val || (channel == HD_W_OTHER && !name) ||
        hd_array_grow(writes->list, writes->count, writes->cap) != 0) {
        hd_val_unref(name);
        hd_val_unref(val);
        return HD_ENOMEM;
    }
    writes->list[writes->count++] = (struct hd_write){channel, name, val};
    return 0;
}

int hd_writes_add(struct hd_writes *writes, int channel, struct hd_val *val)
{
    return push(writes, channel, NULL, val);
}

int hd_writes_add_name(struct hd_writes *writes, const struct hd_graph *graph, struct hd_slice name,
                       struct hd_val *val)
{
    int channel = hd_write_channel(graph, name);

    return push(writes, channel, channel == HD_W_OTHER ? hd_val_string(name) : NULL, val);
}

int hd_writes_copy(struct hd_writes *to, const struct hd_write *list, size_t count)
{
    int err = 0;

    for (size_t i = 0; i < count && !err; i++)
        err = push(to, list[i].channel, hd_val_ref(list[i].name), hd_val_ref(list[i].val));
    return err;
}

static void release_write(struct hd_write *write)
{
    hd_val_unref(write->name);
    hd_val_unref(write->val);
}

void hd_writes_clear(struct hd_writes *writes)
{
    for (size_t i = 0; i < writes->count; i++)
        release_write(&writes->list[i]);
    writes->count = 0;
}

void hd_writes_fini(struct hd_writes *writes)
{
    hd_writes_clear(writes);
    hd_free(writes->list);
    *writes = (struct hd_writes){NULL, 0, 0};
}

int hd_pending_writes_add(struct hd_pending_writes *pending_writes, const char *task,
                          const struct hd_write *write)
{
    struct hd_pending_write *pending_write;

    if (hd_array_grow(pending_writes->list, pending_writes->count, pending_writes->cap) != 0)
        return HD_ENOMEM;
    pending_write = &pending_writes->list[pending_writes->count++];
    memcpy(pending_write->task, task, HD_UUID_LEN);
    pending_write->task[HD_UUID_LEN] = '\0';
    pending_write->row = 0;
    pending_write->write =
        (struct hd_write){write->channel, hd_val_ref(write->name), hd_val_ref(write->val)};
    return 0;
}

void hd_pending_writes_filter(struct hd_pending_writes *pending_writes,
                              bool (*gone)(const struct hd_pending_write *, const void *),
                              const void *arg)
{
    size_t kept = 0;

    for (size_t i = 0; i < pending_writes->count; i++) {
        if (gone(&pending_writes->list[i], arg))
            release_write(&pending_writes->list[i].write);
        else
            pending_writes->list[kept++] = pending_writes->list[i];
    }
    pending_writes->count = kept;
}

void hd_pending_writes_fini(struct hd_pending_writes *pending_writes)
{
    for (size_t i = 0; i < pending_writes->count; i++)
        release_write(&pending_writes->list[i].write);
    hd_free(pending_writes->list);
    *pending_writes = (struct hd_pending_writes){NULL, 0, 0};
}
