/* A2A messages as bytes: cards, requests and responses of both dialects. */
#include "unit/check.h"

#include <string.h>

#include "agent/a2a/a2a_proto.h"

#define CARD_1_0                                                                                 \
    "{\"name\":\"Cook\",\"description\":\"Cooks.\",\"capabilities\":{\"streaming\":true},"       \
    "\"supportedInterfaces\":[{\"url\":\"http://h/grpc\",\"protocolBinding\":\"GRPC\","          \
    "\"protocolVersion\":\"1.0\"},{\"url\":\"http://h/rest\",\"protocolBinding\":\"HTTP+JSON\"," \
    "\"protocolVersion\":\"1.0\",\"tenant\":\"t 1\"},{\"url\":\"http://h/rpc\","                 \
    "\"protocolBinding\":\"JSONRPC\",\"protocolVersion\":\"0.3\"}],"                             \
    "\"skills\":[{\"id\":\"s\",\"name\":\"soup\",\"description\":\"makes soup\"},{\"id\":\"x\"}]}"
#define CARD_0_3                                                                            \
    "{\"name\":\"Old\",\"url\":\"http://h/grpc\",\"protocolVersion\":\"0.3.0\","            \
    "\"preferredTransport\":\"GRPC\",\"additionalInterfaces\":[{\"url\":\"http://h/rest\"," \
    "\"transport\":\"HTTP+JSON\"},{\"url\":\"http://h/rpc\",\"transport\":\"JSONRPC\"}],"   \
    "\"capabilities\":{}}"

/* ---- cards ---------------------------------------------------------------- */

static void read_card(const char *text, enum hd_a2a_dialect wanted, struct hd_a2a_card *card)
{
    struct heddle_error fault = {0};
    int err = hd_a2a_card_read(hd_slice_cstr(text), wanted, card, &fault);

    if (err)
        print_error("%s\n", fault.text);
    assert_err(err, 0);
}

static void the_first_interface_that_can_be_spoken_is_taken(void **state)
{
    struct hd_a2a_card card;

    (void)state;
    read_card(CARD_1_0, HD_A2A_ANY, &card);
    assert_string_equal(card.name, "Cook");
    assert_string_equal(card.url, "http://h/rest");
    assert_string_equal(card.tenant, "t 1");
    assert_int_equal(card.dialect, HD_A2A_1_0);
    assert_int_equal(card.binding, HD_A2A_HTTP_JSON);
    assert_true(card.streams);
    assert_string_equal(card.description, "Cooks.\nSkills:\n- soup: makes soup");
    hd_a2a_card_fini(&card);
}

static void the_wanted_dialect_is_taken(void **state)
{
    struct hd_a2a_card card;

    (void)state;
    read_card(CARD_1_0, HD_A2A_0_3, &card);
    assert_string_equal(card.url, "http://h/rpc");
    assert_int_equal(card.dialect, HD_A2A_0_3);
    assert_int_equal(card.binding, HD_A2A_JSONRPC);
    hd_a2a_card_fini(&card);
}

static void an_old_card_is_read(void **state)
{
    struct hd_a2a_card card;

    (void)state;
    read_card(CARD_0_3, HD_A2A_ANY, &card);
    assert_string_equal(card.url, "http://h/rpc");
    assert_int_equal(card.dialect, HD_A2A_0_3);
    assert_false(card.streams);
    hd_a2a_card_fini(&card);
    read_card("{\"name\":\"n\",\"url\":\"https://h\"}", HD_A2A_ANY, &card);
    assert_string_equal(card.url, "https://h");
    assert_string_equal(card.description, "");
    hd_a2a_card_fini(&card);
}

static void an_unusable_card_has_a_reason(void **state)
{
    static const struct {
        const char *text, *says;
        enum hd_a2a_dialect wanted;
    } cases[] = {
        {"[", "not JSON", HD_A2A_ANY},
        {"[]", "not an agent card", HD_A2A_ANY},
        {"{\"url\":\"http://h\"}", "not an agent card", HD_A2A_ANY},
        {"{\"name\":\"n\"}", "no supported interface", HD_A2A_ANY},
        {"{\"name\":\"n\",\"url\":\"file:///etc/passwd\"}", "no supported interface", HD_A2A_ANY},
        {"{\"name\":\"n\",\"url\":\"http://a b\"}", "no supported interface", HD_A2A_ANY},
        {"{\"name\":\"n\",\"url\":\"http://user:secret@h\"}", "no supported interface", HD_A2A_ANY},
        {CARD_0_3, "version 1.0", HD_A2A_1_0},
        {"{\"name\":\"n\",\"supportedInterfaces\":[{\"url\":\"http://h\",\"protocolBinding\":"
         "\"JSONRPC\",\"protocolVersion\":\"2.0\"}]}",
         "no supported interface", HD_A2A_ANY},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct heddle_error fault = {0};
        struct hd_a2a_card card;

        assert_err(hd_a2a_card_read(hd_slice_cstr(cases[i].text), cases[i].wanted, &card, &fault),
                   HD_EINVAL);
        if (!strstr(fault.text, cases[i].says))
            fail_msg("case %zu says: %s", i, fault.text);
    }
}

static void cards_are_where_they_belong(void **state)
{
    static const char *const cases[][2] = {
        {"http://h", "http://h/.well-known/agent-card.json"},
        {"http://h/", "http://h/.well-known/agent-card.json"},
        {"http://h/a2a/x//", "http://h/a2a/x/.well-known/agent-card.json"},
        {"http://h/a2a?assistant_id=7", "http://h/a2a/.well-known/agent-card.json?assistant_id=7"},
        {"http://h/cards/cook.json", "http://h/cards/cook.json"},
        {"http://h/.well-known/agent.json?x=/", "http://h/.well-known/agent.json?x=/"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct hd_buf url;

        hd_buf_init(&url, 4096);
        assert_err(hd_a2a_card_url(hd_slice_cstr(cases[i][0]), &url), 0);
        assert_string_equal(url.ptr, cases[i][1]);
        hd_buf_fini(&url);
    }
}

static void origins_are_compared(void **state)
{
    static const struct {
        const char *a, *b;
        bool is_same;
    } cases[] = {
        {"http://h/a", "http://H:80?x", true},
        {"https://h", "https://h:443/", true},
        {"http://h", "https://h", false},
        {"http://h:1", "http://h:2", false},
        {"http://h", "http://h.evil.org", false},
        {"http://h:443", "http://h", false},
        {"http://h/x", "http://evil/http://h", false},
        {"", "", false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        if (hd_a2a_same_origin(hd_slice_cstr(cases[i].a), hd_slice_cstr(cases[i].b)) !=
            cases[i].is_same)
            fail_msg("%s and %s", cases[i].a, cases[i].b);
    }
}

/* ---- requests ---------------------------------------------------------------- */

static void check_request(enum hd_a2a_dialect dialect, enum hd_a2a_binding binding,
                          const struct hd_a2a_operation *operation, const char *method,
                          const char *url, const char *body)
{
    char where[] = "http://h/rpc/?q=1", tenant[] = "t 1", none[] = "";
    struct hd_a2a_card card = {.url = where,
                               .tenant = binding == HD_A2A_HTTP_JSON ? tenant : none,
                               .dialect = dialect,
                               .binding = binding};
    struct hd_a2a_request request;

    assert_err(hd_a2a_request_make(&card, operation, &request), 0);
    assert_string_equal(request.method, method);
    assert_string_equal(request.url.ptr, url);
    assert_slice(hd_buf_slice(&request.body), hd_slice_cstr(body));
    assert_string_equal(request.version, dialect == HD_A2A_0_3 ? "0.3" : "1.0");
    hd_a2a_request_fini(&request);
}

static void requests_follow_the_dialect(void **state)
{
    struct hd_a2a_operation operation = {.op = HD_A2A_SEND,
                                         .context_id = HD_S("c"),
                                         .message_id = HD_S("m"),
                                         .text = HD_S("hi \"you\"")};

    (void)state;
    check_request(HD_A2A_0_3, HD_A2A_JSONRPC, &operation, "POST", "http://h/rpc/?q=1",
                  "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"message/send\",\"params\":{"
                  "\"message\":{\"kind\":\"message\",\"messageId\":\"m\",\"contextId\":\"c\","
                  "\"role\":\"user\",\"parts\":[{\"kind\":\"text\",\"text\":\"hi \\\"you\\\"\"}]},"
                  "\"configuration\":{\"acceptedOutputModes\":[\"text/plain\","
                  "\"application/json\"],\"blocking\":true}}}");
    operation.op = HD_A2A_STREAM;
    operation.task_id = HD_S("t");
    check_request(HD_A2A_1_0, HD_A2A_JSONRPC, &operation, "POST", "http://h/rpc/?q=1",
                  "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"SendStreamingMessage\",\"params\":{"
                  "\"message\":{\"messageId\":\"m\",\"contextId\":\"c\",\"taskId\":\"t\","
                  "\"role\":\"ROLE_USER\",\"parts\":[{\"text\":\"hi \\\"you\\\"\"}]},"
                  "\"configuration\":{\"acceptedOutputModes\":[\"text/plain\","
                  "\"application/json\"]}}}");
    operation.op = HD_A2A_GET;
    check_request(HD_A2A_0_3, HD_A2A_JSONRPC, &operation, "POST", "http://h/rpc/?q=1",
                  "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tasks/get\",\"params\":{\"id\":"
                  "\"t\"}}");
    operation.op = HD_A2A_CANCEL;
    check_request(HD_A2A_1_0, HD_A2A_JSONRPC, &operation, "POST", "http://h/rpc/?q=1",
                  "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"CancelTask\",\"params\":{\"id\":"
                  "\"t\"}}");
}

static void requests_follow_the_binding(void **state)
{
    struct hd_val *data = hd_val_with(hd_val_object(), HD_S("a"), hd_val_int(1));
    struct hd_a2a_operation operation = {.op = HD_A2A_SEND, .message_id = HD_S("m"), .data = data};

    (void)state;
    check_request(HD_A2A_1_0, HD_A2A_HTTP_JSON, &operation, "POST",
                  "http://h/rpc/t%201/message:send?q=1",
                  "{\"tenant\":\"t 1\",\"message\":{\"messageId\":\"m\",\"role\":\"ROLE_USER\","
                  "\"parts\":[{\"data\":{\"a\":1}}]},\"configuration\":{\"acceptedOutputModes\":["
                  "\"text/plain\",\"application/json\"]}}");
    operation.op = HD_A2A_GET;
    operation.task_id = HD_S("../t?");
    check_request(HD_A2A_1_0, HD_A2A_HTTP_JSON, &operation, "GET",
                  "http://h/rpc/t%201/tasks/..%2Ft%3F?q=1", "");
    operation.op = HD_A2A_CANCEL;
    check_request(HD_A2A_1_0, HD_A2A_HTTP_JSON, &operation, "POST",
                  "http://h/rpc/t%201/tasks/..%2Ft%3F:cancel?q=1",
                  "{\"tenant\":\"t 1\",\"id\":\"../t?\"}");
    hd_val_unref(data);
}

/* ---- responses --------------------------------------------------------------- */

static void read_text(struct hd_a2a_answer *answer, const char *text, enum hd_a2a_kind kind)
{
    struct heddle_error fault = {0};
    struct hd_a2a_progress progress;
    int err = hd_a2a_answer_read(answer, hd_slice_cstr(text), &progress, &fault);

    if (err)
        print_error("%s\n", fault.text);
    assert_err(err, 0);
    assert_int_equal(progress.kind, kind);
    hd_val_unref(progress.parts);
}

static void check_content(struct hd_a2a_answer *answer, const char *expected)
{
    struct hd_val *content = hd_a2a_answer_content(answer);

    assert_non_null(content);
    assert_slice(hd_val_get_string(content), hd_slice_cstr(expected));
    hd_val_unref(content);
}

static void check_artifact(struct hd_a2a_answer *answer, const char *expected)
{
    struct hd_val *artifact = hd_a2a_answer_artifact(answer);
    struct hd_buf text;

    hd_buf_init(&text, 1 << 20);
    assert_non_null(artifact);
    assert_err(hd_val_render(&text, artifact), 0);
    assert_slice(hd_buf_slice(&text), hd_slice_cstr(expected));
    hd_buf_fini(&text);
    hd_val_unref(artifact);
}

static void messages_of_both_dialects_are_one(void **state)
{
    static const char *const texts[] = {
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"kind\":\"message\",\"messageId\":\"m\","
        "\"contextId\":\"c\",\"role\":\"agent\",\"parts\":[{\"kind\":\"text\",\"text\":\"hi\"},"
        "{\"kind\":\"data\",\"data\":{\"a\":[1.50]}},{\"kind\":\"file\",\"file\":{\"uri\":"
        "\"http://f\",\"mimeType\":\"text/x\",\"name\":\"f\"}}]}}",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"message\":{\"messageId\":\"m\","
        "\"contextId\":\"c\",\"role\":\"ROLE_AGENT\",\"parts\":[{\"text\":\"hi\"},{\"data\":"
        "{\"a\":[1.50]}},{\"url\":\"http://f\",\"mediaType\":\"text/x\",\"filename\":\"f\"}]}}}",
        "{\"message\":{\"messageId\":\"m\",\"contextId\":\"c\",\"parts\":[{\"text\":\"hi\"},"
        "{\"data\":{\"a\":[1.50]}},{\"url\":\"http://f\",\"mediaType\":\"text/x\",\"filename\":"
        "\"f\"}]}}",
    };

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct hd_a2a_answer answer;

        hd_a2a_answer_init(&answer);
        read_text(&answer, texts[i], HD_A2A_MESSAGE);
        assert_true(answer.is_message);
        check_content(&answer, "hi\n{\"a\":[1.50]}\n[file f, text/x: http://f]");
        check_artifact(&answer, "{\"context_id\":\"c\",\"parts\":[{\"type\":\"text\",\"text\":"
                                "\"hi\"},{\"type\":\"data\",\"data\":{\"a\":[1.50]}},{\"type\":"
                                "\"file\",\"uri\":\"http://f\",\"name\":\"f\",\"mime_type\":"
                                "\"text/x\"}]}");
        hd_a2a_answer_fini(&answer);
    }
}

static void tasks_of_both_dialects_are_one(void **state)
{
    static const char *const texts[] = {
        "{\"result\":{\"kind\":\"task\",\"id\":\"t\",\"contextId\":\"c\",\"status\":{\"state\":"
        "\"completed\",\"message\":{\"kind\":\"message\",\"parts\":[{\"kind\":\"text\",\"text\":"
        "\"done\"}]}},\"artifacts\":[{\"artifactId\":\"a\",\"name\":\"n\",\"parts\":[{\"kind\":"
        "\"text\",\"text\":\"x\"},{\"kind\":\"text\",\"text\":\"y\"}]}]}}",
        "{\"result\":{\"task\":{\"id\":\"t\",\"contextId\":\"c\",\"status\":{\"state\":"
        "\"TASK_STATE_COMPLETED\",\"message\":{\"parts\":[{\"text\":\"done\"}]}},\"artifacts\":[{"
        "\"artifactId\":\"a\",\"name\":\"n\",\"parts\":[{\"text\":\"x\"},{\"text\":\"y\"}]}]}}}",
        "{\"id\":\"t\",\"contextId\":\"c\",\"status\":{\"state\":\"TASK_STATE_COMPLETED\","
        "\"message\":{\"parts\":[{\"text\":\"done\"}]}},\"artifacts\":[{\"artifactId\":\"a\","
        "\"name\":\"n\",\"parts\":[{\"text\":\"x\"},{\"text\":\"y\"}]}]}",
    };

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct hd_a2a_answer answer;

        hd_a2a_answer_init(&answer);
        read_text(&answer, texts[i], HD_A2A_TASK);
        assert_int_equal(answer.state, HD_A2A_COMPLETED);
        check_content(&answer, "done\nx\ny");
        check_artifact(&answer, "{\"task_id\":\"t\",\"context_id\":\"c\",\"state\":\"completed\","
                                "\"artifacts\":[{\"artifact_id\":\"a\",\"name\":\"n\",\"parts\":[{"
                                "\"type\":\"text\",\"text\":\"x\"},{\"type\":\"text\",\"text\":"
                                "\"y\"}]}]}");
        hd_a2a_answer_fini(&answer);
    }
}

static void pieces_of_an_artifact_are_put_together(void **state)
{
    struct hd_a2a_answer answer;

    (void)state;
    hd_a2a_answer_init(&answer);
    read_text(&answer,
              "{\"result\":{\"artifactUpdate\":{\"taskId\":\"t\",\"contextId\":\"c\",\"artifact\":"
              "{\"artifactId\":\"a\",\"parts\":[{\"text\":\"one \"}]}}}}",
              HD_A2A_ARTIFACT);
    read_text(
        &answer,
        "{\"result\":{\"kind\":\"artifact-update\",\"append\":true,\"artifact\":{"
        "\"artifactId\":\"a\",\"parts\":[{\"text\":\"two\"},{\"data\":7},{\"text\":\"3\"}]}}}",
        HD_A2A_ARTIFACT);
    read_text(&answer,
              "{\"result\":{\"artifactUpdate\":{\"append\":true,\"artifact\":{\"artifactId\":"
              "\"a\",\"parts\":[{\"text\":\"4\"}]}}}}",
              HD_A2A_ARTIFACT);
    read_text(&answer,
              "{\"result\":{\"artifactUpdate\":{\"append\":false,\"artifact\":{\"artifactId\":"
              "\"b\",\"parts\":[{\"text\":\"old\"}]}}}}",
              HD_A2A_ARTIFACT);
    read_text(&answer,
              "{\"result\":{\"artifactUpdate\":{\"artifact\":{\"artifactId\":\"b\",\"parts\":[{"
              "\"text\":\"new\"}]}}}}",
              HD_A2A_ARTIFACT);
    check_content(&answer, "one two\n7\n34\nnew");
    assert_slice(hd_val_get_string(answer.task_id), HD_S("t"));
    hd_a2a_answer_fini(&answer);
}

static void status_messages_are_the_result_without_artifacts(void **state)
{
    struct hd_a2a_answer answer;

    (void)state;
    hd_a2a_answer_init(&answer);
    read_text(&answer,
              "{\"result\":{\"kind\":\"status-update\",\"final\":false,\"status\":{\"state\":"
              "\"working\",\"message\":{\"parts\":[{\"kind\":\"text\",\"text\":\"Hel\"}]}}}}",
              HD_A2A_STATUS);
    assert_false(answer.is_final);
    read_text(&answer,
              "{\"result\":{\"kind\":\"status-update\",\"status\":{\"state\":\"working\","
              "\"message\":{\"parts\":[{\"kind\":\"text\",\"text\":\"Hello\"}]}}}}",
              HD_A2A_STATUS);
    read_text(&answer,
              "{\"result\":{\"statusUpdate\":{\"status\":{\"state\":\"TASK_STATE_WORKING\","
              "\"message\":{\"parts\":[{\"text\":\" there\"}]}}}}}",
              HD_A2A_STATUS);
    read_text(&answer,
              "{\"result\":{\"kind\":\"status-update\",\"final\":true,\"status\":{\"state\":"
              "\"completed\"}}}",
              HD_A2A_STATUS);
    assert_true(answer.is_final);
    assert_int_equal(answer.state, HD_A2A_COMPLETED);
    check_content(&answer, "Hello there");
    hd_a2a_answer_fini(&answer);

    hd_a2a_answer_init(&answer);
    read_text(&answer,
              "{\"id\":\"t\",\"status\":{\"state\":\"completed\"},\"history\":[{\"role\":\"agent\","
              "\"parts\":[{\"text\":\"first\"}]},{\"role\":\"ROLE_AGENT\",\"parts\":[{\"text\":"
              "\"last\"}]},{\"role\":\"user\",\"parts\":[{\"text\":\"mine\"}]}]}",
              HD_A2A_TASK);
    check_content(&answer, "last");
    hd_a2a_answer_fini(&answer);
}

static void states_have_two_names(void **state)
{
    (void)state;
    for (int i = HD_A2A_UNKNOWN; i <= HD_A2A_AUTH_REQUIRED; i++)
        assert_int_equal(hd_a2a_state_read(hd_slice_cstr(hd_a2a_state_name(i))), i);
    assert_int_equal(hd_a2a_state_read(HD_S("TASK_STATE_INPUT_REQUIRED")), HD_A2A_INPUT_REQUIRED);
    assert_int_equal(hd_a2a_state_read(HD_S("TASK_STATE_AUTH_REQUIRED")), HD_A2A_AUTH_REQUIRED);
    assert_int_equal(hd_a2a_state_read(HD_S("TASK_STATE_CANCELLED")), HD_A2A_CANCELED);
    assert_int_equal(hd_a2a_state_read(HD_S("TASK_STATE_CANCELED")), HD_A2A_CANCELED);
    assert_int_equal(hd_a2a_state_read(HD_S("complete")), HD_A2A_UNKNOWN);
    assert_int_equal(hd_a2a_state_read(HD_S("")), HD_A2A_UNKNOWN);
}

static void errors_and_invalid_replies_are_reported(void **state)
{
    static const struct {
        const char *text, *says;
        int err;
    } cases[] = {
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32001,\"message\":\"no task\"}}",
         "no task (-32001)", HD_EIO},
        {"{\"error\":{\"code\":404,\"status\":\"NOT_FOUND\",\"message\":\"gone\"}}", "gone (404)",
         HD_EIO},
        {"{\"code\":-32004}", "error -32004", HD_EIO},
        {"{", "not JSON", HD_EINVAL},
        {"{}", "neither", HD_EINVAL},
        {"[]", "neither", HD_EINVAL},
        {"{\"jsonrpc\":\"2.0\",\"id\":1}", "neither", HD_EINVAL},
        {"{\"result\":{\"task\":{\"id\":\"t\"}}}", "without a status", HD_EINVAL},
        {"{\"result\":{\"message\":{\"parts\":{}}}}", "not a list", HD_EINVAL},
        {"{\"result\":{\"message\":{\"parts\":[{\"x\":1}]}}}", "unknown kind", HD_EINVAL},
        {"{\"result\":{\"message\":{\"parts\":[{\"data\":{\"a\":1,\"a\":2}}]}}}",
         "cannot be stored", HD_EINVAL},
        {"{\"result\":{\"artifactUpdate\":{\"artifact\":3}}}", "artifact", HD_EINVAL},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct heddle_error fault = {0};
        struct hd_a2a_answer answer;
        struct hd_a2a_progress progress;

        hd_a2a_answer_init(&answer);
        assert_err(hd_a2a_answer_read(&answer, hd_slice_cstr(cases[i].text), &progress, &fault),
                   cases[i].err);
        if (!strstr(fault.text, cases[i].says))
            fail_msg("case %zu says: %s", i, fault.text);
        hd_a2a_answer_fini(&answer);
    }
}

static void more_artifacts_than_allowed_are_refused(void **state)
{
    struct hd_a2a_answer answer;
    struct hd_a2a_progress progress;
    int err = 0;

    (void)state;
    hd_a2a_answer_init(&answer);
    for (int i = 0; i <= HD_A2A_MAX_ARTIFACTS && !err; i++) {
        char text[128];

        snprintf(text, sizeof(text),
                 "{\"artifactUpdate\":{\"artifact\":{\"artifactId\":\"%d\",\"parts\":[]}}}", i);
        err = hd_a2a_answer_read(&answer, hd_slice_cstr(text), &progress, NULL);
        hd_val_unref(progress.parts);
    }
    assert_err(err, HD_ELIMIT);
    assert_int_equal(answer.artifact_count, HD_A2A_MAX_ARTIFACTS);
    hd_a2a_answer_fini(&answer);
}

static int read_everything(void *arg)
{
    struct hd_a2a_answer answer;
    struct hd_a2a_card card;
    struct hd_a2a_progress progress;
    struct hd_val *val = NULL;
    int err = hd_a2a_card_read(HD_S(CARD_1_0), HD_A2A_ANY, &card, NULL);

    (void)arg;
    if (err)
        return err;
    hd_a2a_card_fini(&card);
    hd_a2a_answer_init(&answer);
    err = hd_a2a_answer_read(&answer,
                             HD_S("{\"id\":\"t\",\"contextId\":\"c\",\"status\":{\"state\":"
                                  "\"working\",\"message\":{\"parts\":[{\"text\":\"w\"}]}},"
                                  "\"artifacts\":[{\"artifactId\":\"a\",\"parts\":[{\"text\":"
                                  "\"x\"},{\"data\":{}},{\"url\":\"u\"}]}]}"),
                             &progress, NULL);
    hd_val_unref(progress.parts);
    if (!err) {
        val = hd_a2a_answer_content(&answer);
        err = val ? 0 : HD_ENOMEM;
    }
    hd_val_unref(val);
    if (!err) {
        val = hd_a2a_answer_artifact(&answer);
        err = val ? 0 : HD_ENOMEM;
        hd_val_unref(val);
    }
    hd_a2a_answer_fini(&answer);
    return err;
}

static void failed_allocations_are_reported(void **state)
{
    (void)state;
    assert_true(check_every_allocation(read_everything, NULL) > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_interface_that_can_be_spoken_is_taken),
        cmocka_unit_test(the_wanted_dialect_is_taken),
        cmocka_unit_test(an_old_card_is_read),
        cmocka_unit_test(an_unusable_card_has_a_reason),
        cmocka_unit_test(cards_are_where_they_belong),
        cmocka_unit_test(origins_are_compared),
        cmocka_unit_test(requests_follow_the_dialect),
        cmocka_unit_test(requests_follow_the_binding),
        cmocka_unit_test(messages_of_both_dialects_are_one),
        cmocka_unit_test(tasks_of_both_dialects_are_one),
        cmocka_unit_test(pieces_of_an_artifact_are_put_together),
        cmocka_unit_test(status_messages_are_the_result_without_artifacts),
        cmocka_unit_test(states_have_two_names),
        cmocka_unit_test(errors_and_invalid_replies_are_reported),
        cmocka_unit_test(more_artifacts_than_allowed_are_refused),
        cmocka_unit_test(failed_allocations_are_reported),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
