/* Anthropic's Messages API. */
#include <stdio.h>

#include "base/uuid.h"
#include "mock/mock_internal.h"

static struct hd_slice stop_reason(const struct hd_mock_reply *reply)
{
    if (reply->finish_reason.len > 0)
        return reply->finish_reason;
    return reply->call_count > 0 ? HD_S("tool_use") : HD_S("end_turn");
}

static void write_usage(struct hd_jw *jw, const struct hd_mock_reply *reply, bool has_input,
                        int64_t output)
{
    hd_jw_put_object(jw, "usage");
    if (has_input)
        hd_jw_put_int(jw, "input_tokens", reply->input_tokens);
    hd_jw_put_int(jw, "output_tokens", output);
    hd_jw_object_end(jw);
}

static void write_message_head(struct hd_jw *jw, const struct hd_mock_seen *seen)
{
    char uuid[HD_UUID_SIZE], id[HD_UUID_SIZE + 8];

    hd_uuid_v4(uuid);
    (void)snprintf(id, sizeof(id), "msg_%s", uuid);
    hd_jw_put_string(jw, "id", hd_slice_cstr(id));
    hd_jw_put_string(jw, "type", HD_S("message"));
    hd_jw_put_string(jw, "role", HD_S("assistant"));
    hd_jw_put_string(jw, "model", seen->model);
}

static void write_stop(struct hd_jw *jw, struct hd_slice reason)
{
    hd_jw_key(jw, HD_S("stop_reason"));
    if (reason.len > 0)
        hd_jw_string(jw, reason);
    else
        hd_jw_null(jw);
    hd_jw_put_null(jw, "stop_sequence");
}

/* ---- whole responses -------------------------------------------------- */

static void write_text_block(struct hd_jw *jw, const char *type, struct hd_slice text)
{
    if (text.len == 0)
        return;
    hd_jw_object(jw);
    hd_jw_put_string(jw, "type", hd_slice_cstr(type));
    hd_jw_put_string(jw, type, text);
    if (type[1] == 'h')
        hd_jw_put_string(jw, "signature", HD_S("mock"));
    hd_jw_object_end(jw);
}

/* A stream sends the arguments later. */
static void write_call_block(struct hd_jw *jw, const struct hd_mock_call *call, bool has_args)
{
    hd_jw_object(jw);
    hd_jw_put_string(jw, "type", HD_S("tool_use"));
    hd_jw_put_string(jw, "id", call->id);
    hd_jw_put_string(jw, "name", call->name);
    hd_jw_key(jw, HD_S("input"));
    if (has_args)
        hd_mock_args(jw, call);
    else
        hd_jw_raw(jw, HD_S("{}"));
    hd_jw_object_end(jw);
}

static void write_whole(struct hd_jw *jw, const struct hd_mock_seen *seen,
                        const struct hd_mock_reply *reply)
{
    hd_jw_object(jw);
    write_message_head(jw, seen);
    hd_jw_put_array(jw, "content");
    write_text_block(jw, "thinking", reply->reasoning);
    write_text_block(jw, "text", reply->content);
    for (size_t i = 0; i < reply->call_count; i++)
        write_call_block(jw, &reply->calls[i], true);
    hd_jw_array_end(jw);
    write_stop(jw, stop_reason(reply));
    write_usage(jw, reply, true, reply->output_tokens);
    hd_jw_object_end(jw);
}

/* ---- streams ---------------------------------------------------------- */

static void begin_event(struct hd_mock_out *out, const char *type, int64_t index)
{
    hd_mock_event(out, hd_slice_cstr(type));
    hd_jw_object(&out->jw);
    hd_jw_put_string(&out->jw, "type", hd_slice_cstr(type));
    if (index >= 0)
        hd_jw_put_int(&out->jw, "index", index);
}

static void end_event(struct hd_mock_out *out)
{
    hd_jw_object_end(&out->jw);
    hd_mock_event_end(out);
}

static void stream_delta(struct hd_mock_out *out, int64_t index, const char *type,
                         const char *member, struct hd_slice text)
{
    begin_event(out, "content_block_delta", index);
    hd_jw_put_object(&out->jw, "delta");
    hd_jw_put_string(&out->jw, "type", hd_slice_cstr(type));
    hd_jw_put_string(&out->jw, member, text);
    hd_jw_object_end(&out->jw);
    end_event(out);
}

struct block {
    const char *delta;  /* type of its deltas */
    const char *member; /* member that holds the text */
    struct hd_slice text;
    int64_t index;
};

static void stream_pieces(struct hd_mock_out *out, const struct block *block,
                          const struct hd_mock_pace *pace)
{
    struct hd_mock_cutter cutter;
    struct hd_slice piece;

    hd_mock_cutter_init(&cutter, block->text, pace);
    while (hd_mock_cut_next(&cutter, &piece)) {
        stream_delta(out, block->index, block->delta, block->member, piece);
        if (cutter.rest.len > 0)
            hd_mock_next_piece(out);
    }
    begin_event(out, "content_block_stop", block->index);
    end_event(out);
}

static void stream_text(struct hd_mock_out *out, const struct hd_mock_reply *reply,
                        const char *type, struct hd_slice text, int64_t *index)
{
    bool is_thinking = type[1] == 'h';
    struct block block = {.delta = is_thinking ? "thinking_delta" : "text_delta",
                          .member = type,
                          .text = text,
                          .index = *index};

    if (text.len == 0)
        return;
    if (*index > 0)
        hd_mock_next_piece(out);
    begin_event(out, "content_block_start", *index);
    hd_jw_put_object(&out->jw, "content_block");
    hd_jw_put_string(&out->jw, "type", hd_slice_cstr(type));
    hd_jw_put_string(&out->jw, type, HD_S(""));
    hd_jw_object_end(&out->jw);
    end_event(out);
    stream_pieces(out, &block, &reply->pace);
    ++*index;
}

static void stream_call(struct hd_mock_out *out, const struct hd_mock_reply *reply,
                        const struct hd_mock_call *call, int64_t *index)
{
    struct block block = {
        .delta = "input_json_delta", .member = "partial_json", .text = call->args, .index = *index};

    if (*index > 0)
        hd_mock_next_piece(out);
    begin_event(out, "content_block_start", *index);
    hd_jw_key(&out->jw, HD_S("content_block"));
    write_call_block(&out->jw, call, false);
    end_event(out);
    stream_pieces(out, &block, &reply->pace);
    ++*index;
}

static void stream_start(struct hd_mock_out *out, const struct hd_mock_seen *seen,
                         const struct hd_mock_reply *reply)
{
    struct hd_jw *jw = &out->jw;

    begin_event(out, "message_start", -1);
    hd_jw_put_object(jw, "message");
    write_message_head(jw, seen);
    hd_jw_put_raw(jw, "content", HD_S("[]"));
    write_stop(jw, HD_S(""));
    write_usage(jw, reply, true, 1);
    hd_jw_object_end(jw);
    end_event(out);
}

static void write_stream(struct hd_mock_out *out, const struct hd_mock_seen *seen,
                         const struct hd_mock_reply *reply)
{
    int64_t index = 0;

    stream_start(out, seen, reply);
    stream_text(out, reply, "thinking", reply->reasoning, &index);
    stream_text(out, reply, "text", reply->content, &index);
    for (size_t i = 0; i < reply->call_count; i++)
        stream_call(out, reply, &reply->calls[i], &index);
    begin_event(out, "message_delta", -1);
    hd_jw_put_object(&out->jw, "delta");
    write_stop(&out->jw, stop_reason(reply));
    hd_jw_object_end(&out->jw);
    write_usage(&out->jw, reply, false, reply->output_tokens);
    end_event(out);
    begin_event(out, "message_stop", -1);
    end_event(out);
}

void hd_mock_anthropic(struct hd_mock_out *out, const struct hd_mock_seen *seen,
                       const struct hd_mock_reply *reply)
{
    if (seen->is_stream)
        write_stream(out, seen, reply);
    else
        write_whole(&out->jw, seen, reply);
}
