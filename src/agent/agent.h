/*
 * Real agents: the node kinds `model` and `tools`, and what they share.
 *
 * Everything here belongs to an engine and its uv loop. What a run keeps open (sessions
 * with servers of tools, lists of tools) hangs on the run and goes with it; what is
 * worth keeping longer is in struct hd_agents, one for each engine.
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
struct hd_run;
struct hd_run_result;
struct hd_task;

/* Makes the kinds `model` and `tools` known; once, before graphs are read. */
void hd_agent_kinds(void);

/*
 * Other assistants, as the tools of this one: who runs the engine knows them.
 * Everything is called on the loop.
 */
struct hd_delegates {
    /*
     * What an assistant, by id, name or graph, is called and good for: an object with
     * `assistant_id`, `name`, `description`. Calls `found` once, later, also when the run is gone;
     * NULL: there is none that whoever started the run may see.
     */
    int (*find)(void *ctx, struct hd_run *run, struct hd_slice assistant,
                void (*found)(void *arg, const struct hd_val *assistant), void *arg);
    /*
     * Runs it on the task's thread, in a namespace of its own, with an input or an answer to what
     * it asked (the other NULL). `done` once, later, unless it is cancelled. What it streams is
     * told as the task's own subgraph. What it was begun with for the same task goes on instead:
     * one that has ended is not run again.
     */
    int (*start)(void *ctx, struct hd_task *task, struct hd_slice assistant_id,
                 struct hd_slice tool_call_id, const struct hd_val *input,
                 const struct hd_val *answer,
                 void (*done)(void *arg, const struct hd_run_result *result), void *arg,
                 struct hd_delegate **out);
    /* It, and what it waits for, is stopped now; the task's run ends when its state is stored. */
    void (*cancel)(void *ctx, struct hd_delegate *delegate);
    void *ctx;
};

struct hd_agents_options {
    const struct hd_delegates *delegates; /* NULL: none; must stay */
    struct hd_recorder *recorder;         /* NULL: exchanges are not recorded; record.h */
};

/* For an engine; `options` may be NULL. Kinds that run without one have no delegates. */
HD_MUST_CHECK int hd_agents_create(struct hd_engine *engine,
                                   const struct hd_agents_options *options, struct hd_agents **out);
/* No run may be at work. */
void hd_agents_destroy(struct hd_agents *agents);

#endif
