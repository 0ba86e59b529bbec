/*
 * Runs that are being admitted: their record may be stored, but the queue does not have them yet.
 * The window is short for one run and longer for a batch; a lookup in this window must not report
 * the run as finished.
 *
 * An entry is added before the record is stored and removed when the run enters the queue. Store
 * threads add and remove entries; all other functions run on the loop.
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
    bool is_met; /* a lookup on the loop has found it */
    char run_id[HD_UUID_SIZE];
    char thread_id[HD_UUID_SIZE];
    char *ns;      /* its line; NULL: not known yet */
    int64_t order; /* of the record that is about to be stored; 0: not known yet */
    /* Applied when the run enters the queue. */
    struct hd_waiter *waiters;
    bool is_cancelled;
    enum hd_cancel action;
    size_t principal_len;
    char principal[];
};

struct hd_pending_admissions {
    uv_mutex_t lock;
    struct hd_pending_admission *first; /* in the order of addition */
    struct hd_pending_admission **tail;
};

HD_MUST_CHECK int hd_pending_admissions_init(struct hd_pending_admissions *all);
void hd_pending_admissions_fini(struct hd_pending_admissions *all);

/* Adds a run whose record is about to be stored. */
HD_MUST_CHECK int hd_pending_admission_add(struct hd_pending_admissions *all,
                                           struct hd_slice principal, struct hd_slice run_id);
/* Removes a run that was not stored. An entry that a lookup has found stays. */
void hd_pending_admission_leave(struct hd_pending_admissions *all, struct hd_slice principal,
                                struct hd_slice run_id);

/*
 * Sets the thread, the line and the order that the record is about to be stored with. For store
 * threads.
 */
void hd_pending_admission_set_order(struct hd_pending_admissions *all, struct hd_slice principal,
                                    struct hd_slice run_id, struct hd_slice thread_id,
                                    struct hd_slice ns, int64_t order);

/*
 * Returns whether a run of the line with a lower order is still being admitted. An admission that
 * retries after a conflict may count for a moment with an order that it did not get.
 */
bool hd_pending_admission_is_before(struct hd_pending_admissions *all, struct hd_slice principal,
                                    struct hd_slice thread_id, struct hd_slice ns, int64_t order);

/* Returns NULL when the run is not being admitted. The entry stays in the list. */
struct hd_pending_admission *hd_pending_admission_find(struct hd_pending_admissions *all,
                                                       struct hd_slice principal,
                                                       struct hd_slice run_id);
/* Frees an entry that was taken; NULL is allowed. */
void hd_pending_admission_free(struct hd_pending_admission *admission);
/* Removes the entry and returns it; the caller frees it. */
struct hd_pending_admission *hd_pending_admission_take(struct hd_pending_admissions *all,
                                                       struct hd_slice principal,
                                                       struct hd_slice run_id);

#endif
