/*
 * Cache of facts about MCP servers across runs, in memory: protocol version, lists of tools,
 * tokens. Bounded; entries that depend on credentials are keyed by them, so that users never see
 * each other's.
 */
#ifndef HD_AGENT_MCP_MCP_CACHE_H
#define HD_AGENT_MCP_MCP_CACHE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "value/val.h"

struct hd_mcp_cache;
struct hd_engine_run;

enum hd_mcp_cached {
    HD_MCP_CACHED_ERA,   /* a boolean: modern */
    HD_MCP_CACHED_LIST,  /* an object: `tools`, `is_modern` */
    HD_MCP_CACHED_TOKEN, /* a string */
    HD_MCP_CACHED_CARD   /* a string: the card of an A2A agent */
};

/*
 * Borrowed until the cache changes; NULL: unknown or expired. Always NULL for runs that are
 * recorded or replayed, so that both behave the same.
 */
const struct hd_val *hd_mcp_cache_get(const struct hd_engine_run *run, enum hd_mcp_cached kind,
                                      struct hd_slice url, struct hd_slice credentials);
/* Takes `val`, which may be NULL; replaces the entry. Does nothing if out of memory. */
void hd_mcp_cache_put(const struct hd_engine_run *run, enum hd_mcp_cached kind, struct hd_slice url,
                      struct hd_slice credentials, struct hd_val *val, int64_t ttl_ms);
void hd_mcp_cache_destroy(struct hd_mcp_cache *cache);

#endif
