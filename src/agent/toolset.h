/* The tools of a `tools` node in a run: those of its sources, each with a name of its own. */
#ifndef HD_AGENT_TOOLSET_H
#define HD_AGENT_TOOLSET_H

#include <stddef.h>

#include "agent/tool.h"
#include "base/compiler.h"
#include "graph/decl/graph.h"

/* A tool under the name that models know it by: as its source says, made fit for providers
 * (letters, digits, `_`, `-`; 64 characters); the second of a name gets `-2`, then `-3`. */
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
 * Evaluates the sources of the node as the task sees them, opens those that are not open in the run
 * yet, and calls `ready` once, later, with the tools (NULL: HD_ENOMEM); they stay as long as the
 * run. *out until then, for hd_toolset_cancel().
 */
typedef void (*hd_toolset_fn)(void *ctx, const struct hd_toolset *set);
HD_MUST_CHECK int hd_toolset_get(struct hd_task *task, const struct hd_node *tools,
                                 hd_toolset_fn ready, void *ctx, struct hd_toolset_wait **out);
void hd_toolset_cancel(struct hd_toolset_wait *wait);

const struct hd_tool *hd_toolset_find(const struct hd_toolset *set, struct hd_slice name);

#endif
