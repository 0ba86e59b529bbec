/* Creates values and reads them. Lists are in val_list.c, objects in val_object.c. */
#include "value/val.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "value/val_internal.h"

static struct hd_val null_val = {.refs = HD_VAL_FOREVER, .type = HD_VAL_NULL};
static struct hd_val false_val = {.refs = HD_VAL_FOREVER, .type = HD_VAL_BOOL};
static struct hd_val true_val = {.refs = HD_VAL_FOREVER, .type = HD_VAL_BOOL};
static struct hd_val empty_val = {.refs = HD_VAL_FOREVER, .type = HD_VAL_STRING};

/* ---- reference counts ------------------------------------------------- */

struct hd_val *hd_val_ref(const struct hd_val *val)
{
    struct hd_val *counted = (struct hd_val *)val;

    if (counted && hd_val_is_counted(counted))
        counted->refs++;
    return counted;
}

/*
 * Freeing the last view frees the buffer. Freeing the view at the buffer's end removes the elements
 * that it appended: no other view ends behind `from`, since it would have to begin at this view's
 * end. Then the holder of the view before it can append in place again.
 */
static void free_array(struct hd_val_array *array)
{
    struct hd_val_buffer *buffer = array->buffer;
    size_t keep;

    if (!buffer)
        return;
    keep = --buffer->refs == 0 ? 0 : array->count == buffer->used ? array->from : buffer->used;
    while (buffer->used > keep)
        hd_val_unref(buffer->items[--buffer->used]);
    if (buffer->refs > 0)
        return;
    hd_free(buffer->items);
    hd_free(buffer);
}

static void free_members(struct hd_val_members *object)
{
    for (size_t i = 0; i < object->count; i++) {
        hd_val_unref(object->pairs[i].key);
        hd_val_unref(object->pairs[i].val);
    }
    hd_val_unref(object->name);
    hd_free(object->pairs);
    hd_free(object->slots);
}

/* Recursive; HD_VAL_MAX_DEPTH limits the depth. */
void hd_val_unref(struct hd_val *val)
{
    if (!val || !hd_val_is_counted(val) || --val->refs > 0)
        return;
    if (val->type == HD_VAL_LIST)
        free_array((struct hd_val_array *)val);
    else if (val->type == HD_VAL_OBJECT)
        free_members((struct hd_val_members *)val);
    hd_free(val);
}

/* ---- freezing --------------------------------------------------------- */

static int freeze_members(struct hd_val_members *object, hd_val_keep_fn keep, void *ctx)
{
    int err = object->name ? hd_val_freeze(object->name, keep, ctx) : 0;

    for (size_t i = 0; i < object->count && !err; i++) {
        err = hd_val_freeze(object->pairs[i].key, keep, ctx);
        if (!err)
            err = hd_val_freeze(object->pairs[i].val, keep, ctx);
    }
    return err;
}

/*
 * Also freezes the elements behind the view's end, which are in the same buffer. The views on a
 * buffer are frozen together, since one could be changed through another; so the caller must be the
 * only user of the value.
 */
static int freeze_array(struct hd_val_array *array, hd_val_keep_fn keep, void *ctx)
{
    int err = 0;

    for (size_t i = 0; array->buffer && i < array->buffer->used && !err; i++)
        err = hd_val_freeze(array->buffer->items[i], keep, ctx);
    return err;
}

int hd_val_freeze(struct hd_val *val, hd_val_keep_fn keep, void *ctx)
{
    int err = 0;

    if (!hd_val_is_counted(val))
        return 0;
    if (val->type == HD_VAL_LIST)
        err = freeze_array((struct hd_val_array *)val, keep, ctx);
    else if (val->type == HD_VAL_OBJECT)
        err = freeze_members((struct hd_val_members *)val, keep, ctx);
    if (!err)
        err = keep(ctx, val);
    if (!err)
        val->refs = HD_VAL_FROZEN;
    return err;
}

void hd_val_release(struct hd_val *frozen)
{
    if (frozen->type == HD_VAL_LIST) {
        struct hd_val_buffer *buffer = ((struct hd_val_array *)frozen)->buffer;

        if (buffer && --buffer->refs == 0) {
            hd_free(buffer->items);
            hd_free(buffer);
        }
    } else if (frozen->type == HD_VAL_OBJECT) {
        struct hd_val_members *object = (struct hd_val_members *)frozen;

        hd_free(object->pairs);
        hd_free(object->slots);
    }
    hd_free(frozen);
}

/* ---- copies of frozen values ------------------------------------------ */

static bool is_lasting(const struct hd_val *val)
{
    bool is = val->refs != HD_VAL_FROZEN;

    for (size_t i = 0; is && val->depth > 0 && i < hd_val_count(val); i++) {
        struct hd_val *key = NULL;

        is = is_lasting(val->type == HD_VAL_LIST ? hd_val_at(val, i) : hd_val_member(val, i, &key));
        is = is && (!key || is_lasting(key));
    }
    if (is && val->type == HD_VAL_OBJECT && ((const struct hd_val_members *)val)->name)
        is = is_lasting(((const struct hd_val_members *)val)->name);
    return is;
}

static struct hd_val *copy_object(const struct hd_val *val)
{
    enum hd_val_kind kind = hd_val_kind(val);
    struct hd_val *copy;

    if (kind == HD_KIND_UNKNOWN)
        copy = hd_val_unknown(hd_val_lasting(((const struct hd_val_members *)val)->name));
    else
        copy = kind == HD_KIND_NONE ? hd_val_object() : hd_val_record(kind);
    for (size_t i = 0; copy && i < hd_val_count(val); i++) {
        struct hd_val *key, *member = hd_val_member(val, i, &key);

        copy = hd_val_push(copy, hd_val_lasting(key), hd_val_lasting(member));
    }
    return copy;
}

static struct hd_val *copy_number(const struct hd_val_number *number)
{
    struct hd_slice text = hd_slice(number->text, number->text_len);

    return number->base.type == HD_VAL_INT ? hd_val_int_as(number->as.integer, text)
                                           : hd_val_float_as(number->as.real, text);
}

struct hd_val *hd_val_lasting(const struct hd_val *val)
{
    struct hd_val *copy;

    if (is_lasting(val))
        return hd_val_ref(val);
    switch ((enum hd_val_type)val->type) {
    case HD_VAL_STRING:
        return hd_val_string(hd_val_get_string(val));
    case HD_VAL_OBJECT:
        return copy_object(val);
    case HD_VAL_LIST:
        copy = hd_val_list();
        for (size_t i = 0; copy && i < hd_val_count(val); i++)
            copy = hd_val_append(copy, hd_val_lasting(hd_val_at(val, i)));
        return copy;
    default:
        return copy_number((const struct hd_val_number *)val);
    }
}

/* ---- scalars ---------------------------------------------------------- */

struct hd_val *hd_val_null(void)
{
    return &null_val;
}

struct hd_val *hd_val_bool(bool value)
{
    return value ? &true_val : &false_val;
}

static struct hd_val_number *number_create(enum hd_val_type type, struct hd_slice text)
{
    struct hd_val_number *number = hd_malloc(sizeof(*number) + text.len);

    if (!number)
        return NULL;
    number->base = (struct hd_val){.refs = 1, .type = (uint8_t)type};
    number->text_len = text.len;
    if (text.len > 0)
        memcpy(number->text, text.ptr, text.len);
    return number;
}

struct hd_val *hd_val_int_as(int64_t value, struct hd_slice text)
{
    struct hd_val_number *number = number_create(HD_VAL_INT, text);

    if (!number)
        return NULL;
    number->as.integer = value;
    return &number->base;
}

struct hd_val *hd_val_float_as(double value, struct hd_slice text)
{
    struct hd_val_number *number = number_create(HD_VAL_FLOAT, text);

    if (!number)
        return NULL;
    number->as.real = value;
    return &number->base;
}

struct hd_val *hd_val_int(int64_t value)
{
    return hd_val_int_as(value, hd_slice(NULL, 0));
}

struct hd_val *hd_val_float(double value)
{
    return hd_val_float_as(value, hd_slice(NULL, 0));
}

static struct hd_val_text *text_create(size_t len)
{
    struct hd_val_text *text;

    if (len > SIZE_MAX - sizeof(*text) - 1)
        return NULL;
    text = hd_malloc(sizeof(*text) + len + 1);
    if (!text)
        return NULL;
    text->base = (struct hd_val){.refs = 1, .type = HD_VAL_STRING};
    text->len = len;
    text->bytes[len] = '\0';
    return text;
}

struct hd_val *hd_val_string(struct hd_slice s)
{
    struct hd_val_text *text;

    if (s.len == 0)
        return &empty_val;
    text = text_create(s.len);
    if (!text)
        return NULL;
    memcpy(text->bytes, s.ptr, s.len);
    return &text->base;
}

struct hd_val *hd_val_cstr(const char *text)
{
    return hd_val_string(hd_slice_cstr(text));
}

struct hd_val *hd_val_vprintf(const char *fmt, va_list args)
{
    struct hd_val_text *text = NULL;
    va_list again;
    int len;

    va_copy(again, args);
    len = vsnprintf(NULL, 0, fmt, args);
    if (len >= 0)
        text = text_create((size_t)len);
    if (text)
        (void)vsnprintf(text->bytes, (size_t)len + 1, fmt, again);
    va_end(again);
    return text ? &text->base : NULL;
}

struct hd_val *hd_val_printf(const char *fmt, ...)
{
    struct hd_val *val;
    va_list args;

    va_start(args, fmt);
    val = hd_val_vprintf(fmt, args);
    va_end(args);
    return val;
}

bool hd_val_is_true(const struct hd_val *val)
{
    return val == &true_val;
}

bool hd_val_get_int(const struct hd_val *val, int64_t *out)
{
    if (hd_val_type(val) != HD_VAL_INT)
        return false;
    *out = ((const struct hd_val_number *)val)->as.integer;
    return true;
}

bool hd_val_get_double(const struct hd_val *val, double *out)
{
    const struct hd_val_number *number = (const struct hd_val_number *)val;

    if (!hd_val_is_number(val))
        return false;
    *out = val->type == HD_VAL_INT ? (double)number->as.integer : number->as.real;
    return true;
}

struct hd_slice hd_val_get_string(const struct hd_val *val)
{
    const struct hd_val_text *text = (const struct hd_val_text *)val;

    if (!hd_val_is_string(val) || val == &empty_val)
        return HD_S("");
    return hd_slice(text->bytes, text->len);
}

/* ---- names ------------------------------------------------------------ */

static const struct {
    const char *name;    /* value of `$` */
    const char *article; /* for error messages */
} kinds[HD_KIND_COUNT] = {
    [HD_KIND_NONE] = {"", "an object"},
    [HD_KIND_MESSAGE] = {"message", "a message"},
    [HD_KIND_SEND] = {"send", "a send"},
    [HD_KIND_COMMAND] = {"command", "a command"},
    [HD_KIND_INTERRUPT] = {"interrupt", "an interrupt"},
    [HD_KIND_OVERWRITE] = {"overwrite", "an overwrite"},
    [HD_KIND_DELTA] = {"delta", "a delta snapshot"},
    [HD_KIND_MAP] = {"map", "a map"},
    [HD_KIND_SET] = {"set", "a set"},
    [HD_KIND_INT] = {"int", "an integer"},
    [HD_KIND_BYTES] = {"bytes", "bytes"},
    [HD_KIND_UTF16] = {"utf16", "a string"},
    [HD_KIND_DATETIME] = {"datetime", "a date"},
    [HD_KIND_UNDEFINED] = {"undefined", "undefined"},
    [HD_KIND_ERROR] = {"error", "an error"},
    [HD_KIND_FOREIGN] = {"foreign", "a foreign value"},
    [HD_KIND_UNKNOWN] = {"", "a record of unknown kind"},
};

enum hd_val_kind hd_val_kind_find(struct hd_slice name)
{
    for (int i = HD_KIND_NONE + 1; i < HD_KIND_UNKNOWN; i++) {
        if (hd_slice_eq(name, hd_slice_cstr(kinds[i].name)))
            return (enum hd_val_kind)i;
    }
    return HD_KIND_UNKNOWN;
}

struct hd_slice hd_val_kind_name(const struct hd_val *val)
{
    enum hd_val_kind kind = hd_val_kind(val);

    if (kind == HD_KIND_UNKNOWN)
        return hd_val_get_string(((const struct hd_val_members *)val)->name);
    return hd_slice_cstr(kinds[kind].name);
}

const char *hd_val_type_name(const struct hd_val *val)
{
    static const char *const names[] = {
        [HD_VAL_NULL] = "null",        [HD_VAL_BOOL] = "a boolean",  [HD_VAL_INT] = "an integer",
        [HD_VAL_FLOAT] = "a float",    [HD_VAL_STRING] = "a string", [HD_VAL_LIST] = "a list",
        [HD_VAL_OBJECT] = "an object",
    };

    if (hd_val_is_object(val))
        return kinds[hd_val_kind(val)].article;
    return names[hd_val_type(val)];
}

/* ---- truth and equality ----------------------------------------------- */

size_t hd_val_count(const struct hd_val *val)
{
    if (hd_val_is_list(val))
        return ((const struct hd_val_array *)val)->count;
    if (hd_val_is_object(val))
        return ((const struct hd_val_members *)val)->count;
    return 0;
}

static bool record_truth(const struct hd_val *record)
{
    switch (hd_val_kind(record)) {
    case HD_KIND_NONE:
        return hd_val_count(record) > 0;
    case HD_KIND_MAP:
    case HD_KIND_SET:
        return hd_val_count(hd_val_get(record, HD_S("items"))) > 0;
    case HD_KIND_INT:
        return !hd_slice_eq(hd_val_get_string(hd_val_get(record, HD_S("v"))), HD_S("0"));
    case HD_KIND_BYTES:
        return hd_val_get_string(hd_val_get(record, HD_S("v"))).len > 0;
    case HD_KIND_UNDEFINED:
        return false;
    default:
        return true;
    }
}

bool hd_val_truth(const struct hd_val *val)
{
    double real;

    switch (hd_val_type(val)) {
    case HD_VAL_NULL:
        return false;
    case HD_VAL_BOOL:
        return hd_val_is_true(val);
    case HD_VAL_INT:
        return ((const struct hd_val_number *)val)->as.integer != 0;
    case HD_VAL_FLOAT:
        return hd_val_get_double(val, &real) && real != 0;
    case HD_VAL_STRING:
        return hd_val_get_string(val).len > 0;
    case HD_VAL_LIST:
        return hd_val_count(val) > 0;
    case HD_VAL_OBJECT:
        break;
    }
    return record_truth(val);
}

static bool numbers_equal(const struct hd_val *a, const struct hd_val *b)
{
    int order;

    return hd_val_compare(a, b, &order, NULL) == 0 && order == 0;
}

static bool lists_equal(const struct hd_val *a, const struct hd_val *b)
{
    size_t count = hd_val_count(a);

    if (count != hd_val_count(b))
        return false;
    for (size_t i = hd_val_common(a, b); i < count; i++) {
        if (!hd_val_equal(hd_val_at(a, i), hd_val_at(b, i)))
            return false;
    }
    return true;
}

static bool objects_equal(const struct hd_val *a, const struct hd_val *b)
{
    size_t count = hd_val_count(a);

    if (count != hd_val_count(b) || hd_val_kind(a) != hd_val_kind(b) ||
        !hd_slice_eq(hd_val_kind_name(a), hd_val_kind_name(b)))
        return false;
    for (size_t i = 0; i < count; i++) {
        struct hd_val *key, *val = hd_val_member(a, i, &key);
        struct hd_val *other = hd_val_get(b, hd_val_get_string(key));

        if (!other || !hd_val_equal(val, other))
            return false;
    }
    return true;
}

bool hd_val_equal(const struct hd_val *a, const struct hd_val *b)
{
    if (hd_val_is_number(a) && hd_val_is_number(b))
        return numbers_equal(a, b);
    if (hd_val_type(a) != hd_val_type(b))
        return false;
    if (a == b)
        return true;
    switch (hd_val_type(a)) {
    case HD_VAL_STRING:
        return hd_slice_eq(hd_val_get_string(a), hd_val_get_string(b));
    case HD_VAL_LIST:
        return lists_equal(a, b);
    case HD_VAL_OBJECT:
        return objects_equal(a, b);
    case HD_VAL_BOOL:
        return false; /* each exists once */
    default:
        return true;
    }
}
