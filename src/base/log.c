#include "base/log.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/utf8.h"

#define MAX_LINE 1000

static const char *const level_names[] = {"debug", "info", "warn", "error"};

static atomic_int lowest = HD_LOG_WARN;

/*
 * Guards sink and sink_arg, and is held while the sink runs: once
 * hd_log_set_sink() has returned, the old sink is not called any more.
 */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static hd_log_sink sink;
static void *sink_arg;

void hd_log_set_level(enum hd_log_level level)
{
    atomic_store(&lowest, (int)level);
}

void hd_log_set_sink(hd_log_sink new_sink, void *arg)
{
    pthread_mutex_lock(&lock);
    sink = new_sink;
    sink_arg = arg;
    pthread_mutex_unlock(&lock);
}

/* One message is one line, whatever a database put into its error text. */
static void finish_line(char *line, int len)
{
    size_t end = len < 0 ? 0 : (size_t)len;

    if (end > MAX_LINE)
        end = hd_utf8_cut(line, MAX_LINE);
    line[end] = '\0';
    for (size_t i = 0; i < end; i++)
        if ((unsigned char)line[i] < 0x20 || line[i] == 0x7f)
            line[i] = ' ';
}

static void write_stderr(const char *line)
{
    char when[33];

    hd_clock_format_iso(hd_clock_now_us(), when);
    (void)fprintf(stderr, "%s %s\n", when, line);
}

void hd_log(enum hd_log_level level, const char *area, const char *fmt, ...)
{
    char line[MAX_LINE + 1];
    va_list args;
    int head, body;

    if ((int)level < atomic_load_explicit(&lowest, memory_order_relaxed) || level >= HD_LOG_OFF)
        return;
    head = snprintf(line, sizeof(line), "%s %s: ", level_names[level], area);
    if (head < 0 || head > MAX_LINE / 2)
        return;
    va_start(args, fmt);
    body = vsnprintf(line + head, sizeof(line) - (size_t)head, fmt, args);
    va_end(args);
    finish_line(line, body < 0 ? head : head + body);

    pthread_mutex_lock(&lock);
    if (sink)
        sink(sink_arg, level, line);
    else
        write_stderr(line);
    pthread_mutex_unlock(&lock);
}
