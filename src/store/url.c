#include "store/url.h"

#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/slice.h"

#define MAX_URL 65536

#define MAX_SCHEMA_NAME 40

/* A row of SQLite has at most 10^9 bytes, one of PostgreSQL 2^30. */
#define MAX_VALUE_LIMIT 1000000000

/* How many bytes of user input a fault quotes. */
static int shown(size_t len)
{
    return len < 60 ? (int)len : 60;
}

/* ---- single parameters ------------------------------------------------ */

static bool parse_number(struct hd_slice text, int64_t low, int64_t high, int64_t *out)
{
    int64_t number = 0;

    if (text.len == 0)
        return false;
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] < '0' || text.ptr[i] > '9' || number > high)
            return false;
        number = number * 10 + (text.ptr[i] - '0');
    }
    *out = number;
    return number >= low && number <= high;
}

static int set_durability(struct hd_url *url, struct hd_slice value, struct hd_arena *arena,
                          struct heddle_error *fault)
{
    (void)arena;
    url->is_relaxed = hd_slice_eq(value, HD_S("relaxed"));
    if (!url->is_relaxed && !hd_slice_eq(value, HD_S("full")))
        return hd_error_set(fault, HD_EINVAL, "durability takes full or relaxed, not \"%.*s\"",
                            shown(value.len), value.ptr);
    return 0;
}

static int set_max_value(struct hd_url *url, struct hd_slice value, struct hd_arena *arena,
                         struct heddle_error *fault)
{
    int64_t number;

    (void)arena;
    if (!parse_number(value, 1, MAX_VALUE_LIMIT, &number))
        return hd_error_set(fault, HD_EINVAL, "max_value takes a number of bytes from 1 to %d",
                            MAX_VALUE_LIMIT);
    url->max_value = (size_t)number;
    return 0;
}

static int set_pool(struct hd_url *url, struct hd_slice value, struct hd_arena *arena,
                    struct heddle_error *fault)
{
    int64_t number;

    (void)arena;
    if (!parse_number(value, 1, 64, &number))
        return hd_error_set(fault, HD_EINVAL, "pool takes a number of connections from 1 to 64");
    url->pool = (unsigned)number;
    return 0;
}

static int set_timeout(struct hd_url *url, struct hd_slice value, struct hd_arena *arena,
                       struct heddle_error *fault)
{
    int64_t number;

    (void)arena;
    if (!parse_number(value, 1, 600, &number))
        return hd_error_set(fault, HD_EINVAL, "timeout takes a number of seconds from 1 to 600");
    url->timeout_ms = (int)number * 1000;
    return 0;
}

/* The name goes into SQL unquoted, hence the strict rule. */
static bool is_schema_name(struct hd_slice name)
{
    if (name.len == 0 || name.len > MAX_SCHEMA_NAME)
        return false;
    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];
        bool is_digit = c >= '0' && c <= '9';

        if (c != '_' && !(c >= 'a' && c <= 'z') && !(is_digit && i > 0))
            return false;
    }
    return true;
}

static int set_schema(struct hd_url *url, struct hd_slice value, struct hd_arena *arena,
                      struct heddle_error *fault)
{
    struct hd_slice copy;
    int err;

    if (!is_schema_name(value))
        return hd_error_set(fault, HD_EINVAL,
                            "schema takes a name of at most %d characters a-z, 0-9 and _ that "
                            "does not begin with a digit",
                            MAX_SCHEMA_NAME);
    err = hd_arena_copy(arena, value, &copy);
    if (!err)
        url->schema = copy.ptr;
    return err;
}

struct url_parameter {
    const char *name;
    int (*set)(struct hd_url *url, struct hd_slice value, struct hd_arena *arena,
               struct heddle_error *fault);
};

static const struct url_parameter parameters[] = {
    {"durability", set_durability}, {"max_value", set_max_value}, {"pool", set_pool},
    {"schema", set_schema},         {"timeout", set_timeout},
};

static const struct url_parameter *find_parameter(struct hd_slice name)
{
    for (size_t i = 0; i < HD_COUNT(parameters); i++) {
        if (hd_slice_eq(name, hd_slice_cstr(parameters[i].name)))
            return &parameters[i];
    }
    return NULL;
}

/* ---- the query part --------------------------------------------------- */

static bool takes_foreign_parameters(const struct hd_url *url)
{
    return strcmp(url->scheme, "memory") != 0 && strcmp(url->scheme, "sqlite") != 0;
}

/* Removes our parameters from `query`, in place, and joins the rest with '&'. */
static int take_parameters(struct hd_url *url, char *query, struct hd_arena *arena,
                           struct heddle_error *fault)
{
    char *kept = query;
    const char *next = query;

    while (*next) {
        size_t len = strcspn(next, "&");
        size_t name_len = strcspn(next, "=&");
        const struct url_parameter *parameter = find_parameter(hd_slice(next, name_len));
        size_t value_at = name_len < len ? name_len + 1 : len;
        int err = 0;

        if (parameter) {
            err = parameter->set(url, hd_slice(next + value_at, len - value_at), arena, fault);
        } else if (len > 0 && !takes_foreign_parameters(url)) {
            err = hd_error_set(fault, HD_EINVAL, "%s: URLs take no parameter \"%.*s\"", url->scheme,
                               shown(name_len), next);
        } else if (len > 0) {
            if (kept != query)
                *kept++ = '&';
            memmove(kept, next, len);
            kept += len;
        }
        if (err)
            return err;
        next += len;
        next += *next == '&';
    }
    *kept = '\0';
    return 0;
}

/* ---- paths ------------------------------------------------------------ */

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static int decode_percent(char *text, struct heddle_error *fault)
{
    char *out = text;

    for (const char *in = text; *in; in++) {
        if (*in == '%') {
            int high = hex_digit(in[1]);
            int low = high < 0 ? -1 : hex_digit(in[2]);

            if (low < 0 || high * 16 + low == 0)
                return hd_error_set(fault, HD_EINVAL,
                                    "sqlite:///: '%%' takes two hexadecimal digits, not 00 "
                                    "(write '%%' itself as %%25)");
            *out++ = (char)(high * 16 + low);
            in += 2;
        } else {
            *out++ = *in;
        }
    }
    *out = '\0';
    return 0;
}

/*
 * sqlite:PATH is used unchanged. With slashes as in a URL it must be sqlite:///PATH: text between
 * the second and third slash would be a host.
 */
static int normalize_sqlite_path(char **path, struct heddle_error *fault)
{
    char *text = *path;

    if (*text == '\0')
        return hd_error_set(fault, HD_EINVAL, "sqlite: needs a path, such as sqlite:heddle.db");
    if (strncmp(text, "//", 2) != 0)
        return 0;
    if (text[2] != '/')
        return hd_error_set(fault, HD_EINVAL,
                            "sqlite:// needs a third slash and an absolute path; a relative path "
                            "is written sqlite:PATH");
    *path = text + 2;
    return decode_percent(*path, fault);
}

/* ---- the whole URL ---------------------------------------------------- */

/*
 * Splits "scheme:rest" in two; the scheme in lower case. The rest may contain a password: faults
 * never quote it.
 */
static int take_scheme(struct hd_url *url, const char *text, char **rest, struct hd_arena *arena,
                       struct heddle_error *fault)
{
    const char *colon = strchr(text, ':');
    struct hd_slice scheme, after;
    char *letters;

    for (const char *c = text; colon && c < colon; c++) {
        if (!isalnum((unsigned char)*c) && *c != '+' && *c != '-' && *c != '.')
            colon = NULL;
    }
    if (!colon || colon == text)
        return hd_error_set(fault, HD_EINVAL,
                            "not a store URL: it begins with memory:, sqlite: or postgresql:");
    if (hd_arena_copy(arena, hd_slice(text, (size_t)(colon - text)), &scheme) ||
        hd_arena_copy(arena, hd_slice_cstr(colon + 1), &after))
        return hd_error_set(fault, HD_ENOMEM, "out of memory");
    letters = (char *)scheme.ptr;
    for (size_t i = 0; i < scheme.len; i++)
        letters[i] = (char)tolower((unsigned char)letters[i]);
    url->scheme = scheme.ptr;
    *rest = (char *)after.ptr;
    return 0;
}

int hd_url_parse(struct hd_url *url, const char *text, struct hd_arena *arena,
                 struct heddle_error *fault)
{
    struct hd_url parsed = {
        .max_value = (size_t)256 << 20, .pool = 4, .schema = "heddle", .timeout_ms = 10000};
    char *rest = NULL;
    char *query;
    int err;

    err = take_scheme(&parsed, text, &rest, arena, fault);
    if (err)
        return err;
    query = strchr(rest, '?');
    if (query) {
        *query = '\0';
        err = take_parameters(&parsed, query + 1, arena, fault);
        if (err)
            return err;
    }
    if (strcmp(parsed.scheme, "sqlite") == 0) {
        err = normalize_sqlite_path(&rest, fault);
        if (err)
            return err;
    }
    /* Appends the remaining query to the path. */
    if (query && query[1])
        *query = '?';
    parsed.rest = rest;
    parsed.full = hd_arena_printf(arena, "%s:%s", parsed.scheme, rest);
    if (!parsed.full)
        return hd_error_set(fault, HD_ENOMEM, "out of memory");
    *url = parsed;
    return 0;
}

/* An unencoded password may contain "/", "?", "#" and "@": the last "@" ends it. */
void hd_url_show(const char *url, char *out, size_t size)
{
    const char *authority = strstr(url, "://");
    const char *colon = authority ? strchr(authority + 3, ':') : NULL;
    const char *at = colon ? strrchr(colon, '@') : NULL;
    const char *rest = at ? at : url;
    const char *query = strchr(rest, '?');
    size_t len = query && strstr(query, "password") ? (size_t)(query - rest) : strlen(rest);

    if (at)
        (void)snprintf(out, size, "%.*s:***%.*s", (int)(colon - url), url, (int)len, rest);
    else
        (void)snprintf(out, size, "%.*s", (int)len, url);
}

bool hd_url_file(const char *url, char *out, size_t size)
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
