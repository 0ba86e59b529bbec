/* Partial messages, assembled from chunks. */
#include <string.h>

#include "graph/stream/partials.h"
#include "tests/unit/check.h"

struct heard {
    struct hd_partials partials;
    struct hd_buf text; /* a line for each event */
};

static void hear(void *ctx, const char *event, const struct hd_val *data)
{
    struct heard *h = ctx;

    assert_int_equal(hd_buf_printf(&h->text, "%s ", strchr(event, '/') + 1), 0);
    assert_int_equal(hd_val_write(&h->text, data), 0);
    assert_int_equal(hd_buf_append_byte(&h->text, '\n'), 0);
}

static void open_heard(struct heard *h)
{
    *h = (struct heard){.partials = {NULL}};
    hd_buf_init(&h->text, 1000000);
}

static void close_heard(struct heard *h)
{
    hd_partials_fini(&h->partials);
    hd_buf_fini(&h->text);
}

/* Single quotes stand for double ones. */
static struct hd_val *parse(const char *text)
{
    struct hd_val *val;
    char copy[4096];

    assert_true(strlen(text) < sizeof(copy));
    for (size_t i = 0; i <= strlen(text); i++)
        copy[i] = text[i] == '\'' ? '"' : text[i];
    assert_int_equal(hd_val_parse(hd_slice_cstr(copy), &val, NULL), 0);
    return val;
}

static void feed(struct heard *h, const char *message)
{
    struct hd_val *pair = hd_val_append(hd_val_list(), parse(message));

    pair = hd_val_append(pair, parse("{'langgraph_node':'n'}"));
    assert_int_equal(hd_partials_message(&h->partials, pair, hear, h), 0);
    hd_val_unref(pair);
}

static void feed_values(struct heard *h, const char *values)
{
    struct hd_val *val = parse(values);

    assert_int_equal(hd_partials_values(&h->partials, val, hear, h), 0);
    hd_val_unref(val);
}

static void assert_heard(struct heard *h, const char *wanted)
{
    assert_int_equal(hd_buf_append_byte(&h->text, 0), 0);
    for (char *pos = h->text.ptr; *pos; pos++)
        *pos = *pos == '"' ? '\'' : *pos;
    assert_string_equal(h->text.ptr, wanted);
    hd_buf_reset(&h->text);
}

#define PIECE(more) "{'$':'message','type':'AIMessageChunk'," more "}"
#define AI(more) "[{'$':'message','type':'ai'," more "}]\n"
#define ABOUT(id) "metadata {'" id "':{'metadata':{'langgraph_node':'n'}}}\n"

static void each_piece_gives_the_whole_text_so_far(void **unused)
{
    struct heard h;

    (void)unused;
    open_heard(&h);
    feed(&h, PIECE("'content':'Hel','id':'m'"));
    feed(&h, PIECE("'content':'lo','id':'m'"));
    feed(&h, PIECE("'content':'','id':'m','usage_metadata':{'input_tokens':2,'output_tokens':3,"
                   "'total_tokens':5},'chunk_position':'last'"));
    assert_heard(
        &h,
        ABOUT("m") "partial " AI("'content':'Hel','id':'m'") "partial " AI(
            "'content':'Hello','id':"
            "'m'") "partial " AI("'content':'Hello','id':'m','usage_metadata':{'input_tokens':2,"
                                 "'output_tokens':3,'total_tokens':5}") "complete " AI("'content':'"
                                                                                       "Hello','id'"
                                                                                       ":'m','"
                                                                                       "usage_"
                                                                                       "metadata':{"
                                                                                       "'input_"
                                                                                       "tokens':"
                                                                                       "2,"
                                                                                       "'output_"
                                                                                       "tokens':3,'"
                                                                                       "total_"
                                                                                       "tokens'"
                                                                                       ":5}"));
    /* A complete message is not repeated when the state has it or a node returns it. */
    feed_values(&h, "{'messages':[{'$':'message','type':'ai','content':'Hello','id':'m'}]}");
    feed(&h, "{'$':'message','type':'ai','content':'Hello','id':'m'}");
    assert_heard(&h, "");
    close_heard(&h);
}

static void pieces_of_two_messages_do_not_mix(void **unused)
{
    struct heard h;

    (void)unused;
    open_heard(&h);
    feed(&h, PIECE("'content':'a','id':'1'"));
    feed(&h, PIECE("'content':'x','id':'2'"));
    feed(&h, PIECE("'content':'b','id':'1'"));
    assert_heard(&h, ABOUT("1") "partial " AI("'content':'a','id':'1'") ABOUT("2") "partial " AI(
                         "'content':'x','id':'2'") "partial " AI("'content':'ab','id':'1'"));
    close_heard(&h);
}

static void arguments_of_calls_come_bit_by_bit(void **unused)
{
    struct heard h;

    (void)unused;
    open_heard(&h);
    feed(&h, PIECE("'content':'','id':'m','tool_calls':[],'tool_call_chunks':[{'name':'f',"
                   "'args':'{\\'k\\'','id':'c','index':0,'type':'tool_call_chunk'}]"));
    feed(&h, PIECE("'content':'','id':'m','tool_calls':[],'tool_call_chunks':[{'name':null,"
                   "'args':':1}','id':null,'index':0,'type':'tool_call_chunk'}]"));
    feed(&h, PIECE("'content':'','id':'m','tool_calls':[],'tool_call_chunks':[{'name':'g',"
                   "'args':'{}','id':'d','index':1,'type':'tool_call_chunk'}]"));
    assert_heard(
        &h, ABOUT("m") "partial " AI(
                "'content':'','id':'m','tool_calls':[{'name':'f','args':{},"
                "'id':'c','type':'tool_call'}]") "partial " AI("'content':'','id':'m','tool_calls':"
                                                               "[{'name':'f','args':{'k':1},'id':'"
                                                               "c',"
                                                               "'type':'tool_call'}]") "partial"
                                                                                       " " AI("'con"
                                                                                              "tent"
                                                                                              "':''"
                                                                                              ",'"
                                                                                              "id':"
                                                                                              "'m',"
                                                                                              "'too"
                                                                                              "l_"
                                                                                              "call"
                                                                                              "s':["
                                                                                              "{'"
                                                                                              "name"
                                                                                              "':'"
                                                                                              "f','"
                                                                                              "args"
                                                                                              "':{'"
                                                                                              "k':"
                                                                                              "1},'"
                                                                                              "id':"
                                                                                              "'c',"
                                                                                              "'typ"
                                                                                              "e':'"
                                                                                              "tool"
                                                                                              "_cal"
                                                                                              "l'},"
                                                                                              "{'"
                                                                                              "name"
                                                                                              "':'"
                                                                                              "g','"
                                                                                              "args"
                                                                                              "':{}"
                                                                                              ",'"
                                                                                              "id':"
                                                                                              "'d',"
                                                                                              "'typ"
                                                                                              "e':'"
                                                                                              "tool"
                                                                                              "_cal"
                                                                                              "l'}"
                                                                                              "]"));
    close_heard(&h);
}

static void blocks_follow_blocks(void **unused)
{
    struct heard h;

    (void)unused;
    open_heard(&h);
    feed(&h, PIECE("'content':'','id':'m'"));
    feed(&h, PIECE("'content':[{'type':'text','text':'a'}],'id':'m'"));
    feed(&h, PIECE("'content':'b','id':'m'"));
    assert_heard(
        &h,
        ABOUT("m") "partial " AI("'content':'','id':'m'") "partial " AI(
            "'content':[{'type':'text','text':'a'}],'id':'m'") "partial " AI("'content':[{'type':'"
                                                                             "text','text':'a'},'b'"
                                                                             "],'id':'m'"));
    close_heard(&h);
}

static void pieces_of_one_block_are_one_block(void **unused)
{
    struct heard h;

    (void)unused;
    open_heard(&h);
    feed(&h, PIECE("'content':[{'type':'thinking','thinking':'Let','index':0}],'id':'t'"));
    feed(&h, PIECE("'content':[{'type':'thinking','thinking':' me','signature':'S','index':0},"
                   "{'type':'text','text':'Hi','index':1}],'id':'t'"));
    assert_heard(&h, ABOUT("t") "partial " AI(
                         "'content':[{'type':'thinking','thinking':'Let','"
                         "index':0}],'id':'t'") "partial " AI("'content':[{'type':'thinking','"
                                                              "thinking':'Let me','index':0,"
                                                              "'signature':'S'},{'type':'text','"
                                                              "text':'Hi','index':1}],"
                                                              "'id':'t'"));
    close_heard(&h);
}

static void thoughts_beside_the_content_are_joined(void **unused)
{
    struct heard h;

    (void)unused;
    open_heard(&h);
    feed(&h, PIECE("'content':'','id':'r','additional_kwargs':{'reasoning_content':'So'}"));
    feed(&h, PIECE("'content':'','id':'r','additional_kwargs':{'reasoning_content':' be it'}"));
    assert_heard(
        &h,
        ABOUT("r") "partial " AI(
            "'content':'','id':'r','additional_kwargs':{'"
            "reasoning_content':'So'}") "partial " AI("'content':'','id':'r','additional_kwargs':{"
                                                      "'reasoning_content':'So be it'}"));
    close_heard(&h);
}

static void whole_messages_are_complete(void **unused)
{
    struct heard h;

    (void)unused;
    open_heard(&h);
    feed_values(&h, "{'messages':[{'$':'message','type':'human','content':'hi','id':'q'}],'n':1}");
    feed(&h, "{'$':'message','type':'tool','content':'42','id':'t','tool_call_id':'c'}");
    feed(&h, "{'$':'message','type':'tool','content':'42','id':'t','tool_call_id':'c'}");
    feed(&h, "{'$':'message','type':'remove','content':'','id':'q'}");
    assert_heard(&h, "complete [{'$':'message','type':'human','content':'hi','id':'q'}]\n" ABOUT(
                         "t") "complete [{'$':'message','type':'tool','content':'42','id':'t',"
                              "'tool_call_id':'c'}]\n");
    close_heard(&h);
}

static void ignore(void *ctx, const char *event, const struct hd_val *data)
{
    (void)ctx;
    (void)event;
    (void)data;
}

static int gather(void *pairs)
{
    struct hd_partials partials = {NULL};
    int err = 0;

    for (size_t i = 0; i < hd_val_count(pairs) && !err; i++)
        err = hd_partials_message(&partials, hd_val_at(pairs, i), ignore, NULL);
    hd_partials_fini(&partials);
    return err;
}

static void every_allocation_may_fail(void **unused)
{
    struct hd_val *pairs =
        parse("[[" PIECE("'content':'a','id':'m','tool_call_chunks':[{'args':'{}"
                         "','index':0}]") ",{}],"
                                          "[" PIECE("'content':'b','id':'m','tool_"
                                                    "call_chunks':[{'args':'','index':"
                                                    "0}],"
                                                    "'usage_metadata':{'input_tokens':"
                                                    "1}") ",{}],"
                                                          "[" PIECE("'content':['c'],'id':'"
                                                                    "m','usage_metadata':{'"
                                                                    "input_tokens':1},"
                                                                    "'chunk_position':'"
                                                                    "last'") ",{}],"
                                                                             "[{'$':'"
                                                                             "message','"
                                                                             "type':'ai','"
                                                                             "content':'','"
                                                                             "id':'n'},{}]"
                                                                             "]");

    (void)unused;
    /* Some allocations are optional: the JSON parser continues when shrinking a block fails. */
    for (long n = 1, asked = n; asked >= n; n++) {
        int err;

        (void)hd_alloc_fail_at(n, 1);
        err = gather(pairs);
        asked = hd_alloc_fail_at(0, 0);
        if (err || asked > n)
            assert_err(err, HD_ENOMEM);
    }
    hd_val_unref(pairs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_piece_gives_the_whole_text_so_far),
        cmocka_unit_test(pieces_of_two_messages_do_not_mix),
        cmocka_unit_test(arguments_of_calls_come_bit_by_bit),
        cmocka_unit_test(blocks_follow_blocks),
        cmocka_unit_test(pieces_of_one_block_are_one_block),
        cmocka_unit_test(thoughts_beside_the_content_are_joined),
        cmocka_unit_test(whole_messages_are_complete),
        cmocka_unit_test(every_allocation_may_fail),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
