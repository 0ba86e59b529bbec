#include "api/thread_view.h"

#include "graph/engine.h"
#include "graph/state.h"
#include "run/record.h"

int hd_thread_values(struct hd_call *call, struct hd_slice thread_id, struct hd_buf *out)
{
    const struct hd_app_graph *graph;
    struct hd_failure failure = {NULL};
    struct hd_thread_rec thread;
    int err = hd_thread_read(call->app->store, call->principal, thread_id, call->arena, &thread,
                             &call->fault);

    if (err)
        return err;
    graph = hd_app_graph(call->app, thread.head.graph_id);
    if (!graph || thread.head.ns.len == 0)
        return hd_buf_append_slice(out, HD_S("null"));

    const struct hd_address at = {.store = call->app->store,
                                  .graph = graph->graph,
                                  .principal = call->principal,
                                  .thread = thread_id,
                                  .root = thread.head.ns};

    err = hd_state_values(&at, out, &failure);
    if (err)
        hd_fault_set(&call->fault, err, "%s", failure.text ? failure.text : hd_error_text(err));
    hd_failure_fini(&failure);
    return err;
}
