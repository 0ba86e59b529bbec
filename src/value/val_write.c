/* Writes values as text: canonical, and as clients see them. */
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/codec/canon.h"
#include "value/val.h"
#include "value/val_internal.h"

/* ---- floats ----------------------------------------------------------- */

/*
 * Formats as d.ddde±x with the fewest digits that parse to the same double. The locale may have
 * another decimal point: printf() and strtod() agree on it, and later steps skip it.
 */
static void shortest(double value, char *out, size_t size)
{
    /* For normal numbers, 15 digits without trailing zeros are shortest if they suffice. */
    int digits = fabs(value) < DBL_MIN ? 1 : 15;

    do {
        (void)snprintf(out, size, "%.*e", digits - 1, value);
    } while (strtod(out, NULL) != value && ++digits <= 17);
}

/* Copies the digits, without point and trailing zeros; returns the exponent of the first digit. */
static int take_apart(const char *text, char digits[24], size_t *count)
{
    const char *mark = strchr(text, 'e');
    size_t n = 0;

    for (; text < mark; text++) {
        if (*text >= '0' && *text <= '9')
            digits[n++] = *text;
    }
    while (n > 1 && digits[n - 1] == '0')
        n--;
    *count = n;
    return (int)strtol(mark + 1, NULL, 10);
}

static size_t put_scientific(char *out, const char *digits, size_t count, int exponent)
{
    size_t len = 0;

    out[len++] = digits[0];
    if (count > 1) {
        out[len++] = '.';
        memcpy(out + len, digits + 1, count - 1);
        len += count - 1;
    }
    return len + (size_t)snprintf(out + len, 8, "e%+03d", exponent);
}

static size_t put_fixed(char *out, const char *digits, size_t count, int exponent)
{
    size_t len = 0, i = 0;

    for (int place = exponent < 0 ? 0 : exponent; place >= 0; place--)
        out[len++] = (char)(exponent >= 0 && i < count ? digits[i++] : '0');
    out[len++] = '.';
    for (int place = -1; place > exponent; place--)
        out[len++] = '0';
    if (i == count)
        out[len++] = '0';
    while (i < count)
        out[len++] = digits[i++];
    return len;
}

/* The format of Python's repr(): with an exponent if it is below -4 or above 15. */
struct hd_slice hd_val_format_double(double value, char out[HD_VAL_FLOAT_SIZE])
{
    char text[HD_VAL_FLOAT_SIZE], digits[24];
    size_t count, len = 0;
    int exponent;

    shortest(fabs(value), text, sizeof(text));
    exponent = take_apart(text, digits, &count);
    if (signbit(value))
        out[len++] = '-';
    if (exponent < -4 || exponent > 15)
        len += put_scientific(out + len, digits, count, exponent);
    else
        len += put_fixed(out + len, digits, count, exponent);
    return hd_slice(out, len);
}

/* ---- canonical -------------------------------------------------------- */

static void put_key(struct hd_jw *jw, const char *key)
{
    hd_jw_key(jw, hd_slice_cstr(key));
}

static void open_record(struct hd_jw *jw, struct hd_slice kind)
{
    hd_jw_object(jw);
    put_key(jw, "$");
    hd_jw_string(jw, kind);
}

static void put_v_record(struct hd_jw *jw, const char *kind, const char *v)
{
    open_record(jw, hd_slice_cstr(kind));
    put_key(jw, "v");
    hd_jw_string(jw, hd_slice_cstr(v));
    hd_jw_object_end(jw);
}

static bool has_text(const struct hd_val_number *number)
{
    return number->text_len > 0;
}

static void put_integer(struct hd_jw *jw, const struct hd_val_number *number)
{
    int64_t value = number->as.integer;
    char digits[24];

    if (has_text(number)) {
        hd_jw_raw(jw, hd_slice(number->text, number->text_len));
    } else if (value >= -HD_VAL_SAFE_INT && value <= HD_VAL_SAFE_INT) {
        hd_jw_int(jw, value);
    } else {
        (void)snprintf(digits, sizeof(digits), "%" PRId64, value);
        put_v_record(jw, "int", digits);
    }
}

/* The name of NaN, an infinity or -0, which canonical text has as records; else NULL. */
static const char *odd_float(double value)
{
    if (isnan(value))
        return "nan";
    if (isinf(value))
        return value < 0 ? "-inf" : "inf";
    return value == 0 && signbit(value) ? "-0" : NULL;
}

static void put_float(struct hd_jw *jw, const struct hd_val_number *number)
{
    const char *odd = odd_float(number->as.real);
    char text[HD_VAL_FLOAT_SIZE];

    if (has_text(number))
        hd_jw_raw(jw, hd_slice(number->text, number->text_len));
    else if (odd)
        put_v_record(jw, "float", odd);
    else
        hd_jw_raw(jw, hd_val_format_double(number->as.real, text));
}

static void put_list(struct hd_jw *jw, const struct hd_val *list,
                     void (*put)(struct hd_jw *, const struct hd_val *))
{
    size_t count = hd_val_count(list);

    hd_jw_array(jw);
    for (size_t i = 0; !jw->err && i < count; i++)
        put(jw, hd_val_at(list, i));
    hd_jw_array_end(jw);
}

static void put_members(struct hd_jw *jw, const struct hd_val *object)
{
    size_t count = hd_val_count(object);

    for (size_t i = 0; !jw->err && i < count; i++) {
        struct hd_val *key, *val = hd_val_member(object, i, &key);

        hd_jw_key(jw, hd_val_get_string(key));
        hd_val_put(jw, val);
    }
}

/* Writes an object that has a key `$`. */
static void put_map(struct hd_jw *jw, const struct hd_val *object)
{
    size_t count = hd_val_count(object);

    open_record(jw, HD_S("map"));
    put_key(jw, "items");
    hd_jw_array(jw);
    for (size_t i = 0; !jw->err && i < count; i++) {
        struct hd_val *key, *val = hd_val_member(object, i, &key);

        hd_jw_array(jw);
        hd_jw_string(jw, hd_val_get_string(key));
        hd_val_put(jw, val);
        hd_jw_array_end(jw);
    }
    hd_jw_array_end(jw);
    hd_jw_object_end(jw);
}

static void put_object(struct hd_jw *jw, const struct hd_val *object)
{
    if (hd_val_kind(object) != HD_KIND_NONE) {
        open_record(jw, hd_val_kind_name(object));
    } else if (hd_val_get(object, HD_S("$"))) {
        put_map(jw, object);
        return;
    } else {
        hd_jw_object(jw);
    }
    put_members(jw, object);
    hd_jw_object_end(jw);
}

void hd_val_put(struct hd_jw *jw, const struct hd_val *val)
{
    switch (hd_val_type(val)) {
    case HD_VAL_NULL:
        hd_jw_null(jw);
        break;
    case HD_VAL_BOOL:
        hd_jw_bool(jw, hd_val_is_true(val));
        break;
    case HD_VAL_INT:
        put_integer(jw, (const struct hd_val_number *)val);
        break;
    case HD_VAL_FLOAT:
        put_float(jw, (const struct hd_val_number *)val);
        break;
    case HD_VAL_STRING:
        hd_jw_string(jw, hd_val_get_string(val));
        break;
    case HD_VAL_LIST:
        put_list(jw, val, hd_val_put);
        break;
    case HD_VAL_OBJECT:
        put_object(jw, val);
        break;
    }
}

/* ---- rendering for clients -------------------------------------------- */

/* The store renders each kind from canonical text. */
static int render_record(struct hd_jw *jw, const struct hd_val *record)
{
    struct hd_json json;
    struct hd_buf text;
    int err;

    hd_buf_init(&text, SIZE_MAX / 2);
    err = hd_val_write(&text, record);
    if (!err)
        err = hd_json_parse(&json, hd_buf_slice(&text), NULL);
    hd_buf_fini(&text);
    if (err)
        return err;
    hd_canon_render_val(jw, hd_json_root(&json));
    hd_json_fini(&json);
    return 0;
}

static void render_float(struct hd_jw *jw, const struct hd_val_number *number)
{
    const char *odd = odd_float(number->as.real);
    char text[HD_VAL_FLOAT_SIZE];

    if (has_text(number))
        hd_jw_raw(jw, hd_slice(number->text, number->text_len));
    else if (odd && number->as.real != 0)
        hd_jw_null(jw);
    else
        hd_jw_raw(jw, hd_val_format_double(number->as.real, text));
}

static void render_integer(struct hd_jw *jw, const struct hd_val_number *number)
{
    if (has_text(number))
        hd_jw_raw(jw, hd_slice(number->text, number->text_len));
    else
        hd_jw_int(jw, number->as.integer);
}

/* Most rendered values are messages; this renders them without canonical text. */
static bool render_message(struct hd_jw *jw, const struct hd_val *message)
{
    size_t count;
    const struct hd_canon_view *views =
        hd_canon_views(hd_val_get_string(hd_val_get(message, HD_S("type"))), &count);

    if (!views)
        return false;
    hd_jw_object(jw);
    for (size_t i = 0; i < count; i++) {
        const struct hd_val *val = hd_val_get(message, views[i].name);

        hd_jw_key(jw, views[i].name);
        if (val)
            hd_val_put_rendered(jw, val);
        else
            hd_jw_raw(jw, views[i].fallback);
    }
    hd_jw_object_end(jw);
    return true;
}

/* Omits undefined members, like JavaScript. */
static void render_members(struct hd_jw *jw, const struct hd_val *object)
{
    size_t count = hd_val_count(object);

    for (size_t i = 0; !jw->err && i < count; i++) {
        struct hd_val *key, *val = hd_val_member(object, i, &key);

        if (hd_val_kind(val) == HD_KIND_UNDEFINED)
            continue;
        hd_jw_key(jw, hd_val_get_string(key));
        hd_val_put_rendered(jw, val);
    }
}

static void render_object(struct hd_jw *jw, const struct hd_val *object)
{
    int err;

    if (hd_val_kind(object) == HD_KIND_NONE) {
        hd_jw_object(jw);
        render_members(jw, object);
        hd_jw_object_end(jw);
        return;
    }
    if (hd_val_kind(object) == HD_KIND_MESSAGE && render_message(jw, object))
        return;
    err = jw->err ? 0 : render_record(jw, object);
    if (err)
        jw->err = err;
}

void hd_val_put_rendered(struct hd_jw *jw, const struct hd_val *val)
{
    switch (hd_val_type(val)) {
    case HD_VAL_INT:
        render_integer(jw, (const struct hd_val_number *)val);
        break;
    case HD_VAL_FLOAT:
        render_float(jw, (const struct hd_val_number *)val);
        break;
    case HD_VAL_LIST:
        put_list(jw, val, hd_val_put_rendered);
        break;
    case HD_VAL_OBJECT:
        render_object(jw, val);
        break;
    default:
        hd_val_put(jw, val);
        break;
    }
}

/* ---- into buffers ----------------------------------------------------- */

static int into_buffer(struct hd_buf *out, const struct hd_val *val,
                       void (*put)(struct hd_jw *, const struct hd_val *))
{
    size_t before = out->len;
    struct hd_jw jw;
    int err;

    hd_jw_init(&jw, out);
    put(&jw, val);
    err = hd_jw_finish(&jw);
    if (err)
        out->len = before;
    return err;
}

int hd_val_write(struct hd_buf *out, const struct hd_val *val)
{
    return into_buffer(out, val, hd_val_put);
}

int hd_val_render(struct hd_buf *out, const struct hd_val *val)
{
    return into_buffer(out, val, hd_val_put_rendered);
}

int hd_val_write_text(struct hd_buf *out, const struct hd_val *val)
{
    if (hd_val_is_string(val))
        return hd_buf_append_slice(out, hd_val_get_string(val));
    return hd_val_render(out, val);
}
