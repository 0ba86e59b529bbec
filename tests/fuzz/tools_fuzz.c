/* libFuzzer: any JSON as external input of tools: a list of client tools or HTTP tools, an approval
 * policy, a reply of a user, arguments and a schema. Accepted input is usable, and refused input
 * has an error text. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/approval.h"
#include "agent/http_tool.h"
#include "agent/tool.h"
#include "agent/tools.h"
#include "base/alloc.h"
#include "graph/engine/engine.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

extern const struct hd_source_kind hd_source_client;

static void require(bool is_so, const char *what)
{
    if (is_so)
        return;
    fprintf(stderr, "%s\n", what);
    abort();
}

static bool is_said(int err, const struct heddle_error *fault)
{
    return err == 0 || (err == HD_EINVAL && fault->text[0]);
}

/* The host is that of the declaration, for any arguments. */
static void try_request(const struct hd_val *tool, const struct hd_val *args)
{
    struct hd_slice url = hd_val_get_string(hd_val_get(tool, HD_S("url")));
    size_t host = strcspn(url.ptr + 8, "/?") + 8;
    struct hd_tool_http_request request;
    struct heddle_error fault = {0};
    struct hd_val *result = NULL;
    int err;

    hd_tool_http_request_init(&request);
    err = hd_tool_http_request(&request, tool, args, NULL, &fault);
    require(is_said(err, &fault), "an odd error of a request");
    if (err == 0) {
        require(strncmp(request.url.ptr, url.ptr, host < url.len ? host : url.len) == 0,
                "another host");
        require(!strpbrk(request.url.ptr, " \r\n{}"), "a URL that is none");
        for (size_t i = 0; i < request.header_count; i++)
            require(!strpbrk(request.headers[i], "\r\n"), "a header of two lines");
    }
    hd_tool_http_request_fini(&request);
    err = hd_tool_http_result(tool, HD_S("{\"a\":[{\"b\":1}]}"), &result, &fault);
    require(is_said(err, &fault), "an odd error of a result");
    hd_val_unref(result);
}

static void try_http(const struct hd_val *val)
{
    for (size_t i = 0; i < (hd_val_is_list(val) ? hd_val_count(val) : 1); i++) {
        const struct hd_val *tool = hd_val_is_list(val) ? hd_val_at(val, i) : val;
        struct heddle_error fault = {0};
        int err = hd_tool_http_check(tool, &fault);

        require(is_said(err, &fault), "an odd error of a tool");
        if (err == 0)
            try_request(tool, hd_val_is_object(val) ? val : hd_val_at(val, 0));
    }
}

/* A client source in an otherwise empty run. */
static void open_client(const struct hd_val *val)
{
    struct hd_engine_run run = {0};
    struct hd_tool_source source = {
        .kind = &hd_source_client, .value = hd_val_ref(val), .run = &run};

    require(hd_source_client.open(&source) == 0 && source.is_ready, "tools that cannot be had");
    require(source.tool_count == hd_val_count(val), "lost tools");
    for (size_t i = 0; i < source.tool_count; i++) {
        struct hd_tool *tool = source.tools[i];

        require(tool->is_client && tool->name.len > 0, "a tool without a name");
        require(hd_val_is_object(tool->parameters), "a tool without a schema");
        hd_val_unref((struct hd_val *)(uintptr_t)tool->parameters);
        hd_free(tool);
    }
    hd_free(source.tools);
    hd_val_unref(source.value);
}

static void try_client(const struct hd_val *val)
{
    struct heddle_error fault = {0};
    int err = hd_source_client.check(val, &fault);

    require(is_said(err, &fault), "an odd error of client tools");
    if (err == 0)
        open_client(val);
}

static void try_approval(const struct hd_val *val)
{
    struct hd_approval approval, all = {.is_needed = true, .allows = {true, true, true, true}};
    struct hd_decision decision;
    struct heddle_error fault = {0};
    int err = hd_approval_find(val, HD_S("pay"), HD_S("own"), val, &approval, &fault);

    require(is_said(err, &fault), "an odd error of a policy");
    require(err == hd_approval_check(val, NULL), "a policy is one or not");
    if (err == 0 && approval.is_needed) {
        struct hd_val *question =
            hd_approval_question(&approval, HD_S("pay"), val, HD_S("id"), NULL);
        struct hd_approval seen;

        require(hd_approval_is_question(question, HD_S("pay"), HD_S("id"), &seen) &&
                    memcmp(seen.allows, approval.allows, sizeof(seen.allows)) == 0,
                "a question that is none");
        hd_val_unref(question);
    }
    fault = (struct heddle_error){0};
    err = hd_approval_answer(val, &all, HD_S("pay"), &decision, &fault);
    require(is_said(err, &fault), "an odd error of an answer");
    if (err == 0) {
        require(decision.verdict != HD_EDIT || hd_val_is_object(decision.args), "no arguments");
        require(decision.verdict != HD_RESPOND || hd_val_is_string(decision.text), "no text");
        hd_decision_fini(&decision);
    }
}

static void try_values(const struct hd_val *val)
{
    struct heddle_error fault = {0};
    struct hd_val *content;

    require(is_said(hd_tool_args_check(val, val, &fault), &fault), "an odd error of arguments");
    content = hd_tool_content(hd_val_ref(val), 16);
    require(hd_val_is_string(content) || hd_val_is_list(content), "no content");
    hd_val_unref(content);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hd_val *val;

    if (hd_val_parse_json(hd_slice(data, size), &val, NULL) != 0)
        return 0;
    try_http(val);
    try_client(val);
    try_approval(val);
    try_values(val);
    hd_val_unref(val);
    return 0;
}
