/* Headers of requests to an MCP server, and messages without a response. */
#ifndef HD_AGENT_MCP_MCP_LINES_H
#define HD_AGENT_MCP_MCP_LINES_H

#include <stdbool.h>

#include "agent/exchange.h"
#include "agent/mcp/mcp_client.h"
#include "base/compiler.h"
#include "base/slice.h"

struct hd_mcp_lines;

/* The common headers: Accept, credentials, session. */
HD_MUST_CHECK int hd_mcp_lines_create(const struct hd_mcp_peer *peer, bool is_post,
                                      struct hd_mcp_lines **out);
void hd_mcp_lines_destroy(struct hd_mcp_lines *lines);
HD_MUST_CHECK int hd_mcp_lines_add(struct hd_mcp_lines *lines, const char *name,
                                   struct hd_slice value);
/* Additional headers of the modern protocol. */
HD_MUST_CHECK int hd_mcp_lines_add_modern(struct hd_mcp_lines *lines,
                                          const struct hd_mcp_request_options *options);
/* An exchange with these headers, which it borrows until it is started. Add nothing after this. */
HD_MUST_CHECK int hd_mcp_lines_end(struct hd_mcp_lines *lines, const struct hd_mcp_peer *peer,
                                   const char *method, struct hd_agent_exchange_options *out);

#endif
