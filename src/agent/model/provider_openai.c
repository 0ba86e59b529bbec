/* OpenAI's Chat Completions API, and compatible servers. */
#include <string.h>

#include "agent/model/provider.h"

/* ---- requests --------------------------------------------------------- */

/* Appends the parts and writes them as one string. */
static void put_joined(struct hd_jw *jw, const char *key, const struct hd_slice *parts,
                       size_t count)
{
    struct hd_buf text;
    int err = 0;

    hd_buf_init(&text, HD_CHAT_MAX_REQUEST);
    for (size_t i = 0; i < count && !err; i++)
        err = hd_buf_append_slice(&text, parts[i]);
    hd_jw_put_string(jw, key, hd_buf_slice(&text));
    hd_buf_fini(&text);
    if (err && !jw->err)
        jw->err = err;
}

static void put_data_url(struct hd_jw *jw, const char *key, const struct hd_content *part,
                         const char *mime)
{
    const struct hd_slice parts[] = {HD_S("data:"),
                                     part->mime.len ? part->mime : hd_slice_cstr(mime),
                                     HD_S(";base64,"), part->text};

    put_joined(jw, key, parts, HD_COUNT(parts));
}

static void put_image(struct hd_jw *jw, const struct hd_content *part)
{
    hd_jw_put_string(jw, "type", HD_S("image_url"));
    hd_jw_put_object(jw, "image_url");
    if (part->type == HD_CONTENT_URL)
        hd_jw_put_string(jw, "url", part->text);
    else
        put_data_url(jw, "url", part, "image/png");
    if (part->detail.len > 0)
        hd_jw_put_string(jw, "detail", part->detail);
    hd_jw_object_end(jw);
}

/* Maps "audio/mpeg" to "mp3". */
static void put_audio(struct hd_jw *jw, const struct hd_content *part)
{
    bool is_mp3 =
        hd_slice_eq(part->mime, HD_S("audio/mpeg")) || hd_slice_eq(part->mime, HD_S("audio/mp3"));

    hd_jw_put_string(jw, "type", HD_S("input_audio"));
    hd_jw_put_object(jw, "input_audio");
    hd_jw_put_string(jw, "data", part->text);
    hd_jw_put_string(jw, "format", is_mp3 ? HD_S("mp3") : HD_S("wav"));
    hd_jw_object_end(jw);
}

static void put_file(struct hd_jw *jw, const struct hd_content *part)
{
    hd_jw_put_string(jw, "type", HD_S("file"));
    hd_jw_put_object(jw, "file");
    hd_jw_put_string(jw, "filename", part->name.len ? part->name : HD_S("file"));
    put_data_url(jw, "file_data", part, "application/pdf");
    hd_jw_object_end(jw);
}

static void put_content_part(struct hd_jw *jw, const struct hd_content *part)
{
    bool is_image = hd_slice_eq(part->kind, HD_S("image"));

    if (part->type == HD_CONTENT_SKIPPED || part->type == HD_CONTENT_THINKING)
        return;
    if (part->type == HD_CONTENT_OTHER || (part->type == HD_CONTENT_URL && !is_image)) {
        hd_val_put_rendered(jw, part->raw);
        return;
    }
    hd_jw_object(jw);
    if (part->type == HD_CONTENT_TEXT) {
        hd_jw_put_string(jw, "type", HD_S("text"));
        hd_jw_put_string(jw, "text", part->text);
    } else if (is_image) {
        put_image(jw, part);
    } else if (hd_slice_eq(part->kind, HD_S("audio"))) {
        put_audio(jw, part);
    } else {
        put_file(jw, part);
    }
    hd_jw_object_end(jw);
}

/* One string if only text is accepted or present. */
static void put_text_of(struct hd_jw *jw, const struct hd_val *content)
{
    struct hd_buf text;
    int err;

    hd_buf_init(&text, HD_CHAT_MAX_REQUEST);
    err = hd_content_text(content, &text);
    hd_jw_put_string(jw, "content", hd_buf_slice(&text));
    hd_buf_fini(&text);
    if (err && !jw->err)
        jw->err = err;
}

static void put_parts(struct hd_jw *jw, const struct hd_val *content)
{
    hd_jw_put_array(jw, "content");
    for (size_t i = 0; i < hd_content_count(content); i++) {
        struct hd_content part = hd_content_at(content, i);

        put_content_part(jw, &part);
    }
    hd_jw_array_end(jw);
}

static void put_calls(struct hd_jw *jw, const struct hd_val *message)
{
    hd_jw_put_array(jw, "tool_calls");
    for (size_t i = 0; i < hd_chat_call_count(message); i++) {
        struct hd_chat_call call = hd_chat_call_at(message, i);
        struct hd_buf args;
        int err = 0;

        hd_buf_init(&args, HD_CHAT_MAX_REQUEST);
        err = call.args ? hd_val_render(&args, call.args) : hd_buf_append_slice(&args, call.raw);
        hd_jw_object(jw);
        hd_jw_put_string(jw, "id", call.id);
        hd_jw_put_string(jw, "type", HD_S("function"));
        hd_jw_put_object(jw, "function");
        hd_jw_put_string(jw, "name", call.name);
        hd_jw_put_string(jw, "arguments", hd_buf_slice(&args));
        hd_jw_object_end(jw);
        hd_jw_object_end(jw);
        hd_buf_fini(&args);
        if (err && !jw->err)
            jw->err = err;
    }
    hd_jw_array_end(jw);
}

static struct hd_slice role_of(const struct hd_val *message)
{
    struct hd_slice type = hd_chat_type(message);

    if (hd_slice_eq(type, HD_S("ai")))
        return HD_S("assistant");
    if (hd_slice_eq(type, HD_S("chat")))
        return hd_val_get_string(hd_val_get(message, HD_S("role")));
    if (hd_slice_eq(type, HD_S("system")) || hd_slice_eq(type, HD_S("tool")) ||
        hd_slice_eq(type, HD_S("function")))
        return type;
    return HD_S("user");
}

/* The API refuses names with other characters. */
static bool is_accepted_name(struct hd_slice name)
{
    for (size_t i = 0; i < name.len; i++) {
        if ((unsigned char)name.ptr[i] <= ' ' || strchr("<|\\/>", name.ptr[i]))
            return false;
    }
    return name.len > 0 && name.len <= 64;
}

static void put_message(struct hd_jw *jw, const struct hd_val *message)
{
    struct hd_slice role = role_of(message);
    struct hd_slice name = hd_val_get_string(hd_val_get(message, HD_S("name")));
    const struct hd_val *content = hd_val_get(message, HD_S("content"));
    bool is_tool = hd_slice_eq(role, HD_S("tool")), is_ai = hd_slice_eq(role, HD_S("assistant"));

    hd_jw_object(jw);
    hd_jw_put_string(jw, "role", role);
    if (is_ai && hd_chat_call_count(message) > 0 && hd_content_count(content) == 0) {
        hd_jw_put_null(jw, "content");
    } else if (is_ai || is_tool || hd_val_is_string(content)) {
        put_text_of(jw, content);
    } else {
        put_parts(jw, content);
    }
    if (is_tool)
        hd_jw_put_string(jw, "tool_call_id",
                         hd_val_get_string(hd_val_get(message, HD_S("tool_call_id"))));
    else if (is_accepted_name(name) && !is_ai)
        hd_jw_put_string(jw, "name", name);
    if (is_ai && hd_chat_call_count(message) > 0)
        put_calls(jw, message);
    hd_jw_object_end(jw);
}

static void put_messages(struct hd_jw *jw, const struct hd_chat *chat)
{
    hd_jw_put_array(jw, "messages");
    if (chat->system.len > 0) {
        hd_jw_object(jw);
        hd_jw_put_string(jw, "role", HD_S("system"));
        hd_jw_put_string(jw, "content", chat->system);
        hd_jw_object_end(jw);
    }
    for (size_t i = 0; i < hd_val_count(chat->messages); i++)
        put_message(jw, hd_val_at(chat->messages, i));
    hd_jw_array_end(jw);
}

static void put_tools(struct hd_jw *jw, const struct hd_toolset *tools)
{
    if (!tools || tools->count == 0)
        return;
    hd_jw_put_array(jw, "tools");
    for (size_t i = 0; i < tools->count; i++) {
        const struct hd_tool *tool = tools->entries[i].tool;

        hd_jw_object(jw);
        hd_jw_put_string(jw, "type", HD_S("function"));
        hd_jw_put_object(jw, "function");
        hd_jw_put_string(jw, "name", tools->entries[i].name);
        if (tool->description.len > 0)
            hd_jw_put_string(jw, "description", tool->description);
        hd_jw_key(jw, HD_S("parameters"));
        hd_val_put_rendered(jw, tool->parameters);
        hd_jw_object_end(jw);
        hd_jw_object_end(jw);
    }
    hd_jw_array_end(jw);
}

/* Reasoning models accept no temperature, and have another name for the limit. */
static bool thinks(const struct hd_chat *chat)
{
    static const char *const beginnings[] = {"o1", "o3", "o4", "gpt-5"};

    if (!hd_slice_eq(chat->base_url, HD_S("https://api.openai.com/v1")))
        return false;
    for (size_t i = 0; i < HD_COUNT(beginnings); i++) {
        if (hd_slice_starts(chat->model, hd_slice_cstr(beginnings[i])))
            return true;
    }
    return false;
}

static void put_body(struct hd_jw *jw, const struct hd_chat *chat)
{
    bool is_thinking = thinks(chat);

    hd_jw_object(jw);
    hd_jw_put_string(jw, "model", chat->model);
    put_messages(jw, chat);
    put_tools(jw, chat->tools);
    if (chat->has_temperature && !is_thinking)
        hd_put_number(jw, "temperature", chat->temperature);
    if (chat->max_tokens > 0)
        hd_jw_put_int(jw, is_thinking ? "max_completion_tokens" : "max_tokens", chat->max_tokens);
    hd_jw_put_bool(jw, "stream", chat->streams);
    if (chat->streams)
        hd_jw_put_raw(jw, "stream_options", HD_S("{\"include_usage\":true}"));
    hd_jw_object_end(jw);
}

static int make_openai_request(const struct hd_chat *chat, struct hd_chat_request *out)
{
    struct hd_buf key;
    struct hd_jw jw;
    int err = hd_buf_printf(&out->url, "%.*s/chat/completions", (int)chat->base_url.len,
                            chat->base_url.ptr);

    if (!err)
        err = hd_buf_append_byte(&out->url, 0);
    if (!err)
        err = hd_chat_header(out, "Content-Type", HD_S("application/json"));
    if (!err)
        err = hd_chat_header(out, "Accept",
                             chat->streams ? HD_S("text/event-stream, application/json")
                                           : HD_S("application/json"));
    hd_buf_init(&key, 65536);
    if (!err && chat->key.len > 0) {
        err = hd_buf_append(&key, "Bearer ", 7);
        if (!err)
            err = hd_buf_append_slice(&key, chat->key);
        if (!err)
            err = hd_chat_header(out, "Authorization", hd_buf_slice(&key));
    }
    hd_buf_fini(&key);
    if (err)
        return err;
    hd_jw_init(&jw, &out->body);
    put_body(&jw, chat);
    return hd_jw_finish(&jw);
}

/* ---- responses -------------------------------------------------------- */

static void read_openai_usage(struct hd_completion *answer, hd_json_val usage)
{
    struct hd_usage *out = &answer->usage;

    if (!hd_json_is_object(usage))
        return;
    out->is_given = true;
    out->input = hd_count_of(usage, "prompt_tokens", 0);
    out->output = hd_count_of(usage, "completion_tokens", 0);
    out->total = hd_count_of(usage, "total_tokens", out->input + out->output);
    out->cache_read =
        hd_count_of(hd_json_get(usage, HD_S("prompt_tokens_details")), "cached_tokens", -1);
    out->reasoning =
        hd_count_of(hd_json_get(usage, HD_S("completion_tokens_details")), "reasoning_tokens", -1);
}

/* Arguments are a text; some servers send an object. */
static int read_call_args(struct hd_completion *answer, int64_t index, hd_json_val call,
                          hd_json_val args)
{
    hd_json_val function = hd_json_get(call, HD_S("function"));
    struct hd_slice id = hd_json_string(hd_json_get(call, HD_S("id")));
    struct hd_slice name = hd_json_string(hd_json_get(function, HD_S("name")));
    struct hd_buf text;
    int err;

    if (!hd_json_is_object(args))
        return hd_completion_call(answer, index, id, name, hd_json_string(args));
    hd_buf_init(&text, HD_COMPLETION_MAX_BYTES);
    err = hd_json_write_val(&text, args);
    if (!err)
        err = hd_completion_call(answer, index, id, name, hd_buf_slice(&text));
    hd_buf_fini(&text);
    return err;
}

/* `is_whole`: without streaming; calls need no index then. */
static int read_calls(struct hd_completion *answer, hd_json_val calls, bool is_whole)
{
    struct hd_json_iter it = hd_json_iter(calls);
    int64_t at = 0;
    int err = 0;

    while (err == 0 && hd_json_is_array(calls) && hd_json_next(&it)) {
        hd_json_val args = hd_json_get(hd_json_get(it.val, HD_S("function")), HD_S("arguments"));
        int64_t index = is_whole ? at++ : hd_count_of(it.val, "index", -1);

        err = read_call_args(answer, index, it.val, args);
    }
    return err;
}

/* A string, or (some servers) a list of text blocks. */
static int read_content(struct hd_completion *answer, hd_json_val content)
{
    struct hd_json_iter it = hd_json_iter(content);
    int err = 0;

    if (!hd_json_is_array(content))
        return hd_completion_text(answer, hd_json_string(content));
    while (err == 0 && hd_json_next(&it))
        err = hd_completion_text(answer, hd_json_string(hd_json_get(it.val, HD_S("text"))));
    return err;
}

static int read_choice_message(struct hd_completion *answer, hd_json_val message, bool is_whole)
{
    static const char *const thoughts[] = {"reasoning_content", "reasoning"};
    struct hd_slice refusal = hd_json_string(hd_json_get(message, HD_S("refusal")));
    int err = 0;

    for (size_t i = 0; i < HD_COUNT(thoughts); i++) {
        struct hd_slice text = hd_json_string(hd_json_get(message, hd_slice_cstr(thoughts[i])));

        if (text.len > 0) {
            err = hd_completion_reasoning(answer, text);
            break; /* some servers send both */
        }
    }
    if (!err)
        err = read_content(answer, hd_json_get(message, HD_S("content")));
    if (!err && refusal.len > 0)
        err = hd_completion_text(answer, refusal);
    if (!err)
        err = read_calls(answer, hd_json_get(message, HD_S("tool_calls")), is_whole);
    return err;
}

static int read_openai_answer(struct hd_completion *answer, hd_json_val root, bool is_whole)
{
    struct hd_json_iter it = hd_json_iter(hd_json_get(root, HD_S("choices")));
    struct hd_slice model = hd_json_string(hd_json_get(root, HD_S("model")));
    int err = hd_completion_check_error(answer, root);

    if (!err && model.len > 0)
        err = hd_completion_set(&answer->model, model);
    read_openai_usage(answer, hd_json_get(root, HD_S("usage")));
    while (err == 0 && hd_json_next(&it)) {
        struct hd_slice finish = hd_json_string(hd_json_get(it.val, HD_S("finish_reason")));

        if (hd_count_of(it.val, "index", 0) != 0)
            continue; /* one choice is requested */
        err = read_choice_message(
            answer, hd_json_get(it.val, is_whole ? HD_S("message") : HD_S("delta")), is_whole);
        if (!err && finish.len > 0) {
            answer->is_ended = true;
            err = hd_completion_set(&answer->finish, finish);
        }
    }
    return err;
}

static int read_piece(struct hd_completion *answer, hd_json_val root)
{
    return read_openai_answer(answer, root, false);
}

static int read_whole(struct hd_completion *answer, hd_json_val root)
{
    return read_openai_answer(answer, root, true);
}

static int on_openai_event(struct hd_completion *answer, const struct hd_sse_event *event)
{
    if (hd_slice_eq(event->data, HD_S("[DONE]"))) {
        answer->is_ended = answer->is_done = true;
        return 0;
    }
    return event->data.len == 0 ? 0 : hd_completion_read(answer, event->data, read_piece);
}

static int on_openai_body(struct hd_completion *answer, struct hd_slice body)
{
    int err = hd_completion_read(answer, body, read_whole);

    if (!err && !answer->has_begun)
        err = hd_completion_fail(answer, "APIResponseValidationError",
                                 "the model's server sent a response without \"choices\"");
    answer->is_ended = answer->is_done = true;
    return err;
}

const struct hd_provider hd_provider_openai = {
    .name = "openai",
    .model = "ChatOpenAI",
    .request = make_openai_request,
    .event = on_openai_event,
    .body = on_openai_body,
};
