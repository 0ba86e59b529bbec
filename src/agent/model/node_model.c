/*
 * `model`: calls a model, and adds its response to the messages.
 *
 * Steps of a call: choose the model; find its tools, which may need requests; send; read the
 * response as it arrives; finish. Each step may be the last, and a cancel may come between any two.
 * The streamed part of a response that fails or is cancelled is not written; when the user stops
 * the run it is, as a stopped message.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "agent/agent_internal.h"
#include "agent/exchange.h"
#include "agent/model/model_choice.h"
#include "agent/model/model_error.h"
#include "agent/model/provider.h"
#include "agent/toolset.h"
#include "base/alloc.h"
#include "graph/decl/decl.h"

#define ID_PREFIX "lc_run--"
#define MAX_SYSTEM ((size_t)4 << 20)
#define MAX_EVENT ((size_t)16 << 20)
#define IDLE_MS 300000
#define TRIES 3
#define WORD_MS 30    /* between words of the offline model */
#define LINGER_MS 250 /* for a server to close the connection after the last event */

struct model_spec {
    const struct hd_expr *defaults, *settings, *prompt, *suffix, *messages, *update;
    size_t channel; /* HD_GRAPH_END: none, uses `update` */
    size_t tools;   /* HD_GRAPH_END: none */
    int64_t idle_ms, tries;
    bool streams;
    struct hd_decl_at channel_at, tools_at;
};

/* ---- the declaration -------------------------------------------------- */

static const struct hd_field fields[] = {
    {"defaults", hd_decl_read_expr, offsetof(struct model_spec, defaults), false, 0, 0, 0},
    {"settings", hd_decl_read_expr, offsetof(struct model_spec, settings), false, 0, 0, 0},
    {"prompt", hd_decl_read_expr, offsetof(struct model_spec, prompt), false, 0, 0, 0},
    {"suffix", hd_decl_read_expr, offsetof(struct model_spec, suffix), false, 0, 0, 0},
    {"messages", hd_decl_read_expr, offsetof(struct model_spec, messages), false, 0, 0, 0},
    {"channel", hd_decl_read_raw, offsetof(struct model_spec, channel_at), false, 0, 0, 0},
    {"update", hd_decl_read_update, offsetof(struct model_spec, update), false, 0, 0,
     HD_PLACE(MESSAGE)},
    {"tools", hd_decl_read_raw, offsetof(struct model_spec, tools_at), false, 0, 0, 0},
    {"idle_ms", hd_decl_read_int, offsetof(struct model_spec, idle_ms), false, 1,
     HD_GRAPH_MAX_WAIT_MS, 0},
    {"tries", hd_decl_read_int, offsetof(struct model_spec, tries), false, 1, 10, 0},
    {"stream", hd_decl_read_bool, offsetof(struct model_spec, streams), false, 0, 0, 0},
};

/* The response goes to `messages` unless another message channel, or an update, is declared. */
static int find_channel(struct hd_decl *decl, const struct hd_decl_at *at, struct model_spec *spec)
{
    bool is_given = hd_raw(&spec->channel_at);
    struct hd_slice name = is_given ? hd_json_string(spec->channel_at.val) : HD_S("messages");
    const struct hd_decl_at *where = is_given ? &spec->channel_at : at;
    int err;

    if (is_given && spec->update)
        return hd_decl_fail(decl, where, "\"channel\" and \"update\" exclude each other");
    if (spec->update && spec->messages)
        return 0;
    if (is_given && !hd_json_is_string(spec->channel_at.val))
        return hd_decl_fail_type(decl, where, "the name of a channel");
    if (!is_given && !hd_map_get(&decl->draft->channel_map, name))
        return hd_decl_fail(decl, at,
                            spec->update
                                ? "needs a member \"messages\": there is no such channel"
                                : "needs a member \"channel\": there is no channel \"messages\"");
    err = hd_decl_find_channel(decl, where, name, &spec->channel);
    if (err == 0 && decl->draft->channels[spec->channel].reducer != HD_REDUCE_MESSAGES)
        err = hd_decl_fail(decl, where, "channel \"%.*s\" needs the reducer \"messages\"",
                           HD_SHOW(name));
    return err;
}

/* The node may not be parsed yet: uses the file. */
static int find_tools(struct hd_decl *decl, const struct hd_decl_at *at, struct model_spec *spec)
{
    const struct hd_decl_at *where = &spec->tools_at;
    struct hd_slice name = hd_json_string(where->val);
    hd_json_val node;
    int err;

    if (!hd_raw(where))
        return 0;
    if (!hd_json_is_string(where->val))
        return hd_decl_fail_type(decl, where, "the name of a node");
    err = hd_decl_find_node(decl, where, name, false, &spec->tools);
    node = at->up ? hd_json_get(at->up->val, name) : NULL;
    if (err == 0 && node &&
        !hd_slice_eq(hd_json_string(hd_json_get(node, HD_S("kind"))), HD_S("tools")))
        err = hd_decl_fail(decl, where, "must be a node of the kind \"tools\"");
    return err;
}

static int read_model_node(struct hd_decl *decl, const struct hd_decl_at *at, struct hd_node *node)
{
    struct model_spec *spec = hd_arena_calloc(&decl->hold->arena, 1, sizeof(*spec));
    int err;

    if (!spec)
        return HD_ENOMEM;
    node->spec = spec;
    node->may_stop = true;
    spec->idle_ms = IDLE_MS;
    spec->tries = TRIES;
    spec->streams = true;
    spec->channel = spec->tools = HD_GRAPH_END;
    err = hd_decl_node_fields(decl, at, fields, HD_COUNT(fields), spec);
    if (err == 0)
        err = find_channel(decl, at, spec);
    if (err == 0)
        err = find_tools(decl, at, spec);
    spec->channel_at = spec->tools_at = (struct hd_decl_at){0};
    return err;
}

/* ---- a call ----------------------------------------------------------- */

struct call {
    struct hd_task *task;
    struct hd_model_choice choice;
    struct hd_buf system;
    struct hd_val *messages; /* as sent */
    struct hd_val *shown;    /* the same with the system prompt: for events */
    struct hd_val *repairs;  /* results of invalid calls; also written to the state */
    struct hd_toolset_wait *wait;
    const struct hd_toolset *tools;
    struct hd_agent_exchange *exchange;
    struct hd_sse_read sse;
    bool is_stream;  /* the response is a stream of events */
    bool has_pieces; /* some were emitted */
    struct hd_completion answer;
    char id[sizeof(ID_PREFIX) + HD_UUID_SIZE];
    struct hd_buf script; /* of the offline model */
    size_t script_at;
    bool script_fails;
};

static const struct model_spec *spec_of(const struct call *call)
{
    return call->task->node->spec;
}

static const struct hd_provider *provider_of(const struct call *call)
{
    return call->choice.provider;
}

static void free_call(struct call *call)
{
    hd_model_choice_fini(&call->choice);
    hd_buf_fini(&call->system);
    hd_buf_fini(&call->script);
    hd_val_unref(call->messages);
    hd_val_unref(call->shown);
    hd_val_unref(call->repairs);
    hd_sse_read_fini(&call->sse);
    hd_completion_fini(&call->answer);
    hd_free(call);
}

/* Cancels pending operations: the socket is closed when this returns. */
static void cancel_model_call(struct hd_task *task)
{
    struct call *call = task->work;

    if (call->wait)
        hd_toolset_cancel(call->wait);
    if (call->exchange)
        hd_agent_exchange_cancel(call->exchange);
    free_call(call);
}

/* ---- failing ---------------------------------------------------------- */

/* Fails with the response's error. Ends the task and the call. */
static void fail_answer(struct call *call)
{
    struct hd_task *task = call->task;
    const char *type = call->answer.error_type;
    struct hd_buf text;
    int err;

    hd_buf_init(&text, (size_t)65536);
    err = hd_model_mask(&call->answer, hd_buf_slice(&call->choice.key), &text);
    if (err || !type)
        hd_task_fail_code(task, err ? err : HD_ENOMEM, NULL);
    else
        hd_task_fail_text(task, hd_slice_cstr(type), hd_buf_slice(&text));
    hd_buf_fini(&text);
}

static void fail_code(struct call *call, int err)
{
    if (err == HD_EINVAL)
        fail_answer(call);
    else if (err == HD_ELIMIT)
        hd_task_fail(call->task, "APIResponseValidationError",
                     "the response of the model is too large");
    else
        hd_task_fail_code(call->task, err, NULL);
}

/* ---- finishing -------------------------------------------------------- */

/* A model whose calls were all invalid gets error results, and is called again. */
static struct hd_val *goto_after_invalid(const struct call *call, const struct hd_val *message)
{
    bool is_invalid = hd_val_count(hd_val_get(message, HD_S("invalid_tool_calls"))) > 0 &&
                      hd_val_count(hd_val_get(message, HD_S("tool_calls"))) == 0;

    if (!is_invalid || spec_of(call)->tools == HD_GRAPH_END || spec_of(call)->update)
        return NULL;
    return hd_val_append(hd_val_list(), hd_val_string(call->task->node->name));
}

/* Takes `message`. */
static void write_message(struct call *call, struct hd_val *message)
{
    const struct model_spec *spec = spec_of(call);
    struct hd_task *task = call->task;
    struct hd_scope scope = hd_task_scope(task);
    struct hd_val *update, *go;

    if (spec->update) {
        scope.places[HD_PLACE_MESSAGE] = message;
        hd_task_finish_exprs(task, &scope, spec->update, NULL, false);
        hd_val_unref(message);
        return;
    }
    go = goto_after_invalid(call, message);
    update = hd_val_append(hd_val_ref(call->repairs), message);
    update = hd_val_with(hd_val_object(), task->graph->channels[spec->channel].name, update);
    if (update) {
        hd_task_finish(task, update, go, false);
        return;
    }
    hd_val_unref(go);
    hd_task_fail_code(task, HD_ENOMEM, NULL);
}

/* Emits the content received since the last time. */
static int emit_chunk(struct call *call)
{
    struct hd_val *piece;
    int err = hd_completion_piece(&call->answer, call->id, &piece);

    if (err || !piece)
        return err;
    call->has_pieces = true;
    hd_task_message(call->task, provider_of(call)->model, piece);
    hd_val_unref(piece);
    return 0;
}

/* The response is complete. */
static void finish_model_call(struct call *call)
{
    const struct hd_provider *provider = provider_of(call);
    struct hd_task *task = call->task;
    struct hd_val *message, *last = NULL;

    if (hd_model_check(&call->answer, provider->name)) {
        fail_answer(call);
        return;
    }
    message = hd_completion_message(&call->answer, provider->name, call->id);
    if (call->has_pieces)
        last = hd_completion_last(&call->answer, provider->name, call->id);
    if (!message || (call->has_pieces && !last)) {
        hd_val_unref(message);
        hd_val_unref(last);
        hd_task_fail_code(task, HD_ENOMEM, NULL);
        return;
    }
    if (last)
        hd_task_message(task, provider->model, last);
    hd_task_call(task, provider->model, NULL, call->shown, message);
    if (!last)
        hd_task_message(task, provider->model, message); /* no pieces of it were emitted */
    hd_val_unref(last);
    write_message(call, message);
}

/* Ends the task with the text so far. True: the call is freed. */
static bool settle_partial_answer(struct hd_task *task)
{
    struct call *call = task->work;
    const struct hd_provider *provider = provider_of(call);
    struct hd_val *message = NULL, *last;

    if (spec_of(call)->update || !call->has_pieces || call->answer.is_done ||
        hd_completion_partial(&call->answer, provider->name, call->id, &message) || !message)
        return false;
    last = hd_completion_last(&call->answer, provider->name, call->id);
    if (last)
        hd_task_message(task, provider->model, last);
    hd_val_unref(last);
    hd_task_call(task, provider->model, NULL, call->shown, message);
    write_message(call, message);
    return true;
}

/* ---- response --------------------------------------------------------- */

static bool is_media_type(struct hd_slice header, const char *type)
{
    size_t len = strlen(type);

    return header.len >= len && strncasecmp(header.ptr, type, len) == 0;
}

static bool is_fine(long status)
{
    return status >= 200 && status <= 299;
}

static bool on_model_head(void *ctx, const struct hd_reply *head)
{
    struct call *call = ctx;
    struct hd_slice type = hd_header_find(head->headers, "content-type");

    call->is_stream = is_fine(head->status) && spec_of(call)->streams &&
                      (type.len == 0 || is_media_type(type, "text/event-stream"));
    return call->is_stream;
}

static int on_model_event(void *ctx, const struct hd_sse_event *event)
{
    struct call *call = ctx;
    int err = call->answer.is_done ? 0 : provider_of(call)->event(&call->answer, event);

    return err ? err : emit_chunk(call);
}

/* The response was complete, but the server keeps the connection open. */
static void on_lingering(struct hd_task *task)
{
    finish_model_call(task->work);
}

static void on_model_data(void *ctx, struct hd_slice data)
{
    struct call *call = ctx;
    bool was_done = call->answer.is_done;
    int err = hd_sse_read(&call->sse, data, on_model_event, call);

    if (err)
        fail_code(call, err);
    else if (call->answer.is_done && !was_done &&
             hd_task_wait(call->task, LINGER_MS, on_lingering) != 0)
        hd_task_fail_code(call->task, HD_ENOMEM, NULL);
}

/* A response without streaming, whether requested or not. */
static void read_whole(struct call *call, const struct hd_reply *reply)
{
    struct hd_slice type = hd_header_find(reply->headers, "content-type");
    int err;

    if (type.len > 0 && !is_media_type(type, "application/json") &&
        !is_media_type(type, "text/json")) {
        (void)hd_completion_fail(&call->answer, "APIResponseValidationError",
                                 "%s sent \"%.*s\" instead of JSON or an event stream: "
                                 "is that the address of a model?",
                                 provider_of(call)->name, (int)(type.len < 100 ? type.len : 100),
                                 type.ptr);
        fail_answer(call);
        return;
    }
    err = provider_of(call)->body(&call->answer, reply->body);
    if (err)
        fail_code(call, err);
    else
        finish_model_call(call);
}

static void on_model_done(void *ctx, const struct hd_reply *reply)
{
    struct call *call = ctx;

    call->exchange = NULL;
    if (call->answer.is_done && call->is_stream) {
        finish_model_call(call);
    } else if (reply->error || !is_fine(reply->status)) {
        hd_model_refused(&call->answer, provider_of(call)->name, reply);
        fail_answer(call);
    } else if (call->is_stream) {
        finish_model_call(call);
    } else {
        read_whole(call, reply);
    }
}

/* ---- sending ---------------------------------------------------------- */

static int add_router_headers(const struct hd_model_choice *choice, struct hd_chat_request *request)
{
    const struct {
        const char *name;
        const struct hd_buf *value;
    } list[] = {
        {"x-sr-org-id", &choice->org},
        {"x-sr-user-tier", &choice->tier},
        {"x-sr-graph-id", &choice->graph},
    };
    int err = 0;

    for (size_t i = 0; i < HD_COUNT(list) && !err; i++) {
        if (list[i].value->len > 0)
            err = hd_chat_header(request, list[i].name, hd_buf_slice(list[i].value));
    }
    return err;
}

static int send_request(struct call *call, const struct hd_chat_request *request)
{
    const struct model_spec *spec = spec_of(call);
    struct hd_slice key = hd_buf_slice(&call->choice.key);
    const char *line = request->headers.ptr;
    const char *headers[16];
    struct hd_agent_exchange_options options = {.peer = "model",
                                                .method = "POST",
                                                .url = request->url.ptr,
                                                .headers = headers,
                                                .body = hd_buf_slice(&request->body),
                                                .idle_ms = spec->idle_ms,
                                                .tries = (int)spec->tries,
                                                .is_direct = true,
                                                .is_trusted = call->choice.is_own_url,
                                                .secrets = &key,
                                                .secret_count = key.len > 0,
                                                .on_head = on_model_head,
                                                .on_data = on_model_data,
                                                .on_done = on_model_done,
                                                .ctx = call};

    for (; options.header_count < request->header_count && options.header_count < HD_COUNT(headers);
         line += strlen(line) + 1)
        headers[options.header_count++] = line;
    return hd_agent_exchange_start(call->task, &options, &call->exchange);
}

static int ask_server(struct call *call)
{
    const struct hd_chat chat = {.model = hd_buf_slice(&call->choice.model),
                                 .base_url = hd_buf_slice(&call->choice.base_url),
                                 .key = hd_buf_slice(&call->choice.key),
                                 .system = hd_buf_slice(&call->system),
                                 .messages = call->messages,
                                 .tools = call->tools,
                                 .streams = spec_of(call)->streams,
                                 .has_temperature = call->choice.has_temperature,
                                 .temperature = call->choice.temperature,
                                 .max_tokens = call->choice.max_tokens};
    struct hd_chat_request request;
    int err;

    hd_chat_request_init(&request);
    err = provider_of(call)->request(&chat, &request);
    if (!err)
        err = add_router_headers(&call->choice, &request);
    if (!err)
        err = send_request(call, &request);
    hd_chat_request_fini(&request);
    if (err == HD_EINVAL || err == HD_ELIMIT) {
        (void)hd_completion_fail(&call->answer, "ValueError",
                                 err == HD_ELIMIT ? "the conversation is too large to send"
                                                  : "the key or a setting has characters that "
                                                    "are not allowed in a header");
        err = HD_EINVAL;
    }
    return err;
}

/* ---- the offline model ------------------------------------------------ */

static void say_word(struct hd_task *task)
{
    struct call *call = task->work;
    struct hd_slice left =
        hd_slice(call->script.ptr + call->script_at, call->script.len - call->script_at);
    size_t len = spec_of(call)->streams ? hd_offline_word(left) : left.len;
    int err;

    if (left.len == 0) {
        if (call->script_fails) {
            hd_task_fail_text(task, HD_S("RuntimeError"), hd_buf_slice(&call->script));
            return;
        }
        call->answer.is_ended = true;
        finish_model_call(call);
        return;
    }
    call->script_at += len;
    err = hd_completion_text(&call->answer, hd_slice(left.ptr, len));
    if (!err && spec_of(call)->streams)
        err = emit_chunk(call);
    if (!err)
        err = hd_task_wait(task, spec_of(call)->streams ? WORD_MS : 0, say_word);
    if (err)
        hd_task_fail_code(task, err, NULL);
}

static int ask_script(struct call *call)
{
    int err = hd_offline_answer(call->messages, &call->script, &call->script_fails);

    if (!err)
        err = hd_completion_set(&call->answer.model, HD_S("offline"));
    if (!err)
        err = hd_completion_set(&call->answer.finish, HD_S("stop"));
    if (call->script_fails)
        call->script_at = call->script.len;
    return err ? err : hd_task_wait(call->task, spec_of(call)->streams ? WORD_MS : 0, say_word);
}

/* ---- start ------------------------------------------------------------ */

static struct hd_val *shown_messages(const struct call *call)
{
    struct hd_val *list = hd_val_list();

    if (call->system.len == 0) {
        hd_val_unref(list);
        return hd_val_ref(call->messages);
    }
    list = hd_val_append(
        list, hd_val_message("system", hd_val_string(hd_buf_slice(&call->system)), NULL));
    return hd_val_extend(list, call->messages);
}

static int ask_model(struct call *call)
{
    char uuid[HD_UUID_SIZE];

    hd_uuid_v7(uuid);
    (void)snprintf(call->id, sizeof(call->id), ID_PREFIX "%s", uuid);
    call->shown = shown_messages(call);
    if (!call->shown)
        return HD_ENOMEM;
    hd_task_call(call->task, provider_of(call)->model, uuid, call->shown, NULL);
    return provider_of(call)->request ? ask_server(call) : ask_script(call);
}

static void on_tools(void *ctx, const struct hd_toolset *set)
{
    struct call *call = ctx;
    int err;

    call->wait = NULL;
    call->tools = set;
    err = set ? ask_model(call) : HD_ENOMEM;
    if (err)
        fail_code(call, err);
}

static const char *get_env(void *ctx, const char *name)
{
    (void)ctx;
    return getenv(name);
}

static int choose_call_model(struct call *call, const struct hd_settings *settings)
{
    int err = hd_model_choose(settings, &call->choice);

    if (err == HD_EINVAL)
        return hd_completion_fail(&call->answer, call->choice.error_type, "%s",
                                  call->choice.fault.text);
    return err;
}

static int eval_text(const struct hd_expr *expr, const struct hd_scope *scope, struct hd_buf *out)
{
    struct hd_val *val;
    int err = hd_expr_eval(expr, scope, &val);

    if (!err && !hd_val_is_null(val))
        err = hd_val_write_text(out, val);
    if (!err)
        hd_val_unref(val);
    return err;
}

/* The system prompt with its fixed suffix. */
static int make_system(struct call *call, const struct hd_scope *scope,
                       const struct hd_settings *settings)
{
    const struct model_spec *spec = spec_of(call);
    const struct hd_val *text = hd_model_setting(settings, "system_prompt");
    int err = 0;

    if (spec->prompt)
        err = eval_text(spec->prompt, scope, &call->system);
    else if (text)
        err = hd_val_write_text(&call->system, text);
    if (!err && spec->suffix)
        err = eval_text(spec->suffix, scope, &call->system);
    return err;
}

static int configure(struct call *call, const struct hd_scope *scope)
{
    const struct model_spec *spec = spec_of(call);
    struct hd_val *given = NULL, *defaults = NULL;
    struct hd_settings settings;
    int err = 0;

    if (spec->settings)
        err = hd_expr_eval(spec->settings, scope, &given);
    else
        given = hd_val_ref(scope->places[HD_PLACE_CONFIG]);
    if (!err && spec->defaults)
        err = hd_expr_eval(spec->defaults, scope, &defaults);
    if (!err) {
        hd_settings_init(&settings, given, defaults);
        settings.are_fixed = spec->defaults && hd_expr_literal(spec->defaults);
        settings.secrets = call->task->loop->run->options.secrets;
        settings.graph = call->task->loop->run->root->graph->name;
        settings.env = get_env;
        err = choose_call_model(call, &settings);
        if (!err)
            err = make_system(call, scope, &settings);
    }
    hd_val_unref(given);
    hd_val_unref(defaults);
    return err;
}

/* is_waiting: do not call the model yet. */
static int collect(struct call *call, const struct hd_scope *scope, bool *is_waiting)
{
    const struct model_spec *spec = spec_of(call);
    struct heddle_error fault = {0};
    struct hd_val *given = NULL, *all = NULL;
    int err = 0;

    if (spec->messages)
        err = hd_expr_eval(spec->messages, scope, &given);
    else
        given = hd_val_ref(call->task->channels[spec->channel]);
    *is_waiting = !err && hd_chat_is_waiting(given);
    if (!err && !*is_waiting) {
        call->repairs = hd_chat_repairs(given);
        all = hd_val_ref(given);
        if (call->repairs && hd_val_count(call->repairs) > 0)
            all = hd_val_extend(all, call->repairs);
        err = call->repairs && (all || !given) ? hd_chat_prepare(all, &call->messages, &fault)
                                               : HD_ENOMEM;
    }
    hd_val_unref(all);
    hd_val_unref(given);
    if (err == HD_EINVAL)
        return hd_completion_fail(&call->answer, "ValueError", "%s", fault.text);
    if (!err && !*is_waiting && hd_val_count(call->messages) == 0)
        return hd_completion_fail(&call->answer, "ValueError", "there are no messages");
    return err;
}

static struct call *create_call(struct hd_task *task)
{
    struct call *call = hd_calloc(1, sizeof(*call));

    if (!call)
        return NULL;
    call->task = task;
    hd_buf_init(&call->system, MAX_SYSTEM);
    hd_buf_init(&call->script, HD_COMPLETION_MAX_BYTES);
    hd_sse_read_init(&call->sse, MAX_EVENT);
    hd_completion_init(&call->answer);
    return call;
}

static int start_model_node(struct hd_task *task)
{
    const struct model_spec *spec = task->node->spec;
    struct hd_scope scope = hd_task_scope(task);
    struct call *call = create_call(task);
    bool is_waiting = false;
    int err;

    if (!call)
        return HD_ENOMEM;
    task->work = call;
    err = collect(call, &scope, &is_waiting);
    if (!err && is_waiting) {
        hd_task_rest(task);
        return 0;
    }
    if (!err)
        err = configure(call, &scope);
    if (!err && spec->tools != HD_GRAPH_END)
        err = hd_toolset_get(task, &task->graph->nodes[spec->tools], on_tools, call, &call->wait);
    else if (!err)
        err = ask_model(call);
    if (err)
        fail_code(call, err);
    return 0;
}

const struct hd_node_kind hd_node_model = {
    .name = "model",
    .read = read_model_node,
    .start = start_model_node,
    .cancel = cancel_model_call,
    .settle = settle_partial_answer,
};
