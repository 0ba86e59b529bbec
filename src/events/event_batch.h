/*
 * Events that report a change of stored rows: the batch that changes the rows also stores the page
 * with the events. So every change has its events, also when the process ends between the batch and
 * their publication; readers see them once the batch is durable.
 *
 * The numbers are reserved before: they lie above those that the thread's runs may use meanwhile,
 * so that readers see them increase, and no reader has to wait for the batch.
 *
 *   loop           hd_event_batch_begin()
 *   store thread   in each attempt: hd_event_batch_reset(), _add(), _put()
 *   loop           hd_event_batch_end()
 */
#ifndef HD_EVENTS_EVENT_BATCH_H
#define HD_EVENTS_EVENT_BATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/slice.h"
#include "store/batch.h"

struct hd_event_batch;
struct hd_event_logs;
struct hd_thread_rec;

/*
 * Reserves numbers for up to `count` events. `seq`: event_seq of the thread's record, read before.
 * NULL: no memory.
 */
HD_MUST_CHECK struct hd_event_batch *hd_event_batch_begin(struct hd_event_logs *logs,
                                                          struct hd_slice principal,
                                                          struct hd_slice thread, int64_t seq,
                                                          size_t count);
/*
 * Events of a thread that no reader follows yet, with the numbers behind `seq`, event_seq of its
 * record: for the recovery of its runs, on a store thread too. Ends as others.
 */
HD_MUST_CHECK struct hd_event_batch *hd_event_batch_apart(int64_t seq, size_t count);
/* Removes the events of an earlier attempt. */
void hd_event_batch_reset(struct hd_event_batch *events);
/* Copies the event. `run_id` may be empty; `mode` is one of enum hd_mode. HD_ELIMIT: too many. */
HD_MUST_CHECK int hd_event_batch_add(struct hd_event_batch *events, struct hd_slice run_id,
                                     uint32_t mode, struct hd_slice name, struct hd_slice data);
/*
 * False: the thread's record has used the reserved numbers. The batch must not be applied, and the
 * events begin again, with the new event_seq.
 */
bool hd_event_batch_fits(const struct hd_event_batch *events, const struct hd_thread_rec *thread);
/*
 * True while the events of a change may begin again: each change of the thread uses the numbers of
 * those that reserved theirs before, so many may lose them many times. *until is 0 at first.
 */
bool hd_event_batch_has_time(int64_t *until);
/*
 * Appends the row of the page, and raises thread->event_seq; the caller puts the record of the
 * thread. Does nothing without events. Borrows the names in `thread` until the batch is applied.
 */
HD_MUST_CHECK int hd_event_batch_put(const struct hd_event_batch *events,
                                     struct hd_batch_builder *batch, struct hd_thread_rec *thread);
/* `is_stored`: the batch was applied, and readers get the events. Frees `events` (or NULL). */
void hd_event_batch_end(struct hd_event_batch *events, bool is_stored);

#endif
