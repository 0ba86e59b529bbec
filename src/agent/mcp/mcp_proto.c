/* Messages and headers of the Model Context Protocol. */
#include "agent/mcp/mcp_proto.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/compiler.h"

#define META "io.modelcontextprotocol/"
#define MAX_HEADER 4096 /* bytes of a mirrored value */

static const char *const legacy_versions[] = {HD_MCP_LEGACY, "2025-06-18", "2025-03-26",
                                              "2024-11-05"};

bool hd_mcp_is_legacy(struct hd_slice version)
{
    for (size_t i = 0; i < HD_COUNT(legacy_versions); i++) {
        if (hd_slice_eq(version, hd_slice_cstr(legacy_versions[i])))
            return true;
    }
    return false;
}

/* ---- reading ---------------------------------------------------------- */

static bool is_id(const struct hd_val *val)
{
    return hd_val_is_string(val) || hd_val_is_number(val);
}

static int read_error(struct hd_mcp_message *out, const struct hd_val *error,
                      struct heddle_error *fault)
{
    if (!hd_val_is_object(error))
        return hd_error_set(fault, HD_EINVAL, "\"error\" is %s", hd_val_type_name(error));
    out->kind = HD_MCP_ERROR;
    (void)hd_val_get_int(hd_val_get(error, HD_S("code")), &out->code);
    out->text = hd_val_get_string(hd_val_get(error, HD_S("message")));
    out->data = hd_val_get(error, HD_S("data"));
    return 0;
}

static int read_fields(struct hd_mcp_message *out, struct heddle_error *fault)
{
    const struct hd_val *whole = out->whole, *error;

    if (!hd_val_is_object(whole))
        return hd_error_set(fault, HD_EINVAL, "a message is an object, not %s",
                            hd_val_type_name(whole));
    if (!hd_slice_eq(hd_val_get_string(hd_val_get(whole, HD_S("jsonrpc"))), HD_S("2.0")))
        return hd_error_set(fault, HD_EINVAL, "it is not JSON-RPC 2.0");
    out->id = hd_val_get(whole, HD_S("id"));
    out->method = hd_val_get_string(hd_val_get(whole, HD_S("method")));
    out->params = hd_val_get(whole, HD_S("params"));
    out->result = hd_val_get(whole, HD_S("result"));
    error = hd_val_get(whole, HD_S("error"));
    if (out->method.len > 0) {
        out->kind = is_id(out->id) ? HD_MCP_REQUEST : HD_MCP_NOTIFICATION;
        return 0;
    }
    if (error)
        return read_error(out, error, fault);
    if (!hd_val_is_object(out->result) || !is_id(out->id))
        return hd_error_set(fault, HD_EINVAL, "it has neither a method nor a result nor an error");
    out->kind = HD_MCP_RESULT;
    return 0;
}

int hd_mcp_message_read(struct hd_slice text, struct hd_mcp_message *out,
                        struct heddle_error *fault)
{
    int err;

    memset(out, 0, sizeof(*out));
    err = hd_val_parse_json(text, &out->whole, fault);
    if (err)
        return err;
    err = read_fields(out, fault);
    if (err)
        hd_mcp_message_fini(out);
    return err;
}

void hd_mcp_message_fini(struct hd_mcp_message *message)
{
    hd_val_unref(message->whole);
    memset(message, 0, sizeof(*message));
}

/* Our ids are integers; some servers return them as strings or floats. */
bool hd_mcp_message_is_for(const struct hd_mcp_message *message, int64_t id)
{
    double number;
    char text[24];

    if (message->kind != HD_MCP_RESULT && message->kind != HD_MCP_ERROR)
        return false;
    if (hd_val_is_string(message->id)) {
        snprintf(text, sizeof(text), "%lld", (long long)id);
        return hd_slice_eq(hd_val_get_string(message->id), hd_slice_cstr(text));
    }
    return hd_val_get_double(message->id, &number) && number == (double)id;
}

bool hd_mcp_message_is_modern(const struct hd_mcp_message *message)
{
    return message->kind == HD_MCP_ERROR && message->code <= HD_MCP_HEADER_MISMATCH &&
           message->code >= HD_MCP_UNSUPPORTED_VERSION;
}

/* ---- writing ---------------------------------------------------------- */

static struct hd_val *client_info(void)
{
    struct hd_val *info = hd_val_with(hd_val_object(), HD_S("name"), hd_val_cstr("heddle"));

    return hd_val_with(info, HD_S("version"), hd_val_cstr("1.0.0"));
}

/* Supported elicitations: forms, and URLs to visit. */
static struct hd_val *capabilities(void)
{
    struct hd_val *modes = hd_val_with(hd_val_object(), HD_S("form"), hd_val_object());

    modes = hd_val_with(modes, HD_S("url"), hd_val_object());
    return hd_val_with(hd_val_object(), HD_S("elicitation"), modes);
}

struct hd_val *hd_mcp_initialize_params(void)
{
    struct hd_val *params =
        hd_val_with(hd_val_object(), HD_S("protocolVersion"), hd_val_cstr(HD_MCP_LEGACY));

    params = hd_val_with(params, HD_S("capabilities"), capabilities());
    return hd_val_with(params, HD_S("clientInfo"), client_info());
}

/* Takes. */
static struct hd_val *with_meta(struct hd_val *params)
{
    struct hd_val *meta = hd_val_get(params, HD_S("_meta"));

    meta = hd_val_is_object(meta) ? hd_val_ref(meta) : hd_val_object();
    meta = hd_val_with(meta, HD_S(META "protocolVersion"), hd_val_cstr(HD_MCP_MODERN));
    meta = hd_val_with(meta, HD_S(META "clientInfo"), client_info());
    meta = hd_val_with(meta, HD_S(META "clientCapabilities"), capabilities());
    return hd_val_with(params, HD_S("_meta"), meta);
}

static struct hd_val *begin_message(void)
{
    return hd_val_with(hd_val_object(), HD_S("jsonrpc"), hd_val_cstr("2.0"));
}

/* Takes. */
static int render_message(struct hd_buf *out, struct hd_val *message)
{
    int err = message ? hd_val_render(out, message) : HD_ENOMEM;

    hd_val_unref(message);
    return err;
}

int hd_mcp_write_request(struct hd_buf *out, int64_t id, const char *method,
                         const struct hd_val *params, bool is_modern)
{
    struct hd_val *message = hd_val_with(begin_message(), HD_S("id"), hd_val_int(id));
    struct hd_val *own = params ? hd_val_ref(params) : NULL;

    message = hd_val_with(message, HD_S("method"), hd_val_cstr(method));
    if (is_modern)
        own = with_meta(own ? own : hd_val_object());
    if (own || is_modern)
        message = hd_val_with(message, HD_S("params"), own);
    return render_message(out, message);
}

int hd_mcp_write_notification(struct hd_buf *out, const char *method, const struct hd_val *params)
{
    struct hd_val *message = hd_val_with(begin_message(), HD_S("method"), hd_val_cstr(method));

    if (params)
        message = hd_val_with(message, HD_S("params"), hd_val_ref(params));
    return render_message(out, message);
}

int hd_mcp_write_result(struct hd_buf *out, const struct hd_val *id, const struct hd_val *result)
{
    struct hd_val *message = hd_val_with(begin_message(), HD_S("id"), hd_val_ref(id));

    return render_message(out, hd_val_with(message, HD_S("result"), hd_val_ref(result)));
}

int hd_mcp_write_error(struct hd_buf *out, const struct hd_val *id, int code, const char *text)
{
    struct hd_val *error = hd_val_with(hd_val_object(), HD_S("code"), hd_val_int(code));
    struct hd_val *message = hd_val_with(begin_message(), HD_S("id"), hd_val_ref(id));

    error = hd_val_with(error, HD_S("message"), hd_val_cstr(text));
    return render_message(out, hd_val_with(message, HD_S("error"), error));
}

/* ---- values of headers ------------------------------------------------ */

static bool is_plain_header(struct hd_slice value)
{
    if (value.len == 0)
        return true;
    for (size_t i = 0; i < value.len; i++) {
        unsigned char c = (unsigned char)value.ptr[i];

        if (c < 0x20 || c > 0x7e)
            return false;
    }
    if (value.ptr[0] == ' ' || value.ptr[value.len - 1] == ' ')
        return false;
    return !(hd_slice_starts(value, HD_S("=?base64?")) && value.len >= 11 &&
             memcmp(value.ptr + value.len - 2, "?=", 2) == 0);
}

static int write_base64(struct hd_buf *out, struct hd_slice bytes)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    int err = 0;

    for (size_t i = 0; i < bytes.len && !err; i += 3) {
        size_t have = bytes.len - i;
        unsigned a = (unsigned char)bytes.ptr[i];
        unsigned b = have > 1 ? (unsigned char)bytes.ptr[i + 1] : 0;
        unsigned c = have > 2 ? (unsigned char)bytes.ptr[i + 2] : 0;
        char group[4] = {digits[a >> 2], digits[(a & 3) << 4 | b >> 4],
                         have > 1 ? digits[(b & 15) << 2 | c >> 6] : '=',
                         have > 2 ? digits[c & 63] : '='};

        err = hd_buf_append(out, group, sizeof(group));
    }
    return err;
}

int hd_mcp_header_value(struct hd_buf *out, struct hd_slice value)
{
    int err;

    if (value.len > MAX_HEADER)
        return HD_ELIMIT;
    if (is_plain_header(value))
        return hd_buf_append_slice(out, value);
    err = hd_buf_append_slice(out, HD_S("=?base64?"));
    if (!err)
        err = write_base64(out, value);
    return err ? err : hd_buf_append_slice(out, HD_S("?="));
}

/* ---- arguments as headers --------------------------------------------- */

#define MAX_MIRRORED 64
#define MAX_PATH 16

struct check {
    struct hd_slice names[MAX_MIRRORED];
    size_t count;
    struct heddle_error *fault;
};

static int check_name(struct check *check, const struct hd_val *schema, struct hd_slice name)
{
    struct hd_slice type = hd_val_get_string(hd_val_get(schema, HD_S("type")));

    if (!hd_slice_is_token(name))
        return hd_error_set(check->fault, HD_EINVAL, "x-mcp-header is not a valid header name");
    if (!hd_slice_eq(type, HD_S("string")) && !hd_slice_eq(type, HD_S("integer")) &&
        !hd_slice_eq(type, HD_S("boolean")))
        return hd_error_set(check->fault, HD_EINVAL,
                            "x-mcp-header %.*s is not on a string, an integer or a boolean",
                            (int)name.len, name.ptr);
    for (size_t i = 0; i < check->count; i++) {
        if (check->names[i].len == name.len &&
            strncasecmp(check->names[i].ptr, name.ptr, name.len) == 0)
            return hd_error_set(check->fault, HD_EINVAL, "duplicate x-mcp-header %.*s",
                                (int)name.len, name.ptr);
    }
    if (check->count == MAX_MIRRORED)
        return hd_error_set(check->fault, HD_EINVAL, "more than %d x-mcp-header", MAX_MIRRORED);
    check->names[check->count++] = name;
    return 0;
}

static bool is_listed_key(struct hd_slice key, const char *const *list)
{
    for (; *list; list++) {
        if (hd_slice_eq(key, hd_slice_cstr(*list)))
            return true;
    }
    return false;
}

static int check_schema(struct check *check, const struct hd_val *schema, int depth, bool is_root);

/* Only arguments below `properties` can be mirrored. */
static int check_other(struct check *check, const struct hd_val *val)
{
    static const char *const maps[] = {
        "$defs", "definitions", "patternProperties", "dependentSchemas", "properties", NULL};
    static const char *const data[] = {"default", "const", "enum", "examples", NULL};
    int err = 0;

    if (hd_val_is_list(val)) {
        for (size_t i = 0; i < hd_val_count(val) && !err; i++)
            err = check_other(check, hd_val_at(val, i));
        return err;
    }
    if (!hd_val_is_object(val))
        return 0;
    if (hd_val_get(val, HD_S("x-mcp-header")))
        return hd_error_set(check->fault, HD_EINVAL, "x-mcp-header in an unsupported position");
    for (size_t i = 0; i < hd_val_count(val) && !err; i++) {
        struct hd_val *key, *member = hd_val_member(val, i, &key);

        if (is_listed_key(hd_val_get_string(key), data))
            continue;
        if (!is_listed_key(hd_val_get_string(key), maps) || !hd_val_is_object(member)) {
            err = check_other(check, member);
            continue;
        }
        for (size_t j = 0; j < hd_val_count(member) && !err; j++)
            err = check_other(check, hd_val_member(member, j, NULL));
    }
    return err;
}

static int check_properties(struct check *check, const struct hd_val *properties, int depth)
{
    int err = 0;

    for (size_t i = 0; i < hd_val_count(properties) && !err; i++) {
        const struct hd_val *property = hd_val_member(properties, i, NULL);

        err = depth < MAX_PATH ? check_schema(check, property, depth + 1, false)
                               : check_other(check, property);
    }
    return err;
}

static int check_schema(struct check *check, const struct hd_val *schema, int depth, bool is_root)
{
    const struct hd_val *name = hd_val_get(schema, HD_S("x-mcp-header")), *properties;
    struct hd_val *rest;
    int err = 0;

    if (!hd_val_is_object(schema))
        return check_other(check, schema);
    if (name)
        err = is_root ? hd_error_set(check->fault, HD_EINVAL, "x-mcp-header on the whole schema")
                      : check_name(check, schema, hd_val_get_string(name));
    properties = hd_val_get(schema, HD_S("properties"));
    if (!err && hd_val_is_object(properties))
        err = check_properties(check, properties, depth);
    if (err)
        return err;
    rest = hd_val_without(hd_val_ref(schema), HD_S("x-mcp-header"));
    if (hd_val_is_object(properties))
        rest = hd_val_without(rest, HD_S("properties"));
    err = rest ? check_other(check, rest) : HD_ENOMEM;
    hd_val_unref(rest);
    return err;
}

int hd_mcp_headers_check(const struct hd_val *schema, struct heddle_error *fault)
{
    struct check check = {.fault = fault};

    return check_schema(&check, schema, 0, true);
}

/* Skips null and values of other types. */
static int write_header(struct hd_buf *out, struct hd_slice name, const struct hd_val *value)
{
    char text[24] = "";
    struct hd_slice shown = hd_slice_cstr(text);
    int64_t number;
    int err;

    if (hd_val_is_string(value))
        shown = hd_val_get_string(value);
    else if (hd_val_type(value) == HD_VAL_BOOL)
        shown = hd_slice_cstr(hd_val_is_true(value) ? "true" : "false");
    else if (hd_val_get_int(value, &number))
        shown.len = (size_t)snprintf(text, sizeof(text), "%lld", (long long)number);
    else
        return 0;
    /* "Name;" makes libcurl send a header without a value. */
    err = hd_buf_printf(out, "Mcp-Param-%.*s%s", (int)name.len, name.ptr, shown.len ? ": " : ";");
    if (!err)
        err = hd_mcp_header_value(out, shown);
    return err ? err : hd_buf_append_byte(out, 0);
}

static int write_headers(struct hd_buf *out, const struct hd_val *schema, const struct hd_val *args,
                         int depth)
{
    const struct hd_val *properties = hd_val_get(schema, HD_S("properties"));
    int err = 0;

    if (!hd_val_is_object(properties) || !hd_val_is_object(args) || depth > MAX_PATH)
        return 0;
    for (size_t i = 0; i < hd_val_count(properties) && !err; i++) {
        struct hd_val *key, *property = hd_val_member(properties, i, &key);
        const struct hd_val *value = hd_val_get(args, hd_val_get_string(key));
        struct hd_slice name = hd_val_get_string(hd_val_get(property, HD_S("x-mcp-header")));

        if (!value)
            continue;
        if (hd_slice_is_token(name))
            err = write_header(out, name, value);
        if (!err)
            err = write_headers(out, property, value, depth + 1);
    }
    return err;
}

int hd_mcp_headers_write(struct hd_buf *out, const struct hd_val *schema, const struct hd_val *args)
{
    return write_headers(out, schema, args, 0);
}
