/*
 * Agents: the node kinds `model` and `tools`, and their shared parts.
 *
 * Everything here belongs to an engine and its uv loop. Resources of a run (sessions with MCP
 * servers, lists of tools) belong to the run and are freed with it; caches that outlive runs are in
 * struct hd_agents, one per engine.
 */
#ifndef HD_AGENT_AGENT_H
#define HD_AGENT_AGENT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/compiler.h"
#include "base/error.h"
#include "base/slice.h"
#include "value/val.h"

struct hd_agents;
struct hd_delegate;
struct hd_engine;
struct hd_recorder;
struct hd_engine_run;
struct hd_engine_run_result;
struct hd_task;

/* Registers the kinds `model` and `tools`; once, before graphs are read. */
void hd_agent_kinds(void);

/* Other assistants as tools; implemented by the owner of the engine. Called on the loop. */
struct hd_delegates {
    /*
     * Looks up an assistant by id, name or graph: an object with `assistant_id`, `name`,
     * `description`. Calls `found` once, asynchronously, also when the run is gone; NULL: none that
     * the run's user may see.
     */
    int (*find)(void *ctx, struct hd_engine_run *run, struct hd_slice assistant,
                void (*found)(void *arg, const struct hd_val *assistant), void *arg);
    /*
     * Runs it on the task's thread, in a separate namespace, with an input or a reply to its
     * interrupt (the other NULL). Calls `done` once, asynchronously, unless it is cancelled. Its
     * events are streamed as the task's subgraph. A delegate already started for the same task
     * continues instead: one that has ended is not run again.
     */
    int (*start)(void *ctx, struct hd_task *task, struct hd_slice assistant_id,
                 struct hd_slice tool_call_id, const struct hd_val *input,
                 const struct hd_val *answer,
                 void (*done)(void *arg, const struct hd_engine_run_result *result), void *arg,
                 struct hd_delegate **out);
    /* Stops it and its pending operations now; the task's run ends when its state is stored. */
    void (*cancel)(void *ctx, struct hd_delegate *delegate);
    void *ctx;
};

struct hd_agents_options {
    const struct hd_delegates *delegates; /* NULL: none; borrowed */
    struct hd_recorder *recorder;         /* NULL: exchanges are not recorded; record.h */
};

/* For an engine; `options` may be NULL. Without one, there are no delegates. */
HD_MUST_CHECK int hd_agents_create(struct hd_engine *engine,
                                   const struct hd_agents_options *options, struct hd_agents **out);
/* No run may be active. */
void hd_agents_destroy(struct hd_agents *agents);

#endif
