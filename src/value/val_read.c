/*
 * Parses values from JSON text, canonical or plain. base/json.h limits the depth of documents, and
 * so the recursion here.
 */
#include <math.h>
#include <string.h>

#include "store/codec/canon.h"
#include "value/val.h"
#include "value/val_internal.h"

#define KEY_SLOTS 32 /* a power of two */

/* A list of messages repeats the same few keys: each is created once per document. */
struct val_reading {
    struct hd_val *keys[KEY_SLOTS];
    bool is_canonical;
    struct heddle_error *fault;
};

static void reading_fini(struct val_reading *r)
{
    for (size_t i = 0; i < KEY_SLOTS; i++)
        hd_val_unref(r->keys[i]);
}

/* Returns a reference to the key as a value, or NULL. */
static struct hd_val *read_key(struct val_reading *r, struct hd_slice key)
{
    unsigned hash = (unsigned)key.len * 31 + (key.len ? (unsigned char)key.ptr[0] : 0) * 7 +
                    (key.len ? (unsigned char)key.ptr[key.len - 1] : 0);
    struct hd_val **slot = &r->keys[hash & (KEY_SLOTS - 1)];

    if (!*slot || !hd_slice_eq(hd_val_get_string(*slot), key)) {
        hd_val_unref(*slot);
        *slot = hd_val_string(key);
    }
    return hd_val_ref(*slot);
}

static int read_value(struct val_reading *r, hd_json_val json, struct hd_val **out);

/* ---- numbers ---------------------------------------------------------- */

static struct hd_val *big_integer(struct hd_slice digits)
{
    return hd_val_with(hd_val_record(HD_KIND_INT), HD_S("v"), hd_val_string(digits));
}

static struct hd_val *read_integer(const struct val_reading *r, hd_json_val json)
{
    struct hd_slice text = hd_json_number_text(json);
    int64_t value;

    if (!hd_json_int(json, &value))
        return big_integer(text);
    /* 0 is the only integer with two texts. */
    if (r->is_canonical && hd_slice_eq(text, HD_S("-0")))
        return hd_val_int_as(0, text);
    return hd_val_int(value);
}

static struct hd_val *read_float(const struct val_reading *r, hd_json_val json)
{
    struct hd_slice text = hd_json_number_text(json);
    double value;

    if (!hd_json_double(json, &value) || !isfinite(value))
        return hd_val_float(text.ptr[0] == '-' ? -(double)INFINITY : (double)INFINITY);
    if (value == 0 && signbit(value) && !r->is_canonical)
        return hd_val_float(value);
    return hd_val_float_as(value, text);
}

static struct hd_val *read_number_val(const struct val_reading *r, hd_json_val json)
{
    struct hd_slice text = hd_json_number_text(json);

    if (memchr(text.ptr, '.', text.len) || memchr(text.ptr, 'e', text.len) ||
        memchr(text.ptr, 'E', text.len))
        return read_float(r, json);
    return read_integer(r, json);
}

/* ---- records of plain values ------------------------------------------ */

/* Small integers stay records, so that a bigint of JavaScript remains one. */
static struct hd_val *read_int_record(hd_json_val v)
{
    struct hd_slice digits = hd_json_string(v);
    bool is_negative = digits.len > 0 && digits.ptr[0] == '-';
    uint64_t limit = (uint64_t)INT64_MAX + is_negative, value = 0;

    for (size_t i = is_negative; i < digits.len; i++) {
        unsigned digit = (unsigned)(digits.ptr[i] - '0');

        if (value > (limit - digit) / 10)
            return big_integer(digits);
        value = value * 10 + digit;
    }
    if (value <= (uint64_t)HD_VAL_SAFE_INT)
        return big_integer(digits);
    return hd_val_int(is_negative ? (int64_t)(0 - value) : (int64_t)value);
}

static struct hd_val *read_float_record(hd_json_val v)
{
    struct hd_slice name = hd_json_string(v);

    if (hd_slice_eq(name, HD_S("nan")))
        return hd_val_float((double)NAN);
    if (hd_slice_eq(name, HD_S("inf")))
        return hd_val_float((double)INFINITY);
    return hd_val_float(hd_slice_eq(name, HD_S("-0")) ? -0.0 : -(double)INFINITY);
}

/* True for a map that hd_val_write() writes as the same map again if it is read as an object. */
static bool stands_for_object(hd_json_val record)
{
    struct hd_json_iter it = hd_json_iter(hd_json_get(record, HD_S("items")));
    bool has_dollar = false;

    if (hd_json_size(record) != 2) /* `$` and `items` */
        return false;
    while (hd_json_next(&it)) {
        struct hd_json_iter pair = hd_json_iter(it.val);

        if (!hd_json_next(&pair) || !hd_json_is_string(pair.val))
            return false;
        has_dollar |= hd_slice_eq(hd_json_string(pair.val), HD_S("$"));
    }
    return has_dollar;
}

static int read_pairs(struct val_reading *r, hd_json_val pairs, struct hd_val **out)
{
    struct hd_json_iter it = hd_json_iter(pairs);
    struct hd_val *object = hd_val_object(), *val;
    int err = 0;

    while (!err && hd_json_next(&it)) {
        struct hd_json_iter pair = hd_json_iter(it.val);
        struct hd_slice key;

        (void)hd_json_next(&pair);
        key = hd_json_string(pair.val);
        (void)hd_json_next(&pair);
        err = read_value(r, pair.val, &val);
        if (!err)
            object = hd_val_push(object, read_key(r, key), val);
    }
    if (!err && !object)
        err = HD_ENOMEM;
    if (err)
        hd_val_unref(object);
    else
        *out = object;
    return err;
}

/* ---- containers ------------------------------------------------------- */

static int read_list(struct val_reading *r, hd_json_val json, struct hd_val **out)
{
    struct hd_json_iter it = hd_json_iter(json);
    struct hd_val *list = hd_val_list(), *val;
    int err = 0;

    while (!err && list && hd_json_next(&it)) {
        err = read_value(r, it.val, &val);
        if (!err)
            list = hd_val_append(list, val);
    }
    if (!err && !list)
        err = HD_ENOMEM;
    if (err)
        hd_val_unref(list);
    else
        *out = list;
    return err;
}

static int refuse_twice(struct hd_slice name, struct heddle_error *fault)
{
    return hd_error_set(fault, HD_EINVAL, "the name \"%.*s\" occurs twice in an object",
                        (int)(name.len < 100 ? name.len : 100), name.ptr);
}

/* Takes `object` and adds the members after the first `skip`. */
static int read_members(struct val_reading *r, hd_json_val json, size_t skip, struct hd_val *object,
                        struct hd_val **out)
{
    struct hd_json_iter it = hd_json_iter(json);
    struct hd_val *val;
    int err = 0;

    while (!err && object && hd_json_next(&it)) {
        if (skip > 0) {
            skip--;
            continue;
        }
        if (!r->is_canonical && hd_val_get(object, it.key))
            err = refuse_twice(it.key, r->fault);
        if (!err)
            err = read_value(r, it.val, &val);
        if (!err)
            object = hd_val_push(object, read_key(r, it.key), val);
    }
    if (!err && !object)
        err = HD_ENOMEM;
    if (err)
        hd_val_unref(object);
    else
        *out = object;
    return err;
}

static int read_record(struct val_reading *r, hd_json_val json, struct hd_slice name,
                       struct hd_val **out)
{
    enum hd_val_kind kind = hd_val_kind_find(name);
    struct hd_val *made;

    if (hd_slice_eq(name, HD_S("float")))
        made = read_float_record(hd_json_get(json, HD_S("v")));
    else if (kind == HD_KIND_INT)
        made = read_int_record(hd_json_get(json, HD_S("v")));
    else if (kind == HD_KIND_MAP && stands_for_object(json))
        return read_pairs(r, hd_json_get(json, HD_S("items")), out);
    else if (kind == HD_KIND_UNKNOWN)
        return read_members(r, json, 1, hd_val_unknown(hd_val_string(name)), out);
    else
        return read_members(r, json, 1, hd_val_record(kind), out);
    if (made)
        *out = made;
    return made ? 0 : HD_ENOMEM;
}

static int read_object_val(struct val_reading *r, hd_json_val json, struct hd_val **out)
{
    struct hd_json_iter it = hd_json_iter(json);

    if (r->is_canonical && hd_json_next(&it) && hd_slice_eq(it.key, HD_S("$")))
        return read_record(r, json, hd_json_string(it.val), out);
    return read_members(r, json, 0, hd_val_object(), out);
}

static int read_value(struct val_reading *r, hd_json_val json, struct hd_val **out)
{
    struct hd_val *made = NULL;

    switch (hd_json_type(json)) {
    case HD_JSON_ARRAY:
        return read_list(r, json, out);
    case HD_JSON_OBJECT:
        return read_object_val(r, json, out);
    case HD_JSON_NUMBER:
        made = read_number_val(r, json);
        break;
    case HD_JSON_STRING:
        made = hd_val_string(hd_json_string(json));
        break;
    case HD_JSON_BOOL:
        made = hd_val_bool(hd_json_is_true(json));
        break;
    case HD_JSON_NULL:
    case HD_JSON_NONE:
        made = hd_val_null();
        break;
    }
    if (made)
        *out = made;
    return made ? 0 : HD_ENOMEM;
}

/* ---- public functions ------------------------------------------------- */

static int read_document_val(hd_json_val json, bool is_canonical, struct hd_val **out,
                             struct heddle_error *fault)
{
    struct val_reading r = {.is_canonical = is_canonical, .fault = fault};
    int err = read_value(&r, json, out);

    reading_fini(&r);
    return err;
}

int hd_val_from_canon(hd_json_val json, struct hd_val **out, struct heddle_error *fault)
{
    int err = hd_canon_check(json, fault);

    return err ? err : read_document_val(json, true, out, fault);
}

int hd_val_from_json(hd_json_val json, struct hd_val **out, struct heddle_error *fault)
{
    return read_document_val(json, false, out, fault);
}

static int parse(struct hd_slice text, struct hd_val **out, struct heddle_error *fault,
                 int (*read)(hd_json_val, struct hd_val **, struct heddle_error *))
{
    struct hd_json json;
    int err = hd_json_parse(&json, text, fault);

    if (err)
        return err;
    err = read(hd_json_root(&json), out, fault);
    hd_json_fini(&json);
    return err;
}

int hd_val_parse(struct hd_slice text, struct hd_val **out, struct heddle_error *fault)
{
    return parse(text, out, fault, hd_val_from_canon);
}

int hd_val_parse_json(struct hd_slice text, struct hd_val **out, struct heddle_error *fault)
{
    return parse(text, out, fault, hd_val_from_json);
}

/* ---- messages --------------------------------------------------------- */

static int message_text(hd_json_val json, struct hd_buf *out, struct heddle_error *fault)
{
    struct hd_jw jw;
    int err;

    hd_jw_init(&jw, out);
    err = hd_canon_write_message(&jw, json, fault);
    return err ? err : hd_jw_finish(&jw);
}

/* Converts by way of the JSON that a client would send. */
int hd_val_to_message(const struct hd_val *val, struct hd_val **out, struct heddle_error *fault)
{
    struct hd_json json = {0};
    struct hd_buf plain, canonical;
    int err;

    if (hd_val_kind(val) == HD_KIND_MESSAGE) {
        *out = hd_val_ref(val);
        return 0;
    }
    hd_buf_init(&plain, SIZE_MAX / 2);
    hd_buf_init(&canonical, SIZE_MAX / 2);
    err = hd_val_render(&plain, val);
    if (!err)
        err = hd_json_parse(&json, hd_buf_slice(&plain), fault);
    if (!err)
        err = message_text(hd_json_root(&json), &canonical, fault);
    if (!err)
        err = hd_val_parse(hd_buf_slice(&canonical), out, fault);
    hd_json_fini(&json);
    hd_buf_fini(&plain);
    hd_buf_fini(&canonical);
    return err;
}
