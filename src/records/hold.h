/*
 * Holds: which server executes the runs of a thread, where several servers share a store.
 *
 * The server that admits a run on an unheld thread claims it in the same batch, with a random
 * token; the batch that ends the last run releases it. Both batches, like all that change a hold,
 * also put the record of the thread, whose revision guards the claim. All batches of a holder
 * expect the token of its claim, which it never reads again: after a take-over they fail with
 * HD_ETAKEN.
 *
 * A thread that no server of a cluster has ever held has no row.
 */
#ifndef HD_RECORDS_HOLD_H
#define HD_RECORDS_HOLD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/slice.h"
#include "base/uuid.h"
#include "records/record.h"
#include "store/batch.h"

struct hd_cluster;
struct heddle;

struct hd_hold {
    int64_t token;          /* 0: unheld */
    struct hd_slice server; /* the holder; empty: unheld */
    struct hd_slice last;   /* the holder, or the last one; empty: none yet */
};

/* A thread without a row is unheld. Slices are in the arena. */
HD_MUST_CHECK int hd_hold_read(struct heddle *store, struct hd_slice principal,
                               struct hd_slice thread, struct hd_arena *arena, struct hd_hold *out,
                               struct heddle_error *fault);

/* A thread with its hold. */
struct hd_held_thread {
    bool has_thread; /* false: there is no such thread, and `thread` is not set */
    struct hd_thread_rec thread;
    struct hd_hold hold;
};

/*
 * Both in one round trip. The hold is as new as the record or newer, so a batch that puts this
 * record fails when the hold has changed since.
 */
HD_MUST_CHECK int hd_hold_read_thread(struct heddle *store, struct hd_slice principal,
                                      struct hd_slice thread, struct hd_arena *arena,
                                      struct hd_held_thread *out, struct heddle_error *fault);

/* A look at a thread: who holds it, or did last. */
struct hd_hold_look {
    struct hd_slice principal, thread; /* set by the caller */
    char last[HD_UUID_SIZE];           /* empty: none yet */
    bool has_thread;                   /* false: the thread was deleted */
};

/* Looks at many threads in few round trips. Blocks. */
HD_MUST_CHECK int hd_holds_look(struct heddle *store, struct hd_hold_look *looks, size_t count,
                                struct heddle_error *fault);

/* A new token; never 0. */
int64_t hd_hold_token(void);

/* Appends the row; borrows the texts until the batch is applied. token 0: it is unheld. */
HD_MUST_CHECK int hd_hold_put(struct hd_batch_builder *batch, struct hd_slice principal,
                              struct hd_slice thread, const struct hd_hold *hold);
/* Expects the row to have the token, which is not 0. */
HD_MUST_CHECK int hd_hold_expect(struct hd_batch_builder *batch, struct hd_slice principal,
                                 struct hd_slice thread, int64_t token);
/* The same, and releases the hold. Its server stays the last holder. */
HD_MUST_CHECK int hd_hold_release(struct hd_batch_builder *batch, struct hd_slice principal,
                                  struct hd_slice thread, int64_t token);

/*
 * For a batch with events of an unheld thread. Readers of an idle thread get its events from the
 * last holder; if that one is gone, appends that this server takes its place, since it announces
 * the change. `hold`: as stored. The batch also puts the record of the thread. Blocks.
 */
HD_MUST_CHECK int hd_hold_announce(struct hd_batch_builder *batch, struct hd_cluster *cluster,
                                   struct hd_slice principal, struct hd_slice thread,
                                   const struct hd_hold *hold, struct heddle_error *fault);

/*
 * Calls `fn` for each thread that `server` holds; a positive result ends the scan. The slices are
 * valid during the call. Blocks.
 */
typedef int (*hd_hold_fn)(void *arg, struct hd_slice principal, struct hd_slice thread,
                          const struct hd_hold *hold);

HD_MUST_CHECK int hd_holds_of(struct heddle *store, struct hd_slice server, hd_hold_fn fn,
                              void *arg, struct heddle_error *fault);
/* The same for the threads of all holders. */
HD_MUST_CHECK int hd_holds_all(struct heddle *store, hd_hold_fn fn, void *arg,
                               struct heddle_error *fault);

#endif
