/* Configuration of `a2a` sources. */
#include "agent/a2a/a2a_client.h"

#include <strings.h>

#define MAX_VALUE 8192 /* bytes of a header's */

static bool is_member(struct hd_slice key)
{
    static const char *const keys[] = {"name", "url", "endpoint", "headers", "token", "protocol"};

    for (size_t i = 0; i < HD_COUNT(keys); i++) {
        if (hd_slice_eq(key, hd_slice_cstr(keys[i])))
            return true;
    }
    return false;
}

/* RFC 9110's token; excludes connection headers. */
static bool is_header_name(struct hd_slice name)
{
    static const char *const ours[] = {
        "host",         "connection", "content-length", "transfer-encoding",
        "content-type", "accept",     "a2a-version"};

    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];
        bool is_alnum = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');

        if (!is_alnum && !(c && strchr("!#$%&'*+-.^_`|~", c)))
            return false;
    }
    for (size_t i = 0; i < HD_COUNT(ours); i++) {
        if (name.len == strlen(ours[i]) && strncasecmp(name.ptr, ours[i], name.len) == 0)
            return false;
    }
    return name.len > 0;
}

static bool is_header_value(struct hd_slice value)
{
    for (size_t i = 0; i < value.len; i++) {
        if (((unsigned char)value.ptr[i] < ' ' && value.ptr[i] != '\t') || value.ptr[i] == 0x7f)
            return false;
    }
    return value.len <= MAX_VALUE;
}

static int add_line(struct hd_a2a_peer *peer, struct hd_arena *arena, struct hd_slice name,
                    const char *prefix, struct hd_slice value, struct heddle_error *fault)
{
    struct hd_slice *secret = &peer->secrets[peer->secret_count];
    char *line;

    if (!is_header_value(value))
        return hd_error_set(fault, HD_EINVAL, "the header %.*s has a value that cannot be sent",
                            (int)name.len, name.ptr);
    line = hd_arena_printf(arena, "%.*s: %s%.*s", (int)name.len, name.ptr, prefix, (int)value.len,
                           value.ptr);
    if (!line || hd_arena_copy(arena, value, secret))
        return HD_ENOMEM;
    peer->lines[peer->line_count++] = line;
    peer->secret_count += value.len > 0;
    return 0;
}

static int read_headers(const struct hd_val *headers, struct hd_a2a_peer *peer,
                        struct hd_arena *arena, struct heddle_error *fault)
{
    int err = 0;

    if (!hd_val_is_null(headers) && !hd_val_is_object(headers))
        return hd_error_set(fault, HD_EINVAL, "`headers` must be an object of names to strings");
    if (hd_val_count(headers) > HD_A2A_MAX_HEADERS)
        return hd_error_set(fault, HD_EINVAL, "`headers` has at most %d members",
                            HD_A2A_MAX_HEADERS);
    for (size_t i = 0; i < hd_val_count(headers) && !err; i++) {
        struct hd_val *key, *value = hd_val_member(headers, i, &key);
        struct hd_slice name = hd_val_get_string(key);

        if (!is_header_name(name))
            return hd_error_set(fault, HD_EINVAL, "`headers` has a name that cannot be sent");
        if (hd_val_is_null(value))
            continue;
        if (!hd_val_is_string(value))
            return hd_error_set(fault, HD_EINVAL, "the header %.*s must be a string", (int)name.len,
                                name.ptr);
        err = add_line(peer, arena, name, "", hd_val_get_string(value), fault);
    }
    return err;
}

static int read_agent_url(const struct hd_val *agent, const char *key, struct hd_arena *arena,
                          const char **out, struct heddle_error *fault)
{
    struct hd_val *val = hd_val_get(agent, hd_slice_cstr(key));
    struct hd_slice copy;

    if (!hd_a2a_is_url(hd_val_get_string(val)))
        return hd_error_set(fault, HD_EINVAL, "`%s` of an agent must be an http or https URL", key);
    if (hd_arena_copy(arena, hd_val_get_string(val), &copy))
        return HD_ENOMEM;
    *out = copy.ptr;
    return 0;
}

static int read_protocol(const struct hd_val *val, enum hd_a2a_dialect *out,
                         struct heddle_error *fault)
{
    struct hd_slice name = hd_val_get_string(val);

    if (hd_val_is_null(val))
        *out = HD_A2A_ANY;
    else if (hd_slice_eq(name, HD_S("0.3")))
        *out = HD_A2A_0_3;
    else if (hd_slice_eq(name, HD_S("1.0")))
        *out = HD_A2A_1_0;
    else
        return hd_error_set(fault, HD_EINVAL, "`protocol` of an agent must be \"0.3\" or \"1.0\"");
    return 0;
}

static int read_texts(const struct hd_val *agent, struct hd_a2a_peer *peer, struct hd_arena *arena,
                      struct heddle_error *fault)
{
    struct hd_val *name = hd_val_get(agent, HD_S("name"));
    struct hd_val *token = hd_val_get(agent, HD_S("token"));

    if ((!hd_val_is_null(name) && !hd_val_is_string(name)) ||
        (!hd_val_is_null(token) && !hd_val_is_string(token)))
        return hd_error_set(fault, HD_EINVAL, "`name` and `token` of an agent must be strings");
    peer->name = hd_val_get_string(name);
    if (hd_val_get_string(token).len == 0)
        return 0;
    return add_line(peer, arena, HD_S("Authorization"), "Bearer ", hd_val_get_string(token), fault);
}

static int read_peer(const struct hd_val *agent, struct hd_a2a_peer *peer, struct hd_arena *arena,
                     struct heddle_error *fault)
{
    int err;

    if (!hd_val_is_object(agent))
        return hd_error_set(fault, HD_EINVAL, "an agent must be an object with a `url`");
    for (size_t i = 0; i < hd_val_count(agent); i++) {
        struct hd_val *key;

        (void)hd_val_member(agent, i, &key);
        if (!is_member(hd_val_get_string(key)))
            return hd_error_set(fault, HD_EINVAL, "unknown member `%.60s` of an agent",
                                hd_val_get_string(key).ptr);
    }
    peer->lines = hd_arena_calloc(arena, HD_A2A_MAX_HEADERS + 1, sizeof(*peer->lines));
    peer->secrets = hd_arena_calloc(arena, HD_A2A_MAX_HEADERS + 1, sizeof(*peer->secrets));
    if (!peer->lines || !peer->secrets)
        return HD_ENOMEM;
    err = read_agent_url(agent, "url", arena, &peer->url, fault);
    if (!err && !hd_val_is_null(hd_val_get(agent, HD_S("endpoint"))))
        err = read_agent_url(agent, "endpoint", arena, &peer->endpoint, fault);
    if (!err)
        err = read_protocol(hd_val_get(agent, HD_S("protocol")), &peer->wanted, fault);
    if (!err)
        err = read_headers(hd_val_get(agent, HD_S("headers")), peer, arena, fault);
    return err ? err : read_texts(agent, peer, arena, fault);
}

int hd_a2a_config_read(const struct hd_val *value, struct hd_arena *arena, struct hd_a2a_peer **out,
                       size_t *count, struct heddle_error *fault)
{
    const struct hd_val *list = hd_val_is_object(value) ? hd_val_get(value, HD_S("agents")) : value;
    size_t size = hd_val_count(list);
    struct hd_a2a_peer *peers;
    int err = 0;

    if (!hd_val_is_null(list) && !hd_val_is_list(list))
        return hd_error_set(fault, HD_EINVAL, "must be {\"agents\": [{\"url\", …}]}");
    if (size > HD_A2A_MAX_PEERS)
        return hd_error_set(fault, HD_EINVAL, "has at most %d agents", HD_A2A_MAX_PEERS);
    peers = hd_arena_calloc(arena, size + 1, sizeof(*peers));
    if (!peers)
        return HD_ENOMEM;
    for (size_t i = 0; i < size && !err; i++)
        err = read_peer(hd_val_at(list, i), &peers[i], arena, fault);
    if (err)
        return err;
    *out = peers;
    *count = size;
    return 0;
}
