/* The graph of an assistant: drawn, described by schemas, and the graphs inside it. */
#include "api/api.h"
#include "api/assistant_view.h"
#include "graph/draw.h"
#include "graph/schema.h"

static int find_graph(struct hd_call *call, const struct hd_app_graph **out)
{
    struct hd_assistant_rec assistant;
    int err = hd_call_assistant(call, &assistant);

    return err ? err : hd_call_graph(call, assistant.graph_id, out);
}

/* ---- drawn ------------------------------------------------------------ */

/* true, false, or how many levels of subgraphs are opened. */
static int read_levels(struct hd_call *call, int *out)
{
    struct hd_fault ignored = {0};
    int64_t levels = 0;
    bool opens = false;

    *out = 0;
    if (hd_params_int(&call->query, HD_S("xray"), 0, INT32_MAX, 0, &levels, &ignored) == 0) {
        *out = levels < HD_DRAW_ALL_LEVELS ? (int)levels : HD_DRAW_ALL_LEVELS;
        return 0;
    }
    if (hd_params_bool(&call->query, HD_S("xray"), false, &opens, &ignored))
        return hd_fault_set(&call->fault, HD_EINVAL,
                            "xray: expected true, false or a number of levels");
    if (opens)
        *out = HD_DRAW_ALL_LEVELS;
    return 0;
}

static int draw_graph(struct hd_call *call)
{
    const struct hd_app_graph *graph;
    struct hd_drawing drawing;
    int levels;
    int err = read_levels(call, &levels);

    if (!err)
        err = find_graph(call, &graph);
    if (err)
        return err;
    err = hd_drawing_init(&drawing, graph->graph, levels);
    if (err == HD_ELIMIT)
        return hd_fault_set(&call->fault, HD_EINVAL, "xray: the graph is too large to be opened");
    if (err)
        return err;
    err = hd_draw_json(&drawing, &call->out);
    hd_drawing_fini(&drawing);
    return err;
}

/* ---- schemas ---------------------------------------------------------- */

static int get_schemas(struct hd_call *call)
{
    const struct hd_app_graph *graph;
    int err = find_graph(call, &graph);

    if (!err)
        hd_graph_put_schemas(&call->jw, graph->graph, graph->id);
    return err;
}

/* `ns` empty: those of the graph itself. */
static int put_subgraphs(struct hd_call *call, struct hd_slice ns)
{
    const struct hd_app_graph *graph;
    bool recurse = false;
    int err = hd_params_bool(&call->query, HD_S("recurse"), false, &recurse, &call->fault);

    if (!err)
        err = find_graph(call, &graph);
    if (err)
        return err;
    err = hd_graph_subgraphs(&call->out, graph->graph, ns, recurse);
    if (err == HD_ENOTFOUND)
        return hd_fault_set(&call->fault, err, "Subgraph not found");
    return err;
}

static int get_subgraphs(struct hd_call *call)
{
    return put_subgraphs(call, hd_slice(NULL, 0));
}

static int get_subgraph(struct hd_call *call)
{
    return put_subgraphs(call, call->params[1]);
}

static const struct hd_endpoint routes[] = {
    {.method = HD_METHOD_GET,
     .pattern = "/assistants/{assistant_id}/graph",
     .access = HD_ACCESS_USER,
     .on = HD_ON_ASSISTANTS_READ,
     .work = draw_graph,
     .tag = "Assistants",
     .summary = "The nodes and edges of an assistant's graph",
     .query = "xray",
     .answer = "Drawing"},
    {.method = HD_METHOD_GET,
     .pattern = "/assistants/{assistant_id}/schemas",
     .access = HD_ACCESS_USER,
     .on = HD_ON_ASSISTANTS_READ,
     .work = get_schemas,
     .tag = "Assistants",
     .summary = "JSON Schemas of an assistant's graph",
     .answer = "GraphSchemas"},
    {.method = HD_METHOD_GET,
     .pattern = "/assistants/{assistant_id}/subgraphs",
     .access = HD_ACCESS_USER,
     .on = HD_ON_ASSISTANTS_READ,
     .work = get_subgraphs,
     .tag = "Assistants",
     .summary = "JSON Schemas of the graphs inside an assistant's graph",
     .query = "recurse",
     .answer = "Subgraphs"},
    {.method = HD_METHOD_GET,
     .pattern = "/assistants/{assistant_id}/subgraphs/{namespace}",
     .access = HD_ACCESS_USER,
     .on = HD_ON_ASSISTANTS_READ,
     .work = get_subgraph,
     .tag = "Assistants",
     .summary = "JSON Schemas of one of the graphs inside, by its namespace",
     .query = "recurse",
     .answer = "Subgraphs"},
};

const struct hd_routes hd_routes_assistant_graph = {routes, HD_COUNT(routes)};
