/*
 * Headers of webhooks (webhooks.headers): "Bearer ${{ env.LG_WEBHOOK_TOKEN }}" inserts an
 * environment variable, whose name must start with webhooks.env_prefix.
 */
#ifndef HD_WEBHOOK_WEBHOOK_HEADERS_H
#define HD_WEBHOOK_WEBHOOK_HEADERS_H

#include <stddef.h>

#include "base/arena.h"
#include "base/compiler.h"
#include "base/error.h"
#include "config/config.h"

#define HD_WEBHOOK_MAX_HEADERS 64

/* Writes "Name: value" strings, in the arena. HD_EINVAL: the text has the name, not the value. */
HD_MUST_CHECK int hd_webhook_headers(const struct hd_config *config, struct hd_arena *arena,
                                     const char *out[HD_WEBHOOK_MAX_HEADERS], size_t *count,
                                     struct heddle_error *fault);
/* Only checks the configuration, before the server opens. */
HD_MUST_CHECK int hd_webhook_headers_check(const struct hd_config *config,
                                           struct heddle_error *fault);

#endif
