/*
 * Finds secrets in stored data.
 *
 * Walks JSON: members with secret names (secret_shape.c), strings that are secrets, JSON in
 * strings. Text that is not JSON as a whole may be a fragment of JSON, msgpack or prose: it is
 * split into words at characters that cannot be part of a secret, and quoted names are checked
 * together with the quoted text that follows. The rules for a word of prose are stricter than for a
 * whole value.
 */
#include "secret/secret_find.h"

#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/json.h"
#include "base/utf8.h"
#include "secret/secret.h"

#define MAX_PLACE 512
#define MAX_NESTING 4 /* JSON in strings of JSON in strings … */
#define MIN_WORD 16
#define MAX_NAME 128
#define MAX_QUOTED 65536 /* in a piece */

struct finder {
    hd_secret_finding_fn fn;
    void *ctx;
    struct hd_buf place;
    int nesting;
    bool is_binary; /* the text is split into words */
};

static int find_json(struct finder *f, hd_json_val val, bool is_named);
static int find_text(struct finder *f, struct hd_slice text);

/* A JSON string was decoded to other memory: its position in the text is unknown. */
static int report_finding(struct finder *f, struct hd_slice secret, const char *kind,
                          bool is_within, const char *from)
{
    struct hd_secret_finding finding = {hd_buf_slice(&f->place), secret, kind, is_within,
                                        f->nesting == 0 ? from : NULL};

    return f->fn(f->ctx, &finding);
}

/* ---- exceptions ------------------------------------------------------- */

static bool contains_text(struct hd_slice text, struct hd_slice part)
{
    return text.ptr && memmem(text.ptr, text.len, part.ptr, part.len) != NULL;
}

/* Markers, and common placeholders for secrets. */
static bool is_placeholder(struct hd_slice text)
{
    if (text.len == 0 || contains_text(text, HD_S(HD_SECRET_PREFIX)))
        return true;
    if (strchr("<{$", text.ptr[0]) && text.ptr[0])
        return true;
    for (size_t i = 0; i < text.len; i++) {
        if (!strchr("*.-xX", text.ptr[i]) || !text.ptr[i])
            return hd_slice_eq(text, HD_S("[redacted]")) || hd_slice_eq(text, HD_S("REDACTED"));
    }
    return text.len > 2;
}

/* `{"token": "Hel", "logprob": -0.1}`: a model's output token. */
static bool is_logprob(hd_json_val object, struct hd_slice name)
{
    return hd_slice_eq(name, HD_S("token")) && hd_json_get(object, HD_S("logprob"));
}

/* A parameter called `api_key` in a tool's schema is not a secret. */
static bool is_schema(hd_json_val val)
{
    return hd_json_is_object(val) &&
           (hd_json_get(val, HD_S("type")) || hd_json_get(val, HD_S("anyOf")) ||
            hd_json_get(val, HD_S("$ref")));
}

/* `postgresql://user:password@localhost`: a documentation example. */
static bool is_example_url(struct hd_slice url)
{
    static const struct hd_slice examples[] = {
        HD_S_INIT(":password@"), HD_S_INIT(":pass@"),     HD_S_INIT(":pwd@"), HD_S_INIT(":passwd@"),
        HD_S_INIT(":secret@"),   HD_S_INIT(":PASSWORD@"), HD_S_INIT(":***@"), HD_S_INIT(":xxx@"),
    };

    for (size_t i = 0; i < HD_COUNT(examples); i++) {
        if (contains_text(url, examples[i]))
            return true;
    }
    return contains_text(url, HD_S(":$")) || contains_text(url, HD_S(":*"));
}

static bool is_url(struct hd_slice text)
{
    return contains_text(text, HD_S("://"));
}

/* For a whole text. One that begins with a URL and continues is prose. */
static const char *text_kind(struct hd_slice text)
{
    const char *kind = is_placeholder(text) ? NULL : hd_secret_text_kind(text);

    if (kind && is_url(text) && (is_example_url(text) || contains_text(text, HD_S(" "))))
        return NULL;
    return kind;
}

/* ---- words ------------------------------------------------------------ */

static bool is_word_char(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c && strchr("-_.~+/=:@%!$*", c));
}

/* Looks random: not a name chosen by people or programs. */
static bool is_random(struct hd_slice text)
{
    size_t digits = 0, upper = 0, lower = 0;

    for (size_t i = 0; i < text.len; i++) {
        digits += text.ptr[i] >= '0' && text.ptr[i] <= '9';
        upper += text.ptr[i] >= 'A' && text.ptr[i] <= 'Z';
        lower += text.ptr[i] >= 'a' && text.ptr[i] <= 'z';
    }
    return digits >= 4 || (digits >= 1 && upper >= 2 && lower >= 2);
}

static struct hd_slice without_end(struct hd_slice word)
{
    while (word.len > 0 && strchr(".:!*", word.ptr[word.len - 1]))
        word.len--;
    return word;
}

/* "Bearer …" in prose: checks the text before the word. */
static bool follows_scheme(struct hd_slice text, const char *word)
{
    static const struct hd_slice schemes[] = {HD_S_INIT("bearer "), HD_S_INIT("basic ")};
    size_t before = (size_t)(word - text.ptr);

    for (size_t i = 0; i < HD_COUNT(schemes); i++) {
        size_t len = schemes[i].len;
        bool is_same = before >= len;

        for (size_t n = 0; is_same && n < len; n++)
            is_same = (word[(ptrdiff_t)n - (ptrdiff_t)len] | 0x20) == (schemes[i].ptr[n] | 0x20);
        if (is_same)
            return true;
    }
    return false;
}

static int find_in_word(struct finder *f, struct hd_slice text, struct hd_slice word)
{
    const char *kind;

    word = without_end(word);
    if (word.len < MIN_WORD || contains_text(word, HD_S(HD_SECRET_PREFIX)))
        return 0;
    kind = text_kind(word);
    if (kind && (is_url(word) || is_random(word)))
        return report_finding(f, word, kind, word.len != text.len, word.ptr);
    if (is_random(word) && !is_url(word) && follows_scheme(text, word.ptr))
        return report_finding(f, word, "credentials", true, word.ptr);
    return 0;
}

/* Checks the word, and the part after a `=`, `:` or, in msgpack, the length bytes. */
static int find_in_words(struct finder *f, struct hd_slice text, struct hd_slice word)
{
    int err = find_in_word(f, text, word);

    for (size_t i = 0; !err && i + MIN_WORD < word.len; i++) {
        bool begins = strchr("=:", word.ptr[i]) || (f->is_binary && i < 2);

        if (begins && !(word.len > i + 2 && word.ptr[i + 1] == '/'))
            err = find_in_word(f, text, hd_slice(word.ptr + i + 1, word.len - i - 1));
    }
    return err;
}

static int find_private_keys(struct finder *f, struct hd_slice text)
{
    static const struct hd_slice begin = HD_S_INIT("-----BEGIN "), key = HD_S_INIT("PRIVATE KEY");
    const char *at = text.ptr, *end = text.ptr + text.len;
    int err = 0;

    while (!err && at && (at = memmem(at, (size_t)(end - at), begin.ptr, begin.len))) {
        size_t left = (size_t)(end - at);
        struct hd_slice head = hd_slice(at, left < 60 ? left : 60);

        if (contains_text(head, key) && left > 100)
            err = report_finding(f, hd_slice(at, left), "a private key", at != text.ptr, at);
        at += begin.len;
    }
    return err;
}

static int find_words(struct finder *f, struct hd_slice text)
{
    int err = text.len > 0 ? find_private_keys(f, text) : 0;
    size_t i = 0;

    f->is_binary = text.len > 0 && !hd_utf8_is_valid(text);
    while (!err && i < text.len) {
        size_t begin = i;

        while (i < text.len && is_word_char(text.ptr[i]))
            i++;
        if (i - begin >= MIN_WORD)
            err = find_in_words(f, text, hd_slice(text.ptr + begin, i - begin));
        i += i == begin;
    }
    return err;
}

/* ---- pieces of JSON: `"name": "value"` ---------------------------------- */

/* Reads a quoted text of at most `limit` bytes at text.ptr[*at]; false when it does not end. */
static bool read_quoted(struct hd_slice text, size_t *at, size_t limit, struct hd_slice *out)
{
    size_t i = *at + 1, end = text.len - i < limit ? text.len : i + limit;

    while (i < end && text.ptr[i] != '"')
        i += text.ptr[i] == '\\' ? 2 : 1;
    if (i >= end)
        return false;
    *out = hd_slice(text.ptr + *at + 1, i - *at - 1);
    *at = i + 1;
    return true;
}

static size_t skip_space(struct hd_slice text, size_t at)
{
    while (at < text.len && strchr(" \t\r\n", text.ptr[at]) && text.ptr[at])
        at++;
    return at;
}

static int find_pair(struct finder *f, struct hd_slice name, struct hd_slice value)
{
    size_t len = f->place.len;
    int err;

    if (!hd_secret_is_name(name) || is_placeholder(value) || hd_slice_eq(name, HD_S("token")))
        return 0; /* `token` alone is often a model's */
    err = hd_buf_append_slice(&f->place, name);
    if (!err)
        err = report_finding(f, value, "by name", false, name.ptr);
    f->place.len = len;
    return err;
}

static int find_pairs(struct finder *f, struct hd_slice text)
{
    struct hd_slice name, value;
    size_t i = 0;
    int err = 0;

    while (!err && i < text.len) {
        size_t next;

        next = i++;
        /* In a fragment it is unknown which quotes open and which close: try each. */
        if (text.ptr[next] != '"' || !read_quoted(text, &next, MAX_NAME, &name))
            continue;
        next = skip_space(text, next);
        if (next >= text.len || text.ptr[next] != ':')
            continue;
        i = next = skip_space(text, next + 1);
        if (next < text.len && text.ptr[next] == '"' &&
            read_quoted(text, &next, MAX_QUOTED, &value))
            err = find_pair(f, name, value);
    }
    return err;
}

static int find_in(struct hd_slice text, hd_secret_finding_fn fn, void *ctx,
                   int (*find)(struct finder *, struct hd_slice))
{
    struct finder f = {.fn = fn, .ctx = ctx};
    int err;

    hd_buf_init(&f.place, (size_t)4 * MAX_PLACE);
    err = find(&f, text);
    hd_buf_fini(&f.place);
    return err;
}

static int find_pieces(struct finder *f, struct hd_slice text)
{
    int err = find_pairs(f, text);

    return err ? err : find_words(f, text);
}

int hd_secret_find_pieces(struct hd_slice text, hd_secret_finding_fn fn, void *ctx)
{
    return find_in(text, fn, ctx, find_pieces);
}

/* ---- JSON ------------------------------------------------------------- */

static int enter_place(struct finder *f, struct hd_slice name, size_t index)
{
    int err = 0;

    if (f->place.len > MAX_PLACE)
        return 0;
    if (f->place.len > 0)
        err = hd_buf_append_byte(&f->place, '.');
    if (err)
        return err;
    if (!name.ptr)
        return hd_buf_append_int(&f->place, (int64_t)index);
    return hd_buf_append_slice(&f->place, hd_slice(name.ptr, name.len < 64 ? name.len : 64));
}

static int find_string(struct finder *f, struct hd_slice text, bool is_named)
{
    const char *kind;

    if (is_named && !is_placeholder(text))
        return report_finding(f, text, "by name", false, NULL);
    kind = text_kind(text);
    return kind ? report_finding(f, text, kind, false, NULL) : find_text(f, text);
}

static bool has_target(hd_json_val val)
{
    struct hd_json_iter it = hd_json_iter(val);

    while (it.is_object && hd_json_next(&it)) {
        if (hd_secret_names_target(it.key))
            return true;
    }
    return false;
}

/* Request headers of a server, an agent or a tool. */
static int find_sent(struct finder *f, hd_json_val headers)
{
    struct hd_json_iter it = hd_json_iter(headers);
    size_t len = f->place.len;
    int err = 0;

    while (!err && hd_json_next(&it)) {
        err = enter_place(f, it.key, 0);
        if (!err)
            err = find_json(f, it.val, hd_secret_is_header(it.key));
        f->place.len = len;
    }
    return err;
}

static int find_members(struct finder *f, hd_json_val val, bool is_named)
{
    struct hd_json_iter it = hd_json_iter(val);
    bool is_object = hd_json_is_object(val), is_target = has_target(val);
    size_t len = f->place.len, index = 0;
    int err = 0;

    while (!err && hd_json_next(&it)) {
        bool named = is_named;

        if (is_object)
            named = (named || hd_secret_is_name(it.key)) && !is_logprob(val, it.key) &&
                    !is_schema(it.val);
        err = enter_place(f, is_object ? it.key : hd_slice(NULL, 0), index++);
        if (!err && is_target && hd_json_is_object(it.val) && hd_secret_names_headers(it.key))
            err = find_sent(f, it.val);
        else if (!err)
            err = find_json(f, it.val, named);
        if (!err && is_object && hd_secret_text_kind(it.key))
            err = report_finding(f, it.key, hd_secret_text_kind(it.key), false, NULL);
        f->place.len = len;
    }
    return err;
}

static int find_json(struct finder *f, hd_json_val val, bool is_named)
{
    if (hd_json_is_object(val) || hd_json_is_array(val))
        return find_members(f, val, is_named);
    return hd_json_is_string(val) ? find_string(f, hd_json_string(val), is_named) : 0;
}

/* Text that may be JSON, such as a call's arguments. */
static int find_text(struct finder *f, struct hd_slice text)
{
    struct hd_json json = {NULL};
    bool may_be = text.len > 1 && strchr("{[\"", text.ptr[0]) && text.ptr[0];
    int err = may_be && f->nesting < MAX_NESTING ? hd_json_parse(&json, text, NULL) : HD_EINVAL;

    if (err && err != HD_EINVAL)
        return err;
    if (!err) {
        f->nesting++;
        err = find_json(f, hd_json_root(&json), false);
        f->nesting--;
    } else if (f->nesting == 0) {
        err = find_pieces(f, text);
    } else {
        err = find_words(f, text);
    }
    hd_json_fini(&json);
    return err;
}

static int find_whole(struct finder *f, struct hd_slice text)
{
    const char *kind = text_kind(text);

    return kind ? report_finding(f, text, kind, false, text.ptr) : find_text(f, text);
}

int hd_secret_find(struct hd_slice text, hd_secret_finding_fn fn, void *ctx)
{
    return find_in(text, fn, ctx, find_whole);
}

/* ---- headers ---------------------------------------------------------- */

static int find_header(struct finder *f, struct hd_slice line)
{
    const char *colon = line.len > 0 ? memchr(line.ptr, ':', line.len) : NULL;
    struct hd_slice name, value;
    int err;

    if (!colon)
        return find_text(f, line);
    name = hd_slice(line.ptr, (size_t)(colon - line.ptr));
    value = hd_slice(colon + 1, line.len - name.len - 1);
    value = hd_slice(value.ptr + skip_space(value, 0), value.len - skip_space(value, 0));
    f->place.len = 0;
    err = enter_place(f, name, 0);
    if (!err)
        err = find_string(f, value, hd_secret_is_name(name));
    f->place.len = 0;
    return err;
}

static int find_lines(struct finder *f, struct hd_slice text)
{
    int err = 0;

    while (!err && text.len > 0) {
        const char *end = memchr(text.ptr, '\n', text.len);
        size_t len = end ? (size_t)(end - text.ptr) : text.len, next = len + (end != NULL);

        err = find_header(f,
                          hd_slice(text.ptr, len > 0 && text.ptr[len - 1] == '\r' ? len - 1 : len));
        text = hd_slice(text.ptr + next, text.len - next);
    }
    return err;
}

int hd_secret_find_headers(struct hd_slice lines, hd_secret_finding_fn fn, void *ctx)
{
    return find_in(lines, fn, ctx, find_lines);
}
