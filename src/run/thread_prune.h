/*
 * Deletes old checkpoints of a thread, or the whole thread. Call it on store threads.
 *
 * Keeps the checkpoints at which runs in flight start, and with HD_TTL_KEEP_BRANCHES or in a room
 * the heads that the record names. HD_TTL_KEEP_LATEST of another thread forgets them. Conflicts if
 * the thread's record has changed, so that no run can start at a deleted checkpoint.
 */
#ifndef HD_RUN_THREAD_PRUNE_H
#define HD_RUN_THREAD_PRUNE_H

#include <heddle.h>

#include "base/arena.h"
#include "base/compiler.h"
#include "base/error.h"
#include "config/ttl.h"
#include "records/record.h"

struct hd_lines;
struct hd_map;

struct hd_prune {
    enum hd_ttl_strategy strategy;
    size_t keep_last;
    bool is_dry;  /* count only, delete nothing */
    bool is_over; /* the TTL has expired: clear it until the thread is used again */
};

struct hd_removed {
    int64_t threads; /* deleted */
    int64_t runs;
    int64_t events; /* pages of events */
    int64_t checkpoints;
    int64_t writes;
    int64_t bytes; /* of all rows with their keys, without the database's overhead */
};

/*
 * Adds to *removed. HD_ECONFLICT: the record has changed since it was read; nothing was deleted.
 * HD_TTL_DELETE does not check for active runs.
 */
HD_MUST_CHECK int hd_thread_prune(struct heddle *store, const struct hd_thread_rec *thread,
                                  const struct hd_prune *prune, struct hd_removed *removed,
                                  struct heddle_error *fault);
/* Reads the thread and prunes it; retries after conflicts. HD_ENOTFOUND: no such thread. */
HD_MUST_CHECK int hd_thread_prune_by_id(struct heddle *store, struct hd_slice principal,
                                        struct hd_slice id, const struct hd_prune *prune,
                                        struct hd_removed *removed, struct heddle_error *fault);

/*
 * Deletes a checkpoint with its descendants (store/prune.h) and stores the thread's record
 * `changed` and its changed lines, in one batch. HD_ECONFLICT: the record has changed since it was
 * read; nothing was deleted.
 */
HD_MUST_CHECK int hd_thread_prune_cut(struct heddle *store, struct hd_thread_rec *changed,
                                      const struct hd_lines *lines, struct hd_slice ns,
                                      struct hd_slice id, struct heddle_error *fault);

/* The ids of deleted runs. Zero-initialise. */
struct hd_pruned_runs {
    struct hd_slice *ids;
    size_t count, cap;
};

/*
 * Deletes a line: its checkpoints, the records and webhooks of its runs, their recorded exchanges
 * and stored events. Adds the ids of its runs to *gone, also if it fails. Stores `changed` in the
 * same batch, with another head if its head was on the line; its new members are in the arena.
 * HD_ECONFLICT: the record has changed, or a run of the line is in flight; nothing was deleted.
 */
HD_MUST_CHECK int hd_thread_prune_line(struct heddle *store, struct hd_thread_rec *changed,
                                       struct hd_slice ns, struct hd_arena *arena,
                                       struct hd_pruned_runs *gone, struct heddle_error *fault);

/*
 * Deletes what runs that have ended have stored, but no checkpoints: their records and webhooks,
 * their recorded exchanges and events, and events whose data begins with `data` (empty: none). Adds
 * the ids to *gone. Runs that do not exist are no error.
 */
HD_MUST_CHECK int hd_thread_prune_runs(struct heddle *store, struct hd_thread_rec *thread,
                                       const struct hd_map *run_ids, struct hd_slice data,
                                       struct hd_arena *arena, struct hd_pruned_runs *gone,
                                       struct heddle_error *fault);

#endif
