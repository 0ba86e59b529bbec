/*
 * Removes an agent from a thread: its lines with their checkpoints and runs. The runs in flight are
 * interrupted first and their ends awaited; a run that starts meanwhile repeats this.
 */
#ifndef HD_API_AGENT_DELETE_H
#define HD_API_AGENT_DELETE_H

#include "api/api.h"

/* The stages of DELETE /threads/{thread_id}/agents/{assistant_id}. */
struct hd_step hd_agent_delete_start(struct hd_call *call);
struct hd_step hd_agent_delete_then(struct hd_call *call);

#endif
