/* Declarations shared by the worker operations. */
#ifndef HD_WORKER_WORKER_INTERNAL_H
#define HD_WORKER_WORKER_INTERNAL_H

#include <heddle.h>

#include "app/app.h"
#include "base/json.h"
#include "runtime/runtime.h"
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

/* ---- worker_hide.c: removing secrets ---------------------------------- */

/* The secrets of a scope, prepared for searching; in the arena. */
struct hd_hidden {
    struct hd_hidden_text *texts;
    size_t count;
};

HD_MUST_CHECK int hd_hidden_init(struct hd_hidden *hidden, const struct hd_val *secrets,
                                 struct hd_arena *arena);
/*
 * Replaces the secrets in a value; a changed value is in the arena. JSON text gets markers; other
 * encodings get asterisks, because they contain lengths.
 */
HD_MUST_CHECK int hd_hidden_hide(const struct hd_hidden *hidden, struct heddle_value *value,
                                 struct hd_arena *arena);
/*
 * Prepares a checkpoint's metadata (JSON text) for the store: removes secrets, adds the members of
 * `more`, which take precedence, and the runtime's name.
 */
HD_MUST_CHECK int hd_hidden_metadata(const struct hd_hidden *hidden, struct hd_slice text,
                                     const struct hd_val *more, const char *runtime,
                                     struct hd_arena *arena, struct hd_slice *out,
                                     struct hd_fault *fault);

#endif
