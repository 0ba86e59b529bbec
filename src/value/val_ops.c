/* Sum and order of values, with the semantics of Python's operators. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "value/val.h"
#include "value/val_internal.h"

/* Python treats booleans as numbers too. */
static bool is_numeric(const struct hd_val *val)
{
    return hd_val_is_number(val) || hd_val_type(val) == HD_VAL_BOOL;
}

static bool as_int(const struct hd_val *val, int64_t *out)
{
    if (hd_val_type(val) != HD_VAL_BOOL)
        return hd_val_get_int(val, out);
    *out = hd_val_is_true(val);
    return true;
}

static double as_double(const struct hd_val *val)
{
    double value = 0;

    if (hd_val_type(val) == HD_VAL_BOOL)
        return hd_val_is_true(val);
    (void)hd_val_get_double(val, &value);
    return value;
}

const char *hd_val_python_type(const struct hd_val *val)
{
    static const char *const names[] = {
        [HD_VAL_NULL] = "NoneType", [HD_VAL_BOOL] = "bool",  [HD_VAL_INT] = "int",
        [HD_VAL_FLOAT] = "float",   [HD_VAL_STRING] = "str", [HD_VAL_LIST] = "list",
        [HD_VAL_OBJECT] = "dict",
    };
    static const char *const records[HD_KIND_COUNT] = {
        [HD_KIND_SEND] = "Send",
        [HD_KIND_COMMAND] = "Command",
        [HD_KIND_INTERRUPT] = "Interrupt",
        [HD_KIND_OVERWRITE] = "Overwrite",
        [HD_KIND_SET] = "set",
        [HD_KIND_INT] = "int",
        [HD_KIND_BYTES] = "bytes",
        [HD_KIND_UTF16] = "str",
        [HD_KIND_DATETIME] = "datetime.datetime",
    };
    static const char *const messages[][2] = {
        {"human", "HumanMessage"},       {"ai", "AIMessage"},     {"tool", "ToolMessage"},
        {"system", "SystemMessage"},     {"chat", "ChatMessage"}, {"remove", "RemoveMessage"},
        {"function", "FunctionMessage"},
    };
    struct hd_slice type = hd_val_get_string(hd_val_get(val, HD_S("type")));

    if (!hd_val_is_object(val))
        return names[hd_val_type(val)];
    if (hd_val_kind(val) == HD_KIND_MESSAGE) {
        for (size_t i = 0; i < HD_COUNT(messages); i++) {
            if (hd_slice_eq(type, hd_slice_cstr(messages[i][0])))
                return messages[i][1];
        }
    }
    return records[hd_val_kind(val)] ? records[hd_val_kind(val)] : "dict";
}

/* ---- sum -------------------------------------------------------------- */

static int add_ints(int64_t a, int64_t b, struct hd_val **out, struct heddle_error *fault)
{
    if ((b > 0 && a > INT64_MAX - b) || (b < 0 && a < INT64_MIN - b))
        return hd_error_set(fault, HD_ELIMIT, "the sum of two integers does not fit into 64 bits");
    *out = hd_val_int(a + b);
    return *out ? 0 : HD_ENOMEM;
}

static int add_numbers(const struct hd_val *a, const struct hd_val *b, struct hd_val **out,
                       struct heddle_error *fault)
{
    int64_t x, y;

    if (as_int(a, &x) && as_int(b, &y))
        return add_ints(x, y, out, fault);
    *out = hd_val_float(as_double(a) + as_double(b));
    return *out ? 0 : HD_ENOMEM;
}

static int add_strings(struct hd_slice a, struct hd_slice b, struct hd_val **out)
{
    size_t len = a.len + b.len;
    char *joined;

    if (len < a.len)
        return HD_ENOMEM;
    joined = hd_malloc(len + 1);
    if (!joined)
        return HD_ENOMEM;
    memcpy(joined, a.ptr, a.len);
    memcpy(joined + a.len, b.ptr, b.len);
    *out = hd_val_string(hd_slice(joined, len));
    hd_free(joined);
    return *out ? 0 : HD_ENOMEM;
}

/* Python has three error texts. */
static int refuse_sum(const struct hd_val *a, const struct hd_val *b, struct heddle_error *fault)
{
    if (hd_val_is_string(a))
        return hd_error_set(fault, HD_EINVAL, "can only concatenate str (not \"%s\") to str",
                            hd_val_python_type(b));
    if (hd_val_is_list(a))
        return hd_error_set(fault, HD_EINVAL, "can only concatenate list (not \"%s\") to list",
                            hd_val_python_type(b));
    return hd_error_set(fault, HD_EINVAL, "unsupported operand type(s) for +: '%s' and '%s'",
                        hd_val_python_type(a), hd_val_python_type(b));
}

int hd_val_add(struct hd_val *a, const struct hd_val *b, struct hd_val **out,
               struct heddle_error *fault)
{
    int err;

    if (hd_val_is_list(a) && hd_val_is_list(b)) {
        struct hd_val *joined = hd_val_extend(a, b);

        if (joined)
            *out = joined;
        return joined ? 0 : HD_ENOMEM;
    }
    if (is_numeric(a) && is_numeric(b))
        err = add_numbers(a, b, out, fault);
    else if (hd_val_is_string(a) && hd_val_is_string(b))
        err = add_strings(hd_val_get_string(a), hd_val_get_string(b), out);
    else
        err = refuse_sum(a, b, fault);
    hd_val_unref(a);
    return err;
}

/* ---- order ------------------------------------------------------------ */

/* Exact: does not round the integer. */
static int compare_int_double(int64_t a, double b)
{
    int64_t whole;

    if (isnan(b))
        return 2;
    if (b >= 9223372036854775808.0)
        return -1;
    if (b < -9223372036854775808.0)
        return 1;
    whole = (int64_t)b;
    if (a != whole)
        return a < whole ? -1 : 1;
    return (double)whole < b ? -1 : (double)whole > b;
}

static int compare_numbers(const struct hd_val *a, const struct hd_val *b)
{
    int64_t x, y;
    double u, v;
    int order;

    if (as_int(a, &x) && as_int(b, &y))
        return x < y ? -1 : x > y;
    if (as_int(a, &x))
        return compare_int_double(x, as_double(b));
    if (as_int(b, &y)) {
        order = compare_int_double(y, as_double(a));
        return order == 2 ? 2 : -order;
    }
    u = as_double(a);
    v = as_double(b);
    if (isnan(u) || isnan(v))
        return 2;
    return u < v ? -1 : u > v;
}

static int compare_strings(struct hd_slice a, struct hd_slice b)
{
    int order = hd_slice_cmp(a, b);

    return order < 0 ? -1 : order > 0;
}

static int compare_lists(const struct hd_val *a, const struct hd_val *b, int *out,
                         struct heddle_error *fault)
{
    size_t x = hd_val_count(a), y = hd_val_count(b);

    for (size_t i = 0; i < x && i < y; i++) {
        int err;

        if (hd_val_equal(hd_val_at(a, i), hd_val_at(b, i)))
            continue;
        err = hd_val_compare(hd_val_at(a, i), hd_val_at(b, i), out, fault);
        if (err || *out != 0) /* true and 1 differ, but have the same rank */
            return err;
    }
    *out = x < y ? -1 : x > y;
    return 0;
}

int hd_val_compare(const struct hd_val *a, const struct hd_val *b, int *out,
                   struct heddle_error *fault)
{
    if (hd_val_is_list(a) && hd_val_is_list(b))
        return compare_lists(a, b, out, fault);
    if (is_numeric(a) && is_numeric(b))
        *out = compare_numbers(a, b);
    else if (hd_val_is_string(a) && hd_val_is_string(b))
        *out = compare_strings(hd_val_get_string(a), hd_val_get_string(b));
    else
        return hd_error_set(fault, HD_EINVAL,
                            "'<' not supported between instances of '%s' and '%s'",
                            hd_val_python_type(a), hd_val_python_type(b));
    return 0;
}
