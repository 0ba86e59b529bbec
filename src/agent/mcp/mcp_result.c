/* Tool results as LangChain's tool messages. */
#include <string.h>

#include "agent/mcp/mcp_proto.h"

static struct hd_slice item_text(const struct hd_val *object, const char *key)
{
    return hd_val_get_string(hd_val_get(object, hd_slice_cstr(key)));
}

/* ---- blocks ----------------------------------------------------------- */

/* Takes. */
static struct hd_val *text_block(struct hd_val *text)
{
    struct hd_val *block = hd_val_with(hd_val_object(), HD_S("type"), hd_val_cstr("text"));

    return hd_val_with(block, HD_S("text"), text);
}

static struct hd_val *data_block(const char *type, struct hd_slice data, struct hd_slice mime)
{
    struct hd_val *block = hd_val_with(hd_val_object(), HD_S("type"), hd_val_cstr(type));

    block = hd_val_with(block, HD_S("base64"), hd_val_string(data));
    if (mime.len > 0)
        block = hd_val_with(block, HD_S("mime_type"), hd_val_string(mime));
    return block;
}

/* A link is shown as text: the model may not be able to reach its target. */
static struct hd_val *link_block(const struct hd_val *item)
{
    struct hd_slice name = item_text(item, "name"), uri = item_text(item, "uri");
    struct hd_slice description = item_text(item, "description"),
                    mime = item_text(item, "mimeType");

    return text_block(hd_val_printf("%.*s: %.*s%s%.*s%s%s%.*s", (int)name.len, name.ptr,
                                    (int)uri.len, uri.ptr, mime.len ? " (" : "", (int)mime.len,
                                    mime.ptr, mime.len ? ")" : "", description.len ? "\n" : "",
                                    (int)description.len, description.ptr));
}

static struct hd_val *resource_block(const struct hd_val *item)
{
    const struct hd_val *resource = hd_val_get(item, HD_S("resource"));
    const struct hd_val *text = hd_val_get(resource, HD_S("text"));
    struct hd_slice mime = item_text(resource, "mimeType");

    if (hd_val_is_string(text))
        return text_block(hd_val_ref(text));
    if (!hd_val_is_string(hd_val_get(resource, HD_S("blob"))))
        return link_block(resource);
    return data_block(hd_slice_starts(mime, HD_S("image/")) ? "image" : "file",
                      item_text(resource, "blob"), mime);
}

/* Unknown content is shown as received. */
static struct hd_val *other_block(const struct hd_val *item)
{
    struct hd_val *text = NULL;
    struct hd_buf buf;

    hd_buf_init(&buf, (size_t)16 << 20);
    if (hd_val_render(&buf, item) == 0)
        text = hd_val_string(hd_buf_slice(&buf));
    hd_buf_fini(&buf);
    return text_block(text);
}

static struct hd_val *block_of(const struct hd_val *item)
{
    struct hd_slice type = item_text(item, "type"), mime = item_text(item, "mimeType");

    if (hd_slice_eq(type, HD_S("text")) && hd_val_is_string(hd_val_get(item, HD_S("text"))))
        return text_block(hd_val_ref(hd_val_get(item, HD_S("text"))));
    if (hd_slice_eq(type, HD_S("image")))
        return data_block("image", item_text(item, "data"), mime);
    if (hd_slice_eq(type, HD_S("audio")))
        return data_block("audio", item_text(item, "data"), mime);
    if (hd_slice_eq(type, HD_S("resource_link")))
        return link_block(item);
    if (hd_slice_eq(type, HD_S("resource")) && hd_val_is_object(hd_val_get(item, HD_S("resource"))))
        return resource_block(item);
    return other_block(item);
}

/* ---- results ---------------------------------------------------------- */

static bool is_all_text(const struct hd_val *blocks)
{
    for (size_t i = 0; i < hd_val_count(blocks); i++) {
        if (!hd_slice_eq(item_text(hd_val_at(blocks, i), "type"), HD_S("text")))
            return false;
    }
    return true;
}

/* The texts of the blocks, one per line; skips other blocks. */
static struct hd_val *join_block_texts(const struct hd_val *blocks)
{
    struct hd_val *text = NULL;
    struct hd_buf buf;
    int err = 0;

    hd_buf_init(&buf, (size_t)64 << 20);
    for (size_t i = 0; i < hd_val_count(blocks) && !err; i++) {
        const struct hd_val *block = hd_val_at(blocks, i);

        if (!hd_val_is_string(hd_val_get(block, HD_S("text"))))
            continue;
        if (buf.len > 0)
            err = hd_buf_append_byte(&buf, '\n');
        if (!err)
            err = hd_buf_append_slice(&buf, item_text(block, "text"));
    }
    if (!err)
        text = hd_val_string(hd_buf_slice(&buf));
    hd_buf_fini(&buf);
    return text;
}

static struct hd_val *blocks_of(const struct hd_val *content)
{
    struct hd_val *blocks = hd_val_list();

    for (size_t i = 0; i < hd_val_count(content) && blocks; i++)
        blocks = hd_val_append(blocks, block_of(hd_val_at(content, i)));
    return blocks;
}

int hd_mcp_result_read(const struct hd_val *result, struct hd_mcp_outcome *out,
                       struct heddle_error *fault)
{
    const struct hd_val *content = hd_val_get(result, HD_S("content"));
    const struct hd_val *structured = hd_val_get(result, HD_S("structuredContent"));
    struct hd_val *blocks;

    memset(out, 0, sizeof(*out));
    if (content && !hd_val_is_list(content))
        return hd_error_set(fault, HD_EINVAL, "\"content\" is %s", hd_val_type_name(content));
    if (!content && !structured)
        return hd_error_set(fault, HD_EINVAL, "the result has no \"content\"");
    blocks = blocks_of(content);
    if (blocks && hd_val_count(blocks) == 0 && !hd_val_is_null(structured))
        blocks = hd_val_append(blocks, other_block(structured));
    out->is_error = hd_val_is_true(hd_val_get(result, HD_S("isError")));
    if (blocks)
        out->content =
            out->is_error || is_all_text(blocks) ? join_block_texts(blocks) : hd_val_ref(blocks);
    hd_val_unref(blocks);
    if (out->content && !hd_val_is_null(structured)) {
        out->artifact =
            hd_val_with(hd_val_object(), HD_S("structured_content"), hd_val_ref(structured));
        if (!out->artifact)
            hd_mcp_outcome_fini(out);
    }
    return out->content ? 0 : HD_ENOMEM;
}

void hd_mcp_outcome_fini(struct hd_mcp_outcome *outcome)
{
    hd_val_unref(outcome->content);
    hd_val_unref(outcome->artifact);
    memset(outcome, 0, sizeof(*outcome));
}

/* ---- errors ----------------------------------------------------------- */

/* "message: url", if the URL is safe to follow. */
static int write_address(struct hd_buf *out, const struct hd_val *from)
{
    const struct hd_val *message = hd_val_get(from, HD_S("message"));
    struct hd_slice url = item_text(from, "url"), text = hd_val_get_string(message);

    if (hd_val_is_object(message))
        text = item_text(message, "text");
    if (!hd_slice_starts(url, HD_S("https://")) && !hd_slice_starts(url, HD_S("http://")))
        return 0;
    return hd_buf_printf(out, "\n%.*s%s%.*s", (int)text.len, text.ptr, text.len ? ": " : "",
                         (int)url.len, url.ptr);
}

static const char *hint_of(int64_t code)
{
    switch (code) {
    case HD_MCP_INTERACTION_REQUIRED:
    case HD_MCP_URL_REQUIRED:
        return "The user must act first: ";
    default:
        return "";
    }
}

struct hd_val *hd_mcp_error_text(int64_t code, struct hd_slice text, const struct hd_val *data)
{
    const struct hd_val *list = hd_val_get(data, HD_S("elicitations"));
    struct hd_val *val = NULL;
    struct hd_buf buf;
    int err;

    hd_buf_init(&buf, (size_t)1 << 16);
    if (text.len > 8192)
        text.len = 8192;
    err = hd_buf_printf(&buf, "%s%.*s (%lld)", hint_of(code), (int)text.len, text.ptr,
                        (long long)code);
    if (!err)
        err = write_address(&buf, data);
    for (size_t i = 0; i < hd_val_count(list) && i < 16 && !err; i++)
        err = write_address(&buf, hd_val_at(list, i));
    if (err != HD_ENOMEM)
        val = hd_val_string(hd_buf_slice(&buf));
    hd_buf_fini(&buf);
    return val;
}
