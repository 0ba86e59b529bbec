/* Writes of tasks to channels, and the pending writes stored with a checkpoint. */
#ifndef HD_GRAPH_ENGINE_WRITES_H
#define HD_GRAPH_ENGINE_WRITES_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/compiler.h"
#include "base/slice.h"
#include "base/uuid.h"

struct hd_graph;
struct hd_val;

#define HD_NULL_TASK "00000000-0000-0000-0000-000000000000"

/* Reserved channels, which no graph declares: negative numbers in hd_write.channel. */
enum hd_special {
    HD_W_ERROR = -1,
    HD_W_SCHEDULED = -2,
    HD_W_INTERRUPT = -3,
    HD_W_RESUME = -4,
    HD_W_NO_WRITES = -5,
    HD_W_RETURN = -6,
    HD_W_ERROR_SOURCE = -7,
    HD_W_OTHER = -8 /* a channel that the graph does not have, called `name` */
};

struct hd_write {
    int channel;
    struct hd_val *name; /* of HD_W_OTHER; else NULL */
    struct hd_val *val;
};

struct hd_writes {
    struct hd_write *list;
    size_t count;
    size_t cap;
};

/* Takes `val`; NULL is HD_ENOMEM. */
HD_MUST_CHECK int hd_writes_add(struct hd_writes *writes, int channel, struct hd_val *val);
/* Takes a channel's name instead of its number. The name may be unknown. */
HD_MUST_CHECK int hd_writes_add_name(struct hd_writes *writes, const struct hd_graph *graph,
                                     struct hd_slice name, struct hd_val *val);
HD_MUST_CHECK int hd_writes_copy(struct hd_writes *to, const struct hd_write *list, size_t count);
void hd_writes_clear(struct hd_writes *writes);
void hd_writes_fini(struct hd_writes *writes);

/* A task's write, stored with the checkpoint from which the task started. */
struct hd_pending_write {
    char task[HD_UUID_SIZE];
    size_t row; /* its index among the stored writes, if it was loaded */
    struct hd_write write;
};

struct hd_pending_writes {
    struct hd_pending_write *list;
    size_t count;
    size_t cap;
};

HD_MUST_CHECK int hd_pending_writes_add(struct hd_pending_writes *pending_writes, const char *task,
                                        const struct hd_write *write);
/* Removes each write for which `gone` returns true. */
void hd_pending_writes_filter(struct hd_pending_writes *pending_writes,
                              bool (*gone)(const struct hd_pending_write *, const void *),
                              const void *arg);
void hd_pending_writes_fini(struct hd_pending_writes *pending_writes);

int hd_write_channel(const struct hd_graph *graph, struct hd_slice name);
struct hd_slice hd_write_name(const struct hd_graph *graph, const struct hd_write *write);

/* __error__, __scheduled__, __interrupt__, __resume__: a task has at most one of each. */
static inline bool hd_write_is_special(const struct hd_write *write)
{
    return write->channel <= HD_W_ERROR && write->channel >= HD_W_RESUME;
}

/* True for a write that records the task's status and not its output. */
static inline bool hd_write_is_control(const struct hd_write *write)
{
    return write->channel == HD_W_ERROR || write->channel == HD_W_ERROR_SOURCE ||
           write->channel == HD_W_INTERRUPT || write->channel == HD_W_RESUME;
}

static inline bool hd_is_null_task(const char *task)
{
    return memcmp(task, HD_NULL_TASK, HD_UUID_LEN) == 0;
}

#endif
