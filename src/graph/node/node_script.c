/* `script`: a scripted model; the first reply whose `when` holds becomes a message. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/slice.h"
#include "base/uuid.h"
#include "graph/decl/decl.h"
#include "graph/decl/graph.h"
#include "graph/decl/nodes.h"
#include "graph/engine/task.h"
#include "graph/expr/expr.h"
#include "value/val.h"

#define MAX_REPLIES 1000
#define MAX_TIMES 1000000
#define MAX_TOKENS INT64_C(1000000000)
#define MODEL "ScriptedModel" /* its name for clients */
#define ID_PREFIX "lc_run--"

struct reply_usage {
    int64_t input_tokens, output_tokens, total_tokens;
    bool is_given;
};

struct reply {
    const struct hd_expr *when; /* NULL: always */
    const struct hd_expr *content;
    const struct hd_expr *tool_calls;
    const struct hd_expr *id, *name;
    const struct hd_expr *error; /* fails with this text, after the content was streamed */
    struct reply_usage usage;
    int64_t delay_ms;
    int64_t times; /* 0: any number */
};

struct replies {
    struct reply *list;
    size_t count;
};

enum stream_by { STREAM_NOT, STREAM_WORDS, STREAM_CHARACTERS };

struct stream {
    enum stream_by by;
    int64_t size; /* characters of a piece */
    int64_t delay_ms;
};

struct script_spec {
    struct replies replies;
    size_t channel;
    struct stream stream;
    struct hd_decl_at channel_at;
};

/* ---- replies ---------------------------------------------------------- */

static const struct hd_field usage_fields[] = {
    {"input_tokens", hd_decl_read_int, offsetof(struct reply_usage, input_tokens), false, 0,
     MAX_TOKENS, 0},
    {"output_tokens", hd_decl_read_int, offsetof(struct reply_usage, output_tokens), false, 0,
     MAX_TOKENS, 0},
    {"total_tokens", hd_decl_read_int, offsetof(struct reply_usage, total_tokens), false, 0,
     MAX_TOKENS, 0},
};

static int read_reply_usage(struct hd_decl *decl, const struct hd_decl_at *at,
                            const struct hd_field *field, void *out)
{
    static const struct hd_fields fields = HD_FIELDS(usage_fields, NULL);
    struct reply_usage *usage = out;
    int err;

    (void)field;
    usage->is_given = true;
    usage->total_tokens = -1;
    err = hd_decl_fields(decl, at, &fields, usage);
    if (usage->total_tokens < 0)
        usage->total_tokens = usage->input_tokens + usage->output_tokens;
    return err;
}

struct tool_call {
    struct hd_decl_at name, args, id;
};

static const struct hd_field tool_call_fields[] = {
    {"name", hd_decl_read_raw, offsetof(struct tool_call, name), true, 0, 0, 0},
    {"args", hd_decl_read_raw, offsetof(struct tool_call, args), false, 0, 0, 0},
    {"id", hd_decl_read_raw, offsetof(struct tool_call, id), false, 0, 0, 0},
};

static bool is_call(hd_json_val val)
{
    struct hd_json_iter it = hd_json_iter(val);

    return hd_json_is_object(val) && hd_json_next(&it) && hd_slice_starts(it.key, HD_S("@"));
}

static int check_tool_call(struct hd_decl *decl, const struct hd_decl_at *at)
{
    static const struct hd_fields fields = HD_FIELDS(tool_call_fields, NULL);
    struct tool_call call = {0};
    int err;

    if (is_call(at->val) || hd_json_is_string(at->val))
        return 0;
    err = hd_decl_fields(decl, at, &fields, &call);
    if (err == 0 && !hd_json_is_string(call.name.val) && !is_call(call.name.val))
        err = hd_decl_fail_type(decl, &call.name, "a string");
    if (err == 0 && hd_raw(&call.args) && !hd_json_is_object(call.args.val) &&
        !hd_json_is_string(call.args.val))
        err = hd_decl_fail_type(decl, &call.args, "an object");
    return err;
}

/* An expression can produce the whole list. Literal tool calls are checked here. */
static int read_tool_calls(struct hd_decl *decl, const struct hd_decl_at *at,
                           const struct hd_field *field, void *out)
{
    struct hd_json_iter it = hd_json_iter(at->val);
    size_t index = 0;
    int err = 0;

    (void)field;
    if (!hd_json_is_array(at->val) && !is_call(at->val) &&
        !hd_slice_starts(hd_json_string(at->val), HD_S("{{")))
        return hd_decl_fail_type(decl, at, "a list of tool calls");
    while (err == 0 && hd_json_is_array(at->val) && hd_json_next(&it)) {
        struct hd_decl_at element = hd_decl_at_index(at, index++, it.val);

        err = check_tool_call(decl, &element);
    }
    return err == 0 ? hd_decl_expr_in(decl, at, 0, out) : err;
}

static const struct hd_field reply_fields[] = {
    {"when", hd_decl_read_expr, offsetof(struct reply, when), false, 0, 0, 0},
    {"content", hd_decl_read_expr, offsetof(struct reply, content), false, 0, 0, 0},
    {"tool_calls", read_tool_calls, offsetof(struct reply, tool_calls), false, 0, 0, 0},
    {"id", hd_decl_read_expr, offsetof(struct reply, id), false, 0, 0, 0},
    {"name", hd_decl_read_expr, offsetof(struct reply, name), false, 0, 0, 0},
    {"usage", read_reply_usage, offsetof(struct reply, usage), false, 0, 0, 0},
    {"error", hd_decl_read_expr, offsetof(struct reply, error), false, 0, 0, 0},
    {"delay_ms", hd_decl_read_int, offsetof(struct reply, delay_ms), false, 0, HD_GRAPH_MAX_WAIT_MS,
     0},
    {"times", hd_decl_read_int, offsetof(struct reply, times), false, 1, MAX_TIMES, 0},
};

static int read_reply(struct hd_decl *decl, const struct hd_decl_at *at, struct reply *reply)
{
    static const struct hd_fields fields = HD_FIELDS(reply_fields, NULL);
    int err = hd_decl_fields(decl, at, &fields, reply);

    if (err == 0 && !reply->content && !reply->tool_calls && !reply->error)
        err = hd_decl_fail(decl, at, "needs \"content\", \"tool_calls\" or \"error\"");
    return err;
}

static int read_replies(struct hd_decl *decl, const struct hd_decl_at *at,
                        const struct hd_field *field, void *out)
{
    struct hd_json_iter it = hd_json_iter(at->val);
    size_t size = hd_json_size(at->val);
    struct replies *replies = out;
    bool is_last = false;
    int err = 0;

    (void)field;
    if (!hd_json_is_array(at->val))
        return hd_decl_fail_type(decl, at, "a list of replies");
    if (size == 0 || size > MAX_REPLIES)
        return hd_decl_fail(decl, at, "must have from 1 to %d replies", MAX_REPLIES);
    replies->list = hd_arena_calloc(&decl->hold->arena, size, sizeof(*replies->list));
    if (!replies->list)
        return HD_ENOMEM;
    while (err == 0 && hd_json_next(&it)) {
        struct hd_decl_at element = hd_decl_at_index(at, replies->count, it.val);
        struct reply *reply = &replies->list[replies->count++];

        if (is_last)
            return hd_decl_fail(decl, &element,
                                "is never used: the reply before it always matches");
        err = read_reply(decl, &element, reply);
        is_last = !reply->when && reply->times == 0;
    }
    return err;
}

/* ---- stream ----------------------------------------------------------- */

static int read_by(struct hd_decl *decl, const struct hd_decl_at *at, const struct hd_field *field,
                   void *out)
{
    struct stream *stream = out;
    struct hd_slice text = hd_json_string(at->val);

    if (hd_json_is_number(at->val)) {
        stream->by = STREAM_CHARACTERS;
        return hd_decl_read_int(decl, at, field, &stream->size);
    }
    stream->size = 1;
    stream->by = hd_slice_eq(text, HD_S("word"))        ? STREAM_WORDS
                 : hd_slice_eq(text, HD_S("character")) ? STREAM_CHARACTERS
                                                        : STREAM_NOT;
    if (stream->by == STREAM_NOT)
        return hd_decl_fail(decl, at, "must be \"word\", \"character\" or a number of characters");
    return 0;
}

static const struct hd_field stream_fields[] = {
    {"by", read_by, 0, false, 1, 1000000, 0},
    {"delay_ms", hd_decl_read_int, offsetof(struct stream, delay_ms), false, 0,
     HD_GRAPH_MAX_WAIT_MS, 0},
};

static int read_stream(struct hd_decl *decl, const struct hd_decl_at *at,
                       const struct hd_field *field, void *out)
{
    static const struct hd_fields fields = HD_FIELDS(stream_fields, NULL);
    struct stream *stream = out;

    (void)field;
    *stream = (struct stream){.by = STREAM_WORDS, .size = 1};
    return hd_decl_fields(decl, at, &fields, stream);
}

/* ---- the node --------------------------------------------------------- */

static const struct hd_field fields[] = {
    {"replies", read_replies, offsetof(struct script_spec, replies), true, 0, 0, 0},
    {"channel", hd_decl_read_raw, offsetof(struct script_spec, channel_at), false, 0, 0, 0},
    {"stream", read_stream, offsetof(struct script_spec, stream), false, 0, 0, 0},
};

/* Messages go to the channel `messages`, unless the node names another channel of messages. */
static int find_channel(struct hd_decl *decl, const struct hd_decl_at *at, struct script_spec *spec)
{
    bool is_given = hd_raw(&spec->channel_at);
    struct hd_slice name = is_given ? hd_json_string(spec->channel_at.val) : HD_S("messages");
    const struct hd_decl_at *where = is_given ? &spec->channel_at : at;
    int err;

    if (is_given && !hd_json_is_string(spec->channel_at.val))
        return hd_decl_fail_type(decl, where, "the name of a channel");
    if (!is_given && !hd_map_get(&decl->draft->channel_map, name))
        return hd_decl_fail(decl, at,
                            "needs a member \"channel\": there is no channel \"messages\"");
    err = hd_decl_find_channel(decl, where, name, &spec->channel);
    if (err == 0 && decl->draft->channels[spec->channel].reducer != HD_REDUCE_MESSAGES)
        err = hd_decl_fail(decl, where, "channel \"%.*s\" needs the reducer \"messages\"",
                           HD_SHOW(name));
    return err;
}

static int read_script_node(struct hd_decl *decl, const struct hd_decl_at *at, struct hd_node *node)
{
    struct script_spec *spec = hd_arena_calloc(&decl->hold->arena, 1, sizeof(*spec));
    int err;

    if (!spec)
        return HD_ENOMEM;
    node->spec = spec;
    err = hd_decl_node_fields(decl, at, fields, HD_COUNT(fields), spec);
    if (err == 0)
        err = find_channel(decl, at, spec);
    spec->channel_at = (struct hd_decl_at){0};
    return err;
}

/* ---- running ---------------------------------------------------------- */

/* An answer in progress. */
struct answer {
    const struct reply *reply;
    struct hd_val *content;
    struct hd_val *calls; /* list */
    struct hd_val *name;  /* NULL: none */
    char id[HD_UUID_SIZE + 16];
    size_t at;   /* bytes of the content streamed so far */
    size_t call; /* tool calls streamed so far */
};

static void free_answer(struct answer *answer)
{
    hd_val_unref(answer->content);
    hd_val_unref(answer->calls);
    hd_val_unref(answer->name);
    hd_free(answer);
}

static void cancel_script(struct hd_task *task)
{
    free_answer(task->work);
}

/*
 * Estimates how often the reply was used: the number of AI messages in the channel with its
 * content.
 */
static int64_t count_used(const struct hd_val *messages, const struct hd_val *content)
{
    int64_t used = 0;

    for (size_t i = 0; i < hd_val_count(messages); i++) {
        const struct hd_val *message = hd_val_at(messages, i);

        used += hd_slice_eq(hd_val_get_string(hd_val_get(message, HD_S("type"))), HD_S("ai")) &&
                hd_val_equal(hd_val_get(message, HD_S("content")), content);
    }
    return used;
}

static int is_fitting(struct hd_task *task, const struct hd_scope *scope, const struct reply *reply,
                      bool *out)
{
    const struct script_spec *spec = task->node->spec;
    struct hd_val *content;
    int err = 0;

    *out = true;
    if (reply->when)
        err = hd_expr_holds(reply->when, scope, out);
    if (err || !*out || reply->times == 0 || !reply->content)
        return err;
    err = hd_expr_eval(reply->content, scope, &content);
    if (!err) {
        *out = count_used(task->channels[spec->channel], content) < reply->times;
        hd_val_unref(content);
    }
    return err;
}

/* Adds the type, and defaults for missing members, to tool calls. Takes `calls`. */
static struct hd_val *typed_calls(struct hd_val *calls)
{
    struct hd_val *typed = hd_val_list();

    for (size_t i = 0; i < hd_val_count(calls); i++) {
        struct hd_val *call = hd_val_at(calls, i), *made = hd_val_object();
        struct hd_val *args = hd_val_get(call, HD_S("args")), *id = hd_val_get(call, HD_S("id"));

        made = hd_val_with(made, HD_S("name"), hd_val_ref(hd_val_get(call, HD_S("name"))));
        made = hd_val_with(made, HD_S("args"), args ? hd_val_ref(args) : hd_val_object());
        made = hd_val_with(made, HD_S("id"), id ? hd_val_ref(id) : hd_val_null());
        made = hd_val_with(made, HD_S("type"), hd_val_cstr("tool_call"));
        typed = hd_val_append(typed, made);
    }
    hd_val_unref(calls);
    return typed;
}

static int eval_answer(struct answer *answer, const struct hd_scope *scope)
{
    const struct reply *reply = answer->reply;
    struct hd_val *id = NULL;
    char uuid[HD_UUID_SIZE];
    int err = 0;

    hd_uuid_v7(uuid);
    snprintf(answer->id, sizeof(answer->id), ID_PREFIX "%s", uuid);
    if (reply->content)
        err = hd_expr_eval(reply->content, scope, &answer->content);
    if (!err && reply->tool_calls)
        err = hd_expr_eval(reply->tool_calls, scope, &answer->calls);
    if (!err && reply->name)
        err = hd_expr_eval(reply->name, scope, &answer->name);
    if (!err && reply->id)
        err = hd_expr_eval(reply->id, scope, &id);
    if (!err && hd_val_is_string(id))
        snprintf(answer->id, sizeof(answer->id), "%s", hd_val_get_string(id).ptr);
    hd_val_unref(id);
    if (err)
        return err;
    if (hd_val_is_null(answer->content)) {
        hd_val_unref(answer->content);
        answer->content = hd_val_cstr("");
    }
    answer->calls = typed_calls(answer->calls);
    return answer->content && answer->calls ? 0 : HD_ENOMEM;
}

static struct hd_val *make_usage(const struct reply_usage *usage)
{
    struct hd_val *val = hd_val_object();

    val = hd_val_with(val, HD_S("input_tokens"), hd_val_int(usage->input_tokens));
    val = hd_val_with(val, HD_S("output_tokens"), hd_val_int(usage->output_tokens));
    return hd_val_with(val, HD_S("total_tokens"), hd_val_int(usage->total_tokens));
}

static struct hd_val *whole_message(const struct answer *answer)
{
    struct hd_val *message = hd_val_message("ai", hd_val_ref(answer->content), answer->id);

    if (answer->name)
        message = hd_val_with(message, HD_S("name"), hd_val_ref(answer->name));
    if (hd_val_count(answer->calls) > 0)
        message = hd_val_with(message, HD_S("tool_calls"), hd_val_ref(answer->calls));
    if (answer->reply->usage.is_given)
        message = hd_val_with(message, HD_S("usage_metadata"), make_usage(&answer->reply->usage));
    return message;
}

static void fail_as_scripted(struct hd_task *task, const struct reply *reply)
{
    struct hd_scope scope = hd_task_scope(task);
    struct hd_buf text;
    struct hd_val *val;
    int err = hd_expr_eval(reply->error, &scope, &val);

    hd_buf_init(&text, HD_EXPR_MAX_BYTES);
    if (!err) {
        err = hd_val_write_text(&text, val);
        hd_val_unref(val);
    }
    if (err)
        hd_task_fail_code(task, err, NULL);
    else
        hd_task_fail_text(task, HD_S("RuntimeError"), hd_buf_slice(&text));
    hd_buf_fini(&text);
}

static void finish_reply(struct hd_task *task)
{
    const struct script_spec *spec = task->node->spec;
    struct answer *answer = task->work;
    struct hd_val *message, *list, *update;

    if (answer->reply->error) {
        fail_as_scripted(task, answer->reply);
        return;
    }
    message = whole_message(answer);
    if (message)
        hd_task_call(task, MODEL, NULL, task->channels[spec->channel], message);
    if (message && answer->at == 0 && answer->call == 0)
        hd_task_message(task, MODEL, message); /* no pieces of it were sent */
    list = hd_val_append(hd_val_list(), message);
    update = hd_val_with(hd_val_object(), task->graph->channels[spec->channel].name, list);
    if (!update)
        hd_task_fail_code(task, HD_ENOMEM, NULL);
    else
        hd_task_finish(task, update, NULL, false);
}

/* ---- streaming -------------------------------------------------------- */

static bool is_white_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* The length of the next piece of the text, in bytes. */
static size_t next_piece(const struct stream *stream, struct hd_slice text, size_t at)
{
    size_t end = at;

    if (stream->by == STREAM_WORDS) {
        while (at > 0 && end < text.len && !is_white_space(text.ptr[end]))
            end++;
        if (at == 0 && !is_white_space(text.ptr[0])) {
            while (end < text.len && !is_white_space(text.ptr[end]))
                end++;
        }
        while (end < text.len && is_white_space(text.ptr[end]))
            end++;
        return end - at;
    }
    for (int64_t i = 0; i < stream->size && end < text.len; i++) {
        end++;
        while (end < text.len && ((unsigned char)text.ptr[end] & 0xc0) == 0x80)
            end++;
    }
    return end - at;
}

static struct hd_val *call_chunk(const struct answer *answer)
{
    struct hd_val *call = hd_val_at(answer->calls, answer->call);
    struct hd_val *chunk = hd_val_message("AIMessageChunk", hd_val_cstr(""), answer->id);
    struct hd_val *part = hd_val_object();
    struct hd_buf args;

    hd_buf_init(&args, HD_EXPR_MAX_BYTES);
    if (hd_val_render(&args, hd_val_get(call, HD_S("args"))) != 0) {
        hd_val_unref(part);
        part = NULL;
    }
    part = hd_val_with(part, HD_S("name"), hd_val_ref(hd_val_get(call, HD_S("name"))));
    part = hd_val_with(part, HD_S("args"), hd_val_string(hd_buf_slice(&args)));
    part = hd_val_with(part, HD_S("id"), hd_val_ref(hd_val_get(call, HD_S("id"))));
    part = hd_val_with(part, HD_S("index"), hd_val_int((int64_t)answer->call));
    part = hd_val_with(part, HD_S("type"), hd_val_cstr("tool_call_chunk"));
    hd_buf_fini(&args);
    chunk = hd_val_with(chunk, HD_S("tool_calls"), hd_val_append(hd_val_list(), hd_val_ref(call)));
    return hd_val_with(chunk, HD_S("tool_call_chunks"), hd_val_append(hd_val_list(), part));
}

/* The next piece. NULL: no memory; or, with *is_last, nothing left to send. */
static struct hd_val *next_chunk(const struct script_spec *spec, struct answer *answer,
                                 bool *is_last)
{
    struct hd_slice text = hd_val_get_string(answer->content);
    struct hd_val *chunk;

    *is_last = false;
    if (answer->at < text.len) {
        size_t len = next_piece(&spec->stream, text, answer->at);

        chunk = hd_val_message("AIMessageChunk",
                               hd_val_string(hd_slice(text.ptr + answer->at, len)), answer->id);
        answer->at += len;
        return chunk;
    }
    if (answer->call < hd_val_count(answer->calls)) {
        chunk = call_chunk(answer);
        answer->call++;
        return chunk;
    }
    *is_last = true;
    if (answer->reply->error)
        return NULL;
    chunk = hd_val_message("AIMessageChunk", hd_val_cstr(""), answer->id);
    if (answer->reply->usage.is_given)
        chunk = hd_val_with(chunk, HD_S("usage_metadata"), make_usage(&answer->reply->usage));
    return hd_val_with(chunk, HD_S("chunk_position"), hd_val_cstr("last"));
}

static void stream_on(struct hd_task *task)
{
    const struct script_spec *spec = task->node->spec;
    bool is_last = false;

    while (!is_last) {
        struct hd_val *chunk = next_chunk(spec, task->work, &is_last);

        if (chunk)
            hd_task_message(task, MODEL, chunk);
        else if (!is_last)
            break;
        hd_val_unref(chunk);
        if (!is_last && spec->stream.delay_ms > 0) {
            if (hd_task_wait(task, spec->stream.delay_ms, stream_on) == 0)
                return;
            break;
        }
    }
    if (is_last)
        finish_reply(task);
    else
        hd_task_fail_code(task, HD_ENOMEM, NULL);
}

static void begin_stream(struct hd_task *task)
{
    const struct script_spec *spec = task->node->spec;
    const struct answer *answer = task->work;

    if (spec->stream.by == STREAM_NOT || !hd_val_is_string(answer->content))
        finish_reply(task);
    else if (spec->stream.delay_ms == 0)
        stream_on(task);
    else if (hd_task_wait(task, spec->stream.delay_ms, stream_on) != 0)
        hd_task_fail_code(task, HD_ENOMEM, NULL);
}

static int start_script(struct hd_task *task)
{
    const struct script_spec *spec = task->node->spec;
    struct hd_scope scope = hd_task_scope(task);
    const struct reply *reply = NULL;
    struct answer *answer;
    int err = 0;

    for (size_t i = 0; i < spec->replies.count && !reply && !err; i++) {
        bool fits;

        err = is_fitting(task, &scope, &spec->replies.list[i], &fits);
        if (!err && fits)
            reply = &spec->replies.list[i];
    }
    if (err)
        return err;
    if (!reply) {
        hd_task_fail(task, "RuntimeError", "no reply of the script matches");
        return 0;
    }
    answer = hd_calloc(1, sizeof(*answer));
    if (!answer)
        return HD_ENOMEM;
    answer->reply = reply;
    err = eval_answer(answer, &scope);
    if (err) {
        free_answer(answer);
        return err;
    }
    task->work = answer;
    hd_task_call(task, MODEL, reply->id ? NULL : answer->id + strlen(ID_PREFIX),
                 task->channels[spec->channel], NULL);
    if (reply->delay_ms == 0)
        begin_stream(task);
    else
        err = hd_task_wait(task, reply->delay_ms, begin_stream);
    return err;
}

const struct hd_node_kind hd_node_script = {
    .name = "script",
    .read = read_script_node,
    .start = start_script,
    .cancel = cancel_script,
};
