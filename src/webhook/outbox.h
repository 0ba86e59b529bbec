/*
 * The outbox: webhooks that are not delivered yet. A row is stored in the batch that ends the run
 * and deleted when the webhook was delivered or given up, so a webhook outlives the process that
 * was to send it. For store threads.
 */
#ifndef HD_WEBHOOK_OUTBOX_H
#define HD_WEBHOOK_OUTBOX_H

#include <heddle.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"
#include "base/slice.h"
#include "store/batch.h"

struct hd_outbox_row {
    struct hd_slice principal, thread_id, run_id; /* the key */
    int64_t created_at;
    struct hd_slice id; /* of the delivery, the same in all attempts */
    struct hd_slice url;
    struct hd_slice body; /* a JSON object */
};

/* Packs the body into the batch; borrows the rest until it is applied. */
HD_MUST_CHECK int hd_outbox_put(struct hd_batch_builder *batch, const struct hd_outbox_row *row);

/* These use the row's key only. */
HD_MUST_CHECK int hd_outbox_delete(struct hd_batch_builder *batch, const struct hd_outbox_row *row);
HD_MUST_CHECK int hd_outbox_remove(struct heddle *store, const struct hd_outbox_row *row,
                                   struct hd_fault *fault);
HD_MUST_CHECK int hd_outbox_find(struct heddle *store, const struct hd_outbox_row *row, bool *out,
                                 struct hd_fault *fault);

/* `row` is valid during the call. */
typedef int (*hd_outbox_fn)(void *ctx, const struct hd_outbox_row *row);

/* The oldest rows first, at most `limit` of those behind `after` (its key and time; NULL: all). */
HD_MUST_CHECK int hd_outbox_read(struct heddle *store, const struct hd_outbox_row *after,
                                 size_t limit, hd_outbox_fn fn, void *ctx, struct hd_fault *fault);

#endif
