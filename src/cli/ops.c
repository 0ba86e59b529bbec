#include "cli/ops.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "cli/cli.h"
#include "heddle.h"
#include "store/url.h"

#define MAX_URL 65536

void hd_ops_url(const char *url, char *out, size_t size)
{
    const char *authority = strstr(url, "://");
    const char *end = authority ? authority + 3 + strcspn(authority + 3, "/?#") : NULL;
    const char *at = authority ? memrchr(authority, '@', (size_t)(end - authority)) : NULL;
    const char *colon = at ? memchr(authority + 3, ':', (size_t)(at - authority - 3)) : NULL;
    const char *query = strchr(url, '?');
    size_t len = query && strstr(query, "password") ? (size_t)(query - url) : strlen(url);

    if (colon)
        (void)snprintf(out, size, "%.*s:***%.*s", (int)(colon - url), url,
                       (int)(len - (size_t)(at - url)), at);
    else
        (void)snprintf(out, size, "%.*s", (int)len, url);
}

bool hd_ops_file(const char *url, char *out, size_t size)
{
    struct hd_arena arena;
    struct hd_url parsed;
    bool is_file;

    hd_arena_init(&arena, MAX_URL);
    is_file = hd_url_parse(&parsed, url, &arena, NULL) == 0 &&
              strcmp(parsed.scheme, "sqlite") == 0 && parsed.rest[0] != '\0' &&
              strcmp(parsed.rest, ":memory:") != 0 && strlen(parsed.rest) < size;
    if (is_file)
        (void)snprintf(out, size, "%s", parsed.rest);
    hd_arena_fini(&arena);
    return is_file;
}

bool hd_ops_open(const struct hd_command *command, const char *url, bool is_new,
                 struct heddle **out)
{
    struct heddle_error error = {0};
    char shown[512], file[4096];
    struct stat st;

    hd_ops_url(url, shown, sizeof(shown));
    if (!is_new && hd_ops_file(url, file, sizeof(file)) && stat(file, &st) != 0) {
        (void)fprintf(stderr, "heddle %s: %s: there is no such database\n", command->name, shown);
        return false;
    }
    if (heddle_open(out, url, &error) == 0)
        return true;
    (void)fprintf(stderr, "heddle %s: %s: %s\n", command->name, shown, error.text);
    return false;
}
