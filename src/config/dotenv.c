#include "config/dotenv.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"

struct dotenv_reader {
    const char *pos, *end;
    int line;
    hd_dotenv_lookup lookup;
    void *ctx;
    struct hd_arena *arena;
    struct hd_dotenv *out;
    struct hd_buf value;
    struct heddle_error *fault;
};

static bool is_name_char(char c, bool is_first)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           (!is_first && c >= '0' && c <= '9');
}

bool hd_dotenv_is_name(struct hd_slice name)
{
    for (size_t i = 0; i < name.len; i++) {
        if (!is_name_char(name.ptr[i], i == 0))
            return false;
    }
    return name.len > 0 && name.len < 256;
}

static struct hd_dotenv_item *find_dotenv_item(const struct hd_dotenv *env, const char *name)
{
    for (size_t i = 0; i < env->count; i++) {
        if (strcmp(env->items[i].name, name) == 0)
            return &env->items[i];
    }
    return NULL;
}

int hd_dotenv_put(struct hd_dotenv *env, struct hd_arena *arena, struct hd_slice name,
                  struct hd_slice value, struct heddle_error *fault)
{
    struct hd_dotenv_item *item;
    struct hd_slice copy, key;

    if (!hd_dotenv_is_name(name))
        return hd_error_set(fault, HD_EINVAL, "\"%.*s\" is not a variable name",
                            (int)(name.len < 64 ? name.len : 64), name.ptr ? name.ptr : "");
    if (value.len > HD_DOTENV_MAX_VALUE || (value.len > 0 && memchr(value.ptr, '\0', value.len)))
        return hd_error_set(fault, HD_EINVAL, "%.*s: too long, or contains a NUL", (int)name.len,
                            name.ptr);
    if (hd_arena_copy(arena, value, &copy) != 0 || hd_arena_copy(arena, name, &key) != 0)
        return hd_error_set(fault, HD_ENOMEM, "out of memory");
    if (!env->items)
        env->items = hd_arena_calloc(arena, HD_DOTENV_MAX, sizeof(*env->items));
    if (!env->items)
        return hd_error_set(fault, HD_ENOMEM, "out of memory");
    item = find_dotenv_item(env, key.ptr);
    if (!item && env->count == HD_DOTENV_MAX)
        return hd_error_set(fault, HD_EINVAL, "more than %d variables", HD_DOTENV_MAX);
    if (!item)
        item = &env->items[env->count++];
    *item = (struct hd_dotenv_item){.name = key.ptr, .value = copy.ptr};
    return 0;
}

static int refuse_line(struct dotenv_reader *r, const char *what)
{
    return hd_error_set(r->fault, HD_EINVAL, "line %d: %s", r->line, what);
}

static bool at(const struct dotenv_reader *r, char c)
{
    return r->pos < r->end && *r->pos == c;
}

static void skip_blanks(struct dotenv_reader *r)
{
    while (r->pos < r->end && (*r->pos == ' ' || *r->pos == '\t' || *r->pos == '\r'))
        r->pos++;
}

static void skip_line(struct dotenv_reader *r)
{
    while (r->pos < r->end && *r->pos != '\n')
        r->pos++;
}

static int add_bytes(struct dotenv_reader *r, const char *bytes, size_t len)
{
    int err = hd_buf_append(&r->value, bytes, len);

    return err == HD_ELIMIT ? refuse_line(r, "the value is too long") : err;
}

/* ${NAME} and ${NAME:-otherwise}; anything else that begins with a dollar stands for itself. */
static int add_variable(struct dotenv_reader *r)
{
    const char *close = memchr(r->pos, '}', (size_t)(r->end - r->pos));
    const char *name = r->pos + 2, *end = name, *found;
    const struct hd_dotenv_item *item;
    char text[256];
    size_t len;

    while (end < r->end && is_name_char(*end, end == name))
        end++;
    len = (size_t)(end - name);
    if (!close || len == 0 || len >= sizeof(text) ||
        (end != close && (close - end < 2 || end[0] != ':' || end[1] != '-')))
        return add_bytes(r, r->pos++, 1);
    memcpy(text, name, len);
    text[len] = '\0';
    item = find_dotenv_item(r->out, text);
    found = item ? item->value : r->lookup ? r->lookup(r->ctx, text) : NULL;
    r->pos = close + 1;
    if ((!found || !*found) && end != close)
        return add_bytes(r, end + 2, (size_t)(close - end) - 2);
    return found ? add_bytes(r, found, strlen(found)) : 0;
}

static bool is_variable(const struct dotenv_reader *r)
{
    return r->end - r->pos > 2 && r->pos[0] == '$' && r->pos[1] == '{';
}

static int add_escaped(struct dotenv_reader *r)
{
    static const char from[] = "nrt\"\\'$", to[] = "\n\r\t\"\\'$";
    const char *known = r->pos[1] ? strchr(from, r->pos[1]) : NULL;
    int err = known ? add_bytes(r, &to[known - from], 1) : add_bytes(r, r->pos, 2);

    r->pos += 2;
    return err;
}

static int read_quoted(struct dotenv_reader *r, char quote)
{
    int err = 0, begun = r->line;

    for (r->pos++; !err && r->pos < r->end && *r->pos != quote;) {
        r->line += *r->pos == '\n';
        if (quote == '"' && *r->pos == '\\' && r->end - r->pos > 1)
            err = add_escaped(r);
        else if (quote == '"' && is_variable(r))
            err = add_variable(r);
        else
            err = add_bytes(r, r->pos++, 1);
    }
    if (err)
        return err;
    if (!at(r, quote)) {
        r->line = begun;
        return refuse_line(r, "the quote is not closed");
    }
    r->pos++;
    skip_blanks(r);
    if (r->pos < r->end && *r->pos != '\n' && *r->pos != '#')
        return refuse_line(r, "unexpected text after the closing quote");
    skip_line(r);
    return 0;
}

/* To the end of the line, or to a comment: a # after a blank. */
static int read_plain(struct dotenv_reader *r)
{
    int err = 0;

    while (!err && r->pos < r->end && *r->pos != '\n') {
        bool is_after_blank = r->pos[-1] == ' ' || r->pos[-1] == '\t' || r->pos[-1] == '=';

        if (*r->pos == '#' && is_after_blank)
            break;
        err = is_variable(r) ? add_variable(r) : add_bytes(r, r->pos++, 1);
    }
    skip_line(r);
    while (r->value.len > 0 && strchr(" \t\r", r->value.ptr[r->value.len - 1]) &&
           r->value.ptr[r->value.len - 1])
        r->value.len--;
    return err;
}

static int read_line(struct dotenv_reader *r)
{
    struct hd_slice name;
    int err;

    if (r->end - r->pos > 7 && memcmp(r->pos, "export", 6) == 0 &&
        (r->pos[6] == ' ' || r->pos[6] == '\t')) {
        r->pos += 6;
        skip_blanks(r);
    }
    name.ptr = r->pos;
    while (r->pos < r->end && is_name_char(*r->pos, r->pos == name.ptr))
        r->pos++;
    name.len = (size_t)(r->pos - name.ptr);
    skip_blanks(r);
    /* "NAME" alone is not set. */
    if (name.len > 0 && (r->pos == r->end || *r->pos == '\n' || *r->pos == '#')) {
        skip_line(r);
        return 0;
    }
    if (name.len == 0 || !at(r, '='))
        return refuse_line(r, "not NAME=value");
    r->pos++;
    skip_blanks(r);
    hd_buf_reset(&r->value);
    if (at(r, '"') || at(r, '\''))
        err = read_quoted(r, *r->pos);
    else
        err = read_plain(r);
    return err ? err : hd_dotenv_put(r->out, r->arena, name, hd_buf_slice(&r->value), r->fault);
}

int hd_dotenv_parse(struct hd_slice text, hd_dotenv_lookup lookup, void *ctx,
                    struct hd_arena *arena, struct hd_dotenv *out, struct heddle_error *fault)
{
    struct dotenv_reader r = {
        .line = 1, .lookup = lookup, .ctx = ctx, .arena = arena, .out = out, .fault = fault};
    int err = 0;

    *out = (struct hd_dotenv){0};
    if (text.len >= 3 && memcmp(text.ptr, "\xef\xbb\xbf", 3) == 0)
        text = hd_slice(text.ptr + 3, text.len - 3);
    r.pos = text.ptr;
    r.end = text.ptr ? text.ptr + text.len : NULL;
    hd_buf_init(&r.value, HD_DOTENV_MAX_VALUE);
    while (!err && r.pos < r.end) {
        skip_blanks(&r);
        if (at(&r, '#'))
            skip_line(&r);
        else if (r.pos < r.end && *r.pos != '\n')
            err = read_line(&r);
        if (!err && at(&r, '\n')) {
            r.pos++;
            r.line++;
        }
    }
    hd_buf_fini(&r.value);
    return err;
}
