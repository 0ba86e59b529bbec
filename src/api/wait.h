/* Answers that wait for the end of a run: its values as JSON, white space before them meanwhile. */
#ifndef HD_API_WAIT_H
#define HD_API_WAIT_H

#include <stdbool.h>

#include "api/api.h"

/*
 * Answers the call when the run has ended, at once when it is not in flight, and
 * owns it from then on. `is_cancelling`: the run is cancelled when the client goes.
 */
void hd_wait_send(struct hd_call *call, struct hd_slice thread_id, struct hd_slice run_id,
                  bool is_cancelling);

#endif
