/*
 * Headers that webhooks are sent with (webhooks.headers): "Bearer ${{ env.LG_WEBHOOK_TOKEN }}"
 * includes an environment variable; its name must begin with webhooks.env_prefix.
 */
#ifndef HD_WEBHOOK_WEBHOOK_HEADERS_H
#define HD_WEBHOOK_WEBHOOK_HEADERS_H

#include <stddef.h>

#include "base/arena.h"
#include "base/compiler.h"
#include "base/error.h"
#include "config/config.h"

#define HD_WEBHOOK_MAX_HEADERS 64

/* "Name: value", each, in the arena. HD_EINVAL names the header, never its value. */
HD_MUST_CHECK int hd_webhook_headers(const struct hd_config *config, struct hd_arena *arena,
                                     const char *out[HD_WEBHOOK_MAX_HEADERS], size_t *count,
                                     struct hd_fault *fault);
/* The same as a check, before anything is opened. */
HD_MUST_CHECK int hd_webhook_headers_check(const struct hd_config *config, struct hd_fault *fault);

#endif
