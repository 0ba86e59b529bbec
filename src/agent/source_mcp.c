/*
 * `mcp`: tools of MCP servers (see mcp_config.h for their configuration). All servers are opened
 * concurrently; a failure affects only that server. Lists are cached for a while, for the next run.
 */
#include <stdio.h>
#include <string.h>

#include "agent/agent_internal.h"
#include "agent/mcp/mcp_cache.h"
#include "agent/mcp/mcp_client.h"
#include "agent/mcp/mcp_config.h"
#include "agent/mcp/mcp_proto.h"
#include "agent/tool.h"
#include "base/alloc.h"
#include "base/log.h"
#include "graph/node/idempotency_key.h"
#include "secret/secret.h"

#define MAX_PAGES 64
#define LIST_MS 60000
#define MAX_LIST_MS 600000
#define LIST_TIMEOUT_MS 25000
#define MAX_PAGE ((size_t)2 << 20) /* bytes */
#define MAX_ROUNDS 8 /* repetitions of a call that the server requests, without a human */
#define MAX_ARENA ((size_t)16 << 20)

struct own;

/* A server and its tools. */
struct mcp_place {
    struct own *own;
    const struct hd_mcp_server *server;
    struct hd_mcp_peer peer;
    struct hd_buf credentials;
    struct hd_val *tools; /* list, so far */
    bool is_list_modern;
    int pages;
    bool is_done;
};

struct own {
    struct hd_tool_source *source;
    struct hd_arena arena;
    struct hd_val *value; /* with secrets revealed */
    struct hd_val *user_token;
    struct mcp_place *places;
    size_t count;
    char problems[2000]; /* concatenated; truncated when too long */
    bool is_opening;     /* open() has not returned */
};

/* The `own` data of a tool. */
struct own_tool {
    struct mcp_place *place;
};

static int check_servers(const struct hd_val *value, struct heddle_error *fault)
{
    struct hd_mcp_server *servers;
    struct hd_arena arena;
    size_t count;
    int err;

    hd_arena_init(&arena, MAX_ARENA);
    err = hd_mcp_config_read(value, &arena, &servers, &count, fault);
    hd_arena_fini(&arena);
    return err;
}

/* ---- listed tools ----------------------------------------------------- */

static void add_problem(struct own *own, struct hd_slice name, const char *problem)
{
    size_t len = strlen(own->problems);

    snprintf(own->problems + len, sizeof(own->problems) - len, "%s%.*s: %.300s",
             len > 0 ? "; " : "", (int)name.len, name.ptr, problem);
}

static bool has_read_only_hint(const struct hd_val *item)
{
    const struct hd_val *annotations = hd_val_get(item, HD_S("annotations"));

    return hd_val_is_true(hd_val_get(annotations, HD_S("readOnlyHint")));
}

/* Reports each problem of a tool once: a page may repeat it. */
static int add_server_tool(struct mcp_place *place, const struct hd_val *item)
{
    const struct hd_val *schema = hd_val_get(item, HD_S("inputSchema"));
    struct hd_slice name = hd_val_get_string(hd_val_get(item, HD_S("name")));
    struct hd_slice text = hd_val_get_string(hd_val_get(item, HD_S("description")));
    struct heddle_error fault = {0};
    struct own_tool *own;
    int err;

    if (name.len == 0 || name.len > 256 || !hd_mcp_server_allows(place->server, name))
        return 0;
    if (place->is_list_modern) {
        err = hd_mcp_headers_check(schema, &fault);
        if (err == HD_EINVAL)
            hd_log(HD_LOG_WARN, "mcp", "a tool of %.*s is left out: %s",
                   (int)place->server->name.len, place->server->name.ptr, fault.text);
        if (err)
            return err == HD_EINVAL ? 0 : err;
    }
    if (text.len == 0)
        text = hd_val_get_string(hd_val_get(item, HD_S("title")));
    own = hd_arena_calloc(&place->own->arena, 1, sizeof(*own));
    if (!own)
        return HD_ENOMEM;
    own->place = place;
    return hd_source_add(place->own->source,
                         &(struct hd_tool){.name = name,
                                           .description = text,
                                           .parameters = hd_val_is_object(schema) ? schema : NULL,
                                           .is_read_only = has_read_only_hint(item),
                                           .own = own});
}

/* When all servers have responded: adds their tools, in the order of the servers. */
static void finish_opening(struct own *own)
{
    int err = 0;

    if (own->is_opening)
        return;
    for (size_t i = 0; i < own->count; i++) {
        if (!own->places[i].is_done)
            return;
    }
    for (size_t i = 0; i < own->count; i++) {
        struct mcp_place *place = &own->places[i];

        for (size_t j = 0; j < hd_val_count(place->tools) && !err; j++)
            err = add_server_tool(place, hd_val_at(place->tools, j));
    }
    if (err)
        add_problem(own, HD_S("tools"), hd_error_text(err));
    hd_source_ready(own->source, own->problems[0] ? own->problems : NULL);
}

static void place_done(struct mcp_place *place, const char *problem)
{
    place->is_done = true;
    if (problem) {
        add_problem(place->own, place->server->name, problem);
        /* The cached version may be wrong. */
        hd_mcp_cache_put(place->own->source->run, HD_MCP_CACHED_ERA,
                         hd_slice_cstr(place->server->url), (struct hd_slice){0}, NULL, 0);
    }
    finish_opening(place->own);
}

/* ---- listing ---------------------------------------------------------- */

static int list_page(struct mcp_place *place, const struct hd_val *cursor);

static void keep_list(struct mcp_place *place, const struct hd_val *result)
{
    const struct hd_val *ttl = hd_val_get(result, HD_S("ttlMs"));
    struct hd_val *kept;
    int64_t ms = LIST_MS;

    if (hd_val_get_int(ttl, &ms) && ms > MAX_LIST_MS)
        ms = MAX_LIST_MS;
    kept = hd_val_with(hd_val_object(), HD_S("tools"), hd_val_ref(place->tools));
    kept = hd_val_with(kept, HD_S("is_modern"), hd_val_bool(place->is_list_modern));
    hd_mcp_cache_put(place->own->source->run, HD_MCP_CACHED_LIST, hd_slice_cstr(place->server->url),
                     hd_buf_slice(&place->credentials), kept, ms);
}

/* The cursor of the next page; NULL: this was the last. */
static const struct hd_val *next_of(const struct hd_val *result)
{
    const struct hd_val *cursor = hd_val_get(result, HD_S("nextCursor"));

    return hd_val_is_null(cursor) || hd_val_get_string(cursor).len > 65536 ? NULL : cursor;
}

static void on_tools_page(void *ctx, const struct hd_mcp_answer *answer)
{
    struct mcp_place *place = ctx;
    const struct hd_val *result = answer->message ? answer->message->result : NULL, *tools;
    struct hd_val *text;
    int err = 0;

    if (answer->message && answer->message->kind == HD_MCP_ERROR) {
        text =
            hd_mcp_error_text(answer->message->code, answer->message->text, answer->message->data);
        place_done(place, text ? hd_val_get_string(text).ptr : "out of memory");
        hd_val_unref(text);
        return;
    }
    tools = hd_val_get(result, HD_S("tools"));
    if (!answer->message || !hd_val_is_list(tools)) {
        place_done(place, answer->problem ? answer->problem : "the server lists no tools");
        return;
    }
    place->is_list_modern = place->peer.is_modern;
    place->tools = hd_val_extend(place->tools, tools);
    if (!place->tools)
        err = HD_ENOMEM;
    else if (next_of(result) && ++place->pages < MAX_PAGES &&
             hd_val_count(place->tools) < HD_TOOL_MAX_TOOLS)
        err = list_page(place, next_of(result));
    else
        keep_list(place, result);
    if (err)
        place_done(place, hd_error_text(err));
    else if (!next_of(result) || place->pages >= MAX_PAGES ||
             hd_val_count(place->tools) >= HD_TOOL_MAX_TOOLS)
        place_done(place, NULL);
}

static int list_page(struct mcp_place *place, const struct hd_val *cursor)
{
    struct hd_val *params = hd_val_object();
    struct hd_mcp_request *ignored;
    int err = HD_ENOMEM;

    if (cursor)
        params = hd_val_with(params, HD_S("cursor"), hd_val_ref(cursor));
    if (params)
        err = hd_mcp_request_start(&place->peer,
                                   &(struct hd_mcp_request_options){.method = "tools/list",
                                                                    .params = params,
                                                                    .timeout_ms = LIST_TIMEOUT_MS,
                                                                    .max_bytes = MAX_PAGE,
                                                                    .tries = 2,
                                                                    .on_answer = on_tools_page,
                                                                    .ctx = place},
                                   &ignored);
    hd_val_unref(params);
    return err;
}

/* ---- opening ---------------------------------------------------------- */

static bool has_credentials(const struct mcp_place *place)
{
    const struct hd_mcp_server *server = place->server;

    for (size_t i = 0; i < hd_val_count(server->headers); i++) {
        if (hd_val_is_string(hd_val_member(server->headers, i, NULL)))
            return true;
    }
    return server->token.len > 0 || place->peer.user_token.len > 0;
}

/* Requests the list, unless it is cached. */
static int open_place(struct mcp_place *place)
{
    const struct hd_val *kept;
    int err;

    if (place->server->needs_auth && !has_credentials(place)) {
        place_done(place, "left out: it needs a token, which this run does not have");
        return 0;
    }
    err = hd_mcp_peer_credentials(&place->peer, &place->credentials);
    if (err)
        return err;
    kept = hd_mcp_cache_get(place->own->source->run, HD_MCP_CACHED_LIST,
                            hd_slice_cstr(place->server->url), hd_buf_slice(&place->credentials));
    if (!kept)
        return list_page(place, NULL);
    hd_val_unref(place->tools);
    place->tools = hd_val_ref(hd_val_get(kept, HD_S("tools")));
    place->is_list_modern = hd_val_is_true(hd_val_get(kept, HD_S("is_modern")));
    place_done(place, NULL);
    return 0;
}

/* The token of the run's user. */
static int find_user_token(struct own *own)
{
    const struct hd_engine_run_options *options = &own->source->run->options;
    const struct hd_val *user = hd_val_get(options->config, HD_S("langgraph_auth_user"));
    const struct hd_val *token = hd_val_get(options->config, HD_S("x-supabase-access-token"));

    if (!hd_val_is_string(token))
        token = hd_val_get(user, HD_S("token"));
    if (!hd_val_is_string(token))
        return 0;
    own->user_token = hd_secrets_reveal(token, options->secrets);
    return own->user_token ? 0 : HD_ENOMEM;
}

static int make_places(struct own *own)
{
    struct hd_mcp_server *servers;
    size_t count;
    int err = hd_mcp_config_read(own->value, &own->arena, &servers, &count, NULL);

    if (err)
        return err;
    own->places = hd_arena_calloc(&own->arena, count + 1, sizeof(*own->places));
    if (!own->places)
        return HD_ENOMEM;
    for (; own->count < count; own->count++) {
        struct mcp_place *place = &own->places[own->count];

        place->own = own;
        place->server = &servers[own->count];
        place->tools = hd_val_list();
        hd_buf_init(&place->credentials, (size_t)1 << 20);
        hd_mcp_peer_init(&place->peer, own->source->run, place->server,
                         hd_val_get_string(own->user_token));
        if (!place->tools)
            return HD_ENOMEM;
    }
    return 0;
}

static void free_own(struct own *own)
{
    for (size_t i = 0; i < own->count; i++) {
        hd_mcp_peer_fini(&own->places[i].peer);
        hd_buf_fini(&own->places[i].credentials);
        hd_val_unref(own->places[i].tools);
    }
    hd_val_unref(own->user_token);
    hd_val_unref(own->value);
    hd_arena_fini(&own->arena);
    hd_free(own);
}

static int open_servers(struct hd_tool_source *source)
{
    struct own *own = hd_calloc(1, sizeof(*own));
    int err = HD_ENOMEM;

    if (!own)
        return HD_ENOMEM;
    own->source = source;
    hd_arena_init(&own->arena, MAX_ARENA);
    own->value = hd_secrets_reveal(source->value, source->run->options.secrets);
    if (own->value)
        err = find_user_token(own);
    if (!err)
        err = make_places(own);
    if (err) {
        free_own(own);
        return err;
    }
    source->own = own;
    own->is_opening = true;
    for (size_t i = 0; i < own->count; i++) {
        err = open_place(&own->places[i]);
        if (err)
            place_done(&own->places[i], hd_error_text(err));
    }
    own->is_opening = false;
    finish_opening(own);
    return 0;
}

static void close_servers(struct hd_tool_source *source)
{
    free_own(source->own);
    source->own = NULL;
}

/* ---- calls ------------------------------------------------------------ */

struct mcp_work {
    struct hd_tool_call *call;
    struct mcp_place *place;
    struct hd_mcp_request *request;
    struct hd_val *params;
    struct hd_val *answered; /* list of {"request", "response"}: known elicitations */
    size_t used;             /* number of these used */
    int rounds;
};

static void free_mcp_work(struct mcp_work *work)
{
    work->call->own = NULL;
    hd_val_unref(work->params);
    hd_val_unref(work->answered);
    hd_free(work);
}

/* These end the call; the work is freed before the callback. */

static void end_error(struct mcp_work *work, const char *text)
{
    struct hd_tool_call *call = work->call;

    free_mcp_work(work);
    hd_tool_error(call, "%s", text);
}

static void end_message(struct mcp_work *work, const struct hd_mcp_message *error)
{
    struct hd_val *text = hd_mcp_error_text(error->code, error->text, error->data);

    if (error->code == HD_MCP_HEADER_MISMATCH)
        hd_mcp_cache_put(work->place->own->source->run, HD_MCP_CACHED_LIST,
                         hd_slice_cstr(work->place->server->url),
                         hd_buf_slice(&work->place->credentials), NULL, 0);
    end_error(work, text ? hd_val_get_string(text).ptr : "out of memory");
    hd_val_unref(text);
}

static void end_result(struct mcp_work *work, const struct hd_val *result)
{
    struct hd_tool_call *call = work->call;
    struct hd_mcp_outcome outcome;
    struct heddle_error fault = {0};
    int err = hd_mcp_result_read(result, &outcome, &fault);

    free_mcp_work(work);
    if (err) {
        hd_tool_error(call, "the server's response is invalid: %s",
                      fault.text[0] ? fault.text : hd_error_text(err));
    } else if (outcome.is_error) {
        hd_tool_error(call, "%s", hd_val_get_string(outcome.content).ptr);
        hd_mcp_outcome_fini(&outcome);
    } else {
        hd_tool_done(call, outcome.content, outcome.artifact);
    }
}

static void end_question(struct mcp_work *work, const struct hd_val *requests,
                         const struct hd_val *state, bool is_legacy)
{
    struct hd_tool_call *call = work->call;
    struct hd_val *question =
        hd_mcp_ask_question(work->place->server->name, call->tool->name, requests, state,
                            is_legacy ? work->answered : NULL);

    free_mcp_work(work);
    if (question)
        hd_tool_ask(call, question);
    else
        hd_tool_error(call, "out of memory");
}

/* ---- elicitations ----------------------------------------------------- */

/* Compares elicitations by content. */
static bool is_same_elicitation(const struct hd_val *a, const struct hd_val *b)
{
    static const char *const keys[] = {"message", "requestedSchema", "mode"};

    for (size_t i = 0; i < HD_COUNT(keys); i++) {
        const struct hd_val *mine = hd_val_get(a, hd_slice_cstr(keys[i]));
        const struct hd_val *other = hd_val_get(b, hd_slice_cstr(keys[i]));

        if (hd_val_is_null(mine) != hd_val_is_null(other) ||
            (!hd_val_is_null(mine) && !hd_val_equal(mine, other)))
            return false;
    }
    return true;
}

static struct hd_val *request_of(const struct hd_val *params)
{
    struct hd_val *request =
        hd_val_with(hd_val_object(), HD_S("method"), hd_val_cstr("elicitation/create"));

    return hd_val_with(request, HD_S("params"), params ? hd_val_ref(params) : hd_val_object());
}

/* The response without a human; NULL: none. */
static struct hd_val *answer_alone(const struct mcp_work *work, const struct hd_val *request)
{
    if (work->place->server->elicit == HD_MCP_DECLINE)
        return hd_val_with(hd_val_object(), HD_S("action"), hd_val_cstr("decline"));
    if (work->place->server->elicit == HD_MCP_DEFAULTS)
        return hd_mcp_ask_defaults(request);
    return NULL;
}

/* A repeated call gets the earlier elicitations again. */
static struct hd_val *on_request(void *ctx, const struct hd_mcp_message *message)
{
    struct mcp_work *work = ctx;
    const struct hd_val *known = hd_val_at(work->answered, work->used);
    struct hd_val *request, *response = NULL;

    if (known && is_same_elicitation(hd_val_get(hd_val_get(known, HD_S("request")), HD_S("params")),
                                     message->params)) {
        work->used++;
        return hd_val_ref(hd_val_get(known, HD_S("response")));
    }
    request = request_of(message->params);
    if (request)
        response = answer_alone(work, request);
    hd_val_unref(request);
    return response;
}

static int send_call(struct mcp_work *work);

/* Takes `responses` (NULL: none). Repeats the call with them. */
static void repeat(struct mcp_work *work, struct hd_val *responses, const struct hd_val *state)
{
    struct hd_val *params = hd_val_ref(work->params);
    int err = HD_ENOMEM;

    params = hd_val_without(params, HD_S("inputResponses"));
    if (params)
        params = hd_val_without(params, HD_S("requestState"));
    if (responses)
        params = hd_val_with(params, HD_S("inputResponses"), responses);
    if (!hd_val_is_null(state))
        params = hd_val_with(params, HD_S("requestState"), hd_val_ref(state));
    if (params) {
        hd_val_unref(work->params);
        work->params = params;
        err = ++work->rounds <= MAX_ROUNDS ? send_call(work) : HD_ELIMIT;
    }
    if (err)
        end_error(work, err == HD_ELIMIT ? "the server repeats its request for input"
                                         : hd_error_text(err));
}

static struct hd_val *answer_all(const struct mcp_work *work, const struct hd_val *requests)
{
    struct hd_val *responses = hd_val_object();

    for (size_t i = 0; i < hd_val_count(requests) && responses; i++) {
        struct hd_val *key, *request = hd_val_member(requests, i, &key);

        responses = hd_val_with(responses, hd_val_get_string(key), answer_alone(work, request));
    }
    return responses;
}

/* Modern: the call has ended, and must be repeated with the requested input. */
static void on_input_required(struct mcp_work *work, const struct hd_val *result)
{
    const struct hd_val *requests = hd_val_get(result, HD_S("inputRequests"));
    const struct hd_val *state = hd_val_get(result, HD_S("requestState"));
    const char *other = hd_val_is_object(requests) ? hd_mcp_ask_check(requests) : NULL;
    struct hd_val *responses;
    char text[200];

    if (other) {
        snprintf(text, sizeof(text), "the server requests %.100s, which is not supported", other);
        end_error(work, text);
    } else if (hd_val_count(requests) == 0 && hd_val_is_null(state)) {
        end_error(work, "the server requires input but describes none");
    } else if (hd_val_count(requests) == 0) {
        repeat(work, NULL, state);
    } else if (work->place->server->elicit == HD_MCP_ASK) {
        end_question(work, requests, state, false);
    } else {
        responses = answer_all(work, requests);
        if (responses)
            repeat(work, responses, state);
        else
            end_error(work, "out of memory");
    }
}

/* Legacy: the server sent a request in the middle, which could not be answered. */
static void on_asked(struct mcp_work *work, const struct hd_mcp_message *message)
{
    struct hd_val *requests =
        hd_val_with(hd_val_object(), HD_S("elicitation"), request_of(message->params));

    if (requests)
        end_question(work, requests, NULL, true);
    else
        end_error(work, "out of memory");
    hd_val_unref(requests);
}

static void on_mcp_answer(void *ctx, const struct hd_mcp_answer *answer)
{
    struct mcp_work *work = ctx;
    const struct hd_mcp_message *message = answer->message;

    work->request = NULL;
    if (!message)
        end_error(work, answer->problem);
    else if (message->kind == HD_MCP_REQUEST)
        on_asked(work, message);
    else if (message->kind == HD_MCP_ERROR)
        end_message(work, message);
    else if (hd_slice_eq(hd_val_get_string(hd_val_get(message->result, HD_S("resultType"))),
                         HD_S("input_required")))
        on_input_required(work, message->result);
    else
        end_result(work, message->result);
}

/* ---- calling ---------------------------------------------------------- */

static int add_key_meta(struct mcp_work *work)
{
    struct hd_val *meta;
    char key[HD_UUID_SIZE];
    int err = hd_idempotency_key(work->call->task, work->call->id, work->rounds, key);

    if (err)
        return err;
    meta = hd_val_with(hd_val_object(), HD_S(HD_CALL_KEY_META), hd_val_cstr(key));
    work->params = hd_val_with(work->params, HD_S("_meta"), meta);
    return work->params ? 0 : HD_ENOMEM;
}

static int send_call(struct mcp_work *work)
{
    const struct hd_tool_call *call = work->call;
    int err = add_key_meta(work);

    if (err)
        return err;
    work->used = 0;
    return hd_mcp_request_start(
        &work->place->peer,
        &(struct hd_mcp_request_options){
            .task = call->task,
            .method = "tools/call",
            .params = work->params,
            .name = call->tool->name,
            .schema = work->place->is_list_modern ? call->tool->parameters : NULL,
            .args = call->args,
            .on_answer = on_mcp_answer,
            .on_request = on_request,
            .ctx = work},
        &work->request);
}

/* Legacy elicitations have no server state: earlier responses are kept for the repetition. */
static struct hd_val *answered_of(const struct hd_val *question, const struct hd_val *responses)
{
    const struct hd_val *requests = hd_val_get(question, HD_S("requests"));
    const struct hd_val *earlier = hd_val_get(question, HD_S("answered"));
    struct hd_val *list = hd_val_is_list(earlier) ? hd_val_ref(earlier) : hd_val_list();

    for (size_t i = 0; i < hd_val_count(requests) && list; i++) {
        struct hd_val *key, *request = hd_val_member(requests, i, &key), *pair;
        const struct hd_val *response = hd_val_get(responses, hd_val_get_string(key));

        pair = hd_val_with(hd_val_object(), HD_S("request"), hd_val_ref(request));
        pair = hd_val_with(pair, HD_S("response"), response ? hd_val_ref(response) : hd_val_null());
        list = hd_val_append(list, pair);
    }
    return list;
}

/* Adds the human's reply to the call. */
static int add_answer(struct mcp_work *work)
{
    const struct hd_val *question = hd_tool_question(work->call);
    const struct hd_val *answer = hd_tool_answer(work->call);
    const struct hd_val *state = hd_val_get(question, HD_S("request_state"));
    struct hd_val *responses;
    bool has_responses;

    if (!hd_mcp_ask_is_question(question, work->place->server->name, work->call->tool->name))
        return 0;
    responses = hd_mcp_ask_responses(hd_val_get(question, HD_S("requests")), answer);
    if (responses && hd_val_get(question, HD_S("answered"))) {
        hd_val_unref(work->answered);
        work->answered = answered_of(question, responses);
    } else if (responses) {
        work->params = hd_val_with(work->params, HD_S("inputResponses"), hd_val_ref(responses));
    }
    if (state)
        work->params = hd_val_with(work->params, HD_S("requestState"), hd_val_ref(state));
    has_responses = responses != NULL;
    hd_val_unref(responses);
    return has_responses && work->params && work->answered ? 0 : HD_ENOMEM;
}

static int call_server_tool(struct hd_tool_call *call)
{
    const struct own_tool *own = call->tool->own;
    struct mcp_work *work = hd_calloc(1, sizeof(*work));
    int err = HD_ENOMEM;

    if (!work)
        return HD_ENOMEM;
    work->call = call;
    work->place = own->place;
    work->answered = hd_val_list();
    work->params = hd_val_with(hd_val_object(), HD_S("name"), hd_val_string(call->tool->name));
    work->params = hd_val_with(work->params, HD_S("arguments"), hd_val_ref(call->args));
    if (work->params && work->answered)
        err = add_answer(work);
    if (!err)
        err = send_call(work);
    if (err)
        free_mcp_work(work);
    else
        call->own = work;
    return err;
}

static void cancel_call(struct hd_tool_call *call)
{
    struct mcp_work *work = call->own;

    if (!work)
        return;
    if (work->request)
        hd_mcp_request_cancel(work->request);
    free_mcp_work(work);
}

const struct hd_source_kind hd_source_mcp = {
    .name = "mcp",
    .check = check_servers,
    .open = open_servers,
    .close = close_servers,
    .call = call_server_tool,
    .cancel = cancel_call,
};
