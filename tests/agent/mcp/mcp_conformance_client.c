/*
 * The client that the public MCP conformance kit starts. It runs the kit's client scenarios with
 * the source `mcp` of a `tools` node on a real engine.
 *
 *   mcp_conformance_client URL
 *
 * MCP_CONFORMANCE_SCENARIO names the scenario, MCP_CONFORMANCE_PROTOCOL_VERSION the revision,
 * MCP_CONFORMANCE_CONTEXT (JSON) may have `toolCalls`. A node `drive` selects the calls from the
 * listed tools; elicitations are answered by resuming the run.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "agent/agent.h"
#include "agent/agent_internal.h"
#include "agent/toolset.h"
#include "base/log.h"
#include "graph/engine/run.h"
#include "graph/engine/task.h"
#include "heddle.h"

#define MAX_ROUNDS 8

static const char declaration[] =
    "{\"name\":\"conformance\",\"state\":{\"messages\":{\"reducer\":\"messages\"},\"calls\":{}},"
    "\"nodes\":{\"drive\":{\"kind\":\"drive\"},"
    "\"tools\":{\"kind\":\"tools\",\"sources\":[{\"mcp\":\"{{config.mcp_config}}\"}]}},"
    "\"edges\":[[\"__start__\",\"drive\"],{\"from\":\"drive\",\"fanout\":{\"over\":\"{{calls}}\","
    "\"as\":\"call\",\"to\":\"tools\",\"arg\":{\"call\":\"{{call}}\"}}},[\"tools\",\"__end__\"]]}";

static const char *scenario;

static void require(bool is_so, const char *what)
{
    if (is_so)
        return;
    fprintf(stderr, "mcp_conformance_client: %s\n", what);
    exit(1);
}

static struct hd_val *parse(const char *text)
{
    struct hd_val *val = NULL;

    require(hd_val_parse_json(hd_slice_cstr(text), &val, NULL) == 0, text);
    return val;
}

static bool is(const char *name)
{
    return strcmp(scenario, name) == 0;
}

/* ---- the calls --------------------------------------------------------- */

static struct hd_val *add_call(struct hd_val *calls, struct hd_slice name, struct hd_val *args)
{
    struct hd_val *call = hd_val_with(hd_val_object(), HD_S("name"), hd_val_string(name));

    call = hd_val_with(call, HD_S("args"), args);
    call = hd_val_with(call, HD_S("id"), hd_val_printf("call-%zu", hd_val_count(calls)));
    return hd_val_append(calls, call);
}

/* The smallest arguments that the schema accepts. */
static struct hd_val *some_args(const struct hd_val *schema)
{
    const struct hd_val *required = hd_val_get(schema, HD_S("required"));
    const struct hd_val *properties = hd_val_get(schema, HD_S("properties"));
    struct hd_val *args = hd_val_object();

    for (size_t i = 0; i < hd_val_count(required); i++) {
        struct hd_slice name = hd_val_get_string(hd_val_at(required, i));
        struct hd_slice type =
            hd_val_get_string(hd_val_get(hd_val_get(properties, name), HD_S("type")));
        bool is_number = hd_slice_eq(type, HD_S("number")) || hd_slice_eq(type, HD_S("integer"));

        args = hd_val_with(args, name, is_number ? hd_val_int(5 + (int64_t)i) : hd_val_cstr("x"));
    }
    return args;
}

static struct hd_val *calls_of_context(struct hd_val *calls)
{
    const char *text = getenv("MCP_CONFORMANCE_CONTEXT");
    struct hd_val *context = text ? parse(text) : NULL;
    const struct hd_val *list = hd_val_get(context, HD_S("toolCalls"));

    for (size_t i = 0; i < hd_val_count(list); i++) {
        const struct hd_val *item = hd_val_at(list, i);

        calls = add_call(calls, hd_val_get_string(hd_val_get(item, HD_S("name"))),
                         hd_val_ref(hd_val_get(item, HD_S("arguments"))));
    }
    hd_val_unref(context);
    return calls;
}

/* Sends the first tool's schema to the second tool: it must be unchanged. */
static struct hd_val *echo_schema(struct hd_val *calls, const struct hd_toolset *set)
{
    const struct hd_tool *tool = hd_toolset_find(set, HD_S("json_schema_2020_12_tool"));

    require(tool != NULL, "no json_schema_2020_12_tool");
    return add_call(calls, HD_S("json_schema_echo"),
                    hd_val_with(hd_val_object(), HD_S("schema"), hd_val_ref(tool->parameters)));
}

static struct hd_val *plan(const struct hd_toolset *set)
{
    struct hd_val *calls = hd_val_list();

    if (is("initialize") || is("json-schema-ref-no-deref"))
        return calls;
    if (is("http-custom-headers"))
        return calls_of_context(calls);
    if (is("json-schema-2020-12-preservation"))
        return echo_schema(calls, set);
    for (size_t i = 0; i < set->count; i++)
        calls = add_call(calls, set->entries[i].name, some_args(set->entries[i].tool->parameters));
    return calls;
}

/* ---- the node ---------------------------------------------------------- */

static int read_drive(struct hd_decl *decl, const struct hd_decl_at *at, struct hd_node *node)
{
    (void)decl;
    (void)at;
    (void)node;
    return 0;
}

static void on_tools(void *ctx, const struct hd_toolset *set)
{
    struct hd_task *task = ctx;

    task->work = NULL;
    require(set != NULL, "out of memory");
    for (size_t i = 0; i < set->count; i++)
        printf("tool %.*s\n", (int)set->entries[i].name.len, set->entries[i].name.ptr);
    hd_task_finish(task, hd_val_with(hd_val_object(), HD_S("calls"), plan(set)), NULL, false);
}

static int start_drive(struct hd_task *task)
{
    size_t tools = hd_graph_find_node(task->graph, HD_S("tools"));
    struct hd_toolset_wait *wait;
    int err = hd_toolset_get(task, &task->graph->nodes[tools], on_tools, task, &wait);

    if (!err)
        task->work = wait;
    return err;
}

static void cancel_drive(struct hd_task *task)
{
    hd_toolset_cancel(task->work);
}

static const struct hd_node_kind drive = {
    .name = "drive",
    .read = read_drive,
    .start = start_drive,
    .cancel = cancel_drive,
};

static const struct hd_node_kind *const kinds[] = {&hd_node_tools, &drive};

/* ---- runs -------------------------------------------------------------- */

struct world {
    struct heddle *store;
    uv_loop_t uv;
    struct hd_engine *engine;
    struct hd_agents *agents;
    struct hd_graph *graph;
    struct hd_val *config;
    struct hd_val *command; /* resumes the interrupted run; NULL: not interrupted */
    enum hd_engine_run_status status;
};

/* Gives the same reply to all interrupts. */
static struct hd_val *answer_all(const struct hd_val *interrupts)
{
    struct hd_val *answers = hd_val_object();

    for (size_t i = 0; i < hd_val_count(interrupts); i++) {
        const struct hd_val *id = hd_val_get(hd_val_at(interrupts, i), HD_S("id"));

        answers = hd_val_with(answers, hd_val_get_string(id),
                              parse("{\"action\":\"accept\",\"content\":{\"confirmed\":true}}"));
    }
    return hd_val_with(hd_val_record(HD_KIND_COMMAND), HD_S("resume"), answers);
}

static void on_done(void *ctx, const struct hd_engine_run_result *result)
{
    struct world *w = ctx;
    struct hd_buf text;

    w->status = result->status;
    if (result->status == HD_ENGINE_RUN_INTERRUPTED)
        w->command = answer_all(result->interrupts);
    if (result->error_text)
        fprintf(stderr, "the run failed: %s\n", result->error_text);
    hd_buf_init(&text, (size_t)1 << 24);
    require(hd_val_render(&text, result->output) == 0, "the output is too large");
    printf("%.*s\n", (int)text.len, text.ptr);
    hd_buf_fini(&text);
}

static void run(struct world *w, const struct hd_val *input, const struct hd_val *command)
{
    struct hd_engine_run_options options = {.graph = w->graph,
                                            .thread = HD_S("t"),
                                            .input = input,
                                            .command = command,
                                            .config = w->config,
                                            .on_done = on_done,
                                            .ctx = w};
    struct hd_engine_run *ignored;

    require(hd_engine_run_start(w->engine, &options, &ignored) == 0, "the run does not begin");
    uv_run(&w->uv, UV_RUN_DEFAULT);
}

static void run_all(struct world *w)
{
    struct hd_val *input = parse("{\"messages\":[]}");

    run(w, input, NULL);
    hd_val_unref(input);
    for (int i = 0; i < MAX_ROUNDS && w->command; i++) {
        struct hd_val *command = w->command;

        w->command = NULL;
        run(w, NULL, command);
        hd_val_unref(command);
    }
    hd_val_unref(w->command);
}

/* ---- the program ------------------------------------------------------- */

static struct hd_val *configure(const char *url)
{
    const char *version = getenv("MCP_CONFORMANCE_PROTOCOL_VERSION");
    struct hd_val *server = hd_val_with(hd_val_object(), HD_S("url"), hd_val_cstr(url));

    server = hd_val_with(server, HD_S("protocol"), hd_val_cstr(version ? version : "2025-11-25"));
    /* There is no user: the form's defaults are the reply. */
    if (is("elicitation-sep1034-client-defaults"))
        server = hd_val_with(server, HD_S("elicitation"), hd_val_cstr("defaults"));
    return hd_val_with(hd_val_object(), HD_S("mcp_config"), server);
}

static void open_world(struct world *w, const char *url)
{
    struct hd_graph_error error;

    hd_log_set_level(HD_LOG_DEBUG);
    hd_graph_add_node_kinds(kinds, HD_COUNT(kinds));
    require(heddle_open(&w->store, "memory:", NULL) == 0, "no store");
    require(uv_loop_init(&w->uv) == 0, "no loop");
    require(hd_engine_create(w->store, &w->uv, true, &w->engine) == 0, "no engine");
    require(hd_agents_create(w->engine, NULL, &w->agents) == 0, "no agents");
    if (hd_graph_read(hd_slice_cstr(declaration), &w->graph, &error) != 0) {
        fprintf(stderr, "%s: %s\n", error.path, error.text);
        exit(1);
    }
    w->config = configure(url);
    require(w->config != NULL, "out of memory");
}

static void close_world(struct world *w)
{
    hd_val_unref(w->config);
    hd_agents_destroy(w->agents);
    hd_engine_destroy(w->engine);
    uv_run(&w->uv, UV_RUN_DEFAULT);
    require(uv_loop_close(&w->uv) == 0, "something is still open");
    hd_graph_destroy(w->graph);
    heddle_close(w->store);
}

int main(int argc, char **argv)
{
    struct world w = {.status = HD_ENGINE_RUN_FAILED};

    scenario = getenv("MCP_CONFORMANCE_SCENARIO");
    if (argc != 2 || !scenario) {
        fprintf(stderr, "usage: MCP_CONFORMANCE_SCENARIO=NAME %s URL\n", argv[0]);
        return 2;
    }
    open_world(&w, argv[1]);
    run_all(&w);
    close_world(&w);
    return w.status == HD_ENGINE_RUN_DONE ? 0 : 1;
}
