/*
 * Arithmetic. The result of integers is an integer if it fits into 64 bits; otherwise, or if an
 * operand is a float, it is a float. Without numbers the result is null.
 */
#include <math.h>

#include "graph/expr/builtin.h"

struct number {
    bool is_int;
    int64_t integer;
    double real; /* the value as a double, also for integers */
};

static bool get_number(const struct hd_val *val, struct number *out)
{
    out->is_int = hd_val_get_int(val, &out->integer);
    return hd_val_get_double(val, &out->real);
}

static int give_null(struct hd_val **out)
{
    *out = hd_val_null();
    return 0;
}

/* ---- two numbers ------------------------------------------------------ */

/* A bound well below 2^63, which doubles are precise enough to test. */
static bool fits(double estimate)
{
    return fabs(estimate) < 9.0e18;
}

static struct hd_val *plus(struct number a, struct number b)
{
    if (a.is_int && b.is_int && fits(a.real + b.real))
        return hd_val_int(a.integer + b.integer);
    return hd_val_float(a.real + b.real);
}

static struct hd_val *minus(struct number a, struct number b)
{
    if (a.is_int && b.is_int && fits(a.real - b.real))
        return hd_val_int(a.integer - b.integer);
    return hd_val_float(a.real - b.real);
}

static struct hd_val *times(struct number a, struct number b)
{
    if (a.is_int && b.is_int && fits(a.real * b.real))
        return hd_val_int(a.integer * b.integer);
    return hd_val_float(a.real * b.real);
}

static struct hd_val *divide(struct number a, struct number b)
{
    if (b.real == 0)
        return hd_val_null();
    if (a.is_int && b.is_int && b.integer != -1 && a.integer % b.integer == 0)
        return hd_val_int(a.integer / b.integer);
    if (a.is_int && b.is_int && b.integer == -1 && fits(a.real))
        return hd_val_int(-a.integer);
    return hd_val_float(a.real / b.real);
}

/* The result has the sign of the divisor, as in Python. */
static struct hd_val *modulo(struct number a, struct number b)
{
    double rest;

    if (b.real == 0)
        return hd_val_null();
    if (a.is_int && b.is_int) {
        int64_t whole = b.integer == -1 ? 0 : a.integer % b.integer;

        return hd_val_int(whole != 0 && (whole < 0) != (b.integer < 0) ? whole + b.integer : whole);
    }
    rest = fmod(a.real, b.real);
    if (rest != 0 && (rest < 0) != (b.real < 0))
        rest += b.real;
    return hd_val_float(rest);
}

static int binary(struct hd_eval *ev, const struct hd_builtin *call, struct hd_val *const *args,
                  size_t count, struct hd_val **out)
{
    struct number a, b;

    (void)ev;
    (void)count;
    if (!get_number(args[0], &a) || !get_number(args[1], &b))
        return give_null(out);
    switch (call->text[0]) {
    case '-':
        return hd_eval_give(minus(a, b), out);
    case '*':
        return hd_eval_give(times(a, b), out);
    case '/':
        return hd_eval_give(divide(a, b), out);
    default:
        return hd_eval_give(modulo(a, b), out);
    }
}

/* ---- sums ------------------------------------------------------------- */

static int add_numbers(struct hd_val *const *args, size_t count, struct hd_val **out)
{
    struct hd_val *sum = hd_val_int(0);

    for (size_t i = 0; i < count && sum; i++) {
        struct number a, b;

        if (!get_number(args[i], &b)) {
            hd_val_unref(sum);
            return give_null(out);
        }
        (void)get_number(sum, &a);
        hd_val_unref(sum);
        sum = plus(a, b);
    }
    return hd_eval_give(sum, out);
}

static int add_strings(struct hd_eval *ev, struct hd_val *const *args, size_t count,
                       struct hd_val **out)
{
    struct hd_buf buf;
    int err = 0;

    hd_eval_buf(ev, &buf);
    for (size_t i = 0; i < count && err == 0; i++) {
        if (!hd_val_is_string(args[i])) {
            hd_buf_fini(&buf);
            return give_null(out);
        }
        err = hd_buf_append_slice(&buf, hd_val_get_string(args[i]));
    }
    return hd_eval_take(ev, &buf, err, out);
}

static int add_lists(struct hd_eval *ev, struct hd_val *const *args, size_t count,
                     struct hd_val **out)
{
    struct hd_val *sum = hd_val_ref(args[0]);
    int err = 0;

    for (size_t i = 1; i < count && err == 0 && sum; i++) {
        if (!hd_val_is_list(args[i])) {
            hd_val_unref(sum);
            return give_null(out);
        }
        err = hd_eval_bytes(ev, (hd_val_count(sum) + hd_val_count(args[i])) * sizeof(sum));
        if (err == 0)
            sum = hd_val_extend(sum, args[i]);
    }
    if (err == 0)
        return hd_eval_give(sum, out);
    hd_val_unref(sum);
    return err;
}

static int add_operands(struct hd_eval *ev, const struct hd_builtin *call,
                        struct hd_val *const *args, size_t count, struct hd_val **out)
{
    (void)call;
    if (count > 0 && hd_val_is_string(args[0]))
        return add_strings(ev, args, count, out);
    if (count > 0 && hd_val_is_list(args[0]))
        return add_lists(ev, args, count, out);
    return add_numbers(args, count, out);
}

/* ---- from text -------------------------------------------------------- */

static struct hd_slice trim_number_text(struct hd_slice text)
{
    while (text.len > 0 && strchr(" \t\r\n", text.ptr[0]))
        text = hd_slice(text.ptr + 1, text.len - 1);
    while (text.len > 0 && strchr(" \t\r\n", text.ptr[text.len - 1]))
        text.len--;
    return text;
}

static int number(struct hd_eval *ev, const struct hd_builtin *call, struct hd_val *const *args,
                  size_t count, struct hd_val **out)
{
    struct hd_slice text = trim_number_text(hd_val_get_string(args[0]));
    struct hd_val *parsed = NULL;
    int err;

    (void)ev;
    (void)call;
    (void)count;
    if (hd_val_type(args[0]) == HD_VAL_BOOL)
        return hd_eval_give(hd_val_int(hd_val_is_true(args[0])), out);
    if (hd_val_is_number(args[0])) {
        *out = hd_val_ref(args[0]);
        return 0;
    }
    /* Longer texts are not plausible numbers. */
    if (text.len == 0 || text.len > 400)
        return give_null(out);
    err = hd_val_parse_json(text, &parsed, NULL);
    if (err == HD_ENOMEM)
        return err;
    if (err == 0 && hd_val_is_number(parsed)) {
        *out = parsed;
        return 0;
    }
    hd_val_unref(parsed);
    return give_null(out);
}

static const struct hd_builtin calls[] = {
    {"@add", HD_ARGS_ANY, 1, 0, add_operands, NULL, NULL, NULL},
    {"@sub", HD_ARGS_LIST, 2, 2, binary, NULL, NULL, "-"},
    {"@mul", HD_ARGS_LIST, 2, 2, binary, NULL, NULL, "*"},
    {"@div", HD_ARGS_LIST, 2, 2, binary, NULL, NULL, "/"},
    {"@mod", HD_ARGS_LIST, 2, 2, binary, NULL, NULL, "%"},
    {"@number", HD_ARGS_ONE, 0, 0, number, NULL, NULL, NULL},
};

const struct hd_builtins hd_builtins_number = {calls, HD_COUNT(calls)};
