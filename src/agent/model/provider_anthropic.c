/* Anthropic's Messages API. */
#include <string.h>

#include "agent/model/provider.h"

#define VERSION "2023-06-01"
#define MAX_TOKENS 4096 /* a required member */

/* ---- requests --------------------------------------------------------- */

static void put_text_block(struct hd_jw *jw, struct hd_slice text)
{
    hd_jw_object(jw);
    hd_jw_put_string(jw, "type", HD_S("text"));
    hd_jw_put_string(jw, "text", text);
    hd_jw_object_end(jw);
}

static void put_media(struct hd_jw *jw, const struct hd_content *part)
{
    bool is_image = hd_slice_eq(part->kind, HD_S("image"));
    struct hd_slice mime = part->mime;

    if (mime.len == 0)
        mime = is_image ? HD_S("image/png") : HD_S("application/pdf");
    hd_jw_object(jw);
    hd_jw_put_string(jw, "type", is_image ? HD_S("image") : HD_S("document"));
    hd_jw_put_object(jw, "source");
    if (part->type == HD_CONTENT_URL) {
        hd_jw_put_string(jw, "type", HD_S("url"));
        hd_jw_put_string(jw, "url", part->text);
    } else {
        hd_jw_put_string(jw, "type", HD_S("base64"));
        hd_jw_put_string(jw, "media_type", mime);
        hd_jw_put_string(jw, "data", part->text);
    }
    hd_jw_object_end(jw);
    hd_jw_object_end(jw);
}

static void put_thinking(struct hd_jw *jw, const struct hd_content *part)
{
    hd_jw_object(jw);
    hd_jw_put_string(jw, "type", HD_S("thinking"));
    hd_jw_put_string(jw, "thinking", part->text);
    hd_jw_put_string(jw, "signature", part->signature);
    hd_jw_object_end(jw);
}

static bool is_redacted(const struct hd_content *part)
{
    return hd_slice_eq(hd_val_get_string(hd_val_get(part->raw, HD_S("type"))),
                       HD_S("redacted_thinking"));
}

/* Returns the number of blocks. Skips empty texts, which the API refuses. */
static size_t put_content(struct hd_jw *jw, const struct hd_val *content, bool is_ai)
{
    size_t count = 0;

    for (size_t i = 0; i < hd_content_count(content); i++) {
        struct hd_content part = hd_content_at(content, i);

        if (part.type == HD_CONTENT_TEXT && part.text.len > 0)
            put_text_block(jw, part.text);
        else if (part.type == HD_CONTENT_DATA || part.type == HD_CONTENT_URL)
            put_media(jw, &part);
        else if (part.type == HD_CONTENT_THINKING && is_ai && part.signature.len > 0)
            put_thinking(jw, &part);
        else if (part.type == HD_CONTENT_OTHER || (is_ai && is_redacted(&part)))
            hd_val_put_rendered(jw, part.raw);
        else
            continue;
        count++;
    }
    return count;
}

static void put_call(struct hd_jw *jw, const struct hd_chat_call *call)
{
    hd_jw_object(jw);
    hd_jw_put_string(jw, "type", HD_S("tool_use"));
    hd_jw_put_string(jw, "id", call->id);
    hd_jw_put_string(jw, "name", call->name);
    hd_jw_key(jw, HD_S("input"));
    if (call->args)
        hd_val_put_rendered(jw, call->args);
    else
        hd_jw_raw(jw, HD_S("{}"));
    hd_jw_object_end(jw);
}

static void put_result(struct hd_jw *jw, const struct hd_val *message)
{
    const struct hd_val *content = hd_val_get(message, HD_S("content"));
    bool is_error =
        hd_slice_eq(hd_val_get_string(hd_val_get(message, HD_S("status"))), HD_S("error"));

    hd_jw_object(jw);
    hd_jw_put_string(jw, "type", HD_S("tool_result"));
    hd_jw_put_string(jw, "tool_use_id",
                     hd_val_get_string(hd_val_get(message, HD_S("tool_call_id"))));
    hd_jw_put_array(jw, "content");
    (void)put_content(jw, content, false);
    hd_jw_array_end(jw);
    if (is_error)
        hd_jw_put_bool(jw, "is_error", true);
    hd_jw_object_end(jw);
}

static size_t put_blocks(struct hd_jw *jw, const struct hd_val *messages, size_t index)
{
    const struct hd_val *message = hd_val_at(messages, index);
    bool is_ai = hd_chat_is(message, "ai");
    size_t count, calls = is_ai ? hd_chat_call_count(message) : 0;

    if (hd_chat_is(message, "tool")) {
        put_result(jw, message);
        return 1;
    }
    count = put_content(jw, hd_val_get(message, HD_S("content")), is_ai);
    for (size_t i = 0; i < calls; i++) {
        struct hd_chat_call call = hd_chat_call_at(message, i);

        put_call(jw, &call);
    }
    return count + calls;
}

static const struct hd_chat_turns turns = {.key = "messages",
                                           .ai = "assistant",
                                           .parts = "content",
                                           .put = put_blocks,
                                           .put_text = put_text_block};

/* Joins the system prompt and all system messages. */
static int join_system(const struct hd_chat *chat, struct hd_buf *out)
{
    int err = hd_buf_append_slice(out, chat->system);

    for (size_t i = 0; i < hd_val_count(chat->messages) && !err; i++) {
        const struct hd_val *message = hd_val_at(chat->messages, i);

        if (!hd_chat_is(message, "system"))
            continue;
        if (out->len > 0)
            err = hd_buf_append(out, "\n\n", 2);
        if (!err)
            err = hd_content_text(hd_val_get(message, HD_S("content")), out);
    }
    return err;
}

static void put_tools(struct hd_jw *jw, const struct hd_toolset *tools)
{
    if (!tools || tools->count == 0)
        return;
    hd_jw_put_array(jw, "tools");
    for (size_t i = 0; i < tools->count; i++) {
        hd_jw_object(jw);
        hd_jw_put_string(jw, "name", tools->entries[i].name);
        if (tools->entries[i].tool->description.len > 0)
            hd_jw_put_string(jw, "description", tools->entries[i].tool->description);
        hd_jw_key(jw, HD_S("input_schema"));
        hd_val_put_rendered(jw, tools->entries[i].tool->parameters);
        hd_jw_object_end(jw);
    }
    hd_jw_array_end(jw);
}

static void put_body(struct hd_jw *jw, const struct hd_chat *chat, struct hd_slice system)
{
    hd_jw_object(jw);
    hd_jw_put_string(jw, "model", chat->model);
    hd_jw_put_int(jw, "max_tokens", chat->max_tokens > 0 ? chat->max_tokens : MAX_TOKENS);
    if (system.len > 0)
        hd_jw_put_string(jw, "system", system);
    hd_chat_put_turns(jw, &turns, chat->messages);
    put_tools(jw, chat->tools);
    if (chat->has_temperature) /* its maximum is 1 */
        hd_put_number(jw, "temperature", chat->temperature < 1 ? chat->temperature : 1);
    hd_jw_put_bool(jw, "stream", chat->streams);
    hd_jw_object_end(jw);
}

static bool base_url_ends_with(struct hd_slice text, const char *end)
{
    size_t len = strlen(end);

    return text.len >= len && memcmp(text.ptr + text.len - len, end, len) == 0;
}

static int make_anthropic_request(const struct hd_chat *chat, struct hd_chat_request *out)
{
    struct hd_buf system;
    struct hd_jw jw;
    int err =
        hd_buf_printf(&out->url, "%.*s%s/messages", (int)chat->base_url.len, chat->base_url.ptr,
                      base_url_ends_with(chat->base_url, "/v1") ? "" : "/v1");

    if (!err)
        err = hd_buf_append_byte(&out->url, 0);
    if (!err)
        err = hd_chat_header(out, "Content-Type", HD_S("application/json"));
    if (!err)
        err = hd_chat_header(out, "anthropic-version", HD_S(VERSION));
    if (!err && chat->key.len > 0)
        err = hd_chat_header(out, "x-api-key", chat->key);
    hd_buf_init(&system, HD_CHAT_MAX_REQUEST);
    if (!err)
        err = join_system(chat, &system);
    if (!err) {
        hd_jw_init(&jw, &out->body);
        put_body(&jw, chat, hd_buf_slice(&system));
        err = hd_jw_finish(&jw);
    }
    hd_buf_fini(&system);
    return err;
}

/* ---- responses -------------------------------------------------------- */

/* The API does not count tokens read from and written to the cache as input. */
static void read_anthropic_usage(struct hd_completion *answer, hd_json_val usage)
{
    struct hd_usage *out = &answer->usage;
    int64_t input = hd_count_of(usage, "input_tokens", -1);

    if (!hd_json_is_object(usage))
        return;
    out->is_given = true;
    if (input >= 0) {
        out->cache_read = hd_count_of(usage, "cache_read_input_tokens", -1);
        out->cache_creation = hd_count_of(usage, "cache_creation_input_tokens", -1);
        out->input = input + (out->cache_read > 0 ? out->cache_read : 0) +
                     (out->cache_creation > 0 ? out->cache_creation : 0);
    }
    out->output = hd_count_of(usage, "output_tokens", out->output);
    out->total = out->input + out->output;
}

static int read_stop(struct hd_completion *answer, hd_json_val from)
{
    struct hd_slice reason = hd_text_of(from, "stop_reason");

    if (reason.len == 0)
        return 0;
    answer->is_ended = true;
    return hd_completion_set(&answer->finish, reason);
}

static int read_call(struct hd_completion *answer, int64_t index, hd_json_val block)
{
    hd_json_val input = hd_json_get(block, HD_S("input"));
    struct hd_buf args;
    int err = 0;

    hd_buf_init(&args, HD_COMPLETION_MAX_BYTES);
    if (hd_json_size(input) > 0)
        err = hd_json_write_val(&args, input);
    if (!err)
        err = hd_completion_call(answer, index, hd_text_of(block, "id"), hd_text_of(block, "name"),
                                 hd_buf_slice(&args));
    hd_buf_fini(&args);
    return err;
}

/* A block, complete or as far as present at its start. */
static int read_block(struct hd_completion *answer, int64_t index, hd_json_val block)
{
    struct hd_slice type = hd_text_of(block, "type"), signature = hd_text_of(block, "signature");
    int err = 0;

    if (hd_slice_eq(type, HD_S("text")))
        return hd_completion_text(answer, hd_text_of(block, "text"));
    if (hd_slice_eq(type, HD_S("tool_use")))
        return read_call(answer, index, block);
    if (hd_slice_eq(type, HD_S("redacted_thinking"))) {
        hd_completion_end_part(answer);
        return hd_completion_thinking(answer, hd_text_of(block, "data"), true);
    }
    if (!hd_slice_eq(type, HD_S("thinking")))
        return 0;
    hd_completion_end_part(answer);
    err = hd_completion_thinking(answer, hd_text_of(block, "thinking"), false);
    return !err && signature.len > 0 ? hd_completion_signature(answer, signature) : err;
}

static int read_delta(struct hd_completion *answer, int64_t index, hd_json_val delta)
{
    struct hd_slice type = hd_text_of(delta, "type"), none = {"", 0};

    if (hd_slice_eq(type, HD_S("text_delta")))
        return hd_completion_text(answer, hd_text_of(delta, "text"));
    if (hd_slice_eq(type, HD_S("thinking_delta")))
        return hd_completion_thinking(answer, hd_text_of(delta, "thinking"), false);
    if (hd_slice_eq(type, HD_S("signature_delta")))
        return hd_completion_signature(answer, hd_text_of(delta, "signature"));
    if (hd_slice_eq(type, HD_S("input_json_delta")))
        return hd_completion_call(answer, index, none, none, hd_text_of(delta, "partial_json"));
    return 0;
}

static int read_start(struct hd_completion *answer, hd_json_val message)
{
    struct hd_slice model = hd_text_of(message, "model");

    read_anthropic_usage(answer, hd_json_get(message, HD_S("usage")));
    return model.len > 0 ? hd_completion_set(&answer->model, model) : 0;
}

static int read_event(struct hd_completion *answer, hd_json_val root)
{
    struct hd_slice type = hd_text_of(root, "type");
    int64_t index = hd_count_of(root, "index", 0);
    int err;

    if (hd_slice_eq(type, HD_S("error")))
        return hd_completion_check_error(answer, root);
    if (hd_slice_eq(type, HD_S("message_start")))
        return read_start(answer, hd_json_get(root, HD_S("message")));
    if (hd_slice_eq(type, HD_S("content_block_start")))
        return read_block(answer, index, hd_json_get(root, HD_S("content_block")));
    if (hd_slice_eq(type, HD_S("content_block_delta")))
        return read_delta(answer, index, hd_json_get(root, HD_S("delta")));
    if (hd_slice_eq(type, HD_S("message_delta"))) {
        read_anthropic_usage(answer, hd_json_get(root, HD_S("usage")));
        err = read_stop(answer, hd_json_get(root, HD_S("delta")));
        answer->has_begun = true; /* a response may be empty */
        return err;
    }
    if (hd_slice_eq(type, HD_S("message_stop")))
        answer->is_ended = answer->is_done = true;
    return 0;
}

static int on_anthropic_event(struct hd_completion *answer, const struct hd_sse_event *event)
{
    return event->data.len == 0 ? 0 : hd_completion_read(answer, event->data, read_event);
}

static int read_anthropic_message(struct hd_completion *answer, hd_json_val root)
{
    struct hd_json_iter it = hd_json_iter(hd_json_get(root, HD_S("content")));
    int64_t index = 0;
    int err = hd_completion_check_error(answer, root);

    if (!err)
        err = read_start(answer, root);
    while (err == 0 && hd_json_next(&it))
        err = read_block(answer, index++, it.val);
    if (!err)
        err = read_stop(answer, root);
    if (!err && !answer->is_ended && !answer->has_begun)
        err = hd_completion_fail(answer, "APIResponseValidationError",
                                 "the model's server sent a response without \"content\"");
    return err;
}

static int on_anthropic_body(struct hd_completion *answer, struct hd_slice body)
{
    int err = hd_completion_read(answer, body, read_anthropic_message);

    answer->is_ended = answer->is_done = true;
    return err;
}

const struct hd_provider hd_provider_anthropic = {
    .name = "anthropic",
    .model = "ChatAnthropic",
    .request = make_anthropic_request,
    .event = on_anthropic_event,
    .body = on_anthropic_body,
};
