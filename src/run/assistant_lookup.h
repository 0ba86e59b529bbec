/* System assistants (one per graph), and the lookup of assistants. */
#ifndef HD_RUN_ASSISTANT_LOOKUP_H
#define HD_RUN_ASSISTANT_LOOKUP_H

#include "app/app.h"
#include "base/compiler.h"
#include "records/record.h"

/* The id of a graph's system assistant. */
HD_MUST_CHECK int hd_system_assistant_id(struct hd_slice graph_id, char out[37]);

/* Creates missing system assistants. Blocks on the store. */
HD_MUST_CHECK int hd_system_assistants_install(struct hd_app *app, struct heddle_error *fault);

/*
 * Finds an assistant by its id, or a system assistant by the id of its graph. Assistants of the
 * principal precede system assistants. HD_ENOTFOUND. Call it on store threads.
 */
HD_MUST_CHECK int hd_assistant_lookup(const struct hd_app *app, struct hd_slice principal,
                                      struct hd_slice id, struct hd_arena *arena,
                                      struct hd_assistant_rec *out, struct heddle_error *fault);

#endif
