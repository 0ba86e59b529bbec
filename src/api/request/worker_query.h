/*
 * Queries to workers for facts that only a graph's code has, for routes. On the loop: in `then` or
 * later.
 */
#ifndef HD_API_REQUEST_WORKER_QUERY_H
#define HD_API_REQUEST_WORKER_QUERY_H

#include "api/api.h"
#include "runtime/runtime.h"

/* Continues a route's `then` with the reply; `message` is valid until it returns. */
typedef struct hd_step (*hd_worker_reply_fn)(struct hd_call *call,
                                             const struct hd_rt_message *message);

struct hd_worker_query {
    enum hd_rt_language language;
    struct hd_slice head;
    struct hd_slice blob;            /* empty: none */
    const struct hd_rt_scope *scope; /* NULL: the worker needs no access to the store */
    hd_worker_reply_fn on_reply;
    hd_error_fn on_error; /* call->fault has the reason; NULL: the call fails with it */
};

/*
 * HD_EINVAL with the load error when the code of the graph could not be loaded. The status 422
 * keeps clients of both SDKs from repeating the request, which they do after a 500.
 */
HD_MUST_CHECK int hd_call_check_loaded(struct hd_call *call, const struct hd_app_graph *graph);

/* For `then` to return. Copies its arguments. */
HD_MUST_CHECK struct hd_step hd_call_query_worker(struct hd_call *call,
                                                  const struct hd_worker_query *query);

/* The first blob of a reply, which is JSON; HD_EINVAL when there is none. */
HD_MUST_CHECK int hd_worker_query_reply_text(struct hd_call *call,
                                             const struct hd_rt_message *message,
                                             struct hd_slice *out);

#endif
