/*
 * Converts messages in all forms that clients send into message records.
 *
 * A message is written to a separate buffer and validated there before it goes to the caller, so
 * that the tables alone decide validity; this code only converts the forms into one.
 */
#include "store/codec/canon.h"

#include <stdint.h>
#include <string.h>

#include "store/codec/canon_internal.h"

static void message_put_key(struct hd_jw *jw, const char *key)
{
    hd_jw_key(jw, hd_slice_cstr(key));
}

static hd_json_val message_get(hd_json_val object, const char *name)
{
    return hd_json_get(object, hd_slice_cstr(name));
}

static bool message_is_kind(struct hd_slice s, const char *name)
{
    return hd_slice_eq(s, hd_slice_cstr(name));
}

/* ---- forms ------------------------------------------------------------ */

/* A message of any form, taken apart. */
struct message_source {
    const struct hd_canon_type *type;
    hd_json_val content; /* NULL: absent */
    hd_json_val fields;  /* an object with the other members, or NULL */
    bool is_developer;   /* OpenAI's role `developer`, a system message */
};

static const struct hd_canon_type *type_of_role(struct hd_slice role)
{
    static const char *const roles[][2] = {
        {"user", "human"}, {"assistant", "ai"}, {"developer", "system"}};
    size_t i;

    for (i = 0; i < HD_COUNT(roles); i++)
        if (message_is_kind(role, roles[i][0]))
            return hd_canon_type_find(hd_slice_cstr(roles[i][1]));
    return hd_canon_type_find(role);
}

static int refuse_role(struct hd_slice role, struct heddle_error *fault)
{
    return hd_error_set(fault, HD_EINVAL, "\"%.*s\" is not a message type or role",
                        (int)(role.len < 100 ? role.len : 100), role.ptr ? role.ptr : "");
}

/* ["user", content] */
static int read_pair(hd_json_val pair, struct message_source *out, struct heddle_error *fault)
{
    struct hd_json_iter it = hd_json_iter(pair);
    struct hd_slice role;

    if (hd_json_size(pair) != 2 || !hd_json_next(&it) || !hd_json_is_string(it.val))
        return hd_error_set(fault, HD_EINVAL, "a message in an array is [role, content]");
    role = hd_json_string(it.val);
    out->type = type_of_role(role);
    out->is_developer = message_is_kind(role, "developer");
    if (!out->type)
        return refuse_role(role, fault);
    if (hd_json_next(&it))
        out->content = it.val;
    return 0;
}

/* {"lc":1,"type":"constructor","id":["langchain_core","messages","HumanMessage"],"kwargs":{…}} */
static int read_constructor(hd_json_val message, struct message_source *out,
                            struct heddle_error *fault)
{
    struct hd_json_iter it = hd_json_iter(message_get(message, "id"));
    struct hd_slice class_name = {0};

    while (hd_json_next(&it))
        class_name = hd_json_string(it.val);
    out->type = hd_canon_type_of_class(class_name);
    out->fields = message_get(message, "kwargs");
    if (!out->type)
        return refuse_role(class_name, fault);
    if (!hd_json_is_object(out->fields))
        return hd_error_set(fault, HD_EINVAL, "a serialized message needs an object \"kwargs\"");
    out->content = message_get(out->fields, "content");
    return 0;
}

static int message_read_object(hd_json_val message, struct message_source *out,
                               struct heddle_error *fault)
{
    struct hd_slice type = hd_json_string(message_get(message, "type"));
    struct hd_slice role = hd_json_string(message_get(message, "role"));

    if (message_is_kind(type, "constructor") && message_get(message, "lc"))
        return read_constructor(message, out, fault);
    out->fields = message;
    out->content = message_get(message, "content");
    out->type = hd_canon_type_find(type);
    if (out->type)
        return 0;
    out->type = type_of_role(role.len > 0 ? role : type);
    out->is_developer = message_is_kind(role, "developer");
    if (!out->type && role.len == 0 && type.len == 0)
        return hd_error_set(fault, HD_EINVAL, "a message needs a string \"type\" or \"role\"");
    return out->type ? 0 : refuse_role(role.len > 0 ? role : type, fault);
}

static int read_source(hd_json_val message, struct message_source *out, struct heddle_error *fault)
{
    if (hd_json_is_object(message))
        return message_read_object(message, out, fault);
    if (hd_json_is_array(message))
        return read_pair(message, out, fault);
    if (!hd_json_is_string(message))
        return hd_error_set(fault, HD_EINVAL, "a message is an object, not %s",
                            hd_json_type_name(message));
    out->type = hd_canon_type_find(HD_S("human"));
    out->content = message;
    return 0;
}

static bool is_ai(const struct message_source *source)
{
    return hd_canon_member_find(source->type->members, HD_S("tool_calls")) != NULL;
}

/* ---- tool calls ------------------------------------------------------- */

/* One tool call, in LangChain's or OpenAI's form. */
struct message_call {
    hd_json_val name;
    hd_json_val id;
    hd_json_val args;      /* parsed: an object; NULL when not parseable */
    hd_json_val arguments; /* the text of OpenAI's form, or NULL */
    struct hd_json parsed; /* owns args when they came as text */
};

static void call_fini(struct message_call *call)
{
    hd_json_fini(&call->parsed);
}

/* Only HD_ENOMEM is an error; arguments that are not a JSON object leave args NULL. */
static int message_read_call(hd_json_val val, struct message_call *call)
{
    hd_json_val function = message_get(val, "function");
    int err;

    *call = (struct message_call){.id = message_get(val, "id")};
    call->name = message_get(function ? function : val, "name");
    call->args = message_get(function ? function : val, function ? "arguments" : "args");
    if (!function || !hd_json_is_string(call->args))
        return 0;
    call->arguments = call->args;
    call->args = NULL;
    err = hd_json_parse(&call->parsed, hd_json_string(call->arguments), NULL);
    if (err == 0 && hd_json_is_object(hd_json_root(&call->parsed)))
        call->args = hd_json_root(&call->parsed);
    return err == HD_ENOMEM ? err : 0;
}

/* Additional members of a call, such as `index`. */
static int put_call_extras(struct hd_jw *jw, hd_json_val val, struct heddle_error *fault)
{
    static const char *const own[] = {"name", "args", "id", "type", "function", "$"};
    struct hd_json_iter it = hd_json_iter(val);
    int err = 0;

    while (err == 0 && hd_json_next(&it)) {
        size_t i = 0;

        while (i < HD_COUNT(own) && !message_is_kind(it.key, own[i]))
            i++;
        if (i < HD_COUNT(own))
            continue;
        hd_jw_key(jw, it.key);
        err = hd_canon_write_plain(jw, it.val, fault);
    }
    return err;
}

static int put_valid_call(struct hd_jw *jw, hd_json_val val, const struct message_call *call,
                          struct heddle_error *fault)
{
    int err;

    hd_jw_object(jw);
    err = hd_canon_put_or_null(jw, "name", call->name, fault);
    message_put_key(jw, "args");
    if (err == 0 && call->args)
        err = hd_canon_write_plain(jw, call->args, fault);
    else
        hd_jw_raw(jw, HD_S("{}"));
    if (err == 0)
        err = hd_canon_put_or_null(jw, "id", call->id, fault);
    message_put_key(jw, "type");
    hd_jw_string(jw, HD_S("tool_call"));
    if (err == 0)
        err = put_call_extras(jw, val, fault);
    hd_jw_object_end(jw);
    return err;
}

static int put_invalid_call(struct hd_jw *jw, const struct message_call *call,
                            struct heddle_error *fault)
{
    int err;

    hd_jw_object(jw);
    message_put_key(jw, "type");
    hd_jw_string(jw, HD_S("invalid_tool_call"));
    err = hd_canon_put_or_null(jw, "id", call->id, fault);
    if (err == 0)
        err = hd_canon_put_or_null(jw, "name", call->name, fault);
    if (err == 0)
        err = hd_canon_put_or_null(jw, "args", call->arguments, fault);
    message_put_key(jw, "error");
    hd_jw_string(jw, HD_S("the arguments are not a JSON object"));
    hd_jw_object_end(jw);
    return err;
}

/* Writes the valid calls, or the invalid ones; *count is their number. */
static int put_calls(struct hd_jw *jw, hd_json_val calls, bool is_valid, size_t *count,
                     struct heddle_error *fault)
{
    struct hd_json_iter it = hd_json_iter(calls);
    int err = 0;

    while (err == 0 && hd_json_next(&it)) {
        struct message_call call;

        err = message_read_call(it.val, &call);
        if (err == 0 && is_valid == (call.args || !call.arguments)) {
            err = is_valid ? put_valid_call(jw, it.val, &call, fault)
                           : put_invalid_call(jw, &call, fault);
            ++*count;
        }
        call_fini(&call);
    }
    return err == 0 ? jw->err : hd_canon_fail(jw, err);
}

/* ---- the other members ------------------------------------------------ */

static bool is_default(const struct hd_canon_member *member, hd_json_val val)
{
    const char *fallback = member->fallback ? member->fallback : "";

    switch (fallback[0]) {
    case '[':
        return hd_json_is_array(val) && hd_json_size(val) == 0;
    case '{':
        return hd_json_is_object(val) && hd_json_size(val) == 0;
    case '"':
        return hd_json_is_string(val) &&
               hd_slice_eq(hd_json_string(val), hd_slice(fallback + 1, strlen(fallback) - 2));
    default:
        return false;
    }
}

/* Members that go to additional_kwargs, as LangChain does with unknown ones. */
static bool is_extra(const struct message_source *source, struct hd_slice key, hd_json_val val)
{
    const struct hd_canon_member *member = hd_canon_member_of_any(key);

    if (hd_json_is_null(val) || message_is_kind(key, "type") || message_is_kind(key, "role"))
        return false;
    if (hd_canon_member_find(hd_canon_common, key) ||
        hd_canon_member_find(source->type->members, key))
        return false;
    if (message_is_kind(key, "example") && hd_json_is_bool(val) && !hd_json_is_true(val))
        return false;
    return !member || !is_default(member, val);
}

static int put_extras(struct hd_canon_object *m, const struct message_source *source,
                      hd_json_val given, struct heddle_error *fault)
{
    struct hd_json_iter it = hd_json_iter(source->fields);
    int err = 0;

    while (err == 0 && hd_json_next(&it))
        if (is_extra(source, it.key, it.val) && !hd_json_get(given, it.key))
            err = hd_canon_put_member(m, it.key, it.val, fault);
    return err;
}

static bool has_extras(const struct message_source *source)
{
    struct hd_json_iter it = hd_json_iter(source->fields);

    while (hd_json_next(&it))
        if (is_extra(source, it.key, it.val))
            return true;
    return false;
}

static int put_kwargs(struct hd_jw *jw, const struct message_source *source,
                      struct heddle_error *fault)
{
    hd_json_val given = message_get(source->fields, "additional_kwargs");
    struct hd_json_iter it = hd_json_iter(given);
    struct hd_canon_object m;
    int err = 0;

    if (given && !hd_json_is_object(given) && !hd_json_is_null(given))
        return hd_error_set(fault, HD_EINVAL, "additional_kwargs must be an object, not %s",
                            hd_json_type_name(given));
    if (hd_json_size(given) == 0 && !source->is_developer && !has_extras(source))
        return 0;
    message_put_key(jw, "additional_kwargs");
    m = hd_canon_open_object(jw, message_get(given, "$") || message_get(source->fields, "$"));
    if (source->is_developer && !message_get(given, "__openai_role__")) {
        hd_canon_open_member(&m, HD_S("__openai_role__"));
        hd_jw_string(jw, HD_S("developer"));
        hd_canon_close_member(&m);
    }
    err = put_extras(&m, source, given, fault);
    while (err == 0 && hd_json_next(&it))
        err = hd_canon_put_member(&m, it.key, it.val, fault);
    hd_canon_close_object(&m);
    return err;
}

/* OpenAI writes null beside tool calls. */
static int message_put_content(struct hd_jw *jw, const struct message_source *source,
                               struct heddle_error *fault)
{
    bool may_lack = is_ai(source) || message_is_kind(hd_slice_cstr(source->type->name), "remove");

    if (!source->content && !may_lack)
        return hd_error_set(fault, HD_EINVAL, "a message needs \"content\"");
    message_put_key(jw, "content");
    if (!source->content || hd_json_is_null(source->content))
        hd_jw_string(jw, HD_S(""));
    else
        return hd_canon_write_plain(jw, source->content, fault);
    return jw->err;
}

static bool is_list_or_null(hd_json_val val)
{
    return !val || hd_json_is_null(val) || hd_json_is_array(val);
}

static int put_tool_calls(struct hd_jw *jw, const struct message_source *source, bool is_valid,
                          struct heddle_error *fault)
{
    hd_json_val calls = message_get(source->fields, "tool_calls");
    hd_json_val given = is_valid ? NULL : message_get(source->fields, "invalid_tool_calls");
    struct hd_json_iter it = hd_json_iter(given);
    struct hd_jw before = *jw;
    size_t len = jw->out->len;
    size_t count = 0;
    int err = 0;

    if (!is_list_or_null(calls) || !is_list_or_null(given))
        return hd_error_set(fault, HD_EINVAL, "tool calls must be an array");
    message_put_key(jw, is_valid ? "tool_calls" : "invalid_tool_calls");
    hd_jw_array(jw);
    while (err == 0 && hd_json_next(&it)) {
        err = hd_canon_write_plain(jw, it.val, fault);
        count++;
    }
    if (err == 0)
        err = put_calls(jw, calls, is_valid, &count, fault);
    hd_jw_array_end(jw);
    if (err == 0 && jw->err == 0 && count == 0) {
        /* Empty is the default: remove it. */
        *jw = before;
        jw->out->len = len;
    }
    return err;
}

static int put_common_or_own(struct hd_jw *jw, const struct message_source *source,
                             const struct hd_canon_member *member, struct heddle_error *fault)
{
    hd_json_val val = message_get(source->fields, member->name);

    if (message_is_kind(hd_slice_cstr(member->name), "content"))
        return message_put_content(jw, source, fault);
    if (message_is_kind(hd_slice_cstr(member->name), "additional_kwargs"))
        return put_kwargs(jw, source, fault);
    if (message_is_kind(hd_slice_cstr(member->name), "tool_calls"))
        return put_tool_calls(jw, source, true, fault);
    if (message_is_kind(hd_slice_cstr(member->name), "invalid_tool_calls"))
        return put_tool_calls(jw, source, false, fault);
    if (!val || hd_json_is_null(val) || is_default(member, val))
        return 0;
    message_put_key(jw, member->name);
    return hd_canon_write_plain(jw, val, fault);
}

static int message_put(struct hd_jw *jw, const struct message_source *source,
                       struct heddle_error *fault)
{
    const struct hd_canon_member *member;
    int err = 0;

    hd_canon_open_record(jw, "message");
    message_put_key(jw, "type");
    hd_jw_string(jw, hd_slice_cstr(source->type->name));
    for (member = hd_canon_common; err == 0 && member->name; member++)
        err = put_common_or_own(jw, source, member, fault);
    for (member = source->type->members; err == 0 && member->name; member++)
        err = put_common_or_own(jw, source, member, fault);
    hd_jw_object_end(jw);
    return err == 0 ? jw->err : hd_canon_fail(jw, err);
}

int hd_canon_write_message(struct hd_jw *jw, hd_json_val message, struct heddle_error *fault)
{
    struct message_source source = {0};
    struct hd_buf text;
    struct hd_jw inner;
    int err = jw->err;

    hd_buf_init(&text, SIZE_MAX);
    hd_jw_init(&inner, &text);
    inner.depth = jw->depth; /* its levels count below those of the caller */
    if (err == 0)
        err = read_source(message, &source, fault);
    if (err == 0 && source.fields)
        err = hd_canon_refuse_twice(&inner, source.fields, fault);
    if (err == 0)
        err = message_put(&inner, &source, fault);
    if (err == 0)
        err = hd_canon_validate(hd_buf_slice(&text), fault);
    if (err == 0)
        hd_jw_raw(jw, hd_buf_slice(&text));
    hd_buf_fini(&text);
    return err == 0 ? jw->err : hd_canon_fail(jw, err);
}
