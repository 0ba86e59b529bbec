/*
 * Webhooks: the end of a run, told to a URL that the run was given.
 *
 * Told once it is stored, with retries, from memory: what has not been delivered when
 * the process ends is lost, and a line in the log says how many were. Everything
 * here happens on the loop, but for hd_webhook_allowed().
 */
#ifndef HD_RUN_WEBHOOK_H
#define HD_RUN_WEBHOOK_H

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"
#include "base/slice.h"

struct hd_app;
struct hd_config;
struct hd_ticket;
struct hd_webhooks;

struct hd_webhook_counts {
    size_t pending;   /* being delivered, or waiting for it */
    uint64_t sent;    /* since the start */
    uint64_t dropped; /* given up, or beyond the limits */
};

/* Whether a run may have this URL: HD_EINVAL says why not. For any thread. */
HD_MUST_CHECK int hd_webhook_allowed(const struct hd_config *config, struct hd_slice url,
                                     struct hd_fault *fault);

/* app->http must be there. */
HD_MUST_CHECK int hd_webhooks_create(struct hd_app *app, struct hd_webhooks **out);
/* Nothing may be pending. */
void hd_webhooks_destroy(struct hd_webhooks *webhooks);

/* Tells how the run of this ticket ended, if it has a webhook. Copies what it needs. */
void hd_webhook_send(const struct hd_ticket *ticket);

struct hd_webhook_counts hd_webhooks_counts(const struct hd_webhooks *webhooks);

/*
 * Takes no more. What can be delivered within so long still is, the rest is dropped; then
 * `done`, which may come before this returns.
 */
void hd_webhooks_stop(struct hd_webhooks *webhooks, int64_t within_us, void (*done)(void *ctx),
                      void *ctx);

#endif
