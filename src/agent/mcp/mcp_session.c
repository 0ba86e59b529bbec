/*
 * Opens a session with an MCP server, or finds that it needs none.
 *
 * Unless cached or configured otherwise, `initialize` comes first: most servers support it. If a
 * server refuses it, `server/discover` follows, which only the modern form has. For a server
 * configured as modern, the order is reversed.
 */
#include <stdio.h>
#include <string.h>

#include "agent/agent_internal.h"
#include "agent/mcp/mcp_cache.h"
#include "agent/mcp/mcp_client.h"
#include "agent/record.h"
#include "base/alloc.h"

#define OPEN_MS 20000
#define MAX_OPEN ((size_t)1 << 20) /* bytes of a server's self-description */
#define ERA_MS ((int64_t)3600 * 1000)
#define TOKEN_MS ((int64_t)300 * 1000) /* lifetime of a token without one */
#define MAX_TOKEN ((size_t)16 << 10)

/* ---- end of opening --------------------------------------------------- */

static struct hd_mcp_request *find_waiting(const struct hd_mcp_peer *peer)
{
    struct hd_mcp_request *found = NULL;

    /* The oldest is the last. */
    for (struct hd_mcp_request *request = peer->requests; request; request = request->all.next) {
        if (request->is_waiting)
            found = request;
    }
    return found;
}

/* Callbacks may end the run, and the peer with it. */
static void end_waiting(struct hd_mcp_peer *peer, const char *problem)
{
    bool is_gone = false, *outer = peer->is_gone;
    struct hd_mcp_request *request;

    /* cppcheck-suppress autoVariables; until this returns */
    peer->is_gone = &is_gone;
    while (!is_gone && (request = find_waiting(peer))) {
        int err = 0;

        request->is_waiting = false;
        if (!problem)
            err = hd_mcp_request_send(request);
        if (problem || err)
            hd_mcp_request_fail(request, problem ? problem : hd_error_text(err), 0);
    }
    if (!is_gone)
        peer->is_gone = outer;
    else if (outer)
        *outer = true;
}

static void opened(struct hd_mcp_peer *peer)
{
    peer->state = HD_MCP_OPEN;
    hd_mcp_cache_put(peer->run, HD_MCP_CACHED_ERA, hd_slice_cstr(peer->server->url),
                     (struct hd_slice){0}, hd_val_bool(peer->is_modern), ERA_MS);
    end_waiting(peer, NULL);
}

/* Keeps the problem of the first attempt; the second one was only a fallback. */
static void failed(struct hd_mcp_peer *peer, const char *problem)
{
    char text[sizeof(peer->problem)];

    snprintf(text, sizeof(text), "%s", peer->problem[0] ? peer->problem : problem);
    peer->problem[0] = '\0';
    hd_mcp_peer_forget(peer);
    end_waiting(peer, text);
}

static void keep_problem(struct hd_mcp_peer *peer, const struct hd_mcp_answer *answer)
{
    const struct hd_mcp_message *message = answer->message;

    if (peer->problem[0])
        return;
    if (message && message->kind == HD_MCP_ERROR)
        snprintf(peer->problem, sizeof(peer->problem), "the server refused: %.*s (%lld)",
                 (int)(message->text.len < 300 ? message->text.len : 300), message->text.ptr,
                 (long long)message->code);
    else
        snprintf(peer->problem, sizeof(peer->problem), "%s",
                 answer->problem ? answer->problem : "the server's response is invalid");
}

/* ---- legacy ----------------------------------------------------------- */

static int discover(struct hd_mcp_peer *peer);

static void on_notified(void *ctx, const struct hd_reply *reply)
{
    struct hd_mcp_peer *peer = ctx;

    peer->notifying = NULL;
    if (reply->error)
        failed(peer, reply->error);
    else
        opened(peer);
}

static int notify(struct hd_mcp_peer *peer)
{
    struct hd_buf body;
    int err;

    hd_buf_init(&body, 4096);
    err = hd_mcp_write_notification(&body, "notifications/initialized", NULL);
    if (!err)
        err = hd_mcp_peer_post(peer, hd_buf_slice(&body), on_notified, &peer->notifying);
    hd_buf_fini(&body);
    return err;
}

/* A server with only the modern form refuses `initialize` in some way. */
static bool may_be_modern(const struct hd_mcp_peer *peer, const struct hd_mcp_answer *answer)
{
    if (peer->has_tried_modern)
        return false;
    if (answer->message)
        return answer->message->kind == HD_MCP_ERROR;
    return answer->status == 400 || answer->status == 404 || answer->status == 405 ||
           answer->status == 406;
}

static void on_initialized(void *ctx, const struct hd_mcp_answer *answer)
{
    struct hd_mcp_peer *peer = ctx;
    struct hd_slice version = {0};
    int err;

    if (answer->message && answer->message->kind == HD_MCP_RESULT)
        version = hd_val_get_string(hd_val_get(answer->message->result, HD_S("protocolVersion")));
    if (hd_mcp_is_legacy(version)) {
        memcpy(peer->version, version.ptr, version.len);
        peer->version[version.len] = '\0';
        err = notify(peer);
    } else if (version.len > 0) {
        snprintf(peer->problem, sizeof(peer->problem), "the server supports only version %.*s",
                 (int)(version.len < 40 ? version.len : 40), version.ptr);
        err = HD_EUNSUPPORTED;
    } else if (may_be_modern(peer, answer)) {
        keep_problem(peer, answer);
        err = discover(peer);
    } else {
        keep_problem(peer, answer);
        err = HD_EIO;
    }
    if (err)
        failed(peer, hd_error_text(err));
}

static int initialize(struct hd_mcp_peer *peer)
{
    struct hd_val *params = hd_mcp_initialize_params();
    struct hd_mcp_request_options options = {.method = "initialize",
                                             .params = params,
                                             .timeout_ms = OPEN_MS,
                                             .max_bytes = MAX_OPEN,
                                             .tries = 2,
                                             .on_answer = on_initialized,
                                             .ctx = peer};
    int err = HD_ENOMEM;

    peer->is_modern = false;
    peer->has_tried_legacy = true;
    peer->version[0] = peer->session[0] = '\0';
    if (params)
        err = hd_mcp_request_open(peer, &options);
    hd_val_unref(params);
    return err;
}

/* ---- modern ----------------------------------------------------------- */

static bool has_version(const struct hd_val *list, bool is_modern)
{
    for (size_t i = 0; i < hd_val_count(list); i++) {
        struct hd_slice version = hd_val_get_string(hd_val_at(list, i));

        if (is_modern ? hd_slice_eq(version, HD_S(HD_MCP_MODERN)) : hd_mcp_is_legacy(version))
            return true;
    }
    return false;
}

static int fall_back(struct hd_mcp_peer *peer, const struct hd_mcp_answer *answer)
{
    keep_problem(peer, answer);
    return peer->has_tried_legacy ? HD_EIO : initialize(peer);
}

/* The refusal shows which versions it supports. */
static int on_refused(struct hd_mcp_peer *peer, const struct hd_mcp_answer *answer)
{
    const struct hd_mcp_message *message = answer->message;
    const struct hd_val *supported;

    if (!message || message->kind != HD_MCP_ERROR)
        return fall_back(peer, answer);
    if (message->code == HD_MCP_UNSUPPORTED_VERSION) {
        supported = hd_val_get(message->data, HD_S("supported"));
        if (has_version(supported, true) && !peer->has_asked_again) {
            peer->has_asked_again = true;
            return discover(peer);
        }
        if (has_version(supported, false))
            return fall_back(peer, answer);
    } else if (message->code == HD_MCP_NO_METHOD && !peer->has_tried_legacy) {
        /* It is configured as modern, and this method is optional. */
        opened(peer);
        return 0;
    } else if (!hd_mcp_message_is_modern(message)) {
        return fall_back(peer, answer);
    }
    keep_problem(peer, answer);
    return HD_EUNSUPPORTED;
}

static void on_discovered(void *ctx, const struct hd_mcp_answer *answer)
{
    struct hd_mcp_peer *peer = ctx;
    const struct hd_val *list;
    int err;

    if (!answer->message || answer->message->kind != HD_MCP_RESULT) {
        err = on_refused(peer, answer);
        if (err)
            failed(peer, hd_error_text(err));
        return;
    }
    list = hd_val_get(answer->message->result, HD_S("supportedVersions"));
    if (!hd_val_is_list(list) || has_version(list, true)) {
        peer->problem[0] = '\0';
        opened(peer);
        return;
    }
    err = has_version(list, false) && !peer->has_tried_legacy ? initialize(peer) : HD_EUNSUPPORTED;
    if (err)
        failed(peer, "the server supports no protocol version in common");
}

static int discover(struct hd_mcp_peer *peer)
{
    const struct hd_mcp_request_options options = {.method = "server/discover",
                                                   .timeout_ms = OPEN_MS,
                                                   .max_bytes = MAX_OPEN,
                                                   .tries = 2,
                                                   .on_answer = on_discovered,
                                                   .ctx = peer};

    peer->is_modern = true;
    peer->has_tried_modern = true;
    peer->version[0] = peer->session[0] = '\0';
    return hd_mcp_request_open(peer, &options);
}

/* Cached facts need no request. */
static int begin_session(struct hd_mcp_peer *peer)
{
    const struct hd_val *era = hd_mcp_cache_get(
        peer->run, HD_MCP_CACHED_ERA, hd_slice_cstr(peer->server->url), (struct hd_slice){0});

    peer->has_tried_legacy = peer->has_tried_modern = peer->has_asked_again = false;
    peer->problem[0] = '\0';
    if (hd_val_is_true(era)) {
        peer->is_modern = true;
        peer->state = HD_MCP_OPEN;
        return 0;
    }
    return peer->server->is_modern && !era ? discover(peer) : initialize(peer);
}

/* ---- tokens ----------------------------------------------------------- */

/*
 * RFC 8693: exchanges the user's token for a token for this server. Neither cancelled nor recorded.
 */
struct hd_mcp_token {
    struct hd_mcp_peer *peer; /* NULL: freed */
};

static int add_encoded(struct hd_buf *out, const char *name, struct hd_slice value)
{
    int err = hd_buf_printf(out, "%s%s=", out->len > 0 ? "&" : "", name);

    return err ? err : hd_buf_append_escaped(out, value);
}

static int write_form(struct hd_buf *out, const struct hd_mcp_peer *peer)
{
    char resource[4200];
    int err =
        add_encoded(out, "grant_type", HD_S("urn:ietf:params:oauth:grant-type:token-exchange"));

    snprintf(resource, sizeof(resource), "%s/mcp", peer->server->base);
    if (!err)
        err = add_encoded(out, "client_id", HD_S("mcp_default"));
    if (!err)
        err = add_encoded(out, "subject_token", peer->user_token);
    if (!err)
        err = add_encoded(out, "subject_token_type",
                          HD_S("urn:ietf:params:oauth:token-type:access_token"));
    return err ? err : add_encoded(out, "resource", hd_slice_cstr(resource));
}

static bool is_token(struct hd_slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] < 0x21 || text.ptr[i] > 0x7e)
            return false;
    }
    return text.len > 0 && text.len <= MAX_TOKEN;
}

static int set_token(struct hd_mcp_peer *peer, struct hd_slice token)
{
    char *copy = hd_malloc(token.len + 1);

    if (!copy)
        return HD_ENOMEM;
    memcpy(copy, token.ptr, token.len);
    copy[token.len] = '\0';
    hd_free(peer->token);
    peer->token = copy;
    return 0;
}

/* 0: the peer has its token. */
static int read_token(struct hd_mcp_peer *peer, const struct hd_reply *reply)
{
    struct hd_val *answer = NULL, *token = NULL;
    int64_t seconds = TOKEN_MS / 1000;
    int err = HD_EACCESS;

    if (!reply->error && reply->status == 200 && hd_val_parse_json(reply->body, &answer, NULL) == 0)
        token = hd_val_get(answer, HD_S("access_token"));
    if (is_token(hd_val_get_string(token))) {
        err = set_token(peer, hd_val_get_string(token));
        (void)hd_val_get_int(hd_val_get(answer, HD_S("expires_in")), &seconds);
        /* It must still be valid when a long call begins. */
        if (seconds > 86400)
            seconds = 86400;
        hd_mcp_cache_put(peer->run, HD_MCP_CACHED_TOKEN, hd_slice_cstr(peer->server->url),
                         peer->user_token, hd_val_ref(token), (seconds - 30) * 1000);
    }
    hd_val_unref(answer);
    return err;
}

static void on_token(void *ctx, const struct hd_reply *reply)
{
    struct hd_mcp_token *token_request = ctx;
    struct hd_mcp_peer *peer = token_request->peer;
    char text[160];
    int err;

    hd_free(token_request);
    if (!peer)
        return;
    peer->token_request = NULL;
    err = read_token(peer, reply);
    if (err == HD_EACCESS) {
        snprintf(text, sizeof(text), "cannot get a token for the user (HTTP status %ld)",
                 reply->status);
        failed(peer, text);
        return;
    }
    if (!err)
        err = begin_session(peer);
    if (err)
        failed(peer, hd_error_text(err));
    else if (peer->state == HD_MCP_OPEN)
        end_waiting(peer, NULL);
}

static int send_token(struct hd_mcp_peer *peer, struct hd_slice form)
{
    static const char *const lines[] = {"Content-Type: application/x-www-form-urlencoded",
                                        "Accept: application/json"};
    struct hd_agent_exchange *ignored;
    char url[4200];
    struct hd_agent_exchange_options options = {.peer = "mcp",
                                                .method = "POST",
                                                .url = url,
                                                .headers = lines,
                                                .header_count = HD_COUNT(lines),
                                                .body = form,
                                                .is_direct = true,
                                                .is_detached = true,
                                                .max_body = (size_t)1 << 20,
                                                .secrets = &peer->user_token,
                                                .secret_count = 1,
                                                .on_done = on_token,
                                                .ctx = peer->token_request};

    snprintf(url, sizeof(url), "%s/oauth/token", peer->server->base);
    return hd_agent_exchange_start_run(peer->run, &options, &ignored);
}

static int exchange_token(struct hd_mcp_peer *peer)
{
    struct hd_buf form;
    int err;

    peer->token_request = hd_calloc(1, sizeof(*peer->token_request));
    if (!peer->token_request)
        return HD_ENOMEM;
    peer->token_request->peer = peer;
    hd_buf_init(&form, (size_t)1 << 18);
    err = write_form(&form, peer);
    if (!err)
        err = send_token(peer, hd_buf_slice(&form));
    hd_buf_fini(&form);
    if (err) {
        hd_free(peer->token_request);
        peer->token_request = NULL;
    }
    return err;
}

static bool has_own_credentials(const struct hd_mcp_server *server)
{
    for (size_t i = 0; i < hd_val_count(server->headers); i++) {
        if (hd_val_is_string(hd_val_member(server->headers, i, NULL)))
            return true;
    }
    return server->token.len > 0;
}

/* A replay sends no requests. */
static bool is_replayed(const struct hd_mcp_peer *peer)
{
    const struct hd_agents *agents = hd_agents_of_run(peer->run);

    return agents && agents->options.recorder && agents->options.recorder->answer;
}

/* ---- the peer --------------------------------------------------------- */

int hd_mcp_peer_open(struct hd_mcp_peer *peer)
{
    const struct hd_val *token;
    int err;

    peer->state = HD_MCP_OPENING;
    if (peer->server->needs_auth && !peer->token && !has_own_credentials(peer->server)) {
        token = hd_mcp_cache_get(peer->run, HD_MCP_CACHED_TOKEN, hd_slice_cstr(peer->server->url),
                                 peer->user_token);
        if (token)
            err = set_token(peer, hd_val_get_string(token));
        else
            err = is_replayed(peer) ? 0 : exchange_token(peer);
        if (!err && peer->token_request)
            return 0;
    } else {
        err = 0;
    }
    if (!err)
        err = begin_session(peer);
    if (err)
        peer->state = HD_MCP_CLOSED;
    return err;
}

void hd_mcp_peer_forget(struct hd_mcp_peer *peer)
{
    hd_mcp_peer_stop_hearing(peer);
    peer->state = HD_MCP_CLOSED;
    peer->session[0] = peer->version[0] = '\0';
    peer->is_modern = false;
    peer->epoch++;
}

void hd_mcp_peer_init(struct hd_mcp_peer *peer, struct hd_engine_run *run,
                      const struct hd_mcp_server *server, struct hd_slice user_token)
{
    memset(peer, 0, sizeof(*peer));
    peer->run = run;
    peer->server = server;
    peer->user_token = user_token;
}

/* Pending requests need no cancellation: they end with the session. */
void hd_mcp_peer_fini(struct hd_mcp_peer *peer)
{
    if (peer->is_gone)
        *peer->is_gone = true;
    if (peer->token_request)
        peer->token_request->peer = NULL;
    if (peer->notifying)
        hd_agent_exchange_cancel(peer->notifying);
    while (peer->requests) {
        struct hd_mcp_request *request = peer->requests;

        request->is_waiting = true;
        hd_mcp_request_cancel(request);
    }
    if (peer->session[0] && !peer->is_modern)
        hd_mcp_peer_tell(peer, "DELETE", (struct hd_slice){0});
    hd_free(peer->token);
    memset(peer, 0, sizeof(*peer));
}
