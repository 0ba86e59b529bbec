#include "base/log.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/utf8.h"

#define MAX_MESSAGE 1000
#define MAX_FIELD 500
#define MAX_LINE 16384

static const char *const level_names[] = {"debug", "info", "warn", "error"};

static atomic_int lowest = HD_LOG_WARN;
static atomic_int format = HD_LOG_TEXT;

/* The line. A piece that does not fit is left out, and so are all pieces after it. */
struct line {
    char text[MAX_LINE + 1];
    size_t len;
    bool is_full;
};

/*
 * Guards the line, sink and sink_arg, and is held while the sink runs: once
 * hd_log_set_sink() has returned, the old sink is not called any more.
 */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct line line;
static hd_log_sink sink;
static void *sink_arg;

void hd_log_set_level(enum hd_log_level level)
{
    atomic_store(&lowest, (int)level);
}

void hd_log_set_format(enum hd_log_format new_format)
{
    atomic_store(&format, (int)new_format);
}

void hd_log_set_sink(hd_log_sink new_sink, void *arg)
{
    pthread_mutex_lock(&lock);
    sink = new_sink;
    sink_arg = arg;
    pthread_mutex_unlock(&lock);
}

bool hd_log_is_on(enum hd_log_level level)
{
    return (int)level >= atomic_load_explicit(&lowest, memory_order_relaxed) && level < HD_LOG_OFF;
}

/* ---- pieces of a line ------------------------------------------------- */

static void put_bytes(const char *bytes, size_t len)
{
    line.is_full = line.is_full || len > MAX_LINE - line.len;
    if (line.is_full)
        return;
    memcpy(line.text + line.len, bytes, len);
    line.len += len;
    line.text[line.len] = '\0';
}

static void line_put_text(const char *text)
{
    put_bytes(text, strlen(text));
}

static bool is_control(char c)
{
    return (unsigned char)c < 0x20 || c == 0x7f;
}

/* One message is one line, even if an error text of the database contains newlines. */
static void line_put_message(struct hd_slice text)
{
    for (size_t i = 0; i < text.len; i++)
        put_bytes(is_control(text.ptr[i]) ? " " : text.ptr + i, 1);
}

/* A JSON string; bytes that are not UTF-8 become U+FFFD. */
static void put_quoted(struct hd_slice text)
{
    const char *at = text.ptr, *end = text.ptr + text.len;

    line_put_text("\"");
    while (at < end) {
        size_t len = hd_utf8_char(at, end);

        if (len == 0)
            line_put_text("\xef\xbf\xbd");
        else if (is_control(*at))
            line_put_text(" ");
        else if (*at == '"' || *at == '\\')
            line_put_text(*at == '"' ? "\\\"" : "\\\\");
        else
            put_bytes(at, len);
        at += len > 0 ? len : 1;
    }
    line_put_text("\"");
}

/* True when it is readable as one word of a text line. */
static bool is_word(struct hd_slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] <= ' ' || text.ptr[i] > '~' || text.ptr[i] == '"' || text.ptr[i] == '\\')
            return false;
    }
    return true;
}

static void put_value(const struct hd_log_field *field)
{
    struct hd_slice text = field->text;
    char digits[24];

    if (text.len > MAX_FIELD)
        text.len = hd_utf8_cut(text.ptr, MAX_FIELD);
    if (!text.ptr) {
        (void)snprintf(digits, sizeof(digits), "%lld", (long long)field->number);
        line_put_text(digits);
    } else if (atomic_load(&format) == HD_LOG_TEXT && is_word(text)) {
        put_bytes(text.ptr, text.len);
    } else {
        put_quoted(text);
    }
}

/* ---- lines ------------------------------------------------------------ */

static void put_as_text(enum hd_log_level level, const char *area, struct hd_slice message,
                        const struct hd_log_field *fields, size_t count)
{
    line_put_text(level_names[level]);
    line_put_text(" ");
    line_put_text(area);
    line_put_text(": ");
    line_put_message(message);
    for (size_t i = 0; i < count; i++) {
        if (fields[i].text.ptr && fields[i].text.len == 0)
            continue;
        line_put_text(" ");
        line_put_text(fields[i].name);
        line_put_text("=");
        put_value(&fields[i]);
    }
}

static void line_put_member(const char *name, struct hd_slice value)
{
    line_put_text(",\"");
    line_put_text(name);
    line_put_text("\":");
    put_quoted(value);
}

static void put_as_json(enum hd_log_level level, const char *area, struct hd_slice message,
                        const struct hd_log_field *fields, size_t count)
{
    char when[33];

    hd_clock_format_iso(hd_clock_now_us(), when);
    line_put_text("{\"time\":\"");
    line_put_text(when);
    line_put_text("\"");
    line_put_member("level", hd_slice_cstr(level_names[level]));
    line_put_member("area", hd_slice_cstr(area));
    line_put_member("message", message);
    for (size_t i = 0; i < count; i++) {
        if (fields[i].text.ptr && fields[i].text.len == 0)
            continue;
        line_put_text(",\"");
        line_put_text(fields[i].name);
        line_put_text("\":");
        put_value(&fields[i]);
    }
    line_put_text("}");
}

static void write_stderr(bool is_json)
{
    char when[33];

    hd_clock_format_iso(hd_clock_now_us(), when);
    (void)fprintf(stderr, "%s%s%s\n", is_json ? "" : when, is_json ? "" : " ", line.text);
}

static void write_line(enum hd_log_level level, const char *area, struct hd_slice message,
                       const struct hd_log_field *fields, size_t count)
{
    bool is_json;

    pthread_mutex_lock(&lock);
    is_json = atomic_load(&format) == HD_LOG_JSON;
    line.len = 0;
    line.is_full = false;
    if (is_json)
        put_as_json(level, area, message, fields, count);
    else
        put_as_text(level, area, message, fields, count);
    /* A truncated object is useless: the message alone always fits. */
    if (is_json && line.is_full) {
        line.len = 0;
        line.is_full = false;
        put_as_json(level, area, message, NULL, 0);
    }
    if (sink)
        sink(sink_arg, level, line.text);
    else
        write_stderr(is_json);
    pthread_mutex_unlock(&lock);
}

void hd_log(enum hd_log_level level, const char *area, const char *fmt, ...)
{
    char message[MAX_MESSAGE + 1];
    va_list args;
    int len;

    if (!hd_log_is_on(level))
        return;
    va_start(args, fmt);
    len = vsnprintf(message, sizeof(message), fmt, args);
    va_end(args);
    if (len > MAX_MESSAGE)
        len = (int)hd_utf8_cut(message, MAX_MESSAGE);
    write_line(level, area, hd_slice(message, len > 0 ? (size_t)len : 0), NULL, 0);
}

void hd_log_fields(enum hd_log_level level, const char *area, const char *message,
                   const struct hd_log_field *fields, size_t count)
{
    if (hd_log_is_on(level))
        write_line(level, area, hd_slice_cstr(message), fields, count);
}
