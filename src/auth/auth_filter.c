#include "auth/auth_filter.h"

/* An object whose first member is an operator: {"$eq": …}. */
static bool has_operator(hd_json_val wanted)
{
    struct hd_json_iter it = hd_json_iter(wanted);

    return hd_json_is_object(wanted) && hd_json_next(&it) && hd_slice_starts(it.key, HD_S("$"));
}

static bool is_group(struct hd_slice name)
{
    return hd_slice_eq(name, HD_S("$or")) || hd_slice_eq(name, HD_S("$and"));
}

/* ---- checking --------------------------------------------------------- */

static int check_operators(hd_json_val wanted, struct heddle_error *fault)
{
    struct hd_json_iter it = hd_json_iter(wanted);

    while (hd_json_next(&it)) {
        if (!hd_slice_eq(it.key, HD_S("$eq")) && !hd_slice_eq(it.key, HD_S("$contains")))
            return hd_error_set(fault, HD_EINVAL, "unknown operator \"%.*s\" of a filter",
                                (int)(it.key.len < 40 ? it.key.len : 40), it.key.ptr);
    }
    return 0;
}

static int check_filter(hd_json_val filter, int depth, struct heddle_error *fault);

static int check_group(hd_json_val list, int depth, struct heddle_error *fault)
{
    struct hd_json_iter it = hd_json_iter(list);
    int err = 0;

    if (!hd_json_is_array(list) || hd_json_size(list) == 0)
        return hd_error_set(fault, HD_EINVAL, "$or and $and of a filter need a list of filters");
    if (depth >= HD_AUTH_FILTER_MAX_DEPTH)
        return hd_error_set(fault, HD_EINVAL, "a filter is nested too deeply");
    while (!err && hd_json_next(&it))
        err = check_filter(it.val, depth + 1, fault);
    return err;
}

static int check_filter(hd_json_val filter, int depth, struct heddle_error *fault)
{
    struct hd_json_iter it = hd_json_iter(filter);
    int err = 0;

    if (!hd_json_is_object(filter))
        return hd_error_set(fault, HD_EINVAL, "a filter must be an object, not %s",
                            hd_json_type_name(filter));
    while (!err && hd_json_next(&it)) {
        if (is_group(it.key))
            err = check_group(it.val, depth, fault);
        else if (hd_slice_starts(it.key, HD_S("$")))
            err = hd_error_set(fault, HD_EINVAL,
                               "operator \"%.*s\" of a filter must be inside a member",
                               (int)(it.key.len < 40 ? it.key.len : 40), it.key.ptr);
        else if (has_operator(it.val))
            err = check_operators(it.val, fault);
    }
    return err;
}

int hd_auth_filter_check(hd_json_val filter, struct heddle_error *fault)
{
    return !filter || hd_json_is_null(filter) ? 0 : check_filter(filter, 0, fault);
}

/* ---- matching --------------------------------------------------------- */

static bool has_element(hd_json_val list, hd_json_val wanted)
{
    struct hd_json_iter it = hd_json_iter(list);

    while (hd_json_next(&it)) {
        if (hd_json_equal(it.val, wanted))
            return true;
    }
    return false;
}

static bool contains_wanted(hd_json_val list, hd_json_val wanted)
{
    struct hd_json_iter it = hd_json_iter(wanted);

    if (!hd_json_is_array(list))
        return false;
    if (!hd_json_is_array(wanted))
        return has_element(list, wanted);
    while (hd_json_next(&it)) {
        if (!has_element(list, it.val))
            return false;
    }
    return true;
}

static bool fits(hd_json_val wanted, hd_json_val val)
{
    struct hd_json_iter it = hd_json_iter(wanted);

    if (!val)
        return false;
    if (!has_operator(wanted))
        return hd_json_equal(val, wanted);
    while (hd_json_next(&it)) {
        if (hd_slice_eq(it.key, HD_S("$eq")) ? !hd_json_equal(val, it.val)
                                             : !contains_wanted(val, it.val))
            return false;
    }
    return true;
}

static bool group_allows(bool is_or, hd_json_val list, hd_json_val object)
{
    struct hd_json_iter it = hd_json_iter(list);

    while (hd_json_next(&it)) {
        if (hd_auth_filter_allows(it.val, object) == is_or)
            return is_or;
    }
    return !is_or;
}

bool hd_auth_filter_allows(hd_json_val filter, hd_json_val object)
{
    struct hd_json_iter it = hd_json_iter(filter);

    while (hd_json_next(&it)) {
        bool is_match = is_group(it.key)
                            ? group_allows(hd_slice_eq(it.key, HD_S("$or")), it.val, object)
                            : fits(it.val, hd_json_get(object, it.key));

        if (!is_match)
            return false;
    }
    return true;
}
