#include "webhook/webhook_headers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/suggest.h"

#define MAX_VALUE 16384

struct filling {
    const struct hd_config *config;
    struct hd_slice header; /* its name */
    struct hd_buf value;
    struct heddle_error *fault;
};

static int wrong_header(const struct filling *f, const char *what)
{
    return hd_error_set(f->fault, HD_EINVAL, "webhooks.headers: %.*s: %s", HD_SHOW(f->header),
                        what);
}

static struct hd_slice trim_spaces(struct hd_slice text)
{
    while (text.len > 0 && text.ptr[0] == ' ')
        text = hd_slice(text.ptr + 1, text.len - 1);
    while (text.len > 0 && text.ptr[text.len - 1] == ' ')
        text.len--;
    return text;
}

/* Appends the value of "env.NAME". */
static int add_variable(struct filling *f, struct hd_slice expression)
{
    struct hd_slice prefix = hd_slice_cstr(f->config->webhooks_env_prefix);
    const char *value;
    char name[256];

    expression = trim_spaces(expression);
    if (!hd_slice_starts(expression, HD_S("env.")) || expression.len - 4 >= sizeof(name))
        return wrong_header(f, "only ${{ env.NAME }} is supported");
    expression = hd_slice(expression.ptr + 4, expression.len - 4);
    if (!hd_slice_starts(expression, prefix))
        return hd_error_set(f->fault, HD_EINVAL,
                            "webhooks.headers: %.*s: the variable's name must begin with \"%s\" "
                            "(webhooks.env_prefix)",
                            HD_SHOW(f->header), f->config->webhooks_env_prefix);
    (void)snprintf(name, sizeof(name), "%.*s", (int)expression.len, expression.ptr);
    value = getenv(name);
    if (!value)
        return hd_error_set(f->fault, HD_EINVAL,
                            "webhooks.headers: %.*s: the variable %.100s is not set",
                            HD_SHOW(f->header), name);
    return hd_buf_append(&f->value, value, strlen(value));
}

static int fill_header(struct filling *f, struct hd_slice text)
{
    int err = 0;

    while (!err && text.len > 0) {
        const char *open = memmem(text.ptr, text.len, "${{", 3);
        size_t plain = open ? (size_t)(open - text.ptr) : text.len;
        const char *close = open ? memmem(open, text.len - plain, "}}", 2) : NULL;

        err = hd_buf_append(&f->value, text.ptr, plain);
        if (!open || err)
            break;
        if (!close)
            return wrong_header(f, "\"${{\" is not closed");
        err = add_variable(f, hd_slice(open + 3, (size_t)(close - open - 3)));
        text = hd_slice(close + 2, text.len - (size_t)(close + 2 - text.ptr));
    }
    return err == HD_ELIMIT ? wrong_header(f, "the value is too long") : err;
}

static int check_value(const struct filling *f)
{
    for (size_t i = 0; i < f->value.len; i++) {
        unsigned char c = (unsigned char)f->value.ptr[i];

        if ((c < ' ' && c != '\t') || c == 0x7f)
            return wrong_header(f, "the value contains a line break or another control character");
    }
    return 0;
}

int hd_webhook_headers(const struct hd_config *config, struct hd_arena *arena,
                       const char *out[HD_WEBHOOK_MAX_HEADERS], size_t *count,
                       struct heddle_error *fault)
{
    struct hd_json_iter it = hd_json_iter(config->webhooks_headers.val);
    struct filling f = {.config = config, .fault = fault};
    int err = 0;

    *count = 0;
    hd_buf_init(&f.value, MAX_VALUE);
    while (!err && hd_json_next(&it)) {
        f.header = it.key;
        hd_buf_reset(&f.value);
        if (*count == HD_WEBHOOK_MAX_HEADERS)
            err = wrong_header(&f, "too many headers");
        else if (!hd_slice_is_token(it.key))
            err = wrong_header(&f, "not a valid header name");
        else if (!hd_json_is_string(it.val))
            err = wrong_header(&f, "must be a string");
        else
            err = fill_header(&f, hd_json_string(it.val));
        if (!err)
            err = check_value(&f);
        if (err)
            break;
        out[*count] = hd_arena_printf(arena, "%.*s: %.*s", (int)it.key.len, it.key.ptr,
                                      (int)f.value.len, f.value.len > 0 ? f.value.ptr : "");
        if (!out[(*count)++])
            err = HD_ENOMEM;
    }
    hd_buf_fini(&f.value);
    return err;
}

int hd_webhook_headers_check(const struct hd_config *config, struct heddle_error *fault)
{
    const char *headers[HD_WEBHOOK_MAX_HEADERS];
    struct hd_arena arena;
    size_t count;
    int err;

    hd_arena_init(&arena, (size_t)2 * HD_WEBHOOK_MAX_HEADERS * MAX_VALUE);
    err = hd_webhook_headers(config, &arena, headers, &count, fault);
    hd_arena_fini(&arena);
    return err;
}
