/* Functions shared by commands. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "cli/cli.h"
#include "graph/decl/graph.h"

#define READ_SIZE 65536

int hd_usage_error(const struct hd_command *command, const char *fmt, ...)
{
    va_list args;

    (void)fprintf(stderr, "heddle %s: ", command->name);
    va_start(args, fmt);
    (void)vfprintf(stderr, fmt, args);
    va_end(args);
    (void)fprintf(stderr, "\nusage: heddle %s %s\n", command->name, command->arguments);
    return HD_EXIT_USAGE;
}

bool hd_option_value(int argc, char **argv, int *index, const char *name, const char **value)
{
    size_t len = strlen(name);
    const char *arg = argv[*index];

    if (strncmp(arg, name, len) != 0 || (arg[len] != '\0' && arg[len] != '='))
        return false;
    if (arg[len] == '=') {
        *value = arg + len + 1;
    } else {
        *value = *index + 1 < argc ? argv[*index + 1] : NULL;
        ++*index;
    }
    return true;
}

static int read_stream(FILE *file, struct hd_buf *out)
{
    int err = 0;

    while (err == 0 && !feof(file) && !ferror(file)) {
        err = hd_buf_reserve(out, READ_SIZE);
        if (err == 0)
            out->len += fread(out->ptr + out->len, 1, READ_SIZE, file);
    }
    return err != 0 ? err : ferror(file) ? HD_EIO : 0;
}

bool hd_cli_read_file(const char *path, size_t limit, struct hd_buf *out)
{
    bool is_stdin = strcmp(path, "-") == 0;
    FILE *file = is_stdin ? stdin : fopen(path, "rb");
    int err;

    /* One more byte than allowed, plus the read-ahead, to detect a larger file. */
    hd_buf_init(out, limit + 1 + (size_t)2 * READ_SIZE);
    if (!file) {
        (void)fprintf(stderr, "%s: %s\n", path, strerror(errno));
        return false;
    }
    errno = 0;
    err = read_stream(file, out);
    if (err != 0 && err != HD_ELIMIT)
        (void)fprintf(stderr, "%s: %s\n", path, errno ? strerror(errno) : hd_error_text(err));
    else if (err == HD_ELIMIT || out->len > limit)
        (void)fprintf(stderr, "%s: larger than %zu bytes\n", path, limit);
    if (!is_stdin)
        (void)fclose(file);
    if (err == 0 && out->len <= limit)
        return true;
    hd_buf_fini(out);
    return false;
}

bool hd_cli_write_out(struct hd_slice text)
{
    if (fwrite(text.ptr ? text.ptr : "", 1, text.len, stdout) == text.len && fflush(stdout) == 0)
        return true;
    (void)fprintf(stderr, "heddle: cannot write: %s\n", strerror(errno));
    return false;
}

struct hd_graph *hd_cli_read_graph(const char *path)
{
    struct hd_graph_error error;
    struct hd_graph *graph = NULL;
    struct hd_buf text;

    if (!hd_cli_read_file(path, HD_GRAPH_MAX_TEXT, &text))
        return NULL;
    if (hd_graph_read(hd_buf_slice(&text), &graph, &error) != 0) {
        graph = NULL;
        (void)fprintf(stderr, "%s: %s%s%s\n", path, error.path, error.path[0] ? ": " : "",
                      error.text);
    }
    hd_buf_fini(&text);
    return graph;
}
