/*
 * The sources that a run has open, and waiting for them. A source is known by its kind
 * and value; it stays open until the run is over, whoever asked for it first.
 */
#ifndef HD_AGENT_SOURCE_H
#define HD_AGENT_SOURCE_H

#include <stddef.h>

#include "agent/tool.h"
#include "base/compiler.h"
#include "base/slice.h"
#include "value/val.h"

struct hd_source_wait;
struct hd_toolset_kept;

/* What a run keeps: run->agent. */
struct hd_agent_run {
    struct hd_run *run;
    struct hd_source *sources;
    size_t source_count;
    struct hd_source_wait *waits;
    struct hd_toolset_kept *sets; /* toolset.c's */
};

/* Made when it is first asked for; NULL: no memory. */
struct hd_agent_run *hd_agent_run_of(struct hd_run *run);
/* toolset.c */
void hd_toolset_kept_free(struct hd_toolset_kept *sets);

/* NULL: there is no such kind. */
const struct hd_source_kind *hd_source_kind_find(struct hd_slice name);
/* The names of all kinds, one after the other; NULL behind the last. */
const char *hd_source_kind_name(size_t index);
/* Kinds besides those of the table; for tests. `list` must stay. */
void hd_source_kinds_add(const struct hd_source_kind *const *list, size_t count);

/*
 * The run's source of that kind and value; it is being opened when it was not open yet. A source
 * that cannot be opened is there too, with its problem.
 */
HD_MUST_CHECK int hd_source_get(struct hd_run *run, const struct hd_source_kind *kind,
                                const struct hd_val *value, struct hd_source **out);

/* Calls `ready` once, later, when all of the sources are; their problems are told before. */
typedef void (*hd_source_wait_fn)(void *ctx);
HD_MUST_CHECK int hd_source_wait(struct hd_task *task, struct hd_source *const *list, size_t count,
                                 hd_source_wait_fn ready, void *ctx, struct hd_source_wait **out);
/* Not after it was called back. The sources go on. */
void hd_source_wait_cancel(struct hd_source_wait *wait);

#endif
