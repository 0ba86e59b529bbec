#include "base/json.h"

#include <assert.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/utf8.h"

#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

#define ONES UINT64_C(0x0101010101010101)
#define HIGHS UINT64_C(0x8080808080808080)

/* Not 0 when one of the 8 bytes is a control, '"', '\\' or not ASCII. */
static uint64_t any_special(uint64_t eight)
{
    uint64_t quote = eight ^ (ONES * '"'), backslash = eight ^ (ONES * '\\');

    return (eight | (eight - ONES * 0x20) | (quote - ONES) | (backslash - ONES)) & HIGHS;
}

static bool is_plain_byte(char c)
{
    return (unsigned char)c >= 0x20 && (unsigned char)c < 0x80 && c != '"' && c != '\\';
}

/* The end of the bytes that can be copied unchanged. */
static const char *skip_plain(const char *pos, const char *end)
{
    const char *begin = pos;
    uint64_t eight;

    for (;;) {
        for (; end - pos >= 8; pos += 8) {
            memcpy(&eight, pos, sizeof(eight));
            if (any_special(eight))
                break;
        }
        /* the rest, with some bytes that were checked already */
        if (end - pos < 8 && end - begin >= 8) {
            memcpy(&eight, end - 8, sizeof(eight));
            if (!any_special(eight))
                return end;
        }
        while (pos < end && is_plain_byte(*pos))
            pos++;
        size_t len = pos < end && (unsigned char)*pos >= 0x80 ? hd_utf8_char(pos, end) : 0;
        if (len == 0)
            return pos;
        pos += len;
    }
}

static int write_escape(struct hd_buf *out, unsigned char c)
{
    static const char digits[] = "0123456789abcdef";
    static const char *const short_forms[] = {
        ['\b'] = "\\b", ['\t'] = "\\t", ['\n'] = "\\n",  ['\f'] = "\\f",
        ['\r'] = "\\r", ['"'] = "\\\"", ['\\'] = "\\\\",
    };
    char long_form[] = "\\u0000";

    if (c >= 0x80)
        return hd_buf_append(out, REPLACEMENT, 3);
    if (c < HD_COUNT(short_forms) && short_forms[c])
        return hd_buf_append(out, short_forms[c], 2);
    long_form[4] = digits[c >> 4];
    long_form[5] = digits[c & 15];
    return hd_buf_append(out, long_form, 6);
}

/* On failure a part of the string may remain in the buffer; callers remove it. */
static int write_quoted(struct hd_buf *out, struct hd_slice s)
{
    const char *pos = s.ptr ? s.ptr : "", *end = pos + s.len, *stop;
    int err = hd_buf_reserve(out, s.len + 2); /* usually sufficient */

    if (!err)
        err = hd_buf_append_byte(out, '"');
    while (!err && pos < end) {
        stop = skip_plain(pos, end);
        err = hd_buf_append(out, pos, (size_t)(stop - pos));
        if (!err && stop < end)
            err = write_escape(out, (unsigned char)*stop++);
        pos = stop;
    }
    return err ? err : hd_buf_append_byte(out, '"');
}

int hd_json_write_string(struct hd_buf *out, struct hd_slice s)
{
    size_t before = out->len;
    int err;

    err = write_quoted(out, s);
    if (err)
        out->len = before;
    return err;
}

static int write_val(struct hd_buf *out, hd_json_val val, int depth);

static int write_container(struct hd_buf *out, hd_json_val val, int depth)
{
    struct hd_json_iter it = hd_json_iter(val);
    bool is_first = true;
    int err;

    if (depth >= HD_JSON_MAX_DEPTH)
        return HD_ELIMIT;
    err = hd_buf_append_byte(out, it.is_object ? '{' : '[');
    while (!err && hd_json_next(&it)) {
        if (!is_first)
            err = hd_buf_append_byte(out, ',');
        is_first = false;
        if (!err && it.is_object)
            err = write_quoted(out, it.key);
        if (!err && it.is_object)
            err = hd_buf_append_byte(out, ':');
        if (!err)
            err = write_val(out, it.val, depth + 1);
    }
    return err ? err : hd_buf_append_byte(out, it.is_object ? '}' : ']');
}

static int write_val(struct hd_buf *out, hd_json_val val, int depth)
{
    switch (hd_json_type(val)) {
    case HD_JSON_NULL:
        return hd_buf_append_slice(out, HD_S("null"));
    case HD_JSON_BOOL:
        return hd_buf_append_slice(out, hd_json_is_true(val) ? HD_S("true") : HD_S("false"));
    case HD_JSON_NUMBER:
        return hd_buf_append_slice(out, hd_json_number_text(val));
    case HD_JSON_STRING:
        return write_quoted(out, hd_json_string(val));
    case HD_JSON_ARRAY:
    case HD_JSON_OBJECT:
        return write_container(out, val, depth);
    case HD_JSON_NONE:
        break;
    }
    return HD_EINVAL;
}

int hd_json_write_val(struct hd_buf *out, hd_json_val val)
{
    size_t before = out->len;
    int err;

    err = write_val(out, val, 0);
    if (err)
        out->len = before;
    return err;
}

void hd_jw_init(struct hd_jw *jw, struct hd_buf *out)
{
    *jw = (struct hd_jw){.out = out};
}

static void jw_append(struct hd_jw *jw, struct hd_slice s)
{
    if (!jw->err)
        jw->err = hd_buf_append_slice(jw->out, s);
}

/* Precedes every key, and every value that does not follow a key. */
static void separate(struct hd_jw *jw)
{
    if (jw->needs_comma)
        jw_append(jw, HD_S(","));
    jw->needs_comma = true;
}

static void jw_begin(struct hd_jw *jw, struct hd_slice bracket)
{
    separate(jw);
    if (!jw->err && jw->depth == HD_JSON_MAX_DEPTH)
        jw->err = HD_ELIMIT;
    jw_append(jw, bracket);
    jw->depth++;
    jw->needs_comma = false;
}

static void jw_end(struct hd_jw *jw, struct hd_slice bracket)
{
    assert(jw->depth > 0);
    jw_append(jw, bracket);
    jw->depth--;
    jw->needs_comma = true;
}

void hd_jw_object(struct hd_jw *jw)
{
    jw_begin(jw, HD_S("{"));
}

void hd_jw_object_end(struct hd_jw *jw)
{
    jw_end(jw, HD_S("}"));
}

void hd_jw_array(struct hd_jw *jw)
{
    jw_begin(jw, HD_S("["));
}

void hd_jw_array_end(struct hd_jw *jw)
{
    jw_end(jw, HD_S("]"));
}

void hd_jw_key(struct hd_jw *jw, struct hd_slice key)
{
    hd_jw_string(jw, key);
    jw_append(jw, HD_S(":"));
    jw->needs_comma = false;
}

void hd_jw_string(struct hd_jw *jw, struct hd_slice s)
{
    separate(jw);
    if (!jw->err)
        jw->err = write_quoted(jw->out, s);
}

void hd_jw_int(struct hd_jw *jw, int64_t value)
{
    separate(jw);
    if (!jw->err)
        jw->err = hd_buf_append_int(jw->out, value);
}

void hd_jw_bool(struct hd_jw *jw, bool value)
{
    separate(jw);
    jw_append(jw, value ? HD_S("true") : HD_S("false"));
}

void hd_jw_null(struct hd_jw *jw)
{
    separate(jw);
    jw_append(jw, HD_S("null"));
}

void hd_jw_val(struct hd_jw *jw, hd_json_val val)
{
    separate(jw);
    if (!jw->err)
        jw->err = write_val(jw->out, val, jw->depth);
}

void hd_jw_raw(struct hd_jw *jw, struct hd_slice text)
{
    separate(jw);
    jw_append(jw, text);
}

void hd_jw_raw_or(struct hd_jw *jw, struct hd_slice text, const char *otherwise)
{
    hd_jw_raw(jw, text.len > 0 ? text : hd_slice_cstr(otherwise));
}

void hd_jw_timestamp(struct hd_jw *jw, int64_t us)
{
    char text[33];

    hd_clock_format_iso(us, text);
    hd_jw_string(jw, hd_slice_cstr(text));
}

void hd_jw_put_string_or_null(struct hd_jw *jw, const char *key, struct hd_slice s)
{
    hd_jw_key(jw, hd_slice_cstr(key));
    if (s.len > 0)
        hd_jw_string(jw, s);
    else
        hd_jw_null(jw);
}

int hd_jw_finish(struct hd_jw *jw)
{
    assert(jw->err || jw->depth == 0);
    return jw->err;
}

int hd_jw_finish_in(struct hd_jw *jw, struct hd_arena *arena, struct hd_slice *out)
{
    int err = hd_jw_finish(jw);

    if (!err)
        err = hd_arena_copy(arena, hd_buf_slice(jw->out), out);
    hd_buf_fini(jw->out);
    return err;
}
