/* The threads and lines that have runs or visitors, and their active runs, for queue.c. */
#ifndef HD_RUN_QUEUE_LINES_H
#define HD_RUN_QUEUE_LINES_H

#include "run/active_run.h"

/* Returns whether each line has a queue of its own (namespaces.parallel). */
bool hd_queue_lines_are_parallel(const struct hd_queue *queue);

/* NULL: the thread has neither runs nor visitors. */
struct hd_thread_queue *hd_queue_lines_thread(struct hd_queue *queue, struct hd_slice principal,
                                              struct hd_slice thread);
/* NULL: there is no such line. `thread_queue` may be NULL. */
struct hd_line_queue *hd_queue_lines_find(const struct hd_thread_queue *thread_queue,
                                          struct hd_slice ns);
/* The line, created if needed. NULL: no memory. */
struct hd_line_queue *hd_queue_lines_get(struct hd_queue *queue, struct hd_slice principal,
                                         struct hd_slice thread, struct hd_slice ns);
/*
 * The name of the run's queue: its line `ns`, or a queue of its own for a run off the head. In the
 * arena.
 */
HD_MUST_CHECK int hd_queue_lines_name(const struct hd_queue *queue, const struct hd_run_rec *run,
                                      struct hd_slice ns, struct hd_arena *arena,
                                      struct hd_slice *out);
/* The queue of a run off the head that is running on the line `ns`; NULL: none. */
struct hd_line_queue *hd_queue_lines_busy_branch(const struct hd_thread_queue *thread_queue,
                                                 struct hd_slice ns);
/* True if delegates execute on the line: no run starts. */
bool hd_queue_lines_are_visited(const struct hd_line_queue *line);
/* Frees a line without runs and visitors, and a thread queue without lines. */
void hd_queue_lines_drop(struct hd_line_queue *line);

/* NULL: no such run is active. */
struct hd_active_run *hd_queue_lines_run(struct hd_queue *queue, struct hd_slice principal,
                                         struct hd_slice thread, struct hd_slice run_id);

#endif
