/* Configuration of MCP servers. */
#include "agent/mcp/mcp_config.h"

#include <string.h>

#include "agent/mcp/mcp_proto.h"

#define MAX_URL 4096

static bool is_clean(struct hd_slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        if ((unsigned char)text.ptr[i] < 0x20 || text.ptr[i] == 0x7f)
            return false;
    }
    return true;
}

/* ---- addresses -------------------------------------------------------- */

static bool path_ends_with(struct hd_slice text, struct hd_slice end)
{
    return text.len >= end.len && memcmp(text.ptr + text.len - end.len, end.ptr, end.len) == 0;
}

/* `/mcp` is the usual path; it may be omitted. */
static int read_server_url(struct hd_mcp_server *server, struct hd_slice url,
                           struct hd_arena *arena, struct heddle_error *fault)
{
    const char *mark = url.len > 0 ? memchr(url.ptr, '?', url.len) : NULL;
    struct hd_slice path = mark ? hd_slice(url.ptr, (size_t)(mark - url.ptr)) : url;
    struct hd_slice query = hd_slice(path.ptr + path.len, url.len - path.len);
    bool is_http = hd_slice_starts(url, HD_S("http://")) || hd_slice_starts(url, HD_S("https://"));

    if (!is_http || url.len > MAX_URL || !is_clean(url) || memchr(url.ptr, '#', url.len) ||
        memchr(url.ptr, ' ', url.len))
        return hd_error_set(fault, HD_EINVAL,
                            "\"url\" of \"%.*s\" must begin with http:// or "
                            "https://",
                            (int)(server->name.len < 60 ? server->name.len : 60), server->name.ptr);
    while (path.len > 0 && path.ptr[path.len - 1] == '/')
        path.len--;
    if (path_ends_with(path, HD_S("/mcp")))
        path.len -= 4;
    server->base = hd_arena_printf(arena, "%.*s", (int)path.len, path.ptr);
    server->url =
        hd_arena_printf(arena, "%.*s/mcp%.*s", (int)path.len, path.ptr, (int)query.len, query.ptr);
    return server->base && server->url ? 0 : HD_ENOMEM;
}

/* ---- members ---------------------------------------------------------- */

static int read_tools(struct hd_mcp_server *server, const struct hd_val *tools,
                      struct heddle_error *fault)
{
    if (hd_val_is_null(tools))
        return 0;
    if (!hd_val_is_list(tools))
        return hd_error_set(fault, HD_EINVAL, "\"tools\" must be a list of names, not %s",
                            hd_val_type_name(tools));
    for (size_t i = 0; i < hd_val_count(tools); i++) {
        if (!hd_val_is_string(hd_val_at(tools, i)))
            return hd_error_set(fault, HD_EINVAL, "\"tools\" must be a list of names");
    }
    server->tools = tools;
    return 0;
}

/* An unknown secret is null. */
static int read_headers(struct hd_mcp_server *server, const struct hd_val *headers,
                        struct heddle_error *fault)
{
    if (hd_val_is_null(headers))
        return 0;
    if (!hd_val_is_object(headers) || hd_val_count(headers) > HD_MCP_MAX_HEADERS)
        return hd_error_set(fault, HD_EINVAL,
                            "\"headers\" must be an object of at most %d names to values",
                            HD_MCP_MAX_HEADERS);
    for (size_t i = 0; i < hd_val_count(headers); i++) {
        struct hd_val *key, *value = hd_val_member(headers, i, &key);

        if (!hd_slice_is_token(hd_val_get_string(key)) ||
            (!hd_val_is_string(value) && !hd_val_is_null(value)) ||
            !is_clean(hd_val_get_string(value)))
            return hd_error_set(fault, HD_EINVAL,
                                "\"headers\" must be an object of names to values");
    }
    server->headers = headers;
    return 0;
}

static int read_protocol(struct hd_mcp_server *server, const struct hd_val *protocol,
                         struct heddle_error *fault)
{
    struct hd_slice text = hd_val_get_string(protocol);

    server->is_modern = hd_slice_eq(text, HD_S(HD_MCP_MODERN));
    if (hd_val_is_null(protocol) || server->is_modern || hd_mcp_is_legacy(text))
        return 0;
    return hd_error_set(fault, HD_EINVAL, "\"protocol\" must be a version such as \"%s\" or \"%s\"",
                        HD_MCP_LEGACY, HD_MCP_MODERN);
}

static int read_elicit(struct hd_mcp_server *server, const struct hd_val *elicit,
                       struct heddle_error *fault)
{
    static const char *const names[] = {"ask", "defaults", "decline"};
    struct hd_slice text = hd_val_get_string(elicit);

    if (hd_val_is_null(elicit))
        return 0;
    for (int i = 0; i < 3; i++) {
        if (hd_slice_eq(text, hd_slice_cstr(names[i]))) {
            server->elicit = (enum hd_mcp_elicit)i;
            return 0;
        }
    }
    return hd_error_set(fault, HD_EINVAL,
                        "\"elicitation\" must be \"ask\", \"defaults\" or \"decline\"");
}

static int read_texts(struct hd_mcp_server *server, const struct hd_val *value,
                      struct heddle_error *fault)
{
    const struct hd_val *name = hd_val_get(value, HD_S("name"));
    const struct hd_val *token = hd_val_get(value, HD_S("token"));

    if ((!hd_val_is_null(name) && !hd_val_is_string(name)) || hd_val_get_string(name).len > 256)
        return hd_error_set(fault, HD_EINVAL, "\"name\" must be a short text");
    if ((!hd_val_is_null(token) && !hd_val_is_string(token)) || !is_clean(hd_val_get_string(token)))
        return hd_error_set(fault, HD_EINVAL, "\"token\" must be a text");
    server->name = hd_val_get_string(name).len > 0 ? hd_val_get_string(name) : HD_S("default");
    server->token = hd_val_get_string(token);
    server->needs_auth = hd_val_is_true(hd_val_get(value, HD_S("auth_required")));
    return 0;
}

static int read_server(struct hd_mcp_server *server, const struct hd_val *value,
                       struct hd_arena *arena, struct heddle_error *fault)
{
    int err;

    if (!hd_val_is_object(value))
        return hd_error_set(fault, HD_EINVAL, "a server must be an object with \"url\", not %s",
                            hd_val_type_name(value));
    err = read_texts(server, value, fault);
    if (!err)
        err = read_server_url(server, hd_val_get_string(hd_val_get(value, HD_S("url"))), arena,
                              fault);
    if (!err)
        err = read_tools(server, hd_val_get(value, HD_S("tools")), fault);
    if (!err)
        err = read_headers(server, hd_val_get(value, HD_S("headers")), fault);
    if (!err)
        err = read_protocol(server, hd_val_get(value, HD_S("protocol")), fault);
    return err ? err : read_elicit(server, hd_val_get(value, HD_S("elicitation")), fault);
}

int hd_mcp_config_read(const struct hd_val *value, struct hd_arena *arena,
                       struct hd_mcp_server **out, size_t *count, struct heddle_error *fault)
{
    const struct hd_val *list = hd_val_is_list(value) ? value : hd_val_get(value, HD_S("servers"));
    bool is_lone = hd_val_is_null(list) && hd_val_get(value, HD_S("url"));
    size_t size = is_lone ? 1 : hd_val_count(list);
    struct hd_mcp_server *servers;
    int err = 0;

    if (!hd_val_is_list(value) && !hd_val_is_object(value))
        return hd_error_set(fault, HD_EINVAL, "must be an object with \"servers\", not %s",
                            hd_val_type_name(value));
    if (!is_lone && !hd_val_is_null(list) && !hd_val_is_list(list))
        return hd_error_set(fault, HD_EINVAL, "\"servers\" must be a list, not %s",
                            hd_val_type_name(list));
    if (size > HD_MCP_MAX_SERVERS)
        return hd_error_set(fault, HD_EINVAL, "at most %d servers", HD_MCP_MAX_SERVERS);
    servers = hd_arena_calloc(arena, size + 1, sizeof(*servers));
    if (!servers)
        return HD_ENOMEM;
    for (size_t i = 0; i < size && !err; i++)
        err = read_server(&servers[i], is_lone ? value : hd_val_at(list, i), arena, fault);
    if (err)
        return err;
    *out = servers;
    *count = size;
    return 0;
}

bool hd_mcp_server_allows(const struct hd_mcp_server *server, struct hd_slice tool)
{
    for (size_t i = 0; i < hd_val_count(server->tools); i++) {
        if (hd_slice_eq(hd_val_get_string(hd_val_at(server->tools, i)), tool))
            return true;
    }
    return !server->tools;
}
