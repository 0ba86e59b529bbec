/*
 * Webhooks: the end of a run is sent to the URL in its request.
 *
 * Delivery is at least once: the webhook is stored in the batch that ends the run (outbox.h) and
 * then sent, with retries, until it is delivered or given up, also by later processes. All
 * functions run on the loop, except hd_webhook_allowed().
 */
#ifndef HD_WEBHOOK_WEBHOOK_H
#define HD_WEBHOOK_WEBHOOK_H

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"
#include "base/slice.h"

struct hd_app;
struct hd_config;
struct hd_outbox_row;
struct hd_webhook;
struct hd_webhooks;

#define HD_WEBHOOK_MAX_BYTES ((size_t)256 << 20) /* of all pending webhooks */

struct hd_webhook_counts {
    size_t pending;   /* in memory: being delivered or waiting */
    uint64_t sent;    /* since the start */
    uint64_t dropped; /* given up */
};

/* Checks a run's URL. HD_EINVAL: it is not permitted. For any thread. */
HD_MUST_CHECK int hd_webhook_allowed(const struct hd_config *config, struct hd_slice url,
                                     struct heddle_error *fault);

/* app->http must be set. */
HD_MUST_CHECK int hd_webhooks_create(struct hd_app *app, struct hd_webhooks **out);
/* No webhook may be pending. */
void hd_webhooks_destroy(struct hd_webhooks *webhooks);

/*
 * Creates a webhook from a copy of `row`. Store it with the end of its run; then call
 * hd_webhook_send(), or hd_webhook_cancel() if it was not stored. An error counts as a dropped
 * webhook.
 */
HD_MUST_CHECK int hd_webhook_create(struct hd_webhooks *webhooks, const struct hd_outbox_row *row,
                                    struct hd_webhook **out);
/* The row to store; valid as long as the webhook. NULL for NULL. */
const struct hd_outbox_row *hd_webhook_row(const struct hd_webhook *webhook);
void hd_webhook_send(struct hd_webhook *webhook);
void hd_webhook_cancel(struct hd_webhook *webhook);

/*
 * Sends the webhooks that earlier processes left in the outbox. In a cluster only those of servers
 * that are gone, by the leader: call it again when this server has become the leader, and when
 * another one has gone.
 */
void hd_webhooks_recover(struct hd_webhooks *webhooks);

struct hd_webhook_counts hd_webhooks_counts(const struct hd_webhooks *webhooks);

/*
 * Accepts no more webhooks. Delivers for at most `within_us`, leaves the rest in the outbox, and
 * calls `done`. HD_READY: no delivery is in progress, so `done` is not called.
 */
HD_MUST_CHECK int hd_webhooks_stop(struct hd_webhooks *webhooks, int64_t within_us,
                                   void (*done)(void *ctx), void *ctx);

#endif
