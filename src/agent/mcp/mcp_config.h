/*
 * The servers of a source `mcp`:
 *
 *   {"servers": [{"name", "url", "tools", "auth_required", "headers", "token", "protocol",
 *                 "elicitation"}]}, the list alone, or one server alone.
 *
 * Pure; secrets in it must be revealed before it is used, not before it is checked.
 */
#ifndef HD_AGENT_MCP_MCP_CONFIG_H
#define HD_AGENT_MCP_MCP_CONFIG_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/slice.h"
#include "value/val.h"

#define HD_MCP_MAX_SERVERS 32
#define HD_MCP_MAX_HEADERS 32

/* How an elicitation in the middle of a call is handled. */
enum hd_mcp_elicit {
    HD_MCP_ASK,      /* the run is interrupted */
    HD_MCP_DEFAULTS, /* forms are accepted with their defaults */
    HD_MCP_DECLINE
};

struct hd_mcp_server {
    struct hd_slice name;
    const char *url;              /* target of messages: ends with /mcp, or has a query after it */
    const char *base;             /* without /mcp and query */
    const struct hd_val *tools;   /* list of names; NULL: all */
    bool needs_auth;              /* skipped without a token */
    const struct hd_val *headers; /* object of names to strings, or NULL */
    struct hd_slice token;        /* empty: none */
    bool is_modern;               /* try the modern protocol first */
    enum hd_mcp_elicit elicit;
};

/* Names borrow from `value`, the list and addresses are in the arena. HD_EINVAL with the reason. */
HD_MUST_CHECK int hd_mcp_config_read(const struct hd_val *value, struct hd_arena *arena,
                                     struct hd_mcp_server **out, size_t *count,
                                     struct heddle_error *fault);

bool hd_mcp_server_allows(const struct hd_mcp_server *server, struct hd_slice tool);

#endif
