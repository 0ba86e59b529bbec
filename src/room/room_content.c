#include "base/json.h"
#include "room/room_input.h"

/* Blocks that are not shown to readers. */
static bool is_inner_block(hd_json_val block)
{
    static const char *const types[] = {"tool_use",
                                        "tool_call",
                                        "tool_call_chunk",
                                        "invalid_tool_call",
                                        "server_tool_use",
                                        "server_tool_call",
                                        "function_call",
                                        "input_json_delta",
                                        "reasoning",
                                        "reasoning_content",
                                        "thinking",
                                        "redacted_thinking",
                                        NULL};
    struct hd_slice type = hd_json_string(hd_json_get(block, HD_S("type")));

    for (size_t i = 0; types[i]; i++) {
        if (hd_slice_eq(type, hd_slice_cstr(types[i])))
            return true;
    }
    return false;
}

static bool is_text_block(hd_json_val block)
{
    return hd_slice_eq(hd_json_string(hd_json_get(block, HD_S("type"))), HD_S("text"));
}

static bool is_blank(struct hd_slice text)
{
    size_t i = 0;

    while (i < text.len && (unsigned char)text.ptr[i] <= ' ')
        i++;
    return i == text.len;
}

/* The text of a block; without bytes for a block that is no text. */
static struct hd_slice block_text(hd_json_val block)
{
    if (hd_json_is_string(block))
        return hd_json_string(block);
    return is_text_block(block) ? hd_json_string(hd_json_get(block, HD_S("text")))
                                : hd_slice("", 0);
}

static bool is_said_block(hd_json_val block)
{
    if (hd_json_is_string(block) || is_text_block(block))
        return !is_blank(block_text(block));
    return hd_json_is_object(block) && !is_inner_block(block);
}

bool hd_room_content_is_said(struct hd_slice content)
{
    struct hd_json json = {NULL};
    struct hd_json_iter it;
    bool is_said = false;

    if (content.len == 0 || hd_json_parse(&json, content, NULL))
        return false;
    it = hd_json_iter(hd_json_root(&json));
    if (hd_json_is_string(hd_json_root(&json)))
        is_said = is_said_block(hd_json_root(&json));
    while (hd_json_is_array(hd_json_root(&json)) && !is_said && hd_json_next(&it))
        is_said = is_said_block(it.val);
    hd_json_fini(&json);
    return is_said;
}

static int write_said(hd_json_val list, struct hd_arena *arena, struct hd_slice *out)
{
    struct hd_json_iter it = hd_json_iter(list);
    struct hd_buf buf;
    struct hd_jw jw;

    hd_buf_init(&buf, HD_ROOM_MAX_CONTENT);
    hd_jw_init(&jw, &buf);
    hd_jw_array(&jw);
    while (hd_json_next(&it)) {
        if (!is_inner_block(it.val))
            hd_jw_val(&jw, it.val);
    }
    hd_jw_array_end(&jw);
    return hd_jw_finish_in(&jw, arena, out);
}

int hd_room_content_said(struct hd_slice content, struct hd_arena *arena, struct hd_slice *out)
{
    struct hd_json json = {NULL};
    int err = hd_json_parse(&json, content, NULL);

    if (!err && hd_json_is_array(hd_json_root(&json)))
        err = write_said(hd_json_root(&json), arena, out);
    else if (!err)
        err = hd_arena_copy(arena, content, out);
    hd_json_fini(&json);
    return err;
}

int hd_room_content_texts(struct hd_slice content, struct hd_arena *arena, struct hd_slice **out,
                          size_t *count)
{
    struct hd_json json = {NULL};
    int err = hd_json_parse(&json, content, NULL);
    hd_json_val root = hd_json_root(&json);
    struct hd_json_iter it = hd_json_iter(hd_json_is_array(root) ? root : NULL);
    size_t most = hd_json_is_array(root) ? hd_json_size(root) : 1;

    *count = 0;
    *out = err ? NULL : hd_arena_calloc(arena, most + 1, sizeof(**out));
    if (!err && !*out)
        err = HD_ENOMEM;
    if (!err && hd_json_is_string(root))
        err = hd_arena_copy(arena, hd_json_string(root), &(*out)[(*count)++]);
    while (!err && hd_json_next(&it)) {
        struct hd_slice text = block_text(it.val);

        if (text.len > 0)
            err = hd_arena_copy(arena, text, &(*out)[(*count)++]);
    }
    hd_json_fini(&json);
    return err;
}
