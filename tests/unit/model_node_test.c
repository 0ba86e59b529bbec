/* The node kind `model`: what its declaration may say. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent.h"
#include "graph/graph.h"
#include "tests/unit/check.h"

/* A graph with this node; single quotes stand for double ones. NULL or what is wrong. */
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_declarations_are_read),
        cmocka_unit_test(bad_declarations_are_refused),
    };

    hd_agent_kinds();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
