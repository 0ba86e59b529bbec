#include "agent/model/model_error.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/utf8.h"

#define MAX_MESSAGE 1500
#define MIN_SECRET 4 /* shorter ones would mask words */

/* ---- the server's error text ------------------------------------------ */

static struct hd_slice cut(struct hd_slice text, size_t max)
{
    if (text.len > max)
        text.len = hd_utf8_cut(text.ptr, max);
    return text;
}

struct error_text {
    struct hd_slice message, code;
};

/* {"error": {"message", "code"}}, {"error": "…"}, {"message": "…"}, {"detail": "…"}; in a list
 * too. */
static struct error_text read_error_text(hd_json_val root)
{
    static const char *const names[] = {"message", "detail", "msg"};
    hd_json_val error;
    struct error_text error_text = {{"", 0}, {"", 0}};

    if (hd_json_is_array(root)) {
        struct hd_json_iter it = hd_json_iter(root);

        root = hd_json_next(&it) ? it.val : NULL;
    }
    error = hd_json_get(root, HD_S("error"));
    if (hd_json_is_object(error))
        root = error;
    else if (hd_json_is_string(error))
        error_text.message = hd_json_string(error);
    for (size_t i = 0; i < HD_COUNT(names) && error_text.message.len == 0; i++)
        error_text.message = hd_json_string(hd_json_get(root, hd_slice_cstr(names[i])));
    error_text.code = hd_json_string(hd_json_get(root, HD_S("code")));
    if (error_text.code.len == 0)
        error_text.code = hd_json_string(hd_json_get(root, HD_S("type")));
    return error_text;
}

static bool has_text(struct hd_slice text, const char *part)
{
    size_t len = strlen(part);

    for (size_t i = 0; i + len <= text.len; i++) {
        if (strncasecmp(text.ptr + i, part, len) == 0)
            return true;
    }
    return false;
}

static bool is_too_long(const struct error_text *error_text)
{
    static const char *const texts[] = {"maximum context length", "prompt is too long",
                                        "context window", "exceeds the maximum number of tokens",
                                        "input token count"};

    if (hd_slice_eq(error_text->code, HD_S("context_length_exceeded")))
        return true;
    for (size_t i = 0; i < HD_COUNT(texts); i++) {
        if (has_text(error_text->message, texts[i]))
            return true;
    }
    return false;
}

static bool is_filtered(const struct error_text *error_text)
{
    return hd_slice_eq(error_text->code, HD_S("content_filter")) ||
           hd_slice_eq(error_text->code, HD_S("content_policy_violation"));
}

/* The provider's name as users know it. */
static const char *title_of(const char *provider)
{
    static const char *const titles[][2] = {
        {"openai", "OpenAI"}, {"anthropic", "Anthropic"}, {"google", "Google"}};

    for (size_t i = 0; i < HD_COUNT(titles); i++) {
        if (strcmp(provider, titles[i][0]) == 0)
            return titles[i][1];
    }
    return provider;
}

/* ---- statuses --------------------------------------------------------- */

struct model_error_kind {
    const char *type;
    const char *label;
};

static struct model_error_kind error_kind_of(long status, const struct error_text *error_text)
{
    if (status == 401 || status == 403)
        return (struct model_error_kind){"AuthenticationError", "rejected the API key"};
    if (status == 404)
        return (struct model_error_kind){"NotFoundError", "has no such model or endpoint"};
    if (status == 408)
        return (struct model_error_kind){"APITimeoutError", "request timed out"};
    if (status == 409)
        return (struct model_error_kind){"ConflictError", "reported a conflict"};
    if (status == 413 || is_too_long(error_text))
        return (struct model_error_kind){
            "BadRequestError", "refused the request: the conversation is too long for the model"};
    if (is_filtered(error_text))
        return (struct model_error_kind){"ContentFilterError",
                                         "blocked the request by its content filter"};
    if (status == 429)
        return (struct model_error_kind){"RateLimitError", "rate limit reached"};
    if (status >= 500)
        return (struct model_error_kind){"InternalServerError", "server error"};
    if (status >= 300 && status < 400)
        return (struct model_error_kind){"APIStatusError", "redirected the request"};
    return (struct model_error_kind){"BadRequestError", "refused the request"};
}

static void refuse_answer(struct hd_completion *answer, const char *provider,
                          const struct hd_reply *reply, const struct error_text *error_text)
{
    struct model_error_kind kind = error_kind_of(reply->status, error_text);
    struct hd_slice message = cut(error_text->message, MAX_MESSAGE),
                    code = cut(error_text->code, 100);
    char tries[32] = "";

    if (reply->tries > 1)
        (void)snprintf(tries, sizeof(tries), ", %d times", reply->tries);
    (void)hd_completion_fail(answer, kind.type, "%s %s (status %ld%s)%s%.*s%s%.*s%s",
                             title_of(provider), kind.label, reply->status, tries,
                             message.len ? ": " : "", (int)message.len, message.ptr,
                             code.len ? " [" : "", (int)code.len, code.ptr, code.len ? "]" : "");
}

void hd_model_refused(struct hd_completion *answer, const char *provider,
                      const struct hd_reply *reply)
{
    struct error_text error_text = {{"", 0}, {"", 0}};
    struct hd_json json = {NULL};

    if (reply->error) {
        (void)hd_completion_fail(answer,
                                 reply->is_timeout ? "APITimeoutError" : "APIConnectionError",
                                 "%s %s: %s", title_of(provider),
                                 reply->is_cut       ? "connection closed within the response"
                                 : reply->is_timeout ? "request timed out"
                                                     : "is unreachable",
                                 reply->error);
        return;
    }
    if (hd_json_parse(&json, reply->body, NULL) == 0)
        error_text = read_error_text(hd_json_root(&json));
    else
        error_text.message = reply->body;
    refuse_answer(answer, provider, reply, &error_text);
    hd_json_fini(&json);
}

/* ---- finish reasons --------------------------------------------------- */

static bool is_withheld(struct hd_slice finish)
{
    static const char *const names[] = {"content_filter",     "refusal",   "SAFETY",
                                        "PROHIBITED_CONTENT", "BLOCKLIST", "SPII",
                                        "RECITATION"};

    for (size_t i = 0; i < HD_COUNT(names); i++) {
        if (hd_slice_eq(finish, hd_slice_cstr(names[i])))
            return true;
    }
    return false;
}

int hd_model_check(struct hd_completion *answer, const char *provider)
{
    struct hd_slice finish = hd_buf_slice(&answer->finish);

    if (!answer->is_ended)
        return hd_completion_fail(answer, "APIConnectionError",
                                  "%s ended the stream before the response was complete",
                                  title_of(provider));
    if (hd_completion_is_empty(answer) && is_withheld(finish))
        return hd_completion_fail(answer, "ContentFilterError", "%s withheld the response (%.*s)",
                                  title_of(provider), (int)finish.len, finish.ptr);
    if (!answer->has_begun && finish.len == 0)
        return hd_completion_fail(answer, "APIResponseValidationError", "%s sent an empty response",
                                  title_of(provider));
    return 0;
}

/* ---- secrets ---------------------------------------------------------- */

int hd_model_mask(const struct hd_completion *answer, struct hd_slice key, struct hd_buf *out)
{
    struct hd_slice text =
        hd_slice(answer->error.ptr, answer->error.len ? answer->error.len - 1 : 0);
    int err = 0;

    for (size_t i = 0; i < text.len && !err;) {
        struct hd_slice left = hd_slice(text.ptr + i, text.len - i);

        if (key.len >= MIN_SECRET && hd_slice_starts(left, key)) {
            err = hd_buf_append(out, "***", 3);
            i += key.len;
        } else {
            err = hd_buf_append_byte(out, (uint8_t)left.ptr[0]);
            i++;
        }
    }
    return err;
}
