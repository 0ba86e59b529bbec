/* Shared by the files of this folder. */
#ifndef HD_AGENT_INTERNAL_H
#define HD_AGENT_INTERNAL_H

#include "agent/agent.h"
#include "graph/engine/engine.h"

struct hd_agents {
    struct hd_engine *engine;
    struct hd_agents_options options;
    struct hd_mcp_cache *mcp; /* mcp_cache.h; NULL: empty */
};

extern const struct hd_node_kind hd_node_model;
extern const struct hd_node_kind hd_node_tools;

/* NULL: the engine has none. */
static inline struct hd_agents *hd_agents_of(const struct hd_task *task)
{
    return task->loop->run->engine->agents;
}

#endif
