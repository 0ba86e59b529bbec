#include "search/embed_text.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/error.h"

/* ---- the list --------------------------------------------------------- */

int hd_embed_texts_add(struct hd_embed_texts *texts, struct hd_slice text)
{
    size_t cap = texts->cap ? texts->cap * 2 : 8;
    struct hd_slice *grown;
    int err;

    if (texts->count == texts->cap) {
        grown = hd_arena_alloc(texts->arena, cap * sizeof(*grown));
        if (!grown)
            return HD_ENOMEM;
        if (texts->count)
            memcpy(grown, texts->list, texts->count * sizeof(*grown));
        texts->list = grown;
        texts->cap = cap;
    }
    err = hd_arena_copy(texts->arena, text, &texts->list[texts->count]);
    texts->count += !err;
    return err;
}

/* ---- values as text --------------------------------------------------- */

static int write_json(struct hd_buf *out, hd_json_val val);

struct member {
    struct hd_slice key;
    hd_json_val val;
};

static int by_key(const void *a, const void *b)
{
    return hd_slice_cmp(((const struct member *)a)->key, ((const struct member *)b)->key);
}

static int write_sorted(struct hd_buf *out, const struct member *members, size_t count)
{
    int err = hd_buf_append_byte(out, '{');

    for (size_t i = 0; !err && i < count; i++) {
        if (i > 0)
            err = hd_buf_append(out, ", ", 2);
        if (!err)
            err = hd_json_write_string(out, members[i].key);
        if (!err)
            err = hd_buf_append(out, ": ", 2);
        if (!err)
            err = write_json(out, members[i].val);
    }
    return err ? err : hd_buf_append_byte(out, '}');
}

static int write_object(struct hd_buf *out, hd_json_val val)
{
    size_t size = hd_json_size(val), count = 0;
    struct member *members = size ? hd_malloc(size * sizeof(*members)) : NULL;
    struct hd_json_iter it = hd_json_iter(val);
    int err;

    if (size && !members)
        return HD_ENOMEM;
    while (hd_json_next(&it))
        members[count++] = (struct member){it.key, it.val};
    if (count > 1)
        qsort(members, count, sizeof(*members), by_key);
    err = write_sorted(out, members, count);
    hd_free(members);
    return err;
}

static int write_list(struct hd_buf *out, hd_json_val val)
{
    struct hd_json_iter it = hd_json_iter(val);
    int err = hd_buf_append_byte(out, '[');

    for (bool is_first = true; !err && hd_json_next(&it); is_first = false) {
        if (!is_first)
            err = hd_buf_append(out, ", ", 2);
        if (!err)
            err = write_json(out, it.val);
    }
    return err ? err : hd_buf_append_byte(out, ']');
}

/* With the blanks that Python writes, so that models receive the same text from both servers. */
static int write_json(struct hd_buf *out, hd_json_val val)
{
    if (hd_json_is_object(val))
        return write_object(out, val);
    return hd_json_is_array(val) ? write_list(out, val) : hd_json_write_val(out, val);
}

static int add_json(struct hd_embed_texts *texts, hd_json_val val)
{
    struct hd_buf buf;
    int err;

    hd_buf_init(&buf, SIZE_MAX / 2);
    err = write_json(&buf, val);
    if (!err)
        err = hd_embed_texts_add(texts, hd_buf_slice(&buf));
    hd_buf_fini(&buf);
    return err;
}

static int add_value(struct hd_embed_texts *texts, hd_json_val val)
{
    if (texts->count >= HD_EMBED_MAX_TEXTS)
        return HD_ELIMIT;
    switch (hd_json_type(val)) {
    case HD_JSON_STRING:
        return hd_embed_texts_add(texts, hd_json_string(val));
    case HD_JSON_NUMBER:
        return hd_embed_texts_add(texts, hd_json_number_text(val));
    case HD_JSON_BOOL:
        return hd_embed_texts_add(texts, hd_json_is_true(val) ? HD_S("True") : HD_S("False"));
    case HD_JSON_ARRAY:
    case HD_JSON_OBJECT:
        return add_json(texts, val);
    case HD_JSON_NONE:
    case HD_JSON_NULL:
        break;
    }
    return 0;
}

/* ---- paths ------------------------------------------------------------ */

/* Up to the bracket that closes the first one, or the end. */
static size_t bracketed(struct hd_slice path, char open, char close)
{
    size_t depth = 0, i = 0;

    do {
        if (path.ptr[i] == open)
            depth++;
        else if (path.ptr[i] == close)
            depth--;
        i++;
    } while (i < path.len && depth > 0);
    return i;
}

/* Takes the next part off *path; false at the end. */
static bool next_part(struct hd_slice *path, struct hd_slice *part)
{
    size_t len = 0;

    while (path->len > 0 && path->ptr[0] == '.')
        *path = hd_slice(path->ptr + 1, path->len - 1);
    if (path->len == 0)
        return false;
    if (path->ptr[0] == '[')
        len = bracketed(*path, '[', ']');
    else if (path->ptr[0] == '{')
        len = bracketed(*path, '{', '}');
    else
        while (len < path->len && !memchr(".[{", path->ptr[len], 3))
            len++;
    *part = hd_slice(path->ptr, len);
    *path = hd_slice(path->ptr + len, path->len - len);
    return true;
}

static bool is_within(struct hd_slice part, char open, char close)
{
    return part.len >= 2 && part.ptr[0] == open && part.ptr[part.len - 1] == close;
}

static int find_at_path(struct hd_embed_texts *texts, hd_json_val value, struct hd_slice path);

static int find_each(struct hd_embed_texts *texts, hd_json_val value, struct hd_slice path)
{
    struct hd_json_iter it = hd_json_iter(value);
    int err = 0;

    while (!err && hd_json_next(&it))
        err = find_at_path(texts, it.val, path);
    return err;
}

/* An index as Python reads it: of at most 18 digits. */
static bool read_index(struct hd_slice text, int64_t *out)
{
    bool is_negative = text.len > 0 && text.ptr[0] == '-';
    int64_t number = 0;

    if (is_negative)
        text = hd_slice(text.ptr + 1, text.len - 1);
    if (text.len == 0 || text.len > 18)
        return false;
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] < '0' || text.ptr[i] > '9')
            return false;
        number = number * 10 + (text.ptr[i] - '0');
    }
    *out = is_negative ? -number : number;
    return true;
}

static int find_element(struct hd_embed_texts *texts, hd_json_val list, struct hd_slice index,
                        struct hd_slice path)
{
    struct hd_json_iter it = hd_json_iter(list);
    int64_t number;

    if (!hd_json_is_array(list))
        return 0;
    if (hd_slice_eq(index, HD_S("*")))
        return find_each(texts, list, path);
    if (!read_index(index, &number))
        return 0;
    if (number < 0)
        number += (int64_t)hd_json_size(list);
    for (int64_t i = 0; number >= 0 && hd_json_next(&it); i++) {
        if (i == number)
            return find_at_path(texts, it.val, path);
    }
    return 0;
}

static struct hd_slice trimmed(struct hd_slice text)
{
    while (text.len > 0 && memchr(" \t\r\n", text.ptr[0], 4))
        text = hd_slice(text.ptr + 1, text.len - 1);
    while (text.len > 0 && memchr(" \t\r\n", text.ptr[text.len - 1], 4))
        text.len--;
    return text;
}

/* One of "{a,b.c}": members alone, and the end of the path. */
static int find_field(struct hd_embed_texts *texts, hd_json_val value, struct hd_slice field)
{
    struct hd_slice part;

    if (!field.len)
        return 0;
    while (value && next_part(&field, &part))
        value = hd_json_is_object(value) ? hd_json_get(value, part) : NULL;
    return value ? add_value(texts, value) : 0;
}

static int find_fields(struct hd_embed_texts *texts, hd_json_val value, struct hd_slice fields)
{
    int err = 0;

    if (!hd_json_is_object(value))
        return 0;
    for (;;) {
        const char *comma = fields.len ? memchr(fields.ptr, ',', fields.len) : NULL;
        size_t len = comma ? (size_t)(comma - fields.ptr) : fields.len;

        err = find_field(texts, value, trimmed(hd_slice(fields.ptr, len)));
        if (err || !comma)
            return err;
        fields = hd_slice(comma + 1, fields.len - len - 1);
    }
}

/* As deep as the path is long, which is limited. */
static int find_at_path(struct hd_embed_texts *texts, hd_json_val value, struct hd_slice path)
{
    struct hd_slice part;

    if (!next_part(&path, &part))
        return add_value(texts, value);
    if (is_within(part, '[', ']'))
        return find_element(texts, value, hd_slice(part.ptr + 1, part.len - 2), path);
    if (is_within(part, '{', '}'))
        return find_fields(texts, value, hd_slice(part.ptr + 1, part.len - 2));
    if (hd_slice_eq(part, HD_S("*")))
        return find_each(texts, value, path);
    value = hd_json_is_object(value) ? hd_json_get(value, part) : NULL;
    return value ? find_at_path(texts, value, path) : 0;
}

int hd_embed_find(struct hd_embed_texts *texts, hd_json_val value, struct hd_slice path)
{
    if (path.len > HD_EMBED_MAX_PATH)
        return HD_ELIMIT;
    if (path.len == 0 || hd_slice_eq(path, HD_S("$")))
        return texts->count < HD_EMBED_MAX_TEXTS ? add_json(texts, value) : HD_ELIMIT;
    return find_at_path(texts, value, path);
}
