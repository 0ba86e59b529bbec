/* Parts of messages and artifacts: text, data and files, in one form. */
#include "agent/a2a/a2a_proto.h"

#define MAX_PARTS 4096
#define MAX_DEPTH 128 /* of data: it goes into states, which have a separate limit */

static struct hd_val *make_part(const char *type, struct hd_slice key, struct hd_val *val)
{
    return hd_val_with(hd_val_with(hd_val_object(), HD_S("type"), hd_val_cstr(type)), key, val);
}

static struct hd_val *with_text(struct hd_val *object, struct hd_slice key, struct hd_slice text)
{
    return text.len ? hd_val_with(object, key, hd_val_string(text)) : object;
}

static struct hd_slice first_text(hd_json_val object, const char *const *keys, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct hd_slice text = hd_json_string(hd_json_get(object, hd_slice_cstr(keys[i])));

        if (text.len)
            return text;
    }
    return HD_S("");
}

/* 0.3 has an object `file`, 1.0 the same members (under other names) in the part. */
static struct hd_val *read_file_part(hd_json_val file)
{
    static const char *const uris[] = {"uri", "url", "fileWithUri"};
    static const char *const bytes[] = {"bytes", "raw", "fileWithBytes"};
    static const char *const types[] = {"mimeType", "mediaType"};
    static const char *const names[] = {"name", "filename"};
    struct hd_slice uri = first_text(file, uris, 3);
    struct hd_val *part;

    part = uri.len ? make_part("file", HD_S("uri"), hd_val_string(uri))
                   : make_part("file", HD_S("base64"), hd_val_string(first_text(file, bytes, 3)));
    part = with_text(part, HD_S("name"), first_text(file, names, 2));
    return with_text(part, HD_S("mime_type"), first_text(file, types, 2));
}

static int read_data(hd_json_val data, struct hd_val **out, struct heddle_error *fault)
{
    struct hd_val *val;
    int err = hd_val_from_json(data, &val, NULL);

    if (err == 0 && hd_val_depth(val) > MAX_DEPTH) {
        hd_val_unref(val);
        err = HD_EINVAL;
    }
    if (err)
        return err == HD_EINVAL ? hd_error_set(fault, err, "it sent data that cannot be stored")
                                : err;
    *out = make_part("data", HD_S("data"), val);
    return *out ? 0 : HD_ENOMEM;
}

static int read_part(hd_json_val part, struct hd_val **out, struct heddle_error *fault)
{
    hd_json_val text = hd_json_get(part, HD_S("text")), data = hd_json_get(part, HD_S("data"));
    hd_json_val file = hd_json_get(part, HD_S("file"));

    if (hd_json_is_string(text)) {
        *out = make_part("text", HD_S("text"), hd_val_string(hd_json_string(text)));
        return *out ? 0 : HD_ENOMEM;
    }
    if (data)
        return read_data(data, out, fault);
    if (!hd_json_is_object(file))
        file = part;
    if (!hd_json_get(part, HD_S("file")) && !hd_json_get(part, HD_S("raw")) &&
        !hd_json_get(part, HD_S("url")))
        return hd_error_set(fault, HD_EINVAL, "it sent a part of an unknown kind");
    *out = read_file_part(file);
    return *out ? 0 : HD_ENOMEM;
}

int hd_a2a_parts_read(hd_json_val parts, struct hd_val **out, struct heddle_error *fault)
{
    struct hd_json_iter it = hd_json_iter(parts);
    struct hd_val *list;
    int err = 0;

    if (parts && !hd_json_is_array(parts))
        return hd_error_set(fault, HD_EINVAL, "its parts are not a list");
    if (hd_json_size(parts) > MAX_PARTS)
        return hd_error_set(fault, HD_ELIMIT, "it sent more than %d parts", MAX_PARTS);
    list = hd_val_list();
    if (!list)
        return HD_ENOMEM;
    while (!err && list && hd_json_next(&it)) {
        struct hd_val *part = NULL;

        err = read_part(it.val, &part, fault);
        if (!err)
            list = hd_val_append(list, part);
    }
    if (!list)
        return HD_ENOMEM;
    if (err)
        hd_val_unref(list);
    else
        *out = list;
    return err;
}

static int put_file(struct hd_buf *out, const struct hd_val *part)
{
    struct hd_slice name = hd_val_get_string(hd_val_get(part, HD_S("name")));
    struct hd_slice type = hd_val_get_string(hd_val_get(part, HD_S("mime_type")));
    struct hd_slice uri = hd_val_get_string(hd_val_get(part, HD_S("uri")));
    int err = hd_buf_append(out, "[file", 5);

    if (!err && name.len)
        err = hd_buf_append_byte(out, ' ');
    if (!err)
        err = hd_buf_append_slice(out, name);
    if (!err && type.len)
        err = hd_buf_append(out, ", ", 2);
    if (!err)
        err = hd_buf_append_slice(out, type);
    if (!err && uri.len)
        err = hd_buf_append(out, ": ", 2);
    if (!err)
        err = hd_buf_append_slice(out, uri);
    return err ? err : hd_buf_append_byte(out, ']');
}

static int put_part_text(struct hd_buf *out, const struct hd_val *part)
{
    struct hd_val *text = hd_val_get(part, HD_S("text"));
    struct hd_val *data = hd_val_get(part, HD_S("data"));

    if (text)
        return hd_buf_append_slice(out, hd_val_get_string(text));
    return data ? hd_val_render(out, data) : put_file(out, part);
}

int hd_a2a_parts_text(struct hd_buf *out, const struct hd_val *parts)
{
    int err = 0;

    for (size_t i = 0; i < hd_val_count(parts) && !err; i++) {
        if (out->len && out->ptr[out->len - 1] != '\n')
            err = hd_buf_append_byte(out, '\n');
        if (!err)
            err = put_part_text(out, hd_val_at(parts, i));
    }
    return err;
}
