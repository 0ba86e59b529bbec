/* Failures of tasks and runs, named after Python exceptions. */
#include "graph/engine/failure.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/slice.h"
#include "graph/engine/channel.h"
#include "value/val.h"

static char *copy(struct hd_slice s)
{
    char *text = hd_malloc(s.len + 1);

    if (!text)
        return NULL;
    if (s.len > 0)
        memcpy(text, s.ptr, s.len);
    text[s.len] = '\0';
    return text;
}

void hd_failure_set_text(struct hd_failure *failure, struct hd_slice type, struct hd_slice text)
{
    if (failure->type)
        return;
    failure->type = copy(type);
    failure->text = copy(text);
    if (!failure->type || !failure->text) {
        static const char no_memory[] = "MemoryError";

        hd_free(failure->type);
        hd_free(failure->text);
        /* The type is static; hd_failure_fini() detects this by the missing text. */
        failure->type = (char *)(uintptr_t)no_memory;
        failure->text = NULL;
    }
}

void hd_failure_set(struct hd_failure *failure, const char *type, const char *fmt, ...)
{
    char text[2048];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    hd_failure_set_text(failure, hd_slice_cstr(type), hd_slice_cstr(text));
}

void hd_failure_code(struct hd_failure *failure, int err, const struct heddle_error *fault)
{
    const char *text = fault && fault->code ? fault->text : hd_error_text(err);

    switch (err) {
    case HD_ENOMEM:
        hd_failure_set(failure, "MemoryError", "%s", text);
        break;
    case HD_EINVAL:
        hd_failure_set(failure, "ValueError", "%s", text);
        break;
    case HD_ELIMIT:
        hd_failure_set(failure, "OverflowError", "%s", text);
        break;
    default:
        hd_failure_set(failure, "RuntimeError", "%s", text);
    }
}

void hd_failure_refusal(struct hd_failure *failure, int err, struct hd_refusal *refusal)
{
    if (refusal->type)
        hd_failure_set_text(failure, hd_slice_cstr(refusal->type),
                            hd_val_get_string(refusal->text));
    else
        hd_failure_code(failure, err, NULL);
    hd_refusal_fini(refusal);
}

void hd_failure_fini(struct hd_failure *failure)
{
    /* A type without a text is the static MemoryError. */
    if (failure->text) {
        hd_free(failure->type);
        hd_free(failure->text);
    }
    failure->type = NULL;
    failure->text = NULL;
}

/* Python uses single quotes unless the text has single quotes and no double quotes. */
static int append_repr(struct hd_buf *out, const char *text)
{
    char quote = strchr(text, '\'') && !strchr(text, '"') ? '"' : '\'';
    int err = hd_buf_append_byte(out, (uint8_t)quote);

    for (const char *p = text; *p && !err; p++) {
        unsigned char c = (unsigned char)*p;

        if (c == '\\' || c == (unsigned char)quote)
            err = hd_buf_printf(out, "\\%c", c);
        else if (c == '\n')
            err = hd_buf_printf(out, "\\n");
        else if (c == '\r')
            err = hd_buf_printf(out, "\\r");
        else if (c == '\t')
            err = hd_buf_printf(out, "\\t");
        else if (c < 0x20 || c == 0x7f)
            err = hd_buf_printf(out, "\\x%02x", c);
        else
            err = hd_buf_append_byte(out, c);
    }
    if (!err)
        err = hd_buf_append_byte(out, (uint8_t)quote);
    return err;
}

struct hd_val *hd_failure_repr(const struct hd_failure *failure)
{
    struct hd_buf text;
    struct hd_val *val = NULL;
    int err;

    hd_buf_init(&text, (size_t)1 << 20);
    err = hd_buf_printf(&text, "%s(", failure->type);
    if (!err && failure->text && failure->text[0])
        err = append_repr(&text, failure->text);
    if (!err)
        err = hd_buf_append_byte(&text, ')');
    if (!err)
        val = hd_val_string(hd_buf_slice(&text));
    hd_buf_fini(&text);
    return val;
}
