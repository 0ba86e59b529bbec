/*
 * Renders Python's objects as a client sees them; by class if that is clearer than its arguments.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "store/codec/serde_import_internal.h"

#define MAX_PATH ((size_t)1 << 20)
#define MAX_DIMS 32
#define SECRET "**********"

enum {
    EXT_ONE = 0,    /* [module, name, argument] */
    EXT_LIST = 1,   /* [module, name, [arguments]] */
    EXT_NAMED = 2,  /* [module, name, {arguments}] */
    EXT_METHOD = 3, /* [module, name, argument, method] */
    EXT_MODEL_1 = 4,
    EXT_MODEL_2 = 5, /* [module, name, members, …]: pydantic */
    EXT_ARRAY = 6,   /* [type, shape, order, bytes] */
    EXT_DELTA = 7    /* the value itself */
};

static bool is_array(struct hd_msgpack_in *in, size_t least)
{
    struct hd_msgpack_item item = hd_msgpack_next(in);

    return !in->is_bad && item.kind == HD_PACK_ARRAY && item.count >= least;
}

static bool take_int(struct hd_msgpack_in *in, int64_t *out)
{
    struct hd_msgpack_item item = hd_msgpack_next(in);

    *out = item.integer;
    return !in->is_bad && item.kind == HD_PACK_INT && !item.is_large;
}

/* ---- one argument ----------------------------------------------------- */

/* Each reads its argument and writes; false: unexpected argument, nothing was written. */
typedef bool (*put_fn)(struct hd_msgpack_out *out, struct hd_msgpack_in *in);

static bool put_uuid(struct hd_msgpack_out *out, struct hd_msgpack_in *in)
{
    struct hd_msgpack_item item = hd_msgpack_next(in);
    const char *hex = item.bytes.ptr;
    char text[40];

    if (in->is_bad || item.kind != HD_PACK_STRING || item.bytes.len != 32)
        return false;
    (void)snprintf(text, sizeof(text), "%.8s-%.4s-%.4s-%.4s-%.12s", hex, hex + 8, hex + 12,
                   hex + 16, hex + 20);
    hd_jw_string(&out->jw, hd_slice_cstr(text));
    return true;
}

/* A number, because JSON has no other form for it. */
static bool put_decimal(struct hd_msgpack_out *out, struct hd_msgpack_in *in)
{
    struct hd_msgpack_item item = hd_msgpack_next(in);
    char text[64];
    size_t digits;

    if (in->is_bad || item.kind != HD_PACK_STRING || item.bytes.len >= sizeof(text))
        return false;
    memcpy(text, item.bytes.ptr, item.bytes.len);
    text[item.bytes.len] = '\0';
    digits = strspn(text + (text[0] == '-'), "0123456789");
    if (digits > 0 && digits + (text[0] == '-') == item.bytes.len &&
        (digits == 1 || text[text[0] == '-'] != '0'))
        hd_jw_raw(&out->jw, item.bytes);
    else if (digits > 0)
        hd_msgpack_put_double(out, strtod(text, NULL));
    else
        hd_jw_null(&out->jw);
    return true;
}

static bool put_secret(struct hd_msgpack_out *out, struct hd_msgpack_in *in)
{
    struct hd_msgpack_item item = hd_msgpack_next(in);

    hd_jw_string(&out->jw, item.bytes.len > 0 ? HD_S(SECRET) : HD_S(""));
    return true;
}

/* ---- several arguments ------------------------------------------------ */

static bool put_path(struct hd_msgpack_out *out, struct hd_msgpack_in *in)
{
    struct hd_msgpack_item list = hd_msgpack_next(in);
    struct hd_buf path;
    int err = 0;

    if (in->is_bad || list.kind != HD_PACK_ARRAY)
        return false;
    hd_buf_init(&path, MAX_PATH);
    for (uint64_t i = 0; i < list.count && !err; i++) {
        struct hd_msgpack_item part = hd_msgpack_next(in);

        if (in->is_bad)
            err = HD_EINVAL;
        if (!err && path.len > 0 && path.ptr[path.len - 1] != '/')
            err = hd_buf_append_byte(&path, '/');
        if (!err)
            err = hd_buf_append_slice(&path, part.bytes);
    }
    if (!err)
        hd_jw_string(&out->jw, path.len > 0 ? hd_buf_slice(&path) : HD_S("."));
    hd_buf_fini(&path);
    return !err;
}

/* re.compile(pattern, flags) */
static bool put_first(struct hd_msgpack_out *out, struct hd_msgpack_in *in)
{
    if (!is_array(in, 1))
        return false;
    hd_msgpack_put(out, in);
    return true;
}

static bool take_delta(struct hd_msgpack_in *in, double *seconds)
{
    int64_t days, whole, micros;

    if (!is_array(in, 3) || !take_int(in, &days) || !take_int(in, &whole) || !take_int(in, &micros))
        return false;
    *seconds = (double)days * 86400 + (double)whole + (double)micros / 1e6;
    return true;
}

static bool put_timedelta(struct hd_msgpack_out *out, struct hd_msgpack_in *in)
{
    double seconds;

    if (!take_delta(in, &seconds))
        return false;
    hd_msgpack_put_double(out, seconds);
    return true;
}

static bool put_date(struct hd_msgpack_out *out, struct hd_msgpack_in *in)
{
    int64_t year, month, day;
    char text[80];

    if (!is_array(in, 3) || !take_int(in, &year) || !take_int(in, &month) || !take_int(in, &day))
        return false;
    (void)snprintf(text, sizeof(text), "%04" PRId64 "-%02" PRId64 "-%02" PRId64, year, month, day);
    hd_jw_string(&out->jw, hd_slice_cstr(text));
    return true;
}

/* A timedelta within another object: its seconds. */
static bool take_offset(struct hd_msgpack_in *in, double *seconds)
{
    struct hd_msgpack_item ext = hd_msgpack_next(in);
    struct hd_msgpack_in inner = hd_msgpack_inside(ext.bytes);

    if (in->is_bad || ext.kind != HD_PACK_EXT || ext.code != EXT_LIST || !is_array(&inner, 3))
        return false;
    (void)hd_msgpack_next(&inner);
    (void)hd_msgpack_next(&inner);
    return take_delta(&inner, seconds);
}

static void write_offset(double seconds, char *out, size_t size)
{
    int64_t whole = (int64_t)(seconds < 0 ? -seconds : seconds) % 86400;
    int at = snprintf(out, size, "%c%02d:%02d", seconds < 0 ? '-' : '+', (int)(whole / 3600),
                      (int)(whole / 60 % 60));

    if (whole % 60 != 0 && at > 0 && (size_t)at < size)
        (void)snprintf(out + at, size - (size_t)at, ":%02d", (int)(whole % 60));
}

static bool put_timezone(struct hd_msgpack_out *out, struct hd_msgpack_in *in)
{
    struct hd_msgpack_item list = hd_msgpack_next(in), name = {.kind = HD_PACK_NULL};
    char text[24] = "UTC";
    double seconds;

    if (in->is_bad || list.kind != HD_PACK_ARRAY || list.count < 1 || !take_offset(in, &seconds))
        return false;
    if (list.count > 1)
        name = hd_msgpack_next(in);
    if (seconds != 0)
        write_offset(seconds, text + 3, sizeof(text) - 3);
    hd_jw_string(&out->jw, name.kind == HD_PACK_STRING ? name.bytes : hd_slice_cstr(text));
    return true;
}

static bool put_send(struct hd_msgpack_out *out, struct hd_msgpack_in *in)
{
    struct hd_msgpack_item list = hd_msgpack_next(in);

    if (in->is_bad || list.kind != HD_PACK_ARRAY || list.count < 2)
        return false;
    hd_jw_object(&out->jw);
    hd_jw_key(&out->jw, HD_S("node"));
    hd_msgpack_put(out, in);
    hd_jw_key(&out->jw, HD_S("arg"));
    hd_msgpack_put(out, in);
    if (list.count > 2) {
        hd_jw_key(&out->jw, HD_S("timeout"));
        hd_msgpack_put(out, in);
    }
    hd_jw_object_end(&out->jw);
    return true;
}

/* ---- named arguments -------------------------------------------------- */

struct clock {
    int64_t hour, minute, second, microsecond;
    bool has_offset;
    double offset;
};

/* The offset of a timezone; other zones have no offset without a date. */
static void take_zone(struct clock *clock, const struct hd_msgpack_item *item)
{
    struct hd_msgpack_in inner = hd_msgpack_inside(item->bytes);

    if (item->kind != HD_PACK_EXT || item->code != EXT_LIST || !is_array(&inner, 3))
        return;
    (void)hd_msgpack_next(&inner);
    (void)hd_msgpack_next(&inner);
    if (is_array(&inner, 1))
        clock->has_offset = take_offset(&inner, &clock->offset);
}

static void take_part(struct clock *clock, struct hd_slice name, const struct hd_msgpack_item *item)
{
    const struct {
        struct hd_slice name;
        int64_t *part;
    } parts[] = {{HD_S("hour"), &clock->hour},
                 {HD_S("minute"), &clock->minute},
                 {HD_S("second"), &clock->second},
                 {HD_S("microsecond"), &clock->microsecond}};

    for (size_t i = 0; i < HD_COUNT(parts); i++) {
        if (hd_slice_eq(name, parts[i].name))
            *parts[i].part = item->integer;
    }
    if (hd_slice_eq(name, HD_S("tzinfo")))
        take_zone(clock, item);
}

static bool object_put_time(struct hd_msgpack_out *out, struct hd_msgpack_in *in)
{
    struct hd_msgpack_item map = hd_msgpack_next(in);
    struct clock clock = {0};
    char text[128], offset[24] = "", fraction[32] = "";

    if (in->is_bad || map.kind != HD_PACK_MAP)
        return false;
    for (uint64_t i = 0; i < map.count && !in->is_bad; i++) {
        struct hd_msgpack_item key = hd_msgpack_next(in), val = hd_msgpack_next(in);

        take_part(&clock, key.bytes, &val);
    }
    if (in->is_bad)
        return false;
    if (clock.microsecond != 0)
        (void)snprintf(fraction, sizeof(fraction), ".%06" PRId64, clock.microsecond);
    if (clock.has_offset)
        write_offset(clock.offset, offset, sizeof(offset));
    (void)snprintf(text, sizeof(text), "%02" PRId64 ":%02" PRId64 ":%02" PRId64 "%s%s", clock.hour,
                   clock.minute, clock.second, fraction, offset);
    hd_jw_string(&out->jw, hd_slice_cstr(text));
    return true;
}

/* A schema for the reply is shown when there is one. */
static bool put_interrupt(struct hd_msgpack_out *out, struct hd_msgpack_in *in)
{
    struct hd_msgpack_item map = hd_msgpack_next(in);

    if (in->is_bad || map.kind != HD_PACK_MAP)
        return false;
    hd_jw_object(&out->jw);
    for (uint64_t i = 0; i < map.count && !in->is_bad && !out->jw.err; i++) {
        struct hd_msgpack_item key = hd_msgpack_next(in);
        struct hd_msgpack_in ahead = *in;

        if (hd_slice_eq(key.bytes, HD_S("response_schema")) &&
            hd_msgpack_next(&ahead).kind == HD_PACK_NULL) {
            *in = ahead;
            continue;
        }
        hd_jw_key(&out->jw, key.bytes);
        hd_msgpack_put(out, in);
    }
    hd_jw_object_end(&out->jw);
    return true;
}

/* ---- arrays of numbers ------------------------------------------------- */

struct numbers {
    char kind;    /* 'f', 'i', 'u', 'b' */
    size_t size;  /* bytes of each */
    bool is_big;  /* endian */
    size_t count; /* of dimensions */
    size_t shape[MAX_DIMS], stride[MAX_DIMS];
    const unsigned char *bytes;
};

/* "<f8" */
static bool read_type(struct numbers *n, struct hd_slice type)
{
    if (type.len != 3 || !strchr("<>|=", type.ptr[0]) || !strchr("fiub", type.ptr[1]) ||
        !strchr("1248", type.ptr[2]) || (type.ptr[1] == 'f' && type.ptr[2] < '4'))
        return false;
    n->is_big = type.ptr[0] == '>';
    n->kind = type.ptr[1];
    n->size = (size_t)(type.ptr[2] - '0');
    return true;
}

static bool read_shape(struct numbers *n, struct hd_msgpack_in *in, size_t *total)
{
    struct hd_msgpack_item list = hd_msgpack_next(in);

    *total = 1;
    if (in->is_bad || list.kind != HD_PACK_ARRAY || list.count > MAX_DIMS)
        return false;
    n->count = (size_t)list.count;
    for (size_t i = 0; i < n->count; i++) {
        int64_t dim;

        if (!take_int(in, &dim) || dim < 0 || dim > INT32_MAX ||
            (dim > 0 && *total > SIZE_MAX / 8 / (size_t)dim))
            return false;
        n->shape[i] = (size_t)dim;
        *total *= (size_t)dim;
    }
    return true;
}

static void set_strides(struct numbers *n, bool is_fortran)
{
    size_t step = n->size;

    for (size_t k = 0; k < n->count; k++) {
        size_t i = is_fortran ? k : n->count - 1 - k;

        n->stride[i] = step;
        step *= n->shape[i];
    }
}

static void put_number(struct hd_msgpack_out *out, const struct numbers *n, const unsigned char *at)
{
    uint64_t bits = 0;
    unsigned spare = 64 - 8 * (unsigned)n->size;
    uint32_t half;
    float single;
    double real;

    for (size_t i = 0; i < n->size; i++)
        bits = bits << 8 | at[n->is_big ? i : n->size - 1 - i];
    half = (uint32_t)bits;
    memcpy(&single, &half, sizeof(single));
    memcpy(&real, &bits, sizeof(real));
    if (n->kind == 'b')
        hd_jw_bool(&out->jw, bits != 0);
    else if (n->kind == 'f')
        hd_msgpack_put_double(out, n->size == 4 ? (double)single : real);
    else if (n->kind == 'i' || bits <= INT64_MAX)
        hd_jw_int(&out->jw, n->kind == 'i' ? (int64_t)(bits << spare) >> spare : (int64_t)bits);
    else
        hd_msgpack_put_double(out, (double)bits);
}

static void put_dimension(struct hd_msgpack_out *out, const struct numbers *n, size_t dim,
                          const unsigned char *at)
{
    if (dim == n->count) {
        put_number(out, n, at);
        return;
    }
    hd_jw_array(&out->jw);
    for (size_t i = 0; i < n->shape[dim]; i++)
        put_dimension(out, n, dim + 1, at + i * n->stride[dim]);
    hd_jw_array_end(&out->jw);
}

static bool put_array(struct hd_msgpack_out *out, struct hd_msgpack_in *in)
{
    struct hd_msgpack_item type, order, bytes;
    struct numbers n = {0};
    size_t total;

    if (!is_array(in, 4))
        return false;
    type = hd_msgpack_next(in);
    if (in->is_bad || !read_type(&n, type.bytes) || !read_shape(&n, in, &total))
        return false;
    order = hd_msgpack_next(in);
    bytes = hd_msgpack_next(in);
    if (in->is_bad || bytes.bytes.len != total * n.size)
        return false;
    if (total == 0) {
        hd_jw_raw(&out->jw, HD_S("[]"));
        return true;
    }
    set_strides(&n, hd_slice_eq(order.bytes, HD_S("F")));
    put_dimension(out, &n, 0, (const unsigned char *)bytes.bytes.ptr);
    return true;
}

/* ---- classes ---------------------------------------------------------- */

static const struct {
    int code;
    const char *module; /* a prefix */
    const char *name;   /* NULL: all */
    put_fn put;
} classes[] = {
    {EXT_ONE, "uuid", "UUID", put_uuid},
    {EXT_ONE, "decimal", "Decimal", put_decimal},
    {EXT_ONE, "pydantic", "SecretStr", put_secret},
    {EXT_ONE, "pydantic", "SecretBytes", put_secret},
    {EXT_ONE, "pydantic", "Secret", put_secret},
    {EXT_LIST, "pathlib", NULL, put_path},
    {EXT_LIST, "re", "compile", put_first},
    {EXT_LIST, "datetime", "timedelta", put_timedelta},
    {EXT_LIST, "datetime", "date", put_date},
    {EXT_LIST, "datetime", "timezone", put_timezone},
    {EXT_LIST, "langgraph", "Send", put_send},
    {EXT_NAMED, "datetime", "time", object_put_time},
    {EXT_NAMED, "langgraph", "Interrupt", put_interrupt},
};

static put_fn find_class(int code, struct hd_slice module, struct hd_slice name)
{
    for (size_t i = 0; i < HD_COUNT(classes); i++) {
        if (classes[i].code == code && hd_slice_starts(module, hd_slice_cstr(classes[i].module)) &&
            (!classes[i].name || hd_slice_eq(name, hd_slice_cstr(classes[i].name))))
            return classes[i].put;
    }
    return NULL;
}

bool hd_msgpack_put_object(struct hd_msgpack_out *out, int code, struct hd_slice bytes)
{
    struct hd_msgpack_in in = hd_msgpack_inside(bytes);
    struct hd_msgpack_item module, name;
    struct hd_msgpack_in argument;
    put_fn put;

    if (code == EXT_DELTA) {
        hd_msgpack_put(out, &in);
        return !in.is_bad;
    }
    if (code == EXT_ARRAY)
        return put_array(out, &in);
    if (code < EXT_ONE || code > EXT_MODEL_2 || !is_array(&in, 3))
        return false;
    module = hd_msgpack_next(&in);
    name = hd_msgpack_next(&in);
    argument = in;
    put = in.is_bad ? NULL : find_class(code, module.bytes, name.bytes);
    if (put && put(out, &in))
        return !in.is_bad;
    if (put == put_secret)
        return false;
    hd_msgpack_put(out, &argument);
    return !argument.is_bad;
}
