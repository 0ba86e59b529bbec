/* Built-ins that create messages and sends. The result is null if the arguments are not valid. */
#include "graph/expr/builtin.h"

static int set_null(struct hd_val **out)
{
    *out = hd_val_null();
    return 0;
}

/* ---- messages --------------------------------------------------------- */

static const struct hd_builtin_member plain_members[] = {
    {"content", true},
    {"id", false},
    {"name", false},
    {"additional_kwargs", false},
    {"response_metadata", false},
    {NULL, false},
};

static const struct hd_builtin_member ai_members[] = {
    {"content", true},
    {"id", false},
    {"name", false},
    {"additional_kwargs", false},
    {"response_metadata", false},
    {"tool_calls", false},
    {"usage_metadata", false},
    {NULL, false},
};

static const struct hd_builtin_member tool_members[] = {
    {"content", true},
    {"tool_call_id", true},
    {"id", false},
    {"name", false},
    {"status", false},
    {"artifact", false},
    {"additional_kwargs", false},
    {"response_metadata", false},
    {NULL, false},
};

/* Content is a text or a list of blocks. null becomes an empty text, any other value its text. */
static int make_content(struct hd_eval *ev, const struct hd_val *val, struct hd_val **out)
{
    struct hd_buf buf;
    int err;

    if (hd_val_is_string(val) || hd_val_is_list(val)) {
        *out = hd_val_ref(val);
        return 0;
    }
    hd_eval_buf(ev, &buf);
    err = hd_val_is_null(val) ? 0 : hd_val_write_text(&buf, val);
    return hd_eval_take(ev, &buf, err, out);
}

/* Builds the message in the form that clients send, so that it is checked in the same way. */
static int convert(const struct hd_builtin *call, struct hd_val *content,
                   struct hd_val *const *args, size_t count, struct hd_val **out)
{
    struct hd_val *plain = hd_val_with(hd_val_object(), HD_S("type"), hd_val_cstr(call->text));
    int err;

    plain = hd_val_with(plain, HD_S("content"), content);
    for (size_t i = 1; i < count; i++) {
        if (!hd_val_is_null(args[i]))
            plain = hd_val_with(plain, hd_slice_cstr(call->members[i].name), hd_val_ref(args[i]));
    }
    if (!plain)
        return HD_ENOMEM;
    err = hd_val_to_message(plain, out, NULL);
    hd_val_unref(plain);
    return err == HD_EINVAL ? set_null(out) : err;
}

static int message(struct hd_eval *ev, const struct hd_builtin *call, struct hd_val *const *args,
                   size_t count, struct hd_val **out)
{
    struct hd_val *content = NULL;
    bool has_more = false;
    int err;

    for (size_t i = 1; i < count; i++)
        has_more = has_more || !hd_val_is_null(args[i]);
    err = make_content(ev, args[0], &content);
    if (err == 0)
        err = hd_eval_bytes(ev, 256);
    if (err != 0) {
        hd_val_unref(content);
        return err;
    }
    if (has_more || !hd_val_is_string(content))
        return convert(call, content, args, count, out);
    return hd_eval_give(hd_val_message(call->text, content, NULL), out);
}

static int tool_message(struct hd_eval *ev, const struct hd_builtin *call,
                        struct hd_val *const *args, size_t count, struct hd_val **out)
{
    return hd_val_is_string(args[1]) ? message(ev, call, args, count, out) : set_null(out);
}

/* The argument is an id, or a message with an id. */
static int removal(struct hd_eval *ev, const struct hd_builtin *call, struct hd_val *const *args,
                   size_t count, struct hd_val **out)
{
    const struct hd_val *id = args[0];

    (void)ev;
    (void)call;
    (void)count;
    if (hd_val_kind(id) == HD_KIND_MESSAGE)
        id = hd_val_get(id, HD_S("id"));
    if (!hd_val_is_string(id))
        return set_null(out);
    return hd_eval_give(hd_val_remove(hd_val_get_string(id)), out);
}

/* ---- sends ------------------------------------------------------------ */

static const struct hd_builtin_member send_members[] = {
    {"node", true},
    {"arg", false},
    {NULL, false},
};

static int send(struct hd_eval *ev, const struct hd_builtin *call, struct hd_val *const *args,
                size_t count, struct hd_val **out)
{
    struct hd_val *arg = args[1] ? hd_val_ref(args[1]) : hd_val_null();

    (void)ev;
    (void)call;
    (void)count;
    if (!hd_val_is_string(args[0])) {
        hd_val_unref(arg);
        return set_null(out);
    }
    return hd_eval_give(hd_val_send(hd_val_get_string(args[0]), arg), out);
}

/* The text of a message or of its content: a string unchanged, or the concatenated text blocks. */
static int text_of_message(struct hd_eval *ev, const struct hd_builtin *call,
                           struct hd_val *const *args, size_t count, struct hd_val **out)
{
    const struct hd_val *content = args[0];
    struct hd_buf buf;
    int err;

    (void)call;
    (void)count;
    if (hd_val_is_object(content))
        content = hd_val_get(content, HD_S("content"));
    if (!hd_val_is_list(content))
        return hd_val_is_string(content) ? hd_eval_give(hd_val_ref(content), out) : set_null(out);
    err = hd_eval_step(ev, hd_val_count(content));
    hd_eval_buf(ev, &buf);
    for (size_t i = 0; i < hd_val_count(content) && !err; i++) {
        const struct hd_val *block = hd_val_at(content, i);
        const struct hd_val *text = hd_val_get(block, HD_S("text"));

        err = hd_buf_append_slice(&buf, hd_val_get_string(text ? text : block));
    }
    return hd_eval_take(ev, &buf, err, out);
}

static const struct hd_builtin calls[] = {
    {"@human", HD_ARGS_MESSAGE, 0, 0, message, NULL, plain_members, "human"},
    {"@ai", HD_ARGS_MESSAGE, 0, 0, message, NULL, ai_members, "ai"},
    {"@system", HD_ARGS_MESSAGE, 0, 0, message, NULL, plain_members, "system"},
    {"@tool", HD_ARGS_NAMED, 0, 0, tool_message, NULL, tool_members, "tool"},
    {"@text", HD_ARGS_ONE, 0, 0, text_of_message, NULL, NULL, NULL},
    {"@remove", HD_ARGS_ONE, 0, 0, removal, NULL, NULL, NULL},
    {"@send", HD_ARGS_NAMED, 0, 0, send, NULL, send_members, NULL},
};

const struct hd_builtins hd_builtins_message = {calls, HD_COUNT(calls)};
