/* JSON Schemas of a graph's input, output and state. */
#include "graph/decl/schema.h"

#include <string.h>

#include "tests/unit/check.h"

#define GRAPH                                                                                 \
    "{'name':'desk','title':'A desk','description':'Answers.','state':{"                      \
    "'messages':{'reducer':'messages'},"                                                      \
    "'n':{'type':'number','title':'Count','description':'How many.','default':3},"            \
    "'name':{'type':'string'},'on':{'reducer':'or'},'data':{'reducer':'merge'},"              \
    "'notes':{'reducer':'topic'},'free':{}},"                                                 \
    "'input':['messages','notes'],'output':['messages','n'],"                                 \
    "'config_schema':{'type':'object','properties':{'model':{'type':'string'}}},"             \
    "'graphs':{'mid':{'state':{'messages':{'reducer':'messages'}},'graphs':{'low':{'state':{" \
    "'x':{'type':'list'}},'nodes':{'a':{'kind':'set'}},'edges':[['__start__','a']]}},"        \
    "'nodes':{'inner':{'kind':'subgraph','graph':'low','input':{'x':[]}}},"                   \
    "'edges':[['__start__','inner']]}},"                                                      \
    "'nodes':{'outer':{'kind':'subgraph','graph':'mid'},'twin':{'kind':'subgraph',"           \
    "'graph':'mid'},'plain':{'kind':'set'}},"                                                 \
    "'edges':[['__start__','outer'],['outer','twin'],['twin','plain']]}"

static void unquote(char *text)
{
    for (; *text; text++)
        *text = *text == '\'' ? '"' : *text;
}

static struct hd_graph *read_graph(void)
{
    char text[] = GRAPH;
    struct hd_graph_error error = {0};
    struct hd_graph *graph = NULL;

    unquote(text);
    if (hd_graph_read(hd_slice_cstr(text), &graph, &error) != 0)
        fail_msg("%s: %s", error.path, error.text);
    return graph;
}

static struct hd_val *parse(const char *text)
{
    struct hd_val *val = NULL;
    char copy[4096];

    assert_true(strlen(text) < sizeof(copy));
    memcpy(copy, text, strlen(text) + 1);
    unquote(copy);
    assert_int_equal(hd_val_parse_json(hd_slice_cstr(copy), &val, NULL), 0);
    return val;
}

static struct hd_val *schemas_of(const struct hd_graph *graph, const char *id)
{
    struct hd_val *val = NULL;
    struct hd_buf out;
    struct hd_jw jw;

    hd_buf_init(&out, 100000);
    hd_jw_init(&jw, &out);
    hd_graph_put_schemas(&jw, graph, hd_slice_cstr(id));
    assert_int_equal(hd_jw_finish(&jw), 0);
    assert_int_equal(hd_val_parse_json(hd_buf_slice(&out), &val, NULL), 0);
    hd_buf_fini(&out);
    return val;
}

static void assert_json(const struct hd_val *got, const char *wanted)
{
    struct hd_val *val = parse(wanted);
    struct hd_buf text;

    hd_buf_init(&text, 100000);
    assert_int_equal(hd_val_write(&text, got), 0);
    if (!hd_val_equal(got, val))
        fail_msg("%.*s is not %s", (int)text.len, text.ptr, wanted);
    hd_buf_fini(&text);
    hd_val_unref(val);
}

static void channels_have_the_types_they_were_declared_with(void **unused)
{
    struct hd_graph *graph = read_graph();
    struct hd_val *all = schemas_of(graph, "desk");
    const struct hd_val *state = hd_val_get(all, HD_S("state_schema"));
    const struct hd_val *input = hd_val_get(all, HD_S("input_schema"));
    const struct hd_val *output = hd_val_get(all, HD_S("output_schema"));

    (void)unused;
    assert_json(hd_val_get(all, HD_S("graph_id")), "'desk'");
    assert_json(hd_val_get(state, HD_S("title")), "'A desk'");
    assert_json(hd_val_get(state, HD_S("description")), "'Answers.'");
    assert_json(hd_val_get(state, HD_S("type")), "'object'");
    assert_json(hd_val_get(state, HD_S("properties")),
                "{'messages':{'type':'array','items':{'$ref':'#/$defs/Message'},'default':[]},"
                "'n':{'title':'Count','description':'How many.','type':'number','default':3},"
                "'name':{'type':'string'},'on':{'type':'boolean','default':false},"
                "'data':{'type':'object','default':{}},'notes':{'type':'array'},'free':{}}");
    assert_json(hd_val_get(input, HD_S("properties")),
                "{'messages':{'type':'array','items':{'$ref':'#/$defs/Message'},'default':[]},"
                "'notes':{}}");
    assert_int_equal(hd_val_count(hd_val_get(output, HD_S("properties"))), 2);
    assert_non_null(hd_val_get(hd_val_get(input, HD_S("$defs")), HD_S("Message")));
    assert_json(hd_val_get(all, HD_S("config_schema")),
                "{'type':'object','properties':{'model':{'type':'string'}}}");
    assert_json(hd_val_get(all, HD_S("context_schema")), "null");
    hd_val_unref(all);
    hd_graph_destroy(graph);
}

static void check_list(const struct hd_graph *graph, const char *ns, bool recurse,
                       const char *wanted)
{
    struct hd_val *val = NULL, *names = hd_val_list();
    struct hd_buf out;

    hd_buf_init(&out, 100000);
    assert_err(hd_graph_subgraphs(&out, graph, hd_slice_cstr(ns), recurse), 0);
    assert_int_equal(hd_val_parse_json(hd_buf_slice(&out), &val, NULL), 0);
    for (size_t i = 0; i < hd_val_count(val); i++) {
        struct hd_val *key, *schemas = hd_val_member(val, i, &key);

        names = hd_val_append(names, hd_val_ref(key));
        assert_int_equal(hd_val_count(schemas), 5);
    }
    assert_json(names, wanted);
    hd_val_unref(names);
    hd_val_unref(val);
    hd_buf_fini(&out);
}

static void subgraphs_are_listed_by_namespace(void **unused)
{
    struct hd_graph *graph = read_graph();
    struct hd_buf out;

    (void)unused;
    check_list(graph, "", false, "['outer','twin']");
    check_list(graph, "", true, "['outer','outer|inner','twin','twin|inner']");
    check_list(graph, "outer", false, "['outer']");
    check_list(graph, "outer", true, "['outer','outer|inner']");
    check_list(graph, "twin|inner", false, "['twin|inner']");
    check_list(graph, "twin:0123|inner:4567", true, "['twin|inner']");
    hd_buf_init(&out, 100);
    assert_err(hd_graph_subgraphs(&out, graph, HD_S("plain"), true), HD_ENOTFOUND);
    assert_err(hd_graph_subgraphs(&out, graph, HD_S("outer|none"), true), HD_ENOTFOUND);
    assert_err(hd_graph_subgraphs(&out, graph, HD_S("|"), true), HD_ENOTFOUND);
    assert_err(hd_graph_subgraphs(&out, graph, HD_S(""), true), HD_ELIMIT);
    assert_int_equal(out.len, 0);
    hd_buf_fini(&out);
    hd_graph_destroy(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(channels_have_the_types_they_were_declared_with),
        cmocka_unit_test(subgraphs_are_listed_by_namespace),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
