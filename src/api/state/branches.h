/* The current head of a namespace after checkpoints were removed. */
#ifndef HD_API_STATE_BRANCHES_H
#define HD_API_STATE_BRANCHES_H

#include "api/api.h"
#include "api/state/checkpoint_target.h"

/* The thread's head was deleted: the newest checkpoint of its namespace becomes the head, and the
 * thread gets its interrupts. Does nothing while a run is in flight. */
HD_MUST_CHECK int hd_head_renew(struct hd_call *call, struct hd_checkpoint_target *target);

#endif
