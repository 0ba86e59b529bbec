/* States as clients see them: whole, or the members that they select. For store threads. */
#ifndef HD_API_STATE_STATE_VIEW_H
#define HD_API_STATE_STATE_VIEW_H

#include "api/api.h"
#include "api/state/checkpoint_target.h"
#include "value/val.h"

/* Members of a state, and values.<key>; empty: all. */
struct hd_state_view_select {
    struct hd_slice *names;
    size_t count;
    struct hd_buf scratch;
};

/* Reads `select` from the query or the body. HD_EINVAL for an unknown member. */
HD_MUST_CHECK int hd_state_view_select_query(struct hd_call *call,
                                             struct hd_state_view_select *out);
HD_MUST_CHECK int hd_state_view_select_body(struct hd_call *call, struct hd_state_view_select *out);
void hd_state_view_select_fini(struct hd_state_view_select *select);
/* True when the selection has any values. */
bool hd_state_view_select_has_values(const struct hd_state_view_select *select);

/* Writes the state to call->jw. `state` NULL: the thread has no state. */
HD_MUST_CHECK int hd_state_view(struct hd_call *call, const struct hd_checkpoint_target *target,
                                struct hd_state_view_select *select, const struct hd_val *state);

#endif
