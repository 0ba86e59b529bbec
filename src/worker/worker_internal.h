/* Declarations shared by the worker operations. */
#ifndef HD_WORKER_WORKER_INTERNAL_H
#define HD_WORKER_WORKER_INTERNAL_H

#include <heddle.h>

#include "app/app.h"
#include "base/json.h"
#include "runtime/runtime.h"
#include "worker/worker_hide.h"
#include "worker/worker_wire.h"

/* An operation that is running. */
struct hd_worker_op {
    struct hd_app *app;
    struct hd_rt_request *request;
    const struct hd_rt_scope *scope;
    struct hd_wire_in in;
};

/* hd_rt_op.work of each operation. Runs on a store thread. */
void hd_worker_work(struct hd_rt_request *request);

/* Each fills the request's response. On error, the request's fault may have a message. */
HD_MUST_CHECK int hd_worker_get(struct hd_worker_op *op);
HD_MUST_CHECK int hd_worker_list(struct hd_worker_op *op);
HD_MUST_CHECK int hd_worker_put(struct hd_worker_op *op);
HD_MUST_CHECK int hd_worker_writes(struct hd_worker_op *op);
HD_MUST_CHECK int hd_worker_history(struct hd_worker_op *op);
HD_MUST_CHECK int hd_worker_items(struct hd_worker_op *op);
/* hd_rt_op.start of `items` when semantic search is configured. Runs on the loop. */
void hd_worker_items_start(struct hd_rt_request *request);

/* Completes the response. If `err` is not 0, the response contains only the error. */
void hd_worker_op_end(struct hd_rt_request *request, int err);

#endif
