/* Google's Gemini: generateContent. */
#include <string.h>

#include "agent/model/provider.h"

/* The key of LangChain's package. */
#define SIGNATURES "__gemini_function_call_thought_signatures__"

/* ---- requests --------------------------------------------------------- */

static void put_text_part(struct hd_jw *jw, struct hd_slice text)
{
    hd_jw_object(jw);
    hd_jw_put_string(jw, "text", text);
    hd_jw_object_end(jw);
}

static struct hd_slice mime_of(const struct hd_content *part)
{
    if (part->mime.len > 0)
        return part->mime;
    if (hd_slice_eq(part->kind, HD_S("image")))
        return HD_S("image/png");
    return hd_slice_eq(part->kind, HD_S("audio")) ? HD_S("audio/wav") : HD_S("application/pdf");
}

static void put_media(struct hd_jw *jw, const struct hd_content *part)
{
    bool is_url = part->type == HD_CONTENT_URL;

    hd_jw_object(jw);
    hd_jw_put_object(jw, is_url ? "fileData" : "inlineData");
    hd_jw_put_string(jw, "mimeType", mime_of(part));
    hd_jw_put_string(jw, is_url ? "fileUri" : "data", part->text);
    hd_jw_object_end(jw);
    hd_jw_object_end(jw);
}

static size_t put_content(struct hd_jw *jw, const struct hd_val *content)
{
    size_t count = 0;

    for (size_t i = 0; i < hd_content_count(content); i++) {
        struct hd_content part = hd_content_at(content, i);

        if (part.type == HD_CONTENT_TEXT && part.text.len > 0)
            put_text_part(jw, part.text);
        else if (part.type == HD_CONTENT_DATA || part.type == HD_CONTENT_URL)
            put_media(jw, &part);
        else if (part.type == HD_CONTENT_OTHER)
            hd_val_put_rendered(jw, part.raw);
        else
            continue;
        count++;
    }
    return count;
}

static void put_call(struct hd_jw *jw, const struct hd_val *message,
                     const struct hd_chat_call *call)
{
    const struct hd_val *extra = hd_val_get(message, HD_S("additional_kwargs"));
    struct hd_slice signature =
        hd_val_get_string(hd_val_get(hd_val_get(extra, HD_S(SIGNATURES)), call->id));

    hd_jw_object(jw);
    hd_jw_put_object(jw, "functionCall");
    hd_jw_put_string(jw, "name", call->name);
    hd_jw_key(jw, HD_S("args"));
    if (call->args)
        hd_val_put_rendered(jw, call->args);
    else
        hd_jw_raw(jw, HD_S("{}"));
    hd_jw_object_end(jw);
    if (signature.len > 0)
        hd_jw_put_string(jw, "thoughtSignature", signature);
    hd_jw_object_end(jw);
}

/* The name of a message's tool, which not all messages have. */
static struct hd_slice tool_name(const struct hd_val *messages, size_t at)
{
    const struct hd_val *message = hd_val_at(messages, at);
    struct hd_slice id = hd_val_get_string(hd_val_get(message, HD_S("tool_call_id")));

    while (at-- > 0) {
        const struct hd_val *before = hd_val_at(messages, at);

        for (size_t i = 0; hd_chat_is(before, "ai") && i < hd_chat_call_count(before); i++) {
            struct hd_chat_call call = hd_chat_call_at(before, i);

            if (hd_slice_eq(call.id, id))
                return call.name;
        }
    }
    return hd_val_get_string(hd_val_get(message, HD_S("name")));
}

static void put_result(struct hd_jw *jw, const struct hd_val *messages, size_t at)
{
    const struct hd_val *message = hd_val_at(messages, at);
    bool is_error =
        hd_slice_eq(hd_val_get_string(hd_val_get(message, HD_S("status"))), HD_S("error"));
    struct hd_buf text;
    int err;

    hd_buf_init(&text, HD_CHAT_MAX_REQUEST);
    err = hd_content_text(hd_val_get(message, HD_S("content")), &text);
    hd_jw_object(jw);
    hd_jw_put_object(jw, "functionResponse");
    hd_jw_put_string(jw, "name", tool_name(messages, at));
    hd_jw_put_object(jw, "response");
    hd_jw_put_string(jw, is_error ? "error" : "output", hd_buf_slice(&text));
    hd_jw_object_end(jw);
    hd_jw_object_end(jw);
    hd_jw_object_end(jw);
    hd_buf_fini(&text);
    if (err && !jw->err)
        jw->err = err;
}

static size_t put_parts(struct hd_jw *jw, const struct hd_val *messages, size_t at)
{
    const struct hd_val *message = hd_val_at(messages, at);
    size_t count, calls = hd_chat_is(message, "ai") ? hd_chat_call_count(message) : 0;

    if (hd_chat_is(message, "tool")) {
        put_result(jw, messages, at);
        return 1;
    }
    count = put_content(jw, hd_val_get(message, HD_S("content")));
    for (size_t i = 0; i < calls; i++) {
        struct hd_chat_call call = hd_chat_call_at(message, i);

        put_call(jw, message, &call);
    }
    return count + calls;
}

static const struct hd_chat_turns turns = {.key = "contents",
                                           .ai = "model",
                                           .parts = "parts",
                                           .put = put_parts,
                                           .put_text = put_text_part};

static void put_system(struct hd_jw *jw, const struct hd_chat *chat)
{
    bool has_any = chat->system.len > 0;

    for (size_t i = 0; i < hd_val_count(chat->messages) && !has_any; i++)
        has_any = hd_chat_is(hd_val_at(chat->messages, i), "system");
    if (!has_any)
        return;
    hd_jw_put_object(jw, "systemInstruction");
    hd_jw_put_array(jw, "parts");
    if (chat->system.len > 0)
        put_text_part(jw, chat->system);
    for (size_t i = 0; i < hd_val_count(chat->messages); i++) {
        const struct hd_val *message = hd_val_at(chat->messages, i);

        if (hd_chat_is(message, "system"))
            (void)put_content(jw, hd_val_get(message, HD_S("content")));
    }
    hd_jw_array_end(jw);
    hd_jw_object_end(jw);
}

static void put_tools(struct hd_jw *jw, const struct hd_toolset *tools)
{
    if (!tools || tools->count == 0)
        return;
    hd_jw_put_array(jw, "tools");
    hd_jw_object(jw);
    hd_jw_put_array(jw, "functionDeclarations");
    for (size_t i = 0; i < tools->count; i++) {
        const struct hd_tool *tool = tools->entries[i].tool;
        struct hd_val *schema = hd_schema_reduce(tool->parameters);

        hd_jw_object(jw);
        hd_jw_put_string(jw, "name", tools->entries[i].name);
        hd_jw_put_string(jw, "description", tool->description);
        if (!schema && !jw->err)
            jw->err = HD_ENOMEM;
        /* The API refuses an object without properties: omit the parameters. */
        if (hd_val_count(hd_val_get(schema, HD_S("properties"))) > 0) {
            hd_jw_key(jw, HD_S("parameters"));
            hd_val_put_rendered(jw, schema);
        }
        hd_jw_object_end(jw);
        hd_val_unref(schema);
    }
    hd_jw_array_end(jw);
    hd_jw_object_end(jw);
    hd_jw_array_end(jw);
}

static void put_body(struct hd_jw *jw, const struct hd_chat *chat)
{
    hd_jw_object(jw);
    hd_chat_put_turns(jw, &turns, chat->messages);
    put_system(jw, chat);
    put_tools(jw, chat->tools);
    hd_jw_put_object(jw, "generationConfig");
    if (chat->has_temperature)
        hd_put_number(jw, "temperature", chat->temperature);
    if (chat->max_tokens > 0)
        hd_jw_put_int(jw, "maxOutputTokens", chat->max_tokens);
    hd_jw_object_end(jw);
    hd_jw_object_end(jw);
}

static bool has_version(struct hd_slice url)
{
    return (url.len > 7 && memcmp(url.ptr + url.len - 7, "/v1beta", 7) == 0) ||
           (url.len > 3 && memcmp(url.ptr + url.len - 3, "/v1", 3) == 0);
}

static int make_url(const struct hd_chat *chat, struct hd_buf *url)
{
    struct hd_slice model = chat->model;
    int err = hd_buf_printf(url, "%.*s%s/models/", (int)chat->base_url.len, chat->base_url.ptr,
                            has_version(chat->base_url) ? "" : "/v1beta");

    if (hd_slice_starts(model, HD_S("models/")))
        model = hd_slice(model.ptr + 7, model.len - 7);
    if (!err)
        err = hd_buf_append_escaped(url, model);
    if (!err)
        err = hd_buf_printf(url, "%s",
                            chat->streams ? ":streamGenerateContent?alt=sse" : ":generateContent");
    return err ? err : hd_buf_append_byte(url, 0);
}

static int make_gemini_request(const struct hd_chat *chat, struct hd_chat_request *out)
{
    struct hd_jw jw;
    int err = make_url(chat, &out->url);

    if (!err)
        err = hd_chat_header(out, "Content-Type", HD_S("application/json"));
    if (!err && chat->key.len > 0)
        err = hd_chat_header(out, "x-goog-api-key", chat->key);
    if (err)
        return err;
    hd_jw_init(&jw, &out->body);
    put_body(&jw, chat);
    return hd_jw_finish(&jw);
}

/* ---- responses -------------------------------------------------------- */

static void read_gemini_usage(struct hd_completion *answer, hd_json_val usage)
{
    struct hd_usage *out = &answer->usage;

    if (!hd_json_is_object(usage))
        return;
    out->is_given = true;
    out->input = hd_count_of(usage, "promptTokenCount", 0);
    out->reasoning = hd_count_of(usage, "thoughtsTokenCount", -1);
    out->output =
        hd_count_of(usage, "candidatesTokenCount", 0) + (out->reasoning > 0 ? out->reasoning : 0);
    out->total = hd_count_of(usage, "totalTokenCount", out->input + out->output);
    out->cache_read = hd_count_of(usage, "cachedContentTokenCount", -1);
}

/* A call arrives whole; several may be equal. */
static int read_call(struct hd_completion *answer, hd_json_val part, hd_json_val function)
{
    hd_json_val args = hd_json_get(function, HD_S("args"));
    struct hd_slice signature = hd_text_of(part, "thoughtSignature");
    struct hd_buf text;
    int err = 0;

    hd_buf_init(&text, HD_COMPLETION_MAX_BYTES);
    if (hd_json_is_object(args))
        err = hd_json_write_val(&text, args);
    if (!err)
        err = hd_completion_call(answer, (int64_t)answer->call_count, hd_text_of(function, "id"),
                                 hd_text_of(function, "name"), hd_buf_slice(&text));
    if (!err && signature.len > 0)
        err = hd_completion_sign_call(answer, signature);
    hd_buf_fini(&text);
    return err;
}

static int read_part(struct hd_completion *answer, hd_json_val part)
{
    hd_json_val function = hd_json_get(part, HD_S("functionCall"));
    struct hd_slice text = hd_text_of(part, "text");

    if (hd_json_is_object(function))
        return read_call(answer, part, function);
    if (hd_json_is_true(hd_json_get(part, HD_S("thought"))))
        return hd_completion_thinking(answer, text, false);
    return hd_completion_text(answer, text);
}

static int read_finish(struct hd_completion *answer, hd_json_val candidate)
{
    struct hd_slice finish = hd_text_of(candidate, "finishReason");
    struct hd_slice message = hd_text_of(candidate, "finishMessage");

    if (finish.len == 0)
        return 0;
    if (hd_slice_eq(finish, HD_S("MALFORMED_FUNCTION_CALL")))
        return hd_completion_fail(answer, "APIError", "the model sent a malformed tool call%s%.*s",
                                  message.len ? ": " : "",
                                  (int)(message.len < 1000 ? message.len : 1000), message.ptr);
    answer->is_ended = true;
    return hd_completion_set(&answer->finish, finish);
}

static int read_blocked(struct hd_completion *answer, hd_json_val root)
{
    hd_json_val feedback = hd_json_get(root, HD_S("promptFeedback"));
    struct hd_slice reason = hd_text_of(feedback, "blockReason");

    if (reason.len == 0)
        return 0;
    return hd_completion_fail(answer, "ContentFilterError",
                              "google blocked the conversation (%.*s)",
                              (int)(reason.len < 100 ? reason.len : 100), reason.ptr);
}

static int read_gemini_answer(struct hd_completion *answer, hd_json_val root)
{
    struct hd_json_iter candidates = hd_json_iter(hd_json_get(root, HD_S("candidates")));
    struct hd_slice model = hd_text_of(root, "modelVersion");
    int err = hd_completion_check_error(answer, root);

    if (!err)
        err = read_blocked(answer, root);
    if (!err && model.len > 0)
        err = hd_completion_set(&answer->model, model);
    read_gemini_usage(answer, hd_json_get(root, HD_S("usageMetadata")));
    if (!err && hd_json_next(&candidates)) {
        hd_json_val content = hd_json_get(candidates.val, HD_S("content"));
        struct hd_json_iter parts = hd_json_iter(hd_json_get(content, HD_S("parts")));

        answer->has_begun = true;
        while (err == 0 && hd_json_next(&parts))
            err = read_part(answer, parts.val);
        if (!err)
            err = read_finish(answer, candidates.val);
    }
    return err;
}

static int on_gemini_event(struct hd_completion *answer, const struct hd_sse_event *event)
{
    return event->data.len == 0 ? 0 : hd_completion_read(answer, event->data, read_gemini_answer);
}

static int on_gemini_body(struct hd_completion *answer, struct hd_slice body)
{
    int err = hd_completion_read(answer, body, read_gemini_answer);

    if (!err && !answer->has_begun)
        err = hd_completion_fail(answer, "APIResponseValidationError",
                                 "the model's server sent a response without \"candidates\"");
    answer->is_ended = answer->is_done = true;
    return err;
}

const struct hd_provider hd_provider_gemini = {
    .name = "google",
    .model = "ChatGoogleGenerativeAI",
    .request = make_gemini_request,
    .event = on_gemini_event,
    .body = on_gemini_body,
};
