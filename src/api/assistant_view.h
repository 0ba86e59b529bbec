/* Assistants as clients see them. */
#ifndef HD_API_ASSISTANT_VIEW_H
#define HD_API_ASSISTANT_VIEW_H

#include "api/api.h"
#include "records/record.h"

#define HD_ASSISTANT_VIEW_ALL (~0u)

/* Bits of the named members, all bits for no name. HD_EINVAL for an unknown member. */
HD_MUST_CHECK int hd_assistant_view_select(struct hd_call *call, const struct hd_slice *names,
                                           size_t count, unsigned *members);

void hd_assistant_view(struct hd_jw *jw, const struct hd_assistant_rec *assistant,
                       unsigned members);

/*
 * The assistant of the path, by its id or its graph's id. HD_ENOTFOUND sets `Assistant not found`
 * in call->fault. For store threads.
 */
HD_MUST_CHECK int hd_call_assistant(struct hd_call *call, struct hd_assistant_rec *out);
/* Its graph; HD_ENOTFOUND when it is not served any more. */
HD_MUST_CHECK int hd_call_graph(struct hd_call *call, struct hd_slice graph_id,
                                const struct hd_app_graph **out);

#endif
