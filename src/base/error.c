#include "base/error.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

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

int hd_error_set(struct heddle_error *fault, int code, const char *fmt, ...)
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

/* ---- places ------------------------------------------------------------ */

static atomic_bool are_hidden;

void hd_errors_hide_places(bool hides)
{
    atomic_store_explicit(&are_hidden, hides, memory_order_relaxed);
}

bool hd_errors_are_hidden(void)
{
    return atomic_load_explicit(&are_hidden, memory_order_relaxed);
}

static bool is_path_char(char c)
{
    return c != '\0' && !strchr(" \t\r\n\"'`()<>[]{},;:|*?", c);
}

/* The end of a path that begins at `at`. */
static char *path_end(char *at)
{
    while (is_path_char(*at))
        at++;
    return at;
}

/* The first part of a path is a folder of this machine. */
static bool is_local(const char *at, const char *end)
{
    char first[256];
    const char *slash = memchr(at + 1, '/', (size_t)(end - at - 1));
    struct stat st;

    if (!slash || slash == at + 1 || slash + 1 == end || (size_t)(slash - at) >= sizeof(first))
        return false;
    memcpy(first, at, (size_t)(slash - at));
    first[slash - at] = '\0';
    return stat(first, &st) == 0 && S_ISDIR(st.st_mode);
}

void hd_error_hide_paths(char *text)
{
    static const char mark[] = "\xe2\x80\xa6"; /* "…" */
    const size_t len = sizeof(mark) - 1;
    char *at = hd_errors_are_hidden() ? text : NULL;

    for (at = at ? strchr(at, '/') : NULL; at; at = strchr(at, '/')) {
        char *end = path_end(at), *last = end;

        if ((at > text && is_path_char(at[-1])) || !is_local(at, end)) {
            at = end > at ? end : at + 1;
            continue;
        }
        while (last[-1] != '/')
            last--;
        last--; /* its slash stays */
        if ((size_t)(last - at) < len) {
            at = end;
            continue;
        }
        memcpy(at, mark, len);
        memmove(at + len, last, strlen(last) + 1);
        at += len + (size_t)(end - last);
    }
}

bool hd_error_is_transient(int err)
{
    return err == HD_EUNAVAILABLE || err == HD_EBUSY || err == HD_EFULL;
}
