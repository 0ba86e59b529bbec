/* Parses requests of all three APIs into the parts that rules match. */
#include "base/alloc.h"
#include "mock/mock_internal.h"

#define MAX_TEXT HD_MOCK_MAX_REQUEST

/* ---- texts ------------------------------------------------------------ */

int64_t hd_mock_words(struct hd_slice text)
{
    int64_t count = 0;
    bool is_in_word = false;

    for (size_t i = 0; i < text.len; i++) {
        bool is_space = text.ptr[i] == ' ' || text.ptr[i] == '\n' || text.ptr[i] == '\t';

        count += !is_space && !is_in_word;
        is_in_word = !is_space;
    }
    return count;
}

/* Appends the texts of blocks in order; a plain string is one text. */
static int append_text(struct hd_buf *out, hd_json_val content)
{
    struct hd_json_iter it = hd_json_iter(content);
    int err = 0;

    if (hd_json_is_string(content))
        return hd_buf_append_slice(out, hd_json_string(content));
    while (!err && hd_json_is_array(content) && hd_json_next(&it)) {
        hd_json_val text = hd_json_get(it.val, HD_S("text"));

        err = hd_buf_append_slice(out, hd_json_string(text ? text : it.val));
    }
    return err;
}

static int read_content_text(struct hd_mock_seen *seen, hd_json_val content, struct hd_slice *out)
{
    struct hd_buf buf;
    int err;

    if (hd_json_is_string(content)) {
        *out = hd_json_string(content);
        return 0;
    }
    hd_buf_init(&buf, MAX_TEXT);
    err = append_text(&buf, content);
    if (!err)
        err = hd_arena_copy(&seen->arena, hd_buf_slice(&buf), out);
    hd_buf_fini(&buf);
    return err;
}

/* ---- messages --------------------------------------------------------- */

static int add_system(struct hd_mock_seen *seen, hd_json_val content)
{
    int err = seen->system.len > 0 ? hd_buf_append_byte(&seen->system, '\n') : 0;

    return err ? err : append_text(&seen->system, content);
}

static int add_message(struct hd_mock_seen *seen, struct hd_slice role, struct hd_slice text)
{
    int err = 0;

    seen->last = text;
    seen->last_role = role;
    seen->words += hd_mock_words(text);
    if (hd_slice_eq(role, HD_S("user"))) {
        seen->user = text;
        seen->result_count = 0;
        hd_buf_reset(&seen->results);
    } else if (hd_slice_eq(role, HD_S("tool"))) {
        if (seen->result_count++ > 0)
            err = hd_buf_append(&seen->results, ", ", 2);
        if (!err)
            err = hd_buf_append_slice(&seen->results, text);
    }
    return err;
}

static int see_openai_message(struct hd_mock_seen *seen, hd_json_val message,
                              struct heddle_error *fault)
{
    struct hd_slice role = hd_json_string(hd_json_get(message, HD_S("role"))), text;
    hd_json_val content = hd_json_get(message, HD_S("content"));
    int err;

    if (role.len == 0)
        return hd_error_set(fault, HD_EINVAL, "a message has no role");
    if (hd_slice_eq(role, HD_S("system")) || hd_slice_eq(role, HD_S("developer")))
        return add_system(seen, content);
    err = read_content_text(seen, content, &text);
    return err ? err : add_message(seen, role, text);
}

/* Tool results are blocks of a user message. */
static int see_anthropic_message(struct hd_mock_seen *seen, hd_json_val message,
                                 struct heddle_error *fault)
{
    struct hd_slice role = hd_json_string(hd_json_get(message, HD_S("role"))), text;
    hd_json_val content = hd_json_get(message, HD_S("content"));
    struct hd_json_iter it = hd_json_iter(content);
    bool has_result = false;
    int err = 0;

    if (role.len == 0)
        return hd_error_set(fault, HD_EINVAL, "a message has no role");
    while (!err && hd_json_is_array(content) && hd_json_next(&it)) {
        if (!hd_slice_eq(hd_json_string(hd_json_get(it.val, HD_S("type"))), HD_S("tool_result")))
            continue;
        has_result = true;
        err = read_content_text(seen, hd_json_get(it.val, HD_S("content")), &text);
        if (!err)
            err = add_message(seen, HD_S("tool"), text);
    }
    if (!err)
        err = read_content_text(seen, content, &text);
    if (err || (has_result && text.len == 0))
        return err;
    return add_message(seen, role, text);
}

static int see_gemini_message(struct hd_mock_seen *seen, hd_json_val message,
                              struct heddle_error *fault)
{
    struct hd_slice role = hd_json_string(hd_json_get(message, HD_S("role"))), text;
    hd_json_val parts = hd_json_get(message, HD_S("parts"));
    struct hd_json_iter it = hd_json_iter(parts);
    bool has_result = false;
    int err = 0;

    if (!hd_json_is_array(parts))
        return hd_error_set(fault, HD_EINVAL, "contents without parts");
    while (!err && hd_json_next(&it)) {
        hd_json_val result = hd_json_get(it.val, HD_S("functionResponse"));
        struct hd_buf buf;

        if (!result)
            continue;
        has_result = true;
        hd_buf_init(&buf, MAX_TEXT);
        err = hd_json_write_val(&buf, hd_json_get(result, HD_S("response")));
        if (!err)
            err = hd_arena_copy(&seen->arena, hd_buf_slice(&buf), &text);
        hd_buf_fini(&buf);
        if (!err)
            err = add_message(seen, HD_S("tool"), text);
    }
    if (!err)
        err = read_content_text(seen, parts, &text);
    if (err || (has_result && text.len == 0))
        return err;
    return add_message(seen, hd_slice_eq(role, HD_S("model")) ? HD_S("assistant") : HD_S("user"),
                       text);
}

/* ---- the request ------------------------------------------------------ */

typedef int (*see_message_fn)(struct hd_mock_seen *seen, hd_json_val message,
                              struct heddle_error *fault);

static int see_messages(struct hd_mock_seen *seen, hd_json_val list, see_message_fn see,
                        struct heddle_error *fault)
{
    struct hd_json_iter it = hd_json_iter(list);
    int err = 0;

    if (!hd_json_is_array(list) || hd_json_size(list) == 0)
        return hd_error_set(fault, HD_EINVAL, "messages must be a non-empty list");
    while (!err && hd_json_next(&it))
        err = see(seen, it.val, fault);
    return err;
}

static int see_root(struct hd_mock_seen *seen, hd_json_val root, struct heddle_error *fault)
{
    static const struct {
        const char *messages;
        see_message_fn see;
    } forms[] = {
        [HD_MOCK_OPENAI] = {"messages", see_openai_message},
        [HD_MOCK_ANTHROPIC] = {"messages", see_anthropic_message},
        [HD_MOCK_GEMINI] = {"contents", see_gemini_message},
    };
    hd_json_val system = hd_json_get(root, HD_S("system"));
    int err = 0;

    if (!hd_json_is_object(root))
        return hd_error_set(fault, HD_EINVAL, "the body must be an object");
    seen->tools = hd_json_get(root, HD_S("tools"));
    if (seen->form == HD_MOCK_GEMINI)
        system = hd_json_get(hd_json_get(root, HD_S("systemInstruction")), HD_S("parts"));
    else
        seen->model = hd_json_string(hd_json_get(root, HD_S("model")));
    if (seen->form != HD_MOCK_GEMINI)
        seen->is_stream = hd_json_is_true(hd_json_get(root, HD_S("stream")));
    seen->wants_usage = hd_json_is_true(
        hd_json_get(hd_json_get(root, HD_S("stream_options")), HD_S("include_usage")));
    if (seen->model.len == 0)
        return hd_error_set(fault, HD_EINVAL, "you must provide a model parameter");
    if (system)
        err = add_system(seen, system);
    if (err)
        return err;
    return see_messages(seen, hd_json_get(root, hd_slice_cstr(forms[seen->form].messages)),
                        forms[seen->form].see, fault);
}

int hd_mock_see(struct hd_mock_seen *seen, const struct hd_mock_ask *ask,
                struct heddle_error *fault)
{
    int err;

    *seen =
        (struct hd_mock_seen){.form = ask->form, .model = ask->model, .is_stream = ask->is_stream};
    hd_arena_init(&seen->arena, HD_MOCK_MAX_ANSWER);
    hd_buf_init(&seen->system, MAX_TEXT);
    hd_buf_init(&seen->results, MAX_TEXT);
    err = hd_json_parse(&seen->json, ask->body, fault);
    if (err)
        return err;
    err = see_root(seen, hd_json_root(&seen->json), fault);
    seen->words += hd_mock_words(hd_buf_slice(&seen->system));
    return err;
}

void hd_mock_seen_fini(struct hd_mock_seen *seen)
{
    hd_json_fini(&seen->json);
    hd_buf_fini(&seen->system);
    hd_buf_fini(&seen->results);
    hd_arena_fini(&seen->arena);
}

static hd_json_val at(hd_json_val list, size_t index)
{
    struct hd_json_iter it = hd_json_iter(list);

    while (hd_json_is_array(list) && hd_json_next(&it)) {
        if (index-- == 0)
            return it.val;
    }
    return NULL;
}

bool hd_mock_offered(const struct hd_mock_seen *seen, size_t index, struct hd_slice *name,
                     hd_json_val *schema)
{
    hd_json_val tool = NULL;

    if (seen->form == HD_MOCK_OPENAI)
        tool = hd_json_get(at(seen->tools, index), HD_S("function"));
    else if (seen->form == HD_MOCK_ANTHROPIC)
        tool = at(seen->tools, index);
    else
        tool = at(hd_json_get(at(seen->tools, 0), HD_S("functionDeclarations")), index);
    if (!tool)
        return false;
    *name = hd_json_string(hd_json_get(tool, HD_S("name")));
    *schema = hd_json_get(tool, HD_S("parameters"));
    if (!*schema)
        *schema = hd_json_get(tool, HD_S("input_schema"));
    return true;
}
