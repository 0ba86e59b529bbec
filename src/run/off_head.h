/*
 * Runs off the head: they continue from a checkpoint that they name, and make a branch of their
 * line beside its head. Such a run moves neither the head of its line nor that of the thread, and
 * leaves the line's status and interrupts as they are; its delegates do the same on their lines.
 * Until it has ended the thread is busy.
 *
 * The head of a line is its latest checkpoint unless the thread's record names another one
 * (records/thread_heads.h). A branch has newer checkpoints, so the record names the head before the
 * branch begins: hd_off_head_keep(). Runs of the line execute beside it; their ends name the new
 * head. Delegates, whose ends change no record, do not execute on the line at the same time.
 */
#ifndef HD_RUN_OFF_HEAD_H
#define HD_RUN_OFF_HEAD_H

#include "app/app.h"
#include "base/arena.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/slice.h"
#include "records/record.h"

/*
 * Stores the head of the line `ns` in the thread's record, unless the record names one or the line
 * has no checkpoint. For store threads, before `run` makes a checkpoint there.
 */
HD_MUST_CHECK int hd_off_head_keep(struct hd_app *app, const struct hd_run_rec *run,
                                   struct hd_slice ns, struct heddle_error *fault);

/*
 * Where a delegate of the run begins on the line `ns`: at the newest checkpoint that the run has
 * made there, else where run->forks says, else at the head. Empty: the line has no checkpoint.
 * `is_own`: the run has made it. In the arena. For store threads.
 */
HD_MUST_CHECK int hd_off_head_fork(struct hd_app *app, const struct hd_run_rec *run,
                                   struct hd_slice ns, struct hd_arena *arena, struct hd_slice *out,
                                   bool *is_own, struct heddle_error *fault);

#endif
