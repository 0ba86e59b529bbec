/* An attempt to admit runs, as the files of admit.h share it. */
#ifndef HD_RUN_ADMIT_INTERNAL_H
#define HD_RUN_ADMIT_INTERNAL_H

#include "records/hold.h"
#include "records/run_slot.h"
#include "run/admit.h"
#include "value/val.h"

struct hd_admit_attempt;

/* One run in an attempt. */
struct hd_admit_run {
    struct hd_admit_attempt *attempt;
    struct hd_admission *a;
    struct hd_assistant_rec assistant;
    struct hd_slice ns;
    struct hd_slice
        shown; /* the root of the checkpoint that the request names; empty: none, or "" */
    struct hd_slice checkpoint_id;
    struct hd_slice checkpoint_map;
    struct hd_slice *in_flight; /* ids of the runs on its line that are stored */
    size_t in_flight_count;
    bool is_busy; /* a run or a delegate executes on the line, or a run waits there */
    struct hd_val *configurable; /* merged; without secrets */
    struct hd_val *secrets;      /* removed from the stored values; NULL: none */
    struct hd_run_slot slot;     /* of the actor; 0: runs are not counted in the store */
};

struct hd_admit_attempt {
    struct hd_admission_group *group;
    struct heddle_error *fault;
    struct hd_thread_rec thread;
    bool is_new_thread;
    struct hd_val *secrets;    /* removed from the metadata of a new thread; NULL: none */
    struct hd_run_rec *active; /* in flight on the thread */
    size_t active_count;
    struct hd_hold hold; /* as stored */
    int64_t token;       /* of the hold on the thread; 0: unheld, or the store is not shared */
    bool claims;         /* this attempt claims the thread */
    struct hd_admit_run runs[HD_ADMIT_MAX_RUNS];
    size_t count;
};

/* ---- admit_thread.c --------------------------------------------------- */

/* Reads the thread, with its hold where several servers share the store, or begins a new one. */
HD_MUST_CHECK int hd_admit_thread_find(struct hd_admit_attempt *t);
/*
 * A thread that another server holds ends the attempt: that server admits its runs. The holder may
 * be gone; then it is being taken over.
 */
HD_MUST_CHECK int hd_admit_thread_check_hold(struct hd_admit_attempt *t);
/* Chooses the token of the attempt: runs need a hold. */
void hd_admit_thread_choose_token(struct hd_admit_attempt *t);
/* Sets status, head and times in the record. `shown` NULL: the head stays. */
HD_MUST_CHECK int hd_admit_thread_fill(struct hd_admit_attempt *t, const struct hd_admit_run *shown,
                                       int64_t now);
/* The claim of the thread, or the expectation that this server still holds it. */
HD_MUST_CHECK int hd_admit_thread_add_hold(struct hd_admit_attempt *t,
                                           struct hd_batch_builder *batch);

/* ---- admit_place.c ---------------------------------------------------- */

/* Finds the line and the checkpoint. Refuses a run whose line is busy if its request wants that. */
HD_MUST_CHECK int hd_admit_place_find(struct hd_admit_run *run);
/* True if the run waits neither for a delay nor for others on its line. */
bool hd_admit_place_begins_now(const struct hd_admit_run *run);

/* ---- admit_config.c --------------------------------------------------- */

/* True if the thread is deleted when the run ends: the run was requested, alone, without one. */
bool hd_admit_config_is_temporary(const struct hd_admit_run *run);
/* The metadata of a new thread: its owner and the stamps. */
HD_MUST_CHECK int hd_admit_config_own_thread(struct hd_admit_attempt *t);
/* Makes the arguments and the metadata of the run. */
HD_MUST_CHECK int hd_admit_config_make(struct hd_admit_run *run);
/* Stores the assistant and the configuration of the run in the record of the thread. */
HD_MUST_CHECK int hd_admit_config_keep(struct hd_admit_run *run);
/* Stores the secrets that the functions above have removed in the run. */
HD_MUST_CHECK int hd_admit_config_put_secrets(struct hd_admit_run *run);

#endif
