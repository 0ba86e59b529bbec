/*
 * The graph of an assistant: its drawing, its schemas, and its subgraphs. Graphs whose code runs in
 * workers are queried there.
 */
#include "api/api.h"
#include "api/assistant_view.h"
#include "api/request/worker_query.h"
#include "graph/decl/schema.h"
#include "graph/draw/draw.h"

#define MAX_HEAD ((size_t)16 << 20)
#define TYPE_SVG HD_S("image/svg+xml")

/* The query for a worker, built on the store thread. */
struct graph_query {
    const struct hd_app_graph *graph;
    struct hd_buf head;
    struct hd_jw jw;
    bool is_picture;       /* wanted */
    struct hd_slice drawn; /* the worker's reply */
};

static int find_graph(struct hd_call *call, struct hd_assistant_rec *assistant,
                      const struct hd_app_graph **out)
{
    int err = hd_call_assistant(call, assistant);

    return err ? err : hd_call_graph(call, assistant->graph_id, out);
}

/* ---- queries to workers ----------------------------------------------- */

/* Begins the query; its members follow, then end_query(). */
static int begin_query(struct hd_call *call, const struct hd_app_graph *graph,
                       const struct hd_assistant_rec *assistant, const char *op,
                       struct graph_query **out)
{
    struct graph_query *q = hd_arena_calloc(call->arena, 1, sizeof(*q));
    int err = q ? hd_call_check_loaded(call, graph) : HD_ENOMEM;

    if (err)
        return err;
    q->graph = graph;
    hd_buf_init(&q->head, MAX_HEAD);
    hd_jw_init(&q->jw, &q->head);
    hd_jw_object(&q->jw);
    hd_jw_put_string(&q->jw, "op", hd_slice_cstr(op));
    hd_jw_put_string(&q->jw, "graph", graph->id);
    hd_jw_put_raw_or(&q->jw, "config", assistant->config, "{}");
    *out = q;
    return 0;
}

static struct hd_step end_query(struct hd_call *call, struct graph_query *q)
{
    int err;

    hd_jw_object_end(&q->jw);
    err = hd_jw_finish(&q->jw);
    if (err) {
        hd_buf_fini(&q->head);
        return hd_step_fail(err);
    }
    call->state = q;
    return HD_NEXT;
}

/* `on_error` NULL: the call fails when the query fails. */
static struct hd_step graph_query_worker(struct hd_call *call, hd_worker_reply_fn on_reply,
                                         hd_error_fn on_error)
{
    struct graph_query *q = call->state;
    const struct hd_worker_query query = {.language = q->graph->language,
                                          .head = hd_buf_slice(&q->head),
                                          .on_reply = on_reply,
                                          .on_error = on_error};
    struct hd_step step = hd_call_query_worker(call, &query);

    hd_buf_fini(&q->head);
    return step;
}

/* ---- drawings --------------------------------------------------------- */

/* true, false, or the number of levels of subgraphs to open. */
static int read_levels(struct hd_call *call, int *out)
{
    struct heddle_error ignored = {0};
    int64_t levels = 0;
    bool opens = false;

    *out = 0;
    if (hd_params_int(&call->query, HD_S("xray"), 0, INT32_MAX, 0, &levels, &ignored) == 0) {
        *out = levels < HD_DRAW_ALL_LEVELS ? (int)levels : HD_DRAW_ALL_LEVELS;
        return 0;
    }
    if (hd_params_bool(&call->query, HD_S("xray"), false, &opens, &ignored))
        return hd_error_set(&call->fault, HD_EINVAL,
                            "xray: expected true, false or a number of levels");
    if (opens)
        *out = HD_DRAW_ALL_LEVELS;
    return 0;
}

static int read_format(struct hd_call *call, bool *is_picture)
{
    struct hd_slice format = HD_S("json");

    hd_params_get(&call->query, HD_S("format"), &format);
    *is_picture = hd_slice_eq(format, HD_S("svg"));
    if (!*is_picture && !hd_slice_eq(format, HD_S("json")))
        return hd_error_set(&call->fault, HD_EINVAL, "format: expected json or svg");
    return 0;
}

static int put_picture(struct hd_call *call, const struct hd_drawing *drawing)
{
    call->content_type = TYPE_SVG;
    return hd_draw_svg_part(drawing, &call->out);
}

static struct hd_step draw_remote(struct hd_call *call, const struct hd_app_graph *graph,
                                  const struct hd_assistant_rec *assistant, int levels,
                                  bool is_picture)
{
    struct graph_query *q;
    int err = begin_query(call, graph, assistant, "draw", &q);

    if (err)
        return hd_step_fail(err);
    q->is_picture = is_picture;
    hd_jw_key(&q->jw, HD_S("xray"));
    if (levels == 0 || levels == HD_DRAW_ALL_LEVELS)
        hd_jw_bool(&q->jw, levels != 0);
    else
        hd_jw_int(&q->jw, levels);
    return end_query(call, q);
}

static struct hd_step draw_picture(struct hd_call *call)
{
    const struct graph_query *q = call->state;
    struct hd_json json = {NULL};
    struct hd_drawing drawing;
    int err = hd_json_parse(&json, q->drawn, NULL);

    err = err == HD_EINVAL ? HD_ECORRUPT : err;
    if (!err)
        err = hd_drawing_read(&drawing, q->graph->id, hd_json_root(&json));
    hd_json_fini(&json);
    if (err == HD_ELIMIT)
        return hd_step_fail(
            hd_error_set(&call->fault, HD_EINVAL, "format: the graph is too large for a picture"));
    if (err)
        return hd_step_fail(err);
    err = put_picture(call, &drawing);
    hd_drawing_fini(&drawing);
    return hd_step_done(err);
}

/* The layout of a large graph takes too long for the loop. */
static struct hd_step on_drawn(struct hd_call *call, const struct hd_rt_message *message)
{
    struct graph_query *q = call->state;
    struct hd_slice text;
    int err = hd_worker_query_reply_text(call, message, &text);

    if (!err && q->is_picture)
        err = hd_arena_copy(call->arena, text, &q->drawn);
    else if (!err)
        err = hd_buf_append_slice(&call->out, text);
    if (err)
        return hd_step_fail(err);
    return q->is_picture ? hd_call_visit(call, draw_picture, NULL) : HD_DONE;
}

static struct hd_step draw_then(struct hd_call *call)
{
    return graph_query_worker(call, on_drawn, NULL);
}

static struct hd_step draw_graph(struct hd_call *call)
{
    struct hd_assistant_rec assistant;
    const struct hd_app_graph *graph;
    struct hd_drawing drawing;
    bool is_picture;
    int levels;
    int err = read_levels(call, &levels);

    if (!err)
        err = read_format(call, &is_picture);
    if (!err)
        err = find_graph(call, &assistant, &graph);
    if (err)
        return hd_step_fail(err);
    if (graph->is_remote)
        return draw_remote(call, graph, &assistant, levels, is_picture);
    err = hd_drawing_init(&drawing, graph->graph, levels);
    if (err == HD_ELIMIT)
        return hd_step_fail(
            hd_error_set(&call->fault, HD_EINVAL, "xray: the graph is too large to expand"));
    if (err)
        return hd_step_fail(err);
    err = is_picture ? put_picture(call, &drawing) : hd_draw_json(&drawing, &call->out);
    hd_drawing_fini(&drawing);
    return hd_step_done(err);
}

/* ---- schemas ---------------------------------------------------------- */

/* A worker's {"input", …} in the format of the API; `graph_id` empty: of a subgraph. */
static void put_schemas(struct hd_jw *jw, hd_json_val described, struct hd_slice graph_id)
{
    static const char *const names[][2] = {{"input", "input_schema"},
                                           {"output", "output_schema"},
                                           {"state", "state_schema"},
                                           {"config", "config_schema"},
                                           {"context", "context_schema"}};

    hd_jw_object(jw);
    if (graph_id.len > 0)
        hd_jw_put_string(jw, "graph_id", graph_id);
    for (size_t i = 0; i < HD_COUNT(names); i++) {
        hd_json_val schema = hd_json_get(described, hd_slice_cstr(names[i][0]));

        hd_jw_key(jw, hd_slice_cstr(names[i][1]));
        if (schema)
            hd_jw_val(jw, schema);
        else
            hd_jw_null(jw);
    }
    hd_jw_object_end(jw);
}

static int put_form(struct hd_call *call, const struct hd_app_graph *graph)
{
    struct hd_slice text = hd_app_form(graph)->schemas;
    struct hd_json json = {NULL};
    int err = text.len > 0 ? hd_json_parse(&json, text, &call->fault) : 0;

    if (!err)
        put_schemas(&call->jw, hd_json_root(&json), graph->id);
    hd_json_fini(&json);
    return err ? err : call->jw.err;
}

/* The schemas of the reply; without them, as in the reply to a ping, those of the form. */
static int put_answer(struct hd_call *call, const struct hd_app_graph *graph,
                      const struct hd_rt_message *message)
{
    struct hd_json json = {NULL};
    int err = hd_call_check_loaded(call, graph);

    if (err)
        return err;
    if (message->blob_count == 0)
        return put_form(call, graph);
    err = hd_json_parse(&json, message->blobs[0], &call->fault);
    if (!err)
        put_schemas(&call->jw, hd_json_root(&json), graph->id);
    hd_json_fini(&json);
    return err ? err : call->jw.err;
}

static struct hd_step on_schemas(struct hd_call *call, const struct hd_rt_message *message)
{
    const struct graph_query *q = call->state;

    return hd_step_done(put_answer(call, q->graph, message));
}

/* When the query fails, the schemas of the form are sent, which lack the types. */
static struct hd_step on_schemas_error(struct hd_call *call, int err)
{
    const struct graph_query *q = call->state;

    if (hd_app_form(q->graph)->is_described && hd_app_form(q->graph)->error.len == 0)
        err = put_form(call, q->graph);
    return hd_step_done(err);
}

static struct hd_step schemas_then(struct hd_call *call)
{
    return graph_query_worker(call, on_schemas, on_schemas_error);
}

static struct hd_step get_schemas(struct hd_call *call)
{
    struct hd_assistant_rec assistant;
    const struct hd_app_graph *graph;
    const struct hd_app_form *form;
    struct graph_query *q;
    int err = find_graph(call, &assistant, &graph);

    if (err)
        return hd_step_fail(err);
    if (!graph->is_remote) {
        hd_graph_put_schemas(&call->jw, graph->graph, graph->id);
        return HD_DONE;
    }
    form = hd_app_form(graph);
    if (form->is_described && !form->has_types) {
        err = hd_call_check_loaded(call, graph);
        return hd_step_done(err ? err : put_form(call, graph));
    }
    /* A worker sends `ready`, which fills the form, before any reply. */
    err = begin_query(call, graph, &assistant, graph->language == HD_RT_PYTHON ? "ping" : "schemas",
                      &q);
    return err ? hd_step_fail(err) : end_query(call, q);
}

static struct hd_step query_subgraphs(struct hd_call *call, const struct hd_app_graph *graph,
                                      const struct hd_assistant_rec *assistant, struct hd_slice ns,
                                      bool recurse)
{
    struct graph_query *q;
    int err = begin_query(call, graph, assistant, "subgraphs", &q);

    if (err)
        return hd_step_fail(err);
    hd_jw_key(&q->jw, HD_S("namespace"));
    if (ns.len > 0)
        hd_jw_string(&q->jw, ns);
    else
        hd_jw_null(&q->jw);
    hd_jw_put_bool(&q->jw, "recurse", recurse);
    return end_query(call, q);
}

static struct hd_step on_subgraphs(struct hd_call *call, const struct hd_rt_message *message)
{
    struct hd_json json = {NULL};
    struct hd_json_iter it;
    struct hd_slice text;
    int err = hd_worker_query_reply_text(call, message, &text);

    if (!err)
        err = hd_json_parse(&json, text, &call->fault);
    it = hd_json_iter(hd_json_root(&json));
    if (!err)
        hd_jw_object(&call->jw);
    while (!err && hd_json_next(&it)) {
        hd_jw_key(&call->jw, it.key);
        put_schemas(&call->jw, it.val, hd_slice(NULL, 0));
    }
    if (!err) {
        hd_jw_object_end(&call->jw);
        err = call->jw.err;
    }
    hd_json_fini(&json);
    return hd_step_done(err);
}

static struct hd_step subgraphs_then(struct hd_call *call)
{
    return graph_query_worker(call, on_subgraphs, NULL);
}

/* `ns` empty: the subgraphs of the graph itself. */
static struct hd_step put_subgraphs(struct hd_call *call, struct hd_slice ns)
{
    struct hd_assistant_rec assistant;
    const struct hd_app_graph *graph;
    bool recurse = false;
    int err = hd_params_bool(&call->query, HD_S("recurse"), false, &recurse, &call->fault);

    if (!err)
        err = find_graph(call, &assistant, &graph);
    if (err)
        return hd_step_fail(err);
    if (graph->is_remote)
        return query_subgraphs(call, graph, &assistant, ns, recurse);
    err = hd_graph_subgraphs(&call->out, graph->graph, ns, recurse);
    if (err == HD_ENOTFOUND)
        return hd_step_fail(hd_error_set(&call->fault, err, "Subgraph not found"));
    return hd_step_done(err);
}

static struct hd_step get_subgraphs(struct hd_call *call)
{
    return put_subgraphs(call, hd_slice(NULL, 0));
}

static struct hd_step get_subgraph(struct hd_call *call)
{
    return put_subgraphs(call, call->params[1]);
}

static const struct hd_endpoint routes[] = {
    {.method = HD_METHOD_GET,
     .pattern = "/assistants/{assistant_id}/graph",
     .access = HD_ACCESS_USER,
     .on = HD_ON_ASSISTANTS_READ,
     .work = draw_graph,
     .then = draw_then,
     .tag = "Assistants",
     .summary = "Get the nodes and edges of an assistant's graph",
     .query = "xray graph_format",
     .answer = "Drawing image/svg+xml"},
    {.method = HD_METHOD_GET,
     .pattern = "/assistants/{assistant_id}/schemas",
     .access = HD_ACCESS_USER,
     .on = HD_ON_ASSISTANTS_READ,
     .work = get_schemas,
     .then = schemas_then,
     .tag = "Assistants",
     .summary = "Get the JSON Schemas of an assistant's graph",
     .answer = "GraphSchemas"},
    {.method = HD_METHOD_GET,
     .pattern = "/assistants/{assistant_id}/subgraphs",
     .access = HD_ACCESS_USER,
     .on = HD_ON_ASSISTANTS_READ,
     .work = get_subgraphs,
     .then = subgraphs_then,
     .tag = "Assistants",
     .summary = "Get the JSON Schemas of the subgraphs of an assistant's graph",
     .query = "recurse",
     .answer = "Subgraphs"},
    {.method = HD_METHOD_GET,
     .pattern = "/assistants/{assistant_id}/subgraphs/{namespace}",
     .access = HD_ACCESS_USER,
     .on = HD_ON_ASSISTANTS_READ,
     .work = get_subgraph,
     .then = subgraphs_then,
     .tag = "Assistants",
     .summary = "Get the JSON Schemas of a subgraph by its namespace",
     .query = "recurse",
     .answer = "Subgraphs"},
};

const struct hd_routes hd_routes_assistant_graph = {routes, HD_COUNT(routes)};
