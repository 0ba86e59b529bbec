/* Google's Gemini API: generateContent and streamGenerateContent. */
#include "mock/mock_internal.h"

static void write_text(struct hd_jw *jw, struct hd_slice text, bool is_thought)
{
    hd_jw_object(jw);
    hd_jw_put_string(jw, "text", text);
    if (is_thought)
        hd_jw_put_bool(jw, "thought", true);
    hd_jw_object_end(jw);
}

static void write_calls(struct hd_jw *jw, const struct hd_mock_reply *reply)
{
    for (size_t i = 0; i < reply->call_count; i++) {
        hd_jw_object(jw);
        hd_jw_put_object(jw, "functionCall");
        hd_jw_put_string(jw, "name", reply->calls[i].name);
        hd_jw_key(jw, HD_S("args"));
        hd_mock_args(jw, &reply->calls[i]);
        hd_jw_object_end(jw);
        hd_jw_object_end(jw);
    }
}

static void begin_parts(struct hd_jw *jw)
{
    hd_jw_object(jw);
    hd_jw_put_array(jw, "candidates");
    hd_jw_object(jw);
    hd_jw_put_object(jw, "content");
    hd_jw_put_string(jw, "role", HD_S("model"));
    hd_jw_put_array(jw, "parts");
}

/* `reply` is NULL when more parts follow. */
static void end_parts(struct hd_jw *jw, const struct hd_mock_seen *seen,
                      const struct hd_mock_reply *reply)
{
    hd_jw_array_end(jw);
    hd_jw_object_end(jw);
    if (reply)
        hd_jw_put_string(jw, "finishReason",
                         reply->finish_reason.len > 0 ? reply->finish_reason : HD_S("STOP"));
    hd_jw_put_int(jw, "index", 0);
    hd_jw_object_end(jw);
    hd_jw_array_end(jw);
    if (reply) {
        hd_jw_put_object(jw, "usageMetadata");
        hd_jw_put_int(jw, "promptTokenCount", reply->input_tokens);
        hd_jw_put_int(jw, "candidatesTokenCount", reply->output_tokens);
        hd_jw_put_int(jw, "totalTokenCount", reply->input_tokens + reply->output_tokens);
        hd_jw_object_end(jw);
    }
    hd_jw_put_string(jw, "modelVersion", seen->model);
    hd_jw_object_end(jw);
}

static void stream_text(struct hd_mock_out *out, const struct hd_mock_seen *seen,
                        const struct hd_mock_reply *reply, struct hd_slice text, bool is_thought)
{
    struct hd_mock_cutter cutter;
    struct hd_slice piece;

    hd_mock_cutter_init(&cutter, text, &reply->pace);
    while (hd_mock_cut_next(&cutter, &piece)) {
        hd_mock_next_piece(out);
        hd_mock_event(out, HD_S(""));
        begin_parts(&out->jw);
        write_text(&out->jw, piece, is_thought);
        end_parts(&out->jw, seen, NULL);
        hd_mock_event_end(out);
    }
}

static void write_stream(struct hd_mock_out *out, const struct hd_mock_seen *seen,
                         const struct hd_mock_reply *reply)
{
    stream_text(out, seen, reply, reply->reasoning, true);
    stream_text(out, seen, reply, reply->content, false);
    if (reply->call_count > 0)
        hd_mock_next_piece(out);
    hd_mock_event(out, HD_S(""));
    begin_parts(&out->jw);
    if (reply->call_count > 0)
        write_calls(&out->jw, reply);
    else
        write_text(&out->jw, HD_S(""), false);
    end_parts(&out->jw, seen, reply);
    hd_mock_event_end(out);
}

void hd_mock_gemini(struct hd_mock_out *out, const struct hd_mock_seen *seen,
                    const struct hd_mock_reply *reply)
{
    if (seen->is_stream) {
        write_stream(out, seen, reply);
        return;
    }
    begin_parts(&out->jw);
    if (reply->reasoning.len > 0)
        write_text(&out->jw, reply->reasoning, true);
    if (reply->content.len > 0 || reply->call_count == 0)
        write_text(&out->jw, reply->content, false);
    write_calls(&out->jw, reply);
    end_parts(&out->jw, seen, reply);
}
