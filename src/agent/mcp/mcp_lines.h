/* The headers of what is sent to a server of tools, and messages that nobody waits for. */
#ifndef HD_AGENT_MCP_MCP_LINES_H
#define HD_AGENT_MCP_MCP_LINES_H

#include <stdbool.h>

#include "agent/exchange.h"
#include "agent/mcp/mcp_client.h"
#include "base/compiler.h"
#include "base/slice.h"

struct hd_mcp_lines;

/* What all have: what is accepted, who asks, and in which session. */
HD_MUST_CHECK int hd_mcp_lines_create(const struct hd_mcp_peer *peer, bool is_post,
                                      struct hd_mcp_lines **out);
void hd_mcp_lines_destroy(struct hd_mcp_lines *lines);
HD_MUST_CHECK int hd_mcp_lines_add(struct hd_mcp_lines *lines, const char *name,
                                   struct hd_slice value);
/* What the modern form says of a request besides. */
HD_MUST_CHECK int hd_mcp_lines_add_modern(struct hd_mcp_lines *lines,
                                          const struct hd_mcp_what *what);
/* An exchange with these headers, which must stay until it is started. Nothing is added after. */
HD_MUST_CHECK int hd_mcp_lines_end(struct hd_mcp_lines *lines, const struct hd_mcp_peer *peer,
                                   const char *method, struct hd_exchange_what *out);

#endif
