/* Assembles model responses from what providers send. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "agent/model/provider.h"
#include "base/alloc.h"
#include "base/utf8.h"
#include "base/uuid.h"
#include "base/vec.h"

#define MAX_NAME 1024
#define MAX_ERROR 2000
#define MAX_COUNT INT64_C(1000000000000) /* sums of counts cannot overflow */
/* The key of LangChain's package for Gemini, so that threads are interchangeable. */
#define SIGNATURES "__gemini_function_call_thought_signatures__"

void hd_completion_init(struct hd_completion *answer)
{
    *answer = (struct hd_completion){0};
    hd_buf_init(&answer->reasoning, HD_COMPLETION_MAX_BYTES);
    hd_buf_init(&answer->model, MAX_NAME);
    hd_buf_init(&answer->finish, MAX_NAME);
    hd_buf_init(&answer->error, (size_t)4 * MAX_ERROR);
    answer->usage.cache_read = answer->usage.cache_creation = answer->usage.reasoning = -1;
}

void hd_completion_fini(struct hd_completion *answer)
{
    for (size_t i = 0; i < answer->part_count; i++) {
        hd_buf_fini(&answer->parts[i].text);
        hd_buf_fini(&answer->parts[i].signature);
    }
    for (size_t i = 0; i < answer->call_count; i++) {
        hd_buf_fini(&answer->calls[i].id);
        hd_buf_fini(&answer->calls[i].name);
        hd_buf_fini(&answer->calls[i].args);
        hd_buf_fini(&answer->calls[i].signature);
    }
    hd_free(answer->parts);
    hd_free(answer->calls);
    hd_buf_fini(&answer->reasoning);
    hd_buf_fini(&answer->model);
    hd_buf_fini(&answer->finish);
    hd_buf_fini(&answer->error);
    *answer = (struct hd_completion){0};
}

/* ---- filling ---------------------------------------------------------- */

/* The part for text of this sort. */
static int part_for(struct hd_completion *answer, bool is_thinking, bool is_redacted,
                    struct hd_completion_part **out)
{
    struct hd_completion_part *last =
        answer->part_count ? &answer->parts[answer->part_count - 1] : NULL;
    int err;

    /* Consecutive texts are one: a response without thinking has one part. */
    if (last && last->is_thinking == is_thinking && last->is_redacted == is_redacted &&
        (!last->is_ended || !is_thinking)) {
        *out = last;
        return 0;
    }
    err = answer->part_count < HD_COMPLETION_MAX_PARTS
              ? hd_array_grow(answer->parts, answer->part_count, answer->part_cap)
              : HD_ELIMIT;
    if (err)
        return err;
    last = &answer->parts[answer->part_count++];
    *last = (struct hd_completion_part){.is_thinking = is_thinking, .is_redacted = is_redacted};
    hd_buf_init(&last->text, HD_COMPLETION_MAX_BYTES);
    hd_buf_init(&last->signature, HD_COMPLETION_MAX_BYTES);
    *out = last;
    return 0;
}

/* One limit applies to the whole response. */
static int append_answer_text(struct hd_completion *answer, struct hd_buf *to, struct hd_slice text)
{
    if (text.len > HD_COMPLETION_MAX_BYTES - answer->size)
        return HD_ELIMIT;
    answer->size += text.len;
    return hd_buf_append_slice(to, text);
}

static int add_text(struct hd_completion *answer, struct hd_slice text, bool is_thinking,
                    bool is_redacted)
{
    struct hd_completion_part *part;
    int err;

    answer->has_begun = true;
    if (text.len == 0)
        return 0;
    err = part_for(answer, is_thinking, is_redacted, &part);
    return err ? err : append_answer_text(answer, &part->text, text);
}

int hd_completion_text(struct hd_completion *answer, struct hd_slice text)
{
    return add_text(answer, text, false, false);
}

int hd_completion_thinking(struct hd_completion *answer, struct hd_slice text, bool is_redacted)
{
    return add_text(answer, text, true, is_redacted);
}

int hd_completion_signature(struct hd_completion *answer, struct hd_slice signature)
{
    struct hd_completion_part *part;
    int err = part_for(answer, true, false, &part);

    return err ? err : append_answer_text(answer, &part->signature, signature);
}

void hd_completion_end_part(struct hd_completion *answer)
{
    if (answer->part_count)
        answer->parts[answer->part_count - 1].is_ended = true;
}

int hd_completion_reasoning(struct hd_completion *answer, struct hd_slice text)
{
    answer->has_begun = true;
    return append_answer_text(answer, &answer->reasoning, text);
}

static struct hd_completion_call *find_call(const struct hd_completion *answer, int64_t index,
                                            struct hd_slice id)
{
    struct hd_completion_call *last =
        answer->call_count ? &answer->calls[answer->call_count - 1] : NULL;

    for (size_t i = 0; i < answer->call_count && index >= 0; i++) {
        if (answer->calls[i].index == index)
            return &answer->calls[i];
    }
    if (index >= 0 || !last)
        return NULL;
    return id.len == 0 || hd_slice_eq(id, hd_buf_slice(&last->id)) ? last : NULL;
}

/* Without a provider's id it gets one: results are matched by it. */
static int name_call(struct hd_completion_call *call, struct hd_slice id)
{
    char uuid[HD_UUID_SIZE];

    if (id.len > 0)
        return hd_buf_append_slice(&call->id, id);
    hd_uuid_v7(uuid);
    return hd_buf_printf(&call->id, "call_%s", uuid);
}

static int add_call(struct hd_completion *answer, int64_t index, struct hd_slice id,
                    struct hd_completion_call **out)
{
    struct hd_completion_call *call;
    int err = answer->call_count < HD_COMPLETION_MAX_PARTS
                  ? hd_array_grow(answer->calls, answer->call_count, answer->call_cap)
                  : HD_ELIMIT;

    if (err)
        return err;
    call = &answer->calls[answer->call_count++];
    *call = (struct hd_completion_call){.index = index};
    hd_buf_init(&call->id, MAX_NAME);
    hd_buf_init(&call->name, MAX_NAME);
    hd_buf_init(&call->args, HD_COMPLETION_MAX_BYTES);
    hd_buf_init(&call->signature, HD_COMPLETION_MAX_BYTES);
    *out = call;
    return name_call(call, id);
}

int hd_completion_call(struct hd_completion *answer, int64_t index, struct hd_slice id,
                       struct hd_slice name, struct hd_slice args)
{
    struct hd_completion_call *call = find_call(answer, index, id);
    int err = 0;

    answer->has_begun = true;
    if (!call)
        err = add_call(answer, index, id, &call);
    if (!err && call->name.len == 0)
        err = hd_buf_append_slice(&call->name, name);
    return err ? err : append_answer_text(answer, &call->args, args);
}

int hd_completion_sign_call(struct hd_completion *answer, struct hd_slice signature)
{
    return append_answer_text(answer, &answer->calls[answer->call_count - 1].signature, signature);
}

int hd_completion_set(struct hd_buf *what, struct hd_slice text)
{
    hd_buf_reset(what);
    if (text.len > MAX_NAME)
        text.len = hd_utf8_cut(text.ptr, MAX_NAME);
    return hd_buf_append_slice(what, text);
}

int hd_completion_fail(struct hd_completion *answer, const char *type, const char *fmt, ...)
{
    char text[MAX_ERROR + 1];
    va_list args;
    int len;

    if (answer->error_type)
        return HD_EINVAL;
    va_start(args, fmt);
    len = vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    if (len > MAX_ERROR)
        text[hd_utf8_cut(text, MAX_ERROR)] = '\0';
    answer->error_type = type;
    if (hd_buf_append(&answer->error, text, strlen(text) + 1))
        return HD_ENOMEM;
    return HD_EINVAL;
}

bool hd_completion_is_empty(const struct hd_completion *answer)
{
    for (size_t i = 0; i < answer->part_count; i++) {
        if (!answer->parts[i].is_thinking && answer->parts[i].text.len > 0)
            return false;
    }
    return answer->call_count == 0;
}

/* ---- reading JSON ----------------------------------------------------- */

int hd_completion_read(struct hd_completion *answer, struct hd_slice text,
                       int (*read)(struct hd_completion *answer, hd_json_val root))
{
    struct heddle_error fault = {0};
    struct hd_json json;
    int err = hd_json_parse(&json, text, &fault);

    if (err == HD_ENOMEM)
        return err;
    if (err)
        return hd_completion_fail(answer, "APIResponseValidationError",
                                  "the model's server sent something that is not JSON: %s",
                                  fault.text);
    if (hd_json_is_object(hd_json_root(&json)))
        err = read(answer, hd_json_root(&json));
    else
        err = hd_completion_fail(answer, "APIResponseValidationError",
                                 "the model's server sent JSON that is not an object");
    hd_json_fini(&json);
    return err;
}

int64_t hd_count_of(hd_json_val object, const char *key, int64_t otherwise)
{
    int64_t count = otherwise;

    if (!hd_json_whole(hd_json_get(object, hd_slice_cstr(key)), &count) || count < 0 ||
        count > MAX_COUNT)
        return otherwise;
    return count;
}

struct hd_slice hd_text_of(hd_json_val object, const char *key)
{
    return hd_json_string(hd_json_get(object, hd_slice_cstr(key)));
}

int hd_completion_check_error(struct hd_completion *answer, hd_json_val root)
{
    hd_json_val error = hd_json_get(root, HD_S("error"));
    struct hd_slice text = hd_json_string(error), type = {"", 0};

    if (!error || hd_json_is_null(error))
        return 0;
    if (hd_json_is_object(error)) {
        text = hd_json_string(hd_json_get(error, HD_S("message")));
        type = hd_json_string(hd_json_get(error, HD_S("type")));
    }
    if (text.len == 0)
        text = HD_S("no reason was given");
    return hd_completion_fail(
        answer, "APIError", "the model's server ended the response: %.*s%s%.*s%s",
        (int)(text.len < 1500 ? text.len : 1500), text.ptr, type.len ? " (" : "",
        (int)(type.len < 100 ? type.len : 100), type.ptr, type.len ? ")" : "");
}

/* ---- pieces ----------------------------------------------------------- */

/* Whether it has more than plain text: then contents are lists of blocks. */
static bool has_blocks(const struct hd_completion *answer)
{
    for (size_t i = 0; i < answer->part_count; i++) {
        if (answer->parts[i].is_thinking)
            return true;
    }
    return false;
}

/* `index` SIZE_MAX: a block of the whole message, without an index. */
static struct hd_val *make_block(const struct hd_completion_part *part, struct hd_slice text,
                                 struct hd_slice signature, size_t index)
{
    struct hd_val *block = hd_val_object();
    const char *type = part->is_redacted   ? "redacted_thinking"
                       : part->is_thinking ? "thinking"
                                           : "text";
    const char *key = part->is_redacted ? "data" : type;

    block = hd_val_with(block, HD_S("type"), hd_val_cstr(type));
    if (text.len > 0 || signature.len == 0 || index == SIZE_MAX)
        block = hd_val_with(block, hd_slice_cstr(key), hd_val_string(text));
    if (signature.len > 0)
        block = hd_val_with(block, HD_S("signature"), hd_val_string(signature));
    if (index != SIZE_MAX)
        block = hd_val_with(block, HD_S("index"), hd_val_int((int64_t)index));
    return block;
}

static struct hd_slice rest(const struct hd_buf *buf, size_t emitted)
{
    return buf->len > emitted ? hd_slice(buf->ptr + emitted, buf->len - emitted) : hd_slice("", 0);
}

/* has_more: there is content not yet emitted. */
static struct hd_val *new_content(struct hd_completion *answer, bool *has_more)
{
    struct hd_val *list = has_blocks(answer) ? hd_val_list() : NULL, *text = hd_val_cstr("");
    bool is_list = list != NULL;

    for (size_t i = 0; i < answer->part_count; i++) {
        struct hd_completion_part *part = &answer->parts[i];
        struct hd_slice more = rest(&part->text, part->emitted);
        struct hd_slice signature = rest(&part->signature, part->signature_emitted);

        if (more.len == 0 && signature.len == 0)
            continue;
        *has_more = true;
        part->emitted = part->text.len;
        part->signature_emitted = part->signature.len;
        if (is_list) {
            list = hd_val_append(list, make_block(part, more, signature, i));
            continue;
        }
        hd_val_unref(text);
        text = hd_val_string(more); /* plain text is one part */
    }
    if (!is_list)
        return text;
    hd_val_unref(text);
    return list;
}

static struct hd_val *text_or_null(struct hd_slice text)
{
    return text.len > 0 ? hd_val_string(text) : hd_val_null();
}

static struct hd_val *call_piece(struct hd_completion_call *call, size_t index)
{
    struct hd_val *piece = hd_val_object();
    bool is_first = !call->is_emitted;

    piece = hd_val_with(piece, HD_S("name"),
                        is_first ? text_or_null(hd_buf_slice(&call->name)) : hd_val_null());
    piece = hd_val_with(piece, HD_S("args"), hd_val_string(rest(&call->args, call->emitted)));
    piece = hd_val_with(piece, HD_S("id"),
                        is_first ? text_or_null(hd_buf_slice(&call->id)) : hd_val_null());
    piece = hd_val_with(piece, HD_S("index"), hd_val_int((int64_t)index));
    call->is_emitted = true;
    call->emitted = call->args.len;
    return hd_val_with(piece, HD_S("type"), hd_val_cstr("tool_call_chunk"));
}

static struct hd_val *make_call(const struct hd_completion_call *call, struct hd_val *args)
{
    struct hd_val *made = hd_val_object();

    made = hd_val_with(made, HD_S("name"), hd_val_string(hd_buf_slice(&call->name)));
    made = hd_val_with(made, HD_S("args"), args);
    made = hd_val_with(made, HD_S("id"), hd_val_string(hd_buf_slice(&call->id)));
    return hd_val_with(made, HD_S("type"), hd_val_cstr("tool_call"));
}

/* HD_EINVAL: not a JSON object. */
static int parse_call_args(const struct hd_completion_call *call, struct hd_val **out)
{
    struct hd_slice text = hd_buf_slice(&call->args);
    int err;

    if (text.len == 0) {
        *out = hd_val_object();
        return *out ? 0 : HD_ENOMEM;
    }
    err = hd_val_parse_json(text, out, NULL);
    if (!err && !hd_val_is_object(*out)) {
        hd_val_unref(*out);
        err = HD_EINVAL;
    }
    return err == HD_ENOMEM || err == 0 ? err : HD_EINVAL;
}

/* The pieces of calls and, for calls that begin here, the calls as far as received. */
static int new_calls(struct hd_completion *answer, struct hd_val **chunk, bool *has_more)
{
    struct hd_val *pieces = hd_val_list(), *calls = hd_val_list();

    for (size_t i = 0; i < answer->call_count; i++) {
        struct hd_completion_call *call = &answer->calls[i];
        struct hd_val *args = NULL;

        if (call->is_emitted && call->emitted == call->args.len)
            continue;
        *has_more = true;
        if (!call->is_emitted && parse_call_args(call, &args) == HD_EINVAL)
            args = hd_val_object();
        if (!call->is_emitted)
            calls = hd_val_append(calls, make_call(call, args));
        pieces = hd_val_append(pieces, call_piece(call, i));
    }
    if (hd_val_count(calls) > 0)
        *chunk = hd_val_with(*chunk, HD_S("tool_calls"), hd_val_ref(calls));
    if (hd_val_count(pieces) > 0)
        *chunk = hd_val_with(*chunk, HD_S("tool_call_chunks"), hd_val_ref(pieces));
    if (!calls || !pieces) {
        hd_val_unref(*chunk);
        *chunk = NULL;
    }
    hd_val_unref(calls);
    hd_val_unref(pieces);
    return *chunk ? 0 : HD_ENOMEM;
}

int hd_completion_piece(struct hd_completion *answer, const char *id, struct hd_val **out)
{
    bool has_more = false;
    struct hd_val *chunk = hd_val_message("AIMessageChunk", new_content(answer, &has_more), id);
    struct hd_slice thought = rest(&answer->reasoning, answer->reasoning_emitted);
    int err;

    if (thought.len > 0) {
        struct hd_val *extra =
            hd_val_with(hd_val_object(), HD_S("reasoning_content"), hd_val_string(thought));

        has_more = true;
        answer->reasoning_emitted = answer->reasoning.len;
        chunk = hd_val_with(chunk, HD_S("additional_kwargs"), extra);
    }
    err = new_calls(answer, &chunk, &has_more);
    if (!err && !has_more) {
        hd_val_unref(chunk);
        chunk = NULL;
    }
    *out = chunk;
    return err;
}

/* ---- the message ------------------------------------------------------ */

static struct hd_val *make_usage(const struct hd_usage *usage)
{
    struct hd_val *val = hd_val_object(), *in = hd_val_object(), *out = hd_val_object();

    val = hd_val_with(val, HD_S("input_tokens"), hd_val_int(usage->input));
    val = hd_val_with(val, HD_S("output_tokens"), hd_val_int(usage->output));
    val = hd_val_with(val, HD_S("total_tokens"), hd_val_int(usage->total));
    if (usage->cache_creation >= 0)
        in = hd_val_with(in, HD_S("cache_creation"), hd_val_int(usage->cache_creation));
    if (usage->cache_read >= 0)
        in = hd_val_with(in, HD_S("cache_read"), hd_val_int(usage->cache_read));
    if (usage->reasoning >= 0)
        out = hd_val_with(out, HD_S("reasoning"), hd_val_int(usage->reasoning));
    val = hd_val_with(val, HD_S("input_token_details"), in);
    return hd_val_with(val, HD_S("output_token_details"), out);
}

static struct hd_val *make_response_metadata(const struct hd_completion *answer,
                                             const char *provider)
{
    struct hd_val *val = hd_val_object();

    if (answer->model.len > 0)
        val = hd_val_with(val, HD_S("model_name"), hd_val_string(hd_buf_slice(&answer->model)));
    if (answer->finish.len > 0)
        val = hd_val_with(val, HD_S("finish_reason"), hd_val_string(hd_buf_slice(&answer->finish)));
    return hd_val_with(val, HD_S("model_provider"), hd_val_cstr(provider));
}

/* Signatures of calls, by id; NULL with *err 0: none. */
static struct hd_val *make_signatures(const struct hd_completion *answer, int *err)
{
    struct hd_val *val = NULL;

    *err = 0;
    for (size_t i = 0; i < answer->call_count && !*err; i++) {
        const struct hd_completion_call *call = &answer->calls[i];

        if (call->signature.len == 0)
            continue;
        val = hd_val_with(val ? val : hd_val_object(), hd_buf_slice(&call->id),
                          hd_val_string(hd_buf_slice(&call->signature)));
        *err = val ? 0 : HD_ENOMEM;
    }
    return val;
}

static struct hd_val *with_metadata(struct hd_val *message, const struct hd_completion *answer,
                                    const char *provider)
{
    message =
        hd_val_with(message, HD_S("response_metadata"), make_response_metadata(answer, provider));
    if (answer->usage.is_given)
        message = hd_val_with(message, HD_S("usage_metadata"), make_usage(&answer->usage));
    return message;
}

struct hd_val *hd_completion_last(const struct hd_completion *answer, const char *provider,
                                  const char *id)
{
    struct hd_val *content = has_blocks(answer) ? hd_val_list() : hd_val_cstr("");
    struct hd_val *chunk = hd_val_message("AIMessageChunk", content, id);
    int err;
    struct hd_val *signatures = make_signatures(answer, &err);

    if (signatures || err)
        chunk = hd_val_with(chunk, HD_S("additional_kwargs"),
                            hd_val_with(hd_val_object(), HD_S(SIGNATURES), signatures));
    chunk = with_metadata(chunk, answer, provider);
    return hd_val_with(chunk, HD_S("chunk_position"), hd_val_cstr("last"));
}

static struct hd_val *whole_content(const struct hd_completion *answer)
{
    struct hd_val *list;

    if (!has_blocks(answer))
        return hd_val_string(answer->part_count ? hd_buf_slice(&answer->parts[0].text)
                                                : hd_slice("", 0));
    list = hd_val_list();
    for (size_t i = 0; i < answer->part_count; i++) {
        const struct hd_completion_part *part = &answer->parts[i];

        list = hd_val_append(list, make_block(part, hd_buf_slice(&part->text),
                                              hd_buf_slice(&part->signature), SIZE_MAX));
    }
    return list;
}

static struct hd_val *invalid_call(const struct hd_completion_call *call)
{
    struct hd_val *made = hd_val_object();
    const char *error = call->name.len ? "the arguments are not a JSON object" : "it has no name";

    made = hd_val_with(made, HD_S("name"), text_or_null(hd_buf_slice(&call->name)));
    made = hd_val_with(made, HD_S("args"), hd_val_string(hd_buf_slice(&call->args)));
    made = hd_val_with(made, HD_S("id"), hd_val_string(hd_buf_slice(&call->id)));
    made = hd_val_with(made, HD_S("error"), hd_val_cstr(error));
    return hd_val_with(made, HD_S("type"), hd_val_cstr("invalid_tool_call"));
}

static struct hd_val *with_calls(struct hd_val *message, const struct hd_completion *answer)
{
    struct hd_val *valid = hd_val_list(), *invalid = hd_val_list();

    for (size_t i = 0; i < answer->call_count; i++) {
        const struct hd_completion_call *call = &answer->calls[i];
        struct hd_val *args = NULL;
        int err = parse_call_args(call, &args);

        if (!err && call->name.len > 0) {
            valid = hd_val_append(valid, make_call(call, args));
            continue;
        }
        hd_val_unref(args);
        invalid = hd_val_append(invalid, err == HD_ENOMEM ? NULL : invalid_call(call));
    }
    if (!valid || hd_val_count(valid) > 0)
        message = hd_val_with(message, HD_S("tool_calls"), valid);
    else
        hd_val_unref(valid);
    if (!invalid || hd_val_count(invalid) > 0)
        message = hd_val_with(message, HD_S("invalid_tool_calls"), invalid);
    else
        hd_val_unref(invalid);
    return message;
}

int hd_completion_partial(struct hd_completion *answer, const char *provider, const char *id,
                          struct hd_val **out)
{
    struct hd_val *message, *metadata;
    struct hd_buf text;
    int err = hd_completion_set(&answer->finish, HD_S("stopped"));

    *out = NULL;
    hd_buf_init(&text, HD_COMPLETION_MAX_BYTES);
    for (size_t i = 0; !err && i < answer->part_count; i++) {
        if (!answer->parts[i].is_thinking)
            err = hd_buf_append_slice(&text, hd_buf_slice(&answer->parts[i].text));
    }
    if (!err && text.len > 0) {
        message = hd_val_message("ai", hd_val_string(hd_buf_slice(&text)), id);
        metadata = hd_val_with(make_response_metadata(answer, provider), HD_S("stopped"),
                               hd_val_bool(true));
        *out = hd_val_with(message, HD_S("response_metadata"), metadata);
        err = *out ? 0 : HD_ENOMEM;
    }
    hd_buf_fini(&text);
    return err;
}

struct hd_val *hd_completion_message(const struct hd_completion *answer, const char *provider,
                                     const char *id)
{
    struct hd_val *message = hd_val_message("ai", whole_content(answer), id);
    struct hd_val *extra = hd_val_object(), *signatures;
    int err;

    if (answer->reasoning.len > 0)
        extra = hd_val_with(extra, HD_S("reasoning_content"),
                            hd_val_string(hd_buf_slice(&answer->reasoning)));
    signatures = make_signatures(answer, &err);
    if (signatures || err)
        extra = hd_val_with(extra, HD_S(SIGNATURES), signatures);
    if (!extra || hd_val_count(extra) > 0)
        message = hd_val_with(message, HD_S("additional_kwargs"), extra);
    else
        hd_val_unref(extra);
    return with_calls(with_metadata(message, answer, provider), answer);
}
