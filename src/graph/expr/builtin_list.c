/* Built-ins for lists and objects. */
#include <string.h>

#include "base/utf8.h"
#include "graph/expr/builtin.h"

static int give_null(struct hd_val **out)
{
    *out = hd_val_null();
    return 0;
}

/* ---- characters ------------------------------------------------------- */

static size_t char_len(const char *pos, const char *end)
{
    size_t len = hd_utf8_char(pos, end);

    return len ? len : 1;
}

static size_t count_chars(struct hd_slice text)
{
    size_t count = 0;

    for (size_t pos = 0; pos < text.len; count++)
        pos += char_len(text.ptr + pos, text.ptr + text.len);
    return count;
}

/* The bytes of the characters with indexes `from` to `to` - 1. */
static struct hd_slice cut_chars(struct hd_slice text, size_t from, size_t to)
{
    size_t pos = 0, start = text.len, index = 0;

    for (; pos < text.len && index < to; index++) {
        if (index == from)
            start = pos;
        pos += char_len(text.ptr + pos, text.ptr + text.len);
    }
    return start < pos ? hd_slice(text.ptr + start, pos - start) : HD_S("");
}

static int length(struct hd_eval *ev, const struct hd_builtin *call, struct hd_val *const *args,
                  size_t count, struct hd_val **out)
{
    size_t size = hd_val_count(args[0]);
    int err = 0;

    (void)call;
    (void)count;
    if (hd_val_is_string(args[0])) {
        err = hd_eval_look(ev, args[0]);
        size = count_chars(hd_val_get_string(args[0]));
    } else if (!hd_val_is_list(args[0]) && !hd_val_is_object(args[0]) && !hd_val_is_null(args[0])) {
        return give_null(out);
    }
    return err == 0 ? hd_eval_give(hd_val_int((int64_t)size), out) : err;
}

/* ---- lookup ----------------------------------------------------------- */

static int list_has(struct hd_eval *ev, const struct hd_val *list, const struct hd_val *val,
                    bool *out)
{
    int err = hd_eval_step(ev, hd_val_count(list));

    *out = false;
    for (size_t i = 0; i < hd_val_count(list) && err == 0 && !*out; i++) {
        if (hd_val_depth(val) > 0)
            err = hd_eval_look(ev, val);
        *out = hd_val_equal(hd_val_at(list, i), val);
    }
    return err;
}

static int contains_value(struct hd_eval *ev, const struct hd_builtin *call,
                          struct hd_val *const *args, size_t count, struct hd_val **out)
{
    bool is_in = call->text[0] == 'i';
    const struct hd_val *whole = args[is_in ? 1 : 0], *part = args[is_in ? 0 : 1];
    struct hd_slice text = hd_val_get_string(whole), key = hd_val_get_string(part);
    bool found = false;
    int err = 0;

    (void)count;
    if (hd_val_is_list(whole)) {
        err = list_has(ev, whole, part, &found);
    } else if (hd_val_is_object(whole)) {
        found = hd_val_is_string(part) && hd_val_get(whole, key);
    } else if (hd_val_is_string(whole) && hd_val_is_string(part)) {
        err = hd_eval_look(ev, whole);
        found = memmem(text.ptr, text.len, key.ptr, key.len) != NULL;
    }
    *out = hd_val_bool(found);
    return err;
}

static int get(struct hd_eval *ev, const struct hd_builtin *call, struct hd_val *const *args,
               size_t count, struct hd_val **out)
{
    struct hd_val *found = NULL;
    int64_t index;

    (void)ev;
    (void)call;
    (void)count;
    if (hd_val_is_string(args[1]))
        found = hd_val_get(args[0], hd_val_get_string(args[1]));
    else if (hd_val_get_int(args[1], &index))
        found = hd_val_at_signed(args[0], index);
    *out = found ? hd_val_ref(found) : hd_val_null();
    return 0;
}

static int end_of_list(struct hd_eval *ev, const struct hd_builtin *call,
                       struct hd_val *const *args, size_t count, struct hd_val **out)
{
    struct hd_val *found = hd_val_at_signed(args[0], call->text[0] == '0' ? 0 : -1);

    (void)ev;
    (void)count;
    *out = found ? hd_val_ref(found) : hd_val_null();
    return 0;
}

/* ---- slices and ranges ------------------------------------------------ */

/*
 * A negative index counts from the end; an index out of range becomes the nearest end. False if
 * `val` is neither null nor an integer.
 */
static bool get_bound(const struct hd_val *val, size_t size, size_t otherwise, size_t *out)
{
    int64_t index;

    *out = otherwise;
    if (hd_val_is_null(val))
        return true;
    if (!hd_val_get_int(val, &index))
        return false;
    if (index < 0)
        index = index < -(int64_t)size ? 0 : index + (int64_t)size;
    *out = (uint64_t)index > size ? size : (size_t)index;
    return true;
}

static int slice_value(struct hd_eval *ev, const struct hd_builtin *call,
                       struct hd_val *const *args, size_t count, struct hd_val **out)
{
    bool is_string = hd_val_is_string(args[0]);
    struct hd_slice text = hd_val_get_string(args[0]);
    size_t size = is_string ? count_chars(text) : hd_val_count(args[0]);
    size_t from, to;
    int err;

    (void)call;
    if ((!is_string && !hd_val_is_list(args[0])) || !get_bound(args[1], size, 0, &from) ||
        !get_bound(count > 2 ? args[2] : NULL, size, size, &to))
        return give_null(out);
    to = to < from ? from : to;
    err = is_string ? hd_eval_look(ev, args[0]) : hd_eval_step(ev, to - from);
    if (err == 0)
        err = hd_eval_bytes(ev, is_string ? text.len : (to - from) * sizeof(struct hd_val *));
    if (err != 0)
        return err;
    return hd_eval_give(is_string ? hd_val_string(cut_chars(text, from, to))
                                  : hd_val_slice(args[0], from, to),
                        out);
}

static int range(struct hd_eval *ev, const struct hd_builtin *call, struct hd_val *const *args,
                 size_t count, struct hd_val **out)
{
    struct hd_val *list;
    int64_t size;
    int err;

    (void)call;
    (void)count;
    if (!hd_val_get_int(args[0], &size))
        return give_null(out);
    size = size < 0 ? 0 : size;
    err = hd_eval_step(ev, (size_t)size);
    if (err == 0)
        err = hd_eval_bytes(ev, (size_t)size * sizeof(list));
    if (err != 0)
        return err;
    list = hd_val_list();
    for (int64_t i = 0; i < size && list; i++)
        list = hd_val_append(list, hd_val_int(i));
    return hd_eval_give(list, out);
}

/* ---- loops ------------------------------------------------------------ */

/* One iteration: @map appends the result, @filter appends the element if the result is true. */
static int loop_once(struct hd_eval *ev, const struct hd_expr *expr, struct hd_val *item,
                     struct hd_val **list)
{
    bool is_filter = expr->call->name[1] == 'f';
    struct hd_val *val = NULL;
    int err;

    ev->variables[expr->slot] = item;
    err = hd_eval(ev, &expr->items[1], &val);
    if (err == 0 && is_filter) {
        bool holds = hd_val_truth(val);

        hd_val_unref(val);
        if (!holds)
            return 0;
        val = hd_val_ref(item);
    }
    if (err == 0)
        err = hd_eval_bytes(ev, sizeof(val));
    if (err != 0) {
        hd_val_unref(val);
        return err;
    }
    *list = hd_val_append(*list, val);
    return *list ? 0 : HD_ENOMEM;
}

static int loop(struct hd_eval *ev, const struct hd_expr *expr, struct hd_val **out)
{
    struct hd_val *over = NULL, *list;
    int err = hd_eval(ev, &expr->items[0], &over);

    if (err != 0)
        return err;
    list = hd_val_list();
    if (!list)
        err = HD_ENOMEM;
    for (size_t i = 0; err == 0 && hd_val_is_list(over) && i < hd_val_count(over); i++)
        err = loop_once(ev, expr, hd_val_at(over, i), &list);
    hd_val_unref(over);
    if (err == 0)
        return hd_eval_give(list, out);
    hd_val_unref(list);
    return err;
}

/* ---- objects ---------------------------------------------------------- */

static int merge(struct hd_eval *ev, const struct hd_builtin *call, struct hd_val *const *args,
                 size_t count, struct hd_val **out)
{
    struct hd_val *object = hd_val_object();
    int err = 0;

    (void)call;
    for (size_t i = 0; i < count && err == 0 && object; i++) {
        if (!hd_val_is_object(args[i]))
            continue;
        err = hd_eval_step(ev, hd_val_count(args[i]));
        if (err == 0)
            err = hd_eval_bytes(ev, hd_val_count(args[i]) * 2 * sizeof(object));
        if (err == 0)
            object = hd_val_merge(object, args[i]);
    }
    if (err == 0)
        return hd_eval_give(object, out);
    hd_val_unref(object);
    return err;
}

static const struct hd_builtin calls[] = {
    {"@len", HD_ARGS_ONE, 0, 0, length, NULL, NULL, NULL},
    {"@in", HD_ARGS_LIST, 2, 2, contains_value, NULL, NULL, "in"},
    {"@contains", HD_ARGS_LIST, 2, 2, contains_value, NULL, NULL, "contains"},
    {"@get", HD_ARGS_LIST, 2, 2, get, NULL, NULL, NULL},
    {"@first", HD_ARGS_ONE, 0, 0, end_of_list, NULL, NULL, "0"},
    {"@last", HD_ARGS_ONE, 0, 0, end_of_list, NULL, NULL, "-1"},
    {"@slice", HD_ARGS_LIST, 2, 3, slice_value, NULL, NULL, NULL},
    {"@range", HD_ARGS_ONE, 0, 0, range, NULL, NULL, NULL},
    {"@map", HD_ARGS_LOOP, 0, 0, NULL, loop, NULL, "value"},
    {"@filter", HD_ARGS_LOOP, 0, 0, NULL, loop, NULL, "when"},
    {"@merge", HD_ARGS_ANY, 0, 0, merge, NULL, NULL, NULL},
};

const struct hd_builtins hd_builtins_list = {calls, HD_COUNT(calls)};
