/* The built-in model: a few scripted responses, for trials without a network or a key. */
#include <string.h>
#include <strings.h>

#include "agent/model/provider.h"

#define HELLO                                                                                    \
    "Hello! I am the offline model inside Heddle: nothing you say leaves this machine. To talk " \
    "to a real model, set OPENAI_API_KEY (or that of another provider) and start the server "    \
    "again, or choose one with model_name. Until then, say anything, or say fail."
#define FAIL "You asked me to fail, and I did. Try again whenever you like."

static bool has_word(struct hd_slice text, const char *word)
{
    size_t len = strlen(word);

    for (size_t i = 0; i + len <= text.len; i++) {
        if (strncasecmp(text.ptr + i, word, len) == 0)
            return true;
    }
    return false;
}

int hd_offline_answer(const struct hd_val *messages, struct hd_buf *out, bool *fails)
{
    const struct hd_val *last = NULL;
    struct hd_buf said;
    int err;

    *fails = false;
    for (size_t i = hd_val_count(messages); i-- > 0 && !last;) {
        if (hd_slice_eq(hd_chat_type(hd_val_at(messages, i)), HD_S("human")))
            last = hd_val_at(messages, i);
    }
    hd_buf_init(&said, HD_COMPLETION_MAX_BYTES / 2);
    err = hd_content_text(hd_val_get(last, HD_S("content")), &said);
    if (!err && has_word(hd_buf_slice(&said), "hello")) {
        err = hd_buf_append_slice(out, HD_S(HELLO));
    } else if (!err && has_word(hd_buf_slice(&said), "fail")) {
        *fails = true;
        err = hd_buf_append_slice(out, HD_S(FAIL));
    } else if (!err) {
        err = hd_buf_append_slice(out, HD_S("You said: "));
        if (!err)
            err = hd_buf_append_slice(out, hd_buf_slice(&said));
        if (!err)
            err = hd_buf_printf(out,
                                ". This is the offline model: no other is configured. The "
                                "conversation has %zu messages before this one.",
                                hd_val_count(messages));
    }
    hd_buf_fini(&said);
    return err;
}

static bool is_word_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

size_t hd_offline_word(struct hd_slice text)
{
    size_t end = 0;

    while (end < text.len && !is_word_space(text.ptr[end]))
        end++;
    while (end < text.len && is_word_space(text.ptr[end]))
        end++;
    return end;
}

const struct hd_provider hd_provider_offline = {
    .name = "offline",
    .model = "OfflineModel",
};
