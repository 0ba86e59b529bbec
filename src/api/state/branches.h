/* The current head of a namespace, when checkpoints go. */
#ifndef HD_API_STATE_BRANCHES_H
#define HD_API_STATE_BRANCHES_H

#include "api/api.h"
#include "api/state/checkpoint_target.h"

/*
 * The thread's head was deleted: it is the newest checkpoint of its namespace now, and what waits
 * there is what the thread waits for. Nothing happens while a run is in flight.
 */
HD_MUST_CHECK int hd_head_renew(struct hd_call *call, struct hd_checkpoint_target *target);

#endif
