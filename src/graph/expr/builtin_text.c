/* Built-ins for text. */
#include <locale.h>
#include <pthread.h>
#include <string.h>
#include <wctype.h>

#include "base/utf8.h"
#include "graph/expr/builtin.h"

static int give_null(struct hd_val **out)
{
    *out = hd_val_null();
    return 0;
}

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* ---- joining ---------------------------------------------------------- */

static int concat(struct hd_eval *ev, const struct hd_builtin *call, struct hd_val *const *args,
                  size_t count, struct hd_val **out)
{
    struct hd_buf buf;
    int err = 0;

    (void)call;
    hd_eval_buf(ev, &buf);
    for (size_t i = 0; i < count && err == 0; i++)
        err = hd_val_write_text(&buf, args[i]);
    return hd_eval_take(ev, &buf, err, out);
}

static int join_strings(struct hd_eval *ev, const struct hd_builtin *call,
                        struct hd_val *const *args, size_t count, struct hd_val **out)
{
    struct hd_buf buf;
    int err;

    (void)call;
    (void)count;
    if (!hd_val_is_list(args[0]))
        return give_null(out);
    err = hd_eval_step(ev, hd_val_count(args[0]));
    if (err != 0)
        return err;
    hd_eval_buf(ev, &buf);
    for (size_t i = 0; i < hd_val_count(args[0]) && err == 0; i++) {
        if (i > 0)
            err = hd_val_write_text(&buf, args[1]);
        if (err == 0)
            err = hd_val_write_text(&buf, hd_val_at(args[0], i));
    }
    return hd_eval_take(ev, &buf, err, out);
}

/* ---- splitting -------------------------------------------------------- */

struct pieces {
    struct hd_eval *ev;
    struct hd_val *list;
    int err;
};

static void add_piece(struct pieces *pieces, const char *start, const char *end)
{
    if (pieces->err != 0)
        return;
    pieces->err = hd_eval_step(pieces->ev, 1);
    if (pieces->err == 0)
        pieces->err = hd_eval_bytes(pieces->ev, (size_t)(end - start) + 64);
    if (pieces->err != 0)
        return;
    pieces->list =
        hd_val_append(pieces->list, hd_val_string(hd_slice(start, (size_t)(end - start))));
    if (!pieces->list)
        pieces->err = HD_ENOMEM;
}

static void split_spaces(struct pieces *pieces, struct hd_slice text)
{
    const char *pos = text.ptr, *end = text.ptr + text.len;

    while (pos < end && pieces->err == 0) {
        const char *start = pos;

        while (pos < end && !is_space(*pos))
            pos++;
        if (pos > start)
            add_piece(pieces, start, pos);
        while (pos < end && is_space(*pos))
            pos++;
    }
}

static void split_characters(struct pieces *pieces, struct hd_slice text)
{
    const char *pos = text.ptr, *end = text.ptr + text.len;

    while (pos < end && pieces->err == 0) {
        size_t len = hd_utf8_char(pos, end);

        len = len ? len : 1;
        add_piece(pieces, pos, pos + len);
        pos += len;
    }
}

static void split_at(struct pieces *pieces, struct hd_slice text, struct hd_slice separator)
{
    const char *pos = text.ptr, *end = text.ptr + text.len;

    while (pieces->err == 0) {
        const char *next = memmem(pos, (size_t)(end - pos), separator.ptr, separator.len);

        add_piece(pieces, pos, next ? next : end);
        if (!next)
            break;
        pos = next + separator.len;
    }
}

static int split_string(struct hd_eval *ev, const struct hd_builtin *call,
                        struct hd_val *const *args, size_t count, struct hd_val **out)
{
    struct hd_slice text = hd_val_get_string(args[0]);
    bool has_separator = count > 1 && !hd_val_is_null(args[1]);
    struct pieces pieces = {.ev = ev};

    (void)call;
    if (!hd_val_is_string(args[0]) || (has_separator && !hd_val_is_string(args[1])))
        return give_null(out);
    pieces.list = hd_val_list();
    if (!pieces.list)
        return HD_ENOMEM;
    if (!has_separator)
        split_spaces(&pieces, text);
    else if (hd_val_get_string(args[1]).len == 0)
        split_characters(&pieces, text);
    else
        split_at(&pieces, text, hd_val_get_string(args[1]));
    if (pieces.err == 0)
        return hd_eval_give(pieces.list, out);
    hd_val_unref(pieces.list);
    return pieces.err;
}

/* ---- letters and spaces ----------------------------------------------- */

/* Maps letters of all scripts one to one. Independent of the process's locale. */
static locale_t letters;
static pthread_once_t letters_once = PTHREAD_ONCE_INIT;

static void find_letters(void)
{
    letters = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
}

/* Decodes a valid character of `len` bytes. */
static uint32_t decode_char(const char *pos, size_t len)
{
    static const unsigned char masks[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    uint32_t code = (unsigned char)pos[0] & masks[len];

    for (size_t i = 1; i < len; i++)
        code = code << 6 | ((unsigned char)pos[i] & 0x3f);
    return code;
}

static int append_code(struct hd_buf *buf, uint32_t code)
{
    char out[4];
    size_t len = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const unsigned char heads[] = {0, 0, 0xc0, 0xe0, 0xf0};

    for (size_t i = len; i-- > 1; code >>= 6)
        out[i] = (char)(0x80 | (code & 0x3f));
    out[0] = (char)(heads[len] | code);
    return hd_buf_append(buf, out, len);
}

static uint32_t other_case(uint32_t code, bool is_upper)
{
    if (letters == (locale_t)0)
        return code;
    return (uint32_t)(is_upper ? towupper_l((wint_t)code, letters)
                               : towlower_l((wint_t)code, letters));
}

static int change_case(struct hd_eval *ev, const struct hd_builtin *call,
                       struct hd_val *const *args, size_t count, struct hd_val **out)
{
    struct hd_slice text = hd_val_get_string(args[0]);
    const char *pos = text.ptr, *end = pos + text.len;
    bool is_upper = call->text[0] == 'a';
    struct hd_buf buf;
    int err = 0;

    (void)count;
    if (!hd_val_is_string(args[0]))
        return give_null(out);
    (void)pthread_once(&letters_once, find_letters);
    hd_eval_buf(ev, &buf);
    while (!err && pos < end) {
        size_t len = hd_utf8_char(pos, end);

        if (len == 0) /* not UTF-8: unchanged */
            err = hd_buf_append(&buf, pos++, 1);
        else
            err = append_code(&buf, other_case(decode_char(pos, len), is_upper));
        pos += len;
    }
    return hd_eval_take(ev, &buf, err, out);
}

static int trim_string(struct hd_eval *ev, const struct hd_builtin *call,
                       struct hd_val *const *args, size_t count, struct hd_val **out)
{
    struct hd_slice text = hd_val_get_string(args[0]);
    int err;

    (void)call;
    (void)count;
    if (!hd_val_is_string(args[0]))
        return give_null(out);
    while (text.len > 0 && is_space(text.ptr[0]))
        text = hd_slice(text.ptr + 1, text.len - 1);
    while (text.len > 0 && is_space(text.ptr[text.len - 1]))
        text.len--;
    err = hd_eval_bytes(ev, text.len);
    return err == 0 ? hd_eval_give(hd_val_string(text), out) : err;
}

static int starts_ends(struct hd_eval *ev, const struct hd_builtin *call,
                       struct hd_val *const *args, size_t count, struct hd_val **out)
{
    struct hd_slice text = hd_val_get_string(args[0]);
    struct hd_slice part = hd_val_get_string(args[1]);
    bool are_strings = hd_val_is_string(args[0]) && hd_val_is_string(args[1]);

    (void)ev;
    (void)count;
    if (call->text[0] == '$' && text.len > part.len)
        text = hd_slice(text.ptr + text.len - part.len, part.len);
    *out = hd_val_bool(are_strings && hd_slice_starts(text, part));
    return 0;
}

/* ---- JSON ------------------------------------------------------------- */

static int to_json(struct hd_eval *ev, const struct hd_builtin *call, struct hd_val *const *args,
                   size_t count, struct hd_val **out)
{
    struct hd_buf buf;
    int err;

    (void)call;
    (void)count;
    hd_eval_buf(ev, &buf);
    err = hd_val_render(&buf, args[0]);
    return hd_eval_take(ev, &buf, err, out);
}

static int from_json(struct hd_eval *ev, const struct hd_builtin *call, struct hd_val *const *args,
                     size_t count, struct hd_val **out)
{
    struct hd_slice text = hd_val_get_string(args[0]);
    int err;

    (void)call;
    (void)count;
    if (!hd_val_is_string(args[0]))
        return give_null(out);
    /* Charge in advance: each byte of text may become a value. */
    err = hd_eval_bytes(ev, text.len * 4);
    if (err == 0)
        err = hd_eval_step(ev, text.len / 8);
    if (err == 0)
        err = hd_val_parse_json(text, out, NULL);
    return err == HD_EINVAL ? give_null(out) : err;
}

/* ---- JSON within text ------------------------------------------------- */

#define MAX_TRIES 64 /* opening braces and brackets to try */

/* Parses a text that is exactly one object or list; otherwise the result is null. */
static int try_json(struct hd_eval *ev, struct hd_slice text, struct hd_val **out)
{
    int err;

    while (text.len > 0 && is_space(text.ptr[0]))
        text = hd_slice(text.ptr + 1, text.len - 1);
    if (text.len == 0 || (text.ptr[0] != '{' && text.ptr[0] != '['))
        return give_null(out);
    err = hd_eval_bytes(ev, text.len * 4);
    if (err == 0)
        err = hd_eval_step(ev, text.len / 8);
    if (err == 0)
        err = hd_val_parse_json(text, out, NULL);
    return err == HD_EINVAL ? give_null(out) : err;
}

/* The text between the first line with ``` and the next ```. */
static struct hd_slice fenced(struct hd_slice text)
{
    const char *open = memmem(text.ptr, text.len, "```", 3), *line, *close;
    const char *end = text.ptr + text.len;

    line = open ? memchr(open, '\n', (size_t)(end - open)) : NULL;
    close = line ? memmem(line, (size_t)(end - line), "```", 3) : NULL;
    return close ? hd_slice(line, (size_t)(close - line)) : hd_slice("", 0);
}

/* The length from an opening brace or bracket to its closing one; 0 if it is not closed. */
static size_t closed_length(struct hd_slice text)
{
    bool is_in_string = false;
    size_t depth = 0;

    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];

        if (is_in_string && c == '\\')
            i++;
        else if (c == '"')
            is_in_string = !is_in_string;
        else if (!is_in_string && (c == '{' || c == '['))
            depth++;
        else if (!is_in_string && (c == '}' || c == ']') && --depth == 0)
            return i + 1;
    }
    return 0;
}

static int first_in_braces(struct hd_eval *ev, struct hd_slice text, struct hd_val **out)
{
    int tries = 0, err = give_null(out);

    for (size_t i = 0; !err && i < text.len && tries < MAX_TRIES && hd_val_is_null(*out); i++) {
        struct hd_slice rest = hd_slice(text.ptr + i, text.len - i);

        if (rest.ptr[0] != '{' && rest.ptr[0] != '[')
            continue;
        tries++;
        err = hd_eval_step(ev, rest.len / 8 + 1);
        if (!err)
            err = try_json(ev, hd_slice(rest.ptr, closed_length(rest)), out);
    }
    return err;
}

/* Models often add text around JSON: tries the whole text, a code fence, then the first braces. */
static int json_in(struct hd_eval *ev, const struct hd_builtin *call, struct hd_val *const *args,
                   size_t count, struct hd_val **out)
{
    struct hd_slice text = hd_val_get_string(args[0]);
    int err;

    (void)call;
    (void)count;
    if (text.len == 0)
        return give_null(out);
    err = try_json(ev, text, out);
    if (!err && hd_val_is_null(*out))
        err = try_json(ev, fenced(text), out);
    if (!err && hd_val_is_null(*out))
        err = first_in_braces(ev, text, out);
    return err;
}

static const struct hd_builtin calls[] = {
    {"@concat", HD_ARGS_ANY, 0, 0, concat, NULL, NULL, NULL},
    {"@join", HD_ARGS_LIST, 2, 2, join_strings, NULL, NULL, NULL},
    {"@split", HD_ARGS_LIST, 1, 2, split_string, NULL, NULL, NULL},
    {"@upper", HD_ARGS_ONE, 0, 0, change_case, NULL, NULL, "a"},
    {"@lower", HD_ARGS_ONE, 0, 0, change_case, NULL, NULL, "A"},
    {"@trim", HD_ARGS_ONE, 0, 0, trim_string, NULL, NULL, NULL},
    {"@starts", HD_ARGS_LIST, 2, 2, starts_ends, NULL, NULL, "^"},
    {"@ends", HD_ARGS_LIST, 2, 2, starts_ends, NULL, NULL, "$"},
    {"@json", HD_ARGS_ONE, 0, 0, to_json, NULL, NULL, NULL},
    {"@parse", HD_ARGS_ONE, 0, 0, from_json, NULL, NULL, NULL},
    {"@json_in", HD_ARGS_ONE, 0, 0, json_in, NULL, NULL, NULL},
};

const struct hd_builtins hd_builtins_text = {calls, HD_COUNT(calls)};
