/* Shared by the files of this folder. */
#ifndef HD_AGENT_INTERNAL_H
#define HD_AGENT_INTERNAL_H

#include "agent/agent.h"
#include "graph/engine/engine.h"
#include "graph/engine/loop.h"
#include "graph/engine/task.h"

struct hd_agents {
    struct hd_engine_extension base; /* engine->extension points to it */
    struct hd_agents_options options;
    struct hd_mcp_cache *mcp; /* mcp_cache.h; NULL: empty */
};

extern const struct hd_node_kind hd_node_model;
extern const struct hd_node_kind hd_node_tools;

/* NULL: hd_agents_create() was not called for the run's engine. */
static inline struct hd_agents *hd_agents_of_run(const struct hd_engine_run *run)
{
    return (struct hd_agents *)run->engine->extension;
}

static inline struct hd_agents *hd_agents_of(const struct hd_task *task)
{
    return hd_agents_of_run(task->loop->run);
}

#endif
