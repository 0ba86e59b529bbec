/* The tasks of a superstep, computed from a checkpoint. */
#ifndef HD_GRAPH_ENGINE_TASKS_H
#define HD_GRAPH_ENGINE_TASKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/slice.h"

struct hd_checkpoint_state;
struct hd_task;

struct hd_tasks {
    struct hd_task **list;
    size_t count;
    size_t cap;
};

/*
 * Computes the tasks that follow from a checkpoint. `uses_updated`: consider only nodes that
 * a channel in live->updated can trigger.
 */
HD_MUST_CHECK int hd_tasks_prepare(struct hd_tasks *tasks, const struct hd_checkpoint_state *live,
                                   struct hd_slice ns, int64_t step, bool uses_updated);
void hd_tasks_fini(struct hd_tasks *tasks);
struct hd_task *hd_tasks_find(const struct hd_tasks *tasks, const char *id);
/* Sorts as states show them: sends, then nodes in the order of the declaration. */
void hd_tasks_sort(struct hd_tasks *tasks);

#endif
