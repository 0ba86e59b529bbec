/*
 * Stores the schemas and structures that workers report for their graphs, as forms of the server's
 * graphs (app/app.h). Runs on the loop; any thread may read forms.
 */
#ifndef HD_WORKER_GRAPH_SCHEMAS_H
#define HD_WORKER_GRAPH_SCHEMAS_H

#include "app/app.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/slice.h"

/*
 * Gives each remote graph a form that shows stored state as it is. A worker's ready message
 * replaces it.
 */
HD_MUST_CHECK int hd_graph_schemas_open(struct hd_app *app, struct heddle_error *fault);
/* Call when no thread reads forms. */
void hd_graph_schemas_close(struct hd_app *app);

/* Updates the forms of the graphs of `language` from `head`, a worker's ready message. */
void hd_graph_schemas_take(struct hd_app *app, enum hd_rt_language language, struct hd_slice head);

#endif
