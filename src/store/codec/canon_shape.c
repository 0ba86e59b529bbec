/* The permitted values of members of records: one predicate for each shape. */
#include "store/codec/canon_internal.h"

#include <string.h>

static bool is_any(hd_json_val val)
{
    return val != NULL;
}

static bool is_string(hd_json_val val)
{
    return hd_json_is_string(val) || hd_canon_is_kind(val, "utf16");
}

static bool is_string_or_null(hd_json_val val)
{
    return hd_json_is_null(val) || is_string(val);
}

static bool is_object(hd_json_val val)
{
    return hd_json_is_object(val) && (!hd_canon_kind_of(val) || hd_canon_is_kind(val, "map"));
}

static bool is_object_or_null(hd_json_val val)
{
    return hd_json_is_null(val) || is_object(val);
}

static bool shape_is_list(hd_json_val val)
{
    return hd_json_is_array(val);
}

/* A list whose elements all satisfy `fits`. */
static bool is_list_of(hd_json_val val, bool (*fits)(hd_json_val))
{
    struct hd_json_iter it;

    if (!hd_json_is_array(val))
        return false;
    it = hd_json_iter(val);
    while (hd_json_next(&it))
        if (!fits(it.val))
            return false;
    return true;
}

static bool is_objects(hd_json_val val)
{
    return is_list_of(val, is_object);
}

static bool is_pair(hd_json_val val)
{
    return hd_json_is_array(val) && hd_json_size(val) == 2;
}

static bool is_pairs(hd_json_val val)
{
    return is_list_of(val, is_pair);
}

static bool is_block(hd_json_val val)
{
    return is_string(val) || is_object(val);
}

static bool is_content(hd_json_val val)
{
    return is_string(val) || is_list_of(val, is_block);
}

static bool is_tool_call(hd_json_val val)
{
    hd_json_val id = hd_json_get(val, HD_S("id"));

    if (hd_canon_is_kind(val, "map")) /* it has a key `$` */
        return true;
    return hd_json_is_object(val) && is_string(hd_json_get(val, HD_S("name"))) &&
           is_object(hd_json_get(val, HD_S("args"))) && (!id || is_string_or_null(id));
}

static bool is_tool_calls(hd_json_val val)
{
    return is_list_of(val, is_tool_call);
}

static bool is_target(hd_json_val val)
{
    return is_string(val) || hd_canon_is_kind(val, "send");
}

static bool is_targets(hd_json_val val)
{
    return is_list_of(val, is_target);
}

static bool is_timeout(hd_json_val val)
{
    struct hd_json_iter it;

    if (!is_object(val))
        return false;
    it = hd_json_iter(val);
    while (hd_json_next(&it)) {
        bool is_seconds =
            hd_slice_eq(it.key, HD_S("run_timeout")) || hd_slice_eq(it.key, HD_S("idle_timeout"));

        if (is_seconds ? !hd_json_is_number(it.val)
                       : !hd_slice_eq(it.key, HD_S("refresh_on")) || !hd_json_is_string(it.val))
            return false;
    }
    return true;
}

static bool is_status(hd_json_val val)
{
    struct hd_slice status = hd_json_string(val);

    return hd_slice_eq(status, HD_S("success")) || hd_slice_eq(status, HD_S("error"));
}

static bool is_type(hd_json_val val)
{
    return hd_json_is_string(val) && hd_canon_type_find(hd_json_string(val)) != NULL;
}

static bool shape_is_name(hd_json_val val)
{
    return hd_json_is_string(val);
}

static bool is_true(hd_json_val val)
{
    return hd_json_is_true(val);
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_digits(hd_json_val val)
{
    struct hd_slice s = hd_json_string(val);
    size_t i = s.len > 0 && s.ptr[0] == '-';
    size_t first = i;

    while (i < s.len && is_digit(s.ptr[i]))
        i++;
    return i == s.len && i > first && (s.ptr[first] != '0' || s.len == 1);
}

static bool is_float(hd_json_val val)
{
    static const char *const names[] = {"nan", "inf", "-inf", "-0"};
    size_t i;

    for (i = 0; i < HD_COUNT(names); i++)
        if (hd_slice_eq(hd_json_string(val), hd_slice_cstr(names[i])))
            return hd_json_is_string(val);
    return false;
}

static bool is_base64(hd_json_val val)
{
    size_t size;

    return hd_json_is_string(val) && hd_canon_base64_size(hd_json_string(val), &size);
}

static bool is_utf16(hd_json_val val)
{
    size_t size;

    return hd_json_is_string(val) && hd_canon_base64_size(hd_json_string(val), &size) &&
           size % 2 == 0;
}

/* Exactly `count` digits with a value from low to high, at *pos, which moves past them. */
static bool shape_read_number(struct hd_slice s, size_t *pos, size_t count, int low, int high)
{
    int value = 0;
    size_t i;

    if (s.len - *pos < count)
        return false;
    for (i = *pos; i < *pos + count; i++) {
        if (!is_digit(s.ptr[i]))
            return false;
        value = value * 10 + (s.ptr[i] - '0');
    }
    *pos = i;
    return value >= low && value <= high;
}

static bool read_char(struct hd_slice s, size_t *pos, char c)
{
    if (*pos == s.len || s.ptr[*pos] != c)
        return false;
    ++*pos;
    return true;
}

/* ".5", or empty. */
static bool read_fraction(struct hd_slice s, size_t *pos)
{
    size_t first = *pos + 1;

    if (!read_char(s, pos, '.'))
        return true;
    while (*pos < s.len && is_digit(s.ptr[*pos]))
        ++*pos;
    return *pos > first;
}

/* "2026-01-31"; a year of six digits has a sign, as in JavaScript. */
static bool read_date(struct hd_slice s, size_t *pos)
{
    bool is_long = read_char(s, pos, '+') || read_char(s, pos, '-');

    return shape_read_number(s, pos, is_long ? 6 : 4, 0, 999999) && read_char(s, pos, '-') &&
           shape_read_number(s, pos, 2, 1, 12) && read_char(s, pos, '-') &&
           shape_read_number(s, pos, 2, 1, 31);
}

static bool read_hour_minute(struct hd_slice s, size_t *pos)
{
    return shape_read_number(s, pos, 2, 0, 23) && read_char(s, pos, ':') &&
           shape_read_number(s, pos, 2, 0, 59);
}

static bool read_seconds(struct hd_slice s, size_t *pos)
{
    return read_char(s, pos, ':') && shape_read_number(s, pos, 2, 0, 59) && read_fraction(s, pos);
}

/* "Z", "+01:00", or Python's "+00:19:32.130000"; or empty. */
static bool read_offset(struct hd_slice s, size_t *pos)
{
    if (*pos == s.len || read_char(s, pos, 'Z'))
        return true;
    if (!read_char(s, pos, '+') && !read_char(s, pos, '-'))
        return false;
    return read_hour_minute(s, pos) && (*pos == s.len || read_seconds(s, pos));
}

static bool is_datetime(hd_json_val val)
{
    struct hd_slice s = hd_json_string(val);
    size_t pos = 0;

    return read_date(s, &pos) && read_char(s, &pos, 'T') && read_hour_minute(s, &pos) &&
           read_seconds(s, &pos) && read_offset(s, &pos) && pos == s.len;
}

static const struct {
    bool (*fits)(hd_json_val val);
    const char *name;
} shapes[HD_SHAPE_COUNT] = {
    [HD_SHAPE_ANY] = {is_any, "a value"},
    [HD_SHAPE_STRING] = {is_string, "a string"},
    [HD_SHAPE_STRING_OR_NULL] = {is_string_or_null, "a string or null"},
    [HD_SHAPE_OBJECT] = {is_object, "an object"},
    [HD_SHAPE_OBJECT_OR_NULL] = {is_object_or_null, "an object or null"},
    [HD_SHAPE_LIST] = {shape_is_list, "an array"},
    [HD_SHAPE_OBJECTS] = {is_objects, "an array of objects"},
    [HD_SHAPE_PAIRS] = {is_pairs, "an array of pairs"},
    [HD_SHAPE_CONTENT] = {is_content, "a string or an array of strings and objects"},
    [HD_SHAPE_TOOL_CALLS] = {is_tool_calls, "an array of objects with name, args and id"},
    [HD_SHAPE_TARGETS] = {is_targets, "an array of strings and send records"},
    [HD_SHAPE_TIMEOUT] = {is_timeout, "an object with run_timeout, idle_timeout, refresh_on"},
    [HD_SHAPE_STATUS] = {is_status, "\"success\" or \"error\""},
    [HD_SHAPE_TYPE] = {is_type, "a type of message"},
    [HD_SHAPE_NAME] = {shape_is_name, "a string"},
    [HD_SHAPE_TRUE] = {is_true, "true"},
    [HD_SHAPE_DIGITS] = {is_digits, "a string of digits"},
    [HD_SHAPE_FLOAT] = {is_float, "\"nan\", \"inf\", \"-inf\" or \"-0\""},
    [HD_SHAPE_BASE64] = {is_base64, "base64 text"},
    [HD_SHAPE_UTF16] = {is_utf16, "base64 text of UTF-16"},
    [HD_SHAPE_DATETIME] = {is_datetime, "an ISO 8601 date and time"},
};

bool hd_canon_fits(enum hd_canon_shape shape, hd_json_val val)
{
    return shapes[shape].fits(val);
}

const char *hd_canon_shape_name(enum hd_canon_shape shape)
{
    return shapes[shape].name;
}

static const char base64_digits[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* The value of a base64 digit, or -1. */
static int base64_digit(char c)
{
    const char *found = c ? strchr(base64_digits, c) : NULL;

    return found ? (int)(found - base64_digits) : -1;
}

int hd_canon_base64(struct hd_buf *out, struct hd_slice bytes)
{
    const unsigned char *in = (const unsigned char *)bytes.ptr;
    size_t before = out->len;
    int err = 0;

    for (size_t i = 0; i < bytes.len && !err; i += 3) {
        size_t left = bytes.len - i;
        unsigned bits = (unsigned)in[i] << 16 | (left > 1 ? (unsigned)in[i + 1] << 8 : 0) |
                        (left > 2 ? (unsigned)in[i + 2] : 0);
        char text[4] = {base64_digits[bits >> 18], base64_digits[bits >> 12 & 63],
                        left > 1 ? base64_digits[bits >> 6 & 63] : '=',
                        left > 2 ? base64_digits[bits & 63] : '='};

        err = hd_buf_append(out, text, sizeof(text));
    }
    if (err)
        out->len = before;
    return err;
}

bool hd_canon_base64_size(struct hd_slice text, size_t *size)
{
    size_t digits = text.len;
    size_t i;

    while (digits > 0 && text.len - digits < 2 && text.ptr[digits - 1] == '=')
        digits--;
    if (text.len % 4 != 0)
        return false;
    for (i = 0; i < digits; i++)
        if (base64_digit(text.ptr[i]) < 0)
            return false;
    *size = text.len / 4 * 3 - (text.len - digits);
    return true;
}

void hd_canon_base64_decode(struct hd_slice text, unsigned char *out)
{
    unsigned bits = 0;
    unsigned held = 0; /* number of bits not written yet */
    size_t i;

    for (i = 0; i < text.len && text.ptr[i] != '='; i++) {
        bits = (bits << 6 | (unsigned)base64_digit(text.ptr[i])) & 0xffff;
        held += 6;
        if (held >= 8) {
            held -= 8;
            *out++ = (unsigned char)(bits >> held);
        }
    }
}
