/*
 * What workers tell of their graphs, kept as the forms of the server's graphs (app/app.h).
 * On the loop; those who read forms are on any thread.
 */
#ifndef HD_WORKER_GRAPH_SCHEMAS_H
#define HD_WORKER_GRAPH_SCHEMAS_H

#include "app/app.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/slice.h"

/* Remote graphs get a form that shows what is stored as it is, until a worker tells more. */
HD_MUST_CHECK int hd_graph_schemas_open(struct hd_app *app, struct hd_fault *fault);
/* No thread may be reading any more. */
void hd_graph_schemas_close(struct hd_app *app);

/* `head` is a worker's `ready`: the forms of its language's graphs are what it says. */
void hd_graph_schemas_take(struct hd_app *app, enum hd_rt_language language, struct hd_slice head);

#endif
