/* Every function and kind of path, with operands of all types; limits; no memory. */
#include "graph/expr/expr.h"

#include <stdlib.h>
#include <string.h>

#include "graph/decl/graph.h"
#include "tests/unit/check.h"

/* ---- helpers ---------------------------------------------------------- */

static const struct hd_slice channel_names[] = {
    HD_S_INIT("name"), HD_S_INIT("n"),     HD_S_INIT("list"), HD_S_INIT("object"),
    HD_S_INIT("none"), HD_S_INIT("empty"), HD_S_INIT("msgs"), HD_S_INIT("odd name"),
};

/* The values of the channels in all cases; `empty` has none. */
static const char *const channel_values[] = {
    "\"Ada\"",
    "7",
    "[10,20,30]",
    "{\"a\":{\"b\":[1,2]},\"k k\":true,\"0\":\"zero\"}",
    "null",
    NULL,
    "[{\"$\":\"message\",\"type\":\"human\",\"content\":\"hi\",\"id\":\"m1\"},"
    "{\"$\":\"message\",\"type\":\"ai\",\"content\":\"ho\",\"id\":\"m2\"}]",
    "\"odd\"",
};

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

struct scene {
    struct hd_val *channels[HD_COUNT(channel_names)];
    struct hd_scope scope;
};

static int fill(struct scene *scene)
{
    int err = 0;

    *scene = (struct scene){.scope.channel_count = HD_COUNT(channel_names)};
    scene->scope.channels = scene->channels;
    for (size_t i = 0; i < HD_COUNT(channel_names) && err == 0; i++) {
        if (channel_values[i])
            err = hd_val_parse(hd_slice_cstr(channel_values[i]), &scene->channels[i], NULL);
    }
    return err;
}

static void clear(struct scene *scene)
{
    for (size_t i = 0; i < HD_COUNT(channel_names); i++)
        hd_val_unref(scene->channels[i]);
}

static int compile(const char *json, struct hd_decl_expr_alone **out, struct hd_graph_error *error)
{
    return hd_decl_expr_create(hd_slice_cstr(json), channel_names, HD_COUNT(channel_names), out,
                               error);
}

struct example {
    const char *expr;
    const char *result; /* canonical text */
};

/* The result as text; the caller frees it. */
static int evaluate(const char *json, struct hd_buf *out)
{
    struct hd_graph_error error = {0};
    struct hd_decl_expr_alone *alone = NULL;
    struct hd_val *val = NULL;
    struct scene scene;
    int err = fill(&scene);

    hd_buf_init(out, (size_t)100 << 20);
    if (err == 0)
        err = compile(json, &alone, &error);
    if (err == HD_EINVAL)
        fail_msg("%s: %s: %s", json, error.path, error.text);
    if (err == 0)
        err = hd_expr_eval(hd_decl_expr_of(alone), &scene.scope, &val);
    if (err == 0)
        err = hd_val_write(out, val);
    hd_val_unref(val);
    hd_decl_expr_destroy(alone);
    clear(&scene);
    return err;
}

static void check(const struct example *examples, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char *json = quoted(examples[i].expr), *result = quoted(examples[i].result);
        struct hd_buf out;

        assert_err(evaluate(json, &out), 0);
        if (!hd_slice_eq(hd_buf_slice(&out), hd_slice_cstr(result)))
            fail_msg("%s\n  expected %s\n  got      %.*s", json, result, (int)out.len, out.ptr);
        hd_buf_fini(&out);
        free(json);
        free(result);
    }
}

/* ---- paths and texts -------------------------------------------------- */

static const struct example plain[] = {
    {"1", "1"},
    {"1.50", "1.50"},
    {"9007199254740993", "{'$':'int','v':'9007199254740993'}"},
    {"[null,true,{'a':[]}]", "[null,true,{'a':[]}]"},
    {"''", "''"},
    {"'text'", "'text'"},
    {"'{{name}}'", "'Ada'"},
    {"'{{n}}'", "7"},
    {"'{{ n }}'", "7"},
    {"'{{list}}'", "[10,20,30]"},
    {"'{{list[0]}}'", "10"},
    {"'{{list[-1]}}'", "30"},
    {"'{{list[3]}}'", "null"},
    {"'{{list[-4]}}'", "null"},
    {"'{{list.a}}'", "null"},
    {"'{{object.a.b[1]}}'", "2"},
    {"'{{object.0}}'", "'zero'"},
    {"'{{object[0]}}'", "null"},
    {"'{{object[\\'k k\\']}}'", "true"},
    {"'{{object.a.x.y}}'", "null"},
    {"'{{name.a}}'", "null"},
    {"'{{none}}'", "null"},
    {"'{{empty}}'", "null"},
    {"'{{config.x}}'", "null"},
    {"'{{msgs[-1].content}}'", "'ho'"},
    {"'{{msgs[0].type}}'", "'human'"},
    {"'{{[\\'odd name\\']}}'", "'odd'"},
    {"'Hello {{name}}!'", "'Hello Ada!'"},
    {"'{{name}}{{n}}'", "'Ada7'"},
    {"'n={{n}} list={{list}} none={{none}}'", "'n=7 list=[10,20,30] none=null'"},
    {"'{{{{'", "'{{'"},
    {"'{{{{name}}'", "'{{name}}'"},
    {"'a {{{{ b {{n}} }}'", "'a {{ b 7 }}'"},
    {"'}} {'", "'}} {'"},
    {"{'a':'{{n}}','b':['{{name}}',1]}", "{'a':7,'b':['Ada',1]}"},
    {"{'{{n}}':'{{n}}'}", "{'{{n}}':7}"},
    {"{}", "{}"},
};

static void paths_and_texts(void **state)
{
    struct hd_buf out;

    (void)state;
    check(plain, HD_COUNT(plain));
    /* quoted() cannot write quotes within quotes. */
    assert_err(evaluate("\"{{object}} \"", &out), 0);
    assert_slice(
        hd_buf_slice(&out),
        HD_S("\"{\\\"a\\\":{\\\"b\\\":[1,2]},\\\"k k\\\":true,\\\"0\\\":\\\"zero\\\"} \""));
    hd_buf_fini(&out);
    assert_err(evaluate("\"{{object['k k']}} {{object[\\\"0\\\"]}} {{['odd name']}}\"", &out), 0);
    assert_slice(hd_buf_slice(&out), HD_S("\"true zero odd\""));
    hd_buf_fini(&out);
}

/* ---- functions -------------------------------------------------------- */

static const struct example logic[] = {
    {"{'@eq':[1,1]}", "true"},
    {"{'@eq':[1,1.0]}", "true"},
    {"{'@eq':[1,'1']}", "false"},
    {"{'@eq':[1,true]}", "false"},
    {"{'@eq':['{{none}}','{{empty}}']}", "true"},
    {"{'@eq':[{'a':1,'b':2},{'b':2,'a':1}]}", "true"},
    {"{'@eq':[[1,2],[2,1]]}", "false"},
    {"{'@ne':[1,2]}", "true"},
    {"{'@ne':['a','a']}", "false"},
    {"{'@lt':[1,2]}", "true"},
    {"{'@lt':[1.5,1.25]}", "false"},
    {"{'@lt':['a','b']}", "true"},
    {"{'@lt':['b','a']}", "false"},
    {"{'@lt':['10','9']}", "true"},
    {"{'@lt':[1,'2']}", "false"},
    {"{'@gt':[1,'2']}", "false"},
    {"{'@lt':[null,1]}", "false"},
    {"{'@lt':[false,true]}", "false"},
    {"{'@lt':[[1],[2]]}", "false"},
    {"{'@le':[2,2]}", "true"},
    {"{'@le':[3,2]}", "false"},
    {"{'@gt':[3,2]}", "true"},
    {"{'@gt':['a','B']}", "true"},
    {"{'@ge':[2,2.0]}", "true"},
    {"{'@ge':[1,2]}", "false"},
    {"{'@and':[]}", "true"},
    {"{'@and':[1,'x',[0],{'a':0}]}", "true"},
    {"{'@and':[1,0]}", "false"},
    {"{'@and':'{{list}}'}", "true"},
    {"{'@and':'{{none}}'}", "false"},
    {"{'@or':[]}", "false"},
    {"{'@or':[0,'',[],{},null,false]}", "false"},
    {"{'@or':[0,'x']}", "true"},
    {"{'@or':'{{list}}'}", "true"},
    {"{'@not':1}", "false"},
    {"{'@not':''}", "true"},
    {"{'@not':[]}", "true"},
    {"{'@not':[0]}", "false"},
    {"{'@not':'{{empty}}'}", "true"},
    {"{'@if':[true,'a','b']}", "'a'"},
    {"{'@if':['{{empty}}','a','b']}", "'b'"},
    {"{'@if':[0,'a']}", "null"},
    {"{'@default':['{{empty}}','{{none}}',3,4]}", "3"},
    {"{'@default':[false,1]}", "false"},
    {"{'@default':[null]}", "null"},
    {"{'@exists':'name'}", "true"},
    {"{'@exists':'none'}", "true"},
    {"{'@exists':'empty'}", "false"},
    {"{'@exists':'object.a.c'}", "false"},
    {"{'@exists':'list[2]'}", "true"},
    {"{'@literal':'{{name}}'}", "'{{name}}'"},
    {"{'@literal':{'@eq':[1]}}", "{'@eq':[1]}"},
    {"{'@literal':{'@a':1,'@b':2}}", "{'@a':1,'@b':2}"},
    {"{'@literal':{'$':'x'}}", "{'$':'map','items':[['$','x']]}"},
};

static const struct example numbers[] = {
    {"{'@add':[1]}", "1"},
    {"{'@add':[1,2,3]}", "6"},
    {"{'@add':[1,0.5]}", "1.5"},
    {"{'@add':[1.0,1.0]}", "2.0"},
    {"{'@add':'{{list}}'}", "60"},
    {"{'@add':['a','b','{{name}}']}", "'abAda'"},
    {"{'@add':[[1],[2,3]]}", "[1,2,3]"},
    {"{'@add':['{{list}}','{{list}}']}", "[10,20,30,10,20,30]"},
    {"{'@add':['{{list}}',1]}", "null"},
    {"{'@add':[1,'a']}", "null"},
    {"{'@add':['a',1]}", "null"},
    {"{'@add':[null,1]}", "null"},
    {"{'@add':[true,1]}", "null"},
    {"{'@add':[{},{}]}", "null"},
    {"{'@add':'{{empty}}'}", "null"},
    {"{'@add':[9007199254740991,1]}", "{'$':'int','v':'9007199254740992'}"},
    {"{'@sub':[10,3]}", "7"},
    {"{'@sub':[1,0.5]}", "0.5"},
    {"{'@sub':['a','b']}", "null"},
    {"{'@mul':[6,7]}", "42"},
    {"{'@mul':[2,'a']}", "null"},
    {"{'@mul':[-2,1.5]}", "-3.0"},
    {"{'@div':[6,3]}", "2"},
    {"{'@div':[7,2]}", "3.5"},
    {"{'@div':[-6,-1]}", "6"},
    {"{'@div':[6.0,3]}", "2.0"},
    {"{'@div':[1,0]}", "null"},
    {"{'@div':[1,0.0]}", "null"},
    {"{'@div':[1,null]}", "null"},
    {"{'@mod':[7,3]}", "1"},
    {"{'@mod':[-7,3]}", "2"},
    {"{'@mod':[7,-3]}", "-2"},
    {"{'@mod':[7,-1]}", "0"},
    {"{'@mod':[7.5,2]}", "1.5"},
    {"{'@mod':[-7.5,2]}", "0.5"},
    {"{'@mod':[7,0]}", "null"},
    {"{'@number':'42'}", "42"},
    {"{'@number':' -1.5e3\\n'}", "-1.5e3"},
    {"{'@number':7}", "7"},
    {"{'@number':true}", "1"},
    {"{'@number':'4 2'}", "null"},
    {"{'@number':'007'}", "null"},
    {"{'@number':'[1]'}", "null"},
    {"{'@number':''}", "null"},
    {"{'@number':[1]}", "null"},
};

static const struct example texts[] = {
    {"{'@concat':[]}", "''"},
    {"{'@concat':['a',1,true,null,[1,'x']]}", "'a1truenull[1,\\\"x\\\"]'"},
    {"{'@concat':'{{list}}'}", "'102030'"},
    {"{'@join':[['a','b'],', ']}", "'a, b'"},
    {"{'@join':['{{list}}','-']}", "'10-20-30'"},
    {"{'@join':[[],'-']}", "''"},
    {"{'@join':['ab','-']}", "null"},
    {"{'@join':[['a','b'],null]}", "'anullb'"},
    {"{'@split':['a,b,,c',',']}", "['a','b','','c']"},
    {"{'@split':['',',']}", "['']"},
    {"{'@split':['  a  b ']}", "['a','b']"},
    {"{'@split':['a b',null]}", "['a','b']"},
    {"{'@split':['aé日','']}", "['a','é','日']"},
    {"{'@split':[1,',']}", "null"},
    {"{'@split':['a',1]}", "null"},
    {"{'@upper':'abc é Z'}", "'ABC É Z'"},
    {"{'@lower':'ABC É z'}", "'abc é z'"},
    {"{'@upper':'straße жд'}", "'STRAßE ЖД'"},
    {"{'@upper':1}", "null"},
    {"{'@trim':'  a b\\t\\n'}", "'a b'"},
    {"{'@trim':'   '}", "''"},
    {"{'@trim':null}", "null"},
    {"{'@starts':['abc','ab']}", "true"},
    {"{'@starts':['abc','']}", "true"},
    {"{'@starts':['abc','bc']}", "false"},
    {"{'@starts':['abc',1]}", "false"},
    {"{'@starts':[1,'1']}", "false"},
    {"{'@ends':['abc','bc']}", "true"},
    {"{'@ends':['abc','abcd']}", "false"},
    {"{'@ends':['abc','']}", "true"},
    {"{'@ends':[['c'],'c']}", "false"},
    {"{'@json':'a'}", "'\\\"a\\\"'"},
    {"{'@json':[1,null]}", "'[1,null]'"},
    {"{'@parse':'[1,2]'}", "[1,2]"},
    {"{'@parse':'no'}", "null"},
    {"{'@parse':''}", "null"},
    {"{'@parse':1}", "null"},
    {"{'@json_in':'{\\\"a\\\":1}'}", "{'a':1}"},
    {"{'@json_in':' [1,2] '}", "[1,2]"},
    {"{'@json_in':'Here it is: {\\\"a\\\":[1]} and more'}", "{'a':[1]}"},
    {"{'@json_in':'a } ] \\\" [x] {\\\"s\\\":\\\"}]\\\"} [2]'}", "{'s':'}]'}"},
    {"{'@json_in':'so [1] ```json\\n{\\\"b\\\":2}\\n``` end'}", "{'b':2}"},
    {"{'@json_in':'```\\nno\\n``` but [3]'}", "[3]"},
    {"{'@json_in':'{\\\"a\\\": {\\\"b\\\": 1}'}", "{'b':1}"},
    {"{'@json_in':'42'}", "null"},
    {"{'@json_in':'{'}", "null"},
    {"{'@json_in':''}", "null"},
    {"{'@json_in':7}", "null"},
    {"{'@type':null}", "'null'"},
    {"{'@type':true}", "'boolean'"},
    {"{'@type':1}", "'number'"},
    {"{'@type':1.5}", "'number'"},
    {"{'@type':'x'}", "'string'"},
    {"{'@type':'{{list}}'}", "'list'"},
    {"{'@type':{'@human':'x'}}", "'object'"},
    {"{'@text':{'@human':'hi'}}", "'hi'"},
    {"{'@text':'hi'}", "'hi'"},
    {"{'@text':{'@ai':[{'type':'text','text':'a'},{'type':'image'},'b']}}", "'ab'"},
    {"{'@text':null}", "null"},
    {"{'@text':3}", "null"},
};

static const struct example lists[] = {
    {"{'@len':'{{list}}'}", "3"},
    {"{'@len':'aé日'}", "3"},
    {"{'@len':{'a':1,'b':2}}", "2"},
    {"{'@len':'{{object}}'}", "3"},
    {"{'@len':null}", "0"},
    {"{'@len':'{{empty}}'}", "0"},
    {"{'@len':7}", "null"},
    {"{'@len':true}", "null"},
    {"{'@in':[20,'{{list}}']}", "true"},
    {"{'@in':[20.0,'{{list}}']}", "true"},
    {"{'@in':['20','{{list}}']}", "false"},
    {"{'@in':['d','{{name}}']}", "true"},
    {"{'@in':['a','{{object}}']}", "true"},
    {"{'@in':['b','{{object}}']}", "false"},
    {"{'@in':[1,'{{n}}']}", "false"},
    {"{'@in':[1,null]}", "false"},
    {"{'@in':[[1],[[1],[2]]]}", "true"},
    {"{'@contains':['{{list}}',20]}", "true"},
    {"{'@contains':['{{name}}','Ad']}", "true"},
    {"{'@contains':['{{name}}','']}", "true"},
    {"{'@contains':['{{name}}',1]}", "false"},
    {"{'@get':['{{object}}','k k']}", "true"},
    {"{'@get':['{{list}}',1]}", "20"},
    {"{'@get':['{{list}}',-1]}", "30"},
    {"{'@get':['{{list}}',9]}", "null"},
    {"{'@get':['{{list}}','1']}", "null"},
    {"{'@get':['{{object}}',1]}", "null"},
    {"{'@get':[null,'a']}", "null"},
    {"{'@get':['{{msgs[0]}}','id']}", "'m1'"},
    {"{'@first':'{{list}}'}", "10"},
    {"{'@last':'{{list}}'}", "30"},
    {"{'@first':[]}", "null"},
    {"{'@last':'abc'}", "null"},
    {"{'@slice':['{{list}}',1,2]}", "[20]"},
    {"{'@slice':['{{list}}',1]}", "[20,30]"},
    {"{'@slice':['{{list}}',-2]}", "[20,30]"},
    {"{'@slice':['{{list}}',null,-1]}", "[10,20]"},
    {"{'@slice':['{{list}}',2,1]}", "[]"},
    {"{'@slice':['{{list}}',-99,99]}", "[10,20,30]"},
    {"{'@slice':['{{list}}','1']}", "null"},
    {"{'@slice':['aé日b',1,3]}", "'é日'"},
    {"{'@slice':['abc',-1]}", "'c'"},
    {"{'@slice':['abc',3]}", "''"},
    {"{'@slice':[7,1]}", "null"},
    {"{'@range':3}", "[0,1,2]"},
    {"{'@range':0}", "[]"},
    {"{'@range':-1}", "[]"},
    {"{'@range':1.5}", "null"},
    {"{'@range':'3'}", "null"},
    {"{'@map':{'over':'{{list}}','value':{'@add':['{{item}}',1]}}}", "[11,21,31]"},
    {"{'@map':{'over':'{{list}}','as':'x','value':'<{{x}}>'}}", "['<10>','<20>','<30>']"},
    {"{'@map':{'over':'{{none}}','value':1}}", "[]"},
    {"{'@map':{'over':'abc','value':1}}", "[]"},
    {"{'@map':{'over':{'@range':2},'as':'i','value':{'@map':{'over':{'@range':2},'as':'j',"
     "'value':['{{i}}','{{j}}','{{n}}']}}}}",
     "[[[0,0,7],[0,1,7]],[[1,0,7],[1,1,7]]]"},
    {"{'@map':{'over':[1],'as':'n','value':'{{n}}'}}", "[1]"},
    {"{'@map':{'over':[1],'value':{'@map':{'over':[2],'value':'{{item}}'}}}}", "[[2]]"},
    {"{'@filter':{'over':'{{list}}','when':{'@gt':['{{item}}',15]}}}", "[20,30]"},
    {"{'@filter':{'over':[0,1,'',null,'a'],'when':'{{item}}'}}", "[1,'a']"},
    {"{'@filter':{'over':7,'when':true}}", "[]"},
    {"{'@merge':[{'a':1,'b':1},{'b':2},null,7]}", "{'a':1,'b':2}"},
    {"{'@merge':[]}", "{}"},
    {"{'@merge':'{{object.a}}'}", "{'b':[1,2]}"},
};

static const struct example messages[] = {
    {"{'@human':'hi'}", "{'$':'message','type':'human','content':'hi'}"},
    {"{'@ai':'{{name}}'}", "{'$':'message','type':'ai','content':'Ada'}"},
    {"{'@system':'be nice'}", "{'$':'message','type':'system','content':'be nice'}"},
    {"{'@human':null}", "{'$':'message','type':'human','content':''}"},
    {"{'@human':7}", "{'$':'message','type':'human','content':'7'}"},
    {"{'@human':{'@concat':['a','b']}}", "{'$':'message','type':'human','content':'ab'}"},
    {"{'@human':[{'type':'text','text':'{{name}}'}]}",
     "{'$':'message','type':'human','content':[{'type':'text','text':'Ada'}]}"},
    {"{'@human':{'content':'hi','id':'x','name':'{{name}}'}}",
     "{'$':'message','type':'human','content':'hi','id':'x','name':'Ada'}"},
    {"{'@human':{'content':'hi','id':null}}", "{'$':'message','type':'human','content':'hi'}"},
    {"{'@human':{'content':'hi','id':7}}", "null"},
    {"{'@ai':{'content':'','tool_calls':[{'name':'t','args':{'q':'{{n}}'},'id':'c1'}]}}",
     "{'$':'message','type':'ai','content':'','tool_calls':[{'name':'t','args':{'q':7},"
     "'id':'c1','type':'tool_call'}]}"},
    {"{'@tool':{'content':'ok','tool_call_id':'c1'}}",
     "{'$':'message','type':'tool','content':'ok','tool_call_id':'c1'}"},
    {"{'@tool':{'content':'no','tool_call_id':'c1','status':'error','name':'t'}}",
     "{'$':'message','type':'tool','content':'no','name':'t','tool_call_id':'c1',"
     "'status':'error'}"},
    {"{'@tool':{'content':'ok','tool_call_id':7}}", "null"},
    {"{'@remove':'m1'}", "{'$':'message','type':'remove','content':'','id':'m1'}"},
    {"{'@remove':'{{msgs[1]}}'}", "{'$':'message','type':'remove','content':'','id':'m2'}"},
    {"{'@remove':7}", "null"},
    {"{'@send':{'node':'x','arg':{'a':'{{n}}'}}}", "{'$':'send','node':'x','arg':{'a':7}}"},
    {"{'@send':{'node':'{{name}}'}}", "{'$':'send','node':'Ada','arg':null}"},
    {"{'@send':{'node':7}}", "null"},
    {"{'$':'overwrite','value':['{{n}}']}", "{'$':'overwrite','value':[7]}"},
    {"{'$':'overwrite','value':[]}", "{'$':'overwrite','value':[]}"},
    {"{'$':'message','type':'human','content':'{{name}}','id':'q'}",
     "{'$':'message','type':'human','content':'Ada','id':'q'}"},
    {"{'$':'message','type':'human','content':'{{n}}'}", "null"},
    {"[{'$':'set','items':[1,'{{n}}']}]", "[{'$':'set','items':[1,7]}]"},
};

#define CALLS(what)                           \
    static void calls_on_##what(void **state) \
    {                                         \
        (void)state;                          \
        check(what, HD_COUNT(what));          \
    }

CALLS(logic)
CALLS(numbers)
CALLS(texts)
CALLS(lists)
CALLS(messages)

/* ---- places and inputs ------------------------------------------------ */

static void config_and_context_are_seen(void **state)
{
    struct hd_decl_expr_alone *alone;
    struct hd_scope scope = {0};
    struct hd_val *config, *out;
    bool holds = false;

    (void)state;
    assert_err(hd_val_parse(HD_S("{\"user\":\"u1\"}"), &config, NULL), 0);
    assert_err(compile("\"{{config.user}}\"", &alone, NULL), 0);
    scope.places[HD_PLACE_CONFIG] = config;
    assert_err(hd_expr_eval(hd_decl_expr_of(alone), &scope, &out), 0);
    assert_slice(hd_val_get_string(out), HD_S("u1"));
    assert_err(hd_expr_holds(hd_decl_expr_of(alone), &scope, &holds), 0);
    assert_true(holds);
    hd_val_unref(out);
    hd_val_unref(config);
    hd_decl_expr_destroy(alone);
    assert_err(compile("\"{{context}}\"", &alone, NULL), 0);
    assert_err(hd_expr_holds(hd_decl_expr_of(alone), &(struct hd_scope){0}, &holds), 0);
    assert_false(holds);
    hd_decl_expr_destroy(alone);
}

static void a_value_is_shared_not_copied(void **state)
{
    struct hd_decl_expr_alone *alone;
    struct scene scene;
    struct hd_val *out;

    (void)state;
    assert_err(fill(&scene), 0);
    assert_err(compile("\"{{list}}\"", &alone, NULL), 0);
    assert_err(hd_expr_eval(hd_decl_expr_of(alone), &scene.scope, &out), 0);
    assert_ptr_equal(out, scene.channels[2]);
    hd_val_unref(out);
    hd_decl_expr_destroy(alone);
    clear(&scene);
}

/* ---- names of nodes --------------------------------------------------- */

struct found {
    char text[256];
};

static int collect(void *ctx, struct hd_slice name, bool is_send)
{
    struct found *found = ctx;
    size_t len = strlen(found->text);

    (void)snprintf(found->text + len, sizeof(found->text) - len, "%s%.*s ", is_send ? "!" : "",
                   (int)name.len, name.ptr);
    return 0;
}

static void check_names(const char *expr, const char *names, bool is_complete)
{
    char *json = quoted(expr);
    struct hd_decl_expr_alone *alone;
    struct found found = {""};
    bool got = true;

    assert_err(compile(json, &alone, NULL), 0);
    assert_err(hd_expr_names(hd_decl_expr_of(alone), collect, &found, &got), 0);
    assert_string_equal(found.text, names);
    assert_int_equal(got, is_complete);
    hd_decl_expr_destroy(alone);
    free(json);
}

static void names_of_nodes_are_found(void **state)
{
    (void)state;
    check_names("'a'", "a ", true);
    check_names("['a','b']", "a b ", true);
    check_names("'{{name}}'", "", false);
    check_names("{'@if':['{{n}}','a',['b',null]]}", "a b ", true);
    check_names("{'@if':['{{n}}','a','{{name}}']}", "a ", false);
    check_names("[{'@send':{'node':'a','arg':'{{n}}'}},'b']", "!a b ", true);
    check_names("{'@map':{'over':'{{list}}','value':{'@send':{'node':'w','arg':'{{item}}'}}}}",
                "!w ", true);
    check_names("{'@map':{'over':'{{list}}','value':{'@send':{'node':'{{item}}'}}}}", "! ", false);
    check_names("{'@add':[['a'],{'@if':['{{n}}',['b'],[]]}]}", "a b ", true);
    check_names("{'@first':[{'@send':{'node':'w','arg':'{{n}}'}}]}", "!w ", false);
}

/* ---- limits ----------------------------------------------------------- */

static const char *const too_much[] = {
    "{'@range':100000000}",
    "{'@range':9223372036854775807}",
    "{'@map':{'over':{'@range':3000},'value':{'@map':{'over':{'@range':3000},'value':1}}}}",
    "{'@map':{'over':{'@range':100000},'value':{'@in':['x',{'@range':1000}]}}}",
    "{'@join':[{'@range':1000000},'0123456789012345678901234567890123456789012345678901234567890']"
    "}",
    "{'@map':{'over':{'@range':1000000},'value':{'@concat':['{{name}}{{name}}{{name}}{{name}}"
    "{{name}}{{name}}{{name}}{{name}}{{name}}{{name}}{{name}}{{name}}{{name}}{{name}}','x',"
    "'{{name}}{{name}}{{name}}{{name}}{{name}}{{name}}{{name}}{{name}}{{name}}{{name}}']}}}",
};

static void too_much_work_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < HD_COUNT(too_much); i++) {
        char *json = quoted(too_much[i]);
        struct hd_buf out;

        if (evaluate(json, &out) != HD_ELIMIT)
            fail_msg("%s was evaluated", json);
        hd_buf_fini(&out);
        free(json);
    }
}

static int evaluate_once(void *arg)
{
    struct hd_buf out;
    int err = evaluate(arg, &out);

    hd_buf_fini(&out);
    return err;
}

static void every_allocation_may_fail(void **state)
{
    char *json = quoted(
        "{'a':'{{name}} {{n}}','b':{'@map':{'over':'{{list}}','value':{'@add':['{{item}}',0.5]}}},"
        "'c':{'@add':[['x'],{'@split':['p "
        "q']},{'@range':2}]},'d':[{'@merge':[{'a':1},'{{object}}']},"
        "{'@slice':['{{list}}',1]},{'@upper':'x'},{'@json':'{{list}}'},{'@parse':'[1]'}],"
        "'e':[{'@human':'hi'},{'@ai':{'content':'x','id':'1','tool_calls':[]}},{'@send':{'node':'a'"
        "}},"
        "{'@remove':'x'},{'$':'overwrite','value':'{{n}}'},{'@filter':{'over':[1,0],'when':'{{item}"
        "}'}}],"
        "'f':{'@concat':[1,2,3,4,5,6,7,8,9,10]},'g':{'@concat':'{{list}}'}}");

    (void)state;
    assert_true(check_every_allocation(evaluate_once, json) > 50);
    free(json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_and_texts),
        cmocka_unit_test(calls_on_logic),
        cmocka_unit_test(calls_on_numbers),
        cmocka_unit_test(calls_on_texts),
        cmocka_unit_test(calls_on_lists),
        cmocka_unit_test(calls_on_messages),
        cmocka_unit_test(config_and_context_are_seen),
        cmocka_unit_test(a_value_is_shared_not_copied),
        cmocka_unit_test(names_of_nodes_are_found),
        cmocka_unit_test(too_much_work_is_refused),
        cmocka_unit_test(every_allocation_may_fail),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
