/* libFuzzer: any text as a webhook's URL. A URL accepted by a strict policy is accepted by an open
 * one, too, and refusals have an error text. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "webhook/webhook_rules.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool is_so, const char *what)
{
    if (is_so)
        return;
    fprintf(stderr, "%s\n", what);
    abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct hd_slice domains[] = {HD_S_INIT("*.example.com"), HD_S_INIT("localhost")};
    static const int ports[] = {443};
    static const struct hd_webhook_policy everything = {.allow_loopback = true};
    static const struct hd_webhook_policy strict = {.require_https = true,
                                                    .domains = domains,
                                                    .domain_count = 2,
                                                    .ports = ports,
                                                    .port_count = 1};
    struct heddle_error first = {0}, second = {0};
    struct hd_slice url = hd_slice(data, size);
    int all = hd_webhook_check(&everything, url, &first);
    int some = hd_webhook_check(&strict, url, &second);

    require(all == 0 || (all == HD_EINVAL && first.text[0]), "an odd error");
    require(some == 0 || (some == HD_EINVAL && second.text[0]), "an odd error");
    require(some != 0 || all == 0, "allowed only by the strict policy");
    return 0;
}
