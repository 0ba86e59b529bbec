/* Recursion is safe: no document is deeper than HD_JSON_MAX_DEPTH. */
#include "records/item_filter.h"

#include "base/suggest.h"

enum operator{ EQ, NE, GT, GTE, LT, LTE, NONE };

static const char *const operators[] = {"$eq", "$ne", "$gt", "$gte", "$lt", "$lte"};

static enum operator find_operator(struct hd_slice name)
{
    for (size_t i = 0; i < HD_COUNT(operators); i++) {
        if (hd_slice_eq(hd_slice_cstr(operators[i]), name))
            return (enum operator)i;
    }
    return NONE;
}

static bool is_dollar(struct hd_slice name)
{
    return hd_slice_starts(name, HD_S("$"));
}

static bool has_operators(hd_json_val wanted)
{
    struct hd_json_iter it = hd_json_iter(wanted);

    while (hd_json_is_object(wanted) && hd_json_next(&it)) {
        if (is_dollar(it.key))
            return true;
    }
    return false;
}

/* ---- checking ------------------------------------------------------------ */

static int check_operator(struct hd_slice name, hd_json_val operand, struct heddle_error *fault)
{
    enum operator op = find_operator(name);
    struct hd_near near;

    if (!is_dollar(name))
        return hd_error_set(fault, HD_EINVAL,
                            "filter: \"%.*s\" cannot be combined with operators such as $gt",
                            HD_SHOW(name));
    hd_near_init(&near, name);
    for (size_t i = 0; i < HD_COUNT(operators); i++)
        hd_near_try(&near, hd_slice_cstr(operators[i]));
    if (op == NONE)
        return hd_error_set(fault, HD_EINVAL, "filter: unknown operator \"%.*s\"%s", HD_SHOW(name),
                            hd_near_text(&near));
    if (op != EQ && op != NE && !hd_json_is_number(operand) && !hd_json_is_string(operand))
        return hd_error_set(fault, HD_EINVAL, "filter: %s needs a number or a string, not %s",
                            operators[op], hd_json_type_name(operand));
    return 0;
}

static int check_wanted(hd_json_val wanted, struct heddle_error *fault)
{
    struct hd_json_iter it = hd_json_iter(wanted);
    bool is_operators = has_operators(wanted);
    int err = 0;

    while (err == 0 && hd_json_next(&it))
        err = is_operators ? check_operator(it.key, it.val, fault) : check_wanted(it.val, fault);
    return err;
}

int hd_filter_check(hd_json_val filter, struct heddle_error *fault)
{
    if (!filter || hd_json_is_null(filter))
        return 0;
    if (!hd_json_is_object(filter))
        return hd_error_set(fault, HD_EINVAL, "filter must be an object, not %s",
                            hd_json_type_name(filter));
    if (has_operators(filter))
        return hd_error_set(fault, HD_EINVAL,
                            "filter: operators belong to a field: {\"field\": {\"$gt\": 1}}");
    return check_wanted(filter, fault);
}

/* ---- matching ------------------------------------------------------------ */

static bool is_equal(hd_json_val a, hd_json_val b)
{
    bool is_null = !a || hd_json_is_null(a);

    return is_null ? hd_json_is_null(b) : hd_json_equal(a, b);
}

/*
 * -1, 0, 1, or 2 when they have no order. Integers are compared exactly; others as doubles; two
 * that differ by less than the precision of doubles have no order.
 */
static int compare(hd_json_val a, hd_json_val b)
{
    int64_t x, y;
    double u, v;

    if (hd_json_is_string(a) && hd_json_is_string(b)) {
        int order = hd_slice_cmp(hd_json_string(a), hd_json_string(b));

        return order < 0 ? -1 : order > 0;
    }
    if (hd_json_int(a, &x) && hd_json_int(b, &y))
        return x < y ? -1 : x > y;
    if (!hd_json_double(a, &u) || !hd_json_double(b, &v))
        return 2;
    if (u < v || u > v)
        return u < v ? -1 : 1;
    return hd_json_equal(a, b) ? 0 : 2;
}

static bool operator_matches(enum operator op, hd_json_val value, hd_json_val operand)
{
    int order;

    if (op == EQ || op == NE)
        return is_equal(value, operand) == (op == EQ);
    order = compare(value, operand);
    switch (op) {
    case GT:
        return order == 1;
    case GTE:
        return order == 0 || order == 1;
    case LT:
        return order == -1;
    default:
        return order == -1 || order == 0;
    }
}

static bool wanted_matches(hd_json_val wanted, hd_json_val value);

static bool object_matches(hd_json_val wanted, hd_json_val value)
{
    struct hd_json_iter it = hd_json_iter(wanted);
    bool is_operators = has_operators(wanted), is_match = true;

    if (!is_operators && !hd_json_is_object(value))
        return false;
    while (is_match && hd_json_next(&it))
        is_match = is_operators ? operator_matches(find_operator(it.key), value, it.val)
                                : wanted_matches(it.val, hd_json_get(value, it.key));
    return is_match;
}

static bool array_matches(hd_json_val wanted, hd_json_val value)
{
    struct hd_json_iter left = hd_json_iter(wanted), right = hd_json_iter(value);

    if (!hd_json_is_array(value) || hd_json_size(wanted) != hd_json_size(value))
        return false;
    while (hd_json_next(&left) && hd_json_next(&right)) {
        if (!wanted_matches(left.val, right.val))
            return false;
    }
    return true;
}

static bool wanted_matches(hd_json_val wanted, hd_json_val value)
{
    if (hd_json_is_object(wanted))
        return object_matches(wanted, value);
    return hd_json_is_array(wanted) ? array_matches(wanted, value) : is_equal(value, wanted);
}

bool hd_filter_matches(hd_json_val filter, hd_json_val value)
{
    if (!filter || hd_json_is_null(filter))
        return true;
    return object_matches(filter, value);
}
