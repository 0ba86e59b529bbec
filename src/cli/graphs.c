/* The graphs that a server runs: those of its configuration, or the built-in ones. */
#include <stdio.h>

#include "app/app.h"
#include "base/alloc.h"
#include "cli/cli.h"
#include "config/config.h"
#include "graph/decl/graph.h"
#include "run/assistant_lookup.h"

/* The graphs of src/cli/graphs; clients select the first one by default. */
#define SHIPPED(X) X(agent) X(research_agent) X(demo)

#define X(name)                             \
    extern const char hd_graph_of_##name[]; \
    extern const size_t hd_graph_of_##name##_len;
SHIPPED(X)
#undef X

struct shipped {
    struct hd_slice id;
    const char *text;
    const size_t *len;
};

static const struct shipped shipped[] = {
#define X(name) {HD_S_INIT(#name), hd_graph_of_##name, &hd_graph_of_##name##_len},
    SHIPPED(X)
#undef X
};

static bool add_graph(struct hd_app *app, struct hd_slice id, struct hd_graph *graph,
                      struct hd_slice description)
{
    struct hd_app_graph *entry = &app->graphs[app->graph_count];

    if (!graph || hd_system_assistant_id(id, entry->assistant_id)) {
        hd_graph_destroy(graph);
        return false;
    }
    entry->id = id;
    entry->graph = graph;
    entry->description = description;
    app->graph_count++;
    return true;
}

static bool read_shipped(struct hd_app *app, const struct shipped *from)
{
    struct hd_graph_error error = {0};
    struct hd_graph *graph = NULL;

    if (hd_graph_read(hd_slice(from->text, *from->len), &graph, &error)) {
        (void)fprintf(stderr, "heddle: %s: %s: %s\n", from->id.ptr, error.path, error.text);
        return false;
    }
    return add_graph(app, from->id, graph, hd_slice(NULL, 0));
}

/* Its code runs in workers, which send its drawing and schemas later. */
static bool add_remote(struct hd_app *app, const struct hd_config_graph *from)
{
    struct hd_app_graph *entry = &app->graphs[app->graph_count];

    if (hd_system_assistant_id(from->id, entry->assistant_id))
        return false;
    entry->id = from->id;
    entry->description = from->description;
    entry->is_remote = true;
    entry->language = from->language;
    app->graph_count++;
    return true;
}

bool hd_graphs_open(struct hd_app *app, const struct hd_config *config)
{
    const struct hd_config_graphs *graphs = &config->graphs;

    app->graphs = hd_calloc(graphs->count + HD_COUNT(shipped), sizeof(*app->graphs));
    if (!app->graphs)
        return false;
    for (size_t i = 0; graphs->count == 0 && i < HD_COUNT(shipped); i++) {
        if (!read_shipped(app, &shipped[i]))
            return false;
    }
    for (size_t i = 0; i < graphs->count; i++) {
        const struct hd_config_graph *graph = &graphs->items[i];

        if (graph->is_remote
                ? !add_remote(app, graph)
                : !add_graph(app, graph->id, hd_cli_read_graph(graph->file), graph->description))
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
