/*
 * `client`: tools that the client runs itself. A list in the forms that clients send: `{"name",
 * "description", "parameters"}` with parameters that are an object or JSON as text, or the same in
 * `{"type": "function", "function": …}`.
 */
#include "agent/tool.h"
#include "base/compiler.h"

/* The object that has the name. */
static const struct hd_val *function_of(const struct hd_val *item)
{
    const struct hd_val *function = hd_val_get(item, HD_S("function"));

    return hd_val_is_object(function) ? function : item;
}

static int check_item(const struct hd_val *item, size_t index, struct heddle_error *fault)
{
    const struct hd_val *function = function_of(item);
    const struct hd_val *name = hd_val_get(function, HD_S("name"));
    const struct hd_val *parameters = hd_val_get(function, HD_S("parameters"));

    if (!hd_val_is_object(function) || hd_val_get_string(name).len == 0)
        return hd_error_set(fault, HD_EINVAL, "tool %zu must be an object with \"name\"", index);
    if (!hd_val_is_null(parameters) && !hd_val_is_object(parameters) &&
        !hd_val_is_string(parameters))
        return hd_error_set(fault, HD_EINVAL,
                            "\"parameters\" of tool %zu must be a JSON Schema, not %s", index,
                            hd_val_type_name(parameters));
    return 0;
}

static int check_client_tools(const struct hd_val *value, struct heddle_error *fault)
{
    int err = 0;

    if (!hd_val_is_list(value))
        return hd_error_set(fault, HD_EINVAL, "must be a list of tools, not %s",
                            hd_val_type_name(value));
    for (size_t i = 0; i < hd_val_count(value) && !err; i++)
        err = check_item(hd_val_at(value, i), i, fault);
    return err;
}

/* Text that is not a JSON object leaves the parameters empty. */
static int read_parameters(const struct hd_val *val, struct hd_val **out)
{
    struct hd_val *parsed = NULL;
    int err;

    *out = NULL;
    if (!hd_val_is_string(val)) {
        *out = hd_val_ref(val);
        return 0;
    }
    err = hd_val_parse_json(hd_val_get_string(val), &parsed, NULL);
    if (err == 0 && hd_val_is_object(parsed))
        *out = hd_val_ref(parsed);
    hd_val_unref(parsed);
    return err == HD_ENOMEM ? err : 0;
}

static int add_client_tool(struct hd_tool_source *source, const struct hd_val *item)
{
    const struct hd_val *function = function_of(item);
    struct hd_val *parameters;
    int err = read_parameters(hd_val_get(function, HD_S("parameters")), &parameters);

    if (!err) {
        struct hd_tool tool = {
            .name = hd_val_get_string(hd_val_get(function, HD_S("name"))),
            .description = hd_val_get_string(hd_val_get(function, HD_S("description"))),
            .parameters = parameters,
            .is_client = true,
        };

        err = hd_source_add(source, &tool);
    }
    hd_val_unref(parameters);
    return err;
}

static int open_tools(struct hd_tool_source *source)
{
    int err = 0;

    for (size_t i = 0; i < hd_val_count(source->value) && !err; i++)
        err = add_client_tool(source, hd_val_at(source->value, i));
    if (!err)
        hd_source_ready(source, NULL);
    return err;
}

static void close_tools(struct hd_tool_source *source)
{
    (void)source;
}

/* Never called: the client runs them. */
static int call(struct hd_tool_call *call)
{
    (void)call;
    return HD_EUNSUPPORTED;
}

static void cancel_client_call(struct hd_tool_call *call)
{
    (void)call;
}

const struct hd_source_kind hd_source_client = {
    .name = "client",
    .check = check_client_tools,
    .open = open_tools,
    .close = close_tools,
    .call = call,
    .cancel = cancel_client_call,
};
