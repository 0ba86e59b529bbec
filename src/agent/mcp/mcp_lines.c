/*
 * Headers for MCP servers. Everything that may be a credential is registered as a secret of the
 * exchange, and requests with credentials follow no redirects.
 */
#include "agent/mcp/mcp_lines.h"

#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/log.h"

#define MAX_LINES 128 /* of a request */
#define MAX_SECRETS (HD_MCP_MAX_HEADERS + 4)
#define MAX_TEXT ((size_t)1 << 20)
#define POST_MS 10000

struct hd_mcp_lines {
    struct hd_buf text; /* NUL-terminated lines */
    const char *list[MAX_LINES];
    size_t count;
    struct hd_slice secrets[MAX_SECRETS];
    size_t secret_count;
};

static void add_secret(struct hd_mcp_lines *lines, struct hd_slice secret)
{
    if (secret.len >= 4 && lines->secret_count < MAX_SECRETS)
        lines->secrets[lines->secret_count++] = secret;
}

int hd_mcp_lines_add(struct hd_mcp_lines *lines, const char *name, struct hd_slice value)
{
    int err = hd_buf_printf(&lines->text, "%s: %.*s", name, (int)value.len, value.ptr);

    return err ? err : hd_buf_append_byte(&lines->text, 0);
}

static struct hd_slice bearer_of(const struct hd_mcp_peer *peer)
{
    return peer->token ? hd_slice_cstr(peer->token) : peer->server->token;
}

static int add_credentials(struct hd_mcp_lines *lines, const struct hd_mcp_peer *peer)
{
    const struct hd_val *headers = peer->server->headers;
    struct hd_slice token = bearer_of(peer);
    int err = 0;

    if (token.len > 0) {
        err = hd_buf_append_slice(&lines->text, HD_S("Authorization: Bearer "));
        if (!err)
            err = hd_buf_append_slice(&lines->text, token);
        if (!err)
            err = hd_buf_append_byte(&lines->text, 0);
        add_secret(lines, token);
    }
    for (size_t i = 0; i < hd_val_count(headers) && !err; i++) {
        struct hd_val *key, *value = hd_val_member(headers, i, &key);

        if (!hd_val_is_string(value))
            continue;
        err = hd_mcp_lines_add(lines, hd_val_get_string(key).ptr, hd_val_get_string(value));
        add_secret(lines, hd_val_get_string(value));
    }
    return err;
}

/* Session and version; unknown while a session is opened. */
static int add_place(struct hd_mcp_lines *lines, const struct hd_mcp_peer *peer)
{
    int err = 0;

    if (peer->is_modern)
        return hd_mcp_lines_add(lines, "MCP-Protocol-Version", HD_S(HD_MCP_MODERN));
    if (peer->version[0])
        err = hd_mcp_lines_add(lines, "MCP-Protocol-Version", hd_slice_cstr(peer->version));
    if (!err && peer->session[0]) {
        err = hd_mcp_lines_add(lines, "Mcp-Session-Id", hd_slice_cstr(peer->session));
        add_secret(lines, hd_slice_cstr(peer->session));
    }
    return err;
}

int hd_mcp_lines_add_modern(struct hd_mcp_lines *lines,
                            const struct hd_mcp_request_options *options)
{
    int err = hd_mcp_lines_add(lines, "Mcp-Method", hd_slice_cstr(options->method));

    if (!err && options->name.ptr) {
        err = hd_buf_append_slice(&lines->text, HD_S("Mcp-Name: "));
        if (!err)
            err = hd_mcp_header_value(&lines->text, options->name);
        if (!err)
            err = hd_buf_append_byte(&lines->text, 0);
    }
    if (!err && options->schema)
        err = hd_mcp_headers_write(&lines->text, options->schema, options->args);
    return err;
}

static int fill_lines(struct hd_mcp_lines *lines, const struct hd_mcp_peer *peer, bool is_post)
{
    int err = 0;

    if (is_post)
        err = hd_mcp_lines_add(lines, "Content-Type", HD_S("application/json"));
    if (!err)
        err = hd_mcp_lines_add(lines, "Accept",
                               is_post ? HD_S("application/json, text/event-stream")
                                       : HD_S("text/event-stream"));
    if (!err)
        err = add_credentials(lines, peer);
    return err ? err : add_place(lines, peer);
}

int hd_mcp_lines_create(const struct hd_mcp_peer *peer, bool is_post, struct hd_mcp_lines **out)
{
    struct hd_mcp_lines *lines = hd_calloc(1, sizeof(*lines));
    int err;

    if (!lines)
        return HD_ENOMEM;
    hd_buf_init(&lines->text, MAX_TEXT);
    err = fill_lines(lines, peer, is_post);
    if (err)
        hd_mcp_lines_destroy(lines);
    else
        *out = lines;
    return err;
}

void hd_mcp_lines_destroy(struct hd_mcp_lines *lines)
{
    if (lines)
        hd_buf_fini(&lines->text);
    hd_free(lines);
}

int hd_mcp_lines_end(struct hd_mcp_lines *lines, const struct hd_mcp_peer *peer, const char *method,
                     struct hd_agent_exchange_options *out)
{
    const char *pos = lines->text.ptr, *end = pos + lines->text.len;

    for (; pos < end; pos += strlen(pos) + 1) {
        if (lines->count == MAX_LINES)
            return HD_ELIMIT;
        lines->list[lines->count++] = pos;
    }
    *out = (struct hd_agent_exchange_options){.peer = "mcp",
                                              .method = method,
                                              .url = peer->server->url,
                                              .headers = lines->list,
                                              .header_count = lines->count,
                                              .is_direct =
                                                  bearer_of(peer).len > 0 || peer->server->headers,
                                              .secrets = lines->secrets,
                                              .secret_count = lines->secret_count};
    return 0;
}

int hd_mcp_peer_credentials(const struct hd_mcp_peer *peer, struct hd_buf *out)
{
    struct hd_mcp_lines *lines = hd_calloc(1, sizeof(*lines));
    int err;

    if (!lines)
        return HD_ENOMEM;
    hd_buf_init(&lines->text, MAX_TEXT);
    err = add_credentials(lines, peer);
    if (!err)
        err = hd_buf_append_slice(out, hd_buf_slice(&lines->text));
    /* A token exchanged for a user belongs to the user. */
    if (!err && peer->server->needs_auth && peer->server->token.len == 0)
        err = hd_buf_append_slice(out, peer->user_token);
    hd_mcp_lines_destroy(lines);
    return err;
}

/* `out` NULL: the exchange is detached. */
static int post(struct hd_mcp_peer *peer, const char *method, struct hd_slice body,
                void (*done)(void *, const struct hd_reply *), struct hd_agent_exchange **out)
{
    struct hd_agent_exchange_options options;
    struct hd_agent_exchange *ignored;
    struct hd_mcp_lines *lines;
    int err = hd_mcp_lines_create(peer, body.ptr != NULL, &lines);

    if (err)
        return err;
    err = hd_mcp_lines_end(lines, peer, method, &options);
    if (!err) {
        options.body = body;
        options.timeout_ms = POST_MS;
        options.is_detached = !out;
        options.on_done = done;
        options.ctx = peer;
        err = hd_agent_exchange_start_run(peer->run, &options, out ? out : &ignored);
    }
    hd_mcp_lines_destroy(lines);
    return err;
}

int hd_mcp_peer_post(struct hd_mcp_peer *peer, struct hd_slice body,
                     void (*done)(void *ctx, const struct hd_reply *reply),
                     struct hd_agent_exchange **out)
{
    return post(peer, "POST", body, done, out);
}

void hd_mcp_peer_tell(struct hd_mcp_peer *peer, const char *method, struct hd_slice body)
{
    int err = post(peer, method, body, NULL, NULL);

    if (err)
        hd_log(HD_LOG_DEBUG, "mcp", "a message was not sent: %s", hd_error_text(err));
}
