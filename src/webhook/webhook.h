/*
 * Webhooks: the end of a run is sent to the URL in its request.
 *
 * At least once: the webhook is stored in the batch that ends the run (outbox.h) and sent then,
 * with retries, until it is delivered or given up, also by later processes. Everything here
 * happens on the loop, but for hd_webhook_allowed().
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

#define HD_WEBHOOK_MAX_BYTES ((size_t)256 << 20) /* of all that are pending */

struct hd_webhook_counts {
    size_t pending;   /* in memory: being delivered, or waiting for it */
    uint64_t sent;    /* since the start */
    uint64_t dropped; /* given up */
};

/* Checks a run's URL. HD_EINVAL: it is not permitted. For any thread. */
HD_MUST_CHECK int hd_webhook_allowed(const struct hd_config *config, struct hd_slice url,
                                     struct hd_fault *fault);

/* app->http must be there. */
HD_MUST_CHECK int hd_webhooks_create(struct hd_app *app, struct hd_webhooks **out);
/* Nothing may be pending. */
void hd_webhooks_destroy(struct hd_webhooks *webhooks);

/*
 * A webhook with the values of `row`, which it copies, to be stored with the end of its run.
 * Then either hd_webhook_send(), when it is stored, or hd_webhook_cancel(). An error counts as
 * a dropped webhook.
 */
HD_MUST_CHECK int hd_webhook_create(struct hd_webhooks *webhooks, const struct hd_outbox_row *row,
                                    struct hd_webhook **out);
/* NULL: none. Stays as long as the webhook. */
const struct hd_outbox_row *hd_webhook_row(const struct hd_webhook *webhook);
void hd_webhook_send(struct hd_webhook *webhook);
void hd_webhook_cancel(struct hd_webhook *webhook);

/* Sends what earlier processes have left. */
void hd_webhooks_recover(struct hd_webhooks *webhooks);

struct hd_webhook_counts hd_webhooks_counts(const struct hd_webhooks *webhooks);

/*
 * Accepts no more webhooks. Delivers for at most that time, the rest stays in the outbox; then
 * calls `done`, possibly before this returns.
 */
void hd_webhooks_stop(struct hd_webhooks *webhooks, int64_t within_us, void (*done)(void *ctx),
                      void *ctx);

#endif
