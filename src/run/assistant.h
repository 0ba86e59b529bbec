/* Assistants that come with the graphs, and finding one. */
#ifndef HD_RUN_ASSISTANT_H
#define HD_RUN_ASSISTANT_H

#include "app/app.h"
#include "base/compiler.h"
#include "records/record.h"

/* The id of a graph's system assistant. */
HD_MUST_CHECK int hd_assistant_system_id(struct hd_slice graph_id, char out[37]);

/* Makes the system assistant of each graph that has none yet. Waits for the store. */
HD_MUST_CHECK int hd_assistants_install(struct hd_app *app, struct hd_fault *fault);

/*
 * By its id, or by the id of a graph, whose system assistant is meant then: the
 * principal's own first, then the system's. HD_ENOTFOUND. For store threads.
 */
HD_MUST_CHECK int hd_assistant_resolve(const struct hd_app *app, struct hd_slice principal,
                                       struct hd_slice id, struct hd_arena *arena,
                                       struct hd_assistant_rec *out, struct hd_fault *fault);

#endif
