/* Output, interrupts and errors of a task, read from the pending writes. */
#ifndef HD_GRAPH_ENGINE_TASK_STATUS_H
#define HD_GRAPH_ENGINE_TASK_STATUS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/compiler.h"

struct hd_graph;
struct hd_pending_writes;
struct hd_val;
struct hd_writes;

/* Appends the task's output writes, in order. */
HD_MUST_CHECK int hd_status_output(const struct hd_pending_writes *pending_writes, const char *task,
                                   struct hd_writes *out);
bool hd_status_is_finished(const struct hd_pending_writes *pending_writes, const char *task);
/* List of the task's last interrupts; NULL: HD_ENOMEM. */
HD_MUST_CHECK struct hd_val *hd_status_interrupts(const struct hd_pending_writes *pending_writes,
                                                  const char *task);
/* Borrowed; NULL: none. */
struct hd_val *hd_status_error(const struct hd_pending_writes *pending_writes, const char *task);
/* Counts the distinct interrupts that have no resume value. */
HD_MUST_CHECK int hd_status_pending(const struct hd_pending_writes *pending_writes, size_t *count);
/* The output as one object, for `tasks` of a state and for checkpoint events. */
HD_MUST_CHECK struct hd_val *hd_status_result(const struct hd_graph *graph,
                                              const struct hd_writes *writes, const size_t *indexes,
                                              size_t count);

#endif
