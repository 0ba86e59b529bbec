/* Responses that wait for the end of a run: its values as JSON, preceded by white space while it
 * runs. */
#ifndef HD_API_WAIT_H
#define HD_API_WAIT_H

#include <stdbool.h>

#include "api/api.h"

/*
 * For `then` to return: responds when the run has ended, at once when it is not in flight.
 * `cancels_on_disconnect`: a disconnect of the client cancels the run.
 */
HD_MUST_CHECK struct hd_step hd_wait_send(struct hd_call *call, struct hd_slice thread_id,
                                          struct hd_slice run_id, bool cancels_on_disconnect);

#endif
