/*
 * Runs on their way into the queue. A record can be read a moment before the loop hears of its
 * run, and of a batch a long moment; whoever asks for it then is not to be told that it is over.
 *
 * A run is put here before its record is stored, and taken out when the queue has it. To be put in
 * and left out again is for store threads; everything else happens on the loop.
 */
#ifndef HD_RUN_PENDING_ADMISSION_H
#define HD_RUN_PENDING_ADMISSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "base/compiler.h"
#include "base/slice.h"
#include "base/uuid.h"
#include "run/queue.h"

struct hd_pending_admission {
    struct hd_pending_admission *next;
    bool is_met; /* the loop has seen it */
    char run_id[HD_UUID_SIZE];
    char thread_id[HD_UUID_SIZE];
    int64_t order; /* that it is about to be stored with; 0: none yet */
    /* What the queue does with it as it comes. */
    struct hd_waiter *waiters;
    bool is_cancelled;
    enum hd_cancel action;
    size_t principal_len;
    char principal[];
};

struct hd_pending_admissions {
    uv_mutex_t lock;
    struct hd_pending_admission *first; /* in the order in which they were put in */
    struct hd_pending_admission **tail;
};

HD_MUST_CHECK int hd_pending_admissions_init(struct hd_pending_admissions *all);
void hd_pending_admissions_fini(struct hd_pending_admissions *all);

/* Its record is about to be stored. */
HD_MUST_CHECK int hd_pending_admission_add(struct hd_pending_admissions *all,
                                           struct hd_slice principal, struct hd_slice run_id);
/* It was not stored; one that somebody found stored nevertheless stays. */
void hd_pending_admission_leave(struct hd_pending_admissions *all, struct hd_slice principal,
                                struct hd_slice run_id);

/* The thread and the order that its record is about to be stored with. For store threads. */
void hd_pending_admission_set_order(struct hd_pending_admissions *all, struct hd_slice principal,
                                    struct hd_slice run_id, struct hd_slice thread_id,
                                    int64_t order);

/*
 * Returns whether a run of the thread with a lower order is still being admitted. An admission that
 * retries after a conflict may count for a moment with an order that it did not get.
 */
bool hd_pending_admission_is_before(struct hd_pending_admissions *all, struct hd_slice principal,
                                    struct hd_slice thread_id, int64_t order);

/* NULL: it is not on its way. It stays until it is taken. */
struct hd_pending_admission *hd_pending_admission_find(struct hd_pending_admissions *all,
                                                       struct hd_slice principal,
                                                       struct hd_slice run_id);
/* The same, for the caller to free. */
struct hd_pending_admission *hd_pending_admission_take(struct hd_pending_admissions *all,
                                                       struct hd_slice principal,
                                                       struct hd_slice run_id);

#endif
