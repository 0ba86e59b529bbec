/* The tools of a `tools` node in a run: those of its sources, each with a unique name. */
#ifndef HD_AGENT_TOOLSET_H
#define HD_AGENT_TOOLSET_H

#include <stddef.h>

#include "agent/tool.h"
#include "base/compiler.h"
#include "graph/decl/graph.h"

/*
 * A tool under its name for models: the source's name, adapted to providers (letters, digits, `_`,
 * `-`; 64 characters); a duplicate gets `-2`, then `-3`.
 */
struct hd_toolset_entry {
    struct hd_slice name;
    const struct hd_tool *tool;
};

struct hd_toolset {
    struct hd_toolset_entry *entries;
    size_t count;
};

struct hd_toolset_wait;

/*
 * Evaluates the node's sources for the task, opens those not yet open in the run, and calls `ready`
 * once, asynchronously, with the tools (NULL: HD_ENOMEM), valid as long as the run. *out is valid
 * until then, for hd_toolset_cancel().
 */
typedef void (*hd_toolset_fn)(void *ctx, const struct hd_toolset *set);
HD_MUST_CHECK int hd_toolset_get(struct hd_task *task, const struct hd_node *tools,
                                 hd_toolset_fn ready, void *ctx, struct hd_toolset_wait **out);
void hd_toolset_cancel(struct hd_toolset_wait *wait);

const struct hd_tool *hd_toolset_find(const struct hd_toolset *set, struct hd_slice name);

#endif
