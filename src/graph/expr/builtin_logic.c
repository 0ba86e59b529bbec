/* Built-ins for comparisons and conditions. */
#include "graph/expr/builtin.h"

static int give_bool(bool value, struct hd_val **out)
{
    *out = hd_val_bool(value);
    return 0;
}

/* ---- comparisons ------------------------------------------------------ */

static int equal(struct hd_eval *ev, const struct hd_builtin *call, struct hd_val *const *args,
                 size_t count, struct hd_val **out)
{
    int err = hd_eval_look(ev, args[0]);

    (void)count;
    if (err == 0)
        err = give_bool(hd_val_equal(args[0], args[1]) == (call->text[0] == '='), out);
    return err;
}

static bool have_order(const struct hd_val *a, const struct hd_val *b)
{
    return (hd_val_is_number(a) && hd_val_is_number(b)) ||
           (hd_val_is_string(a) && hd_val_is_string(b));
}

/* call->text lists the signs (<, =, >) for which the result is true. */
static int order(struct hd_eval *ev, const struct hd_builtin *call, struct hd_val *const *args,
                 size_t count, struct hd_val **out)
{
    int sign = 0;
    int err;

    (void)count;
    if (!have_order(args[0], args[1]))
        return give_bool(false, out);
    err = hd_eval_look(ev, args[0]);
    if (err == 0)
        err = hd_val_compare(args[0], args[1], &sign, NULL);
    if (err == 0 && sign == 2)
        return give_bool(false, out);
    if (err == 0)
        err = give_bool(strchr(call->text, sign < 0 ? '<' : sign > 0 ? '>' : '=') != NULL, out);
    return err;
}

/* ---- truth ------------------------------------------------------------ */

/* Stops at the first argument that decides the result: a false one for @and, a true one for @or. */
static int and_or(struct hd_eval *ev, const struct hd_expr *expr, struct hd_val **out)
{
    bool is_or = expr->call->text[0] == '|';
    bool result = !is_or;
    int err = 0;

    for (size_t i = 0; i < expr->count && err == 0 && result != is_or; i++) {
        struct hd_val *val = NULL;

        err = hd_eval(ev, &expr->items[i], &val);
        if (err != 0)
            break;
        result = hd_val_truth(val);
        if (expr->is_spread && hd_val_is_list(val)) {
            result = !is_or;
            for (size_t j = 0; j < hd_val_count(val) && result != is_or; j++)
                result = hd_val_truth(hd_val_at(val, j));
            err = hd_eval_step(ev, hd_val_count(val));
        }
        hd_val_unref(val);
    }
    return err == 0 ? give_bool(result, out) : err;
}

static int negate(struct hd_eval *ev, const struct hd_builtin *call, struct hd_val *const *args,
                  size_t count, struct hd_val **out)
{
    (void)ev;
    (void)call;
    (void)count;
    return give_bool(!hd_val_truth(args[0]), out);
}

static int eval_if(struct hd_eval *ev, const struct hd_expr *expr, struct hd_val **out)
{
    struct hd_val *condition;
    int err = hd_eval(ev, &expr->items[0], &condition);
    bool holds;

    if (err != 0)
        return err;
    holds = hd_val_truth(condition);
    hd_val_unref(condition);
    if (holds)
        return hd_eval(ev, &expr->items[1], out);
    if (expr->count > 2)
        return hd_eval(ev, &expr->items[2], out);
    *out = hd_val_null();
    return 0;
}

/* Returns the first argument that is not null. */
static int fall_back(struct hd_eval *ev, const struct hd_expr *expr, struct hd_val **out)
{
    struct hd_val *val = hd_val_null();
    int err = 0;

    for (size_t i = 0; i < expr->count && err == 0 && hd_val_is_null(val); i++)
        err = hd_eval(ev, &expr->items[i], &val);
    if (err == 0)
        *out = val;
    return err;
}

static int exists(struct hd_eval *ev, const struct hd_expr *expr, struct hd_val **out)
{
    return give_bool(hd_eval_path(ev, expr->path) != NULL, out);
}

static int type_of(struct hd_eval *ev, const struct hd_builtin *call, struct hd_val *const *args,
                   size_t count, struct hd_val **out)
{
    static const char *const names[] = {
        [HD_VAL_NULL] = "null",     [HD_VAL_BOOL] = "boolean",  [HD_VAL_INT] = "number",
        [HD_VAL_FLOAT] = "number",  [HD_VAL_STRING] = "string", [HD_VAL_LIST] = "list",
        [HD_VAL_OBJECT] = "object",
    };

    (void)ev;
    (void)call;
    (void)count;
    return hd_eval_give(hd_val_cstr(names[hd_val_type(args[0])]), out);
}

static const struct hd_builtin calls[] = {
    {"@eq", HD_ARGS_LIST, 2, 2, equal, NULL, NULL, "="},
    {"@ne", HD_ARGS_LIST, 2, 2, equal, NULL, NULL, "!"},
    {"@lt", HD_ARGS_LIST, 2, 2, order, NULL, NULL, "<"},
    {"@le", HD_ARGS_LIST, 2, 2, order, NULL, NULL, "<="},
    {"@gt", HD_ARGS_LIST, 2, 2, order, NULL, NULL, ">"},
    {"@ge", HD_ARGS_LIST, 2, 2, order, NULL, NULL, ">="},
    {"@and", HD_ARGS_ANY, 0, 0, NULL, and_or, NULL, "&"},
    {"@or", HD_ARGS_ANY, 0, 0, NULL, and_or, NULL, "|"},
    {"@not", HD_ARGS_ONE, 0, 0, negate, NULL, NULL, NULL},
    {"@if", HD_ARGS_LIST, 2, 3, NULL, eval_if, NULL, NULL},
    {"@default", HD_ARGS_LIST, 1, 64, NULL, fall_back, NULL, NULL},
    {"@type", HD_ARGS_ONE, 0, 0, type_of, NULL, NULL, NULL},
    {"@exists", HD_ARGS_PATH, 0, 0, NULL, exists, NULL, NULL},
    {"@literal", HD_ARGS_LITERAL, 0, 0, NULL, NULL, NULL, NULL},
};

const struct hd_builtins hd_builtins_logic = {calls, HD_COUNT(calls)};
