/*
 * One call of an A2A agent.
 *
 * A message starts a task. It is followed by its stream if the agent supports streaming, else by
 * polling with growing pauses; also after a stream breaks. A task that requires input becomes an
 * interrupt of the run; the reply goes to the same task. A cancelled call cancels the task at the
 * agent.
 *
 * A snapshot of a task in a stream may be older than the message sent, so only status updates,
 * messages, and the end of the stream decide.
 */
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <uv.h>

#include "agent/a2a/a2a_client.h"
#include "agent/agent_internal.h"
#include "agent/exchange.h"
#include "agent/exchange_internal.h"
#include "agent/model/sse_read.h"
#include "base/alloc.h"
#include "base/uuid.h"
#include "graph/node/idempotency_key.h"

#define IDLE_MS 300000 /* of a stream; the tool's own limit is usually lower */
#define GET_MS 30000
#define SEND_MS 3600000
#define FIRST_WAIT_MS 200
#define MAX_WAIT_MS 5000
#define GRACE_MS 1000  /* for a stream to end after its last relevant event */
#define MAX_FAILURES 5 /* consecutive failures of polling */
#define QUESTION "a2a_input_required"

struct a2a_work {
    struct hd_tool_call *call;
    struct hd_a2a_peer *peer;
    struct hd_a2a_answer answer;
    struct hd_sse_read sse;
    struct hd_agent_exchange *exchange; /* NULL: none active */
    uv_timer_t *timer;                  /* for the next poll, or for the end of a stream */
    int64_t wait_ms;
    int failures;
    bool is_stream;  /* the response is a stream */
    bool is_decided; /* the rest of the stream is not needed */
};

/* A message and its target; borrowed. */
struct saying {
    struct hd_slice task_id, context_id, text;
    const struct hd_val *data; /* NULL: the text */
};

static const char *name_of(const struct a2a_work *work)
{
    const struct hd_a2a_peer *peer = work->peer;

    return peer->name.len ? peer->name.ptr : peer->card.name;
}

static void free_work_timer(uv_handle_t *handle)
{
    hd_free(handle);
}

static void drop_timer(struct a2a_work *work)
{
    if (work->timer)
        uv_close((uv_handle_t *)work->timer, free_work_timer);
    work->timer = NULL;
}

static void free_a2a_work(struct a2a_work *work)
{
    if (work->exchange)
        hd_agent_exchange_cancel(work->exchange);
    drop_timer(work);
    hd_a2a_answer_fini(&work->answer);
    hd_sse_read_fini(&work->sse);
    hd_free(work);
}

/* ---- sending ---------------------------------------------------------- */

static bool on_a2a_head(void *ctx, const struct hd_reply *head);
static void on_a2a_data(void *ctx, struct hd_slice data);
static void on_a2a_done(void *ctx, const struct hd_reply *reply);

static void set_lines(const struct hd_a2a_peer *peer, struct hd_agent_exchange_options *options,
                      const char **lines, const char *version)
{
    lines[options->header_count++] = "Content-Type: application/json";
    lines[options->header_count++] =
        "Accept: application/json, application/a2a+json, text/event-stream";
    lines[options->header_count++] = version[0] == '1' ? "A2A-Version: 1.0" : "A2A-Version: 0.3";
    for (size_t i = 0; i < peer->line_count; i++)
        lines[options->header_count++] = peer->lines[i];
    options->headers = lines;
    options->secrets = peer->secrets;
    options->secret_count = peer->secret_count;
}

static int start_a2a_exchange(struct hd_tool_call *call, const struct hd_a2a_operation *operation,
                              struct a2a_work *work, struct hd_agent_exchange **out)
{
    const struct hd_a2a_peer *peer = call->tool->own;
    const char *lines[HD_A2A_MAX_HEADERS + 5];
    struct hd_agent_exchange_options options = {
        .peer = "a2a", .is_direct = true, .is_detached = !work};
    struct hd_a2a_request request;
    int err = hd_a2a_request_make(&peer->card, operation, &request);

    if (err)
        return err;
    set_lines(peer, &options, lines, request.version);
    options.method = request.method;
    options.url = request.url.ptr;
    options.body = request.body.len ? hd_buf_slice(&request.body) : (struct hd_slice){0};
    if (work) {
        options.timeout_ms = operation->op == HD_A2A_GET ? GET_MS : SEND_MS;
        options.idle_ms = operation->op == HD_A2A_STREAM ? IDLE_MS : 0;
        options.on_head = on_a2a_head;
        options.on_data = on_a2a_data;
        options.on_done = on_a2a_done;
        options.ctx = work;
    }
    err = hd_agent_exchange_start(call->task, &options, out);
    hd_a2a_request_fini(&request);
    return err;
}

/* The response is ignored. */
static void say_cancel(struct hd_tool_call *call, struct hd_slice task_id)
{
    struct hd_a2a_operation operation = {.op = HD_A2A_CANCEL, .task_id = task_id};
    struct hd_agent_exchange *ignored;

    (void)start_a2a_exchange(call, &operation, NULL, &ignored);
}

static void give_up_task(struct a2a_work *work)
{
    const struct hd_a2a_answer *answer = &work->answer;

    if (answer->task_id && !answer->is_message && !hd_a2a_state_ends(answer->state))
        say_cancel(work->call, hd_val_get_string(answer->task_id));
}

void hd_a2a_call_cancel(struct hd_tool_call *call)
{
    struct a2a_work *work = call->own;

    call->own = NULL;
    give_up_task(work);
    free_a2a_work(work);
}

/* ---- ending ------------------------------------------------------------ */

/* The text may quote the agent. */
static void fail_a2a_call(struct a2a_work *work, const char *text)
{
    struct hd_tool_call *call = work->call;
    struct hd_val *name = hd_val_cstr(name_of(work)), *masked = NULL;
    struct hd_buf buf;

    hd_buf_init(&buf, HD_A2A_MAX_ANSWER);
    if (hd_mask(&buf, hd_slice_cstr(text), work->peer->secrets, work->peer->secret_count) == 0)
        masked = hd_val_string(hd_buf_slice(&buf));
    hd_buf_fini(&buf);
    give_up_task(work);
    call->own = NULL;
    free_a2a_work(work);
    hd_tool_error(call, "the agent %s: %s", name ? hd_val_get_string(name).ptr : "",
                  masked ? hd_val_get_string(masked).ptr : hd_error_text(HD_ENOMEM));
    hd_val_unref(name);
    hd_val_unref(masked);
}

static void fail_code(struct a2a_work *work, int err, const struct heddle_error *fault)
{
    fail_a2a_call(work, fault->text[0] ? fault->text : hd_error_text(err));
}

static bool has_only_text(const struct hd_val *parts)
{
    for (size_t i = 0; i < hd_val_count(parts); i++) {
        if (!hd_val_get(hd_val_at(parts, i), HD_S("text")))
            return false;
    }
    return true;
}

static void finish_a2a_call(struct a2a_work *work)
{
    struct hd_tool_call *call = work->call;
    struct hd_val *content = hd_a2a_answer_content(&work->answer), *artifact = NULL;
    bool is_plain = work->answer.is_message && has_only_text(work->answer.message);

    if (content && hd_val_get_string(content).len == 0) {
        hd_val_unref(content);
        content = hd_val_cstr("The agent finished without a result.");
    }
    if (content && !is_plain)
        artifact = hd_a2a_answer_artifact(&work->answer);
    if (!content || (!is_plain && !artifact)) {
        hd_val_unref(content);
        hd_val_unref(artifact);
        fail_a2a_call(work, hd_error_text(HD_ENOMEM));
        return;
    }
    call->own = NULL;
    free_a2a_work(work);
    hd_tool_done(call, content, artifact);
}

static void finish_failed(struct a2a_work *work)
{
    struct hd_val *said = hd_a2a_answer_said(&work->answer);
    struct hd_slice text = hd_val_get_string(said);
    struct hd_val *whole =
        hd_val_printf("its task was %s%s%s",
                      work->answer.state == HD_A2A_FAILED ? "not done, it failed"
                                                          : hd_a2a_state_name(work->answer.state),
                      text.len ? ": " : "", text.len ? text.ptr : "");

    hd_val_unref(said);
    fail_a2a_call(work, whole ? hd_val_get_string(whole).ptr : hd_error_text(HD_ENOMEM));
    hd_val_unref(whole);
}

static void ask_human(struct a2a_work *work)
{
    const struct hd_a2a_answer *answer = &work->answer;
    struct hd_tool_call *call = work->call;
    struct hd_val *question = hd_val_with(hd_val_object(), HD_S("type"), hd_val_cstr(QUESTION));

    question = hd_val_with(question, HD_S("agent"), hd_val_cstr(name_of(work)));
    question = hd_val_with(question, HD_S("state"), hd_val_cstr(hd_a2a_state_name(answer->state)));
    question = hd_val_with(question, HD_S("message"), hd_a2a_answer_said(answer));
    question = hd_val_with(question, HD_S("task_id"), hd_val_ref(answer->task_id));
    if (answer->context_id)
        question = hd_val_with(question, HD_S("context_id"), hd_val_ref(answer->context_id));
    if (!question) {
        fail_a2a_call(work, hd_error_text(HD_ENOMEM));
        return;
    }
    call->own = NULL;
    free_a2a_work(work);
    hd_tool_ask(call, question);
}

/* ---- polling ---------------------------------------------------------- */

static void on_wait(uv_timer_t *timer)
{
    struct a2a_work *work = timer->data;
    struct hd_a2a_operation operation = {.op = HD_A2A_GET,
                                         .task_id = hd_val_get_string(work->answer.task_id)};
    int err;

    drop_timer(work);
    err = start_a2a_exchange(work->call, &operation, work, &work->exchange);
    if (err)
        fail_a2a_call(work, hd_error_text(err));
}

static int start_work_timer(struct a2a_work *work, uv_timer_cb fn, int64_t ms)
{
    uv_loop_t *uv = work->call->task->loop->run->engine->uv;

    work->timer = hd_calloc(1, sizeof(*work->timer));
    if (!work->timer)
        return HD_ENOMEM;
    uv_timer_init(uv, work->timer);
    work->timer->data = work;
    uv_update_time(uv);
    uv_timer_start(work->timer, fn, (uint64_t)ms, 0);
    return 0;
}

/* Polls the task again, after a growing delay. */
static void wait_for_task(struct a2a_work *work)
{
    work->is_stream = false;
    work->wait_ms = work->wait_ms ? work->wait_ms * 3 / 2 : FIRST_WAIT_MS;
    if (work->wait_ms > MAX_WAIT_MS)
        work->wait_ms = MAX_WAIT_MS;
    if (start_work_timer(work, on_wait, work->wait_ms))
        fail_a2a_call(work, hd_error_text(HD_ENOMEM));
}

/* Decides the next step from the task's state. */
static void decide(struct a2a_work *work)
{
    const struct hd_a2a_answer *answer = &work->answer;

    if (answer->is_message || answer->state == HD_A2A_COMPLETED)
        finish_a2a_call(work);
    else if (hd_a2a_state_ends(answer->state))
        finish_failed(work);
    else if (!answer->task_id)
        fail_a2a_call(work, "its response has neither a message nor a task");
    else if (hd_a2a_state_asks(answer->state))
        ask_human(work);
    else
        wait_for_task(work);
}

/* ---- responses -------------------------------------------------------- */

/* The conversation continues under the agent's id for it. */
static void keep_context(struct a2a_work *work)
{
    struct hd_a2a_peer *peer = work->peer;

    if (!work->answer.context_id)
        return;
    hd_val_unref(peer->context_id);
    peer->context_id = hd_val_ref(work->answer.context_id);
}

static void report_a2a_progress(struct a2a_work *work, const struct hd_a2a_progress *progress)
{
    const struct hd_a2a_answer *answer = &work->answer;
    struct hd_val *event = hd_val_with(hd_val_object(), HD_S("type"), hd_val_cstr("a2a_progress"));
    struct hd_buf text;

    event = hd_val_with(event, HD_S("agent"), hd_val_cstr(name_of(work)));
    event = hd_val_with(event, HD_S("tool_call_id"), hd_val_string(work->call->id));
    if (answer->task_id)
        event = hd_val_with(event, HD_S("task_id"), hd_val_ref(answer->task_id));
    event = hd_val_with(event, HD_S("state"), hd_val_cstr(hd_a2a_state_name(answer->state)));
    if (progress->artifact)
        event = hd_val_with(event, HD_S("artifact"), hd_val_ref(progress->artifact));
    hd_buf_init(&text, HD_A2A_MAX_ANSWER);
    if (progress->parts && hd_a2a_parts_text(&text, progress->parts) == 0)
        event = hd_val_with(event, HD_S("text"), hd_val_string(hd_buf_slice(&text)));
    hd_buf_fini(&text);
    if (event)
        hd_task_emit(work->call->task, event);
    hd_val_unref(event);
}

static int read_a2a_answer(struct a2a_work *work, struct hd_slice text, struct heddle_error *fault)
{
    struct hd_a2a_progress progress;
    int err = hd_a2a_answer_read(&work->answer, text, &progress, fault);

    if (err)
        return err;
    keep_context(work);
    if (work->is_stream && progress.kind != HD_A2A_MESSAGE)
        report_a2a_progress(work, &progress);
    hd_val_unref(progress.parts);
    if (progress.kind == HD_A2A_MESSAGE)
        work->is_decided = true;
    if (progress.kind == HD_A2A_STATUS)
        work->is_decided = hd_a2a_state_ends(work->answer.state) ||
                           (hd_a2a_state_asks(work->answer.state) &&
                            (work->answer.is_final || work->peer->card.dialect == HD_A2A_1_0));
    return 0;
}

/* Context of reading a stream. */
struct a2a_reading {
    struct a2a_work *work;
    struct heddle_error fault;
};

static int on_a2a_event(void *ctx, const struct hd_sse_event *event)
{
    struct a2a_reading *reading = ctx;
    int err;

    if (event->data.len == 0)
        return 0;
    err = read_a2a_answer(reading->work, event->data, &reading->fault);
    return err || !reading->work->is_decided ? err : HD_ECLOSED;
}

static bool on_a2a_head(void *ctx, const struct hd_reply *head)
{
    struct a2a_work *work = ctx;
    struct hd_slice type = hd_header_find(head->headers, "content-type");

    work->is_stream = head->status == 200 && type.len >= 17 &&
                      strncasecmp(type.ptr, "text/event-stream", 17) == 0;
    return work->is_stream;
}

static void stop_exchange(struct a2a_work *work)
{
    struct hd_agent_exchange *exchange = work->exchange;

    work->exchange = NULL;
    hd_agent_exchange_cancel(exchange);
}

static void on_grace(uv_timer_t *timer)
{
    struct a2a_work *work = timer->data;

    drop_timer(work);
    stop_exchange(work);
    decide(work);
}

/* A stream that only has to end is still read, so that it is recorded and its connection reused. */
static void on_a2a_data(void *ctx, struct hd_slice data)
{
    struct a2a_work *work = ctx;
    struct a2a_reading reading = {.work = work};
    int err;

    if (work->is_decided)
        return;
    err = hd_sse_read(&work->sse, data, on_a2a_event, &reading);
    if (!err || (work->is_decided && start_work_timer(work, on_grace, GRACE_MS) == 0))
        return;
    stop_exchange(work);
    if (work->is_decided)
        decide(work);
    else
        fail_code(work, err, &reading.fault);
}

/* ---- errors ----------------------------------------------------------- */

/* A temporary failure. */
static bool is_passing(const struct hd_reply *reply)
{
    return reply->error || reply->status == 429 || reply->status >= 500;
}

static void fail_reply(struct a2a_work *work, const struct hd_reply *reply)
{
    struct heddle_error fault = {0};
    struct hd_json json;
    char text[sizeof(fault.text) + 64];

    if (reply->error) {
        fail_a2a_call(work, reply->error);
        return;
    }
    if (hd_json_parse(&json, reply->body, NULL) == 0) {
        (void)hd_a2a_error_read(hd_json_root(&json), &fault);
        hd_json_fini(&json);
    }
    snprintf(text, sizeof(text), "HTTP status %ld%s%s%s", reply->status,
             reply->status == 401 || reply->status == 403 ? " (it does not accept the credentials)"
                                                          : "",
             fault.text[0] ? ": " : "", fault.text);
    fail_a2a_call(work, text);
}

static void on_a2a_done(void *ctx, const struct hd_reply *reply)
{
    struct a2a_work *work = ctx;
    struct heddle_error fault = {0};
    bool is_known = work->answer.task_id != NULL && !work->answer.is_message;
    int err;

    work->exchange = NULL;
    if (work->is_decided) {
        drop_timer(work);
        decide(work);
        return;
    }
    if (is_known && is_passing(reply) && !hd_a2a_state_ends(work->answer.state) &&
        ++work->failures < MAX_FAILURES) {
        wait_for_task(work);
        return;
    }
    if (reply->error || reply->status < 200 || reply->status > 299) {
        fail_reply(work, reply);
        return;
    }
    work->failures = 0;
    err = work->is_stream ? 0 : read_a2a_answer(work, reply->body, &fault);
    if (err)
        fail_code(work, err, &fault);
    else
        decide(work);
}

/* ---- start ------------------------------------------------------------ */

static const uint8_t ids_ns[16] = {0x5c, 0x0b, 0x27, 0x9e, 0x4d, 0x1a, 0x4f, 0x3b,
                                   0x9a, 0x66, 0x2e, 0x81, 0xd0, 0x73, 0xc4, 0x15};

/*
 * One conversation per remote agent, local agent, thread and user: users who share a thread do not
 * share conversations with servers that use their credentials.
 */
static int make_context(const struct hd_tool_call *call, struct hd_a2a_peer *peer)
{
    const struct hd_engine_run_options *options = &call->task->loop->run->options;
    char id[HD_UUID_SIZE];
    struct hd_buf name;
    int err;

    hd_buf_init(&name, (size_t)1 << 20);
    err = hd_buf_append_lenslice(&name, options->principal);
    if (!err)
        err = hd_buf_append_lenslice(&name, options->thread);
    if (!err)
        err = hd_buf_append_lenslice(&name, options->root);
    if (!err)
        err = hd_buf_append_lenslice(&name, hd_slice_cstr(peer->url));
    if (!err && !hd_slice_eq(options->actor, options->principal))
        err = hd_buf_append_lenslice(&name, options->actor);
    if (!err)
        err = hd_uuid_v5(ids_ns, hd_buf_slice(&name), id);
    hd_buf_fini(&name);
    if (!err)
        peer->context_id = hd_val_cstr(id);
    return err ? err : peer->context_id ? 0 : HD_ENOMEM;
}

/* The same message has the same id when the same task runs again. */
static int make_message_id(const struct hd_tool_call *call, char out[HD_UUID_SIZE])
{
    struct hd_buf name;
    int err;

    hd_buf_init(&name, (size_t)1 << 20);
    err = hd_buf_printf(&name, "%s %zu ", call->task->id, hd_val_count(call->task->resume));
    if (!err)
        err = hd_buf_append_slice(&name, call->id);
    if (!err)
        err = hd_uuid_v5(ids_ns, hd_buf_slice(&name), out);
    hd_buf_fini(&name);
    return err;
}

static bool is_our_question(const struct hd_val *question)
{
    return hd_slice_eq(hd_val_get_string(hd_val_get(question, HD_S("type"))), HD_S(QUESTION)) &&
           hd_val_is_string(hd_val_get(question, HD_S("task_id")));
}

/* A reply may have an inbox's form: a list with one, or {"type": "response", "args"}. */
static const struct hd_val *plain_answer(const struct hd_val *answer, bool *is_ignored)
{
    struct hd_slice type;

    if (hd_val_is_list(answer) && hd_val_count(answer) == 1)
        answer = hd_val_at(answer, 0);
    type = hd_val_get_string(hd_val_get(answer, HD_S("type")));
    *is_ignored = hd_slice_eq(type, HD_S("ignore"));
    if (hd_slice_eq(type, HD_S("response")) && hd_val_get(answer, HD_S("args")))
        return hd_val_get(answer, HD_S("args"));
    return answer;
}

static void set_answer(struct saying *saying, const struct hd_val *question,
                       const struct hd_val *answer)
{
    saying->task_id = hd_val_get_string(hd_val_get(question, HD_S("task_id")));
    saying->context_id = hd_val_get_string(hd_val_get(question, HD_S("context_id")));
    saying->text = hd_val_get_string(answer);
    saying->data = hd_val_is_string(answer) ? NULL : answer;
}

static int say_to_agent(struct hd_tool_call *call, const struct saying *saying)
{
    struct hd_a2a_peer *peer = call->tool->own;
    struct a2a_work *work = hd_calloc(1, sizeof(*work));
    char id[HD_UUID_SIZE], key[HD_UUID_SIZE];
    struct hd_a2a_operation operation = {.op = peer->card.streams ? HD_A2A_STREAM : HD_A2A_SEND,
                                         .task_id = saying->task_id,
                                         .context_id = saying->context_id,
                                         .text = saying->text,
                                         .data = saying->data};
    int err;

    if (!work)
        return HD_ENOMEM;
    work->call = call;
    work->peer = peer;
    hd_a2a_answer_init(&work->answer);
    hd_sse_read_init(&work->sse, HD_A2A_MAX_ANSWER);
    if (saying->task_id.len)
        work->answer.task_id = hd_val_string(saying->task_id);
    err = saying->task_id.len && !work->answer.task_id ? HD_ENOMEM : make_message_id(call, id);
    if (!err)
        err = hd_idempotency_key(call->task, call->id, 0, key);
    operation.message_id = hd_slice_cstr(id);
    operation.key = hd_slice_cstr(key);
    if (!err)
        err = start_a2a_exchange(call, &operation, work, &work->exchange);
    if (err)
        free_a2a_work(work);
    else
        call->own = work;
    return err;
}

int hd_a2a_call(struct hd_tool_call *call)
{
    struct hd_a2a_peer *peer = call->tool->own;
    const struct hd_val *question = hd_tool_question(call);
    struct saying saying = {.text = hd_val_get_string(hd_val_get(call->args, HD_S("message")))};
    const struct hd_val *answer;
    bool is_ignored;

    if (is_our_question(question)) {
        answer = plain_answer(hd_tool_answer(call), &is_ignored);
        set_answer(&saying, question, answer);
        if (is_ignored) {
            say_cancel(call, saying.task_id);
            hd_tool_error(call, "the agent requires input, and the request was ignored");
            return 0;
        }
        return say_to_agent(call, &saying);
    }
    if (saying.text.len == 0) {
        hd_tool_error(call, "`message` must be a text");
        return 0;
    }
    if (!peer->context_id && make_context(call, peer))
        return HD_ENOMEM;
    saying.context_id = hd_val_get_string(peer->context_id);
    return say_to_agent(call, &saying);
}
