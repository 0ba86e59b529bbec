/*
 * A tool's result as message content: text or a list of content blocks, truncated to a limit, with
 * a note of how much was omitted.
 */
#include "agent/tools.h"
#include "base/compiler.h"
#include "base/utf8.h"

/* Takes. */
static struct hd_val *cut_text(struct hd_val *text, size_t *room)
{
    struct hd_slice all = hd_val_get_string(text);
    struct hd_val *cut = NULL;
    struct hd_buf buf;
    size_t len;

    if (!text || all.len <= *room) {
        *room -= all.len;
        return text;
    }
    len = hd_utf8_cut(all.ptr, *room);
    *room = 0;
    hd_buf_init(&buf, len + 128);
    if (hd_buf_append(&buf, all.ptr, len) == 0 &&
        hd_buf_printf(&buf, "\n[%zu of %zu bytes were left out]", all.len - len, all.len) == 0)
        cut = hd_val_string(hd_buf_slice(&buf));
    hd_buf_fini(&buf);
    hd_val_unref(text);
    return cut;
}

static struct hd_val *text_block(struct hd_val *text)
{
    struct hd_val *block = hd_val_with(hd_val_object(), HD_S("type"), hd_val_cstr("text"));

    return hd_val_with(block, HD_S("text"), text);
}

static struct hd_val *as_text(const struct hd_val *val)
{
    struct hd_val *made = NULL;
    struct hd_buf text;

    hd_buf_init(&text, HD_EXPR_MAX_BYTES);
    if (hd_val_render(&text, val) == 0)
        made = hd_val_string(hd_buf_slice(&text));
    hd_buf_fini(&text);
    return made;
}

/* Truncates text; drops other blocks, such as images, as a whole. */
static struct hd_val *bound_block(const struct hd_val *block, size_t *room)
{
    const struct hd_val *text = hd_val_get(block, HD_S("text"));
    struct hd_val *bound;
    struct hd_buf size;
    int err;

    if (hd_val_is_string(block))
        return cut_text(hd_val_ref(block), room);
    if (!hd_val_is_object(block))
        return text_block(cut_text(as_text(block), room));
    if (hd_val_is_string(text))
        return hd_val_with(hd_val_ref(block), HD_S("text"), cut_text(hd_val_ref(text), room));
    hd_buf_init(&size, *room);
    err = hd_val_render(&size, block);
    *room -= err ? 0 : size.len;
    bound = err == 0           ? hd_val_ref(block)
            : err == HD_ELIMIT ? text_block(hd_val_cstr("[content was left out: it is too large]"))
                               : NULL;
    hd_buf_fini(&size);
    return bound;
}

static struct hd_val *bound_blocks(const struct hd_val *list, size_t room)
{
    struct hd_val *blocks = hd_val_list();
    size_t count = hd_val_count(list), i;

    for (i = 0; i < count && room > 0; i++)
        blocks = hd_val_append(blocks, bound_block(hd_val_at(list, i), &room));
    if (i < count)
        blocks = hd_val_append(
            blocks, text_block(hd_val_printf("[%zu more parts were left out]", count - i)));
    return blocks;
}

struct hd_val *hd_tool_content(struct hd_val *content, size_t max)
{
    struct hd_val *bound;

    if (content && !hd_val_is_list(content)) {
        struct hd_val *text = hd_val_is_string(content) ? hd_val_ref(content)
                              : hd_val_is_null(content) ? hd_val_cstr("")
                                                        : as_text(content);

        bound = cut_text(text, &max);
    } else {
        bound = content ? bound_blocks(content, max) : NULL;
    }
    hd_val_unref(content);
    return bound;
}

bool hd_tool_is_small(const struct hd_val *val, size_t max)
{
    struct hd_buf size;
    bool is_small;

    hd_buf_init(&size, max);
    is_small = hd_val_render(&size, val) == 0;
    hd_buf_fini(&size);
    return is_small;
}
