/* MCP as bytes: messages, headers, results, elicitations, servers. */
#include "unit/check.h"

#include <string.h>

#include "agent/mcp/mcp_config.h"
#include "agent/mcp/mcp_proto.h"

static struct hd_val *json(const char *text)
{
    struct hd_val *val = NULL;

    assert_err(hd_val_parse_json(hd_slice_cstr(text), &val, NULL), 0);
    return val;
}

/* Takes `val`. */
static void assert_json(struct hd_val *val, const char *wanted)
{
    struct hd_buf text;

    assert_non_null(val);
    hd_buf_init(&text, 1 << 20);
    assert_err(hd_val_render(&text, val), 0);
    assert_err(hd_buf_append_byte(&text, 0), 0);
    assert_string_equal(text.ptr, wanted);
    hd_buf_fini(&text);
    hd_val_unref(val);
}

/* ---- messages ---------------------------------------------------------- */

static void kinds_of_messages_are_distinguished(void **state)
{
    static const struct {
        const char *text;
        enum hd_mcp_kind kind;
    } cases[] = {
        {"{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}", HD_MCP_RESULT},
        {"{\"jsonrpc\":\"2.0\",\"id\":7,\"error\":{\"code\":-1,\"message\":\"no\"}}", HD_MCP_ERROR},
        {"{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-1}}", HD_MCP_ERROR},
        {"{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"ping\"}", HD_MCP_REQUEST},
        {"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\"}", HD_MCP_NOTIFICATION},
    };

    (void)state;
    for (size_t i = 0; i < HD_COUNT(cases); i++) {
        struct hd_mcp_message message;

        assert_err(hd_mcp_message_read(hd_slice_cstr(cases[i].text), &message, NULL), 0);
        assert_int_equal(message.kind, cases[i].kind);
        hd_mcp_message_fini(&message);
    }
}

static void other_values_than_messages_are_refused(void **state)
{
    static const char *const cases[] = {"",
                                        "[]",
                                        "{}",
                                        "{\"jsonrpc\":\"1.0\",\"id\":1,\"result\":{}}",
                                        "{\"jsonrpc\":\"2.0\",\"id\":1}",
                                        "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":3}",
                                        "{\"jsonrpc\":\"2.0\",\"result\":{}}",
                                        "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":\"no\"}",
                                        "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}"};

    (void)state;
    for (size_t i = 0; i < HD_COUNT(cases); i++) {
        struct hd_mcp_message message;
        struct heddle_error fault = {0};

        assert_err(hd_mcp_message_read(hd_slice_cstr(cases[i]), &message, &fault), HD_EINVAL);
        assert_true(fault.text[0]);
    }
}

static void an_answer_is_known_by_its_id(void **state)
{
    static const struct {
        const char *id;
        bool is_mine;
    } cases[] = {{"12", true},  {"12.0", true},   {"\"12\"", true},
                 {"13", false}, {"\"x\"", false}, {"120", false}};

    (void)state;
    for (size_t i = 0; i < HD_COUNT(cases); i++) {
        struct hd_mcp_message message;
        char text[100];

        snprintf(text, sizeof(text), "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{}}", cases[i].id);
        assert_err(hd_mcp_message_read(hd_slice_cstr(text), &message, NULL), 0);
        assert_int_equal(hd_mcp_message_is_for(&message, 12), cases[i].is_mine);
        hd_mcp_message_fini(&message);
    }
}

static void assert_written(struct hd_buf *buf, const char *wanted)
{
    assert_err(hd_buf_append_byte(buf, 0), 0);
    assert_string_equal(buf->ptr, wanted);
    hd_buf_fini(buf);
}

static void messages_are_written(void **state)
{
    struct hd_val *id = json("\"s\""), *empty = json("{}");
    struct hd_buf buf;

    (void)state;
    hd_buf_init(&buf, 4096);
    assert_err(hd_mcp_write_request(&buf, 3, "tools/list", NULL, false), 0);
    assert_written(&buf, "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"tools/list\"}");
    hd_buf_init(&buf, 4096);
    assert_err(hd_mcp_write_notification(&buf, "notifications/initialized", NULL), 0);
    assert_written(&buf, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}");
    hd_buf_init(&buf, 4096);
    assert_err(hd_mcp_write_result(&buf, id, empty), 0);
    assert_written(&buf, "{\"jsonrpc\":\"2.0\",\"id\":\"s\",\"result\":{}}");
    hd_buf_init(&buf, 4096);
    assert_err(hd_mcp_write_error(&buf, id, HD_MCP_NO_METHOD, "no"), 0);
    assert_written(
        &buf, "{\"jsonrpc\":\"2.0\",\"id\":\"s\",\"error\":{\"code\":-32601,\"message\":\"no\"}}");
    hd_val_unref(id);
    hd_val_unref(empty);
}

static void modern_requests_name_the_client(void **state)
{
    struct hd_val *params = json("{\"name\":\"t\",\"_meta\":{\"mine\":1}}"), *whole, *meta;
    struct hd_buf buf;

    (void)state;
    hd_buf_init(&buf, 4096);
    assert_err(hd_mcp_write_request(&buf, 3, "tools/call", params, true), 0);
    assert_err(hd_val_parse_json(hd_buf_slice(&buf), &whole, NULL), 0);
    meta = hd_val_get(hd_val_get(whole, HD_S("params")), HD_S("_meta"));
    assert_int_equal(hd_val_count(meta), 4);
    assert_true(hd_slice_eq(
        hd_val_get_string(hd_val_get(meta, HD_S("io.modelcontextprotocol/protocolVersion"))),
        HD_S("2026-07-28")));
    assert_true(
        hd_val_is_object(hd_val_get(meta, HD_S("io.modelcontextprotocol/clientCapabilities"))));
    assert_int_equal(hd_val_count(hd_val_get(params, HD_S("_meta"))), 1);
    hd_val_unref(whole);
    hd_val_unref(params);
    hd_buf_fini(&buf);
}

static void versions_are_known(void **state)
{
    (void)state;
    assert_true(hd_mcp_is_legacy(HD_S("2025-11-25")));
    assert_true(hd_mcp_is_legacy(HD_S("2025-06-18")));
    assert_true(hd_mcp_is_legacy(HD_S("2025-03-26")));
    assert_true(hd_mcp_is_legacy(HD_S("2024-11-05")));
    assert_false(hd_mcp_is_legacy(HD_S("2026-07-28")));
    assert_false(hd_mcp_is_legacy(HD_S("")));
}

/* ---- headers ------------------------------------------------------------ */

static void values_of_headers_are_made_safe(void **state)
{
    static const char *const cases[][2] = {
        {"us-west1", "us-west1"},
        {"", ""},
        {"us west 1", "us west 1"},
        {"Hello, \xe4\xb8\x96\xe7\x95\x8c", "=?base64?SGVsbG8sIOS4lueVjA==?="},
        {" padded ", "=?base64?IHBhZGRlZCA=?="},
        {"line1\nline2", "=?base64?bGluZTEKbGluZTI=?="},
        {"=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="},
        {"=?base64?", "=?base64?"},
    };

    (void)state;
    for (size_t i = 0; i < HD_COUNT(cases); i++) {
        struct hd_buf buf;

        hd_buf_init(&buf, 4096);
        assert_err(hd_mcp_header_value(&buf, hd_slice_cstr(cases[i][0])), 0);
        assert_written(&buf, cases[i][1]);
    }
}

#define PROPERTY(schema) "{\"type\":\"object\",\"properties\":{\"p\":" schema "}}"

static void annotations_are_checked(void **state)
{
    static const struct {
        const char *schema;
        int err;
    } cases[] = {
        {PROPERTY("{\"type\":\"string\",\"x-mcp-header\":\"Region\"}"), 0},
        {PROPERTY("{\"type\":\"integer\",\"x-mcp-header\":\"N\"}"), 0},
        {PROPERTY("{\"type\":\"object\",\"properties\":{\"x-mcp-header\":{\"type\":\"string\"}}}"),
         0},
        {PROPERTY("{\"type\":\"object\",\"properties\":{\"q\":{\"type\":\"boolean\","
                  "\"x-mcp-header\":\"Deep\"}}}"),
         0},
        {PROPERTY("{\"type\":\"string\",\"default\":{\"x-mcp-header\":\"data\"}}"), 0},
        {"{}", 0},
        {PROPERTY("{\"type\":\"number\",\"x-mcp-header\":\"N\"}"), HD_EINVAL},
        {PROPERTY("{\"type\":\"object\",\"x-mcp-header\":\"O\"}"), HD_EINVAL},
        {PROPERTY("{\"type\":\"string\",\"x-mcp-header\":\"\"}"), HD_EINVAL},
        {PROPERTY("{\"type\":\"string\",\"x-mcp-header\":7}"), HD_EINVAL},
        {PROPERTY("{\"type\":\"string\",\"x-mcp-header\":\"My Region\"}"), HD_EINVAL},
        {PROPERTY("{\"type\":\"string\",\"x-mcp-header\":\"R:P\"}"), HD_EINVAL},
        {PROPERTY("{\"type\":\"array\",\"items\":{\"type\":\"string\",\"x-mcp-header\":\"I\"}}"),
         HD_EINVAL},
        {"{\"x-mcp-header\":\"Root\",\"type\":\"string\"}", HD_EINVAL},
        {"{\"anyOf\":[{\"properties\":{\"p\":{\"type\":\"string\",\"x-mcp-header\":\"A\"}}}]}",
         HD_EINVAL},
        {"{\"$defs\":{\"d\":{\"type\":\"string\",\"x-mcp-header\":\"A\"}}}", HD_EINVAL},
        {"{\"properties\":{\"a\":{\"type\":\"string\",\"x-mcp-header\":\"MyField\"},"
         "\"b\":{\"type\":\"string\",\"x-mcp-header\":\"myfield\"}}}",
         HD_EINVAL},
    };

    (void)state;
    for (size_t i = 0; i < HD_COUNT(cases); i++) {
        struct hd_val *schema = json(cases[i].schema);
        struct heddle_error fault = {0};
        int err = hd_mcp_headers_check(schema, &fault);

        if (err != cases[i].err)
            print_error("%s\n", cases[i].schema);
        assert_err(err, cases[i].err);
        assert_int_equal(fault.text[0] != 0, err != 0);
        hd_val_unref(schema);
    }
}

static void arguments_are_mirrored(void **state)
{
    struct hd_val *schema =
        json("{\"properties\":{\"a\":{\"type\":\"string\",\"x-mcp-header\":\"A\"},"
             "\"n\":{\"type\":\"integer\",\"x-mcp-header\":\"N\"},"
             "\"b\":{\"type\":\"boolean\",\"x-mcp-header\":\"B\"},"
             "\"e\":{\"type\":\"string\",\"x-mcp-header\":\"E\"},"
             "\"z\":{\"type\":\"string\",\"x-mcp-header\":\"Z\"},\"plain\":{\"type\":\"string\"},"
             "\"o\":{\"type\":\"object\",\"properties\":{\"d\":{\"type\":\"string\","
             "\"x-mcp-header\":\"D\"}}},\"absent\":{\"type\":\"string\",\"x-mcp-header\":\"X\"}}}");
    struct hd_val *args = json("{\"a\":\"x y\",\"n\":-7,\"b\":false,\"e\":\"\",\"z\":null,"
                               "\"plain\":\"p\",\"o\":{\"d\":\"\xc3\xa9\"}}");
    static const char wanted[] = "Mcp-Param-A: x y\0Mcp-Param-N: -7\0Mcp-Param-B: false\0"
                                 "Mcp-Param-E;\0Mcp-Param-D: =?base64?w6k=?=";
    struct hd_buf buf;

    (void)state;
    hd_buf_init(&buf, 4096);
    assert_err(hd_mcp_headers_write(&buf, schema, args), 0);
    assert_int_equal(buf.len, sizeof(wanted));
    assert_memory_equal(buf.ptr, wanted, sizeof(wanted));
    hd_buf_fini(&buf);
    hd_val_unref(schema);
    hd_val_unref(args);
}

/* ---- results ------------------------------------------------------------ */

static void results_become_content(void **state)
{
    static const char *const cases[][2] = {
        {"{\"content\":[{\"type\":\"text\",\"text\":\"a\"}]}", "\"a\""},
        {"{\"content\":[{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"text\",\"text\":\"b\"}]}",
         "\"a\\nb\""},
        {"{\"content\":[]}", "\"\""},
        {"{\"content\":[{\"type\":\"image\",\"data\":\"AA==\",\"mimeType\":\"image/png\"}]}",
         "[{\"type\":\"image\",\"base64\":\"AA==\",\"mime_type\":\"image/png\"}]"},
        {"{\"content\":[{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"audio\",\"data\":\"AA==\","
         "\"mimeType\":\"audio/wav\"}]}",
         "[{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"audio\",\"base64\":\"AA==\","
         "\"mime_type\":\"audio/wav\"}]"},
        {"{\"content\":[{\"type\":\"resource\",\"resource\":{\"uri\":\"u\",\"text\":\"t\"}}]}",
         "\"t\""},
        {"{\"content\":[{\"type\":\"resource\",\"resource\":{\"uri\":\"u\",\"blob\":\"AA==\","
         "\"mimeType\":\"application/pdf\"}}]}",
         "[{\"type\":\"file\",\"base64\":\"AA==\",\"mime_type\":\"application/pdf\"}]"},
        {"{\"content\":[{\"type\":\"resource_link\",\"uri\":\"file:///x\",\"name\":\"X\","
         "\"mimeType\":\"text/plain\",\"description\":\"It.\"}]}",
         "\"X: file:///x (text/plain)\\nIt.\""},
        {"{\"content\":[{\"type\":\"odd\",\"n\":1}]}",
         "\"{\\\"type\\\":\\\"odd\\\",\\\"n\\\":1}\""},
        {"{\"structuredContent\":{\"t\":21}}", "\"{\\\"t\\\":21}\""},
    };

    (void)state;
    for (size_t i = 0; i < HD_COUNT(cases); i++) {
        struct hd_val *result = json(cases[i][0]);
        struct hd_mcp_outcome outcome;

        assert_err(hd_mcp_result_read(result, &outcome, NULL), 0);
        assert_false(outcome.is_error);
        assert_json(hd_val_ref(outcome.content), cases[i][1]);
        hd_mcp_outcome_fini(&outcome);
        hd_val_unref(result);
    }
}

static void structured_content_is_the_artifact(void **state)
{
    struct hd_val *result = json("{\"content\":[{\"type\":\"text\",\"text\":\"a\"}],"
                                 "\"structuredContent\":{\"t\":21}}");
    struct hd_mcp_outcome outcome;

    (void)state;
    assert_err(hd_mcp_result_read(result, &outcome, NULL), 0);
    assert_json(hd_val_ref(outcome.artifact), "{\"structured_content\":{\"t\":21}}");
    hd_mcp_outcome_fini(&outcome);
    hd_val_unref(result);
}

static void errors_are_text(void **state)
{
    struct hd_val *result =
        json("{\"isError\":true,\"content\":[{\"type\":\"image\",\"data\":\"\"},"
             "{\"type\":\"text\",\"text\":\"bad\"}]}");
    struct hd_val *odd = json("{\"content\":\"text\"}"), *empty = json("{}");
    struct hd_mcp_outcome outcome;

    (void)state;
    assert_err(hd_mcp_result_read(result, &outcome, NULL), 0);
    assert_true(outcome.is_error);
    assert_json(hd_val_ref(outcome.content), "\"bad\"");
    hd_mcp_outcome_fini(&outcome);
    assert_err(hd_mcp_result_read(odd, &outcome, NULL), HD_EINVAL);
    assert_err(hd_mcp_result_read(empty, &outcome, NULL), HD_EINVAL);
    hd_val_unref(result);
    hd_val_unref(odd);
    hd_val_unref(empty);
}

static void errors_name_the_address_to_visit(void **state)
{
    struct hd_val *interaction =
        json("{\"url\":\"https://a.example/login\",\"message\":{\"text\":\"Please log in\"}}");
    struct hd_val *elicitation = json("{\"elicitations\":[{\"mode\":\"url\",\"url\":"
                                      "\"https://b.example/\",\"message\":\"Allow it\"}]}");
    struct hd_val *script = json("{\"url\":\"javascript:alert(1)\"}");

    (void)state;
    assert_json(hd_mcp_error_text(-32003, HD_S("Interaction required"), interaction),
                "\"The user must act first: Interaction required (-32003)\\n"
                "Please log in: https://a.example/login\"");
    assert_json(hd_mcp_error_text(-32042, HD_S("URL"), elicitation),
                "\"The user must act first: URL (-32042)\\nAllow it: https://b.example/\"");
    assert_json(hd_mcp_error_text(-32602, HD_S("Unknown tool"), script),
                "\"Unknown tool (-32602)\"");
    hd_val_unref(interaction);
    hd_val_unref(elicitation);
    hd_val_unref(script);
}

/* ---- elicitations ------------------------------------------------------- */

#define FORM                                                                                   \
    "{\"c\":{\"method\":\"elicitation/create\",\"params\":{\"message\":\"Sure?\","             \
    "\"requestedSchema\":{\"type\":\"object\",\"properties\":{\"yes\":{\"type\":\"boolean\"}," \
    "\"n\":{\"type\":\"integer\",\"default\":3}}}}}}"
#define LONE                                                                       \
    "{\"c\":{\"method\":\"elicitation/create\",\"params\":{\"message\":\"Name?\"," \
    "\"requestedSchema\":{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\"}}}}}}"
#define ADDRESS                                                                                 \
    "{\"c\":{\"method\":\"elicitation/create\",\"params\":{\"mode\":\"url\",\"url\":\"https://" \
    "x\"}}}"

static void answers_of_humans_are_understood(void **state)
{
    static const char *const cases[][3] = {
        {FORM, "{\"action\":\"accept\",\"content\":{\"yes\":true}}",
         "{\"c\":{\"action\":\"accept\",\"content\":{\"yes\":true,\"n\":3}}}"},
        {FORM, "{\"c\":{\"action\":\"accept\",\"content\":{\"yes\":true}}}",
         "{\"c\":{\"action\":\"accept\",\"content\":{\"yes\":true,\"n\":3}}}"},
        {FORM, "{\"yes\":false,\"n\":4}",
         "{\"c\":{\"action\":\"accept\",\"content\":{\"yes\":false,\"n\":4}}}"},
        {FORM, "{\"action\":\"decline\"}", "{\"c\":{\"action\":\"decline\"}}"},
        {FORM, "{\"action\":\"cancel\"}", "{\"c\":{\"action\":\"cancel\"}}"},
        {FORM, "null", "{\"c\":{\"action\":\"cancel\"}}"},
        {FORM, "[{\"type\":\"ignore\",\"args\":null}]", "{\"c\":{\"action\":\"decline\"}}"},
        {FORM, "{\"type\":\"edit\",\"args\":{\"action\":\"x\",\"args\":{\"yes\":true}}}",
         "{\"c\":{\"action\":\"accept\",\"content\":{\"yes\":true,\"n\":3}}}"},
        {FORM, "true", "{\"c\":{\"action\":\"accept\",\"content\":{\"n\":3}}}"},
        {FORM, "false", "{\"c\":{\"action\":\"decline\"}}"},
        {LONE, "\"Ada\"", "{\"c\":{\"action\":\"accept\",\"content\":{\"name\":\"Ada\"}}}"},
        {ADDRESS, "{\"type\":\"accept\"}", "{\"c\":{\"action\":\"accept\"}}"},
    };

    (void)state;
    for (size_t i = 0; i < HD_COUNT(cases); i++) {
        struct hd_val *requests = json(cases[i][0]), *answer = json(cases[i][1]);

        assert_json(hd_mcp_ask_responses(requests, answer), cases[i][2]);
        hd_val_unref(requests);
        hd_val_unref(answer);
    }
}

static void several_questions_have_answers_of_their_own(void **state)
{
    struct hd_val *requests = json("{\"a\":{\"method\":\"elicitation/create\"},"
                                   "\"b\":{\"method\":\"elicitation/create\"}}");
    struct hd_val *answer = json("{\"a\":{\"x\":1},\"b\":{\"action\":\"decline\"}}");

    (void)state;
    assert_json(hd_mcp_ask_responses(requests, answer),
                "{\"a\":{\"action\":\"accept\",\"content\":{\"x\":1}},"
                "\"b\":{\"action\":\"decline\"}}");
    hd_val_unref(requests);
    hd_val_unref(answer);
}

static void questions_carry_the_state_of_the_server(void **state)
{
    struct hd_val *requests = json(FORM), *opaque = json("\"{ \\\"n\\\": 1 }\""), *question;

    (void)state;
    question = hd_mcp_ask_question(HD_S("s"), HD_S("t"), requests, opaque, NULL);
    assert_true(hd_mcp_ask_is_question(question, HD_S("s"), HD_S("t")));
    assert_false(hd_mcp_ask_is_question(question, HD_S("s"), HD_S("other")));
    assert_false(hd_mcp_ask_is_question(question, HD_S("other"), HD_S("t")));
    assert_true(
        hd_slice_eq(hd_val_get_string(hd_val_get(question, HD_S("message"))), HD_S("Sure?")));
    assert_true(hd_val_equal(hd_val_get(question, HD_S("request_state")), opaque));
    assert_null(hd_val_get(question, HD_S("answered")));
    hd_val_unref(question);
    hd_val_unref(requests);
    hd_val_unref(opaque);
}

static void unanswerable_schemas_are_named(void **state)
{
    struct hd_val *form = json(FORM);
    struct hd_val *sampling = json("{\"c\":{\"method\":\"sampling/createMessage\"}}");
    struct hd_val *odd = json("{\"c\":3}");

    (void)state;
    assert_null(hd_mcp_ask_check(form));
    assert_string_equal(hd_mcp_ask_check(sampling), "sampling/createMessage");
    assert_non_null(hd_mcp_ask_check(odd));
    hd_val_unref(form);
    hd_val_unref(sampling);
    hd_val_unref(odd);
}

static void defaults_suffice_or_not(void **state)
{
    struct hd_val *good =
        json("{\"params\":{\"requestedSchema\":{\"properties\":{\"n\":{\"default\":3}},"
             "\"required\":[\"n\"]}}}");
    struct hd_val *bad = json("{\"params\":{\"requestedSchema\":{\"properties\":{\"n\":{}},"
                              "\"required\":[\"n\"]}}}");
    struct hd_val *url = json("{\"params\":{\"mode\":\"url\"}}");

    (void)state;
    assert_json(hd_mcp_ask_defaults(good), "{\"action\":\"accept\",\"content\":{\"n\":3}}");
    assert_json(hd_mcp_ask_defaults(bad), "{\"action\":\"decline\"}");
    assert_json(hd_mcp_ask_defaults(url), "{\"action\":\"decline\"}");
    hd_val_unref(good);
    hd_val_unref(bad);
    hd_val_unref(url);
}

/* ---- servers ------------------------------------------------------------ */

static int read_servers(const char *text, struct hd_arena *arena, struct hd_val **value,
                        struct hd_mcp_server **servers, size_t *count)
{
    struct heddle_error fault = {0};
    int err;

    *value = json(text);
    hd_arena_init(arena, 1 << 20);
    err = hd_mcp_config_read(*value, arena, servers, count, &fault);
    assert_int_equal(err != 0, fault.text[0] != 0);
    return err;
}

static void addresses_end_with_mcp(void **state)
{
    static const char *const cases[][3] = {
        {"http://h", "http://h/mcp", "http://h"},
        {"http://h/", "http://h/mcp", "http://h"},
        {"http://h/mcp", "http://h/mcp", "http://h"},
        {"https://h:1/x/mcp/", "https://h:1/x/mcp", "https://h:1/x"},
        {"http://h/a?k=v", "http://h/a/mcp?k=v", "http://h/a"},
        {"http://h/mcp?k=/mcp", "http://h/mcp?k=/mcp", "http://h"},
    };

    (void)state;
    for (size_t i = 0; i < HD_COUNT(cases); i++) {
        struct hd_mcp_server *servers;
        struct hd_arena arena;
        struct hd_val *value;
        char text[200];
        size_t count;

        snprintf(text, sizeof(text), "{\"url\":\"%s\"}", cases[i][0]);
        assert_err(read_servers(text, &arena, &value, &servers, &count), 0);
        assert_int_equal(count, 1);
        assert_string_equal(servers[0].url, cases[i][1]);
        assert_string_equal(servers[0].base, cases[i][2]);
        hd_val_unref(value);
        hd_arena_fini(&arena);
    }
}

static void servers_come_in_three_forms(void **state)
{
    static const char *const cases[] = {
        "{\"servers\":[{\"url\":\"http://h\",\"tools\":[\"a\"],\"auth_required\":true,"
        "\"token\":\"t\",\"protocol\":\"2026-07-28\",\"elicitation\":\"decline\"}]}",
        "[{\"url\":\"http://h\",\"tools\":[\"a\"],\"auth_required\":true,"
        "\"token\":\"t\",\"protocol\":\"2026-07-28\",\"elicitation\":\"decline\"}]",
        "{\"url\":\"http://h\",\"tools\":[\"a\"],\"auth_required\":true,"
        "\"token\":\"t\",\"protocol\":\"2026-07-28\",\"elicitation\":\"decline\"}"};

    (void)state;
    for (size_t i = 0; i < HD_COUNT(cases); i++) {
        struct hd_mcp_server *servers;
        struct hd_arena arena;
        struct hd_val *value;
        size_t count;

        assert_err(read_servers(cases[i], &arena, &value, &servers, &count), 0);
        assert_int_equal(count, 1);
        assert_true(hd_slice_eq(servers[0].name, HD_S("default")));
        assert_true(servers[0].needs_auth && servers[0].is_modern);
        assert_true(hd_slice_eq(servers[0].token, HD_S("t")));
        assert_int_equal(servers[0].elicit, HD_MCP_DECLINE);
        assert_true(hd_mcp_server_allows(&servers[0], HD_S("a")));
        assert_false(hd_mcp_server_allows(&servers[0], HD_S("b")));
        hd_val_unref(value);
        hd_arena_fini(&arena);
    }
}

static void bad_servers_are_refused(void **state)
{
    static const char *const cases[] = {
        "3",
        "\"http://h\"",
        "{\"servers\":3}",
        "[3]",
        "[{}]",
        "{\"servers\":[{\"url\":\"ftp://h\"}]}",
        "{\"url\":\"http://h/\\n\"}",
        "{\"url\":\"http://h/#x\"}",
        "{\"url\":\"http://h\",\"name\":3}",
        "{\"url\":\"http://h\",\"tools\":\"a\"}",
        "{\"url\":\"http://h\",\"tools\":[3]}",
        "{\"url\":\"http://h\",\"headers\":[]}",
        "{\"url\":\"http://h\",\"headers\":{\"a b\":\"c\"}}",
        "{\"url\":\"http://h\",\"headers\":{\"A\":\"x\\r\\nB: y\"}}",
        "{\"url\":\"http://h\",\"headers\":{\"A\":3}}",
        "{\"url\":\"http://h\",\"token\":\"a\\nb\"}",
        "{\"url\":\"http://h\",\"protocol\":\"1999-01-01\"}",
        "{\"url\":\"http://h\",\"elicitation\":\"maybe\"}"};

    (void)state;
    for (size_t i = 0; i < HD_COUNT(cases); i++) {
        struct hd_mcp_server *servers;
        struct hd_arena arena;
        struct hd_val *value;
        size_t count;
        int err = read_servers(cases[i], &arena, &value, &servers, &count);

        if (err != HD_EINVAL)
            print_error("%s\n", cases[i]);
        assert_err(err, HD_EINVAL);
        hd_val_unref(value);
        hd_arena_fini(&arena);
    }
}

static void no_servers_are_fine(void **state)
{
    static const char *const cases[] = {"[]", "{}", "{\"servers\":[]}", "{\"servers\":null}"};

    (void)state;
    for (size_t i = 0; i < HD_COUNT(cases); i++) {
        struct hd_mcp_server *servers;
        struct hd_arena arena;
        struct hd_val *value;
        size_t count = 1;

        assert_err(read_servers(cases[i], &arena, &value, &servers, &count), 0);
        assert_int_equal(count, 0);
        hd_val_unref(value);
        hd_arena_fini(&arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kinds_of_messages_are_distinguished),
        cmocka_unit_test(other_values_than_messages_are_refused),
        cmocka_unit_test(an_answer_is_known_by_its_id),
        cmocka_unit_test(messages_are_written),
        cmocka_unit_test(modern_requests_name_the_client),
        cmocka_unit_test(versions_are_known),
        cmocka_unit_test(values_of_headers_are_made_safe),
        cmocka_unit_test(annotations_are_checked),
        cmocka_unit_test(arguments_are_mirrored),
        cmocka_unit_test(results_become_content),
        cmocka_unit_test(structured_content_is_the_artifact),
        cmocka_unit_test(errors_are_text),
        cmocka_unit_test(errors_name_the_address_to_visit),
        cmocka_unit_test(answers_of_humans_are_understood),
        cmocka_unit_test(several_questions_have_answers_of_their_own),
        cmocka_unit_test(questions_carry_the_state_of_the_server),
        cmocka_unit_test(unanswerable_schemas_are_named),
        cmocka_unit_test(defaults_suffice_or_not),
        cmocka_unit_test(addresses_end_with_mcp),
        cmocka_unit_test(servers_come_in_three_forms),
        cmocka_unit_test(bad_servers_are_refused),
        cmocka_unit_test(no_servers_are_fine),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
