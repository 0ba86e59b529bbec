/*
 * Finds the elements of JSON text without parsing it.
 *
 * Only boundaries are examined: quotes, brackets, commas. Strings, which contain nearly all bytes
 * of a conversation, are skipped with memchr(). Text that is not JSON is accepted as long as its
 * brackets match: it is cut at odd places then, which only costs sharing.
 */
#include "store/codec/split_internal.h"

#include "base/error.h"

enum byte_class { PLAIN, SPACE, QUOTE, OPEN, CLOSE, COMMA };

static const unsigned char byte_class[256] = {
    [' '] = SPACE, ['\t'] = SPACE, ['\n'] = SPACE, ['\r'] = SPACE, ['"'] = QUOTE,
    ['['] = OPEN,  ['{'] = OPEN,   [']'] = CLOSE,  ['}'] = CLOSE,  [','] = COMMA,
};

static enum byte_class class_of(const char *p)
{
    return (enum byte_class)byte_class[(unsigned char)*p];
}

static const char *skip_space(const char *p, const char *end)
{
    while (p < end && class_of(p) == SPACE)
        p++;
    return p;
}

static bool is_escaped(const char *string, const char *quote)
{
    const char *p = quote;

    while (p > string && p[-1] == '\\')
        p--;
    return (quote - p) % 2 != 0;
}

/* Skippers: from the first byte of a token to the byte after it; NULL when it does not end. */
static const char *skip_string(const char *p, const char *end)
{
    const char *string = ++p;

    while (p < end) {
        p = memchr(p, '"', (size_t)(end - p));
        if (!p)
            return NULL;
        if (!is_escaped(string, p))
            return p + 1;
        p++;
    }
    return NULL;
}

static const char *skip_nested(const char *p, const char *end)
{
    size_t depth = 0;

    while (p && p < end) {
        switch (class_of(p)) {
        case QUOTE:
            p = skip_string(p, end);
            continue;
        case OPEN:
            depth++;
            break;
        case CLOSE:
            if (--depth == 0)
                return p + 1;
            break;
        default:
            break;
        }
        p++;
    }
    return NULL;
}

/* Numbers and words. NULL when it is empty. */
static const char *skip_scalar(const char *p, const char *end)
{
    const char *begin = p;

    while (p < end && class_of(p) == PLAIN)
        p++;
    return p > begin ? p : NULL;
}

const char *hd_split_json_value(const char *p, const char *end)
{
    if (p == end)
        return NULL;
    if (*p == '"')
        return skip_string(p, end);
    if (*p == '[' || *p == '{')
        return skip_nested(p, end);
    return skip_scalar(p, end);
}

/*
 * After an element or a member: moves *pos to the next one, or past `close` and sets *is_last.
 * False when neither a comma nor `close` follows.
 */
static bool next(const char **pos, const char *end, char close, bool *is_last)
{
    const char *p = skip_space(*pos, end);

    if (p == end || (*p != ',' && *p != close))
        return false;
    *is_last = *p == close;
    *pos = *is_last ? p + 1 : skip_space(p + 1, end);
    return true;
}

/* True for `[]` and `{}`, and moves past it; otherwise moves to the first member. */
static bool is_empty(const char **pos, const char *end, char close)
{
    const char *p = skip_space(*pos + 1, end);
    bool empty = p < end && *p == close;

    *pos = empty ? p + 1 : p;
    return empty;
}

static int cut_array(struct hd_cutter *cutter, const char **pos, const char *end)
{
    bool is_last = is_empty(pos, end, ']');

    while (!is_last) {
        const char *element = *pos;

        *pos = hd_split_json_value(element, end);
        if (!*pos)
            return HD_EINVAL;
        if (hd_cutter_element(cutter, element, *pos) != 0)
            return HD_ENOMEM;
        if (!next(pos, end, ']', &is_last))
            return HD_EINVAL;
    }
    return hd_cutter_flush(cutter);
}

static int cut_member(struct hd_cutter *cutter, const char **pos, const char *end)
{
    struct hd_cutter_mark mark = hd_cutter_mark(cutter);
    const char *value;
    int err;

    if (*pos == end || **pos != '"')
        return HD_EINVAL;
    *pos = skip_string(*pos, end);
    if (!*pos)
        return HD_EINVAL;
    value = skip_space(*pos, end);
    if (value == end || *value != ':')
        return HD_EINVAL;
    value = skip_space(value + 1, end);
    if (value == end || *value != '[') {
        *pos = hd_split_json_value(value, end);
        return *pos ? 0 : HD_EINVAL;
    }
    *pos = value;
    err = cut_array(cutter, pos, end);
    if (err == 0 && (size_t)(*pos - value) < HD_SPLIT_BIG)
        hd_cutter_rewind(cutter, mark);
    return err;
}

static int cut_object(struct hd_cutter *cutter, const char **pos, const char *end)
{
    bool is_last = is_empty(pos, end, '}');

    while (!is_last) {
        int err = cut_member(cutter, pos, end);

        if (err != 0)
            return err;
        if (!next(pos, end, '}', &is_last))
            return HD_EINVAL;
    }
    /* No part is worth cutting by structure: cut the whole by content. */
    return cutter->pieces->count > 0 ? 0 : HD_EINVAL;
}

/* A single message, in the canonical encoding or in JavaScript's, in the form it has in a list. */
static bool is_message(const char *pos, const char *end)
{
    struct hd_slice text = hd_slice(pos, (size_t)(end - pos));

    return hd_slice_starts(text, HD_S("{\"$\":\"message\"")) ||
           hd_slice_starts(text, HD_S("{\"lc\":1,"));
}

/*
 * It is the same chunk as in a list: a message that a task writes is usually appended to the list.
 */
static int cut_message(struct hd_cutter *cutter, const char **pos, const char *end)
{
    const char *begin = *pos;

    *pos = hd_split_json_value(begin, end);
    return *pos ? hd_cutter_element(cutter, begin, *pos) : HD_EINVAL;
}

int hd_split_json(struct hd_cutter *cutter, struct hd_slice bytes)
{
    const char *end = bytes.ptr + bytes.len;
    const char *pos = skip_space(bytes.ptr, end);
    int err;

    if (pos < end && *pos == '[')
        err = cut_array(cutter, &pos, end);
    else if (is_message(pos, end))
        err = cut_message(cutter, &pos, end);
    else if (pos < end && *pos == '{')
        err = cut_object(cutter, &pos, end);
    else
        err = HD_EINVAL;
    if (err != 0)
        return err;
    return skip_space(pos, end) == end ? 0 : HD_EINVAL;
}
