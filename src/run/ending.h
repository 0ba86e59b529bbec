/* What the end of a run means for what is stored. For store threads. */
#ifndef HD_RUN_ENDING_H
#define HD_RUN_ENDING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"
#include "base/slice.h"
#include "run/app.h"
#include "run/record.h"

struct hd_config;

struct hd_ending {
    const struct hd_run_rec *run;
    enum hd_run_state status;
    struct hd_slice ns; /* where it worked */
    struct hd_slice graph_id;
    struct hd_slice checkpoint_id; /* empty: it made none */
    struct hd_slice interrupts;    /* JSON; empty: none */
    struct hd_slice error;         /* JSON; empty: none */
    struct hd_slice receipt;       /* JSON; empty: nobody stopped it */
    bool has_begun;
    bool has_next;       /* its last checkpoint has something left to do */
    bool is_rolled_back; /* nothing of it shall stay */
    bool deletes_thread;
    int64_t event_seq;
    size_t stored_pages; /* of events, that are kept of the thread; 0: not to be looked at */
};

HD_MUST_CHECK int hd_ending_store(struct hd_app *app, const struct hd_ending *ending,
                                  struct hd_fault *fault);

/* When a thread with this `ttl` ({"ttl": minutes, …}, JSON) that was used at `from` ends; 0: never. */
int64_t hd_ttl_expiry(struct hd_slice ttl, int64_t from);

/* The `ttl` that the configuration gives to a thread without one; empty: none. In the arena. */
HD_MUST_CHECK int hd_ttl_standard(const struct hd_config *config, struct hd_arena *arena,
                                  struct hd_slice *out);

/* Whether a thread with this `ttl` is pruned when it expires; otherwise it is deleted. */
bool hd_ttl_keeps_latest(struct hd_slice ttl);
/* Its time is over and it only waits to be swept: nobody sees it any more. */
bool hd_thread_is_over(const struct hd_thread_rec *thread, int64_t now);

/* Whether the run has made a checkpoint. */
HD_MUST_CHECK int hd_run_has_checkpoint(struct heddle *store, const struct hd_run_rec *run,
                                        bool *out, struct hd_fault *fault);

/* A thread and everything of it: checkpoints, runs, events. Nothing of it may be at work. */
HD_MUST_CHECK int hd_thread_delete(struct heddle *store, struct hd_slice principal,
                                   struct hd_slice thread_id, struct hd_fault *fault);
/* The same for one that has expired: HD_ECONFLICT, and nothing is gone, if it was changed since. */
HD_MUST_CHECK int hd_thread_expire(struct heddle *store, const struct hd_thread_rec *thread,
                                   struct hd_fault *fault);

#endif
