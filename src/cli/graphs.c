/* The graphs that a server runs: those of its configuration, or else the built-in ones. */
#include <stdio.h>

#include "base/alloc.h"
#include "cli/cli.h"
#include "graph/graph.h"
#include "run/app.h"
#include "run/assistant.h"
#include "run/config.h"

extern const char hd_builtin_graph[];
extern const size_t hd_builtin_graph_len;

static bool add_graph(struct hd_app *app, struct hd_slice id, struct hd_graph *graph,
                      struct hd_slice description)
{
    struct hd_app_graph *entry = &app->graphs[app->graph_count];

    if (!graph || hd_assistant_system_id(id, entry->assistant_id)) {
        hd_graph_destroy(graph);
        return false;
    }
    entry->id = id;
    entry->graph = graph;
    entry->description = description;
    app->graph_count++;
    return true;
}

static bool read_builtin(struct hd_app *app)
{
    struct hd_graph_error error;
    struct hd_graph *graph = NULL;

    if (hd_graph_read(hd_slice(hd_builtin_graph, hd_builtin_graph_len), &graph, &error)) {
        (void)fprintf(stderr, "heddle: the built-in graph: %s: %s\n", error.path, error.text);
        return false;
    }
    return add_graph(app, HD_S("agent"), graph, hd_slice(NULL, 0));
}

bool hd_graphs_open(struct hd_app *app, const struct hd_config *config)
{
    const struct hd_config_graphs *graphs = &config->graphs;

    app->graphs = hd_calloc(graphs->count + 1, sizeof(*app->graphs));
    if (!app->graphs)
        return false;
    if (graphs->count == 0)
        return read_builtin(app);
    for (size_t i = 0; i < graphs->count; i++) {
        const struct hd_config_graph *graph = &graphs->items[i];

        if (!add_graph(app, graph->id, hd_read_graph(graph->file), graph->description))
            return false;
    }
    return true;
}

void hd_graphs_close(struct hd_app *app)
{
    for (size_t i = 0; i < app->graph_count; i++)
        hd_graph_destroy(app->graphs[i].graph);
    hd_free(app->graphs);
}
