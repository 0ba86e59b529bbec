/* The node kind `model`: valid declarations, and runs with failing allocations. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent.h"
#include "graph/decl/graph.h"
#include "tests/unit/check.h"
#include "tests/unit/engine_world.h"

/* Reads a graph with this node; single quotes stand for double ones. Returns NULL or the error. */
static const char *read_node(const char *state, const char *node, char out[1024])
{
    static char text[4096];
    struct hd_graph_error error = {0};
    struct hd_graph *graph = NULL;
    int err;

    (void)snprintf(text, sizeof(text),
                   "{'name':'g','state':{%s},'nodes':{'m':%s,'act':{'kind':'tools','sources':[]}},"
                   "'edges':[['__start__','m'],['m','act']]}",
                   state, node);
    for (char *c = text; *c; c++)
        *c = *c == '\'' ? '"' : *c;
    err = hd_graph_read(hd_slice_cstr(text), &graph, &error);
    hd_graph_destroy(graph);
    if (!err)
        return NULL;
    (void)snprintf(out, 1024, "%s: %s", error.path, error.text);
    return out;
}

#define MESSAGES "'messages':{'reducer':'messages'},'x':{}"

static void good_declarations_are_read(void **unused)
{
    static const char *const nodes[] = {
        "{'kind':'model'}",
        "{'kind':'model','tools':'act','suffix':'s','stream':false,'tries':1,'idle_ms':5}",
        "{'kind':'model','defaults':{'model_name':'m'},'settings':'{{config.model}}'}",
        "{'kind':'model','channel':'messages','prompt':'You know {{x}}','timeout_ms':1000}",
        "{'kind':'model','update':{'x':'{{message.content}}'}}",
        "{'kind':'model','update':{'x':'{{message}}'},'messages':['{{x}}']}",
    };
    char text[1024];

    (void)unused;
    for (size_t i = 0; i < HD_COUNT(nodes); i++) {
        const char *wrong = read_node(MESSAGES, nodes[i], text);

        if (wrong)
            fail_msg("%s: %s", nodes[i], wrong);
    }
}

static void bad_declarations_are_refused(void **unused)
{
    static const struct {
        const char *state, *node, *error;
    } cases[] = {
        {"'x':{}", "{'kind':'model'}", "/nodes/m: needs a member \"channel\""},
        {"'x':{}", "{'kind':'model','update':{'x':1}}", "/nodes/m: needs a member \"messages\""},
        {MESSAGES, "{'kind':'model','channel':'x'}", "/nodes/m/channel: channel \"x\" needs"},
        {MESSAGES, "{'kind':'model','channel':'y'}", "/nodes/m/channel: unknown channel"},
        {MESSAGES, "{'kind':'model','channel':'messages','update':{}}", "exclude each other"},
        {MESSAGES, "{'kind':'model','tools':'m'}", "must be a node of the kind \"tools\""},
        {MESSAGES, "{'kind':'model','tools':'none'}", "/nodes/m/tools: unknown node"},
        {MESSAGES, "{'kind':'model','tools':7}", "/nodes/m/tools: must be the name of a node"},
        {MESSAGES, "{'kind':'model','tries':0}", "/nodes/m/tries"},
        {MESSAGES, "{'kind':'model','prompt':'{{message}}'}", "/nodes/m/prompt"},
        {MESSAGES, "{'kind':'model','modle':1}", "unknown member"},
    };
    char text[1024];

    (void)unused;
    for (size_t i = 0; i < HD_COUNT(cases); i++) {
        const char *wrong = read_node(cases[i].state, cases[i].node, text);

        if (!wrong || !strstr(wrong, cases[i].error))
            fail_msg("%s: got %s, expected %s", cases[i].node, wrong ? wrong : "nothing",
                     cases[i].error);
    }
}

/* ---- running ---------------------------------------------------------- */

#define CHAT                                                                                    \
    "{\"name\":\"chat\",\"state\":{\"messages\":{\"reducer\":\"messages\"}},\"nodes\":{\"m\":{" \
    "\"kind\":\"model\",\"stream\":false,\"defaults\":{\"model_name\":\"openai:m\","            \
    "\"system_prompt\":\"s\"},\"suffix\":\"t\"}},\"edges\":[[\"__start__\",\"m\"]]}"
#define ASKED "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}]}"

/* Whichever allocation fails, the run ends once, and the thread can be run again. */
static void ends_once_when_memory_is_short(void **unused)
{
    struct hd_graph *graph = read_graph(CHAT);
    bool is_short = true;

    (void)unused;
    for (long n = 1; is_short && n < 100000; n++) {
        struct hd_val *in = json(ASKED);
        struct world w;
        int err;

        open_world(&w, true);
        (void)hd_alloc_fail_at(n, 0);
        err = start(&w, graph, in, NULL);
        if (!err)
            uv_run(&w.uv, UV_RUN_DEFAULT);
        is_short = hd_alloc_fail_at(0, 0) >= n;
        assert_int_equal(w.ends, err ? 0 : 1);
        if (!is_short)
            assert_int_equal(w.status, HD_ENGINE_RUN_DONE);
        run(&w, graph, ASKED, NULL);
        assert_int_equal(w.status, HD_ENGINE_RUN_DONE);
        hd_val_unref(in);
        close_world(&w);
    }
    hd_graph_destroy(graph);
}

/* While tool calls wait for a reply, the node writes nothing and the run ends. */
static void rests_while_calls_wait(void **unused)
{
    struct hd_graph *graph = read_graph(CHAT);
    struct hd_val *state, *messages;
    struct world w;

    (void)unused;
    open_world(&w, true);
    run(&w, graph,
        "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"},{\"role\":\"assistant\",\"content\":"
        "\"\",\"tool_calls\":[{\"name\":\"f\",\"args\":{},\"id\":\"c1\"}]}]}",
        NULL);
    assert_int_equal(w.status, HD_ENGINE_RUN_DONE);
    state = state_of(&w, graph);
    messages = hd_val_get(hd_val_get(state, HD_S("values")), HD_S("messages"));
    assert_int_equal(hd_val_count(messages), 2);
    hd_val_unref(state);
    run(&w, graph, "{\"messages\":[{\"role\":\"tool\",\"tool_call_id\":\"c1\",\"content\":\"b\"}]}",
        NULL);
    state = state_of(&w, graph);
    messages = hd_val_get(hd_val_get(state, HD_S("values")), HD_S("messages"));
    assert_int_equal(hd_val_count(messages), 4);
    hd_val_unref(state);
    close_world(&w);
    hd_graph_destroy(graph);
}

int main(void)
{
    static const char *const names[] = {
        "OPENAI_API_KEY",     "OPENAI_BASE_URL", "OPENAI_API_BASE",    "ANTHROPIC_API_KEY",
        "ANTHROPIC_API_URL",  "GOOGLE_API_KEY",  "ANTHROPIC_BASE_URL", "GOOGLE_BASE_URL",
        "GEMINI_API_KEY",     "CUSTOM_API_KEY",  "MODEL_NAME",         "GOOGLE_GEMINI_BASE_URL",
        "SEMANTIC_ROUTER_URL"};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_declarations_are_read),
        cmocka_unit_test(bad_declarations_are_refused),
        cmocka_unit_test(ends_once_when_memory_is_short),
        cmocka_unit_test(rests_while_calls_wait),
    };

    for (size_t i = 0; i < HD_COUNT(names); i++)
        unsetenv(names[i]);
    hd_agent_kinds();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
