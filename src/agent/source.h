/*
 * The open sources of a run, and waiting for them. A source is identified by its kind and value; it
 * stays open until the run is over.
 */
#ifndef HD_AGENT_SOURCE_H
#define HD_AGENT_SOURCE_H

#include <stddef.h>

#include "agent/tool.h"
#include "base/compiler.h"
#include "base/slice.h"
#include "graph/engine/extension.h"
#include "value/val.h"

struct hd_agent_exchange;
struct hd_source_wait;
struct hd_toolset_kept;

/* Agent state of a run. */
struct hd_agent_run {
    struct hd_engine_run_extension base; /* run->extension points to it */
    struct hd_engine_run *run;
    struct hd_tool_source *sources;
    size_t source_count;
    struct hd_source_wait *waits;
    struct hd_agent_exchange *exchanges; /* in progress; exchange.c links them */
    struct hd_toolset_kept *sets;        /* toolset.c's */
};

/* Created on first use; NULL: no memory. */
struct hd_agent_run *hd_agent_run_of(struct hd_engine_run *run);
/* toolset.c */
void hd_toolset_kept_free(struct hd_toolset_kept *sets);

/* NULL: unknown. */
const struct hd_source_kind *hd_source_kind_find(struct hd_slice name);
/* The name of kind number `index`; NULL after the last. */
const char *hd_source_kind_name(size_t index);
/* Adds kinds to those of the table; for tests. Borrows `list`. */
void hd_source_kinds_add(const struct hd_source_kind *const *list, size_t count);

/*
 * The run's source of that kind and value; starts to open it if it is not open. A source that
 * cannot be opened is returned too, with its problem.
 */
HD_MUST_CHECK int hd_source_get(struct hd_engine_run *run, const struct hd_source_kind *kind,
                                const struct hd_val *value, struct hd_tool_source **out);

/*
 * Calls `ready` once, asynchronously, when all sources are ready; their problems are reported
 * before.
 */
typedef void (*hd_source_wait_fn)(void *ctx);
HD_MUST_CHECK int hd_source_wait(struct hd_task *task, struct hd_tool_source *const *list,
                                 size_t count, hd_source_wait_fn ready, void *ctx,
                                 struct hd_source_wait **out);
/* Not after the callback. The sources stay open. */
void hd_source_wait_cancel(struct hd_source_wait *wait);

#endif
