/* Shared by the endpoints of participants and of invitations. For store threads. */
#ifndef HD_API_PARTICIPANTS_H
#define HD_API_PARTICIPANTS_H

#include "api/api.h"
#include "records/participants.h"

/* HD_NEXT, or a refusal when auth is off. */
HD_MUST_CHECK struct hd_step hd_api_participants_need_auth(struct hd_call *call);
/* The body's `role`; *out is unchanged when it is absent, unless it is required. */
HD_MUST_CHECK int hd_api_participants_role(struct hd_call *call, bool is_needed, enum hd_role *out);
/* HD_NEXT, or a refusal when the thread (of call->principal) has the maximum number. */
HD_MUST_CHECK struct hd_step hd_call_check_participants(struct hd_call *call,
                                                        struct hd_slice thread_id);
/* Applies the batch in the thread's lane, and ends it. HD_ECONFLICT leaves no fault. */
HD_MUST_CHECK int hd_api_participants_apply(struct hd_call *call, struct hd_slice owner,
                                            struct hd_slice thread_id,
                                            struct hd_batch_builder *batch);

#endif
