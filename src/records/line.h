/*
 * Lines: the agents of a thread. A line is an agent's root namespace and everything below it. It
 * keeps the status and the open interrupts that the last run of this agent left. Whether a line is
 * busy follows from the runs in flight and is not stored.
 *
 * Lines are written only in batches that also put the record of their thread, whose revision guards
 * them. The thread's own status, interrupts and error follow from its lines: hd_lines_settle().
 */
#ifndef HD_RECORDS_LINE_H
#define HD_RECORDS_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/slice.h"
#include "records/record.h"
#include "store/batch.h"

struct heddle;

struct hd_line_rec {
    struct hd_slice principal;
    struct hd_slice thread_id;
    struct hd_slice ns;           /* the root namespace; may be empty */
    enum hd_thread_status status; /* never busy */
    int64_t updated_at;
    struct hd_slice checkpoint_id; /* the head at the end of the last run; empty: none */
    struct hd_slice graph_id;
    struct hd_slice assistant_id;
    struct hd_slice run_id;     /* the last run that left a result; empty: none */
    struct hd_slice interrupts; /* JSON object: task id to list; empty: none */
    struct hd_slice error;      /* JSON; empty: none */
    struct hd_slice unknown;    /* members of the body that a newer version wrote */
    bool is_changed;            /* not stored: hd_lines_put() writes it */
};

/* The lines of one thread, by namespace. */
struct hd_lines {
    struct hd_line_rec *list;
    size_t count;
    size_t cap;
};

/*
 * Reads the lines of a thread into the arena. A thread of an earlier version has none: its only
 * line is made from its record, and marked as changed.
 */
HD_MUST_CHECK int hd_lines_read(struct heddle *store, const struct hd_thread_rec *thread,
                                struct hd_arena *arena, struct hd_lines *out,
                                struct heddle_error *fault);

/* NULL: the thread has no such line. */
struct hd_line_rec *hd_lines_find(const struct hd_lines *lines, struct hd_slice ns);
/*
 * The line, marked as changed; a new one is idle. Borrows `ns`. NULL: no memory. Earlier results
 * become invalid.
 */
struct hd_line_rec *hd_lines_change(struct hd_lines *lines, const struct hd_thread_rec *thread,
                                    struct hd_slice ns, struct hd_arena *arena);
/* Removes the line from the list, without a write. */
void hd_lines_remove(struct hd_lines *lines, struct hd_slice ns);

/*
 * Sets status, interrupts and error of the thread: busy while a run is in flight, otherwise
 * interrupted while any line is, otherwise as the line of the thread's head. The interrupts are
 * those of all lines.
 */
HD_MUST_CHECK int hd_lines_settle(const struct hd_lines *lines, struct hd_thread_rec *thread,
                                  bool is_busy, struct hd_arena *arena);

/* Writes the changed lines. */
HD_MUST_CHECK int hd_lines_put(struct hd_batch_builder *batch, const struct hd_lines *lines);
/* Deletes one line of a thread. */
HD_MUST_CHECK int hd_line_delete(struct hd_batch_builder *batch, const struct hd_thread_rec *thread,
                                 struct hd_slice ns);

/*
 * Sets *out to whether a run is in flight on the line `ns`. Runs of other lines do not count,
 * unless `is_parallel` is false: then a thread executes one run at a time.
 */
HD_MUST_CHECK int hd_line_is_busy(struct heddle *store, const struct hd_thread_rec *thread,
                                  struct hd_slice ns, bool is_parallel, bool *out,
                                  struct heddle_error *fault);

#endif
