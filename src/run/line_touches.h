/*
 * The lines that a run changed besides its own: a delegate replaces what its line waited for, and
 * the head that a client chose there. The run's record has the state before the first change, for a
 * rollback: a JSON list of {"ns", "head"?, "status"?, "interrupts"?, "error"?, "updated_at"?}.
 */
#ifndef HD_RUN_LINE_TOUCHES_H
#define HD_RUN_LINE_TOUCHES_H

#include "base/arena.h"
#include "base/compiler.h"
#include "base/slice.h"
#include "records/line.h"
#include "records/record.h"

/*
 * Adds the line `ns` with its state, unless the list has it. `line` NULL: it has no record; `head`:
 * the chosen head, or empty. *touches is in the arena afterwards.
 */
HD_MUST_CHECK int hd_line_touches_add(struct hd_slice *touches, struct hd_slice ns,
                                      const struct hd_line_rec *line, struct hd_slice head,
                                      struct hd_arena *arena);
/* Puts the lines back that nothing else has changed since, and their chosen heads. */
HD_MUST_CHECK int hd_line_touches_restore(struct hd_slice touches, struct hd_thread_rec *thread,
                                          struct hd_lines *lines, struct hd_arena *arena);

#endif
