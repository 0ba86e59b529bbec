/* Functions shared by the node kinds. */
#include "agent/agent.h"

#include "agent/agent_internal.h"
#include "agent/mcp/mcp_cache.h"
#include "base/alloc.h"

static const struct hd_node_kind *const kinds[] = {
    &hd_node_model,
    &hd_node_tools,
};

void hd_agent_kinds(void)
{
    hd_graph_add_node_kinds(kinds, HD_COUNT(kinds));
}

int hd_agents_create(struct hd_engine *engine, const struct hd_agents_options *options,
                     struct hd_agents **out)
{
    struct hd_agents *agents = hd_calloc(1, sizeof(*agents));

    if (!agents)
        return HD_ENOMEM;
    agents->base.engine = engine;
    if (options)
        agents->options = *options;
    engine->extension = &agents->base;
    *out = agents;
    return 0;
}

void hd_agents_destroy(struct hd_agents *agents)
{
    if (!agents)
        return;
    agents->base.engine->extension = NULL;
    hd_mcp_cache_destroy(agents->mcp);
    hd_free(agents);
}
