#include "agent/approval.h"

#include <stddef.h>
#include <string.h>

#include "base/compiler.h"

/* Names of verdicts: in policies and replies, and in the interrupt's `config`. */
static const struct {
    const char *allow, *config;
} verdicts[] = {
    [HD_ACCEPT] = {"accept", "allow_accept"},
    [HD_EDIT] = {"edit", "allow_edit"},
    [HD_RESPOND] = {"respond", "allow_respond"},
    [HD_IGNORE] = {"ignore", "allow_ignore"},
};

/* Names in replies, in all forms that clients use. */
static const struct {
    const char *type;
    enum hd_verdict verdict;
} types[] = {
    {"accept", HD_ACCEPT},    {"approve", HD_ACCEPT},  {"edit", HD_EDIT},
    {"response", HD_RESPOND}, {"respond", HD_RESPOND}, {"ignore", HD_IGNORE},
    {"reject", HD_IGNORE},
};

bool hd_pattern_matches(struct hd_slice pattern, struct hd_slice text)
{
    size_t p = 0, t = 0, star = SIZE_MAX, from = 0;

    while (t < text.len) {
        if (p < pattern.len && pattern.ptr[p] == '*') {
            star = p++;
            from = t;
        } else if (p < pattern.len && pattern.ptr[p] == text.ptr[t]) {
            p++;
            t++;
        } else if (star != SIZE_MAX) {
            p = star + 1;
            t = ++from;
        } else {
            return false;
        }
    }
    while (p < pattern.len && pattern.ptr[p] == '*')
        p++;
    return p == pattern.len;
}

/* ---- conditions on arguments ------------------------------------------ */

enum op { OP_EQ, OP_NE, OP_GT, OP_GE, OP_LT, OP_LE, OP_CONTAINS, OP_LIKE, OP_COUNT };

static const char *const op_names[] = {
    [OP_EQ] = "eq",
    [OP_NE] = "ne",
    [OP_GT] = "gt",
    [OP_GE] = "ge",
    [OP_LT] = "lt",
    [OP_LE] = "le",
    [OP_CONTAINS] = "contains",
    [OP_LIKE] = "like",
};

static enum op find_op(struct hd_slice name)
{
    size_t i = 0;

    while (i < OP_COUNT && !hd_slice_eq(name, hd_slice_cstr(op_names[i])))
        i++;
    return (enum op)i;
}

/* An object whose members are all operators is compared by them, any other value by equality. */
static bool is_condition(const struct hd_val *val)
{
    struct hd_val *key;

    for (size_t i = 0; hd_val_is_object(val) && i < hd_val_count(val); i++) {
        (void)hd_val_member(val, i, &key);
        if (find_op(hd_val_get_string(key)) == OP_COUNT)
            return false;
    }
    return hd_val_is_object(val) && hd_val_count(val) > 0;
}

static bool is_in_order(enum op op, const struct hd_val *arg, const struct hd_val *val)
{
    int order = 0;

    if (hd_val_compare(arg, val, &order, NULL) != 0 || order == 2)
        return true;
    switch (op) {
    case OP_GT:
        return order > 0;
    case OP_GE:
        return order >= 0;
    case OP_LT:
        return order < 0;
    default:
        return order <= 0;
    }
}

static bool has_text(struct hd_slice text, struct hd_slice part)
{
    for (size_t i = 0; i + part.len <= text.len; i++) {
        if (part.len == 0 || memcmp(text.ptr + i, part.ptr, part.len) == 0)
            return true;
    }
    return false;
}

static bool arg_contains(const struct hd_val *arg, const struct hd_val *val)
{
    if (hd_val_is_string(arg) && hd_val_is_string(val))
        return has_text(hd_val_get_string(arg), hd_val_get_string(val));
    if (hd_val_is_object(arg) && hd_val_is_string(val))
        return hd_val_get(arg, hd_val_get_string(val)) != NULL;
    for (size_t i = 0; hd_val_is_list(arg) && i < hd_val_count(arg); i++) {
        if (hd_val_equal(hd_val_at(arg, i), val))
            return true;
    }
    return !hd_val_is_list(arg);
}

/* `arg` NULL: the call lacks it. */
static bool op_holds(enum op op, const struct hd_val *arg, const struct hd_val *val)
{
    if (op == OP_EQ || op == OP_NE)
        return hd_val_equal(arg ? arg : hd_val_null(), val) == (op == OP_EQ);
    if (!arg)
        return false;
    if (op == OP_CONTAINS)
        return arg_contains(arg, val);
    if (op == OP_LIKE)
        return !hd_val_is_string(arg) ||
               hd_pattern_matches(hd_val_get_string(val), hd_val_get_string(arg));
    return is_in_order(op, arg, val);
}

static bool condition_holds(const struct hd_val *condition, const struct hd_val *arg)
{
    struct hd_val *key;

    if (!is_condition(condition))
        return op_holds(OP_EQ, arg, condition);
    for (size_t i = 0; i < hd_val_count(condition); i++) {
        const struct hd_val *val = hd_val_member(condition, i, &key);

        if (!op_holds(find_op(hd_val_get_string(key)), arg, val))
            return false;
    }
    return true;
}

static bool args_match(const struct hd_val *conditions, const struct hd_val *args)
{
    struct hd_val *key;

    for (size_t i = 0; i < hd_val_count(conditions); i++) {
        const struct hd_val *condition = hd_val_member(conditions, i, &key);

        if (!condition_holds(condition, hd_val_get(args, hd_val_get_string(key))))
            return false;
    }
    return true;
}

/* ---- policies --------------------------------------------------------- */

static enum hd_verdict find_verdict(struct hd_slice name)
{
    size_t i = 0;

    while (i < HD_VERDICT_COUNT && !hd_slice_eq(name, hd_slice_cstr(verdicts[i].allow)))
        i++;
    return (enum hd_verdict)i;
}

static int check_allow(const struct hd_val *allow, struct heddle_error *fault)
{
    if (hd_val_is_null(allow))
        return 0;
    if (!hd_val_is_list(allow) || hd_val_count(allow) == 0)
        return hd_error_set(fault, HD_EINVAL, "\"allow\" must be a list of answers");
    for (size_t i = 0; i < hd_val_count(allow); i++) {
        if (find_verdict(hd_val_get_string(hd_val_at(allow, i))) == HD_VERDICT_COUNT)
            return hd_error_set(fault, HD_EINVAL,
                                "\"allow\" may contain only accept, edit, respond and ignore");
    }
    return 0;
}

static int check_conditions(const struct hd_val *conditions, struct heddle_error *fault)
{
    struct hd_val *key;

    if (!hd_val_is_null(conditions) && !hd_val_is_object(conditions))
        return hd_error_set(fault, HD_EINVAL, "\"args\" must be an object of arguments");
    for (size_t i = 0; i < hd_val_count(conditions); i++) {
        const struct hd_val *condition = hd_val_member(conditions, i, &key);
        const struct hd_val *like = hd_val_get(condition, HD_S("like"));

        if (is_condition(condition) && like && !hd_val_is_string(like))
            return hd_error_set(fault, HD_EINVAL, "\"like\" must be a string");
    }
    return 0;
}

static int check_rule(const struct hd_val *rule, struct heddle_error *fault)
{
    static const char *const members[] = {"tool", "args", "allow", "description"};
    const struct hd_val *description = hd_val_get(rule, HD_S("description"));
    struct hd_val *key;
    int err;

    if (hd_val_is_string(rule))
        return 0;
    if (!hd_val_is_object(rule) || !hd_val_is_string(hd_val_get(rule, HD_S("tool"))))
        return hd_error_set(fault, HD_EINVAL,
                            "a rule must be the name of a tool, or an object with \"tool\"");
    for (size_t i = 0; i < hd_val_count(rule); i++) {
        size_t known = 0;

        (void)hd_val_member(rule, i, &key);
        while (known < HD_COUNT(members) &&
               !hd_slice_eq(hd_val_get_string(key), hd_slice_cstr(members[known])))
            known++;
        if (known == HD_COUNT(members))
            return hd_error_set(
                fault, HD_EINVAL,
                "a rule may have only \"tool\", \"args\", \"allow\" and \"description\"");
    }
    if (!hd_val_is_null(description) && !hd_val_is_string(description))
        return hd_error_set(fault, HD_EINVAL, "\"description\" must be a string");
    err = check_conditions(hd_val_get(rule, HD_S("args")), fault);
    return err ? err : check_allow(hd_val_get(rule, HD_S("allow")), fault);
}

int hd_approval_check(const struct hd_val *policy, struct heddle_error *fault)
{
    int err = 0;

    if (hd_val_is_null(policy) || hd_val_type(policy) == HD_VAL_BOOL)
        return 0;
    if (!hd_val_is_list(policy))
        return hd_error_set(fault, HD_EINVAL, "must be true, false or a list of rules");
    for (size_t i = 0; i < hd_val_count(policy) && !err; i++)
        err = check_rule(hd_val_at(policy, i), fault);
    return err;
}

static void allow_all(struct hd_approval *out)
{
    *out = (struct hd_approval){.is_needed = true};
    for (int i = 0; i < HD_VERDICT_COUNT; i++)
        out->allows[i] = true;
}

static void apply_rule(const struct hd_val *rule, struct hd_approval *out)
{
    const struct hd_val *allow = hd_val_get(rule, HD_S("allow"));

    allow_all(out);
    if (!hd_val_is_null(allow)) {
        memset(out->allows, 0, sizeof(out->allows));
        for (size_t i = 0; i < hd_val_count(allow); i++)
            out->allows[find_verdict(hd_val_get_string(hd_val_at(allow, i)))] = true;
    }
    out->description = hd_val_get_string(hd_val_get(rule, HD_S("description")));
}

int hd_approval_find(const struct hd_val *policy, struct hd_slice name, struct hd_slice own_name,
                     const struct hd_val *args, struct hd_approval *out, struct heddle_error *fault)
{
    int err = hd_approval_check(policy, fault);

    *out = (struct hd_approval){0};
    if (err)
        return err;
    if (hd_val_is_true(policy))
        allow_all(out);
    for (size_t i = 0; hd_val_is_list(policy) && i < hd_val_count(policy); i++) {
        const struct hd_val *rule = hd_val_at(policy, i);
        struct hd_slice pattern =
            hd_val_get_string(hd_val_is_string(rule) ? rule : hd_val_get(rule, HD_S("tool")));

        if ((hd_pattern_matches(pattern, name) || hd_pattern_matches(pattern, own_name)) &&
            args_match(hd_val_get(rule, HD_S("args")), args)) {
            apply_rule(rule, out);
            break;
        }
    }
    return 0;
}

/* ---- interrupts ------------------------------------------------------- */

/* `[val]` */
static struct hd_val *alone(struct hd_val *val)
{
    return hd_val_append(hd_val_list(), val);
}

/* The call in the form of LangChain's middleware, which newer clients expect. */
static struct hd_val *add_newer_form(struct hd_val *question, const struct hd_approval *approval,
                                     struct hd_slice name, const struct hd_val *args)
{
    static const struct {
        enum hd_verdict verdict;
        const char *decision;
    } decisions[] = {{HD_ACCEPT, "approve"}, {HD_EDIT, "edit"}, {HD_IGNORE, "reject"}};
    struct hd_val *action = hd_val_object(), *review = hd_val_object(), *allowed = hd_val_list();

    action = hd_val_with(action, HD_S("name"), hd_val_string(name));
    action = hd_val_with(action, HD_S("args"), hd_val_ref(args));
    action = hd_val_with(action, HD_S("description"),
                         hd_val_ref(hd_val_get(question, HD_S("description"))));
    for (size_t i = 0; i < HD_COUNT(decisions); i++)
        if (approval->allows[decisions[i].verdict])
            allowed = hd_val_append(allowed, hd_val_cstr(decisions[i].decision));
    review = hd_val_with(review, HD_S("action_name"), hd_val_string(name));
    review = hd_val_with(review, HD_S("allowed_decisions"), allowed);
    question = hd_val_with(question, HD_S("action_requests"), alone(action));
    return hd_val_with(question, HD_S("review_configs"), alone(review));
}

struct hd_val *hd_approval_question(const struct hd_approval *approval, struct hd_slice name,
                                    const struct hd_val *args, struct hd_slice call_id,
                                    const char *error)
{
    struct hd_val *question = hd_val_object(), *action = hd_val_object(), *config = hd_val_object();
    struct hd_val *description =
        approval->description.len > 0
            ? hd_val_string(approval->description)
            : hd_val_printf("The agent wants to call the tool `%.*s`.", (int)name.len, name.ptr);

    action = hd_val_with(action, HD_S("action"), hd_val_string(name));
    action = hd_val_with(action, HD_S("args"), hd_val_ref(args));
    for (int i = HD_VERDICT_COUNT; i-- > 0;)
        config = hd_val_with(config, hd_slice_cstr(verdicts[i].config),
                             hd_val_bool(approval->allows[i]));
    question = hd_val_with(question, HD_S("action_request"), action);
    question = hd_val_with(question, HD_S("config"), config);
    question = hd_val_with(question, HD_S("description"), description);
    question = hd_val_with(question, HD_S("tool_call_id"), hd_val_string(call_id));
    question = add_newer_form(question, approval, name, args);
    if (error)
        question = hd_val_with(question, HD_S("error"), hd_val_cstr(error));
    return question;
}

static bool is_member(const struct hd_val *object, const char *key, struct hd_slice text)
{
    const struct hd_val *val = hd_val_get(object, hd_slice_cstr(key));

    return hd_val_is_string(val) && hd_slice_eq(hd_val_get_string(val), text);
}

bool hd_approval_is_question(const struct hd_val *question, struct hd_slice name,
                             struct hd_slice call_id, struct hd_approval *out)
{
    const struct hd_val *config = hd_val_get(question, HD_S("config"));

    if (!is_member(hd_val_get(question, HD_S("action_request")), "action", name) ||
        !is_member(question, "tool_call_id", call_id) || !hd_val_is_object(config))
        return false;
    *out = (struct hd_approval){.is_needed = true};
    for (int i = 0; i < HD_VERDICT_COUNT; i++)
        out->allows[i] = hd_val_is_true(hd_val_get(config, hd_slice_cstr(verdicts[i].config)));
    return true;
}

/* ---- replies ---------------------------------------------------------- */

void hd_decision_fini(struct hd_decision *answer)
{
    hd_val_unref(answer->args);
    hd_val_unref(answer->text);
    *answer = (struct hd_decision){.verdict = answer->verdict};
}

/*
 * `{"action", "args"}` and `{"name", "args"}` name the tool of the arguments; else they are the
 * arguments alone.
 */
static int read_edit(const struct hd_val *edit, struct hd_slice name, struct hd_decision *out,
                     struct heddle_error *fault)
{
    const struct hd_val *args = hd_val_get(edit, HD_S("args"));
    const struct hd_val *whose = hd_val_get(edit, HD_S("action"));

    if (!whose)
        whose = hd_val_get(edit, HD_S("name"));
    if (hd_val_is_object(args) && hd_val_count(edit) == (whose ? 2u : 1u)) {
        if (whose && !hd_slice_eq(hd_val_get_string(whose), name))
            return hd_error_set(fault, HD_EINVAL,
                                "an edit changes the arguments, not the tool that is called");
        edit = args;
    }
    if (!hd_val_is_object(edit))
        return hd_error_set(fault, HD_EINVAL, "\"args\" of an edit must be an object");
    out->args = hd_val_ref(edit);
    return 0;
}

/* Text unchanged, everything else as JSON. */
static int read_decision_text(const struct hd_val *val, struct hd_decision *out)
{
    struct hd_buf text;
    int err;

    if (hd_val_is_string(val)) {
        out->text = hd_val_ref(val);
        return 0;
    }
    hd_buf_init(&text, (size_t)16 << 20);
    err = hd_val_write_text(&text, val);
    if (!err)
        out->text = hd_val_string(hd_buf_slice(&text));
    hd_buf_fini(&text);
    return err ? err : out->text ? 0 : HD_ENOMEM;
}

/* `args` of the older form, `edited_action` and `message` of the newer one. */
static int read_members(const struct hd_val *answer, struct hd_slice name, struct hd_decision *out,
                        struct heddle_error *fault)
{
    const struct hd_val *args = hd_val_get(answer, HD_S("args"));
    const struct hd_val *message = hd_val_get(answer, HD_S("message"));
    const struct hd_val *edited = hd_val_get(answer, HD_S("edited_action"));

    switch (out->verdict) {
    case HD_EDIT:
        return read_edit(edited ? edited : args, name, out, fault);
    case HD_RESPOND:
        if (hd_val_is_null(message) && hd_val_is_null(args))
            return hd_error_set(fault, HD_EINVAL, "a response needs its text in \"args\"");
        return read_decision_text(hd_val_is_null(message) ? args : message, out);
    case HD_IGNORE:
        if (hd_val_is_string(message) || hd_val_is_string(args))
            return read_decision_text(hd_val_is_string(message) ? message : args, out);
        return 0;
    default:
        return 0;
    }
}

static int read_decision(const struct hd_val *answer, const struct hd_approval *approval,
                         struct hd_slice name, struct hd_decision *out, struct heddle_error *fault)
{
    struct hd_slice type =
        hd_val_get_string(hd_val_is_string(answer) ? answer : hd_val_get(answer, HD_S("type")));
    size_t i = 0;

    while (i < HD_COUNT(types) && !hd_slice_eq(type, hd_slice_cstr(types[i].type)))
        i++;
    if (i == HD_COUNT(types))
        return hd_error_set(
            fault, HD_EINVAL,
            "a reply is an object whose \"type\" is accept, edit, response or ignore");
    out->verdict = types[i].verdict;
    if (!approval->allows[out->verdict])
        return hd_error_set(fault, HD_EINVAL, "the reply \"%.*s\" is not allowed here",
                            (int)type.len, type.ptr);
    return read_members(answer, name, out, fault);
}

/* `{"decisions": [ANSWER]}`, `[ANSWER]`, ANSWER. */
static int unwrap(const struct hd_val **answer, struct heddle_error *fault)
{
    const struct hd_val *decisions = hd_val_get(*answer, HD_S("decisions"));

    if (decisions)
        *answer = decisions;
    if (!hd_val_is_list(*answer))
        return 0;
    if (hd_val_count(*answer) != 1)
        return hd_error_set(fault, HD_EINVAL, "one call needs one reply, not %zu",
                            hd_val_count(*answer));
    *answer = hd_val_at(*answer, 0);
    return 0;
}

int hd_approval_answer(const struct hd_val *answer, const struct hd_approval *approval,
                       struct hd_slice name, struct hd_decision *out, struct heddle_error *fault)
{
    struct hd_val *parsed = NULL;
    int err = 0;

    *out = (struct hd_decision){0};
    /* Some clients send JSON as text. */
    if (hd_val_is_string(answer))
        err = hd_val_parse_json(hd_val_get_string(answer), &parsed, NULL);
    if (err == HD_ENOMEM)
        return err;
    if (parsed)
        answer = parsed;
    err = unwrap(&answer, fault);
    if (!err)
        err = read_decision(answer, approval, name, out, fault);
    hd_val_unref(parsed);
    if (err)
        hd_decision_fini(out);
    return err;
}
