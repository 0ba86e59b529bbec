#include "worker/worker_migrate.h"

#include "graph/state/runtime_migrate_tuple.h"
#include "graph/state/state.h"

int hd_worker_migrate_read(struct hd_app *app, const struct hd_rt_scope *scope, struct hd_slice ns,
                           const struct heddle_tuple *tuple, struct hd_arena *arena,
                           const struct heddle_tuple **out, struct heddle_error *fault)
{
    const struct hd_val *id = hd_val_get(scope->metadata, HD_S("graph_id"));
    const struct hd_app_graph *graph = hd_app_graph(app, hd_val_get_string(id));
    struct hd_address at = {.store = app->store,
                            .principal = scope->principal,
                            .thread = scope->thread,
                            .root = scope->root,
                            .ns = ns};

    *out = tuple;
    if (!graph)
        return 0;
    at.graph = hd_app_shape(graph);
    return hd_runtime_migrate_tuple(&at, tuple, arena, out, fault);
}
