/* Reading and comparing. Recursion is safe: no document is deeper than HD_JSON_MAX_DEPTH. */
#include "base/json.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/utf8.h"

/* Numbers with a greater exponent are not computed. */
#define MAX_EXPONENT (INT64_C(1) << 59)

static void *alc_malloc(void *ctx, size_t size)
{
    (void)ctx;
    return hd_malloc(size);
}

static void *alc_realloc(void *ctx, void *ptr, size_t old_size, size_t size)
{
    (void)ctx;
    (void)old_size;
    return hd_realloc(ptr, size);
}

static void alc_free(void *ctx, void *ptr)
{
    (void)ctx;
    hd_free(ptr);
}

static const yyjson_alc allocator = {alc_malloc, alc_realloc, alc_free, NULL};

/*
 * yyjson keeps all values of a document in one array in text order, and each container has its end;
 * so the depth needs no recursion.
 */
static bool is_too_deep(yyjson_doc *doc)
{
    const yyjson_val *ends[HD_JSON_MAX_DEPTH];
    yyjson_val *val = yyjson_doc_get_root(doc);
    const yyjson_val *last = val + yyjson_doc_get_val_count(doc);
    size_t depth = 0;

    for (; val < last; val++) {
        if (!unsafe_yyjson_is_ctn(val))
            continue;
        while (depth > 0 && ends[depth - 1] <= val)
            depth--;
        if (depth == HD_JSON_MAX_DEPTH)
            return true;
        ends[depth++] = unsafe_yyjson_get_next(val);
    }
    return false;
}

static int json_parse_text(struct hd_json *json, struct hd_slice text, yyjson_read_flag flags,
                           struct heddle_error *fault)
{
    /* yyjson does not write to its source without the flag for that, but takes char *. */
    char *source = (char *)(text.ptr ? text.ptr : "");
    yyjson_read_err cause = {0};

    json->doc =
        yyjson_read_opts(source, text.len, YYJSON_READ_NUMBER_AS_RAW | flags, &allocator, &cause);
    if (!json->doc && cause.code == YYJSON_READ_ERROR_MEMORY_ALLOCATION)
        return hd_error_set(fault, HD_ENOMEM, "out of memory while reading JSON");
    if (!json->doc && text.len == 0)
        return hd_error_set(fault, HD_EINVAL, "not valid JSON: the text is empty");
    if (!json->doc)
        return hd_error_set(fault, HD_EINVAL, "not valid JSON at byte %zu: %s", cause.pos,
                            cause.msg);
    if (is_too_deep(json->doc)) {
        hd_json_fini(json);
        return hd_error_set(fault, HD_EINVAL, "JSON nested deeper than %d levels",
                            HD_JSON_MAX_DEPTH);
    }
    return 0;
}

int hd_json_parse(struct hd_json *json, struct hd_slice text, struct heddle_error *fault)
{
    return json_parse_text(json, text, 0, fault);
}

int hd_json_parse_commented(struct hd_json *json, struct hd_slice text, struct heddle_error *fault)
{
    return json_parse_text(json, text, YYJSON_READ_ALLOW_COMMENTS, fault);
}

void hd_json_fini(struct hd_json *json)
{
    yyjson_doc_free(json->doc);
    json->doc = NULL;
}

/* ---- names that occur twice ------------------------------------------- */

/* Objects with more members than this are sorted to find equal names. */
enum { FEW_MEMBERS = 16 };

static int refuse_name(struct hd_slice name, struct heddle_error *fault)
{
    size_t len = name.len < 80 ? name.len : 80;

    return hd_error_set(fault, HD_EINVAL, "the member \"%.*s\" occurs twice in an object",
                        (int)hd_utf8_cut(name.ptr, len), name.ptr);
}

static int check_few(hd_json_val object, struct heddle_error *fault)
{
    struct hd_slice names[FEW_MEMBERS];
    struct hd_json_iter it = hd_json_iter(object);

    for (size_t count = 0; hd_json_next(&it); count++) {
        names[count] = it.key;
        for (size_t i = 0; i < count; i++) {
            if (hd_slice_eq(names[i], it.key))
                return refuse_name(it.key, fault);
        }
    }
    return 0;
}

static int compare_names(const void *a, const void *b)
{
    return hd_slice_cmp(*(const struct hd_slice *)a, *(const struct hd_slice *)b);
}

static int check_many(hd_json_val object, struct heddle_error *fault)
{
    size_t count = 0, size = hd_json_size(object);
    struct hd_slice *names = hd_malloc(size * sizeof(*names));
    struct hd_json_iter it = hd_json_iter(object);
    int err = 0;

    if (!names)
        return HD_ENOMEM;
    while (hd_json_next(&it))
        names[count++] = it.key;
    qsort(names, count, sizeof(*names), compare_names);
    for (size_t i = 1; !err && i < count; i++) {
        if (hd_slice_eq(names[i - 1], names[i]))
            err = refuse_name(names[i], fault);
    }
    hd_free(names);
    return err;
}

int hd_json_check_names(hd_json_val val, struct heddle_error *fault)
{
    struct hd_json_iter it = hd_json_iter(val);
    int err = 0;

    if (it.is_object)
        err = hd_json_size(val) <= FEW_MEMBERS ? check_few(val, fault) : check_many(val, fault);
    while (!err && hd_json_next(&it)) {
        if (hd_json_is_object(it.val) || hd_json_is_array(it.val))
            err = hd_json_check_names(it.val, fault);
    }
    return err;
}

enum hd_json_type hd_json_type(hd_json_val val)
{
    switch (yyjson_get_type(val)) {
    case YYJSON_TYPE_NULL:
        return HD_JSON_NULL;
    case YYJSON_TYPE_BOOL:
        return HD_JSON_BOOL;
    case YYJSON_TYPE_RAW:
        return HD_JSON_NUMBER;
    case YYJSON_TYPE_STR:
        return HD_JSON_STRING;
    case YYJSON_TYPE_ARR:
        return HD_JSON_ARRAY;
    case YYJSON_TYPE_OBJ:
        return HD_JSON_OBJECT;
    default:
        return HD_JSON_NONE;
    }
}

const char *hd_json_type_name(hd_json_val val)
{
    static const char *const names[] = {
        [HD_JSON_NONE] = "nothing",     [HD_JSON_NULL] = "null",       [HD_JSON_BOOL] = "a boolean",
        [HD_JSON_NUMBER] = "a number",  [HD_JSON_STRING] = "a string", [HD_JSON_ARRAY] = "an array",
        [HD_JSON_OBJECT] = "an object",
    };

    return names[hd_json_type(val)];
}

bool hd_json_int(hd_json_val val, int64_t *out)
{
    struct hd_slice text = hd_json_number_text(val);
    bool is_negative = text.len > 0 && text.ptr[0] == '-';
    uint64_t limit = (uint64_t)INT64_MAX + is_negative, value = 0;

    if (text.len == 0)
        return false;
    for (size_t i = is_negative; i < text.len; i++) {
        unsigned digit = (unsigned)(text.ptr[i] - '0');

        if (digit > 9 || value > (limit - digit) / 10)
            return false;
        value = value * 10 + digit;
    }
    *out = is_negative ? (int64_t)(0 - value) : (int64_t)value;
    return true;
}

bool hd_json_whole(hd_json_val val, int64_t *out)
{
    const double limit = (double)(INT64_C(1) << 53);
    double number;

    if (hd_json_int(val, out))
        return true;
    /* In this range the conversion is exact, so a whole number converts back to the same value. */
    if (!hd_json_double(val, &number) || !(number >= -limit && number <= limit) ||
        (double)(int64_t)number != number)
        return false;
    *out = (int64_t)number;
    return true;
}

/* Not strtod(): that depends on the locale. */
bool hd_json_double(hd_json_val val, double *out)
{
    yyjson_val number = {0};

    if (!yyjson_is_raw(val) ||
        !yyjson_read_number(yyjson_get_raw(val), &number, 0, &allocator, NULL))
        return false;
    *out = yyjson_get_num(&number);
    return true;
}

struct hd_json_iter hd_json_iter(hd_json_val val)
{
    struct hd_json_iter it = {.is_object = yyjson_is_obj(val)};

    if (it.is_object)
        (void)yyjson_obj_iter_init(val, &it.obj);
    else
        (void)yyjson_arr_iter_init(val, &it.arr);
    return it;
}

bool hd_json_next(struct hd_json_iter *it)
{
    if (!it->is_object) {
        it->val = yyjson_arr_iter_next(&it->arr);
        return it->val != NULL;
    }
    yyjson_val *key = yyjson_obj_iter_next(&it->obj);
    it->val = yyjson_obj_iter_get_val(key);
    it->key = hd_json_string(key);
    return key != NULL;
}

/*
 * A number as digits * 10^exponent, with digits that neither begin nor end
 * with 0. Two numbers are equal exactly when both parts are, at any length and
 * without rounding.
 */
struct decimal {
    const char *pos, *end; /* the digits, with perhaps a point among them */
    int64_t exponent;
    bool is_negative;
    bool is_huge; /* the exponent is out of bounds */
};

static int64_t read_exponent(const char *pos, const char *end, bool *is_huge)
{
    bool is_negative = pos < end && *pos == '-';
    int64_t value = 0;

    if (pos < end && (*pos == '-' || *pos == '+'))
        pos++;
    for (; pos < end; pos++) {
        value = value * 10 + (*pos - '0');
        if (value > MAX_EXPONENT) {
            *is_huge = true;
            return 0;
        }
    }
    return is_negative ? -value : value;
}

static struct decimal read_decimal(struct hd_slice text)
{
    struct decimal d = {.pos = text.ptr, .end = text.ptr + text.len};
    const char *mark = d.pos, *point;

    d.is_negative = d.pos < d.end && *d.pos == '-';
    d.pos += d.is_negative;
    while (mark < d.end && *mark != 'e' && *mark != 'E')
        mark++;
    if (mark < d.end)
        d.exponent = read_exponent(mark + 1, d.end, &d.is_huge);
    d.end = mark;
    point = memchr(d.pos, '.', (size_t)(d.end - d.pos));
    d.exponent -= point ? d.end - point - 1 : 0;
    while (d.end > d.pos && (d.end[-1] == '0' || d.end[-1] == '.'))
        d.exponent += *--d.end == '0';
    while (d.pos < d.end && (*d.pos == '0' || *d.pos == '.'))
        d.pos++;
    return d;
}

static bool digits_equal(struct decimal a, struct decimal b)
{
    while (a.pos < a.end && b.pos < b.end) {
        a.pos += *a.pos == '.';
        b.pos += *b.pos == '.';
        if (*a.pos++ != *b.pos++)
            return false;
    }
    return a.pos == a.end && b.pos == b.end;
}

static bool numbers_equal(struct hd_slice a, struct hd_slice b)
{
    struct decimal x, y;

    if (hd_slice_eq(a, b))
        return true;
    x = read_decimal(a);
    y = read_decimal(b);
    if (x.pos == x.end || y.pos == y.end)
        return x.pos == x.end && y.pos == y.end;
    return x.is_negative == y.is_negative && !x.is_huge && !y.is_huge && x.exponent == y.exponent &&
           digits_equal(x, y);
}

static bool scalars_equal(hd_json_val a, hd_json_val b)
{
    switch (hd_json_type(a)) {
    case HD_JSON_BOOL:
        return hd_json_is_true(a) == hd_json_is_true(b);
    case HD_JSON_NUMBER:
        return numbers_equal(hd_json_number_text(a), hd_json_number_text(b));
    case HD_JSON_STRING:
        return hd_slice_eq(hd_json_string(a), hd_json_string(b));
    default:
        return true;
    }
}

static bool arrays_equal(hd_json_val a, hd_json_val b)
{
    struct hd_json_iter left = hd_json_iter(a), right = hd_json_iter(b);

    while (hd_json_next(&left) && hd_json_next(&right))
        if (!hd_json_equal(left.val, right.val))
            return false;
    return true;
}

/* Continues from the last match: linear when both have the same order. */
static hd_json_val find_next(yyjson_obj_iter *it, struct hd_slice key)
{
    return yyjson_obj_iter_getn(it, key.ptr, key.len);
}

/* With unique keys one direction is enough; a duplicate key needs the other too. */
static bool objects_equal(hd_json_val a, hd_json_val b)
{
    struct hd_json_iter left = hd_json_iter(a), right = hd_json_iter(b);
    struct hd_json_iter in_b = right, in_a = left;

    while (hd_json_next(&left)) {
        hd_json_val other = find_next(&in_b.obj, left.key);

        if (!other || !hd_json_equal(left.val, other))
            return false;
    }
    while (hd_json_next(&right))
        if (!find_next(&in_a.obj, right.key))
            return false;
    return true;
}

bool hd_json_equal(hd_json_val a, hd_json_val b)
{
    enum hd_json_type type = hd_json_type(a);

    if (type != hd_json_type(b) || hd_json_size(a) != hd_json_size(b))
        return false;
    if (type == HD_JSON_ARRAY)
        return arrays_equal(a, b);
    return type == HD_JSON_OBJECT ? objects_equal(a, b) : scalars_equal(a, b);
}

static bool object_contains(hd_json_val whole, hd_json_val part)
{
    struct hd_json_iter wanted = hd_json_iter(part), in_whole = hd_json_iter(whole);

    while (hd_json_next(&wanted)) {
        hd_json_val found = find_next(&in_whole.obj, wanted.key);

        if (!found || !hd_json_contains(found, wanted.val))
            return false;
    }
    return true;
}

static bool array_contains(hd_json_val whole, hd_json_val part)
{
    struct hd_json_iter wanted = hd_json_iter(part);

    while (hd_json_next(&wanted)) {
        struct hd_json_iter it = hd_json_iter(whole);
        bool is_found = false;

        while (!is_found && hd_json_next(&it))
            is_found = hd_json_contains(it.val, wanted.val);
        if (!is_found)
            return false;
    }
    return true;
}

bool hd_json_contains(hd_json_val whole, hd_json_val part)
{
    enum hd_json_type type = hd_json_type(whole);

    if (type != hd_json_type(part))
        return false;
    if (type == HD_JSON_ARRAY)
        return array_contains(whole, part);
    return type == HD_JSON_OBJECT ? object_contains(whole, part) : scalars_equal(whole, part);
}
