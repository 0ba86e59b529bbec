/* Model providers: literal streams, split anywhere; requests; conversations; no memory. */
#include "agent/model/provider.h"

#include <stdlib.h>
#include <string.h>

#include "agent/model/model_error.h"
#include "tests/unit/check.h"

#define ID "lc_run--1"

/* ---- helpers ---------------------------------------------------------- */

/* Single quotes stand for double ones; the caller frees it. */
static char *quoted(const char *text)
{
    char *copy = strdup(text);

    assert_non_null(copy);
    for (char *c = copy; *c; c++)
        *c = *c == '\'' ? '"' : *c;
    return copy;
}

static struct hd_val *parse(const char *text)
{
    char *copy = quoted(text);
    struct heddle_error fault = {0};
    struct hd_val *val = NULL;

    if (hd_val_parse(hd_slice_cstr(copy), &val, &fault))
        fail_msg("%s: %s", copy, fault.text);
    free(copy);
    return val;
}

static void assert_text(struct hd_slice got, const char *wanted)
{
    char *copy = quoted(wanted);

    assert_slice(got, hd_slice_cstr(copy));
    free(copy);
}

static void assert_val(struct hd_val *val, const char *wanted)
{
    struct hd_buf out;

    hd_buf_init(&out, 1 << 20);
    assert_non_null(val);
    assert_err(hd_val_write(&out, val), 0);
    assert_text(hd_buf_slice(&out), wanted);
    hd_buf_fini(&out);
    hd_val_unref(val);
}

/* A response being read, and the chunks reported so far. */
struct reading {
    const struct hd_provider *provider;
    struct hd_completion answer;
    struct hd_buf text;   /* of the chunks */
    struct hd_buf chunks; /* arguments of calls, likewise */
};

static int note_blocks(struct reading *r, const struct hd_val *content)
{
    int err = hd_buf_append_slice(&r->text, hd_val_get_string(content));

    for (size_t i = 0; hd_val_is_list(content) && i < hd_val_count(content) && !err; i++) {
        const struct hd_val *block = hd_val_at(content, i);

        err = hd_buf_append_slice(&r->text, hd_val_get_string(hd_val_get(block, HD_S("thinking"))));
        if (!err)
            err = hd_buf_append_slice(&r->text, hd_val_get_string(hd_val_get(block, HD_S("text"))));
    }
    return err;
}

static int note_piece(struct reading *r, const struct hd_val *piece)
{
    const struct hd_val *chunks = hd_val_get(piece, HD_S("tool_call_chunks"));
    int err = note_blocks(r, hd_val_get(piece, HD_S("content")));

    assert_slice(hd_val_get_string(hd_val_get(piece, HD_S("id"))), HD_S(ID));
    for (size_t i = 0; i < hd_val_count(chunks) && !err; i++)
        err = hd_buf_append_slice(
            &r->chunks, hd_val_get_string(hd_val_get(hd_val_at(chunks, i), HD_S("args"))));
    return err;
}

static int on_event(void *ctx, const struct hd_sse_event *event)
{
    struct reading *r = ctx;
    struct hd_val *piece = NULL;
    int err = r->answer.is_done ? 0 : r->provider->event(&r->answer, event);

    if (!err)
        err = hd_completion_piece(&r->answer, ID, &piece);
    if (!err && piece)
        err = note_piece(r, piece);
    hd_val_unref(piece);
    return err;
}

static int read_in(struct reading *r, const struct hd_provider *provider, struct hd_slice text,
                   size_t step)
{
    struct hd_sse_read sse;
    int err = 0;

    r->provider = provider;
    hd_completion_init(&r->answer);
    hd_buf_init(&r->text, 1 << 20);
    hd_buf_init(&r->chunks, 1 << 20);
    hd_sse_read_init(&sse, 1 << 20);
    for (size_t pos = 0; pos < text.len && !err; pos += step) {
        size_t len = text.len - pos < step ? text.len - pos : step;

        err = hd_sse_read(&sse, hd_slice(text.ptr + pos, len), on_event, r);
    }
    hd_sse_read_fini(&sse);
    return err;
}

static void close_reading(struct reading *r)
{
    hd_completion_fini(&r->answer);
    hd_buf_fini(&r->text);
    hd_buf_fini(&r->chunks);
}

/* The message of a stream, wherever it is split, and the contents of its chunks. */
static void expect_stream(const struct hd_provider *provider, const char *stream,
                          const char *message, const char *text, const char *chunks)
{
    char *copy = quoted(stream);

    for (size_t step = 1; step <= strlen(copy); step++) {
        struct reading r;

        assert_err(read_in(&r, provider, hd_slice_cstr(copy), step), 0);
        assert_true(r.answer.is_ended);
        assert_err(hd_model_check(&r.answer, provider->name), 0);
        assert_val(hd_completion_message(&r.answer, provider->name, ID), message);
        assert_text(hd_buf_slice(&r.text), text);
        assert_text(hd_buf_slice(&r.chunks), chunks);
        close_reading(&r);
    }
    free(copy);
}

static void expect_failure(const struct hd_provider *provider, const char *stream, const char *type,
                           const char *text)
{
    char *copy = quoted(stream);
    struct reading r;
    int err = read_in(&r, provider, hd_slice_cstr(copy), strlen(copy));

    if (!err)
        err = hd_model_check(&r.answer, provider->name);
    assert_err(err, HD_EINVAL);
    assert_string_equal(r.answer.error_type, type);
    if (!strstr(r.answer.error.ptr, text))
        fail_msg("%s is not in %s", text, r.answer.error.ptr);
    close_reading(&r);
    free(copy);
}

/* ---- OpenAI ----------------------------------------------------------- */

#define DELTA(delta) "data: {'model':'m-1','choices':[{'index':0,'delta':{" delta "}}]}\n\n"
#define FINISH(why) "data: {'choices':[{'index':0,'delta':{},'finish_reason':'" why "'}]}\n\n"
#define DONE "data: [DONE]\n\n"

static void openai_streams_text(void **unused)
{
    (void)unused;
    expect_stream(
        &hd_provider_openai,
        ": hello\n\n" DELTA("'role':'assistant','content':''") DELTA("'content':'Gr\xc3\xbc'")
            DELTA("'content':'\\u00dfe'") FINISH(
                "stop") "data: {'choices':[],'usage':{'prompt_tokens':5,'completion_tokens':2,"
                        "'total_tokens':7,'prompt_tokens_details':{'cached_tokens':3},"
                        "'completion_tokens_details':{'reasoning_tokens':1}}}\n\n" DONE,
        "{'$':'message','type':'ai','content':'Gr\xc3\xbc\xc3\x9f"
        "e','id':'" ID "',"
        "'response_metadata':{'model_name':'m-1','finish_reason':'stop',"
        "'model_provider':'openai'},'usage_metadata':{'input_tokens':5,"
        "'output_tokens':2,'total_tokens':7,'input_token_details':{'cache_read':3},"
        "'output_token_details':{'reasoning':1}}}",
        "Gr\xc3\xbc\xc3\x9f"
        "e",
        "");
}

static void openai_streams_calls_and_reasoning(void **unused)
{
    (void)unused;
    expect_stream(
        &hd_provider_openai,
        DELTA("'reasoning_content':'Let me '") DELTA("'reasoning':'see.'")
            DELTA("'tool_calls':[{'index':0,'id':'c1','type':'function','function':{'name':'look',"
                  "'arguments':''}}]")
                DELTA("'tool_calls':[{'index':0,'function':{'arguments':'{\\'q\\''}}]") DELTA(
                    "'tool_calls':[{'index':1,'id':'c2','function':{'name':'go','arguments':'{}'}},"
                    "{'index':0,'function':{'arguments':':1}'}}]") FINISH("tool_calls") DONE,
        "{'$':'message','type':'ai','content':'','id':'" ID "',"
        "'additional_kwargs':{'reasoning_content':'Let me see.'},'response_metadata':"
        "{'model_name':'m-1','finish_reason':'tool_calls','model_provider':'openai'},"
        "'tool_calls':[{'name':'look','args':{'q':1},'id':'c1','type':'tool_call'},"
        "{'name':'go','args':{},'id':'c2','type':'tool_call'}]}",
        "", "{'q':1}{}");
}

static void arguments_that_are_no_object_are_invalid_calls(void **unused)
{
    (void)unused;
    expect_stream(&hd_provider_openai,
                  DELTA("'tool_calls':[{'index':0,'id':'c1','function':{'name':'look',"
                        "'arguments':'{\\'q\\':'}},{'index':1,'id':'c2','function':{'name':'go',"
                        "'arguments':'{}'}}]") FINISH("length") DONE,
                  "{'$':'message','type':'ai','content':'','id':'" ID "','response_metadata':"
                  "{'model_name':'m-1','finish_reason':'length','model_provider':'openai'},"
                  "'tool_calls':[{'name':'go','args':{},'id':'c2','type':'tool_call'}],"
                  "'invalid_tool_calls':[{'name':'look','args':'{\\'q\\':','id':'c1','error':"
                  "'the arguments are not a JSON object','type':'invalid_tool_call'}]}",
                  "", "{'q':{}");
}

static void openai_streams_that_fail(void **unused)
{
    (void)unused;
    expect_failure(&hd_provider_openai, DELTA("'content':'a'"), "APIConnectionError",
                   "before the response was complete");
    expect_failure(&hd_provider_openai, "data: {'choices':[\n\n", "APIResponseValidationError",
                   "not JSON");
    expect_failure(&hd_provider_openai, "data: 7\n\n", "APIResponseValidationError",
                   "not an object");
    expect_failure(&hd_provider_openai, DONE, "APIResponseValidationError", "empty response");
    expect_failure(&hd_provider_openai,
                   DELTA("'content':'a'") "data: {'error':{'message':'Overloaded','type':'server'}"
                                          "}\n\n",
                   "APIError", "Overloaded (server)");
    expect_failure(&hd_provider_openai, FINISH("content_filter") DONE, "ContentFilterError",
                   "content_filter");
}

static void openai_answers_without_streaming(void **unused)
{
    char *body =
        quoted("{'model':'m','choices':[{'message':{'content':'Hi','tool_calls':[{'id':'a',"
               "'function':{'name':'f','arguments':{'x':[1]}}}]},'finish_reason':'stop'}],"
               "'usage':{'prompt_tokens':1,'completion_tokens':1}}");
    struct hd_completion answer;

    (void)unused;
    hd_completion_init(&answer);
    assert_err(hd_provider_openai.body(&answer, hd_slice_cstr(body)), 0);
    assert_val(hd_completion_message(&answer, "openai", ID),
               "{'$':'message','type':'ai','content':'Hi','id':'" ID "','response_metadata':"
               "{'model_name':'m','finish_reason':'stop','model_provider':'openai'},'tool_calls':"
               "[{'name':'f','args':{'x':[1]},'id':'a','type':'tool_call'}],'usage_metadata':"
               "{'input_tokens':1,'output_tokens':1,'total_tokens':2,'input_token_details':{},"
               "'output_token_details':{}}}");
    hd_completion_fini(&answer);
    hd_completion_init(&answer);
    assert_err(hd_provider_openai.body(&answer, HD_S("{}")), HD_EINVAL);
    hd_completion_fini(&answer);
    free(body);
}

/* ---- Anthropic -------------------------------------------------------- */

#define EVENT(type, rest) "event: " type "\ndata: {'type':'" type "'" rest "}\n\n"

static void anthropic_streams_thinking_text_and_calls(void **unused)
{
    (void)unused;
    expect_stream(
        &hd_provider_anthropic,
        EVENT("message_start", ",'message':{'model':'c-1','usage':{'input_tokens':10,"
                               "'cache_read_input_tokens':4,'output_tokens':1}}")
            EVENT("content_block_start", ",'index':0,'content_block':{'type':'thinking','thinking':"
                                         "''}") EVENT("ping", "")
                EVENT("content_block_delta", ",'index':0,'delta':{'type':"
                                             "'thinking_delta','thinking':'Hm'}")
                    EVENT("content_block_delta",
                          ",'index':0,'delta':{'type':'signature_delta',"
                          "'signature':'SIG'}") EVENT("content_block_stop", ",'index':0")
                        EVENT("content_block_start",
                              ",'index':1,'content_block':{'type':'text','text':''}")
                            EVENT("content_block_delta",
                                  ",'index':1,'delta':{'type':'text_delta','text':'Hi'}")
                                EVENT("content_block_start",
                                      ",'index':2,'content_block':{'type':"
                                      "'tool_use','id':'t1','name':'f','input':"
                                      "{}}") EVENT("content_block_delta",
                                                   ",'index':2,'delta':{'type':'input_json_delta',"
                                                   "'partial_json':'{\\'a\\''}")
                                    EVENT("content_block_delta", ",'index':2,'delta':"
                                                                 "{'type':"
                                                                 "'input_json_delta',"
                                                                 "'partial_json':':2}'}")
                                        EVENT("message_delta",
                                              ",'delta':{'stop_reason':'tool_use'},"
                                              "'usage':{'output_tokens':9}")
                                            EVENT("message_stop", ""),
        "{'$':'message','type':'ai','content':[{'type':'thinking','thinking':'Hm','signature':"
        "'SIG'},{'type':'text','text':'Hi'}],'id':'" ID "','response_metadata':{'model_name':"
        "'c-1','finish_reason':'tool_use','model_provider':'anthropic'},'tool_calls':[{'name':'f',"
        "'args':{'a':2},'id':'t1','type':'tool_call'}],'usage_metadata':{'input_tokens':14,"
        "'output_tokens':9,'total_tokens':23,'input_token_details':{'cache_read':4},"
        "'output_token_details':{}}}",
        "HmHi", "{'a':2}");
}

static void anthropic_streams_plain_text_as_a_string(void **unused)
{
    (void)unused;
    expect_stream(
        &hd_provider_anthropic,
        EVENT("message_start", ",'message':{'model':'c'}")
            EVENT("content_block_start", ",'index':0,'content_block':{'type':'text','text':'A'}")
                EVENT("content_block_delta", ",'index':0,'delta':{'type':'text_delta','text':'b'}")
                    EVENT("message_delta", ",'delta':{'stop_reason':'end_turn'}")
                        EVENT("message_stop", ""),
        "{'$':'message','type':'ai','content':'Ab','id':'" ID "','response_metadata':"
        "{'model_name':'c','finish_reason':'end_turn','model_provider':'anthropic'}}",
        "Ab", "");
}

static void anthropic_streams_that_fail(void **unused)
{
    (void)unused;
    expect_failure(&hd_provider_anthropic,
                   EVENT("error", ",'error':{'type':'overloaded_error','message':'Busy'}"),
                   "APIError", "Busy (overloaded_error)");
    expect_failure(&hd_provider_anthropic,
                   EVENT("message_delta", ",'delta':{'stop_reason':'refusal'}"),
                   "ContentFilterError", "refusal");
    expect_failure(&hd_provider_anthropic, EVENT("message_start", ",'message':{}"),
                   "APIConnectionError", "before the response");
}

/* ---- Gemini ----------------------------------------------------------- */

static void gemini_streams_thoughts_text_and_calls(void **unused)
{
    (void)unused;
    expect_stream(
        &hd_provider_gemini,
        "data: {'modelVersion':'g-1','candidates':[{'content':{'parts':[{'text':'Hm','thought':"
        "true}]}}]}\r\n\r\n"
        "data: {'candidates':[{'content':{'parts':[{'text':'A'},{'text':'b'}]}}]}\r\n\r\n"
        "data: {'candidates':[{'content':{'parts':[{'functionCall':{'id':'f1','name':'f','args':"
        "{'a':1}},'thoughtSignature':'S'},{'functionCall':{'id':'f2','name':'f','args':{}}}]},"
        "'finishReason':'STOP'}],'usageMetadata':{'promptTokenCount':3,'candidatesTokenCount':4,"
        "'thoughtsTokenCount':2,'totalTokenCount':9}}\r\n\r\n",
        "{'$':'message','type':'ai','content':[{'type':'thinking','thinking':'Hm'},{'type':'text',"
        "'text':'Ab'}],'id':'" ID "','additional_kwargs':{"
        "'__gemini_function_call_thought_signatures__':{'f1':'S'}},'response_metadata':"
        "{'model_name':'g-1','finish_reason':'STOP','model_provider':'google'},'tool_calls':["
        "{'name':'f','args':{'a':1},'id':'f1','type':'tool_call'},{'name':'f','args':{},'id':'f2',"
        "'type':'tool_call'}],'usage_metadata':{'input_tokens':3,'output_tokens':6,"
        "'total_tokens':9,'input_token_details':{},'output_token_details':{'reasoning':2}}}",
        "HmAb", "{'a':1}{}");
}

static void gemini_streams_that_fail(void **unused)
{
    (void)unused;
    expect_failure(&hd_provider_gemini, "data: {'promptFeedback':{'blockReason':'SAFETY'}}\n\n",
                   "ContentFilterError", "SAFETY");
    expect_failure(&hd_provider_gemini, "data: {'candidates':[{'finishReason':'SAFETY'}]}\n\n",
                   "ContentFilterError", "withheld");
    expect_failure(&hd_provider_gemini,
                   "data: {'candidates':[{'finishReason':'MALFORMED_FUNCTION_CALL',"
                   "'finishMessage':'bad'}]}\n\n",
                   "APIError", "bad");
    expect_failure(&hd_provider_gemini,
                   "data: {'error':{'code':500,'message':'Oh','status':'INTERNAL'}}\n\n",
                   "APIError", "Oh");
}

static void calls_without_an_id_get_one(void **unused)
{
    struct hd_completion answer;
    struct hd_slice none = {"", 0};

    (void)unused;
    hd_completion_init(&answer);
    assert_err(hd_completion_call(&answer, 0, none, HD_S("f"), none), 0);
    assert_err(hd_completion_call(&answer, 1, none, HD_S("f"), none), 0);
    assert_true(answer.calls[0].id.len > 5);
    assert_false(hd_slice_eq(hd_buf_slice(&answer.calls[0].id), hd_buf_slice(&answer.calls[1].id)));
    hd_completion_fini(&answer);
}

/* ---- requests --------------------------------------------------------- */

static const char conversation[] =
    "[{'$':'message','type':'system','content':'S2'},"
    "{'$':'message','type':'human','content':[{'type':'text','text':'See'},"
    "{'type':'image_url','image_url':{'url':'data:image/png;base64,QUJD','detail':'low'}},"
    "{'type':'image','source_type':'base64','data':'REVG','mime_type':'image/jpeg'},"
    "{'type':'image','source_type':'url','url':'https://x/y.png'}]},"
    "{'$':'message','type':'ai','content':'','tool_calls':[{'name':'f','args':{'a':1},'id':'c1',"
    "'type':'tool_call'}]},"
    "{'$':'message','type':'tool','content':'42','tool_call_id':'c1','status':'error'}]";

/* The body of a request, without streaming and with one tool. */
static void expect_request(const struct hd_provider *provider, const char *base_url,
                           const char *url, const char *body)
{
    struct hd_val *messages = parse(conversation);
    struct hd_val *schema = parse("{'type':'object','properties':{'a':{'type':'integer'}},"
                                  "'additionalProperties':false}");
    struct hd_tool tool = {.name = HD_S("f"), .description = HD_S("D"), .parameters = schema};
    struct hd_toolset_entry entry = {HD_S("f"), &tool};
    struct hd_toolset tools = {&entry, 1};
    struct hd_chat chat = {.model = HD_S("m"),
                           .base_url = hd_slice_cstr(base_url),
                           .key = HD_S("KEY"),
                           .system = HD_S("S1"),
                           .messages = messages,
                           .tools = &tools,
                           .has_temperature = true,
                           .temperature = 1.5,
                           .max_tokens = 7};
    struct hd_chat_request request;

    hd_chat_request_init(&request);
    assert_err(provider->request(&chat, &request), 0);
    assert_string_equal(request.url.ptr, url);
    assert_text(hd_buf_slice(&request.body), body);
    hd_chat_request_fini(&request);
    hd_val_unref(messages);
    hd_val_unref(schema);
}

static void requests_are_as_each_provider_wants_them(void **unused)
{
    (void)unused;
    expect_request(
        &hd_provider_openai, "https://o/v1", "https://o/v1/chat/completions",
        "{'model':'m','messages':[{'role':'system','content':'S1'},{'role':'system','content':"
        "'S2'},{'role':'user','content':[{'type':'text','text':'See'},{'type':'image_url',"
        "'image_url':{'url':'data:image/png;base64,QUJD','detail':'low'}},{'type':'image_url',"
        "'image_url':{'url':'data:image/jpeg;base64,REVG'}},{'type':'image_url','image_url':"
        "{'url':'https://x/y.png'}}]},{'role':'assistant','content':null,'tool_calls':[{'id':'c1',"
        "'type':'function','function':{'name':'f','arguments':'{\\'a\\':1}'}}]},{'role':'tool',"
        "'content':'42','tool_call_id':'c1'}],'tools':[{'type':'function','function':{'name':'f',"
        "'description':'D','parameters':{'type':'object','properties':{'a':{'type':'integer'}},"
        "'additionalProperties':false}}}],'temperature':1.5,'max_tokens':7,'stream':false}");
    expect_request(
        &hd_provider_anthropic, "https://a", "https://a/v1/messages",
        "{'model':'m','max_tokens':7,'system':'S1\\n\\nS2','messages':[{'role':'user','content':["
        "{'type':'text','text':'See'},{'type':'image','source':{'type':'base64','media_type':"
        "'image/png','data':'QUJD'}},{'type':'image','source':{'type':'base64','media_type':"
        "'image/jpeg','data':'REVG'}},{'type':'image','source':{'type':'url','url':"
        "'https://x/y.png'}}]},{'role':'assistant','content':[{'type':'tool_use','id':'c1','name':"
        "'f','input':{'a':1}}]},{'role':'user','content':[{'type':'tool_result','tool_use_id':'c1',"
        "'content':[{'type':'text','text':'42'}],'is_error':true}]}],'tools':[{'name':'f',"
        "'description':'D','input_schema':{'type':'object','properties':{'a':{'type':'integer'}},"
        "'additionalProperties':false}}],'temperature':1.0,'stream':false}");
    expect_request(
        &hd_provider_gemini, "https://g", "https://g/v1beta/models/m:generateContent",
        "{'contents':[{'role':'user','parts':[{'text':'See'},{'inlineData':{'mimeType':'image/png',"
        "'data':'QUJD'}},{'inlineData':{'mimeType':'image/jpeg','data':'REVG'}},{'fileData':"
        "{'mimeType':'image/png','fileUri':'https://x/y.png'}}]},{'role':'model','parts':["
        "{'functionCall':{'name':'f','args':{'a':1}}}]},{'role':'user','parts':["
        "{'functionResponse':{'name':'f','response':{'error':'42'}}}]}],'systemInstruction':"
        "{'parts':[{'text':'S1'},{'text':'S2'}]},'tools':[{'functionDeclarations':[{'name':'f',"
        "'description':'D','parameters':{'type':'object','properties':{'a':{'type':'integer'}}}}]}"
        "],'generationConfig':{'temperature':1.5,'maxOutputTokens':7}}");
}

static void schemas_are_reduced_for_gemini(void **unused)
{
    static const char *const cases[][2] = {
        {"{'type':['string','null'],'format':'uuid','default':1}",
         "{'type':'string','nullable':true}"},
        {"{'type':['string','integer']}", "{'anyOf':[{'type':'string'},{'type':'integer'}]}"},
        {"{'const':'a'}", "{'type':'string','enum':['a']}"},
        {"{'enum':[1,2],'type':'integer'}", "{'type':'integer'}"},
        {"{'$ref':'#/$defs/A','$defs':{'A':{'type':'object','properties':{'b':{'oneOf':[{'type':"
         "'null'},{'type':'number'}]}}}}}",
         "{'type':'object','properties':{'b':{'anyOf':[{'type':'null'},{'type':'number'}]}}}"},
        {"{'allOf':[{'type':'object'},{'required':['x']}],'description':'d'}",
         "{'description':'d','type':'object','required':['x']}"},
        {"{'type':'array','items':{'type':'string','x-a':1}}",
         "{'type':'array','items':{'type':'string'}}"},
        {"{'$ref':'#/nowhere'}", "{}"},
    };

    (void)unused;
    for (size_t i = 0; i < HD_COUNT(cases); i++) {
        char *copy = quoted(cases[i][0]);
        struct hd_val *schema = NULL;

        assert_err(hd_val_parse_json(hd_slice_cstr(copy), &schema, NULL), 0);
        assert_val(hd_schema_reduce(schema), cases[i][1]);
        hd_val_unref(schema);
        free(copy);
    }
}

static void a_schema_that_contains_itself_ends(void **unused)
{
    struct hd_val *schema = NULL, *reduced;

    (void)unused;
    assert_err(hd_val_parse_json(HD_S("{\"$ref\":\"#/$defs/A\",\"$defs\":{\"A\":{\"properties\":{"
                                      "\"a\":{\"$ref\":\"#/$defs/A\"},\"b\":{\"$ref\":\"#/$defs/A\""
                                      "}}}}}"),
                                 &schema, NULL),
               0);
    reduced = hd_schema_reduce(schema);
    assert_non_null(reduced);
    hd_val_unref(reduced);
    hd_val_unref(schema);
}

/* ---- conversations ---------------------------------------------------- */

#define HUMAN(text) "{'$':'message','type':'human','content':'" text "'}"
#define ASKS(ids) "{'$':'message','type':'ai','content':'','tool_calls':[" ids "]}"
#define CALL(id) "{'name':'f','args':{},'id':'" id "','type':'tool_call'}"
#define TOOL(id) "{'$':'message','type':'tool','content':'" id "!','tool_call_id':'" id "'}"
#define NO_ANSWER(id)                                                                  \
    "{'$':'message','type':'tool','content':'No result: this call was not executed.'," \
    "'tool_call_id':'" id "','status':'error'}"

static void calls_are_followed_by_their_answers(void **unused)
{
    static const char *const cases[][2] = {
        {"[" HUMAN("a") "]", "[" HUMAN("a") "]"},
        {"[" ASKS(CALL("1") "," CALL("2")) "," HUMAN("b") "," TOOL("2") "]",
         "[" ASKS(CALL("1") "," CALL("2")) "," NO_ANSWER("1") "," TOOL("2") "," HUMAN("b") "]"},
        {"[" TOOL("9") "," HUMAN("a") "]", "[" HUMAN("a") "]"},
    };

    (void)unused;
    for (size_t i = 0; i < HD_COUNT(cases); i++) {
        struct hd_val *given = parse(cases[i][0]), *out = NULL;

        assert_err(hd_chat_prepare(given, &out, NULL), 0);
        assert_val(out, cases[i][1]);
        hd_val_unref(given);
    }
}

static void a_model_waits_for_answers_to_its_calls(void **unused)
{
    static const struct {
        const char *messages;
        bool is_waiting;
    } cases[] = {
        {"[]", false},
        {"[" HUMAN("a") "]", false},
        {"[" ASKS(CALL("1")) "]", true},
        {"[" ASKS(CALL("1") "," CALL("2")) "," TOOL("2") "]", true},
        {"[" ASKS(CALL("1") "," CALL("2")) "," TOOL("2") "," TOOL("1") "]", false},
        {"[" ASKS(CALL("1")) "," HUMAN("b") "]", false},
    };

    (void)unused;
    for (size_t i = 0; i < HD_COUNT(cases); i++) {
        struct hd_val *messages = parse(cases[i].messages);

        assert_int_equal(hd_chat_is_waiting(messages), cases[i].is_waiting);
        hd_val_unref(messages);
    }
}

static void invalid_calls_are_answered_with_an_error(void **unused)
{
    struct hd_val *messages =
        parse("[{'$':'message','type':'ai','content':'','invalid_tool_calls':[{'name':'f','args':"
              "'{x','id':'i1','error':'e','type':'invalid_tool_call'}]}]");
    struct hd_val *repairs, *all;

    (void)unused;
    assert_false(hd_chat_is_waiting(messages));
    repairs = hd_chat_repairs(messages);
    assert_int_equal(hd_val_count(repairs), 1);
    assert_slice(hd_val_get_string(hd_val_get(hd_val_at(repairs, 0), HD_S("tool_call_id"))),
                 HD_S("i1"));
    assert_slice(hd_val_get_string(hd_val_get(hd_val_at(repairs, 0), HD_S("status"))),
                 HD_S("error"));
    all = hd_val_extend(hd_val_ref(messages), repairs);
    hd_val_unref(repairs);
    repairs = hd_chat_repairs(all);
    assert_int_equal(hd_val_count(repairs), 0);
    hd_val_unref(repairs);
    hd_val_unref(all);
    hd_val_unref(messages);
}

/* ---- errors ----------------------------------------------------------- */

static void statuses_become_exceptions(void **unused)
{
    static const struct {
        long status;
        const char *body, *type, *text;
    } cases[] = {
        {401, "{'error':{'message':'Bad key','code':'invalid_api_key'}}", "AuthenticationError",
         "Bad key [invalid_api_key]"},
        {403, "", "AuthenticationError", "403"},
        {404, "{'error':'no such model'}", "NotFoundError", "no such model"},
        {429, "{'error':{'message':'Slow down'}}", "RateLimitError",
         "OpenAI rate limit reached (status 429, 2 times): Slow down"},
        {422, "{'detail':'bad field'}", "BadRequestError", "bad field"},
        {400, "{'error':{'message':'too many','code':'context_length_exceeded'}}",
         "BadRequestError", "too long for the model"},
        {400, "[{'error':{'code':400,'message':'in a list','status':'INVALID'}}]",
         "BadRequestError", "in a list"},
        {503, "<html>", "InternalServerError", "<html>"},
        {302, "", "APIStatusError", "302"},
    };

    (void)unused;
    for (size_t i = 0; i < HD_COUNT(cases); i++) {
        char *body = quoted(cases[i].body);
        struct hd_reply reply = {
            .status = cases[i].status, .body = hd_slice_cstr(body), .tries = 2};
        struct hd_completion answer;

        hd_completion_init(&answer);
        hd_model_refused(&answer, "openai", &reply);
        assert_string_equal(answer.error_type, cases[i].type);
        if (!strstr(answer.error.ptr, cases[i].text))
            fail_msg("%s is not in %s", cases[i].text, answer.error.ptr);
        hd_completion_fini(&answer);
        free(body);
    }
}

static void keys_are_masked_in_errors(void **unused)
{
    struct hd_completion answer;
    struct hd_buf out;

    (void)unused;
    hd_completion_init(&answer);
    hd_buf_init(&out, 1000);
    assert_err(hd_completion_fail(&answer, "E", "the key sk-12345 is bad: sk-12345"), HD_EINVAL);
    assert_err(hd_model_mask(&answer, HD_S("sk-12345"), &out), 0);
    assert_slice(hd_buf_slice(&out), HD_S("the key *** is bad: ***"));
    hd_buf_fini(&out);
    hd_completion_fini(&answer);
}

/* ---- no memory -------------------------------------------------------- */

static int read_and_make(void *arg)
{
    static const char stream[] =
        "data: {\"model\":\"m\",\"choices\":[{\"delta\":{\"content\":\"a\",\"reasoning\":\"r\","
        "\"tool_calls\":[{\"index\":0,\"id\":\"c\",\"function\":{\"name\":\"f\",\"arguments\":\"{"
        "\"}}]},\"finish_reason\":\"stop\"}]}\n\n";
    struct hd_val *message = NULL, *last = NULL;
    struct reading r;
    int err = read_in(&r, &hd_provider_openai, HD_S(stream), sizeof(stream));

    (void)arg;
    if (!err) {
        message = hd_completion_message(&r.answer, "openai", ID);
        last = hd_completion_last(&r.answer, "openai", ID);
        err = message && last ? 0 : HD_ENOMEM;
    }
    hd_val_unref(message);
    hd_val_unref(last);
    close_reading(&r);
    return err;
}

static int ask_all(void *arg)
{
    static const struct hd_provider *const providers[] = {
        &hd_provider_openai, &hd_provider_anthropic, &hd_provider_gemini};
    struct hd_val *prepared = NULL;
    int err = hd_chat_prepare(arg, &prepared, NULL);

    for (size_t i = 0; i < HD_COUNT(providers) && !err; i++) {
        struct hd_chat chat = {.model = HD_S("m"),
                               .base_url = HD_S("http://x"),
                               .key = HD_S("k"),
                               .system = HD_S("s"),
                               .messages = prepared,
                               .streams = true};
        struct hd_chat_request request;

        hd_chat_request_init(&request);
        err = providers[i]->request(&chat, &request);
        hd_chat_request_fini(&request);
    }
    hd_val_unref(prepared);
    return err;
}

static void every_allocation_may_fail(void **unused)
{
    struct hd_val *messages = parse(conversation);

    (void)unused;
    assert_true(check_every_allocation(read_and_make, NULL) > 10);
    assert_true(check_every_allocation(ask_all, messages) > 10);
    hd_val_unref(messages);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(openai_streams_text),
        cmocka_unit_test(openai_streams_calls_and_reasoning),
        cmocka_unit_test(arguments_that_are_no_object_are_invalid_calls),
        cmocka_unit_test(openai_streams_that_fail),
        cmocka_unit_test(openai_answers_without_streaming),
        cmocka_unit_test(anthropic_streams_thinking_text_and_calls),
        cmocka_unit_test(anthropic_streams_plain_text_as_a_string),
        cmocka_unit_test(anthropic_streams_that_fail),
        cmocka_unit_test(gemini_streams_thoughts_text_and_calls),
        cmocka_unit_test(gemini_streams_that_fail),
        cmocka_unit_test(calls_without_an_id_get_one),
        cmocka_unit_test(requests_are_as_each_provider_wants_them),
        cmocka_unit_test(schemas_are_reduced_for_gemini),
        cmocka_unit_test(a_schema_that_contains_itself_ends),
        cmocka_unit_test(calls_are_followed_by_their_answers),
        cmocka_unit_test(a_model_waits_for_answers_to_its_calls),
        cmocka_unit_test(invalid_calls_are_answered_with_an_error),
        cmocka_unit_test(statuses_become_exceptions),
        cmocka_unit_test(keys_are_masked_in_errors),
        cmocka_unit_test(every_allocation_may_fail),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
