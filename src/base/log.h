/*
 * Log lines: one line, a level, an area. They go to standard error, as text or as JSON, unless a
 * sink is set. Lines never contain values, tokens or anything a user wrote.
 */
#ifndef HD_BASE_LOG_H
#define HD_BASE_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/slice.h"

enum hd_log_level { HD_LOG_DEBUG, HD_LOG_INFO, HD_LOG_WARN, HD_LOG_ERROR, HD_LOG_OFF };
enum hd_log_format { HD_LOG_TEXT, HD_LOG_JSON };

/*
 * Called with a complete line without newline, from any thread but one at a time: text without
 * its time ("warn sqlite: …"), or a JSON object. It must not log itself.
 */
typedef void (*hd_log_sink)(void *arg, enum hd_log_level level, const char *line);

/* The lowest level that is written. Default: HD_LOG_WARN. */
void hd_log_set_level(enum hd_log_level level);
/* Default: HD_LOG_TEXT. */
void hd_log_set_format(enum hd_log_format format);
/* NULL: standard error again. After this returns, the old sink is not called any more. */
void hd_log_set_sink(hd_log_sink sink, void *arg);

/* True when lines of this level are written, so that callers can skip preparing others. */
bool hd_log_is_on(enum hd_log_level level);

/* `area` is a short word such as "sqlite". Messages are cut at 1,000 bytes. */
void hd_log(enum hd_log_level level, const char *area, const char *fmt, ...) HD_PRINTF(3, 4);

/* A member of a line. `text.ptr` NULL: the member is `number`. Empty texts are left out. */
struct hd_log_field {
    const char *name; /* letters and underscores */
    struct hd_slice text;
    int64_t number;
};

static inline struct hd_log_field hd_log_text(const char *name, struct hd_slice text)
{
    return (struct hd_log_field){.name = name, .text = {text.ptr ? text.ptr : "", text.len}};
}

static inline struct hd_log_field hd_log_number(const char *name, int64_t number)
{
    return (struct hd_log_field){.name = name, .number = number};
}

/*
 * A message with members: "request ended method=GET status=200" as text, members of the object as
 * JSON. Texts are cut at 500 bytes.
 */
void hd_log_fields(enum hd_log_level level, const char *area, const char *message,
                   const struct hd_log_field *fields, size_t count);

#endif
