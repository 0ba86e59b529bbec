/*
 * Records in expressions: an object whose first member is `$` is a record of docs/encoding.md,
 * whose members may be expressions.
 */
#include "graph/decl/decl_expr.h"

struct record_kind {
    const char *name;
    enum hd_val_kind kind;
};

static const struct record_kind kinds[] = {
    {"message", HD_KIND_MESSAGE},
    {"send", HD_KIND_SEND},
    {"command", HD_KIND_COMMAND},
    {"interrupt", HD_KIND_INTERRUPT},
    {"overwrite", HD_KIND_OVERWRITE},
    {"map", HD_KIND_MAP},
    {"set", HD_KIND_SET},
    {"datetime", HD_KIND_DATETIME},
    {"bytes", HD_KIND_BYTES},
    {"error", HD_KIND_ERROR},
};

bool hd_decl_is_record(hd_json_val val)
{
    struct hd_json_iter it = hd_json_iter(val);

    return hd_json_is_object(val) && hd_json_next(&it) && hd_slice_eq(it.key, HD_S("$"));
}

bool hd_decl_has_record(hd_json_val val)
{
    struct hd_json_iter it = hd_json_iter(val);
    bool has_one = hd_decl_is_record(val);

    while (!has_one && hd_json_next(&it))
        has_one = hd_decl_has_record(it.val);
    return has_one;
}

int hd_decl_record(struct hd_decl *decl, const struct hd_decl_at *at, struct hd_expr *out)
{
    struct heddle_error fault = {0};
    struct hd_val *val = NULL;
    int err = hd_val_from_canon(at->val, &val, &fault);

    if (err == HD_EINVAL)
        return hd_decl_fail(decl, at, "not a valid record: %s", fault.text);
    return err == 0 ? hd_decl_literal(decl, val, out) : err;
}

int hd_decl_record_kind(struct hd_decl *decl, const struct hd_decl_at *at, size_t *out)
{
    hd_json_val val = hd_json_get(at->val, HD_S("$"));
    struct hd_decl_at member = hd_decl_at_key(at, HD_S("$"), val);
    struct hd_near near;

    if (!hd_json_is_string(val))
        return hd_decl_fail_type(decl, &member, "the kind of a record");
    hd_near_init(&near, hd_json_string(val));
    for (size_t i = 0; i < HD_COUNT(kinds); i++) {
        if (hd_slice_eq(hd_json_string(val), hd_slice_cstr(kinds[i].name))) {
            *out = kinds[i].kind;
            return 0;
        }
        hd_near_try(&near, hd_slice_cstr(kinds[i].name));
    }
    return hd_decl_fail(decl, &member, "unknown kind of record%s", hd_near_text(&near));
}
