/*
 * Checks arguments against their JSON Schema: required members, and the types of properties. The
 * tool itself checks the rest, in which models rarely err.
 */
#include <math.h>

#include "agent/tools.h"
#include "base/compiler.h"

static bool is_whole(const struct hd_val *val)
{
    double number;

    if (hd_val_type(val) == HD_VAL_INT || hd_val_kind(val) == HD_KIND_INT)
        return true;
    return hd_val_get_double(val, &number) && isfinite(number) && number == floor(number);
}

static bool has_type(const struct hd_val *val, struct hd_slice type)
{
    if (hd_slice_eq(type, HD_S("null")))
        return hd_val_is_null(val);
    if (hd_slice_eq(type, HD_S("boolean")))
        return hd_val_type(val) == HD_VAL_BOOL;
    if (hd_slice_eq(type, HD_S("integer")))
        return is_whole(val);
    if (hd_slice_eq(type, HD_S("number")))
        return hd_val_is_number(val) || hd_val_kind(val) == HD_KIND_INT;
    if (hd_slice_eq(type, HD_S("string")))
        return hd_val_is_string(val);
    if (hd_slice_eq(type, HD_S("array")))
        return hd_val_is_list(val);
    if (hd_slice_eq(type, HD_S("object")))
        return hd_val_is_object(val);
    return true; /* a type that only the tool knows */
}

static bool fits(const struct hd_val *val, const struct hd_val *type)
{
    if (hd_val_is_string(type))
        return has_type(val, hd_val_get_string(type));
    for (size_t i = 0; hd_val_is_list(type) && i < hd_val_count(type); i++) {
        if (has_type(val, hd_val_get_string(hd_val_at(type, i))))
            return true;
    }
    return !hd_val_is_list(type) || hd_val_count(type) == 0;
}

static int fail_type(struct hd_slice name, const struct hd_val *val, const struct hd_val *type,
                     struct heddle_error *fault)
{
    struct hd_buf wanted;
    int err;

    hd_buf_init(&wanted, 128);
    err = hd_val_write_text(&wanted, type);
    hd_error_set(fault, HD_EINVAL, "\"%.*s\" must be of type %.*s, not %s",
                 name.len > 80 ? 80 : (int)name.len, name.ptr, err ? 0 : (int)wanted.len,
                 wanted.ptr ? wanted.ptr : "", hd_val_type_name(val));
    hd_buf_fini(&wanted);
    return HD_EINVAL;
}

/* Models send null for missing members; a tool that requires them returns an error itself. */
static bool is_left_out(const struct hd_val *val, const struct hd_val *key,
                        const struct hd_val *required)
{
    for (size_t i = 0; hd_val_is_list(required) && i < hd_val_count(required); i++) {
        if (hd_val_equal(hd_val_at(required, i), key))
            return false;
    }
    return hd_val_is_null(val);
}

int hd_tool_args_check(const struct hd_val *schema, const struct hd_val *args,
                       struct heddle_error *fault)
{
    const struct hd_val *required = hd_val_get(schema, HD_S("required"));
    const struct hd_val *properties = hd_val_get(schema, HD_S("properties"));

    if (!hd_val_is_object(args))
        return hd_error_set(fault, HD_EINVAL, "the arguments must be an object, not %s",
                            hd_val_type_name(args));
    for (size_t i = 0; hd_val_is_list(required) && i < hd_val_count(required); i++) {
        struct hd_slice name = hd_val_get_string(hd_val_at(required, i));

        if (hd_val_is_string(hd_val_at(required, i)) && !hd_val_get(args, name))
            return hd_error_set(fault, HD_EINVAL, "\"%.*s\" is required",
                                name.len > 80 ? 80 : (int)name.len, name.ptr);
    }
    for (size_t i = 0; i < hd_val_count(args); i++) {
        struct hd_val *key;
        const struct hd_val *val = hd_val_member(args, i, &key);
        const struct hd_val *type =
            hd_val_get(hd_val_get(properties, hd_val_get_string(key)), HD_S("type"));

        if (!fits(val, type) && !is_left_out(val, key, required))
            return fail_type(hd_val_get_string(key), val, type, fault);
    }
    return 0;
}
