/* `http`: plain HTTP tools, declared by JSON Schema: a list, or one alone. */
#include "agent/exchange.h"
#include "agent/exchange_internal.h"
#include "agent/http_tool.h"
#include "agent/tool.h"
#include "base/alloc.h"
#include "base/utf8.h"
#include "graph/engine/engine.h"
#include "graph/engine/loop.h"
#include "graph/engine/task.h"
#include "graph/node/idempotency_key.h"

#define MAX_ERROR 2000 /* bytes of a response shown in an error */

/* A running call. */
struct http_tool_request {
    struct hd_tool_call *call;
    struct hd_agent_exchange *exchange;
    struct hd_tool_http_request request;
    char key[HD_CALL_KEY_LINE_SIZE];
};

static size_t count_tools(const struct hd_val *value)
{
    return hd_val_is_list(value) ? hd_val_count(value) : 1;
}

static const struct hd_val *tool_at(const struct hd_val *value, size_t index)
{
    return hd_val_is_list(value) ? hd_val_at(value, index) : value;
}

static int check_http_tools(const struct hd_val *value, struct heddle_error *fault)
{
    int err = 0;

    if (!hd_val_is_list(value) && !hd_val_is_object(value))
        return hd_error_set(fault, HD_EINVAL, "must be a list of tools, not %s",
                            hd_val_type_name(value));
    for (size_t i = 0; i < count_tools(value) && !err; i++) {
        struct heddle_error inner = {0};

        err = hd_tool_http_check(tool_at(value, i), &inner);
        if (err)
            hd_error_set(fault, err, "tool %zu: %s", i, inner.text);
    }
    return err;
}

static int open_tools(struct hd_tool_source *source)
{
    int err = 0;

    for (size_t i = 0; i < count_tools(source->value) && !err; i++) {
        const struct hd_val *decl = tool_at(source->value, i);
        struct hd_tool tool = {
            .name = hd_val_get_string(hd_val_get(decl, HD_S("name"))),
            .description = hd_val_get_string(hd_val_get(decl, HD_S("description"))),
            .parameters = hd_val_get(decl, HD_S("parameters")),
            .is_read_only = hd_val_is_true(hd_val_get(decl, HD_S("read_only"))),
            .own = (void *)(uintptr_t)decl,
        };

        (void)hd_val_get_int(hd_val_get(decl, HD_S("timeout_ms")), &tool.timeout_ms);
        err = hd_source_add(source, &tool);
    }
    if (!err)
        hd_source_ready(source, NULL);
    return err;
}

static void close_tools(struct hd_tool_source *source)
{
    (void)source;
}

/* ---- calling ---------------------------------------------------------- */

static void free_request(struct http_tool_request *pending)
{
    pending->call->own = NULL;
    hd_tool_http_request_fini(&pending->request);
    hd_free(pending);
}

static void end_refused(struct http_tool_request *pending, long status, struct hd_slice body)
{
    struct hd_tool_call *call = pending->call;
    size_t len = body.len > MAX_ERROR ? hd_utf8_cut(body.ptr, MAX_ERROR) : body.len;

    free_request(pending);
    hd_tool_error(call, "HTTP status %ld%s%.*s%s", status, len > 0 ? ": " : "", (int)len,
                  len > 0 ? body.ptr : "", len < body.len ? " …" : "");
}

static void end_answered(struct http_tool_request *pending, struct hd_slice body)
{
    struct hd_tool_call *call = pending->call;
    struct hd_val *result = NULL;
    struct heddle_error fault = {0};
    int err = hd_tool_http_result(call->tool->own, body, &result, &fault);

    free_request(pending);
    if (err)
        hd_tool_error(call, "%s", fault.text[0] ? fault.text : hd_error_text(err));
    else
        hd_tool_done(call, result, NULL);
}

/* Secrets that the server echoes are masked. */
static void on_http_tool_done(void *ctx, const struct hd_reply *reply)
{
    struct http_tool_request *pending = ctx;
    struct hd_tool_call *call = pending->call;
    struct hd_buf body;
    int err;

    if (reply->error) {
        free_request(pending);
        hd_tool_error(call, "%s", reply->error);
        return;
    }
    hd_buf_init(&body, (size_t)64 << 20);
    err = hd_mask(&body, reply->body, pending->request.secrets, pending->request.secret_count);
    if (err) {
        free_request(pending);
        hd_tool_error(call, "%s", hd_error_text(err));
    } else if (reply->status < 200 || reply->status > 299) {
        end_refused(pending, reply->status, hd_buf_slice(&body));
    } else {
        end_answered(pending, hd_buf_slice(&body));
    }
    hd_buf_fini(&body);
}

/* The declaration's key takes precedence. */
static int add_key_header(struct http_tool_request *pending)
{
    struct hd_tool_http_request *request = &pending->request;
    int err;

    if (request->has_key)
        return 0;
    err = hd_idempotency_key_line(pending->call->task, pending->call->id, pending->key);
    if (!err)
        request->headers[request->header_count++] = pending->key;
    return err;
}

static int begin_request(struct http_tool_request *pending)
{
    const struct hd_tool_http_request *request = &pending->request;
    struct hd_agent_exchange_options options = {
        .peer = "http",
        .method = request->method,
        .url = request->url.ptr,
        .headers = request->headers,
        .header_count = request->header_count,
        .body = request->has_body ? hd_buf_slice(&request->body) : (struct hd_slice){NULL, 0},
        .is_direct = request->secret_count > 0,
        .secrets = request->secrets,
        .secret_count = request->secret_count,
        .on_done = on_http_tool_done,
        .ctx = pending,
    };

    return hd_agent_exchange_start(pending->call->task, &options, &pending->exchange);
}

static int call_http_tool(struct hd_tool_call *call)
{
    const struct hd_val *secrets = call->task->loop->run->options.secrets;
    struct http_tool_request *pending = hd_calloc(1, sizeof(*pending));
    struct heddle_error fault = {0};
    int err;

    if (!pending)
        return HD_ENOMEM;
    pending->call = call;
    call->own = pending;
    hd_tool_http_request_init(&pending->request);
    err = hd_tool_http_request(&pending->request, call->tool->own, call->args, secrets, &fault);
    if (!err)
        err = add_key_header(pending);
    if (!err)
        err = begin_request(pending);
    if (err)
        free_request(pending);
    if (err && fault.text[0]) {
        hd_tool_error(call, "%s", fault.text);
        err = 0;
    }
    return err;
}

static void cancel_http_tool(struct hd_tool_call *call)
{
    struct http_tool_request *pending = call->own;

    hd_agent_exchange_cancel(pending->exchange);
    free_request(pending);
}

const struct hd_source_kind hd_source_http = {
    .name = "http",
    .check = check_http_tools,
    .open = open_tools,
    .close = close_tools,
    .call = call_http_tool,
    .cancel = cancel_http_tool,
};
