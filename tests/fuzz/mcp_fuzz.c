/* libFuzzer: data from MCP servers, and configurations. The bytes are a message and the text of a
 * configuration; a parsed message can be written again, and a value that becomes a header is one
 * line. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/mcp/mcp_config.h"
#include "agent/mcp/mcp_proto.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool is_so, const char *what)
{
    if (is_so)
        return;
    fprintf(stderr, "%s\n", what);
    abort();
}

static void try_result(const struct hd_val *result)
{
    struct hd_mcp_outcome outcome;
    struct heddle_error fault = {0};
    int err = hd_mcp_result_read(result, &outcome, &fault);

    require(err == 0 || fault.text[0], "an error without a reason");
    if (err)
        return;
    require(hd_val_is_string(outcome.content) || hd_val_is_list(outcome.content), "odd content");
    require(!outcome.is_error || hd_val_is_string(outcome.content), "an error that is no text");
    hd_mcp_outcome_fini(&outcome);
}

/* Each header is one line that cannot start another header. */
static void try_headers(const struct hd_val *schema, const struct hd_val *args)
{
    struct hd_buf buf;

    if (hd_mcp_headers_check(schema, NULL) != 0)
        return;
    hd_buf_init(&buf, (size_t)1 << 20);
    if (hd_mcp_headers_write(&buf, schema, args) == 0) {
        for (size_t i = 0; i < buf.len; i++) {
            unsigned char c = (unsigned char)buf.ptr[i];

            require(c == 0 || (c >= 0x20 && c < 0x7f), "a byte that is not for headers");
        }
    }
    hd_buf_fini(&buf);
}

static void try_questions(const struct hd_val *requests, const struct hd_val *answer)
{
    struct hd_val *responses, *question;

    if (!hd_val_is_object(requests) || hd_mcp_ask_check(requests))
        return;
    question = hd_mcp_ask_question(HD_S("s"), HD_S("t"), requests, answer, NULL);
    require(question && hd_mcp_ask_is_question(question, HD_S("s"), HD_S("t")), "no question");
    responses = hd_mcp_ask_responses(requests, answer);
    require(responses && hd_val_count(responses) == hd_val_count(requests), "answers are missing");
    for (size_t i = 0; i < hd_val_count(responses); i++)
        require(hd_val_get(hd_val_member(responses, i, NULL), HD_S("action")) != NULL,
                "an answer without an action");
    hd_val_unref(responses);
    hd_val_unref(question);
}

static void try_message(struct hd_slice text)
{
    struct hd_mcp_message message;
    struct heddle_error fault = {0};
    struct hd_val *shown;
    int err = hd_mcp_message_read(text, &message, &fault);

    require(err == 0 || fault.text[0], "an error without a reason");
    if (err)
        return;
    (void)hd_mcp_message_is_for(&message, 1);
    if (message.kind == HD_MCP_ERROR) {
        shown = hd_mcp_error_text(message.code, message.text, message.data);
        require(shown != NULL, "an error that cannot be shown");
        hd_val_unref(shown);
    }
    if (message.kind == HD_MCP_RESULT) {
        try_result(message.result);
        try_headers(hd_val_get(message.result, HD_S("inputSchema")),
                    hd_val_get(message.result, HD_S("arguments")));
        try_questions(hd_val_get(message.result, HD_S("inputRequests")),
                      hd_val_get(message.result, HD_S("answer")));
    }
    hd_mcp_message_fini(&message);
}

static void try_config(struct hd_slice text)
{
    struct hd_mcp_server *servers;
    struct heddle_error fault = {0};
    struct hd_arena arena;
    struct hd_val *value;
    size_t count;
    int err;

    if (hd_val_parse_json(text, &value, NULL) != 0)
        return;
    hd_arena_init(&arena, (size_t)1 << 22);
    err = hd_mcp_config_read(value, &arena, &servers, &count, &fault);
    require(err == 0 || fault.text[0], "an error without a reason");
    for (size_t i = 0; i < count && !err; i++) {
        require(strncmp(servers[i].url, "http", 4) == 0, "an odd address");
        require(!strpbrk(servers[i].url, "\r\n "), "an address of several lines");
    }
    hd_arena_fini(&arena);
    hd_val_unref(value);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hd_slice text = hd_slice(data, size);
    struct hd_buf buf;

    try_message(text);
    try_config(text);
    hd_buf_init(&buf, (size_t)1 << 16);
    if (hd_mcp_header_value(&buf, text) == 0) {
        for (size_t i = 0; i < buf.len; i++)
            require(buf.ptr[i] >= 0x20 && buf.ptr[i] < 0x7f, "a value that is not for headers");
    }
    hd_buf_fini(&buf);
    return 0;
}
