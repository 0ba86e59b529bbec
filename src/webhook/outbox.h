/*
 * The outbox: undelivered webhooks. A row is stored in the batch that ends the run and deleted when
 * the webhook was delivered or given up, so a webhook survives a restart. For store threads.
 *
 * A server of a cluster delivers the rows that it stored itself; the leader delivers those of
 * servers that are gone. The column of the delivery id has the id of the server behind it, after a
 * space.
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
    struct hd_slice id;     /* delivery id, equal in all attempts */
    struct hd_slice server; /* of the cluster; empty: one that used its store alone */
    struct hd_slice url;
    struct hd_slice body; /* a JSON object */
};

/* Packs the body into the batch; borrows the other members until the batch is applied. */
HD_MUST_CHECK int hd_outbox_put(struct hd_batch_builder *batch, const struct hd_outbox_row *row);

/* These use only the key of the row. */
HD_MUST_CHECK int hd_outbox_delete(struct hd_batch_builder *batch, const struct hd_outbox_row *row);
HD_MUST_CHECK int hd_outbox_remove(struct heddle *store, const struct hd_outbox_row *row,
                                   struct heddle_error *fault);
HD_MUST_CHECK int hd_outbox_find(struct heddle *store, const struct hd_outbox_row *row, bool *out,
                                 struct heddle_error *fault);

/* `row` is valid during the call. */
typedef int (*hd_outbox_fn)(void *ctx, const struct hd_outbox_row *row);

/* Reads at most `limit` rows, oldest first, after the row `after` (key and time; NULL: all). */
HD_MUST_CHECK int hd_outbox_read(struct heddle *store, const struct hd_outbox_row *after,
                                 size_t limit, hd_outbox_fn fn, void *ctx,
                                 struct heddle_error *fault);

#endif
