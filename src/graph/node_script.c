/* `script`: a scripted model; the first reply whose `when` holds becomes a message. */
#include <string.h>

#include "graph/decl.h"
#include "graph/nodes.h"

#define MAX_REPLIES 1000
#define MAX_TIMES 1000000
#define MAX_TOKENS INT64_C(1000000000)

struct usage {
    int64_t input_tokens, output_tokens, total_tokens;
    bool is_given;
};

struct reply {
    const struct hd_expr *when; /* NULL: always */
    const struct hd_expr *content;
    const struct hd_expr *tool_calls;
    const struct hd_expr *id, *name;
    const struct hd_expr *error; /* fails with it, after what there is of content was streamed */
    struct usage usage;
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
    struct hd_at channel_at;
};

/* ---- replies ---------------------------------------------------------- */

static const struct hd_field usage_fields[] = {
    {"input_tokens", hd_read_int, offsetof(struct usage, input_tokens), false, 0, MAX_TOKENS, 0},
    {"output_tokens", hd_read_int, offsetof(struct usage, output_tokens), false, 0, MAX_TOKENS, 0},
    {"total_tokens", hd_read_int, offsetof(struct usage, total_tokens), false, 0, MAX_TOKENS, 0},
};

static int read_usage(struct hd_decl *decl, const struct hd_at *at, const struct hd_field *field,
                      void *out)
{
    static const struct hd_fields fields = HD_FIELDS(usage_fields, NULL);
    struct usage *usage = out;
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
    struct hd_at name, args, id;
};

static const struct hd_field tool_call_fields[] = {
    {"name", hd_read_raw, offsetof(struct tool_call, name), true, 0, 0, 0},
    {"args", hd_read_raw, offsetof(struct tool_call, args), false, 0, 0, 0},
    {"id", hd_read_raw, offsetof(struct tool_call, id), false, 0, 0, 0},
};

static bool is_call(hd_json_val val)
{
    struct hd_json_iter it = hd_json_iter(val);

    return hd_json_is_object(val) && hd_json_next(&it) && hd_slice_starts(it.key, HD_S("@"));
}

static int check_tool_call(struct hd_decl *decl, const struct hd_at *at)
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

/* An expression may give all of it; what is written out is checked. */
static int read_tool_calls(struct hd_decl *decl, const struct hd_at *at,
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
        struct hd_at element = hd_at_index(at, index++, it.val);

        err = check_tool_call(decl, &element);
    }
    return err == 0 ? hd_decl_expr_in(decl, at, 0, out) : err;
}

static const struct hd_field reply_fields[] = {
    {"when", hd_read_expr, offsetof(struct reply, when), false, 0, 0, 0},
    {"content", hd_read_expr, offsetof(struct reply, content), false, 0, 0, 0},
    {"tool_calls", read_tool_calls, offsetof(struct reply, tool_calls), false, 0, 0, 0},
    {"id", hd_read_expr, offsetof(struct reply, id), false, 0, 0, 0},
    {"name", hd_read_expr, offsetof(struct reply, name), false, 0, 0, 0},
    {"usage", read_usage, offsetof(struct reply, usage), false, 0, 0, 0},
    {"error", hd_read_expr, offsetof(struct reply, error), false, 0, 0, 0},
    {"delay_ms", hd_read_int, offsetof(struct reply, delay_ms), false, 0, HD_GRAPH_MAX_WAIT_MS, 0},
    {"times", hd_read_int, offsetof(struct reply, times), false, 1, MAX_TIMES, 0},
};

static int read_reply(struct hd_decl *decl, const struct hd_at *at, struct reply *reply)
{
    static const struct hd_fields fields = HD_FIELDS(reply_fields, NULL);
    int err = hd_decl_fields(decl, at, &fields, reply);

    if (err == 0 && !reply->content && !reply->tool_calls && !reply->error)
        err = hd_decl_fail(decl, at, "needs \"content\", \"tool_calls\" or \"error\"");
    return err;
}

static int read_replies(struct hd_decl *decl, const struct hd_at *at, const struct hd_field *field,
                        void *out)
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
        struct hd_at element = hd_at_index(at, replies->count, it.val);
        struct reply *reply = &replies->list[replies->count++];

        if (is_last)
            return hd_decl_fail(decl, &element, "is never used: the reply before it always holds");
        err = read_reply(decl, &element, reply);
        is_last = !reply->when && reply->times == 0;
    }
    return err;
}

/* ---- stream ----------------------------------------------------------- */

static int read_by(struct hd_decl *decl, const struct hd_at *at, const struct hd_field *field,
                   void *out)
{
    struct stream *stream = out;
    struct hd_slice text = hd_json_string(at->val);

    if (hd_json_is_number(at->val)) {
        stream->by = STREAM_CHARACTERS;
        return hd_read_int(decl, at, field, &stream->size);
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
    {"delay_ms", hd_read_int, offsetof(struct stream, delay_ms), false, 0, HD_GRAPH_MAX_WAIT_MS, 0},
};

static int read_stream(struct hd_decl *decl, const struct hd_at *at, const struct hd_field *field,
                       void *out)
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
    {"channel", hd_read_raw, offsetof(struct script_spec, channel_at), false, 0, 0, 0},
    {"stream", read_stream, offsetof(struct script_spec, stream), false, 0, 0, 0},
};

/* Messages go to `messages` unless another channel of messages is named. */
static int find_channel(struct hd_decl *decl, const struct hd_at *at, struct script_spec *spec)
{
    bool is_given = hd_raw(&spec->channel_at);
    struct hd_slice name = is_given ? hd_json_string(spec->channel_at.val) : HD_S("messages");
    const struct hd_at *where = is_given ? &spec->channel_at : at;
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

static int read(struct hd_decl *decl, const struct hd_at *at, struct hd_node *node)
{
    struct script_spec *spec = hd_arena_calloc(&decl->hold->arena, 1, sizeof(*spec));
    int err;

    if (!spec)
        return HD_ENOMEM;
    node->spec = spec;
    err = hd_decl_node_fields(decl, at, fields, HD_COUNT(fields), spec);
    if (err == 0)
        err = find_channel(decl, at, spec);
    spec->channel_at = (struct hd_at){0};
    return err;
}

const struct hd_node_kind hd_node_script = {
    .name = "script",
    .read = read,
};
