/*
 * Strings in expressions: `{{path}}` alone or within a text, and the syntax of paths.
 *
 *   path  = root *( "." name / "[" index "]" / "[" quoted "]" )
 *   root  = name / "[" quoted "]"
 *   name  = one or more characters other than . [ ] { } quotes, space and controls
 *   index = ["-"] digits
 *
 * A quoted name is in '…' or "…", with a backslash before a quote or a backslash.
 */
#include <string.h>

#include "graph/decl/decl_expr.h"

#define OPEN HD_S("{{")

struct path_scan {
    struct hd_decl *decl;
    const struct hd_decl_at *at;
    struct hd_slice whole; /* for error messages */
    const char *pos;
    const char *end;
};

static int fail_path(const struct path_scan *s, const char *what)
{
    return hd_decl_fail(s->decl, s->at, "%s in path \"%.*s\"", what, HD_SHOW(s->whole));
}

/* ---- names, indexes and keys ------------------------------------------ */

static bool is_name_char(char c)
{
    return (unsigned char)c > ' ' && c != 0x7f && !strchr(".[]{}\"'", c);
}

static int scan_name(struct path_scan *s, struct hd_slice *out)
{
    const char *start = s->pos;

    while (s->pos < s->end && is_name_char(*s->pos))
        s->pos++;
    if (s->pos == start)
        return fail_path(s, s->pos == s->end ? "a name is missing" : "an unexpected character");
    return hd_decl_copy(s->decl, hd_slice(start, (size_t)(s->pos - start)), out);
}

static int scan_quoted(struct path_scan *s, struct hd_slice *out)
{
    char quote = *s->pos++;
    char *text = hd_arena_alloc(&s->decl->hold->arena, (size_t)(s->end - s->pos) + 1);
    size_t len = 0;

    if (!text)
        return HD_ENOMEM;
    while (s->pos < s->end && *s->pos != quote) {
        if (*s->pos == '\\' && s->end - s->pos > 1)
            s->pos++;
        text[len++] = *s->pos++;
    }
    if (s->pos == s->end)
        return fail_path(s, "a quote is not closed");
    s->pos++;
    *out = hd_slice(text, len);
    return 0;
}

static int scan_index(struct path_scan *s, int64_t *out)
{
    const char *start = s->pos;
    bool is_negative = *s->pos == '-';
    int64_t value = 0;
    int digits = 0;

    s->pos += is_negative;
    for (; s->pos < s->end && *s->pos >= '0' && *s->pos <= '9'; s->pos++, digits++) {
        if (digits == 15)
            return fail_path(s, "an index is too large");
        value = value * 10 + (*s->pos - '0');
    }
    if (digits == 0) {
        s->pos = start;
        return fail_path(s, "an index or a quoted name is missing");
    }
    *out = is_negative ? -value : value;
    return 0;
}

/* Scans an index or a quoted key in brackets. */
static int scan_bracket(struct path_scan *s, struct hd_path_step *step)
{
    int err;

    s->pos++;
    if (s->pos == s->end)
        return fail_path(s, "a bracket is not closed");
    if (*s->pos == '"' || *s->pos == '\'') {
        err = scan_quoted(s, &step->key);
    } else {
        step->is_index = true;
        err = scan_index(s, &step->index);
    }
    if (err == 0 && (s->pos == s->end || *s->pos != ']'))
        return fail_path(s, "a bracket is not closed");
    s->pos++;
    return err;
}

static int scan_root(struct path_scan *s, struct hd_slice *out)
{
    struct hd_path_step step = {0};
    int err;

    if (s->pos == s->end || *s->pos != '[')
        return scan_name(s, out);
    err = scan_bracket(s, &step);
    if (err == 0 && step.is_index)
        return fail_path(s, "an index is not allowed first");
    *out = step.key;
    return err;
}

static int scan_steps(struct path_scan *s, struct hd_path *path)
{
    int err = 0;

    while (s->pos < s->end && err == 0) {
        struct hd_path_step *step =
            hd_decl_memory_push(s->decl->hold, &path->steps, &path->step_count, sizeof(*step));

        if (!step)
            return HD_ENOMEM;
        if (*s->pos == '[') {
            err = scan_bracket(s, step);
        } else if (*s->pos == '.') {
            s->pos++;
            err = scan_name(s, &step->key);
        } else {
            err = fail_path(s, "an unexpected character");
        }
    }
    return err;
}

/* ---- resolving the first name ----------------------------------------- */

static bool find_name(const struct hd_names *names, struct hd_path *path)
{
    for (; names; names = names->outer) {
        if (hd_slice_eq(names->name, path->name)) {
            path->root = names->is_place ? HD_ROOT_PLACE : HD_ROOT_VARIABLE;
            path->slot = names->slot;
            return true;
        }
    }
    return false;
}

static bool node_reads(const struct hd_node *node, size_t channel)
{
    if (!node || !node->reads)
        return true;
    for (size_t i = 0; i < node->read_count; i++) {
        if (node->reads[i] == channel)
            return true;
    }
    return false;
}

static int fail_name(struct path_scan *s, const struct hd_names *names, struct hd_slice name)
{
    struct hd_draft *draft = s->decl->draft;
    struct hd_near near;

    hd_near_init(&near, name);
    for (; names; names = names->outer)
        hd_near_try(&near, names->name);
    for (size_t i = 0; i < draft->graph->state_count; i++)
        hd_near_try(&near, draft->channels[i].name);
    return hd_decl_fail(s->decl, s->at, "\"%.*s\" is neither a channel nor another known name%s",
                        HD_SHOW(name), hd_near_text(&near));
}

static bool is_arg(const struct hd_node *node, struct hd_slice name)
{
    for (size_t i = 0; i < node->arg_count; i++) {
        if (hd_slice_eq(node->args[i], name))
            return true;
    }
    return false;
}

/* Only a send's argument can define this name. decl_check.c checks it when all sends are known. */
static int expect_input(struct path_scan *s, struct hd_path *path)
{
    struct hd_draft *draft = s->decl->draft;
    struct hd_pending *pending;

    path->root = HD_ROOT_INPUT;
    if (is_arg(s->decl->node, path->name))
        return 0;
    pending = hd_arena_calloc(&s->decl->hold->arena, 1, sizeof(*pending));
    if (!pending)
        return HD_ENOMEM;
    pending->name = path->name;
    pending->node = s->decl->node->index;
    pending->path = hd_decl_path(s->decl, s->at);
    if (!pending->path)
        return HD_ENOMEM;
    *draft->pending_end = pending;
    draft->pending_end = &pending->next;
    return 0;
}

static int resolve(struct path_scan *s, const struct hd_names *names, struct hd_path *path)
{
    static const struct hd_names outermost[] = {
        {&outermost[1], HD_S_INIT("config"), true, HD_PLACE_CONFIG},
        {NULL, HD_S_INIT("context"), true, HD_PLACE_CONTEXT},
    };
    struct hd_draft *draft = s->decl->draft;
    const struct hd_graph_channel *channel;

    if (find_name(names, path))
        return 0;
    channel = hd_map_get(&draft->channel_map, path->name);
    if (channel) {
        path->root = HD_ROOT_CHANNEL;
        path->slot = (size_t)(channel - draft->channels);
        if (!node_reads(s->decl->node, path->slot))
            return hd_decl_fail(s->decl, s->at,
                                "channel \"%.*s\" is not among the node's \"input\"",
                                HD_SHOW(path->name));
        return 0;
    }
    if (find_name(outermost, path))
        return 0;
    if (!s->decl->node || s->decl->node->index == HD_GRAPH_START)
        return fail_name(s, names, path->name);
    return expect_input(s, path);
}

static struct hd_slice trim_blanks(struct hd_slice text)
{
    while (text.len > 0 && text.ptr[0] == ' ')
        text = hd_slice(text.ptr + 1, text.len - 1);
    while (text.len > 0 && text.ptr[text.len - 1] == ' ')
        text.len--;
    return text;
}

int hd_decl_path_read(struct hd_decl *decl, const struct hd_decl_at *at,
                      const struct hd_names *names, struct hd_slice text,
                      const struct hd_path **out)
{
    struct hd_path *path = hd_arena_calloc(&decl->hold->arena, 1, sizeof(*path));
    struct path_scan s = {.decl = decl, .at = at, .whole = trim_blanks(text)};
    int err;

    if (!path)
        return HD_ENOMEM;
    s.pos = s.whole.ptr;
    s.end = s.whole.ptr + s.whole.len;
    err = scan_root(&s, &path->name);
    if (err == 0)
        err = scan_steps(&s, path);
    if (err == 0)
        err = resolve(&s, names, path);
    *out = path;
    return err;
}

/* ---- texts with paths ------------------------------------------------- */

int hd_decl_literal(struct hd_decl *decl, struct hd_val *val, struct hd_expr *out)
{
    int err = hd_decl_memory_keep(decl->hold, val);

    if (err == 0) {
        out->op = HD_EXPR_LITERAL;
        out->literal = val;
    }
    return err;
}

/* The position of `}}` outside of quotes; NULL if not closed. */
static const char *find_close(const char *pos, const char *end)
{
    char quote = 0;

    for (; pos < end; pos++) {
        if (quote && *pos == '\\')
            pos++;
        else if (quote)
            quote = *pos == quote ? 0 : quote;
        else if (*pos == '"' || *pos == '\'')
            quote = *pos;
        else if (*pos == '}' && end - pos > 1 && pos[1] == '}')
            return pos;
    }
    return NULL;
}

static int add_literal(struct hd_decl *decl, struct hd_expr *text, struct hd_slice part)
{
    struct hd_expr *item;

    if (part.len == 0)
        return 0;
    item = hd_decl_memory_push(decl->hold, &text->items, &text->count, sizeof(*item));
    return item ? hd_decl_literal(decl, hd_val_string(part), item) : HD_ENOMEM;
}

static int add_path(struct hd_decl *decl, const struct hd_decl_at *at, const struct hd_names *names,
                    struct hd_expr *text, struct hd_slice part)
{
    struct hd_expr *item =
        hd_decl_memory_push(decl->hold, &text->items, &text->count, sizeof(*item));

    if (!item)
        return HD_ENOMEM;
    item->op = HD_EXPR_PATH;
    return hd_decl_path_read(decl, at, names, part, &item->path);
}

/* Reads one `{{…}}` that begins at *pos; moves *pos behind it. */
static int read_braces(struct hd_decl *decl, const struct hd_decl_at *at,
                       const struct hd_names *names, struct hd_expr *text, const char **pos,
                       const char *end)
{
    const char *start = *pos + OPEN.len;
    const char *close;

    if (hd_slice_starts(hd_slice(start, (size_t)(end - start)), OPEN)) {
        *pos = start + OPEN.len;
        return add_literal(decl, text, OPEN);
    }
    close = find_close(start, end);
    if (!close)
        return hd_decl_fail(decl, at, "\"{{\" is not closed; write \"{{{{\" for the characters");
    *pos = close + OPEN.len;
    return add_path(decl, at, names, text, hd_slice(start, (size_t)(close - start)));
}

/* A single path keeps the type of its value; text without paths is a literal. */
static void simplify(struct hd_expr *text)
{
    if (text->count == 1 && text->items[0].op != HD_EXPR_NONE)
        *text = text->items[0];
}

int hd_decl_string_expr(struct hd_decl *decl, const struct hd_decl_at *at,
                        const struct hd_names *names, struct hd_expr *out)
{
    struct hd_slice text = hd_json_string(at->val);
    const char *pos = text.ptr, *end = text.ptr + text.len;
    int err = 0;

    out->op = HD_EXPR_TEXT;
    while (pos < end && err == 0) {
        const char *open = memmem(pos, (size_t)(end - pos), OPEN.ptr, OPEN.len);

        if (!open)
            open = end;
        err = add_literal(decl, out, hd_slice(pos, (size_t)(open - pos)));
        pos = open;
        if (err == 0 && open < end)
            err = read_braces(decl, at, names, out, &pos, end);
    }
    if (err == 0 && out->count == 0)
        return hd_decl_literal(decl, hd_val_cstr(""), out);
    if (err == 0)
        simplify(out);
    return err;
}
