/* Declarations: refused ones with the path of the faulty member, and the graphs of valid ones. */
#include "graph/decl/graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/check.h"

/* ---- helpers ---------------------------------------------------------- */

/* Texts use ' for ", which would need a backslash in C strings. */
static char *quoted(const char *text)
{
    char *copy = strdup(text);

    assert_non_null(copy);
    for (char *c = copy; *c; c++) {
        if (*c == '\'')
            *c = '"';
    }
    return copy;
}

static int read_graph(const char *text, struct hd_graph **graph, struct hd_graph_error *error)
{
    char *json = quoted(text);
    int err = hd_graph_read(hd_slice_cstr(json), graph, error);

    free(json);
    return err;
}

static struct hd_graph *read_good(const char *text)
{
    struct hd_graph_error error = {0};
    struct hd_graph *graph = NULL;

    if (read_graph(text, &graph, &error) != 0)
        fail_msg("%s\n  refused: %s: %s", text, error.path, error.text);
    return graph;
}

struct bad {
    const char *text;
    const char *path;
    const char *part; /* of the message */
};

static void check_bad(const struct bad *bad)
{
    struct hd_graph_error error = {0};
    struct hd_graph *graph = NULL;
    int err = read_graph(bad->text, &graph, &error);

    if (err == 0) {
        hd_graph_destroy(graph);
        fail_msg("%s\n  was accepted", bad->text);
    }
    if (err != HD_EINVAL || error.code != err || strcmp(error.path, bad->path) != 0 ||
        !strstr(error.text, bad->part))
        fail_msg("%s\n  expected: %s: …%s…\n  got:      %s: %s (%s)", bad->text, bad->path,
                 bad->part, error.path, error.text, hd_error_name(err));
}

/* A declaration with one part under test. */
#define GRAPH(members) "{'name':'g'," members "}"
#define STATE(channels) GRAPH("'state':{" channels "}," NODE_N "," EDGES_N)
#define NODES(nodes, edges) GRAPH(STATE_A ",'nodes':{" nodes "},'edges':[" edges "]")
#define NODE(node) NODES("'n':{" node "}", "['__start__','n']")
#define TWO(edges) NODES("'n':{'kind':'set'},'m':{'kind':'set'}", edges)
#define VALUE(value) NODE("'kind':'set','update':{'a':" value "}")
#define STATE_A \
    "'state':{'a':{},'messages':{'reducer':'messages'},'log':{'reducer':'add','type':'list'}}"
#define NODE_N "'nodes':{'n':{'kind':'set'}}"
#define EDGES_N "'edges':[['__start__','n']]"
#define INNER "'state':{'a':{}},'nodes':{'i':{'kind':'set'}},'edges':[['__start__','i']]"

/* ---- refused ---------------------------------------------------------- */

static const struct bad bad_files[] = {
    {"", "", "the text is empty"},
    {"{", "", "not valid JSON at byte"},
    {"{'name':'g',}", "", "not valid JSON"},
    {"[]", "", "must be an object, not an array"},
    {"null", "", "must be an object, not null"},
    {"{}", "", "needs a member \"state\""},
    {GRAPH("'state':{'a':{}}," EDGES_N), "", "needs a member \"nodes\""},
    {GRAPH(STATE_A "," NODE_N), "", "needs a member \"edges\""},
    {"{" STATE_A "," NODE_N "," EDGES_N "}", "", "needs a member \"name\""},
    {"{'name':''," STATE_A "," NODE_N "," EDGES_N "}", "/name", "must not be empty"},
    {"{'name':'a b'," STATE_A "," NODE_N "," EDGES_N "}", "/name", "letters, digits"},
    {"{'name':7," STATE_A "," NODE_N "," EDGES_N "}", "/name", "must be a string, not a number"},
    {"{'name':'g','name':'g'," STATE_A "," NODE_N "," EDGES_N "}", "/name", "is a duplicate"},
    {GRAPH(STATE_A "," NODE_N "," EDGES_N ",'stat':1"), "/stat",
     "unknown member; did you mean \"state\"?"},
    {GRAPH(STATE_A "," NODE_N "," EDGES_N ",'a/b~c':1"), "/a~1b~0c", "unknown member"},
    {GRAPH(STATE_A "," NODE_N "," EDGES_N ",'description':1"), "/description", "must be a string"},
    {GRAPH(STATE_A "," NODE_N "," EDGES_N ",'title':[]"), "/title", "must be a string"},
    {GRAPH(STATE_A "," NODE_N "," EDGES_N ",'config_schema':[]"), "/config_schema",
     "must be a JSON Schema"},
    {GRAPH(STATE_A "," NODE_N "," EDGES_N ",'context_schema':{'type':'string'}"),
     "/context_schema/type", "must be \"object\""},
    {GRAPH("'state':{'a':{'title':1}}," NODE_N "," EDGES_N), "/state/a/title", "must be a string"},
    {GRAPH("'state':{'a':{'description':null}}," NODE_N "," EDGES_N), "/state/a/description",
     "must be a string"},
    {GRAPH(STATE_A "," NODE_N "," EDGES_N ",'recursion_limit':0"), "/recursion_limit",
     "must be from 1 to 10000"},
    {GRAPH(STATE_A "," NODE_N "," EDGES_N ",'recursion_limit':10001"), "/recursion_limit",
     "must be from 1 to 10000"},
    {GRAPH(STATE_A "," NODE_N "," EDGES_N ",'recursion_limit':2.5"), "/recursion_limit",
     "must be an integer"},
    {GRAPH(STATE_A "," NODE_N "," EDGES_N ",'recursion_limit':'many'"), "/recursion_limit",
     "must be an integer, not a string"},
    {GRAPH(STATE_A "," NODE_N "," EDGES_N ",'input':['b']"), "/input/0", "unknown channel \"b\""},
    {GRAPH(STATE_A "," NODE_N "," EDGES_N ",'input':[]"), "/input", "must not be empty"},
    {GRAPH(STATE_A "," NODE_N "," EDGES_N ",'output':['a','a']"), "/output/1", "is a duplicate"},
    {GRAPH(STATE_A "," NODE_N "," EDGES_N ",'output':'a'"), "/output",
     "must be a list of channels"},
    {GRAPH(STATE_A "," NODE_N "," EDGES_N ",'interrupt_before':'n'"), "/interrupt_before",
     "must be a list of nodes, or \"*\""},
    {GRAPH(STATE_A "," NODE_N "," EDGES_N ",'interrupt_after':['x']"), "/interrupt_after/0",
     "unknown node \"x\""},
    {GRAPH(STATE_A "," NODE_N "," EDGES_N ",'interrupt_before':['__start__']"),
     "/interrupt_before/0", "must not be \"__start__\""},
};

static const struct bad bad_channels[] = {
    {GRAPH("'state':{}," NODE_N "," EDGES_N), "/state", "needs at least one channel"},
    {GRAPH("'state':[]," NODE_N "," EDGES_N), "/state", "must be an object of channels"},
    {STATE("'a':1"), "/state/a", "must be an object, not a number"},
    {STATE("'':{}"), "/state/", "must not be empty"},
    {STATE("'__start__':{}"), "/state/__start__", "reserved"},
    {STATE("'__x':{}"), "/state/__x", "reserved"},
    {STATE("'a:b':{}"), "/state/a:b", "must not contain '|' or ':'"},
    {STATE("'a|b':{}"), "/state/a|b", "must not contain '|' or ':'"},
    {STATE("'@a':{}"), "/state/@a", "must not begin with '@' or '$'"},
    {STATE("'$':{}"), "/state/$", "must not begin with '@' or '$'"},
    {STATE("'a\\u0007':{}"), "/state/a?", "control characters"},
    {STATE("'a':{},'a':{}"), "/state/a", "is a duplicate"},
    {STATE("'a':{'reduce':'add'}"), "/state/a/reduce", "did you mean \"reducer\"?"},
    {STATE("'a':{'reducer':'lst'}"), "/state/a/reducer",
     "unknown reducer \"lst\"; did you mean \"last\"?"},
    {STATE("'a':{'reducer':1}"), "/state/a/reducer", "must be the name of a reducer"},
    {STATE("'a':{'type':'int'}"), "/state/a/type", "unknown type \"int\""},
    {STATE("'a':{'type':['list']}"), "/state/a/type", "must be the name of a type"},
    {STATE("'a':{'reducer':'add'}"), "/state/a", "reducer \"add\" needs a \"type\""},
    {STATE("'a':{'reducer':'max'}"), "/state/a", "reducer \"max\" needs a \"type\""},
    {STATE("'a':{'reducer':'add','type':'object'}"), "/state/a/type",
     "does not work on type \"object\""},
    {STATE("'a':{'reducer':'merge','type':'list'}"), "/state/a/type", "does not work"},
    {STATE("'a':{'reducer':'messages','type':'string'}"), "/state/a/type", "does not work"},
    {STATE("'a':{'type':'number','default':'0'}"), "/state/a/default",
     "must be of the channel's type, number, not a string"},
    {STATE("'a':{'reducer':'messages','default':[{'role':'nobody'}]}"), "/state/a/default/0", ""},
    {STATE("'a':{'default':{'$':'message','type':'human'}}"), "/state/a/default", ""},
    {STATE("'a':{'reducer':'topic','default':[]}"), "/state/a/default", "has no default"},
    {STATE("'a':{'accumulate':true}"), "/state/a/accumulate", "only a topic accumulates"},
    {STATE("'a':{'reducer':'topic','accumulate':1}"), "/state/a/accumulate",
     "must be true or false"},
};

static const struct bad bad_nodes[] = {
    {GRAPH(STATE_A ",'nodes':{}," EDGES_N), "/nodes", "needs at least one node"},
    {GRAPH(STATE_A ",'nodes':[]," EDGES_N), "/nodes", "must be an object of nodes"},
    {NODES("'n':1", "['__start__','n']"), "/nodes/n", "must be an object"},
    {NODES("'__end__':{'kind':'set'}", ""), "/nodes/__end__", "reserved"},
    {NODES("'a':{'kind':'set'}", ""), "/nodes/a", "a node and a channel must not have the same"},
    {NODES("'x:y':{'kind':'set'}", ""), "/nodes/x:y", "must not contain"},
    {NODE(""), "/nodes/n", "needs a member \"kind\""},
    {NODE("'kind':'sett'"), "/nodes/n/kind", "unknown kind \"sett\"; did you mean \"set\"?"},
    {NODE("'kind':1"), "/nodes/n/kind", "must be the name of a kind"},
    {NODE("'kind':'set','updat':{}"), "/nodes/n/updat", "did you mean \"update\"?"},
    {NODE("'kind':'set','defer':'yes'"), "/nodes/n/defer", "must be true or false, not a string"},
    {NODE("'kind':'set','input':['zz']"), "/nodes/n/input/0", "unknown channel \"zz\""},
    {NODE("'kind':'set','input':'a'"), "/nodes/n/input", "must be a list of channels"},
    {NODE("'kind':'set','input':['log'],'update':{'a':'{{a}}'}"), "/nodes/n/update/a",
     "is not among the node's \"input\""},
    {NODE("'kind':'set','tags':[1]"), "/nodes/n/tags/0", "must be a string"},
    {NODE("'kind':'set','metadata':[]"), "/nodes/n/metadata", "must be an object"},
    {NODE("'kind':'set','timeout_ms':0"), "/nodes/n/timeout_ms", "must be from 1 to"},
    {NODE("'kind':'set','retry':{}"), "/nodes/n/retry", "needs a member \"attempts\""},
    {NODE("'kind':'set','retry':{'attempts':101}"), "/nodes/n/retry/attempts", "from 1 to 100"},
    {NODE("'kind':'set','retry':{'attempts':2,'backoff':0.5}"), "/nodes/n/retry/backoff",
     "must be from 1 to 100"},
    {NODE("'kind':'set','retry':{'attempts':2,'on':'ValueError'}"), "/nodes/n/retry/on",
     "must be a list of strings"},
    {NODE("'kind':'set','emit':{}"), "/nodes/n/emit", "must be a list of values"},
    {NODE("'kind':'set','destinations':['n']"), "/nodes/n/destinations", "only a node whose"},
    {NODE("'kind':'set','goto':'{{a}}','destinations':['x']"), "/nodes/n/destinations/0",
     "unknown node \"x\""},
    {NODE("'kind':'set','goto':'{{a}}','destinations':{'n':1}"), "/nodes/n/destinations/n",
     "must be a label"},
    {NODE("'kind':'set','update':[]"), "/nodes/n/update", "must be an object of channels"},
    {NODE("'kind':'set','update':{'b':1}"), "/nodes/n/update/b", "unknown channel \"b\""},
    {NODE("'kind':'set','update':{'n':1}"), "/nodes/n/update/n", "unknown channel \"n\""},
    {NODE("'kind':'set','goto':'x'"), "/nodes/n/goto", "unknown node \"x\""},
    {NODE("'kind':'set','goto':['n','y']"), "/nodes/n/goto", "unknown node \"y\""},
    {NODE("'kind':'set','goto':7"), "/nodes/n/goto", "must be a node, a list of nodes, or sends"},
    {NODE("'kind':'set','goto':[]"), "/nodes/n/goto", "must be a node, a list of nodes, or sends"},
    {NODE("'kind':'set','goto':'__start__'"), "/nodes/n/goto", "must not be \"__start__\""},
    {NODE("'kind':'set','goto':{'@if':['{{a}}','__end__','nn']}"), "/nodes/n/goto",
     "unknown node \"nn\""},
    {NODE("'kind':'set','goto':{'@send':{'node':'__end__'}}"), "/nodes/n/goto",
     "must not be \"__end__\""},
    {NODE("'kind':'set','graph':'parent','goto':'n'"), "/nodes/n/graph", "has no parent"},
    {NODE("'kind':'set','graph':'other'"), "/nodes/n/graph", "can only be \"parent\""},
    {NODE("'kind':'script'"), "/nodes/n", "needs a member \"replies\""},
    {NODE("'kind':'script','replies':[]"), "/nodes/n/replies", "from 1 to 1000 replies"},
    {NODE("'kind':'script','replise':[]"), "/nodes/n/replise", "did you mean \"replies\"?"},
    {NODE("'kind':'script','replies':[{}]"), "/nodes/n/replies/0", "needs \"content\""},
    {NODE("'kind':'script','replies':[{'content':'x'},{'content':'y'}]"), "/nodes/n/replies/1",
     "is never used"},
    {NODE("'kind':'script','replies':[{'content':'x','times':0}]"), "/nodes/n/replies/0/times",
     "must be from 1"},
    {NODE("'kind':'script','replies':[{'content':'x','delay_ms':-1}]"),
     "/nodes/n/replies/0/delay_ms", "must be from 0"},
    {NODE("'kind':'script','replies':[{'content':'x','usage':{'tokens':1}}]"),
     "/nodes/n/replies/0/usage/tokens", "unknown member"},
    {NODE("'kind':'script','replies':[{'tool_calls':{'name':'x'}}]"),
     "/nodes/n/replies/0/tool_calls", "must be a list of tool calls"},
    {NODE("'kind':'script','replies':[{'tool_calls':[{'args':{}}]}]"),
     "/nodes/n/replies/0/tool_calls/0", "needs a member \"name\""},
    {NODE("'kind':'script','replies':[{'tool_calls':[{'name':'t','args':[]}]}]"),
     "/nodes/n/replies/0/tool_calls/0/args", "must be an object"},
    {NODE("'kind':'script','replies':[{'content':'x'}],'channel':'log'"), "/nodes/n/channel",
     "needs the reducer \"messages\""},
    {NODE("'kind':'script','replies':[{'content':'x'}],'stream':{'by':'line'}"),
     "/nodes/n/stream/by", "must be \"word\", \"character\" or a number"},
    {GRAPH("'state':{'a':{}},'nodes':{'n':{'kind':'script','replies':[{'content':'x'}]}}," EDGES_N),
     "/nodes/n", "there is no channel \"messages\""},
    {NODE("'kind':'interrupt'"), "/nodes/n", "needs a member \"ask\""},
    {NODE("'kind':'interrupt','ask':[]"), "/nodes/n/ask", "must have from 1 to 100 elements"},
    {NODE("'kind':'interrupt','ask':'why?'"), "/nodes/n/ask", "must be a list of values"},
    {NODE("'kind':'branch'"), "/nodes/n", "needs a member \"routes\""},
    {NODE("'kind':'branch','routes':[]"), "/nodes/n/routes", "from 1 to 1000 routes"},
    {NODE("'kind':'branch','routes':[{'when':true}]"), "/nodes/n/routes/0",
     "needs a member \"to\""},
    {NODE("'kind':'branch','routes':[{'to':'n'},{'to':'__end__'}]"), "/nodes/n/routes/1",
     "is never taken"},
    {NODE("'kind':'branch','routes':[{'to':[]}]"), "/nodes/n/routes/0/to", "a node or a list"},
    {NODE("'kind':'branch','routes':[{'to':['n','n']}]"), "/nodes/n/routes/0/to/1",
     "is a duplicate"},
    {NODE("'kind':'branch','routes':[{'to':'k'}]"), "/nodes/n/routes/0/to", "unknown node \"k\""},
    {NODE("'kind':'fanout','to':'n'"), "/nodes/n", "needs a member \"over\""},
    {NODE("'kind':'fanout','over':'{{log}}','to':'__end__'"), "/nodes/n/to",
     "must not be \"__end__\""},
    {NODE("'kind':'fanout','over':'{{log}}','to':'n','as':'an item'"), "/nodes/n/as",
     "must be a name of letters"},
    {NODE("'kind':'fanout','over':'{{item}}','to':'m','arg':1"), "/nodes/n/to", "unknown node"},
    {NODE("'kind':'subgraph'"), "/nodes/n", "needs a member \"graph\""},
    {NODE("'kind':'subgraph','graph':'x'"), "/nodes/n/graph", "unknown graph \"x\""},
    {NODE("'kind':'sleep'"), "/nodes/n", "needs a member \"ms\""},
    {NODE("'kind':'sleep','ms':-5"), "/nodes/n/ms", "must be from 0"},
    {NODE("'kind':'sleep','ms':true"), "/nodes/n/ms", "must be an integer, not a boolean"},
    {NODE("'kind':'fail'"), "/nodes/n", "needs a member \"error\""},
    {NODE("'kind':'fail','error':'x','times':0"), "/nodes/n/times", "must be from 1"},
    {NODE("'kind':'http'"), "/nodes/n", "needs a member \"url\""},
    {NODE("'kind':'http','url':'ftp://x'"), "/nodes/n/url", "must begin with http"},
    {NODE("'kind':'http','url':1"), "/nodes/n/url", "must be a URL"},
    {NODE("'kind':'http','url':'http://x','method':'get'"), "/nodes/n/method", "must be GET"},
    {NODE("'kind':'http','url':'http://x','headers':{'a b':'c'}"), "/nodes/n/headers/a b",
     "is not a valid header name"},
    {NODE("'kind':'http','url':'http://x','headers':[]"), "/nodes/n/headers", "must be an object"},
    {NODE("'kind':'http','url':'http://x','body':'{{response.body}}'"), "/nodes/n/body",
     "\"response\" is neither a channel"},
};

static const struct bad bad_edges[] = {
    {GRAPH(STATE_A "," NODE_N ",'edges':{}"), "/edges", "must be a list of edges"},
    {GRAPH(STATE_A "," NODE_N ",'edges':[]"), "/edges", "needs an edge from \"__start__\""},
    {TWO("['__start__','n'],'m'"), "/edges/1", "must be a list of two nodes or an object"},
    {TWO("['__start__','n'],['n']"), "/edges/1", "must have two elements"},
    {TWO("['__start__','n'],['n','m',1]"), "/edges/1", "must have two elements"},
    {TWO("['__start__','n'],['n','x']"), "/edges/1/1", "unknown node \"x\""},
    {TWO("['__start__','n'],['x','n']"), "/edges/1/0", "unknown node \"x\""},
    {TWO("['__start__','n'],['n',1]"), "/edges/1/1", "must be the name of a node"},
    {TWO("['__start__','n'],['__end__','n']"), "/edges/1/0", "\"__end__\" has no outgoing edges"},
    {TWO("['__start__','n'],['n','__start__']"), "/edges/1/1", "must not be \"__start__\""},
    {TWO("['__start__','n'],['n','m'],['n','m']"), "/edges/2", "the edge is a duplicate"},
    {TWO("['__start__','n'],['n','m'],['m','__end__'],['m','__end__']"), "/edges/3",
     "the edge is a duplicate"},
    {TWO("['__start__','n'],{'from':'n'}"), "/edges/1", "needs one of \"to\", \"routes\""},
    {TWO("['__start__','n'],{'to':'n'}"), "/edges/1", "needs a member \"from\""},
    {TWO("['__start__','n'],{'from':'n','to':'m','routes':[]}"), "/edges/1", "needs one of"},
    {TWO("['__start__','n'],{'from':'n','too':'m'}"), "/edges/1/too", "did you mean \"to\"?"},
    {TWO("['__start__','n'],{'from':['n','m'],'routes':[{'to':'m'}]}"), "/edges/1/from",
     "has one source node"},
    {TWO("['__start__','n'],{'from':[],'to':'m'}"), "/edges/1/from", "must not be empty"},
    {TWO("['__start__','n'],{'from':['n','n'],'to':'m'}"), "/edges/1/from/1", "is a duplicate"},
    {TWO("['__start__','n'],{'from':['__start__','n'],'to':'m'}"), "/edges/1/from/0",
     "must not be \"__start__\""},
    {NODES("'n':{'kind':'set'},'m':{'kind':'set'},'o':{'kind':'set'}",
           "['__start__','n'],['__start__','m'],{'from':['n','m'],'to':'o'},"
           "{'from':['n','m'],'to':'o'}"),
     "/edges/3", "the edge is a duplicate"},
    {TWO("['__start__','n'],{'from':'n','routes':{}}"), "/edges/1/routes", "a list of routes"},
    {TWO("['__start__','n'],{'from':'n','routes':[{'to':'m','wen':1}]}"), "/edges/1/routes/0/wen",
     "did you mean \"when\"?"},
    {TWO("['__start__','n'],{'from':'n','routes':[{'when':'{{b}}','to':'m'}]}"),
     "/edges/1/routes/0/when", "\"b\" is neither a channel"},
    {TWO("['__start__','n'],{'from':'n','fanout':{'over':[1]}}"), "/edges/1/fanout",
     "needs a member \"to\""},
    {TWO("['__start__','n'],{'from':'n','fanout':{'over':[1],'to':'m','with':1}}"),
     "/edges/1/fanout/with", "unknown member"},
    {TWO("{'from':'__start__','routes':[{'when':'{{x}}','to':'n'},{'to':'m'}]}"),
     "/edges/0/routes/0/when", "\"x\" is neither a channel"},
    {TWO("['__start__','n']"), "/nodes/m", "cannot be reached from \"__start__\""},
    {NODES("'n':{'kind':'set'},'m':{'kind':'set'},'o':{'kind':'set'}",
           "['__start__','n'],{'from':['n','m'],'to':'o'},['o','m']"),
     "/nodes/m", "cannot be reached"},
    {TWO("['__start__','n'],['n','m'],['m','n']"), "/nodes/n", "never ends"},
    {TWO("['__start__','n'],['n','m'],['m','m']"), "/nodes/n", "\"recursion_limit\""},
    {NODE("'kind':'set','goto':'n'"), "/nodes/n", "never ends"},
    {NODE("'kind':'branch','routes':[{'when':'{{a}}','to':'n'},{'to':'n'}]"), "/nodes/n",
     "never ends"},
};

/* Values, as updates of a channel. */
static const struct bad bad_values[] = {
    {VALUE("'{{b}}'"), "/nodes/n/update/a", "\"b\" is neither a channel nor another known name"},
    {VALUE("'{{mesages}}'"), "/nodes/n/update/a", "did you mean \"messages\"?"},
    {VALUE("'x {{log'"), "/nodes/n/update/a", "\"{{\" is not closed"},
    {VALUE("'{{}}'"), "/nodes/n/update/a", "a name is missing in path \"\""},
    {VALUE("'{{a.}}'"), "/nodes/n/update/a", "a name is missing in path \"a.\""},
    {VALUE("'{{a[}}'"), "/nodes/n/update/a", "a bracket is not closed"},
    {VALUE("'{{a[x]}}'"), "/nodes/n/update/a", "an index or a quoted name is missing"},
    {VALUE("'{{a[1}}'"), "/nodes/n/update/a", "a bracket is not closed"},
    {VALUE("'{{a[1234567890123456]}}'"), "/nodes/n/update/a", "an index is too large"},
    {VALUE("'{{[1].a}}'"), "/nodes/n/update/a", "an index is not allowed first"},
    {VALUE("'{{a b}}'"), "/nodes/n/update/a", "an unexpected character"},
    {VALUE("'{{{a}}}'"), "/nodes/n/update/a", "an unexpected character"},
    {VALUE("'{{a}b}}'"), "/nodes/n/update/a", "an unexpected character"},
    {VALUE("'{{answers[0]}}'"), "/nodes/n/update/a", "\"answers\" is neither a channel"},
    {VALUE("{'@nope':1}"), "/nodes/n/update/a/@nope", "unknown call"},
    {VALUE("{'@uper':'x'}"), "/nodes/n/update/a/@uper", "did you mean \"@upper\"?"},
    {VALUE("{'@eq':[1,2],'b':1}"), "/nodes/n/update/a/@eq", "must be the only member"},
    {VALUE("{'@eq':[1]}"), "/nodes/n/update/a/@eq", "@eq takes 2 arguments, not 1"},
    {VALUE("{'@eq':1}"), "/nodes/n/update/a/@eq", "@eq takes a list of arguments, not a number"},
    {VALUE("{'@if':[1,2,3,4]}"), "/nodes/n/update/a/@if", "@if takes 2 to 3 arguments, not 4"},
    {VALUE("{'@add':[]}"), "/nodes/n/update/a/@add", "@add takes at least 1 argument, not 0"},
    {VALUE("{'@map':[1]}"), "/nodes/n/update/a/@map", "must be an object"},
    {VALUE("{'@map':{'over':[1]}}"), "/nodes/n/update/a/@map", "needs a member \"value\""},
    {VALUE("{'@filter':{'over':[1],'value':1}}"), "/nodes/n/update/a/@filter/value",
     "unknown member"},
    {VALUE("{'@map':{'over':[1],'as':'1x','value':1}}"), "/nodes/n/update/a/@map/as",
     "must be a name of letters"},
    {VALUE("{'@map':{'over':'{{item}}','value':1}}"), "/nodes/n/update/a/@map/over",
     "\"item\" is neither a channel"},
    {VALUE("{'@map':{'over':[1],'as':'x','value':'{{item}}'}}"), "/nodes/n/update/a/@map/value",
     "\"item\" is neither a channel"},
    {VALUE("{'@exists':1}"), "/nodes/n/update/a/@exists", "@exists takes a path, not a number"},
    {VALUE("{'@tool':'x'}"), "/nodes/n/update/a/@tool", "@tool takes an object"},
    {VALUE("{'@tool':{'content':'x'}}"), "/nodes/n/update/a/@tool",
     "@tool needs a member \"tool_call_id\""},
    {VALUE("{'@ai':{'content':'x','toolcalls':[]}}"), "/nodes/n/update/a/@ai/toolcalls",
     "did you mean \"tool_calls\"?"},
    {VALUE("{'@send':{'arg':1}}"), "/nodes/n/update/a/@send", "@send needs a member \"node\""},
    {VALUE("{'$':'message','type':'human'}"), "/nodes/n/update/a", "not a valid record"},
    {VALUE("{'$':'overwrit','value':'{{a}}'}"), "/nodes/n/update/a/$",
     "unknown kind of record; did you mean \"overwrite\"?"},
    {VALUE("{'b':'{{a}}','$':'send'}"), "/nodes/n/update/a/$", "must be the first member"},
    {VALUE("{'b':1,'b':2}"), "/nodes/n/update/a/b", "is a duplicate"},
};

static const struct bad bad_graphs[] = {
    {NODES("'n':{'kind':'subgraph','graph':'i'}", "['__start__','n']"), "/nodes/n/graph",
     "unknown graph"},
    {GRAPH(STATE_A "," NODE_N "," EDGES_N ",'graphs':[]"), "/graphs", "an object of graphs"},
    {GRAPH(STATE_A "," NODE_N "," EDGES_N ",'graphs':{'a b':{}}"), "/graphs/a b",
     "letters, digits"},
    {GRAPH(STATE_A "," NODE_N "," EDGES_N ",'graphs':{'i':{" INNER "}}"), "/graphs/i",
     "no node runs this graph"},
    {GRAPH(STATE_A ",'nodes':{'n':{'kind':'subgraph','graph':'i'}}," EDGES_N
                   ",'graphs':{'i':{'state':{'a':{}}}}"),
     "/graphs/i", "needs a member \"nodes\""},
    {GRAPH(STATE_A ",'nodes':{'n':{'kind':'subgraph','graph':'i'}}," EDGES_N
                   ",'graphs':{'i':{'state':{'b':{}}," NODE_N "," EDGES_N "}}"),
     "/nodes/n", "graph \"i\" shares no channel with this graph"},
    {GRAPH(STATE_A ",'nodes':{'n':{'kind':'subgraph','graph':'i','input':{'c':1}}}," EDGES_N
                   ",'graphs':{'i':{" INNER "}}"),
     "/nodes/n/input/c", "unknown channel \"c\""},
    {GRAPH(STATE_A ",'nodes':{'n':{'kind':'subgraph','graph':'i','input':7}}," EDGES_N
                   ",'graphs':{'i':{" INNER "}}"),
     "/nodes/n/input", "must be an object of channels"},
    {GRAPH(STATE_A ",'nodes':{'n':{'kind':'subgraph','graph':'i','memory':'all'}}," EDGES_N
                   ",'graphs':{'i':{" INNER "}}"),
     "/nodes/n/memory", "\"inherit\", \"own\" or \"none\""},
    {GRAPH(STATE_A ",'nodes':{'n':{'kind':'subgraph','graph':'i'}}," EDGES_N
                   ",'graphs':{'i':{'state':{'a':{}},'nodes':{'k':{'kind':'subgraph','graph':'i'}},"
                   "'edges':[['__start__','k']]}}"),
     "/graphs/i/nodes/k/graph", "graph \"i\" would run itself"},
    {GRAPH(STATE_A ",'nodes':{'n':{'kind':'subgraph','graph':'i'}}," EDGES_N
                   ",'graphs':{'i':{'state':{'a':{}},'nodes':{'k':{'kind':'subgraph','graph':'j'}},"
                   "'edges':[['__start__','k']]},'j':{'state':{'a':{}},"
                   "'nodes':{'l':{'kind':'subgraph','graph':'i'}},'edges':[['__start__','l']]}}"),
     "/graphs/i/nodes/k/graph", "would run itself"},
    {GRAPH(STATE_A ",'nodes':{'n':{'kind':'subgraph','graph':'i'}}," EDGES_N
                   ",'graphs':{'i':{'state':{'a':{}},'nodes':{'k':{'kind':'set','graph':'parent',"
                   "'goto':'zz'}},'edges':[['__start__','k']]}}"),
     "/graphs/i/nodes/k/goto", "unknown node \"zz\""},
    {GRAPH(STATE_A ",'nodes':{'n':{'kind':'subgraph','graph':'i'}}," EDGES_N
                   ",'graphs':{'i':{'state':{'a':{}},'nodes':{'k':{'kind':'set','graph':'parent',"
                   "'update':{'zz':1}}},'edges':[['__start__','k']]}}"),
     "/graphs/i/nodes/k/update/zz", "unknown channel \"zz\""},
    {GRAPH(STATE_A ",'nodes':{'n':{'kind':'subgraph','graph':'i'}}," EDGES_N
                   ",'graphs':{'i':{" INNER ",'nodes':{}}}"),
     "/graphs/i/nodes", "is a duplicate"},
    {GRAPH(STATE_A
           ",'nodes':{'n':{'kind':'subgraph','graph':'i'}}," EDGES_N
           ",'graphs':{'i':{'state':{'a':{}},'nodes':{'k':{'kind':'set'},'l':{'kind':'set'}}"
           ",'edges':[['__start__','k']]}}"),
     "/graphs/i/nodes/l", "cannot be reached"},
};

#define REFUSES(what)                                     \
    static void what##_are_refused(void **state)          \
    {                                                     \
        (void)state;                                      \
        for (size_t i = 0; i < HD_COUNT(bad_##what); i++) \
            check_bad(&bad_##what[i]);                    \
    }

REFUSES(files)
REFUSES(channels)
REFUSES(nodes)
REFUSES(edges)
REFUSES(values)
REFUSES(graphs)

/* ---- too large -------------------------------------------------------- */

/* `count` times `part`, formatted with its number, between head and tail. */
static char *repeat(const char *head, const char *part, int count, const char *tail)
{
    size_t size = strlen(head) + strlen(tail) + (size_t)count * (strlen(part) + 32) + 1;
    char *text = malloc(size), *pos = text;

    assert_non_null(text);
    pos += snprintf(pos, size, "%s", head);
    for (int i = 0; i < count; i++) {
        for (const char *c = part; *c; c++) {
            if (*c == '#')
                pos += snprintf(pos, size - (size_t)(pos - text), "%d", i);
            else
                *pos++ = *c;
        }
    }
    (void)snprintf(pos, size - (size_t)(pos - text), "%s", tail);
    return text;
}

static void check_large(char *text, int code, const char *path, const char *part)
{
    struct hd_graph_error error = {0};
    struct hd_graph *graph = NULL;
    int err = read_graph(text, &graph, &error);

    free(text);
    if (err == 0)
        hd_graph_destroy(graph);
    assert_err(err, code);
    assert_string_equal(error.path, path);
    if (!strstr(error.text, part))
        fail_msg("expected %s, got %s", part, error.text);
}

static void oversized_input_is_refused(void **state)
{
    (void)state;
    check_large(repeat("{'name':'", "x", (1 << 20) - 10, "'}"), HD_ELIMIT, "",
                "at most 1048576 bytes");
    check_large(
        repeat("{'name':'g','state':{", "'c#':{},", 1000, "'z':{}}," NODE_N "," EDGES_N "}"),
        HD_EINVAL, "/state", "at most 1000 channels");
    check_large(repeat("{'name':'g'," STATE_A "," EDGES_N ",'nodes':{", "'n#':{'kind':'set'},",
                       1000, "'n':{'kind':'set'}}}"),
                HD_EINVAL, "/nodes", "at most 1000 nodes");
    check_large(repeat("{'name':'", "x", 65, "'," STATE_A "," NODE_N "," EDGES_N "}"), HD_EINVAL,
                "/name", "not be longer than 64 bytes");
    check_large(
        repeat("{'name':'g'," STATE_A "," NODE_N "," EDGES_N ",'graphs':{'", "x", 65, "':{}}}"),
        HD_EINVAL, "/graphs/xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
        "1 to 64 letters");
}

static void deep_nesting_is_refused(void **state)
{
    struct hd_graph_error error;
    struct hd_graph *graph;
    char text[4096], *json;
    size_t len = 0;

    (void)state;
    len = (size_t)snprintf(text, sizeof(text),
                           "{'name':'g'," STATE_A "," EDGES_N
                           ",'nodes':{'n':{'kind':'set','update':{'a':");
    for (int i = 0; i < 70; i++)
        len += (size_t)snprintf(text + len, sizeof(text) - len, "{'@not':");
    len += (size_t)snprintf(text + len, sizeof(text) - len, "1");
    for (int i = 0; i < 73; i++)
        text[len++] = '}';
    text[len++] = '}';
    text[len] = '\0';
    json = quoted(text);
    assert_err(hd_graph_read(hd_slice_cstr(json), &graph, &error), HD_EINVAL);
    free(json);
    assert_non_null(strstr(error.text, "at most 64 levels"));
    assert_true(strncmp(error.path, "/nodes/n/update/a/@not/@not", 27) == 0);
    check_large(repeat("", "[", 600, ""), HD_EINVAL, "", "not valid JSON");
}

/* subgraphs nested in each other */
static char *nested_graphs(int levels)
{
    size_t size = (size_t)levels * 200 + 400;
    char *text = malloc(size), *pos = text;

    assert_non_null(text);
    pos += snprintf(pos, size, "{'name':'g'");
    for (int i = 1; i < levels; i++)
        pos += snprintf(pos, size - (size_t)(pos - text),
                        ",'state':{'a':{}},'nodes':{'n':{'kind':'subgraph','graph':'i'}},"
                        "'edges':[['__start__','n']],'graphs':{'i':{'description':''");
    pos += snprintf(pos, size - (size_t)(pos - text), "," INNER "}");
    for (int i = 1; i < levels; i++)
        pos += snprintf(pos, size - (size_t)(pos - text), "}}");
    return text;
}

/* g0 runs g1, which runs g2, …; all are declared at the same level. */
static char *chained_graphs(int levels)
{
    size_t size = (size_t)levels * 200 + 400;
    char *text = malloc(size), *pos = text;

    assert_non_null(text);
    pos += snprintf(pos, size,
                    "{'name':'g','state':{'a':{}},'nodes':{'n':{'kind':'subgraph',"
                    "'graph':'g1'}},'edges':[['__start__','n']],'graphs':{");
    for (int i = 1; i < levels - 1; i++)
        pos += snprintf(pos, size - (size_t)(pos - text),
                        "'g%d':{'state':{'a':{}},'nodes':{'n':{'kind':'subgraph','graph':'g%d'}},"
                        "'edges':[['__start__','n']]},",
                        i, i + 1);
    (void)snprintf(pos, size - (size_t)(pos - text), "'g%d':{" INNER "}}}", levels - 1);
    return text;
}

static void graphs_are_nested_sixteen_levels_deep(void **state)
{
    struct hd_graph_error error;
    struct hd_graph *graph;
    char *text;

    (void)state;
    text = nested_graphs(16);
    hd_graph_destroy(read_good(text));
    free(text);
    text = nested_graphs(17);
    assert_err(read_graph(text, &graph, &error), HD_EINVAL);
    assert_non_null(strstr(error.text, "at most 16 levels"));
    free(text);
    text = chained_graphs(16);
    hd_graph_destroy(read_good(text));
    free(text);
    text = chained_graphs(17);
    assert_err(read_graph(text, &graph, &error), HD_EINVAL);
    assert_non_null(strstr(error.text, "at most 16 levels"));
    free(text);
}

static void a_long_path_keeps_its_end(void **state)
{
    char *text = repeat("{'name':'g'," STATE_A "," NODE_N "," EDGES_N ",'", "long", 300, "end':1}");
    struct hd_graph_error error;
    struct hd_graph *graph;

    (void)state;
    assert_err(read_graph(text, &graph, &error), HD_EINVAL);
    assert_true(strncmp(error.path, "...", 3) == 0);
    assert_string_equal(error.path + strlen(error.path) - 7, "longend");
    free(text);
}

/* ---- accepted --------------------------------------------------------- */

static struct hd_slice channel_name(const struct hd_graph *graph, size_t index)
{
    assert_true(index < graph->channel_count);
    return graph->channels[index].name;
}

static void channels_are_those_of_langgraph(void **state)
{
    struct hd_graph *graph = read_good(
        GRAPH("'state':{'b':{'type':'number','reducer':'add'},'a':{}},"
              "'nodes':{'y':{'kind':'set'},'x':{'kind':'set'},'z':{'kind':'set','defer':true}},"
              "'edges':[['__start__','y'],['__start__','x'],{'from':['y','x'],'to':'z'}]"));
    const char *expected[] = {"b",           "a",           "__start__",   "__pregel_tasks",
                              "branch:to:y", "branch:to:x", "branch:to:z", "join:y+x:z"};
    const struct hd_node *z = &graph->nodes[3];

    (void)state;
    assert_int_equal(graph->channel_count, HD_COUNT(expected));
    for (size_t i = 0; i < HD_COUNT(expected); i++)
        assert_slice(channel_name(graph, i), hd_slice_cstr(expected[i]));
    assert_int_equal(graph->state_count, 2);
    assert_int_equal(graph->start_channel, 2);
    assert_int_equal(graph->tasks_channel, 3);
    assert_int_equal(graph->channels[4].reducer, HD_REDUCE_TRIGGER);
    assert_int_equal(graph->channels[6].reducer, HD_REDUCE_TRIGGER_AFTER);
    assert_int_equal(graph->channels[7].reducer, HD_REDUCE_BARRIER_AFTER);
    assert_int_equal(graph->channels[7].source_count, 2);
    assert_int_equal(z->trigger_count, 2);
    assert_int_equal(z->triggers[0], 6);
    assert_int_equal(z->triggers[1], 7);
    assert_int_equal(graph->nodes[HD_GRAPH_START].write_count, 2);
    assert_int_equal(graph->nodes[1].writes[0], 7);
    hd_graph_destroy(graph);
}

static void check_initial(const struct hd_graph *graph, const char *channel, const char *expected)
{
    size_t index = hd_graph_find_channel(graph, hd_slice_cstr(channel));
    struct hd_buf text;

    assert_true(index != HD_GRAPH_END);
    if (!expected) {
        assert_null(graph->channels[index].initial);
        return;
    }
    hd_buf_init(&text, 1000);
    assert_err(hd_val_write(&text, graph->channels[index].initial), 0);
    assert_slice(hd_buf_slice(&text), hd_slice_cstr(expected));
    hd_buf_fini(&text);
}

static void channels_begin_with_the_default_of_their_type(void **state)
{
    struct hd_graph *graph = read_good(
        GRAPH("'state':{'last':{'type':'number'},'seven':{'default':7},'nothing':{'default':null},"
              "'sum':{'reducer':'add','type':'number'},'text':{'reducer':'add','type':'string'},"
              "'list':{'reducer':'add','type':'list','default':[1]},'all':{'reducer':'and','"
              "default':true},"
              "'some':{'reducer':'or'},'object':{'reducer':'merge'},'chat':{'reducer':'messages'},"
              "'hello':{'reducer':'messages','default':[{'role':'user','content':'hi'},"
              "{'$':'message','type':'ai','content':'ho'}]},"
              "'topic':{'reducer':'topic','accumulate':true}}," NODE_N "," EDGES_N));

    (void)state;
    check_initial(graph, "last", NULL);
    check_initial(graph, "seven", "7");
    check_initial(graph, "nothing", "null");
    check_initial(graph, "sum", "0");
    check_initial(graph, "text", "\"\"");
    check_initial(graph, "list", "[1]");
    check_initial(graph, "all", "true");
    check_initial(graph, "some", "false");
    check_initial(graph, "object", "{}");
    check_initial(graph, "chat", "[]");
    check_initial(graph, "topic", NULL);
    check_initial(graph, "hello",
                  "[{\"$\":\"message\",\"type\":\"human\",\"content\":\"hi\"},"
                  "{\"$\":\"message\",\"type\":\"ai\",\"content\":\"ho\"}]");
    assert_true(graph->channels[hd_graph_find_channel(graph, HD_S("topic"))].is_accumulating);
    hd_graph_destroy(graph);
}

static void common_members_are_kept(void **state)
{
    struct hd_graph *graph = read_good(
        NODE("'kind':'set','input':['log','a'],'tags':['t'],'metadata':{'k':1},'timeout_ms':50,"
             "'retry':{'attempts':3,'delay_ms':5,'on':['ValueError']},'emit':[{'x':'{{a}}'},2]"));
    const struct hd_node *node = &graph->nodes[1];

    (void)state;
    assert_int_equal(node->read_count, 2);
    assert_int_equal(node->reads[0], 2);
    assert_int_equal(node->reads[1], 0);
    assert_int_equal(node->tag_count, 1);
    assert_int_equal(hd_val_count(node->metadata), 1);
    assert_int_equal(node->timeout_ms, 50);
    assert_int_equal(node->retry.attempts, 3);
    assert_int_equal(node->retry.delay_ms, 5);
    assert_true(node->retry.backoff > 1.99 && node->retry.backoff < 2.01);
    assert_int_equal(node->retry.on_count, 1);
    assert_int_equal(node->emit_count, 2);
    assert_int_equal(graph->recursion_limit, 25);
    hd_graph_destroy(graph);
}

static void routes_and_sends_are_resolved(void **state)
{
    struct hd_graph *graph = read_good(NODES(
        "'n':{'kind':'set'},'m':{'kind':'set','update':{'a':'{{subject}}'}},"
        "'g':{'kind':'set','goto':{'@if':['{{a}}',['m','__end__'],{'@send':{'node':'s'}}]}},"
        "'s':{'kind':'set','update':{'a':'{{anything}}'}}",
        "['__start__','n'],{'from':'n','routes':[{'when':'{{a}}','to':['g','__end__'],'label':'L'},"
        "{'to':'__end__'}]},{'from':'n','fanout':{'over':'{{log}}','as':'one','to':'m',"
        "'arg':{'subject':'{{one}}'}}}"));
    const struct hd_node *n = &graph->nodes[1], *g = &graph->nodes[3];

    (void)state;
    assert_int_equal(n->branch_count, 2);
    assert_int_equal(n->branches[0].route_count, 2);
    assert_non_null(n->branches[0].routes[0].when);
    assert_int_equal(n->branches[0].routes[0].to_count, 2);
    assert_int_equal(n->branches[0].routes[0].to[0].node, 3);
    assert_slice(n->branches[0].routes[0].to[0].label, HD_S("L"));
    assert_true(n->branches[0].routes[0].to[1].node == HD_GRAPH_END);
    assert_null(n->branches[0].routes[1].when);
    assert_int_equal(n->branches[1].fanout->to, 2);
    assert_slice(n->branches[1].fanout->as, HD_S("one"));
    assert_true(graph->nodes[2].is_sent_to);
    assert_int_equal(g->exit_count, 3);
    assert_true(g->must_exit && !g->goes_anywhere);
    assert_true(graph->nodes[4].is_sent_to);
    hd_graph_destroy(graph);
}

static void subgraphs_see_those_around_them(void **state)
{
    struct hd_graph *graph = read_good(
        GRAPH(STATE_A
              ",'nodes':{'n':{'kind':'subgraph','graph':'i','memory':'own'},'m':{'kind':'set'}},"
              "'edges':[['__start__','n']],'graphs':{'i':{'state':{'a':{}},'nodes':{"
              "'k':{'kind':'subgraph','graph':'j','input':{'b':'{{a}}'},"
              "'update':{'a':'{{result.b}}'}},"
              "'up':{'kind':'set','graph':'parent','goto':'m','update':{'log':[1]}}},"
              "'edges':[['__start__','k'],['k','up']]},"
              "'j':{'state':{'b':{}},'nodes':{'l':{'kind':'set'}},'edges':[['__start__','l']]}}"));
    const struct hd_graph *inner = graph->nodes[1].graph;

    (void)state;
    assert_slice(inner->name, HD_S("i"));
    assert_true(inner->outer == graph);
    assert_slice(inner->nodes[1].graph->name, HD_S("j"));
    assert_true(inner->nodes[2].goes_to_parent);
    assert_int_equal(graph->nodes[1].exit_count, 1);
    assert_int_equal(graph->nodes[1].exits[0].node, 2);
    hd_graph_destroy(graph);
}

/* The edges form a cycle, but a run can stop or is limited. */
static const char *const endless[] = {
    GRAPH(STATE_A ",'nodes':{'n':{'kind':'set'}},'edges':[['__start__','n'],['n','n']],"
                  "'recursion_limit':9"),
    NODES("'n':{'kind':'interrupt','ask':['?']}", "['__start__','n'],['n','n']"),
    NODES("'n':{'kind':'set','goto':'{{a}}'},'m':{'kind':'set'}", "['__start__','n']"),
    NODES("'n':{'kind':'set'}", "['__start__','n'],{'from':'n','routes':[{'when':1,'to':'n'}]}"),
    GRAPH(STATE_A ",'nodes':{'n':{'kind':'set'}},'edges':[['__start__','n'],['n','n']],"
                  "'interrupt_before':'*'"),
    NODES("'n':{'kind':'fanout','over':[1],'to':'n'}", "['__start__','n']"),
};

static void loops_that_can_end_are_fine(void **state)
{
    (void)state;
    for (size_t i = 0; i < HD_COUNT(endless); i++)
        hd_graph_destroy(read_good(endless[i]));
}

static int read_everything(void *arg)
{
    struct hd_graph *graph;
    int err = hd_graph_read(hd_slice_cstr(arg), &graph, NULL);

    if (err == 0)
        hd_graph_destroy(graph);
    return err;
}

static void every_allocation_may_fail(void **state)
{
    char *text = quoted(GRAPH(
        STATE_A ",'nodes':{'n':{'kind':'subgraph','graph':'i'},'m':{'kind':'script','replies':["
                "{'when':{'@eq':['{{a}}',1]},'content':'{{a}} and {{log[0]}}','times':2},"
                "{'content':'x'}],'stream':{}},'q':{'kind':'interrupt','ask':[1],"
                "'update':{'a':'{{answers[0]}}'},'goto':'{{a}}','destinations':['m','__end__']},"
                "'h':{'kind':'http','url':'http://x','headers':{'k':'v'},'emit':[1]}},"
                "'edges':[['__start__','n'],['__start__','m'],{'from':['n','m'],'to':'q'},"
                "{'from':'n','routes':[{'when':'{{a}}','to':'h'},{'to':'__end__'}]}],"
                "'graphs':{'i':{" INNER "}}"));
    long count = check_every_allocation(read_everything, text);

    (void)state;
    assert_true(count > 10);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_are_refused),
        cmocka_unit_test(channels_are_refused),
        cmocka_unit_test(nodes_are_refused),
        cmocka_unit_test(edges_are_refused),
        cmocka_unit_test(values_are_refused),
        cmocka_unit_test(graphs_are_refused),
        cmocka_unit_test(oversized_input_is_refused),
        cmocka_unit_test(deep_nesting_is_refused),
        cmocka_unit_test(graphs_are_nested_sixteen_levels_deep),
        cmocka_unit_test(a_long_path_keeps_its_end),
        cmocka_unit_test(channels_are_those_of_langgraph),
        cmocka_unit_test(channels_begin_with_the_default_of_their_type),
        cmocka_unit_test(common_members_are_kept),
        cmocka_unit_test(routes_and_sends_are_resolved),
        cmocka_unit_test(subgraphs_see_those_around_them),
        cmocka_unit_test(loops_that_can_end_are_fine),
        cmocka_unit_test(every_allocation_may_fail),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
