/* The rules of webhooks: allowed URLs, signatures and retries. Does no I/O. */
#ifndef HD_WEBHOOK_WEBHOOK_RULES_H
#define HD_WEBHOOK_WEBHOOK_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/compiler.h"
#include "base/error.h"
#include "base/slice.h"

#define HD_WEBHOOK_MAX_URL 65536

/* The members borrow from the configuration. */
struct hd_webhook_policy {
    bool require_https;
    bool allow_loopback;
    const struct hd_slice *domains; /* "example.com", "*.example.com"; empty: all */
    size_t domain_count;
    const int *ports; /* empty: all */
    size_t port_count;
    size_t max_url; /* 0: HD_WEBHOOK_MAX_URL */
};

/*
 * Accepts http and https URLs, and paths of this server ("/hook"), which count as loopback.
 * HD_EINVAL: invalid, not allowed, or with credentials or a key. A host name may still resolve to
 * an address of this machine: hd_webhook_allows_address().
 */
HD_MUST_CHECK int hd_webhook_check(const struct hd_webhook_policy *policy, struct hd_slice url,
                                   struct heddle_error *fault);

/* Called for each connection: false if the policy forbids the address. */
bool hd_webhook_allows_address(const struct hd_webhook_policy *policy,
                               const struct sockaddr *address);

#define HD_WEBHOOK_HEADER "Heddle-Signature"
#define HD_WEBHOOK_SIGNATURE_SIZE 96

/*
 * Writes the value of the signature header: "t=<seconds>,v1=<hex>", the HMAC-SHA256 of
 * "<seconds>.<body>" with the secret as key. HD_EINVAL: empty secret, or a time before 1970;
 * HD_ENOMEM.
 */
HD_MUST_CHECK int hd_webhook_sign(struct hd_slice secret, int64_t seconds, struct hd_slice body,
                                  char out[HD_WEBHOOK_SIGNATURE_SIZE]);

/* True if a delivery with this HTTP status is retried. `status` 0: no response. */
bool hd_webhook_may_retry(int status);

/*
 * The delay after failed attempt number `attempt` (from 1): 1, 4, 16, 64, 256, then always 300
 * seconds. `random` changes it by up to a quarter, so that simultaneous failures are not retried
 * simultaneously.
 */
int64_t hd_webhook_delay_us(int attempt, uint32_t random);

#endif
