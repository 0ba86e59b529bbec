/* The shared vectors of tests/data/encoding.json, and cases of the C core alone. */
#include "store/codec/canon.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/check.h"

/* ---- helpers ---------------------------------------------------------- */

static struct hd_slice text_of(const struct hd_buf *buf)
{
    return hd_slice(buf->ptr ? buf->ptr : "", buf->len);
}

static hd_json_val parse(struct hd_json *json, const char *text)
{
    struct heddle_error fault = {0};

    if (hd_json_parse(json, hd_slice_cstr(text), &fault) != 0)
        fail_msg("%s: %s", text, fault.text);
    return hd_json_root(json);
}

typedef int (*write_fn)(struct hd_jw *jw, hd_json_val val, struct heddle_error *fault);

/* Writes the result of `fn` for plain JSON into `out`, which the caller frees. */
static int write_with(write_fn fn, const char *text, struct hd_buf *out, struct heddle_error *fault)
{
    struct hd_json json;
    struct hd_jw jw;
    int err;

    hd_buf_init(out, 1 << 20);
    hd_jw_init(&jw, out);
    err = fn(&jw, parse(&json, text), fault);
    assert_int_equal(hd_jw_finish(&jw), err);
    hd_json_fini(&json);
    return err;
}

static void assert_valid(struct hd_slice text)
{
    struct heddle_error fault = {0};

    if (hd_canon_validate(text, &fault) != 0)
        fail_msg("%.*s: %s", (int)text.len, text.ptr, fault.text);
}

struct case_of_writing {
    const char *json;
    const char *expected; /* canonical text; or, when it is refused, part of the error */
    bool is_refused;
};

static void check_writing(write_fn fn, const struct case_of_writing *cases, size_t count)
{
    size_t i;

    for (i = 0; i < count; i++) {
        struct heddle_error fault = {0};
        struct hd_buf out;
        int err = write_with(fn, cases[i].json, &out, &fault);

        if (cases[i].is_refused) {
            assert_err(err, HD_EINVAL);
            if (!strstr(fault.text, cases[i].expected))
                fail_msg("%s: %s", cases[i].json, fault.text);
        } else {
            if (err != 0)
                fail_msg("%s: %s", cases[i].json, fault.text);
            assert_slice(text_of(&out), hd_slice_cstr(cases[i].expected));
            assert_valid(text_of(&out));
        }
        hd_buf_fini(&out);
    }
}

/* ---- the vectors ------------------------------------------------------ */

struct vectors {
    struct hd_json json;
    hd_json_val valid;
    hd_json_val invalid;
};

static int read_vectors(void **state)
{
    static struct vectors vectors;
    const char *dir = getenv("HD_TEST_DATA");
    char path[4096];
    struct hd_buf text;
    FILE *file;

    snprintf(path, sizeof(path), "%s/encoding.json", dir ? dir : "tests/data");
    hd_buf_init(&text, 16 << 20);
    file = fopen(path, "rb");
    if (!file || hd_buf_reserve(&text, 1 << 20) != 0)
        return -1;
    text.len = fread(text.ptr, 1, 1 << 20, file);
    fclose(file);
    if (hd_json_parse(&vectors.json, hd_buf_slice(&text), NULL) != 0)
        return -1;
    hd_buf_fini(&text);
    vectors.valid = hd_json_get(hd_json_root(&vectors.json), HD_S("valid"));
    vectors.invalid = hd_json_get(hd_json_root(&vectors.json), HD_S("invalid"));
    *state = &vectors;
    return 0;
}

static int free_vectors(void **state)
{
    struct vectors *vectors = *state;

    hd_json_fini(&vectors->json);
    return 0;
}

static void there_are_enough_vectors(void **state)
{
    const struct vectors *vectors = *state;

    assert_true(hd_json_size(vectors->valid) >= 80);
    assert_true(hd_json_size(vectors->invalid) >= 30);
}

static void valid_vectors_validate(void **state)
{
    const struct vectors *vectors = *state;
    struct hd_json_iter it = hd_json_iter(vectors->valid);

    while (hd_json_next(&it))
        assert_valid(hd_json_string(hd_json_get(it.val, HD_S("hd1"))));
}

/* The output is compact and escapes only the required characters. */
static void valid_vectors_are_as_a_writer_writes_them(void **state)
{
    const struct vectors *vectors = *state;
    struct hd_json_iter it = hd_json_iter(vectors->valid);

    while (hd_json_next(&it)) {
        struct hd_slice text = hd_json_string(hd_json_get(it.val, HD_S("hd1")));
        struct hd_json json;
        struct hd_buf out;

        hd_buf_init(&out, 1 << 20);
        assert_err(hd_json_parse(&json, text, NULL), 0);
        assert_err(hd_json_write_val(&out, hd_json_root(&json)), 0);
        assert_slice(text_of(&out), text);
        hd_json_fini(&json);
        hd_buf_fini(&out);
    }
}

static void valid_vectors_render(void **state)
{
    const struct vectors *vectors = *state;
    struct hd_json_iter it = hd_json_iter(vectors->valid);

    while (hd_json_next(&it)) {
        struct hd_buf expected, out;

        hd_buf_init(&expected, 1 << 20);
        hd_buf_init(&out, 1 << 20);
        assert_err(hd_json_write_val(&expected, hd_json_get(it.val, HD_S("render"))), 0);
        assert_err(hd_canon_render(&out, hd_json_string(hd_json_get(it.val, HD_S("hd1"))), NULL),
                   0);
        assert_slice(text_of(&out), text_of(&expected));
        hd_buf_fini(&expected);
        hd_buf_fini(&out);
    }
}

static void invalid_vectors_are_refused(void **state)
{
    const struct vectors *vectors = *state;
    struct hd_json_iter it = hd_json_iter(vectors->invalid);

    while (hd_json_next(&it)) {
        struct hd_slice text = hd_json_string(hd_json_get(it.val, HD_S("hd1")));
        struct heddle_error fault = {0};

        if (hd_canon_validate(text, &fault) != HD_EINVAL)
            fail_msg("accepted: %.*s", (int)text.len, text.ptr);
        assert_true(fault.text[0] != '\0');
    }
}

/* ---- validating ------------------------------------------------------- */

static void a_fault_names_the_member(void **state)
{
    static const char *const cases[][2] = {
        {"{\"$\":1}", "at /$: a string expected"},
        {"[0,{\"$\":\"send\",\"node\":\"n\"}]", "at /1/arg: missing"},
        {"{\"messages\":[{\"$\":\"message\",\"type\":\"tool\",\"content\":\"x\"}]}",
         "at /messages/0/tool_call_id: missing"},
        {"{\"$\":\"message\",\"type\":\"robot\",\"content\":\"\"}",
         "at /type: a type of message expected"},
        {"{\"$\":\"message\",\"type\":\"human\",\"content\":[1]}", "at /content: a string or"},
        {"{\"$\":\"message\",\"type\":\"human\",\"content\":[{\"a\":[9007199254740992]}]}",
         "at /content/0/a/0: an integer beyond 2^53-1"},
        {"{\"a/b~\":[{\"$\":\"set\"}]}", "at /a~1b~0/0/items: missing"},
        {"{\"\":{\"b\":1,\"b\":2}}", "at //b: a name that occurs twice"},
        {"{\"$\":\"map\",\"items\":[[\"k\",1],[\"k\",1]]}", "at /k: a key that occurs twice"},
        {"{\"$\":\"undefined\",\"x\":1}", "at /x: no member of this kind"},
        {"{\"$\":\"message\",\"type\":\"human\",\"content\":\"\",\"role\":\"r\"}",
         "at /role: no member of such a message"},
        {"1e999", "at the root: a number too large"},
        {"{\"b\":1,\"$\":\"x\"}", "at /$: not the first member"},
        {"[1,", "not valid JSON"},
        {"\"\xff\"", "not valid JSON"},
    };
    size_t i;

    (void)state;
    for (i = 0; i < HD_COUNT(cases); i++) {
        struct heddle_error fault = {0};

        assert_err(hd_canon_validate(hd_slice_cstr(cases[i][0]), &fault), HD_EINVAL);
        if (!strstr(fault.text, cases[i][1]))
            fail_msg("%s: %s", cases[i][0], fault.text);
    }
}

static void a_long_way_to_the_member_is_cut(void **state)
{
    struct heddle_error fault = {0};
    struct hd_buf text;
    int i;

    (void)state;
    hd_buf_init(&text, 1 << 20);
    for (i = 0; i < 100; i++)
        assert_err(hd_buf_append_slice(&text, HD_S("{\"schl\xc3\xbcssel\":")), 0);
    assert_err(hd_buf_append_slice(&text, HD_S("{\"$\":1}")), 0);
    for (i = 0; i < 100; i++)
        assert_err(hd_buf_append_byte(&text, '}'), 0);
    assert_err(hd_canon_validate(hd_buf_slice(&text), &fault), HD_EINVAL);
    assert_non_null(strstr(fault.text, "at /schl\xc3\xbcssel/schl\xc3\xbcssel/"));
    assert_non_null(strstr(fault.text, ": a string expected"));
    hd_buf_fini(&text);
}

/* {"k0":…,"k1":…} with `count` members; with `is_twice` the last one is repeated. */
static void put_many(struct hd_buf *out, int count, bool is_twice)
{
    int i;

    for (i = 0; i < count; i++)
        assert_err(hd_buf_printf(out, "%c\"k%d\":%d", i ? ',' : '{', i, i), 0);
    if (is_twice)
        assert_err(hd_buf_printf(out, ",\"k%d\":0", count - 1), 0);
    assert_err(hd_buf_append_byte(out, '}'), 0);
}

static void duplicates_are_found_among_any_number_of_names(void **state)
{
    static const int counts[] = {1, 2, 15, 16, 17, 18, 1000};
    size_t i;

    (void)state;
    for (i = 0; i < HD_COUNT(counts); i++) {
        struct hd_buf text;
        int twice;

        for (twice = 0; twice < 2; twice++) {
            hd_buf_init(&text, 1 << 20);
            put_many(&text, counts[i], twice != 0);
            assert_err(hd_canon_validate(hd_buf_slice(&text), NULL), twice ? HD_EINVAL : 0);
            hd_buf_fini(&text);
        }
    }
}

/* ---- rendering -------------------------------------------------------- */

static void malformed_records_are_rendered_unchanged(void **state)
{
    static const char *const texts[] = {
        "{\"$\":\"int\",\"v\":\"12x\"}",
        "{\"$\":\"int\",\"v\":\"1\",\"w\":2}",
        "{\"$\":\"send\",\"node\":\"n\"}",
        "{\"$\":\"map\",\"items\":[[1]]}",
        "{\"$\":\"message\",\"type\":\"robot\",\"content\":\"x\"}",
        "{\"$\":\"message\",\"type\":\"human\"}",
        "{\"$\":\"utf16\",\"v\":\"AA==\"}",
        "{\"$\":\"undefined\",\"a\":{\"$\":7}}",
        "{\"a\":1,\"$\":\"int\",\"v\":\"1\"}",
        "{\"$\":null}",
        "9007199254740993",
        "1e999",
    };
    size_t i;

    (void)state;
    for (i = 0; i < HD_COUNT(texts); i++) {
        struct hd_buf out;

        hd_buf_init(&out, 1 << 20);
        assert_err(hd_canon_render(&out, hd_slice_cstr(texts[i]), NULL), 0);
        assert_slice(text_of(&out), hd_slice_cstr(texts[i]));
        hd_buf_fini(&out);
    }
}

static void a_failed_rendering_leaves_nothing(void **state)
{
    struct heddle_error fault = {0};
    struct hd_buf out;

    (void)state;
    hd_buf_init(&out, 8);
    assert_err(hd_buf_append_slice(&out, HD_S("abc")), 0);
    assert_err(hd_canon_render(&out, HD_S("[1,2"), &fault), HD_EINVAL);
    assert_err(hd_canon_render(&out, HD_S("[1,2,3,4,5]"), NULL), HD_ELIMIT);
    assert_slice(text_of(&out), HD_S("abc"));
    hd_buf_fini(&out);
}

/* ---- writing ---------------------------------------------------------- */

static void plain_json_becomes_canonical(void **state)
{
    static const struct case_of_writing cases[] = {
        {"null", "null", false},
        {" [ 1 , 2.50 , 1E5 , \"\\u00e9\\/\" ] ", "[1,2.50,1E5,\"\xc3\xa9/\"]", false},
        {"{\"b\":{},\"a\":[]}", "{\"b\":{},\"a\":[]}", false},
        {"9007199254740991", "9007199254740991", false},
        {"9007199254740992", "{\"$\":\"int\",\"v\":\"9007199254740992\"}", false},
        {"-9007199254740991", "-9007199254740991", false},
        {"-9007199254740992", "{\"$\":\"int\",\"v\":\"-9007199254740992\"}", false},
        {"123456789012345678901234567890",
         "{\"$\":\"int\",\"v\":\"123456789012345678901234567890\"}", false},
        {"-0", "0", false},
        {"-0.0", "{\"$\":\"float\",\"v\":\"-0\"}", false},
        {"-0e5", "{\"$\":\"float\",\"v\":\"-0\"}", false},
        {"0.0", "0.0", false},
        {"[1e999,-1e999]", "[{\"$\":\"float\",\"v\":\"inf\"},{\"$\":\"float\",\"v\":\"-inf\"}]",
         false},
        {"{\"$\":\"message\",\"type\":\"human\"}",
         "{\"$\":\"map\",\"items\":[[\"$\",\"message\"],[\"type\",\"human\"]]}", false},
        {"{\"a\":1,\"$\":[{\"$\":2}]}",
         "{\"$\":\"map\",\"items\":[[\"a\",1],[\"$\",[{\"$\":\"map\",\"items\":[[\"$\",2]]}]]]}",
         false},
        {"{\"a\":1,\"a\":2}", "\"a\" occurs twice", true},
        {"[{\"x\":{\"\":1,\"\":2}}]", "\"\" occurs twice", true},
    };

    (void)state;
    check_writing(hd_canon_write_plain, cases, HD_COUNT(cases));
}

#define MESSAGE(type, rest) "{\"$\":\"message\",\"type\":\"" type "\",\"content\":" rest "}"

static void messages_of_all_forms_become_records(void **state)
{
    static const struct case_of_writing cases[] = {
        {"\"hi\"", MESSAGE("human", "\"hi\""), false},
        {"[\"user\",\"hi\"]", MESSAGE("human", "\"hi\""), false},
        {"[\"assistant\",\"hi\"]", MESSAGE("ai", "\"hi\""), false},
        {"{\"type\":\"human\",\"content\":\"hi\"}", MESSAGE("human", "\"hi\""), false},
        {"{\"role\":\"user\",\"content\":\"hi\",\"id\":\"1\",\"name\":\"bob\"}",
         MESSAGE("human", "\"hi\",\"id\":\"1\",\"name\":\"bob\""), false},
        {"{\"role\":\"system\",\"content\":\"hi\"}", MESSAGE("system", "\"hi\""), false},
        {"{\"role\":\"developer\",\"content\":\"hi\"}",
         MESSAGE("system", "\"hi\",\"additional_kwargs\":{\"__openai_role__\":\"developer\"}"),
         false},
        {"{\"role\":\"user\",\"type\":\"message\",\"content\":\"hi\"}", MESSAGE("human", "\"hi\""),
         false},
        {"{\"role\":\"tool\",\"tool_call_id\":\"c\",\"content\":\"ok\"}",
         MESSAGE("tool", "\"ok\",\"tool_call_id\":\"c\""), false},
        {"{\"type\":\"tool\",\"content\":\"no\",\"status\":\"error\",\"artifact\":[1],"
         "\"tool_call_id\":\"c\"}",
         MESSAGE("tool", "\"no\",\"tool_call_id\":\"c\",\"artifact\":[1],\"status\":\"error\""),
         false},
        {"{\"type\":\"chat\",\"role\":\"critic\",\"content\":\"x\"}",
         MESSAGE("chat", "\"x\",\"role\":\"critic\""), false},
        {"{\"type\":\"function\",\"name\":\"f\",\"content\":\"x\"}",
         MESSAGE("function", "\"x\",\"name\":\"f\""), false},
        {"{\"type\":\"remove\",\"id\":\"m\"}", MESSAGE("remove", "\"\",\"id\":\"m\""), false},
        {"{\"type\":\"AIMessageChunk\",\"content\":\"x\",\"tool_call_chunks\":[],"
         "\"chunk_position\":\"last\"}",
         MESSAGE("AIMessageChunk", "\"x\",\"chunk_position\":\"last\""), false},
        {"{\"type\":\"human\",\"content\":[\"a\",{\"type\":\"text\",\"$\":1}]}",
         MESSAGE("human", "[\"a\",{\"$\":\"map\",\"items\":[[\"type\",\"text\"],[\"$\",1]]}]"),
         false},
        {"{\"lc\":1,\"type\":\"constructor\",\"id\":[\"langchain_core\",\"messages\","
         "\"HumanMessage\"],\"kwargs\":{\"content\":\"hi\",\"additional_kwargs\":{},"
         "\"response_metadata\":{}}}",
         MESSAGE("human", "\"hi\""), false},
    };

    (void)state;
    check_writing(hd_canon_write_message, cases, HD_COUNT(cases));
}

/* A message rendered by Heddle or LangChain reads back as the original record. */
static void defaults_of_a_message_are_left_out(void **state)
{
    static const struct case_of_writing cases[] = {
        {"{\"content\":\"x\",\"additional_kwargs\":{},\"response_metadata\":{},\"type\":\"human\","
         "\"name\":null,\"id\":null,\"example\":false}",
         MESSAGE("human", "\"x\""), false},
        {"{\"content\":\"x\",\"additional_kwargs\":{},\"response_metadata\":{},\"type\":\"ai\","
         "\"name\":null,\"id\":\"1\",\"tool_calls\":[],\"invalid_tool_calls\":[],"
         "\"usage_metadata\":null}",
         MESSAGE("ai", "\"x\",\"id\":\"1\""), false},
        {"{\"content\":\"x\",\"type\":\"tool\",\"tool_call_id\":\"c\",\"artifact\":null,"
         "\"status\":\"success\"}",
         MESSAGE("tool", "\"x\",\"tool_call_id\":\"c\""), false},
        {"{\"content\":\"x\",\"type\":\"human\",\"tool_calls\":[],\"status\":\"success\","
         "\"usage_metadata\":null}",
         MESSAGE("human", "\"x\""), false},
    };

    (void)state;
    check_writing(hd_canon_write_message, cases, HD_COUNT(cases));
}

static void strangers_go_to_additional_kwargs(void **state)
{
    static const struct case_of_writing cases[] = {
        {"{\"role\":\"assistant\",\"content\":\"x\",\"refusal\":\"no\",\"audio\":null,"
         "\"additional_kwargs\":{\"a\":1}}",
         MESSAGE("ai", "\"x\",\"additional_kwargs\":{\"refusal\":\"no\",\"a\":1}"), false},
        {"{\"type\":\"human\",\"content\":\"x\",\"a\":1,\"b\":2,\"additional_kwargs\":{\"a\":3}}",
         MESSAGE("human", "\"x\",\"additional_kwargs\":{\"b\":2,\"a\":3}"), false},
        {"{\"type\":\"human\",\"content\":\"x\",\"tool_calls\":[1]}",
         MESSAGE("human", "\"x\",\"additional_kwargs\":{\"tool_calls\":[1]}"), false},
        {"{\"type\":\"human\",\"content\":\"x\",\"example\":true}",
         MESSAGE("human", "\"x\",\"additional_kwargs\":{\"example\":true}"), false},
        {"{\"type\":\"human\",\"content\":\"x\",\"$\":1,\"a\":2}",
         MESSAGE("human", "\"x\",\"additional_kwargs\":{\"$\":\"map\",\"items\":"
                          "[[\"$\",1],[\"a\",2]]}"),
         false},
        {"{\"type\":\"human\",\"content\":\"x\",\"additional_kwargs\":{\"$\":1}}",
         MESSAGE("human", "\"x\",\"additional_kwargs\":{\"$\":\"map\",\"items\":[[\"$\",1]]}"),
         false},
    };

    (void)state;
    check_writing(hd_canon_write_message, cases, HD_COUNT(cases));
}

static void tool_calls_of_both_forms_become_one(void **state)
{
    static const struct case_of_writing cases[] = {
        {"{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"id\":\"c\",\"type\":"
         "\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"{\\\"a\\\":1}\"}}]}",
         MESSAGE("ai", "\"\",\"tool_calls\":[{\"name\":\"f\",\"args\":{\"a\":1},\"id\":\"c\","
                       "\"type\":\"tool_call\"}]"),
         false},
        {"{\"role\":\"assistant\",\"tool_calls\":[{\"name\":\"f\",\"args\":{\"$\":1}}]}",
         MESSAGE("ai", "\"\",\"tool_calls\":[{\"name\":\"f\",\"args\":{\"$\":\"map\",\"items\":"
                       "[[\"$\",1]]},\"id\":null,\"type\":\"tool_call\"}]"),
         false},
        {"{\"type\":\"ai\",\"content\":\"\",\"tool_calls\":[{\"type\":\"tool_call\",\"id\":\"c\","
         "\"args\":{},\"name\":\"f\",\"index\":0}]}",
         MESSAGE("ai", "\"\",\"tool_calls\":[{\"name\":\"f\",\"args\":{},\"id\":\"c\","
                       "\"type\":\"tool_call\",\"index\":0}]"),
         false},
        {"{\"role\":\"assistant\",\"content\":\"x\",\"tool_calls\":["
         "{\"id\":\"1\",\"function\":{\"name\":\"f\",\"arguments\":\"{bad\"}},"
         "{\"id\":\"2\",\"function\":{\"name\":\"g\",\"arguments\":\"{}\"}},"
         "{\"id\":\"3\",\"function\":{\"name\":\"h\",\"arguments\":\"[1]\"}}],"
         "\"invalid_tool_calls\":[{\"id\":\"0\"}]}",
         MESSAGE("ai",
                 "\"x\",\"tool_calls\":[{\"name\":\"g\",\"args\":{},\"id\":\"2\",\"type\":"
                 "\"tool_call\"}],\"invalid_tool_calls\":[{\"id\":\"0\"},"
                 "{\"type\":\"invalid_tool_call\",\"id\":\"1\",\"name\":\"f\",\"args\":\"{bad\","
                 "\"error\":\"the arguments are not a JSON object\"},"
                 "{\"type\":\"invalid_tool_call\",\"id\":\"3\",\"name\":\"h\",\"args\":\"[1]\","
                 "\"error\":\"the arguments are not a JSON object\"}]"),
         false},
    };

    (void)state;
    check_writing(hd_canon_write_message, cases, HD_COUNT(cases));
}

static void bad_messages_are_refused_with_a_reason(void **state)
{
    static const struct case_of_writing cases[] = {
        {"1", "a message is an object, not a number", true},
        {"null", "not null", true},
        {"[]", "[role, content]", true},
        {"[\"user\",\"a\",\"b\"]", "[role, content]", true},
        {"[\"king\",\"a\"]", "\"king\" is not a message type or role", true},
        {"{}", "needs a string \"type\" or \"role\"", true},
        {"{\"content\":\"x\"}", "needs a string \"type\" or \"role\"", true},
        {"{\"role\":\"king\",\"content\":\"x\"}", "\"king\" is not a message type or role", true},
        {"{\"type\":\"king\",\"content\":\"x\"}", "\"king\" is not a message type or role", true},
        {"{\"type\":\"human\"}", "needs \"content\"", true},
        {"{\"type\":\"human\",\"content\":1}", "/content", true},
        {"{\"type\":\"human\",\"content\":[1]}", "/content", true},
        {"{\"type\":\"human\",\"content\":\"x\",\"id\":1}", "/id", true},
        {"{\"type\":\"human\",\"content\":\"x\",\"additional_kwargs\":[]}",
         "additional_kwargs must be an object", true},
        {"{\"type\":\"human\",\"content\":\"x\",\"content\":\"y\"}", "occurs twice", true},
        {"{\"type\":\"human\",\"content\":\"x\",\"response_metadata\":{\"a\":1,\"a\":1}}",
         "occurs twice", true},
        {"{\"role\":\"tool\",\"content\":\"x\"}", "/tool_call_id: missing", true},
        {"{\"type\":\"tool\",\"content\":\"x\",\"tool_call_id\":\"c\",\"status\":\"odd\"}",
         "/status", true},
        {"{\"type\":\"chat\",\"content\":\"x\"}", "/role: missing", true},
        {"{\"type\":\"remove\"}", "/id", true},
        {"{\"type\":\"remove\",\"id\":\"1\",\"content\":\"x\"}", "/content", true},
        {"{\"type\":\"function\",\"content\":\"x\"}", "/name", true},
        {"{\"type\":\"ai\",\"content\":\"x\",\"tool_calls\":{}}", "must be an array", true},
        {"{\"type\":\"ai\",\"content\":\"x\",\"tool_calls\":[1]}", "/tool_calls", true},
        {"{\"type\":\"ai\",\"content\":\"x\",\"tool_calls\":[{\"args\":{}}]}", "/tool_calls", true},
        {"{\"type\":\"ai\",\"content\":\"x\",\"usage_metadata\":1}", "/usage_metadata", true},
        {"{\"lc\":1,\"type\":\"constructor\",\"id\":[\"X\"],\"kwargs\":{}}", "\"X\" is no", true},
        {"{\"lc\":1,\"type\":\"constructor\",\"id\":[\"HumanMessage\"]}", "\"kwargs\"", true},
    };

    (void)state;
    check_writing(hd_canon_write_message, cases, HD_COUNT(cases));
}

static void commands_of_the_api_become_records(void **state)
{
    static const struct case_of_writing cases[] = {
        {"{}", "{\"$\":\"command\"}", false},
        {"{\"resume\":null,\"update\":null,\"goto\":null}", "{\"$\":\"command\"}", false},
        {"{\"resume\":false}", "{\"$\":\"command\",\"resume\":false}", false},
        {"{\"goto\":[]}", "{\"$\":\"command\"}", false},
        {"{\"goto\":\"a\"}", "{\"$\":\"command\",\"goto\":[\"a\"]}", false},
        {"{\"goto\":{\"node\":\"a\",\"input\":{\"$\":1}}}",
         "{\"$\":\"command\",\"goto\":[{\"$\":\"send\",\"node\":\"a\",\"arg\":"
         "{\"$\":\"map\",\"items\":[[\"$\",1]]}}]}",
         false},
        {"{\"goto\":[\"a\",{\"node\":\"b\"}],\"resume\":{\"x\":1},\"update\":[[\"k\",2]],"
         "\"graph\":\"__parent__\"}",
         "{\"$\":\"command\",\"graph\":\"__parent__\",\"update\":[[\"k\",2]],\"resume\":{\"x\":1},"
         "\"goto\":[\"a\",{\"$\":\"send\",\"node\":\"b\",\"arg\":null}]}",
         false},
        {"[]", "a command is an object, not an array", true},
        {"{\"go\":1}", "no member \"go\"", true},
        {"{\"goto\":1}", "goto: a node's name", true},
        {"{\"goto\":[{\"input\":1}]}", "goto: a node's name", true},
        {"{\"graph\":1}", "graph: a string expected", true},
        {"{\"resume\":1,\"resume\":2}", "occurs twice", true},
    };

    (void)state;
    check_writing(hd_canon_write_command, cases, HD_COUNT(cases));
}

static void sends_and_interrupts_are_written(void **state)
{
    struct hd_buf out;
    struct hd_jw jw;

    (void)state;
    hd_buf_init(&out, 1 << 20);
    hd_jw_init(&jw, &out);
    hd_jw_array(&jw);
    assert_err(hd_canon_write_send(&jw, HD_S("n\"1"), HD_S("{\"a\":1}")), 0);
    assert_err(hd_canon_write_interrupt(&jw, HD_S("[null]"), HD_S("id")), 0);
    hd_jw_array_end(&jw);
    assert_err(hd_jw_finish(&jw), 0);
    assert_slice(text_of(&out), HD_S("[{\"$\":\"send\",\"node\":\"n\\\"1\",\"arg\":{\"a\":1}},"
                                     "{\"$\":\"interrupt\",\"value\":[null],\"id\":\"id\"}]"));
    assert_valid(text_of(&out));
    hd_buf_fini(&out);
}

static void from_json_leaves_nothing_when_it_fails(void **state)
{
    struct heddle_error fault = {0};
    struct hd_buf out;

    (void)state;
    hd_buf_init(&out, 1 << 20);
    assert_err(hd_canon_from_json(&out, HD_S("{\"$\":9007199254740992}"), NULL), 0);
    assert_slice(text_of(&out),
                 HD_S("{\"$\":\"map\",\"items\":[[\"$\",{\"$\":\"int\",\"v\":\"9007199254740992\"}]"
                      "]}"));
    out.len = 3;
    assert_err(hd_canon_from_json(&out, HD_S("[1,{\"a\":1,\"a\":2}]"), &fault), HD_EINVAL);
    assert_err(hd_canon_from_json(&out, HD_S("[1"), NULL), HD_EINVAL);
    assert_int_equal(out.len, 3);
    hd_buf_fini(&out);
}

/* Each level becomes three; the writer's limit stops it before the reader's does. */
static void maps_that_get_too_deep_are_refused(void **state)
{
    struct hd_buf text, out;
    int i;

    (void)state;
    hd_buf_init(&text, 1 << 20);
    hd_buf_init(&out, 1 << 20);
    for (i = 0; i < 200; i++)
        assert_err(hd_buf_append_slice(&text, HD_S("{\"$\":")), 0);
    assert_err(hd_buf_append_byte(&text, '1'), 0);
    for (i = 0; i < 200; i++)
        assert_err(hd_buf_append_byte(&text, '}'), 0);
    assert_err(hd_canon_from_json(&out, hd_buf_slice(&text), NULL), HD_ELIMIT);
    assert_int_equal(out.len, 0);
    hd_buf_fini(&text);
    hd_buf_fini(&out);
}

/* A message may be as deep as any value, but its depth counts from the root of the text. */
static void messages_count_the_levels_around_them(void **state)
{
    static const int around[] = {0, 509, 510, 512};
    size_t i;

    (void)state;
    for (i = 0; i < HD_COUNT(around); i++) {
        struct hd_json json;
        struct hd_buf out;
        struct hd_jw jw;
        int level;

        hd_buf_init(&out, 1 << 20);
        hd_jw_init(&jw, &out);
        for (level = 0; level < around[i]; level++)
            hd_jw_array(&jw);
        assert_err(hd_canon_write_message(
                       &jw, parse(&json, "{\"role\":\"user\",\"content\":[{\"a\":1}]}"), NULL),
                   around[i] <= 509 ? 0 : HD_ELIMIT);
        for (level = 0; level < around[i]; level++)
            hd_jw_array_end(&jw);
        if (around[i] <= 509)
            assert_valid(text_of(&out));
        assert_err(hd_jw_finish(&jw), around[i] <= 509 ? 0 : HD_ELIMIT);
        hd_json_fini(&json);
        hd_buf_fini(&out);
    }
}

/* ---- out of memory ---------------------------------------------------- */

static int validate_text(void *arg)
{
    return hd_canon_validate(hd_buf_slice(arg), NULL);
}

static int render_text(void *arg)
{
    struct hd_buf out;
    int err;

    (void)arg;
    hd_buf_init(&out, 1 << 20);
    err = hd_canon_render(&out,
                          HD_S("[{\"$\":\"utf16\",\"v\":\"AADY\"},{\"$\":\"message\","
                               "\"type\":\"ai\",\"content\":\"x\"}]"),
                          NULL);
    hd_buf_fini(&out);
    return err;
}

static int write_message(void *arg)
{
    struct hd_json *json = arg;
    struct hd_buf out;
    struct hd_jw jw;
    int err;

    hd_buf_init(&out, 1 << 20);
    hd_jw_init(&jw, &out);
    err = hd_canon_write_message(&jw, hd_json_root(json), NULL);
    hd_buf_fini(&out);
    return err;
}

static void out_of_memory_is_reported_at_every_allocation(void **state)
{
    struct hd_json json;
    struct hd_buf text;

    (void)state;
    hd_buf_init(&text, 1 << 20);
    assert_err(hd_buf_append_slice(&text, HD_S("[{\"$\":\"map\",\"items\":[[\"a\",1],[1,2]]},")),
               0);
    put_many(&text, 100, false);
    assert_err(hd_buf_append_byte(&text, ']'), 0);
    assert_true(check_every_allocation(validate_text, &text) > 2);
    hd_buf_fini(&text);
    assert_true(check_every_allocation(render_text, NULL) > 2);
    parse(&json, "{\"role\":\"assistant\",\"tool_calls\":[{\"id\":\"1\",\"function\":{\"name\":"
                 "\"f\",\"arguments\":\"{\\\"a\\\":1}\"}},{\"id\":\"2\",\"function\":{\"name\":"
                 "\"g\",\"arguments\":\"{\"}}]}");
    assert_true(check_every_allocation(write_message, &json) > 4);
    hd_json_fini(&json);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(there_are_enough_vectors),
        cmocka_unit_test(valid_vectors_validate),
        cmocka_unit_test(valid_vectors_are_as_a_writer_writes_them),
        cmocka_unit_test(valid_vectors_render),
        cmocka_unit_test(invalid_vectors_are_refused),
        cmocka_unit_test(a_fault_names_the_member),
        cmocka_unit_test(a_long_way_to_the_member_is_cut),
        cmocka_unit_test(duplicates_are_found_among_any_number_of_names),
        cmocka_unit_test(malformed_records_are_rendered_unchanged),
        cmocka_unit_test(a_failed_rendering_leaves_nothing),
        cmocka_unit_test(plain_json_becomes_canonical),
        cmocka_unit_test(messages_of_all_forms_become_records),
        cmocka_unit_test(defaults_of_a_message_are_left_out),
        cmocka_unit_test(strangers_go_to_additional_kwargs),
        cmocka_unit_test(tool_calls_of_both_forms_become_one),
        cmocka_unit_test(bad_messages_are_refused_with_a_reason),
        cmocka_unit_test(commands_of_the_api_become_records),
        cmocka_unit_test(sends_and_interrupts_are_written),
        cmocka_unit_test(from_json_leaves_nothing_when_it_fails),
        cmocka_unit_test(maps_that_get_too_deep_are_refused),
        cmocka_unit_test(messages_count_the_levels_around_them),
        cmocka_unit_test(out_of_memory_is_reported_at_every_allocation),
    };

    return cmocka_run_group_tests_name("canon", tests, read_vectors, free_vectors);
}
