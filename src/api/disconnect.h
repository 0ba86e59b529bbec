/* Runs with on_disconnect: cancel, whose client has left. */
#ifndef HD_API_DISCONNECT_H
#define HD_API_DISCONNECT_H

#include "api/api.h"

/*
 * The connection of the call has ended: cancels the run if the client has left. It has not when
 * this server stops, or when the server that has forwarded the request stops or dies: the run goes
 * on, as after a restart, and the client may come back.
 */
void hd_disconnect_cancel(struct hd_call *call, struct hd_slice thread_id, struct hd_slice run_id);

#endif
