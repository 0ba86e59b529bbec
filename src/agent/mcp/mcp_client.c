/*
 * Requests to an MCP server: streamable HTTP.
 *
 * A request is a POST. Its response is JSON or a stream of events, in which other messages of the
 * server may come first. A legacy stream that ends early is resumed with GET and the id of the last
 * event, after the delay that the server gave.
 */
#include "agent/mcp/mcp_client.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "agent/agent_internal.h"
#include "agent/mcp/mcp_lines.h"
#include "base/alloc.h"

#define MAX_RESUMES 10
#define RETRY_MS 1000
#define MAX_RETRY_MS 60000
#define LINGER_MS 250  /* for a stream to end after the response */
#define HEAR_MS 250    /* for a stream to begin before a call is sent without it */
#define RECORD_MS 2000 /* the same when recorded, which needs the end */

/* Sends it and ignores the result. */
static void notify_server(struct hd_mcp_peer *peer, int err, struct hd_buf *body)
{
    if (!err)
        hd_mcp_peer_tell(peer, "POST", hd_buf_slice(body));
    hd_buf_fini(body);
}

/* ---- ending ----------------------------------------------------------- */

static void free_request_timer(uv_handle_t *handle)
{
    hd_free(handle);
}

static void stop_timer(struct hd_mcp_request *request)
{
    if (request->timer)
        uv_close((uv_handle_t *)request->timer, free_request_timer);
    request->timer = NULL;
}

static void stop_exchange(struct hd_mcp_request *request)
{
    if (request->exchange)
        hd_agent_exchange_cancel(request->exchange);
    request->exchange = NULL;
}

static void free_request(struct hd_mcp_request *request)
{
    hd_dlist_remove(request, all);
    stop_timer(request);
    stop_exchange(request);
    hd_sse_read_fini(&request->sse);
    hd_mcp_message_fini(&request->answer);
    hd_val_unref((struct hd_val *)(uintptr_t)request->options.params);
    hd_val_unref((struct hd_val *)(uintptr_t)request->options.schema);
    hd_val_unref((struct hd_val *)(uintptr_t)request->options.args);
    hd_free((char *)(uintptr_t)request->options.name.ptr);
    hd_free(request);
}

void hd_mcp_request_fail(struct hd_mcp_request *request, const char *problem, long status)
{
    struct hd_mcp_request_options options = request->options;
    char text[600];
    struct hd_mcp_answer answer = {.problem = text, .status = status};

    /* The problem may be in memory that is freed now. */
    snprintf(text, sizeof(text), "%s", problem);
    free_request(request);
    options.on_answer(options.ctx, &answer);
}

/* Ends with the message received. */
static void finish_mcp_request(struct hd_mcp_request *request)
{
    struct hd_mcp_request_options options = request->options;
    struct hd_mcp_message message = request->answer;
    struct hd_mcp_answer answer = {.message = &message, .status = request->status};

    memset(&request->answer, 0, sizeof(request->answer));
    free_request(request);
    options.on_answer(options.ctx, &answer);
    hd_mcp_message_fini(&message);
}

static void notify_cancelled(struct hd_mcp_request *request)
{
    struct hd_val *params =
        hd_val_with(hd_val_object(), HD_S("requestId"), hd_val_int(request->id));
    struct hd_buf body;

    hd_buf_init(&body, 4096);
    params = hd_val_with(params, HD_S("reason"), hd_val_cstr("the run no longer needs it"));
    notify_server(request->peer,
                  params ? hd_mcp_write_notification(&body, "notifications/cancelled", params)
                         : HD_ENOMEM,
                  &body);
    hd_val_unref(params);
}

void hd_mcp_request_cancel(struct hd_mcp_request *request)
{
    bool is_notified = !request->is_waiting && !request->is_held && !request->is_ear &&
                       !request->is_opening && !request->has_answer && !request->peer->is_modern &&
                       request->peer->state == HD_MCP_OPEN;

    stop_exchange(request);
    if (is_notified)
        notify_cancelled(request);
    free_request(request);
}

/* ---- start ------------------------------------------------------------ */

static struct hd_mcp_request *create_mcp_request(struct hd_mcp_peer *peer,
                                                 const struct hd_mcp_request_options *options)
{
    struct hd_mcp_request *request = hd_calloc(1, sizeof(*request));
    char *name;

    if (!request)
        return NULL;
    request->peer = peer;
    request->options = *options;
    request->retry_ms = RETRY_MS;
    if (request->options.max_bytes == 0)
        request->options.max_bytes = HD_MCP_MAX_MESSAGE;
    hd_sse_read_init(&request->sse, request->options.max_bytes);
    request->options.name = (struct hd_slice){0};
    request->options.params = hd_val_ref(options->params);
    request->options.schema = hd_val_ref(options->schema);
    request->options.args = hd_val_ref(options->args);
    if (options->name.ptr) {
        name = hd_malloc(options->name.len + 1);
        if (!name) {
            free_request(request);
            return NULL;
        }
        memcpy(name, options->name.ptr, options->name.len);
        request->options.name = hd_slice(name, options->name.len);
    }
    hd_dlist_insert(&peer->requests, request, all);
    return request;
}

/* ---- messages of the server ------------------------------------------- */

static void answer_request(struct hd_mcp_peer *peer, const struct hd_mcp_message *message,
                           struct hd_val *result)
{
    struct hd_buf body;
    int err;

    hd_buf_init(&body, HD_MCP_MAX_MESSAGE);
    if (result)
        err = hd_mcp_write_result(&body, message->id, result);
    else
        err = hd_mcp_write_error(&body, message->id, HD_MCP_NO_METHOD, "Method not found");
    notify_server(peer, err, &body);
    hd_val_unref(result);
}

/* Abandons the request because of a server request that cannot be answered now. */
static void abandon_request(struct hd_mcp_request *request, struct hd_mcp_message *message)
{
    answer_request(request->peer, message,
                   hd_val_with(hd_val_object(), HD_S("action"), hd_val_cstr("cancel")));
    notify_cancelled(request);
    request->answer = *message;
    request->has_answer = true;
    memset(message, 0, sizeof(*message));
}

static void on_server_request(struct hd_mcp_request *request, struct hd_mcp_message *message)
{
    struct hd_val *result = NULL;

    if (request->peer->is_modern)
        return;
    if (hd_slice_eq(message->method, HD_S("ping"))) {
        result = hd_val_object();
    } else if (hd_slice_eq(message->method, HD_S("elicitation/create")) &&
               request->options.on_request) {
        result = request->options.on_request(request->options.ctx, message);
        if (!result) {
            abandon_request(request, message);
            return;
        }
    }
    answer_request(request->peer, message, result);
}

static void on_linger(uv_timer_t *timer)
{
    finish_mcp_request(timer->data);
}

static int start_request_timer(struct hd_mcp_request *request, uv_timer_cb fn, int64_t ms)
{
    uv_loop_t *uv = request->peer->run->engine->uv;

    stop_timer(request);
    request->timer = hd_calloc(1, sizeof(*request->timer));
    if (!request->timer)
        return HD_ENOMEM;
    uv_timer_init(uv, request->timer);
    request->timer->data = request;
    uv_update_time(uv);
    uv_timer_start(request->timer, fn, (uint64_t)ms, 0);
    return 0;
}

/* A request on the separate stream belongs to the call that has waited longest. */
static struct hd_mcp_request *find_caller(const struct hd_mcp_peer *peer)
{
    struct hd_mcp_request *found = NULL;

    for (struct hd_mcp_request *request = peer->requests; request; request = request->all.next) {
        if (request->options.on_request && !request->is_waiting && !request->is_held &&
            !request->has_answer)
            found = request;
    }
    return found;
}

static void on_heard(struct hd_mcp_peer *peer, struct hd_mcp_message *message)
{
    struct hd_mcp_request *caller = find_caller(peer);

    if (message->kind != HD_MCP_REQUEST)
        return;
    if (!caller) {
        answer_request(peer, message,
                       hd_slice_eq(message->method, HD_S("ping")) ? hd_val_object() : NULL);
        return;
    }
    on_server_request(caller, message);
    /* It ends from the loop: this stream is being read. */
    if (caller->has_answer && start_request_timer(caller, on_linger, 0) != 0)
        caller->has_answer = false;
}

/* The response is kept until the stream or the body has ended. */
static void on_message(struct hd_mcp_request *request, struct hd_slice text)
{
    struct hd_mcp_message message;

    if (hd_mcp_message_read(text, &message, NULL) != 0)
        return;
    if (request->is_ear) {
        on_heard(request->peer, &message);
    } else if (message.kind == HD_MCP_REQUEST) {
        on_server_request(request, &message);
    } else if (hd_mcp_message_is_for(&message, request->id) ||
               (message.kind == HD_MCP_ERROR && hd_val_is_null(message.id))) {
        request->answer = message;
        request->has_answer = true;
        return;
    }
    hd_mcp_message_fini(&message);
}

static int on_mcp_event(void *ctx, const struct hd_sse_event *event)
{
    struct hd_mcp_request *request = ctx;

    request->resumes = 0;
    if (event->data.len > 0 && !request->has_answer)
        on_message(request, event->data);
    return 0;
}

static bool is_recorded(const struct hd_mcp_request *request)
{
    const struct hd_agents *agents = hd_agents_of_run(request->peer->run);

    return agents && agents->options.recorder;
}

static void end_ear(struct hd_mcp_request *ear);

static void on_mcp_data(void *ctx, struct hd_slice data)
{
    struct hd_mcp_request *request = ctx;
    bool had_answer = request->has_answer;
    int err = hd_sse_read(&request->sse, data, on_mcp_event, request);

    if (request->has_answer && request->answer.kind == HD_MCP_REQUEST) {
        finish_mcp_request(request);
    } else if (request->has_answer && !had_answer) {
        /* The stream should end now, so that its connection can be reused. */
        if (start_request_timer(request, on_linger, is_recorded(request) ? RECORD_MS : LINGER_MS) !=
            0)
            finish_mcp_request(request);
    } else if (err && request->is_ear) {
        end_ear(request);
    } else if (err && !request->has_answer) {
        hd_mcp_request_fail(request, "the server's stream is too large", request->status);
    }
}

/* ---- resuming a stream ------------------------------------------------ */

static int post_request(struct hd_mcp_request *request);
static void on_mcp_done(void *ctx, const struct hd_reply *reply);
static bool on_mcp_head(void *ctx, const struct hd_reply *reply);

static int start_exchange(struct hd_mcp_request *request, struct hd_agent_exchange_options *options)
{
    options->max_body = request->options.max_bytes;
    options->on_head = on_mcp_head;
    options->on_data = on_mcp_data;
    options->on_done = on_mcp_done;
    options->ctx = request;
    if (request->options.task)
        return hd_agent_exchange_start(request->options.task, options, &request->exchange);
    return hd_agent_exchange_start_run(request->peer->run, options, &request->exchange);
}

/* Opens or resumes a stream. */
static int get(struct hd_mcp_request *request)
{
    struct hd_agent_exchange_options options;
    struct hd_mcp_lines *lines;
    int err = hd_mcp_lines_create(request->peer, false, &lines);

    if (err)
        return err;
    if (request->last_event[0])
        err = hd_mcp_lines_add(lines, "Last-Event-ID", hd_slice_cstr(request->last_event));
    if (!err)
        err = hd_mcp_lines_end(lines, request->peer, "GET", &options);
    if (!err)
        err = start_exchange(request, &options);
    hd_mcp_lines_destroy(lines);
    return err;
}

static void on_retry(uv_timer_t *timer)
{
    struct hd_mcp_request *request = timer->data;
    int err;

    stop_timer(request);
    err = get(request);
    if (err && request->is_ear)
        end_ear(request);
    else if (err)
        hd_mcp_request_fail(request, hd_error_text(err), 0);
}

/* Keeps the last event id and the delay for resuming. */
static void keep_place(struct hd_mcp_request *request)
{
    struct hd_slice id = hd_buf_slice(&request->sse.id);

    if (request->sse.retry_ms >= 0)
        request->retry_ms =
            request->sse.retry_ms < MAX_RETRY_MS ? request->sse.retry_ms : MAX_RETRY_MS;
    if (id.len == 0 || id.len > HD_MCP_MAX_ID)
        return;
    for (size_t i = 0; i < id.len; i++) {
        if ((unsigned char)id.ptr[i] < 0x20)
            return;
    }
    memcpy(request->last_event, id.ptr, id.len);
    request->last_event[id.len] = '\0';
}

/* Whether the stream will be resumed. */
static bool resume(struct hd_mcp_request *request)
{
    keep_place(request);
    if (request->peer->is_modern || !request->last_event[0] || request->resumes >= MAX_RESUMES)
        return false;
    request->resumes++;
    return start_request_timer(request, on_retry, request->retry_ms) == 0;
}

/* ---- the server's stream of requests ---------------------------------- */

/* Callbacks may end the run, and the peer with it. */
static void heard(struct hd_mcp_peer *peer)
{
    bool is_gone = false, *outer = peer->is_gone;
    struct hd_mcp_request *request;

    peer->hears = true;
    /* cppcheck-suppress autoVariables; until this returns */
    peer->is_gone = &is_gone;
    for (request = peer->requests; request && !is_gone;) {
        struct hd_mcp_request *held = request->is_held ? request : NULL;
        int err;

        request = request->all.next;
        if (!held)
            continue;
        held->is_held = false;
        err = post_request(held);
        if (err) {
            hd_mcp_request_fail(held, hd_error_text(err), 0);
            request = is_gone ? NULL : peer->requests;
        }
    }
    if (!is_gone)
        peer->is_gone = outer;
    else if (outer)
        *outer = true;
}

static void on_hearing(uv_timer_t *timer)
{
    struct hd_mcp_request *ear = timer->data;

    stop_timer(ear);
    heard(ear->peer);
}

static void end_ear(struct hd_mcp_request *ear)
{
    struct hd_mcp_peer *peer = ear->peer;

    peer->is_deaf = peer->is_deaf || !ear->is_stream;
    peer->ear = NULL;
    free_request(ear);
    heard(peer);
}

static void on_ear_done(struct hd_mcp_request *ear)
{
    if (ear->is_stream && find_caller(ear->peer) && resume(ear))
        return;
    end_ear(ear);
}

static void on_nothing(void *ctx, const struct hd_mcp_answer *answer)
{
    (void)ctx;
    (void)answer;
}

/* Whether calls must wait for it. */
static bool must_hear(struct hd_mcp_peer *peer)
{
    const struct hd_mcp_request_options options = {.method = "", .on_answer = on_nothing};
    struct hd_mcp_request *ear = peer->ear;

    if (peer->is_modern || !peer->session[0] || peer->is_deaf)
        return false;
    if (ear)
        return !peer->hears;
    ear = create_mcp_request(peer, &options);
    if (!ear)
        return false;
    ear->is_ear = true;
    peer->hears = false;
    if (start_request_timer(ear, on_hearing, HEAR_MS) != 0 || get(ear) != 0) {
        free_request(ear);
        return false;
    }
    peer->ear = ear;
    return true;
}

void hd_mcp_peer_stop_hearing(struct hd_mcp_peer *peer)
{
    if (peer->ear)
        free_request(peer->ear);
    peer->ear = NULL;
    peer->hears = peer->is_deaf = false;
}

/* ---- responses -------------------------------------------------------- */

static bool is_type(const struct hd_reply *reply, const char *type)
{
    struct hd_slice value = hd_header_find(reply->headers, "content-type");
    size_t len = strlen(type);

    return value.ptr && value.len >= len && strncasecmp(value.ptr, type, len) == 0;
}

/* A session begins with the response to `initialize`. */
static void read_session(struct hd_mcp_request *request, const struct hd_reply *reply)
{
    struct hd_mcp_peer *peer = request->peer;
    struct hd_slice id = hd_header_find(reply->headers, "mcp-session-id");

    if (!request->is_opening || peer->is_modern || id.len == 0 || id.len > HD_MCP_MAX_ID)
        return;
    for (size_t i = 0; i < id.len; i++) {
        if (id.ptr[i] < 0x21 || id.ptr[i] > 0x7e)
            return;
    }
    memcpy(peer->session, id.ptr, id.len);
    peer->session[id.len] = '\0';
}

static bool on_mcp_head(void *ctx, const struct hd_reply *reply)
{
    struct hd_mcp_request *request = ctx;

    request->status = reply->status;
    if (reply->status == 200)
        read_session(request, reply);
    request->is_stream = reply->status == 200 && is_type(reply, "text/event-stream");
    if (request->is_stream) {
        hd_sse_read_fini(&request->sse);
        hd_sse_read_init(&request->sse, request->options.max_bytes);
    }
    if (request->is_stream && request->is_ear) {
        /* Requests that waited for it are sent from the loop. */
        if (start_request_timer(request, on_hearing, 0) != 0)
            return false;
    }
    return request->is_stream;
}

/* 404 by the specification; many servers send 400 and mention a session. */
static bool is_session_gone(const struct hd_mcp_request *request)
{
    /* A started request is not repeated because its stream is unknown. */
    return !request->peer->is_modern && !request->is_opening && !request->is_repeated &&
           request->peer->session[0] && !request->last_event[0] &&
           (request->status == 404 ||
            (request->status == 400 && request->has_answer && request->answer.code == -32000));
}

/* Opens the session if there is none. */
static int send_or_wait(struct hd_mcp_request *request)
{
    struct hd_mcp_peer *peer = request->peer;
    int err = 0;

    request->is_waiting = true;
    if (peer->state == HD_MCP_CLOSED)
        err = hd_mcp_peer_open(peer);
    if (err || peer->state != HD_MCP_OPEN)
        return err;
    request->is_waiting = false;
    return hd_mcp_request_send(request);
}

static void renew(struct hd_mcp_request *request)
{
    struct hd_mcp_peer *peer = request->peer;
    int err;

    hd_mcp_message_fini(&request->answer);
    request->has_answer = false;
    request->is_repeated = true;
    /* Another request may have noticed before. */
    if (request->epoch == peer->epoch)
        hd_mcp_peer_forget(peer);
    err = send_or_wait(request);
    if (err)
        hd_mcp_request_fail(request, hd_error_text(err), 0);
}

static const char *problem_of(long status)
{
    switch (status) {
    case 401:
        return "the server does not accept the credentials (HTTP 401)";
    case 403:
        return "the server forbids it (HTTP 403)";
    case 404:
        return "the server has no such address (HTTP 404)";
    case 405:
        return "the server does not support streamable HTTP here (HTTP 405)";
    default:
        return NULL;
    }
}

static void fail_status(struct hd_mcp_request *request)
{
    char text[96];
    const char *problem = problem_of(request->status);

    snprintf(text, sizeof(text), "the server returned HTTP status %ld and no message",
             request->status);
    hd_mcp_request_fail(request, problem ? problem : text, request->status);
}

static void on_stream_end(struct hd_mcp_request *request, const struct hd_reply *reply)
{
    if (resume(request))
        return;
    hd_mcp_request_fail(
        request, reply->error ? reply->error : "the server's stream ended before the response",
        request->status);
}

static void on_mcp_done(void *ctx, const struct hd_reply *reply)
{
    struct hd_mcp_request *request = ctx;

    request->exchange = NULL;
    if (request->is_ear) {
        on_ear_done(request);
        return;
    }
    if (request->has_answer) {
        finish_mcp_request(request);
        return;
    }
    /* Also when a stream could not be resumed: it may be later. */
    if (request->is_stream || (reply->error && request->last_event[0])) {
        on_stream_end(request, reply);
        return;
    }
    request->status = reply->status;
    if (reply->error) {
        hd_mcp_request_fail(request, reply->error, reply->status);
        return;
    }
    if (reply->body.len > 0)
        on_message(request, reply->body);
    if (is_session_gone(request))
        renew(request);
    else if (request->has_answer)
        finish_mcp_request(request);
    else
        fail_status(request);
}

/* ---- sending ---------------------------------------------------------- */

/*
 * A call repeated after a reply has a new id, also in another run; a replayed run has the same ids.
 */
static int64_t next_id(const struct hd_mcp_request *request)
{
    const struct hd_task *task = request->options.task;
    int64_t answers = task ? (int64_t)hd_val_count(task->resume) : 0;

    return ++request->peer->last_id + answers * 1000000;
}

static int post_with(struct hd_mcp_request *request, struct hd_mcp_lines *lines,
                     struct hd_buf *body)
{
    struct hd_mcp_peer *peer = request->peer;
    struct hd_agent_exchange_options options;
    int err = 0;

    request->id = next_id(request);
    request->epoch = peer->epoch;
    if (peer->is_modern)
        err = hd_mcp_lines_add_modern(lines, &request->options);
    if (!err)
        err = hd_mcp_lines_end(lines, peer, "POST", &options);
    if (!err)
        err = hd_mcp_write_request(body, request->id, request->options.method,
                                   request->options.params, peer->is_modern);
    if (err)
        return err;
    options.body = hd_buf_slice(body);
    options.timeout_ms = request->options.timeout_ms;
    options.tries = request->options.tries;
    return start_exchange(request, &options);
}

static int post_request(struct hd_mcp_request *request)
{
    struct hd_mcp_lines *lines;
    struct hd_buf body;
    int err = hd_mcp_lines_create(request->peer, true, &lines);

    if (err)
        return err;
    hd_buf_init(&body, HD_MCP_MAX_MESSAGE);
    err = post_with(request, lines, &body);
    hd_buf_fini(&body);
    hd_mcp_lines_destroy(lines);
    return err;
}

int hd_mcp_request_send(struct hd_mcp_request *request)
{
    if (request->options.on_request && must_hear(request->peer)) {
        request->is_held = true;
        return 0;
    }
    return post_request(request);
}

int hd_mcp_request_open(struct hd_mcp_peer *peer, const struct hd_mcp_request_options *options)
{
    struct hd_mcp_request *request = create_mcp_request(peer, options);
    int err;

    if (!request)
        return HD_ENOMEM;
    request->is_opening = true;
    err = hd_mcp_request_send(request);
    if (err)
        free_request(request);
    return err;
}

int hd_mcp_request_start(struct hd_mcp_peer *peer, const struct hd_mcp_request_options *options,
                         struct hd_mcp_request **out)
{
    struct hd_mcp_request *request = create_mcp_request(peer, options);
    int err;

    if (!request)
        return HD_ENOMEM;
    err = send_or_wait(request);
    if (err)
        free_request(request);
    else
        *out = request;
    return err;
}
