/* The binary operators. They behave like Python's operators of the same names. */
#include "graph/engine/channel_internal.h"

#include <stdint.h>

static int refuse_operands(struct hd_refusal *refusal, const char *operator,
                           const struct hd_val * left, const struct hd_val *right)
{
    return hd_refuse(refusal, "TypeError",
                     "unsupported operand type(s) for %s: '%s' and '%s'", operator,
                     hd_val_python_type(left), hd_val_python_type(right));
}

int hd_combine_add(struct hd_channel *channel, struct hd_val *left, const struct hd_val *right,
                   struct hd_val **out, struct hd_refusal *refusal)
{
    struct heddle_error fault = {0};
    int err = hd_val_add(left, right, out, &fault);

    (void)channel;
    if (err == HD_ELIMIT)
        return hd_refuse(refusal, "OverflowError", "%s", fault.text);
    if (err == HD_EINVAL)
        return hd_refuse(refusal, "TypeError", "%s", fault.text);
    return err;
}

static bool as_bits(const struct hd_val *val, int64_t *out)
{
    if (hd_val_type(val) != HD_VAL_BOOL)
        return hd_val_get_int(val, out);
    *out = hd_val_is_true(val);
    return true;
}

/* Two booleans give a boolean; otherwise combines integers bit by bit. Takes `left`. */
static int join_bits(struct hd_val *left, const struct hd_val *right, bool is_and,
                     struct hd_val **out, struct hd_refusal *refusal)
{
    bool are_bools = hd_val_type(left) == HD_VAL_BOOL && hd_val_type(right) == HD_VAL_BOOL;
    struct hd_val *made;
    int64_t a, b, bits;
    int err;

    if (!as_bits(left, &a) || !as_bits(right, &b)) {
        err = refuse_operands(refusal, is_and ? "&" : "|", left, right);
        hd_val_unref(left);
        return err;
    }
    hd_val_unref(left);
    bits = is_and ? a & b : a | b;
    made = are_bools ? hd_val_bool(bits != 0) : hd_val_int(bits);
    if (made)
        *out = made;
    return made ? 0 : HD_ENOMEM;
}

static bool is_dict(const struct hd_val *val)
{
    return hd_val_is_object(val) && hd_val_kind(val) == HD_KIND_NONE;
}

int hd_combine_merge(struct hd_channel *channel, struct hd_val *left, const struct hd_val *right,
                     struct hd_val **out, struct hd_refusal *refusal)
{
    struct hd_val *merged;

    (void)channel;
    if (!is_dict(left) || !is_dict(right))
        return join_bits(left, right, false, out, refusal);
    merged = hd_val_merge(left, right);
    if (merged)
        *out = merged;
    return merged ? 0 : HD_ENOMEM;
}

/* Takes `left`, and returns it if the operands are equal or have no order. */
static int choose_operand(struct hd_val *left, const struct hd_val *right, int wanted,
                          struct hd_val **out, struct hd_refusal *refusal)
{
    struct heddle_error fault = {0};
    int order, err = hd_val_compare(right, left, &order, &fault);

    if (err) {
        hd_val_unref(left);
        fault.text[1] = wanted > 0 ? '>' : '<'; /* '<' not supported between … */
        return hd_refuse(refusal, "TypeError", "%s", fault.text);
    }
    if (order != wanted) {
        *out = left;
        return 0;
    }
    hd_val_unref(left);
    *out = hd_val_ref(right);
    return 0;
}

int hd_combine_max(struct hd_channel *channel, struct hd_val *left, const struct hd_val *right,
                   struct hd_val **out, struct hd_refusal *refusal)
{
    (void)channel;
    return choose_operand(left, right, 1, out, refusal);
}

int hd_combine_min(struct hd_channel *channel, struct hd_val *left, const struct hd_val *right,
                   struct hd_val **out, struct hd_refusal *refusal)
{
    (void)channel;
    return choose_operand(left, right, -1, out, refusal);
}

int hd_combine_and(struct hd_channel *channel, struct hd_val *left, const struct hd_val *right,
                   struct hd_val **out, struct hd_refusal *refusal)
{
    (void)channel;
    return join_bits(left, right, true, out, refusal);
}

/* The same operator as `merge`: an overwritten value may be an object here too. */
int hd_combine_or(struct hd_channel *channel, struct hd_val *left, const struct hd_val *right,
                  struct hd_val **out, struct hd_refusal *refusal)
{
    return hd_combine_merge(channel, left, right, out, refusal);
}
