/*
 * Log lines: one line, a level, an area. Goes to standard error unless a sink
 * is set. Never given values, tokens or anything a user said.
 */
#ifndef HD_BASE_LOG_H
#define HD_BASE_LOG_H

#include "base/compiler.h"

enum hd_log_level { HD_LOG_DEBUG, HD_LOG_INFO, HD_LOG_WARN, HD_LOG_ERROR, HD_LOG_OFF };

/*
 * Called with a complete line ("warn sqlite: …") without newline, from any
 * thread but one at a time. It must not log itself.
 */
typedef void (*hd_log_sink)(void *arg, enum hd_log_level level, const char *line);

/* The lowest level that is written; HD_LOG_WARN at first. */
void hd_log_set_level(enum hd_log_level level);
/* NULL: standard error again. When this returns, the old sink is not called any more. */
void hd_log_set_sink(hd_log_sink sink, void *arg);

/* `area` is a short word such as "sqlite". Lines are cut at 1,000 bytes. */
void hd_log(enum hd_log_level level, const char *area, const char *fmt, ...) HD_PRINTF(3, 4);

#endif
