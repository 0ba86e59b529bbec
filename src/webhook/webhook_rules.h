/*
 * The rules of webhooks: which URLs are allowed, how a body is signed, what is
 * tried again and when. Nothing here sends anything.
 */
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
    const struct hd_slice *domains; /* "example.com", "*.example.com"; none: all */
    size_t domain_count;
    const int *ports; /* none: all */
    size_t port_count;
    size_t max_url; /* 0: HD_WEBHOOK_MAX_URL */
};

/*
 * http and https URLs, and paths of this server ("/hook"), which count as loopback.
 * HD_EINVAL with a sentence when it is none or not allowed; credentials and keys in a URL
 * are refused. A name may still turn out to be an address of this machine:
 * hd_webhook_check_address().
 */
HD_MUST_CHECK int hd_webhook_check(const struct hd_webhook_policy *policy, struct hd_slice url,
                                   struct hd_fault *fault);

/* For the moment at which a connection is made: false when the policy forbids that address. */
bool hd_webhook_allows_address(const struct hd_webhook_policy *policy,
                               const struct sockaddr *address);

#define HD_WEBHOOK_HEADER "Heddle-Signature"
#define HD_WEBHOOK_SIGNATURE_SIZE 96

/*
 * The header's value: "t=<seconds>,v1=<hex>", the HMAC-SHA256 of "<seconds>.<body>"
 * with the secret as key. HD_EINVAL for a time before 1970, HD_ENOMEM.
 */
HD_MUST_CHECK int hd_webhook_sign(struct hd_slice secret, int64_t seconds, struct hd_slice body,
                                  char out[HD_WEBHOOK_SIGNATURE_SIZE]);

/* Shall it be tried again? `status` 0: there was no answer. */
bool hd_webhook_may_retry(int status);

/*
 * How long to wait after attempt number `attempt` (from 1) failed: 1, 4, 16, 64, 256
 * and then always 300 seconds, up to a quarter more or less as `random` has it, so that many that
 * failed together do not come back together.
 */
int64_t hd_webhook_delay_us(int attempt, uint32_t random);

#endif
