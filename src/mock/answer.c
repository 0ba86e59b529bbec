/* Responses: pieces, errors, and the choice of API format. */
#include "base/alloc.h"
#include "base/utf8.h"
#include "base/vec.h"
#include "mock/mock_internal.h"

/* ---- the writer ------------------------------------------------------- */

static void keep_first_error(struct hd_mock_out *out, int err)
{
    if (!out->err)
        out->err = err;
}

static int add_end(struct hd_mock_out *out)
{
    struct hd_mock_answer *answer = out->answer;

    int err = hd_array_grow(answer->ends, answer->count, out->cap);

    if (!err)
        answer->ends[answer->count++] = answer->text.len;
    return err;
}

void hd_mock_next_piece(struct hd_mock_out *out)
{
    const struct hd_mock_answer *answer = out->answer;
    size_t before = answer->count > 0 ? answer->ends[answer->count - 1] : 0;

    if (answer->text.len > before)
        keep_first_error(out, add_end(out));
}

void hd_mock_raw(struct hd_mock_out *out, struct hd_slice text)
{
    keep_first_error(out, hd_buf_append_slice(&out->answer->text, text));
}

void hd_mock_event(struct hd_mock_out *out, struct hd_slice name)
{
    if (name.len > 0) {
        hd_mock_raw(out, HD_S("event: "));
        hd_mock_raw(out, name);
        hd_mock_raw(out, HD_S("\n"));
    }
    hd_mock_raw(out, HD_S("data: "));
    hd_jw_init(&out->jw, &out->answer->text);
}

void hd_mock_event_end(struct hd_mock_out *out)
{
    keep_first_error(out, hd_jw_finish(&out->jw));
    hd_mock_raw(out, HD_S("\n\n"));
}

void hd_mock_args(struct hd_jw *jw, const struct hd_mock_call *call)
{
    struct hd_json json = {0};
    int err = hd_json_parse(&json, call->args, NULL);

    if (!err && hd_json_is_object(hd_json_root(&json)))
        hd_jw_val(jw, hd_json_root(&json));
    else
        hd_jw_raw(jw, HD_S("{}"));
    if (err == HD_ENOMEM && !jw->err)
        jw->err = err;
    hd_json_fini(&json);
}

/* ---- pieces of a text ------------------------------------------------- */

static size_t char_bytes(struct hd_slice text)
{
    size_t len = hd_utf8_char(text.ptr, text.ptr + text.len);

    return len > 0 ? len : 1;
}

static size_t count_characters(struct hd_slice text)
{
    size_t count = 0;

    for (size_t pos = 0; pos < text.len; count++)
        pos += char_bytes(hd_slice(text.ptr + pos, text.len - pos));
    return count;
}

void hd_mock_cutter_init(struct hd_mock_cutter *cutter, struct hd_slice text,
                         const struct hd_mock_pace *pace)
{
    *cutter = (struct hd_mock_cutter){.rest = text, .pace = *pace};
    if (pace->cut == HD_CUT_CHUNKS)
        cutter->characters = count_characters(text);
}

/* A word with the white space after it. */
static size_t word_length(struct hd_slice text)
{
    size_t len = 0;

    while (len < text.len && text.ptr[len] != ' ' && text.ptr[len] != '\n')
        len++;
    while (len < text.len && (text.ptr[len] == ' ' || text.ptr[len] == '\n'))
        len++;
    return len;
}

static size_t characters_length(struct hd_slice text, size_t count)
{
    size_t len = 0;

    while (count-- > 0 && len < text.len)
        len += char_bytes(hd_slice(text.ptr + len, text.len - len));
    return len;
}

/* After piece n, n/size of all characters have been sent. */
static size_t chunk_length(struct hd_mock_cutter *cutter)
{
    size_t wanted = (size_t)cutter->pace.size, due, count;

    if (wanted > cutter->characters)
        wanted = cutter->characters;
    due = (cutter->pieces + 1) * cutter->characters / (wanted > 0 ? wanted : 1);
    count = due - cutter->done;
    cutter->done = due;
    return characters_length(cutter->rest, count);
}

bool hd_mock_cut_next(struct hd_mock_cutter *cutter, struct hd_slice *piece)
{
    size_t len = cutter->rest.len;

    if (len == 0)
        return false;
    if (cutter->pace.cut == HD_CUT_WORDS)
        len = word_length(cutter->rest);
    else if (cutter->pace.cut == HD_CUT_CHARACTERS)
        len = characters_length(cutter->rest, (size_t)cutter->pace.size);
    else if (cutter->pace.cut == HD_CUT_CHUNKS)
        len = chunk_length(cutter);
    *piece = hd_slice(cutter->rest.ptr, len);
    cutter->rest = hd_slice(cutter->rest.ptr + len, cutter->rest.len - len);
    cutter->pieces++;
    return true;
}

/* ---- responses -------------------------------------------------------- */

static void begin_answer(struct hd_mock_out *out, struct hd_mock_answer *answer)
{
    *answer = (struct hd_mock_answer){.status = 200, .rule = -1, .retry_after = -1};
    hd_buf_init(&answer->text, HD_MOCK_MAX_ANSWER);
    *out = (struct hd_mock_out){.answer = answer};
    hd_jw_init(&out->jw, &answer->text);
}

static int end_answer(struct hd_mock_out *out)
{
    if (!out->answer->is_stream)
        keep_first_error(out, hd_jw_finish(&out->jw));
    hd_mock_next_piece(out);
    if (out->err)
        hd_mock_answer_fini(out->answer);
    return out->err;
}

void hd_mock_answer_fini(struct hd_mock_answer *answer)
{
    hd_buf_fini(&answer->text);
    hd_free(answer->ends);
    answer->ends = NULL;
}

static const char *error_type(int status)
{
    static const struct {
        int status;
        const char *type;
    } types[] = {
        {400, "invalid_request_error"}, {401, "authentication_error"}, {403, "permission_error"},
        {404, "not_found_error"},       {429, "rate_limit_error"},     {529, "overloaded_error"},
    };

    for (size_t i = 0; i < HD_COUNT(types); i++) {
        if (types[i].status == status)
            return types[i].type;
    }
    return status < 500 ? "invalid_request_error" : "server_error";
}

static void write_error(struct hd_jw *jw, enum hd_mock_form form, int status, struct hd_slice type,
                        struct hd_slice text)
{
    hd_jw_object(jw);
    if (form == HD_MOCK_ANTHROPIC)
        hd_jw_put_string(jw, "type", HD_S("error"));
    hd_jw_put_object(jw, "error");
    if (form == HD_MOCK_GEMINI)
        hd_jw_put_int(jw, "code", status);
    hd_jw_put_string(jw, "message", text);
    hd_jw_put_string(jw, form == HD_MOCK_GEMINI ? "status" : "type", type);
    if (form == HD_MOCK_OPENAI)
        hd_jw_put_null(jw, "code");
    hd_jw_object_end(jw);
    hd_jw_object_end(jw);
}

int hd_mock_refuse(enum hd_mock_form form, int status, const char *text,
                   struct hd_mock_answer *answer)
{
    struct hd_mock_out out;

    begin_answer(&out, answer);
    answer->status = status;
    write_error(&out.jw, form, status, hd_slice_cstr(error_type(status)), hd_slice_cstr(text));
    return end_answer(&out);
}

static void write_rule_error(struct hd_mock_out *out, const struct hd_mock_seen *seen,
                             const struct hd_mock_rule *rule)
{
    int status = (int)rule->status;
    struct hd_slice type = hd_json_string(rule->error_type), text;

    text = rule->error_message ? hd_json_string(rule->error_message)
                               : HD_S("the script says that this fails");
    if (type.len == 0)
        type = hd_slice_cstr(error_type(status));
    out->answer->status = status;
    out->answer->retry_after = rule->retry_after;
    write_error(&out->jw, seen->form, status, type, text);
}

static int write_reply(const struct hd_mock *mock, const struct hd_mock_seen *seen,
                       const struct hd_mock_reply *reply, struct hd_mock_answer *answer)
{
    static void (*const forms[])(struct hd_mock_out * out, const struct hd_mock_seen *seen,
                                 const struct hd_mock_reply *reply) = {
        [HD_MOCK_OPENAI] = hd_mock_openai,
        [HD_MOCK_ANTHROPIC] = hd_mock_anthropic,
        [HD_MOCK_GEMINI] = hd_mock_gemini,
    };
    struct hd_mock_out out;

    begin_answer(&out, answer);
    answer->rule = reply->rule - mock->rules;
    answer->latency_ms = reply->pace.latency_ms;
    answer->delay_ms = reply->pace.delay_ms;
    answer->hangs = reply->rule->hangs;
    if (reply->rule->status != 200) {
        write_rule_error(&out, seen, reply->rule);
        return end_answer(&out);
    }
    answer->is_stream = seen->is_stream;
    answer->cut = (size_t)reply->rule->cut_after;
    forms[seen->form](&out, seen, reply);
    return end_answer(&out);
}

int hd_mock_chat(struct hd_mock *mock, const struct hd_mock_ask *ask, struct hd_mock_answer *out)
{
    struct hd_mock_seen seen;
    struct hd_mock_reply reply;
    struct heddle_error fault = {0};
    int err = hd_mock_see(&seen, ask, &fault);

    if (!err)
        err = hd_mock_pick(mock, &seen, &reply);
    if (!err)
        err = write_reply(mock, &seen, &reply, out);
    else if (err == HD_EINVAL)
        err = hd_mock_refuse(ask->form, 400, fault.text, out);
    else if (err == HD_ENOTFOUND)
        err = hd_mock_refuse(ask->form, 404, "no rule of the script matches this request", out);
    hd_mock_seen_fini(&seen);
    return err;
}

/* ---- models ----------------------------------------------------------- */

static void write_model(struct hd_jw *jw, struct hd_slice id)
{
    hd_jw_object(jw);
    hd_jw_put_string(jw, "id", id);
    hd_jw_put_string(jw, "object", HD_S("model"));
    hd_jw_put_int(jw, "created", 0);
    hd_jw_put_string(jw, "owned_by", HD_S("heddle"));
    hd_jw_object_end(jw);
}

int hd_mock_models(const struct hd_mock *mock, struct hd_mock_answer *answer)
{
    struct hd_json_iter it = hd_json_iter(mock->models);
    struct hd_mock_out out;

    begin_answer(&out, answer);
    hd_jw_object(&out.jw);
    hd_jw_put_string(&out.jw, "object", HD_S("list"));
    hd_jw_put_array(&out.jw, "data");
    if (!hd_json_is_array(mock->models))
        write_model(&out.jw, mock->models ? hd_json_string(mock->models) : HD_S("mock"));
    while (hd_json_next(&it))
        write_model(&out.jw, hd_json_string(it.val));
    hd_jw_array_end(&out.jw);
    hd_jw_object_end(&out.jw);
    return end_answer(&out);
}
