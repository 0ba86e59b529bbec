/* Prepares conversations for providers. */
#include <string.h>
#include <strings.h>

#include "agent/model/provider.h"
#include "base/alloc.h"
#include "base/utf8.h"
#include "base/uuid.h"

#define NO_ANSWER "No result: this call was not executed."

/* ---- requests --------------------------------------------------------- */

void hd_chat_request_init(struct hd_chat_request *request)
{
    *request = (struct hd_chat_request){.header_count = 0};
    hd_buf_init(&request->url, 8192);
    hd_buf_init(&request->headers, 65536);
    hd_buf_init(&request->body, HD_CHAT_MAX_REQUEST);
}

void hd_chat_request_fini(struct hd_chat_request *request)
{
    hd_buf_fini(&request->url);
    hd_buf_fini(&request->headers);
    hd_buf_fini(&request->body);
    request->header_count = 0;
}

int hd_chat_header(struct hd_chat_request *request, const char *name, struct hd_slice value)
{
    int err;

    for (size_t i = 0; i < value.len; i++) {
        if ((unsigned char)value.ptr[i] < 0x20 || (unsigned char)value.ptr[i] == 0x7f)
            return HD_EINVAL;
    }
    err = hd_buf_append_slice(&request->headers, hd_slice_cstr(name));
    if (!err)
        err = hd_buf_append(&request->headers, ": ", 2);
    if (!err)
        err = hd_buf_append_slice(&request->headers, value);
    if (!err)
        err = hd_buf_append_byte(&request->headers, 0);
    request->header_count += !err;
    return err;
}

void hd_put_number(struct hd_jw *jw, const char *key, double number)
{
    struct hd_val *val = hd_val_float(number);

    hd_jw_key(jw, hd_slice_cstr(key));
    hd_val_put_rendered(jw, val);
    if (!val && !jw->err)
        jw->err = HD_ENOMEM;
    hd_val_unref(val);
}

/* ---- messages --------------------------------------------------------- */

static struct hd_slice member_text(const struct hd_val *object, const char *key)
{
    return hd_val_get_string(hd_val_get(object, hd_slice_cstr(key)));
}

struct hd_slice hd_chat_type(const struct hd_val *message)
{
    struct hd_slice type = member_text(message, "type");

    return hd_slice_eq(type, HD_S("AIMessageChunk")) ? HD_S("ai") : type;
}

bool hd_chat_is(const struct hd_val *message, const char *type)
{
    return hd_slice_eq(hd_chat_type(message), hd_slice_cstr(type));
}

size_t hd_chat_call_count(const struct hd_val *message)
{
    return hd_val_count(hd_val_get(message, HD_S("tool_calls"))) +
           hd_val_count(hd_val_get(message, HD_S("invalid_tool_calls")));
}

struct hd_chat_call hd_chat_call_at(const struct hd_val *message, size_t index)
{
    const struct hd_val *calls = hd_val_get(message, HD_S("tool_calls"));
    size_t count = hd_val_count(calls);
    const struct hd_val *call =
        index < count ? hd_val_at(calls, index)
                      : hd_val_at(hd_val_get(message, HD_S("invalid_tool_calls")), index - count);
    const struct hd_val *args = hd_val_get(call, HD_S("args"));

    return (struct hd_chat_call){.name = member_text(call, "name"),
                                 .id = member_text(call, "id"),
                                 .args = hd_val_is_object(args) ? args : NULL,
                                 .raw = hd_val_get_string(args)};
}

/* The result of a call among the messages from `from` on; NULL: none. */
static const struct hd_val *find_answer(const struct hd_val *messages, size_t from,
                                        struct hd_slice id)
{
    for (size_t i = from; i < hd_val_count(messages); i++) {
        const struct hd_val *message = hd_val_at(messages, i);

        if (hd_chat_is(message, "tool") && hd_slice_eq(member_text(message, "tool_call_id"), id))
            return message;
    }
    return NULL;
}

/* Invalid calls are not executed: hd_chat_repairs() adds their results. */
static bool is_answered(const struct hd_val *messages, size_t at)
{
    const struct hd_val *message = hd_val_at(messages, at);

    for (size_t i = 0; i < hd_val_count(hd_val_get(message, HD_S("tool_calls"))); i++) {
        if (!find_answer(messages, at + 1, hd_chat_call_at(message, i).id))
            return false;
    }
    return true;
}

/* The last AI message, if only tool results follow it; SIZE_MAX: none. */
static size_t last_asked(const struct hd_val *messages)
{
    size_t at = hd_val_is_list(messages) ? hd_val_count(messages) : 0;

    while (at > 0 && hd_chat_is(hd_val_at(messages, at - 1), "tool"))
        at--;
    return at > 0 && hd_chat_is(hd_val_at(messages, at - 1), "ai") ? at - 1 : SIZE_MAX;
}

bool hd_chat_is_waiting(const struct hd_val *messages)
{
    size_t at = last_asked(messages);

    return at != SIZE_MAX && !is_answered(messages, at);
}

static struct hd_val *repair(const struct hd_val *call)
{
    struct hd_slice args = member_text(call, "args"), name = member_text(call, "name");
    char id[HD_UUID_SIZE];
    struct hd_val *message;
    size_t shown = args.len > 200 ? hd_utf8_cut(args.ptr, 200) : args.len;

    hd_uuid_v4(id);
    message = hd_val_message(
        "tool",
        hd_val_printf("Error: the arguments of this call are not a JSON object: %.*s%s\nPlease "
                      "call the tool again with valid JSON.",
                      (int)shown, args.ptr, shown < args.len ? "…" : ""),
        id);
    if (name.len > 0)
        message = hd_val_with(message, HD_S("name"), hd_val_string(name));
    message = hd_val_with(message, HD_S("tool_call_id"), hd_val_string(member_text(call, "id")));
    return hd_val_with(message, HD_S("status"), hd_val_cstr("error"));
}

struct hd_val *hd_chat_repairs(const struct hd_val *messages)
{
    size_t at = last_asked(messages);
    const struct hd_val *invalid =
        at == SIZE_MAX ? NULL : hd_val_get(hd_val_at(messages, at), HD_S("invalid_tool_calls"));
    struct hd_val *repairs = hd_val_list();

    for (size_t i = 0; i < hd_val_count(invalid); i++) {
        const struct hd_val *call = hd_val_at(invalid, i);

        if (!find_answer(messages, at + 1, member_text(call, "id")))
            repairs = hd_val_append(repairs, repair(call));
    }
    return repairs;
}

/* ---- preparing -------------------------------------------------------- */

static int read_messages(const struct hd_val *given, struct hd_val **out,
                         struct heddle_error *fault)
{
    struct hd_val *list = hd_val_list();
    size_t count = hd_val_is_list(given) ? hd_val_count(given) : 1;
    int err = list ? 0 : HD_ENOMEM;

    for (size_t i = 0; i < count && !err; i++) {
        const struct hd_val *val = hd_val_is_list(given) ? hd_val_at(given, i) : given;
        struct hd_val *message = NULL;

        err = hd_val_to_message(val, &message, fault);
        if (!err) {
            list = hd_val_append(list, message);
            err = list ? 0 : HD_ENOMEM;
        }
    }
    if (err)
        hd_val_unref(list);
    else
        *out = list;
    return err;
}

static struct hd_val *placeholder(const struct hd_chat_call *call)
{
    struct hd_val *message = hd_val_message("tool", hd_val_cstr(NO_ANSWER), NULL);

    message = hd_val_with(message, HD_S("tool_call_id"), hd_val_string(call->id));
    return hd_val_with(message, HD_S("status"), hd_val_cstr("error"));
}

/* Takes `list`; appends the results of the calls of message `at`, in their order. */
static struct hd_val *with_answers(struct hd_val *list, const struct hd_val *messages, size_t at)
{
    const struct hd_val *message = hd_val_at(messages, at);

    for (size_t i = 0; i < hd_chat_call_count(message); i++) {
        struct hd_chat_call call = hd_chat_call_at(message, i);
        const struct hd_val *answer = find_answer(messages, at + 1, call.id);

        list = hd_val_append(list, answer ? hd_val_ref(answer) : placeholder(&call));
    }
    return list;
}

int hd_chat_prepare(const struct hd_val *messages, struct hd_val **out, struct heddle_error *fault)
{
    struct hd_val *all, *list = hd_val_list();
    int err;

    if (!list)
        return HD_ENOMEM;
    err = read_messages(messages, &all, fault);
    if (err) {
        hd_val_unref(list);
        return err;
    }
    for (size_t i = 0; i < hd_val_count(all); i++) {
        const struct hd_val *message = hd_val_at(all, i);

        if (hd_chat_is(message, "tool") || hd_chat_is(message, "remove"))
            continue; /* results follow their calls */
        list = hd_val_append(list, hd_val_ref(message));
        if (hd_chat_is(message, "ai"))
            list = with_answers(list, all, i);
    }
    hd_val_unref(all);
    *out = list;
    return list ? 0 : HD_ENOMEM;
}

/* ---- content ---------------------------------------------------------- */

size_t hd_content_count(const struct hd_val *content)
{
    if (hd_val_is_string(content))
        return hd_val_get_string(content).len > 0;
    return hd_val_is_list(content) ? hd_val_count(content) : 0;
}

/* "data:image/png;base64,AAAA" */
static bool read_data_url(struct hd_slice url, struct hd_content *out)
{
    const char *comma = url.len > 0 ? memchr(url.ptr, ',', url.len) : NULL;
    const char *semicolon = url.len > 0 ? memchr(url.ptr, ';', url.len) : NULL;
    struct hd_slice head;

    if (!hd_slice_starts(url, HD_S("data:")) || !comma || !semicolon || semicolon > comma)
        return false;
    head = hd_slice(semicolon, (size_t)(comma - semicolon));
    if (head.len < 7 || strncasecmp(comma - 7, ";base64", 7) != 0)
        return false;
    out->type = HD_CONTENT_DATA;
    out->mime = hd_slice(url.ptr + 5, (size_t)(semicolon - url.ptr) - 5);
    out->text = hd_slice(comma + 1, url.len - (size_t)(comma + 1 - url.ptr));
    return true;
}

static void read_content_url(struct hd_slice url, struct hd_content *out)
{
    if (read_data_url(url, out))
        return;
    out->type = HD_CONTENT_URL;
    out->text = url;
}

static void read_image_url(const struct hd_val *block, struct hd_content *out)
{
    const struct hd_val *image = hd_val_get(block, HD_S("image_url"));

    out->kind = HD_S("image");
    out->detail = member_text(image, "detail");
    read_content_url(hd_val_is_string(image) ? hd_val_get_string(image) : member_text(image, "url"),
                     out);
}

static struct hd_slice first_of(const struct hd_val *block, const char *a, const char *b)
{
    struct hd_slice text = member_text(block, a);

    return text.len > 0 ? text : member_text(block, b);
}

/*
 * LangChain's data blocks: {"type": "image", "source_type": "base64", "data", "mime_type"} and
 * {"source_type": "url", "url"}, the later form with `base64` or `url`, and Anthropic's `source`.
 */
static void read_media(const struct hd_val *block, struct hd_slice kind, struct hd_content *out)
{
    const struct hd_val *source = hd_val_get(block, HD_S("source"));
    const struct hd_val *from = hd_val_is_object(source) ? source : block;
    struct hd_slice url = member_text(from, "url"), data = first_of(from, "data", "base64");
    const struct hd_val *about = hd_val_get(block, HD_S("metadata"));

    out->kind = hd_slice_eq(kind, HD_S("document")) ? HD_S("file") : kind;
    out->mime = first_of(from, "mime_type", "mimeType");
    if (out->mime.len == 0)
        out->mime = member_text(from, "media_type");
    out->name = first_of(block, "filename", "name");
    if (out->name.len == 0)
        out->name = first_of(about, "filename", "name");
    if (hd_slice_eq(member_text(from, "source_type"), HD_S("text"))) {
        out->type = HD_CONTENT_TEXT;
        out->text = member_text(from, "text");
    } else if (data.len > 0) {
        out->type = HD_CONTENT_DATA;
        out->text = data;
    } else if (url.len > 0) {
        read_content_url(url, out);
    } else {
        out->type = HD_CONTENT_OTHER;
    }
}

static bool is_listed_type(struct hd_slice text, const char *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (hd_slice_eq(text, hd_slice_cstr(list[i])))
            return true;
    }
    return false;
}

static struct hd_content read_block(const struct hd_val *block)
{
    static const char *const media[] = {"image", "file", "audio", "video", "document"};
    static const char *const skipped[] = {
        "tool_use",          "tool_call",        "tool_call_chunk",  "reasoning",
        "invalid_tool_call", "input_json_delta", "redacted_thinking"};
    struct hd_slice type = member_text(block, "type");
    struct hd_content out = {.type = HD_CONTENT_OTHER, .raw = block};

    if (hd_slice_eq(type, HD_S("text"))) {
        out.type = HD_CONTENT_TEXT;
        out.text = member_text(block, "text");
    } else if (hd_slice_eq(type, HD_S("image_url"))) {
        read_image_url(block, &out);
    } else if (hd_slice_eq(type, HD_S("thinking"))) {
        out.type = HD_CONTENT_THINKING;
        out.text = member_text(block, "thinking");
        out.signature = member_text(block, "signature");
    } else if (is_listed_type(type, skipped, HD_COUNT(skipped))) {
        out.type = HD_CONTENT_SKIPPED;
    } else if (is_listed_type(type, media, HD_COUNT(media)) && !hd_val_get(block, HD_S("file"))) {
        read_media(block, type, &out);
    }
    return out;
}

struct hd_content hd_content_at(const struct hd_val *content, size_t index)
{
    const struct hd_val *block = hd_val_is_list(content) ? hd_val_at(content, index) : content;

    if (hd_val_is_string(block))
        return (struct hd_content){.type = HD_CONTENT_TEXT, .text = hd_val_get_string(block)};
    return read_block(block);
}

int hd_content_text(const struct hd_val *content, struct hd_buf *out)
{
    bool has_line = false;
    int err = 0;

    for (size_t i = 0; i < hd_content_count(content) && !err; i++) {
        struct hd_content part = hd_content_at(content, i);

        if (part.type == HD_CONTENT_SKIPPED || part.type == HD_CONTENT_THINKING)
            continue;
        if (has_line)
            err = hd_buf_append_byte(out, '\n');
        has_line = true;
        if (!err && part.type == HD_CONTENT_TEXT)
            err = hd_buf_append_slice(out, part.text);
        else if (!err && part.type == HD_CONTENT_OTHER)
            err = hd_val_render(out, part.raw);
        else if (!err)
            err = hd_buf_printf(out, "[%.*s%s%.*s]", (int)part.kind.len, part.kind.ptr,
                                part.mime.len ? " " : "", (int)part.mime.len,
                                part.mime.ptr ? part.mime.ptr : "");
    }
    return err;
}

/* ---- turns ------------------------------------------------------------ */

/*
 * Writes the consecutive messages of one role from `index` on; returns the start of the next turn.
 */
static size_t put_turn(struct hd_jw *jw, const struct hd_chat_turns *form,
                       const struct hd_val *messages, size_t index)
{
    bool is_ai = hd_chat_is(hd_val_at(messages, index), "ai");
    size_t parts = 0;

    hd_jw_object(jw);
    hd_jw_put_string(jw, "role", is_ai ? hd_slice_cstr(form->ai) : HD_S("user"));
    hd_jw_put_array(jw, form->parts);
    for (; index < hd_val_count(messages); index++) {
        const struct hd_val *message = hd_val_at(messages, index);

        if (hd_chat_is(message, "system"))
            continue;
        if (hd_chat_is(message, "ai") != is_ai)
            break;
        parts += form->put(jw, messages, index);
    }
    if (parts == 0)
        form->put_text(jw, HD_S("(nothing)"));
    hd_jw_array_end(jw);
    hd_jw_object_end(jw);
    return index;
}

void hd_chat_put_turns(struct hd_jw *jw, const struct hd_chat_turns *form,
                       const struct hd_val *messages)
{
    size_t index = 0;

    hd_jw_put_array(jw, form->key);
    while (index < hd_val_count(messages)) {
        if (hd_chat_is(hd_val_at(messages, index), "system"))
            index++;
        else
            index = put_turn(jw, form, messages, index);
    }
    hd_jw_array_end(jw);
}
