#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

const char *hd_error_text(int err)
{
    switch (err) {
    case 0:
        return "ok";
#define X(name, code, http, text) \
    case name:                    \
        return text;
        HD_ERRORS(X)
#undef X
    default:
        return "unknown error";
    }
}

const char *hd_error_name(int err)
{
    switch (err) {
    case 0:
        return "HD_OK";
#define X(name, code, http, text) \
    case name:                    \
        return #name;
        HD_ERRORS(X)
#undef X
    default:
        return "HD_UNKNOWN";
    }
}

int hd_error_http_status(int err)
{
    switch (err) {
    case 0:
        return 200;
#define X(name, code, http, text) \
    case name:                    \
        return http;
        HD_ERRORS(X)
#undef X
    default:
        return 500;
    }
}

int hd_fault_set(struct hd_fault *fault, int code, const char *fmt, ...)
{
    va_list args;
    int len;

    if (!fault || fault->code != 0)
        return code;
    fault->code = code;
    va_start(args, fmt);
    len = vsnprintf(fault->text, sizeof(fault->text), fmt, args);
    va_end(args);
    if (len < 0)
        fault->text[0] = '\0';
    else if ((size_t)len >= sizeof(fault->text))
        fault->text[hd_utf8_cut(fault->text, sizeof(fault->text) - 1)] = '\0';
    return code;
}
