#include "records/record_internal.h"

#include <string.h>

static void skip_space(struct hd_member_reader *c)
{
    while (c->at < c->end && (*c->at == ' ' || *c->at == '\t' || *c->at == '\n' || *c->at == '\r'))
        c->at++;
}

static bool take_mark(struct hd_member_reader *c, char wanted)
{
    skip_space(c);
    if (c->at == c->end || *c->at != wanted)
        return false;
    c->at++;
    return true;
}

/* Skips a string; its opening quote is next. */
static bool skip_string(struct hd_member_reader *c)
{
    for (c->at++; c->at < c->end && *c->at != '"'; c->at++) {
        if (*c->at == '\\' && ++c->at == c->end)
            return false;
    }
    if (c->at == c->end)
        return false;
    c->at++;
    return true;
}

/* Skips an object or an array; its opening bracket is next. */
static bool skip_nested(struct hd_member_reader *c)
{
    size_t depth = 0;

    do {
        if (c->at == c->end)
            return false;
        if (*c->at == '"') {
            if (!skip_string(c))
                return false;
            continue;
        }
        if (*c->at == '{' || *c->at == '[')
            depth++;
        else if (*c->at == '}' || *c->at == ']')
            depth--;
        c->at++;
    } while (depth > 0);
    return true;
}

static bool is_scalar_char(char c)
{
    return c != ',' && c != '}' && c != ']' && c != ' ' && c != '\t' && c != '\n' && c != '\r' &&
           c != ':' && c != '"';
}

/* Skips a value; *raw is its text. */
static bool take_value(struct hd_member_reader *c, struct hd_slice *raw)
{
    const char *first;
    bool is_whole = true;

    skip_space(c);
    first = c->at;
    if (c->at == c->end)
        return false;
    if (*c->at == '"') {
        is_whole = skip_string(c);
    } else if (*c->at == '{' || *c->at == '[') {
        is_whole = skip_nested(c);
    } else {
        while (c->at < c->end && is_scalar_char(*c->at))
            c->at++;
    }
    *raw = hd_slice(first, (size_t)(c->at - first));
    return is_whole && raw->len > 0;
}

static bool fail_reading(struct hd_member_reader *reader)
{
    reader->err = HD_ECORRUPT;
    return false;
}

bool hd_member_next(struct hd_member_reader *reader, struct hd_slice *name, struct hd_slice *raw)
{
    if (!take_mark(reader, reader->is_begun ? ',' : '{'))
        return reader->is_begun && take_mark(reader, '}') ? false : fail_reading(reader);
    if (!reader->is_begun && take_mark(reader, '}'))
        return false;
    reader->is_begun = true;
    skip_space(reader);
    if (reader->at == reader->end || *reader->at != '"' || !take_value(reader, name) ||
        !take_mark(reader, ':') || !take_value(reader, raw))
        return fail_reading(reader);
    *name = hd_slice(name->ptr + 1, name->len - 2);
    return true;
}

static void set_member(struct hd_slice name, struct hd_slice raw, const struct hd_member *members,
                       size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (hd_slice_eq(name, hd_slice_cstr(members[i].name)))
            *members[i].raw = raw;
    }
}

int hd_record_split(struct hd_slice body, const struct hd_member *members, size_t count)
{
    struct hd_member_reader reader = hd_member_reader(body);
    struct hd_slice name, raw;

    for (size_t i = 0; i < count; i++)
        *members[i].raw = hd_slice(NULL, 0);
    while (hd_member_next(&reader, &name, &raw))
        set_member(name, raw, members, count);
    return reader.err;
}

int hd_record_text(struct hd_slice raw, struct hd_arena *arena, struct hd_slice *out)
{
    struct hd_json json = {NULL};
    int err;

    *out = hd_slice("", 0);
    if (raw.len == 0)
        return 0;
    if (raw.len < 2 || raw.ptr[0] != '"')
        return HD_ECORRUPT;
    if (!memchr(raw.ptr, '\\', raw.len)) {
        *out = hd_slice(raw.ptr + 1, raw.len - 2);
        return 0;
    }
    err = hd_json_parse(&json, raw, NULL);
    if (!err)
        err = hd_arena_copy(arena, hd_json_string(hd_json_root(&json)), out);
    hd_json_fini(&json);
    return err == HD_EINVAL ? HD_ECORRUPT : err;
}

int hd_record_int(struct hd_slice raw, int64_t *out)
{
    bool is_negative = raw.len > 0 && raw.ptr[0] == '-';
    uint64_t number = 0;

    if (raw.len > 20)
        return HD_ECORRUPT;
    for (size_t i = is_negative; i < raw.len; i++) {
        unsigned digit = (unsigned)(raw.ptr[i] - '0');

        if (digit > 9 || number > (uint64_t)INT64_MAX / 10)
            return HD_ECORRUPT;
        number = number * 10 + digit;
    }
    if (number > INT64_MAX)
        return HD_ECORRUPT;
    *out = is_negative ? -(int64_t)number : (int64_t)number;
    return 0;
}
