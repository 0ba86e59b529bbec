#include "app/app.h"

const struct hd_app_graph *hd_app_graph(const struct hd_app *app, struct hd_slice id)
{
    for (size_t i = 0; i < app->graph_count; i++) {
        if (hd_slice_eq(app->graphs[i].id, id))
            return &app->graphs[i];
    }
    return NULL;
}

const struct hd_app_form *hd_app_form(const struct hd_app_graph *graph)
{
    return __atomic_load_n(&graph->form, __ATOMIC_ACQUIRE);
}

const struct hd_graph *hd_app_shape(const struct hd_app_graph *graph)
{
    const struct hd_app_form *form = hd_app_form(graph);

    return form ? form->graph : graph->graph;
}

int hd_app_on_ready(struct hd_app *app, hd_rt_ready_fn fn, void *ctx)
{
    if (app->hook_count == HD_APP_HOOKS)
        return HD_ELIMIT;
    app->hooks[app->hook_count++] = (struct hd_app_hook){.fn = fn, .ctx = ctx};
    return 0;
}
