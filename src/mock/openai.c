/* OpenAI's Chat Completions API. */
#include <stdio.h>

#include "base/clock.h"
#include "base/uuid.h"
#include "mock/mock_internal.h"

#define US_PER_S 1000000

struct openai_writer {
    struct hd_mock_out *out;
    const struct hd_mock_seen *seen;
    const struct hd_mock_reply *reply;
    char id[HD_UUID_SIZE + 16];
    int64_t created;
};

static struct hd_slice finish_reason(const struct hd_mock_reply *reply)
{
    if (reply->finish_reason.len > 0)
        return reply->finish_reason;
    return reply->call_count > 0 ? HD_S("tool_calls") : HD_S("stop");
}

static void write_usage(struct hd_jw *jw, const struct hd_mock_reply *reply)
{
    hd_jw_put_object(jw, "usage");
    hd_jw_put_int(jw, "prompt_tokens", reply->input_tokens);
    hd_jw_put_int(jw, "completion_tokens", reply->output_tokens);
    hd_jw_put_int(jw, "total_tokens", reply->input_tokens + reply->output_tokens);
    hd_jw_object_end(jw);
}

static void write_completion_head(struct openai_writer *w, const char *object)
{
    struct hd_jw *jw = &w->out->jw;

    hd_jw_object(jw);
    hd_jw_put_string(jw, "id", hd_slice_cstr(w->id));
    hd_jw_put_string(jw, "object", hd_slice_cstr(object));
    hd_jw_put_int(jw, "created", w->created);
    hd_jw_put_string(jw, "model", w->seen->model);
}

/* ---- whole responses -------------------------------------------------- */

static void write_call(struct hd_jw *jw, const struct hd_mock_call *call)
{
    hd_jw_object(jw);
    hd_jw_put_string(jw, "id", call->id);
    hd_jw_put_string(jw, "type", HD_S("function"));
    hd_jw_put_object(jw, "function");
    hd_jw_put_string(jw, "name", call->name);
    hd_jw_put_string(jw, "arguments", call->args);
    hd_jw_object_end(jw);
    hd_jw_object_end(jw);
}

static void write_message(struct hd_jw *jw, const struct hd_mock_reply *reply)
{
    hd_jw_put_object(jw, "message");
    hd_jw_put_string(jw, "role", HD_S("assistant"));
    hd_jw_key(jw, HD_S("content"));
    if (reply->content.len > 0 || reply->call_count == 0)
        hd_jw_string(jw, reply->content);
    else
        hd_jw_null(jw);
    if (reply->reasoning.len > 0)
        hd_jw_put_string(jw, "reasoning_content", reply->reasoning);
    if (reply->call_count > 0) {
        hd_jw_put_array(jw, "tool_calls");
        for (size_t i = 0; i < reply->call_count; i++)
            write_call(jw, &reply->calls[i]);
        hd_jw_array_end(jw);
    }
    hd_jw_object_end(jw);
}

static void write_whole(struct openai_writer *w)
{
    struct hd_jw *jw = &w->out->jw;

    write_completion_head(w, "chat.completion");
    hd_jw_put_array(jw, "choices");
    hd_jw_object(jw);
    hd_jw_put_int(jw, "index", 0);
    write_message(jw, w->reply);
    hd_jw_put_string(jw, "finish_reason", finish_reason(w->reply));
    hd_jw_object_end(jw);
    hd_jw_array_end(jw);
    write_usage(jw, w->reply);
    hd_jw_object_end(jw);
}

/* ---- streams ---------------------------------------------------------- */

static void begin_delta(struct openai_writer *w)
{
    struct hd_jw *jw = &w->out->jw;

    hd_mock_event(w->out, HD_S(""));
    write_completion_head(w, "chat.completion.chunk");
    hd_jw_put_array(jw, "choices");
    hd_jw_object(jw);
    hd_jw_put_int(jw, "index", 0);
    hd_jw_put_object(jw, "delta");
}

static void end_delta(struct openai_writer *w, struct hd_slice reason)
{
    struct hd_jw *jw = &w->out->jw;

    hd_jw_object_end(jw);
    hd_jw_key(jw, HD_S("finish_reason"));
    if (reason.len > 0)
        hd_jw_string(jw, reason);
    else
        hd_jw_null(jw);
    hd_jw_object_end(jw);
    hd_jw_array_end(jw);
    hd_jw_object_end(jw);
    hd_mock_event_end(w->out);
}

static void stream_text(struct openai_writer *w, const char *member, struct hd_slice text,
                        bool *is_first)
{
    struct hd_mock_cutter cutter;
    struct hd_slice piece;

    hd_mock_cutter_init(&cutter, text, &w->reply->pace);
    while (hd_mock_cut_next(&cutter, &piece)) {
        /* The head of the stream goes with the first piece. */
        if (!*is_first)
            hd_mock_next_piece(w->out);
        *is_first = false;
        begin_delta(w);
        hd_jw_put_string(&w->out->jw, member, piece);
        end_delta(w, HD_S(""));
    }
}

static void begin_call(struct openai_writer *w, size_t index)
{
    struct hd_jw *jw = &w->out->jw;

    begin_delta(w);
    hd_jw_put_array(jw, "tool_calls");
    hd_jw_object(jw);
    hd_jw_put_int(jw, "index", (int64_t)index);
}

static void end_call(struct openai_writer *w, struct hd_slice arguments)
{
    struct hd_jw *jw = &w->out->jw;

    hd_jw_put_string(jw, "arguments", arguments);
    hd_jw_object_end(jw); /* function */
    hd_jw_object_end(jw);
    hd_jw_array_end(jw);
    end_delta(w, HD_S(""));
}

/* Sends the name first, then the arguments in pieces. */
static void stream_call(struct openai_writer *w, size_t index)
{
    const struct hd_mock_call *call = &w->reply->calls[index];
    struct hd_jw *jw = &w->out->jw;
    struct hd_mock_cutter cutter;
    struct hd_slice piece;

    hd_mock_next_piece(w->out);
    begin_call(w, index);
    hd_jw_put_string(jw, "id", call->id);
    hd_jw_put_string(jw, "type", HD_S("function"));
    hd_jw_put_object(jw, "function");
    hd_jw_put_string(jw, "name", call->name);
    end_call(w, HD_S(""));
    hd_mock_cutter_init(&cutter, call->args, &w->reply->pace);
    while (hd_mock_cut_next(&cutter, &piece)) {
        begin_call(w, index);
        hd_jw_put_object(jw, "function");
        end_call(w, piece);
        hd_mock_next_piece(w->out);
    }
}

static void stream_usage(struct openai_writer *w)
{
    hd_mock_event(w->out, HD_S(""));
    write_completion_head(w, "chat.completion.chunk");
    hd_jw_put_raw(&w->out->jw, "choices", HD_S("[]"));
    write_usage(&w->out->jw, w->reply);
    hd_jw_object_end(&w->out->jw);
    hd_mock_event_end(w->out);
}

static void write_stream(struct openai_writer *w)
{
    bool is_first = true;

    begin_delta(w);
    hd_jw_put_string(&w->out->jw, "role", HD_S("assistant"));
    hd_jw_put_string(&w->out->jw, "content", HD_S(""));
    end_delta(w, HD_S(""));
    stream_text(w, "reasoning_content", w->reply->reasoning, &is_first);
    stream_text(w, "content", w->reply->content, &is_first);
    for (size_t i = 0; i < w->reply->call_count; i++)
        stream_call(w, i);
    begin_delta(w);
    end_delta(w, finish_reason(w->reply));
    if (w->seen->wants_usage)
        stream_usage(w);
    hd_mock_raw(w->out, HD_S("data: [DONE]\n\n"));
}

void hd_mock_openai(struct hd_mock_out *out, const struct hd_mock_seen *seen,
                    const struct hd_mock_reply *reply)
{
    struct openai_writer w = {.out = out, .seen = seen, .reply = reply};
    char uuid[HD_UUID_SIZE];

    hd_uuid_v4(uuid);
    (void)snprintf(w.id, sizeof(w.id), "chatcmpl-%s", uuid);
    w.created = hd_clock_now_us() / US_PER_S;
    if (seen->is_stream)
        write_stream(&w);
    else
        write_whole(&w);
}
