/*
 * `a2a`: remote agents, each as one tool. Opening fetches their cards, which are cached across runs
 * for as long as the agent allows, five minutes at most.
 *
 * Credentials go to the server that they were configured for. A card that names another server does
 * not get them: `endpoint` overrides the card.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/a2a/a2a_client.h"
#include "agent/agent_internal.h"
#include "agent/exchange.h"
#include "agent/mcp/mcp_cache.h"
#include "base/alloc.h"
#include "secret/secret.h"

#define CARD_MS 10000
#define CARD_TTL_S 300
#define MAX_CONFIG ((size_t)4 << 20)

struct a2a {
    struct hd_val *value; /* revealed */
    struct hd_arena arena;
    struct hd_a2a_peer *peers;
    size_t count;
    size_t waiting; /* for cards */
};

static int check_agents(const struct hd_val *value, struct heddle_error *fault)
{
    struct hd_a2a_peer *peers;
    struct hd_arena arena;
    size_t count;
    int err;

    hd_arena_init(&arena, MAX_CONFIG);
    err = hd_a2a_config_read(value, &arena, &peers, &count, fault);
    hd_arena_fini(&arena);
    return err;
}

/* ---- tools ------------------------------------------------------------- */

static struct hd_val *make_parameters(void)
{
    static const char schema[] =
        "{\"type\":\"object\",\"properties\":{\"message\":{\"type\":\"string\",\"description\":"
        "\"The message to the agent. Of this conversation it sees only earlier messages to "
        "it.\"}},\"required\":[\"message\"],\"additionalProperties\":false}";
    struct hd_val *val;

    return hd_val_parse_json(hd_slice_cstr(schema), &val, NULL) ? NULL : val;
}

static int add_agent_tool(struct hd_tool_source *source, struct hd_a2a_peer *peer,
                          const struct hd_val *parameters)
{
    struct hd_tool tool = {.name = peer->name,
                           .description = hd_slice_cstr(peer->card.description),
                           .parameters = parameters,
                           .own = peer};

    if (tool.name.len == 0)
        tool.name = hd_slice_cstr(peer->card.name);
    if (tool.description.len == 0)
        tool.description = HD_S("Another agent that can be called.");
    return hd_source_add(source, &tool);
}

static int add_problem(struct hd_buf *out, const struct hd_a2a_peer *peer)
{
    struct hd_slice name = peer->name.len ? peer->name : hd_slice_cstr(peer->url);

    return hd_buf_printf(out, "%s%.*s: %s", out->len ? "; " : "", (int)name.len, name.ptr,
                         peer->fault.text[0] ? peer->fault.text : hd_error_text(peer->fault.code));
}

/* All cards have arrived or failed. */
static void finish_cards(struct hd_tool_source *source)
{
    struct a2a *a2a = source->own;
    struct hd_val *parameters = make_parameters();
    struct hd_buf problem;
    int err = parameters ? 0 : HD_ENOMEM;

    hd_buf_init(&problem, (size_t)64 << 10);
    for (size_t i = 0; i < a2a->count && !err; i++) {
        if (a2a->peers[i].has_card)
            err = add_agent_tool(source, &a2a->peers[i], parameters);
        else
            err = add_problem(&problem, &a2a->peers[i]);
    }
    if (!err)
        err = hd_buf_append_byte(&problem, 0);
    hd_val_unref(parameters);
    hd_source_ready(source, err ? hd_error_text(err) : problem.len == 1 ? NULL : problem.ptr);
    hd_buf_fini(&problem);
}

/* ---- cards ------------------------------------------------------------- */

static struct hd_slice credentials_of(const struct hd_a2a_peer *peer, struct hd_buf *out)
{
    int err = hd_buf_append_byte(out, (uint8_t)('0' + (int)peer->wanted));

    for (size_t i = 0; i < peer->line_count && !err; i++)
        err = hd_buf_append_lenslice(out, hd_slice_cstr(peer->lines[i]));
    if (err)
        hd_buf_reset(out);
    return hd_buf_slice(out);
}

/* The cache time that the agent allows for its card. */
static int64_t card_ttl_ms(struct hd_slice headers)
{
    struct hd_slice value = hd_header_find(headers, "cache-control");
    char text[256];
    char *age;
    long seconds = CARD_TTL_S;

    snprintf(text, sizeof(text), "%.*s", (int)(value.len < 255 ? value.len : 255),
             value.ptr ? value.ptr : "");
    if (strcasestr(text, "no-store") || strcasestr(text, "no-cache"))
        return 0;
    age = strcasestr(text, "max-age=");
    if (age)
        seconds = strtol(age + 8, NULL, 10);
    return (int64_t)(seconds < 0 ? 0 : seconds > CARD_TTL_S ? CARD_TTL_S : seconds) * 1000;
}

static int read_card(struct hd_a2a_peer *peer, struct hd_slice text)
{
    struct hd_slice copy = hd_slice_cstr(peer->endpoint);
    char *url;
    int err = hd_a2a_card_read(text, peer->wanted, &peer->card, &peer->fault);

    if (err)
        return err;
    if (peer->endpoint) {
        url = hd_malloc(copy.len + 1);
        if (!url)
            return HD_ENOMEM;
        memcpy(url, copy.ptr, copy.len + 1);
        hd_free(peer->card.url);
        peer->card.url = url;
    } else if (peer->secret_count > 0 &&
               !hd_a2a_same_origin(hd_slice_cstr(peer->url), hd_slice_cstr(peer->card.url))) {
        return hd_error_set(&peer->fault, HD_EACCESS,
                            "its card names another server, which must not receive its "
                            "credentials; set `endpoint` to allow it");
    }
    peer->has_card = true;
    return 0;
}

static void got_card(struct hd_a2a_peer *peer, struct hd_slice text)
{
    int err = read_card(peer, text);

    if (err)
        (void)hd_error_set(&peer->fault, err, "%s", hd_error_text(err));
}

static void on_card(void *ctx, const struct hd_reply *reply)
{
    struct hd_a2a_peer *peer = ctx;
    struct hd_tool_source *source = peer->source;
    struct a2a *a2a = source->own;
    struct hd_buf key;

    peer->exchange = NULL;
    if (reply->error) {
        (void)hd_error_set(&peer->fault, HD_EIO, "%s", reply->error);
    } else if (reply->status != 200) {
        (void)hd_error_set(&peer->fault, HD_EIO, "cannot fetch its card: HTTP status %ld",
                           reply->status);
    } else {
        got_card(peer, reply->body);
        hd_buf_init(&key, MAX_CONFIG);
        if (peer->has_card && credentials_of(peer, &key).len)
            hd_mcp_cache_put(source->run, HD_MCP_CACHED_CARD, hd_slice_cstr(peer->url),
                             hd_buf_slice(&key), hd_val_string(reply->body),
                             card_ttl_ms(reply->headers));
        hd_buf_fini(&key);
    }
    if (--a2a->waiting == 0)
        finish_cards(source);
}

static int fetch_card(struct hd_a2a_peer *peer)
{
    const char *lines[HD_A2A_MAX_HEADERS + 4];
    struct hd_agent_exchange_options options = {.peer = "a2a",
                                                .method = "GET",
                                                .headers = lines,
                                                .timeout_ms = CARD_MS,
                                                .tries = 2,
                                                .is_direct = true,
                                                .max_body = HD_A2A_MAX_CARD,
                                                .secrets = peer->secrets,
                                                .secret_count = peer->secret_count,
                                                .on_done = on_card,
                                                .ctx = peer};
    struct hd_buf url;
    int err;

    lines[options.header_count++] = "Accept: application/json, application/a2a+json";
    lines[options.header_count++] =
        peer->wanted == HD_A2A_0_3 ? "A2A-Version: 0.3" : "A2A-Version: 1.0";
    for (size_t i = 0; i < peer->line_count; i++)
        lines[options.header_count++] = peer->lines[i];
    hd_buf_init(&url, 2 * HD_A2A_MAX_URL);
    err = hd_a2a_card_url(hd_slice_cstr(peer->url), &url);
    options.url = url.ptr;
    if (!err)
        err = hd_agent_exchange_start_run(peer->source->run, &options, &peer->exchange);
    hd_buf_fini(&url);
    return err;
}

/* ---- opening and closing ------------------------------------------------ */

static void find_card(struct a2a *a2a, struct hd_a2a_peer *peer)
{
    const struct hd_val *known;
    struct hd_buf key;
    int err;

    if (peer->fault.code)
        return;
    hd_buf_init(&key, MAX_CONFIG);
    known = hd_mcp_cache_get(peer->source->run, HD_MCP_CACHED_CARD, hd_slice_cstr(peer->url),
                             credentials_of(peer, &key));
    hd_buf_fini(&key);
    if (known) {
        got_card(peer, hd_val_get_string(known));
        return;
    }
    err = fetch_card(peer);
    if (err)
        (void)hd_error_set(&peer->fault, err, "%s", hd_error_text(err));
    else
        a2a->waiting++;
}

static void close_source(struct hd_tool_source *source)
{
    struct a2a *a2a = source->own;

    for (size_t i = 0; i < a2a->count; i++) {
        if (a2a->peers[i].exchange)
            hd_agent_exchange_cancel(a2a->peers[i].exchange);
        hd_a2a_card_fini(&a2a->peers[i].card);
        hd_val_unref(a2a->peers[i].context_id);
    }
    hd_arena_fini(&a2a->arena);
    hd_val_unref(a2a->value);
    hd_free(a2a);
    source->own = NULL;
}

/* Finds unknown markers: the peer must not be called without its credentials. */
static int find_lost(struct a2a *a2a, const struct hd_val *value)
{
    struct hd_a2a_peer *given;
    size_t count;
    int err = hd_a2a_config_read(value, &a2a->arena, &given, &count, NULL);

    for (size_t i = 0; i < count && !err; i++) {
        if (given[i].line_count > a2a->peers[i].line_count)
            (void)hd_error_set(&a2a->peers[i].fault, HD_EACCESS,
                               "this run has no credentials for it");
    }
    return err;
}

static int read_config(struct hd_tool_source *source, struct a2a *a2a)
{
    int err;

    a2a->value = hd_secrets_reveal(source->value, source->run->options.secrets);
    if (!a2a->value)
        return HD_ENOMEM;
    err = hd_a2a_config_read(a2a->value, &a2a->arena, &a2a->peers, &a2a->count, NULL);
    return err ? err : find_lost(a2a, source->value);
}

static int open_agents(struct hd_tool_source *source)
{
    struct a2a *a2a = hd_calloc(1, sizeof(*a2a));
    int err;

    if (!a2a)
        return HD_ENOMEM;
    source->own = a2a;
    hd_arena_init(&a2a->arena, 2 * MAX_CONFIG);
    err = read_config(source, a2a);
    if (err) {
        close_source(source);
        return err;
    }
    for (size_t i = 0; i < a2a->count; i++) {
        a2a->peers[i].source = source;
        find_card(a2a, &a2a->peers[i]);
    }
    if (a2a->waiting == 0)
        finish_cards(source);
    return 0;
}

extern const struct hd_source_kind hd_source_a2a;

const struct hd_source_kind hd_source_a2a = {
    .name = "a2a",
    .check = check_agents,
    .open = open_agents,
    .close = close_source,
    .call = hd_a2a_call,
    .cancel = hd_a2a_call_cancel,
};
