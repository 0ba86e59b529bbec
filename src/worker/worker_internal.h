/* What the files of workers' operations share. */
#ifndef HD_WORKER_WORKER_INTERNAL_H
#define HD_WORKER_WORKER_INTERNAL_H

#include <heddle.h>

#include "app/app.h"
#include "base/json.h"
#include "runtime/runtime.h"
#include "worker/worker_wire.h"

/* An operation at work. */
struct hd_worker_op {
    struct hd_app *app;
    struct hd_rt_request *request;
    const struct hd_rt_scope *scope;
    struct hd_wire_in in;
};

/* hd_rt_op.work of all of them. On a store thread. */
void hd_worker_work(struct hd_rt_request *request);

/* They fill the answer of the request; errors may have a sentence in its fault. */
HD_MUST_CHECK int hd_worker_get(struct hd_worker_op *op);
HD_MUST_CHECK int hd_worker_list(struct hd_worker_op *op);
HD_MUST_CHECK int hd_worker_put(struct hd_worker_op *op);
HD_MUST_CHECK int hd_worker_writes(struct hd_worker_op *op);
HD_MUST_CHECK int hd_worker_history(struct hd_worker_op *op);
HD_MUST_CHECK int hd_worker_items(struct hd_worker_op *op);
/* hd_rt_op.start of items where they are found by their meaning. On the loop. */
void hd_worker_items_start(struct hd_rt_request *request);

/* Makes the answer that of an error, if there is one: nothing else is sent then. */
void hd_worker_op_end(struct hd_rt_request *request, int err);

/* ---- worker_hide.c: what must not be stored --------------------------- */

/* The secrets of a scope, ready to be looked for; in the arena. */
struct hd_hidden {
    struct hd_hidden_text *texts;
    size_t count;
};

HD_MUST_CHECK int hd_hidden_init(struct hd_hidden *hidden, const struct hd_val *secrets,
                                 struct hd_arena *arena);
/*
 * A value without them, in the arena where it had any: markers stand for them where the value is
 * JSON text, asterisks in other encodings, which count bytes.
 */
HD_MUST_CHECK int hd_hidden_hide(const struct hd_hidden *hidden, struct heddle_value *value,
                                 struct hd_arena *arena);
/*
 * The metadata of a checkpoint, JSON text, as it is to be stored: without secrets, and with the
 * members of `more`, which win, and the runtime's name.
 */
HD_MUST_CHECK int hd_hidden_metadata(const struct hd_hidden *hidden, struct hd_slice text,
                                     const struct hd_val *more, const char *runtime,
                                     struct hd_arena *arena, struct hd_slice *out,
                                     struct hd_fault *fault);

#endif
