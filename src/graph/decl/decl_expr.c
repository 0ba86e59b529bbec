/* Compiles expressions: those of declarations, and single ones that belong to no graph. */
#include <string.h>

#include "base/alloc.h"
#include "graph/decl/decl_expr.h"

static int read_expr(struct hd_decl *decl, const struct hd_decl_at *at,
                     const struct hd_names *names, int depth, struct hd_expr *out);

/* ---- calls ------------------------------------------------------------ */

const struct hd_builtin *hd_builtin_find(struct hd_slice name, struct hd_near *near)
{
    static const struct hd_builtins *const tables[] = {
        &hd_builtins_logic, &hd_builtins_number,  &hd_builtins_text,
        &hd_builtins_list,  &hd_builtins_message,
    };

    for (size_t i = 0; i < HD_COUNT(tables); i++) {
        for (size_t j = 0; j < tables[i]->count; j++) {
            const struct hd_builtin *call = &tables[i]->list[j];

            if (hd_slice_eq(hd_slice_cstr(call->name), name))
                return call;
            hd_near_try(near, hd_slice_cstr(call->name));
        }
    }
    return NULL;
}

static int make_items(struct hd_decl *decl, struct hd_expr *expr, size_t count)
{
    expr->items = hd_arena_calloc(&decl->hold->arena, count ? count : 1, sizeof(*expr->items));
    expr->count = count;
    return expr->items ? 0 : HD_ENOMEM;
}

static int read_single_item(struct hd_decl *decl, const struct hd_decl_at *at,
                            const struct hd_names *names, int depth, struct hd_expr *out)
{
    int err = make_items(decl, out, 1);

    return err == 0 ? read_expr(decl, at, names, depth, &out->items[0]) : err;
}

static int read_list(struct hd_decl *decl, const struct hd_decl_at *at,
                     const struct hd_names *names, int depth, struct hd_expr *out)
{
    struct hd_json_iter it = hd_json_iter(at->val);
    size_t index = 0;
    int err = make_items(decl, out, hd_json_size(at->val));

    while (err == 0 && hd_json_next(&it)) {
        struct hd_decl_at element = hd_decl_at_index(at, index, it.val);

        err = read_expr(decl, &element, names, depth, &out->items[index++]);
    }
    return err;
}

static int check_count(struct hd_decl *decl, const struct hd_decl_at *at,
                       const struct hd_builtin *call)
{
    size_t count = hd_json_size(at->val);

    if (count >= call->min && (call->args == HD_ARGS_ANY || count <= call->max))
        return 0;
    if (call->args == HD_ARGS_ANY)
        return hd_decl_fail(decl, at, "%s takes at least %zu argument%s, not %zu", call->name,
                            call->min, call->min == 1 ? "" : "s", count);
    if (call->min == call->max)
        return hd_decl_fail(decl, at, "%s takes %zu arguments, not %zu", call->name, call->min,
                            count);
    return hd_decl_fail(decl, at, "%s takes %zu to %zu arguments, not %zu", call->name, call->min,
                        call->max, count);
}

static int read_call_args(struct hd_decl *decl, const struct hd_decl_at *at,
                          const struct hd_names *names, int depth, struct hd_expr *out)
{
    int err;

    if (!hd_json_is_array(at->val) && out->call->args == HD_ARGS_ANY) {
        out->is_spread = true;
        return read_single_item(decl, at, names, depth, out);
    }
    if (!hd_json_is_array(at->val))
        return hd_decl_fail(decl, at, "%s takes a list of arguments, not %s", out->call->name,
                            hd_json_type_name(at->val));
    err = check_count(decl, at, out->call);
    return err == 0 ? read_list(decl, at, names, depth, out) : err;
}

/* ---- calls with named arguments --------------------------------------- */

static int fail_member(struct hd_decl *decl, const struct hd_decl_at *at,
                       const struct hd_builtin *call)
{
    struct hd_near near;

    hd_near_init(&near, at->key);
    for (const struct hd_builtin_member *m = call->members; m->name; m++)
        hd_near_try(&near, hd_slice_cstr(m->name));
    return hd_decl_fail(decl, at, "unknown member of %s%s", call->name, hd_near_text(&near));
}

static int read_named_member(struct hd_decl *decl, const struct hd_decl_at *at,
                             const struct hd_names *names, int depth, struct hd_expr *out)
{
    const struct hd_builtin_member *members = out->call->members;

    for (size_t i = 0; members[i].name; i++) {
        if (hd_slice_eq(hd_slice_cstr(members[i].name), at->key))
            return read_expr(decl, at, names, depth, &out->items[i]);
    }
    return fail_member(decl, at, out->call);
}

static int read_named(struct hd_decl *decl, const struct hd_decl_at *at,
                      const struct hd_names *names, int depth, struct hd_expr *out)
{
    struct hd_json_iter it = hd_json_iter(at->val);
    const struct hd_builtin_member *members = out->call->members;
    size_t count = 0;
    int err;

    if (!hd_json_is_object(at->val))
        return hd_decl_fail(decl, at, "%s takes an object, not %s", out->call->name,
                            hd_json_type_name(at->val));
    while (members[count].name)
        count++;
    err = make_items(decl, out, count);
    while (err == 0 && hd_json_next(&it)) {
        struct hd_decl_at member = hd_decl_at_key(at, it.key, it.val);

        err = read_named_member(decl, &member, names, depth, out);
    }
    for (size_t i = 0; i < count && err == 0; i++) {
        if (members[i].is_required && out->items[i].op == HD_EXPR_NONE)
            err = hd_decl_fail(decl, at, "%s needs a member \"%s\"", out->call->name,
                               members[i].name);
    }
    return err;
}

static bool is_call(hd_json_val val)
{
    struct hd_json_iter it = hd_json_iter(val);

    return hd_json_is_object(val) && hd_json_size(val) == 1 && hd_json_next(&it) &&
           hd_slice_starts(it.key, HD_S("@"));
}

static size_t count_members(const struct hd_builtin *call)
{
    size_t count = 0;

    while (call->members[count].name)
        count++;
    return count;
}

/* Content is a string or a list, so an object must be the members of the message. */
static int read_message_expr(struct hd_decl *decl, const struct hd_decl_at *at,
                             const struct hd_names *names, int depth, struct hd_expr *out)
{
    int err;

    if (hd_json_is_object(at->val) && !is_call(at->val))
        return read_named(decl, at, names, depth, out);
    err = make_items(decl, out, count_members(out->call));
    return err == 0 ? read_expr(decl, at, names, depth, &out->items[0]) : err;
}

/* The slot of a loop is its nesting depth. */
static size_t next_slot(const struct hd_names *names)
{
    for (; names; names = names->outer) {
        if (!names->is_place)
            return names->slot + 1;
    }
    return 0;
}

struct loop {
    struct hd_decl_at over, as, each;
};

static int read_loop(struct hd_decl *decl, const struct hd_decl_at *at,
                     const struct hd_names *names, int depth, struct hd_expr *out)
{
    const struct hd_field list[] = {
        {"over", hd_decl_read_raw, offsetof(struct loop, over), true, 0, 0, 0},
        {"as", hd_decl_read_raw, offsetof(struct loop, as), false, 0, 0, 0},
        {out->call->text, hd_decl_read_raw, offsetof(struct loop, each), true, 0, 0, 0},
    };
    const struct hd_fields fields = HD_FIELDS(list, NULL);
    struct hd_names variable = {.outer = names, .name = HD_S("item"), .slot = next_slot(names)};
    struct loop loop = {0};
    int err = hd_decl_fields(decl, at, &fields, &loop);

    if (err == 0 && hd_raw(&loop.as)) {
        variable.name = hd_json_string(loop.as.val);
        err = hd_decl_check_variable(decl, &loop.as, variable.name);
    }
    if (err == 0)
        err = make_items(decl, out, 2);
    out->slot = variable.slot;
    if (err == 0)
        err = read_expr(decl, &loop.over, names, depth, &out->items[0]);
    if (err == 0)
        err = read_expr(decl, &loop.each, &variable, depth, &out->items[1]);
    return err;
}

static int read_path_argument(struct hd_decl *decl, const struct hd_decl_at *at,
                              const struct hd_names *names, struct hd_expr *out)
{
    if (!hd_json_is_string(at->val))
        return hd_decl_fail(decl, at, "%s takes a path, not %s", out->call->name,
                            hd_json_type_name(at->val));
    return hd_decl_path_read(decl, at, names, hd_json_string(at->val), &out->path);
}

static int read_literal(struct hd_decl *decl, const struct hd_decl_at *at, struct hd_expr *out)
{
    struct heddle_error fault = {0};
    struct hd_val *val = NULL;
    int err = hd_val_from_json(at->val, &val, &fault);

    if (err == HD_EINVAL)
        return hd_decl_fail(decl, at, "%s", fault.text);
    return err == 0 ? hd_decl_literal(decl, val, out) : err;
}

static int read_call(struct hd_decl *decl, const struct hd_decl_at *at,
                     const struct hd_names *names, int depth, struct hd_expr *out)
{
    struct hd_near near;

    hd_near_init(&near, at->key);
    out->op = HD_EXPR_CALL;
    out->call = hd_builtin_find(at->key, &near);
    if (!out->call)
        return hd_decl_fail(decl, at, "unknown call%s", hd_near_text(&near));
    switch (out->call->args) {
    case HD_ARGS_ONE:
        return read_single_item(decl, at, names, depth, out);
    case HD_ARGS_LIST:
    case HD_ARGS_ANY:
        return read_call_args(decl, at, names, depth, out);
    case HD_ARGS_NAMED:
        return read_named(decl, at, names, depth, out);
    case HD_ARGS_MESSAGE:
        return read_message_expr(decl, at, names, depth, out);
    case HD_ARGS_LOOP:
        return read_loop(decl, at, names, depth, out);
    case HD_ARGS_PATH:
        return read_path_argument(decl, at, names, out);
    case HD_ARGS_LITERAL:
        break;
    }
    return read_literal(decl, at, out);
}

/* ---- objects ---------------------------------------------------------- */

static int read_member(struct hd_decl *decl, const struct hd_decl_at *at,
                       const struct hd_names *names, int depth, struct hd_expr *out, size_t index)
{
    struct hd_val *key;
    int err;

    if (hd_slice_starts(at->key, HD_S("@")))
        return hd_decl_fail(decl, at,
                            "a call must be the only member of its object; data with such "
                            "names goes into \"@literal\"");
    if (hd_slice_eq(at->key, HD_S("$")))
        return hd_decl_fail(decl, at, "must be the first member: it makes the object a record");
    key = hd_val_string(at->key);
    err = hd_decl_memory_keep(decl->hold, key);
    if (err == 0) {
        out->keys[index] = key;
        err = read_expr(decl, at, names, depth, &out->items[index]);
    }
    return err;
}

static int read_object_expr(struct hd_decl *decl, const struct hd_decl_at *at,
                            const struct hd_names *names, int depth, struct hd_expr *out)
{
    struct hd_json_iter it = hd_json_iter(at->val);
    size_t size = hd_json_size(at->val), index = 0;
    int err = make_items(decl, out, size);

    out->op = HD_EXPR_OBJECT;
    out->keys = hd_arena_calloc(&decl->hold->arena, size ? size : 1, sizeof(struct hd_val *));
    if (err != 0 || !out->keys)
        return HD_ENOMEM;
    if (hd_decl_is_record(at->val)) {
        out->op = HD_EXPR_RECORD;
        out->count--;
        err = hd_decl_record_kind(decl, at, &out->slot);
        (void)hd_json_next(&it);
    }
    while (err == 0 && hd_json_next(&it)) {
        struct hd_decl_at member = hd_decl_at_key(at, it.key, it.val);

        if (size == 1 && hd_slice_starts(it.key, HD_S("@")))
            err = read_call(decl, &member, names, depth, out);
        else
            err = read_member(decl, &member, names, depth, out, index++);
    }
    return err;
}

/* ---- all expressions -------------------------------------------------- */

/*
 * True if `val` has no paths, no calls and few enough levels. Objects with `$` are plain only if
 * `records_too`.
 */
static bool is_plain_json(hd_json_val val, bool records_too, int depth)
{
    struct hd_json_iter it = hd_json_iter(val);
    struct hd_slice text = hd_json_string(val);
    bool is_so = depth <= HD_EXPR_MAX_DEPTH;

    if (text.len > 0 && memmem(text.ptr, text.len, "{{", 2))
        return false;
    while (is_so && hd_json_next(&it)) {
        is_so = !(it.is_object && hd_slice_starts(it.key, HD_S("@"))) &&
                (records_too || !(it.is_object && hd_slice_eq(it.key, HD_S("$")))) &&
                is_plain_json(it.val, records_too, depth + 1);
    }
    return is_so;
}

static int read_expr(struct hd_decl *decl, const struct hd_decl_at *at,
                     const struct hd_names *names, int depth, struct hd_expr *out)
{
    if (depth >= HD_EXPR_MAX_DEPTH)
        return hd_decl_fail(decl, at, "an expression has at most %d levels", HD_EXPR_MAX_DEPTH);
    if (is_plain_json(at->val, false, depth + 1))
        return read_literal(decl, at, out);
    if (hd_decl_is_record(at->val) && is_plain_json(at->val, true, depth + 1))
        return hd_decl_record(decl, at, out);
    if (hd_json_is_string(at->val))
        return hd_decl_string_expr(decl, at, names, out);
    if (hd_json_is_object(at->val))
        return read_object_expr(decl, at, names, depth + 1, out);
    out->op = HD_EXPR_LIST;
    return read_list(decl, at, names, depth + 1, out);
}

int hd_decl_expr(struct hd_decl *decl, const struct hd_decl_at *at, const struct hd_names *names,
                 const struct hd_expr **out)
{
    struct hd_expr *expr = hd_arena_calloc(&decl->hold->arena, 1, sizeof(*expr));
    int err = expr ? read_expr(decl, at, names, 0, expr) : HD_ENOMEM;

    if (err == 0)
        *out = expr;
    return err;
}

int hd_decl_expr_in(struct hd_decl *decl, const struct hd_decl_at *at, unsigned places,
                    const struct hd_expr **out)
{
    static const char *const names_of[HD_PLACE_COUNT] = {
        [HD_PLACE_ANSWERS] = "answers",   [HD_PLACE_RESULT] = "result",
        [HD_PLACE_RESPONSE] = "response", [HD_PLACE_MESSAGE] = "message",
        [HD_PLACE_ERROR] = "error",
    };
    struct hd_names frames[HD_PLACE_COUNT];
    const struct hd_names *names = NULL;

    for (size_t i = 0; i < HD_PLACE_COUNT; i++) {
        if ((places & (1u << i)) == 0)
            continue;
        frames[i] = (struct hd_names){names, hd_slice_cstr(names_of[i]), true, i};
        names = &frames[i];
    }
    return hd_decl_expr(decl, at, names, out);
}

/* ---- fields ----------------------------------------------------------- */

int hd_decl_read_expr(struct hd_decl *decl, const struct hd_decl_at *at,
                      const struct hd_field *field, void *out)
{
    return hd_decl_expr_in(decl, at, field->places, out);
}

int hd_decl_read_exprs(struct hd_decl *decl, const struct hd_decl_at *at,
                       const struct hd_field *field, void *out)
{
    struct hd_json_iter it = hd_json_iter(at->val);
    size_t size = hd_json_size(at->val);
    struct hd_exprs exprs = {0};
    int err = 0;

    if (!hd_json_is_array(at->val))
        return hd_decl_fail_type(decl, at, "a list of values");
    if (field->max && ((int64_t)size < field->min || (int64_t)size > field->max))
        return hd_decl_fail(decl, at, "must have from %d to %d elements", (int)field->min,
                            (int)field->max);
    exprs.list = hd_arena_calloc(&decl->hold->arena, size ? size : 1, sizeof(struct hd_expr *));
    if (!exprs.list)
        return HD_ENOMEM;
    while (err == 0 && hd_json_next(&it)) {
        struct hd_decl_at element = hd_decl_at_index(at, exprs.count, it.val);

        err = hd_decl_expr_in(decl, &element, field->places, &exprs.list[exprs.count++]);
    }
    *(struct hd_exprs *)out = exprs;
    return err;
}

int hd_decl_read_update(struct hd_decl *decl, const struct hd_decl_at *at,
                        const struct hd_field *field, void *out)
{
    struct hd_json_iter it = hd_json_iter(at->val);
    struct hd_slice text = hd_json_string(at->val);
    size_t ignored;
    int err = 0;

    if (!hd_json_is_object(at->val) && !hd_slice_starts(text, HD_S("{{")))
        return hd_decl_fail_type(decl, at, "an object of channels to values");
    while (!is_call(at->val) && err == 0 && hd_json_next(&it)) {
        struct hd_decl_at member = hd_decl_at_key(at, it.key, it.val);

        if (!hd_slice_starts(it.key, HD_S("@")))
            err = hd_decl_find_channel(decl, &member, it.key, &ignored);
    }
    return err == 0 ? hd_decl_expr_in(decl, at, field->places, out) : err;
}

/* ---- expressions without a graph -------------------------------------- */

struct hd_decl_expr_alone {
    struct hd_decl_memory hold;
    const struct hd_expr *expr;
};

static int name_channels(struct hd_decl *decl, const struct hd_slice *names, size_t count)
{
    struct hd_draft *draft = decl->draft;
    int err = 0;

    draft->channels =
        hd_arena_calloc(&decl->hold->arena, count ? count : 1, sizeof(*draft->channels));
    if (!draft->channels)
        return HD_ENOMEM;
    for (size_t i = 0; i < count && err == 0; i++) {
        err = hd_decl_copy(decl, names[i], &draft->channels[i].name);
        if (err == 0)
            err = hd_map_put(&draft->channel_map, names[i], &draft->channels[i]);
    }
    draft->graph->state_count = count;
    return err;
}

static int read_alone(struct hd_decl *decl, struct hd_slice text, const struct hd_expr **out)
{
    struct heddle_error fault = {0};
    struct hd_json json;
    struct hd_decl_at at = {.key = HD_S("")};
    int err = hd_json_parse(&json, text, &fault);

    if (err == HD_EINVAL)
        return hd_decl_fail(decl, &at, "%s", fault.text);
    if (err != 0)
        return err;
    at.val = hd_json_root(&json);
    err = hd_decl_check_unique(decl, &at);
    if (err == 0)
        err = hd_decl_expr(decl, &at, NULL, out);
    hd_json_fini(&json);
    return err;
}

int hd_decl_expr_create(struct hd_slice json, const struct hd_slice *channels, size_t channel_count,
                        struct hd_decl_expr_alone **out, struct hd_graph_error *error)
{
    struct hd_decl_expr_alone *alone = hd_calloc(1, sizeof(*alone));
    struct hd_graph graph = {0};
    struct hd_draft draft = {.graph = &graph};
    struct hd_decl decl = {.error = error, .draft = &draft};
    int err;

    if (!alone)
        return HD_ENOMEM;
    hd_decl_memory_init(&alone->hold);
    decl.hold = &alone->hold;
    hd_map_init(&draft.channel_map, channel_count);
    err = name_channels(&decl, channels, channel_count);
    if (err == 0)
        err = read_alone(&decl, json, &alone->expr);
    hd_map_fini(&draft.channel_map);
    if (err == 0)
        *out = alone;
    else
        hd_decl_expr_destroy(alone);
    return err;
}

void hd_decl_expr_destroy(struct hd_decl_expr_alone *alone)
{
    if (!alone)
        return;
    hd_decl_memory_fini(&alone->hold);
    hd_free(alone);
}

const struct hd_expr *hd_decl_expr_of(const struct hd_decl_expr_alone *alone)
{
    return alone->expr;
}
