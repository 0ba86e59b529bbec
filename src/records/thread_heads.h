/* Heads chosen by users: the checkpoint of a namespace from which its runs continue. */
#ifndef HD_RECORDS_THREAD_HEADS_H
#define HD_RECORDS_THREAD_HEADS_H

#include "base/arena.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/slice.h"

struct heddle;
struct hd_thread_rec;

/* The member of a thread's metadata with names of branches, by checkpoint; runs do not get it. */
#define HD_BRANCH_NAMES "branch_names"

/* Changes the heads (JSON, see struct hd_thread_rec), in the arena; an empty id: none for `ns`. */
HD_MUST_CHECK int hd_thread_heads_set(struct hd_arena *arena, struct hd_slice *heads,
                                      struct hd_slice ns, struct hd_slice id);

/*
 * The head of `ns` in a thread, in the arena; empty: none was chosen, or it was deleted with the
 * run that made it.
 */
HD_MUST_CHECK int hd_thread_heads_get(struct heddle *store, const struct hd_thread_rec *thread,
                                      struct hd_slice ns, struct hd_arena *arena,
                                      struct hd_slice *out, struct heddle_error *fault);

/*
 * A run (or an update, without a run_id) ended at `id`: the checkpoint is the head of `ns` from now
 * on, if the run made it. That is stored only where it is not the latest of the namespace anyway:
 * where a graph in a worker branched off while its clock was behind. Changes thread->heads, in the
 * arena.
 */
HD_MUST_CHECK int hd_thread_heads_follow(struct heddle *store, struct hd_thread_rec *thread,
                                         struct hd_slice ns, struct hd_slice id,
                                         struct hd_slice run_id, struct hd_arena *arena,
                                         struct heddle_error *fault);

/*
 * The latest checkpoint of `ns`, in the arena; empty: it has none. Runs continue there unless
 * another head is chosen.
 */
HD_MUST_CHECK int hd_thread_heads_latest(struct heddle *store, const struct hd_thread_rec *thread,
                                         struct hd_slice ns, struct hd_arena *arena,
                                         struct hd_slice *out, struct heddle_error *fault);

/* The newest checkpoint of `ns` that a run has made, in the arena; empty: it has made none. */
HD_MUST_CHECK int hd_thread_heads_made(struct heddle *store, struct hd_slice principal,
                                       struct hd_slice thread, struct hd_slice ns,
                                       struct hd_slice run_id, struct hd_arena *arena,
                                       struct hd_slice *out, struct heddle_error *fault);

/*
 * Where a run began in `ns`: the parent of the first checkpoint that it has made there, in the
 * arena; empty: it began without one. *has_made: it has made a checkpoint.
 */
HD_MUST_CHECK int hd_thread_heads_began(struct heddle *store, struct hd_slice principal,
                                        struct hd_slice thread, struct hd_slice ns,
                                        struct hd_slice run_id, struct hd_arena *arena,
                                        struct hd_slice *out, bool *has_made,
                                        struct heddle_error *fault);

/*
 * The newest checkpoint of `ns` that a run has made, in the arena; empty: it has made none, or the
 * latest of the namespace.
 */
HD_MUST_CHECK int hd_thread_heads_beside(struct heddle *store, struct hd_slice principal,
                                         struct hd_slice thread, struct hd_slice ns,
                                         struct hd_slice run_id, struct hd_arena *arena,
                                         struct hd_slice *out, struct heddle_error *fault);

/* Looks up a checkpoint: 0, HD_ENOTFOUND (without a fault), or another error. */
HD_MUST_CHECK int hd_thread_heads_check(struct heddle *store, struct hd_slice principal,
                                        struct hd_slice thread, struct hd_slice ns,
                                        struct hd_slice id, struct heddle_error *fault);

#endif
