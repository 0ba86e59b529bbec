/*
 * Evaluates expressions.
 *
 * Each visited expression and each value that a call reads costs a step, and each created value
 * costs bytes. Both budgets are limited, so no declaration and no state can block the loop for
 * long.
 */
#include "graph/expr/expr.h"

#include <string.h>

#include "base/alloc.h"
#include "graph/expr/builtin.h"

/* Arguments of most calls fit here. */
#define FEW_ARGS 8

/* ---- the budget ------------------------------------------------------- */

int hd_eval_step(struct hd_eval *ev, size_t steps)
{
    if (steps > ev->steps)
        return HD_ELIMIT;
    ev->steps -= steps;
    return 0;
}

int hd_eval_bytes(struct hd_eval *ev, size_t bytes)
{
    if (bytes > ev->bytes)
        return HD_ELIMIT;
    ev->bytes -= bytes;
    return 0;
}

int hd_eval_look(struct hd_eval *ev, const struct hd_val *val)
{
    size_t steps = hd_val_count(val) * (size_t)hd_val_depth(val);

    if (hd_val_is_string(val))
        steps = hd_val_get_string(val).len / 64;
    return hd_eval_step(ev, steps + 1);
}

void hd_eval_buf(struct hd_eval *ev, struct hd_buf *buf)
{
    hd_buf_init(buf, ev->bytes);
}

int hd_eval_give(struct hd_val *val, struct hd_val **out)
{
    if (!val)
        return HD_ENOMEM;
    *out = val;
    return 0;
}

int hd_eval_take(struct hd_eval *ev, struct hd_buf *buf, int err, struct hd_val **out)
{
    if (err == 0)
        err = hd_eval_bytes(ev, buf->len);
    if (err == 0)
        err = hd_eval_give(hd_val_string(hd_buf_slice(buf)), out);
    hd_buf_fini(buf);
    return err;
}

/* ---- paths ------------------------------------------------------------ */

static const struct hd_val *path_root(const struct hd_eval *ev, const struct hd_path *path)
{
    const struct hd_scope *scope = ev->scope;

    switch (path->root) {
    case HD_ROOT_CHANNEL:
        return path->slot < scope->channel_count ? scope->channels[path->slot] : NULL;
    case HD_ROOT_PLACE:
        return scope->places[path->slot];
    case HD_ROOT_VARIABLE:
        return ev->variables[path->slot];
    case HD_ROOT_INPUT:
        break;
    }
    return hd_val_get(scope->input, path->name);
}

const struct hd_val *hd_eval_path(const struct hd_eval *ev, const struct hd_path *path)
{
    const struct hd_val *val = path_root(ev, path);

    for (size_t i = 0; i < path->step_count && val; i++) {
        const struct hd_path_step *step = &path->steps[i];

        val = step->is_index ? hd_val_at_signed(val, step->index) : hd_val_get(val, step->key);
    }
    return val;
}

/* ---- composed values -------------------------------------------------- */

static int eval_path(struct hd_eval *ev, const struct hd_expr *expr, struct hd_val **out)
{
    const struct hd_val *found = hd_eval_path(ev, expr->path);

    *out = found ? hd_val_ref(found) : hd_val_null();
    return 0;
}

static int eval_text(struct hd_eval *ev, const struct hd_expr *expr, struct hd_val **out)
{
    struct hd_buf buf;
    int err = 0;

    hd_eval_buf(ev, &buf);
    for (size_t i = 0; i < expr->count && err == 0; i++) {
        struct hd_val *part = NULL;

        err = hd_eval(ev, &expr->items[i], &part);
        if (err == 0)
            err = hd_val_write_text(&buf, part);
        hd_val_unref(part);
    }
    return hd_eval_take(ev, &buf, err, out);
}

static int eval_list(struct hd_eval *ev, const struct hd_expr *expr, struct hd_val **out)
{
    struct hd_val *list = hd_val_list();
    int err = hd_eval_bytes(ev, expr->count * sizeof(list));

    for (size_t i = 0; i < expr->count && err == 0; i++) {
        struct hd_val *item = NULL;

        err = hd_eval(ev, &expr->items[i], &item);
        if (err == 0)
            list = hd_val_append(list, item);
        if (!list)
            err = HD_ENOMEM;
    }
    if (err == 0)
        return hd_eval_give(list, out);
    hd_val_unref(list);
    return err;
}

static int eval_object(struct hd_eval *ev, const struct hd_expr *expr, struct hd_val **out)
{
    struct hd_val *object = hd_val_object();
    int err = hd_eval_bytes(ev, 2 * expr->count * sizeof(object));

    for (size_t i = 0; i < expr->count && err == 0; i++) {
        struct hd_val *item = NULL;

        err = hd_eval(ev, &expr->items[i], &item);
        if (err == 0)
            object = hd_val_with_key(object, hd_val_ref(expr->keys[i]), item);
        if (!object)
            err = HD_ENOMEM;
    }
    if (err == 0 && expr->op == HD_EXPR_RECORD)
        return hd_eval_record(ev, expr->slot, object, out);
    if (err == 0)
        return hd_eval_give(object, out);
    hd_val_unref(object);
    return err;
}

/* ---- calls ------------------------------------------------------------ */

/* Evaluates the only argument to a list, whose elements are the arguments. */
static int call_spread(struct hd_eval *ev, const struct hd_expr *expr, struct hd_val **out)
{
    struct hd_val *list = NULL, **args = NULL;
    size_t count = 1;
    int err = hd_eval(ev, &expr->items[0], &list);

    if (err != 0)
        return err;
    if (hd_val_is_list(list))
        count = hd_val_count(list);
    args = hd_calloc(count ? count : 1, sizeof(struct hd_val *));
    if (!args) {
        err = HD_ENOMEM;
        goto unref_list;
    }
    args[0] = list;
    for (size_t i = 0; i < count && hd_val_is_list(list); i++)
        args[i] = hd_val_at(list, i);
    err = hd_eval_step(ev, count);
    if (err == 0)
        err = expr->call->apply(ev, expr->call, args, count, out);
    hd_free(args);
unref_list:
    hd_val_unref(list);
    return err;
}

static int call_with(struct hd_eval *ev, const struct hd_expr *expr, struct hd_val **args,
                     struct hd_val **out)
{
    size_t done = 0;
    int err = 0;

    while (done < expr->count && err == 0) {
        if (expr->items[done].op != HD_EXPR_NONE)
            err = hd_eval(ev, &expr->items[done], &args[done]);
        done++;
    }
    if (err == 0)
        err = expr->call->apply(ev, expr->call, args, expr->count, out);
    while (done > 0)
        hd_val_unref(args[--done]);
    return err;
}

static int eval_call(struct hd_eval *ev, const struct hd_expr *expr, struct hd_val **out)
{
    struct hd_val *few[FEW_ARGS] = {0};
    struct hd_val **args = few;
    int err;

    if (expr->call->eval)
        return expr->call->eval(ev, expr, out);
    if (expr->is_spread)
        return call_spread(ev, expr, out);
    if (expr->count > FEW_ARGS) {
        args = hd_calloc(expr->count, sizeof(struct hd_val *));
        if (!args)
            return HD_ENOMEM;
    }
    err = call_with(ev, expr, args, out);
    if (args != few)
        hd_free(args);
    return err;
}

int hd_eval(struct hd_eval *ev, const struct hd_expr *expr, struct hd_val **out)
{
    int err = hd_eval_step(ev, 1);

    if (err != 0)
        return err;
    switch (expr->op) {
    case HD_EXPR_LITERAL:
        *out = hd_val_ref(expr->literal);
        return 0;
    case HD_EXPR_PATH:
        return eval_path(ev, expr, out);
    case HD_EXPR_TEXT:
        return eval_text(ev, expr, out);
    case HD_EXPR_LIST:
        return eval_list(ev, expr, out);
    case HD_EXPR_OBJECT:
    case HD_EXPR_RECORD:
        return eval_object(ev, expr, out);
    case HD_EXPR_CALL:
        return eval_call(ev, expr, out);
    case HD_EXPR_NONE:
        break;
    }
    *out = hd_val_null();
    return 0;
}

/* ---- public ----------------------------------------------------------- */

int hd_expr_eval(const struct hd_expr *expr, const struct hd_scope *scope, struct hd_val **out)
{
    struct hd_eval ev;

    ev.scope = scope;
    ev.steps = HD_EXPR_MAX_STEPS;
    ev.bytes = HD_EXPR_MAX_BYTES;
    return hd_eval(&ev, expr, out);
}

int hd_expr_holds(const struct hd_expr *expr, const struct hd_scope *scope, bool *out)
{
    struct hd_val *val;
    int err = hd_expr_eval(expr, scope, &val);

    if (err != 0)
        return err;
    *out = hd_val_truth(val);
    hd_val_unref(val);
    return 0;
}

const struct hd_val *hd_expr_literal(const struct hd_expr *expr)
{
    return expr->op == HD_EXPR_LITERAL ? expr->literal : NULL;
}

bool hd_expr_member(const struct hd_expr *expr, size_t index, struct hd_slice *key)
{
    struct hd_val *name = NULL;

    if (expr->op == HD_EXPR_OBJECT && index < expr->count)
        name = expr->keys[index];
    else if (expr->op == HD_EXPR_LITERAL)
        (void)hd_val_member(expr->literal, index, &name);
    if (name)
        *key = hd_val_get_string(name);
    return name != NULL;
}

/* ---- names of nodes --------------------------------------------------- */

static int literal_names(const struct hd_val *val, hd_expr_name_fn fn, void *ctx, bool *is_complete)
{
    int err = 0;

    if (hd_val_is_string(val))
        return fn(ctx, hd_val_get_string(val), false);
    for (size_t i = 0; i < hd_val_count(val) && hd_val_is_list(val) && err == 0; i++)
        err = literal_names(hd_val_at(val, i), fn, ctx, is_complete);
    return err;
}

/* Finds all sends in an expression, whether or not they are part of its result. */
static int find_sends(const struct hd_expr *expr, hd_expr_name_fn fn, void *ctx)
{
    int err = 0;

    if (expr->op == HD_EXPR_CALL && hd_slice_eq(hd_slice_cstr(expr->call->name), HD_S("@send")))
        err = fn(ctx, hd_val_get_string(hd_expr_literal(&expr->items[0])), true);
    for (size_t i = 0; i < expr->count && err == 0; i++)
        err = find_sends(&expr->items[i], fn, ctx);
    return err;
}

static int call_names(const struct hd_expr *expr, hd_expr_name_fn fn, void *ctx, bool *is_complete)
{
    struct hd_slice name = hd_slice_cstr(expr->call->name);
    size_t first = 0;
    int err = 0;

    if (hd_slice_eq(name, HD_S("@send"))) {
        *is_complete = *is_complete && hd_expr_literal(&expr->items[0]);
        return find_sends(expr, fn, ctx);
    }
    if (hd_slice_eq(name, HD_S("@if")) || hd_slice_eq(name, HD_S("@map"))) {
        first = 1;
    } else if (!hd_slice_eq(name, HD_S("@add")) && !hd_slice_eq(name, HD_S("@default"))) {
        *is_complete = false;
        return find_sends(expr, fn, ctx);
    }
    for (size_t i = first; i < expr->count && err == 0; i++)
        err = hd_expr_names(&expr->items[i], fn, ctx, is_complete);
    return err;
}

int hd_expr_names(const struct hd_expr *expr, hd_expr_name_fn fn, void *ctx, bool *is_complete)
{
    int err = 0;

    switch (expr->op) {
    case HD_EXPR_LITERAL:
        return literal_names(expr->literal, fn, ctx, is_complete);
    case HD_EXPR_LIST:
        for (size_t i = 0; i < expr->count && err == 0; i++)
            err = hd_expr_names(&expr->items[i], fn, ctx, is_complete);
        return err;
    case HD_EXPR_CALL:
        return call_names(expr, fn, ctx, is_complete);
    default:
        *is_complete = false;
        return 0;
    }
}
